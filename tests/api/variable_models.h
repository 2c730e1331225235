/* Graphs with variables that are updated inside If, Loop and Scan. Include after cmocka.h. */
#ifndef SB_TESTS_VARIABLE_MODELS_H
#define SB_TESTS_VARIABLE_MODELS_H

#include "api/building.h"
#include "base/error.h"

static inline sb_status add_variable(sb_builder *b, const char *name, sb_builder_variable *variable, sb_error *error) {
    sb_value_description description = described(name, SB_F32, 1, (int64_t[]){2});
    return sb_builder_add_variable(b, &description, NULL, NULL, variable, error);
}

/* Updates the variable by `op` of its version and `operand`, in the open graph. */
static inline sb_status advance(sb_builder *b, sb_builder_variable variable, const char *op, sb_builder_value operand,
                                sb_error *error) {
    sb_builder_value version, next;
    SB_TRY(sb_builder_read(b, variable, &version, error));
    SB_TRY(add_binary(b, op, version, operand, &next, error));
    return sb_builder_update(b, variable, next, error);
}

/* A branch that advances the variable; `op` NULL: one that leaves it. */
static inline sb_status branch(sb_builder *b, sb_builder_variable variable, const char *op, sb_builder_value operand,
                               sb_builder_attribute *attribute, const char *name, sb_error *error) {
    sb_builder_graph graph;
    SB_TRY(sb_builder_begin_graph(b, name, error));
    if (op != NULL)
        SB_TRY(advance(b, variable, op, operand, error));
    SB_TRY(sb_builder_end_graph(b, &graph, error));
    *attribute = sb_attribute_graph(name, graph);
    return SB_OK;
}

/* An If without outputs of its own. */
static inline sb_status add_if(sb_builder *b, sb_builder_value condition, sb_builder_attribute *branches,
                               sb_error *error) {
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "If";
    node.input_count = 1;
    node.inputs = &condition;
    node.attribute_count = 2;
    node.attributes = branches;
    node.output_count = 0;
    return sb_builder_add_node(b, &node, NULL, error);
}

/* x > 0: v + x, else v as it is. And w, whichever it is: 2 x w or w - x. */
static inline sb_status build_if(sb_builder *b, sb_error *error) {
    sb_builder_variable v, w;
    sb_builder_value x, sum, zero, condition, two;
    sb_builder_attribute branches[2];
    const float numbers[] = {0, 2};
    SB_TRY(add_variable(b, "v", &v, error));
    SB_TRY(add_variable(b, "w", &w, error));
    SB_TRY(add_input(b, "x", 1, (int64_t[]){2}, &x, error));
    SB_TRY(add_constant(b, "zero", SB_F32, 0, NULL, &numbers[0], &zero, error));
    SB_TRY(add_constant(b, "two", SB_F32, 0, NULL, &numbers[1], &two, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 1, &x, 1, (sb_builder_attribute[]){sb_attribute_int("keepdims", 0)}, &sum,
                         error));
    SB_TRY(add_binary(b, "Greater", sum, zero, &condition, error));
    sb_builder_graph graphs[2];
    SB_TRY(sb_builder_begin_graph(b, "then", error));
    SB_TRY(advance(b, v, "Add", x, error));
    SB_TRY(advance(b, w, "Mul", two, error));
    SB_TRY(sb_builder_end_graph(b, &graphs[0], error));
    SB_TRY(sb_builder_begin_graph(b, "else", error));
    SB_TRY(advance(b, w, "Sub", x, error));
    SB_TRY(sb_builder_end_graph(b, &graphs[1], error));
    branches[0] = sb_attribute_graph("then_branch", graphs[0]);
    branches[1] = sb_attribute_graph("else_branch", graphs[1]);
    return add_if(b, condition, branches, error);
}

/* A Loop over `trips`, or until its end, that carries a sum of x and stacks it; v doubles in each iteration, w grows by
 * x in an If that is true in every iteration. */
static inline sb_status build_loop(sb_builder *b, sb_error *error) {
    sb_builder_variable v, w;
    sb_builder_value x, trips, yes, zeros, two, i, go_on, carried, sum, outputs[2];
    sb_builder_attribute branches[2];
    sb_builder_graph body;
    const float numbers[] = {0, 0, 2};
    const int64_t three = 3;
    const bool always = true;
    SB_TRY(add_variable(b, "v", &v, error));
    SB_TRY(add_variable(b, "w", &w, error));
    SB_TRY(add_input(b, "x", 1, (int64_t[]){2}, &x, error));
    SB_TRY(add_constant(b, "trips", SB_S64, 0, NULL, &three, &trips, error));
    SB_TRY(add_constant(b, "yes", SB_BOOL, 0, NULL, &always, &yes, error));
    SB_TRY(add_constant(b, "zeros", SB_F32, 1, (int64_t[]){2}, numbers, &zeros, error));
    SB_TRY(add_constant(b, "two", SB_F32, 0, NULL, &numbers[2], &two, error));
    SB_TRY(sb_builder_begin_graph(b, "body", error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "i"}, &i, error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "go_on"}, &go_on, error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "carried"}, &carried, error));
    SB_TRY(add_binary(b, "Add", carried, x, &sum, error));
    SB_TRY(advance(b, v, "Mul", two, error));
    SB_TRY(branch(b, w, "Add", x, &branches[0], "then_branch", error));
    SB_TRY(branch(b, w, NULL, x, &branches[1], "else_branch", error));
    SB_TRY(add_if(b, yes, branches, error));
    SB_TRY(sb_builder_output(b, go_on, error));
    SB_TRY(sb_builder_output(b, sum, error));
    SB_TRY(sb_builder_output(b, sum, error));
    SB_TRY(sb_builder_end_graph(b, &body, error));
    sb_builder_attribute attribute = sb_attribute_graph("body", body);
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Loop";
    node.input_count = 3;
    node.inputs = (sb_builder_value[]){trips, 0, zeros};
    node.attribute_count = 1;
    node.attributes = &attribute;
    node.output_count = 2;
    SB_TRY(sb_builder_add_node(b, &node, outputs, error));
    SB_TRY(sb_builder_output(b, outputs[0], error));
    return sb_builder_output(b, outputs[1], error);
}

/* A Scan over the rows of x with a state of its own; v grows by each row. */
static inline sb_status build_scan(sb_builder *b, int version, sb_error *error) {
    sb_builder_variable v;
    sb_builder_value x, state, row, product, start, outputs[2];
    sb_builder_graph body;
    const float ones[] = {1, 1};
    SB_TRY(add_variable(b, "v", &v, error));
    SB_TRY(add_input(b, "x", 2, (int64_t[]){-1, 2}, &x, error));
    SB_TRY(add_constant(b, "start", SB_F32, 1, (int64_t[]){2}, ones, &start, error));
    SB_TRY(sb_builder_begin_graph(b, "body", error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "state"}, &state, error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "row"}, &row, error));
    SB_TRY(add_binary(b, "Mul", state, row, &product, error));
    SB_TRY(advance(b, v, "Add", row, error));
    SB_TRY(sb_builder_output(b, product, error));
    SB_TRY(sb_builder_output(b, row, error));
    SB_TRY(sb_builder_end_graph(b, &body, error));
    sb_builder_attribute attributes[] = {sb_attribute_graph("body", body), sb_attribute_int("num_scan_inputs", 1)};
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Scan";
    node.version = version;
    node.input_count = 2;
    node.inputs = (sb_builder_value[]){start, x};
    node.attribute_count = 2;
    node.attributes = attributes;
    node.output_count = 2;
    SB_TRY(sb_builder_add_node(b, &node, outputs, error));
    SB_TRY(sb_builder_output(b, outputs[0], error));
    return sb_builder_output(b, outputs[1], error);
}

#endif
