/* What a profile measured: as text, JSON, a trace and a page. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "picture.h"
#include "text.h"

/* Nodes printed without --all. */
#define SHOWN_NODES 25

static double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

/* Operations per nanosecond: the same number in GFLOP/s. "" where it is not known or nothing is
 * computed. */
static const char *speed(double flops, double nanoseconds, char room[TEXT_BYTES]) {
    room[0] = '\0';
    if (flops > 0 && nanoseconds > 0)
        snprintf(room, TEXT_BYTES, "%.3g", flops / nanoseconds);
    return room;
}

static double node_flops(const profile *profile, const profiled_node *node) {
    return node->flops < 0 ? 0 : (double)node->flops * (double)node->calls / profile->runs;
}

/* The time of all nodes that are inside no other. */
static double mean_nodes_ns(const profile *profile) {
    double sum = 0;
    for (int n = 0; n < profile->node_count; n++)
        sum += profile->nodes[n].depth == 0 ? mean_node_ns(profile, &profile->nodes[n]) : 0;
    return sum;
}

/* ---- text ---- */

static void print_ops(const profile *profile, const profiled_op *ops, int count) {
    char time[TEXT_BYTES], rate[TEXT_BYTES], name[TEXT_BYTES];
    double whole = mean_run_ns(profile);
    printf("%-26s %6s %12s %7s %9s\n", "operator", "nodes", "time", "share", "GFLOP/s");
    for (int o = 0; o < count; o++)
        printf("%-26s %6d %12s %6.1f%% %9s\n", printable(ops[o].op, name), ops[o].nodes,
               duration(ops[o].ns, time), 100 * share(ops[o].ns, whole),
               speed(ops[o].flops, ops[o].known_ns, rate));
    double between = whole - mean_nodes_ns(profile);
    printf("%-26s %6s %12s %6.1f%%\n\n", "(between nodes)", "",
           duration(between < 0 ? 0 : between, time),
           100 * share(between < 0 ? 0 : between, whole));
}

static void print_nodes(const profile *profile, const int *order, bool all) {
    char time[TEXT_BYTES], rate[TEXT_BYTES], op[TEXT_BYTES], name[TEXT_BYTES];
    double whole = mean_run_ns(profile);
    int shown = all || profile->node_count < SHOWN_NODES ? profile->node_count : SHOWN_NODES;
    printf("%12s %7s %9s  %-20s %-24s %s\n", "time", "share", "GFLOP/s", "operator", "kernel",
           "node");
    for (int i = 0; i < shown; i++) {
        const profiled_node *node = &profile->nodes[order[i]];
        double taken = mean_node_ns(profile, node);
        printf("%12s %6.1f%% %9s  %-20s", duration(taken, time), 100 * share(taken, whole),
               speed(node_flops(profile, node), taken, rate), printable(node->op, op));
        printf(" %-24s %s%s", node->kernel, node->depth > 0 ? "(inside) " : "",
               printable(node->name, name));
        if (node->calls != profile->runs)
            printf(" ×%.4g", (double)node->calls / profile->runs);
        putchar('\n');
    }
    if (shown < profile->node_count)
        printf("and %d more: --all prints them\n", profile->node_count - shown);
    putchar('\n');
}

bool print_profile(const profile *profile, bool all) {
    char time[TEXT_BYTES], least[TEXT_BYTES], rate[TEXT_BYTES];
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    int *order = sort_nodes(profile);
    if (ops != NULL && order != NULL) {
        double best = profile->run_ns[0], flops = 0;
        for (int r = 1; r < profile->runs; r++)
            best = profile->run_ns[r] < best ? profile->run_ns[r] : best;
        for (int o = 0; o < count; o++)
            flops += ops[o].flops;
        print_ops(profile, ops, count);
        print_nodes(profile, order, all);
        printf("%d run%s: mean %s, fastest %s", profile->runs, profile->runs == 1 ? "" : "s",
               duration(mean_run_ns(profile), time), duration(best, least));
        if (flops > 0)
            printf(", %s GFLOP/s", speed(flops, mean_run_ns(profile), rate));
        putchar('\n');
    }
    free(ops);
    free(order);
    return ops != NULL && order != NULL;
}

/* ---- JSON ---- */

static json_t *node_json(const profile *profile, const profiled_node *node) {
    return json_pack("{s:o, s:o, s:o, s:i, s:f, s:f, s:f, s:I, s:o}", "name", text_json(node->name),
                     "op", text_json(node->op), "kernel", text_json(node->kernel), "depth",
                     node->depth, "calls_per_run", (double)node->calls / profile->runs, "mean_ns",
                     mean_node_ns(profile, node), "least_call_ns", (double)node->least_ns,
                     "output_bytes", (json_int_t)node->bytes, "flops",
                     node->flops >= 0 ? json_integer(node->flops) : json_null());
}

bool print_profile_json(FILE *file, const profile *profile) {
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    json_t *runs = json_array(), *operators = json_array(), *nodes = json_array();
    for (int r = 0; r < profile->runs; r++)
        json_array_append_new(runs, json_real(profile->run_ns[r]));
    for (int o = 0; ops != NULL && o < count; o++)
        json_array_append_new(operators,
                              json_pack("{s:o, s:i, s:f, s:f}", "op", text_json(ops[o].op), "nodes",
                                        ops[o].nodes, "mean_ns", ops[o].ns, "flops", ops[o].flops));
    for (int n = 0; n < profile->node_count; n++)
        json_array_append_new(nodes, node_json(profile, &profile->nodes[n]));
    json_t *all =
        json_pack("{s:o, s:o, s:f, s:o, s:o}", "model", text_json(profile->model), "run_ns", runs,
                  "mean_ns", mean_run_ns(profile), "operators", operators, "nodes", nodes);
    if (ops == NULL) {
        json_decref(all);
        all = NULL;
    }
    free(ops);
    return print_json_value(file, all);
}

/* ---- trace ---- */

/* One event, in the order of time, as Chrome's trace viewer and Perfetto read it: times are in
 * microseconds. */
static void print_event(FILE *file, const char *name, const char *category, double start,
                        double taken, const profiled_node *node) {
    json_t *text = text_json(name);
    char *quoted = text != NULL ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    fprintf(
        file,
        ",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f",
        quoted != NULL ? quoted : "\"\"", category, start / 1e3, taken / 1e3);
    if (node != NULL) {
        json_t *arguments =
            json_pack("{s:o, s:o, s:I, s:o}", "operator", text_json(node->op), "kernel",
                      text_json(node->kernel), "output_bytes", (json_int_t)node->bytes, "flops",
                      node->flops >= 0 ? json_integer(node->flops) : json_null());
        char *object = arguments != NULL ? json_dumps(arguments, JSON_COMPACT) : NULL;
        fprintf(file, ",\"args\":%s", object != NULL ? object : "{}");
        free(object);
        json_decref(arguments);
    }
    fputs("}", file);
    free(quoted);
    json_decref(text);
}

void write_trace(FILE *file, const profile *profile) {
    double origin = profile->run_start_ns[0];
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
          "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"invar\"}}",
          file);
    for (int r = 0; r < profile->runs; r++) {
        char name[64];
        snprintf(name, sizeof name, "run %d", r + 1);
        print_event(file, name, "run", profile->run_start_ns[r] - origin, profile->run_ns[r], NULL);
    }
    for (size_t c = 0; c < profile->call_count; c++) {
        const profiled_call *call = &profile->calls[c];
        const profiled_node *node = &profile->nodes[call->node];
        print_event(file, node->name, op_family_name(op_family(node->op)),
                    (double)call->start_ns - origin, (double)(call->end_ns - call->start_ns), node);
    }
    fputs("\n]}\n", file);
}

/* ---- the page ---- */

static int fastest_run(const profile *profile) {
    int best = 0;
    for (int r = 1; r < profile->runs; r++)
        best = profile->run_ns[r] < profile->run_ns[best] ? r : best;
    return best;
}

/* The calls of one run as blocks along time, nested ones below those that they are part of. */
static void print_timeline(FILE *file, const profile *profile) {
    int run = fastest_run(profile), deepest = 0;
    double start = profile->run_start_ns[run], whole = profile->run_ns[run], width = 1120;
    char room[TEXT_BYTES];
    for (int n = 0; n < profile->node_count; n++)
        deepest = profile->nodes[n].depth > deepest ? profile->nodes[n].depth : deepest;
    deepest = deepest > 8 ? 8 : deepest;
    fprintf(file,
            "<h2>Timeline of the fastest run, %s</h2>\n<div class=\"chart\"><svg width=\"%.0f\" "
            "height=\"%d\">\n",
            duration(whole, room), width, 30 * (deepest + 1) + 24);
    for (size_t c = 0; c < profile->call_count; c++) {
        const profiled_call *call = &profile->calls[c];
        const profiled_node *node = &profile->nodes[call->node];
        double from = (double)call->start_ns - start,
               taken = (double)(call->end_ns - call->start_ns);
        if (from < 0 || from > whole || node->depth > deepest)
            continue;
        double span = share(taken, whole) * width;
        fprintf(
            file,
            "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"26\" rx=\"2\" fill=\"%s\"><title>",
            share(from, whole) * width, 30 * node->depth, span < 0.4 ? 0.4 : span,
            op_family_color(op_family(node->op)));
        print_markup(file, node->op);
        fputs(" ", file);
        print_markup(file, node->name);
        fprintf(file, "\n%s", duration(taken, room));
        fputs("\n", file);
        print_markup(file, node->kernel);
        fputs("</title></rect>\n", file);
    }
    int y = 30 * (deepest + 1) + 14;
    fprintf(file, "<text x=\"0\" y=\"%d\">0</text>", y);
    for (int i = 1; i <= 4; i++)
        fprintf(file, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"%s\">%s</text>", width * i / 4, y,
                i == 4 ? "end" : "middle", duration(whole * i / 4, room));
    fputs("</svg></div>\n", file);
}

/* A bar as long as the share, and the share in words. */
static void print_share_cell(FILE *file, const char *op, double part) {
    fprintf(file,
            "<td><span class=\"bar\" style=\"width:%.1fpx;background:%s\"></span> %.1f %%</td>",
            200 * part, op_family_color(op_family(op)), 100 * part);
}

static void print_op_table(FILE *file, const profile *profile, const profiled_op *ops, int count) {
    char room[TEXT_BYTES];
    double whole = mean_run_ns(profile);
    fputs("<h2>Operators</h2>\n<div class=\"wide\"><table>\n<tr><th>operator</th><th "
          "class=\"n\">nodes</th>"
          "<th class=\"n\">time per run</th><th>share</th><th class=\"n\">GFLOP/s</th></tr>\n",
          file);
    for (int o = 0; o < count; o++) {
        fputs("<tr>", file);
        print_cell(file, NULL, ops[o].op);
        print_cell(file, "n", grouped(ops[o].nodes, room));
        print_cell(file, "n", duration(ops[o].ns, room));
        print_share_cell(file, ops[o].op, share(ops[o].ns, whole));
        print_cell(file, "n", speed(ops[o].flops, ops[o].known_ns, room));
        fputs("</tr>\n", file);
    }
    fputs("</table></div>\n", file);
}

static void print_node_table(FILE *file, const profile *profile, const int *order) {
    char room[TEXT_BYTES];
    double whole = mean_run_ns(profile);
    fputs("<h2>Nodes</h2>\n<div "
          "class=\"wide\"><table>\n<tr><th>node</th><th>operator</th><th>kernel</th>"
          "<th class=\"n\">calls per run</th><th class=\"n\">time per run</th><th>share</th>"
          "<th class=\"n\">GFLOP/s</th></tr>\n",
          file);
    for (int i = 0; i < profile->node_count; i++) {
        const profiled_node *node = &profile->nodes[order[i]];
        double taken = mean_node_ns(profile, node);
        fputs("<tr>", file);
        print_cell(file, node->depth > 0 ? "none" : NULL, node->name);
        print_cell(file, NULL, node->op);
        print_cell(file, NULL, node->kernel);
        snprintf(room, sizeof room, "%.4g", (double)node->calls / profile->runs);
        print_cell(file, "n", room);
        print_cell(file, "n", duration(taken, room));
        print_share_cell(file, node->op, share(taken, whole));
        print_cell(file, "n", speed(node_flops(profile, node), taken, room));
        fputs("</tr>\n", file);
    }
    fputs("</table></div>\n", file);
}

bool write_profile_page(FILE *file, const profile *profile) {
    char room[TEXT_BYTES];
    int count;
    profiled_op *ops = sum_operators(profile, &count);
    int *order = sort_nodes(profile);
    if (ops != NULL && order != NULL) {
        double flops = 0;
        for (int o = 0; o < count; o++)
            flops += ops[o].flops;
        begin_page(file, "Where the time goes", profile->model);
        fputs("<div class=\"figures\">\n", file);
        print_figure(file, grouped(profile->runs, room), "runs");
        print_figure(file, duration(mean_run_ns(profile), room), "mean");
        print_figure(file, duration(profile->run_ns[fastest_run(profile)], room), "fastest");
        print_figure(file, grouped(profile->node_count, room), "nodes");
        print_figure(file, speed(flops, mean_run_ns(profile), room), "GFLOP/s");
        fputs("</div>\n", file);
        print_timeline(file, profile);
        print_op_table(file, profile, ops, count);
        print_node_table(file, profile, order);
        end_page(file);
    }
    free(ops);
    free(order);
    return ops != NULL && order != NULL;
}
