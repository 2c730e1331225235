#include "cuda/attention/attention16_append.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda/attention/attention16_few_parameters.h"
#include "cuda/moving/paged_append.h"

/* Of one row, which nothing says to be unused, and whole heads. */
static bool turns_heads(const sb_cuda_rotary *r, int64_t heads, int64_t width) {
    return r->positions != NULL && r->used_batch == NULL && r->used_tokens == NULL && r->used_rows == NULL &&
           r->half == width / 2 && r->heads == heads;
}

/* Whether an array's rows are the cache that rows are appended to, whose only page a sequence lies on. */
static bool is_cache(const sb_cuda_attention_array *array, const sb_cuda_paged_scatter *scatter, int64_t width) {
    const sb_pages *pages = &scatter->pages;
    return pages->pages == 1 && pages->columns == 1 && pages->sequences == 1 && pages->new_rows == 1 &&
           array->data == scatter->out && array->row * 2 == scatter->to_row && array->head == width &&
           array->column == 1;
}

/* Whether all new rows are one of one sequence, and attention sees the cache, and those queries alone that are turned. */
static bool are_one(const sb_cuda_paged_append *append, const sb_cuda_attention *a) {
    const sb_cuda_rotary *queries = &append->queries, *keys = &append->keys;
    return append->rows == 1 && a->pages.table == NULL && a->batch == 1 && a->queries == 1 && a->past == 0 &&
           a->used_queries == NULL && a->used_past == NULL && a->used_fresh == NULL && a->width == a->value_width &&
           turns_heads(queries, a->heads, a->width) && turns_heads(keys, a->key_heads, a->width) &&
           append->values == a->key_heads * a->width && is_cache(&a->k, &append->key_cache, a->width) &&
           is_cache(&a->v, &append->value_cache, a->width) && a->q.data == queries->y &&
           a->q.head * 2 == queries->y_steps[2] && a->q.column == 1;
}

/* Whether both are turned by the same rows of the same tables, which is what the operator says. */
static bool have_same_tables(const sb_cuda_rotary *a, const sb_cuda_rotary *b) {
    return a->positions == b->positions && a->cosines == b->cosines && a->sines == b->sines && a->rows == b->rows &&
           a->cosine_steps[1] == b->cosine_steps[1] && a->sine_steps[1] == b->sine_steps[1];
}

static sb_cuda_attention16_append describe(const sb_cuda_paged_append *append, const sb_cuda_attention *a) {
    const sb_cuda_rotary *queries = &append->queries, *keys = &append->keys;
    return (sb_cuda_attention16_append){
        .queries = {(char *)(uintptr_t)queries->x, 0, queries->x_steps[2] / 2, 0, 1},
        .keys = keys->x,
        .values = append->value_cache.from,
        .cosines = keys->cosines,
        .sines = keys->sines,
        .key_step = keys->x_steps[2],
        .value_step = a->width * 2,
        .cosine_step = keys->cosine_steps[1],
        .sine_step = keys->sine_steps[1],
        .room = append->key_cache.pages.rows,
        .table_rows = keys->rows,
        .start = (const int64_t *)(const void *)append->key_cache.starts,
        .position = (const int64_t *)(const void *)keys->positions,
        .fault = append->key_cache.fault,
    };
}

/* Bytes of a cache, the keys or the values. */
static sb_cuda_range range_of(const sb_cuda_paged_scatter *cache) {
    return (sb_cuda_range){(CUdeviceptr)(uintptr_t)cache->out, (size_t)(cache->pages.rows * cache->to_row), false};
}

static sb_cuda_range range_of_number(const int64_t *number) {
    return (sb_cuda_range){(CUdeviceptr)(uintptr_t)number, sizeof *number, false};
}

/* What is read before the kernels ahead have ended, unless they write it: whatever there is but the new row. */
static sb_cuda_settled settled_of(const sb_cuda_paged_append *append, const sb_cuda_attention16_few_appended *given) {
    return (sb_cuda_settled){
        .place = offsetof(sb_cuda_attention16_few_appended, append.ahead),
        .count = 5,
        .ranges = {range_of(&append->key_cache), range_of(&append->value_cache), range_of_number(given->append.start),
                   range_of_number(given->append.position),
                   given->attention.attention.lengths != NULL ? range_of_number(given->attention.attention.lengths)
                                                              : (sb_cuda_range){0}},
        .comes_early = true,
    };
}

/* Launched early, blocks lie where there is room. A multiprocessor that the product ahead has left idle should not get two of them: so each
 * asks for more than half of the shared memory, where half of the multiprocessors are enough. With a block for nearly each, as four
 * splits of eight heads have, a token of the 8B shape took 1.5 % longer. */
static void come_early(const sb_cuda_device *device, const sb_cuda_paged_append *append,
                       const sb_cuda_attention16_few_appended *given, sb_cuda_kernel_task *task) {
    const unsigned half = (unsigned)device->shared_bytes / 2 + 1024;
    if (2 * task->grid[0] > (unsigned)device->multiprocessors)
        return;
    task->shared_bytes = task->shared_bytes > half ? task->shared_bytes : half;
    task->settled = settled_of(append, given);
}

sb_status sb_cuda_attention16_join_append(sb_cuda_device *device, const sb_cuda_kernel_task *ahead,
                                          const sb_cuda_kernel_task *own, sb_cuda_joined *joined, sb_error *error) {
    sb_cuda_attention16_few_appended *given = (sb_cuda_attention16_few_appended *)(void *)joined->parameters;
    _Static_assert(sizeof *given <= SB_CUDA_PARAMETER_BYTES, "a kernel's parameters");
    const sb_cuda_paged_append *append = ahead->parameters;
    const bool is_f16 = strcmp(ahead->kernel->name, "sb_cuda_paged_append_f16") == 0;
    if (!is_f16 && strcmp(ahead->kernel->name, "sb_cuda_paged_append_bf16") != 0)
        return SB_OK;
    memcpy(&given->attention, own->parameters, sizeof given->attention);
    const sb_cuda_attention *a = &given->attention.attention;
    /* All blocks read the new row, so nothing that attention writes may lie there: sb_kernel.lingers. */
    if ((a->width != 64 && a->width != 128) || !are_one(append, a) ||
        !have_same_tables(&append->queries, &append->keys) || !sb_cuda_append_takes_eights(append) ||
        sb_cuda_writes_into(own, ahead) || sb_cuda_writes_over_itself(ahead))
        return SB_OK;
    char module[48], name[64];
    snprintf(module, sizeof module, "attention16_few_appended_%d_%s", (int)a->width, is_f16 ? "f16" : "bf16");
    snprintf(name, sizeof name, "sb_cuda_%s", module);
    joined->task = *own;
    SB_TRY(sb_cuda_kernel_find(device, module, name, sizeof *given, &joined->task.kernel, error));
    given->append = describe(append, a);
    joined->task.join = NULL;
    joined->task.parameters = given;
    come_early(device, append, given, &joined->task);
    sb_cuda_join_ranges(ahead, own, joined);
    joined->is_joined = true;
    return SB_OK;
}
