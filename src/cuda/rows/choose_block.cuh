/* A row that tokens are chosen from, and what threads of a block, and blocks of a row, put together. */
#ifndef SB_CUDA_ROWS_CHOOSE_BLOCK_CUH
#define SB_CUDA_ROWS_CHOOSE_BLOCK_CUH

#include "cuda/common/arrival.cuh"
#include "cuda/common/words.cuh"
#include "cuda/logp/logp.cuh"
#include "cuda/rows/choose_parameters.h"

/* Threads of a block: a source whose blocks have others says so first. */
#ifndef THREADS
#define THREADS SB_CUDA_CHOOSE_THREADS
#endif
#define WARPS (THREADS / 32)
#define OWN SB_CUDA_CHOOSE_OWN

/* A row that is chosen from. */
typedef struct sb_choosing {
    const float *logits;
    int64_t vocabulary, slot;
    sb_logp_scale scale; /* of log-probabilities */
    sb_choose_settings by;
    float factor;
    int32_t maximum; /* that weights are relative to */
    bool cuts;
    float *noisy; /* where it does: [vocabulary] */
} sb_choosing;

/* Logits that a thread asks for together: while they come, others are looked at by nobody. */
#define HELD 8

/* A thread's turns over `count` tokens: in each, HELD of them, a block apart. */
#define EACH_TURN(first, count)                                                                                        \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t first = threadIdx.x; first < (count); first += HELD * THREADS)
/* Its tokens of a turn. */
#define EACH_TOKEN(token, held, first, count)                                                                          \
    SB_CUDA_UNROLL                                                                                                     \
    for (int held = 0; held < HELD; held++)                                                                            \
        for (int64_t token = (first) + held * THREADS, again = 1; again != 0 && token < (count); again = 0)

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/* ---- over a warp ---- */

SB_CUDA_FUNCTION uint64_t largest_key_of_warp(uint64_t key) {
    const uint32_t high = sb_cuda_largest_u32((uint32_t)(key >> 32));
    const uint32_t low = sb_cuda_largest_u32((uint32_t)(key >> 32) == high ? (uint32_t)key : 0);
    return (uint64_t)high << 32 | low;
}

/* The sum over the lanes whose numbers differ in the bits below `lanes`, a power of 2. */
SB_CUDA_FUNCTION int64_t sum_of_lanes(int64_t value, int lanes) {
    SB_CUDA_UNROLL
    for (int distance = 1; distance < lanes; distance *= 2)
        value += (int64_t)sb_cuda_shuffle_exchange_u64((uint64_t)value, distance);
    return value;
}

/* ---- over a block: each warp by itself, then of what the warps have found every warp the same ---- */

#define OVER_BLOCK(name, type, of_warp, of_found)                                                                      \
    SB_CUDA_FUNCTION type name##_by(type *found, type value) {                                                         \
        value = of_warp;                                                                                               \
        if (threadIdx.x % 32 == 0)                                                                                     \
            found[threadIdx.x / 32] = value;                                                                           \
        SB_CUDA_BARRIER();                                                                                             \
        value = found[threadIdx.x % WARPS];                                                                            \
        SB_CUDA_BARRIER();                                                                                             \
        return of_found;                                                                                               \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type name(type value) {                                                                           \
        SB_CUDA_SHARED type found[WARPS];                                                                              \
        return name##_by(found, value);                                                                                \
    }
OVER_BLOCK(largest_key, uint64_t, largest_key_of_warp(value), largest_key_of_warp(value))
OVER_BLOCK(largest_number, int32_t, sb_cuda_largest_s32(value), sb_cuda_largest_s32(value))
OVER_BLOCK(sum_of_numbers, int64_t, sum_of_lanes(value, 32), sum_of_lanes(value, WARPS))

/* The sum of the values of threads behind this one. */
SB_CUDA_FUNCTION int64_t sum_behind_by(int64_t *sums, int64_t value) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64_t all = value;
    SB_CUDA_UNROLL
    for (int step = 1; step < 32; step *= 2) {
        const int64_t other = (int64_t)sb_cuda_shuffle_down_u64((uint64_t)all, step, 32);
        all += lane + step < 32 ? other : 0;
    }
    if (lane == 0)
        sums[warp] = all;
    SB_CUDA_BARRIER();
    all -= value;
    SB_CUDA_UNROLL
    for (int w = 1; w < WARPS; w++)
        all += w > warp ? sums[w] : 0;
    SB_CUDA_BARRIER();
    return all;
}

SB_CUDA_FUNCTION int64_t sum_behind(int64_t value) {
    SB_CUDA_SHARED int64_t sums[WARPS];
    return sum_behind_by(sums, value);
}

/* ---- words that several write ---- */

/* Adds to a word of the block's, or of all blocks': returns what it was. */
SB_CUDA_FUNCTION uint32_t add_to(uint32_t *word, uint32_t number) {
#if defined(__CUDA_ARCH__)
    return atomicAdd(word, number);
#else
    const uint32_t before = *word;
    *word += number;
    return before;
#endif
}

/* Adds to a number of all blocks'. */
SB_CUDA_FUNCTION void add_to_sum(int64_t *sum, int64_t number) {
#if defined(__CUDA_ARCH__)
    atomicAdd((unsigned long long *)sum, (unsigned long long)number);
#else
    *sum += number;
#endif
}

/* Raises a key of all blocks'. */
SB_CUDA_FUNCTION void raise_to(uint64_t *key, uint64_t value) {
#if defined(__CUDA_ARCH__)
    atomicMax((unsigned long long *)key, (unsigned long long)value);
#else
    *key = LARGER(value, *key);
#endif
}

/* Whether this block of a row is the last of its `count` to come here; all threads of it ask. What the others have written is seen by it. */
SB_CUDA_FUNCTION bool is_last_block(uint32_t *arrived, int64_t count) {
    SB_CUDA_SHARED int is_last;
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0)
        is_last = sb_cuda_arrives_last(arrived, (uint32_t)count);
    SB_CUDA_BARRIER();
    return is_last;
}

/* ---- a thread's own tokens: OWN neighbours ---- */

/* Of a block of the row. */
SB_CUDA_FUNCTION int64_t own_tokens(int64_t part) {
    return part * SB_CUDA_CHOOSE_TOKENS + (int64_t)threadIdx.x * OWN;
}

/* Whether neighbours can be had by one access. */
SB_CUDA_FUNCTION bool are_aligned(const float *row, int64_t token, int64_t vocabulary) {
    return token + OWN <= vocabulary && (uintptr_t)(row + token) % (OWN * sizeof(float)) == 0;
}

/* Zeros behind the vocabulary. */
SB_CUDA_FUNCTION void load_own(const float *row, int64_t token, int64_t vocabulary, float *numbers) {
    if (are_aligned(row, token, vocabulary)) {
        sb_cuda_load_four((const char *)(row + token), sizeof(float), numbers);
        return;
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++)
        numbers[i] = token + i < vocabulary ? row[token + i] : 0.0f;
}

SB_CUDA_FUNCTION float scaled_of(const sb_choosing *c, int64_t token) {
    return c->logits[token] * c->factor;
}

#endif
