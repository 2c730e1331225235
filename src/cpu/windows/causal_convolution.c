/* CausalConvWithState: the definition's rows, on all workers. */
#include "ops/causal_convolution.h"

#include "cpu/list.h"
#include "cpu/pieces.h"

static bool supports_causal(const sb_kernel_query *query, char *why) {
    return true;
}

static void compute_row(void *context, int64_t index, void *workspace) {
    sb_causal_row(context, index, workspace);
}

static sb_status launch_causal(sb_call *call) {
    sb_causal_work work;
    size_t bytes;
    SB_TRY(sb_causal_describe(call, &work));
    SB_TRY(sb_causal_workspace(call, &work, &bytes));
    if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &work.y));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &work.present));
    return sb_pieces_run(call, work.batch * work.channels, bytes, compute_row, &work);
}

const sb_kernel sb_cpu_kernels_causal_convolution[] = {
    {.op = "CausalConvWithState", .name = "causal-convolution", .supports = supports_causal, .launch = launch_causal},
    {0},
};
