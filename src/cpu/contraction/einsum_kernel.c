/* Einsum of two operands in f32, f16 and bf16, which are chains of f32 and rounded once: matrix products by the tiles of MatMul, whose chains are the same. A label of one operand alone
 * that comes out is a row or a column, what both have and comes out counts products, and what does not come out is summed: from the innermost label
 * outwards as far as both operands go evenly, and what is left one sum behind the other, each going on from what the one before has come to. */
#include <stdio.h>

#include "cpu/contraction/gemm.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/widen.h"
#include "numerics/scalar.h"
#include "ops/einsum.h"
#include "ops/moving.h"

/* Some labels that all tensors go through evenly, and the steps in elements; of summed ones c is 0. */
typedef struct axis {
    int64_t extent, a, b, c;
} axis;

typedef struct axes {
    int count;
    axis axis[SB_EINSUM_LABELS];
} axes;

typedef struct product {
    sb_isa isa;
    const float *a, *b;
    float *y;
    axis rows, columns, depth; /* m, n and the innermost sum */
    axes batches, sums;        /* the others */
    int64_t batch_count;
    sb_gemm_split split;
} product;

/* Products whose matrices are smaller take longer to begin than to compute. */
#define SMALL_PRODUCT 16

static bool supports_einsum(const sb_kernel_query *query, char *why) {
    const sb_einsum_params *params = query->node->params;
    const sb_dtype dtype = query->inputs[0]->dtype;
    if (params->count == 2 && (dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16))
        return true;
    snprintf(why, SB_WHY_BYTES, "an Einsum of %d operands of %s; the kernel takes two of f32, f16 or bf16",
             params->count, sb_dtype_name(dtype));
    return false;
}

/* ---- from labels to a product ---- */

/* Appends to a list from the outermost on: it is one with the label before where all step on from it. */
static void append(axes *list, axis next) {
    if (next.extent == 1)
        return;
    axis *last = list->count > 0 ? &list->axis[list->count - 1] : NULL;
    if (last != NULL && last->a == next.a * next.extent && last->b == next.b * next.extent &&
        last->c == next.c * next.extent) {
        next.extent *= last->extent;
        *last = next;
        return;
    }
    list->axis[list->count++] = next;
}

/* Takes the largest axis out of a list, or else one of the extent 1, and puts the others with those of `batches`. */
static axis take_largest(const axes *from, axes *batches) {
    axis largest = {.extent = 1};
    int found = -1;
    for (int i = 0; i < from->count; i++) {
        if (found < 0 || from->axis[i].extent > largest.extent) {
            largest = from->axis[i];
            found = i;
        }
    }
    for (int i = 0; i < from->count; i++) {
        if (i != found)
            append(batches, from->axis[i]);
    }
    return largest;
}

/* The steps of the label `at` of the loops, of which `c` is that of the output. */
static axis axis_of(const sb_einsum_nest *loops, int at, int64_t c, bool swap) {
    return (axis){loops->dims[at], loops->steps[swap][at], loops->steps[!swap][at], c};
}

/* Whether the first operand has the output's last label alone, so that the two change places: columns are what lies side by side. */
static bool is_swapped(const sb_einsum_nest *loops) {
    for (int d = loops->outer - 1; d >= 0; d--) {
        if (loops->dims[d] > 1 && (loops->steps[0][d] == 0) != (loops->steps[1][d] == 0))
            return loops->steps[1][d] == 0;
    }
    return false;
}

static void describe(const sb_einsum_nest *loops, product *product) {
    const bool swap = is_swapped(loops);
    axes rows = {0}, columns = {0};
    int64_t steps[SB_EINSUM_LABELS], c = 1;
    for (int d = loops->outer - 1; d >= 0; d--) {
        steps[d] = c;
        c *= loops->dims[d];
    }
    product->a = (const float *)(const void *)loops->tensors[swap]->data;
    product->b = (const float *)(const void *)loops->tensors[!swap]->data;
    product->batches.count = product->sums.count = 0;
    for (int d = 0; d < loops->outer; d++) {
        const axis next = axis_of(loops, d, steps[d], swap);
        append(next.b == 0 ? &rows : next.a == 0 ? &columns : &product->batches, next);
    }
    for (int d = loops->outer; d < loops->outer + loops->inner; d++)
        append(&product->sums, axis_of(loops, d, 0, swap));
    product->rows = take_largest(&rows, &product->batches);
    product->columns = take_largest(&columns, &product->batches);
    product->depth = (axis){.extent = 1};
    if (product->sums.count > 0)
        product->depth = product->sums.axis[--product->sums.count];
    for (int i = 0; i < product->sums.count; i++) {
        if (product->sums.axis[i].extent == 0) /* nothing is summed */
            product->depth = product->sums.axis[i];
    }
    if (product->depth.extent == 0)
        product->sums.count = 0;
    product->batch_count = 1;
    for (int i = 0; i < product->batches.count; i++)
        product->batch_count *= product->batches.axis[i].extent;
}

/* ---- computing ---- */

/* Where the operands and the result of a product, or of one of its sums, begin: `index` counts what is in the list, row by row. */
static axis place_of(const axes *list, int64_t index) {
    axis place = {0};
    for (int i = list->count - 1; i >= 0; i--) {
        const axis *one = &list->axis[i];
        const int64_t at = index % one->extent;
        index /= one->extent;
        place.a += at * one->a;
        place.b += at * one->b;
        place.c += at * one->c;
    }
    return place;
}

static int64_t count_sums(const product *product) {
    int64_t count = 1;
    for (int i = 0; i < product->sums.count; i++)
        count *= product->sums.axis[i].extent;
    return count;
}

static sb_gemm_args args_of(const product *product, axis place) {
    return (sb_gemm_args){.m = product->rows.extent,
                          .n = product->columns.extent,
                          .k = product->depth.extent,
                          .a = product->a + place.a,
                          .a_row_stride = product->rows.a,
                          .a_column_stride = product->depth.a,
                          .b = product->b + place.b,
                          .b_row_stride = product->depth.b,
                          .b_column_stride = product->columns.b,
                          .c = product->y + place.c,
                          .c_row_stride = product->rows.c,
                          .c_column_stride = product->columns.c};
}

static void run_rectangle(void *context, int64_t index, void *workspace) {
    const product *product = context;
    const int64_t parts = product->split.m_parts * product->split.n_parts, count = count_sums(product);
    const axis place = place_of(&product->batches, index / parts);
    int64_t m0, m1, n0, n1;
    sb_gemm_split_rectangle(&product->split, index % parts, &m0, &m1, &n0, &n1);
    for (int64_t sum = 0; sum < count; sum++) {
        axis at = place_of(&product->sums, sum);
        at.a += place.a;
        at.b += place.b;
        at.c = place.c;
        sb_gemm_args args = args_of(product, at);
        args.continues = sum > 0;
        sb_gemm_f32_run(sb_gemm_f32_kernels(product->isa), &args, m0, m1, n0, n1, workspace);
    }
}

/* One chain, in the order of the definition. */
static float chain_of(const product *product, int64_t sums, const float *a, const float *b) {
    const axis *depth = &product->depth;
    float acc = 0;
    for (int64_t sum = 0; sum < sums; sum++) {
        const axis at = place_of(&product->sums, sum);
        for (int64_t k = 0; k < depth->extent; k++)
            acc = sb_fma_f32(a[at.a + k * depth->a], b[at.b + k * depth->b], acc);
    }
    return acc;
}

#define CHAINS_AT_ONCE 256

/* Small products, so many at once that a piece is worth its while. */
static void run_small(void *context, int64_t index, void *workspace) {
    const product *product = context;
    const axis *rows = &product->rows, *columns = &product->columns;
    const int64_t sums = count_sums(product), first = index * CHAINS_AT_ONCE;
    for (int64_t batch = first; batch < first + CHAINS_AT_ONCE && batch < product->batch_count; batch++) {
        const axis at = place_of(&product->batches, batch);
        for (int64_t m = 0; m < rows->extent; m++) {
            for (int64_t n = 0; n < columns->extent; n++)
                product->y[at.c + m * rows->c + n * columns->c] =
                    chain_of(product, sums, product->a + at.a + m * rows->a, product->b + at.b + n * columns->b);
        }
    }
}

static sb_status run_product(sb_call *call, product *product) {
    const int64_t m = product->rows.extent, n = product->columns.extent, threads = sb_workers_threads(call->workers);
    if (m * n < SMALL_PRODUCT && product->batch_count > 1)
        return sb_pieces_run(call, (product->batch_count + CHAINS_AT_ONCE - 1) / CHAINS_AT_ONCE, 0, run_small, product);
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(call->isa);
    const int per_product = (int)((threads + product->batch_count - 1) / product->batch_count);
    const sb_gemm_args args = args_of(product, (axis){0});
    const size_t workspace = sb_gemm_f32_workspace_bytes(kernels, &args);
    if (workspace == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    product->split = sb_gemm_f32_split(kernels, m, n, product->depth.extent, per_product);
    return sb_pieces_run(call, product->batch_count * product->split.m_parts * product->split.n_parts, workspace,
                         run_rectangle, product);
}

static sb_status launch_einsum(sb_call *call) {
    sb_tensor wide[2] = {{.rank = 0}, {.rank = 0}}, result = {.rank = 0};
    const sb_tensor *operands[2] = {&wide[0], &wide[1]};
    int64_t steps[2][SB_EINSUM_LABELS] = {{0}};
    sb_einsum_nest loops = {.operands = 2, .tensors = operands, .steps = steps};
    product product = {.isa = call->isa};
    sb_tensor *y;
    for (int i = 0; i < 2; i++)
        SB_TRY(sb_widen(call, sb_call_input(call, i), &wide[i]));
    SB_TRY(sb_einsum_plan(call, &loops));
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    SB_TRY(sb_widen_output(call, y, &result));
    describe(&loops, &product);
    product.y = (float *)(void *)result.data;
    SB_TRY(run_product(call, &product));
    sb_narrow(call, &result, y);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_einsum[] = {
    {.op = "Einsum", .domain = "", .name = "einsum", .supports = supports_einsum, .launch = launch_einsum},
    {0},
};
