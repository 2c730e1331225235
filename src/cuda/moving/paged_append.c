/* PagedAppend: onto the caches themselves where nobody else needs them any more. */
#include "cuda/moving/paged_append.h"

#include "cuda/list.h"
#include "cuda/moving/tensor_scatter.h"
#include "cuda/rows/rotary.h"
#include "ops/paged_append.h"

static int in_place_append(const sb_kernel_query *query) {
    return SB_APPEND_KEY_CACHE;
}

/* One row: attention may append it (attention/attention16_append.c). */
static bool lingers_append(const sb_kernel_query *query, int input) {
    const sb_fact *queries = query->inputs[SB_APPEND_QUERIES];
    int64_t dims[SB_MAX_RANK];
    return input >= SB_APPEND_QUERIES && input <= SB_APPEND_VALUES && sb_fact_is_concrete(queries, dims) &&
           queries->rank == 3 && dims[1] == 1;
}

static sb_status fill_rotation(sb_call *call, int rows, sb_tensor *to, sb_cuda_work *work, sb_cuda_rotary *parameters) {
    sb_append_part part;
    sb_rotary rotary;
    sb_append_rotation(call, rows, to, &part);
    SB_TRY(sb_rotary_describe(&part.call, to, &rotary));
    sb_cuda_rotary_fill(&part.call, &rotary, work, parameters);
    return SB_OK;
}

static sb_status fill_scatter(sb_call *call, int cache, sb_cuda_work *work, sb_cuda_paged_scatter *parameters) {
    sb_append_part part;
    sb_pages pages;
    sb_tensor *output;
    SB_TRY(sb_call_output(call, cache, &output));
    sb_append_scatter(call, cache, call->inputs[SB_APPEND_KEYS + cache].tensor, &part);
    SB_TRY(sb_paged_scatter_describe(&part.call, &pages));
    SB_TRY(sb_cuda_scatter_start(&part.call, sb_call_input(call, cache), output));
    sb_cuda_paged_scatter_fill(&part.call, &pages, output, work, parameters);
    return SB_OK;
}

/* Turned keys are as the keys given, but for where they go: rows to their places on pages. */
static sb_status fill_keys(sb_call *call, sb_cuda_work *work, sb_cuda_paged_append *parameters) {
    sb_tensor *keys = call->inputs[SB_APPEND_KEYS].tensor;
    SB_TRY(fill_scatter(call, SB_APPEND_KEY_CACHE, work, &parameters->key_cache));
    SB_TRY(fill_rotation(call, SB_APPEND_KEYS, keys, work, &parameters->keys));
    int64_t column = parameters->key_cache.to_column, width = keys->dims[2] / parameters->keys.heads;
    parameters->keys.y = NULL;
    parameters->keys.y_steps[2] = width * column;
    parameters->keys.y_steps[3] = column;
    return SB_OK;
}

/* Whether all of these are multiples of 16 bytes: bytes or addresses, or-ed. */
static bool are_eights(int64_t bytes) {
    return bytes % 16 == 0;
}

static bool turns_eights(const sb_cuda_rotary *r) {
    return !r->interleaved && r->units == r->half && r->half % 8 == 0 && r->half > 0 && r->half <= 32 * 8 &&
           r->x_steps[3] == 2 && r->y_steps[3] == 2 && r->cosine_steps[2] == 2 && r->sine_steps[2] == 2 &&
           are_eights(r->x_steps[1] | r->x_steps[2] | r->y_steps[1] | r->y_steps[2] | r->cosine_steps[1] |
                      r->sine_steps[1] | (int64_t)(uintptr_t)r->x | (int64_t)(uintptr_t)r->y |
                      (int64_t)(uintptr_t)r->cosines | (int64_t)(uintptr_t)r->sines);
}

static bool scatters_eights(const sb_cuda_paged_scatter *s) {
    return s->to_column == 2 && are_eights(s->to_page | s->to_row | (int64_t)(uintptr_t)s->out);
}

/* Whether keys and values of a row go to the same place of their caches. */
static bool have_same_places(const sb_pages *keys, const sb_pages *values) {
    return keys->rows == values->rows && keys->pages == values->pages;
}

bool sb_cuda_append_takes_eights(const sb_cuda_paged_append *p) {
    const sb_cuda_paged_scatter *values = &p->value_cache;
    return p->query_units <= INT32_MAX && p->key_units <= INT32_MAX && p->values <= INT32_MAX &&
           turns_eights(&p->queries) && turns_eights(&p->keys) && scatters_eights(&p->key_cache) &&
           scatters_eights(values) && values->from_column == 2 &&
           have_same_places(&p->key_cache.pages, &values->pages) && p->values % 8 == 0 &&
           are_eights(values->from_row | (int64_t)(uintptr_t)values->from);
}

/* Rows from which on warps take them: a step of 12 sequences took 2.31 ms by threads for pairs and 2.22 by warps, of 2 to 8 no less. */
#define MANY_ROWS 9

/* Whether paged_append_rows.cu is for it. */
static bool takes_rows(const sb_cuda_paged_append *p, sb_dtype dtype) {
    return (dtype == SB_F16 || dtype == SB_BF16) && p->rows >= MANY_ROWS && sb_cuda_append_takes_eights(p);
}

/* Warps share rows out as long as all of them are there at once. */
static sb_status launch_rows(sb_call *call, sb_cuda_work *work, sb_cuda_paged_append *p, sb_dtype dtype) {
    const int64_t warps = SB_CUDA_APPEND_THREADS / 32;
    const int64_t room = sb_cuda_call_device(call)->multiprocessors * SB_CUDA_APPEND_BLOCKS * warps;
    for (p->shares = 1; p->shares < warps && p->rows * p->shares * 2 <= room;)
        p->shares *= 2;
    work->module = "paged_append_rows";
    work->kernel = dtype == SB_F16 ? "sb_cuda_paged_append_rows_f16" : "sb_cuda_paged_append_rows_bf16";
    work->threads = SB_CUDA_APPEND_THREADS;
    work->blocks = sb_cuda_call_blocks(call, (p->rows * p->shares + warps - 1) / warps);
    return sb_cuda_call_launch(call, work);
}

static sb_status launch_append(sb_call *call) {
    sb_tensor *queries;
    sb_cuda_paged_append parameters = {.rows = sb_call_input(call, SB_APPEND_QUERIES)->dims[1],
                                       .values = sb_call_input(call, SB_APPEND_VALUES)->dims[2]};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    SB_TRY(sb_append_check_rows(call));
    SB_TRY(sb_call_output(call, SB_APPEND_TURNED, &queries));
    SB_TRY(fill_rotation(call, SB_APPEND_QUERIES, queries, &work, &parameters.queries));
    SB_TRY(fill_keys(call, &work, &parameters));
    SB_TRY(fill_scatter(call, SB_APPEND_VALUE_CACHE, &work, &parameters.value_cache));
    parameters.query_units = parameters.queries.heads * parameters.queries.units;
    parameters.key_units = parameters.keys.heads * parameters.keys.units;
    sb_cuda_work_writes(&work, queries);
    if (takes_rows(&parameters, queries->dtype))
        return launch_rows(call, &work, &parameters, queries->dtype);
    int64_t each = parameters.query_units + parameters.key_units + parameters.values;
    return sb_cuda_launch_each(call, &work, "paged_append", "sb_cuda_paged_append", sb_dtype_name(queries->dtype),
                               parameters.rows * each);
}

const sb_kernel sb_cuda_kernels_paged_append[] = {
    {.op = "PagedAppend",
     .domain = "samebit",
     .name = "paged_append",
     .supports = sb_cuda_supports_all,
     .in_place = in_place_append,
     .in_place_more = 1,
     .lingers = lingers_append,
     .launch = launch_append},
    {0},
};
