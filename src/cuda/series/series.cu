/* A series of tasks in one launch: a block on each multiprocessor goes through all of them, so that the way from one task to the next is a
 * counter in memory, and weights of the next ones are on their way meanwhile.
 *
 * A block has 128 threads that work, a thread that fetches weights, and one that fetches rows. Weights are what no task of the series
 * writes: their thread goes ahead through all tasks, as far as stages of the ring are free. Rows, and whatever else a task reads or
 * writes, wait for the one task that the host has found (series.c): that all blocks have done it means that they have done all those
 * before it too, since each does its parts in their order. So one counter for a task is enough.
 *
 * What a task computes is what its kernel would: the functions are the same, and blocks take the same parts.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 8
#define SB_GEMM_GROUPS 1
#include "cuda/contraction/gemm16_fused.cuh"
#include "cuda/contraction/wgmma.cuh"
#include "cuda/series/series_parameters.h"
#include "cuda/series/together.cuh"
/* Where a kernel's block has threads for itself, these are the ones that work. */
#undef SB_CUDA_BARRIER
#define SB_CUDA_BARRIER() sb_warpgroup_sync(1)
#include "cuda/attention/attention16_decode.cuh"
#include "cuda/moving/paged_append.cuh"
#include "cuda/rows/normalize_few.cuh"

#if SB_HOPPER
#define STAGES SB_CUDA_SERIES_STAGES
#define BOXES 2 /* of 64 k in a copy */
#define SUMS (SB_GEMM_N / 2)
#define TYPE(p) ((const sb_gemm16_hopper *)(p))

/* What all threads of a warp have read from the same place. The compiler sees by it that they go the same way, without which it does not
 * keep products in flight. */
#define UNIFORM(value) __shfl_sync(0xffffffffu, value, 0)

/* Where a thread is in the ring. */
typedef struct series_ring {
    uint32_t full, empty, stages; /* addresses of shared memory */
    uint32_t phase;
    int stage;
} series_ring;

SB_CUDA_FUNCTION void next_stage(series_ring *ring) {
    if (++ring->stage == STAGES) {
        ring->stage = 0;
        ring->phase ^= 1;
    }
}

/* The first part of a task that the block takes; the others are a grid apart. */
SB_CUDA_FUNCTION int first_part(const sb_cuda_series_task *task) {
    const int before = (int)blockIdx.x - task->first;
    return before < 0 ? before + (int)gridDim.x : before;
}

/* A tile's first row and column, both of the kernel's C. */
typedef struct series_tile {
    int m, n;
    bool is_used;
} series_tile;

SB_CUDA_FUNCTION series_tile tile_of(const sb_gemm16_hopper *p, int index) {
    const sb_gemm16_place at = sb_gemm16_place_of(p, index);
    const int row = at.m * p->tile_rows, column = at.n * SB_GEMM_N;
    series_tile tile;
    tile.m = row < p->last_row ? row : p->last_row;
    tile.n = column < p->last_column ? column : p->last_column;
    tile.is_used = sb_gemm16_is_used(p, row, column);
    return tile;
}

/* How a product's k are cut into stages, and bytes of 64 k of each factor. */
typedef struct series_depth {
    int k_blocks, copies, a_box, b_box;
} series_depth;

SB_CUDA_FUNCTION series_depth depth_of(const sb_cuda_series_task *task, const sb_gemm16_hopper *p) {
    series_depth depth;
    depth.k_blocks = p->k_blocks;
    depth.copies = task->copies;
    depth.a_box = p->a_box_bytes;
    depth.b_box = p->b_box_bytes;
    return depth;
}

/* Copies of a stage that begins with this block of 64 k. */
SB_CUDA_FUNCTION int copies_of(const series_depth *depth, int block) {
    const int left = (depth->k_blocks - block + BOXES - 1) / BOXES;
    return left < depth->copies ? left : depth->copies;
}

/* The stages that a block takes for what it keeps in shared memory: those that lie side by side, and those that it passes over. */
SB_CUDA_FUNCTION int passed_stages(const sb_cuda_series_task *task, int stage) {
    return stage + task->scratch > STAGES ? STAGES - stage : 0;
}

/* A fetching thread leaves stages to who works. */
SB_CUDA_FUNCTION void leave_stages(const sb_cuda_series_task *task, series_ring *ring) {
    if (task->scratch == 0 || first_part(task) >= task->parts)
        return;
    SB_CUDA_KEEP_LOOP
    for (int count = passed_stages(task, ring->stage) + task->scratch; count > 0; count--) {
        sb_barrier_wait(ring->empty + 8 * ring->stage, ring->phase ^ 1);
        sb_barrier_arrive(ring->full + 8 * ring->stage);
        next_stage(ring);
    }
}

#define EACH_TASK(task)                                                                                                \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (const sb_cuda_series_task *task = given.tasks; task < given.tasks + given.count; task++)
#define EACH_TILE(first, tiles)                                                                                        \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int index = (first); index < (tiles); index += (int)gridDim.x)
#define EACH_STAGE(depth)                                                                                              \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int block = 0; block < (depth).k_blocks; block += BOXES * (depth).copies)

/* Weights of all products, ahead of everything. */
SB_CUDA_FUNCTION void fetch_weights(const sb_cuda_series &given, series_ring ring) {
    const uint64_t policy = sb_streaming_policy();
    EACH_TASK(task) {
        if (task->kind != SB_CUDA_FORM_PRODUCT) {
            leave_stages(task, &ring);
            continue;
        }
        const sb_gemm16_hopper *p = TYPE(task->parameters);
        const series_depth depth = depth_of(task, p);
        const int bytes = BOXES * depth.a_box;
        const bool is_stacked = p->stacked == 1;
        EACH_TILE(first_part(task), p->tiles) {
            const series_tile tile = tile_of(p, index);
            if (!tile.is_used)
                continue;
            EACH_STAGE(depth) {
                const int copies = copies_of(&depth, block);
                const uint32_t arrived = ring.full + 8 * ring.stage;
                sb_barrier_wait(ring.empty + 8 * ring.stage, ring.phase ^ 1);
                sb_barrier_expect(arrived, copies * bytes);
                SB_CUDA_KEEP_LOOP
                for (int c = 0; c < copies; c++) {
                    const uint32_t to = ring.stages + ring.stage * SB_CUDA_SERIES_STAGE + c * bytes;
                    const int at = block + BOXES * c;
                    if (is_stacked)
                        sb_tensor_stream_five(to, &p->a, arrived, 0, 0, 0, tile.m / 16, at, policy);
                    else
                        sb_tensor_stream(to, &p->a, arrived, 0, tile.m, at, 0, policy);
                }
                next_stage(&ring);
            }
        }
    }
}

/* Until all blocks have done what the task waits for. What they have written is then seen by the copy engine too. */
SB_CUDA_FUNCTION void wait_for_blocks(const sb_cuda_series &given, const sb_cuda_series_task *task) {
    if (task->waits > 0)
        sb_counter_wait(given.counters + (task->waits - 1), gridDim.x);
    sb_memory_written();
}

/* Rows of all products, each behind the tasks that make them. */
SB_CUDA_FUNCTION void fetch_rows(const sb_cuda_series &given, series_ring ring) {
    EACH_TASK(task) {
        if (task->kind != SB_CUDA_FORM_PRODUCT) {
            leave_stages(task, &ring);
            continue;
        }
        const sb_gemm16_hopper *p = TYPE(task->parameters);
        const series_depth depth = depth_of(task, p);
        const int bytes = BOXES * depth.b_box;
        bool waited = false;
        EACH_TILE(first_part(task), p->tiles) {
            const series_tile tile = tile_of(p, index);
            if (!tile.is_used)
                continue;
            if (!waited)
                wait_for_blocks(given, task);
            waited = true;
            EACH_STAGE(depth) {
                const int copies = copies_of(&depth, block);
                const uint32_t arrived = ring.full + 8 * ring.stage;
                sb_barrier_wait(ring.empty + 8 * ring.stage, ring.phase ^ 1);
                sb_barrier_expect(arrived, copies * bytes);
                SB_CUDA_KEEP_LOOP
                for (int c = 0; c < copies; c++)
                    sb_tensor_load(ring.stages + ring.stage * SB_CUDA_SERIES_STAGE + SB_CUDA_SERIES_WEIGHTS + c * bytes,
                                   &p->b, arrived, 0, tile.n, block + BOXES * c, 0);
                next_stage(&ring);
            }
        }
    }
}

/* Sums become what is stored: as in gemm16_hopper.cuh, for one warpgroup and tiles that take weights' lines as rows. */
#define FINISH_TILE(suffix)                                                                                            \
    SB_CUDA_FUNCTION void finish_tile_##suffix(const sb_gemm16_fused *given, bool has_nodes,                           \
                                               const sb_gemm16_corner *corner, int m, int n, float *sums) {            \
        const sb_gemm16_hopper *p = &given->product;                                                                   \
        if (!(corner->storing & SB_GEMM16_PLAIN)) {                                                                    \
            const sb_gemm16_results place = {p, 0, p->stacked == 1 ? m / 2 : m, n};                                    \
            if (p->stacked == 1) {                                                                                     \
                sb_gemm16_apply_swapped_gates(&place, SUMS / 2, sums);                                                 \
                return;                                                                                                \
            }                                                                                                          \
            sb_gemm16_apply_epilogue(&place, SUMS, sums);                                                              \
        }                                                                                                              \
        if (has_nodes) {                                                                                               \
            const sb_gemm16_results place = {p, 0, m, n};                                                              \
            sb_gemm16_fuse_results_##suffix(&given->program, &place, sums);                                            \
        }                                                                                                              \
        sb_gemm16_store_##suffix(corner, SUMS, sums);                                                                  \
    }

/* The products of a tile. */
#define MULTIPLY_TILE(suffix, type)                                                                                    \
    SB_CUDA_FUNCTION void multiply_tile_##suffix(const series_depth *depth, series_ring *ring, float *sums) {          \
        const bool leads = threadIdx.x == 0;                                                                           \
        uint32_t before = 0;                                                                                           \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SUMS; i++)                                                                                 \
            sums[i] = 0;                                                                                               \
        EACH_STAGE(*depth) {                                                                                           \
            const int copies = copies_of(depth, block);                                                                \
            const uint32_t at = ring->stages + ring->stage * SB_CUDA_SERIES_STAGE;                                     \
            uint64_t a = sb_matrix_descriptor(at, 8192, 1024);                                                         \
            uint64_t b = sb_matrix_descriptor(at + SB_CUDA_SERIES_WEIGHTS, 8192, 1024);                                \
            sb_barrier_wait(ring->full + 8 * ring->stage, ring->phase);                                                \
            SB_WGMMA_BEGIN();                                                                                          \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int c = 0; c < BOXES * copies; c++) {                                                                 \
                SB_CUDA_UNROLL                                                                                         \
                for (int step = 0; step < 4; step++)                                                                   \
                    SB_WGMMA_8(sums, 1, a + 2 * step, b + 2 * step, type, 0, 0);                                       \
                a += depth->a_box / 16;                                                                                \
                b += depth->b_box / 16;                                                                                \
            }                                                                                                          \
            SB_WGMMA_END();                                                                                            \
            /* The stage before this one is free once its products are done, while this one's go on. */                \
            SB_WGMMA_WAIT(1);                                                                                          \
            if (leads && before != 0)                                                                                  \
                sb_barrier_arrive(before);                                                                             \
            before = ring->empty + 8 * ring->stage;                                                                    \
            next_stage(ring);                                                                                          \
        }                                                                                                              \
        SB_WGMMA_WAIT(0);                                                                                              \
        if (leads)                                                                                                     \
            sb_barrier_arrive(before);                                                                                 \
    }

#define COMPUTE_PRODUCT(suffix)                                                                                        \
    SB_CUDA_FUNCTION void compute_product_##suffix(const sb_cuda_series_task *task, const sb_gemm16_fused *own,        \
                                                   series_ring *ring) {                                                \
        const sb_gemm16_hopper *p = &own->product;                                                                     \
        const int has_nodes = UNIFORM(task->has_nodes), tiles = UNIFORM(p->tiles), first = UNIFORM(first_part(task));  \
        series_depth depth = depth_of(task, p);                                                                        \
        depth.copies = UNIFORM(depth.copies);                                                                          \
        depth.k_blocks = UNIFORM(depth.k_blocks);                                                                      \
        depth.a_box = UNIFORM(depth.a_box);                                                                            \
        depth.b_box = UNIFORM(depth.b_box);                                                                            \
        EACH_TILE(first, tiles) {                                                                                                 \
            const series_tile tile = tile_of(p, index);                                                                \
            float sums[SUMS];                                                                                          \
            if (!UNIFORM((int)tile.is_used))                                                                           \
                continue;                                                                                              \
            sb_gemm16_corner corner = sb_gemm16_corner_of(p, 0, tile.m, tile.n);                                       \
            sb_gemm16_keep_corner(&corner);                                                                            \
            multiply_tile_##suffix(&depth, ring, sums);                                                                \
            finish_tile_##suffix(own, has_nodes, &corner, tile.m, tile.n, sums);                                       \
        }                                                                                                              \
    }

/* Has the task's room in shared memory, behind everything that blocks have to have done; and the copy engine has it again. */
SB_CUDA_FUNCTION unsigned char *take_stages(const sb_cuda_series &given, const sb_cuda_series_task *task, series_ring *ring,
                                            unsigned char *memory) {
    if (threadIdx.x == 0)
        wait_for_blocks(given, task);
    SB_CUDA_KEEP_LOOP
    for (int count = task->scratch > 0 ? passed_stages(task, ring->stage) : 0; count > 0; count--) {
        sb_barrier_wait(ring->full + 8 * ring->stage, ring->phase);
        if (threadIdx.x == 0)
            sb_barrier_arrive(ring->empty + 8 * ring->stage);
        next_stage(ring);
    }
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < task->scratch; i++)
        sb_barrier_wait(ring->full + 8 * (ring->stage + i), ring->phase);
    sb_warpgroup_sync(1);
    return memory + ring->stage * SB_CUDA_SERIES_STAGE;
}

SB_CUDA_FUNCTION void give_stages(const sb_cuda_series_task *task, series_ring *ring) {
    sb_shared_written();
    sb_warpgroup_sync(1);
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < task->scratch; i++) {
        if (threadIdx.x == 0)
            sb_barrier_arrive(ring->empty + 8 * ring->stage);
        next_stage(ring);
    }
}

/* What is no product. */
#define COMPUTE_OTHER(suffix, HALF)                                                                                    \
    SB_CUDA_FUNCTION void compute_other_##suffix(const sb_cuda_series &given, const sb_cuda_series_task *task,         \
                                                 const void *own, float *lanes, series_ring *ring,                     \
                                                 unsigned char *memory) {                                              \
        const int first = UNIFORM(first_part(task)), step = (int)gridDim.x, variant = UNIFORM(task->variant);          \
        const sb_cuda_paged_append *append = (const sb_cuda_paged_append *)own;                                        \
        const sb_cuda_normalization *rows = (const sb_cuda_normalization *)own;                                        \
        const sb_cuda_attention *attention = (const sb_cuda_attention *)own;                                           \
        if (first >= UNIFORM(task->parts))                                                                             \
            return;                                                                                                    \
        unsigned char *room = take_stages(given, task, ring, memory);                                                  \
        switch (UNIFORM(task->kind) << 16 | variant) {                                                                 \
        case SB_CUDA_FORM_APPEND << 16:                                                                                \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int64_t index = (int64_t)first * SB_CUDA_SERIES_WORKERS + threadIdx.x;                                \
                 index < sb_cuda_append_count(append); index += (int64_t)step * SB_CUDA_SERIES_WORKERS)                \
                sb_cuda_append_##suffix(append, index);                                                                \
            break;                                                                                                     \
        case SB_CUDA_FORM_NORMALIZE << 16 | 3:                                                                         \
            sb_cuda_normalize_few<HALF, 3, 2>(rows, first, step, lanes);                                               \
            break;                                                                                                     \
        case SB_CUDA_FORM_NORMALIZE << 16 | 4:                                                                         \
            sb_cuda_normalize_few<HALF, 4, 2>(rows, first, step, lanes);                                               \
            break;                                                                                                     \
        case SB_CUDA_FORM_NORMALIZE << 16 | 8:                                                                         \
            sb_cuda_normalize_few<HALF, 8, 2>(rows, first, step, lanes);                                               \
            break;                                                                                                     \
        case SB_CUDA_FORM_NORMALIZE << 16 | 16:                                                                        \
            sb_cuda_normalize_few<HALF, 16, 2>(rows, first, step, lanes);                                              \
            break;                                                                                                     \
        case SB_CUDA_FORM_ATTENTION << 16 | 64:                                                                        \
            sb_attention16_decode<HALF, 64, false, true>(attention, first, step, room);                                \
            break;                                                                                                     \
        case SB_CUDA_FORM_ATTENTION << 16 | 128:                                                                       \
            sb_attention16_decode<HALF, 128, false, true>(attention, first, step, room);                               \
            break;                                                                                                     \
        }                                                                                                              \
        give_stages(task, ring);                                                                                       \
    }

#define SERIES_KERNEL(suffix, type, HALF)                                                                              \
    FINISH_TILE(suffix)                                                                                                \
    MULTIPLY_TILE(suffix, type)                                                                                        \
    COMPUTE_PRODUCT(suffix)                                                                                            \
    COMPUTE_OTHER(suffix, HALF)                                                                                        \
    SB_HOPPER_KERNEL_TOGETHER(sb_cuda_series_##suffix, sb_cuda_series, given, SB_CUDA_SERIES_THREADS) {                \
        SB_HOPPER_DYNAMIC_SHARED(shared_memory);                                                                       \
        SB_HOPPER_BARRIERS(full_barriers, STAGES);                                                                     \
        SB_HOPPER_BARRIERS(empty_barriers, STAGES);                                                                    \
        SB_HOPPER_SHARED(parameters, SB_CUDA_SERIES_PARAMETERS);                                                       \
        SB_HOPPER_SHARED(lanes, SB_CUDA_WAVE * 4);                                                                     \
        const int thread = (int)threadIdx.x, warp = __shfl_sync(0xffffffffu, thread / 32, 0);                          \
        series_ring ring;                                                                                              \
        ring.full = sb_shared_address(full_barriers);                                                                  \
        ring.empty = sb_shared_address(empty_barriers);                                                                \
        ring.stages = (sb_shared_address(shared_memory) + 1023) / 1024 * 1024;                                         \
        unsigned char *memory = shared_memory + (ring.stages - sb_shared_address(shared_memory));                      \
        ring.stage = 0;                                                                                                \
        ring.phase = 0;                                                                                                \
        if (thread < STAGES) {                                                                                         \
            sb_barrier_init(ring.full + 8 * thread, 2);                                                                \
            sb_barrier_init(ring.empty + 8 * thread, 1);                                                               \
            sb_barrier_init_done();                                                                                    \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        SB_CUDA_DEPEND();                                                                                              \
        if (warp == SB_CUDA_SERIES_WORKERS / 32) {                                                                     \
            if (thread % 32 == 0)                                                                                      \
                fetch_weights(given, ring);                                                                            \
        } else if (warp == SB_CUDA_SERIES_WORKERS / 32 + 1) {                                                          \
            if (thread % 32 == 0)                                                                                      \
                fetch_rows(given, ring);                                                                               \
        } else if (warp < SB_CUDA_SERIES_WORKERS / 32) {                                                               \
            uint32_t *counter = given.counters;                                                                        \
            EACH_TASK(task) {                                                                                          \
                SB_CUDA_KEEP_LOOP                                                                                      \
                for (int i = thread * 16; i < task->parameter_bytes; i += SB_CUDA_SERIES_WORKERS * 16)                 \
                    *(sb_gemm16_eight *)(void *)(parameters + i) =                                                     \
                        *(const sb_gemm16_eight *)(const void *)((const char *)task->parameters + i);                  \
                sb_warpgroup_sync(1);                                                                                  \
                if (UNIFORM(task->kind) == SB_CUDA_FORM_PRODUCT)                                                       \
                    compute_product_##suffix(task, (const sb_gemm16_fused *)(const void *)parameters, &ring);          \
                else                                                                                                   \
                    compute_other_##suffix(given, task, parameters, (float *)(void *)lanes, &ring, memory);            \
                sb_memory_written();                                                                                   \
                sb_warpgroup_sync(1);                                                                                  \
                if (thread == 0 && task->is_awaited)                                                                   \
                    (void)sb_counter_add(counter);                                                                     \
                counter++;                                                                                             \
            }                                                                                                          \
            /* Nobody waits for a counter any more once all blocks have come here. */                                  \
            if (thread == 0 && sb_counter_add(counter) + 1 == gridDim.x) {                                             \
                SB_CUDA_KEEP_LOOP                                                                                      \
                for (int i = 0; i <= given.count; i++)                                                                 \
                    given.counters[i] = 0;                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

#if !defined(SB_MODULE_f16)
SERIES_KERNEL(bf16, "bf16", SB_CUDA_BF16)
#endif
#if !defined(SB_MODULE_bf16)
SERIES_KERNEL(f16, "f16", SB_CUDA_F16)
#endif
#else
/* Other generations are never given this. */
SB_CUDA_KERNEL(sb_cuda_series_bf16, sb_cuda_series, p) {
    __trap();
}
#endif
