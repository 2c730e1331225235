/* A template as a tree, and the tokens that it is made of. */
#ifndef SB_TEMPLATE_TREE_H
#define SB_TEMPLATE_TREE_H

#include "template/value.h"

/* ---- tokens ---- */

typedef enum sb_jinja_token_kind {
    SB_JINJA_TOKEN_DATA,
    SB_JINJA_TOKEN_BLOCK_BEGIN,
    SB_JINJA_TOKEN_BLOCK_END,
    SB_JINJA_TOKEN_OUTPUT_BEGIN,
    SB_JINJA_TOKEN_OUTPUT_END,
    SB_JINJA_TOKEN_NAME,
    SB_JINJA_TOKEN_CONSTANT, /* a number */
    SB_JINJA_TOKEN_STRING,
    SB_JINJA_TOKEN_OPERATOR,
    SB_JINJA_TOKEN_END
} sb_jinja_token_kind;

typedef struct sb_jinja_token {
    sb_jinja_token_kind kind;
    int line;
    char sign[3];         /* of an operator */
    sb_jinja_value value; /* of data, a name, a constant or a string */
} sb_jinja_token;

/** The tokens of a source, the last of which is SB_JINJA_TOKEN_END. */
typedef struct sb_jinja_tokens {
    size_t count, capacity;
    sb_jinja_token *items; /* the caller's, to free by sb_free, also after a failure */
} sb_jinja_tokens;

sb_status sb_jinja_lex(sb_jinja *jinja, const char *source, size_t bytes, sb_jinja_tokens *tokens);
/** The value of a literal of text between its quotes, with its escapes. */
sb_status sb_jinja_unescape(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_value *value);

/* ---- nodes ---- */

typedef enum sb_jinja_node_kind {
    /* expressions */
    SB_JINJA_CONSTANT,
    SB_JINJA_NAME,
    SB_JINJA_MAKE_LIST,
    SB_JINJA_MAKE_TUPLE,
    SB_JINJA_MAKE_DICT, /* children: key, value, key, … */
    SB_JINJA_CHOICE,    /* first if second else third (or NULL) */
    SB_JINJA_AND,
    SB_JINJA_OR,
    SB_JINJA_NOT,
    SB_JINJA_COMPARE, /* first, and then children with an operator each */
    SB_JINJA_ARITHMETIC,
    SB_JINJA_CONCATENATE,
    SB_JINJA_NEGATE, /* or + */
    SB_JINJA_ATTRIBUTE,
    SB_JINJA_ITEM,
    SB_JINJA_SLICE, /* first[children], which may be NULL */
    SB_JINJA_CALL,
    SB_JINJA_FILTER,
    SB_JINJA_TEST,
    /* statements */
    SB_JINJA_DATA,
    SB_JINJA_OUTPUT,
    SB_JINJA_FOR,       /* target first, over second, if third; body, otherwise */
    SB_JINJA_IF,        /* children with first and body each; otherwise */
    SB_JINJA_SET,       /* target first, value second */
    SB_JINJA_SET_BLOCK, /* target first, body */
    SB_JINJA_DEFINE,    /* a macro: parameters in names, their defaults (or NULL) in children; body */
    SB_JINJA_GENERATION,
    SB_JINJA_BREAK,
    SB_JINJA_CONTINUE,
    SB_JINJA_MEMBER_TARGET /* name.attribute, to be set */
} sb_jinja_node_kind;

typedef struct sb_jinja_node sb_jinja_node;

typedef struct sb_jinja_nodes {
    size_t count, capacity;
    sb_jinja_node **items;
} sb_jinja_nodes;

/** Names of a scope, for template_scope.c. */
typedef struct sb_jinja_names {
    size_t count, capacity;
    const sb_jinja_text **items;
} sb_jinja_names;

struct sb_jinja_node {
    sb_jinja_node_kind kind;
    int line;
    char operator;               /* of ARITHMETIC: sb_jinja_arithmetic's; of NEGATE: '-' or '+' */
    const sb_jinja_text *name;   /* of what has one */
    const sb_jinja_text *member; /* of MEMBER_TARGET */
    const sb_jinja_row *row;     /* of a filter or test */
    sb_jinja_value value;        /* of a constant, or data */
    sb_jinja_node *first, *second, *third;
    sb_jinja_nodes children; /* items, arguments, parameters, what is compared with */
    sb_jinja_names names;    /* of arguments: NULL for those without one */
    const char *signs;       /* of COMPARE, one for each child: = ! < > l(<=) g(>=) i(in) n(not in) */
    sb_jinja_nodes body, otherwise;
    sb_jinja_names hidden;           /* of what makes a scope: names that are missing there until they are set */
    sb_jinja_names hidden_otherwise; /* of FOR: those of its else */
};

struct sb_jinja_template {
    sb_jinja_chunk *chunks;
    sb_jinja_nodes body;
    sb_jinja_names hidden;
};

/* ---- parsing ---- */

typedef struct sb_jinja_parser {
    sb_jinja *jinja;
    const sb_jinja_token *token; /* the next one */
    int loops;                   /* around here, for break and continue */
    int scopes_of_loop;          /* how many of them are for loops at all, for `loop` as a target */
} sb_jinja_parser;

sb_status sb_jinja_new_node(sb_jinja_parser *parser, sb_jinja_node_kind kind, int line, sb_jinja_node **node);
sb_status sb_jinja_add_node(sb_jinja *jinja, sb_jinja_nodes *nodes, sb_jinja_node *node);
sb_status sb_jinja_add_name(sb_jinja *jinja, sb_jinja_names *names, const sb_jinja_text *name);
bool sb_jinja_at_operator(const sb_jinja_parser *parser, const char *sign);
bool sb_jinja_at_name(const sb_jinja_parser *parser, const char *name);
/** Goes on behind an operator or a name, if it is there. */
bool sb_jinja_skip_operator(sb_jinja_parser *parser, const char *sign);
bool sb_jinja_skip_name(sb_jinja_parser *parser, const char *name);
sb_status sb_jinja_expect_operator(sb_jinja_parser *parser, const char *sign);
/** Fails about the next token: "expected WHAT, there is …". */
sb_status sb_jinja_fail_token(sb_jinja_parser *parser, const char *expected);

/** Expressions: with or without `a if b`. */
sb_status sb_jinja_parse_expression(sb_jinja_parser *parser, bool choice, sb_jinja_node **node);
/** One, or a tuple without parentheses, that may end at the name `end` (NULL: at no name). */
sb_status sb_jinja_parse_tuple(sb_jinja_parser *parser, bool choice, const char *end, sb_jinja_node **node);
/** What can be assigned to; `members` allows name.attribute. */
sb_status sb_jinja_parse_target(sb_jinja_parser *parser, bool members, const char *end, sb_jinja_node **node);

/** Finds which names are hidden in each scope. */
sb_status sb_jinja_find_scopes(sb_jinja *jinja, sb_jinja_template *parsed);

/* ---- rendering ---- */

typedef struct sb_jinja_binding {
    struct sb_jinja_binding *next;
    const sb_jinja_text *name;
    sb_jinja_value value;
} sb_jinja_binding;

struct sb_jinja_scope {
    sb_jinja_scope *parent;
    sb_jinja_binding *bindings;
    const sb_jinja_dict *variables; /* of the outermost: those of the caller */
};

struct sb_jinja_macro {
    const sb_jinja_node *node;
    sb_jinja_scope *scope; /* that it was defined in */
};

struct sb_jinja_loop {
    sb_jinja_value source; /* whose length is asked for */
    sb_jinja_iterator *iterator;
    int64_t index, length; /* from 0; −1: not known yet */
    int64_t depth;
    sb_jinja_value current, before, after;
    bool has_after, at_end;
};

sb_status sb_jinja_evaluate(sb_jinja *jinja, const sb_jinja_node *node, sb_jinja_value *value);
sb_status sb_jinja_call_macro(sb_jinja *jinja, const sb_jinja_macro *macro, const sb_jinja_arguments *arguments,
                              sb_jinja_value *result);
sb_status sb_jinja_loop_member(sb_jinja *jinja, sb_jinja_loop *loop, const sb_jinja_text *name, sb_jinja_value *result);
/** A scope inside the present one, which the caller leaves by jinja->scope = scope->parent. */
sb_status sb_jinja_open_scope(sb_jinja *jinja, sb_jinja_scope *parent, const sb_jinja_names *hidden);
sb_status sb_jinja_bind(sb_jinja *jinja, const sb_jinja_text *name, sb_jinja_value value);
sb_status sb_jinja_look_up(sb_jinja *jinja, const sb_jinja_text *name, sb_jinja_value *value);

#endif
