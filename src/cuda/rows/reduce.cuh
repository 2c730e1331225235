/* Reductions of rows to one element each (rows.cuh): by teams, by blocks, and the joining of blocks
 * that several made of one row. In the text of a source that includes this, the words SHARED and
 * BARRIER say that its threads wait for each other. */
#ifndef SB_CUDA_ROWS_REDUCE_CUH
#define SB_CUDA_ROWS_REDUCE_CUH

#include "cuda/rows/rows.cuh"
#include "numerics/elementary.h"
#include "numerics/power.h"
#include "numerics/power_f64.h"

#define SB_CUDA_DEFINE_FINISH(type, suffix)                                                                            \
    SB_CUDA_FUNCTION type sb_cuda_finish_##suffix(const sb_cuda_row_reduction *p, type total, type highest) {          \
        switch (p->finish) {                                                                                           \
        case SB_CUDA_FINISH_MEAN:                                                                                      \
            return sb_div_##suffix(total, (type)SB_CUDA_ROWS_LENGTH(&p->rows));                                        \
        case SB_CUDA_FINISH_ROOT:                                                                                      \
            return sb_sqrt_##suffix(total);                                                                            \
        case SB_CUDA_FINISH_LOG:                                                                                       \
            return sb_log_##suffix(total);                                                                             \
        case SB_CUDA_FINISH_LOG_SHIFTED:                                                                               \
            return sb_log_##suffix(total) + highest;                                                                   \
        default:                                                                                                       \
            return total;                                                                                              \
        }                                                                                                              \
    }
SB_CUDA_DEFINE_FINISH(float, f32)
SB_CUDA_DEFINE_FINISH(double, f64)

/* What is subtracted before exp: the row's largest element, +0 where that is infinite or there is none. */
#define SB_CUDA_SHIFT_NONE(p, row, suffix, LOAD) 0
#define SB_CUDA_SHIFT_HIGHEST(p, row, suffix, LOAD)                                                                    \
    (SB_CUDA_ROWS_LENGTH(&(p)->rows) == 0 || sb_abs_##suffix(LOAD((p), (p)->highest, (row))) == sb_infinity_##suffix() \
         ? 0                                                                                                           \
         : LOAD((p), (p)->highest, (row)))

/* sb_cuda_reduce_{team,block,parts}_<name>_<suffix>; teams take rows of one dimension. LOAD(p, data, index) gives an
 * element in the computing type, STORE(p, data, value) writes one, MAP(value, shift, p) is what is joined. */
#define SB_CUDA_REDUCTION(name, kind, join, identity, suffix, type, real_suffix, LOAD, STORE, MAP, SHIFT)              \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_reduce_team_##name##_##suffix, sb_cuda_row_reduction, p) {                            \
        SB_CUDA_TEAMS(&p->rows) {                                                                                      \
            SB_CUDA_TEAM_ROW(&p->rows);                                                                                \
            const char *first = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);                                      \
            int64_t step = p->rows.inner_steps[SB_CUDA_ROW_IN][0];                                                     \
            type shift = SHIFT(p, row, real_suffix, LOAD), total, lanes[SB_CUDA_TEAM_LANES];                           \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SB_CUDA_TEAM_LANES; i++)                                                               \
                lanes[i] = 0;                                                                                          \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int start = 0; start < length; start += SB_CUDA_TEAM_LANES * team) {                                  \
                SB_CUDA_UNROLL                                                                                         \
                for (int i = 0; i < SB_CUDA_TEAM_LANES; i++) {                                                         \
                    int at = start + t + team * i;                                                                     \
                    if (at < length) {                                                                                 \
                        type value = LOAD(p, first + at * step, 0);                                                    \
                        value = MAP(value, shift, p);                                                                  \
                        lanes[i] = start == 0 ? SB_CUDA_FIRST_##kind(value)                                            \
                                              : SB_CUDA_NEXT_##kind##_##real_suffix(value, lanes[i]);                  \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            total = sb_cuda_fold_team_##join##_##real_suffix(lanes, t, team,                                           \
                                                             length < SB_REDUCE_LANES ? length : SB_REDUCE_LANES);     \
            total = length == 0 ? (type)(identity) : total;                                                            \
            if (t == 0 && base + threadIdx.x / (unsigned)team < used_rows)                                             \
                STORE(p, SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_OUT, row),                                            \
                      sb_cuda_finish_##real_suffix(p, total, shift));                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_REDUCTION_OF_LONG_ROWS(name, kind, join, identity, suffix, type, real_suffix, LOAD, STORE, MAP, SHIFT)

#define SB_CUDA_REDUCTION_OF_LONG_ROWS(name, kind, join, identity, suffix, type, real_suffix, LOAD, STORE, MAP, SHIFT) \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_reduce_block_##name##_##suffix, sb_cuda_row_reduction, p, 1024, 1) {          \
        SB_CUDA_SHARED type lanes[SB_CUDA_WAVES * SB_CUDA_WAVE];                                                       \
        SB_CUDA_SHARED type parts[SB_CUDA_WAVES];                                                                      \
        int64_t length = SB_CUDA_ROWS_LENGTH(&p->rows), count = SB_CUDA_ROWS_COUNT(&p->rows);                          \
        for (int64_t item = blockIdx.x; item < count * p->parts; item += gridDim.x) {                                  \
            int64_t row = p->parts == 1 ? item : item / p->parts;                                                      \
            int64_t begin = (item - row * p->parts) * SB_REDUCE_BLOCK;                                                 \
            int64_t end = p->parts == 1 || length - begin < SB_REDUCE_BLOCK ? length : begin + SB_REDUCE_BLOCK;        \
            const char *first = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);                                      \
            type shift = SHIFT(p, row, real_suffix, LOAD), total;                                                      \
            SB_CUDA_BLOCK_REDUCE(total, kind, join, type, real_suffix, begin, end,                                     \
                                 MAP(LOAD(p, first + SB_CUDA_ROW_OFFSET(&p->rows, SB_CUDA_ROW_IN, at), 0), shift, p)); \
            total = length == 0 ? (type)(identity) : total;                                                            \
            if (threadIdx.x == 0 && p->parts > 1)                                                                      \
                ((type *)(void *)p->totals)[item] = total;                                                             \
            else if (threadIdx.x == 0)                                                                                 \
                STORE(p, SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_OUT, row),                                            \
                      sb_cuda_finish_##real_suffix(p, total, shift));                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_reduce_parts_##name##_##suffix, sb_cuda_row_reduction, p, SB_CUDA_WAVE, 1) {  \
        SB_CUDA_SHARED type room[SB_CUDA_WAVE];                                                                        \
        const int64_t length = SB_CUDA_ROWS_LENGTH(&p->rows), count = SB_CUDA_ROWS_COUNT(&p->rows);                    \
        const int64_t used = length > 0 ? (length + SB_REDUCE_BLOCK - 1) / SB_REDUCE_BLOCK : 1;                        \
        for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {                                                \
            const type *totals = (const type *)(const void *)p->totals + row * p->parts;                               \
            type total;                                                                                                \
            SB_CUDA_JOIN_PARTS(total, join, type, real_suffix, totals, used, room);                                    \
            if (threadIdx.x == 0)                                                                                      \
                STORE(p, SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_OUT, row),                                            \
                      sb_cuda_finish_##real_suffix(p, total, SHIFT(p, row, real_suffix, LOAD)));                       \
        }                                                                                                              \
    }

#endif
