#include "ops/quantized.h"

#include "tensor/walk.h"

typedef struct widening {
    iv_dtype dtype;
    int32_t *out;
} widening;

static void widen_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    widening *state = context;
    for (int64_t i = 0; i < count; i++)
        *state->out++ = iv_quantized_load(state->dtype, data[0] + i * steps[0], 0) -
                        iv_quantized_load(state->dtype, data[1] + i * steps[1], 0);
}

iv_status iv_quantized_widen(iv_tensor *tensor, iv_tensor *zero_point, int32_t *out,
                             iv_error *error) {
    iv_tensor *points;
    if (zero_point != NULL) {
        IV_TRY(iv_tensor_broadcast(zero_point, tensor->rank, tensor->dims, &points, error));
    } else {
        iv_tensor *zero;
        IV_TRY(iv_tensor_create(tensor->dtype, 0, NULL, &zero, error));
        iv_status status = iv_tensor_broadcast(zero, tensor->rank, tensor->dims, &points, error);
        iv_tensor_release(zero);
        IV_TRY(status);
    }
    const iv_tensor *operands[] = {tensor, points};
    widening state = {tensor->dtype, out};
    iv_walk walk;
    iv_walk_start_ordered(&walk, tensor->rank, tensor->dims, 2, operands);
    iv_walk_run(&walk, widen_row, &state);
    iv_tensor_release(points);
    return IV_OK;
}
