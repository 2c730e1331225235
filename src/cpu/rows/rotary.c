/* RotaryEmbedding: the definition's tokens, on all workers. */
#include "ops/rotary.h"

#include "cpu/list.h"

static bool supports_rotary(const sb_kernel_query *query, char *why) {
    return true;
}

static void turn_tokens(void *context, int64_t begin, int64_t end) {
    sb_rotary_tokens(context, begin, end);
}

static sb_status launch_rotary(sb_call *call) {
    sb_tensor *y;
    sb_rotary rotary;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_rotary_describe(call, y, &rotary));
    SB_TRY(sb_rotary_check(call, &rotary));
    int64_t tokens = rotary.batch * rotary.tokens;
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    /* A piece is worth starting a thread from some ten thousand elements on. */
    int64_t width = rotary.heads * rotary.head_size, grain = width < 16384 ? 16384 / width : 1;
    sb_workers_run(call->workers, tokens, grain, turn_tokens, &rotary);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_rotary[] = {
    {.op = "RotaryEmbedding", .name = "rotary", .supports = supports_rotary, .launch = launch_rotary},
    {0},
};
