#include "cpu/reason.h"

#include <stdio.h>
#include <string.h>

void sb_reason_loop(char *why, const sb_node *node, int count, const sb_dtype *dtypes, sb_dtype result) {
    if (node->op->loop == NULL) {
        snprintf(why, SB_WHY_BYTES, "%s has no row loop", node->op->name);
        return;
    }
    int used = snprintf(why, SB_WHY_BYTES, "%s has no row loop for (", node->op->name);
    for (int i = 0; i < count && used < SB_WHY_BYTES; i++)
        used += snprintf(why + used, (size_t)(SB_WHY_BYTES - used), "%s%s", i > 0 ? ", " : "",
                         dtypes[i] != SB_DTYPE_NONE ? sb_dtype_name(dtypes[i]) : "nothing");
    if (used < SB_WHY_BYTES)
        snprintf(why + used, (size_t)(SB_WHY_BYTES - used), ") → %s", sb_dtype_name(result));
}

void sb_reason_operator(char *why, const sb_op *op) {
    const char *format = "%s has only its reference evaluation";
    if ((op->flags & SB_OP_CONTROL) != 0)
        format = "%s itself only runs graphs, whose nodes have kernels of their own";
    else if ((op->flags & SB_OP_VIEW) != 0)
        format = "%s shows its input in another way, which needs no kernel";
    else if ((op->flags & SB_OP_KEEPS) != 0)
        format = "%s hands values on, which needs no kernel";
    else if (op->moved_inputs != 0)
        format = "%s moves elements by its reference evaluation";
    snprintf(why, SB_WHY_BYTES, format, op->name);
}
