/* What the registry `axes` says, against what definitions do: on the cases of the standard and on those of
 * gaps.txt and of tests/cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above first. */
#include <cmocka.h>

#include <glob.h>

#include <samebit/onnx.h>

#include "onnx/import.h"
#include "rules/axis_truth.h"
#include "rules/made_cases.h"
#include "support/must.h"

static axis_tally tallies[SB_REGISTRY_OPS];
static size_t tally_count;
static int failures;

static axis_tally *tally_of(const sb_op *op) {
    for (size_t i = 0; i < tally_count; i++) {
        if (tallies[i].op == op)
            return &tallies[i];
    }
    tallies[tally_count] = (axis_tally){.op = op};
    return &tallies[tally_count++];
}

/* ---- the standard's cases ---- */

static void visit_case(void *context, axis_case *c) {
    sb_error error = {SB_OK, ""};
    const sb_axes_entry *entry = sb_axes_find(c->node->op);
    assert_non_null(entry);
    if (check_case(entry, c, tally_of(c->node->op), &error) != SB_OK) {
        print_error("%s: %s\n", (const char *)context, error.message);
        failures++;
    }
}

/* The inputs of the first data set. False when a file is missing or of another kind. */
static bool load_inputs(const char *folder, const sb_graph *graph, sb_value *values) {
    for (size_t i = 0; i < graph->input_count; i++) {
        const sb_fact *fact = &graph->values[graph->inputs[i]].fact;
        const sb_value_description description = {.kind = fact->kind, .optional = fact->optional, .dtype = fact->dtype};
        char path[512];
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, i);
        if (sb_onnx_value_load(path, &description, &values[graph->inputs[i]], NULL) != SB_OK)
            return false;
    }
    return true;
}

static void check_model(const char *path) {
    char folder[400];
    sb_scope *scope;
    sb_graph *graph = NULL;
    snprintf(folder, sizeof folder, "%.*s", (int)(strlen(path) - strlen("/model.onnx")), path);
    MUST(sb_scope_create(&scope, error));
    if (sb_onnx_load_file(path, scope, &graph, NULL, NULL, NULL) == SB_OK) {
        sb_value *values = sb_allocate_array(graph->value_count + 1, sizeof *values);
        if (load_inputs(folder, graph, values))
            (void)run_nodes(graph, values, visit_case, folder, NULL);
        release_values(graph, values);
    }
    sb_graph_destroy(graph);
    sb_scope_destroy(scope);
}

static void check_standard(void **state) {
    glob_t found;
    assert_int_equal(glob(ONNX_TEST_DATA "/node/*/model.onnx", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_model(found.gl_pathv[i]);
    globfree(&found);
    assert_int_equal(failures, 0);
}

/* ---- cases written as text ---- */

static void visit_made(void *path, const made_case *made) {
    if (made->refusal == NULL)
        run_made(made, visit_case, path);
}

static void check_made(void **state) {
    glob_t found;
    failures = 0;
    read_cases(GAPS, visit_made, (void *)(uintptr_t)GAPS);
    assert_int_equal(glob(CASES_FOLDER "/*.txt", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_cases(found.gl_pathv[i], visit_made, found.gl_pathv[i]);
    globfree(&found);
    assert_int_equal(failures, 0);
}

/* ---- fused nodes ---- */

/* Adds op(left, right) to a body; `right` may be SB_NO_VALUE. */
static sb_value_id body_node(sb_graph *body, const char *op, const char *name, sb_value_id left, sb_value_id right) {
    sb_value_id output, inputs[] = {left, right};
    sb_attributes none = {0};
    MUST(sb_graph_add_value(body, name, &output, error));
    MUST(sb_graph_add_node(body, sb_op_find("", op), 17, name, right == SB_NO_VALUE ? 1 : 2, inputs, 0, 1, &output,
                           &none, NULL, error));
    return output;
}

/* last(A·B + bias) */
static void check_fused_product(const char *last_op) {
    static const char *const texts[] = {"f32[3,4]", "f32[4,5]", "f32[5]"};
    random_source random = {3};
    sb_graph *body, *graph;
    sb_value_id inner[3], outer[3], output;
    sb_attributes attributes = {0};
    MUST(sb_graph_create("body", &body, error));
    MUST(sb_graph_create("graph", &graph, error));
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "i%d", i);
        MUST(sb_graph_add_value(body, name, &inner[i], error));
        MUST(sb_graph_add_input(body, inner[i], error));
        MUST(sb_graph_add_value(graph, name, &outer[i], error));
    }
    sb_value_id last = body_node(body, "MatMul", "product", inner[0], inner[1]);
    last = body_node(body, "Add", "sum", last, inner[2]);
    last = body_node(body, last_op, "last", last, SB_NO_VALUE);
    MUST(sb_graph_add_output(body, last, error));
    MUST(sb_graph_add_value(graph, "output", &output, error));
    MUST(sb_attributes_add_graph(&attributes, "body", body, error));
    MUST(sb_graph_add_node(graph, sb_op_find("samebit", "Fused"), 17, "fused", 3, outer, 0, 1, &output, &attributes,
                           NULL, error));
    sb_value *values = sb_allocate_array(graph->value_count, sizeof *values);
    for (int i = 0; i < 3; i++)
        values[outer[i]] = sb_value_of_tensor(made_tensor(texts[i], &random));
    MUST(run_nodes(graph, values, visit_case, (void *)(uintptr_t) "Fused", error));
    release_values(graph, values);
    sb_graph_destroy(graph);
}

static void check_fused(void **state) {
    failures = 0;
    check_fused_product("Relu");
    check_fused_product("Softmax");
    check_fused_product("NonZero");
    assert_int_equal(failures, 0);
}

/* ---- coverage ---- */

static void complain(const axis_tally *tally, const char *what) {
    print_error("%s: %s\n", tally->op->name, what);
    failures++;
}

/* What the entry says in words has to have been seen, and been proven of an axis. */
static void check_seen(void *context, const sb_op *op) {
    const sb_axes_entry *entry = sb_axes_find(op);
    const axis_tally *tally = tally_of(op);
    if (entry->independent != NULL && tally->proven == 0)
        complain(tally, "no case proves an independent axis");
    if (entry->bounded != NULL && tally->asked[SB_AXIS_BOUNDED] == 0)
        complain(tally, "no case has a bounded axis");
    if (entry->exact != NULL && op->least_inputs > 0 && tally->asked[SB_AXIS_EXACT] == 0 &&
        (op->flags & (SB_OP_CONTROL | SB_OP_KEEPS)) == 0)
        complain(tally, "no case has an exact axis");
    if (entry->checked != 0 && tally->failed == 0)
        complain(tally, "no case fails for an element of an input that is said to be checked");
    int hard = tally->asked[SB_AXIS_BOUNDED] + tally->asked[SB_AXIS_EXACT];
    if (hard > tally->conservative && tally->needed + tally->refused == 0)
        complain(tally, "no case shows why its bounded and exact axes are not independent");
}

static void check_coverage(void **state) {
    failures = 0;
    sb_op_visit(check_seen, NULL);
    assert_int_equal(failures, 0);
}

/* How much was seen. */
static void print_totals(void **state) {
    static const char *const kinds[] = {"independent", "bounded", "exact"};
    int operators[3] = {0}, axes[3] = {0}, proven = 0, needed = 0, viewed = 0, conservative = 0, symbolic = 0;
    for (size_t i = 0; i < tally_count; i++) {
        for (int k = 0; k < 3; k++) {
            operators[k] += tallies[i].asked[k] > 0;
            axes[k] += tallies[i].asked[k];
        }
        proven += tallies[i].proven;
        needed += tallies[i].needed;
        viewed += tallies[i].viewed;
        conservative += tallies[i].conservative;
        symbolic += tallies[i].symbolic;
    }
    for (int k = 0; k < 3; k++)
        print_message("%-12s %4d operators, %6d axes of cases\n", kinds[k], operators[k], axes[k]);
    print_message("%d independent axes proven; %d growths showed that a bounded or exact axis is not independent; "
                  "%d exact for want of knowledge; %d the same for a symbol; %d nodes run on views amid garbage\n",
                  proven, needed, conservative, symbolic, viewed);
    assert_true(proven > 0 && symbolic > 0);
}

/* ---- wrong rules ---- */

static sb_status says_independent(const sb_axis_question *question, sb_axis_rule *answer) {
    answer->kind = SB_AXIS_INDEPENDENT;
    answer->output_axes[0] = 0;
    return SB_OK;
}

static sb_status says_nothing_of_outputs(const sb_axis_question *question, sb_axis_rule *answer) {
    answer->kind = SB_AXIS_INDEPENDENT;
    return SB_OK;
}

static sb_status says_bounded(const sb_axis_question *question, sb_axis_rule *answer) {
    answer->kind = SB_AXIS_BOUNDED;
    answer->reason = "the test says so";
    return SB_OK;
}

typedef struct wrong_rule {
    sb_axes_entry entry;
    made_case made;
    const char *complaint;
} wrong_rule;

static const wrong_rule wrong_rules[] = {
    {{.op = {"Softmax"}, .rule = says_independent, .independent = "all"},
     {.op = "Softmax", .version = 13, .outputs = 1, .inputs = {"f32[3]"}},
     "changes that output"},
    {{.op = {"ReduceSum"}, .rule = says_nothing_of_outputs, .independent = "all"},
     {.op = "ReduceSum", .version = 13, .outputs = 1, .inputs = {"f32[3]"}},
     "changes that output"},
    {{.op = {"Transpose"}, .rule = says_independent, .independent = "all"},
     {.op = "Transpose", .version = 13, .outputs = 1, .inputs = {"f32[2,3]"}},
     "changes that output"},
    {{.op = {"Conv"}, .rule = says_independent, .independent = "all"},
     {.op = "Conv", .version = 11, .outputs = 1, .attributes = "pads=[1,1]", .inputs = {"f32[2,1,3]", "f32[1,1,3]"}},
     "changes that output"},
    {{.op = {"Add"}, .rule = says_independent, .independent = "all"},
     {.op = "Add", .version = 13, .outputs = 1, .inputs = {"f32[3]", "f32[1]"}},
     "is said to be independent, but"},
    {{.op = {"Relu"}, .rule = says_bounded, .independent = "all"},
     {.op = "Relu", .version = 13, .outputs = 1, .inputs = {"f32[3]"}},
     "has no words for such axes"},
};

static void visit_wrong(void *context, axis_case *c) {
    const wrong_rule *wrong = context;
    axis_tally tally = {0};
    sb_error error = {SB_OK, ""};
    assert_int_equal(check_case(&wrong->entry, c, &tally, &error), SB_ERROR_INTERNAL);
    if (strstr(error.message, wrong->complaint) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, wrong->complaint);
}

static void check_wrong_rules(void **state) {
    for (size_t i = 0; i < sizeof wrong_rules / sizeof wrong_rules[0]; i++)
        run_made(&wrong_rules[i].made, visit_wrong, (void *)(uintptr_t)&wrong_rules[i]);
}

static int64_t blocks_at_start;

static int start_workers(void **state) {
    MUST(sb_workers_create(1, &definition_workers, error));
    blocks_at_start = sb_allocation_count().live_blocks;
    return 0;
}

static int stop_workers(void **state) {
    sb_workers_destroy(definition_workers);
    return 0;
}

static int leaves_nothing(void **state) {
    return sb_allocation_count().live_blocks == blocks_at_start ? 0 : -1;
}

int main(void) {
    /* In this order: the later ones sum up what the earlier ones saw. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(check_wrong_rules, leaves_nothing),
        cmocka_unit_test_teardown(check_standard, leaves_nothing),
        cmocka_unit_test_teardown(check_made, leaves_nothing),
        cmocka_unit_test_teardown(check_fused, leaves_nothing),
        cmocka_unit_test(check_coverage),
        cmocka_unit_test(print_totals),
    };
    return cmocka_run_group_tests(tests, start_workers, stop_workers);
}
