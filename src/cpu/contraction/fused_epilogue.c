#include "cpu/contraction/fused_epilogue.h"

#include <stdio.h>
#include <string.h>

#include "cpu/contraction/fused_epilogue_steps.h"
#include "ops/contraction.h"
#include "ops/convert_loops.h"

sb_status sb_contraction_node_program(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                      sb_tile_program **program, sb_error *error) {
    *program = NULL;
    if (contraction->body == NULL)
        return SB_OK;
    return sb_tile_program_create(contraction->body, 1, query->inputs, query->isa, program, error);
}

bool sb_contraction_node_supports_epilogue(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                           sb_dtype dtype, char *why) {
    sb_tile_program *program;
    sb_error error;
    if (contraction->body == NULL)
        return true;
    if (query->outputs[0].dtype != dtype) {
        snprintf(why, SB_WHY_BYTES, "the fused result is %s, not %s", sb_dtype_name(query->outputs[0].dtype),
                 sb_dtype_name(dtype));
        return false;
    }
    sb_status status = sb_contraction_node_program(contraction, query, &program, &error);
    if (status != SB_OK) {
        *query->exhausted = status == SB_ERROR_OUT_OF_MEMORY;
        snprintf(why, SB_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    sb_tile_program_destroy(program);
    return true;
}

/* `operand` has the extents that it is broadcast to. */
static void describe_operand(const sb_tensor *operand, const char *data, int column_axis, int index,
                             sb_fused_epilogue *fused) {
    int64_t size = (int64_t)sb_dtype_size(operand->dtype);
    int row_axis = 0;
    fused->data[index] = data;
    fused->sizes[index] = size;
    fused->varies[index] = false;
    fused->column_steps[index] = 0;
    for (int d = 0; d < operand->rank; d++) {
        int64_t step = operand->strides[d] * size;
        if (d == column_axis)
            fused->column_steps[index] = step;
        else
            fused->row_steps[index][row_axis++] = step;
        fused->varies[index] = fused->varies[index] || (d != column_axis && step != 0 && operand->dims[d] > 1);
    }
}

/* Describes an operand, broadcast to y's extents; *in_place says that y coincides with it. An operand that overlaps y
 * otherwise, or when `detach`, is described by a copy. */
static sb_status add_operand(sb_call *call, const sb_tensor *operand, const sb_tensor *y, int column_axis, bool detach,
                             bool *in_place, int index, sb_fused_epilogue *fused) {
    bool shares = sb_tensors_overlap(operand, y);
    if (!shares || (!detach && sb_tensors_coincide(operand, y))) {
        *in_place = *in_place || shares;
        describe_operand(operand, operand->data, column_axis, index, fused);
        return SB_OK;
    }
    sb_tensor dense = {.dtype = operand->dtype, .rank = operand->rank};
    void *copy;
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(operand) * sb_dtype_size(operand->dtype), &copy));
    sb_gather_dense(sb_dtype_size(operand->dtype), operand->rank, operand->dims, operand->strides, operand->data, copy);
    memcpy(dense.dims, operand->dims, sizeof dense.dims);
    sb_row_major_strides(operand->rank, operand->dims, dense.strides);
    describe_operand(&dense, copy, column_axis, index, fused);
    return SB_OK;
}

static sb_status add_operands(sb_call *call, const sb_tensor *y, int column_axis, bool detach, bool *in_place,
                              sb_fused_epilogue *fused) {
    for (int i = 0; i < fused->operands; i++) {
        int graph_input;
        sb_tensor *operand, *spread;
        sb_tile_program_input(fused->program, i, &graph_input, &operand);
        if (graph_input >= 0)
            operand = call->inputs[graph_input].tensor;
        SB_TRY(sb_tensor_broadcast(operand, y->rank, y->dims, &spread, call->error));
        sb_status status = add_operand(call, spread, y, column_axis, detach, in_place, i, fused);
        sb_tensor_release(spread); /* the call's inputs keep the memory alive */
        SB_TRY(status);
    }
    return SB_OK;
}

sb_status sb_fused_epilogue_start(sb_call *call, sb_tile_program *program, const sb_tensor *y, int column_axis,
                                  bool one_pass, sb_fused_epilogue *fused) {
    bool in_place = false;
    fused->program = program;
    fused->dtype = y->dtype;
    fused->round = sb_convert_loop_for(call->isa, y->dtype, SB_F32);
    fused->widen = sb_convert_loop_for(call->isa, SB_F32, y->dtype);
    fused->first_row = 0;
    fused->row_axes = 0;
    fused->operands = program != NULL ? sb_tile_program_inputs(program) : 0;
    for (int d = 0; d < y->rank; d++) {
        if (d != column_axis)
            fused->row_dims[fused->row_axes++] = y->dims[d];
    }
    SB_TRY(add_operands(call, y, column_axis, !one_pass, &in_place, fused));
    sb_epilogue epilogue = {.count = 1}; /* a bias may come first */
    if (in_place && !sb_fused_epilogue_steps(fused, &epilogue))
        return add_operands(call, y, column_axis, true, &in_place, fused);
    return SB_OK;
}

/* Runs the program over a piece of at most SB_TILE_ELEMENTS of a row of f32. */
static void run_piece_f32(const sb_fused_epilogue *fused, float *row, int64_t count, char **data, int64_t *steps) {
    float base[SB_TILE_ELEMENTS];
    memcpy(base, row, (size_t)count * sizeof *base);
    data[0] = (char *)row;
    data[1] = (char *)base;
    steps[0] = steps[1] = (int64_t)sizeof(float);
    sb_tile_program_row(fused->program, count, data, steps);
}

/* The same for f16 and bf16: rounded before the program, as the contraction's own output would be;
 * what comes out widens exactly and is stored without another rounding. */
static void run_piece_16(const sb_fused_epilogue *fused, float *row, int64_t count, char **data, int64_t *steps) {
    uint16_t base[SB_TILE_ELEMENTS], out[SB_TILE_ELEMENTS];
    char *rounded[2] = {(char *)base, (char *)row}, *widened[2] = {(char *)row, (char *)out};
    fused->round(NULL, count, rounded, (int64_t[]){(int64_t)sizeof(uint16_t), (int64_t)sizeof(float)});
    data[0] = (char *)out;
    data[1] = (char *)base;
    steps[0] = steps[1] = (int64_t)sizeof(uint16_t);
    sb_tile_program_row(fused->program, count, data, steps);
    fused->widen(NULL, count, widened, (int64_t[]){(int64_t)sizeof(float), (int64_t)sizeof(uint16_t)});
}

/* Where the operands of `count` elements of row m from column n on begin. */
static void find_row(const sb_fused_epilogue *fused, int64_t m, int64_t n, char **data, int64_t *steps) {
    int64_t rest = m + fused->first_row;
    for (int i = 0; i < fused->operands; i++) {
        data[2 + i] = (char *)fused->data[i] + n * fused->column_steps[i];
        steps[2 + i] = fused->column_steps[i];
    }
    for (int d = fused->row_axes - 1; d >= 0; d--) {
        int64_t index = d > 0 ? rest % fused->row_dims[d] : rest;
        rest = d > 0 ? rest / fused->row_dims[d] : 0;
        for (int i = 0; i < fused->operands; i++)
            data[2 + i] += index * fused->row_steps[i][d];
    }
}

static void go_on(const sb_fused_epilogue *fused, int64_t count, char **data, const int64_t *steps) {
    for (int i = 0; i < fused->operands; i++)
        data[2 + i] += count * steps[2 + i];
}

static int64_t piece_of(int64_t left) {
    return left < SB_TILE_ELEMENTS ? left : SB_TILE_ELEMENTS;
}

static void run_fused(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const sb_fused_epilogue *fused = context;
    char *data[2 + SB_TILE_INPUTS];
    int64_t steps[2 + SB_TILE_INPUTS];
    find_row(fused, m, n, data, steps);
    for (int64_t start = 0; start < count; start += SB_TILE_ELEMENTS) {
        int64_t piece = piece_of(count - start);
        if (fused->dtype == SB_F32)
            run_piece_f32(fused, row + start, piece, data, steps);
        else
            run_piece_16(fused, row + start, piece, data, steps);
        go_on(fused, piece, data, steps);
    }
}

/* Elements of several rows that the program runs over at once, and bytes of what they meet. */
#define GATHERED_ELEMENTS (2 * SB_TILE_ELEMENTS)
#define GATHERED_BYTES (4 * GATHERED_ELEMENTS * (int64_t)sizeof(float))

/* Gapless copies of several rows' segments: the base, and what it meets. */
typedef struct gathered_rows {
    float base[GATHERED_ELEMENTS];
    _Alignas(64) char operands[GATHERED_BYTES];
    char *operand[SB_TILE_INPUTS]; /* where in `operands` */
} gathered_rows;

/* `count` elements, `step` bytes apart, behind each other. */
static void gather_elements(char *to, const char *from, int64_t step, int64_t size, int64_t count) {
    if (step == size)
        memcpy(to, from, (size_t)(count * size));
    else
        sb_gather_dense((size_t)size, 1, &count, &(int64_t){step / size}, from, to);
}

/* Whether an operand is one number for all elements. */
static bool is_number(const sb_fused_epilogue *fused, int operand) {
    return !fused->varies[operand] && fused->column_steps[operand] == 0;
}

/* How many rows of `count` elements fit; says where operands go. */
static int64_t place_rows(const sb_fused_epilogue *fused, int64_t count, gathered_rows *gathered) {
    int64_t bytes = 0, used = 0;
    for (int i = 0; i < fused->operands; i++)
        bytes += is_number(fused, i) ? 0 : fused->sizes[i];
    /* Each operand's elements begin on a line of their own. */
    int64_t most = GATHERED_ELEMENTS / count;
    if (bytes > 0 && most > (GATHERED_BYTES - 64 * SB_TILE_INPUTS) / bytes / count)
        most = (GATHERED_BYTES - 64 * SB_TILE_INPUTS) / bytes / count;
    for (int i = 0; i < fused->operands; i++) {
        gathered->operand[i] = gathered->operands + used;
        used += is_number(fused, i) ? 0 : (most * count * fused->sizes[i] + 63) / 64 * 64;
    }
    return most;
}

/* The operands of `rows` rows from m on: all of them, or those that vary from row to row. */
static void gather_operands(const sb_fused_epilogue *fused, bool all, bool varies, int64_t m, int64_t rows, int64_t n,
                            int64_t count, gathered_rows *gathered, char **data, int64_t *steps) {
    char *row_data[2 + SB_TILE_INPUTS];
    int64_t row_steps[2 + SB_TILE_INPUTS];
    for (int64_t r = 0; r < rows; r++) {
        if (r == 0 || varies)
            find_row(fused, m + r, n, row_data, row_steps);
        for (int i = 0; i < fused->operands; i++) {
            const int64_t size = fused->sizes[i];
            if (!all && !fused->varies[i])
                continue;
            if (!is_number(fused, i))
                gather_elements(gathered->operand[i] + r * count * size, row_data[2 + i], row_steps[2 + i], size,
                                count);
            data[2 + i] = is_number(fused, i) ? row_data[2 + i] : gathered->operand[i];
            steps[2 + i] = is_number(fused, i) ? 0 : size;
        }
    }
}

static bool any_varies(const sb_fused_epilogue *fused) {
    for (int i = 0; i < fused->operands; i++) {
        if (fused->varies[i])
            return true;
    }
    return false;
}

/* Runs the program over `rows` rows' segments at row[r] + offset, by way of `base`; data and steps have the operands. */
static void move_rows(const sb_fused_epilogue *fused, float *const *row, int64_t offset, int64_t rows, int64_t count,
                      float *base, char **data, int64_t *steps) {
    float out[GATHERED_ELEMENTS];
    const size_t bytes = (size_t)count * sizeof(float);
    bool gapless = true;
    for (int64_t r = 1; r < rows; r++)
        gapless = gapless && row[r] == row[r - 1] + count;
    if (gapless) {
        memcpy(base, row[0] + offset, bytes * (size_t)rows);
        data[0] = (char *)(row[0] + offset);
    } else {
        for (int64_t r = 0; r < rows; r++)
            memcpy(base + r * count, row[r] + offset, bytes);
        data[0] = (char *)out;
    }
    data[1] = (char *)base;
    sb_tile_program_row(fused->program, rows * count, data, steps);
    for (int64_t r = 0; r < rows && !gapless; r++)
        memcpy(row[r] + offset, out + r * count, bytes);
}

static void run_fused_rows(void *context, float *const *row, int64_t offset, int64_t m, int64_t rows, int64_t n,
                           int64_t count) {
    const sb_fused_epilogue *fused = context;
    const bool varies = any_varies(fused);
    gathered_rows gathered;
    const int64_t most = place_rows(fused, count, &gathered);
    if (most < 2) {
        for (int64_t r = 0; r < rows; r++)
            run_fused(context, row[r] + offset, m + r, n, count);
        return;
    }
    char *data[2 + SB_TILE_INPUTS];
    int64_t steps[2 + SB_TILE_INPUTS] = {(int64_t)sizeof(float), (int64_t)sizeof(float)};
    for (int64_t start = 0; start < rows; start += most) {
        const int64_t taken = rows - start < most ? rows - start : most;
        if (start == 0 || varies)
            gather_operands(fused, start == 0, varies, m + start, taken, n, count, &gathered, data, steps);
        move_rows(fused, row + start, offset, taken, count, gathered.base, data, steps);
    }
}

void sb_fused_epilogue_finish_16(const sb_fused_epilogue *fused, int64_t m, int64_t n, int64_t count, uint16_t *row) {
    uint16_t base[SB_TILE_ELEMENTS];
    char *data[2 + SB_TILE_INPUTS];
    int64_t steps[2 + SB_TILE_INPUTS] = {(int64_t)sizeof *row, (int64_t)sizeof *base};
    find_row(fused, m, n, data, steps);
    data[1] = (char *)base;
    for (int64_t start = 0; start < count; start += SB_TILE_ELEMENTS) {
        int64_t piece = piece_of(count - start);
        memcpy(base, row + start, (size_t)piece * sizeof *base);
        data[0] = (char *)(row + start);
        sb_tile_program_row(fused->program, piece, data, steps);
        go_on(fused, piece, data, steps);
    }
}

void sb_fused_epilogue_append(sb_fused_epilogue *fused, sb_epilogue *epilogue) {
    if (fused->program == NULL || sb_fused_epilogue_steps(fused, epilogue))
        return;
    epilogue->steps[epilogue->count++] =
        (sb_epilogue_step){.kind = SB_EPILOGUE_CALL,
                           .call = run_fused,
                           .context = fused,
                           .nature = fused->dtype == SB_F32 ? SB_EPILOGUE_ANYTHING : SB_EPILOGUE_ROUNDS_FIRST};
    if (fused->dtype == SB_F32)
        epilogue->steps[epilogue->count - 1].call_rows = run_fused_rows;
}
