/* Attention of many rows by warpgroups (attention16_prefill.cuh): what it is for, the maps of its tensors, and its launches. */
#include <stdio.h>

#include "cuda/attention/attention16_maps.h"
#include "cuda/attention/attention16_prefill.h"
#include "cuda/attention/attention16_prefill_parameters.h"

/* Lines that a copy from pages brings at least. */
#define LEAST_LINES 16

int sb_cuda_attention16_prefill_rows(const sb_attention_work *a) {
    return SB_CUDA_ATTENTION16_PREFILL_ROWS(sb_attention16_width(a));
}

const char *sb_cuda_attention16_refuses_prefill(const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const sb_cuda_attention *p = &made->parameters;
    const bool has_pages = a->pages.table != NULL;
    const int64_t samples = sb_attention16_key_samples(a), rows = sb_attention16_key_rows(a);
    if (has_pages && rows % LEAST_LINES != 0)
        return "pages do not have a multiple of 16 keys";
    if (has_pages && sb_attention16_width(a) > 128)
        return "heads of more than 128 elements have keys on pages";
    const char *why = sb_attention16_refuses_copies(a);
    if (why != NULL)
        return why;
    if (p->group > sb_cuda_attention16_prefill_rows(a))
        return "more than 128 heads share keys, or 64 of more than 128 elements";
    if (!sb_attention16_has_steps(&p->q, a->batch, a->heads, a->queries) ||
        !sb_attention16_has_steps(&p->k, samples, a->key_heads, rows) ||
        !sb_attention16_has_steps(&p->v, samples, a->key_heads, rows))
        return "queries, keys or values are repeated or lie backwards";
    if ((uintptr_t)p->y.data % 16 != 0 || !sb_attention16_has_steps(&p->y, a->batch, a->heads, a->queries))
        return "the output does not lie in aligned pieces of 8 elements";
    if ((a->heads > 1 && p->y.head > INT32_MAX) || (a->queries > 1 && p->y.row > INT32_MAX))
        return "2^31 elements or more of the output lie from a head or a query to the next";
    if (samples > INT32_MAX || rows > INT32_MAX || a->heads > INT32_MAX || a->queries > INT32_MAX)
        return "there are 2^31 samples, pages, keys of a page, heads or queries";
    return NULL;
}

/* ---- maps ---- */

/* Lines that lie in one piece wherever a multiple of them begins, of those of a block: all, or where there are pages a power of two. */
static int find_lines(const sb_attention_work *a) {
    int lines = SB_ATTENTION_BLOCK;
    while (a->pages.table != NULL && a->pages.rows % lines != 0)
        lines /= 2;
    return lines;
}

/* Maps of pages that lie one behind the other. */
static sb_status encode_together(sb_cuda_device *device, const sb_attention_work *a, sb_cuda_attention16_prefill *p,
                                 sb_error *error) {
    const sb_cuda_attention *attention = &p->work.attention;
    const int64_t lines = a->pages.pages * a->pages.rows;
    const int64_t keys[] = {a->width, a->key_heads, lines, 1}, values[] = {a->value_width, a->key_heads, lines, 1};
    p->are_together = a->pages.table != NULL && p->copies > 1 && a->k.batch == a->pages.rows * a->k.row &&
                      a->v.batch == a->pages.rows * a->v.row;
    if (!p->are_together)
        return SB_OK;
    SB_TRY(sb_attention16_map_rows(device, a->dtype, &attention->k, keys, SB_ATTENTION_BLOCK, &p->k_together, error));
    return sb_attention16_map_rows(device, a->dtype, &attention->v, values, SB_ATTENTION_BLOCK, &p->v_together, error);
}

static sb_status encode_all(sb_cuda_device *device, const sb_attention_work *a, sb_cuda_attention16_prefill *p,
                            sb_error *error) {
    const sb_cuda_attention *attention = &p->work.attention;
    const int64_t samples = sb_attention16_key_samples(a), rows = sb_attention16_key_rows(a);
    const int64_t queries[] = {a->width, a->heads, a->queries, a->batch};
    const int64_t keys[] = {a->width, a->key_heads, rows, samples};
    const int64_t values[] = {a->value_width, a->key_heads, rows, samples};
    const int lines = find_lines(a);
    p->copies = SB_ATTENTION_BLOCK / lines;
    p->by_page = sb_cuda_divisor_of((uint32_t)rows);
    SB_TRY(sb_attention16_map_heads(device, a->dtype, &attention->q, queries, (int)attention->group, p->work.queries,
                                    &p->q, error));
    SB_TRY(sb_attention16_map_rows(device, a->dtype, &attention->k, keys, lines, &p->k, error));
    SB_TRY(sb_attention16_map_rows(device, a->dtype, &attention->v, values, lines, &p->v, error));
    return encode_together(device, a, p, error);
}

/* ---- launches ---- */

static int64_t up(int64_t number, int64_t unit) {
    return (number + unit - 1) / unit;
}

/* Tiles of rows of a head of keys: with pages as many as there can be, whatever rows each sequence has. */
static int64_t most_row_tiles(const sb_attention_work *a, int64_t queries) {
    const int64_t sequences = a->pages.sequences < a->queries ? a->pages.sequences : a->queries;
    return a->pages.table != NULL ? a->queries / queries + sequences : up(a->queries, queries);
}

/* Tiles, and room for a word of each of their warps. */
static sb_status describe_tiles(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                                sb_cuda_attention16_tiles *tiles) {
    const sb_attention_work *a = &made->attention;
    const int64_t group = made->parameters.group;
    void *memory;
    size_t bytes;
    tiles->attention = made->parameters;
    tiles->attention.left = sb_attention16_held(made->parameters.left);
    tiles->attention.right = sb_attention16_held(made->parameters.right);
    tiles->queries = (int32_t)(sb_cuda_attention16_prefill_rows(a) / group);
    tiles->rows = (int32_t)group * tiles->queries;
    tiles->head_bytes = a->heads > 1 ? (uint32_t)tiles->attention.y.head * 2 : 0;
    tiles->query_bytes = a->queries > 1 ? (uint32_t)tiles->attention.y.row * 2 : 0;
    tiles->by_group = sb_cuda_divisor_of((uint32_t)group);
    tiles->by_key_heads = sb_cuda_divisor_of((uint32_t)a->key_heads);
    tiles->by_batch = sb_cuda_divisor_of((uint32_t)a->batch);
    tiles->row_warps = sb_cuda_attention16_prefill_rows(a) / 16;
    tiles->attention.row_tiles = most_row_tiles(a, tiles->queries);
    if (__builtin_mul_overflow(a->batch * a->key_heads, tiles->attention.row_tiles, &tiles->tiles) ||
        tiles->tiles > INT32_MAX / SB_CUDA_ATTENTION16_PREFILL_WARPS ||
        __builtin_mul_overflow((size_t)tiles->tiles, SB_CUDA_ATTENTION16_PREFILL_WARPS * sizeof *tiles->again, &bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "attention has 2^28 tiles of rows or more");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    tiles->again = memory;
    sb_cuda_work_touches(work, memory, bytes, true);
    return SB_OK;
}

static sb_status launch_tiles(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                              const sb_cuda_attention16_tiles *tiles) {
    sb_cuda_device *device = sb_cuda_call_device(call);
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention16_prefill given = {.work = *tiles};
    char module[48], kernel[64];
    const int width = sb_attention16_width(a);
    SB_TRY(encode_all(device, a, &given, call->error));
    snprintf(module, sizeof module, "attention16_prefill%s_%d_%s", a->pages.table != NULL ? "_paged" : "", width,
             sb_dtype_name(a->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s", module);
    work->module = module;
    work->kernel = kernel;
    work->parameters = &given;
    work->parameter_bytes = sizeof given;
    work->threads = SB_CUDA_ATTENTION16_PREFILL_THREADS;
    work->blocks = (unsigned)(tiles->tiles < device->multiprocessors ? tiles->tiles : device->multiprocessors);
    work->shared_bytes = (unsigned)SB_CUDA_ATTENTION16_PREFILL_SHARED(width);
    return sb_cuda_call_launch(call, work);
}

/* Words that a block of threads looks at: it has as many threads, but where some are set they are better shared out among more of them. */
enum { AGAIN_WORDS = 32 };

/* The rows that only the definition can compute, which only the device knows. */
static sb_status launch_again(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                              const sb_cuda_attention16_tiles *tiles) {
    char module[48], kernel[64];
    snprintf(module, sizeof module, "attention16_again_%s", sb_dtype_name(made->attention.dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s", module);
    work->module = module;
    work->kernel = kernel;
    work->parameters = tiles;
    work->parameter_bytes = sizeof *tiles;
    work->threads = SB_CUDA_ATTENTION16_THREADS;
    work->blocks = sb_cuda_call_blocks(call, up(tiles->tiles * SB_CUDA_ATTENTION16_PREFILL_WARPS, AGAIN_WORDS));
    work->shared_bytes = 0;
    return sb_cuda_call_launch(call, work);
}

sb_status sb_cuda_attention16_prefill_run(sb_call *call, const sb_cuda_attention_call *made) {
    sb_cuda_work work = made->work;
    sb_cuda_attention16_tiles tiles = {0};
    SB_TRY(describe_tiles(call, made, &work, &tiles));
    SB_TRY(launch_tiles(call, made, &work, &tiles));
    return launch_again(call, made, &work, &tiles);
}
