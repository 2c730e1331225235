/* RotaryEmbedding: a thread for each pair of elements. */
#include "cuda/rows/rotary.cuh"

#define ROTARY(suffix)                                                                                                 \
    SB_CUDA_KERNEL(sb_cuda_rotary_##suffix, sb_cuda_rotary, p) {                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t batch = index, unit = sb_cuda_take(&batch, p->units), head = sb_cuda_take(&batch, p->heads);       \
            int64_t token = sb_cuda_take(&batch, p->tokens);                                                           \
            const char *x = p->x + batch * p->x_steps[0] + token * p->x_steps[1] + head * p->x_steps[2];               \
            char *y = p->y + batch * p->y_steps[0] + token * p->y_steps[1] + head * p->y_steps[2];                     \
            sb_cuda_turn_##suffix(p, batch, token, unit, x, y, p->y_steps[3]);                                         \
        }                                                                                                              \
    }
ROTARY(f16)
ROTARY(bf16)
ROTARY(f32)
