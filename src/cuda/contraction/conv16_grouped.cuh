/* Convolutions of f16 and bf16 whose groups have few channels, depthwise ones above all, with channels last.
 *
 * The chain of an output runs over the kernel positions and at each over the channels of its group, in groups of 16
 * (numerics.md), and the order inside of a group of 16 does not matter. So a step is one mma.sync.m16n8k16 whose 16 rows
 * are output positions and whose k are what these see of one group of channels: with groups of one channel, 16 kernel
 * positions. Its columns are eight outputs, of which those that belong to other groups get sums that nobody wants and
 * nobody reads: a depthwise channel wants one of eight. That is still many times quicker than the step in integers.
 *
 * A block brings what its tile sees into shared memory, with zeros in the padding, by copies of 16 bytes: eight channels of a
 * position. A warp has sixteen channels of 16 positions at a time. Both groups of eight are multiplied one after the
 * other, as left factors that are made of such eights: thread t of a warp has, of positions t / 4 and t / 4 + 8, the k
 * that it calls its slots (k = 2 (t mod 4), the next one, and those 8 further), and which kernel positions and channels
 * these are is free:
 *
 *     groups of 1     kernel positions 16 step + t mod 4 + 4 slot
 *     of 4 and more   k = 16 step + 4 (t mod 4) + slot of the chain, four channels of one kernel position
 *
 * Columns are numbered such that thread t mod 4 = i gets the sums of channels 4 i to 4 i + 3 of the sixteen: column c of
 * right factor s is channel 4 (c / 2) + 2 s + c mod 2. So it stores 8 bytes, and four threads 32. */
#include "cuda/common/halves.cuh"
#include "cuda/common/index.cuh"
#include "cuda/contraction/conv16_grouped_parameters.h"
#include "cuda/contraction/hopper.cuh"
#include "cuda/contraction/warp_products.cuh"

#define THREADS (32 * SB_CUDA_CONV16_MOST_WARPS)
#define ROWS 16

typedef sb_cuda_conv16_grouped parameters;

/* ---- shared memory ---- */

typedef struct tile_memory {
    sb_cuda_eight *input; /* its first eight are zeros, which lie behind no place */
    sb_cuda_words4 *weights;
    int32_t *places;
} tile_memory;

SB_CUDA_FUNCTION tile_memory find_memory(const parameters *p, unsigned char *shared) {
    tile_memory memory;
    memory.input = (sb_cuda_eight *)(void *)shared;
    memory.weights = (sb_cuda_words4 *)(void *)(memory.input + 1 + 2 * p->pairs * p->plane);
    memory.places = (int32_t *)(void *)(memory.weights + p->pairs * p->steps * 32);
    return memory;
}

/* Where kernel position `tap` is, from that of position 0 on, in eights; below 0 where there is none. */
SB_CUDA_FUNCTION int find_tap(const parameters *p, int tap) {
    const int row = (int)sb_cuda_divide((uint32_t)tap, &p->kernel_columns);
    const int column = tap - row * (int)p->kernel_columns.divisor;
    return tap < p->taps ? row * p->dilation[0] * p->pitch + column * p->dilation[1] : -1;
}

/* The places of what thread t mod 4 of a warp multiplies in each step: SLOTS kernel positions, in eights, for groups of up
 * to 4 channels; else four channels of one, in fours. */
template <int GROUP, int SLOTS> SB_CUDA_FUNCTION void fill_places(const parameters *p, const tile_memory *memory) {
    SB_CUDA_KEEP_LOOP
    for (int at = (int)threadIdx.x; at < p->steps * 4 * SLOTS; at += (int)blockDim.x) {
        if (GROUP == 1) {
            const int step = at / (4 * SLOTS), i = at / SLOTS % 4, slot = at % SLOTS;
            memory->places[at] = find_tap(p, 16 * step + i + 4 * slot);
        } else {
            const int tap = 4 * at / p->group, channel = 4 * at % p->group;
            const int place = find_tap(p, tap);
            memory->places[at] =
                GROUP == 4 || place < 0 ? place : 2 * (place + channel / 8 * p->plane) + channel / 4 % 2;
        }
    }
    if (threadIdx.x < SB_CUDA_EIGHT / 2)
        memory->input[0].pairs[threadIdx.x] = 0;
}

/* Weights of an output: four k of the chain, as pairs; zeros where there are none. */
template <int GROUP> SB_CUDA_FUNCTION sb_cuda_words2 find_weights(const parameters *p, int channel, int step, int i) {
    const uint16_t *line = p->w.data + channel * p->w.line;
    sb_cuda_words2 found = {0, 0};
    if (channel >= p->channels)
        return found;
    if (GROUP == 1) {
        uint32_t e[4];
        SB_CUDA_UNROLL
        for (int slot = 0; slot < 4; slot++) {
            const int tap = 16 * step + i + 4 * slot;
            e[slot] = tap < p->taps ? line[tap * p->w.tap] : 0;
        }
        found.x = e[0] | e[1] << 16;
        found.y = e[2] | e[3] << 16;
    } else {
        const int k = 16 * step + 4 * i, tap = k / p->group;
        if (tap < p->taps)
            found = *(const sb_cuda_words2 *)(const void *)(line + tap * p->w.tap + k % p->group);
    }
    return found;
}

/* The right factors of a tile's channels, as threads hold them. */
template <int GROUP> SB_CUDA_FUNCTION void fill_weights(const parameters *p, const tile_memory *memory, int channel) {
    SB_CUDA_KEEP_LOOP
    for (int at = (int)threadIdx.x; at < p->pairs * p->steps * 32; at += (int)blockDim.x) {
        const int lane = at % 32, pair = at / 32 / p->steps, step = at / 32 - pair * p->steps;
        const int first = channel + pair * SB_CUDA_CONV16_PAIR + lane / 8 * 4 + lane / 4 % 2;
        const sb_cuda_words2 low = find_weights<GROUP>(p, first, step, lane % 4);
        const sb_cuda_words2 high = find_weights<GROUP>(p, first + 2, step, lane % 4);
        const sb_cuda_words4 both = {low.x, low.y, high.x, high.y};
        memory->weights[at] = both;
    }
}

/* ---- tiles ---- */

typedef struct image_tile {
    int64_t sample;
    int channel, row, column; /* the first ones, of the output */
} image_tile;

/* Tiles of the same positions come one after the other. */
SB_CUDA_FUNCTION image_tile find_tile(const parameters *p, int64_t index) {
    image_tile tile;
    tile.sample = index;
    tile.channel = (int)sb_cuda_take(&tile.sample, p->channel_tiles) * p->pairs * SB_CUDA_CONV16_PAIR;
    tile.column = (int)sb_cuda_take(&tile.sample, p->column_tiles) * (int)p->tile_columns.divisor;
    tile.row = (int)sb_cuda_take(&tile.sample, p->row_tiles) * p->tile_rows;
    return tile;
}

/* Begins to copy what a tile sees. A thread copies the same eight channels of several positions. */
SB_CUDA_FUNCTION void begin_input(const parameters *p, const tile_memory *memory, const image_tile *tile) {
    const int eights = 2 * p->pairs, eight = (int)threadIdx.x % eights, step = (int)blockDim.x / eights;
    const int channel = tile->channel + eight * SB_CUDA_EIGHT;
    const int first_row = tile->row * p->stride[0] - p->begin[0];
    const int first_column = tile->column * p->stride[1] - p->begin[1];
    const uint16_t *x = p->x + tile->sample * p->x_sample + channel;
    sb_cuda_eight *to = memory->input + 1 + eight * p->plane;
    const int count = p->reach_rows * (int)p->reach_columns.divisor;
    SB_CUDA_KEEP_LOOP
    for (int at = (int)threadIdx.x / eights; at < count; at += step) {
        const int row = (int)sb_cuda_divide((uint32_t)at, &p->reach_columns);
        const int column = at - row * (int)p->reach_columns.divisor;
        const int from_row = first_row + row, from_column = first_column + column;
        const bool inside = (channel < p->channels) & ((unsigned)from_row < (unsigned)p->in[0]) &
                            ((unsigned)from_column < (unsigned)p->in[1]);
        const uint16_t *from = inside ? x + from_row * p->x_steps[0] + from_column * p->x_steps[1] : p->x;
        sb_cuda_copy_16_or_zero(to + row * p->pitch + column, from, inside);
    }
}

/* ---- sums ---- */

/* A thread's sums of one position or, of its two: channels 4 i to 4 i + 3 of the sixteen. */
typedef struct own_sums {
    float position[2][4];
} own_sums;

/* The sums of step-wise products: right factor s gives channels 2 s and 2 s + 1. */
SB_CUDA_FUNCTION void keep_pair(own_sums *own, int s, const float *sums) {
    own->position[0][2 * s] = sums[0];
    own->position[0][2 * s + 1] = sums[1];
    own->position[1][2 * s] = sums[2];
    own->position[1][2 * s + 1] = sums[3];
}

/* Element `odd` of pairs `low` and `high`, side by side. */
SB_CUDA_FUNCTION uint32_t pair_of(uint32_t low, uint32_t high, bool odd) {
#if defined(__CUDACC__)
    return __byte_perm(low, high, odd ? 0x7632 : 0x5410);
#else
    return odd ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
#endif
}

/* Right factor s of 16 bytes of weights. */
SB_CUDA_FUNCTION void right_of(const sb_cuda_words4 *both, int s, uint32_t *right) {
    right[0] = s == 0 ? both->x : both->z;
    right[1] = s == 0 ? both->y : both->w;
}

/* What a thread multiplies of eight channels of two positions, by its slots, of which SLOTS are used. */
typedef struct seen {
    sb_cuda_eight position[2][SB_CUDA_CONV16_SLOTS];
} seen;

template <int SLOTS>
SB_CUDA_FUNCTION seen fetch_seen(const sb_cuda_eight *input, const int *first, const int32_t *places) {
    const sb_cuda_eight zeros = {{0, 0, 0, 0}};
    seen all;
    SB_CUDA_UNROLL
    for (int slot = 0; slot < SB_CUDA_CONV16_SLOTS; slot++) {
        SB_CUDA_UNROLL
        for (int i = 0; i < 2; i++)
            all.position[i][slot] = slot < SLOTS ? input[places[slot] < 0 ? 0 : first[i] + places[slot]] : zeros;
    }
    return all;
}

/* A step of the chain of channel j of the eight, which is its own group. */
template <int HALF>
SB_CUDA_FUNCTION void step_depthwise(const seen *all, int j, const sb_cuda_words4 *weights, float *sums) {
    uint32_t left[4], right[2];
    SB_CUDA_UNROLL
    for (int part = 0; part < 4; part++) {
        const sb_cuda_eight *both = &all->position[part % 2][part / 2 * 2];
        left[part] = pair_of(both[0].pairs[j / 2], both[1].pairs[j / 2], j % 2 != 0);
    }
    right_of(weights, j / 2 % 2, right);
    sb_cuda_multiply_matrices<HALF>(sums, left, right);
}

/* Channels 4 i to 4 i + 3 are the thread's own. */
SB_CUDA_FUNCTION void keep_depthwise(own_sums *own, int i, int eight, int j, const float *sums) {
    SB_CUDA_UNROLL
    for (int position = 0; position < 2; position++) {
        float *to = &own->position[position][j % 4];
        *to = i == 2 * eight + j / 4 ? sums[2 * position + j % 2] : *to;
    }
}

/* Where a warp is: its sixteen channels, and where the first eights of its two rows of positions lie. */
typedef struct warp_place {
    const tile_memory *memory;
    int pair, first[2];
    int lane;
} warp_place;

/* The places of a step's slots. */
SB_CUDA_FUNCTION void find_slots(const warp_place *at, int step, int32_t *places) {
    memcpy(places, __builtin_assume_aligned(at->memory->places + (step * 4 + at->lane % 4) * SB_CUDA_CONV16_SLOTS, 16),
           SB_CUDA_CONV16_SLOTS * sizeof *places);
}

/* Up to 12 kernel positions: a chain has one step, so no sums but those that are kept have to stay. */
template <int HALF> SB_CUDA_FUNCTION void sum_depthwise_few(const parameters *p, const warp_place *at, own_sums *own) {
    const sb_cuda_words4 weights = at->memory->weights[at->pair * 32 + at->lane];
    int32_t places[SB_CUDA_CONV16_SLOTS];
    find_slots(at, 0, places);
    SB_CUDA_KEEP_LOOP
    for (int eight = 0; eight < 2; eight++) {
        const int plane = 1 + (2 * at->pair + eight) * p->plane;
        const int first[2] = {at->first[0] + plane, at->first[1] + plane};
        const seen all = fetch_seen<3>(at->memory->input, first, places);
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT; j++) {
            float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            step_depthwise<HALF>(&all, j, &weights, sums);
            keep_depthwise(own, at->lane % 4, eight, j, sums);
        }
    }
}

template <int HALF> SB_CUDA_FUNCTION void sum_depthwise(const parameters *p, const warp_place *at, own_sums *own) {
    SB_CUDA_KEEP_LOOP
    for (int eight = 0; eight < 2; eight++) {
        const int plane = 1 + (2 * at->pair + eight) * p->plane;
        const int first[2] = {at->first[0] + plane, at->first[1] + plane};
        float sums[SB_CUDA_EIGHT][4];
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT * 4; j++)
            sums[j / 4][j % 4] = 0.0f;
        SB_CUDA_KEEP_LOOP
        for (int step = 0; step < p->steps; step++) {
            const sb_cuda_words4 weights = at->memory->weights[(at->pair * p->steps + step) * 32 + at->lane];
            int32_t places[SB_CUDA_CONV16_SLOTS];
            find_slots(at, step, places);
            const seen all = fetch_seen<SB_CUDA_CONV16_SLOTS>(at->memory->input, first, places);
            SB_CUDA_UNROLL
            for (int j = 0; j < SB_CUDA_EIGHT; j++)
                step_depthwise<HALF>(&all, j, &weights, sums[j]);
        }
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT; j++)
            keep_depthwise(own, at->lane % 4, eight, j, sums[j]);
    }
}

/* Groups of four: the halves of an eight are two groups. */
template <int HALF> SB_CUDA_FUNCTION void sum_fours(const parameters *p, const warp_place *at, own_sums *own) {
    const int i = at->lane % 4;
    SB_CUDA_KEEP_LOOP
    for (int eight = 0; eight < 2; eight++) {
        const int plane = 1 + (2 * at->pair + eight) * p->plane;
        float sums[2][2][4]; /* of the groups, of the right factors */
        SB_CUDA_UNROLL
        for (int j = 0; j < 16; j++)
            sums[j / 8][j / 4 % 2][j % 4] = 0.0f;
        SB_CUDA_KEEP_LOOP
        for (int step = 0; step < p->steps; step++) {
            const int place = at->memory->places[step * 4 + i];
            const sb_cuda_words4 weights = at->memory->weights[(at->pair * p->steps + step) * 32 + at->lane];
            const sb_cuda_eight upper = at->memory->input[place < 0 ? 0 : at->first[0] + plane + place];
            const sb_cuda_eight lower = at->memory->input[place < 0 ? 0 : at->first[1] + plane + place];
            SB_CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const int group = j / 2;
                const uint32_t left[4] = {upper.pairs[2 * group], lower.pairs[2 * group], upper.pairs[2 * group + 1],
                                          lower.pairs[2 * group + 1]};
                uint32_t right[2];
                right_of(&weights, j % 2, right);
                sb_cuda_multiply_matrices<HALF>(sums[group][j % 2], left, right);
            }
        }
        SB_CUDA_UNROLL
        for (int group = 0; group < 2; group++) {
            if (i == 2 * eight + group) {
                keep_pair(own, 0, sums[group][0]);
                keep_pair(own, 1, sums[group][1]);
            }
        }
    }
}

/* Groups of eight, of which a pair has two, and of sixteens, of which the pair belongs to one. */
template <int HALF, int GROUP>
SB_CUDA_FUNCTION void sum_whole(const parameters *p, const warp_place *at, own_sums *own) {
    const int i = at->lane % 4, eights = GROUP == 8 ? 1 : p->group / SB_CUDA_EIGHT;
    const sb_cuda_words2 *input = (const sb_cuda_words2 *)(const void *)at->memory->input;
    SB_CUDA_KEEP_LOOP
    for (int eight = 0; eight < (GROUP == 8 ? 2 : 1); eight++) {
        const int plane = 1 + (2 * at->pair + eight) / eights * eights * p->plane;
        const int first[2] = {2 * (at->first[0] + plane), 2 * (at->first[1] + plane)};
        float sums[2][4];
        SB_CUDA_UNROLL
        for (int j = 0; j < 8; j++)
            sums[j / 4][j % 4] = 0.0f;
        SB_CUDA_KEEP_LOOP
        for (int step = 0; step < p->steps; step++) {
            const int place = at->memory->places[step * 4 + i];
            const sb_cuda_words4 weights = at->memory->weights[(at->pair * p->steps + step) * 32 + at->lane];
            const sb_cuda_words2 upper = input[place < 0 ? 0 : first[0] + place];
            const sb_cuda_words2 lower = input[place < 0 ? 0 : first[1] + place];
            const uint32_t left[4] = {upper.x, lower.x, upper.y, lower.y};
            SB_CUDA_UNROLL
            for (int s = 0; s < 2; s++) {
                uint32_t right[2];
                right_of(&weights, s, right);
                sb_cuda_multiply_matrices<HALF>(sums[s], left, right);
            }
        }
        if (GROUP != 8 || i / 2 == eight) {
            keep_pair(own, 0, sums[0]);
            keep_pair(own, 1, sums[1]);
        }
    }
}

/* ---- results ---- */

/* Position `number` of a tile: its row and column there. */
SB_CUDA_FUNCTION void find_position(const parameters *p, int number, int *row, int *column) {
    *row = (int)sb_cuda_divide((uint32_t)number, &p->tile_columns);
    *column = number - *row * (int)p->tile_columns.divisor;
}

/* A thread's channels of its two positions, the first of which is `number`: with the bias, rounded and stored. */
template <int HALF>
SB_CUDA_FUNCTION void store(const parameters *p, const image_tile *tile, int channel, int number,
                            sb_cuda_words2 bias_pairs, const own_sums *own) {
    float bias[4];
    sb_cuda_widen_pair<HALF>(bias_pairs.x, &bias[0], &bias[1]);
    sb_cuda_widen_pair<HALF>(bias_pairs.y, &bias[2], &bias[3]);
    uint16_t *y = p->y + (tile->sample * p->out[0] * p->out[1]) * p->channels + channel;
    SB_CUDA_UNROLL
    for (int position = 0; position < 2; position++) {
        int row, column;
        const float *sums = own->position[position];
        find_position(p, number + 8 * position, &row, &column);
        const bool behind = row >= p->tile_rows;
        row += tile->row;
        column += tile->column;
        if (behind || row >= p->out[0] || column >= p->out[1] || channel >= p->channels)
            continue;
        const sb_cuda_words2 results = {
            sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(sums[0] + bias[0], sums[1] + bias[1])),
            sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(sums[2] + bias[2], sums[3] + bias[3]))};
        *(sb_cuda_words2 *)(void *)(y + ((int64_t)row * p->out[1] + column) * p->channels) = results;
    }
}

/* The bias of a thread's four channels, as pairs; -0, which leaves every sum as it is, where there is none. */
SB_CUDA_FUNCTION sb_cuda_words2 find_bias(const parameters *p, int channel) {
    sb_cuda_words2 pairs = {0x80008000u, 0x80008000u};
    if (p->bias != NULL && channel < p->channels) {
        const uint16_t *bias = p->bias + channel * p->bias_step;
        pairs.x = bias[0] | (uint32_t)bias[p->bias_step] << 16;
        pairs.y = bias[2 * p->bias_step] | (uint32_t)bias[3 * p->bias_step] << 16;
    }
    return pairs;
}

/* ---- the kernels ---- */

template <int HALF, int GROUP, bool FEW>
SB_CUDA_FUNCTION void compute_tile(const parameters *p, const tile_memory *memory, const image_tile *tile) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, pair = warp % p->pairs;
    const int channel = tile->channel + pair * SB_CUDA_CONV16_PAIR + lane % 4 * 4;
    const int count = p->tile_rows * (int)p->tile_columns.divisor;
    if (tile->channel + pair * SB_CUDA_CONV16_PAIR >= p->channels)
        return;
    const sb_cuda_words2 bias = find_bias(p, channel);
    SB_CUDA_KEEP_LOOP
    for (int start = warp / p->pairs * ROWS; start < count; start += p->parts * ROWS) {
        warp_place at = {memory, pair, {0, 0}, lane};
        const int number = start + lane / 4;
        own_sums own = {{{0, 0, 0, 0}, {0, 0, 0, 0}}};
        SB_CUDA_UNROLL
        for (int position = 0; position < 2; position++) {
            int row, column;
            find_position(p, number + 8 * position, &row, &column);
            /* Behind the last position nothing has been brought, and nothing is stored. */
            if (row < p->tile_rows)
                at.first[position] = row * p->stride[0] * p->pitch + column * p->stride[1];
        }
        if (GROUP == 1 && FEW)
            sum_depthwise_few<HALF>(p, &at, &own);
        else if (GROUP == 1)
            sum_depthwise<HALF>(p, &at, &own);
        else if (GROUP == 4)
            sum_fours<HALF>(p, &at, &own);
        else
            sum_whole<HALF, GROUP>(p, &at, &own);
        store<HALF>(p, tile, channel, number, bias, &own);
    }
}

template <int HALF, int GROUP, bool FEW> SB_CUDA_FUNCTION void convolve(const parameters *p, unsigned char *shared) {
    const tile_memory memory = find_memory(p, shared);
    fill_places<GROUP, GROUP == 1 ? SB_CUDA_CONV16_SLOTS : 1>(p, &memory);
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < p->tiles; index += gridDim.x) {
        const image_tile tile = find_tile(p, index);
        begin_input(p, &memory, &tile);
        SB_CUDA_COPIES_END();
        fill_weights<GROUP>(p, &memory, tile.channel);
        SB_CUDA_COPIES_WAIT(0);
        SB_CUDA_BARRIER();
        compute_tile<HALF, GROUP, FEW>(p, &memory, &tile);
        SB_CUDA_BARRIER();
    }
}

#define GROUPED(name, half, group, few, blocks)                                                                        \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(name, sb_cuda_conv16_grouped, p, THREADS, blocks) {                                   \
        SB_HOPPER_DYNAMIC_SHARED(shared);                                                                              \
        convolve<half, group, few>(p, shared);                                                                         \
    }
