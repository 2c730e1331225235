/* Spectra and windows, in f64. Transforms are evaluated as they are defined, one thread for each
 * number of the spectrum. */
#include "cuda/common/index.cuh"
#include "cuda/signal/signal_parameters.h"
#include "ops/number.h"
#include "ops/signal_values.h"

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

SB_CUDA_KERNEL(sb_cuda_transform_lines, sb_cuda_dft, p) {
    SB_CUDA_EACH(index, p->numbers) {
        int64_t rest = index, offset = 0, k = 0, turn = 0;
        double re = 0.0, im = 0.0;
        for (int d = p->rank - 1; d >= 0; d--) {
            int64_t at = sb_cuda_take(&rest, p->dims[d]);
            if (d == p->axis)
                k = at;
            else
                offset += at * p->strides[d];
        }
        for (int64_t m = 0; m < p->length; m++) {
            /* Half a spectrum is completed by its mirror image. */
            int reflected = p->mirror && m > p->length / 2;
            int64_t from = reflected ? p->length - m : m;
            int64_t at = offset + from * p->strides[p->axis];
            double real = 0.0, imaginary = 0.0;
            if (from < p->extent) {
                real = sb_number_load(p->dtype, p->in, at);
                if (p->is_complex)
                    imaginary = sb_number_load(p->dtype, p->in, at + p->part_stride);
            }
            imaginary = reflected ? -imaginary : imaginary;
            double s = p->sines[turn];
            sb_signal_accumulate(real, imaginary, p->cosines[turn], p->inverse ? -s : s, &re, &im);
            turn += k;
            turn = turn >= p->length ? turn - p->length : turn;
        }
        if (p->inverse) {
            re = re / (double)p->length;
            im = im / (double)p->length;
        }
        sb_number_store(p->dtype, p->out, p->mirror ? index : 2 * index, re);
        if (!p->mirror)
            sb_number_store(p->dtype, p->out, 2 * index + 1, im);
    }
}

SB_CUDA_KERNEL(sb_cuda_transform_frames, sb_cuda_stft, p) {
    SB_CUDA_EACH(index, p->numbers) {
        int64_t batch = index, k = sb_cuda_take(&batch, p->bins), turn = 0;
        int64_t start = sb_cuda_take(&batch, p->frames) * p->step;
        double re = 0.0, im = 0.0;
        for (int64_t m = 0; m < p->length; m++) {
            int64_t at = batch * p->batch_stride + (start + m) * p->sample_stride;
            double weight = 1.0;
            if (p->window)
                weight = m < p->window_length ? sb_number_load(p->dtype, p->window, m * p->window_stride) : 0.0;
            double real = sb_number_load(p->dtype, p->in, at) * weight, imaginary = 0.0;
            if (p->is_complex)
                imaginary = sb_number_load(p->dtype, p->in, at + p->part_stride) * weight;
            sb_signal_accumulate(real, imaginary, p->cosines[turn], p->sines[turn], &re, &im);
            turn += k;
            turn = turn >= p->length ? turn - p->length : turn;
        }
        sb_number_store(p->dtype, p->out, 2 * index, re);
        sb_number_store(p->dtype, p->out, 2 * index + 1, im);
    }
}
