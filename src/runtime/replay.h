/* Replaying: runs of consecutive steps on a device are given to it as one graph, once they have been recorded.
 *
 * A *segment* is a longest run of static steps on the device whose launches follow from the plan alone: none reads anything on
 * the host that is not a constant. The first run of a segment is eager: it loads kernels and sizes scratch memory. The second
 * records its tasks. From then on the graph is launched, as long as everything that it touches lies where it did. */
#ifndef IV_RUNTIME_REPLAY_H
#define IV_RUNTIME_REPLAY_H

#include "cuda/graph.h"
#include "runtime/plan.h"

typedef struct iv_runner iv_runner;
typedef struct iv_replay iv_replay;

/* Segments shorter than this are not worth a graph. */
#define IV_LEAST_SEGMENT 2
/* Recorded graphs kept for a segment: two for a caller whose buffers take turns, and two for one who changes them. */
#define IV_MOST_REPLAYS 4

typedef struct iv_segment {
    size_t first, end;    /* the steps first … end - 1 */
    bool warm;            /* has run before */
    bool failed;          /* runs eagerly from now on … */
    char *reason;         /* … for this reason; NULL if there was no memory for it */
    size_t input_count, output_count;
    iv_value_id *inputs;  /* values from outside that its steps read on the device; constants left out */
    iv_value_id *outputs; /* values that its steps make and somebody reads afterwards */
    iv_replay *replays;   /* most recently used first */
} iv_segment;

/** Finds the segments of a plan: plan->segments, and plan->segment_of for each step. */
iv_status iv_segments_find(iv_plan *plan, const iv_program *program, iv_error *error);
void iv_segments_destroy(iv_plan *plan);
/** Forgets what was recorded: memory has moved. */
void iv_segments_forget(iv_plan *plan);

/** Runs a segment of the plan in progress: eagerly, recording, or as a graph. */
iv_status iv_segment_run(iv_runner *runner, iv_segment *segment, iv_error *error);

#endif
