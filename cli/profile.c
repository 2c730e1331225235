/* samebit profile: where the time of a run goes. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"
#include "placement.h"
#include "progress.h"
#include "running.h"
#include "whole_file.h"

/* Runs before whole runs are measured: the second records graphs, the third is the first replay. */
#define PLAIN_WARMUP 3

const option profile_options[] = {
    {"runs", "N", false, "Runs to measure; default 10"},
    {"warmup", "N", false, "Runs before measuring; default 2"},
    {"all", NULL, false, "Print every node, not only the slowest"},
    {"trace", "FILE", false,
     "Write a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: nodes and copies, and what "
     "a device did for them"},
    {"html", "FILE", false, "Write a page with a timeline and tables"},
    {"json", NULL, false, "Print the measurements as JSON"},
    INPUT_OPTIONS,
    MODEL_OPTIONS,
    FILE_OPTION,
    SESSION_OPTIONS,
    {0},
};

/* ---- collecting ---- */

/* What events and spans are counted under: a node, or a value on its way to one side. */
typedef struct entry_key {
    const char *name, *op;
    int depth;
    bool transfer, to_device;
} entry_key;

static bool has_key(const profiled_node *node, const entry_key *key) {
    return node->name == key->name && node->transfer == key->transfer &&
           (!key->transfer || node->on_device == key->to_device);
}

static size_t hash_pointer(const void *pointer) {
    uint64_t bits = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(bits >> 32);
}

/* A name's slot: the one that holds its node, or the free one where it belongs. Names are compared by address: an
 * event's name is the model's own, the same in every run, and looking it up must not cost time. */
static size_t find_slot(const profile *profile, const entry_key *key) {
    size_t slot = hash_pointer(key->name) & (profile->slot_count - 1);
    while (profile->slots[slot] >= 0 && !has_key(&profile->nodes[profile->slots[slot]], key))
        slot = (slot + 1) & (profile->slot_count - 1);
    return slot;
}

static bool grow_slots(profile *profile) {
    size_t count = profile->slot_count > 0 ? 2 * profile->slot_count : 256;
    int *slots = malloc(count * sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i] = -1;
    free(profile->slots);
    profile->slots = slots;
    profile->slot_count = count;
    for (int n = 0; n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        entry_key key = {node->name, node->op, node->depth, node->transfer, node->on_device};
        slots[find_slot(profile, &key)] = n;
    }
    return true;
}

/* The node of that key, new or known; -1 when memory runs out. */
static int find_node(profile *profile, const entry_key *key) {
    if ((size_t)profile->node_count * 2 >= profile->slot_count && !grow_slots(profile))
        return -1;
    size_t slot = find_slot(profile, key);
    if (profile->slots[slot] >= 0)
        return profile->slots[slot];
    if (profile->node_count == profile->node_capacity) {
        int capacity = profile->node_capacity > 0 ? 2 * profile->node_capacity : 64;
        profiled_node *nodes = realloc(profile->nodes, (size_t)capacity * sizeof *nodes);
        if (nodes == NULL)
            return -1;
        profile->nodes = nodes;
        profile->node_capacity = capacity;
    }
    profile->nodes[profile->node_count] = (profiled_node){.name = key->name,
                                                          .op = key->op,
                                                          .depth = key->depth,
                                                          .transfer = key->transfer,
                                                          .on_device = key->to_device,
                                                          .least_ns = INT64_MAX,
                                                          .flops = -1,
                                                          .moved = -1};
    profile->slots[slot] = profile->node_count;
    return profile->node_count++;
}

static bool add_call(profile *profile, int node, const sb_node_event *event) {
    if (profile->call_count == profile->call_capacity) {
        size_t capacity = profile->call_capacity > 0 ? 2 * profile->call_capacity : 1024;
        profiled_call *calls = realloc(profile->calls, capacity * sizeof *calls);
        if (calls == NULL)
            return false;
        profile->calls = calls;
        profile->call_capacity = capacity;
    }
    profile->calls[profile->call_count++] = (profiled_call){node, event->start_ns, event->end_ns};
    return true;
}

static sb_status note_event(void *context, sb_node_event *event, sb_error *error) {
    profile *profile = context;
    if (!profile->measuring || strcmp(event->kernel, "constant") == 0)
        return SB_OK;
    bool transfer = strcmp(event->op, SB_TRANSFER) == 0;
    entry_key key = {event->name, event->op, event->depth, transfer, event->on_device};
    int index = find_node(profile, &key);
    if (index < 0 || !add_call(profile, index, event)) {
        snprintf(error->message, sizeof error->message, "out of memory");
        return error->status = SB_ERROR_OUT_OF_MEMORY;
    }
    profiled_node *node = &profile->nodes[index];
    int64_t taken = event->end_ns - event->start_ns;
    node->kernel = event->kernel;
    node->on_device = event->on_device;
    node->bytes = event->output_bytes;
    node->calls++;
    node->total_ns += taken;
    node->least_ns = taken < node->least_ns ? taken : node->least_ns;
    return SB_OK;
}

/* The node that a task was for; -1 for none. Events come before spans: nodes are known by now, and
 * a value that has been copied without an event was a constant's first time. */
static int find_spans_node(const profile *profile, const sb_task_span *span) {
    if (span->name == NULL || profile->slot_count == 0)
        return -1;
    entry_key key = {span->name, span->op, span->depth, strcmp(span->op, SB_TRANSFER) == 0,
                     strcmp(span->task, "copy to device") == 0};
    int node = profile->slots[find_slot(profile, &key)];
    if (node >= 0 || !key.transfer)
        return node;
    key.to_device = !key.to_device; /* a kernel that packs a value on its way says no direction */
    return profile->slots[find_slot(profile, &key)];
}

static sb_status note_tasks(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    profile *profile = context;
    if (!profile->measuring || count == 0)
        return SB_OK;
    if (profile->task_count + count > profile->task_capacity) {
        size_t capacity = 2 * (profile->task_count + count);
        profiled_task *tasks = realloc(profile->tasks, capacity * sizeof *tasks);
        if (tasks == NULL) {
            snprintf(error->message, sizeof error->message, "out of memory");
            return error->status = SB_ERROR_OUT_OF_MEMORY;
        }
        profile->tasks = tasks;
        profile->task_capacity = capacity;
    }
    for (size_t i = 0; i < count; i++) {
        const sb_task_span *span = &spans[i];
        int node = find_spans_node(profile, span);
        profile->tasks[profile->task_count++] =
            (profiled_task){span->task, node, span->stream, span->start_ns, span->end_ns};
        if (node < 0)
            continue;
        profile->nodes[node].tasks++;
        profile->nodes[node].task_ns += span->end_ns - span->start_ns;
    }
    return SB_OK;
}

/* ---- sums ---- */

double mean_run_ns(const profile *profile) {
    double sum = 0;
    for (int r = 0; r < profile->runs; r++)
        sum += profile->run_ns[r];
    return profile->runs > 0 ? sum / profile->runs : 0;
}

double mean_node_ns(const profile *profile, const profiled_node *node) {
    return (double)node->total_ns / profile->runs;
}

double mean_nodes_ns(const profile *profile) {
    double sum = 0;
    for (int n = 0; n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        sum += node->depth == 0 ? mean_node_ns(profile, node) : 0;
    }
    return sum;
}

int fastest_run(const profile *profile) {
    int best = 0;
    for (int r = 1; r < profile->runs; r++)
        best = profile->run_ns[r] < profile->run_ns[best] ? r : best;
    return best;
}

int count_profiled(const profile *profile) {
    int count = 0;
    for (int n = 0; n < profile->node_count; n++)
        count += !profile->nodes[n].transfer;
    return count;
}

profiled_copies sum_copies(const profile *profile, bool to_device) {
    profiled_copies copies = {0};
    for (int n = 0; n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        if (!node->transfer || node->on_device != to_device)
            continue;
        copies.count += (double)node->calls / profile->runs;
        copies.bytes += (double)node->bytes * (double)node->calls / profile->runs;
        copies.ns += mean_node_ns(profile, node);
    }
    return copies;
}

static int compare_operators(const void *left, const void *right) {
    const profiled_op *first = left, *second = right;
    if (first->ns != second->ns)
        return first->ns > second->ns ? -1 : 1;
    return strcmp(first->op, second->op);
}

profiled_op *sum_operators(const profile *profile, int *count) {
    profiled_op *ops = calloc((size_t)profile->node_count + 1, sizeof *ops);
    *count = 0;
    for (int n = 0; ops != NULL && n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        if (node->depth != 0 || node->transfer)
            continue;
        int o = 0;
        while (o < *count && (strcmp(ops[o].op, node->op) != 0 || ops[o].on_device != node->on_device))
            o++;
        if (o == *count)
            ops[(*count)++] = (profiled_op){.op = node->op, .on_device = node->on_device};
        ops[o].task_ns += (double)node->task_ns / profile->runs;
        double taken = mean_node_ns(profile, node);
        ops[o].nodes++;
        ops[o].ns += taken;
        ops[o].flops += per_run(profile, node, node->flops);
        ops[o].flops_ns += node->flops >= 0 ? taken : 0;
        ops[o].moved += per_run(profile, node, node->moved);
        ops[o].moved_ns += node->moved >= 0 ? taken : 0;
    }
    if (ops != NULL)
        qsort(ops, (size_t)*count, sizeof *ops, compare_operators);
    return ops;
}

/* What sort_nodes sorts: qsort has no context. */
typedef struct ranked {
    int64_t ns;
    int node;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *first = left, *second = right;
    if (first->ns != second->ns)
        return first->ns > second->ns ? -1 : 1;
    return first->node - second->node;
}

int *sort_nodes(const profile *profile) {
    ranked *order = calloc((size_t)profile->node_count + 1, sizeof *order);
    int *nodes = calloc((size_t)profile->node_count + 1, sizeof *nodes);
    if (order == NULL || nodes == NULL) {
        free(order);
        free(nodes);
        return NULL;
    }
    for (int n = 0; n < profile->node_count; n++)
        order[n] = (ranked){profile->nodes[n].total_ns, n};
    qsort(order, (size_t)profile->node_count, sizeof *order, compare_ranked);
    for (int n = 0; n < profile->node_count; n++)
        nodes[n] = order[n].node;
    free(order);
    return nodes;
}

/* ---- the command ---- */

/* Operations and bytes of the nodes, from a snapshot with the extents of the inputs. */
static int count_costs(profile *profile, const running *running) {
    sb_inspection *graph = NULL;
    int code = inspect_with_inputs(running->model, running->inputs, &graph);
    for (int i = 0, n = 0; code == EXIT_RIGHT && i < sb_inspection_node_count(graph); i++) {
        /* Both lists are in the order of execution; nodes inside others lie between. */
        const sb_inspected_node *node = sb_inspection_node(graph, i);
        int at = n;
        while (at < profile->node_count && (profile->nodes[at].depth != 0 || profile->nodes[at].transfer ||
                                            strcmp(profile->nodes[at].name, node->name) != 0))
            at++;
        if (at == profile->node_count)
            continue;
        profile->nodes[at].flops = node->flop_count;
        profile->nodes[at].moved = node->byte_count;
        n = at + 1;
    }
    if (code == EXIT_RIGHT && !note_definitions(profile, graph, false))
        code = out_of_memory();
    sb_inspection_release(graph);
    return code;
}

static int measure(profile *profile, running *running, long long warmup) {
    int code = EXIT_RIGHT;
    for (long long i = 0; i < warmup && code == EXIT_RIGHT; i++) {
        show_progress("warming up: run %lld of %lld", i + 1, warmup);
        code = run_once(running, NULL);
    }
    profile->measuring = true;
    for (int r = 0; r < profile->runs && code == EXIT_RIGHT; r++) {
        show_progress("measuring: run %d of %d", r + 1, profile->runs);
        profile->run_start_ns[r] = now_ns();
        code = run_once(running, &profile->run_ns[r]);
    }
    clear_progress();
    return code == EXIT_RIGHT ? count_costs(profile, running) : code;
}

/* Runs that nothing is measured in: on a device they wait for it only at the end, and are replayed
 * as graphs from the third on. */
static int measure_plain(profile *profile, running *running) {
    double sum = 0;
    int code = renew_session(running);
    for (int r = 0; r < PLAIN_WARMUP && code == EXIT_RIGHT; r++)
        code = run_once(running, NULL);
    for (int r = 0; r < profile->runs && code == EXIT_RIGHT; r++) {
        double taken;
        show_progress("measuring whole runs: %d of %d", r + 1, profile->runs);
        code = run_once(running, &taken);
        sum += taken;
    }
    clear_progress();
    sb_graph_report graphs;
    if (code != EXIT_RIGHT)
        return code;
    sb_session_graphs(running->session, &graphs);
    sb_device_counters counters;
    sb_device_count(running->device, &counters);
    profile->device_most = (double)counters.device_bytes_most;
    profile->plain_ns = sum / profile->runs;
    profile->plain_graphs = graphs.recorded;
    return EXIT_RIGHT;
}

static void note_reason(void *context, const sb_placed_node *placed) {
    profile *profile = context;
    if (placed->why == NULL || profile->slot_count == 0)
        return;
    entry_key key = {placed->name, placed->op, placed->depth, false, false};
    int node = profile->slots[find_slot(profile, &key)];
    if (node >= 0 && profile->nodes[node].why_cpu == NULL)
        profile->nodes[node].why_cpu = strdup(placed->why);
}

static int write_files(const arguments *arguments, const profile *profile) {
    const char *trace = option_value(arguments, "trace"), *page = option_value(arguments, "html");
    whole_file file;
    if (trace != NULL) {
        if (!begin_file(trace, &file))
            return EXIT_FAILED;
        write_trace(file.stream, profile);
        if (!end_file(&file, true))
            return EXIT_FAILED;
    }
    if (page != NULL) {
        if (!begin_file(page, &file))
            return EXIT_FAILED;
        bool complete = write_profile_page(file.stream, profile);
        if (!complete)
            out_of_memory();
        if (!end_file(&file, complete))
            return EXIT_FAILED;
    }
    return EXIT_RIGHT;
}

static int report_profile(const arguments *arguments, const profile *profile) {
    int code = write_files(arguments, profile);
    if (code != EXIT_RIGHT)
        return code;
    if (has_option(arguments, "json"))
        return print_profile_json(stdout, profile) ? EXIT_RIGHT : EXIT_FAILED;
    return print_profile(profile, has_option(arguments, "all")) ? EXIT_RIGHT : out_of_memory();
}

static int profile_model(const arguments *arguments, const sb_model_options *model_options,
                         sb_session_options *session_options, long long warmup, profile *profile) {
    running running;
    session_options->observer = note_event;
    session_options->observer_context = profile;
    session_options->observer_times_only = true;
    session_options->task_observer = note_tasks;
    session_options->task_observer_context = profile;
    int code = open_running(arguments, model_options, session_options, &running);
    if (code == EXIT_RIGHT)
        code = read_inputs(arguments, running.model, true, running.inputs);
    if (code == EXIT_RIGHT)
        code = measure(profile, &running, warmup);
    if (code == EXIT_RIGHT && running.device != NULL) {
        profile->device = sb_device_name(running.device);
        sb_session_visit_placement(running.session, note_reason, profile);
        code = measure_plain(profile, &running);
    }
    if (code == EXIT_RIGHT)
        code = report_profile(arguments, profile);
    if (code == EXIT_RIGHT)
        code = report_placement(arguments, running.session, running.device);
    close_running(&running);
    return code;
}

int run_profile(const arguments *arguments) {
    sb_model_options model_options;
    sb_session_options session_options;
    long long runs = 10, warmup = 2;
    if (!read_model_options(arguments, &model_options) || !read_session_options(arguments, &session_options) ||
        !read_count(arguments, "runs", 1, 100000, &runs) || !read_count(arguments, "warmup", 0, 100000, &warmup))
        return EXIT_USAGE;
    profile profile = {.model = arguments->positional[0], .runs = (int)runs};
    profile.run_ns = calloc((size_t)runs, sizeof *profile.run_ns);
    profile.run_start_ns = calloc((size_t)runs, sizeof *profile.run_start_ns);
    int code = profile.run_ns == NULL || profile.run_start_ns == NULL
                   ? out_of_memory()
                   : profile_model(arguments, &model_options, &session_options, warmup, &profile);
    free(profile.run_ns);
    free(profile.run_start_ns);
    for (int n = 0; n < profile.node_count; n++) {
        free(profile.nodes[n].why_cpu);
        free(profile.nodes[n].why_reference);
    }
    free(profile.tasks);
    free(profile.nodes);
    free(profile.calls);
    free(profile.slots);
    return code;
}
