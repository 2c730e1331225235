#include "placement.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* ---- the device ---- */

/* "cuda" or "cuda:N". */
static bool parse_cuda(const char *name, int *index) {
    long long number = 0;
    *index = 0;
    if (strcmp(name, "cuda") == 0)
        return true;
    if (strncmp(name, "cuda:", 5) != 0 || !parse_integer(name + 5, 0, 1 << 20, &number))
        return false;
    *index = (int)number;
    return true;
}

int open_device(const arguments *arguments, sb_session_options *options, sb_device **device) {
    const char *name = option_value(arguments, "device");
    bool automatic = name != NULL && strcmp(name, "auto") == 0;
    int index = 0;
    sb_error error;
    *device = NULL;
    if (name == NULL || strcmp(name, "cpu") == 0) {
        if (has_option(arguments, "require-device"))
            return usage_error("--require-device needs --device cuda or --device cuda:N");
        return EXIT_RIGHT;
    }
    if (!automatic && !parse_cuda(name, &index))
        return usage_error("--device takes cpu, cuda, cuda:N or auto, not %s", name);
    options->require_device = has_option(arguments, "require-device");
    if (sb_device_open(NULL, index, device, &error) != SB_OK) {
        if (!automatic || options->require_device)
            return report(&error);
        fprintf(stderr, "samebit: running on the CPU: %s\n", error.message);
        return EXIT_RIGHT;
    }
    options->device = *device;
    const char *graphs = option_value(arguments, "graphs");
    for (int mode = SB_GRAPHS_AUTO; graphs != NULL; mode++) {
        if (mode > SB_GRAPHS_BUILD)
            return usage_error("--graphs takes auto, off, capture or build, not %s", graphs);
        options->graphs = (sb_graph_mode)mode;
        if (strcmp(graphs, sb_graph_mode_name(options->graphs)) == 0)
            break;
    }
    options->force_cpu = option_value(arguments, "force-cpu");
    return EXIT_RIGHT;
}

/* ---- what stays on the CPU ---- */

typedef struct collecting {
    manifest *seen;
    bool complete;
} collecting;

static void collect(void *context, const sb_placed_node *node) {
    collecting *collecting = context;
    if (node->on_device || strcmp(node->op, SB_TRANSFER) == 0)
        return;
    if (manifest_reason(collecting->seen, node->op) == NULL)
        collecting->complete = manifest_add(collecting->seen, node->op, node->why) && collecting->complete;
}

bool add_cpu_operators(cpu_operators *operators, sb_session *session, int *nodes) {
    collecting collecting = {&operators->seen, true};
    int count = sb_session_visit_placement(session, collect, &collecting);
    if (nodes != NULL)
        *nodes = count;
    return collecting.complete;
}

void free_cpu_operators(cpu_operators *operators) {
    free_manifest(&operators->seen);
}

int check_allowed(const arguments *arguments, const cpu_operators *operators) {
    const char *path = option_value(arguments, "allow-cpu");
    manifest allowed = {0};
    int code = EXIT_RIGHT;
    if (path == NULL)
        return EXIT_RIGHT;
    if (!read_manifest(path, &allowed))
        code = EXIT_FAILED;
    for (size_t i = 0; i < operators->seen.count && code != EXIT_FAILED; i++) {
        const struct manifest_line *line = &operators->seen.lines[i];
        if (manifest_reason(&allowed, line->name) != NULL)
            continue;
        fprintf(stderr, "samebit: %s ran on the CPU, which %s does not allow: %s\n", line->name, path, line->reason);
        code = EXIT_DIFFERENT;
    }
    for (size_t i = 0; i < allowed.count && code == EXIT_RIGHT; i++) {
        if (manifest_reason(&operators->seen, allowed.lines[i].name) == NULL)
            fprintf(stderr, "samebit: %s allows %s on the CPU, where it no longer runs: the line can go\n", path,
                    allowed.lines[i].name);
    }
    free_manifest(&allowed);
    return code;
}

/* ---- explaining ---- */

static void explain(void *context, const sb_placed_node *node) {
    char name[TEXT_BYTES];
    int *counts = context;
    printable(node->name, name);
    if (strcmp(node->op, SB_TRANSFER) == 0) {
        counts[2]++;
        printf("%*s  copy  %s %s\n", 2 * node->depth, "", name, node->kernel);
        return;
    }
    counts[node->on_device ? 1 : 0]++;
    printf("%*s%s  %s (%s) %s%s%s%s%s%s%s%s\n", 2 * node->depth, "", node->on_device ? "cuda" : "cpu ", name, node->op,
           node->kernel, node->way != NULL ? ": " : "", node->way != NULL ? node->way : "",
           node->by_data ? ", placed by its data" : "", node->slow != NULL ? ", since " : "",
           node->slow != NULL ? node->slow : "", node->why != NULL ? ": " : "", node->why != NULL ? node->why : "");
}

static void print_plans(sb_session *session) {
    const char *why = sb_session_exact_plans(session);
    if (why[0] != '\0')
        printf("plans are for exact extents: %s\n", why);
}

static void print_run(sb_session *session) {
    sb_run_report run;
    sb_session_last_run(session, &run);
    if (!run.synchronous)
        puts("runs are left to the device");
    else if (run.node == NULL)
        printf("runs wait for the device: %s\n", run.reason);
    else {
        char name[TEXT_BYTES];
        printf("runs wait for the device for %s (%s): %s\n", printable(run.node, name), run.op, run.reason);
    }
}

static void print_graphs(sb_session *session) {
    sb_graph_report graphs;
    sb_session_graphs(session, &graphs);
    printf("%d groups of nodes for graphs, %d recorded with %lld tasks, %d failed%s%s\n", graphs.segments,
           graphs.recorded, (long long)graphs.tasks, graphs.failed, graphs.failed > 0 ? ": " : "", graphs.reason);
}

/* What --device auto went by. */
static void print_estimate(const sb_estimate *estimate) {
    if (!estimate->made)
        return;
    printf("estimated: %.0f us on the CPU with %d %s, %.0f us on the device (%d nodes, %.3g operations, %.3g bytes): ",
           estimate->host_us, estimate->threads, estimate->threads == 1 ? "thread" : "threads", estimate->device_us,
           estimate->nodes, estimate->flops, estimate->bytes);
    printf("runs %s; --device %s forces the other\n", estimate->on_device ? "on the device" : "on the CPU",
           estimate->on_device ? "cpu" : "cuda");
}

void explain_placement(const arguments *arguments, sb_session *session, const sb_device *device) {
    int counts[3] = {0};
    if (!has_option(arguments, "explain-placement"))
        return;
    sb_session_visit_placement(session, explain, counts);
    if (device == NULL) {
        printf("no device: all nodes that ran, %d, on the CPU\n", counts[0]);
    } else {
        printf("%d nodes on the device, %d on the CPU, %d copies\n", counts[1], counts[0], counts[2]);
        sb_estimate estimate;
        sb_session_estimate(session, &estimate);
        print_estimate(&estimate);
        print_graphs(session);
        print_run(session);
    }
    print_plans(session);
}

int report_placement(const arguments *arguments, sb_session *session, const sb_device *device) {
    explain_placement(arguments, session, device);
    sb_estimate estimate;
    sb_session_estimate(session, &estimate);
    if (device == NULL || (estimate.made && !estimate.on_device)) /* the CPU was chosen: nothing was left to it */
        return EXIT_RIGHT;
    cpu_operators operators = {0};
    int code = add_cpu_operators(&operators, session, NULL) ? check_allowed(arguments, &operators) : out_of_memory();
    free_cpu_operators(&operators);
    return code;
}
