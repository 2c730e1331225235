/* Fusing: a contraction with the element-wise nodes behind it, or a group of element-wise nodes, becomes one node. */
#include <string.h>

#include "base/allocation.h"
#include "ops/quantize.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* What the pass knows about the graph. */
typedef struct fusion {
    sb_graph *graph;
    bool *taken;         /* per node: in a group already */
    int *group_of_value; /* per value: 1 while made inside the group being built */
    sb_group_uses uses;
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

/* Quantized networks put every value through an integer: QuantizeLinear, and DequantizeLinear behind it. */
static bool is_single_quantization(const sb_graph *graph, const sb_node *node) {
    sb_quantize_single single;
    return (sb_node_is(node, "QuantizeLinear") || sb_node_is(node, "DequantizeLinear")) &&
           sb_only_output(node) != SB_NO_VALUE && sb_quantize_is_single(graph, NULL, node, &single);
}

/* BatchNormalization in inference is one multiply-add per element with factors per channel. */
static bool is_elementwise(const sb_graph *graph, const sb_node *node) {
    if ((node->op->flags & SB_OP_ELEMENTWISE) != 0 || is_single_quantization(graph, node))
        return true;
    int wanted = 0;
    for (int i = 0; i < node->output_count; i++)
        wanted += node->outputs[i] != SB_NO_VALUE;
    const sb_attribute *training = sb_attributes_find(&node->attributes, "training_mode");
    bool infers = training == NULL || (training->kind == SB_ATTRIBUTE_INTS && training->ints[0] == 0);
    return strcmp(node->op->name, "BatchNormalization") == 0 && wanted == 1 && infers;
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

/* Whether all that read a quantized value turn it back, so that the integers themselves need not be. */
static bool is_turned_back(const fusion *fusion, sb_value_id value) {
    const sb_group_uses *uses = &fusion->uses;
    if (sb_leaves_graph(fusion->graph, value))
        return false;
    for (size_t u = uses->first_use[value]; u < uses->first_use[value + 1]; u++) {
        const sb_node *reader = fusion->graph->nodes[uses->readers[u]];
        if (!sb_node_is(reader, "DequantizeLinear") || !is_single_quantization(fusion->graph, reader))
            return false;
    }
    return true;
}

/* Whether node `index` can join a group whose values have the shape of `shape`. */
static bool joins(const fusion *fusion, size_t index, const sb_fact *shape) {
    const sb_node *node = fusion->graph->nodes[index];
    if (fusion->taken[index] || !is_elementwise(fusion->graph, node) || sb_only_output(node) == SB_NO_VALUE)
        return false;
    if (sb_node_is(node, "QuantizeLinear") && !is_turned_back(fusion, sb_only_output(node)))
        return false;
    const sb_fact *fact = &fusion->graph->values[sb_only_output(node)].fact;
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
 * a fused body of its own, whose rows are longer: GELU behind BERT's first feed-forward product took 2.3 ms more per
 * layer as a part of the product. On a GPU an elementary function is some 60 instructions an element, at a time when the
 * block's tensor cores mostly wait. Of f32 the CPU's kernels have a step in registers for the first names alone; results
 * of 16 bits are rounded after each node on every side, by programs that have them all. */
static bool is_register_step(const sb_node *node, sb_dtype dtype) {
    static const char *const names[] = {"Add",       "Sub",        "Mul", "Div", "Relu", "Clip", "BatchNormalization",
                                        "HardSwish", "HardSigmoid"};
    static const char *const of_16_bits[] = {"Add", "Sub", "Mul", "Div", "Neg", "Relu", "Clip"};
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
 * bounds. What is more (x · clip(x + 3), as exporters write hard swish) needs values kept beside the running one, which
 * the registers of no kernel have room for: it is computed faster by itself, in long rows. As an epilogue that runs row
 * by row, it took 13.8 of the 15 ms of a convolution of 16 to 32 channels on 320 x 320 pixels. */
static bool goes_behind(const fusion *fusion, const sb_group *group, const sb_node *node, sb_dtype dtype) {
    sb_value_id last = sb_only_output(fusion->graph->nodes[group->nodes[group->count - 1]]);
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
        if (!is_last && fusion->group_of_value[node->inputs[i]])
            return false;
        if (narrow &&
            (fact->dtype != dtype || (strcmp(node->op->name, "Clip") == 0 && i > 0 && fact->constant == NULL)))
            return false;
    }
    return reads == 1;
}

/* Groups give floats: kernels compute in those, and an integer is one step on the way. */
static bool ends_in_integers(const fusion *fusion, const sb_group *group) {
    return sb_node_is(fusion->graph->nodes[group->nodes[group->count - 1]], "QuantizeLinear");
}

/* Grows a group from node `start`, then cuts it back to the longest closed beginning. */
static void grow(fusion *fusion, size_t start, sb_group *group) {
    sb_graph *graph = fusion->graph;
    const sb_fact *shape = &graph->values[sb_only_output(graph->nodes[start])].fact;
    *group = (sb_group){.count = 1, .nodes = {start}};
    fusion->group_of_value[sb_only_output(graph->nodes[start])] = 1;
    /* The next member is always a reader of a value in the group: look only at those, in graph order. */
    for (size_t next = start + 1; group->count < SB_GROUP_LIMIT; next++) {
        size_t found = SIZE_MAX;
        for (size_t i = 0; i < group->count; i++) {
            sb_value_id value = sb_only_output(graph->nodes[group->nodes[i]]);
            for (size_t u = fusion->uses.first_use[value]; u < fusion->uses.first_use[value + 1]; u++) {
                if (fusion->uses.readers[u] >= next && fusion->uses.readers[u] < found)
                    found = fusion->uses.readers[u];
            }
        }
        if (found == SIZE_MAX)
            break;
        next = found;
        if (joins(fusion, found, shape) && reads_group(fusion, graph->nodes[found]) &&
            (!is_contraction(graph->nodes[start]) || goes_behind(fusion, group, graph->nodes[found], shape->dtype))) {
            group->nodes[group->count++] = found;
            fusion->group_of_value[sb_only_output(graph->nodes[found])] = 1;
        }
    }
    for (size_t i = 0; i < group->count; i++)
        fusion->group_of_value[sb_only_output(graph->nodes[group->nodes[i]])] = 0;
    while (group->count > 1 && (ends_in_integers(fusion, group) || !sb_group_fits(graph, &fusion->uses, group)))
        group->count--;
}

/* ---- the pass ---- */

static bool starts_group(const fusion *fusion, size_t index, bool contractions) {
    const sb_node *node = fusion->graph->nodes[index];
    if (node == NULL || fusion->taken[index] || sb_only_output(node) == SB_NO_VALUE ||
        !is_plain(&fusion->graph->values[sb_only_output(node)].fact))
        return false;
    if (contractions)
        return is_contraction(node) && takes_nodes(node, fusion->graph->values[sb_only_output(node)].fact.dtype);
    return is_elementwise(fusion->graph, node) &&
           joins(fusion, index, &fusion->graph->values[sb_only_output(node)].fact);
}

static sb_status fuse_all(fusion *fusion, sb_error *error) {
    sb_graph *graph = fusion->graph;
    sb_group *groups = sb_allocate_array(graph->node_count, sizeof *groups);
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
        status = sb_group_fuse(graph, &groups[g], error);
    sb_free(groups);
    return status;
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
        status = sb_group_uses_find(graph, &fusion.uses, error);
    if (status == SB_OK)
        status = fuse_all(&fusion, error);
    sb_groups_close_gaps(graph);
    sb_free(fusion.taken);
    sb_free(fusion.group_of_value);
    sb_group_uses_clear(&fusion.uses);
    return status;
}
