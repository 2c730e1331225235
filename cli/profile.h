/* What a profile measured. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include <samebit/samebit.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "text.h"

/* One node, or a value that is copied between host and device, over all measured runs. Text belongs
 * to the model unless it says otherwise. */
typedef struct profiled_node {
    const char *name, *op, *kernel;
    bool transfer;          /* of the value `name`; `on_device`: to the device */
    bool on_device;         /* where the node ran */
    char *why_cpu;          /* owned: why it did not run on the device; NULL where it did, or there is none */
    char *why_reference;    /* owned: why no kernel of the CPU computes it; NULL where one does */
    int64_t tasks, task_ns; /* what the device did for it */
    int depth;              /* more than 0: inside If, Loop, Scan or a fused node, and part of that node's time */
    int64_t calls, total_ns, least_ns, bytes;
    int64_t flops, moved; /* of one call: operations, and the bytes that it has to read and write; -1: not known */
} profiled_node;

/* One call of a node in a measured run. */
typedef struct profiled_call {
    int node;
    int64_t start_ns, end_ns;
} profiled_call;

/* A kernel, copy or fill of a device in a measured run. */
typedef struct profiled_task {
    const char *task;
    int node, stream; /* node: -1 for what is for none */
    int64_t start_ns, end_ns;
} profiled_task;

typedef struct profile {
    const char *model;
    const char *device; /* what it is called; NULL on the CPU */
    double plain_ns;    /* with a device: per run, when nothing is measured on the way */
    double device_most; /* bytes of the device's memory that were in use at once */
    int plain_graphs;   /* groups of nodes that were then replayed as graphs */
    int runs;
    double *run_ns, *run_start_ns; /* per run */
    int node_count, node_capacity;
    profiled_node *nodes; /* in the order in which they first ended */
    size_t call_count, call_capacity;
    profiled_call *calls;
    size_t task_count, task_capacity;
    profiled_task *tasks;
    size_t slot_count; /* of the table from names to nodes: a power of two */
    int *slots;
    bool measuring;
} profile;

/* Nodes of one operator at depth 0 on one side. */
typedef struct profiled_op {
    const char *op;
    bool on_device;
    int nodes;
    double task_ns;         /* per run: what the device worked for them */
    double ns;              /* per run */
    double flops, flops_ns; /* per run, of the nodes where they are known, and the time of those */
    double moved, moved_ns; /* likewise bytes that are read and written */
} profiled_op;

/* Copies in one direction, those inside of nodes included. */
typedef struct profiled_copies {
    double count, bytes, ns; /* per run */
} profiled_copies;

/** The copies to the device, or to the host. */
profiled_copies sum_copies(const profile *profile, bool to_device);
/** The operators, slowest first: *count entries to free, or NULL when memory runs out. */
profiled_op *sum_operators(const profile *profile, int *count);
/** The nodes' indices, slowest first: to free, or NULL. */
int *sort_nodes(const profile *profile);
/** Nanoseconds per run: of the whole run, and of a node. */
double mean_run_ns(const profile *profile);
double mean_node_ns(const profile *profile, const profiled_node *node);
/** The time of all nodes and copies that are inside no other node. */
double mean_nodes_ns(const profile *profile);
/** The run that took the least time. */
int fastest_run(const profile *profile);
/** How many nodes there are, without copies. */
int count_profiled(const profile *profile);

/* The reports. Each is false when memory runs out. */
bool print_profile(const profile *profile, bool all);
bool print_profile_json(FILE *file, const profile *profile);
/** Trace events for Perfetto and chrome://tracing. */
void write_trace(FILE *file, const profile *profile);
bool write_profile_page(FILE *file, const profile *profile);

/** Notes for the nodes of `graph`, and of graphs inside of nodes, that are computed by reference evaluation why they are.
 * `inside`: the graph is one of a node. False when memory runs out. */
bool note_definitions(profile *profile, const sb_inspection *graph, bool inside);
/** Says how much of the time those take, and names the slowest; nothing where it is little. `order`: of sort_nodes. */
void print_definitions(const profile *profile, const int *order);

/* What the reports share. */
double share(double part, double whole);
/** Operations or bytes per nanosecond: the same number in GFLOP/s or GB/s. "" where there are none. */
const char *speed(double count, double nanoseconds, char room[TEXT_BYTES]);
/** A node's operations, or the bytes that it moves, per run; `of_a_call` is what one call has. */
double per_run(const profile *profile, const profiled_node *node, int64_t of_a_call);

#endif
