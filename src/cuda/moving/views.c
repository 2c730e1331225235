/* Operators that show their input in another way, or only move elements by copies: their own
 * evaluation, whose copies go to the device (sb_call_copy). Views launch nothing. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/call.h"
#include "cuda/list.h"

static bool supports_view(const sb_kernel_query *query, char *why) {
    bool looks = strcmp(query->node->op->name, "BitCast") == 0 && query->outputs[0].dtype == SB_BOOL &&
                 query->inputs[0]->dtype != SB_BOOL;
    if (looks) {
        snprintf(why, SB_WHY_BYTES, "BitCast to bool looks at each element, which has no GPU kernel");
        return false;
    }
    /* Dropout shows its input where it drops nothing, and computes otherwise: it has kernels of its own. */
    return (query->node->op->flags & SB_OP_VIEW) != 0 && strcmp(query->node->op->name, "Dropout") != 0;
}

static sb_status launch_evaluation(sb_call *call) {
    return call->node->op->eval(call);
}

/* Input 0 is shown; the others say how. */
const sb_kernel sb_cuda_kernels_views[] = {
    {.op = SB_ANY_OP,
     .name = "view",
     .supports = supports_view,
     .host_inputs = ~UINT64_C(1),
     .launch = launch_evaluation},
    {0},
};
