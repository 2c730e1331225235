#include "ops/list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/counting.h"
#include "rules/question.h"

/* ---- tables ---- */

#define OPS(name) sb_ops_##name,
static const sb_op *const families[] = {SB_OP_FAMILIES(OPS)};
#define FAMILY_COUNT (sizeof families / sizeof families[0])

#define AXES(name) sb_axes_##name,
const void *const sb_axes_tables[] = {SB_AXES_FAMILIES(AXES) NULL};

#define COST(name) sb_cost_##name,
const void *const sb_cost_tables[] = {SB_COST_FAMILIES(COST) NULL};

/* ---- by name ---- */

/* All operators in the order of compare_names, made when the first is looked for. A test finds every one, so that room
 * cannot run out unseen. */
#define MOST_OPS 512
static const sb_op *by_name[MOST_OPS];
static size_t op_count;
static pthread_once_t sorted = PTHREAD_ONCE_INIT;

static int compare_names(const void *left, const void *right) {
    const sb_op *first = *(const sb_op *const *)left, *second = *(const sb_op *const *)right;
    int order = strcmp(first->name, second->name);
    return order != 0 ? order : strcmp(first->domain, second->domain);
}

static void note_op(void *context, const sb_op *op) {
    if (op_count < MOST_OPS)
        by_name[op_count++] = op;
}

static void sort_ops(void) {
    sb_op_visit(note_op, NULL);
    qsort(by_name, op_count, sizeof *by_name, compare_names);
}

const sb_op *sb_op_find(const char *domain, const char *name) {
    pthread_once(&sorted, sort_ops);
    const sb_op wanted = {.name = name, .domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain}, *key = &wanted;
    const sb_op **found = bsearch(&key, by_name, op_count, sizeof *by_name, compare_names);
    return found != NULL ? *found : NULL;
}

void sb_op_visit(void (*visit)(void *context, const sb_op *op), void *context) {
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        for (const sb_op *op = families[f]; op->name != NULL; op++)
            visit(context, op);
    }
}
