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

/* A state element of a batch row. Gates are `step` apart; those that gate_value has been through are there in place of their chains. Biases are NULL
 * where there are none. */
template <typename REAL> struct recurrent_cell {
    const REAL *xw, *bias;
    REAL *gates;
    int xw_step, step;
    const REAL *r_bias;    /* of a GRU with linear_before_reset: Rb of its candidate, whose `bias` is Wb alone */
    const REAL *peepholes; /* i, o, f, or NULL */
};

enum { LSTM_IN, LSTM_OUT, LSTM_FORGET, LSTM_CELL, GRU_Z = 0, GRU_R, GRU_CANDIDATE };

/* (xw + hr) + (wb + rb) of a gate. */
template <typename REAL> SB_CUDA_FUNCTION REAL joined(const recurrent_cell<REAL> *cell, int number) {
    REAL pre;
    join(1, &cell->xw[number * cell->xw_step], &cell->gates[number * cell->step],
         cell->bias != NULL ? &cell->bias[number * cell->step] : NULL, &pre);
    return pre;
}

/* Gates that are activated before anything else, each by a thread of its own. */
SB_CUDA_FUNCTION int gates_ahead(const sb_recurrent_params *params) {
    return params->kind == SB_RECURRENT_LSTM ? 4 : params->kind == SB_RECURRENT_GRU ? 2 : 1;
}

/* One of these, activated, but for the output gate with a peephole, which needs the new C. `c`: C before the step. */
template <typename REAL>
SB_CUDA_FUNCTION REAL gate_value(const sb_recurrent_params *params, const sb_activation *activations,
                                 const recurrent_cell<REAL> *cell, int number, REAL c) {
    const bool is_lstm = params->kind == SB_RECURRENT_LSTM, peeps = is_lstm && cell->peepholes != NULL;
    REAL pre = joined(cell, number);
    if (peeps && (number == LSTM_IN || number == LSTM_FORGET))
        add_peephole(1, &cell->peepholes[number == LSTM_IN ? 0 : 2], &c, &pre);
    if (peeps && number == LSTM_OUT)
        return pre;
    gate(params, &activations[is_lstm && number == LSTM_CELL ? 1 : 0], 1, &pre);
    return pre;
}

/* H of an LSTM; *c goes from C to C'. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL lstm_cell(const sb_recurrent_params *params, const sb_activation *activations,
                                const recurrent_cell<REAL> *cell, REAL *c) {
    REAL in = cell->gates[LSTM_IN * cell->step], out = cell->gates[LSTM_OUT * cell->step], h;
    REAL forget = cell->gates[LSTM_FORGET * cell->step];
    if (params->input_forget)
        lstm_forget(1, &in, &forget);
    lstm_state((sb_dtype)DTYPE, 1, &in, &forget, &cell->gates[LSTM_CELL * cell->step], c);
    if (cell->peepholes != NULL) {
        add_peephole(1, &cell->peepholes[1], c, &out);
        gate(params, &activations[0], 1, &out);
    }
    lstm_output(&activations[2], (sb_dtype)DTYPE, 1, &out, c, &h);
    return h;
}

/* r * H of a GRU that resets before it multiplies. */
template <int DTYPE, typename REAL> SB_CUDA_FUNCTION REAL gru_reset_cell(const recurrent_cell<REAL> *cell, REAL h) {
    REAL reset;
    gru_reset((sb_dtype)DTYPE, 1, &cell->gates[GRU_R * cell->step], &h, &reset);
    return reset;
}

/* H of a GRU, once the chain of its candidate is there. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL gru_cell(const sb_recurrent_params *params, const sb_activation *activations,
                               const recurrent_cell<REAL> *cell, REAL h) {
    const int at = GRU_CANDIDATE * cell->step;
    REAL candidate;
    if (params->linear_before_reset)
        gru_join_linear(1, &cell->xw[GRU_CANDIDATE * cell->xw_step], cell->bias != NULL ? &cell->bias[at] : NULL,
                        &cell->gates[GRU_R * cell->step], &cell->gates[at], cell->r_bias, &candidate);
    else
        candidate = joined(cell, GRU_CANDIDATE);
    gru_update(params, &activations[1], (sb_dtype)DTYPE, 1, &cell->gates[GRU_Z * cell->step], &candidate, &h);
    return h;
}

template <int DTYPE, typename REAL> SB_CUDA_FUNCTION REAL rnn_cell(const recurrent_cell<REAL> *cell) {
    REAL h = cell->gates[0];
    round_state((sb_dtype)DTYPE, 1, &h);
    return h;
}

#endif
