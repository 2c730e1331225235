/* Fetching tiles of an operand into shared memory, and what becomes of finished chains: what the
 * tiled kernels of contractions have in common.
 *
 * A tile has `depth` rows, one for each k, of `extent` elements and four more: with those, eight
 * threads that write neighbouring k, and four that write neighbouring elements, meet in no bank. */
#ifndef SB_CUDA_CONTRACTION_TILE_CUH
#define SB_CUDA_CONTRACTION_TILE_CUH

#include "cuda/common/asynchronous.cuh"
#include "cuda/common/words.cuh"
#include "cuda/contraction/contraction_parameters.h"
#include "cuda/contraction/epilogue.cuh"

/* Names that are macros are replaced on the way. */
#define SB_TILE_KERNEL(name, type, parameters, threads, blocks)                                                        \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(name, type, parameters, threads, blocks)
#define SB_TILE_PITCH(extent) ((extent) + 4)

/* What a thread fetches of each tile of an operand. The functions below are always inlined with
 * constant extents, so loops unroll and everything lies in registers. */
typedef struct sb_tile_source {
    const float *from; /* the thread's first element of the next tile */
    int64_t step, k_step;
    int fetch;
    int at;          /* where that element goes in the tile */
    int k;           /* its k in the tile */
    uint32_t wanted; /* bit p: the element of pass p is inside of the matrix; all bits: all are */
} sb_tile_source;

/* Rows of the operand that a pass of eight k takes, and how k advances when they exceed the tile. */
#define SB_TILE_K_MAJOR_ROWS(extent, threads) ((threads) / 8 < (extent) ? (threads) / 8 : (extent))
#define SB_TILE_K_MAJOR_DEPTH(extent, threads) ((threads) / SB_TILE_K_MAJOR_ROWS(extent, threads))
#define SB_TILE_VECTORS(extent) ((extent) < 4 ? 1 : (extent) / 4)

/* `first` is element (0, 0) of the block's first tile, of whose elements `left` are inside. */
SB_CUDA_FUNCTION sb_tile_source sb_tile_open(const sb_cuda_operand *operand, const float *first, int64_t left,
                                             int extent, int threads) {
    int thread = (int)threadIdx.x, element;
    sb_tile_source source;
    source.step = operand->step;
    source.k_step = operand->k_step;
    source.fetch = operand->fetch;
    if (source.fetch == SB_CUDA_FETCH_VECTORS) {
        element = thread % SB_TILE_VECTORS(extent) * 4;
        source.k = thread / SB_TILE_VECTORS(extent);
        source.wanted = element < left ? ~0u : 0;
    } else if (source.fetch == SB_CUDA_FETCH_K_MAJOR) {
        int rows = SB_TILE_K_MAJOR_ROWS(extent, threads);
        element = thread / 8 % rows;
        source.k = thread % 8 + thread / 8 / rows * 8;
        source.wanted = 0;
        for (int p = 0; p < extent / rows; p++)
            source.wanted |= (uint32_t)(element + p * rows < left) << p;
        if (left >= extent)
            source.wanted = ~0u;
    } else {
        element = thread % extent;
        source.k = thread / extent;
        source.wanted = element < left ? ~0u : 0;
    }
    source.at = source.k * SB_TILE_PITCH(extent) + element;
    source.from = first + element * source.step + source.k * source.k_step;
    return source;
}

/* Begins to fetch a tile that is there as a whole, as nearly all are: without a question for each
 * element, and with addresses that follow from each other. */
SB_CUDA_FUNCTION void sb_tile_fetch_whole(const sb_tile_source *source, float *to, int extent, int depth, int threads) {
    const int pitch = SB_TILE_PITCH(extent);
    const float *from = source->from;
    if (source->fetch == SB_CUDA_FETCH_VECTORS) {
        const int depth_step = threads / SB_TILE_VECTORS(extent);
        SB_CUDA_UNROLL
        for (int p = 0; p < (depth + depth_step - 1) / depth_step; p++) {
            if (depth % depth_step == 0 || source->k + p * depth_step < depth)
                sb_cuda_copy_16(to + p * depth_step * pitch, from);
            from += depth_step * source->k_step;
        }
    } else if (source->fetch == SB_CUDA_FETCH_K_MAJOR) {
        const int rows = SB_TILE_K_MAJOR_ROWS(extent, threads);
        const int depth_step = SB_TILE_K_MAJOR_DEPTH(extent, threads);
        SB_CUDA_UNROLL
        for (int q = 0; q < (depth + depth_step - 1) / depth_step; q++) {
            const float *row = from + q * depth_step * source->k_step;
            SB_CUDA_UNROLL
            for (int p = 0; p < extent / rows; p++) {
                if (depth % depth_step == 0 || source->k + q * depth_step < depth)
                    sb_cuda_copy_4(to + q * depth_step * pitch + p * rows, row);
                row += rows * source->step;
            }
        }
    } else {
        const int depth_step = threads / extent;
        SB_CUDA_UNROLL
        for (int p = 0; p < (depth + depth_step - 1) / depth_step; p++) {
            if (depth % depth_step == 0 || source->k + p * depth_step < depth)
                sb_cuda_copy_4(to + p * depth_step * pitch, from);
            from += depth_step * source->k_step;
        }
    }
}

/* Begins to fetch the next tile, of which `left` k are there. Elements outside of the matrix are
 * left as they are: chains that use them are not stored. */
SB_CUDA_FUNCTION void sb_tile_fetch(sb_tile_source *source, float *tile, int64_t left, int extent, int depth,
                                    int threads) {
    const int pitch = SB_TILE_PITCH(extent);
    const float *from = source->from;
    float *to = tile + source->at;
    if (left >= depth && source->wanted == ~0u) {
        sb_tile_fetch_whole(source, to, extent, depth, threads);
        source->from = from + depth * source->k_step;
        return;
    }
    source->from = from + depth * source->k_step;
    if (source->fetch == SB_CUDA_FETCH_VECTORS) {
        const int vectors = SB_TILE_VECTORS(extent), depth_step = threads / vectors;
        const int passes = (depth + depth_step - 1) / depth_step;
        int end = source->wanted == 0 ? 0 : left < depth ? (int)left : depth;
        SB_CUDA_UNROLL
        for (int p = 0; p < passes; p++) {
            if (source->k + p * depth_step < end)
                sb_cuda_copy_16(to + p * depth_step * pitch, from + p * depth_step * source->k_step);
        }
    } else if (source->fetch == SB_CUDA_FETCH_K_MAJOR) {
        const int rows = SB_TILE_K_MAJOR_ROWS(extent, threads);
        const int depth_step = SB_TILE_K_MAJOR_DEPTH(extent, threads), passes = extent / rows;
        int end = left < depth ? (int)left : depth;
        SB_CUDA_UNROLL
        for (int q = 0; q < (depth + depth_step - 1) / depth_step; q++) {
            bool there = source->k + q * depth_step < end;
            const float *column = from + q * depth_step * source->k_step;
            SB_CUDA_UNROLL
            for (int p = 0; p < passes; p++) {
                if (there && (source->wanted >> p & 1) != 0)
                    sb_cuda_copy_4(to + q * depth_step * pitch + p * rows, column + p * rows * source->step);
            }
        }
    } else {
        const int depth_step = threads / extent, passes = (depth + depth_step - 1) / depth_step;
        int end = source->wanted == 0 ? 0 : left < depth ? (int)left : depth;
        SB_CUDA_UNROLL
        for (int p = 0; p < passes; p++) {
            if (source->k + p * depth_step < end)
                sb_cuda_copy_4(to + p * depth_step * pitch, from + p * depth_step * source->k_step);
        }
    }
}

/* `width` neighbours in shared memory: 1, 2 or 4. */
SB_CUDA_FUNCTION void sb_tile_take(const float *from, int width, float *to) {
    if (width == 4) {
        sb_cuda_float4 four = *(const sb_cuda_float4 *)(const void *)from;
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else if (width == 2) {
        sb_cuda_float2 two = *(const sb_cuda_float2 *)(const void *)from;
        to[0] = two.x;
        to[1] = two.y;
    } else {
        to[0] = from[0];
    }
}

SB_CUDA_FUNCTION void sb_tile_put(float *to, int width, const float *values) {
    if (width == 4) {
        sb_cuda_float4 four = {values[0], values[1], values[2], values[3]};
        *(sb_cuda_float4 *)(void *)to = four;
    } else {
        for (int j = 0; j < width; j++)
            to[j] = values[j];
    }
}

/* What happens to four chains of a row, whose addend begins at `addend` (NULL: none). */
SB_CUDA_FUNCTION void sb_tile_epilogue(const sb_cuda_contraction *p, const float *addend, int64_t addend_step,
                                       const sb_cuda_epilogue_place *place, float *values) {
    if (p->alpha != 1.0f) {
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            values[j] = p->alpha * values[j];
    }
    if (addend != NULL) {
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++) {
            float other = addend[j * addend_step];
            values[j] = values[j] + (p->beta != 1.0f ? p->beta * other : other);
        }
    }
    if (p->epilogue.code.count > 0)
        sb_cuda_epilogue_f32x4(&p->epilogue, place, values);
}

/* Finishes and stores the elements (row, column …) of a group of `width` (1 or 4) neighbours in a
 * row, of which `count` are inside. `place` is that of the group's first element, `y` its address,
 * all in the terms of the matrix of one batch. Groups that are not whole take their elements one by
 * one, each as four times itself, so that there is one evaluator. */
SB_CUDA_FUNCTION void sb_tile_store(const sb_cuda_contraction *p, sb_cuda_epilogue_place *place, float *y, int width,
                                    int count, bool vectors, const float *chains) {
    bool whole = width == 4 && count == 4;
    float held[4] = {chains[0], chains[width > 1 ? 1 : 0], chains[width > 2 ? 2 : 0], chains[width > 3 ? 3 : 0]};
    place->column_distance = whole;
    SB_CUDA_KEEP_LOOP
    for (int j = 0; j < (whole ? 1 : count); j++) {
        float values[4];
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            values[i] = whole ? held[i] : held[0];
        const float *addend = p->addend;
        if (addend != NULL)
            addend += place->row * p->addend_row + place->column * p->addend_column;
        sb_tile_epilogue(p, addend, whole ? p->addend_column : 0, place, values);
        if (whole && vectors) {
            sb_tile_put(y, 4, values);
        } else if (whole) {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                y[i * p->y_column] = values[i];
        } else {
            *y = values[0];
            y += p->y_column;
            place->column++;
            held[0] = held[1];
            held[1] = held[2];
            held[2] = held[3];
        }
    }
    if (!whole)
        place->column -= count;
}

/* Where tile `index` of the grid lies. Tiles go down eight rows of tiles before they go on to the
 * next column, so that those that run at the same time share what they read. */
#define SB_TILE_BAND 8
typedef struct sb_tile_place {
    int64_t batch, m, n; /* in tiles */
} sb_tile_place;

SB_CUDA_FUNCTION sb_tile_place sb_tile_place_of(const sb_cuda_contraction *p, int64_t index) {
    int64_t tiles = p->m_tiles * p->n_tiles;
    sb_tile_place place;
    place.batch = p->batches > 1 ? index / tiles : 0;
    int64_t rest = index - place.batch * tiles, band = rest / (SB_TILE_BAND * p->n_tiles);
    int64_t first = band * SB_TILE_BAND, left = p->m_tiles - first;
    int64_t rows = left < SB_TILE_BAND ? left : SB_TILE_BAND;
    rest -= first * p->n_tiles;
    place.n = rest / rows;
    place.m = first + rest - place.n * rows;
    return place;
}

#endif
