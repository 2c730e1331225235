/* A profile as a page. */
#include "profile.h"

#include <stdlib.h>

#include "page.h"
#include "picture.h"

/* The timeline's measures in pixels. */
#define WIDTH 1120.0
#define ROW 30
#define BLOCK 26
#define LABEL 18
/* Rows for nodes within nodes; deeper ones are left out. */
#define MOST_DEPTH 8

static page_place node_place(const profiled_node *node) {
    return node->transfer ? PLACE_COPY : node->on_device ? PLACE_DEVICE : PLACE_CPU;
}

/* With a device colours say where, otherwise what. */
static const char *node_color(const profile *profile, const profiled_node *node) {
    return profile->device != NULL ? place_color(node_place(node)) : op_family_color(op_family(node->op));
}

/* ---- the timeline ---- */

/* Of one run. */
typedef struct timeline {
    const profile *profile;
    double start, whole; /* ns */
} timeline;

/* Whether the times lie in the run, and its beginning and length. */
static bool find_block(const timeline *timeline, int64_t start_ns, int64_t end_ns, double *from, double *taken) {
    *from = (double)start_ns - timeline->start;
    *taken = (double)(end_ns - start_ns);
    return *from >= 0 && *from <= timeline->whole;
}

/* A block up to its tooltip's first words. */
static void begin_block(FILE *file, const timeline *timeline, double from, double taken, int y, const char *color) {
    double span = share(taken, timeline->whole) * WIDTH;
    fprintf(file,
            "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" rx=\"2\" "
            "style=\"fill:%s\"><title>",
            share(from, timeline->whole) * WIDTH, y, span < 0.4 ? 0.4 : span, BLOCK, color);
}

static void print_call(FILE *file, const timeline *timeline, const profiled_call *call, int top) {
    const profile *profile = timeline->profile;
    const profiled_node *node = &profile->nodes[call->node];
    char room[TEXT_BYTES];
    double from, taken;
    if (!find_block(timeline, call->start_ns, call->end_ns, &from, &taken) || node->depth > MOST_DEPTH)
        return;
    begin_block(file, timeline, from, taken, top + ROW * node->depth, node_color(profile, node));
    print_markup(file, node->transfer ? "copy" : node->op);
    fputs(" ", file);
    print_markup(file, node->name);
    fprintf(file, "\n%s\n", duration(taken, room));
    print_markup(file, node->kernel);
    if (node->transfer)
        fprintf(file, ", %s", bytes_text((double)node->bytes, room));
    if (node->why_cpu != NULL) {
        fputs("\non the CPU: ", file);
        print_markup(file, node->why_cpu);
    }
    fputs("</title></rect>\n", file);
}

static void print_task(FILE *file, const timeline *timeline, const profiled_task *task, int y) {
    const profile *profile = timeline->profile;
    char room[TEXT_BYTES];
    double from, taken;
    if (!find_block(timeline, task->start_ns, task->end_ns, &from, &taken))
        return;
    const profiled_node *node = task->node >= 0 ? &profile->nodes[task->node] : NULL;
    begin_block(file, timeline, from, taken, y, place_color(node != NULL ? node_place(node) : PLACE_COPY));
    print_markup(file, task->task);
    fprintf(file, "\n%s", duration(taken, room));
    if (node != NULL) {
        fputs("\nfor ", file);
        print_markup(file, node->transfer ? "value" : node->op);
        fputs(" ", file);
        print_markup(file, node->name);
    }
    fputs("</title></rect>\n", file);
}

static void print_label(FILE *file, int y, const char *what, const char *name) {
    fprintf(file, "<text x=\"0\" y=\"%d\">%s", y + LABEL - 6, what);
    print_markup(file, name);
    fputs("</text>\n", file);
}

static void print_ticks(FILE *file, const timeline *timeline, int y) {
    char room[TEXT_BYTES];
    fprintf(file, "<text x=\"0\" y=\"%d\">0</text>", y);
    for (int i = 1; i <= 4; i++)
        fprintf(file, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"%s\">%s</text>", WIDTH * i / 4, y,
                i == 4 ? "end" : "middle", duration(timeline->whole * i / 4, room));
}

static int deepest_node(const profile *profile) {
    int deepest = 0;
    for (int n = 0; n < profile->node_count; n++)
        deepest = profile->nodes[n].depth > deepest ? profile->nodes[n].depth : deepest;
    return deepest > MOST_DEPTH ? MOST_DEPTH : deepest;
}

/* The calls of one run as blocks along time, nested ones below those that they are part of; below
 * them what the device did. */
static void print_timeline(FILE *file, const profile *profile) {
    int run = fastest_run(profile), label = profile->device != NULL ? LABEL : 0, streams = 0;
    timeline timeline = {profile, profile->run_start_ns[run], profile->run_ns[run]};
    char room[TEXT_BYTES];
    for (size_t t = 0; t < profile->task_count; t++)
        streams = profile->tasks[t].stream >= streams ? profile->tasks[t].stream + 1 : streams;
    int below = label + ROW * (deepest_node(profile) + 1);
    int height = below + streams * (LABEL + ROW) + 24;
    fprintf(file, "<h2>Timeline of the fastest run, %s</h2>\n", duration(timeline.whole, room));
    if (profile->device != NULL)
        print_places_legend(file, profile->device);
    fprintf(file, "<div class=\"chart\"><svg width=\"%.0f\" height=\"%d\">\n", WIDTH, height);
    if (label > 0)
        print_label(file, 0, "nodes and copies, each waited for", "");
    for (size_t c = 0; c < profile->call_count; c++)
        print_call(file, &timeline, &profile->calls[c], label);
    for (int stream = 0; stream < streams; stream++) {
        int y = below + stream * (LABEL + ROW);
        snprintf(room, sizeof room, ", stream %d", stream + 1);
        print_label(file, y, "at work on the device", room);
        for (size_t t = 0; t < profile->task_count; t++) {
            if (profile->tasks[t].stream == stream)
                print_task(file, &timeline, &profile->tasks[t], y + LABEL);
        }
    }
    print_ticks(file, &timeline, height - 10);
    fputs("</svg></div>\n", file);
}

/* ---- tables ---- */

/* A bar as long as the share, and the share in words. */
static void print_share_cell(FILE *file, const char *color, double part) {
    double width = 200 * (part > 1 ? 1 : part);
    fprintf(file, "<td><span class=\"bar\" style=\"width:%.1fpx;background:%s\"></span> %.1f %%</td>", width, color,
            100 * part);
}

static void print_op_row(FILE *file, const profile *profile, const profiled_op *op) {
    char room[TEXT_BYTES];
    page_place place = op->on_device ? PLACE_DEVICE : PLACE_CPU;
    bool device = profile->device != NULL;
    fputs("<tr>", file);
    if (device)
        print_place_cell(file, place);
    print_cell(file, NULL, op->op);
    print_cell(file, "n", grouped(op->nodes, room));
    print_cell(file, "n", duration(op->ns, room));
    print_share_cell(file, device ? place_color(place) : op_family_color(op_family(op->op)),
                     share(op->ns, mean_run_ns(profile)));
    print_cell(file, "n", speed(op->flops, op->flops_ns, room));
    print_cell(file, "n", speed(op->moved, op->moved_ns, room));
    if (device)
        print_cell(file, "n", op->on_device ? duration(op->task_ns, room) : "");
    fputs("</tr>\n", file);
}

static void print_copies_row(FILE *file, const profile *profile, bool to_device) {
    char room[TEXT_BYTES];
    profiled_copies copies = sum_copies(profile, to_device);
    if (copies.count == 0)
        return;
    fputs("<tr>", file);
    print_place_cell(file, PLACE_COPY);
    snprintf(room, sizeof room, "copies to the %s, ", to_device ? "device" : "host");
    fputs("<td>", file);
    print_markup(file, room);
    print_markup(file, bytes_text(copies.bytes, room));
    fputs("</td>", file);
    snprintf(room, sizeof room, "%.4g", copies.count);
    print_cell(file, "n", room);
    print_cell(file, "n", duration(copies.ns, room));
    print_share_cell(file, place_color(PLACE_COPY), share(copies.ns, mean_run_ns(profile)));
    fputs("<td></td><td></td><td></td></tr>\n", file);
}

static void print_op_table(FILE *file, const profile *profile, const profiled_op *ops, int count) {
    bool device = profile->device != NULL;
    fprintf(file,
            "<h2>Operators</h2>\n<div class=\"wide\"><table>\n<tr>%s<th>operator</th><th "
            "class=\"n\">nodes</th><th class=\"n\">time per run</th><th>share</th>"
            "<th class=\"n\">GFLOP/s</th><th class=\"n\">GB/s</th>%s</tr>\n",
            device ? "<th>ran on</th>" : "", device ? "<th class=\"n\">device at work</th>" : "");
    for (int o = 0; o < count; o++)
        print_op_row(file, profile, &ops[o]);
    print_copies_row(file, profile, true);
    print_copies_row(file, profile, false);
    fputs("</table></div>\n", file);
}

static void print_kernel_cell(FILE *file, const profiled_node *node) {
    fputs("<td>", file);
    print_markup(file, node->kernel);
    if (node->why_cpu != NULL) {
        fputs("<div class=\"soft\">", file);
        print_markup(file, node->why_cpu);
        fputs("</div>", file);
    }
    fputs("</td>", file);
}

static void print_node_row(FILE *file, const profile *profile, const profiled_node *node) {
    char room[TEXT_BYTES];
    double taken = mean_node_ns(profile, node);
    bool device = profile->device != NULL;
    fputs("<tr>", file);
    if (device)
        print_place_cell(file, node_place(node));
    print_cell(file, node->depth > 0 ? "none" : NULL, node->name);
    print_cell(file, NULL, node->transfer ? bytes_text((double)node->bytes, room) : node->op);
    print_kernel_cell(file, node);
    snprintf(room, sizeof room, "%.4g", (double)node->calls / profile->runs);
    print_cell(file, "n", room);
    print_cell(file, "n", duration(taken, room));
    print_share_cell(file, node_color(profile, node), share(taken, mean_run_ns(profile)));
    print_cell(file, "n", speed(per_run(profile, node, node->flops), taken, room));
    print_cell(file, "n", speed(per_run(profile, node, node->moved), taken, room));
    if (device)
        print_cell(file, "n", node->tasks > 0 ? duration((double)node->task_ns / profile->runs, room) : "");
    fputs("</tr>\n", file);
}

static void print_node_table(FILE *file, const profile *profile, const int *order) {
    bool device = profile->device != NULL;
    fprintf(file,
            "<h2>Nodes%s</h2>\n<div class=\"wide\"><table>\n<tr>%s<th>%s</th>"
            "<th>%s</th><th>kernel</th><th class=\"n\">calls per run</th>"
            "<th class=\"n\">time per run</th><th>share</th><th class=\"n\">GFLOP/s</th>"
            "<th class=\"n\">GB/s</th>%s</tr>\n",
            device ? " and copies" : "", device ? "<th>ran on</th>" : "", device ? "node, or value" : "node",
            device ? "operator, or size" : "operator", device ? "<th class=\"n\">device at work</th>" : "");
    for (int i = 0; i < profile->node_count; i++)
        print_node_row(file, profile, &profile->nodes[order[i]]);
    fputs("</table></div>\n", file);
}

/* ---- the page ---- */

static void print_figures(FILE *file, const profile *profile, double flops) {
    char room[TEXT_BYTES];
    fputs("<div class=\"figures\">\n", file);
    print_figure(file, grouped(profile->runs, room), "runs");
    print_figure(file, duration(mean_run_ns(profile), room), "mean");
    print_figure(file, duration(profile->run_ns[fastest_run(profile)], room), "fastest");
    if (profile->device != NULL) {
        print_figure(file, duration(profile->plain_ns, room), "mean without waiting for nodes");
        print_figure(file, bytes_text(profile->device_most, room), "of device memory at most");
    }
    print_figure(file, grouped(count_profiled(profile), room), "nodes");
    if (profile->device != NULL) {
        profiled_copies in = sum_copies(profile, true), out = sum_copies(profile, false);
        snprintf(room, sizeof room, "%.4g", in.count + out.count);
        print_figure(file, room, "copies per run");
        print_figure(file, bytes_text(in.bytes + out.bytes, room), "copied per run");
    }
    if (flops > 0)
        print_figure(file, speed(flops, mean_run_ns(profile), room), "GFLOP/s");
    fputs("</div>\n", file);
}

bool write_profile_page(FILE *file, const profile *profile) {
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    int *order = sort_nodes(profile);
    if (ops != NULL && order != NULL) {
        double flops = 0;
        for (int o = 0; o < count; o++)
            flops += ops[o].flops;
        begin_page(file, "Where the time goes", profile->model);
        print_figures(file, profile, flops);
        print_timeline(file, profile);
        print_op_table(file, profile, ops, count);
        print_node_table(file, profile, order);
        end_page(file);
    }
    free(ops);
    free(order);
    return ops != NULL && order != NULL;
}
