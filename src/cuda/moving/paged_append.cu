/* PagedAppend: a thread for each pair of a query or a key, and for each element of a value. */
#include "cuda/moving/paged.cuh"
#include "cuda/moving/paged_append_parameters.h"
#include "cuda/rows/rotary.cuh"

#define PAGED_APPEND(suffix, type)                                                                                     \
    SB_CUDA_KERNEL(sb_cuda_paged_append_##suffix, sb_cuda_paged_append, p) {                                           \
        const int64_t turned = p->query_units + p->key_units, each = turned + p->values;                               \
        SB_CUDA_EACH(index, p->rows *each) {                                                                           \
            int64_t row = index, at = sb_cuda_take(&row, each);                                                        \
            if (at >= turned) {                                                                                        \
                const sb_cuda_paged_scatter *values = &p->value_cache;                                                 \
                char *to = sb_cuda_paged_row(values, row);                                                             \
                at -= turned;                                                                                          \
                if (to != NULL)                                                                                        \
                    SB_CUDA_ELEMENT(type, to, at * values->to_column) =                                                \
                        SB_CUDA_CONST_ELEMENT(type, values->from, row * values->from_row + at * values->from_column);  \
                continue;                                                                                              \
            }                                                                                                          \
            const bool is_key = at >= p->query_units;                                                                  \
            const sb_cuda_rotary *rotary = is_key ? &p->keys : &p->queries;                                            \
            int64_t head = is_key ? at - p->query_units : at, unit = sb_cuda_take(&head, rotary->units);               \
            char *y = is_key ? sb_cuda_paged_row(&p->key_cache, row) : rotary->y + row * rotary->y_steps[1];           \
            if (y != NULL)                                                                                             \
                sb_cuda_turn_##suffix(rotary, 0, row, unit,                                                            \
                                      rotary->x + row * rotary->x_steps[1] + head * rotary->x_steps[2],                \
                                      y + head * rotary->y_steps[2], rotary->y_steps[3]);                              \
        }                                                                                                              \
    }
PAGED_APPEND(f16, uint16_t)
PAGED_APPEND(bf16, uint16_t)
PAGED_APPEND(f32, float)
