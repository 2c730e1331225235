/* Convolutions of f16 and bf16 in small groups of channels, with channels last (conv16_grouped.cuh): which can be, and how
 * large their tiles are. */
#include <stdio.h>

#include "cuda/contraction/conv16_grouped_parameters.h"
#include "cuda/contraction/conv16_internal.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/driver/device.h"

#define PAIR SB_CUDA_CONV16_PAIR
/* Of the 228 KB of a multiprocessor, so that two blocks fit. */
#define MOST_SHARED (112 * 1024)
/* Of a tile. */
#define MOST_POSITIONS 512

/* ---- which ---- */

/* Kernels by the size of their groups. */
typedef struct way {
    const char *kernel;
    int slots;      /* places for each of four threads in a step */
    int blocks;     /* of a multiprocessor, as far as registers go */
    int step_issue; /* instructions of a warp for a step of eight channels, about */
} way;

static way way_of(int64_t group, int64_t taps) {
    if (group == 1 && taps <= 12)
        return (way){"depthwise_few", SB_CUDA_CONV16_SLOTS, 3, 90};
    if (group == 1)
        return (way){"depthwise", SB_CUDA_CONV16_SLOTS, 2, 70};
    if (group == 4)
        return (way){"grouped_4", 1, 3, 25};
    if (group == 8)
        return (way){"grouped_8", 1, 4, 18};
    return (way){"grouped_16", 1, 4, 9};
}

/* Whether there is a kernel for groups of this size, whose channels a block has all of. */
static bool has_group(int64_t group) {
    return group == 1 || group == 4 || group == 8 || (group % PAIR == 0 && group <= PAIR * SB_CUDA_CONV16_MOST_PAIRS);
}

/* Width is axis 1, height axis 0, as an image has them; one axis is the width. */
static sb_window_axis axis_of(const sb_conv_extents *extents, int d) {
    sb_window_axis none = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    int i = d - (2 - extents->axes);
    return i >= 0 ? extents->axis[i] : none;
}

/* ---- tiles ---- */

/* Sixteens of channels of a tile: most of them that leave few empty, and whole groups. */
static int choose_pairs(int64_t channels, int64_t group) {
    int64_t all = (channels + PAIR - 1) / PAIR, least = group > PAIR ? group / PAIR : 1, best_cost = INT64_MAX;
    int best = (int)least;
    for (int64_t pairs = least; pairs <= SB_CUDA_CONV16_MOST_PAIRS; pairs += least) {
        /* A block's own work is worth half a pair. */
        int64_t cost = (all + pairs - 1) / pairs * (2 * pairs + 1);
        if (cost <= best_cost) {
            best_cost = cost;
            best = (int)pairs;
        }
    }
    return best;
}

/* How far kernel position `tap` lies from position 0, in eights. */
static int64_t find_tap(const sb_cuda_conv16_grouped *to, int64_t tap) {
    int64_t columns = to->kernel_columns.divisor;
    return tap / columns * to->dilation[0] * to->pitch + tap % columns * to->dilation[1];
}

/* How many times a warp goes to shared memory for what its threads read at once, in the first of its steps. Eight threads, or
 * sixteen that read 8 bytes, are served together where what they read lies in eight different eights of banks. */
static int count_turns(const sb_cuda_conv16_grouped *to, const way *way) {
    int rows = to->group <= 4 ? 2 : 4, turns = 0;
    for (int64_t slot = 0; slot < to->steps * way->slots && slot < 16; slot++) {
        int64_t seen[16];
        int count = 0, in_bank[8] = {0}, most = 1;
        for (int thread = 0; thread < 4 * rows; thread++) {
            int64_t i = thread % 4, tap, eight = 0;
            if (to->group == 1) {
                tap = slot / 4 * 16 + i + slot % 4 * 4;
            } else {
                tap = (16 * slot + 4 * i) / to->group;
                eight = (16 * slot + 4 * i) % to->group / 8;
            }
            if (tap >= to->taps)
                continue;
            int64_t at = thread / 4 * to->stride[1] + find_tap(to, tap) + eight * to->plane;
            bool is_new = true;
            for (int j = 0; j < count; j++)
                is_new = is_new && seen[j] != at;
            if (!is_new)
                continue;
            seen[count++] = at;
            in_bank[at % 8]++;
            if (in_bank[at % 8] > most)
                most = in_bank[at % 8];
        }
        turns += most;
    }
    return turns;
}

/* Distances in shared memory, which may be longer than what they hold so that threads meet in few banks. */
static void choose_distances(sb_cuda_conv16_grouped *to, const way *way) {
    int columns = (int)to->reach_columns.divisor, best_pitch = 0, best_plane = 0, best = INT32_MAX;
    for (int pitch = columns; pitch < columns + 8; pitch++) {
        /* Threads that copy different eights of a position are to meet in few banks, too. */
        for (int odd = 1; odd < 8; odd += 3) {
            to->pitch = pitch;
            to->plane = to->reach_rows * pitch + ((odd - to->reach_rows * pitch) & 7);
            int turns = count_turns(to, way);
            if (turns < best) {
                best = turns;
                best_pitch = pitch;
                best_plane = to->plane;
            }
        }
    }
    to->pitch = best_pitch;
    to->plane = best_plane;
}

/* The tile's extents, and what follows from them; false where it does not fit. `pitch` is an estimate. */
static bool set_tile(sb_cuda_conv16_grouped *to, const way *way, int64_t rows, int64_t columns) {
    int64_t reach_rows = (rows - 1) * to->stride[0] + (to->taps / to->kernel_columns.divisor - 1) * to->dilation[0] + 1;
    int64_t reach_columns = (columns - 1) * to->stride[1] + (to->kernel_columns.divisor - 1) * to->dilation[1] + 1;
    /* In eights: each plane has two for each sixteen channels, and nothing overflows below. */
    if (reach_rows > MOST_SHARED / 16 || reach_columns > MOST_SHARED / 16 ||
        (reach_rows + 1) * (reach_columns + 8) > MOST_SHARED / 16)
        return false;
    to->tile_rows = (int32_t)rows;
    to->tile_columns = sb_cuda_divisor_of((uint32_t)columns);
    to->reach_rows = (int32_t)reach_rows;
    to->reach_columns = sb_cuda_divisor_of((uint32_t)reach_columns);
    to->row_tiles = (int32_t)((to->out[0] + rows - 1) / rows);
    to->column_tiles = (int32_t)((to->out[1] + columns - 1) / columns);
    to->pitch = (int32_t)(reach_columns + 7);
    to->plane = (int32_t)(reach_rows * (reach_columns + 7) + 7);
    return sb_cuda_conv16_grouped_shared(to, way->slots) <= MOST_SHARED;
}

/* Cycles that all tiles take, about: a multiprocessor works on its tiles one after the other, and waits for memory once for
 * as many as it has at a time. */
static double tile_cost(const sb_cuda_conv16_grouped *to, const way *way, int64_t batch, int multiprocessors) {
    int64_t chunks = ((int64_t)to->tile_rows * to->tile_columns.divisor + 15) / 16;
    int64_t tiles = batch * to->channel_tiles * to->row_tiles * to->column_tiles;
    int64_t fit = 220 * 1024 / sb_cuda_conv16_grouped_shared(to, way->slots);
    int64_t resident = (int64_t)multiprocessors * (fit < way->blocks ? fit : way->blocks);
    double steps = (double)(2 * to->steps * way->step_issue + 60);
    double input = 2.0 * to->pairs * to->reach_rows * to->reach_columns.divisor;
    double work = (double)(chunks * to->pairs) * steps / 4 + input * 0.8;
    double alone = 2000 + (double)((chunks + to->parts - 1) / to->parts) * steps * 2;
    double rounds = (double)((tiles + resident - 1) / resident);
    return rounds * alone + (double)((tiles + multiprocessors - 1) / multiprocessors) * work;
}

/* The largest extent of at most `most` that an axis is cut into evenly; 0 where `most` is. */
static int64_t even_part(int64_t extent, int64_t most) {
    if (most == 0)
        return 0;
    int64_t cuts = (extent + most - 1) / most;
    return (extent + cuts - 1) / cuts;
}

/* Cuts the image into tiles, of which those of one position fit. */
static void choose_tile(sb_cuda_conv16_grouped *to, const way *way, int64_t batch, int multiprocessors) {
    double best = 0;
    int64_t best_rows = 0, best_columns = 0;
    int64_t columns = even_part(to->out[1], MOST_POSITIONS);
    for (; columns > 0; columns = even_part(to->out[1], columns - 1)) {
        int64_t rows = even_part(to->out[0], MOST_POSITIONS / columns);
        for (; rows > 0; rows = even_part(to->out[0], rows - 1)) {
            if (!set_tile(to, way, rows, columns))
                continue;
            double cost = tile_cost(to, way, batch, multiprocessors);
            if (best_rows == 0 || cost < best) {
                best = cost;
                best_rows = rows;
                best_columns = columns;
            }
        }
    }
    set_tile(to, way, best_rows, best_columns);
    choose_distances(to, way);
    to->tiles = batch * to->channel_tiles * to->row_tiles * to->column_tiles;
}

/* All that does not depend on where tensors lie, but for the tiles, which are of one position; false where the kernels cannot. */
static bool fill_extents(const sb_cuda_conv *conv, sb_cuda_conv16_grouped *to) {
    const sb_conv_extents *extents = &conv->extents;
    int64_t channels = extents->groups * extents->group_inputs;
    if (extents->groups <= 1 || extents->axes < 1 || extents->axes > 2 || extents->taps == 0 ||
        extents->group_inputs != extents->group_outputs || !has_group(extents->group_inputs) || channels % 8 != 0 ||
        channels > INT32_MAX / 2 || conv->k > 4096)
        return false;
    way way = way_of(extents->group_inputs, extents->taps);
    to->channels = (int32_t)channels;
    to->group = (int32_t)extents->group_inputs;
    to->taps = (int32_t)extents->taps;
    to->steps = (int32_t)((conv->k + 15) / 16);
    to->pairs = choose_pairs(channels, extents->group_inputs);
    to->parts = SB_CUDA_CONV16_MOST_WARPS / to->pairs;
    to->channel_tiles = (int32_t)((channels + to->pairs * PAIR - 1) / (to->pairs * PAIR));
    for (int d = 0; d < 2; d++) {
        sb_window_axis axis = axis_of(extents, d);
        if (axis.in == 0)
            return false;
        to->in[d] = (int32_t)axis.in;
        to->out[d] = (int32_t)axis.out;
        to->stride[d] = (int32_t)axis.stride;
        to->dilation[d] = (int32_t)axis.dilation;
        to->begin[d] = (int32_t)axis.begin;
        if (d == 1)
            to->kernel_columns = sb_cuda_divisor_of((uint32_t)axis.kernel);
    }
    return set_tile(to, &way, 1, 1);
}

/* ---- the launch ---- */

bool sb_cuda_conv16_has_groups(const sb_call *call, const sb_cuda_conv *conv) {
    sb_cuda_conv16_grouped to = {0};
    return sb_gemm16_has_hopper_code(sb_cuda_call_device(call)) && fill_extents(conv, &to);
}

static const uint16_t *halves(const sb_tensor *tensor) {
    return (const uint16_t *)(const void *)tensor->data;
}

sb_status sb_cuda_conv16_in_groups(sb_call *call, const sb_cuda_conv *conv, bool *given) {
    const sb_conv_extents *extents = &conv->extents;
    sb_cuda_conv16_grouped to = {0};
    sb_cuda_conv16_input x;
    char module[32], kernel[64];
    size_t bytes;
    *given = sb_gemm16_has_hopper_code(sb_cuda_call_device(call)) && sb_cuda_conv16_is_turned(conv) &&
             fill_extents(conv, &to);
    if (!*given)
        return SB_OK;
    way way = way_of(extents->group_inputs, extents->taps);
    choose_tile(&to, &way, extents->batch, sb_cuda_call_device(call)->multiprocessors);
    snprintf(module, sizeof module, "conv16_grouped_%s", sb_dtype_name(conv->x->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_conv16_%s_%s", way.kernel, sb_dtype_name(conv->x->dtype));
    sb_cuda_work work = {.module = module,
                         .kernel = kernel,
                         .parameters = &to,
                         .parameter_bytes = sizeof to,
                         .threads = (unsigned)(32 * to.pairs * to.parts),
                         .shared_bytes = (unsigned)sb_cuda_conv16_grouped_shared(&to, way.slots)};
    SB_TRY(sb_cuda_conv16_find_input(call, conv, &x));
    SB_TRY(sb_cuda_conv16_find_weights(call, conv, &to.w, &bytes));
    to.x = x.data;
    to.x_sample = x.sample;
    for (int d = 0; d < 2; d++)
        to.x_steps[d] = d >= 2 - extents->axes ? x.steps[d - (2 - extents->axes)] : 0;
    to.bias = conv->bias != NULL ? halves(conv->bias) : NULL;
    to.bias_step = conv->bias != NULL ? conv->bias->strides[0] : 0;
    to.y = (uint16_t *)(void *)conv->y->data;
    sb_cuda_work_touches(&work, (const void *)(uintptr_t)x.range.first, x.range.bytes, false);
    sb_cuda_work_touches(&work, to.w.data, bytes, false);
    sb_cuda_work_reads(&work, conv->bias);
    sb_cuda_work_writes(&work, conv->y);
    work.blocks = sb_cuda_call_blocks(call, to.tiles);
    return sb_cuda_call_launch(call, &work);
}
