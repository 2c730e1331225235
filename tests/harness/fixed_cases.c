/* Bodies whose programs have kernels without an interpreter, as exporters write them, and that these kernels are found. */
#include <stdio.h>
#include <string.h>

#include "cuda/contraction/epilogue.h"
#include "cuda/elementwise/fixed.h"
#include "harness/fused_steps.h"
#include "harness/harness.h"
#include "ops/real.h"

/* A node: its operator, and its inputs. P is what the node before made, K the first node's, 0 to 2 are inputs, C and c
 * constants of one element. BatchNormalization has four inputs of its own beside. */
typedef struct body_step {
    const char *op, *inputs;
} body_step;

typedef struct body {
    const char *name; /* the program's */
    body_step steps[6];
} body;

static const body bodies[] = {
    {"add_relu", {{"Add", "01"}, {"Relu", "P"}}},
    {"add_clip", {{"Add", "10"}, {"Clip", "PCC"}}},
    {"add_add", {{"Add", "01"}, {"Add", "2P"}}},
    {"normalize_relu", {{"BatchNormalization", "0"}, {"Relu", "P"}}},
    {"normalize_clip", {{"BatchNormalization", "0"}, {"Clip", "PCC"}}},
    {"normalize_hard_swish", {{"BatchNormalization", "0"}, {"HardSwish", "P"}}},
    {"normalize_silu", {{"BatchNormalization", "0"}, {"Sigmoid", "P"}, {"Mul", "KP"}}},
    {"normalize_add", {{"BatchNormalization", "0"}, {"Add", "1P"}}},
    {"normalize_add_relu", {{"BatchNormalization", "0"}, {"Add", "P1"}, {"Relu", "P"}}},
    {"scale_mul_shift", {{"Mul", "01"}, {"Add", "P2"}}},
    {"mul_mask", {{"Mul", "C0"}, {"Add", "1P"}}},
    {"div_mask", {{"Div", "0C"}, {"Add", "P1"}}},
    {"gelu_div", {{"Div", "0C"}, {"Erf", "P"}, {"Add", "PC"}, {"Mul", "0P"}, {"Mul", "PC"}}},
    {"gelu_mul", {{"Mul", "C0"}, {"Erf", "P"}, {"Add", "CP"}, {"Mul", "P0"}, {"Mul", "CP"}}},
    {"bias_gelu_div", {{"Add", "01"}, {"Div", "PC"}, {"Erf", "P"}, {"Add", "PC"}, {"Mul", "KP"}, {"Mul", "PC"}}},
    {"bias_gelu_mul", {{"Add", "10"}, {"Mul", "CP"}, {"Erf", "P"}, {"Add", "CP"}, {"Mul", "PK"}, {"Mul", "CP"}}},
    {"bias_gelu", {{"Add", "01"}, {"Gelu", "P"}}},
    {"bias_gelu_tanh", {{"Add", "10"}, {"Gelu", "Pt"}}},
    {"silu", {{"Sigmoid", "0"}, {"Mul", "0P"}}},
    {"silu_gate", {{"Sigmoid", "0"}, {"Mul", "P0"}, {"Mul", "1P"}}},
};
#define BODIES ((int)(sizeof bodies / sizeof bodies[0]))

typedef struct body_shape {
    int rank;
    int64_t dims[4];
} body_shape;

/* Groups of eight that are whole, that lack some, that go on into the next row, and rows that are too short for them. */
static const body_shape shapes[] = {
    {2, {3, 64}},      {2, {1, 8}},        {2, {5, 776}}, {3, {2, 3, 24}},   {4, {2, 3, 7, 7}}, {4, {1, 5, 3, 3}},
    {4, {3, 2, 4, 8}}, {4, {2, 5, 14, 2}}, {2, {7, 13}},  {4, {2, 2, 1, 3}}, {2, {9, 1}},       {4, {4, 1, 3, 5}},
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

static void set_graph_text(sb_attributes *attributes, const char *name, const char *value) {
    sb_string text = {value, strlen(value)};
    MUST(sb_attributes_add_strings(attributes, name, true, 1, &text, error));
}

/* Input `number` of a body: the first has the shape; others have it too, or lack leading dimensions, or have an element
 * for each channel, or are one number. */
static sb_value_id add_operand(harness *h, builder *b, sb_dtype dtype, const body_shape *shape, int number, int variant,
                               sb_tensor **tensors) {
    int64_t dims[4];
    int rank = shape->rank, kind = number == 0 ? 0 : (variant + number) % 5;
    layout layout = variant % 6 == 5 ? (enum layout)random_between(&h->random, 0, LAYOUTS - 1) : PACKED;
    for (int d = 0; d < rank; d++)
        dims[d] = kind == 2 && d != 1 ? 1 : kind == 3 ? 1 : kind == 4 && d > 0 ? 1 : shape->dims[d];
    if (kind == 1)
        return graph_input(h, b, dtype, 1, &dims[rank - 1], layout, tensors);
    return graph_input(h, b, dtype, rank, dims, layout, tensors);
}

static sb_value_id add_statistics(harness *h, builder *b, sb_dtype dtype, int64_t channels, sb_value_id x,
                                  sb_tensor **tensors) {
    sb_value_id in[5] = {x};
    for (int i = 1; i < 5; i++) {
        in[i] = graph_input(h, b, dtype, 1, &channels, PACKED, tensors);
        sb_tensor *statistic = tensors[b->graph->input_count - 1];
        for (int64_t c = 0; c < channels && i == 4; c++)
            sb_real_store_f32(dtype, statistic->data, c, (float)random_between(&h->random, 0, 500) / 64);
    }
    return builder_node(b, "BatchNormalization", 5, in, NULL);
}

static sb_value_id add_body_step(harness *h, builder *b, const body_step *step, const sb_value_id *values,
                                 const body_shape *shape, sb_dtype dtype, sb_tensor **tensors) {
    /* The first three are no powers of two: quotients by those become products. */
    static const float constants[] = {1.4140625f, 0.70703125f, -3, 0.5f, 1, 0.0078125f};
    const int most = strcmp(step->op, "Div") == 0 ? 2 : 5;
    sb_value_id in[3];
    int count = 0;
    sb_attributes attributes = {0};
    for (const char *c = step->inputs; *c != 0; c++) {
        if (*c == 't')
            set_graph_text(&attributes, "approximate", "tanh");
        else if (*c == 'C')
            in[count++] = graph_scalar(b, dtype, constants[random_between(&h->random, 0, most)]);
        else
            in[count++] = values[*c == 'P' ? 0 : *c == 'K' ? 1 : 2 + *c - '0'];
    }
    if (in[0] == values[2] && step->op[0] == 'B')
        return add_statistics(h, b, dtype, shape->dims[1], in[0], tensors);
    return builder_node(b, step->op, count, in, &attributes);
}

/* Whether the fused node at the graph's end has the kernel. */
static void check_program(harness *h, const builder *b, const char *name, sb_dtype dtype) {
    const sb_node *node = b->graph->nodes[b->graph->node_count - 1];
    const sb_fact *facts[HARNESS_INPUTS];
    sb_cuda_epilogue_plan *plan;
    sb_cuda_fixed_match match = {0};
    for (int i = 0; i < node->input_count; i++)
        facts[i] = &b->graph->values[node->inputs[i]].fact;
    MUST(sb_cuda_epilogue_plan_create(sb_node_graph(node, "body"), 0, facts, &plan, error));
    if (!sb_cuda_fixed_find(sb_cuda_epilogue_plan_code(plan), dtype, &match) || strcmp(match.name, name) != 0) {
        printf("DIFFERS %s: its kernel is %s, not %s\n", h->name, match.name != NULL ? match.name : "none", name);
        h->failed++;
    }
    sb_cuda_epilogue_plan_destroy(plan);
}

static void run_body(harness *h, const body *body, const body_shape *shape, sb_dtype dtype, int variant) {
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    builder b = builder_create();
    sb_value_id values[5] = {0};
    char used[64] = "";
    for (int s = 0; s < 6 && body->steps[s].op != NULL; s++)
        strcat(used, body->steps[s].inputs);
    for (int i = 0; i < 3; i++) {
        if (strchr(used, '0' + i) != NULL)
            values[2 + i] = add_operand(h, &b, dtype, shape, i, variant, tensors);
    }
    for (int s = 0; s < 6 && body->steps[s].op != NULL; s++) {
        values[0] = add_body_step(h, &b, &body->steps[s], values, shape, dtype, tensors);
        values[1] = s == 0 ? values[0] : values[1];
    }
    bool ran = h->chosen && !h->list;
    harness_run_fused(h, &b, values[0], tensors);
    if (ran)
        check_program(h, &b, body->name, dtype);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

HARNESS_GROUP(fixed, bodies, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int i = 0; i < BODIES; i++) {
        for (int s = 0; s < SHAPES; s++) {
            for (int variant = 0; variant < 6; variant++)
                run_body(h, &bodies[i], &shapes[s], variant % 2 == 0 ? SB_F16 : SB_BF16, variant + s);
        }
    }
}

/* Channels last, in more rows than there are threads, which go on to other rows at the same channels or at others. */
HARNESS_GROUP(fixed, rows_of_channels, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const body_shape many[] = {{2, {4000, 64}}, {2, {2000, 136}}, {2, {130, 2048}}};
    for (int i = 0; i < 3; i++) {
        for (int body = 3; body < 7; body++)
            run_body(h, &bodies[body], &many[i], body % 2 == 0 ? SB_F16 : SB_BF16, 0);
    }
}

/* Nodes alone. */
HARNESS_GROUP(fixed, nodes, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const ops[] = {"Add",     "Sub",  "Mul", "Div",  "Relu", "HardSwish",
                                      "Sigmoid", "Tanh", "Erf", "Gelu", "Gelu", "Swish"};
    for (int i = 0; i < 12 * SHAPES; i++) {
        for (int variant = 0; variant < 12; variant++) {
            const body_shape *shape = &shapes[i / 12];
            sb_dtype dtype = variant % 2 == 0 ? SB_F16 : SB_BF16;
            harness_case test = harness_op(ops[i % 12], 21);
            sb_tensor *tensors[2] = {NULL};
            builder b = builder_create();
            add_operand(h, &b, dtype, shape, 0, variant, tensors);
            add_operand(h, &b, dtype, shape, 1, variant, tensors);
            builder_destroy(&b);
            bool exchange = variant % 3 == 0 && i % 12 < 4;
            add_input(&test, tensors[exchange]);
            if (i % 12 < 4)
                add_input(&test, tensors[!exchange]);
            else
                sb_tensor_release(tensors[1]);
            if (i % 12 == 10)
                set_text(&test, "approximate", "tanh");
            harness_run(h, &test);
        }
    }
}

/* Programs that have no kernel of their own, over the same elements: by the interpreter of eight elements a thread. */
HARNESS_GROUP(fixed, others, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int round = 0; round < 25 * SHAPES; round++) {
        const body_shape *shape = &shapes[round % SHAPES];
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        builder b = builder_create();
        sb_value_id operands[3];
        int variant = (int)random_between(&h->random, 0, 4); /* packed */
        for (int i = 0; i < 3; i++)
            operands[i] = add_operand(h, &b, dtype, shape, i, variant, tensors);
        sb_value_id value = builder_unary(&b, "Neg", operands[0]);
        int steps = (int)random_between(&h->random, 1, 7);
        for (int i = 0; i < steps; i++) {
            sb_value_id next = add_fused_step(h, &b, value, dtype, operands, round / SHAPES % 2 == 0);
            operands[0] = i % 2 == 1 ? value : operands[0];
            value = next;
        }
        harness_run_fused(h, &b, value, tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}
