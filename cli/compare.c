/* samebit compare: node by node against recorded tensors or against the CPU; and recording them. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"
#include "placement.h"
#include "recording.h"
#include "running.h"
#include "whole_file.h"

const option compare_options[] = {
    {"reference", "FILE|DIR", false,
     "Recorded tensors: a .npz file with arrays named like values, or a folder of NAME.npy files "
     "or of ONNX test data; with --device, a run on the CPU when this is not given"},
    {"tolerance", "ATOL,RTOL", false,
     "Allow |ours - recorded| up to ATOL + RTOL × |recorded|; without it, every bit counts"},
    {"cumulative", NULL, false, "Let errors flow on: nodes get their own inputs, not the recorded ones"},
    {"record", "FILE.npz", false, "Write every value of a run instead of comparing"},
    {"html", "FILE", false, "Write a page with all nodes and their drift"},
    {"json", NULL, false, "Print what was found as JSON"},
    {"verbose", NULL, false, "Print a line for each node"},
    INPUT_OPTIONS,
    {"passes", NULL, false, "Simplify and fuse the graph first: then fewer values exist"},
    {"isa", "NAME", false, "Instruction set: scalar, avx2, avx512 or best"},
    {"reference-evaluation", NULL, false,
     "Run the reference evaluation of every node: slow, the definition of the bits"},
    SESSION_OPTIONS,
    {0},
};

/* What the observer works with. */
typedef struct comparing {
    reference *reference;
    findings *findings;
    hidden_values *hidden;
} comparing;

static void note_event(finding *finding, const sb_node_event *event) {
    bool known = strcmp(event->kernel, "constant") == 0;
    finding->ran = known ? RAN_NOWHERE : event->on_device ? RAN_ON_DEVICE : RAN_ON_CPU;
    finding->ns = event->end_ns - event->start_ns;
}

/* Compares one output and, unless errors are to flow on, puts the recorded one in place of one that differs. */
static sb_status compare_output(comparing *comparing, const sb_node_event *event, int index, sb_error *error) {
    findings *findings = comparing->findings;
    finding *finding;
    sb_value *value = &event->outputs[index];
    const char *name = event->output_names[index];
    sb_status status = start_finding(findings, event->name, event->op, name, event->kernel, *value, &finding, error);
    if (status != SB_OK)
        return status;
    note_event(finding, event);
    const sb_value *recorded = find_recorded(comparing->reference, name);
    status = judge(findings, finding, *value, recorded, error);
    bool differs = finding->state == FINDING_WITHIN || finding->state == FINDING_DIFFERENT;
    if (status == SB_OK && finding->why == NULL && differs && !findings->cumulative) {
        sb_value_release(value);
        *value = sb_value_retain(*recorded);
    }
    return status;
}

static sb_status compare_outputs_of(comparing *comparing, const sb_node_event *event, sb_error *error) {
    sb_status status = SB_OK;
    for (int i = 0; i < event->output_count && status == SB_OK; i++) {
        if (event->output_names[i] != NULL)
            status = compare_output(comparing, event, i, error);
    }
    comparing->findings->node_count++;
    return status;
}

/* A node in a graph of another node. What runs inside If, Loop and Scan is judged by what comes out
 * of them; but a fused node that is computed node by node shows values that are the model's own. */
static sb_status compare_inner(comparing *comparing, const sb_node_event *event, sb_error *error) {
    bool wanted = false;
    for (int i = 0; i < event->output_count && event->depth == 1; i++) {
        hidden_value *value =
            event->output_names[i] != NULL ? find_hidden(comparing->hidden, event->output_names[i], event->op) : NULL;
        wanted = wanted || (value != NULL && !value->done);
        if (value != NULL)
            value->done = true;
    }
    return wanted ? compare_outputs_of(comparing, event, error) : SB_OK;
}

static sb_status compare_node(void *context, sb_node_event *event, sb_error *error) {
    comparing *comparing = context;
    if (strcmp(event->op, SB_TRANSFER) == 0)
        return SB_OK;
    if (event->depth != 0)
        return compare_inner(comparing, event, error);
    sb_status status = list_hidden(comparing->findings, comparing->hidden, comparing->reference, event->name, error);
    return status == SB_OK ? compare_outputs_of(comparing, event, error) : status;
}

/* Compares the outputs of the model that no node makes: constants, and inputs that go through. */
static int compare_outputs(findings *findings, const running *running, reference *reference) {
    sb_error error;
    for (int i = 0; i < sb_model_output_count(running->model); i++) {
        const char *name = sb_model_output(running->model, i)->name;
        finding *finding;
        if (was_found(findings, name))
            continue;
        sb_status status =
            start_finding(findings, name, "(no node)", name, "none", running->outputs[i], &finding, &error);
        if (status == SB_OK)
            status = judge(findings, finding, running->outputs[i], find_recorded(reference, name), &error);
        if (status != SB_OK)
            return report(&error);
        findings->node_count++;
    }
    return EXIT_RIGHT;
}

/* ---- comparing ---- */

/* Inputs that are not given come from the reference. */
static int read_recorded_inputs(const arguments *arguments, const running *running, reference *reference) {
    int code = read_given_inputs(arguments, running->model, running->inputs);
    for (int i = 0; i < sb_model_input_count(running->model) && code == EXIT_RIGHT; i++) {
        const sb_value *recorded = find_recorded(reference, sb_model_input(running->model, i)->name);
        if (recorded != NULL && running->inputs[i].kind == SB_KIND_NONE)
            running->inputs[i] = sb_value_retain(*recorded);
    }
    return code == EXIT_RIGHT ? complete_inputs(arguments, running->model, false, running->inputs) : code;
}

static int list_unused(findings *findings, reference *reference, const sb_inspection *graph) {
    for (int i = 0; i < sb_inspection_value_count(graph); i++)
        find_recorded(reference, sb_inspection_value(graph, i)->name);
    findings->unused_names = calloc((size_t)reference->count + 1, sizeof *findings->unused_names);
    if (findings->unused_names == NULL)
        return out_of_memory();
    for (int i = 0; i < reference->count; i++) {
        if (reference->items[i].used)
            continue;
        char *name = strdup(reference->items[i].name);
        if (name == NULL)
            return out_of_memory();
        findings->unused_names[findings->unused++] = name;
    }
    return EXIT_RIGHT;
}

static int write_page(const arguments *arguments, const findings *findings) {
    const char *path = option_value(arguments, "html");
    whole_file file;
    if (path == NULL)
        return EXIT_RIGHT;
    if (!begin_file(path, &file))
        return EXIT_FAILED;
    write_findings_page(file.stream, findings, arguments->positional[0],
                        findings->against_cpu ? "the CPU" : option_value(arguments, "reference"));
    return end_file(&file, true) ? EXIT_RIGHT : EXIT_FAILED;
}

static int report_findings(const arguments *arguments, findings *findings) {
    int code = write_page(arguments, findings);
    if (code == EXIT_RIGHT && has_option(arguments, "json"))
        code = print_json_value(stdout, findings_json(findings)) ? EXIT_RIGHT : EXIT_FAILED;
    else if (code == EXIT_RIGHT)
        print_findings(findings, has_option(arguments, "verbose"));
    if (code == EXIT_RIGHT && findings->compared == 0) {
        fputs("samebit: no node could be compared: the reference has none of their values\n", stderr);
        code = EXIT_FAILED;
    }
    return code == EXIT_RIGHT && findings->different > 0 ? EXIT_DIFFERENT : code;
}

/* Everything of the recorded values that the run has not shown. */
static int list_rest(comparing *comparing, const running *running, const sb_inspection *graph) {
    sb_error error;
    findings *findings = comparing->findings;
    int code = compare_outputs(findings, running, comparing->reference);
    if (code != EXIT_RIGHT)
        return code;
    sb_status status = list_hidden(findings, comparing->hidden, comparing->reference, NULL, &error);
    if (status == SB_OK)
        status = list_removed(findings, comparing->reference, graph, &error);
    return status == SB_OK ? list_unused(findings, comparing->reference, graph) : report(&error);
}

/* The run, its findings, and where its nodes ran. */
static int compare_run(const arguments *arguments, comparing *comparing, running *running, const sb_inspection *graph) {
    findings *findings = comparing->findings;
    findings->device = running->device != NULL ? sb_device_name(running->device) : NULL;
    int code = find_hidden_values(graph, comparing->hidden) ? EXIT_RIGHT : out_of_memory();
    if (code == EXIT_RIGHT)
        code = read_recorded_inputs(arguments, running, comparing->reference);
    if (code == EXIT_RIGHT)
        code = run_once(running, NULL);
    if (code == EXIT_RIGHT)
        code = list_rest(comparing, running, graph);
    if (code == EXIT_RIGHT && running->device != NULL)
        code = note_places(findings, running->session);
    if (code != EXIT_RIGHT)
        return code;
    count_nodes(findings);
    code = report_findings(arguments, findings);
    int placed = report_placement(arguments, running->session, running->device);
    return code == EXIT_RIGHT ? placed : code;
}

/* Compares the model's run with `reference`, which is read from the file unless a run has filled it. */
static int compare_model(const arguments *arguments, const sb_model_options *model_options,
                         const sb_session_options *session_options, reference *reference, findings *findings) {
    hidden_values hidden = {0};
    comparing comparing = {reference, findings, &hidden};
    running running;
    sb_inspection *graph = NULL;
    sb_session_options options = *session_options;
    options.observer = compare_node;
    options.observer_context = &comparing;
    int code = open_running(arguments, model_options, &options, &running);
    if (code == EXIT_RIGHT)
        code = inspect_with_inputs(running.model, running.inputs, &graph);
    if (code == EXIT_RIGHT && !findings->against_cpu)
        code = read_reference(option_value(arguments, "reference"), running.model, graph, reference);
    if (code == EXIT_RIGHT)
        code = compare_run(arguments, &comparing, &running, graph);
    free(hidden.items);
    sb_inspection_release(graph);
    close_running(&running);
    return code;
}

/* The run on the CPU that a device is compared with: of the graph as it stands in the file, so that
 * every value is there. */
static int record_cpu(const arguments *arguments, const sb_model_options *model_options,
                      const sb_session_options *session_options, reference *reference) {
    sb_model_options options = *model_options;
    options.passes = false;
    int code = record_values(arguments, &options, session_options, true, reference);
    sort_recorded(reference);
    return code;
}

/* Opens the device first, since a comparison that has to end there should not begin with a run. */
static int compare_with_cpu(const arguments *arguments, const sb_model_options *model_options,
                            const sb_session_options *session_options, reference *reference, findings *findings) {
    sb_session_options unused = *session_options;
    sb_device *device;
    int code = open_device(arguments, &unused, &device);
    if (code == EXIT_RIGHT && device == NULL) {
        fputs("samebit: the CPU is all there is to compare: give --reference FILE|DIR\n", stderr);
        code = EXIT_FAILED;
    }
    if (code == EXIT_RIGHT)
        code = record_cpu(arguments, model_options, session_options, reference);
    if (code == EXIT_RIGHT)
        code = compare_model(arguments, model_options, session_options, reference, findings);
    sb_device_release(device);
    return code;
}

/* ---- the command ---- */

/* Whether the run is on something that can be compared with the CPU. */
static bool names_device(const arguments *arguments) {
    const char *device = option_value(arguments, "device");
    return device != NULL && strcmp(device, "cpu") != 0;
}

int run_compare(const arguments *arguments) {
    sb_model_options model_options;
    sb_session_options session_options;
    findings findings = {.cumulative = has_option(arguments, "cumulative")};
    reference reference = {0};
    const char *tolerance = option_value(arguments, "tolerance");
    if (!read_model_options(arguments, &model_options) || !read_session_options(arguments, &session_options))
        return EXIT_USAGE;
    session_options.device_if_quicker = false; /* who compares wants the device, however long it takes */
    model_options.passes = has_option(arguments, "passes");
    if (tolerance != NULL && !parse_tolerance(tolerance, &findings.absolute, &findings.relative))
        return usage_error("--tolerance takes ATOL,RTOL, not %s", tolerance);
    bool given = has_option(arguments, "reference"), records = has_option(arguments, "record");
    findings.against_cpu = !given && !records && names_device(arguments);
    if (given == records && !findings.against_cpu)
        return usage_error("compare needs --reference FILE|DIR to compare with, --device cuda to "
                           "compare with the CPU, or --record FILE.npz to write");
    if (records)
        return record_to_file(arguments, &model_options, &session_options);
    int code = findings.against_cpu
                   ? compare_with_cpu(arguments, &model_options, &session_options, &reference, &findings)
                   : compare_model(arguments, &model_options, &session_options, &reference, &findings);
    free_reference(&reference);
    free_findings(&findings);
    return code;
}
