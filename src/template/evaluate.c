/* Evaluating expressions, and the scopes that names are looked for in. */
#include "base/allocation.h"
#include "template/tree.h"

/* ---- scopes ---- */

sb_status sb_jinja_open_scope(sb_jinja *jinja, sb_jinja_scope *parent, const sb_jinja_names *hidden) {
    sb_jinja_scope *scope;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *scope, &scope));
    *scope = (sb_jinja_scope){.parent = parent};
    jinja->scope = scope;
    for (size_t i = 0; i < hidden->count; i++)
        SB_TRY(sb_jinja_bind(jinja, hidden->items[i], (sb_jinja_value){.kind = SB_JINJA_MISSING}));
    return SB_OK;
}

static sb_jinja_binding *find_binding(const sb_jinja_scope *scope, const sb_jinja_text *name, size_t *visited) {
    sb_jinja_binding *at = scope->bindings;
    for (; at != NULL; at = at->next, ++*visited) {
        if (at->name->bytes == name->bytes && memcmp(at->name->data, name->data, name->bytes) == 0)
            return at;
    }
    return NULL;
}

sb_status sb_jinja_bind(sb_jinja *jinja, const sb_jinja_text *name, sb_jinja_value value) {
    size_t visited = 0;
    sb_jinja_binding *binding = find_binding(jinja->scope, name, &visited);
    SB_TRY(sb_jinja_spend(jinja, visited / 4));
    if (binding == NULL) {
        SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *binding, &binding));
        *binding = (sb_jinja_binding){.next = jinja->scope->bindings, .name = name};
        jinja->scope->bindings = binding;
    }
    binding->value = value;
    return SB_OK;
}

static sb_status look_in_variables(sb_jinja *jinja, const sb_jinja_dict *variables, const sb_jinja_text *name,
                                   sb_jinja_value *value) {
    sb_jinja_value *found = NULL, key = {.kind = SB_JINJA_TEXT, .text = name};
    if (variables != NULL)
        SB_TRY(sb_jinja_find(jinja, variables, key, &found));
    if (found != NULL) {
        *value = *found;
        return SB_OK;
    }
    const sb_jinja_row *function = sb_jinja_find_function(name);
    *value = function != NULL ? (sb_jinja_value){.kind = SB_JINJA_FUNCTION, .function = function}
                              : sb_jinja_undefined(SB_JINJA_NO_NAME, name);
    /* What jinja2 has and this has not is said to be so, for it might be defined there. */
    static const char *const absent[] = {"cycler", "joiner", "lipsum", "self"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent && function == NULL; i++) {
        if (sb_jinja_is_text(key, absent[i]))
            return sb_jinja_fail_unknown(jinja, "function", name);
    }
    return SB_OK;
}

sb_status sb_jinja_look_up(sb_jinja *jinja, const sb_jinja_text *name, sb_jinja_value *value) {
    size_t visited = 0;
    for (const sb_jinja_scope *scope = jinja->scope; scope != NULL; scope = scope->parent, visited++) {
        const sb_jinja_binding *binding = find_binding(scope, name, &visited);
        if (binding != NULL) {
            bool missing = binding->value.kind == SB_JINJA_MISSING;
            *value = missing ? sb_jinja_undefined(SB_JINJA_NO_NAME, name) : binding->value;
            return sb_jinja_spend(jinja, visited / 4);
        }
        if (scope->parent == NULL)
            SB_TRY(look_in_variables(jinja, scope->variables, name, value));
    }
    return sb_jinja_spend(jinja, visited / 4);
}

/* ---- making ---- */

static sb_status make_list(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_list *list;
    SB_TRY(sb_jinja_new_list(jinja, node->children.count, &list));
    for (size_t i = 0; i < list->count; i++)
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &list->items[i]));
    *value = sb_jinja_of_list(node->kind == SB_JINJA_MAKE_LIST ? SB_JINJA_LIST : SB_JINJA_TUPLE, list);
    return SB_OK;
}

static sb_status make_dict(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_dict *dict;
    SB_TRY(sb_jinja_new_dict(jinja, node->children.count / 2, &dict));
    for (size_t i = 0; i < node->children.count; i += 2) {
        sb_jinja_value key, item;
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &key));
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i + 1], &item));
        SB_TRY(sb_jinja_put(jinja, dict, key, item));
    }
    *value = (sb_jinja_value){.kind = SB_JINJA_DICT, .dict = dict};
    return SB_OK;
}

static sb_status concatenate(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    size_t begin = sb_jinja_begin(jinja);
    for (size_t i = 0; i < node->children.count; i++) {
        sb_jinja_value part;
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &part));
        SB_TRY(sb_jinja_write_value(jinja, part));
    }
    return sb_jinja_take(jinja, begin, value);
}

/* ---- choosing and comparing ---- */

static sb_status choose(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value condition;
    SB_TRY(sb_jinja_evaluate(jinja, node->second, &condition));
    if (sb_jinja_true(condition))
        return sb_jinja_evaluate(jinja, node->first, value);
    if (node->third != NULL)
        return sb_jinja_evaluate(jinja, node->third, value);
    static const sb_jinja_text what = {"if without else", 15, 15};
    *value = sb_jinja_undefined(SB_JINJA_NO_NAME, &what);
    return SB_OK;
}

static sb_status compare_pair(sb_jinja *jinja, char sign, sb_jinja_value left, sb_jinja_value right, bool *holds) {
    int order;
    switch (sign) {
    case '=':
    case '!':
        SB_TRY(sb_jinja_equal(jinja, left, right, holds));
        *holds = *holds == (sign == '=');
        return SB_OK;
    case 'i':
    case 'n':
        SB_TRY(sb_jinja_contains(jinja, right, left, holds));
        *holds = *holds == (sign == 'i');
        return SB_OK;
    default:
        SB_TRY(sb_jinja_compare(jinja, left, right,
                                sign == 'l'   ? "<="
                                : sign == 'g' ? ">="
                                : sign == '<' ? "<"
                                              : ">",
                                &order));
        /* (An order of 2 is NaN's: nothing holds.) */
        *holds = order == 2    ? false
                 : sign == '<' ? order < 0
                 : sign == '>' ? order > 0
                 : sign == 'l' ? order <= 0
                               : order >= 0;
        return SB_OK;
    }
}

static sb_status compare(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value left, right;
    bool holds = true;
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &left));
    for (size_t i = 0; i < node->children.count && holds; i++, left = right) {
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &right));
        jinja->line = node->line;
        SB_TRY(compare_pair(jinja, node->signs[i], left, right, &holds));
    }
    *value = sb_jinja_boolean(holds);
    return SB_OK;
}

/* and, or: one of the two values. */
static sb_status combine(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    SB_TRY(sb_jinja_evaluate(jinja, node->first, value));
    return sb_jinja_true(*value) == (node->kind == SB_JINJA_AND) ? sb_jinja_evaluate(jinja, node->second, value)
                                                                 : SB_OK;
}

/* ---- members ---- */

static sb_status evaluate_slice(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value object, bounds[3];
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &object));
    for (int i = 0; i < 3; i++) {
        bounds[i] = sb_jinja_none();
        if (node->children.items[i] != NULL)
            SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &bounds[i]));
    }
    jinja->line = node->line;
    return sb_jinja_slice(jinja, object, bounds, value);
}

static sb_status evaluate_item(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value object, key;
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &object));
    if (node->kind == SB_JINJA_ITEM)
        SB_TRY(sb_jinja_evaluate(jinja, node->second, &key));
    jinja->line = node->line;
    return node->kind == SB_JINJA_ITEM ? sb_jinja_item(jinja, object, key, value)
                                       : sb_jinja_attribute(jinja, object, node->name, value);
}

/* ---- calls ---- */

const sb_jinja_row *sb_jinja_find_row(const sb_jinja_row *rows, size_t count, const sb_jinja_text *name) {
    for (size_t i = 0; i < count; i++) {
        if (strlen(rows[i].name) == name->bytes && memcmp(rows[i].name, name->data, name->bytes) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Which of the parameters of a row has a name; −1: none. */
static int find_parameter(const sb_jinja_row *row, const sb_jinja_text *name) {
    const char *at = row->parameters;
    for (int i = 0; *at != '\0'; i++) {
        size_t bytes = strcspn(at, " ");
        if (bytes == name->bytes && memcmp(at, name->data, bytes) == 0)
            return i;
        at += bytes + (at[bytes] == ' ');
    }
    return -1;
}

static int count_parameters(const sb_jinja_row *row) {
    int count = row->parameters[0] != '\0';
    for (const char *at = row->parameters; *at != '\0'; at++)
        count += *at == ' ';
    return count;
}

sb_status sb_jinja_apply(sb_jinja *jinja, const char *what, const sb_jinja_row *row, sb_jinja_value self,
                         const sb_jinja_arguments *arguments, sb_jinja_value *result) {
    if (row->parameters == NULL)
        return row->raw(jinja, self, arguments, result);
    sb_jinja_value taken[SB_JINJA_PARAMETERS] = {0};
    int count = count_parameters(row);
    for (size_t i = 0; i < arguments->count; i++) {
        const sb_jinja_text *name = arguments->names[i];
        int at = name != NULL ? find_parameter(row, name) : i < (size_t)count ? (int)i : count;
        if (at < 0 || at >= count || taken[at].kind != SB_JINJA_MISSING)
            return sb_jinja_fail(jinja, at < 0 ? SB_ERROR_UNSUPPORTED : SB_ERROR_INVALID_ARGUMENT,
                                 "the %s '%s' takes the arguments (%s); argument %zu%s%.*s does not fit", what,
                                 row->name, row->parameters, i + 1, name != NULL ? ", " : "",
                                 name != NULL ? (int)(name->bytes < 60 ? name->bytes : 60) : 0,
                                 name != NULL ? name->data : "");
        taken[at] = arguments->items[i];
    }
    for (int i = 0; i < row->least; i++) {
        if (taken[i].kind == SB_JINJA_MISSING)
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT,
                                 "the %s '%s' takes the arguments (%s), of which %d %s to be given", what, row->name,
                                 row->parameters, row->least, row->least == 1 ? "has" : "have");
    }
    return row->function(jinja, self, taken, result);
}

static sb_status evaluate_arguments(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_arguments *arguments) {
    arguments->count = node->children.count;
    arguments->names = node->names.items;
    SB_TRY(sb_jinja_allocate(jinja, arguments->count, sizeof *arguments->items, &arguments->items));
    for (size_t i = 0; i < arguments->count; i++)
        SB_TRY(sb_jinja_evaluate(jinja, node->children.items[i], &arguments->items[i]));
    jinja->line = node->line;
    return SB_OK;
}

static sb_status call(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value callee;
    sb_jinja_arguments arguments;
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &callee));
    SB_TRY(evaluate_arguments(jinja, node, &arguments));
    switch (callee.kind) {
    case SB_JINJA_MACRO:
        return sb_jinja_call_macro(jinja, callee.macro, &arguments, value);
    case SB_JINJA_FUNCTION:
        return sb_jinja_apply(jinja, "function", callee.function, sb_jinja_none(), &arguments, value);
    case SB_JINJA_METHOD:
        return sb_jinja_apply(jinja, "method", callee.method->row, callee.method->self, &arguments, value);
    default:
        SB_TRY(sb_jinja_check_defined(jinja, callee));
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a value of type %s cannot be called",
                             sb_jinja_kind_name(callee));
    }
}

static sb_status apply_row(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value self;
    sb_jinja_arguments arguments;
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &self));
    SB_TRY(evaluate_arguments(jinja, node, &arguments));
    return sb_jinja_apply(jinja, node->kind == SB_JINJA_FILTER ? "filter" : "test", node->row, self, &arguments, value);
}

/* ---- the whole ---- */

static sb_status evaluate_operator(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    sb_jinja_value left, right;
    SB_TRY(sb_jinja_evaluate(jinja, node->first, &left));
    if (node->kind == SB_JINJA_NOT) {
        *value = sb_jinja_boolean(!sb_jinja_true(left));
        return SB_OK;
    }
    if (node->kind == SB_JINJA_NEGATE)
        return sb_jinja_negate(jinja, left, node->operator== '-', value);
    SB_TRY(sb_jinja_evaluate(jinja, node->second, &right));
    jinja->line = node->line;
    return sb_jinja_arithmetic(jinja, node->operator, left, right, value);
}

static sb_status evaluate_inner(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    switch (node->kind) {
    case SB_JINJA_CONSTANT:
        *value = node->value;
        return SB_OK;
    case SB_JINJA_NAME:
        return sb_jinja_look_up(jinja, node->name, value);
    case SB_JINJA_MAKE_LIST:
    case SB_JINJA_MAKE_TUPLE:
        return make_list(jinja, node, value);
    case SB_JINJA_MAKE_DICT:
        return make_dict(jinja, node, value);
    case SB_JINJA_CHOICE:
        return choose(jinja, node, value);
    case SB_JINJA_AND:
    case SB_JINJA_OR:
        return combine(jinja, node, value);
    case SB_JINJA_COMPARE:
        return compare(jinja, node, value);
    case SB_JINJA_CONCATENATE:
        return concatenate(jinja, node, value);
    case SB_JINJA_ATTRIBUTE:
    case SB_JINJA_ITEM:
        return evaluate_item(jinja, node, value);
    case SB_JINJA_SLICE:
        return evaluate_slice(jinja, node, value);
    case SB_JINJA_CALL:
        return call(jinja, node, value);
    case SB_JINJA_FILTER:
    case SB_JINJA_TEST:
        return apply_row(jinja, node, value);
    default:
        return evaluate_operator(jinja, node, value);
    }
}

sb_status sb_jinja_evaluate(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value) {
    jinja->line = node->line;
    sb_status status = sb_jinja_enter(jinja);
    if (status != SB_OK)
        return status;
    status = evaluate_inner(jinja, node, value);
    jinja->depth--;
    return status;
}
