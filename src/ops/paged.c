/* Attention and its cache for several sequences at once, whose keys lie on pages of one cache (ops/pages.h). Samebit's own.
 *
 * PagedScatter writes new rows into a copy of a cache:
 *
 *     cache    [pages, rows of a page, width]
 *     rows     [1, rows, width]                               the new rows of all sequences, one behind the other
 *     starts   s64 [sequences]                                the key that each sequence's first new row is
 *     begins   s64 [sequences]                                where each sequence's rows begin
 *     table    s64 [sequences, columns]                       its pages, in the order of its keys
 *
 * Rows are written in their order, so that of two for one place the later one stays. A row for a key that the table has no
 * room for is an error. The rows of a sequence whose start is -1 go nowhere.
 *
 * PagedAttention is, for each row, Attention with is_causal over the keys of its own sequence:
 *
 *     Q        [1, rows, q_num_heads · width]                 the new rows of all sequences
 *     K, V     [pages, rows of a page, kv_num_heads · width]  the caches, which have the new rows already
 *     lengths  s64 [sequences]                                keys of each sequence, with the new ones
 *     begins, table                                           as above
 *
 * A sequence's last new row is at the position of its last key, and so on backwards. Lengths are held within 0 and the keys
 * that the table has room for. */
#include "ops/paged.h"

#include <math.h>

#include "ops/list.h"
#include "rules/counting.h"
#include "rules/question.h"

enum { CACHE, ROWS, STARTS };
enum { Q, K, V, LENGTHS };

/* Behind starts or lengths, which is input `counts`. */
#define BEGINS(counts) ((counts) + 1)
#define TABLE(counts) ((counts) + 2)

typedef struct paged_params {
    int64_t heads, key_heads, left;
    bool scaled;
    float scale, cap;
} paged_params;

/* ---- extents ---- */

static int64_t number_or_none(sb_dim dim) {
    int64_t number;
    return sb_dim_is_constant(dim, &number) ? number : -1;
}

/* An input of that rank, whose extents go to `dims`, or -1. */
static sb_status take_input(const sb_infer *infer, int index, uint32_t dtypes, int rank, int64_t *dims,
                            const sb_fact **fact) {
    SB_TRY(sb_infer_require(infer, index, dtypes, fact));
    for (int d = 0; d < rank; d++)
        dims[d] = -1;
    if ((*fact)->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if ((*fact)->rank != rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where %d is expected", index, (*fact)->rank,
                             rank);
    for (int d = 0; d < rank; d++)
        dims[d] = number_or_none((*fact)->dims[d]);
    return SB_OK;
}

/* Starts or lengths, begins and the table: extents of their axes, or -1, and what is wrong with them; NULL: nothing. */
typedef struct lists {
    int64_t counts, begins, table[2];
    int64_t rows; /* for which they are */
} lists;

static const char *find_odd_list(const lists *lists) {
    int64_t sequences = lists->table[0], counts = lists->counts, begins = lists->begins;
    bool odd = (counts >= 0 && sequences >= 0 && counts != sequences) ||
               (begins >= 0 && sequences >= 0 && begins != sequences) ||
               (counts >= 0 && begins >= 0 && counts != begins);
    if (odd)
        return "starts or lengths, begins and the table must have an entry for each sequence";
    return sequences == 0 && lists->rows > 0 ? "there are rows and no sequences" : NULL;
}

static sb_status take_lists(const sb_infer *infer, int counts, int64_t rows, lists *lists) {
    const sb_fact *fact;
    lists->rows = rows;
    SB_TRY(take_input(infer, counts, SB_SET(SB_S64), 1, &lists->counts, &fact));
    SB_TRY(take_input(infer, BEGINS(counts), SB_SET(SB_S64), 1, &lists->begins, &fact));
    return take_input(infer, TABLE(counts), SB_SET(SB_S64), 2, lists->table, &fact);
}

/* Whether begins can be read here, and do ascend: once a call, so that no row is looked for among all sequences. */
static bool begins_ascend(const sb_tensor *begins, const sb_pages *pages) {
    if (begins->storage->device != NULL)
        return false;
    for (int64_t s = 2; s < pages->sequences; s++) {
        if (sb_pages_begin(pages, s) < sb_pages_begin(pages, s - 1))
            return false;
    }
    return true;
}

/* Where keys of a call lie. `wrong` is what is known to be wrong already, or NULL. */
static sb_status describe_pages(const sb_call *call, int counts, const sb_tensor *cache, int64_t rows,
                                const char *wrong, sb_pages *pages) {
    static char nothing[8];
    const sb_tensor *list = sb_call_input(call, counts), *begins = sb_call_input(call, BEGINS(counts));
    const sb_tensor *table = sb_call_input(call, TABLE(counts));
    if (list->rank != 1 || begins->rank != 1 || table->rank != 2)
        return sb_call_fail(call, SB_ERROR_SHAPE, "starts or lengths and begins must have rank 1, the table 2");
    const lists extents = {list->dims[0], begins->dims[0], {table->dims[0], table->dims[1]}, rows};
    if (wrong == NULL)
        wrong = find_odd_list(&extents);
    if (wrong != NULL)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%s", wrong);
    *pages = (sb_pages){.table = table->data != NULL ? table->data : nothing,
                        .begins = begins->data,
                        .table_row = table->strides[0],
                        .table_column = table->strides[1],
                        .begins_step = begins->strides[0],
                        .pages = cache->dims[0],
                        .rows = cache->dims[1],
                        .sequences = table->dims[0],
                        .columns = table->dims[1],
                        .new_rows = rows};
    pages->ascends = begins_ascend(begins, pages);
    return SB_OK;
}

/* ---- PagedScatter ---- */

static const char *find_odd_rows(const int64_t *cache, const int64_t *rows) {
    if (rows[0] >= 0 && rows[0] != 1)
        return "the first extent of the rows must be 1";
    bool odd = rows[2] >= 0 && cache[2] >= 0 && rows[2] != cache[2];
    return odd ? "rows must be as wide as the cache's" : NULL;
}

static sb_status infer_paged_scatter(sb_infer *infer) {
    const sb_fact *cache, *rows;
    int64_t cache_dims[3], row_dims[3];
    lists lists;
    SB_TRY(take_input(infer, CACHE, SB_SET_PLAIN, 3, cache_dims, &cache));
    SB_TRY(take_input(infer, ROWS, SB_SET(cache->dtype), 3, row_dims, &rows));
    SB_TRY(take_lists(infer, STARTS, row_dims[1], &lists));
    const char *odd = find_odd_rows(cache_dims, row_dims);
    odd = odd != NULL ? odd : find_odd_list(&lists);
    if (odd != NULL)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%s", odd);
    sb_infer_shape_of(infer, 0, cache, cache->dtype);
    return SB_OK;
}

sb_status sb_paged_scatter_describe(const sb_call *call, sb_pages *pages) {
    const sb_tensor *cache = sb_call_input(call, CACHE), *rows = sb_call_input(call, ROWS);
    if (cache->rank != 3 || rows->rank != 3)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the cache and rows must have rank 3");
    return describe_pages(call, STARTS, cache, rows->dims[1], find_odd_rows(cache->dims, rows->dims), pages);
}

/* What is no key: the row goes nowhere, or there is no room for it. */
enum { NO_KEY = -1, OUTSIDE = -2 };

/* The key that a new row is; *sequence is whose. */
static int64_t key_of(const sb_call *call, const sb_pages *pages, int64_t row, int64_t *sequence) {
    const sb_tensor *starts = sb_call_input(call, STARTS);
    const sb_pages_place place = sb_pages_of_row(pages, row);
    const int64_t start = ((const int64_t *)(const void *)starts->data)[place.sequence * starts->strides[0]];
    const int64_t room = sb_pages_room(pages);
    *sequence = place.sequence;
    if (start == SB_PAGES_NOBODY)
        return NO_KEY;
    return start < 0 || start > room || place.before >= room - start ? OUTSIDE : start + place.before;
}

sb_status sb_paged_scatter_check(const sb_call *call, const sb_pages *pages) {
    int64_t room = sb_pages_room(pages), sequence;
    for (int64_t row = 0; row < pages->new_rows; row++) {
        if (key_of(call, pages, row, &sequence) == OUTSIDE)
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "row %lld, of sequence %lld, lies outside of the %lld keys that the table has room for",
                                (long long)row, (long long)sequence, (long long)room);
    }
    return SB_OK;
}

void sb_paged_scatter_write(const sb_call *call, const sb_pages *pages, sb_tensor *output) {
    const sb_tensor *rows = sb_call_input(call, ROWS);
    int64_t size = (int64_t)sb_dtype_size(rows->dtype), sequence, at;
    sb_tensor source = {.dtype = rows->dtype, .rank = 1, .storage = rows->storage};
    sb_tensor target = {.dtype = rows->dtype, .rank = 1, .storage = output->storage};
    source.dims[0] = target.dims[0] = rows->dims[2];
    source.strides[0] = rows->strides[2];
    target.strides[0] = output->strides[2];
    for (int64_t row = 0; row < pages->new_rows && rows->dims[2] > 0; row++) {
        const int64_t key = key_of(call, pages, row, &sequence);
        if (key == NO_KEY)
            continue;
        const int64_t page = sb_pages_find(pages, sequence, key, &at);
        source.data = rows->data + row * rows->strides[1] * size;
        target.data = output->data + (page * output->strides[0] + at * output->strides[1]) * size;
        sb_tensor_copy_elements(&target, &source);
    }
}

static sb_status eval_paged_scatter(sb_call *call) {
    const sb_tensor *cache = sb_call_input(call, CACHE);
    sb_tensor *output;
    sb_pages pages;
    SB_TRY(sb_paged_scatter_describe(call, &pages));
    SB_TRY(sb_paged_scatter_check(call, &pages));
    SB_TRY(sb_call_output(call, 0, &output));
    sb_tensor_copy_elements(output, cache);
    sb_paged_scatter_write(call, &pages, output);
    return SB_OK;
}

/* ---- PagedAttention ---- */

static sb_status prepare_paged_attention(sb_node *node, sb_error *error) {
    paged_params *params = node->params;
    const char *wrong = NULL;
    SB_TRY(sb_node_int(node, "q_num_heads", 0, &params->heads, error));
    SB_TRY(sb_node_int(node, "kv_num_heads", 0, &params->key_heads, error));
    SB_TRY(sb_node_int(node, "left_window_size", -1, &params->left, error));
    SB_TRY(sb_node_float(node, "softcap", 0, &params->cap, error));
    SB_TRY(sb_node_float(node, "scale", 0, &params->scale, error));
    params->scaled = sb_node_has(node, "scale");
    if (params->heads < 1 || params->key_heads < 1 || params->heads % params->key_heads != 0)
        wrong = "q_num_heads and kv_num_heads must be given, and the first be a multiple of the second";
    else if (params->left < -1)
        wrong = "left_window_size must be -1 or more";
    else if (!(params->cap >= 0) || isinf(params->cap))
        wrong = "softcap must be 0 or a positive finite number";
    else if (params->scaled && !isfinite(params->scale))
        wrong = "scale must be a finite number";
    if (wrong == NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (PagedAttention): %s", node->name, wrong);
}

/* What is wrong with the extents; NULL: nothing. Those that are not known are negative. */
static const char *find_odd_heads(const paged_params *params, const int64_t *q, const int64_t *k, const int64_t *v) {
    if (q[0] >= 0 && q[0] != 1)
        return "the first extent of Q must be 1";
    if (q[2] >= 0 && q[2] % params->heads != 0)
        return "the last extent of Q must be a multiple of q_num_heads";
    if ((k[2] >= 0 && k[2] % params->key_heads != 0) || (v[2] >= 0 && v[2] % params->key_heads != 0))
        return "the last extents of K and V must be multiples of kv_num_heads";
    if (q[2] >= 0 && k[2] >= 0 && q[2] / params->heads != k[2] / params->key_heads)
        return "heads of Q and K must be of one width";
    for (int d = 0; d < 2; d++) {
        if (k[d] >= 0 && v[d] >= 0 && k[d] != v[d])
            return "K and V must have as many pages, and as many rows on each";
    }
    return NULL;
}

static sb_status infer_paged_attention(sb_infer *infer) {
    const paged_params *params = infer->node->params;
    const sb_fact *q, *k, *v;
    int64_t q_dims[3], k_dims[3], v_dims[3];
    lists lists;
    SB_TRY(take_input(infer, Q, SB_SET_FLOAT, 3, q_dims, &q));
    SB_TRY(take_input(infer, K, SB_SET(q->dtype), 3, k_dims, &k));
    SB_TRY(take_input(infer, V, SB_SET(q->dtype), 3, v_dims, &v));
    SB_TRY(take_lists(infer, LENGTHS, q_dims[1], &lists));
    const char *odd = find_odd_heads(params, q_dims, k_dims, v_dims);
    odd = odd != NULL ? odd : find_odd_list(&lists);
    if (odd != NULL)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%s", odd);
    if (q->rank == SB_RANK_UNKNOWN || v->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], q->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    sb_scope *scope = infer->scope;
    sb_dim width = sb_dim_floor_divide(scope, v->dims[2], sb_dim_constant(scope, params->key_heads));
    sb_fact_set_tensor(
        &infer->outputs[0], q->dtype, 3,
        (sb_dim[]){q->dims[0], q->dims[1], sb_dim_multiply(scope, width, sb_dim_constant(scope, params->heads))});
    return SB_OK;
}

sb_status sb_paged_attention_describe(const sb_call *call, sb_attention_work *work) {
    const paged_params *params = call->node->params;
    const sb_tensor *q = sb_call_input(call, Q), *k = sb_call_input(call, K), *v = sb_call_input(call, V);
    const sb_tensor *lengths = sb_call_input(call, LENGTHS);
    if (q->rank != 3 || k->rank != 3 || v->rank != 3)
        return sb_call_fail(call, SB_ERROR_SHAPE, "Q, K and V must have rank 3");
    sb_pages pages;
    SB_TRY(describe_pages(call, LENGTHS, k, q->dims[1], find_odd_heads(params, q->dims, k->dims, v->dims), &pages));
    *work = (sb_attention_work){.dtype = q->dtype,
                                .wide = q->dtype == SB_F64,
                                .batch = 1,
                                .heads = params->heads,
                                .key_heads = params->key_heads,
                                .queries = q->dims[1],
                                .keys = sb_pages_room(&pages),
                                .width = q->dims[2] / params->heads,
                                .value_width = v->dims[2] / params->key_heads,
                                .causal = true,
                                .left = params->left,
                                .right = -1,
                                .cap = params->cap,
                                .lengths = lengths->data,
                                .lengths_stride = lengths->strides[0],
                                .pages = pages};
    work->scale = params->scaled ? params->scale : sb_attention_default_scale(work->dtype, work->width);
    work->q = sb_attention_array_of(q, params->heads);
    work->k = sb_attention_array_of(k, params->key_heads);
    work->v = sb_attention_array_of(v, params->key_heads);
    return SB_OK;
}

static sb_status eval_paged_attention(sb_call *call) {
    return sb_attention_evaluate(call, sb_paged_attention_describe, sb_attention_run_defined);
}

const sb_op sb_ops_paged[] = {
    {.name = "PagedScatter",
     .domain = "samebit",
     .least_inputs = 5,
     .most_inputs = 5,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_paged_scatter,
     .eval = eval_paged_scatter},
    {.name = "PagedAttention",
     .domain = "samebit",
     .least_inputs = 6,
     .most_inputs = 6,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(paged_params),
     .prepare = prepare_paged_attention,
     .infer = infer_paged_attention,
     .eval = eval_paged_attention},
    {0},
};

/* ---- rules ---- */

/* Of starts or lengths, begins and the table. */
static sb_status list_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    bool column = question->axis == 1;
    return sb_axis_bounded(question, answer, SB_AXIS_NONE,
                           column ? "sequences have the keys that the table has room for"
                                  : "rows belong to the last sequence that begins before them");
}

static sb_status cache_axis(const sb_axis_question *question, sb_axis_rule *answer, int page_axis) {
    if (question->axis == 0)
        return sb_axis_bounded(question, answer, page_axis, "numbers of pages are held within it");
    return sb_axis_exact(answer, "it says which key is on which page");
}

static sb_status axes_of_paged_scatter(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input >= STARTS)
        return list_axis(question, answer);
    if (question->axis == 2)
        return sb_axis_independent(question, answer, 2);
    if (question->input == CACHE)
        return cache_axis(question, answer, 0);
    if (question->axis == 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "a row behind it would be written");
    return sb_axis_exact(answer, "its extent is 1");
}

static sb_status axes_of_paged_attention(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input >= LENGTHS)
        return list_axis(question, answer);
    if (question->axis == 2)
        return sb_axis_exact(answer, "heads and their widths are one axis");
    if (question->input != Q)
        return cache_axis(question, answer, SB_AXIS_NONE);
    if (question->axis == 1)
        return sb_axis_bounded(question, answer, 1, "positions are counted from the last row");
    return sb_axis_exact(answer, "its extent is 1");
}

const sb_axes_entry sb_axes_paged[] = {
    {.op = {"PagedScatter", "samebit"},
     .rule = axes_of_paged_scatter,
     .independent = "widths",
     .bounded = "pages, rows, sequences, columns of the table",
     .exact = "rows of a page"},
    {.op = {"PagedAttention", "samebit"},
     .rule = axes_of_paged_attention,
     .bounded = "rows, pages, sequences, columns of the table",
     .exact = "rows of a page, heads and widths"},
    {.op = {NULL}},
};

static sb_dim paged_attention_flops(const sb_cost_question *question, int64_t number) {
    const paged_params *params = question->node->params;
    const sb_fact *q = sb_cost_input(question, Q), *k = sb_cost_input(question, K), *v = sb_cost_input(question, V);
    const sb_fact *table = sb_cost_input(question, TABLE(LENGTHS));
    if (q == NULL || k == NULL || v == NULL || table == NULL)
        return NULL;
    sb_scope *scope = question->scope;
    sb_dim heads = sb_dim_constant(scope, params->heads), key_heads = sb_dim_constant(scope, params->key_heads);
    sb_dim keys = sb_dim_multiply(scope, table->dims[1], k->dims[1]);
    sb_dim widths = sb_dim_add(scope, sb_dim_floor_divide(scope, q->dims[2], heads),
                               sb_dim_floor_divide(scope, v->dims[2], key_heads));
    sb_dim each = sb_dim_add(scope, sb_cost_times(question, 2, widths), sb_dim_constant(scope, number));
    return sb_dim_multiply(scope, sb_dim_multiply(scope, sb_dim_multiply(scope, q->dims[1], heads), keys), each);
}

static const sb_flops_rule paged_attention_rule = {
    paged_attention_flops,
    "per row, head and key that a table has room for: 2 for each width of a key and a value, and #"};

const sb_cost_entry sb_cost_paged[] = {
    {.op = {"PagedScatter", "samebit"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {"PagedAttention", "samebit"}, .flops = &paged_attention_rule, .number = 4, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
