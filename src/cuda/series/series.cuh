/* A series of tasks in one launch: a block on each multiprocessor goes through all of them, so that the way from one task to the next is a
 * counter in memory, and weights of the next ones are on their way meanwhile.
 *
 * A block has 128 threads that work, a thread that fetches weights, one that fetches rows which do not lie in shared memory whole, and a
 * warp that reads what there is to know of tasks. Weights are what no task of the series
 * writes: their thread goes ahead through all tasks, as far as stages of the ring are free. Rows, and whatever else a task reads or
 * writes, wait for the one task that the host has found (series.c): that all blocks have done it means that they have done all those
 * before it too, since each does its parts in their order. So one counter for a task is enough.
 *
 * What a task computes is what its kernel would: the functions are the same, and blocks take the same parts. Included by a source for each
 * width of heads, which defines SB_SERIES_WIDTH: each would take long enough to compile for all of them. */
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

/* The first of weights' lines of a product's tile, and whether anybody looks at it. */
SB_CUDA_FUNCTION int tile_row(const sb_cuda_series_task *task, int index) {
    const int row = index * task->tile_rows;
    return row < task->last_row ? row : task->last_row;
}

SB_CUDA_FUNCTION bool is_used(const sb_cuda_series_task *task, int index) {
    return !SB_CUDA_SELDOM(task->is_open) ||
           sb_gemm16_is_used((const sb_gemm16_hopper *)task->parameters, index * task->tile_rows, 0);
}

/* Copies of a stage that begins with this block of 64 k. */
SB_CUDA_FUNCTION int copies_of(const sb_cuda_series_task *task, int block) {
    const int left = (task->k_blocks - block + BOXES - 1) / BOXES;
    return left < task->copies ? left : task->copies;
}

/* Where a stage's rows are, behind its weights. */
SB_CUDA_FUNCTION int rows_behind(const sb_cuda_series_task *task) {
    return BOXES * task->copies * task->a_box_bytes;
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

/* All tasks one by one, each in a thread's own registers since the one before it: `number` of them, as `task`. */
#define EACH_TASK                                                                                                      \
    sb_cuda_series_task own, next = given.tasks[0];                                                                    \
    const sb_cuda_series_task *const task = &own;                                                                      \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int number = 0; number < given.count; number++)
#define NEXT_TASK                                                                                                      \
    do {                                                                                                               \
        own = next;                                                                                                    \
        next = given.tasks[number + 1 < given.count ? number + 1 : number];                                            \
    } while (0)
#define EACH_TILE                                                                                                      \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int index = first_part(task); index < task->parts; index += (int)gridDim.x)
#define EACH_STAGE                                                                                                     \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int block = 0; block < task->k_blocks; block += BOXES * task->copies)

/* Weights of all products, ahead of everything. */
SB_CUDA_FUNCTION void fetch_weights(const sb_cuda_series &given, series_ring ring) {
    const uint64_t policy = sb_streaming_policy();
    EACH_TASK {
        NEXT_TASK;
        if (next.kind == SB_CUDA_FORM_PRODUCT)
            sb_tensor_map_prefetch(&((const sb_gemm16_hopper *)next.parameters)->a);
        if (task->kind != SB_CUDA_FORM_PRODUCT) {
            leave_stages(task, &ring);
            continue;
        }
        const sb_tensor_map *map = &((const sb_gemm16_hopper *)task->parameters)->a;
        const int bytes = BOXES * task->a_box_bytes;
        EACH_TILE {
            const int row = tile_row(task, index);
            if (!is_used(task, index))
                continue;
            EACH_STAGE {
                const int copies = copies_of(task, block);
                const uint32_t arrived = ring.full + 8 * ring.stage;
                sb_barrier_wait(ring.empty + 8 * ring.stage, ring.phase ^ 1);
                sb_barrier_expect(arrived, copies * bytes);
                SB_CUDA_KEEP_LOOP
                for (int c = 0; c < copies; c++) {
                    const uint32_t to = ring.stages + ring.stage * SB_CUDA_SERIES_STAGE + c * bytes;
                    const int at = block + BOXES * c;
                    if (task->is_stacked)
                        sb_tensor_stream_five(to, map, arrived, 0, 0, 0, row / 16, at, policy);
                    else
                        sb_tensor_stream(to, map, arrived, 0, row, at, 0, policy);
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
    EACH_TASK {
        NEXT_TASK;
        if (next.kind == SB_CUDA_FORM_PRODUCT)
            sb_tensor_map_prefetch(&((const sb_gemm16_hopper *)next.parameters)->b);
        if (task->kind != SB_CUDA_FORM_PRODUCT) {
            leave_stages(task, &ring);
            continue;
        }
        const sb_tensor_map *map = &((const sb_gemm16_hopper *)task->parameters)->b;
        const int bytes = BOXES * task->b_box_bytes, behind = rows_behind(task);
        bool waited = task->whole_rows > 0;
        EACH_TILE {
            if (!is_used(task, index))
                continue;
            if (!waited)
                wait_for_blocks(given, task);
            waited = true;
            EACH_STAGE {
                const int copies = task->whole_rows > 0 ? 0 : copies_of(task, block);
                const uint32_t arrived = ring.full + 8 * ring.stage;
                sb_barrier_wait(ring.empty + 8 * ring.stage, ring.phase ^ 1);
                sb_barrier_expect(arrived, copies * bytes);
                SB_CUDA_KEEP_LOOP
                for (int c = 0; c < copies; c++)
                    sb_tensor_load(ring.stages + ring.stage * SB_CUDA_SERIES_STAGE + behind + c * bytes, map, arrived,
                                   0, 0, block + BOXES * c, 0);
                next_stage(&ring);
            }
        }
    }
}

/* ---- what a block's workers find of a task: copied by a warp, a task ahead ---- */

#define ROOMS 2 /* for a task and the next one */
#define ROOM_BYTES (sizeof(sb_cuda_series_task) + SB_CUDA_SERIES_PARAMETERS)

/* Where a task's room is, and whose turn it is there. */
typedef struct series_rooms {
    unsigned char *first;
    uint32_t filled, taken; /* barriers of shared memory */
} series_rooms;

SB_CUDA_FUNCTION void copy_tasks(const sb_cuda_series &given, series_rooms rooms) {
    const int lane = (int)threadIdx.x % 32;
    EACH_TASK {
        NEXT_TASK;
        unsigned char *room = rooms.first + number % ROOMS * ROOM_BYTES;
        const sb_gemm16_eight *from = (const sb_gemm16_eight *)own.parameters;
        sb_barrier_wait(rooms.taken + 8 * (number % ROOMS), (uint32_t)(number / ROOMS & 1) ^ 1);
        if (lane == 0)
            *(sb_cuda_series_task *)(void *)room = own;
        SB_CUDA_KEEP_LOOP
        for (int i = lane; i < own.parameter_bytes / 16; i += 32)
            ((sb_gemm16_eight *)(void *)(room + sizeof own))[i] = from[i];
        sb_barrier_arrive(rooms.filled + 8 * (number % ROOMS));
    }
}

/* A task as all threads of a warp have it. */
SB_CUDA_FUNCTION sb_cuda_series_task uniform_task(const sb_cuda_series_task *from) {
    sb_cuda_series_task task = *from;
    task.waits = UNIFORM(task.waits);
    task.first = UNIFORM(task.first);
    task.parts = UNIFORM(task.parts);
    task.variant = (int16_t)UNIFORM(task.variant);
    task.kind = (int8_t)UNIFORM(task.kind);
    task.scratch = (int8_t)UNIFORM(task.scratch);
    task.has_nodes = (int8_t)UNIFORM(task.has_nodes);
    task.k_blocks = UNIFORM(task.k_blocks);
    task.copies = UNIFORM(task.copies);
    task.tile_rows = UNIFORM(task.tile_rows);
    task.last_row = UNIFORM(task.last_row);
    task.a_box_bytes = UNIFORM(task.a_box_bytes);
    task.b_box_bytes = UNIFORM(task.b_box_bytes);
    task.whole_rows = UNIFORM(task.whole_rows);
    return task;
}

/* Sums become what is stored: as in gemm16_hopper.cuh, for one warpgroup and tiles that take weights' lines as rows. */
#define FINISH_TILE(suffix)                                                                                            \
    SB_CUDA_FUNCTION void finish_tile_##suffix(const sb_gemm16_fused *given, bool has_nodes,                           \
                                               const sb_gemm16_corner *corner, int m, int n, float *sums) {            \
        const sb_gemm16_hopper *p = &given->product;                                                                   \
        if (!(corner->storing & SB_GEMM16_PLAIN)) {                                                                    \
            const sb_gemm16_results place = {p, 0, p->stacked == 1 ? m / 2 : m, n};                                    \
            if (p->stacked == 1) {                                                                                     \
                (void)place;                                                 \
                return;                                                                                                \
            }                                                                                                          \
            sb_gemm16_scale_results(&place, 0, 1, SUMS, sums);                                                              \
        }                                                                                                              \
        if (has_nodes) {                                                                                               \
            const sb_gemm16_results place = {p, 0, m, n};                                                              \
            sb_gemm16_fuse_results(p->is_bf16, &given->program, &place, sums);                                         \
        }                                                                                                              \
        sb_gemm16_store(corner, p->is_bf16, SUMS, sums);                                                               \
    }

/* Brings all rows of a product to shared memory, behind what they wait for: first eight k of each, then the next eight. Columns of the
 * tensor cores' eight for which there are no rows read what comes next, and nobody keeps what they make of it. */
SB_CUDA_FUNCTION void bring_rows(const sb_cuda_series &given, const sb_cuda_series_task *task, const sb_gemm16 *product,
                                 uint32_t to) {
    const char *from = (const char *)product->a.data;
    const int64_t line = 2 * product->a.line_stride;
    const int rows = task->whole_rows, there = task->k_blocks * 8;
    /* Zeros where the last copy of weights has zeros. */
    const int pieces = (task->k_blocks + BOXES - 1) / BOXES * BOXES * 8;
    if (threadIdx.x == 0)
        wait_for_blocks(given, task);
    sb_warpgroup_sync(1);
    SB_CUDA_KEEP_LOOP
    for (int row = 0; row < rows; row++) {
        SB_CUDA_KEEP_LOOP
        for (int first = (int)threadIdx.x; first < pieces; first += 8 * SB_CUDA_SERIES_WORKERS) {
            sb_gemm16_eight found[8];
            SB_CUDA_UNROLL
            for (int i = 0; i < 8; i++) {
                const int piece = first + i * SB_CUDA_SERIES_WORKERS;
                found[i].x = found[i].y = found[i].z = found[i].w = 0;
                if (piece < there)
                    found[i] = *(const sb_gemm16_eight *)(const void *)(from + row * line + 16 * piece);
            }
            SB_CUDA_UNROLL
            for (int i = 0; i < 8; i++) {
                const int piece = first + i * SB_CUDA_SERIES_WORKERS;
                const uint32_t words[4] = {found[i].x, found[i].y, found[i].z, found[i].w};
                if (piece < pieces)
                    sb_shared_store_eight(to + 16 * (rows * piece + row), words);
            }
        }
    }
    sb_shared_written();
    sb_warpgroup_sync(1);
}

/* The products of a tile. */
#define MULTIPLY_TILE(suffix, type)                                                                                    \
    SB_CUDA_FUNCTION void multiply_tile_##suffix(const sb_cuda_series_task *task, uint32_t rows, series_ring *ring,    \
                                                 float *sums) {                                                        \
        const bool leads = threadIdx.x == 0, is_whole = task->whole_rows > 0;                                          \
        const int b_step = is_whole ? 2 * task->whole_rows : 2;                                                        \
        const int b_box = is_whole ? 8 * task->whole_rows : task->b_box_bytes / 16;                                    \
        uint64_t b = sb_plain_descriptor(rows, 16 * task->whole_rows);                                                 \
        uint32_t before = 0;                                                                                           \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SUMS; i++)                                                                                 \
            sums[i] = 0;                                                                                               \
        EACH_STAGE {                                                                                                   \
            const int copies = copies_of(task, block);                                                                 \
            const uint32_t at = ring->stages + ring->stage * SB_CUDA_SERIES_STAGE;                                     \
            uint64_t a = sb_matrix_descriptor(at, 8192, 1024);                                                         \
            if (!is_whole)                                                                                             \
                b = sb_matrix_descriptor(at + rows_behind(task), 8192, 1024);                                          \
            sb_barrier_wait(ring->full + 8 * ring->stage, ring->phase);                                                \
            SB_WGMMA_BEGIN();                                                                                          \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int c = 0; c < BOXES * copies; c++) {                                                                 \
                SB_CUDA_UNROLL                                                                                         \
                for (int step = 0; step < 4; step++)                                                                   \
                    SB_WGMMA_8(sums, 1, a + 2 * step, b + b_step * step, type, 0, 0);                                  \
                a += task->a_box_bytes / 16;                                                                           \
                b += b_box;                                                                                            \
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
    SB_CUDA_FUNCTION void compute_product_##suffix(const sb_cuda_series &given, const sb_cuda_series_task *task,       \
                                                   const sb_gemm16_fused *product, series_ring *ring) {                \
        const uint32_t rows = ring->stages + STAGES * SB_CUDA_SERIES_STAGE;                                            \
        if (task->whole_rows > 0 && first_part(task) < task->parts)                                                    \
            bring_rows(given, task, &product->product.product, rows);                                                  \
        EACH_TILE {                                                                                                    \
            const int row = tile_row(task, index);                                                                     \
            float sums[SUMS];                                                                                          \
            if (!UNIFORM((int)is_used(task, index)))                                                                   \
                continue;                                                                                              \
            sb_gemm16_corner corner = sb_gemm16_corner_of(&product->product, 0, row, 0);                               \
            sb_gemm16_keep_corner(&corner);                                                                            \
            multiply_tile_##suffix(task, rows, ring, sums);                                                            \
            finish_tile_##suffix(product, task->has_nodes, &corner, row, 0, sums);                                     \
        }                                                                                                              \
    }

/* Has the task's room in shared memory, behind everything that blocks have to have done; and the copy engine has it again. */
SB_CUDA_FUNCTION unsigned char *take_stages(const sb_cuda_series &given, const sb_cuda_series_task *task,
                                            series_ring *ring, unsigned char *memory) {
    const int passed = task->scratch > 0 ? passed_stages(task, ring->stage) : 0, begin = ring->stage;
    if (threadIdx.x == 0)
        wait_for_blocks(given, task);
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < passed; i++) {
        sb_barrier_wait(ring->full + 8 * ring->stage, ring->phase);
        next_stage(ring);
    }
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < task->scratch; i++)
        sb_barrier_wait(ring->full + 8 * (ring->stage + i), ring->phase);
    sb_warpgroup_sync(1);
    /* Once all threads have seen them full: a phase that ended twice looks as if it had not. */
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < passed && threadIdx.x == 0; i++)
        sb_barrier_arrive(ring->empty + 8 * (begin + i));
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
        const int first = first_part(task), step = (int)gridDim.x;                                                     \
        const sb_cuda_paged_append *append = (const sb_cuda_paged_append *)own;                                        \
        const sb_cuda_normalization *rows = (const sb_cuda_normalization *)own;                                        \
        const sb_cuda_attention *attention = (const sb_cuda_attention *)own;                                           \
        if (first >= task->parts)                                                                                      \
            return;                                                                                                    \
        unsigned char *room = take_stages(given, task, ring, memory);                                                  \
        switch (task->kind << 16 | task->variant) {                                                                    \
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
        case SB_CUDA_FORM_ATTENTION << 16 | SB_SERIES_WIDTH:                                                           \
            sb_attention16_decode<HALF, SB_SERIES_WIDTH, false, false>(attention, first, step, room);                  \
            break;                                                                                                     \
        case SB_CUDA_FORM_ATTENTION << 16 | SB_SERIES_WIDTH | 1:                                                       \
            sb_attention16_decode<HALF, SB_SERIES_WIDTH, false, true>(attention, first, step, room);                   \
            break;                                                                                                     \
        }                                                                                                              \
        give_stages(task, ring);                                                                                       \
    }

#define SERIES_KERNEL(suffix, type, HALF)                                                                              \
    FINISH_TILE(suffix)                                                                                                \
    MULTIPLY_TILE(suffix, type)                                                                                        \
    COMPUTE_PRODUCT(suffix)                                                                                            \
    COMPUTE_OTHER(suffix, HALF)                                                                                        \
    SB_HOPPER_KERNEL_TOGETHER(SB_SERIES_NAME(suffix), sb_cuda_series, given, SB_CUDA_SERIES_THREADS) {                 \
        SB_HOPPER_DYNAMIC_SHARED(shared_memory);                                                                       \
        SB_HOPPER_BARRIERS(full_barriers, STAGES);                                                                     \
        SB_HOPPER_BARRIERS(empty_barriers, STAGES);                                                                    \
        SB_HOPPER_BARRIERS(filled_barriers, ROOMS);                                                                    \
        SB_HOPPER_BARRIERS(taken_barriers, ROOMS);                                                                     \
        SB_HOPPER_SHARED(task_rooms, ROOMS *ROOM_BYTES);                                                               \
        SB_HOPPER_SHARED(lanes, SB_CUDA_WAVE * 4);                                                                     \
        const int thread = (int)threadIdx.x, warp = UNIFORM(thread / 32) - SB_CUDA_SERIES_WORKERS / 32;                \
        const series_rooms rooms = {task_rooms, sb_shared_address(filled_barriers),                                    \
                                    sb_shared_address(taken_barriers)};                                                \
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
            if (thread < ROOMS) {                                                                                      \
                sb_barrier_init(rooms.filled + 8 * thread, 32);                                                        \
                sb_barrier_init(rooms.taken + 8 * thread, 1);                                                          \
            }                                                                                                          \
            sb_barrier_init_done();                                                                                    \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        SB_CUDA_DEPEND();                                                                                              \
        if (warp == 0) {                                                                                               \
            if (thread % 32 == 0)                                                                                      \
                fetch_weights(given, ring);                                                                            \
        } else if (warp == 1) {                                                                                        \
            if (thread % 32 == 0)                                                                                      \
                fetch_rows(given, ring);                                                                               \
        } else if (warp == 2) {                                                                                        \
            copy_tasks(given, rooms);                                                                                  \
        } else if (warp < 0) {                                                                                         \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int number = 0; number < given.count; number++) {                                                     \
                const unsigned char *room = rooms.first + number % ROOMS * ROOM_BYTES;                                 \
                const void *parameters = room + sizeof(sb_cuda_series_task);                                           \
                sb_barrier_wait(rooms.filled + 8 * (number % ROOMS), (uint32_t)(number / ROOMS & 1));                  \
                const sb_cuda_series_task own = uniform_task((const sb_cuda_series_task *)(const void *)room);         \
                if (own.kind == SB_CUDA_FORM_PRODUCT)                                                                  \
                    compute_product_##suffix(given, &own, (const sb_gemm16_fused *)parameters, &ring);                 \
                else                                                                                                   \
                    compute_other_##suffix(given, &own, parameters, (float *)(void *)lanes, &ring, memory);            \
                sb_memory_written();                                                                                   \
                sb_warpgroup_sync(1);                                                                                  \
                if (thread == 0) {                                                                                     \
                    sb_barrier_arrive(rooms.taken + 8 * (number % ROOMS));                                             \
                    if (own.is_awaited)                                                                                \
                        sb_counter_add(given.counters + number);                                                       \
                }                                                                                                      \
            }                                                                                                          \
            /* Nobody waits for a counter any more once all blocks have come here. */                                  \
            if (thread == 0 && sb_counter_count(given.counters + given.count) + 1 == gridDim.x) {                      \
                SB_CUDA_KEEP_LOOP                                                                                      \
                for (int i = 0; i <= given.count; i++)                                                                 \
                    given.counters[i] = 0;                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

#define SB_SERIES_JOIN(width, suffix) sb_cuda_series_##width##_##suffix
#define SB_SERIES_NAME_OF(width, suffix) SB_SERIES_JOIN(width, suffix)
#define SB_SERIES_NAME(suffix) SB_SERIES_NAME_OF(SB_SERIES_WIDTH, suffix)
#if !defined(SB_MODULE_f16)
SERIES_KERNEL(bf16, "bf16", SB_CUDA_BF16)
#endif
#if !defined(SB_MODULE_bf16)
SERIES_KERNEL(f16, "f16", SB_CUDA_F16)
#endif
#endif
