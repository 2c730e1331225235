/* Writes docs/rules.md from the registries of rules.
 *
 *     rules_page PAGE            writes the page
 *     rules_page --check PAGE    exit status 1 when the page is not what would be written */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "rules/axes.h"
#include "rules/cost.h"

static const char head[] =
    "# Rules\n"
    "\n"
    "This page is written by `rules_page` (`tests/docs`) from the tables of rules in `src/ops`; edit those instead.\n"
    "They say what is known of each operator beside its definition.\n"
    "\n"
    "**Axes**: what a node does with one axis of an input whose buffer has room for more rows than are used.\n"
    "\n"
    "- *Independent*: rows do not see each other. Garbage behind the used rows makes garbage behind the used rows of\n"
    "  the outputs, and changes nothing else.\n"
    "- *Bounded*: the kernel has to stop at the used extent, exactly as if the tensor ended there. Zeros behind it "
    "are\n"
    "  not the same: \xe2\x88\x92"
    "0 + 0, 0 \xc2\xb7 NaN, and the divisor of a mean.\n"
    "- *Exact*: the node has to be planned at the used extent.\n"
    "- *Refused*: inputs whose elements may fail a run (an index out of range, a division by zero). Nobody may look "
    "at\n"
    "  those behind the used extent, whatever the kind of the axis.\n"
    "\n"
    "A cell says which axes have the kind; which one an axis of a given node has depends on its attributes and "
    "extents\n"
    "(`sb_axes_of`). Axes of inputs that are no tensors, or of unknown rank, are exact. Tests run the definitions of "
    "all\n"
    "operators with garbage behind independent axes.\n"
    "\n"
    "**Cost**: operations per run, and the bytes that cannot be spared: each element that the result depends on, "
    "once.\n"
    "\n"
    "| operator | independent | bounded | exact | refused | operations | bytes |\n"
    "|---|---|---|---|---|---|---|\n";

typedef struct listing {
    size_t count;
    const sb_op *ops[SB_REGISTRY_OPS];
} listing;

static void add_op(void *context, const sb_op *op) {
    listing *listing = context;
    if (listing->count < SB_REGISTRY_OPS)
        listing->ops[listing->count++] = op;
}

static int by_name(const void *left, const void *right) {
    return strcasecmp((*(const sb_op *const *)left)->name, (*(const sb_op *const *)right)->name);
}

static void put_refused(FILE *page, uint32_t checked) {
    const char *separator = " input ";
    for (int i = 0; i < 32; i++) {
        if ((checked >> i & 1) != 0) {
            fprintf(page, "%s%d", separator, i);
            separator = ", ";
        }
    }
    fputs(" |", page);
}

/* The words of a count, its number in place of '#'. */
static void put_count(FILE *page, const char *words, int64_t number) {
    fputc(' ', page);
    for (; *words != '\0'; words++) {
        if (*words == '#')
            fprintf(page, "%lld", (long long)number);
        else
            fputc(*words, page);
    }
    fputs(" |", page);
}

static void put_cell(FILE *page, const char *words) {
    fprintf(page, words != NULL ? " %s |" : " |", words != NULL ? words : "");
}

/* False when an operator has no entry. */
static bool put_op(FILE *page, const sb_op *op) {
    const sb_axes_entry *axes = sb_axes_find(op);
    const sb_cost_entry *cost = sb_cost_find(op);
    if (axes == NULL || cost == NULL)
        return false;
    fprintf(page, "| %s%s%s |", op->domain, op->domain[0] != '\0' ? "." : "", op->name);
    put_cell(page, axes->independent);
    put_cell(page, axes->bounded);
    put_cell(page, axes->exact);
    put_refused(page, axes->checked);
    put_count(page, cost->flops->words, cost->number);
    put_count(page, cost->bytes->words, 0);
    fputc('\n', page);
    return true;
}

static bool put_page(FILE *page) {
    listing listing = {0};
    sb_op_visit(add_op, &listing);
    qsort(listing.ops, listing.count, sizeof listing.ops[0], by_name);
    fputs(head, page);
    for (size_t i = 0; i < listing.count; i++) {
        if (!put_op(page, listing.ops[i])) {
            fprintf(stderr, "%s has no entry in a registry\n", listing.ops[i]->name);
            return false;
        }
    }
    return true;
}

/* Whether the file holds the text. */
static bool is_current(const char *path, const char *text, size_t bytes) {
    FILE *file = fopen(path, "rb");
    char *found = malloc(bytes + 1);
    bool same =
        file != NULL && found != NULL && fread(found, 1, bytes + 1, file) == bytes && memcmp(found, text, bytes) == 0;
    if (file != NULL)
        fclose(file);
    free(found);
    return same;
}

static bool write_page(const char *path, const char *text, size_t bytes) {
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(text, 1, bytes, file) == bytes;
    return file != NULL && fclose(file) == 0 && written;
}

int main(int count, char **arguments) {
    bool check = count == 3 && strcmp(arguments[1], "--check") == 0;
    if (count != 2 && !check) {
        fputs("usage: rules_page [--check] PAGE\n", stderr);
        return 2;
    }
    const char *path = arguments[count - 1];
    char *text = NULL;
    size_t bytes = 0;
    FILE *page = open_memstream(&text, &bytes);
    bool done = page != NULL && put_page(page);
    done = page != NULL && fclose(page) == 0 && done;
    if (done && check && !is_current(path, text, bytes)) {
        fprintf(stderr, "%s is out of date: build write_rules_page\n", path);
        done = false;
    }
    if (done && !check)
        done = write_page(path, text, bytes);
    free(text);
    return done ? 0 : 1;
}
