/* The kernel of Tile: the output is written from its first byte to its last. A block of its innermost axes is made of the input, and
 * of what has just been written of it; blocks are shared out among the workers. Axis after axis over the whole output, as the definition
 * goes, rows of 256 bytes 16 KiB apart met in one set of the cache. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "ops/joins.h"

/* Bytes of a block, about; and below which waking a thread costs more than it saves. */
#define BLOCK_BYTES 4096
#define GRAIN_BYTES 131072

static bool supports_tile(const sb_kernel_query *query, char *why) {
    if (query->inputs[0]->dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of Tile");
    return false;
}

/* Gapless tensors; steps in bytes. */
typedef struct tiling {
    int rank, outer; /* axes before `outer` say which block */
    int whole;       /* from this axis on nothing is repeated */
    int64_t from_dims[SB_MAX_RANK], to_dims[SB_MAX_RANK], from_steps[SB_MAX_RANK + 1], to_steps[SB_MAX_RANK + 1];
    const char *from;
    char *to;
    int64_t block; /* bytes */
} tiling;

/* `bytes` from `to` on become repetitions of the first `once` of them: of twice as many each time, until that is a block. */
static void repeat(char *to, int64_t once, int64_t bytes) {
    for (int64_t filled = once, source = once; filled < bytes;) {
        const int64_t count = source < bytes - filled ? source : bytes - filled;
        memcpy(to + filled, to, (size_t)count);
        filled += count;
        if (source < BLOCK_BYTES)
            source = filled;
    }
}

static void fill(const tiling *work, int axis, const char *from, char *to) {
    if (axis >= work->whole) {
        memcpy(to, from, (size_t)work->to_steps[axis] * (size_t)(axis == work->rank ? 1 : work->to_dims[axis]));
        return;
    }
    const int64_t step = work->to_steps[axis], count = work->from_dims[axis];
    for (int64_t i = 0; i < count; i++)
        fill(work, axis + 1, from + i * work->from_steps[axis], to + i * step);
    repeat(to, count * step, work->to_dims[axis] * step);
}

static void fill_blocks(void *context, int64_t begin, int64_t end) {
    const tiling *work = context;
    for (int64_t block = begin; block < end; block++) {
        const char *from = work->from;
        int64_t rest = block;
        for (int d = work->outer - 1; d >= 0; d--) {
            from += rest % work->to_dims[d] % work->from_dims[d] * work->from_steps[d];
            rest /= work->to_dims[d];
        }
        fill(work, work->outer, from, work->to + block * work->block);
    }
}

static void describe(const sb_tensor *from, const sb_tensor *to, tiling *work) {
    const int rank = from->rank;
    work->rank = work->outer = work->whole = rank;
    work->from = from->data;
    work->to = to->data;
    work->from_steps[rank] = work->to_steps[rank] = work->block = (int64_t)sb_dtype_size(from->dtype);
    int64_t from_step = work->block, to_step = work->block;
    for (int d = rank - 1; d >= 0; d--) {
        work->from_dims[d] = from->dims[d];
        work->to_dims[d] = to->dims[d];
        work->from_steps[d] = from_step;
        work->to_steps[d] = to_step;
        if (work->whole == d + 1 && from->dims[d] == to->dims[d])
            work->whole = d;
        from_step *= from->dims[d];
        to_step *= to->dims[d];
        if (work->block < BLOCK_BYTES) {
            work->outer = d;
            work->block = to_step;
        }
    }
}

static sb_status launch_tile(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t dims[SB_MAX_RANK], blocks = 1;
    sb_tensor *from, *to;
    SB_TRY(sb_tile_extents(call, dims));
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, &to));
    if (sb_tensor_elements(to) == 0)
        return SB_OK;
    if (!sb_tensor_is_contiguous(to))
        return call->node->op->eval(call);
    SB_TRY(sb_call_contiguous(call, 0, &from));
    tiling work;
    describe(from, to, &work);
    for (int d = 0; d < work.outer; d++)
        blocks *= work.to_dims[d];
    sb_workers_run(call->workers, blocks, 1 + GRAIN_BYTES / work.block, fill_blocks, &work);
    sb_tensor_release(from);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_tile[] = {
    {.op = "Tile", .name = "tile", .supports = supports_tile, .finds_extents = true, .launch = launch_tile},
    {0},
};
