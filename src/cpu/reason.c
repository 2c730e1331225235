#include "cpu/reason.h"

#include <stdio.h>
#include <string.h>

void iv_reason_loop(char *why, const iv_node *node, int count, const iv_dtype *dtypes,
                    iv_dtype result) {
    if (node->op->loop == NULL) {
        snprintf(why, IV_WHY_BYTES, "%s has no row loop", node->op->name);
        return;
    }
    int used = snprintf(why, IV_WHY_BYTES, "%s has no row loop for (", node->op->name);
    for (int i = 0; i < count && used < IV_WHY_BYTES; i++)
        used += snprintf(why + used, (size_t)(IV_WHY_BYTES - used), "%s%s", i > 0 ? ", " : "",
                         dtypes[i] != IV_DTYPE_NONE ? iv_dtype_name(dtypes[i]) : "nothing");
    if (used < IV_WHY_BYTES)
        snprintf(why + used, (size_t)(IV_WHY_BYTES - used), ") → %s", iv_dtype_name(result));
}

void iv_reason_operator(char *why, const iv_op *op) {
    const char *format = "%s has only its reference evaluation";
    if ((op->flags & IV_OP_CONTROL) != 0)
        format = "%s itself only runs graphs, whose nodes have kernels of their own";
    else if ((op->flags & IV_OP_VIEW) != 0)
        format = "%s shows its input in another way, which needs no kernel";
    else if ((op->flags & IV_OP_KEEPS) != 0)
        format = "%s hands values on, which needs no kernel";
    else if (op->moved_inputs != 0)
        format = "%s moves elements by its reference evaluation";
    snprintf(why, IV_WHY_BYTES, format, op->name);
}
