#include "kernel/contraction/layout.h"

/* Adds dimension `stride` × `count` to the layout, at its place in the order of steps, and its
 * extent to how far the elements reach below and above the first one, all in bytes. */
static bool add_dimension(sb_gemm_layout *layout, int64_t stride, int64_t count, int64_t *below, int64_t *above) {
    if (count == 1)
        return true;
    int64_t reach;
    if (__builtin_mul_overflow(stride, (int64_t)layout->size, &stride) ||
        __builtin_mul_overflow(stride, count - 1, &reach) ||
        __builtin_add_overflow(reach < 0 ? *below : *above, reach, reach < 0 ? below : above))
        return false;
    uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
    int place = layout->rank++;
    for (; place > 0 && layout->steps[place - 1] > step; place--) {
        layout->steps[place] = layout->steps[place - 1];
        layout->counts[place] = layout->counts[place - 1];
    }
    layout->steps[place] = step;
    layout->counts[place] = (uint64_t)count;
    return true;
}

bool sb_gemm_layout_of(const sb_matrix *matrix, int64_t row_stride, int64_t batches, sb_gemm_layout *layout) {
    return sb_gemm_layout_of_batches(matrix, row_stride, 1, &batches, &matrix->batch_stride, layout);
}

bool sb_gemm_layout_of_batches(const sb_matrix *matrix, int64_t row_stride, int rank, const int64_t *dims,
                               const int64_t *steps, sb_gemm_layout *layout) {
    *layout = (sb_gemm_layout){.size = sb_dtype_size(matrix->dtype)};
    int64_t below = 0, above = 0;
    if (!add_dimension(layout, matrix->column_stride, matrix->columns, &below, &above) ||
        !add_dimension(layout, row_stride, matrix->rows, &below, &above))
        return false;
    for (int d = 0; d < rank; d++) {
        if (!add_dimension(layout, steps[d], dims[d], &below, &above))
            return false;
    }
    uintptr_t data = (uintptr_t)matrix->data, end;
    uint64_t down = -(uint64_t)below;
    if (down > data || __builtin_add_overflow(data, (uint64_t)above + layout->size, &end))
        return false;
    layout->first = data - down;
    layout->span = end - layout->first;
    return true;
}

bool sb_gemm_layout_is_distinct(const sb_gemm_layout *layout) {
    uint64_t spanned = layout->size;
    for (int i = 0; i < layout->rank; i++) {
        if (layout->steps[i] < spanned)
            return false;
        spanned += layout->steps[i] * (layout->counts[i] - 1);
    }
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Splits dimensions at `period`: adds the larger steps to the common divisor, and returns the bytes
 * that the smaller ones span. */
static uint64_t split(const sb_gemm_layout *layout, uint64_t period, uint64_t *divisor) {
    uint64_t span = layout->size;
    for (int i = 0; i < layout->rank; i++) {
        if (layout->steps[i] >= period)
            *divisor = common_divisor(*divisor, layout->steps[i]);
        else
            span += layout->steps[i] * (layout->counts[i] - 1);
    }
    return span;
}

/* Whether the two stay apart where addresses count modulo the common divisor of all steps from
 * `period` on, so that only the smaller steps move an element. */
static bool apart_modulo(const sb_gemm_layout *one, const sb_gemm_layout *other, uint64_t period) {
    uint64_t divisor = 0;
    uint64_t one_span = split(one, period, &divisor), other_span = split(other, period, &divisor);
    uint64_t after = divisor != 0 ? (other->first % divisor + divisor - one->first % divisor) % divisor : 0;
    return after >= one_span && divisor - after >= other_span;
}

bool sb_gemm_layouts_are_apart(const sb_gemm_layout *one, const sb_gemm_layout *other) {
    if (one->first + one->span <= other->first || other->first + other->span <= one->first)
        return true;
    for (int i = 0; i < one->rank + other->rank; i++) {
        uint64_t period = i < one->rank ? one->steps[i] : other->steps[i - one->rank];
        if (period > 0 && apart_modulo(one, other, period))
            return true;
    }
    return false;
}

sb_gemm_batches sb_gemm_batches_merged(const sb_gemm_batches *batches) {
    sb_gemm_batches merged = {0};
    for (int d = 0; d < batches->rank; d++) {
        int64_t count = batches->dims[d], a = batches->a_steps[d], b = batches->b_steps[d];
        if (count == 1)
            continue;
        int outside = merged.rank - 1;
        bool goes_on = merged.rank > 0 && merged.a_steps[outside] == a * count && merged.b_steps[outside] == b * count;
        int at = goes_on ? outside : merged.rank++;
        merged.dims[at] = goes_on ? merged.dims[at] * count : count;
        merged.a_steps[at] = a;
        merged.b_steps[at] = b;
    }
    return merged;
}
