#include "cuda/recurrent/sequence.h"

#include <stdatomic.h>
#include <stdio.h>

#include "cuda/contraction/hopper_code.h"
#include "ops/rows.h"

/* Most batch rows of a block. */
#define MOST_ROWS 64
/* Shared memory of a block that the driver or static variables may take. */
#define KEPT_BYTES 1024

static _Atomic(const sb_cuda_sequence_forced *) forced = NULL;

void sb_cuda_sequence_force(const sb_cuda_sequence_forced *wanted) {
    atomic_store(&forced, wanted);
}

/* What a choice is about. */
typedef struct situation {
    sb_cuda_device *device;
    const sb_cuda_sequence_forced *forced;
    int64_t size, computed; /* bytes of an element */
    bool has_clusters, on_tensors, resets;
} situation;

static int64_t divide_up(int64_t value, int64_t divisor) {
    return (value + divisor - 1) / divisor;
}

static int64_t round_up(int64_t value, int64_t unit) {
    return divide_up(value, unit) * unit;
}

/* ---- memory of a block ---- */

static void lay_out(const situation *s, sb_cuda_sequence *p, bool one_step) {
    sb_cuda_sequence_layout *at = &p->at;
    const int64_t pieces =
        round_up(round_up(p->parts * p->own > p->hidden ? p->parts * p->own : p->hidden, 16) * s->size,
                 4 * SB_CUDA_SEQUENCE_PIECE) /
        SB_CUDA_SEQUENCE_PIECE;
    const int64_t gates = p->params.gates, kept = (p->pieces - p->held_pieces) * (int64_t)p->held_lines;
    int64_t bytes = 0;
    at->state_bytes = pieces * p->room * SB_CUDA_SEQUENCE_PIECE;
#define PLACE(member, size)                                                                                            \
    at->member = bytes;                                                                                                \
    bytes += round_up(size, SB_CUDA_SEQUENCE_PIECE)
    PLACE(weights, (kept + p->pieces * (int64_t)(p->lines - p->held_lines)) * SB_CUDA_SEQUENCE_PIECE);
    PLACE(state, at->state_bytes);
    PLACE(next, one_step ? 0 : at->state_bytes);
    if (one_step)
        at->next = at->state;
    PLACE(reset, s->resets ? at->state_bytes : 0);
    PLACE(c, p->params.kind == SB_RECURRENT_LSTM ? p->tile * p->own * s->computed : 0);
    PLACE(sums, p->room * (int64_t)p->sum_pitch * s->computed);
    PLACE(xw, gates * p->tile * p->own * s->computed);
    PLACE(bias, p->b != NULL ? 2 * p->lines * s->computed : 0);
    PLACE(lengths, p->tile * (int64_t)sizeof(int32_t));
#undef PLACE
    at->bytes = bytes;
}

/* Cuts rows into tiles, and state elements into parts. */
static void cut_into(const situation *s, sb_cuda_sequence *p, int64_t tile, int64_t parts, int64_t own) {
    p->tile = (int32_t)tile;
    p->row_tiles = divide_up(p->batch, tile);
    p->parts = (int32_t)parts;
    p->own = (int32_t)own;
    p->own_divisor = sb_cuda_divisor_of((uint32_t)own);
    p->gate_divisor = sb_cuda_divisor_of((uint32_t)(tile * own));
    p->chunk = s->on_tensors ? SB_CUDA_SEQUENCE_COLUMNS : tile >= 4 ? 4 : tile >= 2 ? 2 : 1;
    p->room = (int32_t)round_up(tile, p->chunk);
    p->lines = (int32_t)(p->params.gates * own);
    p->pieces = (int32_t)divide_up(p->hidden * s->size, SB_CUDA_SEQUENCE_PIECE);
    p->held_lines = p->held_pieces = 0;
    if (s->size == 2) {
        p->lines = (int32_t)round_up(p->lines, 16); /* rows of a product */
        p->pieces = (int32_t)round_up(p->pieces, 2);
    }
    if (s->on_tensors && p->whole) {
        const int32_t most_lines = SB_CUDA_SEQUENCE_WARPS * 16, most_pieces = SB_CUDA_SEQUENCE_HELD * 2;
        p->held_lines = p->lines < most_lines ? p->lines : most_lines;
        p->held_pieces = p->pieces < most_pieces ? p->pieces : most_pieces;
    }
    p->sum_pitch = (int32_t)round_up(p->lines, 16) + 4; /* rows of sums begin in different banks */
}

/* ---- costs: cycles, by counting what a multiprocessor does ---- */

static double larger(double one, double other) {
    return one > other ? one : other;
}

/* Products of a step. */
static double product_cycles(const situation *s, const sb_cuda_sequence *p) {
    const double lines = p->lines, hidden = (double)p->hidden;
    const double chunks = (double)divide_up(p->tile, p->chunk), slow = s->size == 8 ? 2 : 1;
    if (s->on_tensors) {
        const double products = lines / 16 * chunks, groups = (double)p->pieces / 2;
        const double turns = (double)divide_up(p->lines / 16, SB_CUDA_SEQUENCE_WARPS) * chunks;
        return larger(turns * groups * 40, products * groups * 6);
    }
    if (s->size == 2)
        return (double)divide_up((int64_t)(lines * p->tile), SB_CUDA_SEQUENCE_THREADS) * hidden * 30;
    const double reading = (double)s->size * hidden * lines * (chunks / 128 + (double)p->tile / 32 / 16);
    const double computing = lines * p->tile * hidden / 128 * slow;
    const double turns = (double)divide_up((int64_t)(lines * chunks), SB_CUDA_SEQUENCE_THREADS);
    return larger(larger(reading, computing), turns * hidden * 5 * slow);
}

/* Gates, and then cells. */
static double cell_cycles(const situation *s, const sb_cuda_sequence *p) {
    const int64_t cells = (int64_t)p->tile * p->own;
    const double gates = (double)divide_up(p->params.gates * cells, SB_CUDA_SEQUENCE_THREADS) * 900;
    return (gates + (double)divide_up(cells, SB_CUDA_SEQUENCE_THREADS) * 700) * (s->size == 8 ? 4 : 1);
}

/* What a block fetches before its first step. */
static double fetch_cycles(const situation *s, const sb_cuda_sequence *p) {
    return 1500 + (double)(p->lines * p->hidden + p->tile * p->hidden) * (double)s->size / 40;
}

/* Clusters that a device takes at once: those of four and more leave an eighth of it idle, since a cluster lies in a part of it whose
 * multiprocessors are no multiple of them. */
static int64_t clusters_at_once(const situation *s, int cluster) {
    const int64_t clusters = s->device->multiprocessors * (cluster >= 4 ? 7 : 8) / 8 / cluster;
    return clusters > 0 ? clusters : 1;
}

static double cycles(const situation *s, const sb_cuda_sequence *p, int cluster) {
    const int64_t groups = p->params.directions * p->row_tiles, steps = p->steps > 0 ? p->steps : 1;
    const double step = product_cycles(s, p) + cell_cycles(s, p) + (cluster > 1 ? 800 : 300);
    if (cluster > 0)
        return (double)divide_up(groups, clusters_at_once(s, cluster)) * (fetch_cycles(s, p) + (double)steps * step);
    const double turns = (double)divide_up(groups * p->parts, s->device->multiprocessors);
    return (double)steps * ((s->resets ? 2 : 1) * (4000 + turns * fetch_cycles(s, p)) + turns * step);
}

/* ---- the choice ---- */

/* The quickest cut so far; its cost is negative where there is none. */
typedef struct best_cut {
    double cost;
    int cluster;
    sb_cuda_sequence parameters;
} best_cut;

/* Keeps a cut that fits in shared memory if it is quicker than the best. */
static void consider(const situation *s, int cluster, const sb_cuda_sequence *p, best_cut *best) {
    if (p->at.bytes > s->device->shared_bytes - KEPT_BYTES || (s->forced != NULL && s->forced->cluster != cluster))
        return;
    const double cost = cycles(s, p, cluster);
    if (best->cost >= 0 && cost >= best->cost)
        return;
    best->cost = cost;
    best->cluster = cluster;
    best->parameters = *p;
}

static void consider_tile(const situation *s, int64_t tile, sb_cuda_sequence *p, best_cut *best) {
    for (int cluster = 1; cluster <= (s->has_clusters ? 8 : 1); cluster *= 2) {
        const int64_t own = round_up(divide_up(p->hidden, cluster), SB_CUDA_SEQUENCE_PIECE / s->size);
        if (cluster > 1 && own * (cluster / 2) >= p->hidden && s->forced == NULL) /* half of it would do */
            continue;
        cut_into(s, p, tile, cluster, own);
        lay_out(s, p, false);
        consider(s, cluster, p, best);
    }
    /* For a launch a step, as many parts as the device takes at once, or as need be for room. */
    const int64_t groups = p->params.directions * divide_up(p->batch, tile);
    int64_t parts = s->device->multiprocessors / groups;
    for (parts = parts > 1 ? parts : 1; parts < 2 * p->hidden; parts *= 2) {
        const int64_t own = divide_up(p->hidden, parts);
        cut_into(s, p, tile, divide_up(p->hidden, own), own);
        lay_out(s, p, true);
        consider(s, 0, p, best);
    }
}

static void consider_all(const situation *s, const sb_cuda_sequence *p, best_cut *best) {
    sb_cuda_sequence tried = *p;
    best->cost = -1;
    for (int64_t tile = 1; tile <= MOST_ROWS && tile < 2 * p->batch; tile *= 2) {
        if (s->forced == NULL || s->forced->tile == tile)
            consider_tile(s, tile < p->batch ? tile : p->batch, &tried, best);
    }
}

/* Memory of the device, as many blocks as it takes at once. */
static void cut_in_memory(situation *s, sb_cuda_sequence *p) {
    const int64_t own = divide_up(p->hidden, s->device->multiprocessors);
    s->on_tensors = false;
    cut_into(s, p, p->batch < MOST_ROWS ? p->batch : MOST_ROWS, divide_up(p->hidden, own), own);
    lay_out(s, p, true);
}

static void name_kernel(const situation *s, sb_dtype dtype, sb_cuda_sequence_cut *cut) {
    const char *suffix = sb_dtype_name(dtype);
    if (s->on_tensors || cut->cluster > 1) {
        snprintf(cut->module, sizeof cut->module, "sequence_cluster_%s", suffix);
        snprintf(cut->kernel, sizeof cut->kernel, "sb_cuda_sequence_cluster_%d_%s", cut->cluster > 1 ? cut->cluster : 1,
                 suffix);
        return;
    }
    const char *where = cut->in_memory ? "in_memory_" : "";
    snprintf(cut->module, sizeof cut->module, "sequence_%s%s", where, suffix);
    snprintf(cut->kernel, sizeof cut->kernel, "sb_cuda_sequence_%s%s", where, suffix);
}

void sb_cuda_sequence_choose(sb_cuda_device *device, sb_dtype dtype, sb_cuda_sequence *p, sb_cuda_sequence_cut *cut) {
    const sb_cuda_sequence_forced *wanted = atomic_load(&forced);
    const bool on_hopper = sb_gemm16_has_hopper_code(device) && (wanted == NULL || !wanted->general);
    situation s = {.device = device,
                   .forced = wanted,
                   .size = (int64_t)sb_dtype_size(dtype),
                   .computed = (int64_t)sb_dtype_size(sb_computing_dtype(dtype)),
                   .has_clusters = on_hopper,
                   .on_tensors = on_hopper && sb_dtype_size(dtype) == 2,
                   .resets = p->params.kind == SB_RECURRENT_GRU && !p->params.linear_before_reset};
    best_cut best;
    consider_all(&s, p, &best);
    s.forced = NULL;
    if (best.cost < 0 && wanted != NULL)
        consider_all(&s, p, &best);
    cut->in_memory = best.cost < 0 || (wanted != NULL && wanted->in_memory);
    cut->cluster = cut->in_memory ? 0 : best.cluster;
    if (cut->in_memory)
        cut_in_memory(&s, p);
    else
        *p = best.parameters;
    cut->blocks = p->params.directions * p->row_tiles * p->parts;
    name_kernel(&s, dtype, cut);
}
