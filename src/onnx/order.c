/* The order of a graph's nodes. The standard wants one in which they can run; some writers append nodes as they please.
 */
#include "base/allocation.h"
#include "onnx/importer.h"

enum { NEW, INSIDE, DONE };
/* What makes a value that is there before any node runs. */
#define NOBODY (-1)

typedef struct ordering {
    const Onnx__GraphProto *graph;
    sb_names makers; /* of values, to the node that makes them, or NOBODY */
    unsigned char *states;
    size_t *order, ordered;
    size_t *stack; /* nodes that wait for what makes their inputs */
    size_t late;   /* the first node that stands before one that it needs; the number of nodes: none */
    /* The nodes that node i needs are used[next[i]] and on, up to used[ends[i]]; next[i] moves behind those that are
     * done. */
    size_t *next, *ends, used_count, used_capacity;
    int32_t *used;
} ordering;

/* The first that has a name makes the value; a second is refused when it is read. */
static sb_status note_maker(ordering *o, const char *name, int32_t maker, sb_error *error) {
    if (name == NULL || name[0] == '\0' || sb_names_find(&o->makers, name) != NULL)
        return SB_OK;
    return sb_names_put(&o->makers, name, maker) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

static sb_status note_makers(ordering *o, sb_error *error) {
    const Onnx__GraphProto *graph = o->graph;
    for (size_t i = 0; i < graph->n_input; i++)
        SB_TRY(note_maker(o, graph->input[i]->name, NOBODY, error));
    for (size_t i = 0; i < graph->n_initializer; i++)
        SB_TRY(note_maker(o, graph->initializer[i]->name, NOBODY, error));
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t j = 0; j < graph->node[i]->n_output; j++)
            SB_TRY(note_maker(o, graph->node[i]->output[j], (int32_t)i, error));
    }
    return SB_OK;
}

/* ---- what a node uses ---- */

/* The values that a graph inside of a node defines, and those of graphs around that one. */
typedef struct inner_scope {
    const struct inner_scope *outer;
    sb_names names;
} inner_scope;

static bool is_inner(const inner_scope *scope, const char *name) {
    for (; scope != NULL; scope = scope->outer) {
        if (sb_names_find(&scope->names, name) != NULL)
            return true;
    }
    return false;
}

static sb_status note_use(ordering *o, const inner_scope *scope, const char *name, sb_error *error) {
    if (name == NULL || name[0] == '\0' || is_inner(scope, name))
        return SB_OK;
    const int32_t *maker = sb_names_find(&o->makers, name);
    if (maker == NULL || *maker == NOBODY)
        return SB_OK;
    if (!sb_grow((void **)&o->used, &o->used_capacity, o->used_count + 1, sizeof *o->used))
        return sb_fail_memory(error, sizeof *o->used);
    o->used[o->used_count++] = *maker;
    return SB_OK;
}

static sb_status note_uses(ordering *o, const inner_scope *scope, const Onnx__NodeProto *node, sb_error *error);

static sb_status define(inner_scope *scope, const char *name, sb_error *error) {
    if (name == NULL || name[0] == '\0' || sb_names_find(&scope->names, name) != NULL)
        return SB_OK;
    return sb_names_put(&scope->names, name, 0) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

static sb_status define_all(inner_scope *scope, const Onnx__GraphProto *graph, sb_error *error) {
    for (size_t i = 0; i < graph->n_input; i++)
        SB_TRY(define(scope, graph->input[i]->name, error));
    for (size_t i = 0; i < graph->n_initializer; i++)
        SB_TRY(define(scope, graph->initializer[i]->name, error));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__TensorProto *values = graph->sparse_initializer[i]->values;
        SB_TRY(define(scope, values != NULL ? values->name : NULL, error));
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t j = 0; j < graph->node[i]->n_output; j++)
            SB_TRY(define(scope, graph->node[i]->output[j], error));
    }
    return SB_OK;
}

/* Messages are nested at most as deep as wire.c lets them, which bounds this recursion. */
static sb_status note_inner_uses(ordering *o, const inner_scope *outer, const Onnx__GraphProto *graph,
                                 sb_error *error) {
    inner_scope scope = {.outer = outer};
    sb_status status = define_all(&scope, graph, error);
    for (size_t i = 0; i < graph->n_node && status == SB_OK; i++)
        status = note_uses(o, &scope, graph->node[i], error);
    for (size_t i = 0; i < graph->n_output && status == SB_OK; i++)
        status = note_use(o, &scope, graph->output[i]->name, error);
    sb_names_clear(&scope.names);
    return status;
}

static sb_status note_uses(ordering *o, const inner_scope *scope, const Onnx__NodeProto *node, sb_error *error) {
    for (size_t i = 0; i < node->n_input; i++)
        SB_TRY(note_use(o, scope, node->input[i], error));
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (node->attribute[i]->g != NULL)
            SB_TRY(note_inner_uses(o, scope, node->attribute[i]->g, error));
        for (size_t j = 0; j < node->attribute[i]->n_graphs; j++)
            SB_TRY(note_inner_uses(o, scope, node->attribute[i]->graphs[j], error));
    }
    return SB_OK;
}

static sb_status note_all_uses(ordering *o, sb_error *error) {
    size_t count = o->graph->n_node;
    o->late = count;
    for (size_t i = 0; i < count; i++) {
        o->next[i] = o->used_count;
        SB_TRY(note_uses(o, NULL, o->graph->node[i], error));
        o->ends[i] = o->used_count;
        for (size_t u = o->next[i]; u < o->ends[i] && o->late == count; u++) {
            if ((size_t)o->used[u] >= i)
                o->late = i;
        }
    }
    return SB_OK;
}

/* ---- sorting ---- */

static const char *called(const Onnx__NodeProto *node) {
    if (node->name != NULL && node->name[0] != '\0')
        return node->name;
    return node->n_output != 0 ? node->output[0] : "";
}

/* Puts a node behind those that it needs: depth first, with a stack of its own since chains are long. */
static sb_status place(ordering *o, size_t root, sb_error *error) {
    size_t depth = 0;
    o->stack[depth++] = root;
    o->states[root] = INSIDE;
    while (depth > 0) {
        size_t node = o->stack[depth - 1];
        while (o->next[node] < o->ends[node] && o->states[o->used[o->next[node]]] == DONE)
            o->next[node]++;
        if (o->next[node] == o->ends[node]) {
            o->states[node] = DONE;
            o->order[o->ordered++] = node;
            depth--;
            continue;
        }
        size_t needed = (size_t)o->used[o->next[node]];
        if (o->states[needed] == INSIDE)
            return sb_fail(
                error, SB_ERROR_INVALID_MODEL, "node '%.200s' (%.100s) needs its own output, by way of node '%.200s'",
                called(o->graph->node[needed]), o->graph->node[needed]->op_type, called(o->graph->node[node]));
        o->states[needed] = INSIDE;
        o->stack[depth++] = needed;
    }
    return SB_OK;
}

static sb_status find_order(ordering *o, sb_error *error) {
    size_t count = o->graph->n_node;
    o->order = sb_allocate_array(count, sizeof *o->order);
    o->next = sb_allocate_array(count, sizeof *o->next);
    o->ends = sb_allocate_array(count, sizeof *o->ends);
    o->stack = sb_allocate_array(count, sizeof *o->stack);
    o->states = sb_allocate_array(count, sizeof *o->states);
    if (o->order == NULL || o->next == NULL || o->ends == NULL || o->stack == NULL || o->states == NULL)
        return sb_fail_memory(error, count * sizeof *o->order);
    SB_TRY(note_makers(o, error));
    SB_TRY(note_all_uses(o, error));
    bool sorted = o->late == count; /* as nearly always */
    for (size_t i = 0; i < count; i++) {
        if (sorted)
            o->order[i] = i;
        else if (o->states[i] == NEW)
            SB_TRY(place(o, i, error));
    }
    return SB_OK;
}

sb_status sb_onnx_order(sb_importer *importer, const Onnx__GraphProto *graph, size_t **order, sb_error *error) {
    ordering o = {.graph = graph};
    sb_status status = find_order(&o, error);
    if (status == SB_OK && o.late < graph->n_node)
        status = sb_warn(importer->warnings, error,
                         "graph '%.200s': node '%.200s' stands before a node that it needs; nodes run in an order in "
                         "which they can",
                         graph->name != NULL ? graph->name : "", called(graph->node[o.late]));
    sb_names_clear(&o.makers);
    sb_free(o.next);
    sb_free(o.ends);
    sb_free(o.stack);
    sb_free(o.states);
    sb_free(o.used);
    if (status == SB_OK)
        *order = o.order;
    else
        sb_free(o.order);
    return status;
}
