#include "capacities.h"

#include <stdlib.h>
#include <string.h>

/* N, or M..N. */
static bool parse_range(const char *text, sb_capacity *item) {
    const char *dots = strstr(text, "..");
    char first[32];
    long long least = 0, capacity;
    if (dots != NULL) {
        size_t length = (size_t)(dots - text);
        if (length >= sizeof first)
            return false;
        memcpy(first, text, length);
        first[length] = '\0';
        if (!parse_integer(first, 1, INT64_MAX, &least))
            return false;
        text = dots + 2;
    }
    if (!parse_integer(text, 1, INT64_MAX, &capacity) || least > capacity)
        return false;
    item->least = least;
    item->capacity = capacity;
    return true;
}

static int read_capacity(const char *text, sb_capacity *item) {
    const char *range;
    char *symbol = NULL;
    bool assigned = parse_assignment(text, &symbol, &range);
    item->symbol = symbol;
    if (assigned && parse_range(range, item))
        return EXIT_RIGHT;
    return usage_error("--capacity takes SYMBOL=N or SYMBOL=M..N with 1 <= M <= N, not %s", text);
}

int read_capacities(const arguments *arguments, sb_capacity **items, int *count) {
    int given = 0, code = EXIT_RIGHT;
    while (option_value_at(arguments, "capacity", given) != NULL)
        given++;
    *items = NULL;
    *count = 0;
    if (given == 0)
        return EXIT_RIGHT;
    *items = calloc((size_t)given, sizeof **items);
    if (*items == NULL)
        return out_of_memory();
    for (; *count < given && code == EXIT_RIGHT; ++*count)
        code = read_capacity(option_value_at(arguments, "capacity", *count), &(*items)[*count]);
    return code;
}

void free_capacities(sb_capacity *items, int count) {
    for (int i = 0; i < count; i++)
        free((char *)items[i].symbol);
    free(items);
}
