/* Where two runs of the same tokens begin to differ: each node's results by one way of computing, and then by another. */
#ifndef CLI_LOCATING_H
#define CLI_LOCATING_H

#include <samebit/llm.h>

/* A node whose results differ, or the first of them. */
typedef struct located {
    bool found;
    char name[160], op[64];
    char kernel[64], other_kernel[64]; /* what computed it in the first runs, and in the others */
    long long layer;                   /* by its name; -1: none */
    int64_t run;                       /* which piece of the sequence, from 0 */
} located;

typedef struct recorded_node {
    char *name;
    char kernel[64];
    char digest[SB_DIGEST_TEXT_BYTES]; /* over all results */
    int64_t run;
} recorded_node;

typedef struct locating {
    recorded_node *nodes;
    size_t count, room;
    size_t at;       /* the other runs: behind the last node that both have */
    int64_t run;     /* of the runs in progress */
    bool comparing;  /* these are the other runs */
    bool began;      /* a node has been seen, whose name … */
    char first[160]; /* … begins each run */
    located result;
} locating;

/** An sb_observer, whose context is a locating: records the results of each node of the graph itself, or, once `comparing`, holds them to
 * those of the node of the same name. At the first that differs the run ends with SB_ERROR_INTERRUPTED, and `result.found`. Nodes that
 * only one of both has are passed over. */
sb_status locate_by_node(void *context, sb_node_event *event, sb_error *error);
/** The next runs are those to compare, from the first piece on. */
void begin_comparing(locating *locating);
void free_locating(locating *locating);

#endif
