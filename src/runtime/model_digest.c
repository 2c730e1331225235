#include "runtime/model_digest.h"

#include <string.h>

static void add_graph(sb_digest *digest, const sb_graph *graph);

static void add_fact(sb_digest *digest, const sb_fact *fact) {
    char text[SB_FACT_TEXT_BYTES];
    sb_digest_add_text(digest, sb_fact_text(fact, text, sizeof text));
}

static void add_attribute(sb_digest *digest, const sb_attribute *attribute) {
    sb_digest_add_text(digest, attribute->name);
    sb_digest_add_integer(digest, attribute->kind);
    sb_digest_add_integer(digest, attribute->scalar);
    sb_digest_add_integer(digest, attribute->count);
    switch (attribute->kind) {
    case SB_ATTRIBUTE_INTS:
        for (int64_t i = 0; i < attribute->count; i++)
            sb_digest_add_integer(digest, attribute->ints[i]);
        break;
    case SB_ATTRIBUTE_FLOATS:
        for (int64_t i = 0; i < attribute->count; i++) {
            uint32_t bits;
            memcpy(&bits, &attribute->floats[i], sizeof bits);
            sb_digest_add_integer(digest, bits);
        }
        break;
    case SB_ATTRIBUTE_STRINGS:
        for (int64_t i = 0; i < attribute->count; i++)
            sb_digest_add_text(digest, attribute->strings[i]);
        break;
    case SB_ATTRIBUTE_TENSOR:
        sb_digest_add_tensor(digest, attribute->tensor);
        break;
    case SB_ATTRIBUTE_GRAPH:
        add_graph(digest, attribute->graph);
        break;
    }
}

static void add_ids(sb_digest *digest, size_t count, const sb_value_id *values) {
    sb_digest_add_integer(digest, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        sb_digest_add_integer(digest, values[i]);
}

static void add_uses(sb_digest *digest, size_t count, const sb_variable_use *uses) {
    sb_digest_add_integer(digest, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        sb_digest_add_integer(digest, uses[i].variable);
        sb_digest_add_integer(digest, uses[i].value);
    }
}

static void add_node(sb_digest *digest, const sb_node *node) {
    sb_digest_add_text(digest, node->op->domain);
    sb_digest_add_text(digest, node->op->name);
    sb_digest_add_integer(digest, node->version);
    add_ids(digest, (size_t)node->input_count, node->inputs);
    sb_digest_add_integer(digest, node->capture_count);
    add_ids(digest, (size_t)node->output_count, node->outputs);
    sb_digest_add_integer(digest, (int64_t)node->attributes.count);
    for (size_t i = 0; i < node->attributes.count; i++)
        add_attribute(digest, &node->attributes.items[i]);
}

/* Names of nodes and of inner values change no bit. Those of inputs and outputs are by what pairs are called. */
static void add_graph(sb_digest *digest, const sb_graph *graph) {
    sb_digest_add_integer(digest, (int64_t)graph->value_count);
    for (size_t v = 0; v < graph->value_count; v++) {
        const sb_value_info *info = &graph->values[v];
        bool constant = info->fact.constant != NULL && info->producer < 0;
        sb_digest_add_integer(digest, constant);
        if (constant)
            sb_digest_add_tensor(digest, info->fact.constant);
    }
    add_ids(digest, graph->input_count, graph->inputs);
    add_ids(digest, graph->output_count, graph->outputs);
    for (size_t i = 0; i < graph->input_count; i++) {
        sb_digest_add_text(digest, graph->values[graph->inputs[i]].name);
        add_fact(digest, &graph->values[graph->inputs[i]].fact);
    }
    for (size_t i = 0; i < graph->output_count; i++)
        sb_digest_add_text(digest, graph->values[graph->outputs[i]].name);
    add_uses(digest, graph->read_count, graph->reads);
    add_uses(digest, graph->update_count, graph->updates);
    sb_digest_add_integer(digest, (int64_t)graph->node_count);
    for (size_t n = 0; n < graph->node_count; n++)
        add_node(digest, graph->nodes[n]);
}

static void add_model(sb_digest *digest, const sb_model *model) {
    const sb_graphs *graphs = &model->graphs;
    sb_digest_add_integer(digest, (int64_t)graphs->variables.count);
    for (size_t i = 0; i < graphs->variables.count; i++) {
        sb_digest_add_text(digest, graphs->variables.items[i].name);
        add_fact(digest, &graphs->variables.items[i].fact);
        sb_digest_add_integer(digest, graphs->variables.items[i].slots);
    }
    sb_digest_add_integer(digest, (int64_t)graphs->count);
    for (size_t i = 0; i < graphs->count; i++) {
        sb_digest_add_text(digest, graphs->entries[i].name);
        add_graph(digest, graphs->entries[i].graph);
    }
}

/* Under the lock. */
static sb_status work_out(sb_model *model, sb_error *error) {
    sb_digest digest;
    if (model->digested)
        return SB_OK;
    SB_TRY(sb_digest_begin(&digest, error));
    add_model(&digest, model);
    SB_TRY(sb_digest_end(&digest, model->digest, error));
    model->digested = true;
    return SB_OK;
}

sb_status sb_model_digest(sb_model *model, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    pthread_mutex_lock(&model->digest_lock);
    sb_status status = work_out(model, error);
    if (status == SB_OK)
        memcpy(bytes, model->digest, SB_DIGEST_BYTES);
    pthread_mutex_unlock(&model->digest_lock);
    return status;
}
