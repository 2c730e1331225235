#include "cpu/spread.h"

/* Elements below which a second thread costs more than it saves (measured: some 5 µs to wake one). */
#define GRAIN 16384

void iv_memory_order(const iv_tensor *tensor, int *order) {
    for (int i = 0; i < tensor->rank; i++) {
        int64_t stride = tensor->strides[i] < 0 ? -tensor->strides[i] : tensor->strides[i];
        int at = i;
        for (; at > 0; at--) {
            int64_t before = tensor->strides[order[at - 1]];
            if ((before < 0 ? -before : before) >= stride)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static bool has_shape(const iv_tensor *tensor, const iv_fact *fact) {
    if (tensor->rank != fact->rank)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        int64_t extent;
        if (!iv_dim_is_constant(fact->dims[d], &extent) || extent != tensor->dims[d])
            return false;
    }
    return true;
}

iv_status iv_spread_output(iv_call *call, int count, iv_tensor *const *inputs, iv_tensor **output) {
    for (int i = 0; i < count; i++) {
        if (inputs[i] == NULL || !has_shape(inputs[i], &call->facts[0]))
            continue;
        int order[IV_MAX_RANK];
        iv_memory_order(inputs[i], order);
        return iv_call_output_ordered(call, 0, order, output);
    }
    return iv_call_output(call, 0, output);
}

typedef struct loop {
    iv_walk walk;
    iv_walk_row *row;
    void *context;
} loop;

static void run_range(void *context, int64_t begin, int64_t end) {
    const loop *loop = context;
    iv_walk_run_range(&loop->walk, begin, end, loop->row, loop->context);
}

void iv_spread_run(iv_call *call, iv_walk_row *row, void *context, iv_tensor *output, int count,
                 iv_tensor *const *inputs) {
    const iv_tensor *operands[IV_WALK_OPERANDS] = {output};
    for (int i = 0; i < count; i++)
        operands[i + 1] = inputs[i];
    loop loop = {.row = row, .context = context};
    iv_walk_start(&loop.walk, output->rank, output->dims, count + 1, operands);
    iv_workers_run(call->workers, loop.walk.elements, GRAIN, run_range, &loop);
}
