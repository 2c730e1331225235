#include "cuda/elementwise/fixed.h"
#include "numerics/convert.h"

#include <stdio.h>
#include <string.h>

#include "cuda/elementwise/fixed_programs.h"
#include "numerics/scalar.h"

#define BYTES 2 /* of an element */
#define GROUP SB_CUDA_FIXED_GROUP
/* Of those kernels that a multiprocessor has room for at once. */
#define RESIDENT_BLOCKS 3

typedef struct named_program {
    const char *name;
    sb_cuda_fixed_program program;
} named_program;

#define ENTRY(name, inputs, count, ...) {#name, {inputs, count, {__VA_ARGS__}}},
static const named_program programs[] = {SB_CUDA_FIXED_PROGRAMS(ENTRY)};
#define PROGRAMS (sizeof programs / sizeof programs[0])

/* ---- the normal form: fixed_programs.h ---- */

typedef struct normal_form {
    sb_cuda_fixed_program program;
    sb_cuda_fixed_match *match;
    uint8_t holds[SB_CUDA_EPILOGUE_REGISTERS]; /* the code's registers: a source of the normal form */
    int kept;
} normal_form;

static bool is_input(int source) {
    return source >= SB_CUDA_EPILOGUE_INPUT;
}

/* The program's number of the code's input; -1: there are too many. */
static int number_input(normal_form *form, int input) {
    for (int i = 0; i < form->program.inputs; i++) {
        if (form->match->inputs[i] == input)
            return SB_CUDA_EPILOGUE_INPUT + i;
    }
    if (form->program.inputs == SB_CUDA_FIXED_INPUTS)
        return -1;
    form->match->inputs[form->program.inputs] = (uint8_t)input;
    return SB_CUDA_EPILOGUE_INPUT + form->program.inputs++;
}

/* Where an operand of step `at` comes from, in the normal form. */
static int normal_source(normal_form *form, int at, int source) {
    if (source >= SB_CUDA_EPILOGUE_REGISTER && source < SB_CUDA_EPILOGUE_IMMEDIATE_A)
        source = form->holds[source - SB_CUDA_EPILOGUE_REGISTER];
    else if (is_input(source))
        return number_input(form, source - SB_CUDA_EPILOGUE_INPUT);
    if (is_input(source)) /* loaded ahead: the code's number */
        return number_input(form, source - SB_CUDA_EPILOGUE_INPUT);
    bool previous = at > 0 && source != SB_CUDA_EPILOGUE_PREVIOUS && form->program.steps[at - 1].keep == source;
    return previous ? SB_CUDA_EPILOGUE_PREVIOUS : source;
}

static bool is_commutative(int opcode) {
    return opcode == SB_CUDA_EPILOGUE_Add || opcode == SB_CUDA_EPILOGUE_Mul || opcode == SB_CUDA_EPILOGUE_Max ||
           opcode == SB_CUDA_EPILOGUE_Min;
}

static bool is_number(int source) {
    return source == SB_CUDA_EPILOGUE_IMMEDIATE_A || source == SB_CUDA_EPILOGUE_IMMEDIATE_B;
}

/* Puts the operands of sums and products in order. */
static void order_operands(sb_cuda_fixed_step *step, float *a, float *b) {
    uint8_t first = step->sources[0], second = step->sources[1];
    bool exchange = is_number(first) ? !is_number(second) : !is_number(second) && first > second;
    if (!is_commutative(step->opcode) || !exchange)
        return;
    if (is_number(first)) {
        *b = *a;
        first = SB_CUDA_EPILOGUE_IMMEDIATE_B;
    }
    step->sources[0] = second;
    step->sources[1] = first;
}

/* Whether the numbers that a step of f16 computes with by pairs are values of f16: the reciprocal of a divisor may not be. */
static bool has_numbers_of_f16(const sb_cuda_fixed_step *step, float a, float b) {
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        if (step->sources[i] == SB_CUDA_EPILOGUE_IMMEDIATE_A)
            fits = fits && (a != a || sb_f16_to_f32(sb_f16_from_f32(a)) == a);
        if (step->sources[i] == SB_CUDA_EPILOGUE_IMMEDIATE_B)
            fits = fits && (b != b || sb_f16_to_f32(sb_f16_from_f32(b)) == b);
    }
    return fits || (step->opcode != SB_CUDA_EPILOGUE_Add && step->opcode != SB_CUDA_EPILOGUE_Mul);
}

static bool add_step(normal_form *form, const sb_cuda_epilogue_step *given) {
    int at = form->program.count;
    sb_cuda_fixed_step *step = &form->program.steps[at];
    float *a = &form->match->a[at], *b = &form->match->b[at];
    *step = (sb_cuda_fixed_step){.opcode = given->opcode};
    *a = given->a;
    *b = given->b;
    for (int i = 0; i < 3; i++) {
        int source = normal_source(form, at, given->sources[i]);
        if (source < 0)
            return false;
        step->sources[i] = (uint8_t)source;
    }
    for (int i = 1; i < 4 && given->opcode == SB_CUDA_EPILOGUE_Normalize; i++) {
        if (number_input(form, given->sources[1] - SB_CUDA_EPILOGUE_INPUT + i) != step->sources[1] + i)
            return false;
    }
    order_operands(step, a, b);
    if (step->opcode == SB_CUDA_EPILOGUE_Div && step->sources[1] == SB_CUDA_EPILOGUE_IMMEDIATE_B)
        *a = step->sources[0] == SB_CUDA_EPILOGUE_IMMEDIATE_A ? *a : sb_div_f32(1, *b);
    if (given->keep != 0) {
        if (form->kept == SB_CUDA_FIXED_KEPT)
            return false;
        step->keep = (uint8_t)(SB_CUDA_EPILOGUE_REGISTER + form->kept++);
        form->holds[given->keep - SB_CUDA_EPILOGUE_REGISTER] = step->keep;
    }
    form->program.count++;
    return true;
}

static bool is_program(const sb_cuda_fixed_program *program, const sb_cuda_fixed_program *known) {
    return program->inputs == known->inputs && program->count == known->count &&
           memcmp(program->steps, known->steps, program->count * sizeof program->steps[0]) == 0;
}

bool sb_cuda_fixed_find(const sb_cuda_epilogue_code *code, sb_dtype dtype, sb_cuda_fixed_match *match) {
    *match = (sb_cuda_fixed_match){0};
    normal_form form = {.match = match};
    int rounding = dtype == SB_F16 ? SB_CUDA_EPILOGUE_F16 : SB_CUDA_EPILOGUE_BF16;
    if ((dtype != SB_F16 && dtype != SB_BF16) || code->count > SB_CUDA_FIXED_STEPS)
        return false;
    for (int i = 0; i < code->preloaded; i++)
        form.holds[i] = (uint8_t)(SB_CUDA_EPILOGUE_INPUT + code->preloads[i]);
    for (int i = 0; i < code->count; i++) {
        if (code->steps[i].rounding != rounding || !add_step(&form, &code->steps[i]))
            return false;
        if (dtype == SB_F16 && !has_numbers_of_f16(&form.program.steps[i], match->a[i], match->b[i]))
            return false;
    }
    for (size_t i = 0; i < PROGRAMS; i++) {
        if (!is_program(&form.program, &programs[i].program))
            continue;
        match->name = programs[i].name;
        match->input_count = form.program.inputs;
        match->normalizes = form.program.steps[0].opcode == SB_CUDA_EPILOGUE_Normalize;
        return true;
    }
    return false;
}

bool sb_cuda_fixed_find_operator(const char *op, sb_dtype dtype, float a, float b, sb_cuda_fixed_match *match) {
    for (size_t i = 0; i < PROGRAMS && (dtype == SB_F16 || dtype == SB_BF16); i++) {
        if (strcmp(programs[i].name, op) != 0)
            continue;
        *match = (sb_cuda_fixed_match){
            .name = programs[i].name, .input_count = programs[i].program.inputs, .inputs = {0, 1}, .a = {a}, .b = {b}};
        return true;
    }
    return false;
}

/* ---- elements ---- */

static bool is_aligned(int64_t value) {
    return value % (GROUP * BYTES) == 0;
}

static bool is_linear(const sb_walk *walk, int operand) {
    int64_t behind = BYTES;
    bool linear = true;
    for (int d = walk->rank - 1; d >= 0; d--) {
        linear = linear && walk->steps[operand][d] == behind;
        behind *= walk->dims[d];
    }
    return linear && is_aligned((intptr_t)walk->data[operand]);
}

/* The walk as outer x middle x inner elements; false where there are more dimensions or the output is not packed. */
static bool fill_box(const sb_walk *walk, sb_cuda_fixed_box *box) {
    if (walk->rank > 3 || walk->elements > INT32_MAX / 2 || !is_linear(walk, 0))
        return false;
    *box = (sb_cuda_fixed_box){.elements = (uint32_t)walk->elements, .out = walk->data[0]};
    box->inner = sb_cuda_divisor_of((uint32_t)walk->dims[walk->rank - 1]);
    box->middle = sb_cuda_divisor_of(walk->rank > 1 ? (uint32_t)walk->dims[walk->rank - 2] : 1);
    return true;
}

/* How an operand lies; false where kernels do not have it. */
static bool describe(const sb_walk *walk, int operand, sb_cuda_fixed_box *box, sb_cuda_fixed_input *input) {
    int last = walk->rank - 1;
    const int64_t *steps = walk->steps[operand];
    *input = (sb_cuda_fixed_input){.data = walk->data[operand], .layout = SB_CUDA_FIXED_LINEAR};
    if (is_linear(walk, operand))
        return true;
    box->places = 1;
    for (int d = 0; d < last; d++)
        input->steps[d + 3 - walk->rank] = steps[d];
    /* A group may go on into the next row, not further. */
    input->layout = SB_CUDA_FIXED_REPEATED;
    if (steps[last] == 0)
        return walk->dims[last] >= GROUP;
    input->layout = SB_CUDA_FIXED_ROW;
    return steps[last] == BYTES && walk->dims[last] % GROUP == 0 && is_aligned((intptr_t)walk->data[operand]) &&
           is_aligned(input->steps[0]) && is_aligned(input->steps[1]);
}

/* Gives the work its grid, of at most work->blocks unless that is 0, and notes what it touches; input i is operand inputs[i] of the walk, or operand 1 + i. */
static sb_status launch(sb_call *call, sb_cuda_work *work, const sb_walk *walk, const sb_tensor *const *tensors,
                        int input_count, const uint8_t *inputs) {
    const int64_t per_block = (int64_t)SB_CUDA_FIXED_THREADS * GROUP;
    unsigned blocks = sb_cuda_call_blocks(call, (walk->elements + per_block - 1) / per_block);
    work->threads = SB_CUDA_FIXED_THREADS;
    work->blocks = work->blocks != 0 && work->blocks < blocks ? work->blocks : blocks;
    sb_cuda_work_writes(work, tensors[0]);
    for (int i = 0; i < input_count; i++)
        sb_cuda_work_reads(work, tensors[1 + (inputs != NULL ? inputs[i] : i)]);
    return sb_cuda_call_launch(call, work);
}

/* Whether statistics of channels are one row that all rows have, or each one element for a row; false where neither. */
static bool describe_statistics(sb_cuda_fixed *parameters) {
    bool last = true, first = true;
    for (int i = 1; i <= 4; i++) {
        const sb_cuda_fixed_input *input = &parameters->inputs[i];
        last = last && input->layout == SB_CUDA_FIXED_ROW && input->steps[0] == 0 && input->steps[1] == 0;
        first = first && input->layout == SB_CUDA_FIXED_REPEATED;
    }
    parameters->channels_last = last;
    return last || first;
}

static bool fill(const sb_cuda_fixed_match *match, const sb_walk *walk, sb_cuda_fixed *parameters) {
    memset(parameters, 0, sizeof *parameters);
    if (!fill_box(walk, &parameters->box))
        return false;
    memcpy(parameters->a, match->a, sizeof match->a);
    memcpy(parameters->b, match->b, sizeof match->b);
    for (int i = 0; i < match->input_count; i++) {
        if (!describe(walk, 1 + match->inputs[i], &parameters->box, &parameters->inputs[i]))
            return false;
    }
    return !match->normalizes || describe_statistics(parameters);
}

sb_status sb_cuda_fixed_launch(sb_call *call, const sb_cuda_fixed_match *match, sb_dtype dtype, const sb_walk *walk,
                               const sb_tensor *const *tensors, bool *done) {
    sb_cuda_fixed parameters;
    *done = fill(match, walk, &parameters);
    if (!*done)
        return SB_OK;
    char kernel[64];
    snprintf(kernel, sizeof kernel, "sb_cuda_fixed_%s_%s", match->name, sb_dtype_name(dtype));
    sb_cuda_work work = {.module = dtype == SB_F16 ? "fixed_f16" : "fixed_bf16",
                         .kernel = kernel,
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters};
    /* Threads that go on to other rows at the same channels keep their factors. */
    if (parameters.channels_last)
        work.blocks = (unsigned)(RESIDENT_BLOCKS * sb_cuda_call_device(call)->multiprocessors);
    return launch(call, &work, walk, tensors, match->input_count, match->inputs);
}

sb_status sb_cuda_fixed_interpret(sb_call *call, const sb_cuda_epilogue_code *code, bool heavy, sb_dtype dtype,
                                  const sb_walk *walk, const sb_tensor *const *tensors, bool *done) {
    sb_cuda_fixed_code parameters;
    memset(&parameters, 0, sizeof parameters);
    *done = fill_box(walk, &parameters.box);
    for (int i = 0; i + 1 < walk->operands && *done; i++)
        *done = describe(walk, 1 + i, &parameters.box, &parameters.inputs[i]);
    if (!*done)
        return SB_OK;
    parameters.code = *code;
    char kernel[64];
    snprintf(kernel, sizeof kernel, "sb_cuda_fused_%s_%s", heavy ? "heavy" : "light", sb_dtype_name(dtype));
    sb_cuda_work work = {.module = dtype == SB_F16 ? "fused_elementwise_16_f16" : "fused_elementwise_16_bf16",
                         .kernel = kernel,
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters};
    return launch(call, &work, walk, tensors, walk->operands - 1, NULL);
}
