/* The right operand of convolutions as products: column j is what output position j sees of the
 * input, made on the way into shared memory. */
#ifndef SB_CUDA_CONTRACTION_PATCH_CUH
#define SB_CUDA_CONTRACTION_PATCH_CUH

#include "cuda/contraction/tile.cuh"

#define SB_PATCH_EACH SB_CUDA_UNROLL for (int d = 0; d < SB_CUDA_CONV_AXES; d++)

/* The longest run of k but for whole tiles. */
#define SB_PATCH_RUN 16

/* What a thread fetches: it stays with one column. */
typedef struct sb_patch_source {
    int64_t first;                /* of x: where tap 0 of channel 0 lies, which may be outside */
    int start[SB_CUDA_CONV_AXES]; /* the input position of tap 0 */
    int tap[SB_CUDA_CONV_AXES];   /* of the next run's first k; without runs, of the thread's own next one */
    int channel;                  /* likewise */
    bool wanted;
} sb_patch_source;

/* Whether all k of a run, which begins at a multiple of its length, belong to one kernel position. */
#define SB_PATCH_LENGTH(depth) ((depth) < SB_PATCH_RUN ? (depth) : SB_PATCH_RUN)
#define SB_PATCH_HAS_RUNS(p, depth) (((p)->channels & (SB_PATCH_LENGTH(depth) - 1)) == 0)

SB_CUDA_FUNCTION void sb_patch_next_tap(const sb_cuda_convolution *p, sb_patch_source *source) {
    bool carry = true;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
        source->tap[d] += carry;
        carry = source->tap[d] == (int)p->kernel[d].divisor;
        source->tap[d] = carry ? 0 : source->tap[d];
    }
}

/* Goes on by `count` channels, which may be more than a kernel position has. */
SB_CUDA_FUNCTION void sb_patch_advance(const sb_cuda_convolution *p, sb_patch_source *source, int count) {
    source->channel += count;
    SB_CUDA_KEEP_LOOP
    while (source->channel >= p->channels) {
        source->channel -= p->channels;
        sb_patch_next_tap(p, source);
    }
}

SB_CUDA_FUNCTION sb_patch_source sb_patch_open(const sb_cuda_convolution *p, int64_t group, int64_t first_column,
                                               int extent, int depth) {
    sb_patch_source source;
    int64_t column = first_column + (int)threadIdx.x % extent;
    source.wanted = column < p->base.n;
    uint32_t sample = sb_cuda_divide(source.wanted ? (uint32_t)column : 0, &p->positions);
    uint32_t rest = (source.wanted ? (uint32_t)column : 0) - sample * p->positions.divisor;
    source.first = sample * p->x_sample + group * p->x_group;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
        uint32_t quotient = sb_cuda_divide(rest, &p->out[d]);
        source.start[d] = (int)(rest - quotient * p->out[d].divisor) * p->stride[d] - p->begin[d];
        source.first += source.start[d] * p->x_steps[d];
        source.tap[d] = 0;
        rest = quotient;
    }
    source.channel = 0;
    if (!SB_PATCH_HAS_RUNS(p, depth))
        sb_patch_advance(p, &source, (int)threadIdx.x / extent);
    return source;
}

/* Whether a tap lies in the input; where, counted from `first`. */
SB_CUDA_FUNCTION bool sb_patch_find(const sb_cuda_convolution *p, const sb_patch_source *source, const int *tap,
                                    int64_t *offset) {
    bool inside = source->wanted;
    *offset = source->first;
    SB_PATCH_EACH {
        int moved = tap[d] * p->dilation[d];
        inside = inside && (unsigned)(source->start[d] + moved) < (unsigned)p->in[d];
        *offset += moved * p->x_steps[d];
    }
    return inside;
}

/* Begins to fetch `run` k of one kernel position, the thread's every `depth_step`th of them from its `k`th on. */
SB_CUDA_FUNCTION void sb_patch_fetch_run(const sb_cuda_convolution *p, sb_patch_source *source, float *to, int k,
                                         int run, int pitch, int depth_step) {
    int64_t offset;
    const bool inside = sb_patch_find(p, source, source->tap, &offset);
    const float *from = p->x + (inside ? offset + (source->channel + k) * p->x_channel : 0);
    const int64_t step = inside ? depth_step * p->x_channel : 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < run / depth_step; i++)
        sb_cuda_copy_4_or_zero(to + i * depth_step * pitch, from + i * step, inside);
    source->channel += run;
    if (source->channel == p->channels) {
        source->channel = 0;
        sb_patch_next_tap(p, source);
    }
}

/* Begins to fetch the next tile, of which `left` k are there. */
SB_CUDA_FUNCTION void sb_patch_fetch(const sb_cuda_convolution *p, sb_patch_source *source, float *tile, int64_t left,
                                     int extent, int depth, int threads) {
    const int pitch = SB_TILE_PITCH(extent), depth_step = threads / extent;
    const int k = (int)threadIdx.x / extent;
    float *to = tile + k * pitch + (int)threadIdx.x % extent;
    if ((p->channels & (depth - 1)) == 0) { /* the tile is one run */
        sb_patch_fetch_run(p, source, to, k, depth, pitch, depth_step);
        return;
    }
    if (depth > SB_PATCH_RUN && SB_PATCH_HAS_RUNS(p, depth)) {
        SB_CUDA_KEEP_LOOP
        for (int start = 0; start < depth && start < left; start += SB_PATCH_RUN)
            sb_patch_fetch_run(p, source, to + start * pitch, k, SB_PATCH_RUN, pitch, depth_step);
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < depth / depth_step; i++, to += depth_step * pitch) {
        int64_t offset;
        const bool inside = sb_patch_find(p, source, source->tap, &offset);
        if (k + i * depth_step < left)
            sb_cuda_copy_4_or_zero(to, p->x + (inside ? offset + source->channel * p->x_channel : 0), inside);
        sb_patch_advance(p, source, depth_step);
    }
}

/* Finishes and stores neighbours of a row, which may belong to two samples. */
SB_CUDA_FUNCTION void sb_patch_store(const sb_cuda_convolution *p, int64_t group, int64_t row, int64_t column,
                                     int width, const float *chains) {
    const sb_cuda_contraction *base = &p->base;
    uint32_t sample = sb_cuda_divide((uint32_t)column, &p->positions);
    int position = (int)((uint32_t)column - sample * p->positions.divisor);
    int positions = (int)p->positions.divisor;
    int64_t left = base->n - column, channel = group * base->m + row;
    int count = left < width ? (int)left : width;
    bool together = position + count <= positions;
    float *y = base->y + channel * base->y_row;
    if (base->plain && count == 4 && base->vectors) {
        sb_tile_put(y + sample * p->y_sample + position, width, chains);
        return;
    }
    float held[4] = {chains[0], chains[width > 1 ? 1 : 0], chains[width > 2 ? 2 : 0], chains[width > 3 ? 3 : 0]};
    SB_CUDA_KEEP_LOOP
    for (int done = 0; done < count; done += together ? count : 1) {
        sb_cuda_epilogue_place place;
        sb_cuda_epilogue_begin(&base->epilogue, sample, &place);
        place.row = channel;
        place.column = position;
        sb_tile_store(base, &place, y + sample * p->y_sample + position, width, together ? count : 1, base->vectors,
                      held);
        held[0] = held[1];
        held[1] = held[2];
        held[2] = held[3];
        if (++position == positions) {
            position = 0;
            sample++;
        }
    }
}

#endif
