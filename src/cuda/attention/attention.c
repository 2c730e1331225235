/* Attention: what kernels are told, and the caches that it gives out. */
#include "cuda/attention/attention.h"

#include <stdio.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "ops/paged.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* ---- descriptions ---- */

static sb_cuda_attention_array array_of(const sb_attention_array *array) {
    return (sb_cuda_attention_array){array->data, array->batch, array->head, array->row, array->column};
}

static void read_inputs(const sb_call *call, sb_cuda_work *work) {
    for (int i = 0; i < call->input_count - call->node->capture_count; i++)
        sb_cuda_work_reads(work, sb_call_input(call, i));
}

void sb_cuda_attention_describe(sb_call *call, sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    made->work = (sb_cuda_work){.module = "attention"};
    made->parameters = (sb_cuda_attention){
        .batch = a->batch,
        .heads = a->heads,
        .key_heads = a->key_heads,
        .group = a->key_heads > 0 ? a->heads / a->key_heads : 1,
        .queries = a->queries,
        .past = a->past,
        .fresh = a->keys - a->past,
        .width = a->width,
        .value_width = a->value_width,
        .q = array_of(&a->q),
        .k = array_of(&a->k),
        .past_k = array_of(&a->past_k),
        .v = array_of(&a->v),
        .past_v = array_of(&a->past_v),
        .mask = array_of(&a->mask),
        .mask_keys = a->mask_keys,
        .pages = a->pages,
        .up_to = INT64_MAX,
        .parts_up_to = INT64_MAX,
        .lengths = (const int64_t *)(const void *)a->lengths,
        .lengths_stride = a->lengths_stride,
        .left = a->left,
        .right = a->causal ? 0 : a->right,
        .scale = a->scale,
        .cap = a->cap,
        .mask_kind = a->mask.data == NULL       ? SB_CUDA_ATTENTION_NO_MASK
                     : a->mask.dtype == SB_BOOL ? SB_CUDA_ATTENTION_TRUTH
                                                : SB_CUDA_ATTENTION_BIAS,
        .mask_repeats = call->node->version < 24,
        .stage = a->stage,
    };
    read_inputs(call, &made->work);
}

/* Open extents: of Attention alone, whose inputs they are. */
static void describe_used(sb_call *call, sb_cuda_attention_call *made) {
    sb_cuda_attention *parameters = &made->parameters;
    const sb_tensor *q = sb_call_input(call, Q), *mask = sb_call_input(call, MASK);
    parameters->used_queries = sb_cuda_work_used(&made->work, call, Q, q->rank - 2);
    parameters->used_fresh = sb_cuda_work_used(&made->work, call, K, sb_call_input(call, K)->rank - 2);
    if (sb_call_input(call, PAST_KEY) != NULL)
        parameters->used_past = sb_cuda_work_used(&made->work, call, PAST_KEY, 2);
    if (mask != NULL)
        parameters->used_mask = sb_cuda_work_used(&made->work, call, MASK, mask->rank - 1);
}

void sb_cuda_attention_yields(sb_cuda_attention_call *made, const sb_tensor *y, const sb_tensor *scores) {
    sb_attention_work *a = &made->attention;
    if (y != NULL) {
        a->y = sb_attention_array_of(y, a->heads);
        made->parameters.y = array_of(&a->y);
        sb_cuda_work_writes(&made->work, y);
    }
    if (scores != NULL) {
        a->scores = sb_attention_array_of(scores, 0);
        made->parameters.scores = array_of(&a->scores);
        made->parameters.scores_dtype = scores->dtype;
        sb_cuda_work_writes(&made->work, scores);
    }
}

/* ---- launches ---- */

/* The variant of a kernel for the work's types. */
static const char *name_types(const sb_attention_work *a, char *text, size_t bytes) {
    snprintf(text, bytes, "%s%s", sb_dtype_name(a->dtype), a->wide ? "_wide" : "");
    return text;
}

static int64_t row_count(const sb_attention_work *a) {
    return a->batch * a->heads * a->queries;
}

static sb_status launch_each(sb_call *call, const sb_cuda_attention_call *made, const char *kernel, const char *suffix,
                             int64_t elements) {
    sb_cuda_work work = made->work;
    work.parameters = &made->parameters;
    work.parameter_bytes = sizeof made->parameters;
    return sb_cuda_launch_each(call, &work, "attention", kernel, suffix, elements);
}

static sb_status launch_rows(sb_call *call, const sb_cuda_attention_call *made) {
    char types[16], name[64];
    sb_cuda_work work = made->work;
    snprintf(name, sizeof name, "sb_cuda_attention_rows_%s", name_types(&made->attention, types, sizeof types));
    work.kernel = name;
    work.parameters = &made->parameters;
    work.parameter_bytes = sizeof made->parameters;
    work.threads = SB_CUDA_ATTENTION_COLUMNS;
    work.blocks = sb_cuda_call_blocks(call, row_count(&made->attention) * made->parameters.tiles);
    return sb_cuda_call_launch(call, &work);
}

sb_status sb_cuda_attention_run(sb_call *call, sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention *p = &made->parameters;
    int64_t rows = row_count(a);
    bool shares = a->scores.data != NULL && a->stage == SB_ATTENTION_PROBABILITY;
    bool has_values = a->y.data != NULL && a->value_width > 0;
    char types[16];
    name_types(a, types, sizeof types);
    if (rows == 0)
        return SB_OK;
    if (a->scores.data != NULL && !shares)
        SB_TRY(launch_each(call, made, "sb_cuda_attention_scores", types, rows * a->keys));
    if (!shares && !has_values)
        return SB_OK;
    bool done = false;
    if (p->given.data == NULL)
        SB_TRY(sb_cuda_attention16_run(call, made, &done));
    if (done)
        return SB_OK;
    p->tiles = has_values ? (a->value_width + SB_CUDA_ATTENTION_COLUMNS - 1) / SB_CUDA_ATTENTION_COLUMNS : 1;
    if (shares) {
        void *memory;
        SB_TRY(sb_call_workspace(call, (size_t)rows * sizeof *p->rows, &memory));
        p->rows = memory;
        sb_cuda_work_touches(&made->work, memory, (size_t)rows * sizeof *p->rows, true);
    }
    SB_TRY(launch_rows(call, made));
    return shares ? launch_each(call, made, "sb_cuda_attention_shares", types, rows * a->keys) : SB_OK;
}

/* ---- caches ---- */

/* The largest unit in which all of these arrays can be copied, in elements of `size` bytes; and their steps in units. */
static int64_t widen(int64_t width, int64_t size, sb_cuda_attention_array *const *arrays, int count) {
    int64_t unit = 16 / size;
    for (; unit > 1; unit /= 2) {
        bool fits = width % unit == 0;
        for (int i = 0; i < count && fits; i++) {
            const sb_cuda_attention_array *a = arrays[i];
            fits = (width == 1 || a->column == 1) && (uintptr_t)a->data % (uintptr_t)(unit * size) == 0 &&
                   a->batch % unit == 0 && a->head % unit == 0 && a->row % unit == 0;
        }
        if (fits)
            break;
    }
    for (int i = 0; i < count && unit > 1; i++) {
        arrays[i]->batch /= unit;
        arrays[i]->head /= unit;
        arrays[i]->row /= unit;
        arrays[i]->column = 1;
    }
    return unit;
}

static bool same_layout(const sb_cuda_attention_array *left, const sb_cuda_attention_array *right) {
    return left->data == right->data && left->batch == right->batch && left->head == right->head &&
           left->row == right->row && left->column == right->column;
}

/* What there is of the past and behind it what is new, as [batch, heads, positions, width]. */
static sb_status present(sb_call *call, int output, int past, int fresh, const sb_attention_array *source,
                         const sb_attention_array *old, const sb_attention_work *a, int64_t width) {
    sb_tensor *target;
    if (!sb_call_wants(call, output))
        return SB_OK;
    SB_TRY(sb_call_output(call, output, &target));
    sb_attention_array to = sb_attention_array_of(target, 0);
    sb_cuda_work work = {0};
    sb_cuda_attention_present parameters = {.batch = a->batch,
                                            .heads = a->key_heads,
                                            .past = a->past,
                                            .fresh = a->keys - a->past,
                                            .old = array_of(old),
                                            .source = array_of(source),
                                            .out = array_of(&to)};
    if (old->data != NULL)
        parameters.used_past = sb_cuda_work_used(&work, call, past, 2);
    bool is_there = old->data == NULL || a->past == 0 || same_layout(&parameters.old, &parameters.out);
    if (is_there)
        parameters.old.data = NULL;
    sb_cuda_attention_array *arrays[] = {&parameters.source, &parameters.out, &parameters.old};
    int64_t size = (int64_t)sb_dtype_size(a->dtype), unit = widen(width, size, arrays, is_there ? 2 : 3);
    char bits[8];
    snprintf(bits, sizeof bits, "%d", (int)(8 * unit * size));
    parameters.units = width / unit;
    parameters.elements = a->batch * a->key_heads * (is_there ? parameters.fresh : a->keys) * parameters.units;
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    sb_cuda_work_writes(&work, target);
    sb_cuda_work_reads(&work, sb_call_input(call, past));
    sb_cuda_work_reads(&work, sb_call_input(call, fresh));
    return sb_cuda_launch_each(call, &work, "attention", "sb_cuda_attention_present", bits, parameters.elements);
}

/* ---- the operator ---- */

/* Keys, queries and the mask; not the widths of heads. */
static bool bounded_attention(const sb_kernel_query *query, int input, int axis) {
    const sb_fact *fact = query->inputs[input];
    if (input == MASK)
        return axis == fact->rank - 1 || axis == fact->rank - 2;
    return input == LENGTHS || axis == (fact->rank == 3 ? 1 : 2);
}

static sb_status launch_attention(sb_call *call) {
    sb_cuda_attention_call made;
    sb_tensor *y = NULL, *scores = NULL;
    SB_TRY(sb_attention_describe(call, &made.attention));
    sb_cuda_attention_describe(call, &made);
    describe_used(call, &made);
    if (sb_call_wants(call, Y))
        SB_TRY(sb_call_output(call, Y, &y));
    if (sb_call_wants(call, SCORES))
        SB_TRY(sb_call_output(call, SCORES, &scores));
    sb_cuda_attention_yields(&made, y, scores);
    const sb_attention_work *a = &made.attention;
    SB_TRY(sb_cuda_attention_run(call, &made));
    SB_TRY(present(call, PRESENT_KEY, PAST_KEY, K, &a->k, &a->past_k, a, a->width));
    return present(call, PRESENT_VALUE, PAST_VALUE, V, &a->v, &a->past_v, a, a->value_width);
}

/* ---- PagedAttention ---- */

static sb_status launch_paged(sb_call *call) {
    sb_cuda_attention_call made;
    sb_tensor *y;
    SB_TRY(sb_paged_attention_describe(call, &made.attention));
    /* One sequence on one page is Attention with lengths, without looking for pages. */
    sb_pages *pages = &made.attention.pages;
    if (pages->pages == 1 && pages->columns == 1 && pages->sequences == 1)
        pages->table = NULL;
    sb_cuda_attention_describe(call, &made);
    SB_TRY(sb_call_output(call, 0, &y));
    sb_cuda_attention_yields(&made, y, NULL);
    return sb_cuda_attention_run(call, &made);
}

const sb_kernel sb_cuda_kernels_attention[] = {
    {.op = "Attention",
     .name = "attention",
     .supports = sb_cuda_supports_all,
     .bounded = bounded_attention,
     .launch = launch_attention},
    {.op = "PagedAttention",
     .domain = "samebit",
     .name = "attention",
     .supports = sb_cuda_supports_all,
     .launch = launch_paged},
    {0},
};
