/* The model's own functions, replaced by their nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/text_model.h"
#include "support/failing.h"

#define X "input " FLOATS("x", SYMBOL("n") DIM(2))
#define MODEL OPSET(17) "opset_import { domain: \"my\" version: 1 } "
#define NODE(op, more) "node { op_type: \"" op "\" " more " } "
#define CALL(function, more) NODE(function, "domain: \"my\" " more)
#define FUNCTION(name, more) "functions { domain: \"my\" name: \"" name "\" opset_import { version: 17 } " more " } "

#define TWICE                                                                                                          \
    FUNCTION("Twice", "input: \"a\" output: \"b\" " NODE("Relu", "input: \"a\" output: \"m\"")                         \
                          NODE("Neg", "name: \"n\" input: \"m\" output: \"b\""))

static void test_calls(void **state) {
    /* Inner names are the call's own; the outputs keep the caller's names. */
    expect_graph(MODEL "graph { " X CALL("Twice", "name: \"f\" input: \"x\" output: \"y\"")
                     CALL("Twice", "name: \"f\" input: \"y\" output: \"z\"")
                         CALL("Twice", "input: \"z\" output: \"w\"") "output { name: \"w\" } } " TWICE,
                 "x->w f/Relu_0=Relu(x)[f/m] f/n=Neg(f/m)[y] f_2/Relu_0=Relu(y)[f_2/m] "
                 "f_2/n=Neg(f_2/m)[z] Twice_2/Relu_0=Relu(z)[Twice_2/m] Twice_2/n=Neg(Twice_2/m)[w]");
    /* A name that the file itself uses stays what it is. */
    expect_graph(MODEL "graph { " X CALL("Twice", "name: \"f\" input: \"x\" output: \"y\"")
                     NODE("Relu", "input: \"y\" output: \"f/m\"") "output { name: \"f/m\" } } " TWICE,
                 "x->f/m f/Relu_0=Relu(x)[f/m_2] f/n=Neg(f/m_2)[y] Relu_1=Relu(y)[f/m]");
}

static void test_nested_calls(void **state) {
    expect_graph(
        MODEL "graph { " X CALL(
            "Outer",
            "name: \"o\" input: \"x\" output: \"y\"") "output { name: \"y\" } "
                                                      "} " FUNCTION("Outer",
                                                                    "input: \"x\" output: "
                                                                    "\"x2\" " CALL("Twice", "name: \"t\" input: "
                                                                                            "\"x\" output: \"q\"")
                                                                        NODE("Abs", "input: \"q\" "
                                                                                    "output: \"x2\"")) TWICE,
        "x->y o/t/Relu_0=Relu(x)[o/t/m] o/t/n=Neg(o/t/m)[o/q] o/Abs_1=Abs(o/q)[y]");
}

static void test_passed_through(void **state) {
    /* An input as an output, an output given twice, an omitted argument, an output that nobody wants. */
    expect_graph(MODEL "graph { " X CALL(
                     "Both", "name: \"f\" input: \"x\" output: \"p\" output: \"q\" output: "
                             "\"\"") "output { name: \"p\" } output { name: \"q\" } "
                                     "} " FUNCTION("Both", "input: \"a\" input: \"low\" output: \"a\" output: "
                                                           "\"c\" output: \"d\" " NODE(
                                                               "Clip", "input: \"a\" input: \"low\" output: \"c\"")
                                                               NODE("Neg", "input: \"c\" output: \"d\"")),
                 "x->p,q f/Clip_0=Clip(x)[q] f/Neg_1=Neg(q)[f/d] f/Identity_2=Identity(x)[p]");
    expect_refused(MODEL "graph { " X CALL("Id", "name: \"f\" input: \"\" output: \"y\"") "} " FUNCTION(
                       "Id", "input: \"a\" output: \"a\""),
                   SB_ERROR_INVALID_MODEL, "an input that the call omits");
    expect_refused(MODEL "graph { " X CALL("Twice", "name: \"f\" input: \"x\" input: \"x\" output: \"y\"") "} " TWICE,
                   SB_ERROR_INVALID_MODEL, "node f: function Twice has 1 inputs and 1 outputs, the call 2 and 1");
    expect_refused(MODEL "graph { " X CALL("Twice", "input: \"x\" output: \"x\"") "} " TWICE, SB_ERROR_INVALID_MODEL,
                   "value 'x' is defined twice");
    /* The body sees the arguments only. */
    expect_refused(MODEL "graph { " X CALL("F", "name: \"f\" output: \"y\"") "} " FUNCTION(
                       "F", "output: \"b\" " NODE("Relu", "input: \"x\" output: \"b\"")),
                   SB_ERROR_INVALID_MODEL, "node 'f/Relu_0' uses value 'x', which nothing defines");
}

#define SCALED                                                                                                         \
    FUNCTION("Scaled", "input: \"a\" output: \"b\" attribute: \"factor\" attribute_proto { name: \"bias\" "            \
                       "type: FLOAT f: 7 } " NODE("Constant", "output: \"c\" attribute { name: \"value_float\" "       \
                                                              "ref_attr_name: \"factor\" type: FLOAT }")               \
                           NODE("Constant", "output: \"d\" attribute { name: \"value_float\" "                         \
                                            "ref_attr_name: \"bias\" type: FLOAT }")                                   \
                               NODE("Mul", "input: \"a\" input: \"c\" output: \"m\"")                                  \
                                   NODE("Add", "input: \"m\" input: \"d\" output: \"b\""))

static float constant_of(const sb_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->value_count; i++) {
        if (strcmp(graph->values[i].name, name) == 0 && graph->values[i].fact.constant != NULL)
            return *(const float *)sb_tensor_data(graph->values[i].fact.constant);
    }
    fail_msg("no constant %s", name);
    return 0;
}

static void test_attributes(void **state) {
    loaded_model model = load_or_fail(
        MODEL "graph { " X CALL("Scaled", "name: \"s\" input: \"x\" output: \"y\" attribute { name: \"factor\" type: "
                                          "FLOAT f: 3 }")
            CALL("Outer", "name: \"o\" input: \"y\" output: \"z\" attribute { name: \"given\" "
                          "type: FLOAT f: 5 }") "output { name: \"z\" } } " SCALED
                FUNCTION("Outer", "input: \"a\" output: \"b\" attribute: \"given\" " CALL(
                                      "Scaled", "name: \"i\" input: \"a\" output: \"b\" attribute { name: \"factor\" "
                                                "ref_attr_name: \"given\" type: FLOAT } attribute { name: \"bias\" "
                                                "type: FLOAT f: 11 }")));
    assert_true(constant_of(model.graph, "s/c") == 3);
    assert_true(constant_of(model.graph, "s/d") == 7);
    assert_true(constant_of(model.graph, "o/i/c") == 5);
    assert_true(constant_of(model.graph, "o/i/d") == 11);
    unload(&model);
    expect_refused(MODEL "graph { " X CALL("Scaled", "name: \"s\" input: \"x\" output: \"y\"") "} " SCALED,
                   SB_ERROR_INVALID_MODEL, "node s/Constant_0 (Constant): a Constant without a value");
    expect_refused(
        MODEL "graph { " NODE("Constant", "output: \"c\" attribute { name: \"value_float\" ref_attr_name: \"f\" }") "}",
        SB_ERROR_INVALID_MODEL, "refers to attribute f of a function, but is in none");
}

static void test_shared_tensors(void **state) {
    /* The data of a tensor move out of the message at most once, however often the function is called. */
    static char text[TEXT_PROTO_ROOM] = MODEL "graph { " X CALL("Table", "name: \"f\" output: \"y\"")
        CALL("Table", "name: \"g\" output: \"z\"") "output { name: \"y\" } output { name: \"z\" } } "
                                                   "functions { domain: \"my\" name: \"Table\" output: \"t\" "
                                                   "node { op_type: \"Constant\" output: \"t\" attribute { "
                                                   "name: \"value\" type: TENSOR t { "
                                                   "dims: 2000 data_type: 1 float_data: [";
    for (int i = 0; i < 2000; i++)
        strcat(text, "1.5,");
    strcat(text, "] } } } }");
    loaded_model model = load_or_fail(text);
    const sb_tensor *y = model.graph->values[model.graph->outputs[0]].fact.constant;
    const sb_tensor *z = model.graph->values[model.graph->outputs[1]].fact.constant;
    assert_ptr_equal(y, z);
    assert_true(((const float *)sb_tensor_data(y))[1999] == 1.5f);
    unload(&model);
}

static void test_graphs_in_functions(void **state) {
    expect_graph(MODEL "graph { " X "input " VALUE("c", "9", "") CALL(
                     "Choose",
                     "name: \"f\" input: \"c\" input: \"x\" output: "
                     "\"y\"") "output { name: \"y\" } } " FUNCTION("Choose",
                                                                   "input: \"p\" input: \"v\" output: "
                                                                   "\"r\" " NODE("Neg", "input: \"v\" output: \"w\"")
                                                                       NODE("If", "input: \"p\" output: \"r\" "
                                                                                  "attribute { name: "
                                                                                  "\"then_branch\" type: GRAPH g { "
                                                                                  "node { "
                                                                                  "op_type: \"Twice\" domain: "
                                                                                  "\"my\" name: \"t\" input: \"v\" "
                                                                                  "output: \"b\" } "
                                                                                  "output { name: \"b\" } } } "
                                                                                  "attribute { name: "
                                                                                  "\"else_branch\" type: GRAPH g { "
                                                                                  "output { name: \"w\" } } }")) TWICE,
                 "x,c->y f/Neg_0=Neg(x)[f/w] f/If_1=If(c|x,f/w)[y; then_branch{x,f/w->b "
                 "t/Relu_0=Relu(x)[t/m] "
                 "t/n=Neg(t/m)[b]}; else_branch{x,f/w->f/w}]");
}

static void test_overloads(void **state) {
    expect_graph(
        MODEL "graph { " X CALL("F", "name: \"f\" overload: \"second\" input: \"x\" output: \"y\"") CALL(
            "F", "name: \"g\" input: \"y\" output: \"z\"") "output { name: \"z\" } "
                                                           "} " FUNCTION("F", "input: \"a\" output: "
                                                                              "\"b\" " NODE("Relu", "input: \"a\" "
                                                                                                    "output: \"b\""))
                                                               FUNCTION("F", "overload: \"second\" "
                                                                             "input: \"a\" output: "
                                                                             "\"b\" " NODE("Neg", "input: \"a\" "
                                                                                                  "output: \"b\"")),
        "x->z f/Neg_0=Neg(x)[y] g/Relu_0=Relu(y)[z]");
    expect_refused(MODEL "graph { } " TWICE TWICE, SB_ERROR_INVALID_MODEL, "function 1 (Twice): it is defined twice");
    expect_refused(MODEL "graph { } functions { domain: \"my\" }", SB_ERROR_INVALID_MODEL,
                   "function 0 (): it has no name");
}

static void test_versions(void **state) {
    loaded_model model =
        load_or_fail("ir_version: 8 opset_import { version: 13 } graph { " X CALL("F", "input: \"x\" output: \"y\"")
                         NODE("Relu", "input: \"y\" output: \"z\"") "} functions { domain: \"my\" name: \"F\" "
                                                                    "opset_import { version: 17 } input: "
                                                                    "\"a\" output: \"b\" node { op_type: "
                                                                    "\"Relu\" input: \"a\" output: \"b\" } }");
    assert_int_equal(model.graph->nodes[0]->version, 17);
    assert_int_equal(model.graph->nodes[1]->version, 13);
    unload(&model);
}

static void test_endless_calls(void **state) {
    expect_refused(MODEL "graph { " X CALL("A", "input: \"x\" output: \"y\"") "} " FUNCTION(
                       "A", "input: \"a\" output: \"b\" " CALL("B", "input: \"a\" output: \"b\""))
                       FUNCTION("B", "input: \"a\" output: \"b\" " CALL("A", "input: \"a\" output: \"b\"")),
                   SB_ERROR_INVALID_MODEL, "function A calls itself");
    expect_refused(MODEL "graph { " X CALL("A", "input: \"x\" output: \"y\"") "} " FUNCTION(
                       "A", "input: \"a\" output: \"b\" " NODE("Nope", "input: \"a\" output: \"b\"")),
                   SB_ERROR_UNSUPPORTED, "the model uses 1 operator that Samebit lacks: Nope");
    /* Each function calls the one before twice: 2 to the power of 40 nodes in 40 functions. */
    static char text[TEXT_PROTO_ROOM] = MODEL "graph { " X CALL("F39", "input: \"x\" output: \"y\"") "} ";
    for (int i = 0; i < 40; i++) {
        char one[512];
        snprintf(one, sizeof one,
                 "functions { domain: \"my\" name: \"F%d\" input: \"a\" output: \"c\" opset_import "
                 "{ version: 17 } node { "
                 "op_type: \"%s%.0d\" domain: \"%s\" input: \"a\" output: \"b\" } node { op_type: "
                 "\"%s%.0d\" domain: \"%s\" "
                 "input: \"b\" output: \"c\" } } ",
                 i,
                 i == 0   ? "Relu"
                 : i == 1 ? "F0"
                          : "F",
                 i > 1 ? i - 1 : 0, i == 0 ? "" : "my",
                 i == 0   ? "Relu"
                 : i == 1 ? "F0"
                          : "F",
                 i > 1 ? i - 1 : 0, i == 0 ? "" : "my");
        strcat(text, one);
    }
    expect_refused(text, SB_ERROR_UNSUPPORTED, "call each other so often");
    /* A long chain. */
    snprintf(text, sizeof text, MODEL "graph { " X CALL("F149", "input: \"x\" output: \"y\"") "} ");
    for (int i = 0; i < 150; i++) {
        char one[256];
        snprintf(one, sizeof one,
                 "functions { domain: \"my\" name: \"F%d\" input: \"a\" output: \"b\" node { "
                 "op_type: \"F%d\" "
                 "domain: \"my\" input: \"a\" output: \"b\" } } ",
                 i, i - 1);
        strcat(text, one);
    }
    expect_refused(text, SB_ERROR_UNSUPPORTED, "more than 100 deep");
}

static sb_status load_and_unload(void *context) {
    loaded_model model;
    sb_error error;
    SB_TRY(load_text(context, &model, &error));
    unload(&model);
    return SB_OK;
}

static void test_no_memory(void **state) {
    check_failing_allocations(load_and_unload,
                              MODEL "graph { " X CALL("Scaled",
                                                      "input: \"x\" output: \"y\" attribute { name: \"factor\" type: "
                                                      "FLOAT f: 3 }")
                                  CALL("Twice", "input: \"y\" output: \"z\"") "output { name: \"z\" } } " SCALED TWICE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),          cmocka_unit_test(test_nested_calls),
        cmocka_unit_test(test_passed_through), cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_shared_tensors), cmocka_unit_test(test_graphs_in_functions),
        cmocka_unit_test(test_overloads),      cmocka_unit_test(test_versions),
        cmocka_unit_test(test_endless_calls),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
