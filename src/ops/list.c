#include "ops/list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY_TABLE(name) iv_ops_##name,
static const iv_op *const families[] = {IV_OP_FAMILIES(FAMILY_TABLE)};
#undef FAMILY_TABLE
#define FAMILY_COUNT (sizeof families / sizeof families[0])

/* ---- by name ---- */

/* All operators in the order of compare_names, made when the first is looked for. A test finds every one, so that room cannot run
 * out unseen. */
#define MOST_OPS 512
static const iv_op *by_name[MOST_OPS];
static size_t op_count;
static pthread_once_t sorted = PTHREAD_ONCE_INIT;

static int compare_names(const void *left, const void *right) {
    const iv_op *first = *(const iv_op *const *)left, *second = *(const iv_op *const *)right;
    int order = strcmp(first->name, second->name);
    return order != 0 ? order : strcmp(first->domain, second->domain);
}

static void note_op(void *context, const iv_op *op) {
    if (op_count < MOST_OPS)
        by_name[op_count++] = op;
}

static void sort_ops(void) {
    iv_op_visit(note_op, NULL);
    qsort(by_name, op_count, sizeof *by_name, compare_names);
}

const iv_op *iv_op_find(const char *domain, const char *name) {
    pthread_once(&sorted, sort_ops);
    const iv_op wanted = {.name = name, .domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain}, *key = &wanted;
    const iv_op **found = bsearch(&key, by_name, op_count, sizeof *by_name, compare_names);
    return found != NULL ? *found : NULL;
}

void iv_op_visit(void (*visit)(void *context, const iv_op *op), void *context) {
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        for (const iv_op *op = families[f]; op->name != NULL; op++)
            visit(context, op);
    }
}
