/* samebit run: one run of a model on tensors from files. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "capacities.h"
#include "commands.h"
#include "inputs.h"
#include "placement.h"
#include "running.h"
#include "stepping.h"
#include "text.h"

const option run_options[] = {
    INPUT_OPTIONS,
    {"output", "FILE", false, "Write the outputs to FILE.npz, or a single output to FILE.npy"},
    {"digest", NULL, false, "Print the SHA-256 digest of the outputs"},
    {"json", NULL, false, "Print what was computed as JSON"},
    MODEL_OPTIONS,
    FILE_OPTION,
    SESSION_OPTIONS,
    STATE_OPTIONS,
    CAPACITY_OPTION,
    {0},
};

/* ---- what comes out ---- */

static int save_outputs(const arguments *arguments, const running *running, const char *path) {
    int all = sb_model_output_count(running->model), count = 0;
    const char **names = calloc((size_t)all + 1, sizeof *names);
    sb_tensor **tensors = calloc((size_t)all + 1, sizeof *tensors);
    int code = names != NULL && tensors != NULL ? EXIT_RIGHT : out_of_memory();
    for (int i = 0; i < all && code == EXIT_RIGHT; i++) {
        const char *name = sb_model_output(running->model, i)->name;
        if (is_kept(arguments, name, false))
            continue;
        if (running->outputs[i].kind != SB_KIND_TENSOR)
            code = usage_error("output %s is not a tensor and cannot be saved", name);
        names[count] = name;
        tensors[count++] = running->outputs[i].tensor;
    }
    sb_error error;
    size_t length = strlen(path);
    bool single = length >= 4 && strcmp(path + length - 4, ".npy") == 0;
    if (code == EXIT_RIGHT && single && count != 1)
        code = usage_error("there are %d outputs: write them to a .npz file", count);
    if (code == EXIT_RIGHT && (single ? sb_tensor_save(path, tensors[0], &error)
                                      : sb_tensors_save(path, count, names, tensors, &error)) != SB_OK)
        code = report(&error);
    free(names);
    free(tensors);
    return code;
}

static void print_value(const char *name, bool kept, sb_value value) {
    char room[TEXT_BYTES];
    printf("%s: ", printable(name, room));
    if (value.kind == SB_KIND_NONE) {
        puts(kept ? "in the state" : "nothing");
        return;
    }
    if (value.kind == SB_KIND_SEQUENCE) {
        printf("sequence of %lld\n", (long long)sb_sequence_count(value.sequence));
        return;
    }
    printf("%s[", sb_dtype_name(sb_tensor_dtype(value.tensor)));
    for (int d = 0; d < sb_tensor_rank(value.tensor); d++)
        printf(d == 0 ? "%lld" : ",%lld", (long long)sb_tensor_dims(value.tensor)[d]);
    puts("]");
}

static json_t *value_json(const char *name, sb_value value) {
    json_t *dims = json_array();
    for (int d = 0; value.kind == SB_KIND_TENSOR && d < sb_tensor_rank(value.tensor); d++)
        json_array_append_new(dims, json_integer(sb_tensor_dims(value.tensor)[d]));
    const char *dtype = value.kind == SB_KIND_TENSOR     ? sb_dtype_name(sb_tensor_dtype(value.tensor))
                        : value.kind == SB_KIND_SEQUENCE ? "sequence"
                                                         : "nothing";
    return json_pack("{s:o, s:s, s:o}", "name", text_json(name), "dtype", dtype, "dims", dims);
}

static int print_json(const running *running, const char *digest, double nanoseconds) {
    json_t *outputs = json_array();
    for (int i = 0; i < sb_model_output_count(running->model); i++)
        json_array_append_new(outputs, value_json(sb_model_output(running->model, i)->name, running->outputs[i]));
    json_t *all = json_pack("{s:o, s:s, s:f, s:f}", "outputs", outputs, "digest", digest, "load_ms", running->load_ms,
                            "run_ms", nanoseconds / 1e6);
    return print_json_value(stdout, all) ? EXIT_RIGHT : EXIT_FAILED;
}

static int print_outputs(const arguments *arguments, const running *running, double nanoseconds) {
    char digest[SB_DIGEST_TEXT_BYTES];
    sb_error error;
    int count = sb_model_output_count(running->model);
    if (sb_digest_values(count, running->outputs, digest, &error) != SB_OK)
        return report(&error);
    if (has_option(arguments, "json"))
        return print_json(running, digest, nanoseconds);
    for (int i = 0; i < count; i++)
        print_value(sb_model_output(running->model, i)->name,
                    is_kept(arguments, sb_model_output(running->model, i)->name, false), running->outputs[i]);
    if (has_option(arguments, "digest"))
        printf("sha256 %s\n", digest);
    return EXIT_RIGHT;
}

/* Says that there are warnings, and where to read them: a run is not the place for a list. */
static void mention_warnings(const arguments *arguments, const sb_model *model) {
    int count = sb_model_warning_count(model);
    if (count != 0)
        fprintf(stderr, "samebit: %d warning%s about the file: samebit dump --warnings %s\n", count,
                count == 1 ? "" : "s", arguments->positional[0]);
}

int run_run(const arguments *arguments) {
    sb_model_options model_options;
    sb_session_options session_options;
    if (!read_model_options(arguments, &model_options) || !read_session_options(arguments, &session_options))
        return EXIT_USAGE;
    running running;
    double nanoseconds = 0;
    int code = open_running(arguments, &model_options, &session_options, &running);
    if (code == EXIT_RIGHT)
        mention_warnings(arguments, running.model);
    if (code == EXIT_RIGHT)
        code = read_given_inputs(arguments, running.model, running.inputs);
    if (code == EXIT_RIGHT)
        code = run_in_steps(arguments, &running, &nanoseconds);
    if (code == EXIT_RIGHT)
        code = save_state(arguments, &running);
    const char *path = option_value(arguments, "output");
    if (code == EXIT_RIGHT && path != NULL)
        code = save_outputs(arguments, &running, path);
    if (code == EXIT_RIGHT)
        code = print_outputs(arguments, &running, nanoseconds);
    if (code == EXIT_RIGHT)
        code = report_placement(arguments, running.session, running.device);
    close_running(&running);
    return code;
}
