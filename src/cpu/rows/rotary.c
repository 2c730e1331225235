/* RotaryEmbedding: the definition's tokens, on all workers. */
#include "cpu/rows/rotary.h"

#include "cpu/list.h"

static bool supports_rotary(const sb_kernel_query *query, char *why) {
    return true;
}

static void turn_tokens(void *context, int64_t begin, int64_t end) {
    sb_rotary_tokens(context, begin, end);
}

void sb_cpu_rotary_run(const sb_call *call, const sb_rotary *rotary) {
    int64_t tokens = rotary->batch * rotary->tokens, width = rotary->heads * rotary->head_size;
    if (tokens == 0 || width == 0)
        return;
    /* A piece is worth starting a thread from some ten thousand elements on. */
    sb_workers_run(call->workers, tokens, width < 16384 ? 16384 / width : 1, turn_tokens, (void *)(uintptr_t)rotary);
}

static sb_status launch_rotary(sb_call *call) {
    sb_tensor *y;
    sb_rotary rotary;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_rotary_describe(call, y, &rotary));
    SB_TRY(sb_rotary_check(call, &rotary));
    sb_cpu_rotary_run(call, &rotary);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_rotary[] = {
    {.op = "RotaryEmbedding", .name = "rotary", .supports = supports_rotary, .launch = launch_rotary},
    {0},
};
