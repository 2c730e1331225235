/* What a profile measured. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include <invar/invar.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One node, over all measured runs. Text belongs to the model. */
typedef struct profiled_node {
    const char *name, *op, *kernel;
    int depth; /* more than 0: inside If, Loop, Scan or a fused node, and part of that node's time
                */
    int64_t calls, total_ns, least_ns, bytes;
    int64_t flops; /* of one call; -1: not known */
} profiled_node;

/* One call of a node in a measured run. */
typedef struct profiled_call {
    int node;
    int64_t start_ns, end_ns;
} profiled_call;

typedef struct profile {
    const char *model;
    int runs;
    double *run_ns, *run_start_ns; /* per run */
    int node_count, node_capacity;
    profiled_node *nodes; /* in the order in which they first ended */
    size_t call_count, call_capacity;
    profiled_call *calls;
    size_t slot_count; /* of the table from names to nodes: a power of two */
    int *slots;
    bool measuring;
} profile;

/* Nodes of one operator at depth 0. */
typedef struct profiled_op {
    const char *op;
    int nodes;
    double ns;       /* per run */
    double flops;    /* per run, of the nodes where they are known */
    double known_ns; /* the time of those */
} profiled_op;

/** The operators, slowest first: *count entries to free, or NULL when memory runs out. */
profiled_op *sum_operators(const profile *profile, int *count);
/** The nodes' indices, slowest first: to free, or NULL. */
int *sort_nodes(const profile *profile);
/** Nanoseconds per run: of the whole run, and of a node. */
double mean_run_ns(const profile *profile);
double mean_node_ns(const profile *profile, const profiled_node *node);

/* The reports. Each is false when memory runs out. */
bool print_profile(const profile *profile, bool all);
bool print_profile_json(FILE *file, const profile *profile);
/** Trace events for Perfetto and chrome://tracing. */
void write_trace(FILE *file, const profile *profile);
bool write_profile_page(FILE *file, const profile *profile);

#endif
