/* Operands of products of 16 bits that are copied ahead of them. The copy engine fetches matrices whose rows, or columns, begin at
 * multiples of 16 bytes. Constants lie so (sb_kernel.wants_gaps); what a run computes need not: attention over 197 tokens has rows
 * of 197 weights. Such a product is left to the general schedules, unless one of Hopper's and the copies take clearly less. */
#include <string.h>

#include "cuda/common/call.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/contraction/matmul.h"

/* Of an H200: a launch in a recorded run, in microseconds, and the bytes that a copy reads or writes in one. */
#define COPY_TIME 2.5
#define COPY_RATE 3e6
/* Of what the general schedule is reckoned to take, what the others and the copies may: reckonings are off by as much. */
#define CLEARLY_LESS 0.8
/* Stands for memory in which matrices begin where the copy engine can fetch them. */
#define ALIGNED ((const char *)(uintptr_t)256)

/* The matrices of A or B: batches, lines (A's rows, B's columns), k. */
typedef struct operand {
    sb_tensor from, to; /* as they lie, and the copy */
    size_t bytes;       /* of the copy; 0: there is none */
} operand;

static sb_tensor matrices_of(const sb_cuda_product *product, bool is_b) {
    const sb_matmul_geometry *g = &product->geometry;
    const int64_t *steps = is_b ? g->b_batch_strides : g->a_batch_strides;
    const int rank = g->batch_rank;
    sb_tensor matrices = {
        .dtype = product->dtype, .rank = rank + 2, .data = (char *)(uintptr_t)(is_b ? product->b : product->a)};
    for (int d = 0; d < rank; d++) {
        matrices.dims[d] = steps[d] != 0 ? g->batch_dims[d] : 1;
        matrices.strides[d] = steps[d];
    }
    matrices.dims[rank] = is_b ? g->n : g->m;
    matrices.strides[rank] = is_b ? g->b_column_stride : g->a_row_stride;
    matrices.dims[rank + 1] = g->k;
    matrices.strides[rank + 1] = is_b ? g->b_k_stride : g->a_k_stride;
    return matrices;
}

/* The copy: lines or k stay side by side, and the other ones begin at multiples of 16 bytes. */
static void find(const sb_cuda_product *product, bool is_b, operand *operand) {
    sb_tensor *to = &operand->to;
    *to = operand->from = matrices_of(product, is_b);
    const int k = to->rank - 1, line = to->rank - 2, inner = to->strides[k] != 1 && to->strides[line] == 1 ? line : k;
    const int outer = inner == k ? line : k;
    int64_t step = sb_gemm_divide_up(to->dims[inner], 8) * 8;
    to->strides[inner] = 1;
    to->strides[outer] = step;
    step *= to->dims[outer];
    for (int d = to->rank - 3; d >= 0; d--) {
        to->strides[d] = to->dims[d] != 1 ? step : 0;
        step *= to->dims[d];
    }
    operand->bytes = (size_t)step * sb_dtype_size(to->dtype);
}

/* Has the product read the copy, which begins at `data`. */
static void use(const operand *operand, bool is_b, const char *data, sb_cuda_product *product) {
    sb_matmul_geometry *g = &product->geometry;
    const int64_t *strides = operand->to.strides;
    memcpy(is_b ? g->b_batch_strides : g->a_batch_strides, strides, (size_t)g->batch_rank * sizeof *strides);
    *(is_b ? &g->b_column_stride : &g->a_row_stride) = strides[g->batch_rank];
    *(is_b ? &g->b_k_stride : &g->a_k_stride) = strides[g->batch_rank + 1];
    *(is_b ? &product->b : &product->a) = data;
}

static double copy_time(const operand *operand) {
    double read = (double)sb_tensor_elements(&operand->from) * (double)sb_dtype_size(operand->from.dtype);
    return COPY_TIME + (read + (double)operand->bytes) / COPY_RATE;
}

/* Whether the copies are worth while. */
static sb_status weigh(const sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                       const operand operands[2], const sb_gemm_plan *plan, bool *worthwhile) {
    sb_cuda_product moved = *product;
    sb_cuda_product16 other;
    bool hopper;
    double copies = 0, general = sb_cuda_product_16_time(call, product, plan, &hopper);
    for (int b = 0; b < 2; b++) {
        if (operands[b].bytes == 0)
            continue;
        use(&operands[b], b != 0, ALIGNED, &moved);
        copies += copy_time(&operands[b]);
    }
    SB_TRY(sb_cuda_product_16_fill(&moved, used, &other, call->error));
    double quick = sb_cuda_product_16_time(call, product, &other.plan, &hopper);
    *worthwhile = hopper && quick + copies < CLEARLY_LESS * general;
    return SB_OK;
}

static sb_status copy(sb_call *call, operand *operand, bool is_b, sb_cuda_product *product) {
    void *memory;
    if (operand->bytes == 0)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, operand->bytes, &memory));
    operand->to.data = memory;
    SB_TRY(sb_call_copy(call, &operand->to, &operand->from));
    use(operand, is_b, memory, product);
    return SB_OK;
}

sb_status sb_cuda_product_16_copy(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                                  sb_cuda_product16 *to, bool *copied) {
    operand operands[2] = {{.bytes = 0}, {.bytes = 0}};
    sb_cuda_product moved = *product;
    *copied = false;
    if (product->geometry.k == 0 || !sb_gemm16_has_hopper_code(sb_cuda_call_device(call)))
        return SB_OK;
    for (int b = 0; b < 2; b++) {
        if (!sb_gemm16_can_fetch(&to->plan, b != 0))
            find(product, b != 0, &operands[b]);
    }
    if (operands[0].bytes == 0 && operands[1].bytes == 0)
        return SB_OK;
    SB_TRY(weigh(call, product, used, operands, &to->plan, copied));
    if (!*copied)
        return SB_OK;
    for (int b = 0; b < 2; b++)
        SB_TRY(copy(call, &operands[b], b != 0, &moved));
    return sb_cuda_product_16_fill(&moved, used, to, call->error);
}
