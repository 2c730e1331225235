/* Replaying: runs of consecutive steps on a device are given to it as one graph, once they have been recorded.
 *
 * A *segment* is a longest run of static steps on the device whose launches follow from the plan alone: none
 * reads anything on the host that is not a constant. The first run of a segment is eager: it loads kernels and
 * sizes workspaces. The second records its tasks. From then on the graph is launched, as long as everything
 * that it touches lies where it did. */
#ifndef SB_RUNTIME_REPLAY_H
#define SB_RUNTIME_REPLAY_H

#include "runtime/plan.h"

typedef struct sb_runner sb_runner;
typedef struct sb_replay sb_replay;

/* Segments shorter than this are not worth a graph. */
#define SB_LEAST_SEGMENT 2
/* Recorded graphs kept for a segment: one for each of a few runs in flight with outputs of their own on the device, and
 * as many for callers who change their inputs. */
#define SB_MOST_REPLAYS 8

typedef struct sb_segment {
    size_t first, end; /* the steps first … end - 1 */
    bool warm;         /* has run before */
    bool replayed;     /* the latest run has launched or made a recording, `last` */
    bool failed;       /* runs eagerly from now on … */
    char *reason;      /* … for this reason; NULL if there was no memory for it */
    size_t input_count, output_count;
    bool *dies;           /* by input: nobody needs it behind the segment */
    sb_value_id *inputs;  /* values from outside that its steps read on the device; constants left out */
    sb_value_id *outputs; /* values that its steps make and somebody reads afterwards */
    sb_replay *replays;   /* most recently made first */
    sb_replay *last;      /* the one that was used last; NULL: none of them was */
    int64_t uses;         /* of all of them */
} sb_segment;

/** Finds the segments of a plan: plan->segments, and plan->segment_of for each step. */
sb_status sb_segments_find(sb_plan *plan, const sb_program *program, sb_error *error);
void sb_segments_destroy(sb_plan *plan);
/** Forgets what was recorded: memory has moved. */
void sb_segments_forget(sb_plan *plan);

/** Runs a segment of the plan in progress: eagerly, recording, or as a graph. */
sb_status sb_segment_run(sb_runner *runner, sb_segment *segment, sb_error *error);

/** After a run that has launched or made a recording of the segment: notes that any later run may launch it whose inputs lie there. */
void sb_segment_note(sb_segment *segment);
/** Launches such a recording, whose inputs lie there, if memory has not moved and the blocks of what it makes are free; *done says
 * whether. Of its outputs those `count` that `made` lists are then held. Errors: OUT_OF_MEMORY, before the launch; DEVICE. */
sb_status sb_segment_again(sb_runner *runner, sb_segment *segment, const size_t *made, size_t count, bool *done,
                           sb_error *error);

#endif
