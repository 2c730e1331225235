/* samebit conformance: runs the ONNX standard's backend test folders. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "placement.h"
#include "progress.h"
#include "strided.h"
#include "support.h"
#include "text.h"
#include "whole_file.h"

/* The standard's, of nearly all cases. */
#define USUAL_ABSOLUTE 1e-7
#define USUAL_RELATIVE 1e-3

const option conformance_options[] = {
    MODEL_OPTIONS,
    SESSION_OPTIONS,
    {"verbose", NULL, false, "Print a line for each case"},
    {"json", NULL, false, "Print the results as JSON"},
    {"only", "TEXT", true, "Run only the cases whose name contains TEXT"},
    {"tolerance", "ATOL,RTOL", false,
     "Allowed difference of floats from the recorded ones; default 1e-7,1e-3 as in the standard, or what a "
     "case's own file tolerance.txt says: RTOL ATOL"},
    {"manifest", "FILE", false, "Cases to leave out: lines of NAME, a tab and the reason"},
    {"digests", "FILE", false, "Write a line with the digest of the outputs for each case that ran"},
    {"strided", NULL, false, "Hand every input over as a strided view"},
    {"repeat", "N", false, "Run each case N times, which must give the same bits; default 1"},
    {"left-on-cpu", "FILE", false,
     "Write a line for each passed case with nodes on the CPU: its name, their operators and why"},
    {0},
};

typedef struct settings {
    sb_model_options model;
    sb_session_options session;
    double absolute, relative; /* of the case that runs */
    bool own_tolerances;       /* cases may say theirs */
    long long repeats;
    bool verbose, strided;
    manifest manifest;
    json_t *cases;      /* with --json: an object per case, instead of lines */
    whole_file digests; /* without a stream: not wanted */
    const arguments *arguments;
    int passed, failed, skipped;
    sb_device *device;
    int placed;              /* passed cases without a node on the CPU */
    cpu_operators operators; /* of passed cases */
    whole_file left;         /* without a stream: not wanted */
} settings;

/* ---- one data set ---- */

static sb_status load_values(const char *folder, const char *stem, int count,
                             const sb_value_description *(*describe)(const sb_model *, int), const sb_model *model,
                             sb_value *values, sb_error *error) {
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%d.pb", stem, i);
        char *path = join_path(folder, name);
        struct stat found;
        sb_status status = SB_OK;
        /* A trailing optional input may have no file. */
        if (path != NULL && stat(path, &found) == 0)
            status = sb_onnx_value_load(path, describe(model, i), &values[i], error);
        free(path);
        if (status != SB_OK)
            return status;
    }
    return SB_OK;
}

static sb_status compare_values(const settings *settings, sb_value ours, sb_value recorded, const char *name,
                                sb_error *error) {
    error->status = SB_ERROR_DIFFERENT;
    if (ours.kind != recorded.kind) {
        snprintf(error->message, sizeof error->message, "output %s is of another kind than recorded", name);
        return SB_ERROR_DIFFERENT;
    }
    if (ours.kind == SB_KIND_SEQUENCE) {
        int64_t count = sb_sequence_count(ours.sequence);
        if (count != sb_sequence_count(recorded.sequence)) {
            snprintf(error->message, sizeof error->message, "output %s has %lld items where %lld are recorded", name,
                     (long long)count, (long long)sb_sequence_count(recorded.sequence));
            return SB_ERROR_DIFFERENT;
        }
        for (int64_t i = 0; i < count; i++) {
            sb_status status = compare_values(settings, sb_sequence_item(ours.sequence, i),
                                              sb_sequence_item(recorded.sequence, i), name, error);
            if (status != SB_OK)
                return status;
        }
        return SB_OK;
    }
    if (ours.kind == SB_KIND_NONE)
        return SB_OK;
    sb_comparison comparison;
    sb_status status =
        sb_tensor_compare(ours.tensor, recorded.tensor, settings->absolute, settings->relative, &comparison, error);
    if (status != SB_OK || comparison.outside == 0)
        return status;
    error->status = SB_ERROR_DIFFERENT;
    snprintf(error->message, sizeof error->message,
             "output %s: %lld of %lld elements differ; element %lld is %.9g where %.9g is recorded", name,
             (long long)comparison.outside, (long long)comparison.elements, (long long)comparison.worst,
             comparison.worst_left, comparison.worst_right);
    return SB_ERROR_DIFFERENT;
}

static sb_status compare_outputs(const settings *settings, const sb_model *model, const sb_value *ours,
                                 const sb_value *recorded, sb_error *error) {
    for (int i = 0; i < sb_model_output_count(model); i++) {
        const char *name = sb_model_output(model, i)->name;
        sb_status status = compare_values(settings, ours[i], recorded[i], name, error);
        if (status != SB_OK)
            return status;
    }
    return SB_OK;
}

/* Runs again and again: a run may not depend on those before it. */
static sb_status repeat_runs(const settings *settings, const sb_model *model, sb_session *session,
                             const sb_value *inputs, const char *expected, sb_error *error) {
    int count = sb_model_output_count(model);
    sb_value *outputs = calloc((size_t)count + 1, sizeof *outputs);
    char digest[SB_DIGEST_TEXT_BYTES];
    sb_status status = outputs != NULL ? SB_OK : (error->status = SB_ERROR_OUT_OF_MEMORY);
    for (long long run = 2; run <= settings->repeats && status == SB_OK; run++) {
        status = sb_session_run(session, inputs, outputs, error);
        if (status == SB_OK)
            status = sb_digest_values(count, outputs, digest, error);
        if (status == SB_OK && strcmp(digest, expected) != 0) {
            status = error->status = SB_ERROR_DIFFERENT;
            snprintf(error->message, sizeof error->message, "run %lld gives other bits than the first", run);
        }
        for (int i = 0; i < count; i++)
            sb_value_release(&outputs[i]);
    }
    free(outputs);
    return status;
}

static sb_status run_data_set(const settings *settings, const sb_model *model, sb_session *session, const char *folder,
                              const char *name, sb_error *error) {
    int inputs = sb_model_input_count(model), outputs = sb_model_output_count(model);
    size_t count = (size_t)inputs + 2 * (size_t)outputs;
    sb_value *values = calloc(count + 1, sizeof *values);
    if (values == NULL)
        return error->status = SB_ERROR_OUT_OF_MEMORY;
    sb_value *ours = values + inputs, *recorded = ours + outputs;
    sb_status status = load_values(folder, "input", inputs, sb_model_input, model, values, error);
    for (int i = 0; i < inputs && status == SB_OK && settings->strided; i++)
        status = make_strided(&values[i], error);
    if (status == SB_OK)
        status = load_values(folder, "output", outputs, sb_model_output, model, recorded, error);
    if (status == SB_OK)
        status = sb_session_run(session, values, ours, error);
    if (status == SB_OK)
        status = compare_outputs(settings, model, ours, recorded, error);
    char digest[SB_DIGEST_TEXT_BYTES];
    sb_error ignored;
    if (status == SB_OK && settings->repeats > 1)
        status = sb_digest_values(outputs, ours, digest, error);
    if (status == SB_OK && settings->repeats > 1)
        status = repeat_runs(settings, model, session, values, digest, error);
    if (settings->digests.stream != NULL && (status == SB_OK || status == SB_ERROR_DIFFERENT) &&
        sb_digest_values(outputs, ours, digest, &ignored) == SB_OK)
        fprintf(settings->digests.stream, "%s %s\n", digest, name);
    for (size_t i = 0; i < count; i++)
        sb_value_release(&values[i]);
    free(values);
    return status;
}

/* ---- one case ---- */

static sb_status run_loaded(const settings *settings, const sb_model *model, sb_session *session, const char *folder,
                            const char *name, sb_error *error) {
    for (int set = 0;; set++) {
        char part[64];
        snprintf(part, sizeof part, "test_data_set_%d", set);
        char *path = join_path(folder, part);
        struct stat found;
        if (path == NULL || stat(path, &found) != 0) {
            free(path);
            return SB_OK;
        }
        sb_status status = run_data_set(settings, model, session, path, name, error);
        free(path);
        if (status != SB_OK)
            return status;
    }
}

/* The tolerance that a case says is its own, in its file tolerance.txt. */
static sb_status read_tolerance(settings *settings, const char *folder, sb_error *error) {
    char *path = join_path(folder, "tolerance.txt");
    if (path == NULL)
        return error->status = SB_ERROR_OUT_OF_MEMORY;
    settings->absolute = USUAL_ABSOLUTE;
    settings->relative = USUAL_RELATIVE;
    FILE *file = fopen(path, "r");
    sb_status status = SB_OK;
    char rest;
    if (file != NULL && (fscanf(file, "%lf %lf %c", &settings->relative, &settings->absolute, &rest) != 2 ||
                         !(settings->relative >= 0) || !(settings->absolute >= 0))) {
        status = error->status = SB_ERROR_INVALID_FILE;
        snprintf(error->message, sizeof error->message,
                 "%s: a tolerance is RTOL ATOL, two numbers that are not negative", path);
    } else if (file == NULL && errno != ENOENT) {
        status = error->status = SB_ERROR_IO;
        snprintf(error->message, sizeof error->message, "cannot read %s: %s", path, strerror(errno));
    }
    if (file != NULL)
        fclose(file);
    free(path);
    return status;
}

/* Notes what a passed case has left on the CPU. */
static sb_status note_placement(settings *settings, sb_session *session, const char *name, sb_error *error) {
    cpu_operators own = {0};
    int nodes = 0;
    bool complete = add_cpu_operators(&own, session, &nodes) && add_cpu_operators(&settings->operators, session, NULL);
    settings->placed += nodes == 0;
    for (size_t i = 0; i < own.seen.count && settings->left.stream != NULL; i++)
        fprintf(settings->left.stream, "%s\t%s\t%s\n", name, own.seen.lines[i].name, own.seen.lines[i].reason);
    free_cpu_operators(&own);
    return complete ? SB_OK : (error->status = SB_ERROR_OUT_OF_MEMORY);
}

static sb_status run_case(settings *settings, const char *folder, const char *name, sb_error *error) {
    sb_model *model = NULL;
    sb_session *session = NULL;
    char *path = join_path(folder, "model.onnx");
    sb_status status =
        path != NULL ? sb_model_load(path, &settings->model, &model, error) : (error->status = SB_ERROR_OUT_OF_MEMORY);
    if (status == SB_OK && settings->own_tolerances)
        status = read_tolerance(settings, folder, error);
    if (status == SB_OK)
        status = sb_session_create(model, &settings->session, &session, error);
    if (status == SB_OK)
        status = run_loaded(settings, model, session, folder, name, error);
    if (status == SB_OK && settings->device != NULL)
        status = note_placement(settings, session, name, error);
    if (status == SB_OK && has_option(settings->arguments, "explain-placement")) {
        printf("%s:\n", name);
        explain_placement(settings->arguments, session, settings->device);
    }
    sb_session_destroy(session);
    sb_model_release(model);
    free(path);
    return status;
}

static bool is_selected(const settings *settings, const char *name) {
    const char *text = option_value_at(settings->arguments, "only", 0);
    for (int i = 0; text != NULL; text = option_value_at(settings->arguments, "only", ++i)) {
        if (strstr(name, text) != NULL)
            return true;
    }
    return option_value(settings->arguments, "only") == NULL;
}

/* Notes the result of a case: as a line (with `print`), or for --json. */
static void note_case(settings *settings, const char *name, const char *result, const char *reason, bool print) {
    if (settings->cases != NULL) {
        json_array_append_new(settings->cases, json_pack("{s:o, s:s, s:o}", "name", text_json(name), "result", result,
                                                         "reason", text_json(reason)));
    } else if (print) {
        clear_progress();
        printf(reason != NULL ? "%s %s: %s\n" : "%s %s\n", result, name, reason);
        fflush(stdout);
    }
}

static void count_case(settings *settings, const char *folder, const char *name) {
    if (!is_selected(settings, name))
        return;
    const char *reason = manifest_reason(&settings->manifest, name);
    if (reason != NULL) {
        settings->skipped++;
        note_case(settings, name, "skipped", reason, settings->verbose);
        return;
    }
    show_progress("%d passed, %d failed, %d skipped; running %s", settings->passed, settings->failed, settings->skipped,
                  name);
    sb_error error = {SB_OK, ""};
    sb_status status = run_case(settings, folder, name, &error);
    if (status == SB_OK) {
        settings->passed++;
        note_case(settings, name, "passed", NULL, settings->verbose);
    } else {
        char message[SB_ERROR_MESSAGE_BYTES + 64];
        settings->failed++;
        snprintf(message, sizeof message, "%s: %s", sb_status_name(status), error.message);
        note_case(settings, name, "failed", message, true);
    }
}

/* ---- folders ---- */

static int is_folder_name(const struct dirent *entry) {
    return entry->d_name[0] != '.' && strncmp(entry->d_name, "test_data_set_", 14) != 0;
}

/* Runs the case in `folder`, or those below it in alphabetical order. False when a folder cannot be read. */
static bool visit_folder(settings *settings, const char *folder, int depth) {
    char *model = join_path(folder, "model.onnx");
    struct stat found;
    bool is_case = model != NULL && stat(model, &found) == 0;
    free(model);
    if (is_case) {
        const char *slash = strrchr(folder, '/');
        count_case(settings, folder, slash != NULL ? slash + 1 : folder);
        return true;
    }
    struct dirent **entries;
    int count = depth < 8 ? scandir(folder, &entries, is_folder_name, alphasort) : 0;
    if (count < 0) {
        fprintf(stderr, "samebit: cannot read folder %s: %s\n", folder, strerror(errno));
        return false;
    }
    bool read = true;
    for (int i = 0; i < count; i++) {
        char *path = join_path(folder, entries[i]->d_name);
        if (path != NULL && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
            read = visit_folder(settings, path, depth + 1) && read;
        free(path);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    return read;
}

/* ---- the command ---- */

static bool read_settings(const arguments *arguments, settings *settings) {
    const char *tolerance = option_value(arguments, "tolerance");
    settings->arguments = arguments;
    settings->repeats = 1;
    settings->own_tolerances = tolerance == NULL;
    settings->verbose = has_option(arguments, "verbose");
    settings->strided = has_option(arguments, "strided");
    if (!read_model_options(arguments, &settings->model) || !read_session_options(arguments, &settings->session) ||
        !read_count(arguments, "repeat", 1, 1000000, &settings->repeats))
        return false;
    settings->session.device_if_quicker = false; /* all these cases are small */
    if (tolerance != NULL && !parse_tolerance(tolerance, &settings->absolute, &settings->relative)) {
        usage_error("--tolerance takes ATOL,RTOL, not %s", tolerance);
        return false;
    }
    const char *file = option_value(arguments, "manifest");
    if (file != NULL && !read_manifest(file, &settings->manifest))
        return false;
    if (has_option(arguments, "json") && (settings->cases = json_array()) == NULL) {
        out_of_memory();
        return false;
    }
    file = option_value(arguments, "left-on-cpu");
    if (file != NULL && !begin_file(file, &settings->left))
        return false;
    file = option_value(arguments, "digests");
    return file == NULL || begin_file(file, &settings->digests);
}

static bool print_counts(settings *settings) {
    if (settings->cases == NULL) {
        printf("%d passed, %d failed, %d skipped\n", settings->passed, settings->failed, settings->skipped);
        if (settings->device != NULL)
            printf("%d of %d passed cases have no node on the CPU\n", settings->placed, settings->passed);
        return true;
    }
    json_t *all = json_pack("{s:i, s:i, s:i, s:i, s:o}", "passed", settings->passed, "failed", settings->failed,
                            "skipped", settings->skipped, "placed", settings->device != NULL ? settings->placed : 0,
                            "cases", settings->cases);
    settings->cases = NULL;
    return print_json_value(stdout, all);
}

int run_conformance(const arguments *arguments) {
    settings settings = {0};
    bool complete = read_settings(arguments, &settings);
    int code = complete ? open_device(arguments, &settings.session, &settings.device) : EXIT_USAGE;
    complete = code == EXIT_RIGHT;
    for (int i = 0; i < arguments->positional_count && complete; i++) {
        if (!visit_folder(&settings, arguments->positional[i], 0))
            code = EXIT_FAILED;
    }
    clear_progress();
    if (settings.digests.stream != NULL && !end_file(&settings.digests, complete))
        code = EXIT_FAILED;
    if (settings.left.stream != NULL && !end_file(&settings.left, complete))
        code = EXIT_FAILED;
    if (complete) {
        if (code == EXIT_RIGHT)
            code = check_allowed(arguments, &settings.operators);
        if (!print_counts(&settings))
            code = EXIT_FAILED;
        if (code == EXIT_RIGHT && settings.failed != 0)
            code = EXIT_DIFFERENT;
        if (code == EXIT_RIGHT && settings.passed == 0) {
            fputs("samebit: no case was run\n", stderr);
            code = EXIT_FAILED;
        }
    }
    json_decref(settings.cases);
    free_cpu_operators(&settings.operators);
    sb_device_release(settings.device);
    free_manifest(&settings.manifest);
    return code;
}
