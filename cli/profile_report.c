/* What a profile measured: as text and JSON. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Nodes printed without --all. */
#define SHOWN_NODES 25

double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

const char *speed(double count, double nanoseconds, char room[TEXT_BYTES]) {
    room[0] = '\0';
    if (count > 0 && nanoseconds > 0)
        snprintf(room, TEXT_BYTES, "%.3g", count / nanoseconds);
    return room;
}

double per_run(const profile *profile, const profiled_node *node, int64_t of_a_call) {
    return of_a_call < 0 ? 0 : (double)of_a_call * (double)node->calls / profile->runs;
}

/* ---- text ---- */

/* Prints text at the right of a column, by characters rather than bytes: of a duration, the µ has two. */
static void print_right(const char *text, int width) {
    for (const char *at = text; *at != '\0'; at++)
        width += ((unsigned char)*at & 0xc0) == 0x80;
    printf("%*s", width, text);
}

static const char *side(bool on_device) {
    return on_device ? "cuda" : "cpu";
}

/* With a device, the columns that only it has. */
static void print_ops_head(const profile *profile) {
    printf("%-26s %6s %12s %7s %9s %9s", "operator", "nodes", "time", "share", "GFLOP/s", "GB/s");
    if (profile->device != NULL)
        printf("  %-6s %12s", "on", "device time");
    putchar('\n');
}

static void print_time_and_share(const profile *profile, double nanoseconds) {
    char time[TEXT_BYTES];
    print_right(duration(nanoseconds, time), 12);
    printf(" %6.1f%%", 100 * share(nanoseconds, mean_run_ns(profile)));
}

static void print_copies(const profile *profile, bool to_device) {
    char bytes[TEXT_BYTES];
    profiled_copies copies = sum_copies(profile, to_device);
    if (copies.count == 0)
        return;
    printf("%-26s %6.4g ", to_device ? "(copies to the device)" : "(copies to the host)", copies.count);
    print_time_and_share(profile, copies.ns);
    printf(" %9s\n", bytes_text(copies.bytes, bytes));
}

static void print_op(const profile *profile, const profiled_op *op) {
    char time[TEXT_BYTES], text[TEXT_BYTES];
    printf("%-26s %6d ", printable(op->op, text), op->nodes);
    print_time_and_share(profile, op->ns);
    printf(" %9s", speed(op->flops, op->flops_ns, text));
    printf(" %9s", speed(op->moved, op->moved_ns, text));
    if (profile->device != NULL) {
        printf("  %-6s ", side(op->on_device));
        print_right(op->on_device ? duration(op->task_ns, time) : "", 12);
    }
    putchar('\n');
}

static void print_ops(const profile *profile, const profiled_op *ops, int count) {
    print_ops_head(profile);
    for (int o = 0; o < count; o++)
        print_op(profile, &ops[o]);
    print_copies(profile, true);
    print_copies(profile, false);
    double between = mean_run_ns(profile) - mean_nodes_ns(profile);
    printf("%-26s %6s ", "(between nodes)", "");
    print_time_and_share(profile, between < 0 ? 0 : between);
    fputs("\n\n", stdout);
}

static void print_node(const profile *profile, const profiled_node *node) {
    char time[TEXT_BYTES], text[TEXT_BYTES];
    double taken = mean_node_ns(profile, node);
    print_time_and_share(profile, taken);
    printf(" %9s", speed(per_run(profile, node, node->flops), taken, text));
    printf(" %9s  ", speed(per_run(profile, node, node->moved), taken, text));
    if (profile->device != NULL) {
        printf("%-4s ", node->transfer ? "copy" : side(node->on_device));
        print_right(node->tasks > 0 ? duration((double)node->task_ns / profile->runs, time) : "", 12);
        fputs("  ", stdout);
    }
    printf("%-20s", node->transfer ? bytes_text((double)node->bytes, text) : printable(node->op, text));
    printf(" %-24s %s%s", node->kernel, node->depth > 0 ? "(inside) " : "", printable(node->name, text));
    if (node->calls != profile->runs)
        printf(" ×%.4g", (double)node->calls / profile->runs);
    if (node->why_cpu != NULL)
        printf(" (%s)", printable(node->why_cpu, text));
    putchar('\n');
}

static void print_nodes(const profile *profile, const int *order, bool all) {
    int shown = all || profile->node_count < SHOWN_NODES ? profile->node_count : SHOWN_NODES;
    printf("%12s %7s %9s %9s  ", "time", "share", "GFLOP/s", "GB/s");
    if (profile->device != NULL)
        printf("%-4s %12s  ", "on", "device time");
    printf("%-20s %-24s %s\n", "operator", "kernel", "node");
    for (int i = 0; i < shown; i++)
        print_node(profile, &profile->nodes[order[i]]);
    if (shown < profile->node_count)
        printf("and %d more: --all prints them\n", profile->node_count - shown);
    putchar('\n');
}

/* With a device, what it costs to wait for it after each node, and what a run takes otherwise. */
static void print_plain(const profile *profile) {
    char time[TEXT_BYTES], name[TEXT_BYTES], most[TEXT_BYTES];
    if (profile->device == NULL)
        return;
    printf("on %s: ", printable(profile->device, name));
    printf("without waiting for each node %s per run, with %d group%s of nodes replayed as graphs; %s of its memory at "
           "most\n",
           duration(profile->plain_ns, time), profile->plain_graphs, profile->plain_graphs == 1 ? "" : "s",
           bytes_text(profile->device_most, most));
}

bool print_profile(const profile *profile, bool all) {
    char time[TEXT_BYTES], least[TEXT_BYTES], rate[TEXT_BYTES];
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    int *order = sort_nodes(profile);
    if (ops != NULL && order != NULL) {
        double best = profile->run_ns[fastest_run(profile)], flops = 0;
        for (int o = 0; o < count; o++)
            flops += ops[o].flops;
        print_ops(profile, ops, count);
        print_nodes(profile, order, all);
        print_definitions(profile, order);
        printf("%d run%s: mean %s, fastest %s", profile->runs, profile->runs == 1 ? "" : "s",
               duration(mean_run_ns(profile), time), duration(best, least));
        if (flops > 0)
            printf(", %s GFLOP/s", speed(flops, mean_run_ns(profile), rate));
        putchar('\n');
        print_plain(profile);
    }
    free(ops);
    free(order);
    return ops != NULL && order != NULL;
}

/* ---- JSON ---- */

static json_t *node_json(const profile *profile, const profiled_node *node) {
    return json_pack("{s:o, s:o, s:o, s:i, s:f, s:f, s:f, s:I, s:o, s:o, s:s, s:o, s:o, s:f, s:f}", "name",
                     text_json(node->name), "op", text_json(node->op), "kernel", text_json(node->kernel), "depth",
                     node->depth, "calls_per_run", (double)node->calls / profile->runs, "mean_ns",
                     mean_node_ns(profile, node), "least_call_ns", (double)node->least_ns, "output_bytes",
                     (json_int_t)node->bytes, "flops", node->flops >= 0 ? json_integer(node->flops) : json_null(),
                     "moved_bytes", node->moved >= 0 ? json_integer(node->moved) : json_null(), "on",
                     side(node->on_device), "why_cpu", text_json(node->why_cpu), "why_reference",
                     text_json(node->why_reference), "device_tasks_per_run", (double)node->tasks / profile->runs,
                     "device_ns", (double)node->task_ns / profile->runs);
}

static json_t *transfer_json(const profile *profile, const profiled_node *node) {
    return json_pack("{s:o, s:s, s:f, s:f, s:I, s:f}", "value", text_json(node->name), "to",
                     node->on_device ? "device" : "host", "copies_per_run", (double)node->calls / profile->runs,
                     "mean_ns", mean_node_ns(profile, node), "bytes", (json_int_t)node->bytes, "device_ns",
                     (double)node->task_ns / profile->runs);
}

bool print_profile_json(FILE *file, const profile *profile) {
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    json_t *runs = json_array(), *operators = json_array(), *nodes = json_array(), *transfers = json_array();
    for (int r = 0; r < profile->runs; r++)
        json_array_append_new(runs, json_real(profile->run_ns[r]));
    for (int o = 0; ops != NULL && o < count; o++)
        json_array_append_new(operators,
                              json_pack("{s:o, s:i, s:f, s:f, s:f, s:s, s:f}", "op", text_json(ops[o].op), "nodes",
                                        ops[o].nodes, "mean_ns", ops[o].ns, "flops", ops[o].flops, "moved_bytes",
                                        ops[o].moved, "on", side(ops[o].on_device), "device_ns", ops[o].task_ns));
    for (int n = 0; n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        if (node->transfer)
            json_array_append_new(transfers, transfer_json(profile, node));
        else
            json_array_append_new(nodes, node_json(profile, node));
    }
    json_t *all = json_pack("{s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o}", "model", text_json(profile->model), "device",
                            text_json(profile->device), "run_ns", runs, "mean_ns", mean_run_ns(profile),
                            "unobserved_mean_ns", profile->device != NULL ? json_real(profile->plain_ns) : json_null(),
                            "device_bytes_most",
                            profile->device != NULL ? json_integer((json_int_t)profile->device_most) : json_null(),
                            "operators", operators, "nodes", nodes, "transfers", transfers);
    if (ops == NULL) {
        json_decref(all);
        all = NULL;
    }
    free(ops);
    return print_json_value(file, all);
}
