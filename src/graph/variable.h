/* Variables: what outlives a run of a model, and the models that have them.
 *
 * A model is one or more *entry graphs* over one table of variables. A graph reads a variable as a value that no node
 * makes (sb_graph::reads) and may leave it with another value (sb_graph::updates). That is single assignment: version i
 * enters the run, and the update's value is version i + 1, in the next run's reads. Between the two stand only values:
 * nothing in a graph changes in place, and no pass has to know when a variable is written.
 *
 * Graphs inside of nodes (If, Loop, Scan) have neither reads nor updates. A version enters them as a capture or as a
 * state of the loop, and leaves them as an output. */
#ifndef SB_GRAPH_VARIABLE_H
#define SB_GRAPH_VARIABLE_H

#include "graph/graph.h"
#include "graph/metadata.h"
#include "graph/warnings.h"

typedef struct sb_variable {
    char *name;         /* unique in the model; owned */
    sb_fact fact;       /* dtype and extents of the whole, the axis of slots included; never a constant */
    sb_tensor *initial; /* what it begins with (with slots: each of them), or NULL for zeros */
    bool slots; /* whether axis 0 is one of slots: sequences, or streams, that begin and end apart from each other */
} sb_variable;

/* The table that the graphs of a model share; an index in it names a variable. */
typedef struct sb_variables {
    size_t count, capacity;
    sb_variable *items;
} sb_variables;

void sb_variables_clear(sb_variables *variables);

/** Adds a variable. `fact` is copied: a tensor of known rank, not of text. `initial`, which may be NULL, is
 * retained: it has the fact's dtype and extents, or with `slots` those behind the first. The caller vouches that
 * the name is not taken. */
sb_status sb_variables_add(sb_variables *variables, const char *name, const sb_fact *fact, sb_tensor *initial,
                           bool slots, int *variable, sb_error *error);

/** Takes the last variable out again. */
void sb_variables_remove_last(sb_variables *variables);

/* An entry graph. */
typedef struct sb_entry {
    char *name; /* unique in the model; owned */
    sb_graph *graph;
} sb_entry;

/* What importers and builders hand over: graphs with inferred facts, ready for the passes. Entry 0 is the one that runs
 * when nobody says which. */
typedef struct sb_graphs {
    sb_scope *scope; /* of all facts */
    sb_variables variables;
    size_t count, capacity;
    sb_entry *entries;
    sb_warnings warnings;       /* of what was tolerated in the file */
    sb_model_metadata metadata; /* nothing (NULL) where the graphs come from no file */
} sb_graphs;

/** Frees everything, the scope included. */
void sb_graphs_clear(sb_graphs *graphs);

/** Adds an entry graph, which it owns from here on, also on failure. */
sb_status sb_graphs_add(sb_graphs *graphs, const char *name, sb_graph *graph, sb_error *error);

/** Whether any entry graph updates the variable. */
bool sb_graphs_update(const sb_graphs *graphs, int variable);

/** Turns the reads of variables that no graph updates into constants with their initial tensors, and infers the graphs
 * that had such reads again. INVALID_MODEL for one whose extents are not numbers; what else inference finds. On failure
 * the graphs are fit for sb_graphs_clear alone. */
sb_status sb_graphs_settle(sb_graphs *graphs, sb_error *error);

#endif
