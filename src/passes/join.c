/* Products of the same rows become one: the queries, keys and values of attention are three MatMuls that read one input, and so
 * are a gate and what it opens. Their weights are put side by side, and so are the biases behind them; what each product made is a view of its columns. Columns
 * do not see each other, so every bit stays. On a GPU two launches in three are saved, and the rows are fetched once.
 *
 * A view of some columns has gaps between its rows. Products are joined only where nobody minds: where what reads the view
 * takes any strides, or reads it through a Transpose, behind which elements do not lie side by side anyway. The weights must be
 * the model's own and have no other reader, so that they are not in memory twice; or lie in a mapped file, whose pages the system may
 * drop. Where they lie behind each other there, they are joined as they are. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* Products that are joined at once; what is more begins another. */
#define MOST_PRODUCTS 8
/* Views of columns begin at multiples of 16 bytes, as copies to tensor cores want it. */
#define COLUMN_UNIT 8

typedef struct product {
    size_t node;
    sb_value_id rows, weight, bias; /* bias SB_NO_VALUE: none */
    sb_value_id result;             /* behind the bias */
    int64_t columns;
} product;

/* ---- which products ---- */

static size_t count_uses(const sb_group_uses *uses, sb_value_id value) {
    return uses->first_use[value + 1] - uses->first_use[value];
}

static bool is_of_16_bits(const sb_fact *fact) {
    return fact->kind == SB_KIND_TENSOR && !fact->optional && (fact->dtype == SB_F16 || fact->dtype == SB_BF16);
}

/* A matrix of weights that goes away when it is joined with others. */
static bool is_own_matrix(const sb_graph *graph, const sb_group_uses *uses, sb_value_id value) {
    if (!sb_is_constant(graph, value) || count_uses(uses, value) != 1 || sb_leaves_graph(graph, value))
        return false;
    const sb_fact *fact = &graph->values[value].fact;
    const sb_tensor *tensor = fact->constant;
    bool goes = tensor->storage->dispensable || tensor->storage->mapped;
    return is_of_16_bits(fact) && tensor->rank == 2 && goes && tensor->dims[0] > 0 && tensor->dims[1] > 0 &&
           tensor->dims[1] % COLUMN_UNIT == 0;
}

static bool is_bias(const sb_graph *graph, sb_value_id value, sb_dtype dtype, int64_t columns) {
    const sb_tensor *tensor = sb_is_constant(graph, value) ? graph->values[value].fact.constant : NULL;
    return tensor != NULL && tensor->dtype == dtype && tensor->rank == 1 && tensor->dims[0] == columns;
}

/* Takes the Add of a bias behind the product along, if that is all that reads it. */
static void find_bias(const sb_graph *graph, const sb_group_uses *uses, product *product) {
    if (count_uses(uses, product->result) != 1 || sb_leaves_graph(graph, product->result))
        return;
    const sb_node *node = graph->nodes[uses->readers[uses->first_use[product->result]]];
    if (!sb_node_is(node, "Add") || node->outputs[0] == SB_NO_VALUE)
        return;
    sb_value_id bias = node->inputs[node->inputs[0] == product->result ? 1 : 0];
    if (is_bias(graph, bias, graph->values[product->result].fact.dtype, product->columns)) {
        product->bias = bias;
        product->result = node->outputs[0];
    }
}

/* Whether a Reshape cuts the columns up and leaves the rows alone: then it is a view of a view with gaps. */
static bool cuts_columns(const sb_fact *reshaped, int64_t columns) {
    int64_t extent, product = 1;
    for (int d = reshaped->rank - 1; d >= 0 && product < columns; d--) {
        if (!sb_dim_is_constant(reshaped->dims[d], &extent) || extent <= 0 || columns % extent != 0)
            return false;
        product *= extent;
    }
    return product == columns;
}

/* Whether the node reads its input `value` with any strides, wherever it may run, at about the cost of a dense one. */
static bool takes_strides(const sb_node *node, sb_value_id value) {
    static const char *const any[] = {"Transpose", "MatMul", "Concat", "SwiGLU"};
    static const char *const first[] = {"RotaryEmbedding", "RMSNormalization"};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        if (sb_node_is(node, any[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (sb_node_is(node, first[i]))
            return node->inputs[0] == value;
    }
    if (strcmp(node->op->domain, "samebit") != 0)
        return false;
    if (strcmp(node->op->name, "PagedAppend") == 0)
        return node->inputs[2] == value || node->inputs[3] == value || node->inputs[4] == value;
    return strcmp(node->op->name, "PagedScatter") == 0 && node->inputs[1] == value;
}

static bool readers_take_strides(const sb_graph *graph, const sb_group_uses *uses, sb_value_id value) {
    bool take = !sb_leaves_graph(graph, value);
    for (size_t u = uses->first_use[value]; take && u < uses->first_use[value + 1]; u++)
        take = takes_strides(graph->nodes[uses->readers[u]], value);
    return take;
}

/* The same of what a product makes, which may be cut into heads first. */
static bool readers_take_columns(const sb_graph *graph, const sb_group_uses *uses, const product *product) {
    sb_value_id value = product->result;
    bool take = !sb_leaves_graph(graph, value);
    for (size_t u = uses->first_use[value]; take && u < uses->first_use[value + 1]; u++) {
        const sb_node *reader = graph->nodes[uses->readers[u]];
        if (!sb_node_is(reader, "Reshape") || reader->inputs[0] != value || reader->outputs[0] == SB_NO_VALUE)
            take = takes_strides(reader, value);
        else
            take = cuts_columns(&graph->values[reader->outputs[0]].fact, product->columns) &&
                   readers_take_strides(graph, uses, reader->outputs[0]);
    }
    return take;
}

/* Whether node n is a product that may be joined with others. */
static bool find_product(const sb_graph *graph, const sb_group_uses *uses, size_t n, product *product) {
    const sb_node *node = graph->nodes[n];
    if (!sb_node_is(node, "MatMul") || node->outputs[0] == SB_NO_VALUE || !is_own_matrix(graph, uses, node->inputs[1]))
        return false;
    const sb_fact *rows = &graph->values[node->inputs[0]].fact, *weight = &graph->values[node->inputs[1]].fact;
    if (!is_of_16_bits(rows) || rows->dtype != weight->dtype || rows->rank == SB_RANK_UNKNOWN || rows->rank < 2 ||
        rows->constant != NULL)
        return false;
    product->node = n;
    product->rows = node->inputs[0];
    product->weight = node->inputs[1];
    product->columns = weight->constant->dims[1];
    product->bias = SB_NO_VALUE;
    product->result = node->outputs[0];
    find_bias(graph, uses, product);
    return readers_take_columns(graph, uses, product);
}

/* Whether weights lie in memory with their columns, not their rows, behind each other: a transposed matrix. */
static bool lies_by_columns(const sb_graph *graph, const product *product) {
    const sb_tensor *weight = graph->values[product->weight].fact.constant;
    return weight->dims[1] > 1 && weight->strides[1] != 1 && weight->strides[0] == 1;
}

static bool fit_together(const sb_graph *graph, const product *first, const product *other) {
    const sb_node *left = graph->nodes[first->node], *right = graph->nodes[other->node];
    return first->rows == other->rows && left->version == right->version &&
           (first->bias == SB_NO_VALUE) == (other->bias == SB_NO_VALUE) &&
           lies_by_columns(graph, first) == lies_by_columns(graph, other);
}

/* The products that are joined with that of node n; 0 or 1: none. */
static int find_products(const sb_graph *graph, const sb_group_uses *uses, size_t n, product *products) {
    if (!find_product(graph, uses, n, &products[0]))
        return 0;
    int count = 1;
    for (size_t u = uses->first_use[products[0].rows];
         u < uses->first_use[products[0].rows + 1] && count < MOST_PRODUCTS; u++) {
        size_t reader = uses->readers[u];
        bool later = reader > products[count - 1].node;
        if (later && find_product(graph, uses, reader, &products[count]) &&
            fit_together(graph, &products[0], &products[count]))
            count++;
    }
    return count;
}

/* ---- joining them ---- */

/* A name that no value and no node of the graph has. */
static void find_name(const sb_graph *graph, const char *what, const product *first, char *name, size_t bytes) {
    for (int attempt = 0;; attempt++) {
        bool taken = false;
        snprintf(name, bytes, "joined %s %d of %.150s", what, attempt, graph->nodes[first->node]->name);
        for (size_t v = 0; v < graph->value_count && !taken; v++)
            taken = graph->values[v].name != NULL && strcmp(graph->values[v].name, name) == 0;
        for (size_t n = 0; n < graph->node_count && !taken; n++)
            taken = strcmp(graph->nodes[n]->name, name) == 0;
        if (!taken)
            return;
    }
}

static sb_status add_value(sb_graph *graph, const char *what, const product *first, sb_value_id *value,
                           sb_error *error) {
    char name[256];
    find_name(graph, what, first, name, sizeof name);
    return sb_graph_add_value(graph, name, value, error);
}

/* Adds a tensor, whose reference is taken, as a constant. */
static sb_status add_constant(sb_graph *graph, sb_scope *scope, const char *what, const product *first,
                              sb_tensor *tensor, sb_value_id *value, sb_error *error) {
    char name[256];
    find_name(graph, what, first, name, sizeof name);
    sb_status status = sb_graph_add_constant(graph, scope, name, tensor, value, error);
    sb_tensor_release(tensor);
    return status;
}

/* Copies a constant to the columns of `to` that begin with the one given. */
static void copy_columns(const sb_tensor *to, int64_t begin, const sb_tensor *from) {
    sb_tensor part = *to;
    int last = to->rank - 1;
    part.dims[last] = from->dims[last];
    part.data = to->data + begin * to->strides[last] * (int64_t)sb_dtype_size(to->dtype);
    sb_tensor_copy_elements(&part, from);
}

static void release_tensor(void *context) {
    sb_tensor_release(context);
}

/* Whether the weights lie in one mapped file by columns, each behind the one before: together they are a matrix already. */
static bool lie_behind_each_other(const sb_graph *graph, const product *products, int count) {
    const sb_tensor *first = graph->values[products[0].weight].fact.constant;
    const char *end = first->data;
    bool do_so = lies_by_columns(graph, &products[0]);
    for (int i = 0; i < count && do_so; i++) {
        const sb_tensor *weight = graph->values[products[i].weight].fact.constant;
        const sb_storage *storage = weight->storage;
        do_so = storage->mapped && storage->context == first->storage->context && weight->data == end &&
                weight->strides[1] == first->dims[0];
        end += weight->dims[0] * weight->dims[1] * (int64_t)sb_dtype_size(weight->dtype);
    }
    return do_so;
}

/* Then the file is shown once more, which the first of them keeps mapped. */
static sb_status show_together(sb_tensor *first, int64_t columns, sb_tensor **joined, sb_error *error) {
    const int64_t dims[] = {first->dims[0], columns}, strides[] = {1, first->dims[0]};
    SB_TRY(sb_tensor_wrap(first->dtype, 2, dims, strides, first->data, release_tensor, first, joined, error));
    sb_tensor_retain(first);
    (*joined)->storage->mapped = true;
    return SB_OK;
}

/* Has a weight look at its columns of the joined ones in place of memory of its own, which goes: who asks for the model's digest
 * later, before which weights are noted, finds the same elements there. */
static void look_at_joined(sb_tensor *weight, const sb_tensor *joined, int64_t begin) {
    sb_storage *own = weight->storage;
    weight->storage = sb_storage_retain(joined->storage);
    weight->data = joined->data + begin * joined->strides[1] * (int64_t)sb_dtype_size(joined->dtype);
    memcpy(weight->strides, joined->strides, 2 * sizeof *joined->strides);
    sb_storage_release(own);
}

/* Constants of the products side by side; in memory as the first of them lies. */
static sb_status put_side_by_side(const sb_graph *graph, const product *products, int count, bool biases,
                                  bool by_columns, sb_tensor **joined, sb_error *error) {
    sb_tensor *first = graph->values[biases ? products[0].bias : products[0].weight].fact.constant;
    int64_t columns = 0, begin = 0;
    for (int i = 0; i < count; i++) {
        if (__builtin_add_overflow(columns, products[i].columns, &columns))
            return sb_fail_memory(error, SIZE_MAX);
    }
    if (!biases && lie_behind_each_other(graph, products, count))
        return show_together(first, columns, joined, error);
    if (first->rank == 1)
        SB_TRY(sb_tensor_create_uninitialised(first->dtype, 1, &columns, joined, error));
    else if (!by_columns)
        SB_TRY(sb_tensor_create_uninitialised(first->dtype, 2, (int64_t[]){first->dims[0], columns}, joined, error));
    else
        SB_TRY(sb_tensor_create_uninitialised(first->dtype, 2, (int64_t[]){columns, first->dims[0]}, joined, error));
    if (by_columns && first->rank == 2) {
        sb_tensor *turned;
        sb_status status = sb_tensor_transpose(*joined, (int[]){1, 0}, &turned, error);
        sb_tensor_release(*joined);
        SB_TRY(status);
        *joined = turned;
    }
    for (int i = 0; i < count; i++) {
        sb_tensor *part = graph->values[biases ? products[i].bias : products[i].weight].fact.constant;
        copy_columns(*joined, begin, part);
        /* What lies by columns is never packed in place of its elements (runtime/program_elements.c), and may be seen twice. */
        if (by_columns && part->rank == 2 && part->storage->dispensable)
            look_at_joined(part, *joined, begin);
        begin += products[i].columns;
    }
    (*joined)->storage->dispensable = true;
    return SB_OK;
}

static sb_status add_node(sb_graph *graph, sb_scope *scope, const char *op, int version, const product *first,
                          const sb_value_id inputs[2], int output_count, const sb_value_id *outputs,
                          sb_attributes *attributes, sb_error *error) {
    char name[256];
    sb_node *node;
    find_name(graph, op, first, name, sizeof name);
    sb_status status = sb_graph_add_node(graph, sb_op_find("", op), version, name, 2, inputs, 0, output_count, outputs,
                                         attributes, &node, error);
    if (status != SB_OK)
        sb_attributes_clear(attributes);
    return status == SB_OK ? sb_graph_infer_node(graph, node, scope, error) : status;
}

static sb_status add_product(sb_graph *graph, sb_scope *scope, const product *products, int count, bool biases,
                             sb_value_id left, sb_value_id *result, sb_error *error) {
    sb_tensor *joined;
    sb_value_id right;
    sb_attributes none = {0};
    const char *op = biases ? "Add" : "MatMul";
    SB_TRY(put_side_by_side(graph, products, count, biases, lies_by_columns(graph, &products[0]), &joined, error));
    SB_TRY(add_constant(graph, scope, biases ? "biases" : "weights", &products[0], joined, &right, error));
    SB_TRY(add_value(graph, biases ? "sums" : "products", &products[0], result, error));
    return add_node(graph, scope, op, graph->nodes[products[0].node]->version, &products[0],
                    (sb_value_id[]){left, right}, 1, result, &none, error);
}

/* What the products made, as views of `joined`. */
static sb_status add_views(sb_graph *graph, sb_scope *scope, const product *products, int count, sb_value_id joined,
                           sb_error *error) {
    sb_tensor *sizes;
    sb_value_id inputs[2] = {joined, SB_NO_VALUE}, results[MOST_PRODUCTS];
    sb_attributes attributes = {0};
    SB_TRY(sb_tensor_create(SB_S64, 1, (int64_t[]){count}, &sizes, error));
    for (int i = 0; i < count; i++) {
        ((int64_t *)sb_tensor_mutable_data(sizes))[i] = products[i].columns;
        results[i] = products[i].result;
    }
    SB_TRY(add_constant(graph, scope, "sizes", &products[0], sizes, &inputs[1], error));
    SB_TRY(sb_attributes_add_ints(&attributes, "axis", true, 1, (int64_t[]){-1}, error));
    return add_node(graph, scope, "Split", 13, &products[0], inputs, count, results, &attributes, error);
}

/* Nobody is to make a product's results but the views. */
static void drop_product(sb_graph *graph, const product *product, sb_node *node) {
    for (size_t n = 0; product->bias != SB_NO_VALUE && n < graph->node_count; n++) {
        sb_node *other = graph->nodes[n];
        if (other != NULL && sb_node_is(other, "Add") && other->outputs[0] == product->result) {
            sb_node_destroy(other);
            graph->nodes[n] = NULL;
        }
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        if (graph->nodes[n] == node)
            graph->nodes[n] = NULL;
    }
    sb_node_destroy(node);
}

static sb_status join_products(sb_graph *graph, sb_scope *scope, const product *products, int count, sb_error *error) {
    size_t fresh = graph->node_count;
    sb_node *old[MOST_PRODUCTS];
    sb_value_id joined;
    for (int i = 0; i < count; i++)
        old[i] = graph->nodes[products[i].node];
    SB_TRY(add_product(graph, scope, products, count, false, products[0].rows, &joined, error));
    if (products[0].bias != SB_NO_VALUE)
        SB_TRY(add_product(graph, scope, products, count, true, joined, &joined, error));
    SB_TRY(add_views(graph, scope, products, count, joined, error));
    SB_TRY(sb_rewrite_move(graph, fresh, products[0].node, error));
    for (int i = 0; i < count; i++)
        drop_product(graph, &products[i], old[i]);
    sb_groups_close_gaps(graph);
    return SB_OK;
}

/* Joins whatever is found, with who reads what known anew behind each. */
static sb_status join_all(sb_graph *graph, sb_scope *scope, sb_group_uses *uses, bool *any, sb_error *error) {
    for (size_t n = 0; n < graph->node_count; n++) {
        product products[MOST_PRODUCTS];
        int count = find_products(graph, uses, n, products);
        if (count < 2)
            continue;
        *any = true;
        SB_TRY(join_products(graph, scope, products, count, error));
        sb_group_uses_clear(uses);
        SB_TRY(sb_group_uses_find(graph, uses, error));
    }
    return SB_OK;
}

sb_status sb_pass_join(sb_graph *graph, sb_scope *scope, sb_error *error) {
    bool any = false;
    sb_group_uses uses = {NULL, NULL, NULL};
    sb_status status = sb_group_uses_find(graph, &uses, error);
    if (status == SB_OK)
        status = join_all(graph, scope, &uses, &any, error);
    sb_group_uses_clear(&uses);
    return status == SB_OK && any ? sb_pass_sweep(graph, scope, error) : status; /* the single weights go */
}
