/* FlexAttention with graphs of its own on a device: over the fake driver, with the kernels' sources on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "ops/number.h"
#include "session_support.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, WIDTH = 8, VALUES = 5, KEYS = 131 };

/* Numbers in [-4, 4). */
static sb_tensor *numbers(sb_dtype dtype, int rank, const int64_t *dims, uint64_t seed) {
    random_source source = {seed};
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_number_store(dtype, tensor->data, i, (double)random_between(&source, -4096, 4095) / 1024);
    return tensor;
}

/* What the model of a test is made of. */
static struct {
    sb_dtype dtype, between; /* between: what graphs see, by softmax_precision */
    int64_t precision;       /* of ONNX */
    bool score, probability;
    bool known; /* score_mod gives a constant */
} wanted;

/* A graph with an input like the scores, and behind it what it captures: the node `op` of both. */
static sb_graph *make_graph(const char *op, int64_t queries, int64_t capture_rank) {
    const int64_t scores[] = {BATCH, HEADS, queries, KEYS}, captured[] = {HEADS, 1, 1};
    builder inner = builder_create();
    sb_value_id z = builder_input(&inner, wanted.between, 4, scores);
    sb_value_id factor = builder_input(&inner, wanted.between, (int)capture_rank, captured), result;
    if (wanted.known)
        result = builder_constant(&inner, numbers(wanted.between, 4, scores, 5));
    else
        result =
            builder_unary(&inner, "Identity", builder_binary(&inner, op, builder_unary(&inner, "Tanh", z), factor));
    mark_output(&inner, result);
    builder_finish(&inner);
    for (size_t v = 0; v < inner.graph->value_count; v++) {
        if (inner.graph->values[v].fact.constant == NULL)
            sb_fact_clear(&inner.graph->values[v].fact);
    }
    sb_scope_destroy(inner.scope);
    return inner.graph;
}

/* Inputs Q, K, V and a factor for each head; the node between two others, so that what they launch is recorded. */
static sb_model *attention(bool passes) {
    const int64_t queries = 3, factors[] = {HEADS, 1, 1};
    builder b = builder_create();
    sb_value_id q = builder_input(&b, wanted.dtype, 4, (int64_t[]){BATCH, HEADS, queries, WIDTH});
    sb_value_id k = builder_input(&b, wanted.dtype, 4, (int64_t[]){BATCH, KEY_HEADS, KEYS, WIDTH});
    sb_value_id v = builder_input(&b, wanted.dtype, 4, (int64_t[]){BATCH, KEY_HEADS, KEYS, VALUES});
    sb_value_id factor = builder_unary(&b, "Relu", builder_input(&b, wanted.between, 3, factors));
    sb_value_id inputs[] = {builder_unary(&b, "Neg", q), k, v, factor}, y = builder_value(&b);
    sb_attributes attributes = {0};
    if (wanted.precision != 0)
        MUST(sb_attributes_add_ints(&attributes, "softmax_precision", true, 1, &wanted.precision, error));
    if (wanted.score)
        MUST(sb_attributes_add_graph(&attributes, "score_mod", make_graph("Add", queries, 3), error));
    if (wanted.probability)
        MUST(sb_attributes_add_graph(&attributes, "prob_mod", make_graph("Mul", queries, 3), error));
    MUST(sb_graph_add_node(b.graph, sb_op_find("ai.onnx.preview", "FlexAttention"), 1, "flex", 4, inputs, 1, 1, &y,
                           &attributes, NULL, error));
    mark_output(&b, builder_unary(&b, "Abs", y));
    mark_output(&b, builder_unary(&b, "Relu", factor));
    return model_of(&b, passes);
}

static void make_inputs(sb_tensor **inputs, uint64_t seed) {
    inputs[0] = numbers(wanted.dtype, 4, (int64_t[]){BATCH, HEADS, 3, WIDTH}, seed);
    inputs[1] = numbers(wanted.dtype, 4, (int64_t[]){BATCH, KEY_HEADS, KEYS, WIDTH}, seed + 1);
    inputs[2] = numbers(wanted.dtype, 4, (int64_t[]){BATCH, KEY_HEADS, KEYS, VALUES}, seed + 2);
    inputs[3] = numbers(wanted.between, 3, (int64_t[]){HEADS, 1, 1}, seed + 3);
}

typedef struct placement {
    int on_host;
    char why[256];
} placement;

static void note_node(void *context, const sb_placed_node *node) {
    placement *all = context;
    if (strcmp(node->op, SB_TRANSFER) == 0 || node->on_device)
        return;
    all->on_host++;
    snprintf(all->why, sizeof all->why, "%s: %s", node->op, node->why);
}

/* Runs with other contents, in every graph mode: the CPU's bits, and as many nodes on it as said. */
static void check(int on_host, const char *why) {
    setting s = start(attention, true);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, mode % 2 == 1, NULL);
        for (uint64_t run = 0; run < 5; run++) {
            sb_tensor *inputs[4];
            make_inputs(inputs, 10 * run);
            run_both(session, s.cpu, s.device, 4, inputs, 2);
            release_all(inputs, 4);
        }
        placement all = {0};
        assert_int_equal(sb_session_visit_placement(session, note_node, &all), on_host);
        assert_int_equal(all.on_host, on_host);
        if (strstr(all.why, why) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", all.why, why);
        sb_session_destroy(session);
    }
    finish(&s);
}

/* Each type with each that its graphs may see, with either graph and both. */
static void graphs_run_on_the_device(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const struct {
        int64_t precision;
        sb_dtype dtype;
    } precisions[] = {{1, SB_F32}, {10, SB_F16}, {16, SB_BF16}, {11, SB_F64}};
    for (int d = 0; d < 4; d++) {
        for (int p = 0; p < 4; p++) {
            wanted.dtype = dtypes[d];
            wanted.precision = precisions[p].precision;
            wanted.between = precisions[p].dtype;
            for (int graphs = 1; graphs < 4; graphs++) {
                wanted.score = (graphs & 1) != 0;
                wanted.probability = (graphs & 2) != 0;
                check(0, "");
            }
        }
    }
}

/* A result that is a constant lies on the host, which a launch does not read. */
static void constants_stay_on_the_host(void **unused) {
    wanted.dtype = wanted.between = SB_F32;
    wanted.precision = 0;
    wanted.score = wanted.known = true;
    wanted.probability = false;
    check(1, "FlexAttention: what its graph gives is known on the host");
    wanted.known = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_run_on_the_device),
        cmocka_unit_test(constants_stay_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
