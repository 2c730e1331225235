#include "cpu/contraction/fused_epilogue_steps.h"

#include <string.h>

#include "graph/graph.h"

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

/* An element for each of the matrix: y + sign * operand, or y * operand. */
static sb_epilogue_step matrix_step(const sb_fused_epilogue *fused, int operand, int64_t row_bytes,
                                    sb_epilogue_kind kind, float sign) {
    int64_t row_stride = row_bytes / (int64_t)sizeof(float);
    return (sb_epilogue_step){.kind = kind,
                              .vector = operand_data(fused, operand) + fused->first_row * row_stride,
                              .row_stride = row_stride,
                              .column_stride = 1,
                              .scalar = sign};
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
        *step = matrix_step(fused, operand, row_stride, multiply ? SB_EPILOGUE_MUL_MATRIX : SB_EPILOGUE_ADD_MATRIX, 1);
        return true;
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

/* y / scalar, and y - operand, which is y + (-operand), of a scalar or a matrix. */
static bool ordered_step(const sb_fused_epilogue *fused, const sb_tile_instruction *instruction, bool divides,
                         sb_epilogue_step *step) {
    int64_t row_stride;
    if (instruction->operand_count != 2 || instruction->operands[0] != SB_TILE_PREVIOUS || instruction->operands[1] < 0)
        return false;
    const int operand = instruction->operands[1];
    const spread spread = spread_of(fused, operand, &row_stride);
    if (spread == SPREAD_MATRIX && !divides) {
        *step = matrix_step(fused, operand, row_stride, SB_EPILOGUE_ADD_MATRIX, -1);
        return true;
    }
    if (spread != SPREAD_SCALAR)
        return false;
    const float scalar = *operand_data(fused, operand);
    *step = divides ? (sb_epilogue_step){.kind = SB_EPILOGUE_DIV_SCALAR, .scalar = scalar}
                    : (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_SCALAR, .scalar = -scalar};
    return true;
}

static bool is_named(const sb_tile_instruction *instruction, const char *name) {
    return instruction->node->op->domain[0] == '\0' && strcmp(instruction->node->op->name, name) == 0;
}

static bool plain_step(const sb_fused_epilogue *fused, int index, sb_epilogue_step *step) {
    sb_tile_instruction instruction;
    sb_tile_program_instruction(fused->program, index, &instruction);
    if (is_named(&instruction, "Add"))
        return binary_step(fused, &instruction, false, step);
    if (is_named(&instruction, "Mul"))
        return binary_step(fused, &instruction, true, step);
    if (is_named(&instruction, "Sub") || is_named(&instruction, "Div"))
        return ordered_step(fused, &instruction, is_named(&instruction, "Div"), step);
    if (is_named(&instruction, "BatchNormalization"))
        return factors_step(fused, &instruction, step);
    if (is_named(&instruction, "Clip"))
        return clip_step(fused, &instruction, step);
    *step = (sb_epilogue_step){.kind = SB_EPILOGUE_RELU};
    return is_named(&instruction, "Relu") && instruction.operands[0] == SB_TILE_PREVIOUS;
}

/* Whether instruction `index` multiplies the result of the one before by what instruction `start` began with. */
static bool closes_gate(const sb_fused_epilogue *fused, int start, int index) {
    sb_tile_instruction instruction;
    if (index >= sb_tile_program_count(fused->program))
        return false;
    sb_tile_program_instruction(fused->program, index, &instruction);
    if (!is_named(&instruction, "Mul") || instruction.operand_count != 2)
        return false;
    const int gate = instruction.operands[0] == SB_TILE_PREVIOUS ? 0 : 1;
    return instruction.operands[gate] == SB_TILE_PREVIOUS && instruction.operands[1 - gate] == SB_TILE_OTHER &&
           instruction.made_by[1 - gate] == start - 1;
}

/* The three steps of HardSigmoid. */
static bool hard_sigmoid_steps(const sb_fused_epilogue *fused, int index, sb_epilogue *epilogue) {
    sb_tile_instruction instruction;
    sb_tile_program_instruction(fused->program, index, &instruction);
    float factor, addend;
    if (!is_named(&instruction, "HardSigmoid") || instruction.operands[0] != SB_TILE_PREVIOUS ||
        epilogue->count + 3 > SB_EPILOGUE_STEPS ||
        sb_node_float(instruction.node, "alpha", 0.2f, &factor, NULL) != SB_OK ||
        sb_node_float(instruction.node, "beta", 0.5f, &addend, NULL) != SB_OK)
        return false;
    epilogue->steps[epilogue->count++] = (sb_epilogue_step){.kind = SB_EPILOGUE_MUL_SCALAR, .scalar = factor};
    epilogue->steps[epilogue->count++] = (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_SCALAR, .scalar = addend};
    epilogue->steps[epilogue->count++] = (sb_epilogue_step){.kind = SB_EPILOGUE_CLIP, .high = 1.0f};
    return true;
}

/* Hard swish in its three spellings: the operator; x · HardSigmoid(x); x · Clip(x + c). Returns how many instructions
 * from `index` on it takes: 0 when they are something else. */
static int gate_step(const sb_fused_epilogue *fused, int index, sb_epilogue_step *step) {
    sb_tile_instruction instruction;
    sb_tile_program_instruction(fused->program, index, &instruction);
    *step = (sb_epilogue_step){.factor = (float)(1.0 / 6.0), .addend = 0.5f, .high = 1.0f};
    if (is_named(&instruction, "HardSwish") && instruction.operands[0] == SB_TILE_PREVIOUS) {
        step->kind = SB_EPILOGUE_GATE;
        return 1;
    }
    if (is_named(&instruction, "HardSigmoid") && instruction.operands[0] == SB_TILE_PREVIOUS &&
        closes_gate(fused, index, index + 1) &&
        sb_node_float(instruction.node, "alpha", 0.2f, &step->factor, NULL) == SB_OK &&
        sb_node_float(instruction.node, "beta", 0.5f, &step->addend, NULL) == SB_OK) {
        step->kind = SB_EPILOGUE_GATE;
        return 2;
    }
    sb_epilogue_step sum, clip;
    if (!is_named(&instruction, "Add") || !closes_gate(fused, index, index + 2) || !plain_step(fused, index, &sum) ||
        sum.kind != SB_EPILOGUE_ADD_SCALAR || !plain_step(fused, index + 1, &clip) || clip.kind != SB_EPILOGUE_CLIP)
        return 0;
    *step = (sb_epilogue_step){
        .kind = SB_EPILOGUE_GATE, .factor = 1.0f, .addend = sum.scalar, .scalar = clip.scalar, .high = clip.high};
    return 3;
}

/* Appends the steps of instruction `index`, or of it and some behind it: how many instructions, 0 where there are none. */
static int append_steps(const sb_fused_epilogue *fused, int index, sb_epilogue *epilogue) {
    if (epilogue->count == SB_EPILOGUE_STEPS)
        return 0;
    sb_epilogue_step *step = &epilogue->steps[epilogue->count];
    int taken = gate_step(fused, index, step);
    if (taken == 0 && hard_sigmoid_steps(fused, index, epilogue))
        return 1;
    if (taken == 0 && plain_step(fused, index, step))
        taken = 1;
    epilogue->count += taken > 0;
    return taken;
}

bool sb_fused_epilogue_steps(const sb_fused_epilogue *fused, sb_epilogue *epilogue) {
    const int count = sb_tile_program_count(fused->program), before = epilogue->count;
    if (fused->dtype != SB_F32)
        return false;
    for (int i = 0, taken; i < count; i += taken) {
        taken = append_steps(fused, i, epilogue);
        if (taken == 0) {
            epilogue->count = before;
            return false;
        }
    }
    return true;
}
