/* What a comparison with recorded tensors found. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <invar/invar.h>

#include <jansson.h>
#include <stdio.h>

typedef enum finding_state {
    FINDING_EQUAL,
    FINDING_WITHIN, /* differs, but within the tolerance */
    FINDING_DIFFERENT,
    FINDING_UNCHECKED
} finding_state;

/* One output of one node, in the order of execution. */
typedef struct finding {
    finding_state state;
    int node; /* counted from 0 in the order of execution */
    char *node_name, *op, *output, *kernel, *type;
    char *why;                /* why it is unchecked or cannot be compared; else NULL */
    iv_comparison comparison; /* unless there is a `why` */
    char *index;              /* of the worst element: "[0,3,1]"; NULL when none differs */
} finding;

typedef struct findings {
    int count, capacity;
    finding *items;
    int node_count;
    int compared, equal, within, different,
        unchecked;             /* nodes: each once, by the worst of its outputs */
    const finding *first;      /* the first output that differs, or NULL */
    double absolute, relative; /* the tolerance */
    bool cumulative;
    int unused; /* recorded arrays that no value of the graph has the name of */
} findings;

/** "equal", "within tolerance", "different", "not compared". */
const char *finding_state_name(finding_state state);

json_t *findings_json(const findings *findings);
/** Writes the page of `--html`. */
void write_findings_page(FILE *file, const findings *findings, const char *model,
                         const char *reference);

#endif
