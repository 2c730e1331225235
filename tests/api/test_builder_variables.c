/* Variables: what graphs read and update of them, through If, Loop and Scan, in several entry graphs, and those that
 * stay as they are. A graph is run with its versions as inputs and its updates as outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/builder.h"
#include "api/variable_models.h"
#include "runtime/model.h"
#include "support/failing.h"
#include "support/graph_builder.h"

/* ---- running them ---- */

/* Runs the open graph on x and two versions per variable, and compares its outputs and then its updates. */
static void check(sb_builder *b, int rows, const float *x, int variables, const float *versions, int count,
                  const float *const *expected) {
    sb_graph *graph = b->open->graph;
    sb_tensor *inputs[3], *outputs[4];
    int64_t dims[] = {rows, 2};
    sb_status status = rows > 1 ? sb_tensor_from_data(SB_F32, 2, dims, x, &inputs[0], NULL)
                                : sb_tensor_from_data(SB_F32, 1, dims + 1, x, &inputs[0], NULL);
    assert_int_equal(status, SB_OK);
    assert_int_equal(graph->read_count, variables);
    assert_int_equal(graph->update_count, variables);
    for (int i = 0; i < variables; i++)
        MUST(sb_tensor_from_data(SB_F32, 1, dims + 1, versions + 2 * graph->reads[i].variable, &inputs[i + 1], error));
    assert_int_equal(graph->output_count + graph->update_count, count);
    builder run = {.scope = b->graphs.scope, .graph = graph};
    builder_run(&run, false, SB_ISA_SCALAR, 1, inputs, outputs);
    for (int i = 0; i < count; i++) {
        int update = i - (int)graph->output_count;
        int place = update < 0 ? i : (int)graph->output_count + graph->updates[update].variable;
        assert_memory_equal(sb_tensor_data(outputs[i]), expected[place],
                            (size_t)sb_tensor_elements(outputs[i]) * sizeof(float));
        sb_tensor_release(outputs[i]);
    }
    for (int i = 0; i <= variables; i++)
        sb_tensor_release(inputs[i]);
}

static sb_builder *created(void) {
    sb_builder *b;
    MUST(sb_builder_create(&b, error));
    return b;
}

static void test_if(void **state) {
    (void)state;
    sb_builder *b = created();
    MUST(build_if(b, error));
    const sb_graph *inside = sb_node_graph(b->open->graph->nodes[2], "then_branch");
    assert_int_equal(inside->update_count, 0);
    assert_int_equal(inside->output_count, 2);
    check(b, 1, (float[]){1, 2}, 2, (float[]){10, 20, 30, 40}, 2,
          (const float *const[]){(float[]){11, 22}, (float[]){60, 80}});
    check(b, 1, (float[]){-1, -2}, 2, (float[]){10, 20, 30, 40}, 2,
          (const float *const[]){(float[]){10, 20}, (float[]){31, 42}});
    sb_builder_destroy(b);
}

static void test_loop(void **state) {
    (void)state;
    sb_builder *b = created();
    MUST(build_loop(b, error));
    check(b, 1, (float[]){1, 2}, 2, (float[]){10, 20, 30, 40}, 4,
          (const float *const[]){(float[]){3, 6}, (float[]){1, 2, 2, 4, 3, 6}, (float[]){80, 160}, (float[]){33, 46}});
    sb_builder_destroy(b);
}

static void test_scan(void **state) {
    (void)state;
    sb_builder *b = created();
    MUST(build_scan(b, 0, error));
    check(b, 2, (float[]){2, 3, 4, 5}, 1, (float[]){10, 20}, 3,
          (const float *const[]){(float[]){8, 15}, (float[]){2, 3, 4, 5}, (float[]){16, 28}});
    sb_builder_destroy(b);
}

/* ---- what is refused ---- */

static void test_refused(void **state) {
    (void)state;
    sb_error error;
    sb_builder *b = created();
    /* In opset 8, samples have states of their own. */
    assert_int_equal(build_scan(b, 8, &error), SB_ERROR_INVALID_MODEL);
    assert_non_null(strstr(error.message, "Scan of version 8 cannot hand updates on"));
    assert_int_equal(b->open->graph->node_count, 0);
    assert_int_equal(b->open->graph->update_count, 0);
    sb_builder_destroy(b);

    b = created();
    sb_builder_variable v;
    sb_builder_value list, item, output;
    sb_builder_graph body;
    MUST(add_variable(b, "v", &v, error));
    MUST(sb_builder_input(
        b,
        &(sb_value_description){
            .name = "list", .kind = SB_KIND_SEQUENCE, .dtype = SB_F32, .rank = 1, .dims = (int64_t[]){2}},
        &list, error));
    MUST(sb_builder_begin_graph(b, "body", error));
    MUST(sb_builder_input(b, &(sb_value_description){.name = "item"}, &item, error));
    MUST(advance(b, v, "Add", item, error));
    MUST(sb_builder_output(b, item, error));
    MUST(sb_builder_end_graph(b, &body, error));
    sb_builder_attribute attribute = sb_attribute_graph("body", body);
    assert_int_equal(sb_builder_op(b, "SequenceMap", 1, &list, 1, &attribute, &output, &error), SB_ERROR_INVALID_MODEL);
    assert_non_null(strstr(error.message, "its graph updates variable 'v', and SequenceMap of version 28"));
    sb_builder_destroy(b);

    /* An update in the graph itself and one in a node's graph are two. */
    b = created();
    const bool yes = true;
    sb_builder_value condition;
    sb_builder_attribute branches[2];
    MUST(build_if(b, error));
    MUST(add_constant(b, "yes", SB_BOOL, 0, NULL, &yes, &condition, error));
    v = sb_builder_handle(b, SB_HANDLE_VARIABLE, 0);
    sb_builder_value version;
    MUST(sb_builder_read(b, v, &version, error));
    MUST(branch(b, v, "Add", version, &branches[0], "then_branch", error));
    MUST(branch(b, v, NULL, version, &branches[1], "else_branch", error));
    size_t nodes = b->open->graph->node_count, values = b->open->graph->value_count;
    assert_int_equal(add_if(b, condition, branches, &error), SB_ERROR_INVALID_MODEL);
    assert_non_null(strstr(error.message, "graph 'main' updates variable 'v' twice"));
    assert_int_equal(b->open->graph->node_count, nodes);
    assert_int_equal(b->open->graph->value_count, values);
    sb_builder_destroy(b);
}

/* ---- entry graphs ---- */

/* "push" adds x to v and gives v * scale; "clear" makes v zeros. `scale` is a variable that nobody updates. */
static sb_status build_entries(sb_builder *b, sb_model **model, sb_error *error) {
    const float three[] = {3, 3};
    sb_builder_variable v, scale;
    sb_builder_value x, version, factor, product, zeros;
    sb_tensor *initial;
    sb_value_description description = described("scale", SB_F32, 1, (int64_t[]){2});
    SB_TRY(add_variable(b, "v", &v, error));
    SB_TRY(sb_tensor_from_data(SB_F32, 1, (int64_t[]){2}, three, &initial, error));
    sb_status status = sb_builder_add_variable(b, &description, initial, NULL, &scale, error);
    sb_tensor_release(initial);
    SB_TRY(status);
    SB_TRY(sb_builder_entry(b, "push", error));
    SB_TRY(add_input(b, "x", 1, (int64_t[]){2}, &x, error));
    SB_TRY(sb_builder_read(b, v, &version, error));
    SB_TRY(sb_builder_read(b, scale, &factor, error));
    SB_TRY(add_binary(b, "Mul", version, factor, &product, error));
    SB_TRY(sb_builder_output(b, product, error));
    SB_TRY(advance(b, v, "Add", x, error));
    SB_TRY(sb_builder_entry(b, "clear", error));
    SB_TRY(add_constant(b, "zeros", SB_F32, 1, (int64_t[]){2}, (float[]){0, 0}, &zeros, error));
    SB_TRY(sb_builder_update(b, v, zeros, error));
    return sb_builder_build(b, NULL, model, error);
}

static void test_entries(void **state) {
    (void)state;
    sb_builder *b = created();
    sb_model *model;
    sb_session *session;
    sb_inspection *inspection;
    sb_error error;
    MUST(build_entries(b, &model, error));
    sb_builder_destroy(b);
    assert_int_equal(model->graphs.count, 2); /* "main" was left empty */
    assert_string_equal(model->entries[0].name, "push");
    assert_string_equal(model->entries[1].name, "clear");
    assert_int_equal(model->graphs.variables.count, 2);
    assert_string_equal(model->graphs.variables.items[1].name, "scale");
    assert_non_null(model->graphs.variables.items[1].initial);
    assert_true(sb_graphs_update(&model->graphs, 0));
    assert_false(sb_graphs_update(&model->graphs, 1));
    const sb_graph *push = model->entries[0].graph, *clear = model->entries[1].graph;
    assert_int_equal(push->read_count, 1);
    assert_int_equal(push->reads[0].variable, 0);
    assert_null(push->values[push->reads[0].value].fact.constant);
    assert_int_equal(push->update_count, 1);
    const sb_program *program = model->entries[0].program;
    for (size_t s = 0; s < program->step_count; s++) { /* what the variable is left with outlives all steps */
        for (size_t r = 0; r < program->steps[s].release_count; r++)
            assert_int_not_equal(program->steps[s].releases[r], push->updates[0].value);
    }
    assert_true(sb_graph_read_of(push, 1) == SB_NO_VALUE);
    assert_int_equal(clear->read_count, 0);
    assert_int_equal(clear->update_count, 1);
    assert_int_equal(sb_model_input_count(model), 1); /* reads are not inputs, updates not outputs */
    assert_int_equal(sb_model_output_count(model), 1);
    MUST(sb_model_inspect(model, NULL, &inspection, error));
    assert_string_equal(sb_inspection_value(inspection, push->reads[0].value)->fact, "f32[2]");
    sb_inspection_release(inspection);
    assert_int_equal(sb_session_create(model, NULL, &session, &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "bind a state"));
    sb_model_release(model);
}

/* ---- variables that stay as they are ---- */

/* A shape in a variable is known as soon as it is clear that nothing updates it. */
static void test_settled(void **state) {
    (void)state;
    sb_builder *b = created();
    sb_builder_variable shape, table;
    sb_builder_value x, read, y;
    sb_model *model;
    sb_tensor *initial, *rows;
    sb_session *session;
    sb_value_description description = described("shape", SB_S64, 1, (int64_t[]){2});
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){2}, (int64_t[]){3, 2}, &initial, error));
    MUST(sb_builder_add_variable(b, &description, initial, NULL, &shape, error));
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    options.slots = true;
    description = described("table", SB_F32, 2, (int64_t[]){3, 2});
    MUST(sb_tensor_from_data(SB_F32, 1, (int64_t[]){2}, (float[]){10, 20}, &rows, error));
    MUST(sb_builder_add_variable(b, &description, rows, &options, &table, error));
    sb_tensor_release(initial);
    sb_tensor_release(rows);
    MUST(add_input(b, "x", 1, (int64_t[]){6}, &x, error));
    MUST(sb_builder_read(b, shape, &read, error));
    MUST(add_binary(b, "Reshape", x, read, &y, error));
    MUST(sb_builder_read(b, table, &read, error));
    MUST(add_binary(b, "Add", y, read, &y, error));
    MUST(sb_builder_output(b, y, error));
    MUST(sb_builder_build(b, NULL, &model, error));
    sb_builder_destroy(b);
    assert_int_equal(sb_model_output(model, 0)->dims[0], 3);
    MUST(sb_session_create(model, NULL, &session, error));
    sb_tensor *input, *output;
    MUST(sb_tensor_from_data(SB_F32, 1, (int64_t[]){6}, (float[]){1, 2, 3, 4, 5, 6}, &input, error));
    MUST(sb_session_run_tensors(session, &input, &output, error));
    assert_memory_equal(sb_tensor_data(output), ((float[]){11, 22, 13, 24, 15, 26}), 6 * sizeof(float));
    sb_tensor_release(input);
    sb_tensor_release(output);
    sb_session_destroy(session);
    sb_model_release(model);
}

static void test_settled_extents(void **state) {
    (void)state;
    sb_builder *b = created();
    sb_builder_variable v;
    sb_builder_value read;
    sb_model *model;
    sb_error error;
    sb_value_description description = described("cache", SB_F32, 1, (int64_t[]){-1});
    MUST(sb_builder_add_variable(b, &description, NULL, NULL, &v, error));
    MUST(sb_builder_read(b, v, &read, error));
    MUST(sb_builder_output(b, read, error));
    assert_int_equal(sb_builder_build(b, NULL, &model, &error), SB_ERROR_INVALID_MODEL);
    assert_non_null(strstr(error.message, "variable 'cache' is f32[batch] and no graph updates it"));
    sb_builder_destroy(b);
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    int which = *(const int *)context;
    sb_builder *b;
    sb_model *model = NULL;
    SB_TRY(sb_builder_create(&b, NULL));
    sb_status status = which == 0   ? build_if(b, NULL)
                       : which == 1 ? build_loop(b, NULL)
                       : which == 2 ? build_scan(b, 0, NULL)
                                    : build_entries(b, &model, NULL);
    if (which < 3 && status == SB_OK)
        status = sb_builder_build(b, NULL, &model, NULL);
    sb_builder_destroy(b);
    sb_model_release(model);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++)
        check_failing_allocations(attempt, &which);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_settled),
        cmocka_unit_test(test_settled_extents),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
