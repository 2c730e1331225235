/* The kernel of Concat: the output has the order of dimensions in memory of the largest input, so that channels that are
 * innermost stay there, and parts are copied by all workers. */
#include <stdio.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/spread.h"
#include "ops/joins.h"
#include "ops/moving.h"

/* Bytes below which waking a thread costs more than it saves. */
#define GRAIN_BYTES 131072

static bool supports_concat(const sb_kernel_query *query, char *why) {
    if (query->outputs[0].dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of Concat");
    return false;
}

static const sb_tensor *largest_input(const sb_call *call) {
    const sb_tensor *largest = sb_call_input(call, 0);
    for (int i = 1; i < call->input_count; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        if (sb_tensor_elements(input) > sb_tensor_elements(largest))
            largest = input;
    }
    return largest;
}

typedef struct joining {
    sb_call *call;
    sb_tensor *output;
    int axis;
    int64_t *starts;    /* of each input, along the axis */
    sb_status *results; /* of each input */
} joining;

static void copy_inputs(void *context, int64_t begin, int64_t end) {
    const joining *joining = context;
    for (int64_t i = begin; i < end; i++) {
        const sb_tensor *input = sb_call_input(joining->call, (int)i);
        joining->results[i] = sb_concat_copy(joining->call, joining->output, joining->axis, joining->starts[i], input);
    }
}

static sb_status launch_concat(sb_call *call) {
    const sb_tensor *largest = largest_input(call);
    joining joining = {.call = call};
    int order[SB_MAX_RANK];
    void *starts, *results;
    size_t count = (size_t)call->input_count;
    sb_memory_order(largest, order);
    SB_TRY(sb_concat_axis(call, &joining.axis));
    SB_TRY(sb_concat_output(call, joining.axis, order, &joining.output));
    SB_TRY(sb_call_workspace(call, count * sizeof *joining.starts, &starts));
    SB_TRY(sb_call_workspace(call, count * sizeof *joining.results, &results));
    joining.starts = starts;
    joining.results = results;
    int64_t start = 0, bytes = sb_tensor_elements(joining.output) * (int64_t)sb_dtype_size(joining.output->dtype);
    for (int i = 0; i < call->input_count; i++) {
        joining.starts[i] = start;
        start += sb_call_input(call, i)->dims[joining.axis];
    }
    sb_workers_run(call->workers, call->input_count, bytes < GRAIN_BYTES ? call->input_count : 1, copy_inputs,
                   &joining);
    for (int i = 0; i < call->input_count; i++)
        SB_TRY(joining.results[i]);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_joins[] = {
    {.op = "Concat", .name = "concat", .supports = supports_concat, .launch = launch_concat},
    {0},
};
