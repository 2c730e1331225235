#include "llm/graph_nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "llm/weights.h"
#include "numerics/convert.h"

enum { PART_BYTES = 96, NAME_BYTES = PART_BYTES + 32 };

static void write_name(const building *b, const char *what, char name[NAME_BYTES]) {
    if (b->layer >= 0)
        snprintf(name, NAME_BYTES, "layer.%" PRId64 ".%s", b->layer, what);
    else
        snprintf(name, NAME_BYTES, "%s", what);
}

/* Operators of Samebit's own. */
static bool is_own(const char *op) {
    static const char *const own[] = {"ChooseTokens",   "MatMulF32",    "PagedAppend",
                                      "PagedAttention", "PagedScatter", "PendingTokens"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(op, own[i]) == 0)
            return true;
    }
    return false;
}

sb_status sb_llm_node(building *b, const char *op, const char *what, int inputs, const value *from, int attributes,
                      const sb_builder_attribute *list, value *to, sb_error *error) {
    return sb_llm_node_of_several(b, op, what, inputs, from, attributes, list, 1, to, error);
}

sb_status sb_llm_node_of_several(building *b, const char *op, const char *what, int inputs, const value *from,
                                 int attributes, const sb_builder_attribute *list, int outputs, value *to,
                                 sb_error *error) {
    char name[NAME_BYTES];
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    write_name(b, what, name);
    node.op = op;
    node.domain = is_own(op) ? "samebit" : NULL;
    node.name = name;
    node.input_count = inputs;
    node.inputs = from;
    node.attribute_count = attributes;
    node.attributes = list;
    node.output_count = outputs;
    return sb_builder_add_node(b->builder, &node, to, error);
}

sb_status sb_llm_constant(building *b, const char *what, sb_tensor *tensor, value *to, sb_error *error) {
    char name[NAME_BYTES];
    write_name(b, what, name);
    sb_status status = sb_builder_constant(b->builder, name, tensor, to, error);
    sb_tensor_release(tensor);
    return status;
}

sb_status sb_llm_integers(building *b, const char *what, int64_t count, const int64_t *numbers, value *to,
                          sb_error *error) {
    sb_tensor *tensor;
    SB_TRY(sb_tensor_from_data(SB_S64, 1, &count, numbers, &tensor, error));
    return sb_llm_constant(b, what, tensor, to, error);
}

/* ---- products ---- */

/* x times the weight's transpose, by MatMul or its like. */
static sb_status multiply(building *b, const char *op, sb_llm_role role, const char *what, value x, value *y,
                          sb_error *error) {
    static const int swap[] = {1, 0};
    char name[PART_BYTES];
    const sb_llm_plan *plan = b->plan;
    sb_tensor *weight, *turned;
    value w;
    SB_TRY(sb_llm_matrix(plan->checkpoint, plan->config, role, b->layer, plan->dtype, &weight, error));
    sb_status status = sb_tensor_transpose(weight, swap, &turned, error);
    sb_tensor_release(weight);
    SB_TRY(status);
    snprintf(name, sizeof name, "%s.weight", what);
    SB_TRY(sb_llm_constant(b, name, turned, &w, error));
    return sb_llm_node(b, op, what, 2, (value[]){x, w}, 0, NULL, y, error);
}

sb_status sb_llm_project(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error) {
    char name[PART_BYTES];
    const sb_llm_plan *plan = b->plan;
    sb_tensor *bias;
    value sum, added;
    SB_TRY(multiply(b, "MatMul", role, what, x, &sum, error));
    SB_TRY(sb_llm_matrix_bias(plan->checkpoint, plan->config, role, b->layer, plan->dtype, &bias, error));
    *y = sum;
    if (bias == NULL)
        return SB_OK;
    snprintf(name, sizeof name, "%s.bias", what);
    SB_TRY(sb_llm_constant(b, name, bias, &added, error));
    snprintf(name, sizeof name, "%s.add", what);
    return sb_llm_node(b, "Add", name, 2, (value[]){sum, added}, 0, NULL, y, error);
}

sb_status sb_llm_project_f32(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error) {
    return multiply(b, "MatMulF32", role, what, x, y, error);
}

/* ---- norms ---- */

static uint16_t narrow(sb_dtype dtype, float number) {
    return dtype == SB_F16 ? sb_f16_from_f32(number) : sb_bf16_from_f32(number);
}

/* An f32 tensor in `dtype`, if that loses nothing; else itself. */
static sb_status narrow_exactly(sb_dtype dtype, sb_tensor **tensor, sb_error *error) {
    const float *from = sb_tensor_data(*tensor);
    int64_t count = sb_tensor_elements(*tensor);
    sb_tensor *small;
    if (dtype == SB_F32)
        return SB_OK;
    SB_TRY(sb_tensor_create(dtype, 1, &count, &small, error));
    uint16_t *to = sb_tensor_mutable_data(small);
    bool exact = true;
    for (int64_t i = 0; i < count; i++) {
        to[i] = narrow(dtype, from[i]);
        exact = exact && (dtype == SB_F16 ? sb_f16_to_f32(to[i]) : sb_bf16_to_f32(to[i])) == from[i];
    }
    sb_tensor_release(exact ? *tensor : small);
    *tensor = exact ? small : *tensor;
    return SB_OK;
}

/* The scale is f32, whatever the others are, so that 1 + weight keeps its bits: then the norm's result is f32 and rounds
 * once, behind. Where the scale is a number of the others' type, the norm does all of that alone. */
sb_status sb_llm_normalize(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error) {
    char name[PART_BYTES];
    const sb_llm_plan *plan = b->plan;
    bool layer_norm = plan->config->family->layer_norm;
    sb_tensor *scale, *bias;
    value inputs[3] = {x}, normed;
    SB_TRY(sb_llm_norm(plan->checkpoint, plan->config, role, b->layer, plan->dtype, &scale, &bias, error));
    sb_status status = narrow_exactly(plan->dtype, &scale, error);
    if (status != SB_OK) {
        sb_tensor_release(scale);
        sb_tensor_release(bias);
        return status;
    }
    bool wide = sb_tensor_dtype(scale) != plan->dtype && !layer_norm;
    snprintf(name, sizeof name, "%s.weight", what);
    status = sb_llm_constant(b, name, scale, &inputs[1], error);
    if (bias != NULL && status == SB_OK) {
        snprintf(name, sizeof name, "%s.bias", what);
        status = sb_llm_constant(b, name, bias, &inputs[2], error);
    } else {
        sb_tensor_release(bias);
    }
    SB_TRY(status);
    const sb_builder_attribute attributes[] = {sb_attribute_int("axis", -1),
                                               sb_attribute_float("epsilon", (float)plan->config->epsilon)};
    SB_TRY(sb_llm_node(b, layer_norm ? "LayerNormalization" : "RMSNormalization", what, bias != NULL ? 3 : 2, inputs, 2,
                       attributes, &normed, error));
    *y = normed;
    if (!wide)
        return SB_OK;
    const sb_builder_attribute to = sb_attribute_int("to", plan->dtype == SB_F16 ? 10 : 16);
    snprintf(name, sizeof name, "%s.round", what);
    return sb_llm_node(b, "Cast", name, 1, &normed, 1, &to, y, error);
}
