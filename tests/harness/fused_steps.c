#include "harness/fused_steps.h"

#include <string.h>

sb_value_id add_broadcast_input(harness *h, builder *b, sb_dtype dtype, const fused_shape *shape, sb_tensor **tensors) {
    int64_t dims[SB_MAX_RANK];
    int skipped = (int)random_between(&h->random, 0, shape->rank);
    uint64_t ones = random_bits(&h->random);
    for (int d = skipped; d < shape->rank; d++)
        dims[d - skipped] = (ones >> d & 1) != 0 ? 1 : shape->dims[d];
    return graph_input(h, b, dtype, shape->rank - skipped, dims,
                       (enum layout)random_between(&h->random, 0, LAYOUTS - 1), tensors);
}

sb_value_id add_cast(builder *b, sb_value_id value, sb_dtype to) {
    static const int codes[SB_DTYPE_COUNT] = {[SB_F32] = 1, [SB_F16] = 10, [SB_BF16] = 16, [SB_BOOL] = 9};
    sb_attributes attributes = {0};
    set_graph_int(&attributes, "to", codes[to]);
    return builder_node(b, "Cast", 1, &value, &attributes);
}

static sb_value_id add_leaky(builder *b, sb_value_id value) {
    sb_attributes attributes = {0};
    set_graph_float(&attributes, "alpha", 0.3f);
    return builder_node(b, "LeakyRelu", 1, &value, &attributes);
}

/* Hard swish as exporters spell it: x · HardSigmoid(x), or x · Clip(x + 3, 0, 6) / 6. */
static sb_value_id add_gate(random_source *random, builder *b, sb_value_id value, sb_dtype dtype) {
    if ((random_bits(random) & 1) != 0)
        return builder_binary(b, "Mul", value, builder_unary(b, "HardSigmoid", value));
    sb_value_id clip[3] = {builder_binary(b, "Add", value, graph_scalar(b, dtype, 3)), graph_scalar(b, dtype, 0),
                           graph_scalar(b, dtype, 6)};
    sb_value_id product = builder_binary(b, "Mul", builder_node(b, "Clip", 3, clip, NULL), value);
    return builder_binary(b, "Div", product, graph_scalar(b, dtype, 6));
}

static sb_value_id add_choice(random_source *random, builder *b, sb_value_id value, sb_value_id other) {
    static const char *const questions[] = {"Less", "Equal", "Greater", "LessOrEqual", "GreaterOrEqual"};
    sb_value_id asked = builder_binary(b, questions[random_between(random, 0, 4)], value, other);
    if ((random_bits(random) & 1) != 0)
        asked = builder_binary(b, "Xor", builder_unary(b, "IsNaN", value), asked);
    sb_value_id choice[3] = {builder_unary(b, "Not", asked), value, other};
    return builder_node(b, "Where", 3, choice, NULL);
}

/* Through another dtype and back. */
static sb_value_id add_detour(random_source *random, builder *b, sb_value_id value, sb_dtype dtype) {
    static const sb_dtype through[] = {SB_F32, SB_F16, SB_BF16, SB_BOOL};
    sb_dtype to = through[random_between(random, 0, 3)];
    return add_cast(b, builder_unary(b, "Abs", add_cast(b, value, to == SB_BOOL ? SB_F16 : to)), dtype);
}

static sb_value_id integer_scalar(builder *b, sb_dtype dtype, int value) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 0, NULL, &tensor, error));
    memcpy(tensor->data, &value, sb_dtype_size(dtype)); /* the least bytes come first */
    return builder_constant(b, tensor);
}

/* Through an integer of 8 or 16 bits and back, as in quantized networks: by one scale and zero point, or by two. */
static sb_value_id add_trip(random_source *random, builder *b, sb_value_id value) {
    static const sb_dtype integers[] = {SB_U8, SB_S8, SB_U16, SB_S16};
    static const float scales[] = {0.05f, 0.25f, 1.0f / 3, 3, -0.1f, 1e-3f, 0, 1e-42f, 1e30f};
    sb_dtype dtype = integers[random_between(random, 0, 3)];
    int least = dtype == SB_S8 ? -128 : dtype == SB_S16 ? -32768 : 0;
    int extent = dtype == SB_U8 || dtype == SB_S8 ? 255 : 65535;
    sb_value_id there[3] = {value, graph_scalar(b, SB_F32, scales[random_between(random, 0, 8)]),
                            integer_scalar(b, dtype, least + (int)random_between(random, 0, extent))};
    sb_value_id back[3] = {builder_node(b, "QuantizeLinear", 3, there, NULL), there[1], there[2]};
    if ((random_bits(random) & 1) != 0) {
        back[1] = graph_scalar(b, SB_F32, scales[random_between(random, 0, 8)]);
        back[2] = integer_scalar(b, dtype, least + (int)random_between(random, 0, extent));
    }
    return builder_node(b, "DequantizeLinear", 3, back, NULL);
}

static sb_value_id add_heavy_step(random_source *random, builder *b, sb_value_id value, sb_dtype dtype,
                                  sb_value_id other) {
    static const char *const ops[] = {"Exp",     "Log",      "Sin",  "Tanh", "Erf",  "Elu",
                                      "Sigmoid", "Softplus", "Mish", "Atan", "Selu", "Cosh"};
    switch (random_between(random, 0, 3)) {
    case 0:
        return builder_binary(b, "Pow", value, graph_scalar(b, dtype, (float)random_between(random, -1, 3)));
    case 1:
        return builder_unary(b, ops[random_between(random, 0, 11)], value);
    case 2:
        return add_choice(random, b, value, other);
    default:
        return add_detour(random, b, value, dtype);
    }
}

static sb_value_id add_light_step(random_source *random, builder *b, sb_value_id value, sb_dtype dtype,
                                  const sb_value_id *operands, sb_value_id other) {
    static const char *const light[] = {"Relu", "Neg",        "Abs",      "Sign",      "Floor",       "Ceil",
                                        "Sqrt", "Reciprocal", "Softsign", "HardSwish", "HardSigmoid", "Round"};
    static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min"};
    static const char *const joins[] = {"Max", "Min", "Sum", "Mean"};
    sb_value_id three[3] = {operands[0], value, operands[2]};
    switch (random_between(random, 0, 9)) {
    case 0:
    case 1:
        return builder_unary(b, light[random_between(random, 0, 11)], value);
    case 2:
    case 3:
        return builder_binary(b, pairs[random_between(random, 0, 6)], value, other);
    case 4:
        return builder_binary(b, pairs[random_between(random, 0, 3)], graph_scalar(b, dtype, 0.3f), value);
    case 5:
        return (random_bits(random) & 1) != 0 ? add_leaky(b, value) : add_gate(random, b, value, dtype);
    case 6: {
        sb_value_id bounds[3] = {value, graph_scalar(b, dtype, -1.25f), graph_scalar(b, dtype, 6)};
        return builder_node(b, "Clip", (int)random_between(random, 1, 3), bounds, NULL);
    }
    case 7:
        return builder_binary(b, pairs[random_between(random, 0, 6)], value, graph_scalar(b, dtype, 2.5f));
    case 8:
        return dtype == SB_F32 ? add_trip(random, b, value) : builder_binary(b, "Mul", value, value);
    default:
        return builder_node(b, joins[random_between(random, 0, 3)], 3, three, NULL);
    }
}

sb_value_id add_fused_step(harness *h, builder *b, sb_value_id value, sb_dtype dtype, const sb_value_id *operands,
                           bool heavy) {
    random_source *random = &h->random;
    sb_value_id other = operands[random_between(random, 0, 2)];
    return heavy && random_between(random, 0, 13) > 9 ? add_heavy_step(random, b, value, dtype, other)
                                                      : add_light_step(random, b, value, dtype, operands, other);
}

sb_value_id add_kept_values(builder *b, sb_value_id value, int count) {
    sb_value_id kept[16], sum = builder_unary(b, "Abs", value);
    assert_true(count <= 16);
    for (int i = 0; i < count; i++)
        kept[i] = sum = builder_binary(b, "Add", sum, graph_scalar(b, SB_F32, (float)i));
    for (int i = 0; i < count; i++)
        sum = builder_binary(b, "Mul", sum, kept[i]);
    return sum;
}
