/* Models: names, constants, types, captures, versions, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/text_model.h"
#include "support/failing.h"

#define X "input " FLOATS("x", SYMBOL("n") DIM(2))
#define NODE(op, more) "node { op_type: \"" op "\" " more " } "

static void test_names(void **state) {
    /* Nodes without a name, nodes of one name, omitted inputs in the middle and at the end, unused outputs. */
    expect_graph(OPSET(17) "graph { " X NODE("Relu", "input: \"x\" output: \"a\"")
                     NODE("Relu", "name: \"r\" input: \"a\" output: \"b\"")
                         NODE("Relu", "name: \"r\" input: \"b\" output: \"c\"")
                             NODE("Relu", "name: \"Relu_0\" input: \"c\" output: \"d\"")
                                 NODE("Clip", "input: \"d\" input: \"\" input: \"\" output: \"e\"") NODE(
                                     "Dropout", "input: \"e\" output: \"f\" output: \"\"") "output { name: \"f\" } "
                                                                                           "output { name: \"a\" } }",
                 "x->f,a Relu_0=Relu(x)[a] r=Relu(a)[b] r_2=Relu(b)[c] Relu_0_2=Relu(c)[d] "
                 "Clip_4=Clip(d)[e] Dropout_5=Dropout(e)[f]");
}

static void test_initialisers(void **state) {
    static const char w[] = "initializer { name: \"w\" dims: 2 data_type: 1 float_data: [1, 2] } ";
    char text[4096];
    snprintf(text, sizeof text,
             OPSET(17) "graph { " X " input " FLOATS("w", DIM(2)) "%s" NODE(
                 "Add", "input: \"x\" input: \"w\" output: \"y\"") "output { name: \"y\" } output "
                                                                   "{ name: \"w\" } }",
             w);
    expect_graph(text, "x->y,w! Add_0=Add(x,w!)[y]");
    expect_refused(OPSET(17) "graph { initializer { dims: 1 data_type: 1 float_data: 1 } }", SB_ERROR_INVALID_MODEL,
                   "initialiser 0 has no name");
    expect_graph(OPSET(17) "graph { sparse_initializer { dims: 3 values { name: \"s\" dims: 1 "
                           "data_type: 1 float_data: 7 } indices { dims: 1 data_type: 7 int64_data: 1 } "
                           "} output { name: \"s\" } }",
                 "->s!");
    expect_refused(OPSET(17) "graph { sparse_initializer { dims: 100000000000 values { name: \"s\" dims: 1 "
                             "data_type: 1 float_data: 7 } indices { dims: 1 data_type: 7 int64_data: "
                             "1 } } }",
                   SB_ERROR_UNSUPPORTED, "store it as a dense tensor");
}

/* The constant of the only output. */
static sb_tensor *only_constant(const loaded_model *model) {
    sb_tensor *constant = model->graph->values[model->graph->outputs[0]].fact.constant;
    assert_non_null(constant);
    return constant;
}

#define CONSTANT(attribute)                                                                                            \
    OPSET(13)                                                                                                          \
    "graph { " NODE("Constant", "output: \"c\" attribute { " attribute " }") "output { name: \"c\" } }"

static void test_constants(void **state) {
    static const struct {
        const char *text;
        sb_dtype dtype;
        int rank;
        int64_t elements;
    } cases[] = {
        {CONSTANT("name: \"value\" type: TENSOR t { dims: [1, 2] data_type: 6 int32_data: [1, 2] }"), SB_S32, 2, 2},
        {CONSTANT("name: \"value_float\" type: FLOAT f: 1.5"), SB_F32, 0, 1},
        {CONSTANT("name: \"value_floats\" type: FLOATS floats: [1, 2, 3]"), SB_F32, 1, 3},
        {CONSTANT("name: \"value_int\" type: INT i: 4"), SB_S64, 0, 1},
        {CONSTANT("name: \"value_ints\" type: INTS ints: [4, 5]"), SB_S64, 1, 2},
        {CONSTANT("name: \"value_ints\" type: INTS"), SB_S64, 1, 0},
        {CONSTANT("name: \"value_string\" type: STRING s: \"abc\""), SB_STRING, 0, 1},
        {CONSTANT("name: \"value_strings\" type: STRINGS strings: \"a\" strings: \"\""), SB_STRING, 1, 2},
        {CONSTANT("name: \"sparse_value\" type: SPARSE_TENSOR sparse_tensor { dims: [2, 2] values { "
                  "dims: 1 data_type: 1 float_data: 3 } indices { dims: 1 data_type: 7 int64_data: 3 } "
                  "}"),
         SB_F32, 2, 4},
        /* The first version of the format did not say the type of an attribute. */
        {CONSTANT("name: \"value_float\" f: 1.5"), SB_F32, 0, 1},
        {CONSTANT("name: \"value_int\" i: 0"), SB_S64, 0, 1},
        {CONSTANT("name: \"value_string\" s: \"\""), SB_STRING, 0, 1},
        {CONSTANT("name: \"value_floats\" floats: [1, 2]"), SB_F32, 1, 2},
        {CONSTANT("name: \"value\" t { data_type: 6 int32_data: 1 }"), SB_S32, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loaded_model model = load_or_fail(cases[i].text);
        sb_tensor *constant = only_constant(&model);
        assert_int_equal(sb_tensor_dtype(constant), cases[i].dtype);
        assert_int_equal(sb_tensor_rank(constant), cases[i].rank);
        assert_int_equal(sb_tensor_elements(constant), cases[i].elements);
        assert_int_equal(model.graph->node_count, 0);
        unload(&model);
    }
    expect_refused(CONSTANT("name: \"value\" type: TENSOR"), SB_ERROR_INVALID_MODEL,
                   "node Constant_0 (Constant): attribute value: the tensor is missing");
    expect_refused(CONSTANT("name: \"other\" i: 1"), SB_ERROR_INVALID_MODEL, "without a value");
    expect_refused(CONSTANT("name: \"value\" type: TENSOR t { name: \"t\" dims: 3 data_type: 1 }"),
                   SB_ERROR_INVALID_MODEL, "tensor 't': it has 0 numbers");
    expect_refused(CONSTANT("name: \"value_string\" s: \"a\\x00b\""), SB_ERROR_UNSUPPORTED, "holds a NUL");
    expect_refused(CONSTANT("name: \"value_int\" i: 1 } attribute { name: \"value_float\" f: 1"),
                   SB_ERROR_INVALID_MODEL, "both value_int and value_float");
    expect_refused(CONSTANT("name: \"value\" type: TENSORS"), SB_ERROR_UNSUPPORTED, "lists of tensors");
    expect_refused(CONSTANT("name: \"value_int\" i: 1 } attribute { name: \"value_int\" i: 1"), SB_ERROR_INVALID_MODEL,
                   "attribute value_int is given twice");
}

static void expect_fact(const char *type, const char *wanted) {
    char text[1024], found[SB_FACT_TEXT_BYTES];
    snprintf(text, sizeof text, OPSET(17) "graph { input { name: \"v\" type { %s } } }", type);
    loaded_model model = load_or_fail(text);
    assert_string_equal(sb_fact_text(&model.graph->values[0].fact, found, sizeof found), wanted);
    unload(&model);
}

static void test_types(void **state) {
    expect_fact("tensor_type { elem_type: 1 shape { " DIM(3) SYMBOL("n") " dim { } dim { dim_value: -1 } "
                                                                         "dim { dim_param: \"\" } } }",
                "f32[3,n,v.2#1,v.3#2,v.4#3]");
    expect_fact("tensor_type { elem_type: 7 shape { } }", "s64[]");
    expect_fact("tensor_type { elem_type: 16 }", "bf16[…]");
    expect_fact("sequence_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } "
                "} } } }",
                "sequence of f32[2]");
    expect_fact("optional_type { elem_type { tensor_type { elem_type: 9 shape { } } } }", "optional bool[]");
    expect_fact("optional_type { elem_type { sequence_type { elem_type { tensor_type { elem_type: 1 "
                "} } } } }",
                "optional sequence of f32[…]");
    /* One name is one symbol, in whichever input. */
    loaded_model model = load_or_fail(
        OPSET(17) "graph { input " FLOATS("a", "dim { }" SYMBOL("a.0#1")) "input " FLOATS("b", SYMBOL("a.0#1")) "}");
    const sb_fact *a = &model.graph->values[0].fact, *b = &model.graph->values[1].fact;
    assert_ptr_equal(a->dims[1], b->dims[0]);
    assert_ptr_not_equal(a->dims[0], a->dims[1]);
    unload(&model);

#define TYPED(type) OPSET(17) "graph { input { name: \"v\" " type " } }"
    expect_refused(TYPED(""), SB_ERROR_INVALID_MODEL, "value 'v': its type is missing");
    expect_refused(TYPED("type { tensor_type { elem_type: 15 } }"), SB_ERROR_UNSUPPORTED,
                   "value 'v': elements of type complex128");
    expect_refused(TYPED("type { map_type { key_type: 7 } }"), SB_ERROR_UNSUPPORTED, "a map");
    expect_refused(TYPED("type { sparse_tensor_type { elem_type: 1 } }"), SB_ERROR_UNSUPPORTED, "a sparse tensor");
    expect_refused(TYPED("type { sequence_type { elem_type { sequence_type { } } } }"), SB_ERROR_UNSUPPORTED,
                   "a sequence of sequences");
    expect_refused(TYPED("type { optional_type { elem_type { optional_type { } } } }"), SB_ERROR_UNSUPPORTED,
                   "an optional inside another type");
}

static void test_declared_outputs(void **state) {
#define DECLARED(output)                                                                                               \
    OPSET(17)                                                                                                          \
    "graph { " X NODE("Relu", "input: \"x\" output: \"y\"") "output " output "}"
    expect_graph(DECLARED(FLOATS("y", SYMBOL("other") DIM(2))), "x->y Relu_0=Relu(x)[y]");
    expect_graph(DECLARED(FLOATS("y", DIM(7) DIM(2))), "x->y Relu_0=Relu(x)[y]");
    expect_graph(DECLARED(FLOATS("y", "dim { } dim { dim_value: -1 }")), "x->y Relu_0=Relu(x)[y]");
    /* What nodes make counts, here and for whoever asks the model. */
    expect_warning(DECLARED(FLOATS("y", SYMBOL("n") DIM(3))),
                   "value 'y' is declared as f32[n,3], but the nodes make it f32[n,2]");
    expect_warning(DECLARED(FLOATS("y", DIM(2))), "declared as f32[2]");
    expect_warning(DECLARED(VALUE("y", "11", SYMBOL("n") DIM(2))), "declared as f64[n,2]");
    expect_warning(DECLARED("{ name: \"y\" type { sequence_type { elem_type { tensor_type { elem_type: 1 } "
                            "} } } }"),
                   "declared as sequence of f32[…]");
    expect_warning(DECLARED("{ name: \"y\" type { tensor_type { } } }"),
                   "value 'y': what it is declared as is ignored: 0 is no element type");
    loaded_model model = load_or_fail(DECLARED(FLOATS("y", DIM(7))));
    char found[SB_FACT_TEXT_BYTES];
    assert_string_equal(sb_fact_text(&model.graph->values[model.graph->outputs[0]].fact, found, sizeof found),
                        "f32[n,2]");
    unload(&model);
}

static void test_order(void **state) {
    expect_refused(OPSET(17) "graph { " X NODE("Relu", "name: \"r\" input: \"z\" output: \"b\"") "}",
                   SB_ERROR_INVALID_MODEL, "node 'r' uses value 'z', which nothing defines");
    expect_refused(OPSET(17) "graph { " X NODE("Relu", "input: \"x\" output: \"x\"") "}", SB_ERROR_INVALID_MODEL,
                   "value 'x' is defined twice");
    expect_refused(OPSET(17) "graph { " X X "}", SB_ERROR_INVALID_MODEL, "value 'x' is defined twice");
    expect_refused(OPSET(17) "graph { output { name: \"q\" } }", SB_ERROR_INVALID_MODEL,
                   "the graph's output 'q' is a value that nothing defines");
    expect_refused(OPSET(17) "graph { " X NODE("Relu", "name: \"self\" input: \"a\" output: \"a\"") "}",
                   SB_ERROR_INVALID_MODEL, "node 'self' (Relu) needs its own output, by way of node 'self'");
    expect_refused(OPSET(17) "graph { " X NODE("Add", "name: \"first\" input: \"x\" input: \"b\" output: \"a\"")
                       NODE("Relu", "name: \"second\" input: \"a\" output: \"b\"") "}",
                   SB_ERROR_INVALID_MODEL, "node 'first' (Add) needs its own output, by way of node 'second'");
}

static void test_missing_operators(void **state) {
    expect_refused(
        OPSET(17) "graph { " X NODE("Foo", "name: \"f\" input: \"x\" output: \"a\"")
            NODE("Foo", "input: \"a\" output: \"b\"") NODE("Bar", "domain: \"com.example\" input: \"b\" output: \"c\"")
                NODE("If", "input: \"c\" output: \"d\" attribute { name: \"then_branch\" type: GRAPH g { "
                           "node { op_type: \"Inner\" output: \"i\" } } }") "}",
        SB_ERROR_UNSUPPORTED,
        "the model uses 3 operators that Samebit lacks: Foo (2 nodes, first f), com.example:Bar (1 "
        "node, "
        "first c), Inner (1 node, first i)");
    expect_refused(OPSET(17) "graph { " X NODE("Foo", "domain: \"ai.onnx\" input: \"x\" output: \"a\"") "}",
                   SB_ERROR_UNSUPPORTED, "the model uses 1 operator that Samebit lacks: Foo (1 node");
    static char many[60000] = OPSET(17) "graph { ";
    for (int i = 0; i < 300; i++) {
        char one[128];
        snprintf(one, sizeof one, "node { op_type: \"Operator%d\" output: \"o%d\" } ", i, i);
        strcat(many, one);
    }
    strcat(many, "}");
    expect_refused(many, SB_ERROR_UNSUPPORTED, "the model uses 300 operators that Samebit lacks: Operator0 (");
    loaded_model model;
    sb_error error;
    (void)load_text(many, &model, &error);
    assert_non_null(strstr(error.message, " more"));
    assert_true(strlen(error.message) + 1 < sizeof error.message);
}

static void test_versions(void **state) {
#define OF_VERSION(version, op) OPSET(version) "graph { " X NODE(op, "input: \"x\" output: \"y\"") "}"
    expect_refused(OF_VERSION(5, "Relu"), SB_ERROR_UNSUPPORTED, "6 is the oldest supported");
    loaded_model model = load_or_fail(OF_VERSION(1, "Softplus"));
    assert_int_equal(model.graph->nodes[0]->version, 6);
    unload(&model);
    model = load_or_fail("ir_version: 8 opset_import { version: 11 } opset_import { domain: \"ai.onnx\" version: 13 "
                         "} graph { " X NODE("Relu", "domain: \"ai.onnx\" input: \"x\" output: \"y\"") "}");
    assert_int_equal(model.graph->nodes[0]->version, 13);
    assert_int_equal(model.info.format_version, 8);
    assert_int_equal(model.info.opset_count, 2);
    unload(&model);
    expect_refused("ir_version: 8 graph { " X NODE("Relu", "input: \"x\" output: \"y\"") "}", SB_ERROR_INVALID_MODEL,
                   "imports no version of its operator set ''");
    expect_refused("ir_version: 8", SB_ERROR_INVALID_MODEL, "the file holds no graph");
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_info(void **state) {
    loaded_model model = load_or_fail("ir_version: 7 producer_name: \"maker\" producer_version: "
                                      "\"2\" domain: \"d\" model_version: 5 "
                                      "opset_import { version: 17 } metadata_props { key: \"k\" "
                                      "value: \"v\" } graph { name: \"g\" }");
    assert_string_equal(model.info.producer_name, "maker");
    assert_string_equal(model.info.producer_version, "2");
    assert_string_equal(model.info.domain, "d");
    assert_string_equal(model.info.graph_name, "g");
    assert_int_equal(model.info.model_version, 5);
    assert_int_equal(model.info.property_count, 1);
    assert_string_equal(model.info.properties[0].key, "k");
    assert_string_equal(model.info.properties[0].value, "v");
    assert_string_equal(model.graph->name, "g");
    unload(&model);
}

/* ---- graphs in graphs ---- */

#define CONDITION "input " VALUE("c", "9", "")
#define BRANCH(name, inside) "attribute { name: \"" name "\" type: GRAPH g { " inside " } } "

static const char captures[] =
    OPSET(17) "graph { " X CONDITION "initializer { name: \"k\" data_type: 1 float_data: 2 } " NODE(
        "Relu", "input: \"x\" output: \"r\"")
        NODE("If",
             "name: \"if\" input: \"c\" output: \"y\" " BRANCH(
                 "then_branch", NODE("Add", "input: \"r\" input: \"k\" output: \"t\"") "output { name: \"t\" }")
                 BRANCH("else_branch", NODE("Add", "input: \"x\" input: \"r\" output: \"t\"") "output { name: \"t\" "
                                                                                              "}")) "output { name: "
                                                                                                    "\"y\" } }";

static void test_captures(void **state) {
    /* Both branches get both captures, in the same order; a constant is shared instead. */
    expect_graph(captures, "x,c->y Relu_0=Relu(x)[r] if=If(c|x,r)[y; then_branch{x,r->t Add_0=Add(r,k!)[t]}; "
                           "else_branch{x,r->t Add_0=Add(x,r)[t]}]");
    /* An outer value as a branch's output, and names that an inner graph uses itself. */
    expect_graph(OPSET(17) "graph { " X CONDITION NODE("Relu", "input: \"x\" output: \"r\"") NODE(
                     "If", "input: \"c\" output: \"y\" " BRANCH("then_branch", "output { name: \"x\" }") BRANCH(
                               "else_branch",
                               NODE("Relu", "input: \"r\" output: \"x\"") "output { name: \"x\" }")) "output { name: "
                                                                                                     "\"y\" } }",
                 "x,c->y Relu_0=Relu(x)[r] If_1=If(c|x,r)[y; then_branch{x,r->x}; "
                 "else_branch{x_2,r->x Relu_0=Relu(r)[x]}]");
}

static void test_nested_captures(void **state) {
    /* The innermost graph takes x through the graph in between, which does not use it itself. */
    expect_graph(
        OPSET(17) "graph { " X CONDITION NODE(
            "If", "input: \"c\" output: \"y\" " BRANCH(
                      "then_branch",
                      NODE("If", "input: \"c\" output: \"z\" " BRANCH(
                                     "then_branch", NODE("Relu", "input: \"x\" output: \"t\"") "output { name: \"t\" }")
                                     BRANCH("else_branch", "output { name: \"x\" }")) "output { name: \"z\" }")
                      BRANCH("else_branch",
                             NODE("Relu", "input: \"x\" output: \"t\"") "output { name: \"t\" }")) "output { name: "
                                                                                                   "\"y\" } }",
        "x,c->y If_0=If(c|x,c)[y; then_branch{x,c->z If_0=If(c|x)[z; then_branch{x->t "
        "Relu_0=Relu(x)[t]}; else_branch{x->x}]}; else_branch{x,c->t Relu_0=Relu(x)[t]}]");
}

static sb_status load_and_unload(void *context) {
    loaded_model model;
    sb_error error;
    SB_TRY(load_text(context, &model, &error));
    unload(&model);
    return SB_OK;
}

/* What value_info says of values inside the graph: more than is known, less, the same, or something else. */
#define INSIDE(declared)                                                                                               \
    OPSET(17)                                                                                                          \
    "graph { " X NODE("Relu", "name: \"r\" input: \"x\" output: \"h\"")                                                \
        NODE("Relu", "input: \"h\" output: \"y\"") "output " FLOATS("y", SYMBOL("n") DIM(2)) "value_info " declared    \
                                                                                             "}"

static void test_declared_inside(void **state) {
    static const char *const right[] = {
        INSIDE(FLOATS("h", SYMBOL("n") DIM(2))), INSIDE(FLOATS("h", SYMBOL("m") SYMBOL("k"))),
        INSIDE(FLOATS("h", DIM(5) DIM(2))),      INSIDE("{ name: \"h\" } "),
        INSIDE(FLOATS("nobody", DIM(7))),
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        loaded_model model = load_or_fail(right[i]);
        unload(&model);
    }
    expect_warning(INSIDE(FLOATS("h", SYMBOL("n") DIM(3))),
                   "value 'h' is declared as f32[n,3], but the nodes make it f32[n,2]");
    expect_warning(INSIDE(VALUE("h", "11", SYMBOL("n") DIM(2))), "declared as f64[n,2]");
    expect_warning(INSIDE(FLOATS("x", SYMBOL("n"))), "declared as f32[n]");
    expect_warning(INSIDE(VALUE("h", "14", DIM(2))), "what it is declared as is ignored: elements of type complex64");
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)right[0]);
}

static void test_deep_nesting(void **state) {
    static char text[8192], inner[8192 - 512];
    snprintf(inner, sizeof inner, "output { name: \"x\" }");
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text,
                 "node { op_type: \"If\" input: \"c\" output: \"y\" attribute { name: "
                 "\"then_branch\" type: "
                 "GRAPH g { %s } } } output { name: \"y\" }",
                 inner);
        assert_true(strlen(text) < sizeof inner);
        strcpy(inner, text);
    }
    snprintf(text, sizeof text, OPSET(17) "graph { " X CONDITION "%s }", inner);
    expect_refused(text, SB_ERROR_UNSUPPORTED, "messages are nested more than 100 deep");
}

static void test_no_memory(void **state) {
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)captures);
    check_failing_allocations(load_and_unload, CONSTANT("name: \"value_strings\" type: STRINGS strings: \"a\""));
    check_failing_allocations(
        load_and_unload, OPSET(17) "producer_name: \"p\" metadata_props { key: \"k\" value: \"v\" } graph { " X NODE(
                             "Relu", "input: \"x\" output: \"y\"") "output " FLOATS("y", SYMBOL("n") DIM(2)) "}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_initialisers),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_declared_outputs),
        cmocka_unit_test(test_declared_inside),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_missing_operators),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_nested_captures),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
