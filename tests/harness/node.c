/* What all who compute a node have in common, and its definition. */
#include "harness/harness.h"

sb_status harness_facts_make(const harness_node *node, uint64_t known, harness_facts *facts, sb_error *error) {
    *facts = (harness_facts){0};
    for (int i = 0; i < node->node->input_count; i++) {
        facts->pointers[i] = node->inputs[i] != NULL ? &facts->inputs[i] : NULL;
        if (node->inputs[i] != NULL)
            MUST(sb_fact_of_tensor(&facts->inputs[i], node->b->scope, node->inputs[i], (known >> i & 1) != 0, error));
    }
    return sb_node_infer(node->node, node->b->scope, facts->pointers, facts->outputs, error);
}

void harness_facts_clear(harness_facts *facts) {
    for (int i = 0; i < HARNESS_INPUTS; i++)
        sb_fact_clear(&facts->inputs[i]);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        sb_fact_clear(&facts->outputs[i]);
}

/* ---- bodies of fused nodes ---- */

typedef struct body_frame {
    sb_frame frame;
    const builder *b;
} body_frame;

static sb_status allocate(sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                          char **data) {
    SB_TRY(sb_storage_create(bytes, storage, call->error));
    *data = (*storage)->data;
    return SB_OK;
}

/* The nodes one after the other, into the values of the graph. */
static sb_status run_nodes(const builder *b, const sb_graph *graph, sb_tensor **values, sb_error *error) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        sb_tensor *in[HARNESS_INPUTS], *out[HARNESS_OUTPUTS] = {NULL};
        char why[SB_WHY_BYTES];
        for (int i = 0; i < node->input_count; i++)
            in[i] = node->inputs[i] != SB_NO_VALUE ? values[node->inputs[i]] : NULL;
        if (harness_define(&(harness_node){.b = b, .node = node, .inputs = in}, out, why) != HARNESS_RAN)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s", why);
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                values[node->outputs[i]] = out[i];
            else
                sb_tensor_release(out[i]);
        }
    }
    return SB_OK;
}

static sb_status run_body(sb_frame *frame, const sb_call *call, const sb_graph *graph, int input_count,
                          const sb_value *inputs, sb_value *outputs) {
    sb_tensor **values = calloc(graph->value_count + 1, sizeof *values);
    assert_non_null(values);
    for (size_t v = 0; v < graph->value_count; v++)
        values[v] = sb_tensor_retain(graph->values[v].fact.constant);
    for (int i = 0; i < input_count; i++)
        values[graph->inputs[i]] = sb_tensor_retain(inputs[i].tensor);
    sb_status status = run_nodes(((body_frame *)frame)->b, graph, values, call->error);
    for (size_t o = 0; o < graph->output_count && status == SB_OK; o++)
        outputs[o] = sb_value_of_tensor(sb_tensor_retain(values[graph->outputs[o]]));
    for (size_t v = 0; v < graph->value_count; v++)
        sb_tensor_release(values[v]);
    free(values);
    return status;
}

harness_outcome harness_define(const harness_node *node, sb_tensor **outputs, char *why) {
    sb_value in[HARNESS_INPUTS] = {{0}}, out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    harness_facts facts;
    body_frame frame = {.frame = {.allocate = allocate, .run_graph = run_body}, .b = node->b};
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            in[i] = sb_value_of_tensor(node->inputs[i]);
    }
    sb_status status = harness_facts_make(node, UINT64_MAX, &facts, &failure);
    if (status == SB_OK) {
        sb_call call = {.node = node->node,
                        .input_count = node->node->input_count,
                        .inputs = in,
                        .output_count = node->node->output_count,
                        .facts = facts.outputs,
                        .outputs = out,
                        .frame = (node->node->op->flags & SB_OP_FUSED) != 0 ? &frame.frame : NULL,
                        .error = &failure};
        status = sb_call_run(&call, node->node->op->eval);
    }
    for (int i = 0; i < node->node->output_count; i++)
        outputs[i] = status == SB_OK ? out[i].tensor : NULL;
    snprintf(why, SB_WHY_BYTES, "%.200s", failure.message);
    harness_facts_clear(&facts);
    return status == SB_OK ? HARNESS_RAN : HARNESS_REFUSED;
}

/* ---- timing ---- */

typedef struct definition {
    const harness_node *node;
    harness_facts facts;
    sb_value in[HARNESS_INPUTS];
} definition;

static void *prepare_definition(harness *h, const harness_node *node) {
    definition *ready = calloc(1, sizeof *ready);
    assert_non_null(ready);
    ready->node = node;
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            ready->in[i] = sb_value_of_tensor(node->inputs[i]);
    }
    MUST(harness_facts_make(node, UINT64_MAX, &ready->facts, error));
    return ready;
}

/* Data that is at fault takes its time too. */
static double call_definition(void *of) {
    definition *ready = of;
    const sb_node *node = ready->node->node;
    sb_value out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    body_frame frame = {.frame = {.allocate = allocate, .run_graph = run_body}, .b = ready->node->b};
    sb_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = ready->in,
                    .output_count = node->output_count,
                    .facts = ready->facts.outputs,
                    .outputs = out,
                    .frame = (node->op->flags & SB_OP_FUSED) != 0 ? &frame.frame : NULL,
                    .error = &failure};
    double start = harness_now();
    sb_call_run(&call, node->op->eval);
    double taken = harness_now() - start;
    for (int i = 0; i < node->output_count; i++)
        sb_value_release(&out[i]);
    return taken;
}

static void release_definition(void *of) {
    definition *ready = of;
    harness_facts_clear(&ready->facts);
    free(ready);
}

const harness_contestant harness_definition = {prepare_definition, call_definition, release_definition,
                                               harness_empty_caches};
