/* Elements placed by index: first where each update goes, then which updates go to the same place,
 * and then one thread for each place that is written applies its updates in their order. */
#include "cuda/common/index.cuh"
#include "cuda/moving/gather_parameters.h"

SB_CUDA_KERNEL(sb_cuda_scatter_find_places, sb_cuda_scatter_places, p) {
    SB_CUDA_EACH(update, p->updates) {
        int64_t place = 0;
        int inside = 1;
        for (int d = 0; d < p->depth; d++) {
            int64_t at =
                sb_cuda_check_index(sb_cuda_index(p->indices, p->wide, update * p->depth + d), p->dims[d], p->fault);
            inside &= at >= 0;
            place = place * p->dims[d] + at;
        }
        if (p->rank > 0) {
            int64_t rest = update, stride = 1;
            SB_CUDA_KEEP_LOOP
            for (int d = p->rank - 1; d >= 0; d--) {
                int64_t at = sb_cuda_take(&rest, p->extents[d]);
                if (d == p->axis)
                    at = sb_cuda_check_index(sb_cuda_index(p->indices, p->wide, update), p->dims[d], p->fault);
                inside &= at >= 0;
                place += at * stride;
                stride *= p->dims[d];
            }
        }
        p->places[update] = inside ? place : -1;
    }
}

SB_CUDA_KERNEL(sb_cuda_scatter_link, sb_cuda_scatter_links, p) {
    SB_CUDA_EACH(update, p->updates) {
        int64_t outer = update, inner = sb_cuda_take(&outer, p->inner);
        int64_t at = sb_cuda_take(&outer, p->line);
        const int64_t *line = p->places + outer * p->line * p->inner + inner;
        int64_t place = line[at * p->inner], next = at + 1, before = at - 1;
        while (next < p->line && line[next * p->inner] != place)
            next++;
        while (before >= 0 && line[before * p->inner] != place)
            before--;
        p->next[update] = next < p->line ? update + (next - at) * p->inner : -1;
        p->first[update] = (uint8_t)(before < 0);
    }
}

/* The last update of a place stays. */
#define SET(size, type)                                                                                                \
    SB_CUDA_KERNEL(sb_cuda_scatter_set_##size, sb_cuda_scatter, p) {                                                   \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t update = index, at = sb_cuda_take(&update, p->block);                                              \
            if (p->places[update] >= 0 && p->next[update] < 0)                                                         \
                ((type *)(void *)p->out)[p->places[update] * p->block + at] =                                          \
                    ((const type *)(const void *)p->from)[index];                                                      \
        }                                                                                                              \
    }
SB_CUDA_SIZES(SET)

#define COMBINE(size, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_scatter_combine_##size, sb_cuda_scatter, p) {                                               \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t update = index, at = sb_cuda_take(&update, p->block);                                              \
            if (p->places[update] < 0 || !p->first[update])                                                            \
                continue;                                                                                              \
            type *to = (type *)(void *)p->out + p->places[update] * p->block + at;                                     \
            for (; update >= 0; update = p->next[update])                                                              \
                sb_scatter_combine(p->how, p->dtype, (char *)to,                                                       \
                                   p->from + (update * p->block + at) * (int64_t)sizeof(type));                        \
        }                                                                                                              \
    }
SB_CUDA_SIZES(COMBINE)
