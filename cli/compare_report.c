/* What a comparison found, as JSON and as a page. */
#include "compare.h"

#include <math.h>
#include <string.h>

#include "page.h"
#include "text.h"

/* ---- JSON ---- */

/* JSON has no infinities and no NaN: they become text. */
static json_t *number_json(double number) {
    if (isfinite(number))
        return json_real(number);
    return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

static json_t *finding_json(const finding *finding) {
    const iv_comparison *found = &finding->comparison;
    json_t *worst = json_null(), *counts = json_null();
    if (finding->index != NULL)
        worst =
            json_pack("{s:s, s:o, s:o, s:o, s:o}", "index", finding->index, "ours",
                      number_json(found->worst_left), "recorded", number_json(found->worst_right),
                      "error", number_json(found->worst_error), "ulps",
                      found->worst_ulps <= INT64_MAX ? json_integer((json_int_t)found->worst_ulps)
                                                     : json_null());
    if (finding->why == NULL)
        counts =
            json_pack("{s:I, s:I, s:I, s:o}", "elements", (json_int_t)found->elements, "different",
                      (json_int_t)found->different, "outside", (json_int_t)found->outside,
                      "max_relative", number_json(found->max_relative));
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:o}", "number",
        finding->node, "node", text_json(finding->node_name), "op", text_json(finding->op),
        "output", text_json(finding->output), "type", text_json(finding->type), "kernel",
        text_json(finding->kernel), "state", finding_state_name(finding->state), "why",
        text_json(finding->why), "ran",
        finding->ran == RAN_NOWHERE ? json_null() : json_string(ran_where_name(finding->ran)), "ns",
        (json_int_t)finding->ns, "why_cpu", text_json(finding->why_cpu), "counts", counts, "worst",
        worst);
}

static json_t *copies_json(const findings *findings) {
    json_t *copies = json_array();
    for (int i = 0; i < findings->copy_count; i++)
        json_array_append_new(copies, json_pack("{s:o, s:s, s:i}", "value",
                                                text_json(findings->copies[i].value), "how",
                                                findings->copies[i].how, "before",
                                                findings->copies[i].before));
    return copies;
}

static json_t *unused_json(const findings *findings) {
    json_t *names = json_array();
    for (int i = 0; i < findings->unused; i++)
        json_array_append_new(names, text_json(findings->unused_names[i]));
    return names;
}

json_t *findings_json(const findings *findings) {
    json_t *rows = json_array();
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(rows, finding_json(&findings->items[i]));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:s, s:o, s:i, s:i, s:o, s:[f,f], s:b, "
                     "s:o, s:o}", "nodes",
                     findings->node_count, "compared", findings->compared, "equal", findings->equal,
                     "within", findings->within, "different", findings->different, "not_compared",
                     findings->unchecked, "unused_arrays", findings->unused, "unused_names",
                     unused_json(findings), "against", findings->against_cpu ? "cpu" : "recorded",
                     "device", text_json(findings->device), "on_device", findings->on_device,
                     "on_cpu", findings->on_cpu, "copies", copies_json(findings), "tolerance",
                     findings->absolute, findings->relative, "cumulative", findings->cumulative,
                     "first",
                     findings->first != NULL ? text_json(findings->first->node_name) : json_null(),
                     "outputs", rows);
}

/* ---- the page ---- */

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
        fprintf(file, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"var(--rim)\"/>", PLOT_LEFT, y,
                width - 8);
        fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", PLOT_LEFT - 6,
                y + 4, power);
    }
    double y = plot_y(0);
    fprintf(file, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"var(--rim)\" stroke-dasharray=\"2 3\"/>",
            PLOT_LEFT, y, width - 8);
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">exact</text>\n", PLOT_LEFT - 6,
            y + 4);
}

static void print_dot(FILE *file, const finding *finding, double x) {
    const iv_comparison *found = &finding->comparison;
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
                found->different != 0 ? found->worst_error : 0, found->max_relative,
                (long long)found->different, (long long)found->elements);
    }
    fputs("</title></circle>\n", file);
}

static void print_plot(FILE *file, const findings *findings) {
    double step = findings->count > 0 ? 1060.0 / findings->count : 12;
    step = step < 5 ? 5 : step > 40 ? 40 : step;
    double width = PLOT_LEFT + step * findings->count + 24, height = PLOT_TOP + PLOT_HEIGHT + 40;
    fprintf(file,
            "<h2>Drift</h2>\n<p>Largest difference of each output from the recorded one: absolute "
            "(filled) and relative "
            "(open), in the order of the nodes.</p>\n<div class=\"chart\"><svg width=\"%.0f\" "
            "height=\"%.0f\">\n",
            width, height);
    print_axis(file, width);
    for (int i = 0; i < findings->count; i++) {
        if (findings->items[i].state != FINDING_UNCHECKED)
            print_dot(file, &findings->items[i], PLOT_LEFT + step * (i + 0.5));
    }
    fputs("</svg></div>\n", file);
}

static void print_number_cell(FILE *file, bool known, const char *format, double number) {
    char text[64];
    snprintf(text, sizeof text, format, number);
    print_cell(file, "n", known ? text : "");
}

static void print_row(FILE *file, const finding *finding) {
    const iv_comparison *found = &finding->comparison;
    char text[TEXT_BYTES];
    bool known = finding->why == NULL, differs = known && found->different > 0;
    fputs("<tr>", file);
    snprintf(text, sizeof text, "%d", finding->node);
    print_cell(file, "n", text);
    print_cell(file, NULL, finding->op);
    print_cell(file, NULL, finding->output);
    print_cell(file, NULL, finding->type);
    print_cell(file, NULL, finding->kernel);
    print_cell(file, state_class(finding->state), finding_state_name(finding->state));
    if (finding->why != NULL) {
        fputs("<td colspan=\"7\">", file);
        print_markup(file, finding->why);
        fputs("</td></tr>\n", file);
        return;
    }
    print_cell(file, "n", grouped(found->different, text));
    print_cell(file, NULL, differs ? finding->index : "");
    print_number_cell(file, differs, "%.9g", found->worst_left);
    print_number_cell(file, differs, "%.9g", found->worst_right);
    snprintf(text, sizeof text, "%llu", (unsigned long long)found->worst_ulps);
    print_cell(file, "n", differs && found->worst_ulps != UINT64_MAX ? text : "");
    print_number_cell(file, differs, "%.3g", found->worst_error);
    print_number_cell(file, differs, "%.3g", found->max_relative);
    fputs("</tr>\n", file);
}

static void print_first_paragraph(FILE *file, const findings *findings) {
    const finding *first = findings->first;
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
        fprintf(file, "%lld of %lld elements differ, the worst at %s: %.9g where %.9g is recorded",
                (long long)first->comparison.different, (long long)first->comparison.elements,
                first->index, first->comparison.worst_left, first->comparison.worst_right);
        if (first->comparison.worst_ulps != UINT64_MAX)
            fprintf(file, ", %llu ulps apart", (unsigned long long)first->comparison.worst_ulps);
    }
    fputs(".</p>\n", file);
}

static void print_count(FILE *file, int count, const char *what) {
    char room[TEXT_BYTES];
    print_figure(file, grouped(count, room), what);
}

void write_findings_page(FILE *file, const findings *findings, const char *model,
                         const char *reference) {
    char subject[2048];
    snprintf(subject, sizeof subject, "%s against %s; %s; tolerance %g + %g × |recorded|", model,
             reference,
             findings->cumulative ? "errors flow on" : "each node gets the recorded inputs",
             findings->absolute, findings->relative);
    begin_page(file, "Comparison, node by node", subject);
    fputs("<div class=\"figures\">\n", file);
    print_count(file, findings->node_count, "nodes");
    print_count(file, findings->equal, "equal");
    print_count(file, findings->within, "within the tolerance");
    print_count(file, findings->different, "different");
    print_count(file, findings->unchecked, "not compared");
    fputs("</div>\n", file);
    print_first_paragraph(file, findings);
    print_plot(file, findings);
    fputs("<h2>Nodes</h2>\n<div class=\"wide\"><table>\n<tr><th "
          "class=\"n\">#</th><th>operator</th><th>output</th>"
          "<th>type</th><th>kernel</th><th>finding</th><th class=\"n\">different</th><th>worst "
          "at</th>"
          "<th class=\"n\">ours</th><th class=\"n\">recorded</th><th class=\"n\">ulps</th>"
          "<th class=\"n\">absolute</th><th class=\"n\">relative</th></tr>\n",
          file);
    for (int i = 0; i < findings->count; i++)
        print_row(file, &findings->items[i]);
    fputs("</table></div>\n", file);
    end_page(file);
}
