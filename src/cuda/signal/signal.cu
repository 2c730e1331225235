/* Spectra and windows, in f64. Transforms are evaluated as they are defined, one thread for each
 * number of the spectrum, whose terms it asks for some ahead. */
#include "cuda/common/index.cuh"
#include "cuda/signal/signal_parameters.h"
#include "ops/number.h"
#include "ops/signal_values.h"
#include "ops/type_lists.h"

SB_CUDA_KERNEL(sb_cuda_signal_window, sb_cuda_window_fill, p) {
    SB_CUDA_EACH(index, p->size)
    sb_number_store(p->dtype, p->out, index, sb_signal_window(index, p->period, p->a, p->b, p->c));
}

SB_CUDA_KERNEL(sb_cuda_mel_weights, sb_cuda_mel, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t row = index, bin = sb_cuda_take(&row, p->bins), edges[3];
        for (int i = 0; i < 3; i++)
            edges[i] = sb_signal_mel_edge(p->low, p->high, bin + i, p->bins, p->length, p->rate);
        sb_number_store(p->dtype, p->out, index, sb_signal_mel_weight(row, edges[0], edges[1], edges[2]));
    }
}

SB_CUDA_KERNEL(sb_cuda_signal_roots, sb_cuda_roots, p) {
    SB_CUDA_EACH(index, p->length)
    sb_signal_root(index, p->length, &p->cosines[index], &p->sines[index]);
}

/* Numbers, and roots of unity, that a thread asks for before it waits for one. */
#define AHEAD 8

typedef struct numbers {
    double real[AHEAD], imaginary[AHEAD], cosines[AHEAD], sines[AHEAD];
} numbers;

/* The root of place `i`; the next one is `k` further round. */
SB_CUDA_FUNCTION void take_root(numbers *ahead, int i, const double *cosines, const double *sines, int64_t k,
                                int64_t length, int64_t *turn) {
    ahead->cosines[i] = cosines[*turn];
    ahead->sines[i] = sines[*turn];
    *turn += k;
    *turn = *turn >= length ? *turn - length : *turn;
}

/* Adds the first `count` numbers. */
SB_CUDA_FUNCTION void accumulate(const numbers *ahead, int64_t count, int inverse, double *re, double *im) {
    SB_CUDA_UNROLL
    for (int i = 0; i < AHEAD; i++) {
        const double s = ahead->sines[i];
        if (i < count)
            sb_signal_accumulate(ahead->real[i], ahead->imaginary[i], ahead->cosines[i], inverse ? -s : s, re, im);
    }
}

/* Where a line begins in the input, and which number of its spectrum is wanted. */
SB_CUDA_FUNCTION int64_t find_line(const sb_cuda_dft *p, int64_t index, int64_t *k) {
    int64_t offset = 0;
    *k = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        const int64_t at = sb_cuda_take(&index, p->dims[d]);
        if (d == p->axis)
            *k = at;
        else
            offset += at * p->strides[d];
    }
    return offset;
}

/* The dtype is known when compiling. */
SB_CUDA_FUNCTION void transform_line(const sb_cuda_dft *p, int64_t index, sb_dtype dtype) {
    int64_t k, turn = 0;
    const int64_t offset = find_line(p, index, &k);
    double re = 0.0, im = 0.0;
    SB_CUDA_KEEP_LOOP
    for (int64_t start = 0; start < p->length; start += AHEAD) {
        numbers ahead;
        SB_CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            /* Half a spectrum is completed by its mirror image. */
            const int64_t m = start + i;
            const int reflected = p->mirror && m > p->length / 2;
            const int64_t from = reflected ? p->length - m : m, at = offset + from * p->strides[p->axis];
            const int there = from >= 0 && from < p->extent;
            const double imaginary = there && p->is_complex ? sb_number_load(dtype, p->in, at + p->part_stride) : 0.0;
            ahead.real[i] = there ? sb_number_load(dtype, p->in, at) : 0.0;
            ahead.imaginary[i] = reflected ? -imaginary : imaginary;
            take_root(&ahead, i, p->cosines, p->sines, k, p->length, &turn);
        }
        accumulate(&ahead, p->length - start, p->inverse, &re, &im);
    }
    if (p->inverse) {
        re = re / (double)p->length;
        im = im / (double)p->length;
    }
    sb_number_store(dtype, p->out, p->mirror ? index : 2 * index, re);
    if (!p->mirror)
        sb_number_store(dtype, p->out, 2 * index + 1, im);
}

SB_CUDA_FUNCTION void transform_frame(const sb_cuda_stft *p, int64_t index, sb_dtype dtype) {
    int64_t batch = index, k = sb_cuda_take(&batch, p->bins), turn = 0;
    const int64_t first = sb_cuda_take(&batch, p->frames) * p->step;
    double re = 0.0, im = 0.0;
    SB_CUDA_KEEP_LOOP
    for (int64_t start = 0; start < p->length; start += AHEAD) {
        numbers ahead;
        SB_CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            const int64_t m = start + i, at = batch * p->batch_stride + (first + m) * p->sample_stride;
            const int there = m < p->length, weighed = p->window != NULL;
            double weight = weighed ? 0.0 : 1.0;
            if (there && weighed && m < p->window_length)
                weight = sb_number_load(dtype, p->window, m * p->window_stride);
            ahead.real[i] = there ? sb_number_load(dtype, p->in, at) * weight : 0.0;
            ahead.imaginary[i] =
                there && p->is_complex ? sb_number_load(dtype, p->in, at + p->part_stride) * weight : 0.0;
            take_root(&ahead, i, p->cosines, p->sines, k, p->length, &turn);
        }
        accumulate(&ahead, p->length - start, 0, &re, &im);
    }
    sb_number_store(dtype, p->out, 2 * index, re);
    sb_number_store(dtype, p->out, 2 * index + 1, im);
}

#define KERNELS(dtype, suffix, ...)                                                                                    \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_transform_lines_##suffix, sb_cuda_dft, p, SB_CUDA_TRANSFORM_THREADS, 4) {           \
        SB_CUDA_EACH(index, p->numbers)                                                                                \
        transform_line(p, index, SB_##dtype);                                                                          \
    }                                                                                                                  \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_transform_frames_##suffix, sb_cuda_stft, p, SB_CUDA_TRANSFORM_THREADS, 4) {         \
        SB_CUDA_EACH(index, p->numbers)                                                                                \
        transform_frame(p, index, SB_##dtype);                                                                         \
    }
SB_FLOAT_TYPES(KERNELS, )
