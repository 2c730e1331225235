/* Parsing expressions. Precedence, from the loosest: a if b else c, or, and, not, comparisons, + -, ~, * / // %, **, unary
 * - and +, then calls, members, filters and tests, which bind to what stands before them. */
#include <stdio.h>

#include "base/allocation.h"
#include "template/tree.h"

typedef sb_status parse_function(sb_jinja_parser *parser, sb_jinja_node **node);

/* One deeper, as deep as sources may nest. */
static sb_status enter(sb_jinja_parser *parser) {
    parser->jinja->line = parser->token->line;
    if (parser->jinja->depth >= SB_JINJA_PARSE_DEPTH)
        return sb_jinja_fail(parser->jinja, SB_ERROR_LIMIT, "expressions nest too deep");
    parser->jinja->depth++;
    return SB_OK;
}

/* ---- literals and names ---- */

static sb_status parse_any(sb_jinja_parser *parser, sb_jinja_node **node) {
    return sb_jinja_parse_expression(parser, true, node);
}

/* Items up to the closing bracket, which is taken. `pairs`: key : value. */
static sb_status parse_items(sb_jinja_parser *parser, const char *closing, bool pairs, sb_jinja_nodes *nodes) {
    for (bool first = true; !sb_jinja_at_operator(parser, closing); first = false) {
        if (!first)
            SB_TRY(sb_jinja_expect_operator(parser, ","));
        if (sb_jinja_at_operator(parser, closing))
            break;
        sb_jinja_node *item;
        SB_TRY(parse_any(parser, &item));
        SB_TRY(sb_jinja_add_node(parser->jinja, nodes, item));
        if (pairs) {
            SB_TRY(sb_jinja_expect_operator(parser, ":"));
            SB_TRY(parse_any(parser, &item));
            SB_TRY(sb_jinja_add_node(parser->jinja, nodes, item));
        }
    }
    parser->token++;
    return SB_OK;
}

/* Texts one behind the other are one. */
static sb_status parse_texts(sb_jinja_parser *parser, sb_jinja_node *node) {
    node->value = parser->token++->value;
    if (parser->token->kind != SB_JINJA_TOKEN_STRING)
        return SB_OK;
    size_t begin = sb_jinja_begin(parser->jinja);
    SB_TRY(sb_jinja_write_value(parser->jinja, node->value));
    for (; parser->token->kind == SB_JINJA_TOKEN_STRING; parser->token++)
        SB_TRY(sb_jinja_write_value(parser->jinja, parser->token->value));
    return sb_jinja_take(parser->jinja, begin, &node->value);
}

static bool constant_of_name(sb_jinja_value name, sb_jinja_value *value) {
    static const char *const names[] = {"none", "None", "false", "False", "true", "True"};
    for (int i = 0; i < 6; i++) {
        if (sb_jinja_is_text(name, names[i])) {
            *value = i < 2 ? sb_jinja_none() : sb_jinja_boolean(i >= 4);
            return true;
        }
    }
    return false;
}

/* `members`: name.attribute is a target of its own. */
static sb_status parse_primary(sb_jinja_parser *parser, bool members, sb_jinja_node **node) {
    const sb_jinja_token *token = parser->token;
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_CONSTANT, token->line, node));
    if (token->kind == SB_JINJA_TOKEN_NAME) {
        parser->token++;
        if (constant_of_name(token->value, &(*node)->value))
            return SB_OK;
        (*node)->kind = SB_JINJA_NAME;
        (*node)->name = token->value.text;
        if (!members || !sb_jinja_skip_operator(parser, "."))
            return SB_OK;
        if (parser->token->kind != SB_JINJA_TOKEN_NAME)
            return sb_jinja_fail_token(parser, "the name of an attribute");
        (*node)->kind = SB_JINJA_MEMBER_TARGET;
        (*node)->member = parser->token++->value.text;
        return SB_OK;
    }
    if (token->kind == SB_JINJA_TOKEN_STRING)
        return parse_texts(parser, *node);
    if (token->kind == SB_JINJA_TOKEN_CONSTANT) {
        (*node)->value = parser->token++->value;
        return SB_OK;
    }
    if (sb_jinja_skip_operator(parser, "[")) {
        (*node)->kind = SB_JINJA_MAKE_LIST;
        return parse_items(parser, "]", false, &(*node)->children);
    }
    if (sb_jinja_skip_operator(parser, "{")) {
        (*node)->kind = SB_JINJA_MAKE_DICT;
        return parse_items(parser, "}", true, &(*node)->children);
    }
    if (!sb_jinja_skip_operator(parser, "("))
        return sb_jinja_fail_token(parser, "an expression");
    if (sb_jinja_skip_operator(parser, ")")) {
        (*node)->kind = SB_JINJA_MAKE_TUPLE;
        return SB_OK;
    }
    SB_TRY(sb_jinja_parse_tuple(parser, true, NULL, node));
    return sb_jinja_expect_operator(parser, ")");
}

/* ---- what stands behind ---- */

static sb_status parse_arguments(sb_jinja_parser *parser, sb_jinja_node *node) {
    for (bool first = true; !sb_jinja_at_operator(parser, ")"); first = false) {
        const sb_jinja_text *name = NULL;
        sb_jinja_node *argument;
        if (!first)
            SB_TRY(sb_jinja_expect_operator(parser, ","));
        if (sb_jinja_at_operator(parser, ")"))
            break;
        parser->jinja->line = parser->token->line;
        if (sb_jinja_at_operator(parser, "*") || sb_jinja_at_operator(parser, "**"))
            return sb_jinja_fail(parser->jinja, SB_ERROR_UNSUPPORTED, "'%s' before an argument is not understood",
                                 parser->token->sign);
        if (parser->token->kind == SB_JINJA_TOKEN_NAME && parser->token[1].kind == SB_JINJA_TOKEN_OPERATOR &&
            strcmp(parser->token[1].sign, "=") == 0) {
            name = parser->token->value.text;
            parser->token += 2;
        } else if (node->names.count != 0 && node->names.items[node->names.count - 1] != NULL) {
            return sb_jinja_fail_token(parser, "an argument with a name");
        }
        SB_TRY(parse_any(parser, &argument));
        SB_TRY(sb_jinja_add_node(parser->jinja, &node->children, argument));
        SB_TRY(sb_jinja_add_name(parser->jinja, &node->names, name));
    }
    parser->token++;
    return SB_OK;
}

/* The part of a slice that begins here, NULL where it is left out. */
static sb_status parse_bound(sb_jinja_parser *parser, sb_jinja_node *slice) {
    sb_jinja_node *bound = NULL;
    if (!sb_jinja_at_operator(parser, ":") && !sb_jinja_at_operator(parser, "]") && !sb_jinja_at_operator(parser, ","))
        SB_TRY(parse_any(parser, &bound));
    return sb_jinja_add_node(parser->jinja, &slice->children, bound);
}

static sb_status parse_subscript(sb_jinja_parser *parser, sb_jinja_node *object, sb_jinja_node **node) {
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_SLICE, parser->token->line, node));
    (*node)->first = object;
    parser->token++;
    SB_TRY(parse_bound(parser, *node));
    bool slice = sb_jinja_skip_operator(parser, ":");
    if (slice) {
        SB_TRY(parse_bound(parser, *node));
        bool stepped = sb_jinja_skip_operator(parser, ":");
        SB_TRY(stepped ? parse_bound(parser, *node) : sb_jinja_add_node(parser->jinja, &(*node)->children, NULL));
    } else {
        (*node)->kind = SB_JINJA_ITEM;
        (*node)->second = (*node)->children.items[0];
    }
    if (sb_jinja_at_operator(parser, ",")) {
        parser->jinja->line = parser->token->line;
        return sb_jinja_fail(parser->jinja, SB_ERROR_UNSUPPORTED, "',' inside a subscript is not understood");
    }
    if (!slice && (*node)->second == NULL)
        return sb_jinja_fail_token(parser, "a subscript");
    return sb_jinja_expect_operator(parser, "]");
}

static sb_status parse_member(sb_jinja_parser *parser, sb_jinja_node *object, sb_jinja_node **node) {
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_ATTRIBUTE, parser->token->line, node));
    (*node)->first = object;
    parser->token++;
    if (parser->token->kind == SB_JINJA_TOKEN_NAME) {
        (*node)->name = parser->token++->value.text;
        return SB_OK;
    }
    if (parser->token->kind != SB_JINJA_TOKEN_CONSTANT || parser->token->value.kind != SB_JINJA_INTEGER)
        return sb_jinja_fail_token(parser, "a name or a number");
    (*node)->kind = SB_JINJA_ITEM;
    return parse_primary(parser, false, &(*node)->second);
}

static sb_status parse_call(sb_jinja_parser *parser, sb_jinja_node *callee, sb_jinja_node **node) {
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_CALL, parser->token->line, node));
    (*node)->first = callee;
    parser->token++;
    return parse_arguments(parser, *node);
}

static sb_status parse_postfix(sb_jinja_parser *parser, sb_jinja_node **node) {
    for (;;) {
        if (sb_jinja_at_operator(parser, "."))
            SB_TRY(parse_member(parser, *node, node));
        else if (sb_jinja_at_operator(parser, "["))
            SB_TRY(parse_subscript(parser, *node, node));
        else if (sb_jinja_at_operator(parser, "("))
            SB_TRY(parse_call(parser, *node, node));
        else
            return SB_OK;
    }
}

static sb_status parse_filter(sb_jinja_parser *parser, sb_jinja_node *object, sb_jinja_node **node) {
    parser->token++;
    if (parser->token->kind != SB_JINJA_TOKEN_NAME)
        return sb_jinja_fail_token(parser, "the name of a filter");
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_FILTER, parser->token->line, node));
    (*node)->first = object;
    (*node)->name = parser->token++->value.text;
    (*node)->row = sb_jinja_find_filter((*node)->name);
    parser->jinja->line = (*node)->line;
    if ((*node)->row == NULL)
        return sb_jinja_fail_unknown(parser->jinja, "filter", (*node)->name);
    return sb_jinja_skip_operator(parser, "(") ? parse_arguments(parser, *node) : SB_OK;
}

/* Whether a test goes on with an argument that has no parentheses. */
static bool at_bare_argument(const sb_jinja_parser *parser) {
    switch (parser->token->kind) {
    case SB_JINJA_TOKEN_NAME:
        return !sb_jinja_at_name(parser, "else") && !sb_jinja_at_name(parser, "or") && !sb_jinja_at_name(parser, "and");
    case SB_JINJA_TOKEN_STRING:
    case SB_JINJA_TOKEN_CONSTANT:
        return true;
    default:
        return sb_jinja_at_operator(parser, "[") || sb_jinja_at_operator(parser, "{");
    }
}

static sb_status parse_test(sb_jinja_parser *parser, sb_jinja_node *object, sb_jinja_node **node) {
    int line = parser->token++->line;
    bool negated = sb_jinja_skip_name(parser, "not");
    sb_jinja_node *test, *argument;
    if (parser->token->kind != SB_JINJA_TOKEN_NAME)
        return sb_jinja_fail_token(parser, "the name of a test");
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_TEST, line, &test));
    test->first = object;
    test->name = parser->token++->value.text;
    test->row = sb_jinja_find_test(test->name);
    parser->jinja->line = line;
    if (test->row == NULL)
        return sb_jinja_fail_unknown(parser->jinja, "test", test->name);
    if (sb_jinja_skip_operator(parser, "(")) {
        SB_TRY(parse_arguments(parser, test));
    } else if (at_bare_argument(parser)) {
        if (sb_jinja_at_name(parser, "is"))
            return sb_jinja_fail_token(parser, "no second test");
        SB_TRY(parse_primary(parser, false, &argument));
        SB_TRY(parse_postfix(parser, &argument));
        SB_TRY(sb_jinja_add_node(parser->jinja, &test->children, argument));
        SB_TRY(sb_jinja_add_name(parser->jinja, &test->names, NULL));
    }
    *node = test;
    if (!negated)
        return SB_OK;
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_NOT, line, node));
    (*node)->first = test;
    return SB_OK;
}

static sb_status parse_filters(sb_jinja_parser *parser, sb_jinja_node **node) {
    for (;;) {
        if (sb_jinja_at_operator(parser, "|"))
            SB_TRY(parse_filter(parser, *node, node));
        else if (sb_jinja_at_name(parser, "is"))
            SB_TRY(parse_test(parser, *node, node));
        else if (sb_jinja_at_operator(parser, "("))
            SB_TRY(parse_call(parser, *node, node));
        else
            return SB_OK;
    }
}

/* ---- operators ---- */

/* -x|f is -(x)|f: filters are for the outermost sign. */
static sb_status parse_signed(sb_jinja_parser *parser, bool filters, sb_jinja_node **node) {
    SB_TRY(enter(parser));
    if (sb_jinja_at_operator(parser, "-") || sb_jinja_at_operator(parser, "+")) {
        SB_TRY(sb_jinja_new_node(parser, SB_JINJA_NEGATE, parser->token->line, node));
        (*node)->operator= parser->token++->sign[0];
        SB_TRY(parse_signed(parser, false, &(*node)->first));
    } else {
        SB_TRY(parse_primary(parser, false, node));
    }
    SB_TRY(parse_postfix(parser, node));
    parser->jinja->depth--;
    return filters ? parse_filters(parser, node) : SB_OK;
}

static sb_status parse_unary(sb_jinja_parser *parser, sb_jinja_node **node) {
    return parse_signed(parser, true, node);
}

/* Operators of one level, from the left. `signs` and `codes` have one for each. */
static sb_status parse_level(sb_jinja_parser *parser, parse_function *operand, const char *const *signs,
                             const char *codes, sb_jinja_node **node) {
    SB_TRY(operand(parser, node));
    for (size_t i = 0; signs[i] != NULL; i++) {
        if (!sb_jinja_at_operator(parser, signs[i]))
            continue;
        sb_jinja_node *left = *node;
        SB_TRY(sb_jinja_new_node(parser, SB_JINJA_ARITHMETIC, parser->token++->line, node));
        (*node)->operator= codes[i];
        (*node)->first = left;
        SB_TRY(operand(parser, &(*node)->second));
        i = (size_t)-1; /* any of them may follow */
    }
    return SB_OK;
}

static sb_status parse_power(sb_jinja_parser *parser, sb_jinja_node **node) {
    static const char *const signs[] = {"**", NULL};
    return parse_level(parser, parse_unary, signs, "p", node);
}

static sb_status parse_product(sb_jinja_parser *parser, sb_jinja_node **node) {
    static const char *const signs[] = {"*", "/", "//", "%", NULL};
    return parse_level(parser, parse_power, signs, "*/f%", node);
}

static sb_status parse_concatenation(sb_jinja_parser *parser, sb_jinja_node **node) {
    SB_TRY(parse_product(parser, node));
    if (!sb_jinja_at_operator(parser, "~"))
        return SB_OK;
    sb_jinja_node *whole, *part = *node;
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_CONCATENATE, parser->token->line, &whole));
    SB_TRY(sb_jinja_add_node(parser->jinja, &whole->children, part));
    while (sb_jinja_skip_operator(parser, "~")) {
        SB_TRY(parse_product(parser, &part));
        SB_TRY(sb_jinja_add_node(parser->jinja, &whole->children, part));
    }
    *node = whole;
    return SB_OK;
}

static sb_status parse_sum(sb_jinja_parser *parser, sb_jinja_node **node) {
    static const char *const signs[] = {"+", "-", NULL};
    return parse_level(parser, parse_concatenation, signs, "+-", node);
}

/* The code of the comparison that begins here, which is taken; '\0': none does. */
static char take_comparison(sb_jinja_parser *parser) {
    static const char *const signs[] = {"==", "!=", "<", ">", "<=", ">="};
    for (int i = 0; i < 6; i++) {
        if (sb_jinja_skip_operator(parser, signs[i]))
            return "=!<>lg"[i];
    }
    if (sb_jinja_skip_name(parser, "in"))
        return 'i';
    if (!sb_jinja_at_name(parser, "not") || parser->token[1].kind != SB_JINJA_TOKEN_NAME ||
        !sb_jinja_is_text(parser->token[1].value, "in"))
        return '\0';
    parser->token += 2;
    return 'n';
}

static sb_status parse_comparison(sb_jinja_parser *parser, sb_jinja_node **node) {
    SB_TRY(parse_sum(parser, node));
    int line = parser->token->line;
    char code = take_comparison(parser);
    if (code == '\0')
        return SB_OK;
    sb_jinja_node *whole, *operand;
    sb_jinja_value signs;
    size_t begin = sb_jinja_begin(parser->jinja);
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_COMPARE, line, &whole));
    whole->first = *node;
    for (; code != '\0'; code = take_comparison(parser)) {
        SB_TRY(sb_jinja_write(parser->jinja, &code, 1));
        SB_TRY(parse_sum(parser, &operand));
        SB_TRY(sb_jinja_add_node(parser->jinja, &whole->children, operand));
    }
    SB_TRY(sb_jinja_take(parser->jinja, begin, &signs));
    whole->signs = signs.text->data;
    *node = whole;
    return SB_OK;
}

static sb_status parse_not(sb_jinja_parser *parser, sb_jinja_node **node) {
    if (!sb_jinja_at_name(parser, "not"))
        return parse_comparison(parser, node);
    SB_TRY(enter(parser));
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_NOT, parser->token++->line, node));
    SB_TRY(parse_not(parser, &(*node)->first));
    parser->jinja->depth--;
    return SB_OK;
}

static sb_status parse_words(sb_jinja_parser *parser, parse_function *operand, const char *word,
                             sb_jinja_node_kind kind, sb_jinja_node **node) {
    SB_TRY(operand(parser, node));
    while (sb_jinja_at_name(parser, word)) {
        sb_jinja_node *left = *node;
        SB_TRY(sb_jinja_new_node(parser, kind, parser->token++->line, node));
        (*node)->first = left;
        SB_TRY(operand(parser, &(*node)->second));
    }
    return SB_OK;
}

static sb_status parse_and(sb_jinja_parser *parser, sb_jinja_node **node) {
    return parse_words(parser, parse_not, "and", SB_JINJA_AND, node);
}

static sb_status parse_or(sb_jinja_parser *parser, sb_jinja_node **node) {
    return parse_words(parser, parse_and, "or", SB_JINJA_OR, node);
}

sb_status sb_jinja_parse_expression(sb_jinja_parser *parser, bool choice, sb_jinja_node **node) {
    SB_TRY(enter(parser));
    SB_TRY(parse_or(parser, node));
    while (choice && sb_jinja_at_name(parser, "if")) {
        sb_jinja_node *value = *node;
        SB_TRY(sb_jinja_new_node(parser, SB_JINJA_CHOICE, parser->token++->line, node));
        (*node)->first = value;
        SB_TRY(parse_or(parser, &(*node)->second));
        if (sb_jinja_skip_name(parser, "else"))
            SB_TRY(sb_jinja_parse_expression(parser, true, &(*node)->third));
    }
    parser->jinja->depth--;
    return SB_OK;
}

/* ---- tuples and targets ---- */

static bool at_tuple_end(const sb_jinja_parser *parser, const char *end) {
    return parser->token->kind == SB_JINJA_TOKEN_BLOCK_END || parser->token->kind == SB_JINJA_TOKEN_OUTPUT_END ||
           sb_jinja_at_operator(parser, ")") || (end != NULL && sb_jinja_at_name(parser, end));
}

static sb_status parse_tuple_of(sb_jinja_parser *parser, bool target, bool flag, const char *end,
                                sb_jinja_node **node) {
    sb_jinja_node *item, *tuple;
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_MAKE_TUPLE, parser->token->line, &tuple));
    bool comma = false;
    while (!at_tuple_end(parser, end)) {
        SB_TRY(target ? parse_primary(parser, flag, &item) : sb_jinja_parse_expression(parser, flag, &item));
        SB_TRY(sb_jinja_add_node(parser->jinja, &tuple->children, item));
        if (!sb_jinja_at_operator(parser, ","))
            break;
        comma = true;
        parser->token++;
    }
    if (tuple->children.count == 0)
        return sb_jinja_fail_token(parser, "an expression");
    *node = comma ? tuple : tuple->children.items[0];
    return SB_OK;
}

sb_status sb_jinja_parse_tuple(sb_jinja_parser *parser, bool choice, const char *end, sb_jinja_node **node) {
    return parse_tuple_of(parser, false, choice, end, node);
}

static sb_status check_target(sb_jinja_parser *parser, const sb_jinja_node *node) {
    parser->jinja->line = node->line;
    if (node->kind == SB_JINJA_NAME && parser->scopes_of_loop != 0 && node->name->bytes == 4 &&
        memcmp(node->name->data, "loop", 4) == 0)
        return sb_jinja_fail(parser->jinja, SB_ERROR_INVALID_FILE, "'loop' cannot be set inside a loop");
    if (node->kind == SB_JINJA_NAME || node->kind == SB_JINJA_MEMBER_TARGET)
        return SB_OK;
    if (node->kind != SB_JINJA_MAKE_TUPLE)
        return sb_jinja_fail(parser->jinja, SB_ERROR_INVALID_FILE, "what is set has to be a name");
    for (size_t i = 0; i < node->children.count; i++)
        SB_TRY(check_target(parser, node->children.items[i]));
    return SB_OK;
}

sb_status sb_jinja_parse_target(sb_jinja_parser *parser, bool members, const char *end, sb_jinja_node **node) {
    SB_TRY(parse_tuple_of(parser, true, members, end, node));
    return check_target(parser, *node);
}
