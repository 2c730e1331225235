/* samebit dump: the graph of a model, with what is known of it before it runs. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "picture.h"
#include "running.h"
#include "standard_input.h"
#include "text.h"
#include "whole_file.h"

const option dump_options[] = {
    {"set", "SYMBOL=N", true, "Show the graph for this value of a symbolic extent"},
    {"json", NULL, false, "Print the graph as JSON"},
    {"warnings", NULL, false, "Print what was tolerated in the file, a line each, and nothing else"},
    {"svg", "FILE", false, "Write a picture of the graph"},
    {"onnx", "FILE", false, "Write the graph as an ONNX file, fused nodes one by one"},
    MODEL_OPTIONS,
    FILE_OPTION,
    {0},
};

/* ---- text ---- */

static void print_indent(int depth) {
    printf("%*s", 4 * depth, "");
}

/* "name: f32[8]" for what the reader has not seen before, else "name". */
static void print_operand(const sb_inspection *graph, int index, bool typed) {
    char room[TEXT_BYTES];
    if (index < 0) {
        putchar('_');
        return;
    }
    const sb_inspected_value *value = sb_inspection_value(graph, index);
    fputs(printable(value->name, room), stdout);
    if (typed || value->initialiser)
        printf(": %s", printable(value->fact, room));
}

static void print_operands(const sb_inspection *graph, int first, int count, const int *values, bool typed) {
    for (int i = first; i < count; i++) {
        fputs(i > first ? ", " : "", stdout);
        print_operand(graph, values[i], typed);
    }
}

/* What a node costs and who computes it, with " · " between; nothing where there is nothing to say. */
static void print_costs(const sb_inspected_node *node, int depth) {
    char room[TEXT_BYTES];
    const char *separator = "";
    bool moves = node->flop_count == 0;
    if (node->attributes[0] == '\0' && node->parameters == 0 && moves && node->kernel == NULL)
        return;
    print_indent(depth);
    fputs("        ", stdout);
    if (node->attributes[0] != '\0') {
        fputs(printable(node->attributes, room), stdout);
        separator = " · ";
    }
    if (node->parameters != 0) {
        printf("%s%s parameter%s", separator, grouped(node->parameters, room), node->parameters == 1 ? "" : "s");
        separator = " · ";
    }
    if (!moves) {
        printf("%s%s FLOP", separator,
               node->flop_count >= 0 ? grouped(node->flop_count, room)
               : node->flops != NULL ? printable(node->flops, room)
                                     : "?");
        separator = " · ";
    }
    if (node->kernel != NULL)
        printf("%s%s", separator, node->kernel);
    if (node->why != NULL && node->why[0] != '\0')
        printf(" (%s)", printable(node->why, room));
    putchar('\n');
}

static void print_nodes(const sb_inspection *graph, int depth);

static void print_bodies(const sb_inspected_node *node, int depth) {
    char room[TEXT_BYTES];
    for (int b = 0; b < node->body_count; b++) {
        const sb_inspection *body = node->bodies[b];
        int inputs = sb_inspection_input_count(body), outputs = sb_inspection_output_count(body);
        print_indent(depth + 1);
        if (is_fused(node)) { /* inputs and outputs are the node's own */
            puts("made of");
            print_nodes(body, depth + 1);
            continue;
        }
        printf("%s(", printable(node->body_names[b], room));
        for (int i = 0; i < inputs; i++) {
            fputs(i > 0 ? ", " : "", stdout);
            print_operand(body, sb_inspection_input(body, i), true);
        }
        fputs(") → ", stdout);
        for (int i = 0; i < outputs; i++) {
            fputs(i > 0 ? ", " : "", stdout);
            print_operand(body, sb_inspection_output(body, i), false);
        }
        putchar('\n');
        print_nodes(body, depth + 1);
    }
}

static void print_node(const sb_inspection *graph, int index, int depth) {
    const sb_inspected_node *node = sb_inspection_node(graph, index);
    int formal = node->input_count - node->capture_count;
    char room[TEXT_BYTES];
    print_indent(depth);
    printf("%4d  ", index);
    print_operands(graph, 0, node->output_count, node->outputs, true);
    printf(" = %s", printable(node->op, room));
    if (node->domain[0] != '\0')
        printf("@%s", printable(node->domain, room));
    putchar('(');
    print_operands(graph, 0, formal, node->inputs, false);
    if (node->capture_count != 0) {
        fputs("; ", stdout);
        print_operands(graph, formal, node->input_count, node->inputs, false);
    }
    puts(")");
    print_costs(node, depth);
    print_bodies(node, depth);
}

static void print_nodes(const sb_inspection *graph, int depth) {
    for (int i = 0; i < sb_inspection_node_count(graph); i++)
        print_node(graph, i, depth);
}

static void print_values(const sb_inspection *graph, const char *title, int count,
                         int (*value_at)(const sb_inspection *, int)) {
    char room[TEXT_BYTES];
    printf("%s\n", title);
    for (int i = 0; i < count; i++) {
        const sb_inspected_value *value = sb_inspection_value(graph, value_at(graph, i));
        printf("      %s: ", printable(value->name, room));
        puts(printable(value->fact, room));
    }
    putchar('\n');
}

static void print_initialisers(const sb_inspection *graph) {
    char room[TEXT_BYTES];
    bool any = false;
    for (int i = 0; i < sb_inspection_value_count(graph); i++) {
        const sb_inspected_value *value = sb_inspection_value(graph, i);
        if (!value->initialiser)
            continue;
        if (!any)
            puts("initialisers");
        any = true;
        printf("      %s: ", printable(value->name, room));
        printf("%s", printable(value->fact, room));
        printf("  %s\n", bytes_text((double)(value->elements * (int64_t)sb_dtype_size(value->dtype)), room));
    }
    if (any)
        putchar('\n');
}

static void print_totals(const sb_inspection *graph) {
    const sb_inspected_totals *totals = sb_inspection_totals(graph);
    char room[TEXT_BYTES];
    int nodes = sb_inspection_node_count(graph);
    printf("%s node%s, ", grouped(nodes, room), nodes == 1 ? "" : "s");
    printf("%s parameter%s ", grouped(totals->parameters, room), totals->parameters == 1 ? "" : "s");
    printf("(%s), ", bytes_text((double)totals->parameter_bytes, room));
    if (totals->flop_count >= 0)
        printf("%s FLOP", grouped(totals->flop_count, room));
    else
        printf("%s FLOP", totals->flops != NULL ? totals->flops : "?");
    if (totals->nodes_without_flops != 0)
        printf(", not counting %d node%s whose operations are not known", totals->nodes_without_flops,
               totals->nodes_without_flops == 1 ? "" : "s");
    putchar('\n');
}

static void print_text(const sb_inspection *graph, const sb_model *model) {
    char room[TEXT_BYTES];
    int warnings = sb_model_warning_count(model);
    printf("graph %s\n\n", printable(sb_inspection_name(graph), room));
    print_values(graph, "inputs", sb_inspection_input_count(graph), sb_inspection_input);
    print_values(graph, "outputs", sb_inspection_output_count(graph), sb_inspection_output);
    print_initialisers(graph);
    puts("nodes");
    print_nodes(graph, 0);
    putchar('\n');
    print_totals(graph);
    if (warnings != 0)
        printf("%d warning%s about the file: --warnings shows %s\n", warnings, warnings == 1 ? "" : "s",
               warnings == 1 ? "it" : "them");
}

/* ---- JSON ---- */

static json_t *graph_json(const sb_inspection *graph);

static json_t *name_json(const sb_inspection *graph, int value) {
    return value < 0 ? json_null() : text_json(sb_inspection_value(graph, value)->name);
}

static json_t *names_json(const sb_inspection *graph, int count, const int *values) {
    json_t *names = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(names, name_json(graph, values[i]));
    return names;
}

static json_t *count_json(int64_t count) {
    return count < 0 ? json_null() : json_integer(count);
}

static json_t *node_json(const sb_inspection *graph, const sb_inspected_node *node) {
    json_t *bodies = json_object();
    for (int b = 0; b < node->body_count; b++) {
        json_t *name = text_json(node->body_names[b]);
        json_object_set_new(bodies, name != NULL ? json_string_value(name) : "", graph_json(node->bodies[b]));
        json_decref(name);
    }
    return json_pack(
        "{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", text_json(node->name),
        "op", text_json(node->op), "domain", text_json(node->domain), "version", node->version, "attributes",
        text_json(node->attributes), "inputs", names_json(graph, node->input_count, node->inputs), "outputs",
        names_json(graph, node->output_count, node->outputs), "parameters", (json_int_t)node->parameters, "flops",
        text_json(node->flops), "flop_count", count_json(node->flop_count), "bytes", text_json(node->bytes),
        "byte_count", count_json(node->byte_count), "kernel", text_json(node->kernel), "why",
        text_json(node->why != NULL && node->why[0] != '\0' ? node->why : NULL), "bodies", bodies);
}

static json_t *value_json(const sb_inspected_value *value) {
    return json_pack("{s:o, s:o, s:o, s:b, s:b}", "name", text_json(value->name), "fact", text_json(value->fact),
                     "elements", count_json(value->elements), "initialiser", value->initialiser, "constant",
                     value->constant != NULL);
}

static json_t *ports_json(const sb_inspection *graph, int count, int (*value_at)(const sb_inspection *, int)) {
    json_t *names = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(names, name_json(graph, value_at(graph, i)));
    return names;
}

static json_t *graph_json(const sb_inspection *graph) {
    const sb_inspected_totals *totals = sb_inspection_totals(graph);
    json_t *nodes = json_array(), *values = json_array();
    for (int i = 0; i < sb_inspection_node_count(graph); i++)
        json_array_append_new(nodes, node_json(graph, sb_inspection_node(graph, i)));
    for (int i = 0; i < sb_inspection_value_count(graph); i++)
        json_array_append_new(values, value_json(sb_inspection_value(graph, i)));
    json_t *sums =
        json_pack("{s:I, s:I, s:o, s:o, s:i}", "parameters", (json_int_t)totals->parameters, "parameter_bytes",
                  (json_int_t)totals->parameter_bytes, "flops", text_json(totals->flops), "flop_count",
                  count_json(totals->flop_count), "nodes_without_flops", totals->nodes_without_flops);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name", text_json(sb_inspection_name(graph)), "inputs",
                     ports_json(graph, sb_inspection_input_count(graph), sb_inspection_input), "outputs",
                     ports_json(graph, sb_inspection_output_count(graph), sb_inspection_output), "values", values,
                     "nodes", nodes, "totals", sums);
}

/* ---- warnings ---- */

static void print_warnings(const sb_model *model) {
    for (int i = 0; i < sb_model_warning_count(model); i++) {
        print_escaped(stdout, sb_model_warning(model, i));
        putchar('\n');
    }
}

static json_t *warnings_json(const sb_model *model) {
    json_t *warnings = json_array();
    for (int i = 0; i < sb_model_warning_count(model); i++)
        json_array_append_new(warnings, text_json(sb_model_warning(model, i)));
    return warnings;
}

/* ---- the command ---- */

static int write_picture(const sb_inspection *graph, const char *path) {
    whole_file file;
    if (!begin_file(path, &file))
        return EXIT_FAILED;
    bool drawn = draw_graph(graph, file.stream);
    if (!drawn)
        out_of_memory();
    return end_file(&file, drawn) ? EXIT_RIGHT : EXIT_FAILED;
}

static bool print_graph_json(const sb_inspection *graph, const sb_model *model) {
    json_t *all = graph_json(graph);
    json_object_set_new(all, "warnings", warnings_json(model));
    return print_json_value(stdout, all);
}

static int write_onnx(const sb_model *model, const char *path) {
    sb_error error;
    return sb_model_save(model, path, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

int run_dump(const arguments *arguments) {
    sb_model_options options;
    sb_model *model = NULL;
    sb_inspection *graph = NULL;
    if (!read_model_options(arguments, &options))
        return EXIT_USAGE;
    int code = load_model_file(arguments->positional[0], &options, &model);
    if (code == EXIT_RIGHT)
        code = inspect_with_settings(arguments, model, &graph);
    const char *picture = option_value(arguments, "svg"), *written = option_value(arguments, "onnx");
    if (code == EXIT_RIGHT && picture != NULL)
        code = write_picture(graph, picture);
    if (code == EXIT_RIGHT && written != NULL)
        code = write_onnx(model, written);
    if (code == EXIT_RIGHT && has_option(arguments, "json"))
        code = print_graph_json(graph, model) ? EXIT_RIGHT : EXIT_FAILED;
    else if (code == EXIT_RIGHT && has_option(arguments, "warnings"))
        print_warnings(model);
    else if (code == EXIT_RIGHT && picture == NULL && written == NULL)
        print_text(graph, model);
    sb_inspection_release(graph);
    sb_model_release(model);
    return code;
}
