#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "text.h"

/* Measures in pixels. Widths of text are estimates for common sans-serif fonts, on the safe side. */
#define TITLE_WIDTH 7.9
#define LINE_WIDTH 6.3
#define HEADER_HEIGHT 24.0
#define LINE_HEIGHT 16.0
#define HEAD_HEIGHT 64.0
/* Characters shown of a title or a line; the tooltip has the rest. */
#define SHOWN_CHARACTERS 40

typedef enum vertex_kind { VERTEX_INPUT, VERTEX_NODE, VERTEX_OUTPUT } vertex_kind;

typedef struct vertex {
    vertex_kind kind;
    int index; /* of the node, or of the value */
    int family;
    int line_count;
    char title[TEXT_BYTES], lines[2][TEXT_BYTES];
} vertex;

typedef struct picture {
    const sb_inspection *graph;
    int vertex_count;
    vertex *vertices;
    layout_vertex *places;
    int net_count;
    layout_net *nets;
    int *targets; /* the nets' */
    layout layout;
} picture;

/* ---- what the vertices say ---- */

/* Characters of UTF-8 text. */
static size_t count_characters(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* Cuts clean text to SHOWN_CHARACTERS. */
static void cut(char text[TEXT_BYTES]) {
    static const char ellipsis[] = "…";
    size_t count = 0;
    for (char *at = text; *at != '\0'; at++) {
        if (((unsigned char)*at & 0xc0) == 0x80 || ++count <= SHOWN_CHARACTERS)
            continue;
        if ((size_t)(at - text) + sizeof ellipsis <= TEXT_BYTES)
            memcpy(at, ellipsis, sizeof ellipsis);
        else
            *at = '\0';
        return;
    }
}

static void add_line(vertex *vertex, const char *text) {
    char *line = vertex->lines[vertex->line_count++];
    printable(text, line);
    cut(line);
}

/* What a fused node was made of: "Conv + BatchNormalization + Relu". */
static void describe_members(const sb_inspected_node *node, char title[TEXT_BYTES]) {
    const sb_inspection *body = node->bodies[0];
    size_t used = 0;
    title[0] = '\0';
    for (int i = 0; i < sb_inspection_node_count(body) && used < TEXT_BYTES; i++) {
        int wanted =
            snprintf(title + used, TEXT_BYTES - used, "%s%s", i > 0 ? " + " : "", sb_inspection_node(body, i)->op);
        used += wanted > 0 ? (size_t)wanted : 0;
    }
}

/* The family of the member that does most of the work, which is the first contraction, else the fused family. */
static int fused_family(const sb_inspected_node *node) {
    const sb_inspection *body = node->bodies[0];
    for (int i = 0; i < sb_inspection_node_count(body); i++) {
        int family = op_family(sb_inspection_node(body, i)->op);
        if (family == op_family("MatMul"))
            return family;
    }
    return op_family("Fused");
}

bool is_fused(const sb_inspected_node *node) {
    return node->domain[0] != '\0' && strcmp(node->op, "Fused") == 0 && node->body_count == 1;
}

static void describe_node(const sb_inspection *graph, int index, vertex *vertex) {
    const sb_inspected_node *node = sb_inspection_node(graph, index);
    char number[TEXT_BYTES], text[2 * TEXT_BYTES];
    *vertex = (struct vertex){.kind = VERTEX_NODE, .index = index, .family = op_family(node->op)};
    printable(node->op, vertex->title);
    if (is_fused(node)) {
        describe_members(node, vertex->title);
        vertex->family = fused_family(node);
    }
    cut(vertex->title);
    for (int i = 0; i < node->output_count && vertex->line_count == 0; i++) {
        if (node->outputs[i] >= 0)
            add_line(vertex, sb_inspection_value(graph, node->outputs[i])->fact);
    }
    if (node->parameters > 0) {
        snprintf(text, sizeof text, "%s parameter%s", grouped(node->parameters, number),
                 node->parameters == 1 ? "" : "s");
        add_line(vertex, text);
    }
}

static void describe_port(const sb_inspection *graph, int index, vertex_kind kind, vertex *vertex) {
    const sb_inspected_value *value = sb_inspection_value(graph, index);
    *vertex = (struct vertex){.kind = kind, .index = index};
    printable(value->name, vertex->title);
    cut(vertex->title);
    add_line(vertex, value->fact);
}

static void measure(const vertex *vertex, layout_vertex *place) {
    double width = TITLE_WIDTH * (double)count_characters(vertex->title);
    for (int i = 0; i < vertex->line_count; i++) {
        double line = LINE_WIDTH * (double)count_characters(vertex->lines[i]);
        width = line > width ? line : width;
    }
    place->width = width + 24 < 84 ? 84 : width + 24;
    place->height = HEADER_HEIGHT + LINE_HEIGHT * vertex->line_count + (vertex->line_count > 0 ? 6 : 0);
}

static void describe_vertices(picture *picture) {
    const sb_inspection *graph = picture->graph;
    int count = 0;
    for (int i = 0; i < sb_inspection_input_count(graph); i++)
        describe_port(graph, sb_inspection_input(graph, i), VERTEX_INPUT, &picture->vertices[count++]);
    for (int i = 0; i < sb_inspection_node_count(graph); i++)
        describe_node(graph, i, &picture->vertices[count++]);
    for (int i = 0; i < sb_inspection_output_count(graph); i++)
        describe_port(graph, sb_inspection_output(graph, i), VERTEX_OUTPUT, &picture->vertices[count++]);
    for (int v = 0; v < count; v++)
        measure(&picture->vertices[v], &picture->places[v]);
}

/* ---- nets ---- */

/* Calls `visit` for each value that each vertex reads. */
static void visit_reads(picture *picture, void (*visit)(struct picture *picture, int *state, int value, int vertex),
                        int *state) {
    const sb_inspection *graph = picture->graph;
    int first_node = sb_inspection_input_count(graph), nodes = sb_inspection_node_count(graph);
    for (int n = 0; n < nodes; n++) {
        const sb_inspected_node *node = sb_inspection_node(graph, n);
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] >= 0)
                visit(picture, state, node->inputs[i], first_node + n);
        }
    }
    for (int i = 0; i < sb_inspection_output_count(graph); i++)
        visit(picture, state, sb_inspection_output(graph, i), first_node + nodes + i);
}

static void count_read(picture *picture, int *counts, int value, int vertex) {
    counts[value]++;
}

/* `net_of` is the net of each value, or -1; a vertex that reads a value twice gets one line. */
static void add_target(picture *picture, int *net_of, int value, int vertex) {
    if (net_of[value] < 0)
        return;
    layout_net *net = &picture->nets[net_of[value]];
    int *targets = (int *)net->targets;
    if (net->target_count == 0 || targets[net->target_count - 1] != vertex)
        targets[net->target_count++] = vertex;
}

static void add_net(picture *picture, int value, int source, const int *counts, int *net_of, int *used) {
    if (net_of[value] >= 0 || counts[value] == 0)
        return;
    net_of[value] = picture->net_count;
    picture->nets[picture->net_count++] = (layout_net){source, 0, picture->targets + *used};
    *used += counts[value];
}

static bool make_nets(picture *picture) {
    const sb_inspection *graph = picture->graph;
    int values = sb_inspection_value_count(graph), reads = 0, used = 0;
    int *counts = calloc((size_t)values + 1, sizeof *counts);
    int *net_of = calloc((size_t)values + 1, sizeof *net_of);
    picture->nets = calloc((size_t)values + 1, sizeof *picture->nets);
    bool complete = counts != NULL && net_of != NULL && picture->nets != NULL;
    if (complete)
        visit_reads(picture, count_read, counts);
    for (int v = 0; complete && v < values; v++) {
        reads += counts[v];
        net_of[v] = -1;
    }
    picture->targets = complete ? calloc((size_t)reads + 1, sizeof *picture->targets) : NULL;
    complete = picture->targets != NULL;
    int inputs = sb_inspection_input_count(graph);
    for (int i = 0; complete && i < inputs; i++)
        add_net(picture, sb_inspection_input(graph, i), i, counts, net_of, &used);
    for (int n = 0; complete && n < sb_inspection_node_count(graph); n++) {
        const sb_inspected_node *node = sb_inspection_node(graph, n);
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] >= 0)
                add_net(picture, node->outputs[i], inputs + n, counts, net_of, &used);
        }
    }
    if (complete)
        visit_reads(picture, add_target, net_of);
    free(counts);
    free(net_of);
    return complete;
}

/* ---- SVG ---- */

static const char style[] =
    "svg{font-family:system-ui,'Segoe UI',Roboto,'Helvetica "
    "Neue',Arial,sans-serif;background:var(--page);"
    "--page:#fff;--box:#fbfbfc;--rim:#c9ced6;--ink:#22262d;--soft:#5d6673;--edge:#98a2b0;--lit:#"
    "e06c00}\n"
    "@media "
    "(prefers-color-scheme:dark){svg{--page:#15181d;--box:#20252c;--rim:#3c4450;--ink:#e8ebf0;"
    "--soft:#a3adba;--edge:#66707e;--lit:#ffab4a}}\n"
    ".b{fill:var(--box);stroke:var(--rim)}.t{fill:#fff;font-size:13px;font-weight:600;text-anchor:"
    "middle}"
    ".p{fill:var(--ink);font-size:13px;font-weight:600;text-anchor:middle}"
    ".l{fill:var(--soft);font-size:11px;text-anchor:middle}"
    ".e{fill:none;stroke:var(--edge);stroke-width:1.3}.a{fill:var(--edge)}"
    ".h{fill:var(--ink);font-size:17px;font-weight:600}.s{fill:var(--soft);font-size:12px}\n"
    "g:hover>.e{stroke:var(--lit);stroke-width:2.4}g:hover>.a{fill:var(--lit)}g:hover>.b{stroke:"
    "var(--lit)}\n";

static void print_tip_value(const picture *picture, FILE *file, const char *what, int index) {
    if (index < 0)
        return;
    const sb_inspected_value *value = sb_inspection_value(picture->graph, index);
    fprintf(file, "\n%s ", what);
    print_markup(file, value->name);
    fputs(": ", file);
    print_markup(file, value->fact);
}

/* Everything that is known of the node. */
static void print_tip(const picture *picture, FILE *file, const sb_inspected_node *node) {
    char room[TEXT_BYTES];
    fputs("<title>", file);
    print_markup(file, node->op);
    fputs(" ", file);
    print_markup(file, node->name);
    for (int i = 0; i < node->input_count && i < 16; i++)
        print_tip_value(picture, file, i < node->input_count - node->capture_count ? "←" : "← (captured)",
                        node->inputs[i]);
    for (int i = 0; i < node->output_count && i < 16; i++)
        print_tip_value(picture, file, "→", node->outputs[i]);
    if (node->attributes[0] != '\0') {
        fputs("\n", file);
        print_markup(file, node->attributes);
    }
    if (node->parameters != 0)
        fprintf(file, "\n%s parameters", grouped(node->parameters, room));
    if (node->flops != NULL) {
        fputs("\n", file);
        print_markup(file, node->flop_count >= 0 ? grouped(node->flop_count, room) : node->flops);
        fputs(" FLOP", file);
    }
    if (node->kernel != NULL) {
        fputs("\nkernel: ", file);
        print_markup(file, node->kernel);
    }
    for (int b = 0; b < node->body_count; b++) {
        const sb_inspection *body = node->bodies[b];
        fputs("\n", file);
        print_markup(file, node->body_names[b]);
        fputs(":", file);
        for (int i = 0; i < sb_inspection_node_count(body) && i < 24; i++) {
            fputs(" ", file);
            print_markup(file, sb_inspection_node(body, i)->op);
        }
        if (sb_inspection_node_count(body) > 24)
            fputs(" …", file);
    }
    fputs("</title>", file);
}

/* The nets of vertex `v`, which lie together from *net on, with their arrowheads. */
static void print_edges(const picture *picture, FILE *file, int v, int *net, size_t *curve) {
    const layout *layout = &picture->layout;
    size_t first = *curve;
    for (; *net < picture->net_count && picture->nets[*net].source == v; (*net)++) {
        while (*curve < layout->curve_count && layout->curves[*curve].net == *net)
            (*curve)++;
    }
    if (first == *curve)
        return;
    fputs("<path class=\"e\" d=\"", file);
    for (size_t i = first; i < *curve; i++) {
        const layout_curve *c = &layout->curves[i];
        double middle = (c->y0 + c->y1) / 2;
        fprintf(file, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", c->x0, c->y0, c->x0, middle, c->x1, middle, c->x1,
                c->arrives ? c->y1 - 5 : c->y1);
        if (c->end > c->y1)
            fprintf(file, "V%.1f", c->end);
    }
    fputs("\"/><path class=\"a\" d=\"", file);
    for (size_t i = first; i < *curve; i++) {
        if (layout->curves[i].arrives)
            fprintf(file, "M%.1f %.1fl-3.5 -7h7z", layout->curves[i].x1, layout->curves[i].y1);
    }
    fputs("\"/>", file);
}

static void print_text_at(FILE *file, const char *class_name, double x, double y, const char *text) {
    fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class_name, x, y);
    print_markup(file, text);
    fputs("</text>", file);
}

static void print_vertex(const picture *picture, FILE *file, int v) {
    const vertex *vertex = &picture->vertices[v];
    const layout_vertex *place = &picture->places[v];
    double left = place->x - place->width / 2, corner = vertex->kind == VERTEX_NODE ? 6 : 16;
    if (vertex->kind == VERTEX_NODE)
        print_tip(picture, file, sb_inspection_node(picture->graph, vertex->index));
    else
        fputs(vertex->kind == VERTEX_INPUT ? "<title>input</title>" : "<title>output</title>", file);
    fprintf(file, "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\"/>", left,
            place->y, place->width, place->height, corner);
    if (vertex->kind == VERTEX_NODE) {
        /* The coloured top: rounded above, straight below where lines follow. */
        double low = vertex->line_count > 0 ? 0 : 6;
        fprintf(file, "<path fill=\"%s\" d=\"M%.1f %.1fq0 -6 6 -6h%.1fq6 0 6 6v%.1f", op_family_color(vertex->family),
                left, place->y + 6, place->width - 12, HEADER_HEIGHT - 6 - low);
        fprintf(file, "q0 %.0f %.0f %.0fh%.1fq%.0f 0 %.0f %.0fz\"/>", low, -low, low, 2 * low - place->width, -low,
                -low, -low);
    }
    print_text_at(file, vertex->kind == VERTEX_NODE ? "t" : "p", place->x, place->y + 17, vertex->title);
    for (int i = 0; i < vertex->line_count; i++)
        print_text_at(file, "l", place->x, place->y + HEADER_HEIGHT + LINE_HEIGHT * i + 14, vertex->lines[i]);
}

static double print_head(const picture *picture, FILE *file, bool only_measure) {
    const sb_inspected_totals *totals = sb_inspection_totals(picture->graph);
    char nodes[TEXT_BYTES], parameters[TEXT_BYTES], name[TEXT_BYTES], text[4 * TEXT_BYTES];
    snprintf(text, sizeof text, "%s nodes, %s parameters", grouped(sb_inspection_node_count(picture->graph), nodes),
             grouped(totals->parameters, parameters));
    printable(sb_inspection_name(picture->graph), name);
    cut(name);
    double x = 24, name_width = 10.5 * (double)count_characters(name);
    if (!only_measure) {
        print_text_at(file, "h", x, 28, name);
        print_text_at(file, "s", x + name_width + 12, 28, text);
    }
    double width = x + name_width + 12 + LINE_WIDTH * 1.1 * (double)strlen(text) + 24;
    for (int family = 0; family < op_family_count(); family++) {
        bool used = false;
        for (int v = 0; v < picture->vertex_count; v++)
            used = used || (picture->vertices[v].kind == VERTEX_NODE && picture->vertices[v].family == family);
        if (!used)
            continue;
        if (!only_measure) {
            fprintf(file, "<rect x=\"%.1f\" y=\"42\" width=\"11\" height=\"11\" rx=\"3\" fill=\"%s\"/>", x,
                    op_family_color(family));
            print_text_at(file, "s", x + 16, 52, op_family_name(family));
        }
        x += 16 + LINE_WIDTH * 1.1 * (double)strlen(op_family_name(family)) + 14;
    }
    return x + 24 > width ? x + 24 : width;
}

static void print_svg(const picture *picture, FILE *file) {
    double head = print_head(picture, file, true), width = picture->layout.width;
    double full = head > width ? head : width, height = picture->layout.height + HEAD_HEIGHT;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 "
            "0 %.0f %.0f\" "
            "role=\"img\">\n<title>",
            full, height, full, height);
    print_markup(file, sb_inspection_name(picture->graph));
    fprintf(file, "</title>\n<style>%s</style>\n", style);
    print_head(picture, file, false);
    fprintf(file, "\n<g transform=\"translate(%.1f %.1f)\">\n", (full - width) / 2, HEAD_HEIGHT);
    int net = 0;
    size_t curve = 0;
    for (int v = 0; v < picture->vertex_count; v++) {
        fputs("<g>", file);
        print_edges(picture, file, v, &net, &curve);
        print_vertex(picture, file, v);
        fputs("</g>\n", file);
    }
    fputs("</g>\n</svg>\n", file);
}

bool draw_graph(const sb_inspection *graph, FILE *file) {
    picture picture = {.graph = graph,
                       .vertex_count = sb_inspection_input_count(graph) + sb_inspection_node_count(graph) +
                                       sb_inspection_output_count(graph)};
    picture.vertices = calloc((size_t)picture.vertex_count + 1, sizeof *picture.vertices);
    picture.places = calloc((size_t)picture.vertex_count + 1, sizeof *picture.places);
    bool complete = picture.vertices != NULL && picture.places != NULL;
    if (complete) {
        describe_vertices(&picture);
        complete = make_nets(&picture) &&
                   layout_graph(picture.vertex_count, picture.places, picture.net_count, picture.nets, &picture.layout);
    }
    if (complete)
        print_svg(&picture, file);
    free(picture.vertices);
    free(picture.places);
    free(picture.nets);
    free(picture.targets);
    free(picture.layout.curves);
    return complete;
}
