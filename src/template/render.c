/* Rendering: statements, loops and macros. */
#include "base/allocation.h"
#include "template/tree.h"

/* How a body ended: break and continue go out to the loop around them. */
typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

static sb_status render_body(sb_jinja *jinja, const sb_jinja_nodes *body, flow *flow);

/* ---- setting ---- */

static sb_status assign_member(sb_jinja *jinja, const sb_jinja_node *target, sb_jinja_value value) {
    sb_jinja_value object, key = {.kind = SB_JINJA_TEXT, .text = target->member};
    SB_TRY(sb_jinja_look_up(jinja, target->name, &object));
    if (object.kind != SB_JINJA_NAMESPACE)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT,
                             "attributes can be set of a namespace, and '%.*s' is none",
                             (int)(target->name->bytes < 100 ? target->name->bytes : 100), target->name->data);
    if (target->member->data[0] == '_')
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a namespace has no attributes that begin with '_'");
    return sb_jinja_put(jinja, object.dict, key, value);
}

static sb_status assign(sb_jinja *jinja, const sb_jinja_node *target, sb_jinja_value value) {
    sb_jinja_list *list;
    jinja->line = target->line;
    if (target->kind == SB_JINJA_NAME)
        return sb_jinja_bind(jinja, target->name, value);
    if (target->kind == SB_JINJA_MEMBER_TARGET)
        return assign_member(jinja, target, value);
    SB_TRY(sb_jinja_collect(jinja, value, &list));
    if (list->count != target->children.count)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "%zu values for %zu names", list->count,
                             target->children.count);
    SB_TRY(sb_jinja_enter(jinja));
    for (size_t i = 0; i < list->count; i++)
        SB_TRY(assign(jinja, target->children.items[i], list->items[i]));
    jinja->depth--;
    return SB_OK;
}

/* A body in a scope of its own, as text. */
static sb_status capture(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_scope *scope, sb_jinja_value *text,
                         flow *flow) {
    sb_jinja_scope *before = jinja->scope;
    size_t begin = sb_jinja_begin(jinja);
    if (scope != NULL)
        jinja->scope = scope;
    else
        SB_TRY(sb_jinja_open_scope(jinja, before, &node->hidden));
    SB_TRY(render_body(jinja, &node->body, flow));
    SB_TRY(sb_jinja_take(jinja, begin, text));
    jinja->scope = before;
    return SB_OK;
}

static sb_status render_set(sb_jinja *jinja, const sb_jinja_node *node, flow *flow) {
    sb_jinja_value value;
    if (node->kind == SB_JINJA_SET)
        SB_TRY(sb_jinja_evaluate(jinja, node->second, &value));
    else
        SB_TRY(capture(jinja, node, NULL, &value, flow));
    /* (A break inside a block that is set leaves what it would have set.) */
    return *flow == FLOW_ON ? assign(jinja, node->first, value) : SB_OK;
}

/* ---- macros ---- */

static sb_status define_macro(sb_jinja *jinja, const sb_jinja_node *node) {
    sb_jinja_macro *macro;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *macro, &macro));
    *macro = (sb_jinja_macro){node, jinja->scope};
    return sb_jinja_bind(jinja, node->name, (sb_jinja_value){.kind = SB_JINJA_MACRO, .macro = macro});
}

static bool same_name(const sb_jinja_text *left, const sb_jinja_text *right) {
    return left->bytes == right->bytes && memcmp(left->data, right->data, left->bytes) == 0;
}

/* Binds arguments to parameters, in the macro's scope. */
static sb_status bind_arguments(sb_jinja *jinja, const sb_jinja_node *node, const sb_jinja_arguments *arguments) {
    for (size_t i = 0; i < node->names.count; i++)
        SB_TRY(sb_jinja_bind(jinja, node->names.items[i], (sb_jinja_value){.kind = SB_JINJA_MISSING}));
    SB_TRY(sb_jinja_spend(jinja, arguments->count * node->names.count / 8));
    for (size_t i = 0; i < arguments->count; i++) {
        const sb_jinja_text *name = arguments->names[i];
        size_t at = i;
        for (at = name != NULL ? 0 : i; name != NULL && at < node->names.count; at++) {
            if (same_name(name, node->names.items[at]))
                break;
        }
        bool taken = false;
        SB_TRY(sb_jinja_spend(jinja, i / 4));
        for (size_t j = 0; j < i && name != NULL; j++)
            taken = taken || (arguments->names[j] == NULL ? j == at : same_name(arguments->names[j], name));
        if (at >= node->names.count || taken)
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the macro '%.*s' has no parameter for argument %zu",
                                 (int)(node->name->bytes < 100 ? node->name->bytes : 100), node->name->data, i + 1);
        SB_TRY(sb_jinja_bind(jinja, node->names.items[at], arguments->items[i]));
    }
    return SB_OK;
}

/* Defaults are evaluated in the macro's scope, after the parameters before them. */
static sb_status bind_defaults(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_scope *scope) {
    for (size_t i = 0; i < node->names.count; i++) {
        sb_jinja_binding *at = scope->bindings;
        sb_jinja_value value;
        while (!same_name(at->name, node->names.items[i]))
            at = at->next;
        if (at->value.kind != SB_JINJA_MISSING)
            continue;
        value = sb_jinja_undefined(SB_JINJA_NO_NAME, node->names.items[i]);
        if (node->children.items[i] != NULL)
            SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &value));
        at->value = value;
    }
    return SB_OK;
}

sb_status sb_jinja_call_macro(sb_jinja *jinja, const sb_jinja_macro *macro, const sb_jinja_arguments *arguments,
                              sb_jinja_value *result) {
    sb_jinja_scope *before = jinja->scope;
    flow flow = FLOW_ON;
    SB_TRY(sb_jinja_open_scope(jinja, macro->scope, &macro->node->hidden));
    sb_jinja_scope *own = jinja->scope;
    SB_TRY(bind_arguments(jinja, macro->node, arguments));
    SB_TRY(bind_defaults(jinja, macro->node, own));
    SB_TRY(capture(jinja, macro->node, own, result, &flow));
    jinja->scope = before;
    return SB_OK;
}

/* ---- loops ---- */

static sb_status peek(sb_jinja *jinja, sb_jinja_loop *loop) {
    if (loop->has_after || loop->at_end)
        return SB_OK;
    SB_TRY(sb_jinja_next(jinja, loop->iterator, &loop->after, &loop->has_after));
    loop->at_end = !loop->has_after;
    return SB_OK;
}

/* The number of items: what is not known to have one is gone through to its end. */
static sb_status measure(sb_jinja *jinja, sb_jinja_loop *loop) {
    sb_jinja_value rest = {.kind = SB_JINJA_ITERATOR, .iterator = loop->iterator};
    sb_jinja_list *list;
    if (loop->length >= 0 || sb_jinja_length(loop->source, &loop->length))
        return SB_OK;
    SB_TRY(sb_jinja_collect(jinja, rest, &list));
    loop->length = (int64_t)list->count + loop->index + 1 + loop->has_after;
    loop->at_end = false;
    return sb_jinja_iterate(jinja, sb_jinja_of_list(SB_JINJA_LIST, list), &loop->iterator);
}

static sb_status neighbour(sb_jinja_loop *loop, bool after, sb_jinja_value *result) {
    static const sb_jinja_text previous = {"previtem", 8, 8}, next = {"nextitem", 8, 8};
    if (after)
        *result = loop->has_after ? loop->after : sb_jinja_undefined(SB_JINJA_NO_ITEM, &next);
    else
        *result = loop->index > 0 ? loop->before : sb_jinja_undefined(SB_JINJA_NO_ITEM, &previous);
    return SB_OK;
}

sb_status sb_jinja_loop_member(sb_jinja *jinja, sb_jinja_loop *loop, const sb_jinja_text *name,
                               sb_jinja_value *result) {
    static const char *const names[] = {"index0", "index",    "first",  "previtem", "depth0",   "depth",
                                        "last",   "nextitem", "length", "revindex", "revindex0"};
    sb_jinja_value asked = {.kind = SB_JINJA_TEXT, .text = name};
    size_t at = 0;
    while (at < 11 && !sb_jinja_is_text(asked, names[at]))
        at++;
    if (at == 11)
        return sb_jinja_fail_unknown(jinja, "attribute of loop", name);
    if (at == 6 || at == 7)
        SB_TRY(peek(jinja, loop));
    if (at >= 8)
        SB_TRY(measure(jinja, loop));
    const int64_t numbers[] = {loop->index,
                               loop->index + 1,
                               0,
                               0,
                               loop->depth,
                               loop->depth + 1,
                               0,
                               0,
                               loop->length,
                               loop->length - loop->index,
                               loop->length - loop->index - 1};
    if (at == 3 || at == 7)
        return neighbour(loop, at == 7, result);
    *result = sb_jinja_integer(numbers[at]);
    if (at == 2 || at == 6)
        *result = sb_jinja_boolean(at == 2 ? loop->index == 0 : !loop->has_after);
    return SB_OK;
}

/* Items of a loop with a filter, which is asked when the next item is. */
typedef struct filtered {
    sb_jinja_iterator *iterator;
    const sb_jinja_node *node;
    sb_jinja_scope *scope;
} filtered;

static sb_status next_filtered(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found) {
    static const sb_jinja_names none = {0};
    const filtered *filter = state;
    sb_jinja_scope *before = jinja->scope;
    for (;;) {
        sb_jinja_value holds;
        SB_TRY(sb_jinja_next(jinja, filter->iterator, item, found));
        if (!*found)
            return SB_OK;
        SB_TRY(sb_jinja_open_scope(jinja, filter->scope, &none));
        SB_TRY(assign(jinja, filter->node->first, *item));
        SB_TRY(sb_jinja_evaluate(jinja, filter->node->third, &holds));
        jinja->scope = before;
        if (sb_jinja_true(holds))
            return SB_OK;
    }
}

static sb_status begin_loop(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_loop *loop) {
    SB_TRY(sb_jinja_evaluate(jinja, node->second, &loop->source));
    jinja->line = node->line;
    SB_TRY(sb_jinja_iterate(jinja, loop->source, &loop->iterator));
    if (node->third == NULL)
        return SB_OK;
    filtered *filter;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *filter, &filter));
    *filter = (filtered){loop->iterator, node, jinja->scope};
    SB_TRY(sb_jinja_new_iterator(jinja, next_filtered, filter, &loop->source));
    return sb_jinja_iterate(jinja, loop->source, &loop->iterator);
}

static sb_status render_for(sb_jinja *jinja, const sb_jinja_node *node, flow *outer) {
    static const sb_jinja_text name = {"loop", 4, 4};
    sb_jinja_scope *before = jinja->scope;
    sb_jinja_loop *loop;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *loop, &loop));
    *loop = (sb_jinja_loop){.index = -1, .length = -1};
    SB_TRY(begin_loop(jinja, node, loop));
    flow flow = FLOW_ON;
    bool completed = false; /* some round came to its end: then else is not for it */
    while (flow != FLOW_BREAK) {
        SB_TRY(peek(jinja, loop));
        if (!loop->has_after)
            break;
        loop->before = loop->current;
        loop->current = loop->after;
        loop->has_after = false;
        loop->index++;
        flow = FLOW_ON;
        SB_TRY(sb_jinja_open_scope(jinja, before, &node->hidden));
        SB_TRY(sb_jinja_bind(jinja, &name, (sb_jinja_value){.kind = SB_JINJA_LOOP, .loop = loop}));
        SB_TRY(assign(jinja, node->first, loop->current));
        SB_TRY(render_body(jinja, &node->body, &flow));
        completed = completed || flow == FLOW_ON;
        jinja->scope = before;
    }
    if (completed || node->otherwise.count == 0)
        return SB_OK;
    SB_TRY(sb_jinja_open_scope(jinja, before, &node->hidden_otherwise));
    SB_TRY(render_body(jinja, &node->otherwise, outer));
    jinja->scope = before;
    return SB_OK;
}

/* ---- the rest ---- */

static sb_status render_if(sb_jinja *jinja, const sb_jinja_node *node, flow *flow) {
    for (size_t i = 0; i < node->children.count; i++) {
        const sb_jinja_node *branch = node->children.items[i];
        sb_jinja_value condition;
        SB_TRY(sb_jinja_evaluate(jinja, branch->first, &condition));
        if (sb_jinja_true(condition))
            return render_body(jinja, &branch->body, flow);
    }
    return render_body(jinja, &node->otherwise, flow);
}

static sb_status render_node(sb_jinja *jinja, const sb_jinja_node *node, flow *flow) {
    sb_jinja_value value;
    jinja->line = node->line;
    switch (node->kind) {
    case SB_JINJA_DATA:
        return sb_jinja_write_value(jinja, node->value);
    case SB_JINJA_OUTPUT:
        SB_TRY(sb_jinja_evaluate(jinja, node->first, &value));
        return sb_jinja_write_value(jinja, value);
    case SB_JINJA_FOR:
        return render_for(jinja, node, flow);
    case SB_JINJA_IF:
        return render_if(jinja, node, flow);
    case SB_JINJA_SET:
    case SB_JINJA_SET_BLOCK:
        return render_set(jinja, node, flow);
    case SB_JINJA_DEFINE:
        return define_macro(jinja, node);
    case SB_JINJA_GENERATION:
        SB_TRY(capture(jinja, node, NULL, &value, flow));
        return sb_jinja_write_value(jinja, value);
    default:
        *flow = node->kind == SB_JINJA_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return SB_OK;
    }
}

static sb_status render_body(sb_jinja *jinja, const sb_jinja_nodes *body, flow *flow) {
    SB_TRY(sb_jinja_enter(jinja));
    for (size_t i = 0; i < body->count && *flow == FLOW_ON; i++)
        SB_TRY(render_node(jinja, body->items[i], flow));
    jinja->depth--;
    return SB_OK;
}

static sb_status render(sb_jinja *jinja, const sb_jinja_template *parsed, const json_t *variables) {
    sb_jinja_scope outermost = {0};
    sb_jinja_value given;
    flow flow = FLOW_ON;
    SB_TRY(sb_jinja_of_json(jinja, variables, &given));
    if (given.kind != SB_JINJA_DICT)
        return sb_fail(jinja->error, SB_ERROR_INVALID_ARGUMENT,
                       "the variables of a template have to be an object of JSON");
    outermost.variables = given.dict;
    SB_TRY(sb_jinja_open_scope(jinja, &outermost, &parsed->hidden));
    SB_TRY(render_body(jinja, &parsed->body, &flow));
    return sb_jinja_write(jinja, "", 1); /* the NUL behind it */
}

sb_status sb_jinja_render(const sb_jinja_template *parsed, const json_t *variables, const sb_llm_date *date,
                          int64_t steps, char **text, size_t *bytes, sb_error *error) {
    sb_jinja jinja = {.steps = steps != 0 ? steps : SB_JINJA_STEPS, .line = 1, .error = error, .date = date};
    sb_status status = render(&jinja, parsed, variables);
    sb_jinja_free_chunks(jinja.chunks);
    if (status != SB_OK) {
        sb_free(jinja.output);
        return status;
    }
    *text = jinja.output;
    *bytes = jinja.written - 1;
    return SB_OK;
}
