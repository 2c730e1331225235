#include "ops/rows.h"

#include "base/allocation.h"
#include "ops/convert_loops.h"

static void append(int *rank, int64_t *dims, int64_t *steps, int64_t dim, int64_t step) {
    if (dim == 1)
        return;
    /* A dimension that continues the one before it is one with it. */
    if (*rank > 0 && steps[*rank - 1] == step * dim) {
        dims[*rank - 1] *= dim;
        steps[*rank - 1] = step;
        return;
    }
    dims[*rank] = dim;
    steps[(*rank)++] = step;
}

void sb_rows_start(sb_rows *rows, const sb_tensor *tensor, uint32_t inner) {
    rows->tensor = tensor;
    rows->count = 1;
    rows->length = 1;
    rows->outer_rank = 0;
    rows->inner_rank = 0;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t dim = tensor->dims[d];
        int64_t step = tensor->strides[d] * (int64_t)sb_dtype_size(tensor->dtype);
        if ((inner >> d & 1) != 0) {
            rows->length *= dim;
            append(&rows->inner_rank, rows->inner_dims, rows->inner_steps, dim, step);
        } else {
            rows->count *= dim;
            append(&rows->outer_rank, rows->outer_dims, rows->outer_steps, dim, step);
        }
    }
    if (rows->inner_rank == 0) {
        rows->inner_rank = 1;
        rows->inner_dims[0] = 1;
        rows->inner_steps[0] = 0;
    }
}

char *sb_rows_at(const sb_rows *rows, int64_t row) {
    char *at = rows->tensor->data;
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        at += row % rows->outer_dims[d] * rows->outer_steps[d];
        row /= rows->outer_dims[d];
    }
    return at;
}

/* Converts between the row and packed values, run by run along the innermost dimension. */
static void transfer(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_dtype dtype, char *packed,
                     bool store, sb_walk_row *loop) {
    if (count == 0)
        return;
    int last = rows->inner_rank - 1;
    int64_t packed_step = (int64_t)sb_dtype_size(dtype), index[SB_MAX_RANK], rest = begin;
    char *at = sb_rows_at(rows, row);
    for (int d = last; d >= 0; d--) {
        index[d] = rest % rows->inner_dims[d];
        rest /= rows->inner_dims[d];
        at += index[d] * rows->inner_steps[d];
    }
    while (count > 0) {
        int64_t run = rows->inner_dims[last] - index[last];
        run = run < count ? run : count;
        char *data[2] = {store ? at : packed, store ? packed : at};
        int64_t row_step = rows->inner_steps[last];
        int64_t steps[2] = {store ? row_step : packed_step, store ? packed_step : row_step};
        loop(NULL, run, data, steps);
        packed += run * packed_step;
        count -= run;
        at -= index[last] * row_step;
        index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            at += rows->inner_steps[d];
            if (++index[d] < rows->inner_dims[d])
                break;
            at -= rows->inner_dims[d] * rows->inner_steps[d];
            index[d] = 0;
        }
    }
}

int64_t sb_rows_side_by_side(const sb_rows *rows) {
    const int last = rows->outer_rank - 1;
    const int64_t size = (int64_t)sb_dtype_size(rows->tensor->dtype);
    if (last < 0 || rows->inner_rank != 1 || rows->outer_steps[last] != size || rows->inner_steps[0] == size)
        return 0;
    return rows->outer_dims[last];
}

void sb_rows_load(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_dtype dtype, void *target) {
    transfer(rows, row, begin, count, dtype, target, false, sb_convert_loop(dtype, rows->tensor->dtype));
}

void sb_rows_load_by(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_walk_row *loop, sb_dtype dtype,
                     void *target) {
    transfer(rows, row, begin, count, dtype, target, false, loop);
}

void sb_rows_store(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_dtype dtype, const void *source) {
    transfer(rows, row, begin, count, dtype, (char *)(uintptr_t)source, true,
             sb_convert_loop(rows->tensor->dtype, dtype));
}

void sb_rows_store_by(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_walk_row *loop, sb_dtype dtype,
                      const void *source) {
    transfer(rows, row, begin, count, dtype, (char *)(uintptr_t)source, true, loop);
}

sb_status sb_rows_transform(const sb_rows *from, const sb_rows *to, sb_dtype computed,
                            void (*f32)(void *context, int64_t row, float *values, int64_t count),
                            void (*f64)(void *context, int64_t row, double *values, int64_t count), void *context,
                            sb_error *error) {
    if (from->length == 0 || from->count == 0)
        return SB_OK;
    void *values = sb_allocate_array((size_t)from->length, sb_dtype_size(computed));
    if (values == NULL)
        return sb_fail_memory(error, (size_t)from->length * sb_dtype_size(computed));
    for (int64_t row = 0; row < from->count; row++) {
        sb_rows_load(from, row, 0, from->length, computed, values);
        if (computed == SB_F32)
            f32(context, row, values, from->length);
        else
            f64(context, row, values, from->length);
        sb_rows_store(to, row, 0, from->length, computed, values);
    }
    sb_free(values);
    return SB_OK;
}

sb_status sb_load_all(const sb_tensor *tensor, sb_dtype dtype, void **values, sb_error *error) {
    sb_rows rows;
    sb_rows_start(&rows, tensor, (UINT32_C(1) << tensor->rank) - 1);
    *values = sb_allocate_array((size_t)rows.length, sb_dtype_size(dtype));
    if (*values == NULL)
        return sb_fail_memory(error, (size_t)rows.length * sb_dtype_size(dtype));
    sb_rows_load(&rows, 0, 0, rows.length, dtype, *values);
    return SB_OK;
}

sb_dtype sb_computing_dtype(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16 ? SB_F32 : dtype;
}
