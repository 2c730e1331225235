/* Attention of few rows by TMA (attention16_stream.cuh): what it is for, the maps of its tensors, and its launch. */
#include "cuda/attention/attention16_stream.h"

#include <stdio.h>

#include "cuda/attention/attention16_maps.h"
#include "cuda/attention/attention16_stream_parameters.h"
#include "ops/attention_values.h"

/* Whether rows and tiles are told apart by numbers of 32 bits. */
static bool are_few(const sb_attention_work *a) {
    int64_t tiles, splits = (a->keys + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    return !__builtin_mul_overflow(a->batch * a->heads, a->queries, &tiles) &&
           !__builtin_mul_overflow(tiles, splits, &tiles) && tiles < INT32_MAX - SB_CUDA_ATTENTION16_STREAM_ROWS;
}

/* Words in which a work's splits count themselves, one for each tile; more with pages, where only the device knows the tiles. */
static int64_t count_words(const sb_attention_work *a, const sb_cuda_attention *p) {
    return a->pages.table != NULL ? a->heads * p->part_rows : a->batch * a->key_heads * p->row_tiles;
}

bool sb_cuda_attention16_stream_has_words(const sb_call *call, const sb_cuda_attention_call *made,
                                          const sb_cuda_attention *p) {
    return sb_cuda_call_queue(call)->arrivals != NULL && count_words(&made->attention, p) <= SB_CUDA_ARRIVALS;
}

const char *sb_cuda_attention16_refuses_stream(const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const sb_cuda_attention *p = &made->parameters;
    const int64_t samples = sb_attention16_key_samples(a), rows = sb_attention16_key_rows(a);
    if (a->pages.table != NULL && rows % SB_CUDA_ATTENTION16_STREAM_KEYS != 0)
        return "pages do not have a multiple of 16 keys";
    const char *why = sb_attention16_refuses_copies(a);
    if (why != NULL)
        return why;
    if (!sb_attention16_has_steps(&p->k, samples, a->key_heads, rows) ||
        !sb_attention16_has_steps(&p->v, samples, a->key_heads, rows))
        return "keys or values are repeated or lie backwards";
    return samples > INT32_MAX || rows > INT32_MAX || !are_few(a) ? "there are 2^31 samples, pages, rows or tiles"
                                                                  : NULL;
}

static sb_status encode_all(sb_call *call, const sb_attention_work *a, const sb_cuda_attention *p,
                            sb_cuda_attention16_stream *given) {
    sb_cuda_device *device = sb_cuda_call_device(call);
    const int64_t samples = sb_attention16_key_samples(a), rows = sb_attention16_key_rows(a);
    const int64_t keys[] = {a->width, a->key_heads, rows, samples};
    const int64_t values[] = {a->value_width, a->key_heads, rows, samples};
    given->key_bytes = (int32_t)((a->width + 63) / 64) * SB_CUDA_ATTENTION16_STREAM_KEYS * 128;
    given->value_bytes = (int32_t)((a->value_width + 63) / 64) * SB_CUDA_ATTENTION16_STREAM_KEYS * 128;
    const int once = 4 * SB_CUDA_ATTENTION16_STREAM_KEYS / given->copies;
    SB_TRY(sb_attention16_map_slices(device, a->dtype, &p->k, keys, once, &given->k, &given->key_slices, call->error));
    return sb_attention16_map_slices(device, a->dtype, &p->v, values, once, &given->v, &given->value_slices,
                                     call->error);
}

sb_status sb_cuda_attention16_stream_run(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                                         const sb_cuda_attention *p, int width, int64_t blocks, bool folds) {
    const sb_attention_work *a = &made->attention;
    /* Blocks that have a multiprocessor each get all of its memory, so that no two share one while others are idle. */
    const bool is_alone = blocks <= sb_cuda_call_device(call)->multiprocessors;
    const int most = SB_CUDA_ATTENTION16_STREAM_STAGES(width);
    sb_cuda_attention16_stream given = {.attention = *p,
                                        .stages = is_alone ? most : most / SB_CUDA_ATTENTION16_STREAM_BLOCKS(width),
                                        .by_key_heads = sb_cuda_divisor_of((uint32_t)a->key_heads),
                                        .by_batch = sb_cuda_divisor_of((uint32_t)a->batch),
                                        .by_row_tiles = sb_cuda_divisor_of((uint32_t)p->row_tiles),
                                        .by_group = sb_cuda_divisor_of((uint32_t)(a->heads / a->key_heads)),
                                        .left = sb_attention16_held(p->left),
                                        .right = sb_attention16_held(p->right),
                                        .copies = a->pages.table == NULL || a->pages.rows % 64 == 0 ? 1 : 4};
    char module[48], kernel[64];
    SB_TRY(encode_all(call, a, p, &given));
    if (folds) {
        given.arrived = sb_cuda_call_queue(call)->arrivals;
        sb_cuda_work_touches(work, given.arrived, SB_CUDA_ARRIVALS * sizeof *given.arrived, true);
    }
    snprintf(module, sizeof module, "attention16_stream_%d_%s", width, sb_dtype_name(a->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s", module);
    work->module = module;
    work->kernel = kernel;
    work->parameters = &given;
    work->parameter_bytes = sizeof given;
    work->threads = SB_CUDA_ATTENTION16_STREAM_THREADS;
    work->shared_bytes = (unsigned)SB_CUDA_ATTENTION16_STREAM_SHARED(width, given.stages);
    work->blocks = (unsigned)blocks;
    return sb_cuda_call_launch(call, work);
}
