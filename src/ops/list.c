#include "ops/list.h"

#include <string.h>

#define FAMILY_TABLE(name) iv_ops_##name,
static const iv_op *const families[] = {IV_OP_FAMILIES(FAMILY_TABLE)};
#undef FAMILY_TABLE
#define FAMILY_COUNT (sizeof families / sizeof families[0])

const iv_op *iv_op_find(const char *domain, const char *name) {
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        for (const iv_op *op = families[f]; op->name != NULL; op++) {
            if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0)
                return op;
        }
    }
    return NULL;
}

void iv_op_visit(void (*visit)(void *context, const iv_op *op), void *context) {
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        for (const iv_op *op = families[f]; op->name != NULL; op++)
            visit(context, op);
    }
}
