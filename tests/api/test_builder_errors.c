/* The public builder: every mistake is refused with its reason, and leaves the builder as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/builder.h"
#include "api/building.h"
#include "base/allocation.h"

/* What a refused call must not change: sizes of the open graph and of the tables. */
typedef struct sizes {
    sb_builder_mark mark;
    size_t nodes, values, nested, variables, entries, names, node_names;
} sizes;

static sizes sizes_of(const sb_builder *builder) {
    const sb_graph_builder *open = builder->open;
    return (sizes){
        sb_graph_builder_mark(open),     open->graph->node_count, builder->value_count, builder->nested_count,
        builder->graphs.variables.count, builder->entry_count,    open->values.count,   open->nodes.count};
}

#define REFUSED(status, text, call)                                                                                    \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""}, *error = &error_;                                                               \
        sizes before_ = sizes_of(t->builder);                                                                          \
        sb_status found_ = (call);                                                                                     \
        sizes after_ = sizes_of(t->builder);                                                                           \
        if (found_ != (status) || strstr(error_.message, (text)) == NULL)                                              \
            fail_msg("line %d: '%s' is not in '%s' (%s)", __LINE__, (text), error_.message, sb_status_name(found_));   \
        assert_memory_equal(&before_, &after_, sizeof before_);                                                        \
    } while (0)

/* A builder with an input x: f32[batch,4], a constant k: f32[4] and a variable v: f32[4]. */
typedef struct fixture {
    sb_builder *builder, *other;
    sb_builder_value x, k, foreign;
    sb_builder_variable v;
} fixture;

static fixture begin(void) {
    fixture t;
    const float four[4] = {1, 2, 3, 4};
    sb_value_description variable = described("v", SB_F32, 1, (int64_t[]){4});
    MUST(sb_builder_create(&t.builder, error));
    MUST(sb_builder_create(&t.other, error));
    MUST(add_input(t.builder, "x", 2, (int64_t[]){-1, 4}, &t.x, error));
    MUST(add_constant(t.builder, "k", SB_F32, 1, (int64_t[]){4}, four, &t.k, error));
    MUST(sb_builder_add_variable(t.builder, &variable, NULL, NULL, &t.v, error));
    MUST(add_input(t.other, "x", 2, (int64_t[]){-1, 4}, &t.foreign, error));
    return t;
}

static void end(fixture *t) {
    sb_builder_destroy(t->builder);
    sb_builder_destroy(t->other);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_handles(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "none", sb_builder_output(t->builder, 0, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "of another builder", sb_builder_output(t->builder, t->foreign, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is not the handle of a value", sb_builder_output(t->builder, t->v, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is not the handle of a value", sb_builder_output(t->builder, t->k + 1, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is not the handle of a variable", sb_builder_read(t->builder, t->x, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT,
            "node Add_0: input 1: ", add_binary(t->builder, "Add", t->x, t->foreign, &y, error));
    end(t);
}

static void test_operators(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    REFUSED(SB_ERROR_UNSUPPORTED, "operator Foo of domain '' is not known",
            sb_builder_op(t->builder, "Foo", 1, &t->x, 0, NULL, &y, error));
    node.op = "Relu";
    node.domain = "com.example";
    node.input_count = 1;
    node.inputs = &t->x;
    REFUSED(SB_ERROR_UNSUPPORTED, "not known in domain 'com.example', but in these: ''",
            sb_builder_add_node(t->builder, &node, &y, error));
    node.domain = "samebit";
    node.op = "Fused"; /* a pass makes these */
    REFUSED(SB_ERROR_UNSUPPORTED, "operator Fused of domain 'samebit' is not known",
            sb_builder_add_node(t->builder, &node, &y, error));
    node.domain = NULL;
    node.op = "Relu";
    node.version = 29;
    REFUSED(SB_ERROR_UNSUPPORTED, "operator set 29 is outside", sb_builder_add_node(t->builder, &node, &y, error));
    node.version = -1;
    REFUSED(SB_ERROR_UNSUPPORTED, "operator set -1 is outside", sb_builder_add_node(t->builder, &node, &y, error));
    node.op = NULL;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "has no operator", sb_builder_add_node(t->builder, &node, &y, error));
    node.op = "Relu";
    node.struct_bytes = 1;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "SB_BUILDER_NODE_DEFAULT", sb_builder_add_node(t->builder, &node, &y, error));
    end(t);
}

static void test_inputs_of_nodes(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y, outputs[3], three[3] = {t->x, t->k, t->k};
    const int64_t index = 1;
    REFUSED(SB_ERROR_INVALID_MODEL, "Add takes 2 to 2 inputs, but has 3",
            sb_builder_op(t->builder, "Add", 3, three, 0, NULL, &y, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "input 0 of Add is missing", add_binary(t->builder, "Add", 0, t->k, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "with -1 inputs",
            sb_builder_op(t->builder, "Add", -1, three, 0, NULL, &y, error));
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Relu";
    node.name = "rectify";
    node.input_count = 1;
    node.inputs = &t->x;
    node.output_count = 3;
    REFUSED(SB_ERROR_INVALID_MODEL, "node rectify: Relu gives", sb_builder_add_node(t->builder, &node, outputs, error));
    /* Inference says what does not fit, when the node is added. */
    sb_builder_value i, wide;
    MUST(add_constant(t->builder, "i", SB_S64, 1, (int64_t[]){1}, &index, &i, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "node Add_0 (Add): inputs have dtypes f32 and s64",
            add_binary(t->builder, "Add", t->x, i, &y, error));
    MUST(add_input(t->builder, "wide", 2, (int64_t[]){5, 7}, &wide, error));
    REFUSED(SB_ERROR_SHAPE, "MatMul_0", add_binary(t->builder, "MatMul", t->x, wide, &y, error));
    end(t);
}

static void test_names(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    const float one = 1;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "another value of graph 'main' is called 'x'",
            add_input(t->builder, "x", 0, NULL, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is called 'k'",
            add_constant(t->builder, "k", SB_F32, 0, NULL, &one, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "has no name", add_constant(t->builder, "", SB_F32, 0, NULL, &one, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "has no name", add_input(t->builder, NULL, 0, NULL, &y, error));
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Relu";
    node.name = "r";
    node.input_count = 1;
    node.inputs = &t->x;
    node.output_names = (const char *const[]){"x"};
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "node r: output 0: another value",
            sb_builder_add_node(t->builder, &node, &y, error));
    node.output_names = NULL;
    MUST(sb_builder_add_node(t->builder, &node, &y, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "another node of graph 'main' is called 'r'",
            sb_builder_add_node(t->builder, &node, &y, error));
    sb_value_description variable = described("v", SB_F32, 1, (int64_t[]){4});
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "another variable has that name",
            sb_builder_add_variable(t->builder, &variable, NULL, NULL, &t->v, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "an entry graph has no name", sb_builder_entry(t->builder, "", error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "has no tensor", sb_builder_constant(t->builder, "c", NULL, &y, error));
    end(t);
}

static void test_descriptions(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    const struct {
        sb_value_description description;
        const char *text;
    } cases[] = {
        {{.name = "a", .dtype = SB_F32}, "its kind is neither"},
        {{.name = "a", .kind = SB_KIND_TENSOR}, "it has no dtype"},
        {{.name = "a", .kind = SB_KIND_TENSOR, .dtype = SB_DTYPE_COUNT}, "it has no dtype"},
        {{.name = "a", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = SB_MAX_RANK + 1}, "rank 13"},
        {{.name = "a", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = -2}, "rank -2"},
        {{.name = "a", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1}, "no extents"},
        {{.name = "a", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = (const int64_t[]){-2}},
         "extent -2 of axis 0"},
        {{.name = "a",
          .kind = SB_KIND_TENSOR,
          .dtype = SB_F32,
          .rank = 1,
          .dims = (const int64_t[]){-1},
          .dim_texts = (const char *const[]){"2*n"}},
         "'2*n' of axis 0 is not the name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED(SB_ERROR_INVALID_ARGUMENT, cases[i].text,
                sb_builder_input(t->builder, &cases[i].description, &y, error));
    /* Nothing known of an extent, of a rank; a sequence, an optional. */
    MUST(sb_builder_input(
        t->builder,
        &(sb_value_description){
            .name = "open", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2, .dims = (int64_t[]){-1, 3}},
        &y, error));
    MUST(sb_builder_input(
        t->builder, &(sb_value_description){.name = "list", .kind = SB_KIND_SEQUENCE, .dtype = SB_S64, .rank = -1}, &y,
        error));
    MUST(sb_builder_input(
        t->builder,
        &(sb_value_description){.name = "may", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .optional = true, .rank = 0},
        &y, error));
    end(t);
}

static void test_attributes(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    sb_builder_attribute twice[] = {sb_attribute_int("axis", 1), sb_attribute_int("axis", 1)};
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "attribute axis: it is given twice",
            sb_builder_op(t->builder, "Softmax", 1, &t->x, 2, twice, &y, error));
    const struct {
        sb_builder_attribute attribute;
        sb_status status;
        const char *text;
    } cases[] = {
        {sb_attribute_int("", 1), SB_ERROR_INVALID_ARGUMENT, "attribute 0 has no name"},
        {sb_attribute_ints("axis", -1, NULL), SB_ERROR_INVALID_ARGUMENT, "its count is -1"},
        {sb_attribute_ints("axis", 1, NULL), SB_ERROR_INVALID_ARGUMENT, "its list is missing"},
        {sb_attribute_text("axis", NULL), SB_ERROR_INVALID_ARGUMENT, "text 0 is missing"},
        {sb_attribute_tensor("axis", NULL), SB_ERROR_INVALID_ARGUMENT, "its tensor is missing"},
        {sb_attribute_graph("axis", 0), SB_ERROR_INVALID_ARGUMENT, "the handle of a graph is 0"},
        {sb_attribute_graph("axis", t->x), SB_ERROR_INVALID_ARGUMENT, "is not the handle of a graph"},
        {{.name = "axis", .kind = (sb_builder_attribute_kind)9, .count = 1},
         SB_ERROR_INVALID_ARGUMENT,
         "9 is not an sb_builder_attribute_kind"},
        {sb_attribute_float("axis", 1), SB_ERROR_INVALID_MODEL, "attribute axis holds 1 floats"},
        {sb_attribute_int("axis", 5), SB_ERROR_SHAPE, "Softmax_0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED(cases[i].status, cases[i].text,
                sb_builder_op(t->builder, "Softmax", 1, &t->x, 1, &cases[i].attribute, &y, error));
    end(t);
}

static void test_nesting(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    const bool yes = true;
    sb_builder_value condition, inner, y;
    sb_builder_graph graph;
    sb_model *model;
    MUST(add_constant(t->builder, "yes", SB_BOOL, 0, NULL, &yes, &condition, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "no nested graph is open", sb_builder_end_graph(t->builder, &graph, error));
    MUST(sb_builder_begin_graph(t->builder, "branch", error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "while nested graph 'branch' is open",
            sb_builder_entry(t->builder, "other", error));
    REFUSED(SB_ERROR_INVALID_MODEL, "nested graph 'branch' is still open",
            sb_builder_build(t->builder, NULL, &model, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "an input of a nested graph has a name alone",
            add_input(t->builder, "y", 0, NULL, &y, error));
    /* A failure takes back what it captured on its way. */
    REFUSED(SB_ERROR_INVALID_MODEL, "Add takes 2",
            sb_builder_op(t->builder, "Add", 3, (sb_builder_value[]){t->x, t->x, t->k}, 0, NULL, &y, error));
    MUST(add_binary(t->builder, "Add", t->x, t->k, &inner, error));
    MUST(sb_builder_output(t->builder, inner, error));
    MUST(sb_builder_end_graph(t->builder, &graph, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is of graph 'branch', which is not around the open graph 'main'",
            sb_builder_output(t->builder, inner, error));
    sb_builder_attribute twice[] = {sb_attribute_graph("then_branch", graph), sb_attribute_graph("else_branch", graph)};
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "another node or attribute has the graph already",
            sb_builder_op(t->builder, "If", 1, &condition, 2, twice, &y, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "else_branch is missing",
            sb_builder_op(t->builder, "If", 1, &condition, 1, twice, &y, error));
    sb_builder_graph none, deep;
    MUST(sb_builder_begin_graph(t->builder, "nothing", error));
    MUST(sb_builder_begin_graph(t->builder, "deep", error));
    MUST(sb_builder_end_graph(t->builder, &deep, error));
    MUST(sb_builder_end_graph(t->builder, &none, error));
    sb_builder_attribute uneven[] = {sb_attribute_graph("then_branch", graph), sb_attribute_graph("else_branch", none)};
    REFUSED(SB_ERROR_INVALID_MODEL, "its branches 1 and 0",
            sb_builder_op(t->builder, "If", 1, &condition, 2, uneven, &y, error));
    sb_builder_attribute too_deep[] = {sb_attribute_graph("then_branch", graph),
                                       sb_attribute_graph("else_branch", deep)};
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "graph 'deep' was not begun in the open graph 'main'",
            sb_builder_op(t->builder, "If", 1, &condition, 2, too_deep, &y, error));
    /* After all of that the graph still does what it should. */
    sb_builder_graph other;
    MUST(sb_builder_begin_graph(t->builder, "other", error));
    MUST(sb_builder_output(t->builder, t->x, error));
    MUST(sb_builder_end_graph(t->builder, &other, error));
    sb_builder_attribute good[] = {sb_attribute_graph("then_branch", graph), sb_attribute_graph("else_branch", other)};
    MUST(sb_builder_op(t->builder, "If", 1, &condition, 2, good, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "another node or attribute has the graph already",
            sb_builder_op(t->builder, "If", 1, &condition, 2, good, &y, error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is of a graph inside of a node", sb_builder_output(t->builder, inner, error));
    MUST(sb_builder_output(t->builder, y, error));
    MUST(sb_builder_build(t->builder, NULL, &model, error));
    sb_model_release(model);
    end(t);
}

static void test_depth(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_value y;
    for (int i = 0; i < SB_BUILDER_NESTING; i++)
        MUST(sb_builder_begin_graph(t->builder, NULL, error));
    REFUSED(SB_ERROR_UNSUPPORTED, "more than 100 deep", sb_builder_begin_graph(t->builder, NULL, error));
    MUST(add_binary(t->builder, "Add", t->x, t->k, &y, error)); /* captured through all of them */
    end(t);
}

static void test_variables(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_builder_variable w;
    sb_builder_value read, sum, wide;
    sb_tensor *five;
    int64_t rows[] = {-1, 4}, four[] = {4};
    sb_value_description description = described("w", SB_F32, 2, rows);
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    MUST(sb_tensor_create(SB_F32, 1, (int64_t[]){5}, &five, error));
    description.dim_texts = NULL;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "axis 0 of a variable needs an extent",
            sb_builder_add_variable(t->builder, &description, NULL, NULL, &w, error));
    description = described("w", SB_F32, 1, four);
    REFUSED(SB_ERROR_SHAPE, "variable 'w' is f32[4], and it begins with f32[5]",
            sb_builder_add_variable(t->builder, &description, five, NULL, &w, error));
    options.slots = true;
    REFUSED(SB_ERROR_SHAPE, "each of its slots begins with f32[5]",
            sb_builder_add_variable(t->builder, &description, five, &options, &w, error));
    options.struct_bytes = 1;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "SB_VARIABLE_OPTIONS_DEFAULT",
            sb_builder_add_variable(t->builder, &description, NULL, &options, &w, error));
    options.struct_bytes = sizeof options;
    description = described("w", SB_F32, 0, NULL);
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "slots need an axis",
            sb_builder_add_variable(t->builder, &description, NULL, &options, &w, error));
    description.rank = -1;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "a variable has a rank",
            sb_builder_add_variable(t->builder, &description, NULL, NULL, &w, error));
    description = described("w", SB_STRING, 0, NULL);
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "a tensor of numbers",
            sb_builder_add_variable(t->builder, &description, NULL, NULL, &w, error));
    sb_tensor_release(five);

    MUST(sb_builder_read(t->builder, t->v, &read, error));
    MUST(add_binary(t->builder, "Add", read, t->k, &sum, error));
    MUST(add_binary(t->builder, "Add", t->x, t->k, &wide, error));
    REFUSED(SB_ERROR_SHAPE, "variable 'v' is f32[4], and value 'Add_1', its update, is f32[batch,4]",
            sb_builder_update(t->builder, t->v, wide, error));
    sb_builder_value equal;
    MUST(add_binary(t->builder, "Equal", read, t->k, &equal, error));
    REFUSED(SB_ERROR_SHAPE, "is bool[4]", sb_builder_update(t->builder, t->v, equal, error));
    MUST(sb_builder_update(t->builder, t->v, sum, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "graph 'main' updates variable 'v' twice",
            sb_builder_update(t->builder, t->v, sum, error));
    end(t);
}

static void test_build(void **state) {
    (void)state;
    fixture fixture = begin(), *t = &fixture;
    sb_model *model;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    sb_builder_value y;
    REFUSED(SB_ERROR_INVALID_MODEL, "entry graph 'main' has no outputs",
            sb_builder_build(t->builder, NULL, &model, error));
    MUST(sb_builder_output(t->builder, t->x, error));
    options.struct_bytes = 1;
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "SB_MODEL_OPTIONS_DEFAULT",
            sb_builder_build(t->builder, &options, &model, error));
    MUST(sb_builder_entry(t->builder, "step", error));
    REFUSED(SB_ERROR_INVALID_ARGUMENT, "is of graph 'main', which is not around the open graph 'step'",
            sb_builder_output(t->builder, t->x, error));
    REFUSED(SB_ERROR_INVALID_MODEL, "entry graph 'step' has no outputs",
            sb_builder_build(t->builder, NULL, &model, error));
    MUST(add_input(t->builder, "x", 1, (int64_t[]){4}, &y, error));
    MUST(sb_builder_output(t->builder, y, error));
    MUST(sb_builder_build(t->builder, NULL, &model, error));
    sb_error error;
    assert_int_equal(sb_builder_output(t->builder, y, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "the builder has built its model"));
    assert_int_equal(sb_builder_build(t->builder, NULL, &model, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_model_release(model);
    end(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles), cmocka_unit_test(test_operators),    cmocka_unit_test(test_inputs_of_nodes),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_descriptions), cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_nesting), cmocka_unit_test(test_depth),        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
