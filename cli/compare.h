/* What a comparison with recorded tensors, or with a run on the CPU, found. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <samebit/samebit.h>

#include <jansson.h>
#include <stdio.h>

#include "reference.h"
#include "text.h"

typedef enum finding_state {
    FINDING_EQUAL,
    FINDING_WITHIN, /* differs, but within the tolerance */
    FINDING_DIFFERENT,
    FINDING_UNCHECKED
} finding_state;

typedef enum ran_where {
    RAN_NOWHERE, /* known before the run, or no node makes it */
    RAN_ON_CPU,
    RAN_ON_DEVICE
} ran_where;

/* One output of one node, in the order of execution. */
typedef struct finding {
    finding_state state;
    int node; /* counted from 0 in the order of execution */
    char *node_name, *op, *output, *kernel, *type;
    char *why;                /* why it is unchecked or cannot be compared; else NULL */
    ran_where ran;            /* of the node */
    char *why_cpu;            /* why the node did not run on the device; NULL where it did, or there is none */
    int64_t ns;               /* what the node took, launch and waiting included; the same for its outputs */
    sb_comparison comparison; /* unless there is a `why` */
    char *index;              /* of the worst element: "[0,3,1]"; NULL when none differs */
} finding;

/* A copy between host and device that the run's plan has. */
typedef struct copy_found {
    char *value;
    const char *how; /* "to device", "to host", "constant to device, once" */
    int before;      /* the node that it comes before; the number of nodes for one at the end */
    bool to_device;
    bool once; /* not in later runs */
} copy_found;

typedef struct findings {
    int count, capacity;
    finding *items;
    int node_count;
    int compared, equal, within, different, unchecked; /* nodes: each once, by the worst of its outputs */
    const finding *first;                              /* the first output that differs, or NULL */
    double absolute, relative;                         /* the tolerance */
    bool cumulative;
    bool against_cpu;      /* the other side is a run on the CPU, not a file */
    const char *device;    /* what the device is called; NULL when the run was on the CPU */
    int on_device, on_cpu; /* nodes, of those that ran */
    int copy_count, copy_capacity;
    int once_count; /* copies of those that are made once */
    copy_found *copies;
    int unused; /* recorded arrays that no value of the graph has the name of */
    char **unused_names;
} findings;

/* ---- findings.c ---- */

/** "equal", "within tolerance", "different", "not compared". */
const char *finding_state_name(finding_state state);
/** "", "cpu", "cuda". */
const char *ran_where_name(ran_where ran);
/** "WHAT is recorded" or "the CPU has WHAT", as the other side is. Returns `room`. */
const char *put_other(const findings *findings, const char *what, char room[TEXT_BYTES]);

void free_findings(findings *findings);
/** Fills in that memory ran out. */
sb_status fail_memory(sb_error *error);

/** Adds a finding for an output of the node that is number `node_count`; the caller raises that
 * after the node's last one. */
sb_status start_finding(findings *findings, const char *node_name, const char *op, const char *output,
                        const char *kernel, sb_value value, finding **started, sb_error *error);
/** Fills in what the value and the recorded one say; NULL: there is none. */
sb_status judge(const findings *findings, finding *finding, sb_value ours, const sb_value *recorded, sb_error *error);
/** Notes why there is nothing to compare. */
sb_status leave_unchecked(finding *finding, const char *why, sb_error *error);
bool was_found(const findings *findings, const char *output);
/** At the end: the sums. A node counts once: as different if any output is, as not compared if no output was. */
void count_nodes(findings *findings);

/* ---- compare_hidden.c: values that no node of the simplified graph hands over ---- */

/* A value within a fused node. Text is the snapshot's. */
typedef struct hidden_value {
    const char *name, *op, *node;
    const char *fused; /* the node's name */
    bool done;         /* compared, or listed as not compared */
} hidden_value;

typedef struct hidden_values {
    int count;
    hidden_value *items; /* in the order of the graph */
} hidden_values;

/** The inner values of the graph's fused nodes; the caller frees the items. False when memory runs out. */
bool find_hidden_values(const sb_inspection *graph, hidden_values *hidden);
/** The inner value of that name and operator, or NULL. */
hidden_value *find_hidden(hidden_values *hidden, const char *name, const char *op);
/** Lists the values inside fused node `fused` (NULL: any) that were not compared. */
sb_status list_hidden(findings *findings, hidden_values *hidden, reference *reference, const char *fused,
                      sb_error *error);
/** Compares the recorded values that the graph knows as constants, and lists those that it does not have. */
sb_status list_removed(findings *findings, reference *reference, const sb_inspection *graph, sb_error *error);

/* ---- compare_places.c ---- */

/** Notes why nodes ran on the CPU, and the plan's copies. */
int note_places(findings *findings, sb_session *session);

/* ---- reports ---- */

void print_findings(const findings *findings, bool verbose);
json_t *findings_json(const findings *findings);
/** Writes the page of `--html`. */
void write_findings_page(FILE *file, const findings *findings, const char *model, const char *reference);

#endif
