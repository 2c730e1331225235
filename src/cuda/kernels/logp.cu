/* The steps of iv_linear_logp between its products: src/gemm/logp_tasks.h says what each does,
 * src/gemm/logp.h how. */
#include "cuda/kernels/logp.cuh"
#include "cuda/kernels/words.cuh"

/* Four threads reduce a block of a row; four of the next threads that of the next row, so that
 * pairs lie side by side as they are written. */
IV_CUDA_KERNEL(iv_logp_reduce_blocks, iv_logp_reduce, p) {
    int64_t team = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / IV_LOGP_LANES;
    int32_t lane = (int32_t)(threadIdx.x % IV_LOGP_LANES);
    int64_t block = team / p->chunk.rows, row = team - block * p->chunk.rows;
    int64_t first = block * IV_LOGP_BLOCK + 2 * lane;
    int64_t columns = p->chunk.columns - first;
    /* Threads beyond the chunk read nothing, and come to the exchanges all the same. */
    const float *logits = p->chunk.logits + row * p->chunk.row_stride + first;
    float held[IV_LOGP_HELD];
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_LOGP_HELD; i += 2) {
        /* Columns that are not there have not been written either. */
        int64_t left = columns - iv_logp_held_column(i);
        held[i] = held[i + 1] = 0.0f;
        if (left >= 2) {
            iv_cuda_words2 words =
                *(const iv_cuda_words2 *)(const void *)(logits + iv_logp_held_column(i));
            memcpy(held + i, &words, sizeof words);
        } else if (left == 1) {
            held[i] = logits[iv_logp_held_column(i)];
        }
    }
    iv_logp_pair pair = iv_logp_reduce_held(held, columns, p->chunk.scale);
    if (lane == 0 && columns > 0) {
        p->pairs[(p->chunk.first_column / IV_LOGP_BLOCK + block) * p->pair_rows + row] = pair;
        int64_t target = iv_logp_target_column(&p->chunk, row) - first;
        if (target >= 0 && target < IV_LOGP_BLOCK)
            p->chosen[row] = logits[target];
    }
}

/* A block of threads has IV_LOGP_MERGE_ROWS rows and a slice of the pairs of each for every so many
 * threads. Neither maxima nor integer sums have an order. */
IV_CUDA_KERNEL(iv_logp_merge_pairs, iv_logp_merge, p) {
    IV_CUDA_SHARED int64_t sums[IV_LOGP_MERGE_THREADS];
    IV_CUDA_SHARED int32_t maxima[IV_LOGP_MERGE_THREADS], nans[IV_LOGP_MERGE_THREADS];
    int32_t place = (int32_t)(threadIdx.x % IV_LOGP_MERGE_ROWS);
    int64_t slice = threadIdx.x / IV_LOGP_MERGE_ROWS;
    int64_t row = (int64_t)blockIdx.x * IV_LOGP_MERGE_ROWS + place;
    int64_t blocks = row < p->rows ? p->blocks : 0;
    const iv_logp_pair *pairs = p->pairs + row;
    int32_t maximum = -IV_LOGP_EXPONENT_LIMIT, has_nan = 0;
    int64_t units = 0;
    for (int64_t b = slice; b < blocks; b += IV_LOGP_MERGE_SLICES) {
        iv_logp_pair pair = pairs[b * p->pair_rows];
        has_nan |= pair.sum != pair.sum;
        maximum = pair.maximum > maximum ? pair.maximum : maximum;
    }
    maxima[threadIdx.x] = maximum;
    nans[threadIdx.x] = has_nan;
    IV_CUDA_BARRIER();
    for (int i = place; i < IV_LOGP_MERGE_THREADS; i += IV_LOGP_MERGE_ROWS) {
        has_nan |= nans[i];
        maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    blocks = has_nan ? 0 : blocks;
    for (int64_t b = slice; b < blocks; b += IV_LOGP_MERGE_SLICES)
        units += iv_logp_units(pairs[b * p->pair_rows], maximum);
    sums[threadIdx.x] = units;
    IV_CUDA_BARRIER();
    if (slice > 0 || row >= p->rows)
        return;
    for (int i = place + IV_LOGP_MERGE_ROWS; i < IV_LOGP_MERGE_THREADS; i += IV_LOGP_MERGE_ROWS)
        units += sums[i];
    iv_logp_pair whole = iv_logp_row(maximum, units, has_nan);
    iv_logp_target kind = iv_logp_target_kind(p->targets[row], p->ignore_index, p->vocabulary);
    float chosen = kind == IV_LOGP_TARGET_VALID ? p->chosen[row] : 0.0f;
    p->logp[row] = iv_logp_value(kind, chosen, p->scale, whole, units);
    if (p->maximum != 0) {
        p->maximum[row] = whole.maximum;
        p->sum[row] = whole.sum;
    }
}

/* Threads take IV_LOGP_GROUP columns of a row at once: rows of chunks begin at multiples of 16
 * bytes. */
IV_CUDA_KERNEL(iv_logp_differentiate_chunk, iv_logp_differentiate, p) {
    int64_t groups = (p->chunk.columns + IV_LOGP_GROUP - 1) / IV_LOGP_GROUP;
    IV_CUDA_EACH(index, groups * p->chunk.rows) {
        int64_t row = index / groups, first = (index - row * groups) * IV_LOGP_GROUP;
        int64_t place = row * p->chunk.row_stride + first, rest = p->chunk.columns - first;
        int64_t target = iv_logp_target_column(&p->chunk, row) - first;
        iv_logp_target kind =
            iv_logp_target_kind(p->chunk.targets[row], p->chunk.ignore_index, p->chunk.vocabulary);
        iv_logp_weight weight = iv_logp_weight_of(kind, p->d_logp[row], p->inverse_temperature,
                                                  p->maximum[row], p->sum[row]);
        float logits[IV_LOGP_GROUP];
        uint16_t gradients[IV_LOGP_GROUP];
        if (rest >= IV_LOGP_GROUP) {
            iv_cuda_load_four((const char *)(p->chunk.logits + place), 4, logits);
            iv_cuda_load_four((const char *)(p->chunk.logits + place + 4), 4, logits + 4);
        } else {
            IV_CUDA_UNROLL
            for (int i = 0; i < IV_LOGP_GROUP; i++)
                logits[i] = i < rest ? p->chunk.logits[place + i] : 0.0f;
        }
        IV_CUDA_UNROLL
        for (int i = 0; i < IV_LOGP_GROUP; i++)
            gradients[i] = iv_logp_to_16(
                iv_logp_gradient(logits[i], p->chunk.scale, weight, i == target), p->is_bf16);
        if (rest >= IV_LOGP_GROUP) {
            iv_cuda_words4 words;
            memcpy(&words, gradients, sizeof words);
            *(iv_cuda_words4 *)(void *)(p->gradients + place) = words;
        } else {
            IV_CUDA_UNROLL
            for (int i = 0; i < IV_LOGP_GROUP; i++) {
                if (i < rest)
                    p->gradients[place + i] = gradients[i];
            }
        }
    }
}

IV_CUDA_KERNEL(iv_logp_round_matrix, iv_logp_round, p) {
    IV_CUDA_EACH(index, p->rows * p->columns) {
        int64_t row = index / p->columns, column = index - row * p->columns;
        p->to[row * p->row_stride + column * p->column_stride] =
            iv_logp_to_16(p->from[index], p->is_bf16);
    }
}
