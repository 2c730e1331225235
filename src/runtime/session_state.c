#include "runtime/session_state.h"

sb_status sb_session_bind(sb_model *model, const sb_session_options *options, const sb_model_entry **entry,
                          sb_state_binding **binding, sb_error *error) {
    int index = options->entry == NULL ? 0 : sb_model_entry_index(model, options->entry);
    if (index < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the model has no entry graph '%.200s'; its first is '%.200s'",
                       options->entry, model->entries[0].name);
    *entry = &model->entries[index];
    const sb_graph *graph = (*entry)->graph;
    if (options->state != NULL && options->state->model != model)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the state is of another model: sb_state_create makes one for this, also where both were loaded "
                       "from one file");
    if (options->state != NULL)
        return sb_binding_create(options->state, index, options->device, binding, error);
    if (graph->read_count == 0 && graph->update_count == 0)
        return SB_OK;
    return sb_fail(
        error, SB_ERROR_UNSUPPORTED,
        "graph '%.200s' has variables: bind a state to run it (sb_state_create, and sb_session_options.state)",
        (*entry)->name);
}

sb_status sb_session_entering(const sb_state_binding *binding, const sb_graph *graph, const sb_value *inputs,
                              size_t index, sb_value *value, sb_error *error) {
    if (binding == NULL || binding->read[index] < 0) {
        *value = inputs[index];
        return SB_OK;
    }
    if (index < graph->input_count && inputs[index].kind != SB_KIND_NONE)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "input %.200s is a variable of the state: leave it out, and use sb_state_set to change it",
                       graph->values[graph->inputs[index]].name);
    *value = binding->entering[index];
    return SB_OK;
}

bool sb_session_keeps(const sb_state_binding *binding, size_t index) {
    return binding != NULL && binding->update[index] >= 0;
}
