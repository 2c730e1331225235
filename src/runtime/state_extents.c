/* Extents with a capacity: what variables along them use of their room. */
#include <string.h>

#include "runtime/state.h"

int sb_state_extent_index(const sb_state *state, const char *symbol) {
    for (size_t i = 0; i < state->extent_count; i++) {
        if (strcmp(state->extents[i].symbol, symbol) == 0)
            return (int)i;
    }
    return -1;
}

void sb_state_put_extent(sb_state *state, size_t extent, int64_t used) {
    const sb_held_extent *held = &state->extents[extent];
    state->extents[extent].used = used;
    for (size_t i = 0; i < held->place_count; i++)
        *held->places[i] = used;
}

void sb_state_set_extent(sb_state *state, size_t extent, int64_t used) {
    pthread_mutex_lock(&state->lock);
    sb_state_put_extent(state, extent, used);
    pthread_mutex_unlock(&state->lock);
}

sb_status sb_state_view(const sb_held_variable *variable, const int64_t *extents, sb_tensor **view, sb_error *error) {
    const sb_tensor *tensor = variable->tensor;
    int64_t dims[SB_MAX_RANK];
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = variable->extents[d] >= 0 ? extents[variable->extents[d]] : tensor->dims[d];
    return sb_tensor_over(tensor->storage, tensor->data, tensor->dtype, tensor->rank, dims, tensor->strides, view,
                          error);
}

sb_status sb_state_extent(sb_state *state, const char *symbol, int64_t *extent, sb_error *error) {
    int index = sb_state_extent_index(state, symbol);
    if (index < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the state has no capacity for an extent '%.200s'", symbol);
    pthread_mutex_lock(&state->lock);
    *extent = state->extents[index].used;
    pthread_mutex_unlock(&state->lock);
    return SB_OK;
}

sb_status sb_state_trim(sb_state *state, const char *symbol, int64_t extent, sb_error *error) {
    int64_t used;
    SB_TRY(sb_state_enter(state, true, NULL, error));
    sb_status status = sb_state_extent(state, symbol, &used, error);
    if (status == SB_OK && (extent < 0 || extent > used))
        status = sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "extent %.200s is %lld and cannot be trimmed to %lld",
                         symbol, (long long)used, (long long)extent);
    if (status == SB_OK)
        sb_state_set_extent(state, (size_t)sb_state_extent_index(state, symbol), extent);
    sb_state_leave(state);
    return status;
}
