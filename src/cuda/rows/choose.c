/* ChooseTokens, onto the slots themselves where nobody else needs them any more, and PendingTokens. */
#include "ops/choose.h"

#include <stdatomic.h>

#include "cuda/common/elements.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/list.h"
#include "cuda/moving/tensor_scatter.h"
#include "cuda/rows/choose.h"
#include "cuda/rows/choose_parameters.h"

static int in_place_choose(const sb_kernel_query *query) {
    return SB_CHOOSE_SLOTS;
}

static sb_status make_room(sb_call *call, int64_t choices, int64_t each, size_t size, sb_cuda_work *work,
                           void **memory) {
    size_t bytes = size;
    if (__builtin_mul_overflow(bytes, (size_t)choices, &bytes) || __builtin_mul_overflow(bytes, (size_t)each, &bytes) ||
        choices * each > INT32_MAX)
        return sb_call_fail(call, SB_ERROR_LIMIT, "%lld choices of so many tokens are too many at a time",
                            (long long)choices);
    SB_TRY(sb_call_workspace(call, bytes, memory));
    sb_cuda_work_touches(work, *memory, bytes, true);
    return SB_OK;
}

static sb_status make_parts(sb_call *call, sb_cuda_choose *p, bool clusters, sb_cuda_work *work) {
    const size_t pair_bytes = SB_CUDA_CHOOSE_PAIRS * sizeof *p->pairs;
    void *pairs, *noisy = NULL, *row = NULL;
    bool cuts = p->real_columns != SB_CHOOSE_COLUMNS_OF_ALL;
    if (cuts && !clusters)
        SB_TRY(make_room(call, p->choices, p->vocabulary, sizeof *p->noisy, work, &noisy));
    if (cuts && !clusters && p->arrived != NULL)
        SB_TRY(make_room(call, p->choices, 1, sizeof *p->row, work, &row));
    SB_TRY(make_room(call, p->choices, p->parts, pair_bytes + sizeof *p->part, work, &pairs));
    p->noisy = noisy;
    p->row = row;
    p->pairs = pairs;
    p->part = (sb_cuda_choose_part *)(void *)((char *)pairs + (size_t)(p->choices * p->parts) * pair_bytes);
    return SB_OK;
}

static sb_status launch_blocks(sb_call *call, const char *kernel, int64_t blocks, sb_cuda_work *work) {
    work->kernel = kernel;
    work->blocks = (unsigned)blocks;
    return sb_cuda_call_launch(call, work);
}

/* Of choices that may leave tokens out, the launches behind. */
static sb_status launch_steps(sb_call *call, sb_cuda_choose *p, sb_cuda_work *work) {
    int64_t blocks = p->choices * p->parts;
    for (p->step = 0; p->step < SB_CUDA_CHOOSE_STEPS; p->step++)
        SB_TRY(launch_blocks(call, "sb_cuda_choose_step", blocks, work));
    return launch_blocks(call, "sb_cuda_choose_kept", blocks, work);
}

/* ---- by clusters ---- */

static _Atomic bool without_clusters;

void sb_cuda_choose_force_steps(bool are_forced) {
    atomic_store(&without_clusters, are_forced);
}

/* Whether a cluster chooses from each row: where tokens may be left out, and rows are not so many that one block for each keeps the device
 * busy. */
static bool takes_clusters(const sb_call *call, const sb_cuda_choose *p) {
    return p->real_columns != SB_CHOOSE_COLUMNS_OF_ALL && p->choices <= SB_CUDA_ARRIVALS &&
           sb_gemm16_has_hopper_code(sb_cuda_call_device(call)) && !atomic_load(&without_clusters);
}

static sb_status launch_clusters(sb_call *call, sb_cuda_choose *p, sb_cuda_work *work) {
    work->module = "choose_cluster";
    work->threads = SB_CUDA_CHOOSE_CLUSTER_THREADS;
    work->shared_bytes = sizeof(sb_cuda_choose_memory);
    return launch_blocks(call, "sb_cuda_choose_cluster", p->choices * SB_CUDA_CHOOSE_BLOCKS, work);
}

static sb_status give(sb_call *call, sb_cuda_choose *p, sb_cuda_work *work) {
    uint32_t *arrivals = sb_cuda_call_queue(call)->arrivals;
    const bool clusters = takes_clusters(call, p);
    if (arrivals != NULL && p->choices <= SB_CUDA_ARRIVALS && !clusters) {
        p->arrived = arrivals;
        sb_cuda_work_touches(work, arrivals, SB_CUDA_ARRIVALS * sizeof *arrivals, true);
    }
    SB_TRY(make_parts(call, p, clusters, work));
    work->module = "choose";
    work->parameters = p;
    work->parameter_bytes = sizeof *p;
    work->threads = SB_CUDA_CHOOSE_THREADS;
    SB_TRY(launch_blocks(call, "sb_cuda_choose_tokens", p->choices * p->parts, work));
    if (clusters)
        return launch_clusters(call, p, work);
    if (p->arrived == NULL)
        return launch_blocks(call, "sb_cuda_choose_of_parts", p->choices, work);
    return p->row != NULL ? launch_steps(call, p, work) : SB_OK;
}

static sb_status choose(sb_call *call, const sb_tensor *logits, const sb_tensor *integers, const sb_tensor *reals,
                        const sb_tensor *slots, const sb_tensor *chosen) {
    int64_t vocabulary = logits->dims[logits->rank - 1];
    sb_cuda_choose p = {.logits = (const float *)(const void *)logits->data,
                        .rows = sb_tensor_elements(logits) / vocabulary,
                        .vocabulary = vocabulary,
                        .choices = integers->dims[0],
                        .parts = (vocabulary + SB_CUDA_CHOOSE_TOKENS - 1) / SB_CUDA_CHOOSE_TOKENS,
                        .scale = sb_logp_scale_of(1.0f),
                        .integers = (const int64_t *)(const void *)integers->data,
                        .reals = (const float *)(const void *)reals->data,
                        .real_columns = reals->dims[1],
                        .slots = (int64_t *)(void *)slots->data,
                        .slot_count = slots->dims[0],
                        .slot_step = slots->strides[0],
                        .chosen = (double *)(void *)chosen->data};
    sb_cuda_work work = {0};
    sb_cuda_work_reads(&work, logits);
    sb_cuda_work_reads(&work, integers);
    sb_cuda_work_reads(&work, reals);
    sb_cuda_work_writes(&work, slots);
    sb_cuda_work_writes(&work, chosen);
    return give(call, &p, &work);
}

static sb_status launch_choose(sb_call *call) {
    sb_tensor *slots, *chosen, *packed[SB_CHOOSE_INPUTS] = {NULL};
    sb_status status = SB_OK;
    SB_TRY(sb_choose_check(call));
    SB_TRY(sb_call_output(call, SB_CHOOSE_SLOTS, &slots));
    SB_TRY(sb_call_output(call, SB_CHOOSE_CHOSEN, &chosen));
    SB_TRY(sb_cuda_scatter_start(call, sb_call_input(call, SB_CHOOSE_SLOTS), slots));
    if (sb_tensor_elements(chosen) == 0)
        return SB_OK;
    for (int i = SB_CHOOSE_LOGITS; i < SB_CHOOSE_INPUTS && status == SB_OK; i++)
        status = sb_cuda_call_packed(call, i, &packed[i]);
    if (status == SB_OK)
        status =
            choose(call, packed[SB_CHOOSE_LOGITS], packed[SB_CHOOSE_INTEGERS], packed[SB_CHOOSE_REALS], slots, chosen);
    for (int i = SB_CHOOSE_LOGITS; i < SB_CHOOSE_INPUTS; i++)
        sb_tensor_release(packed[i]);
    return status;
}

static sb_status launch_pending(sb_call *call) {
    const sb_tensor *slots = sb_call_input(call, 1);
    sb_tensor *to, *tokens;
    if (slots->rank != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "slots have rank %d where 1 is expected", slots->rank);
    SB_TRY(sb_call_output(call, 0, &to));
    SB_TRY(sb_cuda_call_packed(call, 0, &tokens));
    sb_cuda_pending p = {.tokens = (const int64_t *)(const void *)tokens->data,
                         .slots = (const int64_t *)(const void *)slots->data,
                         .count = sb_tensor_elements(to),
                         .slot_count = slots->dims[0],
                         .slot_step = slots->strides[0],
                         .to = (int64_t *)(void *)to->data};
    sb_cuda_work work = {.parameters = &p, .parameter_bytes = sizeof p};
    sb_cuda_work_reads(&work, tokens);
    sb_cuda_work_reads(&work, slots);
    sb_cuda_work_writes(&work, to);
    sb_status status = sb_cuda_launch_each(call, &work, "choose", "sb_cuda_pending_tokens", NULL, p.count);
    sb_tensor_release(tokens);
    return status;
}

const sb_kernel sb_cuda_kernels_choose[] = {
    {.op = "ChooseTokens",
     .domain = "samebit",
     .name = "choose-tokens",
     .supports = sb_cuda_supports_all,
     .in_place = in_place_choose,
     .launch = launch_choose},
    {.op = "PendingTokens",
     .domain = "samebit",
     .name = "pending-tokens",
     .supports = sb_cuda_supports_all,
     .launch = launch_pending},
    {0},
};
