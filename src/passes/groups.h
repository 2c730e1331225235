/* Groups of nodes that become one node with a graph of its own, for the passes that gather them.
 *
 * A group is a set of nodes in graph order of which only the last one's output is seen outside. It takes the last
 * node's place; everything it reads is there by then. Nothing is rewritten: the group's nodes move into the new
 * node's body as they are. */
#ifndef SB_PASSES_GROUPS_H
#define SB_PASSES_GROUPS_H

#include "graph/op.h"

/* Longer groups gain nothing: intermediate rows already stay in the cache. */
#define SB_GROUP_LIMIT 32

typedef struct sb_group {
    size_t count;
    size_t nodes[SB_GROUP_LIMIT]; /* indices, ascending */
} sb_group;

/* Who reads the values of a graph, as its nodes stand. */
typedef struct sb_group_uses {
    size_t *first_use; /* per value: where its uses begin in `readers` */
    size_t *readers;   /* the nodes that read a value, ascending */
    /* Per value that may lie in a variable's bytes: the node that makes the variable's update; else SIZE_MAX. */
    size_t *updated_by;
} sb_group_uses;

/** Finds them; sb_group_uses_clear gives the memory back, also after a failure. `uses` begins as zeros. Errors:
 * OUT_OF_MEMORY. */
sb_status sb_group_uses_find(const sb_graph *graph, sb_group_uses *uses, sb_error *error);
void sb_group_uses_clear(sb_group_uses *uses);

/** The node's only output, or SB_NO_VALUE. */
sb_value_id sb_only_output(const sb_node *node);

/** Whether only the last node of the group is read outside, and whether moving the others to where it is puts no reader of a
 * variable's version behind the node that makes its next one. */
bool sb_group_fits(const sb_graph *graph, const sb_group_uses *uses, const sb_group *group);

/** Moves the group's nodes, the last of them with one output, into the body of a new Fused node in the last one's place; NULL stays in the
 * places of the others, until sb_groups_close_gaps. After a failure the graph is as it was. Errors: OUT_OF_MEMORY. */
sb_status sb_group_fuse(sb_graph *graph, const sb_group *group, sb_error *error);

/** Fuses every group that fits of those that `find` finds by their last nodes, in graph order, and closes the gaps. Errors: OUT_OF_MEMORY. */
sb_status sb_groups_fuse(sb_graph *graph, bool (*find)(const sb_graph *graph, size_t last, sb_group *group),
                         sb_error *error);

/** Numbers the nodes anew. Values that have moved into a body keep their places, but nobody makes them here. */
void sb_groups_close_gaps(sb_graph *graph);

#endif
