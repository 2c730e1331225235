/* A digest over all of a model takes as long as reading it, and most models are never asked for theirs; but the passes
 * overwrite what it is of. So graphs are digested before the passes, without elements, and the constants noted. Those
 * that the passes have left in use are digested when somebody asks, and so are those of mapped files, which take no memory;
 * the few others right behind the passes, so that they need not be kept. */
#include "runtime/model_digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"

/* ---- graphs ---- */

typedef struct collector {
    sb_digest digest;
    sb_model *model;
    bool failed; /* memory has run out */
} collector;

/* Its elements come behind all graphs. */
static void note_constant(collector *all, sb_tensor *tensor) {
    sb_model *model = all->model;
    all->failed = all->failed || !sb_grow((void **)&model->constants, &model->constant_capacity,
                                          model->constant_count + 1, sizeof *model->constants);
    if (!all->failed)
        model->constants[model->constant_count++] = (sb_model_constant){.tensor = sb_tensor_retain(tensor)};
}

static void add_graph(collector *all, const sb_graph *graph, bool is_entry);

static void add_fact(sb_digest *digest, const sb_fact *fact) {
    char text[SB_FACT_TEXT_BYTES];
    sb_digest_add_text(digest, sb_fact_text(fact, text, sizeof text));
}

static void add_attribute(collector *all, const sb_attribute *attribute) {
    sb_digest *digest = &all->digest;
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
        note_constant(all, attribute->tensor);
        break;
    case SB_ATTRIBUTE_GRAPH:
        add_graph(all, attribute->graph, false);
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

static void add_node(collector *all, const sb_node *node) {
    sb_digest *digest = &all->digest;
    sb_digest_add_text(digest, node->op->domain);
    sb_digest_add_text(digest, node->op->name);
    sb_digest_add_integer(digest, node->version);
    add_ids(digest, (size_t)node->input_count, node->inputs);
    sb_digest_add_integer(digest, node->capture_count);
    add_ids(digest, (size_t)node->output_count, node->outputs);
    sb_digest_add_integer(digest, (int64_t)node->attributes.count);
    for (size_t i = 0; i < node->attributes.count; i++)
        add_attribute(all, &node->attributes.items[i]);
}

static bool is_input(const sb_graph *graph, sb_value_id value) {
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i] == value)
            return true;
    }
    return false;
}

/* Names of nodes and of inner values change no bit. Those of inputs and outputs are by what pairs are called. What is
 * known of the inputs of a graph inside of a node has been inferred, and other versions may infer more. */
static void add_graph(collector *all, const sb_graph *graph, bool is_entry) {
    sb_digest *digest = &all->digest;
    sb_digest_add_integer(digest, (int64_t)graph->value_count);
    for (size_t v = 0; v < graph->value_count; v++) {
        const sb_value_info *info = &graph->values[v];
        bool constant = info->fact.constant != NULL && info->producer < 0 && !is_input(graph, (sb_value_id)v);
        sb_digest_add_integer(digest, constant);
        if (constant)
            note_constant(all, info->fact.constant);
    }
    add_ids(digest, graph->input_count, graph->inputs);
    add_ids(digest, graph->output_count, graph->outputs);
    for (size_t i = 0; i < graph->input_count; i++) {
        sb_digest_add_text(digest, graph->values[graph->inputs[i]].name);
        if (is_entry)
            add_fact(digest, &graph->values[graph->inputs[i]].fact);
    }
    for (size_t i = 0; i < graph->output_count; i++)
        sb_digest_add_text(digest, graph->values[graph->outputs[i]].name);
    add_uses(digest, graph->read_count, graph->reads);
    add_uses(digest, graph->update_count, graph->updates);
    sb_digest_add_integer(digest, (int64_t)graph->node_count);
    for (size_t n = 0; n < graph->node_count; n++)
        add_node(all, graph->nodes[n]);
}

static void add_model(collector *all) {
    const sb_graphs *graphs = &all->model->graphs;
    sb_digest *digest = &all->digest;
    sb_digest_add_integer(digest, (int64_t)graphs->variables.count);
    for (size_t i = 0; i < graphs->variables.count; i++) {
        sb_digest_add_text(digest, graphs->variables.items[i].name);
        add_fact(digest, &graphs->variables.items[i].fact);
        sb_digest_add_integer(digest, graphs->variables.items[i].slots);
    }
    sb_digest_add_integer(digest, (int64_t)graphs->count);
    for (size_t i = 0; i < graphs->count; i++) {
        sb_digest_add_text(digest, graphs->entries[i].name);
        add_graph(all, graphs->entries[i].graph, true);
    }
}

sb_status sb_model_digest_graphs(sb_model *model, sb_error *error) {
    collector all = {.model = model};
    SB_TRY(sb_digest_begin(&all.digest, error));
    add_model(&all);
    SB_TRY(sb_digest_end(&all.digest, model->digest, error));
    return all.failed ? sb_fail_memory(error, (model->constant_count + 1) * sizeof *model->constants) : SB_OK;
}

/* ---- constants ---- */

static sb_status digest_constant(sb_model_constant *constant, sb_error *error) {
    sb_digest digest;
    if (constant->tensor == NULL)
        return SB_OK;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_tensor(&digest, constant->tensor);
    SB_TRY(sb_digest_end(&digest, constant->digest, error));
    sb_tensor_release(constant->tensor);
    constant->tensor = NULL;
    return SB_OK;
}

/* Memory that graphs use. */
typedef struct storages {
    size_t count, capacity;
    sb_storage **items;
    bool failed; /* memory has run out */
} storages;

static void add_storage(storages *used, const sb_tensor *tensor) {
    used->failed =
        used->failed || !sb_grow((void **)&used->items, &used->capacity, used->count + 1, sizeof(sb_storage *));
    if (!used->failed)
        used->items[used->count++] = tensor->storage;
}

static void add_storages(storages *used, const sb_graph *graph) {
    for (size_t v = 0; v < graph->value_count; v++) {
        if (graph->values[v].fact.constant != NULL)
            add_storage(used, graph->values[v].fact.constant);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_attributes *attributes = &graph->nodes[n]->attributes;
        for (size_t i = 0; i < attributes->count; i++) {
            if (attributes->items[i].kind == SB_ATTRIBUTE_TENSOR)
                add_storage(used, attributes->items[i].tensor);
            else if (attributes->items[i].kind == SB_ATTRIBUTE_GRAPH)
                add_storages(used, attributes->items[i].graph);
        }
    }
}

static int compare_storages(const void *left, const void *right) {
    uintptr_t first = (uintptr_t) * (sb_storage *const *)left;
    uintptr_t second = (uintptr_t) * (sb_storage *const *)right;
    return (first > second) - (first < second);
}

static bool is_used(const storages *used, const sb_tensor *tensor) {
    const sb_storage *storage = tensor->storage;
    return used->count != 0 && bsearch(&storage, used->items, used->count, sizeof storage, compare_storages) != NULL;
}

/* What more than one value shows is not to be freed for one of them. */
static void keep_shared(const storages *used) {
    for (size_t i = 1; i < used->count; i++) {
        if (used->items[i] == used->items[i - 1])
            used->items[i]->dispensable = false;
    }
}

sb_status sb_model_digest_dropped(sb_model *model, sb_error *error) {
    storages used = {0};
    sb_status status = SB_OK;
    for (size_t i = 0; i < model->graphs.count; i++)
        add_storages(&used, model->graphs.entries[i].graph);
    if (used.failed)
        status = sb_fail_memory(error, (used.count + 1) * sizeof(sb_storage *));
    else if (used.count != 0)
        qsort(used.items, used.count, sizeof(sb_storage *), compare_storages);
    keep_shared(&used);
    for (size_t i = 0; i < model->constant_count && status == SB_OK; i++) {
        if (!is_used(&used, model->constants[i].tensor) && !model->constants[i].tensor->storage->mapped)
            status = digest_constant(&model->constants[i], error);
    }
    sb_free(used.items);
    return status;
}

/* ---- the model's ---- */

void sb_model_digest_clear(sb_model *model) {
    for (size_t i = 0; i < model->constant_count; i++)
        sb_tensor_release(model->constants[i].tensor);
    sb_free(model->constants);
    model->constants = NULL;
    model->constant_count = model->constant_capacity = 0;
}

/* Under the lock. What has been digested when this fails need not be again. */
static sb_status work_out(sb_model *model, sb_error *error) {
    sb_digest digest;
    if (model->digested)
        return SB_OK;
    for (size_t i = 0; i < model->graphs.count; i++)
        SB_TRY(sb_program_keep_elements(model->entries[i].program, error));
    for (size_t i = 0; i < model->constant_count; i++)
        SB_TRY(digest_constant(&model->constants[i], error));
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_bytes(&digest, model->digest, sizeof model->digest);
    for (size_t i = 0; i < model->constant_count; i++)
        sb_digest_add_bytes(&digest, model->constants[i].digest, sizeof model->constants[i].digest);
    unsigned char bytes[SB_DIGEST_BYTES];
    SB_TRY(sb_digest_end(&digest, bytes, error));
    memcpy(model->digest, bytes, sizeof bytes);
    model->digested = true;
    sb_model_digest_clear(model);
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
