/* PagedAppend: a thread for each pair of a query or a key, and for each element of a value. What a key waits for is asked for in two
 * goes: where its sequence begins with its position and elements, then its page with cosine and sine. */
#include "cuda/moving/paged.cuh"
#include "cuda/moving/paged_append_parameters.h"
#include "cuda/rows/rotary.cuh"

SB_CUDA_FUNCTION int64_t count_of(const sb_cuda_paged_append *p) {
    return p->rows * (p->query_units + p->key_units + p->values);
}

#define PAGED_APPEND(suffix, type)                                                                                     \
    SB_CUDA_FUNCTION void append_##suffix(const sb_cuda_paged_append *p, int64_t index) {                              \
        const int64_t turned = p->query_units + p->key_units, each = turned + p->values;                               \
        int64_t row = index, at = sb_cuda_take(&row, each);                                                            \
        if (at >= turned) {                                                                                            \
            const sb_cuda_paged_scatter *values = &p->value_cache;                                                     \
            at -= turned;                                                                                              \
            const type value =                                                                                         \
                SB_CUDA_CONST_ELEMENT(type, values->from, row * values->from_row + at * values->from_column);          \
            char *to = sb_cuda_paged_row(values, row);                                                                 \
            if (to != NULL)                                                                                            \
                SB_CUDA_ELEMENT(type, to, at * values->to_column) = value;                                             \
            return;                                                                                                    \
        }                                                                                                              \
        const bool is_key = at >= p->query_units;                                                                      \
        const sb_cuda_rotary *rotary = is_key ? &p->keys : &p->queries;                                                \
        sb_cuda_paged_begun begun = {{0, 0, 0}, 0};                                                                    \
        if (is_key)                                                                                                    \
            begun = sb_cuda_paged_begin(&p->key_cache, row);                                                           \
        int64_t head = is_key ? at - p->query_units : at, unit = sb_cuda_take(&head, rotary->units);                   \
        const char *x = rotary->x + row * rotary->x_steps[1] + head * rotary->x_steps[2];                              \
        const sb_cuda_unit found = sb_cuda_fetch_unit_##suffix(rotary, 0, row, unit, x);                               \
        char *y = is_key ? sb_cuda_paged_end(&p->key_cache, &begun) : rotary->y + row * rotary->y_steps[1];            \
        if (y != NULL)                                                                                                 \
            sb_cuda_store_unit_##suffix(rotary, &found, unit, x, y + head * rotary->y_steps[2], rotary->y_steps[3]);   \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_paged_append_##suffix, sb_cuda_paged_append, p) {                                           \
        SB_CUDA_EACH(index, count_of(p)) {                                                                             \
            append_##suffix(p, index);                                                                                 \
        }                                                                                                              \
    }
PAGED_APPEND(f16, uint16_t)
PAGED_APPEND(bf16, uint16_t)
PAGED_APPEND(f32, float)
