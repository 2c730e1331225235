/* What becomes of the chains of one state element in a time step, by ops/recurrent_cell.h. */
#ifndef SB_CUDA_RECURRENT_CELLS_CUH
#define SB_CUDA_RECURRENT_CELLS_CUH

#include "cuda/common/kernel.cuh"
#include "ops/type_lists.h"

#define SB_CELL(name) name
#define SB_CELL_REAL float
#define SB_CELL_MATH(name) sb_##name##_f32
#include "ops/recurrent_cell.h"
#undef SB_CELL_REAL
#undef SB_CELL_MATH

#define SB_CELL_REAL double
#define SB_CELL_MATH(name) sb_##name##_f64
#include "ops/recurrent_cell.h"
#undef SB_CELL_REAL
#undef SB_CELL_MATH
#undef SB_CELL

#define MOST_GATES 4

/* Elements of a dtype, and the numbers that are computed with. */
template <int DTYPE> struct recurrent_element;
#define ELEMENT(dtype, suffix, type, computed, computed_suffix, from, to, unused)                                      \
    template <> struct recurrent_element<SB_##dtype> {                                                                 \
        typedef type stored;                                                                                           \
        typedef computed real;                                                                                         \
        SB_CUDA_FUNCTION real load(stored value) {                                                                     \
            return from(value);                                                                                        \
        }                                                                                                              \
        SB_CUDA_FUNCTION stored store(real value) {                                                                    \
            return to(value);                                                                                          \
        }                                                                                                              \
    };
SB_FLOAT_TYPES(ELEMENT, )
#undef ELEMENT

/* One gate's value of a state element is so many elements behind the one before. Biases are NULL where there are none. */
template <typename REAL> struct recurrent_gates {
    const REAL *xw, *hr, *bias;
    int xw_step, hr_step, bias_step;
    const REAL *r_bias; /* of a GRU with linear_before_reset: Rb of its candidate, whose `bias` is Wb alone */
};

/* (xw + hr) + (wb + rb) of a gate. */
template <typename REAL> SB_CUDA_FUNCTION REAL joined(const recurrent_gates<REAL> *from, int gate) {
    REAL pre;
    join(1, &from->xw[gate * from->xw_step], &from->hr[gate * from->hr_step],
         from->bias != NULL ? &from->bias[gate * from->bias_step] : NULL, &pre);
    return pre;
}

template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL rnn_cell(const sb_recurrent_params *params, const sb_activation *activations,
                               const recurrent_gates<REAL> *from) {
    REAL pre = joined(from, 0);
    gate(params, &activations[0], 1, &pre);
    round_state((sb_dtype)DTYPE, 1, &pre);
    return pre;
}

/* `peephole` holds i, o, f or is NULL; *c goes from C to C'. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL lstm_cell(const sb_recurrent_params *params, const sb_activation *activations,
                                const recurrent_gates<REAL> *from, const REAL *peephole, REAL *c) {
    REAL pre[4], h;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++)
        pre[g] = joined(from, g);
    lstm(params, activations, (sb_dtype)DTYPE, 1, pre, peephole, c, &h);
    return h;
}

/* z and r of a GRU, activated. */
template <typename REAL>
SB_CUDA_FUNCTION void gru_gates(const sb_recurrent_params *params, const sb_activation *activations,
                                const recurrent_gates<REAL> *from, REAL *both) {
    both[0] = joined(from, 0);
    both[1] = joined(from, 1);
    gate(params, &activations[0], 1, &both[0]);
    gate(params, &activations[0], 1, &both[1]);
}

/* A GRU that multiplies before it resets. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL gru_linear_cell(const sb_recurrent_params *params, const sb_activation *activations,
                                      const recurrent_gates<REAL> *from, REAL h) {
    REAL both[2], candidate;
    const bool has_bias = from->bias != NULL;
    gru_gates(params, activations, from, both);
    gru_join_linear(1, &from->xw[2 * from->xw_step], has_bias ? &from->bias[2 * from->bias_step] : NULL, &both[1],
                    &from->hr[2 * from->hr_step], has_bias ? from->r_bias : NULL, &candidate);
    gru_update(params, &activations[1], (sb_dtype)DTYPE, 1, &both[0], &candidate, &h);
    return h;
}

/* r * H of a GRU that resets first; *z is for the rest of its step. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL gru_reset_cell(const sb_recurrent_params *params, const sb_activation *activations,
                                     const recurrent_gates<REAL> *from, REAL h, REAL *z) {
    REAL both[2], reset;
    gru_gates(params, activations, from, both);
    gru_reset((sb_dtype)DTYPE, 1, &both[1], &h, &reset);
    *z = both[0];
    return reset;
}

/* The rest, once (r * H) R is there. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL gru_candidate_cell(const sb_recurrent_params *params, const sb_activation *activations,
                                         const recurrent_gates<REAL> *from, REAL z, REAL h) {
    REAL candidate = joined(from, 2);
    gru_update(params, &activations[1], (sb_dtype)DTYPE, 1, &z, &candidate, &h);
    return h;
}

#endif
