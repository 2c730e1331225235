/* RNN, GRU and LSTM (ops/recurrent.h): the products with W of all time steps first, then a launch
 * for each step, or two where r * H has to be whole before it is multiplied. A thread computes the
 * chains of all gates of one state element, and then the element by ops/recurrent_cell.h. W and R
 * lie transposed, so that neighbouring threads read neighbouring elements. */
#include "cuda/common/kernel.cuh"
#include "cuda/recurrent/recurrent_parameters.h"
#include "numerics/chain.h"
#include "ops/type_lists.h"

#define SB_CELL_REAL float
#define SB_CELL(name) name##_f32
#define SB_CELL_MATH(name) sb_##name##_f32
#include "ops/recurrent_cell.h"
#undef SB_CELL_REAL
#undef SB_CELL
#undef SB_CELL_MATH

#define SB_CELL_REAL double
#define SB_CELL(name) name##_f64
#define SB_CELL_MATH(name) sb_##name##_f64
#include "ops/recurrent_cell.h"
#undef SB_CELL_REAL
#undef SB_CELL
#undef SB_CELL_MATH

#define MOST_GATES 4

/* The time steps of a batch row: a wrong number is a fault, and counts as none. */
SB_CUDA_FUNCTION int64_t length_of(const sb_cuda_recurrent *p, int64_t batch) {
    if (p->lengths == NULL)
        return p->steps;
    int64_t length = p->lengths[batch * p->length_stride];
    if (length >= 0 && length <= p->steps)
        return length;
    *p->fault = SB_FAULT_INDEX;
    return 0;
}

/* The chain of `count` values of `left` with those of `right`, from +0. What bounds it is the way
 * to the weights: many are fetched ahead of their step. */
#define FMA_CHAIN(suffix, type)                                                                                        \
    SB_CUDA_FUNCTION type chain_##suffix(const type *left, int64_t left_stride, const type *right, int64_t rows,       \
                                         int64_t count) {                                                              \
        type sum = 0;                                                                                                  \
        SB_CUDA_UNROLL_BY_32                                                                                           \
        for (int64_t k = 0; k < count; k++)                                                                            \
            sum = sb_fma_##suffix(left[k * left_stride], right[k * rows], sum);                                        \
        return sum;                                                                                                    \
    }
#if defined(__CUDACC__)
#define SB_CUDA_UNROLL_BY_32 _Pragma("unroll 32")
#else
#define SB_CUDA_UNROLL_BY_32
#endif
FMA_CHAIN(f32, float)
FMA_CHAIN(f64, double)

#define CHAIN_16(suffix)                                                                                               \
    SB_CUDA_FUNCTION float chain_##suffix(const uint16_t *left, int64_t left_stride, const uint16_t *right,            \
                                          int64_t rows, int64_t count) {                                               \
        return sb_chain16(left, left_stride, right, rows, count, 0.0f, sb_chain16_format_##suffix());                  \
    }
CHAIN_16(f16)
CHAIN_16(bf16)

/* State elements of a block: a warp computes their chains with one gate's weights. */
#define ELEMENTS SB_CUDA_RECURRENT_ELEMENTS

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    /* xw[t, b, row]. */                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_recurrent_product_##suffix, sb_cuda_recurrent, p) {                                         \
        SB_CUDA_EACH(index, p->steps * p->batch * p->rows) {                                                           \
            int64_t place = index / p->rows, row = index - place * p->rows;                                            \
            int64_t t = place / p->batch, b = place - t * p->batch;                                                    \
            ((real *)(void *)p->xw)[index] =                                                                           \
                chain_##suffix((const type *)(const void *)p->x + t * p->x_step + b * p->x_batch, p->x_feature,        \
                               (const type *)(const void *)p->w + row, p->rows, p->inputs);                            \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_recurrent_start_##suffix, sb_cuda_recurrent, p) {                                           \
        SB_CUDA_EACH(index, p->batch * p->hidden) {                                                                    \
            int64_t b = index / p->hidden, j = index - b * p->hidden;                                                  \
            const type *h = (const type *)(const void *)p->initial_h;                                                  \
            const type *c = (const type *)(const void *)p->initial_c;                                                  \
            ((type *)(void *)p->h)[index] = h != NULL ? h[b * p->h_batch + j * p->h_stride] : 0;                       \
            ((type *)(void *)p->c)[index] = c != NULL ? c[b * p->c_batch + j * p->c_stride] : 0;                       \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_recurrent_finish_##suffix, sb_cuda_recurrent, p) {                                          \
        SB_CUDA_EACH(index, p->batch * p->hidden) {                                                                    \
            int64_t b = index / p->hidden, at = b * p->state_batch + index - b * p->hidden;                            \
            if (p->y_h != NULL)                                                                                        \
                ((type *)(void *)p->y_h)[at] = ((const type *)(const void *)p->h)[index];                              \
            if (p->y_c != NULL)                                                                                        \
                ((type *)(void *)p->y_c)[at] = ((const type *)(const void *)p->c)[index];                              \
        }                                                                                                              \
    }                                                                                                                  \
    /* Bias `at` of the 2 * rows. */                                                                                   \
    SB_CUDA_FUNCTION real bias_##suffix(const sb_cuda_recurrent *p, int64_t at) {                                      \
        return load(((const type *)(const void *)p->b)[at * p->b_stride]);                                             \
    }                                                                                                                  \
    /* (xw + hr) + (wb + rb) of gate row `row`. */                                                                     \
    SB_CUDA_FUNCTION real joined_##suffix(const sb_cuda_recurrent *p, int64_t row, real xw, real hr) {                 \
        real bias = 0, pre;                                                                                            \
        if (p->b != NULL)                                                                                              \
            bias = bias_##suffix(p, row) + bias_##suffix(p, p->rows + row);                                            \
        join_##real_suffix(1, &xw, &hr, p->b != NULL ? &bias : NULL, &pre);                                            \
        return pre;                                                                                                    \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void store_state_##suffix(const sb_cuda_recurrent *p, int64_t index, int64_t b, int64_t t,        \
                                               real h) {                                                               \
        type stored = store(h);                                                                                        \
        ((type *)(void *)p->h_next)[index] = stored;                                                                   \
        if (p->y != NULL)                                                                                              \
            ((type *)(void *)p->y)[t * p->y_step + b * p->y_batch + index - b * p->hidden] = stored;                   \
    }                                                                                                                  \
    /* Past the end of a sequence the state stays and Y is +0. Gives the time step, or -1. */                          \
    SB_CUDA_FUNCTION int64_t time_##suffix(const sb_cuda_recurrent *p, int64_t index, int64_t b) {                     \
        int64_t length = length_of(p, b);                                                                              \
        if (p->step < length)                                                                                          \
            return p->backward ? length - 1 - p->step : p->step;                                                       \
        ((type *)(void *)p->h_next)[index] = ((const type *)(const void *)p->h)[index];                                \
        if (p->y != NULL)                                                                                              \
            ((type *)(void *)p->y)[p->step * p->y_step + b * p->y_batch + index - b * p->hidden] = 0;                  \
        return -1;                                                                                                     \
    }                                                                                                                  \
    /* One state element, from its chains hr: RNN, LSTM, GRU with linear_before_reset; of other    \
     * GRUs z and r * H. */                   \
    SB_CUDA_FUNCTION void cell_##suffix(const sb_cuda_recurrent *p, int64_t index, int64_t b, int64_t t, int gates,    \
                                        const real *hr) {                                                              \
        const sb_recurrent_params *params = &p->params;                                                                \
        const sb_activation *activations = params->activations[p->direction];                                          \
        int resets = params->kind == SB_RECURRENT_GRU && !params->linear_before_reset;                                 \
        int64_t hidden = p->hidden, j = index - b * hidden;                                                            \
        const real *xw = (const real *)(const void *)p->xw + (t * p->batch + b) * p->rows + j;                         \
        real pre[MOST_GATES], h = load(((const type *)(const void *)p->h)[index]);                                     \
        SB_CUDA_UNROLL                                                                                                 \
        for (int g = 0; g < MOST_GATES; g++)                                                                           \
            pre[g] = g < gates ? joined_##suffix(p, g * hidden + j, xw[g * hidden], hr[g]) : (real)0;                  \
        if (params->kind == SB_RECURRENT_RNN) {                                                                        \
            gate_##real_suffix(params, &activations[0], 1, pre);                                                       \
            round_state_##real_suffix(SB_##dtype, 1, pre);                                                             \
            store_state_##suffix(p, index, b, t, pre[0]);                                                              \
        } else if (params->kind == SB_RECURRENT_LSTM) {                                                                \
            real peephole[3], c = load(((const type *)(const void *)p->c)[index]);                                     \
            for (int i = 0; i < 3 && p->p != NULL; i++)                                                                \
                peephole[i] = load(((const type *)(const void *)p->p)[(i * hidden + j) * p->p_stride]);                \
            lstm_##real_suffix(params, activations, SB_##dtype, 1, pre, p->p != NULL ? peephole : NULL, &c, &h);       \
            ((type *)(void *)p->c)[index] = store(c);                                                                  \
            store_state_##suffix(p, index, b, t, h);                                                                   \
        } else {                                                                                                       \
            gate_##real_suffix(params, &activations[0], 2, pre);                                                       \
            if (resets) {                                                                                              \
                real reset;                                                                                            \
                gru_reset_##real_suffix(SB_##dtype, 1, &pre[1], &h, &reset);                                           \
                ((type *)(void *)p->reset)[index] = store(reset);                                                      \
                ((real *)(void *)p->z)[index] = pre[0];                                                                \
                return;                                                                                                \
            }                                                                                                          \
            int64_t row = 2 * hidden + j;                                                                              \
            real own = xw[2 * hidden], w_bias = 0, r_bias = 0, candidate;                                              \
            if (p->b != NULL) {                                                                                        \
                w_bias = bias_##suffix(p, row);                                                                        \
                r_bias = bias_##suffix(p, p->rows + row);                                                              \
            }                                                                                                          \
            gru_join_linear_##real_suffix(1, &own, p->b != NULL ? &w_bias : NULL, &pre[1], &hr[2], &r_bias,            \
                                          &candidate);                                                                 \
            gru_update_##real_suffix(params, &activations[1], SB_##dtype, 1, &pre[0], &candidate, &h);                 \
            store_state_##suffix(p, index, b, t, h);                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_recurrent_step_##suffix, sb_cuda_recurrent, p) {                                      \
        SB_CUDA_SHARED real sums[MOST_GATES][ELEMENTS];                                                                \
        int gates = (int)blockDim.x / ELEMENTS, gate = (int)threadIdx.x / ELEMENTS;                                    \
        int lane = (int)threadIdx.x % ELEMENTS;                                                                        \
        int64_t hidden = p->hidden, states = p->batch * hidden;                                                        \
        for (int64_t base = (int64_t)blockIdx.x * ELEMENTS; base < states; base += (int64_t)gridDim.x * ELEMENTS) {    \
            int64_t index = base + lane, b = index / hidden, j = index - b * hidden;                                   \
            if (index < states)                                                                                        \
                sums[gate][lane] =                                                                                     \
                    chain_##suffix((const type *)(const void *)p->h + b * hidden, 1,                                   \
                                   (const type *)(const void *)p->r + gate * hidden + j, p->rows, hidden);             \
            SB_CUDA_BARRIER();                                                                                         \
            int64_t t = gate == 0 && index < states ? time_##suffix(p, index, b) : -1;                                 \
            if (t >= 0) {                                                                                              \
                real hr[MOST_GATES];                                                                                   \
                for (int g = 0; g < gates; g++)                                                                        \
                    hr[g] = sums[g][lane];                                                                             \
                cell_##suffix(p, index, b, t, gates, hr);                                                              \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    /* The rest of a GRU's step once r * H is whole. */                                                                \
    SB_CUDA_KERNEL(sb_cuda_recurrent_reset_##suffix, sb_cuda_recurrent, p) {                                           \
        int64_t hidden = p->hidden;                                                                                    \
        SB_CUDA_EACH(index, p->batch *hidden) {                                                                        \
            int64_t b = index / hidden, j = index - b * hidden, t = time_##suffix(p, index, b);                        \
            if (t < 0)                                                                                                 \
                continue;                                                                                              \
            int64_t row = 2 * hidden + j;                                                                              \
            real h = load(((const type *)(const void *)p->h)[index]);                                                  \
            real hr = chain_##suffix((const type *)(const void *)p->reset + b * hidden, 1,                             \
                                     (const type *)(const void *)p->r + row, p->rows, hidden);                         \
            real xw = ((const real *)(const void *)p->xw)[(t * p->batch + b) * p->rows + row];                         \
            real candidate = joined_##suffix(p, row, xw, hr);                                                          \
            real z = ((const real *)(const void *)p->z)[index];                                                        \
            gru_update_##real_suffix(&p->params, &p->params.activations[p->direction][1], SB_##dtype, 1, &z,           \
                                     &candidate, &h);                                                                  \
            store_state_##suffix(p, index, b, t, h);                                                                   \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(KERNELS, )
