/* Nodes with inputs, written as text:
 *
 *     inputs      "f32[2,3]" (random in [-1, 1]), "s64[4]%3" (random in [0, 3)), "s64{1,2}" (a list),
 *                 "f32[2,2]{1,2,3,4}", "s64{}1" (a scalar); "" where omitted
 *     attributes  "axis=1 pads=[0,0,1,1] alpha=0.5 mode=linear" (a number with a point is a float)
 *
 * Include after cmocka.h. */
#ifndef SB_TESTS_MADE_CASES_H
#define SB_TESTS_MADE_CASES_H

#include <stdlib.h>

#include "rules/axis_case.h"
#include "support/random.h"

#define MADE_INPUTS 9

typedef struct made_case {
    const char *op;
    int version, outputs;
    const char *attributes;
    const char *inputs[MADE_INPUTS];
} made_case;

/* ---- tensors ---- */

static inline void store_number(sb_dtype dtype, char *data, int64_t at, double value) {
    size_t size = sb_dtype_size(dtype);
    float single = (float)value;
    int64_t whole = (int64_t)value;
    if (dtype == SB_F32)
        memcpy(data + (size_t)at * size, &single, size);
    else if (dtype == SB_F64)
        memcpy(data + (size_t)at * size, &value, size);
    else
        memcpy(data + (size_t)at * size, &whole, size); /* little-endian: the low bytes */
}

static inline sb_tensor *made_tensor(const char *text, random_source *random) {
    char name[8];
    int64_t dims[SB_MAX_RANK], elements = 1;
    int rank = 0, length = (int)strcspn(text, "[{");
    snprintf(name, sizeof name, "%.*s", length, text);
    sb_dtype dtype = sb_dtype_from_name(name);
    const char *at = text + length;
    while (*at == '[' || (rank > 0 && *at == ',')) {
        dims[rank] = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
        elements *= dims[rank++];
    }
    at += *at == ']';
    const char *list = *at == '{' ? at + 1 : NULL;
    if (list != NULL && rank == 0 && *list != '}') {
        dims[0] = 1;
        for (const char *c = list; *c != '}'; c++)
            dims[0] += *c == ',';
        elements = dims[0];
        rank = 1;
    }
    if (list != NULL && *list == '}')
        list++;
    int64_t below = *at == '%' ? strtoll(at + 1, NULL, 10) : 0;
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    for (int64_t i = 0; i < elements; i++) {
        double value = below > 0 ? (double)random_between(random, 0, below - 1)
                                 : (double)random_between(random, -1000, 1000) / 1000.0;
        if (list != NULL) {
            value = strtod(list, (char **)(uintptr_t)&list);
            list += *list == ',';
        } else if (below == 0 && !sb_dtype_is_float(dtype)) {
            value = (double)random_between(random, 0, 100);
        }
        store_number(dtype, tensor->data, i, value);
    }
    return tensor;
}

/* ---- attributes ---- */

static inline void made_attribute(sb_attributes *attributes, const char *text) {
    char name[40], word[40];
    int64_t ints[16];
    int64_t count = 0;
    const char *value = strchr(text, '=') + 1;
    snprintf(name, sizeof name, "%.*s", (int)(value - 1 - text), text);
    int length = (int)strcspn(value, " ");
    snprintf(word, sizeof word, "%.*s", length, value);
    if (*value == '[') {
        for (const char *at = value; *at == '[' || *at == ',';)
            ints[count++] = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
        MUST(sb_attributes_add_ints(attributes, name, false, count, ints, error));
    } else if (strchr("-0123456789", *value) == NULL) {
        const sb_string string = {word, (size_t)length};
        MUST(sb_attributes_add_strings(attributes, name, true, 1, &string, error));
    } else if (strchr(word, '.') != NULL) {
        float number = strtof(word, NULL);
        MUST(sb_attributes_add_floats(attributes, name, true, 1, &number, error));
    } else {
        ints[0] = strtoll(word, NULL, 10);
        MUST(sb_attributes_add_ints(attributes, name, true, 1, ints, error));
    }
}

/* ---- nodes ---- */

typedef struct made_node {
    sb_graph *graph;
    sb_value_id ids[MADE_INPUTS];
    sb_value *values; /* [values of the graph] */
} made_node;

/* A graph of one node, and its inputs' values. */
static inline void make_node_of(const made_case *made, made_node *result) {
    random_source random = {17};
    sb_tensor *tensors[MADE_INPUTS] = {NULL};
    sb_attributes attributes = {0};
    sb_value_id outputs[16];
    int count = 0;
    char name[16];
    MUST(sb_graph_create("made", &result->graph, error));
    for (int i = 0; i < MADE_INPUTS && made->inputs[i] != NULL; i++) {
        count = i + 1;
        result->ids[i] = SB_NO_VALUE;
        if (made->inputs[i][0] == '\0')
            continue;
        snprintf(name, sizeof name, "i%d", i);
        tensors[i] = made_tensor(made->inputs[i], &random);
        MUST(sb_graph_add_value(result->graph, name, &result->ids[i], error));
    }
    for (int o = 0; o < made->outputs; o++) {
        snprintf(name, sizeof name, "o%d", o);
        MUST(sb_graph_add_value(result->graph, name, &outputs[o], error));
    }
    for (const char *at = made->attributes; at != NULL && *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        made_attribute(&attributes, at);
    const sb_op *op = sb_op_find("", made->op);
    assert_non_null(op);
    MUST(sb_graph_add_node(result->graph, op, made->version, made->op, count, result->ids, 0, made->outputs, outputs,
                           &attributes, NULL, error));
    result->values = sb_allocate_array(result->graph->value_count, sizeof *result->values);
    for (int i = 0; i < count; i++) {
        if (tensors[i] != NULL)
            result->values[result->ids[i]] = sb_value_of_tensor(tensors[i]);
    }
}

static inline void clear_made(made_node *node) {
    release_values(node->graph, node->values);
    sb_graph_destroy(node->graph);
}

/* Runs the node and calls `visit` for it. */
static inline void run_made(const made_case *made, void (*visit)(void *context, axis_case *c), void *context) {
    made_node node;
    make_node_of(made, &node);
    MUST(run_nodes(node.graph, node.values, visit, context, error));
    clear_made(&node);
}

#endif
