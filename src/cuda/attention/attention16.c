/* Attention by tensor cores: what it is for, and how rows are shared out. */
#include <stdio.h>

#include "cuda/attention/attention.h"
#include "cuda/contraction/gemm16_conv.h"
#include "ops/attention_values.h"

/* Whether the device reads rows of it in pieces of 16 bytes. */
static bool is_regular(const sb_cuda_attention_array *array, int64_t width) {
    return array->data == NULL || ((width <= 1 || array->column == 1) && array->row % 8 == 0 && array->head % 8 == 0 &&
                                   array->batch % 8 == 0 && (uintptr_t)array->data % 16 == 0);
}

/* Why tensor cores do not compute it; NULL: they do. */
static const char *obstacle(const sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const sb_cuda_attention *p = &made->parameters;
    if (a->dtype != SB_F16 && a->dtype != SB_BF16)
        return "only f16 and bf16 are products for tensor cores";
    if (a->wide)
        return "the softmax is computed in f64";
    if (a->given.data != NULL)
        return "a graph makes the scores";
    if (a->scores.data != NULL && a->stage == SB_ATTENTION_PROBABILITY)
        return "probabilities are given out";
    if (a->width % 8 != 0 || a->value_width % 8 != 0 || a->width > 128 || a->value_width > 128)
        return "widths of heads are not multiples of 8 up to 128";
    if (!is_regular(&p->q, a->width) || !is_regular(&p->k, a->width) || !is_regular(&p->past_k, a->width) ||
        !is_regular(&p->v, a->value_width) || !is_regular(&p->past_v, a->value_width))
        return "queries, keys or values do not lie in aligned pieces of 8 elements";
    if (p->y.column != 1 || p->y.row % 2 != 0 || p->y.head % 2 != 0 || p->y.batch % 2 != 0 ||
        (uintptr_t)p->y.data % 4 != 0)
        return "the output does not lie in rows";
    if (!sb_gemm16_has_hopper_code(sb_cuda_call_device(call)))
        return "the device has no tensor cores of Hopper, or the build no kernels for them";
    return NULL;
}

static int tile_width(int64_t width) {
    return width <= 64 ? 64 : 128;
}

/* Blocks of threads that a device wants, so that splits are not worth their folding. */
#define ENOUGH_BLOCKS 264

static sb_status launch_one(sb_call *call, sb_cuda_work *work, const sb_cuda_attention *parameters, const char *module,
                            const char *kernel, int64_t blocks) {
    work->module = module;
    work->kernel = kernel;
    work->parameters = parameters;
    work->parameter_bytes = sizeof *parameters;
    work->threads = SB_CUDA_ATTENTION16_THREADS;
    if (blocks > INT32_MAX)
        return sb_call_fail(call, SB_ERROR_UNSUPPORTED, "%lld tiles of rows are too many for a GPU's launch",
                            (long long)blocks);
    work->blocks = (unsigned)blocks;
    return sb_cuda_call_launch(call, work);
}

sb_status sb_cuda_attention16_run(sb_call *call, sb_cuda_attention_call *made, bool *given) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention *p = &made->parameters;
    const char *type = sb_dtype_name(a->dtype);
    char module[32], kernel[64];
    void *memory;
    call->way = (sb_call_way){"rows one by one", obstacle(call, made)};
    *given = call->way.why == NULL;
    if (!*given)
        return SB_OK;
    int64_t group = a->heads / a->key_heads, splits = (a->keys + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    int width = tile_width(a->width > a->value_width ? a->width : a->value_width);
    p->row_tiles = (group * a->queries + SB_CUDA_ATTENTION16_ROWS - 1) / SB_CUDA_ATTENTION16_ROWS;
    int64_t blocks = a->batch * a->key_heads * p->row_tiles;
    sb_cuda_work work = made->work;
    bool is_split = splits > 1 && blocks < ENOUGH_BLOCKS;
    if (is_split) {
        size_t bytes = (size_t)(a->batch * a->heads * a->queries * splits) *
                       (size_t)SB_CUDA_ATTENTION_PARTIAL(a->value_width) * sizeof(float);
        SB_TRY(sb_call_workspace(call, bytes, &memory));
        p->splits = splits;
        p->partial = memory;
        sb_cuda_work_touches(&work, memory, bytes, true);
        blocks *= splits;
    }
    call->way.name = is_split ? "tensor cores, splits apart" : "tensor cores";
    bool is_general = p->mask_kind != SB_CUDA_ATTENTION_NO_MASK || !sb_attention_is_moderate(a->scale) || a->cap != 0;
    snprintf(module, sizeof module, "attention16_%s", type);
    snprintf(kernel, sizeof kernel, "sb_cuda_attention16_%s_%d%s", type, width, is_general ? "_masked" : "");
    work.shared_bytes = (unsigned)SB_CUDA_ATTENTION16_SHARED(width);
    SB_TRY(launch_one(call, &work, p, module, kernel, blocks));
    if (!is_split)
        return SB_OK;
    snprintf(kernel, sizeof kernel, "sb_cuda_attention16_fold_%s", type);
    work.shared_bytes = 0;
    return launch_one(call, &work, p, module, kernel, a->batch * a->heads * a->queries);
}
