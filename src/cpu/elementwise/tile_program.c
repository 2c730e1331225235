#include "cpu/elementwise/tile_program.h"

#include <string.h>

#include "base/allocation.h"
#include "cpu/elementwise/batch_factors.h"
#include "cpu/elementwise/quantize_trip.h"
#include "cpu/reason.h"

/* An operand: 0 the output, 1 the base, then the inputs, then registers. */
#define OPERAND_OUTPUT 0
#define OPERAND_BASE 1
#define OPERAND_INPUT 2
#define OPERAND_REGISTER (OPERAND_INPUT + SB_TILE_INPUTS)
#define OPERAND_COUNT (OPERAND_REGISTER + SB_TILE_REGISTERS)

typedef struct instruction {
    const sb_node *node;
    sb_walk_row *loop;
    void *context;
    int operand_count;
    unsigned char operands[SB_WALK_OPERANDS];
    union { /* contexts of quantization */
        sb_quantize_trip trip;
        sb_quantize_return back;
    };
} instruction;

typedef struct program_input {
    int graph_input;
    sb_tensor *constant;
} program_input;

struct sb_tile_program {
    size_t count;
    instruction *instructions;
    bool has_base;
    int64_t piece; /* elements that instructions take at once */
    int input_count;
    program_input inputs[SB_TILE_INPUTS];
    unsigned char *register_sizes; /* per instruction: bytes of an element of its output */
};

/* ---- compiling ---- */

typedef struct compiler {
    sb_tile_program *program;
    const sb_graph *graph;
    const sb_fact *const *inputs;
    size_t skip;
    sb_isa isa;
    int *operand_of;    /* per value: its operand, or -1 */
    sb_dtype *dtype_of; /* per value */
    size_t *last_use;   /* per value: the last node that reads it */
    bool busy[SB_TILE_REGISTERS];
    sb_error *error;
} compiler;

static sb_status refuse(const compiler *compiler, const sb_node *node, const char *why) {
    return sb_fail(compiler->error, SB_ERROR_UNSUPPORTED, "node %s (%s): %s", node->name, node->op->name, why);
}

static int graph_input_index(const sb_graph *graph, sb_value_id value) {
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i] == value)
            return (int)i;
    }
    return -1;
}

/* The node of the program that quantizes what `node` turns back; NULL: none. The two are one instruction. */
static const sb_node *way_there(const compiler *compiler, const sb_node *node) {
    if (!sb_node_is(node, "DequantizeLinear"))
        return NULL;
    int producer = compiler->graph->values[node->inputs[0]].producer;
    bool inside = producer >= 0 && (size_t)producer >= compiler->skip;
    const sb_node *there = inside ? compiler->graph->nodes[producer] : NULL;
    return there != NULL && sb_node_is(there, "QuantizeLinear") ? there : NULL;
}

/* The value that the node's instruction reads as input `index`. */
static sb_value_id value_read(const compiler *compiler, const sb_node *node, int index) {
    const sb_node *there = index == 0 ? way_there(compiler, node) : NULL;
    return there != NULL ? there->inputs[0] : node->inputs[index];
}

static sb_status add_input(compiler *compiler, const sb_node *node, int graph_input, sb_tensor *constant,
                           int *operand) {
    sb_tile_program *program = compiler->program;
    if (program->input_count == SB_TILE_INPUTS - 1)
        return refuse(compiler, node, "the group reads too many tensors");
    program->inputs[program->input_count] = (program_input){graph_input, constant};
    *operand = OPERAND_INPUT + program->input_count++;
    return SB_OK;
}

static sb_status find_operand(compiler *compiler, const sb_node *node, sb_value_id value, int *operand) {
    *operand = compiler->operand_of[value];
    if (*operand >= 0)
        return SB_OK;
    int index = graph_input_index(compiler->graph, value);
    if (index < 0 || compiler->inputs[index] == NULL)
        return refuse(compiler, node, "it reads a value from inside the contraction");
    SB_TRY(add_input(compiler, node, index, NULL, operand));
    compiler->operand_of[value] = *operand;
    compiler->dtype_of[value] = compiler->inputs[index]->dtype;
    return SB_OK;
}

static int take_register(compiler *compiler) {
    for (int i = 0; i < SB_TILE_REGISTERS; i++) {
        if (!compiler->busy[i]) {
            compiler->busy[i] = true;
            if (i >= SB_TILE_REGISTERS / 2)
                compiler->program->piece = SB_TILE_ELEMENTS / 2;
            return OPERAND_REGISTER + i;
        }
    }
    return -1;
}

/* Gives back the registers of values that node `index` read last. */
static void release_registers(compiler *compiler, const sb_node *node, size_t index) {
    for (int i = 0; i < node->input_count; i++) {
        sb_value_id value = value_read(compiler, node, i);
        if (value != SB_NO_VALUE && compiler->last_use[value] == index &&
            compiler->operand_of[value] >= OPERAND_REGISTER)
            compiler->busy[compiler->operand_of[value] - OPERAND_REGISTER] = false;
    }
}

/* BatchNormalization: y = fma(x, a, b), the factors a and b worked out here from its constants. */
static sb_status compile_factors(compiler *compiler, const sb_node *node, instruction *instruction) {
    const sb_fact *facts[5];
    for (int i = 1; i < 5; i++) {
        int index = graph_input_index(compiler->graph, node->inputs[i]);
        facts[i] = index >= 0 ? compiler->inputs[index] : NULL;
        if (facts[i] == NULL || facts[i]->constant == NULL)
            return refuse(compiler, node, "its statistics are not constants");
    }
    sb_tensor *scale, *shift;
    int rank = compiler->graph->values[node->outputs[0]].fact.rank;
    SB_TRY(sb_batch_factors(node, facts, rank, &scale, &shift, compiler->error));
    int operands[2] = {0, 0};
    sb_status status = add_input(compiler, node, -1, scale, &operands[0]);
    if (status != SB_OK) {
        sb_tensor_release(scale);
        sb_tensor_release(shift);
        return status;
    }
    status = add_input(compiler, node, -1, shift, &operands[1]);
    if (status != SB_OK) {
        sb_tensor_release(shift);
        return status;
    }
    SB_TRY(find_operand(compiler, node, node->inputs[0], &(int){0}));
    instruction->loop = sb_batch_factors_loop(compiler->isa, compiler->dtype_of[node->inputs[0]]);
    instruction->operand_count = 4;
    if (instruction->loop == NULL)
        return refuse(compiler, node, "its dtype has no loop");
    instruction->operands[1] = (unsigned char)compiler->operand_of[node->inputs[0]];
    instruction->operands[2] = (unsigned char)operands[0];
    instruction->operands[3] = (unsigned char)operands[1];
    return SB_OK;
}

static sb_status compile_elementwise(compiler *compiler, const sb_node *node, instruction *instruction) {
    sb_dtype dtypes[SB_WALK_OPERANDS] = {SB_DTYPE_NONE};
    if (node->input_count >= SB_WALK_OPERANDS)
        return refuse(compiler, node, "it has too many inputs");
    for (int i = 0; i < node->input_count; i++) {
        int operand;
        if (node->inputs[i] == SB_NO_VALUE)
            return refuse(compiler, node, "it leaves an input out");
        SB_TRY(find_operand(compiler, node, node->inputs[i], &operand));
        instruction->operands[i + 1] = (unsigned char)operand;
        dtypes[i] = compiler->dtype_of[node->inputs[i]];
    }
    instruction->operand_count = node->input_count + 1;
    if (node->op->loop != NULL)
        instruction->loop = node->op->loop(node, dtypes, compiler->isa, &instruction->context);
    if (instruction->loop != NULL)
        return SB_OK;
    char why[SB_WHY_BYTES];
    sb_reason_loop(why, node, node->input_count, dtypes, compiler->graph->values[node->outputs[0]].fact.dtype);
    return refuse(compiler, node, why);
}

static sb_status find_single(const compiler *compiler, const sb_node *node, sb_quantize_single *single) {
    if (sb_quantize_is_single(compiler->graph, compiler->inputs, node, single))
        return SB_OK;
    return refuse(compiler, node, "it has not one constant scale and zero point, of f32 and 8 or 16 bits");
}

/* DequantizeLinear, with QuantizeLinear before it or alone. */
static sb_status compile_return(compiler *compiler, const sb_node *node, instruction *instruction) {
    const sb_node *there = way_there(compiler, node);
    sb_value_id input = value_read(compiler, node, 0);
    sb_quantize_single first, second;
    int operand;
    SB_TRY(find_operand(compiler, node, input, &operand));
    SB_TRY(find_single(compiler, node, &second));
    if (there != NULL) {
        SB_TRY(find_single(compiler, there, &first));
        instruction->trip = sb_quantize_trip_of(&first, &second);
        instruction->loop = sb_quantize_trip_loop(compiler->isa);
        instruction->context = &instruction->trip;
    } else {
        instruction->back = (sb_quantize_return){second.zero, second.scale};
        instruction->loop = sb_quantize_return_loop(compiler->isa, compiler->dtype_of[input]);
        instruction->context = &instruction->back;
    }
    instruction->operand_count = 2;
    instruction->operands[1] = (unsigned char)operand;
    return SB_OK;
}

static sb_status compile_node(compiler *compiler, size_t index) {
    sb_tile_program *program = compiler->program;
    const sb_node *node = compiler->graph->nodes[index];
    bool last = index + 1 == compiler->graph->node_count;
    if (sb_node_is(node, "QuantizeLinear"))
        return last ? refuse(compiler, node, "a group gives no integers") : SB_OK;
    instruction *instruction = &program->instructions[program->count];
    sb_value_id output = node->outputs[0];
    instruction->node = node;
    compiler->dtype_of[output] = compiler->graph->values[output].fact.dtype;
    if (strcmp(node->op->name, "BatchNormalization") == 0)
        SB_TRY(compile_factors(compiler, node, instruction));
    else if (sb_node_is(node, "DequantizeLinear"))
        SB_TRY(compile_return(compiler, node, instruction));
    else
        SB_TRY(compile_elementwise(compiler, node, instruction));
    int operand = last ? OPERAND_OUTPUT : take_register(compiler);
    if (operand < 0)
        return refuse(compiler, node, "the group has too many values at once");
    /* Only now, so that an instruction never writes where it reads: row loops may assume that. */
    release_registers(compiler, node, index);
    instruction->operands[0] = (unsigned char)operand;
    compiler->operand_of[output] = operand;
    program->register_sizes[program->count++] = (unsigned char)sb_dtype_size(compiler->dtype_of[output]);
    return SB_OK;
}

static sb_status compile(compiler *compiler) {
    const sb_graph *graph = compiler->graph;
    const size_t skip = compiler->skip;
    for (size_t v = 0; v < graph->value_count; v++)
        compiler->operand_of[v] = -1;
    for (size_t n = skip; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++) {
            sb_value_id value = value_read(compiler, graph->nodes[n], i);
            if (value != SB_NO_VALUE)
                compiler->last_use[value] = n;
        }
    }
    compiler->program->has_base = skip != 0;
    compiler->program->piece = SB_TILE_ELEMENTS;
    if (skip != 0) {
        sb_value_id base = graph->nodes[skip - 1]->outputs[0];
        compiler->operand_of[base] = OPERAND_BASE;
        compiler->dtype_of[base] = graph->values[base].fact.dtype;
    }
    for (size_t n = skip; n < graph->node_count; n++)
        SB_TRY(compile_node(compiler, n));
    return SB_OK;
}

sb_status sb_tile_program_create(const sb_graph *graph, size_t skip, const sb_fact *const *inputs, sb_isa isa,
                                 sb_tile_program **program, sb_error *error) {
    sb_tile_program *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    size_t nodes = graph->node_count - skip;
    fresh->instructions = sb_allocate_array(nodes, sizeof *fresh->instructions);
    fresh->register_sizes = sb_allocate_array(nodes, sizeof *fresh->register_sizes);
    compiler compiler = {.program = fresh,
                         .graph = graph,
                         .inputs = inputs,
                         .skip = skip,
                         .isa = isa,
                         .operand_of = sb_allocate_array(graph->value_count, sizeof *compiler.operand_of),
                         .dtype_of = sb_allocate_array(graph->value_count, sizeof *compiler.dtype_of),
                         .last_use = sb_allocate_array(graph->value_count, sizeof *compiler.last_use),
                         .error = error};
    sb_status status;
    if (fresh->instructions == NULL || fresh->register_sizes == NULL || compiler.operand_of == NULL ||
        compiler.dtype_of == NULL || compiler.last_use == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *compiler.last_use);
    else
        status = compile(&compiler);
    sb_free(compiler.operand_of);
    sb_free(compiler.dtype_of);
    sb_free(compiler.last_use);
    if (status != SB_OK) {
        sb_tile_program_destroy(fresh);
        return status;
    }
    *program = fresh;
    return SB_OK;
}

void sb_tile_program_destroy(sb_tile_program *program) {
    if (program == NULL)
        return;
    for (int i = 0; i < program->input_count; i++)
        sb_tensor_release(program->inputs[i].constant);
    sb_free(program->instructions);
    sb_free(program->register_sizes);
    sb_free(program);
}

int sb_tile_program_inputs(const sb_tile_program *program) {
    return program->input_count;
}

void sb_tile_program_input(const sb_tile_program *program, int index, int *graph_input, sb_tensor **constant) {
    *graph_input = program->inputs[index].graph_input;
    *constant = program->inputs[index].constant;
}

int sb_tile_program_count(const sb_tile_program *program) {
    return (int)program->count;
}

/* The instruction before `index` that wrote operand `operand` last; -1: none. */
static int made_by(const sb_tile_program *program, int index, int operand) {
    while (--index >= 0 && program->instructions[index].operands[0] != operand)
        continue;
    return index;
}

void sb_tile_program_instruction(const sb_tile_program *program, int index, sb_tile_instruction *result) {
    const instruction *instruction = &program->instructions[index];
    /* The base exists before the first instruction; afterwards the instruction before has just written `previous`. */
    int previous = index > 0 ? program->instructions[index - 1].operands[0] : OPERAND_BASE;
    result->node = instruction->node;
    result->operand_count = instruction->operand_count - 1;
    for (int i = 0; i < result->operand_count; i++) {
        int operand = instruction->operands[i + 1];
        result->operands[i] = operand == previous                                      ? SB_TILE_PREVIOUS
                              : operand >= OPERAND_INPUT && operand < OPERAND_REGISTER ? operand - OPERAND_INPUT
                                                                                       : SB_TILE_OTHER;
        result->made_by[i] = made_by(program, index, operand);
    }
}

/* ---- running ---- */

void sb_tile_program_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    const sb_tile_program *program = context;
    _Alignas(SB_ALIGNMENT) char registers[SB_TILE_REGISTERS][SB_TILE_ELEMENTS * sizeof(uint64_t)];
    char *operand_data[OPERAND_COUNT];
    int64_t operand_steps[OPERAND_COUNT];
    /* The caller's operands have no gap where there is no base. */
    int first_input = program->has_base ? OPERAND_INPUT : OPERAND_BASE;
    for (int i = 0; i < first_input; i++)
        operand_steps[i] = steps[i];
    for (int i = 0; i < program->input_count; i++)
        operand_steps[OPERAND_INPUT + i] = steps[first_input + i];
    for (int i = 0; i < SB_TILE_REGISTERS; i++)
        operand_data[OPERAND_REGISTER + i] = registers[i];

    for (int64_t start = 0; start < count; start += program->piece) {
        int64_t piece = count - start < program->piece ? count - start : program->piece;
        for (int i = 0; i < first_input; i++)
            operand_data[i] = data[i] + start * steps[i];
        for (int i = 0; i < program->input_count; i++)
            operand_data[OPERAND_INPUT + i] = data[first_input + i] + start * steps[first_input + i];
        for (size_t n = 0; n < program->count; n++) {
            const instruction *instruction = &program->instructions[n];
            char *pointers[SB_WALK_OPERANDS];
            int64_t distances[SB_WALK_OPERANDS];
            if (instruction->operands[0] >= OPERAND_REGISTER)
                operand_steps[instruction->operands[0]] = program->register_sizes[n];
            for (int i = 0; i < instruction->operand_count; i++) {
                pointers[i] = operand_data[instruction->operands[i]];
                distances[i] = operand_steps[instruction->operands[i]];
            }
            instruction->loop(instruction->context, piece, pointers, distances);
        }
    }
}
