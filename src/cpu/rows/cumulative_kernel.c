/* CumSum and CumProd: outer blocks of lines on all workers. Lines along the last axis are turned, a block of them at a time, so that they
 * lie side by side; f16 and bf16 run in f32 and are rounded once each. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/cumulative.h"
#include "ops/convert_loops.h"
#include "ops/moving.h"

/* Lines along the last axis that are turned together. */
#define TURNED 16

static bool supports_cumulative(const sb_kernel_query *query, char *why) {
    if (query->inputs[0]->dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of %s", query->node->op->name);
    return false;
}

/* Gapless: [outer][count][inner]. */
typedef struct running {
    const sb_cumulative_params *params;
    sb_cumulative_run *run;
    sb_walk_row *widen, *round; /* NULL: elements are what is computed with */
    int64_t outer, count, inner, size, wide;
    const char *x;
    char *y;
} running;

static int type_of(sb_dtype dtype) {
    if (dtype == SB_F64)
        return SB_CUMULATIVE_F64;
    if (sb_dtype_is_float(dtype))
        return SB_CUMULATIVE_F32;
    const size_t size = sb_dtype_size(dtype);
    return size == 1   ? SB_CUMULATIVE_U8
           : size == 2 ? SB_CUMULATIVE_U16
           : size == 4 ? SB_CUMULATIVE_U32
                       : SB_CUMULATIVE_U64;
}

static void convert(sb_walk_row *loop, int64_t count, char *to, int64_t to_size, const char *from, int64_t from_size) {
    loop(NULL, count, (char *const[]){to, (char *)(uintptr_t)from}, (const int64_t[]){to_size, from_size});
}

static void run_lines(const running *work, int64_t inner, const char *x, char *y) {
    const sb_cumulative_lines lines = {work->params, work->count, inner, x, y};
    work->run(&lines);
}

/* A block of lines that lie side by side. */
static void run_block(void *context, int64_t index, void *workspace) {
    const running *work = context;
    const int64_t elements = work->count * work->inner;
    const char *x = work->x + index * elements * work->size;
    char *y = work->y + index * elements * work->size;
    if (work->widen == NULL) {
        run_lines(work, work->inner, x, y);
        return;
    }
    convert(work->widen, elements, workspace, work->wide, x, work->size);
    run_lines(work, work->inner, workspace, workspace);
    convert(work->round, elements, y, work->size, workspace, work->wide);
}

/* `size` is a constant. */
static inline void turn(int64_t size, int64_t rows, int64_t columns, const char *from, int64_t from_row, char *to,
                        int64_t to_row) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + c * to_row + r * size, from + r * from_row + c * size, (size_t)size);
    }
}

static void turn_sized(int64_t size, int64_t rows, int64_t columns, const char *from, int64_t from_row, char *to,
                       int64_t to_row) {
    if (size == 8)
        turn(8, rows, columns, from, from_row, to, to_row);
    else if (size == 4)
        turn(4, rows, columns, from, from_row, to, to_row);
    else
        turn(size, rows, columns, from, from_row, to, to_row);
}

/* Lines of the last axis: TURNED of them, or those that are left. */
static void run_turned(void *context, int64_t index, void *workspace) {
    const running *work = context;
    const int64_t first = index * TURNED, left = work->outer - first, lines = left < TURNED ? left : TURNED;
    const int64_t wide = work->wide, row = work->count * wide, block = work->count * TURNED * wide;
    const char *x = work->x + first * work->count * work->size;
    char *y = work->y + first * work->count * work->size, *turned = workspace, *straight = turned + block;
    const char *from = x;
    if (work->widen != NULL) {
        convert(work->widen, lines * work->count, straight, wide, x, work->size);
        from = straight;
    }
    turn_sized(wide, lines, work->count, from, row, turned, lines * wide);
    run_lines(work, lines, turned, turned);
    turn_sized(wide, work->count, lines, turned, lines * wide, work->round != NULL ? straight : y, row);
    if (work->round != NULL)
        convert(work->round, lines * work->count, y, work->size, straight, wide);
}

static sb_cumulative_run *loop_of(sb_isa isa, bool product, sb_dtype dtype) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_cumulative_loops_avx512[product][type_of(dtype)];
    if (isa == SB_ISA_AVX2)
        return sb_cumulative_loops_avx2[product][type_of(dtype)];
#endif
    (void)isa;
    return sb_cumulative_loops_scalar[product][type_of(dtype)];
}

static sb_status run_all(sb_call *call, const sb_tensor *x, sb_tensor *y, int axis) {
    const bool narrow = x->dtype == SB_F16 || x->dtype == SB_BF16;
    running work = {.params = call->node->params,
                    .run = loop_of(call->isa, sb_node_is(call->node, "CumProd"), x->dtype),
                    .outer = sb_move_product(x->dims, 0, axis),
                    .count = x->dims[axis],
                    .inner = sb_move_product(x->dims, axis + 1, x->rank),
                    .size = (int64_t)sb_dtype_size(x->dtype),
                    .x = x->data,
                    .y = y->data};
    work.wide = narrow ? (int64_t)sizeof(float) : work.size;
    if (narrow) {
        work.widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
        work.round = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
    }
    if (work.inner == 1)
        return sb_pieces_run(call, (work.outer + TURNED - 1) / TURNED, (size_t)(2 * work.count * TURNED * work.wide),
                             run_turned, &work);
    return sb_pieces_run(call, work.outer, narrow ? (size_t)(work.count * work.inner * work.wide) : 0, run_block,
                         &work);
}

static sb_status launch_cumulative(sb_call *call) {
    sb_tensor *x, *y;
    uint32_t inner;
    SB_TRY(sb_cumulative_inner(call, &inner));
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    SB_TRY(sb_call_contiguous(call, 0, &x));
    sb_status status = run_all(call, x, y, __builtin_ctz(inner));
    sb_tensor_release(x);
    return status;
}

#define CUMULATIVE_KERNEL(op_name)                                                                                     \
    { .op = op_name, .name = "cumulative", .supports = supports_cumulative, .launch = launch_cumulative }

const sb_kernel sb_cpu_kernels_cumulative[] = {CUMULATIVE_KERNEL("CumSum"), CUMULATIVE_KERNEL("CumProd"), {0}};
