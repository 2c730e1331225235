/* Cases: making them, and running them by all implementations. */
#include "cuda/contraction/tiles.h"
#include "harness/harness.h"

/* ---- groups ---- */

static harness_group *first_group, **last_group = &first_group;

void harness_enter(harness_group *group) {
    *last_group = group;
    last_group = &group->next;
}

const harness_group *harness_groups(void) {
    return first_group;
}

/* ---- making ---- */

static uint64_t seed_of(const harness *h) {
    random_source mixed = {h->seed};
    for (const char *c = h->group; *c != '\0'; c++)
        mixed.state = random_bits(&mixed) ^ (uint64_t)(unsigned char)*c;
    mixed.state ^= (uint64_t)h->number;
    return random_bits(&mixed);
}

/* '*' stands for any text. */
static bool matches(const char *pattern, const char *name) {
    if (*pattern == '\0')
        return *name == '\0';
    if (*pattern == '*')
        return matches(pattern + 1, name) || (*name != '\0' && matches(pattern, name + 1));
    return *pattern == *name && matches(pattern + 1, name + 1);
}

static void begin_case(harness *h) {
    snprintf(h->name, sizeof h->name, "%s.%d", h->group, h->number);
    h->random.state = seed_of(h);
    h->chosen = h->exactly != NULL
                    ? strcmp(h->exactly, h->name) == 0
                    : (h->only == NULL || matches(h->only, h->name)) && (h->random.state >> 32) % h->every == 0;
    h->values = 0;
    h->first_tile = h->last_tile = -1;
}

void harness_begin_group(harness *h, const harness_group *group) {
    h->group = group->name;
    h->needs = group->needs;
    h->number = 0;
    begin_case(h);
}

void harness_next(harness *h) {
    h->number++;
    begin_case(h);
}

harness_case harness_op(const char *op, int version) {
    return (harness_case){.op = op, .domain = "", .version = version, .outputs = 1};
}

void add_input(harness_case *test, sb_tensor *tensor) {
    assert_true(test->count < HARNESS_INPUTS);
    test->inputs[test->count++] = tensor;
}

static void add_known(harness_case *test, sb_dtype dtype, int count, const void *values) {
    sb_tensor *tensor;
    int64_t extent = count;
    MUST(sb_tensor_from_data(dtype, 1, &extent, values, &tensor, error));
    test->constants |= UINT64_C(1) << test->count;
    add_input(test, tensor);
}

void add_list(harness_case *test, int count, const int64_t *values) {
    add_known(test, SB_S64, count, values);
}

void add_floats(harness_case *test, int count, const float *values) {
    add_known(test, SB_F32, count, values);
}

void set_ints(harness_case *test, const char *name, int64_t count, const int64_t *values) {
    MUST(sb_attributes_add_ints(&test->attributes, name, false, count, values, error));
}

void set_int(harness_case *test, const char *name, int64_t value) {
    MUST(sb_attributes_add_ints(&test->attributes, name, true, 1, &value, error));
}

void set_float(harness_case *test, const char *name, float value) {
    MUST(sb_attributes_add_floats(&test->attributes, name, true, 1, &value, error));
}

void set_text(harness_case *test, const char *name, const char *value) {
    sb_string text = {value, strlen(value)};
    MUST(sb_attributes_add_strings(&test->attributes, name, true, 1, &text, error));
}

void place_output(harness_case *test, sb_tensor *place) {
    test->place = place;
}

void expect_output(harness_case *test, int index, sb_tensor *tensor) {
    assert_true(index < test->outputs);
    test->expected[index] = tensor;
}

/* ---- running ---- */

static void release_some(sb_tensor **tensors, int count) {
    for (int i = 0; i < count; i++) {
        sb_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

/* What a node has to give: outputs, or that its data is at fault. */
typedef struct expectation {
    harness_outcome outcome;
    sb_tensor *outputs[HARNESS_OUTPUTS]; /* NULL: not compared */
    char why[SB_WHY_BYTES];
} expectation;

static void check(harness *h, const harness_node *node, const expectation *expected, harness_side side,
                  const char *implementation, harness_outcome outcome, sb_tensor **found, const char *why) {
    char what[192];
    snprintf(what, sizeof what, "%s by %s", node->node->op->name, implementation);
    if (outcome == HARNESS_ABSENT && (h->needs & side) == 0)
        h->absent++;
    else if (outcome == HARNESS_ABSENT)
        harness_fail("%s: there is no kernel: %s", what, why);
    else if (outcome != expected->outcome)
        harness_fail("%s: %s, but by its definition: %s", what, why,
                     expected->outcome == HARNESS_RAN ? "no fault" : expected->why);
    for (int i = 0; i < node->node->output_count && outcome == HARNESS_RAN; i++) {
        if (expected->outputs[i] != NULL && found[i] == NULL)
            harness_fail("%s: output %d is missing", what, i);
        if (expected->outputs[i] != NULL)
            harness_compare(h, what, expected->outputs[i], found[i], node->inputs, node->node->input_count);
    }
    release_some(found, HARNESS_OUTPUTS);
}

/* Cases of the CPU's own: every instruction set of this machine with one thread and with several: 2, 3 or
 * 8, each instruction set with another number from case to case. Other cases: one instruction set,
 * another one from case to case. */
static void check_cpu(harness *h, const harness_node *node, const expectation *expected) {
    static const sb_isa isas[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    static const int several[] = {2, 3, 8};
    const bool own = (h->needs & (HARNESS_CPU | HARNESS_CPU_IF_ANY)) != 0;
    sb_tensor *found[HARNESS_OUTPUTS] = {NULL};
    char why[SB_WHY_BYTES] = "", implementation[64];
    sb_isa isa;
    for (int i = 0; i < 6; i++) {
        int threads = i % 2 == 0 ? 1 : several[(h->number + i / 2) % 3];
        if (sb_isa_resolve(isas[i / 2], &isa, NULL) != SB_OK || (!own && i != h->number % 3 * 2))
            continue;
        snprintf(implementation, sizeof implementation, "the CPU's kernel for %s with %d thread%s", sb_isa_name(isa),
                 threads, threads == 1 ? "" : "s");
        harness_outcome outcome = harness_run_cpu(node, isa, threads, found, why);
        check(h, node, expected, HARNESS_CPU, implementation, outcome, found, why);
        if (outcome == HARNESS_ABSENT)
            return;
    }
}

static void check_device(harness *h, const harness_node *node, const expectation *expected) {
    sb_tensor *found[HARNESS_OUTPUTS] = {NULL};
    char why[SB_WHY_BYTES] = "", implementation[64];
    for (int tile = h->first_tile; tile <= h->last_tile; tile++) {
        sb_cuda_tile_force(tile);
        snprintf(implementation, sizeof implementation, "the device's kernel%s%s", tile >= 0 ? " with tiles of " : "",
                 tile >= 0 ? sb_cuda_tile_at(tile)->name : "");
        harness_outcome outcome = harness_run_device(h, node, found, why);
        check(h, node, expected, HARNESS_CUDA, implementation, outcome, found, why);
        if (outcome == HARNESS_ABSENT)
            break;
    }
    sb_cuda_tile_force(-1);
}

static void check_all(harness *h, const harness_node *node, const expectation *expected) {
    h->ran++;
    if (h->bench)
        harness_time(h, node);
    if ((h->sides & HARNESS_CPU) != 0 && !h->bench)
        check_cpu(h, node, expected);
    if ((h->sides & HARNESS_CUDA) != 0 && !h->bench) {
        check_device(h, node, expected);
        if (expected->outcome == HARNESS_RAN) {
            harness_check_capacity(h, node);
            harness_check_known(h, node);
        }
    }
}

static void check_refusal(const harness_case *test, const char *message) {
    if (strstr(message, test->refusal) == NULL)
        harness_fail("%s is refused with \"%s\", which does not say \"%s\"", test->op, message, test->refusal);
}

/* NULL where the attributes are refused, as they have to be. */
static const sb_node *add_node(builder *b, harness_case *test) {
    sb_value_id ids[HARNESS_INPUTS], results[HARNESS_OUTPUTS];
    sb_error failure = {SB_OK, ""};
    const sb_op *op = sb_op_find(test->domain, test->op);
    assert_non_null(op);
    for (int i = 0; i < test->count; i++) {
        const sb_tensor *input = test->inputs[i];
        ids[i] = input != NULL ? builder_input(b, input->dtype, input->rank, input->dims) : SB_NO_VALUE;
    }
    for (int i = 0; i < test->outputs; i++)
        results[i] = builder_value(b);
    if (sb_graph_add_node(b->graph, op, test->version, "node", test->count, ids, 0, test->outputs, results,
                          &test->attributes, NULL, &failure) == SB_OK)
        return b->graph->nodes[b->graph->node_count - 1];
    if (test->refusal == NULL)
        harness_fail("%s", failure.message);
    check_refusal(test, failure.message);
    sb_attributes_clear(&test->attributes); /* which a node that is not refused takes */
    return NULL;
}

/* Whether inference refuses the node, as it has to. */
static bool is_refused(const harness_node *node, const harness_case *test) {
    sb_error failure = {SB_OK, ""};
    harness_facts facts;
    if (test->refusal == NULL)
        return false;
    bool refused = harness_facts_make(node, node->constants, &facts, &failure) != SB_OK;
    harness_facts_clear(&facts);
    if (refused)
        check_refusal(test, failure.message);
    return refused;
}

/* What was worked out by hand against what the definition gives. */
static void check_definition(harness *h, const harness_node *node, harness_case *test, const expectation *defined) {
    char what[192];
    if (test->refusal != NULL && defined->outcome == HARNESS_RAN)
        harness_fail("%s is not refused: nothing says \"%s\"", test->op, test->refusal);
    if (test->refusal != NULL)
        check_refusal(test, defined->why);
    for (int i = 0; i < test->outputs; i++) {
        if (test->expected[i] == NULL)
            continue;
        snprintf(what, sizeof what, "output %d of %s by its definition", i, test->op);
        if (defined->outcome != HARNESS_RAN || defined->outputs[i] == NULL)
            harness_fail("%s: %s", what, defined->why);
        harness_compare(h, what, test->expected[i], defined->outputs[i], node->inputs, node->node->input_count);
    }
}

static void run_all(harness *h, const harness_node *node, harness_case *test, expectation *expected) {
    expected->outcome = harness_define(node, expected->outputs, expected->why);
    check_definition(h, node, test, expected);
    check_all(h, node, expected);
}

void harness_run(harness *h, harness_case *test) {
    builder b = builder_create();
    harness_node node = {.b = &b, .inputs = test->inputs, .constants = test->constants, .place = test->place};
    expectation expected = {0};
    if (h->chosen && h->list) {
        harness_describe(h, test);
    } else if (h->chosen) {
        node.node = add_node(&b, test);
        if (node.node == NULL || is_refused(&node, test))
            h->ran++;
        else
            run_all(h, &node, test, &expected);
    }
    release_some(expected.outputs, HARNESS_OUTPUTS);
    release_some(test->inputs, test->count);
    sb_tensor_release(test->place);
    sb_attributes_clear(&test->attributes);
    release_some(test->expected, HARNESS_OUTPUTS);
    builder_destroy(&b);
    *test = (harness_case){0};
    harness_next(h);
}

bool harness_wants(harness *h, const char *what, sb_tensor *const *inputs, int count) {
    bool wanted = h->chosen && !h->list && !h->bench;
    if (h->chosen && h->list)
        harness_describe_raw(h, what, inputs, count);
    h->ran += wanted;
    return wanted;
}

bool harness_wants_graph(harness *h, const builder *b, sb_tensor *const *inputs) {
    bool wanted = h->chosen && !h->list && !h->bench;
    if (h->chosen && h->list)
        harness_describe_graph(h, b->graph, inputs);
    h->ran += wanted;
    return wanted;
}

sb_tensor **harness_evaluate(const builder *b, sb_tensor *const *inputs) {
    const sb_graph *graph = b->graph;
    sb_tensor **values = calloc(graph->value_count, sizeof *values);
    assert_non_null(values);
    for (size_t v = 0; v < graph->value_count; v++)
        values[v] = graph->values[v].fact.constant != NULL ? sb_tensor_retain(graph->values[v].fact.constant) : NULL;
    for (size_t i = 0; i < graph->input_count; i++)
        values[graph->inputs[i]] = sb_tensor_retain(inputs[i]);
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        sb_tensor *in[HARNESS_INPUTS], *out[HARNESS_OUTPUTS] = {NULL};
        char why[SB_WHY_BYTES];
        for (int i = 0; i < node->input_count; i++)
            in[i] = node->inputs[i] != SB_NO_VALUE ? values[node->inputs[i]] : NULL;
        if (harness_define(&(harness_node){.b = b, .node = node, .inputs = in}, out, why) != HARNESS_RAN)
            harness_fail("%s", why);
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == SB_NO_VALUE)
                continue;
            sb_tensor_release(values[node->outputs[i]]);
            values[node->outputs[i]] = out[i];
        }
    }
    return values;
}

static void run_fused(harness *h, builder *b, sb_value_id result, sb_tensor *const *inputs) {
    sb_graph *graph = b->graph;
    MUST(sb_graph_add_output(graph, result, error));
    builder_finish(b);
    size_t count = graph->value_count;
    sb_tensor **values = harness_evaluate(b, inputs), *in[HARNESS_INPUTS] = {NULL};
    MUST(sb_pass_gates(graph, b->scope, error));
    MUST(sb_pass_fuse(graph, b->scope, error));
    MUST(sb_pass_attention(graph, b->scope, error));
    if (graph->node_count != 1)
        harness_fail("%s stays alone", graph->nodes[0]->name);
    harness_node node = {.b = b, .node = graph->nodes[0], .inputs = in};
    for (int i = 0; i < node.node->input_count; i++) {
        sb_value_id value = node.node->inputs[i];
        in[i] = value != SB_NO_VALUE ? values[value] : NULL;
        if (value != SB_NO_VALUE && graph->values[value].fact.constant != NULL)
            node.constants |= UINT64_C(1) << i;
    }
    expectation expected = {.outcome = HARNESS_RAN, .outputs = {values[result]}};
    check_all(h, &node, &expected);
    release_some(values, (int)count);
    free(values);
}

void harness_run_fused(harness *h, builder *b, sb_value_id result, sb_tensor *const *inputs) {
    if (h->chosen && h->list)
        harness_describe_graph(h, b->graph, inputs);
    else if (h->chosen)
        run_fused(h, b, result, inputs);
    harness_next(h);
}
