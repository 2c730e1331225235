#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "onnx/attribute_names.h"

static bool is_among(const char *names, const char *name) {
    size_t length = strlen(name);
    while (*names != '\0') {
        size_t one = strcspn(names, " ");
        if (one == length && memcmp(names, name, length) == 0)
            return true;
        names += one + (names[one] == ' ');
    }
    return false;
}

/* The first row of an operator, or the number of rows. */
static size_t first_row(const char *op) {
    size_t low = 0, high = sb_attribute_table_rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sb_attribute_table[middle].op, op) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

sb_attribute_standing sb_onnx_attribute_standing(const char *domain, const char *op, int version, const char *name) {
    char full[128];
    if (domain[0] != '\0') {
        snprintf(full, sizeof full, "%s.%s", domain, op);
        op = full;
    }
    bool listed = false, of_version = false, of_any = false;
    for (size_t i = first_row(op); i < sb_attribute_table_rows && strcmp(sb_attribute_table[i].op, op) == 0; i++) {
        bool has = is_among(sb_attribute_table[i].attributes, name);
        /* Of a version before the operator's first one, what that has counts. */
        of_version = !listed || sb_attribute_table[i].since <= version ? has : of_version;
        of_any = of_any || has;
        listed = true;
    }
    return !listed || of_version ? SB_ATTRIBUTE_KNOWN : of_any ? SB_ATTRIBUTE_OF_OTHER_VERSION : SB_ATTRIBUTE_UNKNOWN;
}
