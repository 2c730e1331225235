/* Which names are hidden where. jinja2 settles at compile time what a name means in a scope (a loop's body, a macro, a block
 * that is set, a generation block): one that the scope sets before it reads it, and that no scope around it knows, is
 * undefined there until it is set, also in scopes inside and also where the caller gave a variable of that name. Other names
 * are looked for outwards when they are read, as the evaluator does. Those first ones are what is found here. */
#include "base/allocation.h"
#include "template/tree.h"

/* More names than this in a scope are nobody's template; they are searched one by one. */
#define NAMES 2000

typedef struct symbols {
    struct symbols *parent;
    sb_jinja_names known;  /* read or set here */
    sb_jinja_names hidden; /* of those: the ones above */
    bool undecided;        /* inside an if: what is set first there is looked for outwards */
} symbols;

typedef struct finder {
    sb_jinja *jinja;
    symbols *symbols;
    size_t known; /* in all scopes around here: what a search costs */
} finder;

static bool equal(const sb_jinja_text *left, const sb_jinja_text *right) {
    return left->bytes == right->bytes && memcmp(left->data, right->data, left->bytes) == 0;
}

static bool is_known(const symbols *symbols, const sb_jinja_text *name) {
    for (size_t i = 0; i < symbols->known.count; i++) {
        if (equal(symbols->known.items[i], name))
            return true;
    }
    return false;
}

static bool is_known_outside(const symbols *symbols, const sb_jinja_text *name) {
    for (symbols = symbols->parent; symbols != NULL; symbols = symbols->parent) {
        if (is_known(symbols, name))
            return true;
    }
    return false;
}

static sb_status know(finder *finder, const sb_jinja_text *name) {
    finder->known++;
    if (finder->symbols->known.count >= NAMES)
        return sb_jinja_fail(finder->jinja, SB_ERROR_LIMIT, "more than %d names in one scope", NAMES);
    return sb_jinja_add_name(finder->jinja, &finder->symbols->known, name);
}

static sb_status load(finder *finder, const sb_jinja_text *name) {
    symbols *here = finder->symbols;
    SB_TRY(sb_jinja_spend(finder->jinja, finder->known / 16));
    return is_known(here, name) || is_known_outside(here, name) ? SB_OK : know(finder, name);
}

static sb_status store(finder *finder, const sb_jinja_text *name) {
    symbols *here = finder->symbols;
    SB_TRY(sb_jinja_spend(finder->jinja, finder->known / 16));
    if (is_known(here, name))
        return SB_OK;
    if (!here->undecided && !is_known_outside(here, name))
        SB_TRY(sb_jinja_add_name(finder->jinja, &here->hidden, name));
    return know(finder, name);
}

static sb_status visit(finder *finder, sb_jinja_node *node);

static sb_status visit_all(finder *finder, const sb_jinja_nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++)
        SB_TRY(visit(finder, nodes->items[i]));
    return SB_OK;
}

/* A target: `parameter` is one of a loop, which is never hidden. */
static sb_status visit_target(finder *finder, const sb_jinja_node *node, bool parameter) {
    if (node->kind == SB_JINJA_MEMBER_TARGET)
        return load(finder, node->name);
    if (node->kind == SB_JINJA_NAME)
        return !parameter                              ? store(finder, node->name)
               : is_known(finder->symbols, node->name) ? SB_OK
                                                       : know(finder, node->name);
    for (size_t i = 0; i < node->children.count; i++)
        SB_TRY(visit_target(finder, node->children.items[i], parameter));
    return SB_OK;
}

static sb_status visit_if(finder *finder, sb_jinja_node *node) {
    bool before = finder->symbols->undecided;
    for (size_t i = 0; i < node->children.count; i++) {
        finder->symbols->undecided = i != 0 || before;
        SB_TRY(visit(finder, node->children.items[i]->first));
        finder->symbols->undecided = true;
        SB_TRY(visit_all(finder, &node->children.items[i]->body));
    }
    finder->symbols->undecided = true;
    SB_TRY(visit_all(finder, &node->otherwise));
    finder->symbols->undecided = before;
    return SB_OK;
}

/* Visits a node of the scope that finder is in; what makes a scope of its own is left for visit_inner. */
static sb_status visit_inside(finder *finder, sb_jinja_node *node) {
    switch (node->kind) {
    case SB_JINJA_NAME:
        return load(finder, node->name);
    case SB_JINJA_FOR:
        return visit(finder, node->second);
    case SB_JINJA_IF:
        return visit_if(finder, node);
    case SB_JINJA_SET:
        SB_TRY(visit(finder, node->second));
        return visit_target(finder, node->first, false);
    case SB_JINJA_SET_BLOCK:
        return visit_target(finder, node->first, false);
    case SB_JINJA_DEFINE:
        return store(finder, node->name);
    case SB_JINJA_GENERATION:
        return SB_OK;
    default:
        SB_TRY(visit(finder, node->first));
        SB_TRY(visit(finder, node->second));
        SB_TRY(visit(finder, node->third));
        return visit_all(finder, &node->children);
    }
}

static sb_status visit(finder *finder, sb_jinja_node *node) {
    if (node == NULL)
        return SB_OK;
    finder->jinja->line = node->line;
    SB_TRY(sb_jinja_enter(finder->jinja));
    SB_TRY(visit_inside(finder, node));
    finder->jinja->depth--;
    return SB_OK;
}

static sb_status visit_scopes(finder *finder, const sb_jinja_nodes *body);

/* The names of a body, and of what it brings along: a loop's target, a macro's parameters and defaults. */
static sb_status visit_names(finder *finder, const sb_jinja_node *node, const sb_jinja_nodes *body) {
    static const sb_jinja_text loop = {"loop", 4, 4};
    if (node != NULL && node->kind == SB_JINJA_FOR && body == &node->body) {
        SB_TRY(know(finder, &loop));
        SB_TRY(visit_target(finder, node->first, true));
    }
    if (node != NULL && node->kind == SB_JINJA_DEFINE) {
        for (size_t i = 0; i < node->names.count; i++)
            SB_TRY(know(finder, node->names.items[i]));
        SB_TRY(visit_all(finder, &node->children));
    }
    return visit_all(finder, body);
}

/* The scope of a body: its own names first, then the scopes inside it, as jinja2 goes. */
static sb_status visit_scope(finder *finder, const sb_jinja_node *node, const sb_jinja_nodes *body,
                             sb_jinja_names *hidden) {
    symbols own = {.parent = finder->symbols};
    finder->symbols = &own;
    sb_status status = visit_names(finder, node, body);
    if (status == SB_OK)
        status = visit_scopes(finder, body);
    *hidden = own.hidden;
    finder->symbols = own.parent;
    finder->known -= own.known.count;
    return status;
}

static sb_status visit_scopes_of(finder *finder, sb_jinja_node *node) {
    switch (node->kind) {
    case SB_JINJA_IF:
        for (size_t i = 0; i < node->children.count; i++)
            SB_TRY(visit_scopes(finder, &node->children.items[i]->body));
        return visit_scopes(finder, &node->otherwise);
    case SB_JINJA_FOR:
        SB_TRY(visit_scope(finder, node, &node->body, &node->hidden));
        return visit_scope(finder, node, &node->otherwise, &node->hidden_otherwise);
    case SB_JINJA_SET_BLOCK:
    case SB_JINJA_DEFINE:
    case SB_JINJA_GENERATION:
        return visit_scope(finder, node, &node->body, &node->hidden);
    default:
        return SB_OK;
    }
}

static sb_status visit_scopes(finder *finder, const sb_jinja_nodes *body) {
    SB_TRY(sb_jinja_enter(finder->jinja));
    for (size_t i = 0; i < body->count; i++)
        SB_TRY(visit_scopes_of(finder, body->items[i]));
    finder->jinja->depth--;
    return SB_OK;
}

sb_status sb_jinja_find_scopes(sb_jinja *jinja, sb_jinja_template *parsed) {
    finder finder = {.jinja = jinja};
    return visit_scope(&finder, NULL, &parsed->body, &parsed->hidden);
}
