/* The cells of recurrent operators, compiled once per instruction set: the definition's own loops,
 * which the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/recurrent/recurrent_cells.h"

#define SB_CELL_REAL float
#define SB_CELL(name) name##_f32
#define SB_CELL_MATH(name) sb_##name##_f32
#include "ops/recurrent_cell.h"

static void join(int64_t count, const float *xw, const float *hr, const float *bias, float *pre) {
    join_f32(count, xw, hr, bias, pre);
}

static void gate(const sb_recurrent_params *params, const sb_activation *activation, int64_t count, float *values) {
    gate_f32(params, activation, count, values);
}

static void round_values(sb_dtype dtype, int64_t count, float *values) {
    round_state_f32(dtype, count, values);
}

static void lstm(const sb_recurrent_params *params, const sb_activation *activations, sb_dtype dtype, int64_t count,
                 float *pre, const float *peephole, float *c, float *h) {
    lstm_f32(params, activations, dtype, count, pre, peephole, c, h);
}

static void gru_reset(sb_dtype dtype, int64_t count, const float *r, const float *h, float *reset) {
    gru_reset_f32(dtype, count, r, h, reset);
}

static void gru_join_linear(int64_t count, const float *xw, const float *wb, const float *r, const float *hr,
                            const float *rb, float *pre) {
    gru_join_linear_f32(count, xw, wb, r, hr, rb, pre);
}

static void gru_update(const sb_recurrent_params *params, const sb_activation *activation, sb_dtype dtype,
                       int64_t count, const float *z, float *n, float *h) {
    gru_update_f32(params, activation, dtype, count, z, n, h);
}

extern const sb_recurrent_cells SB_ISA_NAME(sb_recurrent_cells);
const sb_recurrent_cells SB_ISA_NAME(sb_recurrent_cells) = {
    .join = join,
    .gate = gate,
    .round = round_values,
    .lstm = lstm,
    .gru_reset = gru_reset,
    .gru_join_linear = gru_join_linear,
    .gru_update = gru_update,
};
