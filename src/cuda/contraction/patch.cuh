/* The right operand of convolutions as products: column j is what output position j sees of the
 * input, made on the way into shared memory. */
#ifndef SB_CUDA_CONTRACTION_PATCH_CUH
#define SB_CUDA_CONTRACTION_PATCH_CUH

#include "cuda/contraction/tile.cuh"

#define SB_PATCH_EACH SB_CUDA_UNROLL for (int d = 0; d < SB_CUDA_CONV_AXES; d++)

/* What a thread fetches: it stays with one column. */
typedef struct sb_patch_source {
    int64_t first;                /* of x: where tap 0 of channel 0 lies, which may be outside */
    int start[SB_CUDA_CONV_AXES]; /* the input position of tap 0 */
    int tap[SB_CUDA_CONV_AXES];   /* of the next tile, where a tile has one */
    int channel;                  /* the next tile's first one, likewise */
    int k;                        /* the next tile's first one, where not */
    bool wanted;
} sb_patch_source;

SB_CUDA_FUNCTION sb_patch_source sb_patch_open(const sb_cuda_convolution *p, int64_t group, int64_t first_column,
                                               int extent) {
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
    source.channel = source.k = 0;
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

/* Begins to fetch the next tile, of which `left` k are there. */
SB_CUDA_FUNCTION void sb_patch_fetch(const sb_cuda_convolution *p, sb_patch_source *source, float *tile, int64_t left,
                                     int extent, int depth, int threads) {
    const int pitch = SB_TILE_PITCH(extent), depth_step = threads / extent;
    const int k = (int)threadIdx.x / extent;
    float *to = tile + k * pitch + (int)threadIdx.x % extent;
    if ((p->channels & (depth - 1)) == 0) { /* each tile belongs to one kernel position */
        int64_t offset;
        bool inside = sb_patch_find(p, source, source->tap, &offset);
        const float *from = p->x + (inside ? offset + (source->channel + k) * p->x_channel : 0);
        int64_t step = inside ? depth_step * p->x_channel : 0;
        SB_CUDA_UNROLL
        for (int i = 0; i < depth / depth_step; i++)
            sb_cuda_copy_4_or_zero(to + i * depth_step * pitch, from + i * step, inside);
        source->channel += depth;
        if (source->channel == p->channels) {
            bool carry = true;
            source->channel = 0;
            SB_CUDA_UNROLL
            for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
                source->tap[d] += carry;
                carry = source->tap[d] == (int)p->kernel[d].divisor;
                source->tap[d] = carry ? 0 : source->tap[d];
            }
        }
        return;
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < depth / depth_step; i++) {
        int at = k + i * depth_step, tap[SB_CUDA_CONV_AXES];
        if (at >= left)
            continue;
        uint32_t rest = sb_cuda_divide((uint32_t)(source->k + at), &p->chain);
        int channel = source->k + at - (int)(rest * p->chain.divisor);
        SB_CUDA_UNROLL
        for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
            uint32_t quotient = sb_cuda_divide(rest, &p->kernel[d]);
            tap[d] = (int)(rest - quotient * p->kernel[d].divisor);
            rest = quotient;
        }
        int64_t offset;
        bool inside = sb_patch_find(p, source, tap, &offset);
        sb_cuda_copy_4_or_zero(to + i * depth_step * pitch, p->x + (inside ? offset + channel * p->x_channel : 0),
                               inside);
    }
    source->k += depth;
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
