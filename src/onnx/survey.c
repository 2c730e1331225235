/* A look at all nodes before any is made: what is missing, what calls itself, and how much it will be. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

/* An operator that Samebit does not have. */
typedef struct missing_operator {
    const char *key; /* "domain:operator", in the arena */
    const Onnx__NodeProto *first;
    size_t count;
} missing_operator;

typedef struct survey {
    sb_importer *importer;
    size_t count, capacity;
    missing_operator *missing;
    sb_names names; /* keys, to index */
    int calls;      /* around the node in view */
} survey;

static sb_status visit_graph(survey *s, const Onnx__GraphProto *graph, size_t *cost, sb_error *error);

static void add_cost(size_t *cost, size_t more) {
    if (__builtin_add_overflow(*cost, more, cost))
        *cost = SIZE_MAX;
}

/* ---- missing operators ---- */

static sb_status note_missing(survey *s, const Onnx__NodeProto *node, sb_error *error) {
    const char *domain = sb_onnx_domain(node->domain);
    size_t bytes = strlen(domain) + strlen(node->op_type) + 2;
    char *key = sb_arena_allocate(&s->importer->arena, bytes);
    if (key == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(key, bytes, "%s:%s", domain, node->op_type);
    const int32_t *known = sb_names_find(&s->names, key);
    if (known != NULL) {
        s->missing[*known].count++;
        return SB_OK;
    }
    if (!sb_grow((void **)&s->missing, &s->capacity, s->count + 1, sizeof *s->missing) ||
        !sb_names_put(&s->names, key, (int32_t)s->count))
        return sb_fail_memory(error, sizeof *s->missing);
    s->missing[s->count++] = (missing_operator){key, node, 1};
    return SB_OK;
}

/* "Foo (3 nodes, the first is a/b)" for each; what does not fit into a message is counted. */
static sb_status report_missing(const survey *s, sb_error *error) {
    char list[SB_ERROR_MESSAGE_BYTES - 256];
    size_t used = 0, shown = 0;
    for (; shown < s->count; shown++) {
        const missing_operator *one = &s->missing[shown];
        bool standard = one->key[0] == ':';
        const char *name = one->first->name;
        if (name == NULL || name[0] == '\0')
            name = one->first->n_output != 0 ? one->first->output[0] : "unnamed";
        char text[256];
        snprintf(text, sizeof text, "%s%.80s (%zu node%s, first %.80s)", shown != 0 ? ", " : "", one->key + standard,
                 one->count, one->count == 1 ? "" : "s", name);
        size_t length = strlen(text);
        if (used + length + 1 > sizeof list)
            break;
        memcpy(list + used, text, length);
        used += length;
    }
    list[used] = '\0';
    char rest[48] = "";
    if (shown < s->count)
        snprintf(rest, sizeof rest, " and %zu more", s->count - shown);
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "the model uses %zu operator%s that Samebit lacks: %s%s", s->count,
                   s->count == 1 ? "" : "s", list, rest);
}

/* ---- the walk ---- */

static sb_status visit_attribute(survey *s, const Onnx__AttributeProto *a, size_t *cost, sb_error *error) {
    add_cost(cost, 256 + a->s.len + 8 * (a->n_ints + a->n_floats));
    for (size_t i = 0; i < a->n_strings; i++)
        add_cost(cost, 128 + a->strings[i].len);
    return a->g != NULL ? visit_graph(s, a->g, cost, error) : SB_OK;
}

static sb_status visit_function(survey *s, sb_onnx_function *function, size_t *cost, sb_error *error) {
    enum { NEW, INSIDE, DONE };
    const Onnx__FunctionProto *proto = function->proto;
    if (function->state == INSIDE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "function %.200s calls itself", proto->name);
    if (function->state == NEW && s->calls >= SB_ONNX_NESTING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "function calls lie more than %d deep in each other",
                       SB_ONNX_NESTING);
    if (function->state == NEW) {
        function->state = INSIDE;
        s->calls++;
        for (size_t i = 0; i < proto->n_node; i++) {
            const Onnx__GraphProto one = {.n_node = 1, .node = (Onnx__NodeProto **)&proto->node[i]};
            SB_TRY(visit_graph(s, &one, &function->cost, error));
        }
        s->calls--;
        function->state = DONE;
    }
    add_cost(cost, function->cost);
    return SB_OK;
}

static sb_status visit_node(survey *s, const Onnx__NodeProto *node, size_t *cost, sb_error *error) {
    if (node->op_type == NULL || node->op_type[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node '%.200s' has no operator",
                       node->name != NULL ? node->name : "");
    add_cost(cost, 1024 + 256 * (node->n_input + node->n_output));
    for (size_t i = 0; i < node->n_attribute; i++)
        SB_TRY(visit_attribute(s, node->attribute[i], cost, error));
    sb_onnx_function *function;
    SB_TRY(sb_onnx_function_of(s->importer, node, &function, error));
    if (function != NULL)
        return visit_function(s, function, cost, error);
    const char *domain = sb_onnx_domain(node->domain);
    bool constant = domain[0] == '\0' && strcmp(node->op_type, "Constant") == 0;
    if (!constant && sb_op_find(domain, node->op_type) == NULL)
        return note_missing(s, node, error);
    return SB_OK;
}

static sb_status visit_graph(survey *s, const Onnx__GraphProto *graph, size_t *cost, sb_error *error) {
    add_cost(cost, 2048 + 512 * (graph->n_initializer + graph->n_sparse_initializer));
    for (size_t i = 0; i < graph->n_node; i++)
        SB_TRY(visit_node(s, graph->node[i], cost, error));
    return SB_OK;
}

static sb_status look(survey *s, sb_error *error) {
    const sb_importer *importer = s->importer;
    size_t cost = 0;
    SB_TRY(visit_graph(s, importer->model->graph, &cost, error));
    if (s->count != 0)
        return report_missing(s, error);
    if (cost / 128 > importer->size && cost - 128 * importer->size > SB_ONNX_UNFOLDED_BYTES)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the model's functions call each other so often that %zu bytes of file unfold "
                       "to about %zu",
                       importer->size, cost);
    return SB_OK;
}

sb_status sb_onnx_survey(sb_importer *importer, sb_error *error) {
    survey s = {.importer = importer};
    sb_status status = look(&s, error);
    sb_names_clear(&s.names);
    sb_free(s.missing);
    return status;
}
