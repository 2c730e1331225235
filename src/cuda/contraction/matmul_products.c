/* Products of f16 and bf16 in models, as those that programs ask for by <samebit/gemm.h>: both are the chain, what is added
 * to it, and one rounding. */
#include <string.h>

#include "cuda/common/call.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_nodes.h"
#include "cuda/contraction/matmul.h"

static sb_gemm_batches batches_of(const sb_matmul_geometry *g) {
    sb_gemm_batches batches = {.rank = g->batch_rank};
    _Static_assert(SB_GEMM_BATCH_RANK == SB_MAX_RANK - 2, "a matrix has two of a tensor's dimensions");
    size_t bytes = (size_t)g->batch_rank * sizeof(int64_t);
    memcpy(batches.dims, g->batch_dims, bytes);
    memcpy(batches.a_steps, g->a_batch_strides, bytes);
    memcpy(batches.b_steps, g->b_batch_strides, bytes);
    return batches;
}

/* What Gemm adds: to each row the same, or not. */
static void add(const sb_cuda_product *product, sb_gemm *gemm) {
    const sb_tensor *addend = product->addend;
    int64_t rows = product->geometry.m, columns = product->geometry.n, row_stride = addend->strides[0];
    sb_matrix matrix = sb_gemm16_matrix(addend->dtype, addend->data, row_stride == 0 ? 1 : rows, columns, row_stride,
                                        addend->strides[1], 0);
    if (row_stride == 0)
        gemm->bias = matrix;
    else
        gemm->residual = matrix;
}

/* The nodes behind, for the places of C that `roles` names. */
static sb_status find_nodes(sb_call *call, const sb_cuda_product *product, const sb_cuda_epilogue_role *roles,
                            sb_gemm_fused *fused) {
    sb_cuda_work work = {0};
    SB_TRY(sb_gemm16_nodes_start(call, call->state, product->y, roles, &fused->program, &work));
    _Static_assert(SB_CUDA_WORK_RANGES >= SB_CUDA_EPILOGUE_INPUTS, "a range for each input");
    fused->range_count = work.range_count;
    memcpy(fused->ranges, work.ranges, (size_t)work.range_count * sizeof *work.ranges);
    return SB_OK;
}

sb_status sb_cuda_product_16_fill(const sb_cuda_product *product, const sb_gemm_used *used, sb_cuda_product16 *to,
                                  sb_error *error) {
    const sb_matmul_geometry *g = &product->geometry;
    const sb_tensor *y = product->y;
    const int64_t columns = product->gated ? g->n / 2 : g->n;
    sb_gemm *gemm = &to->gemm;
    to->batches = batches_of(g);
    to->model = (sb_gemm_model)SB_GEMM_MODEL_DEFAULT;
    to->gemm = (sb_gemm)SB_GEMM_DEFAULT;
    to->model.batches = &to->batches;
    to->model.used = *used;
    gemm->batches = g->batches;
    gemm->a = sb_gemm16_matrix(product->dtype, product->a, g->m, g->k, g->a_row_stride, g->a_k_stride, 0);
    gemm->b = sb_gemm16_matrix(product->dtype, product->b, g->k, g->n, g->b_k_stride, g->b_column_stride, 0);
    gemm->c = sb_gemm16_matrix(y->dtype, y->data, g->m, columns, columns, 1, g->m * columns);
    if (product->gated) {
        gemm->gate = SB_GATE_STACKED;
        gemm->activation = SB_ACTIVATION_SILU;
        to->model.rounds = true; /* gates and values, as the product's own node does */
    }
    if (product->params != NULL) {
        gemm->scale = product->params->alpha;
        to->model.addend_scale = product->params->beta;
    }
    if (product->addend != NULL)
        add(product, gemm);
    if (product->bias != NULL) {
        const sb_tensor *bias = product->bias;
        gemm->bias = sb_gemm16_matrix(bias->dtype, bias->data, 1, columns, 0, bias->strides[bias->rank - 1], 0);
        to->model.rounds = true; /* what it is added to, as the product's own node does */
    }
    return sb_gemm_plan_fill(gemm, &to->model, &to->plan, error);
}

static bool has_nodes(const sb_call *call, const sb_cuda_product *product) {
    return call->state != NULL && product->bias == NULL;
}

double sb_cuda_product_16_time(const sb_call *call, const sb_cuda_product *product, const sb_gemm_plan *plan,
                               bool *hopper) {
    static const sb_gemm_fused some = {0};
    sb_gemm_plan whole = *plan;
    whole.fused = has_nodes(call, product) ? &some : NULL;
    return sb_gemm_cost(sb_cuda_call_device(call), &whole, hopper);
}

/* Fills the product, with operands copied where that is quicker. */
static sb_status prepare(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used, sb_cuda_product16 *to,
                         bool *copied) {
    SB_TRY(sb_cuda_product_16_fill(product, used, to, call->error));
    return sb_cuda_product_16_copy(call, product, used, to, copied);
}

/* The nodes behind as nodes, unless no schedule of Hopper's computes them so and a bias is all that they are: as an epilogue more
 * tiles take it, of any rows of C and an A that lies either way. */
static sb_status choose(sb_call *call, sb_cuda_product *product, const sb_gemm_used *used, sb_cuda_product16 *to,
                        bool *copied) {
    const sb_tensor *bias = product->bias;
    bool hopper;
    product->bias = NULL;
    SB_TRY(prepare(call, product, used, to, copied));
    sb_cuda_product_16_time(call, product, &to->plan, &hopper);
    if (hopper || bias == NULL)
        return SB_OK;
    product->bias = bias;
    SB_TRY(prepare(call, product, used, to, copied));
    sb_cuda_product_16_time(call, product, &to->plan, &hopper);
    if (hopper)
        return SB_OK;
    product->bias = NULL;
    return sb_cuda_product_16_fill(product, used, to, call->error);
}

sb_status sb_cuda_product_16(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                             const sb_cuda_epilogue_role *roles) {
    sb_cuda_product form = *product;
    sb_cuda_product16 to;
    sb_gemm_fused fused;
    bool copied = false;
    if (product->bias != NULL)
        SB_TRY(choose(call, &form, used, &to, &copied));
    else
        SB_TRY(prepare(call, product, used, &to, &copied));
    if (has_nodes(call, &form)) {
        SB_TRY(find_nodes(call, product, roles, &fused));
        to.plan.fused = &fused;
    }
    SB_TRY(sb_gemm_launch(sb_cuda_call_queue(call), call->target->step, &to.plan, &call->way, call->error));
    if (copied)
        call->way.why =
            "A or B is copied ahead of it, as neither its rows nor its columns begin at multiples of 16 bytes";
    return SB_OK;
}
