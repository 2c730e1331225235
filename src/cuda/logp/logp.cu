/* The steps of sb_linear_logp between its products: src/kernel/logp/logp_tasks.h says what each
 * does, src/numerics/logp.h how. */
#include "cuda/common/words.cuh"
#include "cuda/logp/logp.cuh"

/* Four threads reduce a block of a row; four of the next threads that of the next row, so that
 * pairs lie side by side as they are written. */
SB_CUDA_BLOCK_KERNEL(sb_logp_reduce_blocks, sb_logp_reduce, p) {
    int64_t team = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / SB_LOGP_LANES;
    int32_t lane = (int32_t)(threadIdx.x % SB_LOGP_LANES);
    int64_t block = team / p->chunk.rows, row = team - block * p->chunk.rows;
    int64_t first = block * SB_LOGP_BLOCK + 2 * lane;
    int64_t columns = p->chunk.columns - first;
    /* Threads beyond the chunk read nothing, and come to the exchanges all the same. */
    const float *logits = p->chunk.logits + row * p->chunk.row_stride + first;
    float held[SB_LOGP_HELD];
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i += 2) {
        /* Columns that are not there have not been written either. */
        int64_t left = columns - sb_logp_held_column(i);
        held[i] = held[i + 1] = 0.0f;
        if (left >= 2) {
            sb_cuda_words2 words = *(const sb_cuda_words2 *)(const void *)(logits + sb_logp_held_column(i));
            memcpy(held + i, &words, sizeof words);
        } else if (left == 1) {
            held[i] = logits[sb_logp_held_column(i)];
        }
    }
    sb_logp_pair pair = sb_logp_reduce_held(held, columns, p->chunk.scale);
    if (lane == 0 && columns > 0) {
        p->pairs[(p->chunk.first_column / SB_LOGP_BLOCK + block) * p->pair_rows + row] = pair;
        int64_t target = sb_logp_target_column(&p->chunk, row) - first;
        if (target >= 0 && target < SB_LOGP_BLOCK)
            p->chosen[row] = logits[target];
    }
}

/* A block of threads has SB_LOGP_MERGE_ROWS rows and a slice of the pairs of each for every so many
 * threads. Neither maxima nor integer sums have an order. */
SB_CUDA_BLOCK_KERNEL(sb_logp_merge_pairs, sb_logp_merge, p) {
    SB_CUDA_SHARED int64_t sums[SB_LOGP_MERGE_THREADS];
    SB_CUDA_SHARED int32_t maxima[SB_LOGP_MERGE_THREADS], nans[SB_LOGP_MERGE_THREADS];
    int32_t place = (int32_t)(threadIdx.x % SB_LOGP_MERGE_ROWS);
    int64_t slice = threadIdx.x / SB_LOGP_MERGE_ROWS;
    int64_t row = (int64_t)blockIdx.x * SB_LOGP_MERGE_ROWS + place;
    int64_t blocks = row < p->rows ? p->blocks : 0;
    const sb_logp_pair *pairs = p->pairs + row;
    int32_t maximum = -SB_LOGP_EXPONENT_LIMIT, has_nan = 0;
    int64_t units = 0;
    for (int64_t b = slice; b < blocks; b += SB_LOGP_MERGE_SLICES) {
        sb_logp_pair pair = pairs[b * p->pair_rows];
        has_nan |= pair.sum != pair.sum;
        maximum = pair.maximum > maximum ? pair.maximum : maximum;
    }
    maxima[threadIdx.x] = maximum;
    nans[threadIdx.x] = has_nan;
    SB_CUDA_BARRIER();
    for (int i = place; i < SB_LOGP_MERGE_THREADS; i += SB_LOGP_MERGE_ROWS) {
        has_nan |= nans[i];
        maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    blocks = has_nan ? 0 : blocks;
    for (int64_t b = slice; b < blocks; b += SB_LOGP_MERGE_SLICES)
        units += sb_logp_units(pairs[b * p->pair_rows], maximum);
    sums[threadIdx.x] = units;
    SB_CUDA_BARRIER();
    if (slice > 0 || row >= p->rows)
        return;
    for (int i = place + SB_LOGP_MERGE_ROWS; i < SB_LOGP_MERGE_THREADS; i += SB_LOGP_MERGE_ROWS)
        units += sums[i];
    sb_logp_pair whole = sb_logp_row(maximum, units, has_nan);
    sb_logp_target kind = sb_logp_target_kind(p->targets[row], p->ignore_index, p->vocabulary);
    float chosen = kind == SB_LOGP_TARGET_VALID ? p->chosen[row] : 0.0f;
    p->logp[row] = sb_logp_value(kind, chosen, p->scale, whole, units);
    if (p->maximum != 0) {
        p->maximum[row] = whole.maximum;
        p->sum[row] = whole.sum;
    }
}

/* Threads take SB_LOGP_GROUP columns of a row at once: rows of chunks begin at multiples of 16 bytes. */
SB_CUDA_KERNEL(sb_logp_differentiate_chunk, sb_logp_differentiate, p) {
    int64_t groups = (p->chunk.columns + SB_LOGP_GROUP - 1) / SB_LOGP_GROUP;
    SB_CUDA_EACH(index, groups * p->chunk.rows) {
        int64_t row = index / groups, first = (index - row * groups) * SB_LOGP_GROUP;
        int64_t place = row * p->chunk.row_stride + first, rest = p->chunk.columns - first;
        int64_t target = sb_logp_target_column(&p->chunk, row) - first;
        sb_logp_target kind = sb_logp_target_kind(p->chunk.targets[row], p->chunk.ignore_index, p->chunk.vocabulary);
        sb_logp_weight weight =
            sb_logp_weight_of(kind, p->d_logp[row], p->inverse_temperature, p->maximum[row], p->sum[row]);
        float logits[SB_LOGP_GROUP];
        uint16_t gradients[SB_LOGP_GROUP];
        if (rest >= SB_LOGP_GROUP) {
            sb_cuda_load_four((const char *)(p->chunk.logits + place), 4, logits);
            sb_cuda_load_four((const char *)(p->chunk.logits + place + 4), 4, logits + 4);
        } else {
            SB_CUDA_UNROLL
            for (int i = 0; i < SB_LOGP_GROUP; i++)
                logits[i] = i < rest ? p->chunk.logits[place + i] : 0.0f;
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_LOGP_GROUP; i++)
            gradients[i] = sb_logp_to_16(sb_logp_gradient(logits[i], p->chunk.scale, weight, i == target), p->is_bf16);
        if (rest >= SB_LOGP_GROUP) {
            sb_cuda_words4 words;
            memcpy(&words, gradients, sizeof words);
            *(sb_cuda_words4 *)(void *)(p->gradients + place) = words;
        } else {
            SB_CUDA_UNROLL
            for (int i = 0; i < SB_LOGP_GROUP; i++) {
                if (i < rest)
                    p->gradients[place + i] = gradients[i];
            }
        }
    }
}

SB_CUDA_KERNEL(sb_logp_round_matrix, sb_logp_round, p) {
    SB_CUDA_EACH(index, p->rows * p->columns) {
        int64_t row = index / p->columns, column = index - row * p->columns;
        p->to[row * p->row_stride + column * p->column_stride] = sb_logp_to_16(p->from[index], p->is_bf16);
    }
}
