#include "cuda/contraction/tiles.h"

#include <stdatomic.h>
#include <stdio.h>

#include "cuda/driver/device.h"

/* Steps of chains that a multiprocessor does in a cycle, of 128 at most: with many blocks of the shape, and with one
 * alone, which cannot hide its waits. Fitted to the times on an H200 of every shape for all layers of ResNet-50 at
 * batches of 1, 8 and 64, for the products of BERT-base and for square ones up to 8192 (bench/gpu_tiles_bench.c): the
 * choice by them takes 2.2 % longer than the best one for each. Where they are out of proportion they make up for what
 * the cost below leaves out: fetching patches, and the ends of chains. A tile of 256 by 128 was never the best. Those of 4x32
 * are not fitted yet, but counted: four warps, each on a scheduler of its own, that do less than six instructions a step. */
static const sb_cuda_tile tiles[] = {
    {"128x256", 128, 256, 256, 97, 1000, 134}, {"128x128", 128, 128, 256, 95, 27, 68},
    {"128x64", 128, 64, 128, 87, 35, 68},      {"64x128", 64, 128, 128, 72, 125, 68},
    {"64x64", 64, 64, 128, 80, 50, 35},        {"32x64", 32, 64, 128, 70, 54, 18},
    {"32x32", 32, 32, 128, 61, 33, 10},        {"8x32", 8, 32, 64, 29, 408, 6},
    {"4x32", 4, 32, 128, 24, 24, 3},           {"1x32", 1, 32, 32, 6, 238, 3},
};
#define TILES ((int)(sizeof tiles / sizeof tiles[0]))

/* Bytes that a multiprocessor gets from the second-level cache in a cycle. */
#define BYTES_PER_CYCLE 24.0

static _Atomic int forced = -1;

int sb_cuda_tile_count(void) {
    return TILES;
}

const sb_cuda_tile *sb_cuda_tile_at(int index) {
    return &tiles[index];
}

void sb_cuda_tile_force(int index) {
    atomic_store(&forced, index);
}

static int64_t parts(int64_t extent, int64_t part) {
    return extent / part + (extent % part != 0);
}

/* Up to here the multiprocessor with the most blocks is what counts; with more of them,
 * blocks begin whenever others end. */
#define MOST_COUNTED_ROUNDS 1.5

/* Schedulers of a multiprocessor, each of which begins an instruction of a warp in a cycle, and threads of a warp. */
#define SCHEDULERS 4
#define WARP 32

/* Cycles for each k of a block, with a multiprocessor of its own, whose threads make the right operand of patches. */
static double patch_cost(const sb_cuda_tile *tile, int patch) {
    double shared = (double)tile->threads / (SCHEDULERS * WARP);
    double each = tile->instructions + (double)patch * tile->n / tile->threads;
    return each * (shared > 1 ? shared : 1);
}

/* Cycles for each k. */
static double cost(const sb_cuda_tile *tile, double batches, int64_t m, int64_t n, int patch, int multiprocessors) {
    double blocks = batches * (double)parts(m, tile->m) * (double)parts(n, tile->n);
    double rounds = blocks / multiprocessors;
    if (rounds > MOST_COUNTED_ROUNDS)
        rounds += 0.5;
    else
        rounds = rounds > 1 ? 2 : 1;
    double area = (double)tile->m * tile->n, busy = rounds * area / tile->whole;
    double moved = rounds * (tile->m + tile->n) * 4 / BYTES_PER_CYCLE;
    double least = area / tile->alone, fetched = patch != 0 ? patch_cost(tile, patch) : 0;
    busy = busy > moved ? busy : moved;
    least = least > fetched ? least : fetched;
    return busy > least ? busy : least;
}

const sb_cuda_tile *sb_cuda_tile_choose(int64_t batches, int64_t m, int64_t n, int patch, int multiprocessors) {
    int best = atomic_load(&forced);
    if (best >= 0 && best < TILES)
        return &tiles[best];
    best = 0;
    double least = cost(&tiles[0], (double)batches, m, n, patch, multiprocessors);
    for (int i = 1; i < TILES; i++) {
        double cycles = cost(&tiles[i], (double)batches, m, n, patch, multiprocessors);
        if (cycles < least) {
            least = cycles;
            best = i;
        }
    }
    return &tiles[best];
}

sb_cuda_fetch sb_cuda_tile_fetch(const sb_cuda_operand *operand, int tile, int64_t extent, int other_count,
                                 const int64_t *others) {
    int64_t step = operand->step, k_step = operand->k_step;
    if (extent > 1 && step == 1) {
        bool vectors = tile >= 4 && extent % 4 == 0 && k_step % 4 == 0 && (uintptr_t)operand->data % 16 == 0;
        for (int i = 0; i < other_count; i++)
            vectors = vectors && others[i] % 4 == 0;
        return vectors ? SB_CUDA_FETCH_VECTORS : SB_CUDA_FETCH_MN_MAJOR;
    }
    bool nearer = (k_step < 0 ? -k_step : k_step) < (step < 0 ? -step : step);
    return extent <= 1 || nearer ? SB_CUDA_FETCH_K_MAJOR : SB_CUDA_FETCH_MN_MAJOR;
}

sb_status sb_cuda_tile_launch(sb_call *call, sb_cuda_work *work, const char *module, const char *prefix,
                              const sb_cuda_tile *tile, sb_cuda_contraction *base) {
    char name[64];
    int64_t count;
    base->m_tiles = parts(base->m, tile->m);
    base->n_tiles = parts(base->n, tile->n);
    if (__builtin_mul_overflow(base->m_tiles, base->n_tiles, &count) ||
        __builtin_mul_overflow(count, base->batches, &count))
        return sb_call_fail(call, SB_ERROR_UNSUPPORTED, "the product has more than 2^63 tiles");
    snprintf(name, sizeof name, "%s%s", prefix, tile->name);
    work->module = module;
    work->kernel = name;
    work->threads = (unsigned)tile->threads;
    work->apart = true;
    work->blocks = (unsigned)(count < INT32_MAX ? count : INT32_MAX);
    return sb_cuda_call_launch(call, work);
}
