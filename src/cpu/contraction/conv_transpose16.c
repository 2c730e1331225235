/* Output positions that the same kernel positions reach are rows of one product of the 16-bit chain (chain16.h), whose groups of 16 are cut
 * from what takes part. Along an axis, what reaches a position is every so many kernel positions from a first one on: positions of
 * the same first one and the same number are a class, and the product of the axes' classes is what a thread takes, for one group of
 * channels: it packs the weights that count there, and gathers rows by pointers. */
#include "cpu/contraction/conv_transpose16.h"

#include <string.h>

#include "cpu/channels_last.h"
#include "cpu/contraction/chain16.h"
#include "cpu/pieces.h"
#include "ops/contraction.h"
#include "ops/convert_loops.h"
#include "ops/convolution_transpose.h"
#include "ops/moving.h"
#include "ops/real.h"

/* Rows that are computed at once. */
#define ROWS 128

/* Positions of an axis by what reaches them. */
typedef struct positions {
    sb_window_axis axis;
    int64_t step; /* between kernel positions that reach a position */
    int64_t classes;
    int64_t *first;  /* [class]: the first kernel position */
    int64_t *hits;   /* [class]: how many */
    int64_t *starts; /* [class + 1]: where its positions begin in `members` */
    int64_t *members;
} positions;

typedef struct transposition {
    int axes;
    int64_t batch, groups, inputs, outputs; /* channels of a group */
    int64_t combinations, most_hits;
    size_t chain_bytes; /* of workspace, for products of any number of hits up to the most */
    positions at[SB_WINDOW_AXES];
    sb_dtype dtype;
    const sb_chain16_kernels *kernels;
    const uint16_t *x; /* [batch][position][channel] */
    int64_t x_strides[SB_WINDOW_AXES], x_batch, y_strides[SB_WINDOW_AXES], y_batch;
    const sb_tensor *w;
    const float *bias; /* NULL: none */
    sb_walk_row *round;
    uint16_t *y; /* [batch][position][channel] */
} transposition;

static int64_t greatest_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* The first kernel position that reaches `position`, and how many do. */
static void reach(const sb_window_axis *axis, int64_t step, int64_t position, int64_t *first, int64_t *hits) {
    *first = *hits = 0;
    for (int64_t tap = 0; tap < axis->kernel; tap++) {
        int64_t at = position + axis->begin - tap * axis->dilation;
        if (at < 0)
            return;
        if (at % axis->stride != 0 || at / axis->stride >= axis->in)
            continue;
        *first = tap;
        int64_t by_kernel = (axis->kernel - 1 - tap) / step, by_input = at / (step * axis->dilation);
        *hits = 1 + (by_kernel < by_input ? by_kernel : by_input);
        return;
    }
}

/* Sorts the axis' positions into classes; `all` has room for 2 numbers a position. */
static void find_classes(positions *p, int64_t *all) {
    const int64_t count = p->axis.out;
    int64_t *which = all, *left = all + count;
    p->classes = 0;
    for (int64_t o = 0; o < count; o++) {
        int64_t first, hits, c = 0;
        reach(&p->axis, p->step, o, &first, &hits);
        while (c < p->classes && (p->first[c] != first || p->hits[c] != hits))
            c++;
        if (c == p->classes) {
            p->first[c] = first;
            p->hits[c] = hits;
            left[p->classes++] = 0;
        }
        which[o] = c;
        left[c]++;
    }
    p->starts[0] = 0;
    for (int64_t c = 0; c < p->classes; c++) {
        p->starts[c + 1] = p->starts[c] + left[c];
        left[c] = p->starts[c];
    }
    for (int64_t o = 0; o < count; o++)
        p->members[left[which[o]]++] = o;
}

static sb_status find_positions(sb_call *call, transposition *t) {
    t->combinations = t->most_hits = 1;
    for (int d = 0; d < t->axes; d++) {
        positions *p = &t->at[d];
        void *memory;
        int64_t out = p->axis.out, most = 0;
        SB_TRY(sb_call_workspace(call, ((size_t)out * 6 + 1) * sizeof(int64_t), &memory));
        p->first = memory;
        p->hits = p->first + out;
        p->members = p->hits + out;
        p->starts = p->members + 3 * out;
        p->step = p->axis.stride / greatest_divisor(p->axis.stride, p->axis.dilation);
        find_classes(p, p->members + out);
        for (int64_t c = 0; c < p->classes; c++)
            most = p->hits[c] > most ? p->hits[c] : most;
        t->combinations *= p->classes;
        t->most_hits *= most;
    }
    return SB_OK;
}

/* ---- one combination of classes, for one group of channels ---- */

typedef struct combination {
    const transposition *t;
    int64_t class[SB_WINDOW_AXES];
    int64_t group, hits, rows; /* rows: of all the batch */
    int64_t first_row;         /* of those that are computed now */
} combination;

static combination combination_at(const transposition *t, int64_t index) {
    combination c = {.t = t, .group = index % t->groups, .hits = 1, .rows = t->batch};
    index /= t->groups;
    for (int d = t->axes - 1; d >= 0; d--) {
        const positions *p = &t->at[d];
        int64_t class = index % p->classes;
        index /= p->classes;
        c.class[d] = class;
        c.hits *= p->hits[class];
        c.rows *= p->starts[class + 1] - p->starts[class];
    }
    return c;
}

/* The output position of a row along each axis; returns the batch. */
static int64_t position_of(const combination *c, int64_t row, int64_t *position) {
    for (int d = c->t->axes - 1; d >= 0; d--) {
        const positions *p = &c->t->at[d];
        const int64_t start = p->starts[c->class[d]], count = p->starts[c->class[d] + 1] - start;
        position[d] = p->members[start + row % count];
        row /= count;
    }
    return row;
}

/* Kernel position number `hit` along each axis. */
static void tap_of(const combination *c, int64_t hit, int64_t *tap) {
    for (int d = c->t->axes - 1; d >= 0; d--) {
        const positions *p = &c->t->at[d];
        tap[d] = p->first[c->class[d]] + hit % p->hits[c->class[d]] * p->step;
        hit /= p->hits[c->class[d]];
    }
}

static void point_at_inputs(void *context, int64_t row, int64_t first, int64_t count, const uint16_t **runs) {
    const combination *c = context;
    const transposition *t = c->t;
    int64_t position[SB_WINDOW_AXES], tap[SB_WINDOW_AXES];
    const uint16_t *x = t->x + position_of(c, c->first_row + row, position) * t->x_batch + c->group * t->inputs;
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = 0;
        tap_of(c, first + i, tap);
        for (int d = 0; d < t->axes; d++) {
            const sb_window_axis *axis = &t->at[d].axis;
            offset += (position[d] + axis->begin - tap[d] * axis->dilation) / axis->stride * t->x_strides[d];
        }
        runs[i] = x + offset;
    }
}

/* The weights that count, as a gapless matrix [hits * inputs][outputs]. */
static void gather_weights(const combination *c, uint16_t *dense) {
    const transposition *t = c->t;
    const sb_tensor *w = t->w;
    const uint16_t *from = (const uint16_t *)(const void *)w->data + c->group * t->inputs * w->strides[0];
    int64_t tap[SB_WINDOW_AXES];
    for (int64_t hit = 0; hit < c->hits; hit++) {
        int64_t offset = 0;
        tap_of(c, hit, tap);
        for (int d = 0; d < t->axes; d++)
            offset += tap[d] * w->strides[d + 2];
        for (int64_t i = 0; i < t->inputs; i++) {
            for (int64_t j = 0; j < t->outputs; j++)
                *dense++ = from[offset + i * w->strides[0] + j * w->strides[1]];
        }
    }
}

static sb_chain16_args args_of(const transposition *t, int64_t hits) {
    return (sb_chain16_args){.dtype = t->dtype,
                             .m = ROWS,
                             .n = t->outputs,
                             .k = hits * t->inputs,
                             .point = point_at_inputs,
                             .runs = hits,
                             .run_length = t->inputs,
                             .c_dtype = t->dtype,
                             .c_row_stride = t->outputs,
                             .c_column_stride = 1};
}

/* The largest workspace of any product, as fewer terms may have more rows at once; 0 where one overflows. */
static size_t most_chain_bytes(const transposition *t) {
    size_t most = 0;
    for (int64_t hits = 1; hits <= t->most_hits; hits++) {
        sb_chain16_args args = args_of(t, hits);
        args.packed_b = t->x; /* that there is one */
        const size_t bytes = sb_chain16_workspace_bytes(&args);
        if (bytes == 0)
            return 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A thread's workspace. */
typedef struct room {
    uint16_t *dense, *packed, *rows;
    float *nothing; /* a row that no products reach */
    void *chain;
    size_t bytes;
} room;

static size_t lines(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

/* bytes is 0 where the size overflows. */
static room cut_room(const transposition *t, char *memory) {
    const int64_t k = t->most_hits * t->inputs;
    const size_t dense = lines((size_t)(k * t->outputs) * sizeof(uint16_t));
    const size_t packed = lines(sb_chain16_packed_bytes(k, t->outputs));
    const size_t rows = lines(ROWS * (size_t)t->outputs * sizeof(uint16_t));
    const size_t nothing = lines((size_t)t->outputs * sizeof(float));
    if ((packed == 0 && k != 0) || (t->chain_bytes == 0 && k != 0))
        return (room){.bytes = 0};
    return (room){.dense = (uint16_t *)(void *)memory,
                  .packed = memory == NULL ? NULL : (uint16_t *)(void *)(memory + dense),
                  .rows = memory == NULL ? NULL : (uint16_t *)(void *)(memory + dense + packed),
                  .nothing = memory == NULL ? NULL : (float *)(void *)(memory + dense + packed + rows),
                  .chain = memory == NULL ? NULL : memory + dense + packed + rows + nothing,
                  .bytes = dense + packed + rows + nothing + lines(t->chain_bytes)};
}

/* Rows that no kernel position reaches: the bias alone. */
static void fill_rows(const combination *c, const room *room, int64_t rows) {
    const transposition *t = c->t;
    for (int64_t j = 0; j < t->outputs; j++)
        room->nothing[j] = t->bias != NULL ? 0.0f + t->bias[c->group * t->outputs + j] : 0.0f;
    for (int64_t r = 0; r < rows; r++)
        t->round(NULL, t->outputs, (char *const[]){(char *)(room->rows + r * t->outputs), (char *)room->nothing},
                 (const int64_t[]){(int64_t)sizeof(uint16_t), (int64_t)sizeof(float)});
}

static void store_rows(const combination *c, const room *room, int64_t rows) {
    const transposition *t = c->t;
    int64_t position[SB_WINDOW_AXES];
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *y = t->y + position_of(c, c->first_row + r, position) * t->y_batch + c->group * t->outputs;
        for (int d = 0; d < t->axes; d++)
            y += position[d] * t->y_strides[d];
        memcpy(y, room->rows + r * t->outputs, (size_t)t->outputs * sizeof *y);
    }
}

static void compute_combination(void *context, int64_t index, void *workspace) {
    const transposition *t = context;
    const room room = cut_room(t, workspace);
    combination c = combination_at(t, index);
    sb_chain16_args args = args_of(t, c.hits);
    sb_epilogue epilogue = {0};
    if (t->bias != NULL)
        epilogue.steps[epilogue.count++] =
            (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = t->bias + c.group * t->outputs};
    args.epilogue = &epilogue;
    args.point_context = &c;
    args.packed_b = room.packed;
    args.c = room.rows;
    if (args.k != 0) {
        gather_weights(&c, room.dense);
        sb_chain16_pack_b(args.k, t->outputs, room.dense, t->outputs, 1, 0, t->outputs, room.packed);
    }
    for (; c.first_row < c.rows; c.first_row += ROWS) {
        const int64_t rows = c.rows - c.first_row < ROWS ? c.rows - c.first_row : ROWS;
        if (args.k != 0)
            sb_chain16_run(t->kernels, &args, 0, rows, 0, t->outputs, room.chain);
        else
            fill_rows(&c, &room, rows);
        store_rows(&c, &room, rows);
    }
}

/* ---- operands ---- */

static sb_status find_input(sb_call *call, const sb_tensor *x, transposition *t) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], step = x->dims[1];
    void *memory;
    for (int d = 0; d < x->rank; d++) {
        int from = d == 0 ? 0 : d == x->rank - 1 ? 1 : d + 1;
        dims[d] = x->dims[from];
        strides[d] = x->strides[from];
    }
    for (int d = t->axes - 1; d >= 0; d--) {
        t->x_strides[d] = step;
        step *= x->dims[d + 2];
    }
    t->x_batch = step;
    SB_TRY(sb_call_workspace(call, ((size_t)sb_tensor_elements(x) + 1) * sizeof *t->x, &memory));
    sb_gather_dense(sizeof *t->x, x->rank, dims, strides, x->data, memory);
    t->x = memory;
    return SB_OK;
}

static sb_status find_bias(sb_call *call, const sb_tensor *bias, transposition *t) {
    void *memory;
    if (bias == NULL)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, (size_t)bias->dims[0] * sizeof(float), &memory));
    for (int64_t i = 0; i < bias->dims[0]; i++)
        ((float *)memory)[i] = sb_real_load_f32(bias->dtype, bias->data, i * bias->strides[0]);
    t->bias = memory;
    return SB_OK;
}

sb_status sb_conv_transpose16_run(sb_call *call) {
    const sb_conv_transpose_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    sb_tensor *y;
    sb_window_axis axes[SB_WINDOW_AXES];
    if (sb_tensor_elements(x) == 0 || sb_tensor_elements(w) == 0)
        return call->node->op->eval(call);
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    transposition t = {.axes = x->rank - 2,
                       .batch = x->dims[0],
                       .groups = params->group,
                       .inputs = w->dims[0] / params->group,
                       .outputs = w->dims[1],
                       .dtype = x->dtype,
                       .kernels = sb_chain16_kernels_of(call->isa),
                       .w = w,
                       .y_batch = y->strides[0],
                       .round = sb_convert_loop_for(call->isa, x->dtype, SB_F32),
                       .y = (uint16_t *)(void *)y->data};
    sb_conv_transpose_axes(params, x, w, y->dims, axes);
    for (int d = 0; d < t.axes; d++) {
        t.at[d].axis = axes[d];
        t.y_strides[d] = y->strides[d + 2];
    }
    SB_TRY(find_positions(call, &t));
    SB_TRY(find_input(call, x, &t));
    SB_TRY(find_bias(call, sb_call_input(call, 2), &t));
    t.chain_bytes = most_chain_bytes(&t);
    size_t bytes = cut_room(&t, NULL).bytes;
    if (bytes == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    return sb_pieces_run(call, t.combinations * t.groups, bytes, compute_combination, &t);
}
