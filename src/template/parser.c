/* Parsing statements. */
#include <stdio.h>

#include "base/allocation.h"
#include "template/tree.h"

/* ---- nodes and tokens ---- */

sb_status sb_jinja_new_node(sb_jinja_parser *parser, sb_jinja_node_kind kind, int line, sb_jinja_node **node) {
    SB_TRY(sb_jinja_allocate(parser->jinja, 1, sizeof **node, node));
    **node = (sb_jinja_node){.kind = kind, .line = line};
    return SB_OK;
}

/* Room for one more of `size` bytes each. */
static sb_status grow(sb_jinja *jinja, void *items, size_t count, size_t *capacity, size_t size) {
    void *larger;
    if (count < *capacity)
        return SB_OK;
    SB_TRY(sb_jinja_allocate(jinja, count == 0 ? 2 : 2 * count, size, &larger));
    if (count != 0)
        memcpy(larger, *(void **)items, count * size);
    *(void **)items = larger;
    *capacity = count == 0 ? 2 : 2 * count;
    return SB_OK;
}

sb_status sb_jinja_add_node(sb_jinja *jinja, sb_jinja_nodes *nodes, sb_jinja_node *node) {
    SB_TRY(grow(jinja, &nodes->items, nodes->count, &nodes->capacity, sizeof *nodes->items));
    nodes->items[nodes->count++] = node;
    return SB_OK;
}

sb_status sb_jinja_add_name(sb_jinja *jinja, sb_jinja_names *names, const sb_jinja_text *name) {
    SB_TRY(grow(jinja, &names->items, names->count, &names->capacity, sizeof *names->items));
    names->items[names->count++] = name;
    return SB_OK;
}

bool sb_jinja_at_operator(const sb_jinja_parser *parser, const char *sign) {
    return parser->token->kind == SB_JINJA_TOKEN_OPERATOR && strcmp(parser->token->sign, sign) == 0;
}

bool sb_jinja_at_name(const sb_jinja_parser *parser, const char *name) {
    return parser->token->kind == SB_JINJA_TOKEN_NAME && sb_jinja_is_text(parser->token->value, name);
}

bool sb_jinja_skip_operator(sb_jinja_parser *parser, const char *sign) {
    bool there = sb_jinja_at_operator(parser, sign);
    parser->token += there;
    return there;
}

bool sb_jinja_skip_name(sb_jinja_parser *parser, const char *name) {
    bool there = sb_jinja_at_name(parser, name);
    parser->token += there;
    return there;
}

sb_status sb_jinja_expect_operator(sb_jinja_parser *parser, const char *sign) {
    char expected[8];
    snprintf(expected, sizeof expected, "'%s'", sign);
    return sb_jinja_skip_operator(parser, sign) ? SB_OK : sb_jinja_fail_token(parser, expected);
}

sb_status sb_jinja_fail_token(sb_jinja_parser *parser, const char *expected) {
    static const char *const kinds[] = {"text between tags",
                                        "'{%'",
                                        "the end of the tag",
                                        "'{{'",
                                        "the end of the tag",
                                        "",
                                        "a number",
                                        "a text",
                                        "",
                                        "the end of the template"};
    const sb_jinja_token *token = parser->token;
    char found[80];
    if (token->kind == SB_JINJA_TOKEN_NAME)
        snprintf(found, sizeof found, "'%.*s'", (int)(token->value.text->bytes < 60 ? token->value.text->bytes : 60),
                 token->value.text->data);
    else if (token->kind == SB_JINJA_TOKEN_OPERATOR)
        snprintf(found, sizeof found, "'%s'", token->sign);
    else
        snprintf(found, sizeof found, "%s", kinds[token->kind]);
    parser->jinja->line = token->line;
    return sb_jinja_fail(parser->jinja, SB_ERROR_INVALID_FILE, "%s is expected where there is %s", expected, found);
}

sb_status sb_jinja_fail_unknown(sb_jinja *jinja, const char *what, const sb_jinja_text *name) {
    return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "the %s '%.*s' is not understood (docs/llm.md says what is)",
                         what, (int)(name->bytes < 100 ? name->bytes : 100), name->data);
}

/* Parses up to a tag with one of the names in `ends` (blanks between), which is left to be read, its name first; NULL: up to
 * the end of the template. */
static sb_status parse_body(sb_jinja_parser *parser, const char *ends, sb_jinja_nodes *body);

/* ---- tags ---- */

static sb_status end_tag(sb_jinja_parser *parser) {
    if (parser->token->kind != SB_JINJA_TOKEN_BLOCK_END)
        return sb_jinja_fail_token(parser, "the end of the tag");
    parser->token++;
    return SB_OK;
}

/* Whether the next token is one of those names. */
static bool at_one_of(const sb_jinja_parser *parser, const char *names) {
    char name[16];
    int used;
    for (; sscanf(names, "%15s%n", name, &used) == 1; names += used) {
        if (sb_jinja_at_name(parser, name))
            return true;
    }
    return false;
}

/* The end of the tag that opens a body, and the body. */
static sb_status parse_inside(sb_jinja_parser *parser, const char *ends, sb_jinja_nodes *body) {
    sb_jinja_skip_operator(parser, ":");
    SB_TRY(end_tag(parser));
    return parse_body(parser, ends, body);
}

/* That, up to one end, which is taken. */
static sb_status parse_to(sb_jinja_parser *parser, const char *end, sb_jinja_nodes *body) {
    SB_TRY(parse_inside(parser, end, body));
    parser->token++;
    return SB_OK;
}

/* ---- statements; the name of each has been read ---- */

static sb_status parse_for(sb_jinja_parser *parser, sb_jinja_node *node) {
    parser->scopes_of_loop++;
    SB_TRY(sb_jinja_parse_target(parser, false, "in", &node->first));
    if (!sb_jinja_skip_name(parser, "in"))
        return sb_jinja_fail_token(parser, "'in'");
    SB_TRY(sb_jinja_parse_tuple(parser, false, "recursive", &node->second));
    if (sb_jinja_skip_name(parser, "if"))
        SB_TRY(sb_jinja_parse_expression(parser, true, &node->third));
    if (sb_jinja_at_name(parser, "recursive"))
        return sb_jinja_fail(parser->jinja, SB_ERROR_UNSUPPORTED, "'recursive' loops are not understood");
    parser->loops++;
    SB_TRY(parse_inside(parser, "endfor else", &node->body));
    parser->loops--;
    if (sb_jinja_skip_name(parser, "else"))
        SB_TRY(parse_inside(parser, "endfor", &node->otherwise));
    parser->token++;
    parser->scopes_of_loop--;
    return SB_OK;
}

/* Children are the branches, if and elif alike; otherwise is the else. */
static sb_status parse_if(sb_jinja_parser *parser, sb_jinja_node *node) {
    for (;;) {
        sb_jinja_node *branch;
        SB_TRY(sb_jinja_new_node(parser, SB_JINJA_IF, parser->token->line, &branch));
        SB_TRY(sb_jinja_parse_tuple(parser, false, NULL, &branch->first));
        SB_TRY(parse_inside(parser, "elif else endif", &branch->body));
        SB_TRY(sb_jinja_add_node(parser->jinja, &node->children, branch));
        if (sb_jinja_skip_name(parser, "elif"))
            continue;
        if (sb_jinja_skip_name(parser, "else"))
            SB_TRY(parse_inside(parser, "endif", &node->otherwise));
        parser->token++;
        return SB_OK;
    }
}

/* A body that is a function of its own in jinja2, which loops around it cannot be left from. */
static sb_status parse_function_body(sb_jinja_parser *parser, const char *end, sb_jinja_node *node) {
    int loops = parser->loops;
    parser->loops = 0;
    SB_TRY(parse_to(parser, end, &node->body));
    parser->loops = loops;
    return SB_OK;
}

static sb_status parse_set(sb_jinja_parser *parser, sb_jinja_node *node) {
    SB_TRY(sb_jinja_parse_target(parser, true, NULL, &node->first));
    if (sb_jinja_skip_operator(parser, "="))
        return sb_jinja_parse_tuple(parser, true, NULL, &node->second);
    if (sb_jinja_at_operator(parser, "|"))
        return sb_jinja_fail(parser->jinja, SB_ERROR_UNSUPPORTED, "a filter of a set block is not understood");
    node->kind = SB_JINJA_SET_BLOCK;
    return parse_to(parser, "endset", &node->body);
}

/* What jinja2 gives macros that ask for it, by names that cannot mean anything else there. */
static bool is_special(const sb_jinja_value name) {
    return sb_jinja_is_text(name, "caller") || sb_jinja_is_text(name, "varargs") || sb_jinja_is_text(name, "kwargs");
}

static sb_status parse_parameters(sb_jinja_parser *parser, sb_jinja_node *node) {
    SB_TRY(sb_jinja_expect_operator(parser, "("));
    for (bool first = true; !sb_jinja_at_operator(parser, ")"); first = false) {
        sb_jinja_node *value = NULL;
        if (!first)
            SB_TRY(sb_jinja_expect_operator(parser, ","));
        if (parser->token->kind != SB_JINJA_TOKEN_NAME)
            return sb_jinja_fail_token(parser, "the name of a parameter");
        SB_TRY(sb_jinja_add_name(parser->jinja, &node->names, parser->token++->value.text));
        if (sb_jinja_skip_operator(parser, "="))
            SB_TRY(sb_jinja_parse_expression(parser, true, &value));
        else if (node->children.count != 0 && node->children.items[node->children.count - 1] != NULL)
            return sb_jinja_fail_token(parser, "a default, as the parameter before has one,");
        SB_TRY(sb_jinja_add_node(parser->jinja, &node->children, value));
    }
    parser->token++;
    return SB_OK;
}

static sb_status parse_macro(sb_jinja_parser *parser, sb_jinja_node *node) {
    if (parser->token->kind != SB_JINJA_TOKEN_NAME)
        return sb_jinja_fail_token(parser, "the name of a macro");
    node->name = parser->token++->value.text;
    SB_TRY(parse_parameters(parser, node));
    const sb_jinja_token *begin = parser->token;
    SB_TRY(parse_function_body(parser, "endmacro", node));
    for (const sb_jinja_token *at = begin; at < parser->token; at++) {
        bool member = at[-1].kind == SB_JINJA_TOKEN_OPERATOR && strcmp(at[-1].sign, ".") == 0;
        parser->jinja->line = at->line;
        if (at->kind == SB_JINJA_TOKEN_NAME && is_special(at->value) && !member)
            return sb_jinja_fail_unknown(parser->jinja, "special variable", at->value.text);
    }
    return SB_OK;
}

static sb_status parse_jump(sb_jinja_parser *parser, const sb_jinja_node *node) {
    if (parser->loops != 0)
        return SB_OK;
    return sb_jinja_fail(parser->jinja, SB_ERROR_INVALID_FILE, "'%s' stands in no loop",
                         node->kind == SB_JINJA_BREAK ? "break" : "continue");
}

static sb_status parse_generation(sb_jinja_parser *parser, sb_jinja_node *node) {
    return parse_function_body(parser, "endgeneration", node);
}

/* The statement whose tag has been opened. */
static sb_status parse_statement(sb_jinja_parser *parser, sb_jinja_node *node) {
    static const struct {
        const char *name;
        sb_jinja_node_kind kind;
        sb_status (*parse)(sb_jinja_parser *parser, sb_jinja_node *node);
    } statements[] = {{"for", SB_JINJA_FOR, parse_for},
                      {"if", SB_JINJA_IF, parse_if},
                      {"set", SB_JINJA_SET, parse_set},
                      {"macro", SB_JINJA_DEFINE, parse_macro},
                      {"generation", SB_JINJA_GENERATION, parse_generation}};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (sb_jinja_skip_name(parser, statements[i].name)) {
            node->kind = statements[i].kind;
            return statements[i].parse(parser, node);
        }
    }
    if (sb_jinja_at_name(parser, "break") || sb_jinja_at_name(parser, "continue")) {
        node->kind = sb_jinja_at_name(parser, "break") ? SB_JINJA_BREAK : SB_JINJA_CONTINUE;
        parser->token++;
        return parse_jump(parser, node);
    }
    if (parser->token->kind != SB_JINJA_TOKEN_NAME)
        return sb_jinja_fail_token(parser, "the name of a statement");
    const sb_jinja_text *name = parser->token->value.text;
    if (at_one_of(parser, "endfor endif endset endmacro endgeneration else elif"))
        return sb_jinja_fail(parser->jinja, SB_ERROR_INVALID_FILE, "'%.*s' where nothing that it ends is open",
                             (int)name->bytes, name->data);
    return sb_jinja_fail_unknown(parser->jinja, "statement", name);
}

static sb_status parse_output(sb_jinja_parser *parser, sb_jinja_node *node) {
    SB_TRY(sb_jinja_parse_tuple(parser, true, NULL, &node->first));
    if (parser->token->kind != SB_JINJA_TOKEN_OUTPUT_END)
        return sb_jinja_fail_token(parser, "the end of the tag");
    parser->token++;
    return SB_OK;
}

/* One piece of a body. `*ended`: what was opened is the tag that ends it. */
static sb_status parse_piece(sb_jinja_parser *parser, const char *ends, sb_jinja_nodes *body, bool *ended) {
    sb_jinja_node *node;
    const sb_jinja_token *token = parser->token++;
    *ended = token->kind == SB_JINJA_TOKEN_BLOCK_BEGIN && ends != NULL && at_one_of(parser, ends);
    parser->jinja->line = token->line;
    if (*ended)
        return SB_OK;
    SB_TRY(sb_jinja_new_node(parser, SB_JINJA_DATA, token->line, &node));
    SB_TRY(sb_jinja_add_node(parser->jinja, body, node));
    if (token->kind == SB_JINJA_TOKEN_DATA) {
        node->value = token->value;
        return SB_OK;
    }
    if (token->kind == SB_JINJA_TOKEN_OUTPUT_BEGIN) {
        node->kind = SB_JINJA_OUTPUT;
        return parse_output(parser, node);
    }
    SB_TRY(parse_statement(parser, node));
    return end_tag(parser);
}

static sb_status parse_body(sb_jinja_parser *parser, const char *ends, sb_jinja_nodes *body) {
    bool ended = false;
    parser->jinja->line = parser->token->line;
    if (parser->jinja->depth >= SB_JINJA_PARSE_DEPTH)
        return sb_jinja_fail(parser->jinja, SB_ERROR_LIMIT, "statements nest too deep");
    parser->jinja->depth++;
    while (!ended && parser->token->kind != SB_JINJA_TOKEN_END)
        SB_TRY(parse_piece(parser, ends, body, &ended));
    parser->jinja->depth--;
    if (ended || ends == NULL)
        return SB_OK;
    parser->jinja->line = parser->token->line;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "one of the tags %s", ends);
    return sb_jinja_fail_token(parser, wanted);
}

/* ---- the whole ---- */

static sb_status parse_tokens(sb_jinja *jinja, const char *source, size_t bytes, sb_jinja_template *parsed) {
    sb_jinja_tokens tokens = {0};
    sb_status status = sb_jinja_lex(jinja, source, bytes, &tokens);
    if (status == SB_OK) {
        sb_jinja_parser parser = {.jinja = jinja, .token = tokens.items};
        status = parse_body(&parser, NULL, &parsed->body);
    }
    sb_free(tokens.items);
    return status;
}

sb_status sb_jinja_parse(const char *source, size_t bytes, sb_jinja_template **result, sb_error *error) {
    sb_jinja jinja = {.steps = SB_JINJA_STEPS, .line = 1, .error = error};
    sb_jinja_template *parsed = sb_allocate_array(1, sizeof *parsed);
    if (parsed == NULL)
        return sb_fail_memory(error, sizeof *parsed);
    sb_status status = parse_tokens(&jinja, source, bytes, parsed);
    if (status == SB_OK)
        status = sb_jinja_find_scopes(&jinja, parsed);
    parsed->chunks = jinja.chunks;
    sb_free(jinja.output);
    if (status != SB_OK) {
        sb_jinja_free(parsed);
        return status;
    }
    *result = parsed;
    return SB_OK;
}

void sb_jinja_free(sb_jinja_template *parsed) {
    if (parsed == NULL)
        return;
    sb_jinja_free_chunks(parsed->chunks);
    sb_free(parsed);
}
