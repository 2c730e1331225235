/* A row that tokens are chosen from, and what threads of a block, and blocks of a row, put together. */
#ifndef SB_CUDA_ROWS_CHOOSE_BLOCK_CUH
#define SB_CUDA_ROWS_CHOOSE_BLOCK_CUH

#include "cuda/common/arrival.cuh"
#include "cuda/logp/logp.cuh"
#include "cuda/rows/choose_parameters.h"

#define THREADS SB_CUDA_CHOOSE_TOKENS
#define WARPS (THREADS / 32)

/* A row that is chosen from. */
typedef struct sb_choosing {
    const float *logits;
    int64_t vocabulary;
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

/* ---- over a block ---- */

#define OVER_BLOCK(name, type, BETTER)                                                                                 \
    SB_CUDA_FUNCTION type name(type value) {                                                                           \
        SB_CUDA_SHARED type found[WARPS];                                                                              \
        for (int half = 16; half > 0; half /= 2) {                                                                     \
            const type other = (type)sb_cuda_shuffle_down_u64((uint64_t)value, half, 32);                              \
            value = BETTER(other, value);                                                                              \
        }                                                                                                              \
        if (threadIdx.x % 32 == 0)                                                                                     \
            found[threadIdx.x / 32] = value;                                                                           \
        SB_CUDA_BARRIER();                                                                                             \
        value = found[0];                                                                                              \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int warp = 1; warp < WARPS; warp++)                                                                       \
            value = BETTER(found[warp], value);                                                                        \
        SB_CUDA_BARRIER();                                                                                             \
        return value;                                                                                                  \
    }
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
OVER_BLOCK(largest_key, uint64_t, LARGER)
OVER_BLOCK(largest_number, int64_t, LARGER)
OVER_BLOCK(smallest_number, int64_t, SMALLER)
OVER_BLOCK(sum_of_numbers, int64_t, SUM)

/* The next place in a list of the block's. */
SB_CUDA_FUNCTION uint32_t take_place(uint32_t *count) {
#if defined(__CUDA_ARCH__)
    return atomicAdd(count, 1u);
#else
    return (*count)++;
#endif
}

/* Adds to a word of the block's, or of all blocks'. */
SB_CUDA_FUNCTION void add_to(uint32_t *word, uint32_t number) {
#if defined(__CUDA_ARCH__)
    atomicAdd(word, number);
#else
    *word += number;
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

SB_CUDA_FUNCTION float scaled_of(const sb_choosing *c, int64_t token) {
    return c->logits[token] * c->factor;
}

#endif
