#include "cpu/contraction/fused_epilogue_steps.h"

#include <string.h>

/* How an operand varies over the matrix. */
typedef enum spread { SPREAD_SCALAR, SPREAD_COLUMNS, SPREAD_MATRIX, SPREAD_OTHER } spread;

/* The distance between rows in memory, if it is the same everywhere: *stride in bytes. */
static bool even_rows(const sb_fused_epilogue *fused, int operand, int64_t *stride) {
    int64_t rows = 1;
    *stride = 0;
    bool found = false;
    for (int d = fused->row_axes - 1; d >= 0; d--) {
        if (fused->row_dims[d] == 1)
            continue;
        int64_t step = fused->row_steps[operand][d];
        if (found && step != *stride * rows)
            return false;
        if (!found)
            *stride = step;
        found = true;
        rows *= fused->row_dims[d];
    }
    return true;
}

static spread spread_of(const sb_fused_epilogue *fused, int operand, int64_t *row_stride) {
    int64_t column = fused->column_steps[operand];
    if (!even_rows(fused, operand, row_stride))
        return SPREAD_OTHER;
    if (*row_stride == 0 && column == 0)
        return SPREAD_SCALAR;
    if (column != (int64_t)sizeof(float))
        return SPREAD_OTHER;
    return *row_stride == 0 ? SPREAD_COLUMNS : SPREAD_MATRIX;
}

static const float *operand_data(const sb_fused_epilogue *fused, int operand) {
    return (const float *)(const void *)fused->data[operand];
}

/* Add and Mul are commutative in every bit: NaN has no payload. */
static bool binary_step(const sb_fused_epilogue *fused, const sb_tile_instruction *instruction, bool multiply,
                        sb_epilogue_step *step) {
    if (instruction->operand_count != 2)
        return false;
    int which = instruction->operands[0] == SB_TILE_PREVIOUS ? 1 : 0;
    int operand = instruction->operands[which];
    if (instruction->operands[1 - which] != SB_TILE_PREVIOUS || operand < 0)
        return false;
    int64_t row_stride;
    switch (spread_of(fused, operand, &row_stride)) {
    case SPREAD_SCALAR:
        *step = (sb_epilogue_step){.kind = multiply ? SB_EPILOGUE_MUL_SCALAR : SB_EPILOGUE_ADD_SCALAR,
                                   .scalar = *operand_data(fused, operand)};
        return true;
    case SPREAD_COLUMNS:
        *step = (sb_epilogue_step){.kind = multiply ? SB_EPILOGUE_MUL_COLUMNS : SB_EPILOGUE_ADD_COLUMNS,
                                   .vector = operand_data(fused, operand)};
        return true;
    case SPREAD_MATRIX:
        row_stride /= (int64_t)sizeof(float);
        *step = (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_MATRIX,
                                   .vector = operand_data(fused, operand) + fused->first_row * row_stride,
                                   .row_stride = row_stride,
                                   .column_stride = 1};
        return !multiply;
    case SPREAD_OTHER:
        break;
    }
    return false;
}

static bool factors_step(const sb_fused_epilogue *fused, const sb_tile_instruction *instruction,
                         sb_epilogue_step *step) {
    int64_t row_stride;
    int scale = instruction->operands[1], shift = instruction->operands[2];
    if (instruction->operands[0] != SB_TILE_PREVIOUS || scale < 0 || shift < 0 ||
        spread_of(fused, scale, &row_stride) != SPREAD_COLUMNS ||
        spread_of(fused, shift, &row_stride) != SPREAD_COLUMNS)
        return false;
    *step = (sb_epilogue_step){.kind = SB_EPILOGUE_SCALE_SHIFT_COLUMNS,
                               .vector = operand_data(fused, scale),
                               .shift = operand_data(fused, shift)};
    return true;
}

static bool clip_step(const sb_fused_epilogue *fused, const sb_tile_instruction *instruction, sb_epilogue_step *step) {
    int64_t row_stride;
    if (instruction->operand_count != 3 || instruction->operands[0] != SB_TILE_PREVIOUS)
        return false;
    for (int i = 1; i < 3; i++) {
        if (instruction->operands[i] < 0 || spread_of(fused, instruction->operands[i], &row_stride) != SPREAD_SCALAR)
            return false;
    }
    *step = (sb_epilogue_step){.kind = SB_EPILOGUE_CLIP,
                               .scalar = *operand_data(fused, instruction->operands[1]),
                               .high = *operand_data(fused, instruction->operands[2])};
    return true;
}

static bool plain_step(const sb_fused_epilogue *fused, int index, sb_epilogue_step *step) {
    sb_tile_instruction instruction;
    sb_tile_program_instruction(fused->program, index, &instruction);
    const char *name = instruction.node->op->name;
    if (instruction.node->op->domain[0] != '\0')
        return false;
    if (strcmp(name, "Add") == 0)
        return binary_step(fused, &instruction, false, step);
    if (strcmp(name, "Mul") == 0)
        return binary_step(fused, &instruction, true, step);
    if (strcmp(name, "BatchNormalization") == 0)
        return factors_step(fused, &instruction, step);
    if (strcmp(name, "Clip") == 0)
        return clip_step(fused, &instruction, step);
    *step = (sb_epilogue_step){.kind = SB_EPILOGUE_RELU};
    return strcmp(name, "Relu") == 0 && instruction.operands[0] == SB_TILE_PREVIOUS;
}

bool sb_fused_epilogue_steps(const sb_fused_epilogue *fused, sb_epilogue *epilogue) {
    int count = sb_tile_program_count(fused->program), first = epilogue->count;
    if (fused->dtype != SB_F32 || first + count > SB_EPILOGUE_STEPS)
        return false;
    for (int i = 0; i < count; i++) {
        if (!plain_step(fused, i, &epilogue->steps[first + i]))
            return false;
    }
    epilogue->count += count;
    return true;
}
