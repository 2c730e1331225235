/* What breaks the standard's rules, or is newer than what is known, and yet has one meaning: it is read, and there is a
 * warning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <samebit/samebit.h>

#include "onnx/attribute_names.h"
#include "onnx/text_model.h"
#include "support/failing.h"

#define X "input " FLOATS("x", SYMBOL("n") DIM(2))
#define NODE(op, more) "node { op_type: \"" op "\" " more " } "
#define RELU(from, to) NODE("Relu", "input: \"" from "\" output: \"" to "\"")

/* The model loads without a word. */
static void expect_silence(const char *text, const char *wanted) {
    loaded_model model = load_or_fail(text);
    if (model.warnings.count != 0)
        fail_msg("'%s'", model.warnings.texts[0]);
    unload(&model);
    expect_graph(text, wanted);
}

/* ---- the order of nodes ---- */

#define LATE OPSET(17) "graph { name: \"g\" " X RELU("b", "y") RELU("a", "b") RELU("x", "a") "output { name: \"y\" } }"
/* A branch that uses a value which the graph around it makes later, and whose own nodes are in disorder too. */
#define BRANCH(name, from)                                                                                             \
    "attribute { name: \"" name "\" type: GRAPH g { name: \"" name "\" " RELU("q", "r")                                \
        RELU(from, "q") "output { name: \"r\" } } } "
#define LATE_INSIDE                                                                                                    \
    OPSET(17)                                                                                                          \
    "graph { name: \"g\" " X "input " VALUE("c", "9", "")                                                              \
        NODE("If", "input: \"c\" output: \"y\" " BRANCH("then_branch", "late") BRANCH("else_branch", "x"))             \
            RELU("x", "late") "output { name: \"y\" } }"
#define LATE_IN_FUNCTION                                                                                               \
    "ir_version: 8 opset_import { version: 17 } opset_import { domain: \"own\" version: 1 } "                          \
    "functions { name: \"F\" domain: \"own\" input: \"p\" output: \"s\" opset_import { version: 17 } "                 \
    "opset_import { domain: \"com.example.unused\" version: 7 } " RELU("t", "s")                                       \
        RELU("p", "t") "} "                                                                                            \
                       "graph { " X NODE("F", "domain: \"own\" input: \"x\" output: \"a\"")                            \
                           NODE("F", "domain: \"own\" input: \"a\" output: \"y\"") "output { name: \"y\" } }"

static void test_order(void **state) {
    expect_warning(LATE, "graph 'g': node 'y' stands before a node that it needs");
    /* Numbers in names are those of the file. */
    expect_graph(LATE, "x->y Relu_2=Relu(x)[a] Relu_1=Relu(a)[b] Relu_0=Relu(b)[y]");
    /* What needs nobody keeps its place. */
    expect_graph(OPSET(17) "graph { " X RELU("x", "a") RELU("c", "b") RELU("x", "d")
                     RELU("x", "c") "output { name: \"b\" } }",
                 "x->b Relu_0=Relu(x)[a] Relu_3=Relu(x)[c] Relu_1=Relu(c)[b] Relu_2=Relu(x)[d]");
    loaded_model model = load_or_fail(LATE_INSIDE);
    assert_int_equal(model.warnings.count, 3);
    assert_non_null(strstr(model.warnings.texts[0], "graph 'g': node 'y'"));
    assert_non_null(strstr(model.warnings.texts[1], "graph 'then_branch': node 'r'"));
    assert_non_null(strstr(model.warnings.texts[2], "graph 'else_branch': node 'r'"));
    unload(&model);
    /* A function's body is sorted once, however often it is called. */
    expect_warning(LATE_IN_FUNCTION, "graph 'F': node 's'");
    expect_graph(LATE_IN_FUNCTION, "x->y F_0/Relu_1=Relu(x)[F_0/t] F_0/Relu_0=Relu(F_0/t)[a] F_1/Relu_1=Relu(a)[F_1/t] "
                                   "F_1/Relu_0=Relu(F_1/t)[y]");
    /* An inner value of the name of a later outer one is another value. */
    expect_silence(OPSET(17) "graph { " X "input " VALUE("c", "9", "")
                       NODE("If", "input: \"c\" output: \"y\" attribute { name: \"then_branch\" type: GRAPH g { " RELU(
                                      "x", "z") "output { name: \"z\" } } } attribute { name: \"else_branch\" type: "
                                                "GRAPH g { " RELU("x", "z") "output { name: \"z\" } } } ")
                           RELU("y", "z") "output { name: \"z\" } }",
                   "x,c->z If_0=If(c|x)[y; then_branch{x->z Relu_0=Relu(x)[z]}; else_branch{x->z "
                   "Relu_0=Relu(x)[z]}] Relu_1=Relu(y)[z]");
}

static void test_circles(void **state) {
    expect_refused(OPSET(17) "graph { " X NODE("Add", "name: \"first\" input: \"x\" input: \"c\" output: \"a\"")
                       RELU("a", "b") NODE("Relu", "name: \"third\" input: \"b\" output: \"c\"") "}",
                   SB_ERROR_INVALID_MODEL, "node 'first' (Add) needs its own output, by way of node 'b'");
    /* By way of a graph inside. */
    expect_refused(OPSET(17) "graph { " X "input " VALUE("c", "9", "")
                       NODE("If", "name: \"if\" input: \"c\" output: \"y\" " BRANCH("then_branch", "z")
                                      BRANCH("else_branch", "x")) RELU("y", "z") "output { name: \"y\" } }",
                   SB_ERROR_INVALID_MODEL, "node 'if' (If) needs its own output, by way of node 'z'");
}

static void test_long_chain(void **state) {
    /* Backwards, and deeper than any stack should be asked for. */
    static char text[60000];
    size_t used = (size_t)snprintf(text, sizeof text, OPSET(17) "graph { " X);
    for (int i = 900; i > 0; i--)
        used += (size_t)snprintf(text + used, sizeof text - used, RELU("v%d", "v%d"), i - 1, i);
    snprintf(text + used, sizeof text - used, RELU("x", "v0") "output { name: \"v900\" } }");
    expect_warning(text, "stands before a node that it needs");
}

/* ---- initialisers and types ---- */

#define W(numbers) "initializer { name: \"w\" dims: 2 data_type: 1 float_data: [" numbers "] } "

static void test_initialisers(void **state) {
    static const char twice[] = OPSET(17) "graph { " X W("1, 2") W("3, 4") "output { name: \"w\" } }";
    expect_warning(twice, "initialiser 'w' is there more than once; the last one counts");
    loaded_model model = load_or_fail(twice);
    const sb_tensor *w = model.graph->values[model.graph->outputs[0]].fact.constant;
    assert_float_equal(((const float *)sb_tensor_data(w))[0], 3.0f, 0.0f);
    unload(&model);
    /* One that is an input too, one that nobody uses. */
    expect_silence(OPSET(17) "graph { " X "input " FLOATS("w", DIM(2)) W("1, 2")
                       NODE("Add", "input: \"x\" input: \"w\" output: \"y\"") "output { name: \"y\" } }",
                   "x->y Add_0=Add(x,w!)[y]");
    expect_silence(OPSET(17) "graph { " X W("1, 2") RELU("x", "y") "output { name: \"y\" } }",
                   "x->y Relu_0=Relu(x)[y]");
}

static void test_types(void **state) {
    /* The type of an input in value_info alone. */
    expect_warning(OPSET(17) "graph { input { name: \"x\" } value_info " FLOATS("x", DIM(3))
                       RELU("x", "y") "output { name: \"y\" } }",
                   "input 'x' has no type; that of value_info counts");
    /* Names that say nothing are nobody else's. */
    loaded_model model =
        load_or_fail(OPSET(17) "graph { input " FLOATS("x", SYMBOL("?") SYMBOL("None") SYMBOL("?")) "}");
    const sb_fact *fact = &model.graph->values[0].fact;
    assert_ptr_not_equal(fact->dims[0], fact->dims[2]);
    assert_ptr_not_equal(fact->dims[0], fact->dims[1]);
    assert_int_equal(model.warnings.count, 0);
    unload(&model);
    /* Types that are left out. */
    expect_silence(OPSET(17) "graph { " X RELU("x", "y") "output { name: \"y\" } value_info { name: \"y\" } }",
                   "x->y Relu_0=Relu(x)[y]");
}

/* ---- versions and names ---- */

static void test_versions(void **state) {
    expect_warning("ir_version: 99 opset_import { version: 17 } graph { " X RELU("x", "y") "}",
                   "ONNX's format version 99; it is read as version 14");
    static const char newer[] = OPSET(90) "graph { " X RELU("x", "a") RELU("a", "y") "}";
    expect_warning(newer,
                   "node 'Relu_0' (Relu) is of operator set 90; it and all others of such a set are read as of 28");
    loaded_model model = load_or_fail(newer);
    assert_int_equal(model.graph->nodes[1]->version, 28);
    unload(&model);
    /* What there is no definition of is still refused. */
    expect_refused(OPSET(90) "graph { " X NODE("Novel", "input: \"x\" output: \"y\"") "}", SB_ERROR_UNSUPPORTED,
                   "the model uses 1 operator that Samebit lacks: Novel");
    /* Imports that no node uses. */
    expect_silence(OPSET(17) "opset_import { domain: \"com.example\" version: 12345 } graph { " X RELU(
                       "x", "y") "output { name: \"y\" } }",
                   "x->y Relu_0=Relu(x)[y]");
}

static void test_names(void **state) {
    /* Any bytes but NUL are a name. */
    expect_silence(OPSET(17) "graph { " X NODE("Relu", "name: \"\\x01\\xff\" input: \"x\" output: \"a\\x0a\\x1b\"")
                       RELU("a\\x0a\\x1b", "y") "output { name: \"y\" } }",
                   "x->y \x01\xff=Relu(x)[a\x0a\x1b] Relu_1=Relu(a\x0a\x1b)[y]");
}

#define NUMBER(name, value) "attribute { name: \"" name "\" type: INT i: " value " } "

/* ---- symbols ---- */

static const char unlike[] = OPSET(17) "graph { input " FLOATS("x", SYMBOL("n") SYMBOL("m")) "input " FLOATS(
    "y", SYMBOL("n") SYMBOL("m")) NODE("Concat", "input: \"x\" input: \"y\" output: \"z\" " NUMBER("axis", "0"))
    NODE("Shape", "input: \"x\" output: \"s\"")
        NODE("Reshape", "input: \"y\" input: \"s\" output: \"r\" ") "output { name: \"z\" } output { name: \"r\" } }";

static sb_status load_unlike(const char *unrelated, loaded_model *model, sb_error *error) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    sb_onnx_source source = {.bytes = bytes, .unrelated = unrelated};
    source.size = text_proto(&onnx__model_proto__descriptor, unlike, bytes);
    *model = (loaded_model){0};
    SB_TRY(sb_scope_create(&model->scope, error));
    sb_status status = sb_onnx_read(&source, model->scope, &model->graph, &model->info, &model->warnings, error);
    if (status != SB_OK)
        sb_scope_destroy(model->scope);
    return status;
}

static void expect_output(const char *unrelated, const char *fact) {
    loaded_model model;
    char text[SB_FACT_TEXT_BYTES];
    sb_error error = {0};
    if (load_unlike(unrelated, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    assert_string_equal(sb_fact_text(&model.graph->values[model.graph->outputs[0]].fact, text, sizeof text), fact);
    unload(&model);
}

static void test_unrelated_symbols(void **state) {
    expect_output(NULL, "f32[2*n,m]");
    expect_output("n", "f32[x.0#1+y.0#2,m]");
    expect_output("m,n", "f32[x.0#1+y.0#3,x.1#2]");
    static const char *const wrong[] = {"k", "n,k", "", "n,", "n,,m", "nm", "n m"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        loaded_model model;
        sb_error error = {0};
        assert_int_equal(load_unlike(wrong[i], &model, &error), SB_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "no extent of an input is called '"));
    }
}

static sb_tensor *zeros(int64_t rows, int64_t columns) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, 2, (int64_t[]){rows, columns}, &tensor, NULL), SB_OK);
    return tensor;
}

/* What passes take from equal names (the Reshape is none) must not be taken from unrelated ones. */
static void test_runs_with_unlike_extents(void **state) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    size_t size = text_proto(&onnx__model_proto__descriptor, unlike, bytes);
    for (int unrelated = 0; unrelated < 2; unrelated++) {
        sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
        sb_model *model;
        sb_session *session;
        sb_error error = {0};
        options.unrelated_symbols = unrelated ? "n,m" : NULL;
        assert_int_equal(sb_model_load_memory(bytes, size, &options, &model, &error), SB_OK);
        assert_int_equal(sb_session_create(model, NULL, &session, &error), SB_OK);
        for (int64_t rows = 2; rows < 5; rows++) {
            /* Of rows x 3 and 3 x rows: alike at 3. */
            sb_tensor *inputs[] = {zeros(rows, 3), zeros(3, 3)}, *outputs[2] = {NULL, NULL};
            sb_status status = sb_session_run_tensors(session, inputs, outputs, &error);
            if (rows == 3) {
                assert_int_equal(status, SB_OK);
                assert_int_equal(sb_tensor_dims(outputs[0])[0], 6);
            } else if (unrelated) {
                /* The Concat can be done; the Reshape, to the shape of x, cannot. */
                assert_int_equal(status, SB_ERROR_SHAPE);
                assert_non_null(strstr(error.message, "Reshape_2"));
            } else {
                assert_int_equal(status, SB_ERROR_SHAPE);
                assert_non_null(strstr(error.message, "input y: extent 3 of dimension 0 is called n"));
                assert_non_null(strstr(error.message, "load the model with that symbol as an unrelated one"));
            }
            sb_tensor_release(outputs[0]);
            sb_tensor_release(outputs[1]);
            sb_tensor_release(inputs[0]);
            sb_tensor_release(inputs[1]);
        }
        sb_session_destroy(session);
        sb_model_release(model);
    }
}

/* ---- attributes ---- */

static void test_attributes(void **state) {
    expect_warning(OPSET(17) "graph { " X NODE("Flatten", "name: \"f\" input: \"x\" output: \"y\" " NUMBER("axis", "1")
                                                              NUMBER("colour", "3")) "output { name: \"y\" } }",
                   "node 'f' (Flatten) has an attribute 'colour', which is none of the operator's; it is ignored");
    /* Whatever it is: a kind that is refused elsewhere. */
    expect_warning(
        OPSET(17) "graph { " X NODE(
            "Relu", "input: \"x\" output: \"y\" attribute { name: \"many\" type: TENSORS }") "output { name: \"y\" } }",
        "node 'Relu_0' (Relu) has an attribute 'many'");
    /* Of another version, where an input has taken its place; of one that came later; of one from before the operator. */
    expect_warning(
        OPSET(13) "graph { " X NODE(
            "ReduceSum",
            "input: \"x\" output: \"y\" " NUMBER(
                "keepdims", "1") "attribute { name: \"axes\" type: INTS ints: 1 }") "output { name: \"y\" } }",
        "node 'ReduceSum_0' (ReduceSum) has an attribute 'axes', which other versions of the operator have than "
        "that of operator set 13");
    expect_warning(OPSET(11) "graph { " X NODE("ArgMax", "input: \"x\" output: \"y\" " NUMBER(
                                                             "select_last_index", "0")) "output { name: \"y\" } }",
                   "'select_last_index', which other versions");
    expect_warning(OPSET(7) "graph { " X NODE("Add", "input: \"x\" input: \"x\" output: \"y\" " NUMBER(
                                                         "broadcast", "1")) "output { name: \"y\" } }",
                   "'broadcast', which other versions");
    expect_silence(OPSET(11) "graph { " X NODE("Constant", "output: \"k\" " NUMBER("value_int", "3"))
                       RELU("x", "y") "output { name: \"y\" } }",
                   "x->y Relu_1=Relu(x)[y]");
    expect_warning(OPSET(17) "graph { " X NODE("Constant", "output: \"k\" " NUMBER("value_int", "3") NUMBER(
                                                               "unit", "1")) RELU("x", "y") "output { name: \"y\" } }",
                   "(Constant) has an attribute 'unit'");
    /* A call of a function. */
    expect_warning("ir_version: 8 opset_import { version: 17 } opset_import { domain: \"own\" version: 1 } "
                   "functions { name: \"F\" domain: \"own\" input: \"p\" output: \"s\" attribute: \"a\" "
                   "opset_import { version: 17 } " RELU("p", "s") "} graph { " X NODE(
                       "F", "name: \"call\" domain: \"own\" input: \"x\" output: \"y\" " NUMBER("a", "1")
                                NUMBER("b", "2")) "output { name: \"y\" } }",
                   "node 'call' calls function F with an attribute 'b' that it does not list");
}

static void test_attribute_table(void **state) {
    assert_true(sb_attribute_table_rows > 300);
    for (size_t i = 1; i < sb_attribute_table_rows; i++) {
        int order = strcmp(sb_attribute_table[i - 1].op, sb_attribute_table[i].op);
        assert_true(order < 0 || (order == 0 && sb_attribute_table[i - 1].since < sb_attribute_table[i].since));
    }
    const struct {
        const char *domain, *op, *name;
        int version;
        sb_attribute_standing standing;
    } cases[] = {
        {"", "Conv", "group", 11, SB_ATTRIBUTE_KNOWN},
        {"", "Conv", "grou", 11, SB_ATTRIBUTE_UNKNOWN},
        {"", "Conv", "groups", 11, SB_ATTRIBUTE_UNKNOWN},
        {"", "Conv", "group kernel_shape", 11, SB_ATTRIBUTE_UNKNOWN},
        {"", "Conv", "", 11, SB_ATTRIBUTE_UNKNOWN},
        {"", "Relu", "consumed_inputs", 5, SB_ATTRIBUTE_KNOWN},
        {"", "Relu", "consumed_inputs", 6, SB_ATTRIBUTE_OF_OTHER_VERSION},
        {"", "Acos", "axis", 6, SB_ATTRIBUTE_UNKNOWN},
        {"", "Conw", "group", 11, SB_ATTRIBUTE_KNOWN},
        {"ai.onnx.preview", "FlexAttention", "scale", 1, SB_ATTRIBUTE_KNOWN},
        {"ai.onnx.preview", "FlexAttention", "slope", 1, SB_ATTRIBUTE_UNKNOWN},
        {"com.example", "Conv", "slope", 1, SB_ATTRIBUTE_KNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sb_onnx_attribute_standing(cases[i].domain, cases[i].op, cases[i].version, cases[i].name),
                         cases[i].standing);
}

static void test_many_warnings(void **state) {
    sb_warnings warnings = {0};
    for (int i = 0; i < SB_MOST_WARNINGS + 5; i++)
        assert_int_equal(sb_warn(&warnings, NULL, "%d", i), SB_OK);
    assert_int_equal(warnings.count, SB_MOST_WARNINGS + 1);
    assert_string_equal(warnings.texts[SB_MOST_WARNINGS - 1], "999");
    assert_string_equal(warnings.texts[SB_MOST_WARNINGS], "more was tolerated than is listed");
    sb_warnings_clear(&warnings);
    assert_int_equal(sb_warn(NULL, NULL, "nobody"), SB_OK);
}

static sb_status load_and_unload(void *text) {
    loaded_model model;
    sb_error error;
    SB_TRY(load_text(text, &model, &error));
    unload(&model);
    return SB_OK;
}

static void test_no_memory(void **state) {
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)LATE_INSIDE);
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)LATE_IN_FUNCTION);
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)OPSET(13) "graph { " X NODE(
                                                   "Relu", "input: \"x\" output: \"y\" " NUMBER("a", "1") NUMBER(
                                                               "consumed_inputs", "2")) "output { name: \"y\" } }");
    check_failing_allocations(load_and_unload, (void *)(uintptr_t)OPSET(90) "graph { " X W("1, 2") W("3, 4")
                                                   RELU("x", "y") "output " FLOATS("y", DIM(9)) "}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_initialisers),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_many_warnings),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_unrelated_symbols),
        cmocka_unit_test(test_runs_with_unlike_extents),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_attribute_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
