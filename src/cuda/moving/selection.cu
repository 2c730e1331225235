/* What the data choose: items that are taken, in their order, for NonZero and Compress; and the boxes that NonMaxSuppression
 * keeps. How many there are is read by the host before the outputs are written. */
#include "cuda/common/index.cuh"
#include "cuda/moving/selection_parameters.h"
#include "numerics/minmax.h"
#include "ops/regions_values.h"
#include "ops/type_lists.h"

#define THREADS SB_CUDA_SELECTION_THREADS

/* ---- items that are taken ---- */

SB_CUDA_FUNCTION bool is_taken(const sb_cuda_selection *p, int64_t item) {
    switch (p->size) {
    case 1:
        return (((const uint8_t *)(const void *)p->data)[item] & p->mask) != 0;
    case 2:
        return (((const uint16_t *)(const void *)p->data)[item] & p->mask) != 0;
    case 4:
        return (((const uint32_t *)(const void *)p->data)[item] & p->mask) != 0;
    default:
        return (((const uint64_t *)(const void *)p->data)[item] & p->mask) != 0;
    }
}

SB_CUDA_KERNEL(sb_cuda_selection_count, sb_cuda_selection, p) {
    SB_CUDA_EACH(chunk, p->chunks) {
        int64_t count = 0;
        for (int64_t i = chunk * SB_CUDA_SELECTION_CHUNK; i < (chunk + 1) * SB_CUDA_SELECTION_CHUNK && i < p->items;
             i++)
            count += is_taken(p, i);
        p->counts[chunk] = count;
    }
}

/* One block: of each count those ahead of it, and behind the last all. */
SB_CUDA_BLOCK_KERNEL(sb_cuda_selection_scan, sb_cuda_selection, p) {
    SB_CUDA_SHARED int64_t sums[THREADS];
    const int64_t share = (p->chunks + THREADS - 1) / THREADS, first = (int64_t)threadIdx.x * share;
    const int64_t end = first + share < p->chunks ? first + share : p->chunks;
    int64_t sum = 0;
    for (int64_t i = first; i < end; i++)
        sum += p->counts[i];
    sums[threadIdx.x] = sum;
    SB_CUDA_BARRIER();
    sum = 0;
    for (unsigned t = 0; t < threadIdx.x; t++)
        sum += sums[t];
    for (int64_t i = first; i < end; i++) {
        const int64_t own = p->counts[i];
        p->counts[i] = sum;
        sum += own;
    }
    if (threadIdx.x == THREADS - 1)
        p->counts[p->chunks] = *p->total = sum;
}

SB_CUDA_KERNEL(sb_cuda_selection_list, sb_cuda_selection, p) {
    SB_CUDA_EACH(chunk, p->chunks) {
        int64_t at = p->counts[chunk];
        for (int64_t i = chunk * SB_CUDA_SELECTION_CHUNK; i < (chunk + 1) * SB_CUDA_SELECTION_CHUNK && i < p->items;
             i++) {
            if (is_taken(p, i))
                p->list[at++] = i;
        }
    }
}

SB_CUDA_KERNEL(sb_cuda_selection_places, sb_cuda_places, p) {
    SB_CUDA_EACH(index, p->taken) {
        int64_t item = p->list[index];
        for (int d = p->rank - 1; d >= 0; d--)
            p->out[d * p->taken + index] = sb_cuda_take(&item, p->dims[d]);
    }
}

#define KEEP(bits, type)                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_selection_keep_##bits, sb_cuda_kept, p) {                                                   \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t outer = index, inner = sb_cuda_take(&outer, p->inner), item = sb_cuda_take(&outer, p->taken);      \
            ((type *)(void *)p->out)[index] =                                                                          \
                ((const type *)(const void *)p->in)[(outer * p->extent + p->list[item]) * p->inner + inner];           \
        }                                                                                                              \
    }
SB_CUDA_SIZES(KEEP)

/* ---- NonMaxSuppression ---- */

/* Larger for what is chosen first: a larger score, NaN above all, then a smaller index. */
SB_CUDA_FUNCTION int64_t rank_of(float score, int64_t box) {
    return (int64_t)((uint64_t)(uint32_t)sb_bits_order_f32(score) << 32 | (UINT32_MAX - (uint32_t)box));
}

/* The largest of the block's, for all of its threads. */
SB_CUDA_FUNCTION int64_t largest_of(int64_t own, int64_t *shared) {
    shared[threadIdx.x] = own;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        SB_CUDA_BARRIER();
        if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x])
            shared[threadIdx.x] = shared[threadIdx.x + half];
    }
    SB_CUDA_BARRIER();
    const int64_t largest = shared[0];
    SB_CUDA_BARRIER();
    return largest;
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_suppress, sb_cuda_suppression, p) {
    SB_CUDA_SHARED int64_t shared[THREADS];
    SB_CUDA_KEEP_LOOP
    for (int64_t plane = blockIdx.x; plane < p->planes; plane += gridDim.x) {
        int64_t batch = plane, count = 0;
        sb_cuda_take(&batch, p->classes);
        const float *corners = p->corners + batch * p->boxes * 4, *scores = p->scores + plane * p->boxes;
        uint8_t *alive = p->alive + plane * p->boxes;
        int64_t best = INT64_MIN;
        for (int64_t i = threadIdx.x; i < p->boxes; i += THREADS) {
            alive[i] = !p->has_least || scores[i] > p->least;
            if (alive[i] && rank_of(scores[i], i) > best)
                best = rank_of(scores[i], i);
        }
        /* A box is chosen as the best that is left, and takes those away that it overlaps: all that come behind it. */
        while (count < p->most) {
            best = largest_of(best, shared);
            if (best == INT64_MIN)
                break;
            const int64_t box = (int64_t)(UINT32_MAX - (uint32_t)(uint64_t)best);
            const sb_region_corners chosen = sb_region_box_corners(corners + box * 4, p->centred);
            if (threadIdx.x == 0)
                p->chosen[plane * p->most + count] = box;
            count++;
            best = INT64_MIN;
            for (int64_t i = threadIdx.x; i < p->boxes; i += THREADS) {
                if (!alive[i])
                    continue;
                alive[i] = i != box &&
                           !sb_region_overlaps(sb_region_box_corners(corners + i * 4, p->centred), chosen, p->overlap);
                if (alive[i] && rank_of(scores[i], i) > best)
                    best = rank_of(scores[i], i);
            }
        }
        if (threadIdx.x == 0)
            p->counts[plane] = count;
        SB_CUDA_BARRIER();
    }
}

SB_CUDA_KERNEL(sb_cuda_suppression_write, sb_cuda_suppression, p) {
    SB_CUDA_EACH(index, p->planes * p->most) {
        int64_t plane = index, slot = sb_cuda_take(&plane, p->most), at = p->counts[plane] + slot;
        if (at >= p->counts[plane + 1])
            continue;
        int64_t batch = plane;
        p->out[at * 3 + 1] = sb_cuda_take(&batch, p->classes);
        p->out[at * 3] = batch;
        p->out[at * 3 + 2] = p->chosen[index];
    }
}
