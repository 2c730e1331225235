/* Normalisations of long rows, which many blocks share: a block takes a part of 4096 elements, since numerics/reduce.h adds
 * parts up one by one. What they come to lies in memory, and each block joins its row's by itself. Three kernels, each of
 * which reads the row again: the parts' sums, where there is a mean; the sums of what is left without it, squared or not;
 * and the results. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/normalize.cuh"

/* Elements of a part that a thread has: one lane. */
#define HELD (SB_REDUCE_BLOCK / SB_CUDA_WAVE)

/* The part that a block has, and how many of its elements are used. */
#define EACH_PART                                                                                                      \
    const sb_cuda_normalization *norms = &p->base;                                                                     \
    const sb_cuda_rows *rows = &norms->rows;                                                                           \
    const int64_t length = SB_CUDA_ROWS_LENGTH(rows), items = SB_CUDA_ROWS_COUNT(rows) * p->parts;                     \
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x)
#define PART                                                                                                           \
    const int64_t row = item / p->parts, begin = (item - row * p->parts) * SB_REDUCE_BLOCK, left = length - begin;     \
    const int size = left <= 0 ? 0 : left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK;                             \
    if (size == 0 && begin != 0)                                                                                       \
    continue

/* Does `body` with each `x` of the thread, the element of the row's number `at`. Rows of one dimension, which nearly all are,
 * are asked for at once. */
#define EACH_VALUE(type, real, load, body)                                                                             \
    do {                                                                                                               \
        const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                                 \
        if (rows->inner_rank == 1) {                                                                                   \
            const int64_t step = rows->inner_steps[SB_CUDA_ROW_IN][0];                                                 \
            const char *from = in + (begin + (int)threadIdx.x) * step;                                                 \
            real values[HELD];                                                                                         \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < HELD; i++, from += SB_CUDA_WAVE * step)                                                \
                values[i] =                                                                                            \
                    (int)threadIdx.x + i * SB_CUDA_WAVE < size ? load(SB_CUDA_CONST_ELEMENT(type, from, 0)) : (real)0; \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < HELD; i++) {                                                                           \
                const int64_t at = begin + (int)threadIdx.x + i * SB_CUDA_WAVE;                                        \
                const real x = values[i];                                                                              \
                if (at < begin + size)                                                                                 \
                    body;                                                                                              \
            }                                                                                                          \
        } else {                                                                                                       \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int64_t at = begin + (int)threadIdx.x; at < begin + size; at += SB_CUDA_WAVE) {                       \
                const real x = VALUE_AT(type, load, at);                                                               \
                body;                                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Lanes begin as -0, to which anything adds up to itself, so lanes without an element need no care. */
#define KEEP_TOTAL(real, real_suffix, kept)                                                                            \
    do {                                                                                                               \
        const real total = sb_cuda_fold_wave_SUM_##real_suffix(lane, (int)threadIdx.x, SB_REDUCE_LANES, room);         \
        if (threadIdx.x == 0)                                                                                          \
            ((real *)(void *)(kept))[item] = total;                                                                    \
        SB_CUDA_BARRIER(); /* `room` has been read */                                                                  \
    } while (0)

/* What the row's parts have come to together. */
#define JOIN(result, real, real_suffix, kept)                                                                          \
    SB_CUDA_JOIN_PARTS(result, SUM, real, real_suffix, (const real *)(const void *)(kept) + row * p->parts,            \
                       (length + SB_REDUCE_BLOCK - 1) / SB_REDUCE_BLOCK, room)
#define FIND_MEAN(real, real_suffix)                                                                                   \
    real mean = 0;                                                                                                     \
    if (HAS_MEAN(norms)) {                                                                                             \
        JOIN(mean, real, real_suffix, p->sums);                                                                        \
        mean = sb_div_##real_suffix(mean, (real)length);                                                               \
    }

#define JOINED(real, suffix)                                                                                           \
    SB_CUDA_FUNCTION real joined_##suffix(real lane, real value, bool squares) {                                       \
        return squares ? sb_fma_##suffix(value, value, lane) : lane + sb_abs_##suffix(value);                          \
    }
JOINED(float, f32)
JOINED(double, f64)

/* Elements that a thread asks for, with their factors, before it waits for one. */
#define AHEAD 8

/* The results of a part. Factors of other types than the input's are taken one by one. */
#define SPREAD(code, suffix, type, real, real_suffix, load, store)                                                     \
    SB_CUDA_FUNCTION void spread_##suffix(const sb_cuda_normalization *p, int64_t row, int64_t begin, int size,        \
                                          real mean, real norm) {                                                      \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        const bool moved = HAS_MEAN(p);                                                                                \
        ROW_POINTERS;                                                                                                  \
        if (p->out_dtype != (code) || (scale != NULL && p->scale_dtype != (code)) ||                                   \
            (bias != NULL && p->bias_dtype != (code))) {                                                               \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int64_t at = begin + (int)threadIdx.x; at < begin + size; at += SB_CUDA_WAVE) {                       \
                real value = VALUE_AT(type, load, at);                                                                 \
                STORE_ELEMENT(code, type, real, real_suffix, load, store, moved ? value - mean : value);               \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int start = (int)threadIdx.x; start < size; start += AHEAD * SB_CUDA_WAVE) {                              \
            real x[AHEAD], scales[AHEAD], biases[AHEAD];                                                               \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < AHEAD; i++) {                                                                          \
                const int each = start + i * SB_CUDA_WAVE;                                                             \
                const int64_t at = begin + (each < size ? each : start);                                               \
                x[i] = VALUE_AT(type, load, at);                                                                       \
                scales[i] = scale != NULL ? load(FACTOR_AT(type, scale, SB_CUDA_ROW_SCALE, at)) : (real)0;             \
                biases[i] = bias != NULL ? load(FACTOR_AT(type, bias, SB_CUDA_ROW_BIAS, at)) : (real)0;                \
            }                                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < AHEAD; i++) {                                                                          \
                const int64_t at = begin + start + i * SB_CUDA_WAVE;                                                   \
                real result = normalised_##real_suffix(p, moved ? x[i] - mean : x[i], norm);                           \
                result = scale != NULL ? result * scales[i] : result;                                                  \
                result = bias != NULL ? result + biases[i] : result;                                                   \
                if (at < begin + size)                                                                                 \
                    SB_CUDA_ELEMENT(type, out, SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_OUT, at)) = store(result);         \
            }                                                                                                          \
        }                                                                                                              \
    }
#define FACTOR_AT(type, factor, operand, at) SB_CUDA_CONST_ELEMENT(type, factor, SB_CUDA_ROW_OFFSET(rows, operand, at))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SPREAD(SB_##dtype, suffix, type, real, real_suffix, load, store)                                                   \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_sums_##suffix, sb_cuda_long_normalization, p, SB_CUDA_WAVE, 2) {    \
        SB_CUDA_SHARED real room[SB_CUDA_WAVE];                                                                        \
        EACH_PART {                                                                                                    \
            PART;                                                                                                      \
            real lane = -(real)0;                                                                                      \
            EACH_VALUE(type, real, load, lane = lane + x);                                                             \
            KEEP_TOTAL(real, real_suffix, p->sums);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_rest_##suffix, sb_cuda_long_normalization, p, SB_CUDA_WAVE, 2) {    \
        SB_CUDA_SHARED real room[SB_CUDA_WAVE];                                                                        \
        EACH_PART {                                                                                                    \
            PART;                                                                                                      \
            FIND_MEAN(real, real_suffix);                                                                              \
            SB_CUDA_BARRIER(); /* `room` has been read */                                                              \
            const bool squares = norms->kind != SB_CUDA_NORM_L1, moved = HAS_MEAN(norms);                              \
            real lane = -(real)0;                                                                                      \
            EACH_VALUE(type, real, load, lane = joined_##real_suffix(lane, moved ? x - mean : x, squares));            \
            KEEP_TOTAL(real, real_suffix, p->totals);                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_spread_##suffix, sb_cuda_long_normalization, p, SB_CUDA_WAVE, 2) {  \
        SB_CUDA_SHARED real room[SB_CUDA_WAVE];                                                                        \
        EACH_PART {                                                                                                    \
            PART;                                                                                                      \
            real total;                                                                                                \
            FIND_MEAN(real, real_suffix);                                                                              \
            JOIN(total, real, real_suffix, p->totals);                                                                 \
            SB_CUDA_BARRIER(); /* `room` has been read */                                                              \
            const real norm = norm_##real_suffix(norms, total);                                                        \
            if (threadIdx.x == 0 && begin == 0)                                                                        \
                note_##real_suffix(norms, row, mean, norm);                                                            \
            if (rows->data[SB_CUDA_ROW_OUT] != NULL)                                                                   \
                spread_##suffix(norms, row, begin, size, mean, norm);                                                  \
        }                                                                                                              \
    }

SB_FLOAT_TYPES(KERNELS, )
