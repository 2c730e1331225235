/* Attention by tensor cores: what it is for, and how rows are shared out. */
#include <stdint.h>
#include <stdio.h>

#include "cuda/attention/attention.h"
#include "cuda/contraction/gemm16_conv.h"
#include "ops/attention_values.h"

/* Whether the device reads rows of it in pieces of 16 bytes, and finds them by numbers of 32 bits. */
static bool is_regular(const sb_cuda_attention_array *array, int64_t width) {
    return array->data == NULL || ((width <= 1 || array->column == 1) && array->row % 8 == 0 &&
                                   array->row <= INT32_MAX / 2 && array->row >= -(INT32_MAX / 2) &&
                                   array->head % 8 == 0 && array->batch % 8 == 0 && (uintptr_t)array->data % 16 == 0);
}

/* Rows that share keys. */
static int64_t group_rows(const sb_attention_work *a) {
    return a->heads / a->key_heads * a->queries;
}

/* Why tensor cores do not compute it; NULL: they do. */
static const char *obstacle(const sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const sb_cuda_attention *p = &made->parameters;
    if (a->dtype != SB_F16 && a->dtype != SB_BF16)
        return "only f16 and bf16 are products for tensor cores";
    if (a->wide)
        return "the softmax is computed in f64";
    if (a->scores.data != NULL && a->stage == SB_ATTENTION_PROBABILITY)
        return "probabilities are given out";
    if (a->width % 8 != 0 || a->value_width % 8 != 0 || a->width > 256 || a->value_width > 256)
        return "widths of heads are not multiples of 8 up to 256";
    if (a->width == 0 || a->keys == 0)
        return "there is nothing to multiply";
    if (a->pages.table != NULL)
        return "keys lie on pages";
    if (a->keys > INT32_MAX - SB_ATTENTION_SPLIT)
        return "there are 2^31 keys or more";
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

/* Blocks of threads go on to further work a grid apart, so any number of them will do. */
static sb_status launch_one(sb_call *call, sb_cuda_work *work, const sb_cuda_attention *parameters, const char *module,
                            const char *kernel, int64_t blocks) {
    work->module = module;
    work->kernel = kernel;
    work->parameters = parameters;
    work->parameter_bytes = sizeof *parameters;
    work->threads = SB_CUDA_ATTENTION16_THREADS;
    work->blocks = (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
    return sb_cuda_call_launch(call, work);
}

/* Room for what each split comes to. */
static sb_status make_room(sb_call *call, sb_cuda_attention_call *made, sb_cuda_work *work, int64_t splits) {
    const sb_attention_work *a = &made->attention;
    void *memory;
    size_t bytes = (size_t)SB_CUDA_ATTENTION_PARTIAL(a->value_width) * sizeof(float);
    const int64_t factors[] = {a->batch, a->heads, a->queries, splits};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        if (__builtin_mul_overflow(bytes, (size_t)factors[i], &bytes))
            return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY,
                                "what the splits of attention come to has more bytes than a number holds");
    }
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    made->parameters.splits = splits;
    made->parameters.partial = memory;
    sb_cuda_work_touches(work, memory, bytes, true);
    return SB_OK;
}

/* How the rows are shared out among blocks of threads. */
typedef struct way {
    const char *name, *split_name; /* what placement calls it, and with splits apart */
    const char *family;            /* src/cuda/attention/<family>_<width>.cu */
    int rows, width;               /* of a block of threads: the widest heads are these */
    int64_t enough;                /* blocks of threads of which a device needs no more, so that splits stay together */
    int64_t at_once;               /* blocks of threads that a multiprocessor has at once */
    unsigned shared_bytes;
} way;

static way choose(const sb_attention_work *a, int64_t widest, int64_t multiprocessors) {
    int width = widest <= 64 ? 64 : widest <= 96 ? 96 : widest <= 128 ? 128 : 256;
    if (group_rows(a) <= SB_CUDA_ATTENTION16_DECODE_ROWS || width == 256)
        return (way){.name = "tensor cores, 16 rows at a time",
                     .split_name = "tensor cores, 16 rows at a time, splits apart",
                     .family = "attention16_decode",
                     .rows = SB_CUDA_ATTENTION16_DECODE_ROWS,
                     .width = width,
                     /* Heads of up to 128 have no room for the sums of several splits. */
                     .enough = width == 256 ? multiprocessors : INT64_MAX,
                     .at_once = width == 256 ? 1 : 2,
                     .shared_bytes = (unsigned)SB_CUDA_ATTENTION16_DECODE_SHARED(width)};
    width = width == 64 ? 64 : 128;
    return (way){.name = "tensor cores, 64 rows at a time",
                 .split_name = "tensor cores, 64 rows at a time, splits apart",
                 .family = "attention16_tile",
                 .rows = SB_CUDA_ATTENTION16_ROWS,
                 .width = width,
                 .enough = 2 * multiprocessors,
                 .at_once = 2,
                 .shared_bytes = (unsigned)SB_CUDA_ATTENTION16_SHARED(width)};
}

sb_status sb_cuda_attention16_run(sb_call *call, sb_cuda_attention_call *made, bool *given) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention *p = &made->parameters;
    const char *type = sb_dtype_name(a->dtype);
    char module[32], kernel[64];
    call->way = (sb_call_way){"rows one by one", obstacle(call, made)};
    *given = call->way.why == NULL;
    if (!*given)
        return SB_OK;
    way way =
        choose(a, a->width > a->value_width ? a->width : a->value_width, sb_cuda_call_device(call)->multiprocessors);
    int64_t splits = (a->keys + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    sb_cuda_work work = made->work;
    p->row_tiles = (group_rows(a) + way.rows - 1) / way.rows;
    int64_t blocks = a->batch * a->key_heads * p->row_tiles;
    bool is_split = splits > 1 && blocks < way.enough;
    if (is_split) {
        SB_TRY(make_room(call, made, &work, splits));
        /* How many splits are used the device knows: blocks that find none would each wait for room in a multiprocessor. */
        int64_t most = way.at_once * sb_cuda_call_device(call)->multiprocessors;
        blocks = blocks * splits < most ? blocks * splits : most;
    }
    call->way.name = is_split ? way.split_name : way.name;
    bool is_general = p->mask_kind != SB_CUDA_ATTENTION_NO_MASK || !sb_attention_is_moderate(a->scale) || a->cap != 0;
    snprintf(module, sizeof module, "%s_%d_%s", way.family, way.width, type);
    snprintf(kernel, sizeof kernel, "sb_cuda_%s%s", module, is_general ? "_masked" : "");
    work.shared_bytes = way.shared_bytes;
    SB_TRY(launch_one(call, &work, p, module, kernel, blocks));
    if (!is_split)
        return SB_OK;
    snprintf(module, sizeof module, "attention16_fold_%s", type);
    snprintf(kernel, sizeof kernel, "sb_cuda_attention16_fold_%s", type);
    work.shared_bytes = 0;
    return launch_one(call, &work, p, module, kernel, a->batch * a->heads * a->queries);
}
