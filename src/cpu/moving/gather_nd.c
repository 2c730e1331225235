/* GatherND: a block of data for each tuple of indices, tuples cut for threads. Indices are looked at once, before any is used. */
#include "cpu/moving/gather_elements.h"

#include "cpu/moving/indices.h"
#include "ops/gather.h"

/* What one thread may do at least, in bytes; a tuple counts as sixteen. */
#define GRAIN_BYTES 131072

typedef struct gathering {
    const char *from;
    char *to;
    const int64_t *indices;
    const int64_t *extents; /* of the dimensions that a tuple chooses from */
    int depth;              /* of a tuple */
    int64_t tuples, inside; /* of a batch; bytes of its data */
    int64_t block;          /* bytes of what a tuple chooses */
} gathering;

/* `depth` and `block` are constants where they are small. */
static inline void gather_run(const gathering *work, int64_t begin, int64_t end, int depth, int64_t block) {
    for (int64_t t = begin; t < end; t++) {
        const int64_t *tuple = work->indices + t * depth;
        int64_t offset = 0;
        for (int d = 0; d < depth; d++)
            offset = offset * work->extents[d] + tuple[d] + (tuple[d] < 0 ? work->extents[d] : 0);
        memcpy(work->to + t * block, work->from + t / work->tuples * work->inside + offset * block, (size_t)block);
    }
}

static void gather_tuples(void *context, int64_t begin, int64_t end) {
    const gathering *work = context;
    if (work->block == 4 && work->depth == 1)
        gather_run(work, begin, end, 1, 4);
    else if (work->block == 4 && work->depth == 2)
        gather_run(work, begin, end, 2, 4);
    else if (work->depth == 1)
        gather_run(work, begin, end, 1, work->block);
    else
        gather_run(work, begin, end, work->depth, work->block);
}

static sb_status check(const sb_call *call, const sb_tensor *data, const sb_tensor *picks, int shared,
                       const sb_indices *indices) {
    const int depth = (int)picks->dims[picks->rank - 1];
    int64_t position;
    for (int d = 0; d < shared; d++) {
        if (picks->dims[d] != data->dims[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the shared dimension %d has extents %lld in the data, %lld in the indices", d,
                                (long long)data->dims[d], (long long)picks->dims[d]);
    }
    for (int64_t i = 0; i < indices->count; i++) {
        const int axis = shared + (int)(i % depth);
        if (!sb_index_place(indices->values[i], data->dims[axis], &position))
            return sb_move_check(call, axis, indices->values[i], data->dims[axis], &position);
    }
    return SB_OK;
}

static sb_status gather(sb_call *call, const sb_tensor *data, const sb_indices *indices) {
    const sb_tensor *picks = sb_call_input(call, 1);
    const int shared = (int)((const sb_gather_params *)call->node->params)->axis;
    const int depth = (int)picks->dims[picks->rank - 1];
    const int64_t size = (int64_t)sb_dtype_size(data->dtype);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    SB_TRY(check(call, data, picks, shared, indices));
    gathering work = {.from = data->data,
                      .to = output->data,
                      .indices = indices->values,
                      .extents = data->dims + shared,
                      .depth = depth,
                      .tuples = sb_move_product(picks->dims, shared, picks->rank - 1),
                      .inside = sb_move_product(data->dims, shared, data->rank) * size,
                      .block = sb_move_product(data->dims, shared + depth, data->rank) * size};
    sb_workers_run(call->workers, indices->count / depth, 1 + GRAIN_BYTES / (work.block + 16), gather_tuples, &work);
    return SB_OK;
}

sb_status sb_cpu_gather_nd(sb_call *call) {
    sb_tensor *data;
    sb_indices indices = {NULL};
    SB_TRY(sb_call_contiguous(call, 0, &data));
    sb_status status = sb_indices_read(call, sb_call_input(call, 1), &indices);
    if (status == SB_OK)
        status = gather(call, data, &indices);
    sb_indices_release(&indices);
    sb_tensor_release(data);
    return status;
}
