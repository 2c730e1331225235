/* What a comparison found, as a page. */
#include "compare.h"

#include <math.h>
#include <string.h>

#include "page.h"

/* ---- drift ---- */

/* The plot's measures in pixels. Drift is on a logarithmic axis between these powers of ten; zero
 * has a row of its own. */
#define PLOT_HEIGHT 260.0
#define PLOT_TOP 14.0
#define PLOT_LEFT 58.0
#define LEAST_POWER (-16)
#define MOST_POWER 4

static const char *state_class(finding_state state) {
    static const char *const classes[] = {"good", "fair", "bad", "none"};
    return classes[state];
}

static double plot_y(double error) {
    double floor = PLOT_TOP + PLOT_HEIGHT;
    if (!(error > 0))
        return floor + 22;
    double power = isfinite(error) ? log10(error) : MOST_POWER;
    power = power < LEAST_POWER ? LEAST_POWER : power > MOST_POWER ? MOST_POWER : power;
    return floor - (power - LEAST_POWER) / (MOST_POWER - LEAST_POWER) * PLOT_HEIGHT;
}

static void print_axis(FILE *file, double width) {
    for (int power = LEAST_POWER; power <= MOST_POWER; power += 4) {
        double y = plot_y(pow(10, power));
        fprintf(file, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"var(--rim)\"/>", PLOT_LEFT, y, width - 8);
        fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", PLOT_LEFT - 6, y + 4, power);
    }
    double y = plot_y(0);
    fprintf(file, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"var(--rim)\" stroke-dasharray=\"2 3\"/>", PLOT_LEFT, y,
            width - 8);
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">exact</text>\n", PLOT_LEFT - 6, y + 4);
}

static void print_dot(FILE *file, const finding *finding, double x) {
    const sb_comparison *found = &finding->comparison;
    double error = finding->why != NULL ? INFINITY : found->worst_error;
    double y = plot_y(found->different == 0 && finding->why == NULL ? 0 : error);
    if (finding->why == NULL && found->max_relative > 0) {
        double relative = plot_y(found->max_relative);
        fprintf(file,
                "<path d=\"M%.1f %.1fV%.1f\" stroke=\"var(--rim)\"/><circle cx=\"%.1f\" "
                "cy=\"%.1f\" r=\"3\" "
                "fill=\"none\" stroke=\"var(--%s)\"/>",
                x, y, relative, x, relative, state_class(finding->state));
    }
    fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"var(--%s)\"><title>%d ", x, y,
            state_class(finding->state), finding->node);
    print_markup(file, finding->op);
    fputs(" ", file);
    print_markup(file, finding->output);
    if (finding->why != NULL) {
        fputs("\n", file);
        print_markup(file, finding->why);
    } else {
        fprintf(file, "\nlargest difference %.3g, relative %.3g\n%lld of %lld elements differ",
                found->different != 0 ? found->worst_error : 0, found->max_relative, (long long)found->different,
                (long long)found->elements);
    }
    fputs("</title></circle>\n", file);
}

/* Of marks one beside the other: as wide as fits, within reason. */
static double step_width(int count) {
    double step = count > 0 ? 1060.0 / count : 12;
    return step < 5 ? 5 : step > 40 ? 40 : step;
}

static bool all_exact(const findings *findings) {
    for (int i = 0; i < findings->count; i++) {
        if (findings->items[i].comparison.different != 0 || findings->items[i].state == FINDING_DIFFERENT)
            return false;
    }
    return true;
}

static void print_plot(FILE *file, const findings *findings) {
    if (all_exact(findings)) {
        fputs("<p>Everything that was compared has the same bits.</p>\n", file);
        return;
    }
    double step = step_width(findings->count);
    double width = PLOT_LEFT + step * findings->count + 24, height = PLOT_TOP + PLOT_HEIGHT + 40;
    fprintf(file,
            "<h2>Drift</h2>\n<p>Largest difference of each output from %s: absolute "
            "(filled) and relative "
            "(open), in the order of the nodes.</p>\n<div class=\"chart\"><svg width=\"%.0f\" "
            "height=\"%.0f\">\n",
            findings->against_cpu ? "the CPU's" : "the recorded one", width, height);
    print_axis(file, width);
    for (int i = 0; i < findings->count; i++) {
        if (findings->items[i].state != FINDING_UNCHECKED)
            print_dot(file, &findings->items[i], PLOT_LEFT + step * (i + 0.5));
    }
    fputs("</svg></div>\n", file);
}

/* ---- where nodes ran, and how long ---- */

/* Bars are as high as the logarithm of the time is above a microsecond. */
#define BARS_HEIGHT 150.0
#define BARS_BOTTOM 34.0
#define LEAST_NS 1e3

static page_place finding_place(const finding *finding) {
    return finding->ran == RAN_ON_DEVICE ? PLACE_DEVICE : finding->ran == RAN_ON_CPU ? PLACE_CPU : PLACE_NONE;
}

/* Whether the finding is its node's first. */
static bool starts_node(const findings *findings, int index) {
    return index == 0 || findings->items[index].node != findings->items[index - 1].node;
}

/* The power of ten, in microseconds, that no node reaches. */
static int most_power(const findings *findings) {
    int power = 1;
    for (int i = 0; i < findings->count; i++) {
        while (power < 9 && (double)findings->items[i].ns > LEAST_NS * pow(10, power))
            power++;
    }
    return power;
}

static double bar_height(double ns, int powers) {
    return ns > LEAST_NS ? 2 + log10(ns / LEAST_NS) / powers * (BARS_HEIGHT - 2) : 2;
}

static void print_bar(FILE *file, const finding *finding, double x, double width, int powers) {
    char room[TEXT_BYTES];
    double height = bar_height((double)finding->ns, powers);
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "style=\"fill:%s\"><title>%d ",
            x, PLOT_TOP + BARS_HEIGHT - height, width, height, place_color(finding_place(finding)), finding->node);
    print_markup(file, finding->op);
    fputs(" ", file);
    print_markup(file, finding->node_name);
    fprintf(file, "\n%s\n", finding->ran == RAN_NOWHERE ? "not run by itself" : duration((double)finding->ns, room));
    print_markup(file, finding->kernel);
    if (finding->why_cpu != NULL) {
        fputs("\non the CPU: ", file);
        print_markup(file, finding->why_cpu);
    }
    fputs("</title></rect>\n", file);
}

/* A mark below the bars, between those of the nodes that the copy comes between. */
static void print_copy_mark(FILE *file, const copy_found *copy, double x) {
    double y = PLOT_TOP + BARS_HEIGHT + 8, point = copy->to_device ? -5 : 5;
    fprintf(file, "<path d=\"M%.1f %.1fl-4 %.1fh8z\" style=\"fill:%s\"><title>copy of ", x, y + 4 + point, -2 * point,
            place_color(PLACE_COPY));
    print_markup(file, copy->value);
    fprintf(file, " %s</title></path>\n", copy->how);
}

static void print_bars(FILE *file, const findings *findings) {
    int powers = most_power(findings);
    double step = step_width(findings->node_count), gap = step > 8 ? 2 : 1;
    double width = PLOT_LEFT + step * findings->node_count + 24;
    fprintf(file, "<div class=\"chart\"><svg width=\"%.0f\" height=\"%.0f\">\n", width,
            PLOT_TOP + BARS_HEIGHT + BARS_BOTTOM);
    for (int power = 0; power <= powers; power++) {
        char room[TEXT_BYTES];
        double y = PLOT_TOP + BARS_HEIGHT - (double)power / powers * BARS_HEIGHT;
        fprintf(file,
                "<path d=\"M%.0f %.1fH%.0f\" style=\"stroke:var(--rim)\"/><text x=\"%.0f\" "
                "y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                PLOT_LEFT, y, width - 8, PLOT_LEFT - 6, y + 4, duration(LEAST_NS * pow(10, power), room));
    }
    for (int i = 0; i < findings->count; i++) {
        const finding *finding = &findings->items[i];
        if (starts_node(findings, i))
            print_bar(file, finding, PLOT_LEFT + step * finding->node, step - gap, powers);
    }
    for (int i = 0; i < findings->copy_count; i++) {
        if (!findings->copies[i].once)
            print_copy_mark(file, &findings->copies[i], PLOT_LEFT + step * findings->copies[i].before - gap / 2);
    }
    fputs("</svg></div>\n", file);
}

static void print_placement(FILE *file, const findings *findings) {
    if (findings->device == NULL)
        return;
    fputs("<h2>Where nodes ran, and how long</h2>\n", file);
    print_places_legend(file, findings->device);
    print_bars(file, findings);
    fputs("<p class=\"soft\">Times are of this one run, each node waited for; the axis is "
          "logarithmic. Copies are those of the model's plan: "
          "▲ to the device, ▼ to the host; constants, copied once, are in the table alone.</p>\n",
          file);
}

/* ---- the table ---- */

static void print_number_cell(FILE *file, bool known, const char *format, double number) {
    char text[64];
    snprintf(text, sizeof text, format, number);
    print_cell(file, "n", known ? text : "");
}

static void print_kernel_cell(FILE *file, const finding *finding) {
    fputs("<td class=\"words\">", file);
    print_markup(file, finding->kernel);
    if (finding->why_cpu != NULL) {
        fputs("<div class=\"soft\">", file);
        print_markup(file, finding->why_cpu);
        fputs("</div>", file);
    }
    fputs("</td>", file);
}

/* What is known of the node and the output. */
static void print_description(FILE *file, const findings *findings, const finding *finding) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%d", finding->node);
    print_cell(file, "n", text);
    if (findings->device != NULL)
        print_place_cell(file, finding_place(finding));
    print_cell(file, "tight", finding->op);
    print_cell(file, "words", finding->output);
    print_cell(file, "tight", finding->type);
    print_kernel_cell(file, finding);
    print_cell(file, "n", finding->ran != RAN_NOWHERE ? duration((double)finding->ns, text) : "");
    snprintf(text, sizeof text, "tight %s", state_class(finding->state));
    print_cell(file, text, finding_state_name(finding->state));
}

static void print_row(FILE *file, const findings *findings, const finding *finding) {
    const sb_comparison *found = &finding->comparison;
    char text[TEXT_BYTES];
    bool known = finding->why == NULL, differs = known && found->different > 0;
    fputs("<tr>", file);
    print_description(file, findings, finding);
    if (finding->why != NULL) {
        fputs("<td colspan=\"7\">", file);
        print_markup(file, finding->why);
        fputs("</td></tr>\n", file);
        return;
    }
    print_cell(file, "n", grouped(found->different, text));
    print_cell(file, "tight", differs ? finding->index : "");
    print_number_cell(file, differs, "%.9g", found->worst_left);
    print_number_cell(file, differs, "%.9g", found->worst_right);
    snprintf(text, sizeof text, "%llu", (unsigned long long)found->worst_ulps);
    print_cell(file, "n", differs && found->worst_ulps != UINT64_MAX ? text : "");
    print_number_cell(file, differs, "%.3g", found->worst_error);
    print_number_cell(file, differs, "%.3g", found->max_relative);
    fputs("</tr>\n", file);
}

/* The copies from *next on that come before node `node`, those of one kind in one row. */
static void print_copy_rows(FILE *file, const findings *findings, int node, int *next) {
    while (*next < findings->copy_count && findings->copies[*next].before <= node) {
        const char *how = findings->copies[*next].how;
        fputs("<tr class=\"copies\"><td></td>", file);
        print_place_cell(file, PLACE_COPY);
        fprintf(file, "<td colspan=\"13\">%s: ", how);
        for (int first = *next; *next < findings->copy_count && findings->copies[*next].before <= node &&
                                strcmp(findings->copies[*next].how, how) == 0;
             (*next)++) {
            fputs(*next > first ? ", " : "", file);
            print_markup(file, findings->copies[*next].value);
        }
        fputs("</td></tr>\n", file);
    }
}

static void print_table(FILE *file, const findings *findings) {
    int copies = 0;
    fprintf(file,
            "<h2>Nodes%s</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">#</th>%s"
            "<th>operator</th><th>output</th><th>type</th><th>kernel</th><th class=\"n\">time</th>"
            "<th>finding</th><th class=\"n\">different</th><th>worst at</th><th "
            "class=\"n\">%s</th><th class=\"n\">%s</th><th class=\"n\">ulps</th>"
            "<th class=\"n\">absolute</th><th class=\"n\">relative</th></tr>\n",
            findings->device != NULL ? " and copies" : "", findings->device != NULL ? "<th>ran on</th>" : "",
            findings->against_cpu ? "device" : "ours", findings->against_cpu ? "CPU" : "recorded");
    for (int i = 0; i < findings->count; i++) {
        if (starts_node(findings, i))
            print_copy_rows(file, findings, findings->items[i].node, &copies);
        print_row(file, findings, &findings->items[i]);
    }
    print_copy_rows(file, findings, findings->node_count, &copies);
    fputs("</table></div>\n", file);
}

static void print_first_paragraph(FILE *file, const findings *findings) {
    const finding *first = findings->first;
    char number[32], room[TEXT_BYTES];
    if (first == NULL) {
        fputs("<p class=\"good\">No node differs.</p>\n", file);
        return;
    }
    fprintf(file, "<p>The first node that differs is number %d, ", first->node);
    print_markup(file, first->op);
    fputs(" <b class=\"bad\">", file);
    print_markup(file, first->node_name);
    fputs("</b>: ", file);
    if (first->why != NULL) {
        print_markup(file, first->why);
    } else {
        fprintf(file, "%lld of %lld elements differ, the worst at %s: %.9g where ",
                (long long)first->comparison.different, (long long)first->comparison.elements, first->index,
                first->comparison.worst_left);
        snprintf(number, sizeof number, "%.9g", first->comparison.worst_right);
        fputs(put_other(findings, number, room), file);
        if (first->comparison.worst_ulps != UINT64_MAX)
            fprintf(file, ", %llu ulps apart", (unsigned long long)first->comparison.worst_ulps);
    }
    fputs(".</p>\n", file);
}

static void print_count(FILE *file, int count, const char *what) {
    char room[TEXT_BYTES];
    print_figure(file, grouped(count, room), what);
}

void write_findings_page(FILE *file, const findings *findings, const char *model, const char *reference) {
    char subject[2048];
    snprintf(subject, sizeof subject, "%s%s%s against %s; %s; tolerance %g + %g × |%s|", model,
             findings->device != NULL ? " on " : "", findings->device != NULL ? findings->device : "", reference,
             findings->cumulative    ? "errors flow on"
             : findings->against_cpu ? "each node gets the CPU's inputs"
                                     : "each node gets the recorded inputs",
             findings->absolute, findings->relative, findings->against_cpu ? "CPU" : "recorded");
    begin_page(file, "Comparison, node by node", subject);
    fputs("<div class=\"figures\">\n", file);
    print_count(file, findings->node_count, "nodes");
    print_count(file, findings->equal, "equal");
    print_count(file, findings->within, "within the tolerance");
    print_count(file, findings->different, "different");
    print_count(file, findings->unchecked, "not compared");
    if (findings->device != NULL) {
        print_count(file, findings->on_device, "ran on the device");
        print_count(file, findings->on_cpu, "ran on the CPU");
        print_count(file, findings->copy_count - findings->once_count, "copies between them");
    }
    fputs("</div>\n", file);
    print_first_paragraph(file, findings);
    print_plot(file, findings);
    print_placement(file, findings);
    print_table(file, findings);
    end_page(file);
}
