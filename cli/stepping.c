#include "stepping.h"

#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "text.h"

/* ---- the state ---- */

bool is_kept(const arguments *arguments, const char *name, bool input) {
    const char *text;
    size_t length = strlen(name);
    for (int i = 0; (text = option_value_at(arguments, "state", i)) != NULL; i++) {
        const char *equals = strchr(text, '=');
        if (equals == NULL)
            continue;
        if (input ? (size_t)(equals - text) == length && memcmp(text, name, length) == 0
                  : strcmp(equals + 1, name) == 0)
            return true;
    }
    return false;
}

static int count_values(const arguments *arguments, const char *option) {
    int count = 0;
    while (option_value_at(arguments, option, count) != NULL)
        count++;
    return count;
}

/* Lists of what --state and --set say; names are owned. */
typedef struct state_request {
    int pair_count, symbol_count;
    sb_state_pair *pairs;
    char **inputs;
    char **symbols;
    int64_t *values;
} state_request;

static int read_pairs(const arguments *arguments, state_request *request) {
    for (int i = 0; i < request->pair_count; i++) {
        const char *text = option_value_at(arguments, "state", i), *output;
        if (!parse_assignment(text, &request->inputs[i], &output))
            return usage_error("--state takes INPUT=OUTPUT, not %s", text);
        request->pairs[i] = (sb_state_pair){request->inputs[i], output, -1, NULL};
    }
    return EXIT_RIGHT;
}

static int read_symbols(const arguments *arguments, const sb_model *model, state_request *request) {
    int code = check_settings(arguments, model);
    for (int i = 0; i < request->symbol_count && code == EXIT_RIGHT; i++) {
        const char *rest;
        long long value = 0;
        if (!parse_assignment(option_value_at(arguments, "set", i), &request->symbols[i], &rest) ||
            !parse_integer(rest, 0, INT64_MAX, &value))
            code = out_of_memory(); /* what is wrong with the text itself, check_settings has said */
        request->values[i] = value;
    }
    return code;
}

static int create_state(const state_request *request, sb_model *model, const sb_session_options *session,
                        sb_state **state) {
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_error error;
    options.device = session->device;
    options.memory_limit = session->memory_limit;
    options.pair_count = request->pair_count;
    options.pairs = request->pairs;
    options.symbol_count = request->symbol_count;
    options.symbols = (const char *const *)request->symbols;
    options.symbol_values = request->values;
    options.capacity_count = session->capacity_count;
    options.capacities = session->capacities;
    return sb_state_create(model, &options, state, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

static void free_request(state_request *request) {
    for (int i = 0; i < request->pair_count && request->inputs != NULL; i++)
        free(request->inputs[i]);
    for (int i = 0; i < request->symbol_count && request->symbols != NULL; i++)
        free(request->symbols[i]);
    free(request->pairs);
    free(request->inputs);
    free(request->symbols);
    free(request->values);
}

int open_state(const arguments *arguments, sb_model *model, const sb_session_options *options, sb_state **state) {
    state_request request = {.pair_count = count_values(arguments, "state"),
                             .symbol_count = count_values(arguments, "set")};
    if (request.pair_count == 0) {
        const char *needs = has_option(arguments, "load-state")   ? "load-state"
                            : has_option(arguments, "save-state") ? "save-state"
                                                                  : NULL;
        return needs == NULL ? EXIT_RIGHT : usage_error("--%s needs a state: give --state INPUT=OUTPUT", needs);
    }
    request.pairs = calloc((size_t)request.pair_count, sizeof *request.pairs);
    request.inputs = calloc((size_t)request.pair_count, sizeof *request.inputs);
    request.symbols = calloc((size_t)request.symbol_count + 1, sizeof *request.symbols);
    request.values = calloc((size_t)request.symbol_count + 1, sizeof *request.values);
    int code = request.pairs != NULL && request.inputs != NULL && request.symbols != NULL && request.values != NULL
                   ? read_pairs(arguments, &request)
                   : out_of_memory();
    if (code == EXIT_RIGHT)
        code = read_symbols(arguments, model, &request);
    if (code == EXIT_RIGHT)
        code = create_state(&request, model, options, state);
    free_request(&request);
    sb_error error;
    const char *path = option_value(arguments, "load-state");
    if (code == EXIT_RIGHT && path != NULL && sb_state_restore(*state, path, &error) != SB_OK)
        code = report(&error);
    return code;
}

int save_state(const arguments *arguments, const running *running) {
    sb_error error;
    const char *path = option_value(arguments, "save-state");
    if (path == NULL || sb_state_save(running->state, path, &error) == SB_OK)
        return EXIT_RIGHT;
    return report(&error);
}

/* ---- what the steps are given ---- */

/* An array for each input that changes from step to step; NULL for the others. */
typedef struct steps {
    int input_count, output_count;
    int64_t length;
    sb_tensor **arrays;
    sb_tensor **stacked; /* by output; NULL for those that the state keeps */
} steps;

/* The only input that nothing gives yet, or -1. */
static int only_missing(const arguments *arguments, const running *running) {
    int found = -1, count = 0;
    for (int i = 0; i < sb_model_input_count(running->model); i++) {
        const sb_value_description *input = sb_model_input(running->model, i);
        if (running->inputs[i].kind == SB_KIND_NONE && !input->optional && !is_kept(arguments, input->name, true)) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : -1;
}

static int take_array(const running *running, steps *steps, int index, const char *path, sb_tensor *array) {
    char room[TEXT_BYTES];
    const char *name = printable(sb_model_input(running->model, index)->name, room);
    if (running->inputs[index].kind != SB_KIND_NONE)
        return usage_error("input %s is given twice", name);
    if (sb_tensor_rank(array) == 0)
        return usage_error("%s: the array for input %s has no axis of steps", path, name);
    int64_t length = sb_tensor_dims(array)[0];
    if (length == 0 || (steps->length != 0 && steps->length != length))
        return usage_error("%s: the array for input %s has %lld steps%s", path, name, (long long)length,
                           length == 0 ? "" : ", and another one more or less");
    steps->length = length;
    steps->arrays[index] = sb_tensor_retain(array);
    return EXIT_RIGHT;
}

static int read_steps(const arguments *arguments, const running *running, const char *path, steps *steps) {
    int count, code = EXIT_RIGHT;
    char **names;
    sb_tensor **tensors;
    sb_error error;
    if (sb_tensors_load(path, &count, &names, &tensors, &error) != SB_OK)
        return report(&error);
    for (int i = 0; i < count && code == EXIT_RIGHT; i++) {
        bool named = names[i][0] != '\0';
        int index = named ? sb_model_input_index(running->model, names[i]) : only_missing(arguments, running);
        if (index >= 0)
            code = take_array(running, steps, index, path, tensors[i]);
        else if (named)
            code = usage_error("%s holds %s, which is no input of the model", path, names[i]);
        else
            code = usage_error("%s is one array, and more or fewer inputs than one are left: give them by name in a "
                               ".npz file",
                               path);
    }
    sb_tensors_free(count, names, tensors);
    return code == EXIT_RIGHT && steps->length == 0 ? usage_error("%s holds no array", path) : code;
}

/* Step `step` of an array: without its first axis, unless the input has as many axes as the array. */
static int take_step(const sb_value_description *input, sb_tensor *array, int64_t step, sb_value *value) {
    sb_error error;
    sb_tensor *one, *view;
    if (sb_tensor_slice(array, 0, step, 1, 1, &one, &error) != SB_OK)
        return report(&error);
    int rank = sb_tensor_rank(array);
    if (input->rank == rank) {
        *value = sb_value_of_tensor(one);
        return EXIT_RIGHT;
    }
    sb_status status = sb_tensor_reshape(one, rank - 1, sb_tensor_dims(array) + 1, &view, &error);
    sb_tensor_release(one);
    *value = sb_value_of_tensor(status == SB_OK ? view : NULL);
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}

/* ---- what they give ---- */

/* Room for an output of all steps. */
static int create_stack(sb_tensor *first, int64_t length, sb_tensor **stacked) {
    sb_error error;
    int64_t dims[SB_MAX_RANK];
    int rank = sb_tensor_rank(first);
    if (rank == SB_MAX_RANK || sb_tensor_dtype(first) == SB_STRING)
        return usage_error("an output that is %s cannot be stacked",
                           rank == SB_MAX_RANK ? "of the largest rank" : "text");
    dims[0] = length;
    if (rank > 0)
        memcpy(dims + 1, sb_tensor_dims(first), (size_t)rank * sizeof *dims);
    return sb_tensor_create(sb_tensor_dtype(first), rank + 1, dims, stacked, &error) == SB_OK ? EXIT_RIGHT
                                                                                              : report(&error);
}

static bool fits_stack(const sb_tensor *tensor, const sb_tensor *stacked) {
    int rank = sb_tensor_rank(tensor);
    return rank + 1 == sb_tensor_rank(stacked) && sb_tensor_dtype(tensor) == sb_tensor_dtype(stacked) &&
           (rank == 0 ||
            memcmp(sb_tensor_dims(tensor), sb_tensor_dims(stacked) + 1, (size_t)rank * sizeof(int64_t)) == 0);
}

static int stack(const char *name, sb_value value, int64_t step, int64_t length, sb_tensor **stacked) {
    char room[TEXT_BYTES];
    sb_error error;
    sb_tensor *rows;
    if (value.kind == SB_KIND_NONE)
        return EXIT_RIGHT;
    if (value.kind != SB_KIND_TENSOR)
        return usage_error("output %s is not a tensor and cannot be stacked", printable(name, room));
    int code = *stacked == NULL ? create_stack(value.tensor, length, stacked) : EXIT_RIGHT;
    if (code != EXIT_RIGHT)
        return code;
    if (!fits_stack(value.tensor, *stacked))
        return usage_error("output %s has other extents in step %lld than before, and cannot be stacked",
                           printable(name, room), (long long)step);
    if (sb_tensor_contiguous(value.tensor, &rows, &error) != SB_OK)
        return report(&error);
    size_t bytes = (size_t)sb_tensor_elements(rows) * sb_dtype_size(sb_tensor_dtype(rows));
    if (bytes != 0)
        memcpy((char *)sb_tensor_mutable_data(*stacked) + (size_t)step * bytes, sb_tensor_data(rows), bytes);
    sb_tensor_release(rows);
    return EXIT_RIGHT;
}

static int run_step(const arguments *arguments, running *running, steps *steps, int64_t step, double *nanoseconds) {
    double time = 0;
    int code = EXIT_RIGHT;
    for (int i = 0; i < steps->input_count && code == EXIT_RIGHT; i++) {
        if (steps->arrays[i] == NULL)
            continue;
        sb_value_release(&running->inputs[i]);
        code = take_step(sb_model_input(running->model, i), steps->arrays[i], step, &running->inputs[i]);
    }
    if (code == EXIT_RIGHT && step == 0)
        code = complete_inputs(arguments, running->model, false, running->inputs);
    if (code == EXIT_RIGHT)
        code = run_once(running, &time);
    *nanoseconds += time;
    for (int i = 0; i < steps->output_count && code == EXIT_RIGHT; i++)
        code = stack(sb_model_output(running->model, i)->name, running->outputs[i], step, steps->length,
                     &steps->stacked[i]);
    return code;
}

int run_in_steps(const arguments *arguments, running *running, double *nanoseconds) {
    const char *path = option_value(arguments, "steps");
    if (path == NULL) {
        int code = complete_inputs(arguments, running->model, false, running->inputs);
        return code == EXIT_RIGHT ? run_once(running, nanoseconds) : code;
    }
    steps steps = {.input_count = sb_model_input_count(running->model),
                   .output_count = sb_model_output_count(running->model)};
    steps.arrays = calloc((size_t)steps.input_count + 1, sizeof(sb_tensor *));
    steps.stacked = calloc((size_t)steps.output_count + 1, sizeof(sb_tensor *));
    *nanoseconds = 0;
    int code =
        steps.arrays != NULL && steps.stacked != NULL ? read_steps(arguments, running, path, &steps) : out_of_memory();
    for (int64_t step = 0; step < steps.length && code == EXIT_RIGHT; step++)
        code = run_step(arguments, running, &steps, step, nanoseconds);
    for (int i = 0; i < steps.output_count && code == EXIT_RIGHT; i++) {
        sb_value_release(&running->outputs[i]);
        running->outputs[i] = sb_value_of_tensor(sb_tensor_retain(steps.stacked[i]));
    }
    for (int i = 0; i < steps.input_count && steps.arrays != NULL; i++)
        sb_tensor_release(steps.arrays[i]);
    for (int i = 0; i < steps.output_count && steps.stacked != NULL; i++)
        sb_tensor_release(steps.stacked[i]);
    free(steps.arrays);
    free(steps.stacked);
    return code;
}
