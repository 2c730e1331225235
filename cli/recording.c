#include "recording.h"

#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "placement.h"
#include "running.h"

static sb_status fail_memory(sb_error *error) {
    snprintf(error->message, sizeof error->message, "out of memory");
    return error->status = SB_ERROR_OUT_OF_MEMORY;
}

/* ---- copies: what an observer is shown is valid until it returns ---- */

static sb_status copy_tensor(sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    sb_tensor *contiguous;
    sb_status status = sb_tensor_contiguous(tensor, &contiguous, error);
    if (status != SB_OK)
        return status;
    sb_dtype dtype = sb_tensor_dtype(contiguous);
    int rank = sb_tensor_rank(contiguous);
    const int64_t *dims = sb_tensor_dims(contiguous);
    const void *data = sb_tensor_data(contiguous);
    status = dtype == SB_STRING ? sb_tensor_from_strings(rank, dims, data, copy, error)
                                : sb_tensor_from_data(dtype, rank, dims, data, copy, error);
    sb_tensor_release(contiguous);
    return status;
}

static sb_status copy_value(sb_value value, sb_value *copy, sb_error *error);

static sb_status copy_sequence(const sb_sequence *sequence, sb_value *copy, sb_error *error) {
    int64_t count = sb_sequence_count(sequence);
    sb_value *items = calloc((size_t)count + 1, sizeof *items);
    sb_status status = items != NULL ? SB_OK : fail_memory(error);
    for (int64_t i = 0; i < count && status == SB_OK; i++)
        status = copy_value(sb_sequence_item(sequence, i), &items[i], error);
    if (status == SB_OK)
        status = sb_value_of_sequence(sb_sequence_dtype(sequence), count, items, copy, error);
    for (int64_t i = 0; items != NULL && i < count; i++)
        sb_value_release(&items[i]);
    free(items);
    return status;
}

static sb_status copy_value(sb_value value, sb_value *copy, sb_error *error) {
    sb_tensor *tensor;
    *copy = (sb_value){0};
    if (value.kind == SB_KIND_NONE)
        return SB_OK;
    if (value.kind == SB_KIND_SEQUENCE)
        return copy_sequence(value.sequence, copy, error);
    sb_status status = copy_tensor(value.tensor, &tensor, error);
    if (status == SB_OK)
        *copy = sb_value_of_tensor(tensor);
    return status;
}

/* ---- a run ---- */

static sb_status record_value(reference *recorded, const char *name, const char *node, const char *op, sb_value value,
                              sb_error *error) {
    sb_value copy;
    sb_status status = copy_value(value, &copy, error);
    if (status == SB_OK && !add_recorded(recorded, name, node, op, copy))
        status = fail_memory(error);
    return status;
}

static sb_status record_node(void *context, sb_node_event *event, sb_error *error) {
    sb_status status = SB_OK;
    for (int i = 0; i < event->output_count && status == SB_OK && event->depth == 0; i++) {
        if (event->output_names[i] != NULL)
            status = record_value(context, event->output_names[i], event->name, event->op, event->outputs[i], error);
    }
    return status;
}

static int record_inputs(reference *recorded, const running *running) {
    sb_error error;
    for (int i = 0; i < sb_model_input_count(running->model); i++) {
        if (record_value(recorded, sb_model_input(running->model, i)->name, NULL, NULL, running->inputs[i], &error) !=
            SB_OK)
            return report(&error);
    }
    return EXIT_RIGHT;
}

static bool is_recorded(const reference *recorded, const char *name) {
    for (int i = 0; i < recorded->count; i++) {
        if (strcmp(recorded->items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Outputs that no node makes: constants. */
static int record_outputs(reference *recorded, const running *running) {
    sb_error error;
    for (int i = 0; i < sb_model_output_count(running->model); i++) {
        const char *name = sb_model_output(running->model, i)->name;
        if (!is_recorded(recorded, name) &&
            record_value(recorded, name, NULL, NULL, running->outputs[i], &error) != SB_OK)
            return report(&error);
    }
    return EXIT_RIGHT;
}

static int run_recorded(const arguments *arguments, running *running, reference *recorded) {
    int code = read_inputs(arguments, running->model, true, running->inputs);
    if (code == EXIT_RIGHT)
        code = record_inputs(recorded, running);
    if (code == EXIT_RIGHT)
        code = run_once(running, NULL);
    return code == EXIT_RIGHT ? record_outputs(recorded, running) : code;
}

int record_values(const arguments *arguments, const sb_model_options *model_options,
                  const sb_session_options *session_options, bool on_cpu, reference *recorded) {
    running running;
    sb_session_options options = *session_options;
    options.observer = record_node;
    options.observer_context = recorded;
    int code = on_cpu ? open_running_on_cpu(arguments, model_options, &options, &running)
                      : open_running(arguments, model_options, &options, &running);
    if (code == EXIT_RIGHT)
        code = run_recorded(arguments, &running, recorded);
    if (code == EXIT_RIGHT && !on_cpu)
        code = report_placement(arguments, running.session, running.device);
    close_running(&running);
    return code;
}

/* ---- a file ---- */

static int save_recorded(const reference *recorded, const char *path) {
    const char **names = calloc((size_t)recorded->count + 1, sizeof *names);
    sb_tensor **tensors = calloc((size_t)recorded->count + 1, sizeof *tensors);
    int count = 0, code = names != NULL && tensors != NULL ? EXIT_RIGHT : out_of_memory();
    sb_error error;
    for (int i = 0; i < recorded->count && code == EXIT_RIGHT; i++) {
        const struct reference_item *item = &recorded->items[i];
        if (item->value.kind != SB_KIND_TENSOR || item->name[0] == '\0')
            continue;
        names[count] = item->name;
        tensors[count++] = item->value.tensor;
    }
    if (code == EXIT_RIGHT && sb_tensors_save(path, count, names, tensors, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        printf("%d values recorded, %d left out because they are not tensors\n", count, recorded->count - count);
    free(names);
    free(tensors);
    return code;
}

int record_to_file(const arguments *arguments, const sb_model_options *model_options,
                   const sb_session_options *session_options) {
    reference recorded = {0};
    int code = record_values(arguments, model_options, session_options, false, &recorded);
    if (code == EXIT_RIGHT)
        code = save_recorded(&recorded, option_value(arguments, "record"));
    free_reference(&recorded);
    return code;
}
