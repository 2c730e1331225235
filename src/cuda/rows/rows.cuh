/* Rows and their sums in the order of numerics/reduce.h, for teams of up to 32 threads that take a
 * short row each, and for blocks that take a long one.
 *
 * Lane j of 256 has the values j, j + 256, … of a row's block of 4096. Thread t of a team of n has
 * the lanes t, t + n, …, t + 7n in registers: 32 threads have all, and fewer are enough for a row of
 * up to 8n elements, whose lanes have an element each. Folding by halves is then first among a
 * thread's own lanes and then among threads. In long rows each thread of a wave of 256 has one lane,
 * and puts it into shared memory for every warp to fold: that costs one barrier instead of eight. */
#ifndef SB_CUDA_ROWS_ROWS_CUH
#define SB_CUDA_ROWS_ROWS_CUH

#include "cuda/common/shuffle.cuh"
#include "cuda/rows/rows_parameters.h"
#include "numerics/minmax.h"
#include "numerics/reduce.h"

/* Where number `index` of the dimensions lies, in bytes; at least one dimension. */
SB_CUDA_FUNCTION int64_t sb_cuda_row_place(int64_t index, int rank, const int64_t *dims, const int64_t *steps) {
    int64_t offset = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = rank - 1; d > 0; d--) {
        int64_t quotient = index <= UINT32_MAX ? (uint32_t)index / (uint32_t)dims[d] : index / dims[d];
        offset += (index - quotient * dims[d]) * steps[d];
        index = quotient;
    }
    return offset + index * steps[0];
}

/* How many rows, and elements of a row, are used. */
SB_CUDA_FUNCTION int64_t sb_cuda_rows_part(const int64_t *used, int64_t step, int64_t whole) {
    if (used == NULL)
        return whole;
    const int64_t part = *used * step;
    return part < 0 ? 0 : part < whole ? part : whole;
}
#define SB_CUDA_ROWS_COUNT(rows) sb_cuda_rows_part((rows)->used_count, (rows)->count_step, (rows)->count)
#define SB_CUDA_ROWS_LENGTH(rows) sb_cuda_rows_part((rows)->used_length, (rows)->length_step, (rows)->length)

/* The first element of a row, and how far from it element `at` lies. */
#define SB_CUDA_ROW_FIRST(rows, operand, row)                                                                          \
    ((rows)->data[operand] +                                                                                           \
     sb_cuda_row_place((row), (rows)->outer_rank, (rows)->outer_dims, (rows)->outer_steps[operand]))
#define SB_CUDA_ROW_OFFSET(rows, operand, at)                                                                          \
    sb_cuda_row_place((at), (rows)->inner_rank, (rows)->inner_dims, (rows)->inner_steps[operand])

#define SB_CUDA_JOIN_SUM_f32(a, b) ((a) + (b))
#define SB_CUDA_JOIN_SUM_f64(a, b) ((a) + (b))
#define SB_CUDA_JOIN_PROD_f32(a, b) ((a) * (b))
#define SB_CUDA_JOIN_PROD_f64(a, b) ((a) * (b))
#define SB_CUDA_JOIN_MAX_f32(a, b) sb_max_f32((a), (b))
#define SB_CUDA_JOIN_MAX_f64(a, b) sb_max_f64((a), (b))
#define SB_CUDA_JOIN_MIN_f32(a, b) sb_min_f32((a), (b))
#define SB_CUDA_JOIN_MIN_f64(a, b) sb_min_f64((a), (b))

/* sb_cuda_fold_team_<join>_<suffix>: folds the lanes of a team of `team` threads, thread `t` of which
 * has lanes[i] = lane t + i team. `present` lanes have a value. Gives the total to every thread.
 *
 * sb_cuda_fold_wave_<join>_<suffix>: the same for a wave, each thread of which has lane `t`. `shared`
 * has room for the lanes of all waves of the block; they may be written again after a barrier. */
#define SB_CUDA_DEFINE_FOLDS(join, type, suffix)                                                                       \
    SB_CUDA_FUNCTION type sb_cuda_fold_team_##join##_##suffix(type *lanes, int t, int team, int present) {             \
        SB_CUDA_UNROLL                                                                                                 \
        for (int held = SB_CUDA_TEAM_LANES / 2; held > 0; held /= 2) {                                                 \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < held; i++) {                                                                           \
                if (t + team * (i + held) < present)                                                                   \
                    lanes[i] = SB_CUDA_JOIN_##join##_##suffix(lanes[i], lanes[i + held]);                              \
            }                                                                                                          \
        }                                                                                                              \
        type total = lanes[0];                                                                                         \
        for (int half = team / 2; half > 0; half /= 2) {                                                               \
            type other = sb_cuda_shuffle_down_##suffix(total, half, team);                                             \
            if (t < half && t + half < present)                                                                        \
                total = SB_CUDA_JOIN_##join##_##suffix(total, other);                                                  \
        }                                                                                                              \
        return sb_cuda_shuffle_first_##suffix(total, team);                                                            \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_fold_wave_##join##_##suffix(type lane, int t, int present, type *shared) {           \
        type lanes[SB_CUDA_TEAM_LANES];                                                                                \
        type *wave = shared + threadIdx.x / SB_CUDA_WAVE * SB_CUDA_WAVE;                                               \
        int in_warp = t % 32;                                                                                          \
        wave[t] = lane;                                                                                                \
        SB_CUDA_BARRIER();                                                                                             \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_CUDA_TEAM_LANES; i++)                                                                   \
            lanes[i] = wave[in_warp + 32 * i];                                                                         \
        return sb_cuda_fold_team_##join##_##suffix(lanes, in_warp, 32, present);                                       \
    }
SB_CUDA_DEFINE_FOLDS(SUM, float, f32)
SB_CUDA_DEFINE_FOLDS(SUM, double, f64)
SB_CUDA_DEFINE_FOLDS(PROD, float, f32)
SB_CUDA_DEFINE_FOLDS(PROD, double, f64)
SB_CUDA_DEFINE_FOLDS(MAX, float, f32)
SB_CUDA_DEFINE_FOLDS(MAX, double, f64)
SB_CUDA_DEFINE_FOLDS(MIN, float, f32)
SB_CUDA_DEFINE_FOLDS(MIN, double, f64)

/* How elements start and join a lane. */
#define SB_CUDA_FIRST_SUM(value) (value)
#define SB_CUDA_FIRST_SQUARES(value) SB_REDUCE_FIRST_SQUARES(value)
#define SB_CUDA_FIRST_PROD(value) (value)
#define SB_CUDA_FIRST_MAX(value) (value)
#define SB_CUDA_FIRST_MIN(value) (value)
#define SB_CUDA_NEXT_SUM_f32(value, lane) ((lane) + (value))
#define SB_CUDA_NEXT_SUM_f64(value, lane) ((lane) + (value))
#define SB_CUDA_NEXT_SQUARES_f32(value, lane) SB_REDUCE_NEXT_SQUARES_f32(value, lane)
#define SB_CUDA_NEXT_SQUARES_f64(value, lane) SB_REDUCE_NEXT_SQUARES_f64(value, lane)
#define SB_CUDA_NEXT_PROD_f32(value, lane) ((lane) * (value))
#define SB_CUDA_NEXT_PROD_f64(value, lane) ((lane) * (value))
#define SB_CUDA_NEXT_MAX_f32(value, lane) sb_max_f32((lane), (value))
#define SB_CUDA_NEXT_MAX_f64(value, lane) sb_max_f64((lane), (value))
#define SB_CUDA_NEXT_MIN_f32(value, lane) sb_min_f32((lane), (value))
#define SB_CUDA_NEXT_MIN_f64(value, lane) sb_min_f64((lane), (value))

/* For the threads of a team: element number `at` of the row as the thread's number `i`, in ascending
 * order. `i` is known when compiling, so that arrays that it counts stay in registers. */
#define SB_CUDA_TEAM_EACH(i, at)                                                                                       \
    SB_CUDA_UNROLL                                                                                                     \
    for (int group = 0; group < SB_CUDA_TEAM_VALUES / SB_CUDA_TEAM_LANES; group++)                                     \
        if (group * SB_CUDA_TEAM_LANES * team < length)                                                                \
            SB_CUDA_UNROLL                                                                                             \
    for (int i = group * SB_CUDA_TEAM_LANES, at = t + team * i; i < (group + 1) * SB_CUDA_TEAM_LANES; i++, at += team) \
        if (at < length)

/* `result` = the sum (or what `kind` and `join` say) of `value`, an expression of i and at, over the
 * row that the team has. Not for empty rows. */
#define SB_CUDA_TEAM_REDUCE(result, kind, join, type, suffix, value)                                                   \
    do {                                                                                                               \
        type lanes_[SB_CUDA_TEAM_LANES];                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int lane = 0; lane < SB_CUDA_TEAM_LANES; lane++)                                                          \
            lanes_[lane] = 0;                                                                                          \
        SB_CUDA_TEAM_EACH(i, at) {                                                                                     \
            type value_ = (value);                                                                                     \
            lanes_[i % SB_CUDA_TEAM_LANES] =                                                                           \
                i < SB_CUDA_TEAM_LANES ? SB_CUDA_FIRST_##kind(value_)                                                  \
                                       : SB_CUDA_NEXT_##kind##_##suffix(value_, lanes_[i % SB_CUDA_TEAM_LANES]);       \
        }                                                                                                              \
        result =                                                                                                       \
            sb_cuda_fold_team_##join##_##suffix(lanes_, t, team, length < SB_REDUCE_LANES ? length : SB_REDUCE_LANES); \
    } while (0)

/* The same by a block, over the elements [begin, end) of a row; `begin` is a multiple of 4096.
 * `value` is an expression of the int64_t at. `lanes` and `parts` are shared memory, for the lanes of
 * all waves and one value per wave. Waves take one block of 4096 each at a time; their totals are
 * joined in ascending order. 0 for an empty range. */
#define SB_CUDA_BLOCK_REDUCE(result, kind, join, type, suffix, begin, end, value)                                      \
    do {                                                                                                               \
        int wave_ = (int)threadIdx.x / SB_CUDA_WAVE, lane_ = (int)threadIdx.x % SB_CUDA_WAVE;                          \
        int waves_ = (int)blockDim.x / SB_CUDA_WAVE;                                                                   \
        type total_ = 0;                                                                                               \
        for (int64_t start_ = (begin); start_ < (end); start_ += (int64_t)waves_ * SB_REDUCE_BLOCK) {                  \
            int64_t own_ = start_ + (int64_t)wave_ * SB_REDUCE_BLOCK, left_ = (end)-own_;                              \
            int size_ = left_ <= 0 ? 0 : left_ < SB_REDUCE_BLOCK ? (int)left_ : SB_REDUCE_BLOCK;                       \
            type sum_ = 0;                                                                                             \
            SB_CUDA_UNROLL_BY_4                                                                                        \
            for (int each_ = lane_; each_ < size_; each_ += SB_REDUCE_LANES) {                                         \
                int64_t at = own_ + each_;                                                                             \
                type value_ = (value);                                                                                 \
                sum_ = each_ == lane_ ? SB_CUDA_FIRST_##kind(value_) : SB_CUDA_NEXT_##kind##_##suffix(value_, sum_);   \
            }                                                                                                          \
            sum_ = sb_cuda_fold_wave_##join##_##suffix(sum_, lane_, size_ < SB_REDUCE_LANES ? size_ : SB_REDUCE_LANES, \
                                                       lanes);                                                         \
            if (lane_ == 0)                                                                                            \
                parts[wave_] = sum_;                                                                                   \
            SB_CUDA_BARRIER();                                                                                         \
            for (int other_ = 0; other_ < waves_; other_++) {                                                          \
                int64_t from_ = start_ + (int64_t)other_ * SB_REDUCE_BLOCK;                                            \
                if (from_ == (begin))                                                                                  \
                    total_ = parts[other_];                                                                            \
                else if (from_ < (end))                                                                                \
                    total_ = SB_CUDA_JOIN_##join##_##suffix(total_, parts[other_]);                                    \
            }                                                                                                          \
        }                                                                                                              \
        result = total_;                                                                                               \
    } while (0)

/* `result` = the totals of a row's parts of 4096 elements, which many blocks have made, joined in ascending order: for every
 * thread of the block, of SB_CUDA_WAVE threads or less. `room` is shared memory for a total each. Not for rows without parts. */
#define SB_CUDA_JOIN_PARTS(result, join, type, suffix, totals, count, room)                                            \
    do {                                                                                                               \
        type joined_ = 0;                                                                                              \
        for (int64_t start_ = 0; start_ < (count); start_ += (int)blockDim.x) {                                        \
            int64_t left_ = (count)-start_;                                                                            \
            int here_ = left_ < (int)blockDim.x ? (int)left_ : (int)blockDim.x;                                        \
            SB_CUDA_BARRIER(); /* what was there has been read */                                                      \
            if ((int)threadIdx.x < here_)                                                                              \
                room[threadIdx.x] = (totals)[start_ + (int)threadIdx.x];                                               \
            SB_CUDA_BARRIER();                                                                                         \
            joined_ = start_ == 0 ? room[0] : SB_CUDA_JOIN_##join##_##suffix(joined_, room[0]);                        \
            SB_CUDA_UNROLL_BY_4                                                                                        \
            for (int i_ = 1; i_ < here_; i_++)                                                                         \
                joined_ = SB_CUDA_JOIN_##join##_##suffix(joined_, room[i_]);                                           \
        }                                                                                                              \
        result = joined_;                                                                                              \
    } while (0)

#if defined(__CUDACC__)
#define SB_CUDA_UNROLL_BY_4 _Pragma("unroll 4")
#else
#define SB_CUDA_UNROLL_BY_4
#endif

/* A team's place: `team`, its thread `t`, its row and that row's used length, 0 past the last row. All
 * threads of a block go through the loop equally often. */
#define SB_CUDA_TEAMS(rows)                                                                                            \
    int team = (rows)->team, t = (int)threadIdx.x & (team - 1);                                                        \
    int64_t per_block = (int64_t)(blockDim.x / (unsigned)team), used_rows = SB_CUDA_ROWS_COUNT(rows);                  \
    int used_length = (int)SB_CUDA_ROWS_LENGTH(rows);                                                                  \
    for (int64_t base = blockIdx.x * per_block; base < used_rows; base += (int64_t)gridDim.x * per_block)
#define SB_CUDA_TEAM_ROW(rows)                                                                                         \
    int64_t row = base + threadIdx.x / (unsigned)team;                                                                 \
    int length = row < used_rows ? used_length : 0;                                                                    \
    row = row < used_rows ? row : base

#endif
