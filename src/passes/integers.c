/* Products of quantized networks: a MatMul whose left operand comes from integers of 8 bits and whose weights are integers
 * times a unit for each column, with the QuantizeLinear and DequantizeLinear behind it, becomes one node that knows what its
 * left operand is made of (ops/integer_product.h). A kernel may then find out by sums of integers what f32 would give. */
#include <string.h>

#include "base/allocation.h"
#include "ops/integer_product.h"
#include "ops/quantize.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool is_named(const sb_node *node, const char *name) {
    return node->op->domain[0] == '\0' && strcmp(node->op->name, name) == 0;
}

static const sb_node *maker_of(const sb_graph *graph, sb_value_id value, size_t *number) {
    int producer = value != SB_NO_VALUE ? graph->values[value].producer : -1;
    if (producer < 0)
        return NULL;
    *number = (size_t)producer;
    return graph->nodes[producer];
}

static bool is_single(const sb_graph *graph, const sb_node *node, const char *name, sb_quantize_single *single) {
    return node != NULL && is_named(node, name) && sb_only_output(node) != SB_NO_VALUE &&
           sb_quantize_is_single(graph, NULL, node, single);
}

static bool is_scale(float scale) {
    return scale >= SB_INTEGER_PRODUCT_LEAST_SCALE && scale <= SB_INTEGER_PRODUCT_MOST_SCALE;
}

/* The integers that a value is made of, through whatever shows them in another way. */
static bool find_operand(const sb_graph *graph, sb_value_id value, sb_integer_operand *operand) {
    size_t number;
    const sb_node *maker = maker_of(graph, value, &number);
    while (maker != NULL && (maker->op->flags & SB_OP_VIEW) != 0 && maker->input_count > 0)
        maker = maker_of(graph, maker->inputs[0], &number);
    sb_quantize_single single;
    if (!is_single(graph, maker, "DequantizeLinear", &single))
        return false;
    *operand = (sb_integer_operand){single.scale, single.least - single.zero, single.most - single.zero};
    return is_scale(operand->scale) && operand->most - operand->least <= UINT8_MAX;
}

/* Whether the right operand is a matrix of such columns. */
static sb_status find_columns(const sb_graph *graph, sb_value_id value, bool *found, sb_error *error) {
    const sb_tensor *matrix = sb_is_constant(graph, value) ? graph->values[value].fact.constant : NULL;
    *found = false;
    if (matrix == NULL || matrix->dtype != SB_F32 || matrix->rank != 2 || matrix->dims[0] == 0 || matrix->dims[1] == 0 ||
        matrix->dims[0] > SB_INTEGER_PRODUCT_MOST_K)
        return SB_OK;
    float *units = sb_allocate_array((size_t)matrix->dims[1], sizeof *units);
    if (units == NULL)
        return sb_fail_memory(error, (size_t)matrix->dims[1] * sizeof *units);
    *found = sb_integer_columns_find(matrix, units);
    sb_free(units);
    return SB_OK;
}

/* A group, and what its product's left operand is made of. */
typedef struct integer_product {
    sb_group group;
    sb_integer_operand left;
} integer_product;

/* The product, QuantizeLinear and DequantizeLinear that end with node `last`, and whether they are one. */
static sb_status find_product(const sb_graph *graph, const sb_group_uses *uses, size_t last, integer_product *found, bool *is_one,
                              sb_error *error) {
    sb_quantize_single there, back;
    sb_group *group = &found->group;
    *is_one = false;
    if (!is_single(graph, graph->nodes[last], "DequantizeLinear", &back))
        return SB_OK;
    group->count = 3;
    group->nodes[2] = last;
    const sb_node *middle = maker_of(graph, graph->nodes[last]->inputs[0], &group->nodes[1]);
    if (!is_single(graph, middle, "QuantizeLinear", &there) || !is_scale(there.scale))
        return SB_OK;
    const sb_node *product = maker_of(graph, middle->inputs[0], &group->nodes[0]);
    if (product == NULL || !is_named(product, "MatMul") || !sb_group_fits(graph, uses, group))
        return SB_OK;
    const sb_fact *rows = &graph->values[product->inputs[0]].fact;
    if (rows->rank == SB_RANK_UNKNOWN || rows->rank < 2 || !find_operand(graph, product->inputs[0], &found->left))
        return SB_OK;
    return find_columns(graph, product->inputs[1], is_one, error);
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
        SB_TRY(sb_integer_operand_note(graph->nodes[products[i].group.nodes[2]], &products[i].left, error));
    }
    return SB_OK;
}

/* As many as DequantizeLinear nodes, at most. */
static size_t most_products(const sb_graph *graph) {
    size_t count = 1;
    for (size_t n = 0; n < graph->node_count; n++)
        count += is_named(graph->nodes[n], "DequantizeLinear");
    return count;
}

sb_status sb_pass_integers(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    sb_group_uses uses = {NULL, NULL, NULL};
    size_t most = most_products(graph);
    if (most == 1)
        return SB_OK;
    integer_product *products = sb_allocate_array(most, sizeof *products);
    sb_status status = products != NULL ? sb_group_uses_find(graph, &uses, error) : sb_fail_memory(error, most * sizeof *products);
    if (status == SB_OK)
        status = fuse_all(graph, &uses, products, error);
    sb_groups_close_gaps(graph);
    sb_group_uses_clear(&uses);
    sb_free(products);
    return status;
}
