/* Following a symbol through a graph: which extents and values depend on it,
 * and what each node has to do about that. */
#ifndef SB_RULES_FOLLOW_H
#define SB_RULES_FOLLOW_H

#include "rules/axes.h"

/* How an extent depends on the symbol. */
typedef enum sb_dependence {
    SB_DEPENDS_NOT,
    SB_DEPENDS_AFFINE, /* a·s + b, where a and b do not mention the symbol s */
    SB_DEPENDS_OTHERWISE
} sb_dependence;

typedef struct sb_followed_value {
    sb_dependence extents[SB_MAX_RANK]; /* per axis of a tensor (or of the tensors of a sequence) of known rank */
    bool elements;                      /* an element that is known as a formula mentions the symbol */
} sb_followed_value;

/* A node's verdict is the hardest of those for its inputs: exact before bounded before independent. */
typedef struct sb_followed_node {
    sb_axis_kind kind;
    bool touched;       /* an input or output depends on the symbol; if not, the kind is independent */
    const char *reason; /* static; NULL for independent nodes */
    int input, axis;    /* that the reason is about; -1 where it is about no axis */
} sb_followed_node;

typedef struct sb_followed {
    size_t value_count, node_count;
    sb_followed_value *values; /* as in the graph */
    sb_followed_node *nodes;
} sb_followed;

/** Follows `symbol` through the graph, where `facts` has an entry per value, as sb_graph_infer leaves
 * them. Nodes with graphs of their own are exact where they take or capture what depends on it; those
 * graphs are not looked into. The caller clears *followed, which is empty on failure. Errors:
 * OUT_OF_MEMORY; INTERNAL for an operator without an entry. */
sb_status sb_follow_symbol(const sb_graph *graph, const sb_fact *facts, const char *symbol, sb_followed *followed,
                           sb_error *error);
void sb_followed_clear(sb_followed *followed);

#endif
