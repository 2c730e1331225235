/* invar compare: node by node against recorded tensors; and recording them. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"
#include "reference.h"
#include "running.h"
#include "text.h"
#include "whole_file.h"

const option compare_options[] = {
    {"reference", "FILE|DIR", false,
     "Recorded tensors: a .npz file with arrays named like values, or a folder of NAME.npy files "
     "or of ONNX test data"},
    {"tolerance", "ATOL,RTOL", false,
     "Allow |ours - recorded| up to ATOL + RTOL × |recorded|; without it, every bit counts"},
    {"cumulative", NULL, false, "Let errors flow on: nodes get our inputs, not the recorded ones"},
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

const char *finding_state_name(finding_state state) {
    static const char *const names[] = {"equal", "within tolerance", "different", "not compared"};
    return names[state];
}

/* ---- one output ---- */

/* Of what leads to a tensor within sequences. */
#define PATH_BYTES 64

static char *copy_text(const char *text) {
    return strdup(text != NULL ? text : "");
}

/* "[0,3,1]" for a row-major index, behind `path`. */
static char *index_text(const char *path, const iv_tensor *tensor, int64_t index) {
    int rank = iv_tensor_rank(tensor);
    const int64_t *dims = iv_tensor_dims(tensor);
    int64_t place[IV_MAX_RANK + 1];
    for (int d = rank - 1; d >= 0; d--) {
        place[d] = index % dims[d];
        index /= dims[d];
    }
    char text[PATH_BYTES + IV_MAX_RANK * 21 + 3];
    size_t used = (size_t)snprintf(text, sizeof text, "%s[", path);
    for (int d = 0; d < rank; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, d > 0 ? ",%lld" : "%lld",
                                 (long long)place[d]);
    snprintf(text + used, sizeof text - used, "]");
    return strdup(text);
}

/* "f32[2,3]", "a sequence of 2", "nothing"; in `room`, of TEXT_BYTES. */
static const char *kind_text(iv_value value, char *room) {
    size_t used;
    if (value.kind == IV_KIND_NONE)
        return "nothing";
    if (value.kind == IV_KIND_SEQUENCE) {
        snprintf(room, TEXT_BYTES, "a sequence of %lld",
                 (long long)iv_sequence_count(value.sequence));
        return room;
    }
    used = (size_t)snprintf(room, TEXT_BYTES, "%s[", iv_dtype_name(iv_tensor_dtype(value.tensor)));
    for (int d = 0; d < iv_tensor_rank(value.tensor) && used < TEXT_BYTES; d++)
        used += (size_t)snprintf(room + used, TEXT_BYTES - used, d > 0 ? ",%lld" : "%lld",
                                 (long long)iv_tensor_dims(value.tensor)[d]);
    if (used < TEXT_BYTES)
        snprintf(room + used, TEXT_BYTES - used, "]");
    return room;
}

static char *type_text(iv_value value) {
    char room[TEXT_BYTES];
    return strdup(kind_text(value, room));
}

static void free_findings(findings *findings) {
    for (int i = 0; i < findings->count; i++) {
        finding *finding = &findings->items[i];
        free(finding->node_name);
        free(finding->op);
        free(finding->output);
        free(finding->kernel);
        free(finding->type);
        free(finding->why);
        free(finding->index);
    }
    free(findings->items);
}

/* Room for one more; NULL when memory runs out. */
static finding *add_finding(findings *findings) {
    if (findings->count == findings->capacity) {
        int capacity = findings->capacity > 0 ? 2 * findings->capacity : 64;
        finding *items = realloc(findings->items, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        findings->items = items;
        findings->capacity = capacity;
    }
    finding *fresh = &findings->items[findings->count++];
    *fresh = (finding){.state = FINDING_UNCHECKED, .comparison = {.worst = -1}};
    return fresh;
}

/* What the observer works with. */
typedef struct comparing {
    reference *reference;
    findings *findings;
} comparing;

static iv_status fail_memory(iv_error *error) {
    snprintf(error->message, sizeof error->message, "out of memory");
    return error->status = IV_ERROR_OUT_OF_MEMORY;
}

/* Joins the comparison of one tensor, found at `path`, to those before it. */
static iv_status join_comparison(finding *finding, const iv_comparison *one, const char *path,
                                 const iv_tensor *recorded, iv_error *error) {
    iv_comparison joined = *one;
    const iv_comparison *before = &finding->comparison;
    if (one->worst >= 0 && (before->worst < 0 || one->worst_error > before->worst_error)) {
        free(finding->index);
        finding->index = index_text(path, recorded, one->worst);
        if (finding->index == NULL)
            return fail_memory(error);
    } else {
        joined = *before;
        joined.elements = one->elements;
        joined.different = one->different;
        joined.outside = one->outside;
    }
    joined.elements += before->elements;
    joined.different += before->different;
    joined.outside += before->outside;
    joined.max_relative =
        one->max_relative > before->max_relative ? one->max_relative : before->max_relative;
    finding->comparison = joined;
    return IV_OK;
}

/* Compares tensors, or sequences item by item. IV_ERROR_SHAPE when the values are not alike. */
static iv_status compare_values(const findings *findings, finding *finding, const char *path,
                                iv_value ours, iv_value recorded, iv_error *error) {
    iv_comparison one;
    char type[2][TEXT_BYTES], item[PATH_BYTES];
    int64_t count = recorded.kind == IV_KIND_SEQUENCE ? iv_sequence_count(recorded.sequence) : 0;
    bool alike = ours.kind == recorded.kind &&
                 (ours.kind != IV_KIND_SEQUENCE || iv_sequence_count(ours.sequence) == count);
    if (!alike) {
        snprintf(error->message, sizeof error->message, "%s%s where %s is recorded", path,
                 kind_text(ours, type[0]), kind_text(recorded, type[1]));
        return error->status = IV_ERROR_SHAPE;
    }
    iv_status status = IV_OK;
    if (ours.kind == IV_KIND_TENSOR) {
        status = iv_tensor_compare(ours.tensor, recorded.tensor, findings->absolute,
                                   findings->relative, &one, error);
        return status == IV_OK ? join_comparison(finding, &one, path, recorded.tensor, error)
                               : status;
    }
    for (int64_t i = 0; i < count && status == IV_OK; i++) {
        snprintf(item, sizeof item, "%.30sitem %lld ", path, (long long)i);
        status = compare_values(findings, finding, item, iv_sequence_item(ours.sequence, i),
                                iv_sequence_item(recorded.sequence, i), error);
    }
    return status;
}

/* Fills in what the value and the recorded one of that name say; NULL: there is none. */
static iv_status judge(const findings *findings, finding *finding, iv_value ours,
                       const iv_value *recorded, iv_error *error) {
    iv_error mismatch;
    if (recorded == NULL) {
        finding->why = copy_text("not recorded");
        return finding->why != NULL ? IV_OK : fail_memory(error);
    }
    iv_status status = compare_values(findings, finding, "", ours, *recorded, &mismatch);
    if (status == IV_ERROR_OUT_OF_MEMORY)
        return fail_memory(error);
    if (status != IV_OK) {
        finding->state = FINDING_DIFFERENT;
        finding->why = copy_text(mismatch.message);
        return finding->why != NULL ? IV_OK : fail_memory(error);
    }
    const iv_comparison *found = &finding->comparison;
    finding->state = found->different == 0 ? FINDING_EQUAL
                     : found->outside == 0 ? FINDING_WITHIN
                                           : FINDING_DIFFERENT;
    return IV_OK;
}

static iv_status start_finding(findings *findings, const char *node_name, const char *op,
                               const char *output, const char *kernel, iv_value value,
                               finding **started, iv_error *error) {
    finding *finding = *started = add_finding(findings);
    if (finding == NULL)
        return fail_memory(error);
    finding->node = findings->node_count;
    finding->node_name = copy_text(node_name);
    finding->op = copy_text(op);
    finding->output = copy_text(output);
    finding->kernel = copy_text(kernel);
    finding->type = type_text(value);
    bool complete = finding->node_name != NULL && finding->op != NULL && finding->output != NULL &&
                    finding->kernel != NULL && finding->type != NULL;
    return complete ? IV_OK : fail_memory(error);
}

/* Compares one output and, unless errors are to flow on, puts the recorded one in its place. */
static iv_status compare_output(comparing *comparing, const iv_node_event *event, int index,
                                iv_error *error) {
    findings *findings = comparing->findings;
    finding *finding;
    iv_value *value = &event->outputs[index];
    const char *name = event->output_names[index];
    iv_status status = start_finding(findings, event->name, event->op, name, event->kernel, *value,
                                     &finding, error);
    if (status != IV_OK)
        return status;
    const iv_value *recorded = find_recorded(comparing->reference, name);
    status = judge(findings, finding, *value, recorded, error);
    if (status == IV_OK && finding->why == NULL && !findings->cumulative) {
        iv_value_release(value);
        *value = iv_value_retain(*recorded);
    }
    return status;
}

static iv_status compare_node(void *context, iv_node_event *event, iv_error *error) {
    comparing *comparing = context;
    if (event->depth !=
        0) /* what runs inside If, Loop and Scan is judged by what comes out of them */
        return IV_OK;
    for (int i = 0; i < event->output_count; i++) {
        if (event->output_names[i] == NULL)
            continue;
        iv_status status = compare_output(comparing, event, i, error);
        if (status != IV_OK)
            return status;
    }
    comparing->findings->node_count++;
    return IV_OK;
}

static bool was_found(const findings *findings, const char *output) {
    for (int i = 0; i < findings->count; i++) {
        if (strcmp(findings->items[i].output, output) == 0)
            return true;
    }
    return false;
}

/* Compares the outputs of the model that no node makes: constants, and inputs that go through. */
static int compare_outputs(findings *findings, const running *running, reference *reference) {
    iv_error error;
    for (int i = 0; i < iv_model_output_count(running->model); i++) {
        const char *name = iv_model_output(running->model, i)->name;
        finding *finding;
        if (was_found(findings, name))
            continue;
        iv_status status = start_finding(findings, name, "(no node)", name, "none",
                                         running->outputs[i], &finding, &error);
        if (status == IV_OK)
            status = judge(findings, finding, running->outputs[i], find_recorded(reference, name),
                           &error);
        if (status != IV_OK)
            return report(&error);
        findings->node_count++;
    }
    return EXIT_RIGHT;
}

/* A node counts once: as different if any output is, as not compared if no output was. */
static void count_nodes(findings *findings) {
    for (int i = 0, end; i < findings->count; i = end) {
        int states[FINDING_UNCHECKED + 1] = {0};
        for (end = i; end < findings->count && findings->items[end].node == findings->items[i].node;
             end++)
            states[findings->items[end].state]++;
        if (states[FINDING_DIFFERENT] > 0)
            findings->different++;
        else if (states[FINDING_WITHIN] > 0)
            findings->within++;
        else if (states[FINDING_EQUAL] > 0)
            findings->equal++;
        else
            findings->unchecked++;
    }
    findings->compared = findings->different + findings->within + findings->equal;
    for (int i = 0; i < findings->count && findings->first == NULL; i++) {
        if (findings->items[i].state == FINDING_DIFFERENT)
            findings->first = &findings->items[i];
    }
}

/* ---- printing ---- */

static void print_worst(const finding *finding) {
    const iv_comparison *found = &finding->comparison;
    char room[TEXT_BYTES];
    if (finding->why != NULL) {
        printf("%s", printable(finding->why, room));
        return;
    }
    if (found->different == 0) {
        printf("equal in %s elements", grouped(found->elements, room));
        return;
    }
    printf("%s of ", grouped(found->different, room));
    printf("%s elements differ; worst at %s: %.9g where %.9g is recorded",
           grouped(found->elements, room), finding->index, found->worst_left, found->worst_right);
    if (found->worst_ulps != UINT64_MAX)
        printf(", %llu %s apart", (unsigned long long)found->worst_ulps,
               found->worst_ulps == 1 ? "ulp" : "ulps");
}

static void print_finding(const finding *finding) {
    char room[TEXT_BYTES];
    printf("%4d  %s", finding->node, printable(finding->op, room));
    printf(" %s", printable(finding->node_name, room));
    if (strcmp(finding->output, finding->node_name) != 0)
        printf(" → %s", printable(finding->output, room));
    printf(": %s: ", finding_state_name(finding->state));
    print_worst(finding);
    putchar('\n');
}

/* Whether random numbers have gone into the finding, as far as operators up to there tell. */
static bool is_random(const findings *findings, const finding *finding) {
    static const char *const ops[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                      "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    for (int i = 0; i < findings->count && findings->items[i].node <= finding->node; i++) {
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            if (strcmp(findings->items[i].op, ops[k]) == 0)
                return true;
        }
    }
    return strcmp(finding->op, "Dropout") == 0; /* one that does not train is an identity */
}

static void print_first(const findings *findings) {
    const finding *first = findings->first;
    char room[TEXT_BYTES];
    printf("the first node that differs is number %d, %s ", first->node,
           printable(first->op, room));
    printf("%s, in its output ", printable(first->node_name, room));
    printf("%s (", printable(first->output, room));
    printf("%s, kernel ", printable(first->type, room));
    printf("%s):\n      ", printable(first->kernel, room));
    print_worst(first);
    putchar('\n');
    if (is_random(findings, first))
        puts("      random numbers went into it: each implementation draws its own");
}

/* The names of what was not compared, up to a line's worth. */
static void print_unchecked(const findings *findings) {
    char room[TEXT_BYTES];
    int shown = 0, total = 0;
    for (int i = 0; i < findings->count; i++) {
        if (findings->items[i].state != FINDING_UNCHECKED)
            continue;
        if (total++ < 12) {
            printf("%s%s", shown++ > 0 ? ", " : "not compared: ",
                   printable(findings->items[i].output, room));
            printf(" (%s)", findings->items[i].why);
        }
    }
    if (total > shown)
        printf(" and %d more", total - shown);
    if (total > 0)
        putchar('\n');
}

static void print_findings(const findings *findings, bool verbose) {
    for (int i = 0; i < findings->count && verbose; i++)
        print_finding(&findings->items[i]);
    print_unchecked(findings);
    if (findings->unused > 0)
        printf("%d recorded arrays have the name of no value\n", findings->unused);
    if (findings->first != NULL)
        print_first(findings);
    printf("%d node%s: %d compared (%d equal", findings->node_count,
           findings->node_count == 1 ? "" : "s", findings->compared, findings->equal);
    if (findings->within > 0)
        printf(", %d within the tolerance", findings->within);
    printf(", %d different), %d not compared\n", findings->different, findings->unchecked);
}

/* ---- comparing ---- */

/* Inputs that are not given come from the reference. */
static int read_recorded_inputs(const arguments *arguments, const running *running,
                                reference *reference) {
    int code = read_given_inputs(arguments, running->model, running->inputs);
    for (int i = 0; i < iv_model_input_count(running->model) && code == EXIT_RIGHT; i++) {
        const iv_value *recorded =
            find_recorded(reference, iv_model_input(running->model, i)->name);
        if (recorded != NULL && running->inputs[i].kind == IV_KIND_NONE)
            running->inputs[i] = iv_value_retain(*recorded);
    }
    return code == EXIT_RIGHT ? complete_inputs(arguments, running->model, false, running->inputs)
                              : code;
}

static void count_unused(findings *findings, reference *reference, const iv_inspection *graph) {
    for (int i = 0; i < iv_inspection_value_count(graph); i++)
        find_recorded(reference, iv_inspection_value(graph, i)->name);
    for (int i = 0; i < reference->count; i++)
        findings->unused += !reference->items[i].used;
}

static int write_page(const arguments *arguments, const findings *findings) {
    const char *path = option_value(arguments, "html");
    whole_file file;
    if (path == NULL)
        return EXIT_RIGHT;
    if (!begin_file(path, &file))
        return EXIT_FAILED;
    write_findings_page(file.stream, findings, arguments->positional[0],
                        option_value(arguments, "reference"));
    return end_file(&file, true) ? EXIT_RIGHT : EXIT_FAILED;
}

static int report_findings(const arguments *arguments, findings *findings) {
    int code = write_page(arguments, findings);
    if (code == EXIT_RIGHT && has_option(arguments, "json"))
        code = print_json_value(stdout, findings_json(findings)) ? EXIT_RIGHT : EXIT_FAILED;
    else if (code == EXIT_RIGHT)
        print_findings(findings, has_option(arguments, "verbose"));
    if (code == EXIT_RIGHT && findings->compared == 0) {
        fputs("invar: no node could be compared: the reference has none of their values\n", stderr);
        code = EXIT_FAILED;
    }
    return code == EXIT_RIGHT && findings->different > 0 ? EXIT_DIFFERENT : code;
}

static int compare_model(const arguments *arguments, const iv_model_options *model_options,
                         iv_session_options *session_options, findings *findings) {
    reference reference = {0};
    comparing comparing = {&reference, findings};
    running running;
    iv_inspection *graph = NULL;
    session_options->observer = compare_node;
    session_options->observer_context = &comparing;
    int code = open_running(arguments, model_options, session_options, &running);
    if (code == EXIT_RIGHT)
        code = inspect_with_inputs(running.model, running.inputs, &graph);
    if (code == EXIT_RIGHT)
        code =
            read_reference(option_value(arguments, "reference"), running.model, graph, &reference);
    if (code == EXIT_RIGHT)
        code = read_recorded_inputs(arguments, &running, &reference);
    if (code == EXIT_RIGHT)
        code = run_once(&running, NULL);
    if (code == EXIT_RIGHT)
        code = compare_outputs(findings, &running, &reference);
    if (code == EXIT_RIGHT) {
        count_nodes(findings);
        count_unused(findings, &reference, graph);
        code = report_findings(arguments, findings);
    }
    iv_inspection_release(graph);
    close_running(&running);
    free_reference(&reference);
    return code;
}

/* ---- recording ---- */

typedef struct recording {
    int count, capacity, left_out;
    char **names;
    iv_tensor **tensors;
} recording;

static iv_status copy_tensor(iv_tensor *tensor, iv_tensor **copy, iv_error *error) {
    iv_tensor *contiguous;
    iv_status status = iv_tensor_contiguous(tensor, &contiguous, error);
    if (status != IV_OK)
        return status;
    iv_dtype dtype = iv_tensor_dtype(contiguous);
    int rank = iv_tensor_rank(contiguous);
    const int64_t *dims = iv_tensor_dims(contiguous);
    const void *data = iv_tensor_data(contiguous);
    status = dtype == IV_STRING ? iv_tensor_from_strings(rank, dims, data, copy, error)
                                : iv_tensor_from_data(dtype, rank, dims, data, copy, error);
    iv_tensor_release(contiguous);
    return status;
}

static iv_status record_value(recording *recording, const char *name, iv_value value,
                              iv_error *error) {
    if (value.kind != IV_KIND_TENSOR || name[0] == '\0') {
        recording->left_out++;
        return IV_OK;
    }
    if (recording->count == recording->capacity) {
        size_t capacity = recording->capacity > 0 ? 2 * (size_t)recording->capacity : 64;
        char **names = realloc(recording->names, capacity * sizeof *names);
        if (names != NULL)
            recording->names = names;
        iv_tensor **tensors = realloc(recording->tensors, capacity * sizeof *tensors);
        if (tensors != NULL)
            recording->tensors = tensors;
        if (names == NULL || tensors == NULL)
            return fail_memory(error);
        recording->capacity = (int)capacity;
    }
    char *copy = strdup(name);
    iv_status status =
        copy == NULL ? fail_memory(error)
                     : copy_tensor(value.tensor, &recording->tensors[recording->count], error);
    if (status != IV_OK) {
        free(copy);
        return status;
    }
    recording->names[recording->count++] = copy;
    return IV_OK;
}

static iv_status record_node(void *context, iv_node_event *event, iv_error *error) {
    recording *recording = context;
    iv_status status = IV_OK;
    for (int i = 0; i < event->output_count && status == IV_OK && event->depth == 0; i++) {
        if (event->output_names[i] != NULL)
            status = record_value(recording, event->output_names[i], event->outputs[i], error);
    }
    return status;
}

static int record_inputs(recording *recording, const running *running) {
    iv_error error;
    for (int i = 0; i < iv_model_input_count(running->model); i++) {
        if (record_value(recording, iv_model_input(running->model, i)->name, running->inputs[i],
                         &error) != IV_OK)
            return report(&error);
    }
    return EXIT_RIGHT;
}

static int record_model(const arguments *arguments, const iv_model_options *model_options,
                        iv_session_options *session_options) {
    recording recording = {0};
    running running;
    iv_error error;
    session_options->observer = record_node;
    session_options->observer_context = &recording;
    int code = open_running(arguments, model_options, session_options, &running);
    if (code == EXIT_RIGHT)
        code = read_inputs(arguments, running.model, true, running.inputs);
    if (code == EXIT_RIGHT)
        code = record_inputs(&recording, &running);
    if (code == EXIT_RIGHT)
        code = run_once(&running, NULL);
    if (code == EXIT_RIGHT &&
        iv_tensors_save(option_value(arguments, "record"), recording.count,
                        (const char *const *)recording.names, recording.tensors, &error) != IV_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        printf("%d values recorded, %d left out because they are not tensors\n", recording.count,
               recording.left_out);
    for (int i = 0; i < recording.count; i++) {
        free(recording.names[i]);
        iv_tensor_release(recording.tensors[i]);
    }
    free(recording.names);
    free(recording.tensors);
    close_running(&running);
    return code;
}

/* ---- the command ---- */

int run_compare(const arguments *arguments) {
    iv_model_options model_options;
    iv_session_options session_options;
    findings findings = {.cumulative = has_option(arguments, "cumulative")};
    const char *tolerance = option_value(arguments, "tolerance");
    if (!read_model_options(arguments, &model_options) ||
        !read_session_options(arguments, &session_options))
        return EXIT_USAGE;
    model_options.passes = has_option(arguments, "passes");
    if (tolerance != NULL && !parse_tolerance(tolerance, &findings.absolute, &findings.relative))
        return usage_error("--tolerance takes ATOL,RTOL, not %s", tolerance);
    bool compares = has_option(arguments, "reference"), records = has_option(arguments, "record");
    if (compares == records)
        return usage_error(
            "compare needs --reference FILE|DIR to compare with, or --record FILE.npz to write");
    if (records)
        return record_model(arguments, &model_options, &session_options);
    int code = compare_model(arguments, &model_options, &session_options, &findings);
    free_findings(&findings);
    return code;
}
