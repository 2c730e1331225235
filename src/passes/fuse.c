/* Fusing: a contraction with the element-wise nodes behind it, or a group of element-wise nodes, becomes one node.
 *
 * A group is a set of nodes in graph order of which only the last one's output is seen outside. It takes the last
 * node's place; everything it reads is there by then. Nothing is rewritten: the group's nodes move into the new
 * node's body as they are. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* Longer groups gain nothing: intermediate rows already stay in the cache. */
#define GROUP_LIMIT 32

typedef struct group {
    size_t count;
    size_t nodes[GROUP_LIMIT]; /* indices, ascending */
    sb_value_id kept; /* behind a contraction of 16 bits: what is read again further on; SB_NO_VALUE: nothing */
} group;

/* What the pass knows about the graph. */
typedef struct fusion {
    sb_graph *graph;
    bool *taken;         /* per node: in a group already */
    int *group_of_value; /* per value: 1 while made inside the group being built */
    size_t *first_use;   /* per value: where its uses begin in `uses` */
    size_t *uses;        /* the nodes that read a value, ascending */
    /* Per value that may lie in a variable's bytes: the node that makes the variable's update; else SIZE_MAX. */
    size_t *updated_by;
} fusion;

static bool is_contraction(const sb_node *node) {
    static const char *const names[] = {"Conv", "MatMul", "Gemm"};
    if (node->op->domain[0] != '\0')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(node->op->name, names[i]) == 0)
            return true;
    }
    return false;
}

/* BatchNormalization in inference is one multiply-add per element with factors per channel. */
static bool is_elementwise(const sb_node *node) {
    if ((node->op->flags & SB_OP_ELEMENTWISE) != 0)
        return true;
    int wanted = 0;
    for (int i = 0; i < node->output_count; i++)
        wanted += node->outputs[i] != SB_NO_VALUE;
    const sb_attribute *training = sb_attributes_find(&node->attributes, "training_mode");
    bool infers = training == NULL || (training->kind == SB_ATTRIBUTE_INTS && training->ints[0] == 0);
    return strcmp(node->op->name, "BatchNormalization") == 0 && wanted == 1 && infers;
}

/* The node's only output, or SB_NO_VALUE. */
static sb_value_id only_output(const sb_node *node) {
    for (int i = 1; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            return SB_NO_VALUE;
    }
    return node->output_count > 0 ? node->outputs[0] : SB_NO_VALUE;
}

static bool is_plain(const sb_fact *fact) {
    return fact->kind == SB_KIND_TENSOR && !fact->optional && fact->rank != SB_RANK_UNKNOWN &&
           fact->dtype != SB_STRING && !sb_dtype_is_small(fact->dtype); /* which the GPU's groups cannot read */
}

static bool same_extents(const sb_fact *left, const sb_fact *right) {
    if (left->rank != right->rank)
        return false;
    for (int d = 0; d < left->rank; d++) {
        if (!sb_dim_equal(left->dims[d], right->dims[d]))
            return false;
    }
    return true;
}

/* Whether node `index` can join a group whose values have the shape of `shape`. */
static bool joins(const fusion *fusion, size_t index, const sb_fact *shape) {
    const sb_node *node = fusion->graph->nodes[index];
    if (fusion->taken[index] || !is_elementwise(node) || only_output(node) == SB_NO_VALUE)
        return false;
    const sb_fact *fact = &fusion->graph->values[only_output(node)].fact;
    if (!is_plain(fact) || !same_extents(fact, shape))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != SB_NO_VALUE && !is_plain(&fusion->graph->values[node->inputs[i]].fact))
            return false;
    }
    return true;
}

static bool is_of_16_bits(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16;
}

/* Contractions whose kernels, on every side, run the nodes behind them. */
static bool takes_nodes(const sb_node *contraction, sb_dtype dtype) {
    return dtype == SB_F32 || (is_of_16_bits(dtype) && strcmp(contraction->op->name, "Conv") != 0);
}

/* What the kernels of contractions apply to a result of that dtype before they store it. Anything else behind one makes
 * a fused body of its own, whose rows are longer: of f32, GELU behind BERT's first feed-forward product took 2.3 ms more
 * per layer as a part of the product, since the CPU's kernels have a step in registers for these names alone. Results of 16
 * bits are rounded after each node on every side, by programs that have them all. */
static bool is_register_step(const sb_node *node, sb_dtype dtype) {
    static const char *const names[] = {"Add",       "Sub",        "Mul", "Div", "Relu", "Clip", "BatchNormalization",
                                        "HardSwish", "HardSigmoid"};
    static const char *const of_16_bits[] = {"Add",  "Sub", "Mul",     "Div",  "Neg",  "Relu",
                                             "Clip", "Erf", "Sigmoid", "Tanh", "Gelu", "Swish"};
    bool narrow = is_of_16_bits(dtype);
    size_t count = narrow ? sizeof of_16_bits / sizeof of_16_bits[0] : sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++) {
        if (strcmp(node->op->name, narrow ? of_16_bits[i] : names[i]) == 0)
            return true;
    }
    return false;
}

static bool reads_group(const fusion *fusion, const sb_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != SB_NO_VALUE && fusion->group_of_value[node->inputs[i]])
            return true;
    }
    return false;
}

/* Whether a node can go behind what the group has so far, in the same kernel as its contraction: it reads the result of
 * the one before, once, and besides only values from outside; behind one of 16 bits only those of that dtype, or constant
 * bounds, and one earlier result of the group, the same for all of its nodes, as GELU and SiLU that exporters have taken
 * apart do. What is more (x · clip(x + 3), as exporters write hard swish) needs values kept beside the running one, which
 * the registers of no kernel have room for: it is computed faster by itself, in long rows. As an epilogue that runs row
 * by row, it took 13.8 of the 15 ms of a convolution of 16 to 32 channels on 320 x 320 pixels. */
static bool goes_behind(const fusion *fusion, group *group, const sb_node *node, sb_dtype dtype) {
    sb_value_id last = only_output(fusion->graph->nodes[group->nodes[group->count - 1]]), kept = group->kept;
    bool narrow = is_of_16_bits(dtype);
    int reads = 0;
    if (!is_register_step(node, dtype))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &fusion->graph->values[node->inputs[i]].fact;
        bool is_last = node->inputs[i] == last;
        reads += is_last;
        if (!is_last && fusion->group_of_value[node->inputs[i]]) {
            if (!narrow || (kept != SB_NO_VALUE && kept != node->inputs[i]))
                return false;
            kept = node->inputs[i];
        }
        if (narrow &&
            (fact->dtype != dtype || (strcmp(node->op->name, "Clip") == 0 && i > 0 && fact->constant == NULL)))
            return false;
    }
    if (reads == 0 || (reads > 1 && !narrow))
        return false;
    group->kept = kept;
    return true;
}

static bool contains(const group *group, size_t count, size_t node) {
    for (size_t i = 0; i < count; i++) {
        if (group->nodes[i] == node)
            return true;
    }
    return false;
}

/* Whether only the last of the first `count` nodes is read outside of them. */
static bool is_closed(const fusion *fusion, const group *group, size_t count) {
    for (size_t i = 0; i + 1 < count; i++) {
        sb_value_id value = only_output(fusion->graph->nodes[group->nodes[i]]);
        if (sb_leaves_graph(fusion->graph, value))
            return false;
        for (size_t u = fusion->first_use[value]; u < fusion->first_use[value + 1]; u++) {
            if (!contains(group, count, fusion->uses[u]))
                return false;
        }
    }
    return true;
}

/* Whether the first `count` nodes, moved to where the last of them is, put a reader of a variable's version behind the
 * node that makes its next one. */
static bool crosses_update(const fusion *fusion, const group *group, size_t count) {
    size_t place = group->nodes[count - 1];
    for (size_t i = 0; i + 1 < count; i++) {
        const sb_node *node = fusion->graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            size_t update = node->inputs[j] != SB_NO_VALUE ? fusion->updated_by[node->inputs[j]] : SIZE_MAX;
            if (group->nodes[i] < update && update < place)
                return true;
        }
    }
    return false;
}

/* Grows a group from node `start`, then cuts it back to the longest closed beginning. */
static void grow(fusion *fusion, size_t start, group *group) {
    sb_graph *graph = fusion->graph;
    const sb_fact *shape = &graph->values[only_output(graph->nodes[start])].fact;
    *group = (struct group){.count = 1, .nodes = {start}, .kept = SB_NO_VALUE};
    fusion->group_of_value[only_output(graph->nodes[start])] = 1;
    /* The next member is always a reader of a value in the group: look only at those, in graph order. */
    for (size_t next = start + 1; group->count < GROUP_LIMIT; next++) {
        size_t found = SIZE_MAX;
        for (size_t i = 0; i < group->count; i++) {
            sb_value_id value = only_output(graph->nodes[group->nodes[i]]);
            for (size_t u = fusion->first_use[value]; u < fusion->first_use[value + 1]; u++) {
                if (fusion->uses[u] >= next && fusion->uses[u] < found)
                    found = fusion->uses[u];
            }
        }
        if (found == SIZE_MAX)
            break;
        next = found;
        if (joins(fusion, found, shape) && reads_group(fusion, graph->nodes[found]) &&
            (!is_contraction(graph->nodes[start]) || goes_behind(fusion, group, graph->nodes[found], shape->dtype))) {
            group->nodes[group->count++] = found;
            fusion->group_of_value[only_output(graph->nodes[found])] = 1;
        }
    }
    for (size_t i = 0; i < group->count; i++)
        fusion->group_of_value[only_output(graph->nodes[group->nodes[i]])] = 0;
    while (group->count > 1 && (!is_closed(fusion, group, group->count) || crosses_update(fusion, group, group->count)))
        group->count--;
}

/* ---- moving a group into a node ---- */

/* A body under construction: for each value of the outer graph, its number inside plus one. */
typedef struct body {
    sb_graph *graph;
    sb_value_id *inside; /* per outer value; SB_NO_VALUE where not there yet */
    size_t input_count, input_capacity;
    sb_value_id *inputs; /* outer values that become inputs */
} body;

static sb_status enter_value(body *body, const sb_graph *graph, sb_value_id outer, bool is_input, sb_error *error) {
    if (body->inside[outer] != SB_NO_VALUE)
        return SB_OK;
    sb_value_id inner;
    SB_TRY(sb_graph_add_value(body->graph, graph->values[outer].name, &inner, error));
    SB_TRY(sb_fact_copy(&body->graph->values[inner].fact, &graph->values[outer].fact, error));
    body->inside[outer] = inner;
    if (!is_input)
        return SB_OK;
    /* Inside, a constant is an input like any other: its tensor stays with the outer graph. */
    sb_tensor_release(body->graph->values[inner].fact.constant);
    body->graph->values[inner].fact.constant = NULL;
    if (!sb_grow((void **)&body->inputs, &body->input_capacity, body->input_count + 1, sizeof *body->inputs))
        return sb_fail_memory(error, sizeof *body->inputs);
    body->inputs[body->input_count++] = outer;
    return sb_graph_add_input(body->graph, inner, error);
}

static sb_status enter_values(body *body, const sb_graph *graph, const group *group, sb_error *error) {
    for (size_t i = 0; i < group->count; i++) {
        const sb_node *node = graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != SB_NO_VALUE)
                SB_TRY(enter_value(body, graph, node->inputs[j], true, error));
        }
        SB_TRY(enter_value(body, graph, only_output(node), false, error));
    }
    if (!sb_grow((void **)&body->graph->nodes, &body->graph->node_capacity, group->count, sizeof *body->graph->nodes))
        return sb_fail_memory(error, group->count * sizeof *body->graph->nodes);
    sb_value_id last = only_output(graph->nodes[group->nodes[group->count - 1]]);
    return sb_graph_add_output(body->graph, body->inside[last], error);
}

/* Hands the nodes over; nothing can fail any more. */
static void move_nodes(body *body, sb_graph *graph, const group *group) {
    for (size_t i = 0; i < group->count; i++) {
        sb_node *node = graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != SB_NO_VALUE)
                node->inputs[j] = body->inside[node->inputs[j]];
        }
        for (int j = 0; j < node->output_count; j++) {
            if (node->outputs[j] != SB_NO_VALUE) {
                node->outputs[j] = body->inside[node->outputs[j]];
                body->graph->values[node->outputs[j]].producer = (int)body->graph->node_count;
            }
        }
        body->graph->nodes[body->graph->node_count++] = node;
        graph->nodes[group->nodes[i]] = NULL;
    }
}

static void fused_name(const sb_graph *graph, const group *group, char *name, size_t bytes) {
    size_t used = 0;
    for (size_t i = 0; i < group->count && used < bytes; i++)
        used += (size_t)snprintf(name + used, bytes - used, i == 0 ? "%s" : "+%s", graph->nodes[group->nodes[i]]->name);
}

/* Makes the new node in a temporary graph of its own, so that it can be put where the group's last node was. */
static sb_status create_node(body *body, sb_value_id output, const char *name, sb_node **node, sb_error *error) {
    sb_attributes attributes = {0};
    sb_graph *graph = body->graph;
    body->graph = NULL; /* the attribute owns it from here on */
    SB_TRY(sb_attributes_add_graph(&attributes, "body", graph, error));
    sb_node *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh != NULL) {
        fresh->op = sb_op_find("samebit", "Fused");
        fresh->name = sb_duplicate_string(name);
        fresh->inputs = sb_allocate_array(body->input_count, sizeof *fresh->inputs);
        fresh->outputs = sb_allocate_array(1, sizeof *fresh->outputs);
        fresh->attributes = attributes;
    } else {
        sb_attributes_clear(&attributes);
    }
    if (fresh == NULL || fresh->name == NULL || fresh->inputs == NULL || fresh->outputs == NULL) {
        sb_node_destroy(fresh);
        return sb_fail_memory(error, sizeof *fresh);
    }
    memcpy(fresh->inputs, body->inputs, body->input_count * sizeof *fresh->inputs);
    fresh->input_count = (int)body->input_count;
    fresh->outputs[0] = output;
    fresh->output_count = 1;
    *node = fresh;
    return SB_OK;
}

static sb_status fuse_group(sb_graph *graph, const group *group, sb_error *error) {
    char name[1024];
    fused_name(graph, group, name, sizeof name);
    size_t last = group->nodes[group->count - 1];
    sb_value_id output = only_output(graph->nodes[last]);
    body body = {.inside = sb_allocate_array(graph->value_count, sizeof *body.inside)};
    sb_status status = SB_OK;
    if (body.inside == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *body.inside);
    for (size_t v = 0; status == SB_OK && v < graph->value_count; v++)
        body.inside[v] = SB_NO_VALUE;
    if (status == SB_OK)
        status = sb_graph_create(name, &body.graph, error);
    if (status == SB_OK)
        status = enter_values(&body, graph, group, error);
    sb_graph *inner = body.graph;
    sb_node *node = NULL;
    if (status == SB_OK)
        status = create_node(&body, output, name, &node, error);
    if (status == SB_OK) {
        body.graph = inner;
        move_nodes(&body, graph, group);
        body.graph = NULL;
        graph->nodes[last] = node;
    }
    sb_graph_destroy(body.graph);
    sb_free(body.inside);
    sb_free(body.inputs);
    return status;
}

/* ---- the pass ---- */

static sb_status find_uses(fusion *fusion, sb_error *error) {
    const sb_graph *graph = fusion->graph;
    size_t total = 0;
    fusion->first_use = sb_allocate_array(graph->value_count + 2, sizeof *fusion->first_use);
    if (fusion->first_use == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *fusion->first_use);
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++) {
            if (graph->nodes[n]->inputs[i] != SB_NO_VALUE) {
                fusion->first_use[graph->nodes[n]->inputs[i] + 2]++;
                total++;
            }
        }
    }
    fusion->uses = sb_allocate_array(total, sizeof *fusion->uses);
    if (fusion->uses == NULL)
        return sb_fail_memory(error, total * sizeof *fusion->uses);
    for (size_t v = 0; v < graph->value_count; v++)
        fusion->first_use[v + 2] += fusion->first_use[v + 1];
    /* Filling moves each start up by one place, to where it belongs. */
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++) {
            if (graph->nodes[n]->inputs[i] != SB_NO_VALUE)
                fusion->uses[fusion->first_use[graph->nodes[n]->inputs[i] + 1]++] = n;
        }
    }
    return SB_OK;
}

static bool starts_group(const fusion *fusion, size_t index, bool contractions) {
    const sb_node *node = fusion->graph->nodes[index];
    if (node == NULL || fusion->taken[index] || only_output(node) == SB_NO_VALUE ||
        !is_plain(&fusion->graph->values[only_output(node)].fact))
        return false;
    if (contractions)
        return is_contraction(node) && takes_nodes(node, fusion->graph->values[only_output(node)].fact.dtype);
    return is_elementwise(node) && joins(fusion, index, &fusion->graph->values[only_output(node)].fact);
}

/* Notes for each version, and for what views make of it, where its variable's update is made. */
static sb_status find_updates(fusion *fusion, sb_error *error) {
    const sb_graph *graph = fusion->graph;
    fusion->updated_by = sb_allocate_array(graph->value_count, sizeof *fusion->updated_by);
    if (fusion->updated_by == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *fusion->updated_by);
    for (size_t v = 0; v < graph->value_count; v++)
        fusion->updated_by[v] = SIZE_MAX;
    for (size_t i = 0; i < graph->read_count; i++) {
        sb_value_id update = sb_graph_update_of(graph, graph->reads[i].variable);
        if (update != SB_NO_VALUE && graph->values[update].producer >= 0)
            fusion->updated_by[graph->reads[i].value] = (size_t)graph->values[update].producer;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        if ((node->op->flags & SB_OP_VIEW) != 0 && node->input_count > 0 && node->inputs[0] != SB_NO_VALUE &&
            only_output(node) != SB_NO_VALUE)
            fusion->updated_by[only_output(node)] = fusion->updated_by[node->inputs[0]];
    }
    return SB_OK;
}

static sb_status fuse_all(fusion *fusion, sb_error *error) {
    sb_graph *graph = fusion->graph;
    group *groups = sb_allocate_array(graph->node_count, sizeof *groups);
    if (groups == NULL)
        return sb_fail_memory(error, graph->node_count * sizeof *groups);
    size_t count = 0;
    /* Contractions first: an element-wise node behind one costs nothing there. */
    for (int contractions = 1; contractions >= 0; contractions--) {
        for (size_t n = 0; n < graph->node_count; n++) {
            if (!starts_group(fusion, n, contractions))
                continue;
            grow(fusion, n, &groups[count]);
            if (groups[count].count < 2)
                continue;
            for (size_t i = 0; i < groups[count].count; i++)
                fusion->taken[groups[count].nodes[i]] = true;
            count++;
        }
    }
    sb_status status = SB_OK;
    for (size_t g = 0; g < count && status == SB_OK; g++)
        status = fuse_group(graph, &groups[g], error);
    sb_free(groups);
    return status;
}

/* Numbers the nodes anew. Values that have moved into a body keep their places, but nobody makes them here. */
static void close_gaps(sb_graph *graph) {
    size_t kept = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        graph->values[v].producer = -1;
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        if (node == NULL)
            continue;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                graph->values[node->outputs[i]].producer = (int)kept;
        }
        graph->nodes[kept++] = node;
    }
    graph->node_count = kept;
}

sb_status sb_pass_fuse(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    fusion fusion = {.graph = graph,
                     .taken = sb_allocate_array(graph->node_count, sizeof *fusion.taken),
                     .group_of_value = sb_allocate_array(graph->value_count, sizeof *fusion.group_of_value)};
    sb_status status = SB_OK;
    if (fusion.taken == NULL || fusion.group_of_value == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *fusion.group_of_value);
    if (status == SB_OK)
        status = find_uses(&fusion, error);
    if (status == SB_OK)
        status = find_updates(&fusion, error);
    if (status == SB_OK)
        status = fuse_all(&fusion, error);
    close_gaps(graph);
    sb_free(fusion.taken);
    sb_free(fusion.group_of_value);
    sb_free(fusion.first_use);
    sb_free(fusion.uses);
    sb_free(fusion.updated_by);
    return status;
}
