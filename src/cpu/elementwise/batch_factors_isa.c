/* The row loop of batch normalisation, compiled once per instruction set. */
#include "base/isa.h"
#include "numerics/scalar.h"
#include "tensor/walk.h"

#define AT(base, index, step) (*(float *)(void *)((base) + (index) * (step)))

sb_walk_row SB_ISA_NAME(sb_batch_factors_row);

void SB_ISA_NAME(sb_batch_factors_row)(void *context, int64_t count, char *const *data, const int64_t *steps) {
    (void)context;
    const int64_t size = sizeof(float);
    if (steps[0] == size && steps[1] == size && steps[2] == size && steps[3] == size) {
        float *restrict y = (float *)(void *)data[0];
        const float *restrict x = (const float *)(void *)data[1];
        const float *restrict a = (const float *)(void *)data[2];
        const float *restrict b = (const float *)(void *)data[3];
        for (int64_t i = 0; i < count; i++)
            y[i] = sb_fma_f32(x[i], a[i], b[i]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        AT(data[0], i, steps[0]) =
            sb_fma_f32(AT(data[1], i, steps[1]), AT(data[2], i, steps[2]), AT(data[3], i, steps[3]));
}
