#include "cpu/spread.h"

#include "cpu/tiles.h"

/* Elements below which a second thread costs more than it saves (measured: some 5 µs to wake one). */
#define GRAIN 16384

void sb_memory_order(const sb_tensor *tensor, int *order) {
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

bool sb_even_step(int rank, const int64_t *dims, const int64_t *strides, int64_t *step) {
    int64_t reach = 0;
    bool first = true;
    *step = 0;
    for (int i = rank - 1; i >= 0; i--) {
        if (dims[i] == 1)
            continue;
        if (first)
            *step = strides[i];
        else if (strides[i] != reach)
            return false;
        first = false;
        reach = strides[i] * dims[i];
    }
    return true;
}

static bool has_shape(const sb_tensor *tensor, const sb_fact *fact) {
    if (tensor->rank != fact->rank)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        int64_t extent;
        if (!sb_dim_is_constant(fact->dims[d], &extent) || extent != tensor->dims[d])
            return false;
    }
    return true;
}

sb_status sb_spread_output(sb_call *call, int count, sb_tensor *const *inputs, sb_tensor **output) {
    for (int i = 0; i < count; i++) {
        if (inputs[i] == NULL || !has_shape(inputs[i], &call->facts[0]))
            continue;
        int order[SB_MAX_RANK];
        sb_memory_order(inputs[i], order);
        return sb_call_output_ordered(call, 0, order, output);
    }
    return sb_call_output(call, 0, output);
}

typedef struct loop {
    sb_walk walk;
    sb_walk_row *row;
    void *context;
} loop;

static void run_range(void *context, int64_t begin, int64_t end) {
    const loop *loop = context;
    sb_walk_run_range(&loop->walk, begin, end, loop->row, loop->context);
}

void sb_spread_run(sb_call *call, sb_walk_row *row, void *context, sb_tensor *output, int count,
                   sb_tensor *const *inputs) {
    const sb_tensor *operands[SB_WALK_OPERANDS] = {output};
    size_t sizes[SB_WALK_OPERANDS] = {sb_dtype_size(output->dtype)};
    for (int i = 0; i < count; i++) {
        operands[i + 1] = inputs[i];
        sizes[i + 1] = sb_dtype_size(inputs[i]->dtype);
    }
    loop loop = {.row = row, .context = context};
    sb_walk_start(&loop.walk, output->rank, output->dims, count + 1, operands);
    sb_tiles tiles;
    if (sb_tiles_start(&tiles, &loop.walk, sizes, row, context)) {
        sb_workers_run(call->workers, tiles.count, (GRAIN + tiles.elements - 1) / tiles.elements, sb_tiles_run, &tiles);
        return;
    }
    sb_workers_run(call->workers, loop.walk.elements, GRAIN, run_range, &loop);
}
