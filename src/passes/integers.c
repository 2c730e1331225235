/* Products of quantized networks: a MatMul, Gemm or Conv whose left operand comes from integers of 8 bits and whose weights are
 * integers times a unit for each column, with Relu, QuantizeLinear and DequantizeLinear behind it, becomes one node that knows what its
 * left operand is made of (ops/integer_product.h). A kernel may then find out by sums of integers what f32 would give. */
#include <string.h>

#include "base/allocation.h"
#include "ops/integer_product.h"
#include "ops/quantize.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool is_single(const sb_graph *graph, const sb_node *node, const char *name, sb_quantize_single *single) {
    return node != NULL && sb_node_is(node, name) && sb_only_output(node) != SB_NO_VALUE &&
           sb_quantize_is_single(graph, NULL, node, single);
}

static bool is_scale(float scale) {
    return scale >= SB_INTEGER_PRODUCT_LEAST_SCALE && scale <= SB_INTEGER_PRODUCT_MOST_SCALE;
}

/* The integers that a value is made of, through whatever shows them in another way. */
static bool find_operand(const sb_graph *graph, sb_value_id value, sb_integer_operand *operand) {
    size_t number;
    const sb_node *maker = sb_maker_of(graph, value, &number);
    while (maker != NULL && (maker->op->flags & SB_OP_VIEW) != 0 && maker->input_count > 0)
        maker = sb_maker_of(graph, maker->inputs[0], &number);
    sb_quantize_single single;
    if (!is_single(graph, maker, "DequantizeLinear", &single))
        return false;
    *operand = (sb_integer_operand){single.scale, single.least - single.zero, single.most - single.zero};
    return is_scale(operand->scale) && operand->most - operand->least <= UINT8_MAX;
}

/* Fewer channels at a position, or fewer results, leave most of a vector of integers empty; and what is asked of each sum takes as
 * long as the f32 products of a short chain: MobileNetV2, whose chains have 16 to 960 products, took 3.9 ms and with all of them 4.7. */
#define LEAST_CHANNELS 16
#define LEAST_COLUMNS 16
#define LEAST_PRODUCTS 192

/* Whether a bias is left out, or a number for each column that is known and of a size like the scales'. */
static bool is_bias(const sb_graph *graph, const sb_node *product, int64_t columns) {
    if (product->input_count < 3 || product->inputs[2] == SB_NO_VALUE)
        return true;
    const sb_tensor *bias =
        sb_is_constant(graph, product->inputs[2]) ? graph->values[product->inputs[2]].fact.constant : NULL;
    if (bias == NULL || bias->dtype != SB_F32 || bias->rank != 1 || bias->dims[0] != columns)
        return false;
    for (int64_t j = 0; j < columns; j++) {
        float value = ((const float *)(const void *)bias->data)[j * bias->strides[0]];
        if (!(value <= SB_INTEGER_PRODUCT_MOST_SCALE && value >= -SB_INTEGER_PRODUCT_MOST_SCALE))
            return false;
    }
    return true;
}

/* Whether the right operand is a matrix of such columns. */
static sb_status find_columns(const sb_graph *graph, const sb_node *product, bool *found, sb_error *error) {
    const sb_value_id value = product->inputs[1];
    const sb_tensor *weights = sb_is_constant(graph, value) ? graph->values[value].fact.constant : NULL;
    sb_integer_weights shape;
    *found = false;
    if (weights == NULL || weights->dtype != SB_F32 || !sb_integer_weights_of(product, weights, &shape) ||
        shape.taps == 0 || shape.channels == 0 || shape.columns < LEAST_COLUMNS ||
        shape.channels > SB_INTEGER_PRODUCT_MOST_K / shape.taps || shape.channels < LEAST_PRODUCTS / shape.taps ||
        (sb_node_is(product, "Conv") && shape.channels < LEAST_CHANNELS) || sb_integer_chunk(&shape) == 0 ||
        !is_bias(graph, product, shape.columns))
        return SB_OK;
    float *units = sb_allocate_array((size_t)shape.columns, sizeof *units);
    if (units == NULL)
        return sb_fail_memory(error, (size_t)shape.columns * sizeof *units);
    *found = sb_integer_columns_find((const float *)(const void *)weights->data, &shape, units);
    sb_free(units);
    return SB_OK;
}

/* A group, and what its product's left operand is made of. */
typedef struct integer_product {
    sb_group group;
    sb_integer_operand left;
} integer_product;

static void put_first(sb_group *group, size_t node) {
    for (size_t i = group->count++; i > 0; i--)
        group->nodes[i] = group->nodes[i - 1];
    group->nodes[0] = node;
}

/* Whether it is one of rows of a left operand, in f32. */
static bool is_product(const sb_graph *graph, const sb_node *node) {
    const sb_fact *left = &graph->values[node->inputs[0]].fact;
    bool known = left->kind == SB_KIND_TENSOR && left->rank != SB_RANK_UNKNOWN && left->dtype == SB_F32;
    return known &&
           ((sb_node_is(node, "MatMul") && left->rank >= 2) || sb_node_is(node, "Gemm") || sb_node_is(node, "Conv"));
}

/* The product, QuantizeLinear and DequantizeLinear that end with node `last`, and whether they are one. */
static sb_status find_product(const sb_graph *graph, const sb_group_uses *uses, size_t last, integer_product *found,
                              bool *is_one, sb_error *error) {
    sb_quantize_single there, back;
    sb_group *group = &found->group;
    *is_one = false;
    if (!is_single(graph, graph->nodes[last], "DequantizeLinear", &back))
        return SB_OK;
    size_t number;
    const sb_node *node = sb_maker_of(graph, graph->nodes[last]->inputs[0], &number);
    if (!is_single(graph, node, "QuantizeLinear", &there) || !is_scale(there.scale))
        return SB_OK;
    *group = (sb_group){.count = 2, .nodes = {number, last}};
    node = sb_maker_of(graph, node->inputs[0], &number);
    if (node != NULL && sb_node_is(node, "Relu")) {
        put_first(group, number);
        node = sb_maker_of(graph, node->inputs[0], &number);
    }
    if (node == NULL || sb_only_output(node) == SB_NO_VALUE || !is_product(graph, node))
        return SB_OK;
    put_first(group, number);
    if (!sb_group_fits(graph, uses, group) || !find_operand(graph, node->inputs[0], &found->left))
        return SB_OK;
    return find_columns(graph, node, is_one, error);
}

/* All are found before the first is moved, as one's end may be where another's operand is made. */
static sb_status fuse_all(sb_graph *graph, const sb_group_uses *uses, integer_product *products, sb_error *error) {
    size_t count = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        bool is_one;
        SB_TRY(find_product(graph, uses, n, &products[count], &is_one, error));
        count += is_one;
    }
    for (size_t i = 0; i < count; i++) {
        SB_TRY(sb_group_fuse(graph, &products[i].group, error));
        SB_TRY(sb_integer_operand_note(graph->nodes[products[i].group.nodes[products[i].group.count - 1]],
                                       &products[i].left, error));
    }
    return SB_OK;
}

/* As many as DequantizeLinear nodes, at most. */
static size_t most_products(const sb_graph *graph) {
    size_t count = 1;
    for (size_t n = 0; n < graph->node_count; n++)
        count += sb_node_is(graph->nodes[n], "DequantizeLinear");
    return count;
}

sb_status sb_pass_integers(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    sb_group_uses uses = {NULL, NULL, NULL};
    size_t most = most_products(graph);
    if (most == 1)
        return SB_OK;
    integer_product *products = sb_allocate_array(most, sizeof *products);
    sb_status status =
        products != NULL ? sb_group_uses_find(graph, &uses, error) : sb_fail_memory(error, most * sizeof *products);
    if (status == SB_OK)
        status = fuse_all(graph, &uses, products, error);
    sb_groups_close_gaps(graph);
    sb_group_uses_clear(&uses);
    sb_free(products);
    return status;
}
