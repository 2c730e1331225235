/* PagedAppend: the kernels of its parts, one behind the other, onto the caches themselves where nobody else needs them any more.
 * Everything is checked before the first row is written. */
#include "ops/paged_append.h"

#include "cpu/list.h"
#include "cpu/moving/tensor_scatter.h"
#include "cpu/rows/rotary.h"

static bool supports_append(const sb_kernel_query *query, char *why) {
    return true;
}

static int in_place_append(const sb_kernel_query *query) {
    return SB_APPEND_KEY_CACHE;
}

/* Room for the turned keys, in workspace. The caller releases it. */
static sb_status make_room(sb_call *whole, sb_tensor **keys) {
    const sb_tensor *given = sb_call_input(whole, SB_APPEND_KEYS);
    size_t bytes = (size_t)sb_tensor_elements(given) * sb_dtype_size(given->dtype);
    void *memory;
    SB_TRY(sb_call_workspace(whole, bytes > 0 ? bytes : 1, &memory));
    return sb_tensor_wrap(given->dtype, given->rank, given->dims, NULL, memory, NULL, NULL, keys, whole->error);
}

static sb_status launch_rotation(const sb_call *call, int rows, sb_tensor *to) {
    sb_append_part part;
    sb_rotary rotary;
    sb_append_rotation(call, rows, to, &part);
    SB_TRY(sb_rotary_describe(&part.call, to, &rotary));
    sb_cpu_rotary_run(&part.call, &rotary);
    return SB_OK;
}

static sb_status launch_scatter(sb_call *call, int cache, sb_tensor *rows) {
    sb_append_part part;
    sb_pages pages;
    sb_tensor *output;
    SB_TRY(sb_call_output(call, cache, &output));
    sb_append_scatter(call, cache, rows, &part);
    SB_TRY(sb_paged_scatter_describe(&part.call, &pages));
    return sb_cpu_paged_scatter_run(&part.call, &pages, output);
}

static sb_status launch_append(sb_call *call) {
    sb_tensor *queries, *keys;
    call->untouched = true;
    SB_TRY(sb_append_check(call));
    SB_TRY(sb_call_output(call, SB_APPEND_TURNED, &queries));
    SB_TRY(make_room(call, &keys));
    sb_status status = launch_rotation(call, SB_APPEND_QUERIES, queries);
    if (status == SB_OK)
        status = launch_rotation(call, SB_APPEND_KEYS, keys);
    call->untouched = false;
    if (status == SB_OK)
        status = launch_scatter(call, SB_APPEND_KEY_CACHE, keys);
    sb_tensor_release(keys);
    return status == SB_OK ? launch_scatter(call, SB_APPEND_VALUE_CACHE, call->inputs[SB_APPEND_VALUES].tensor)
                           : status;
}

const sb_kernel sb_cpu_kernels_paged_append[] = {
    {.op = "PagedAppend",
     .domain = "samebit",
     .name = "paged_append",
     .supports = supports_append,
     .in_place = in_place_append,
     .in_place_more = 1,
     .launch = launch_append},
    {0},
};
