/* The kernel of GatherElements: an element for each index, which lies in the place of the index but for the axis. Lines of the last axis are
 * cut for threads; indices are looked at once, before any is used. */
#include "cpu/moving/gather_elements.h"

#include "cpu/moving/indices.h"
#include "ops/gather.h"

/* Elements that a thread takes at least. */
#define GRAIN_ELEMENTS 16384

typedef struct gathering {
    const char *from;
    char *to;
    const int64_t *indices;
    const sb_tensor *picks; /* whose extents the output has */
    int rank, axis;
    int64_t steps[SB_MAX_RANK]; /* of the data, gapless */
    int64_t line, extent;       /* elements of the last axis; of the axis of the data */
    size_t size;
} gathering;

/* Where in the data a line begins, but for the axis. */
static int64_t find_line(const gathering *work, int64_t line) {
    int64_t at = 0;
    for (int d = work->rank - 2; d >= 0; d--) {
        const int64_t index = line % work->picks->dims[d];
        line /= work->picks->dims[d];
        at += d != work->axis ? index * work->steps[d] : 0;
    }
    return at;
}

/* `size` is a constant where it is small; `further` is how far an element of a line is from the one before it, besides the axis. */
static inline void pick_line(const gathering *work, const int64_t *indices, const char *from, char *to, int64_t step,
                             int64_t further, size_t size) {
    for (int64_t j = 0; j < work->line; j++) {
        const int64_t position = indices[j] + (indices[j] < 0 ? work->extent : 0);
        memcpy(to + (size_t)j * size, from + (position * step + j * further) * (int64_t)size, size);
    }
}

static void gather_lines(void *context, int64_t begin, int64_t end) {
    const gathering *work = context;
    const int64_t step = work->steps[work->axis], further = work->axis != work->rank - 1;
    for (int64_t line = begin; line < end; line++) {
        const int64_t *indices = work->indices + line * work->line;
        const char *from = work->from + find_line(work, line) * (int64_t)work->size;
        char *to = work->to + line * work->line * (int64_t)work->size;
        switch (work->size) {
        case 1:
            pick_line(work, indices, from, to, step, further, 1);
            break;
        case 2:
            pick_line(work, indices, from, to, step, further, 2);
            break;
        case 4:
            pick_line(work, indices, from, to, step, further, 4);
            break;
        default:
            pick_line(work, indices, from, to, step, further, work->size);
            break;
        }
    }
}

static sb_status check(const sb_call *call, const sb_tensor *data, const sb_tensor *picks, int axis,
                       const sb_indices *indices) {
    int64_t position;
    for (int d = 0; d < data->rank; d++) {
        if (d != axis && picks->dims[d] > data->dims[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the indices have extent %lld in dimension %d, the data only %lld",
                                (long long)picks->dims[d], d, (long long)data->dims[d]);
    }
    for (int64_t i = 0; i < indices->count; i++) {
        if (!sb_index_place(indices->values[i], data->dims[axis], &position))
            return sb_move_check(call, axis, indices->values[i], data->dims[axis], &position);
    }
    return SB_OK;
}

sb_status sb_cpu_gather_elements(sb_call *call, const sb_tensor *data, int axis, const sb_indices *indices) {
    const sb_tensor *picks = sb_call_input(call, 1);
    sb_tensor *output;
    SB_TRY(check(call, data, picks, axis, indices));
    SB_TRY(sb_call_output(call, 0, &output));
    if (indices->count == 0)
        return SB_OK;
    gathering work = {.from = data->data,
                      .to = output->data,
                      .indices = indices->values,
                      .picks = picks,
                      .rank = data->rank,
                      .axis = axis,
                      .line = picks->dims[data->rank - 1],
                      .extent = data->dims[axis],
                      .size = sb_dtype_size(data->dtype)};
    sb_row_major_strides(data->rank, data->dims, work.steps);
    sb_workers_run(call->workers, indices->count / work.line, 1 + GRAIN_ELEMENTS / work.line, gather_lines, &work);
    return SB_OK;
}
