#include "ops/quantized.h"

#include "tensor/walk.h"

typedef struct widening {
    sb_dtype dtype;
    int32_t *out;
} widening;

static void widen_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    widening *state = context;
    for (int64_t i = 0; i < count; i++)
        *state->out++ = sb_quantized_load(state->dtype, data[0] + i * steps[0], 0) -
                        sb_quantized_load(state->dtype, data[1] + i * steps[1], 0);
}

sb_status sb_quantized_widen(sb_tensor *tensor, sb_tensor *zero_point, int32_t *out, sb_error *error) {
    sb_tensor *points;
    if (zero_point != NULL) {
        SB_TRY(sb_tensor_broadcast(zero_point, tensor->rank, tensor->dims, &points, error));
    } else {
        sb_tensor *zero;
        SB_TRY(sb_tensor_create(tensor->dtype, 0, NULL, &zero, error));
        sb_status status = sb_tensor_broadcast(zero, tensor->rank, tensor->dims, &points, error);
        sb_tensor_release(zero);
        SB_TRY(status);
    }
    const sb_tensor *operands[] = {tensor, points};
    widening state = {tensor->dtype, out};
    sb_walk walk;
    sb_walk_start_ordered(&walk, tensor->rank, tensor->dims, 2, operands);
    sb_walk_run(&walk, widen_row, &state);
    sb_tensor_release(points);
    return SB_OK;
}
