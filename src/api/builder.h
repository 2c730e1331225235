/* What the parts of the public builder share. See <samebit/builder.h> for the contract. */
#ifndef SB_API_BUILDER_H
#define SB_API_BUILDER_H

#include <samebit/builder.h>

#include "graph/builder.h"

/** How deep graphs may lie in each other: what runs and passes go through by recursion. */
#define SB_BUILDER_NESTING 100

/* A value that the caller has a handle of. */
typedef struct sb_known_value {
    sb_graph_builder *home;
    sb_value_id id;
} sb_known_value;

typedef struct sb_known_entry {
    char *name;
    sb_graph_builder *graph;
} sb_known_entry;

struct sb_builder {
    uint32_t number;  /* in handles */
    bool built;       /* the graphs have gone into a model, or were lost on the way */
    sb_graphs graphs; /* the scope and the variables; the entries join when the model is made */
    sb_names variable_names;
    size_t entry_count, entry_capacity;
    sb_known_entry *entries;
    size_t nested_count, nested_capacity;
    sb_graph_builder **nested; /* kept when a node has taken the graph, so that handles of its values are known */
    sb_graph_builder *open;
    size_t value_count, value_capacity;
    sb_known_value *values;
};

typedef enum sb_handle_kind { SB_HANDLE_VALUE = 1, SB_HANDLE_VARIABLE = 2, SB_HANDLE_GRAPH = 3 } sb_handle_kind;

/** The handle of entry `index` in the builder's table of that kind. */
int64_t sb_builder_handle(const sb_builder *builder, sb_handle_kind kind, size_t index);
/** The index that a handle stands for; INVALID_ARGUMENT for one of another builder or kind. */
sb_status sb_builder_index(const sb_builder *builder, sb_handle_kind kind, int64_t handle, size_t *index,
                           sb_error *error);
/** INVALID_ARGUMENT when the builder has built its model. */
sb_status sb_builder_check(const sb_builder *builder, sb_error *error);
/** The value that a handle stands for in the open graph, captured where it is of a graph around it. Captures stay on
 * failure: the caller takes them back. */
sb_status sb_builder_resolve(sb_builder *builder, sb_builder_value handle, sb_value_id *value, sb_error *error);
/** Makes room for `count` more values, so that noting them cannot fail. */
sb_status sb_builder_reserve_values(sb_builder *builder, size_t count, sb_error *error);
/** A handle for a value of the open graph; there is room. */
sb_builder_value sb_builder_note_value(sb_builder *builder, sb_value_id id);
/** Adds a value of that name to the open graph; INVALID_ARGUMENT when it is taken. */
sb_status sb_builder_named_value(sb_builder *builder, const char *name, sb_value_id *value, sb_error *error);

/* How the open graph and those around it were. */
typedef struct sb_builder_change {
    sb_builder_mark marks[SB_BUILDER_NESTING + 1];
} sb_builder_change;

void sb_builder_begin(const sb_builder *builder, sb_builder_change *change);
/** Takes the change back if `status` tells of a failure. Returns it. */
sb_status sb_builder_end(sb_builder *builder, const sb_builder_change *change, sb_status status);

#endif
