// Every function of src/numerics inside a kernel: proof that nvcc accepts the headers for host and
// device. Only compiled, never run.
//
// nvcc -fmad=false -ftz=false -prec-div=true -prec-sqrt=true
//      -gencode=arch=compute_90a,code=sm_90a -I src/numerics -c tests/numerics/compile_cuda.cu
#include "chain.h"
#include "convert.h"
#include "elementary.h"
#include "functions.h"
#include "minmax.h"
#include "philox.h"
#include "reduce.h"

struct shifted {
    const float *data;
    float offset;
};

static __host__ __device__ float load_shifted(shifted values, int64_t index) {
    return values.data[index] - values.offset;
}

SB_DEFINE_SUM_F32(sum_shifted, shifted, load_shifted)
SB_DEFINE_SUM_OF_SQUARES_F32(sum_of_squares_shifted, shifted, load_shifted)

__global__ void elementary(const float *x, float *y, const double *u, double *v) {
    int index = 0;
#define CALL(name, exact, lowest, highest)                                                                             \
    y[index] = sb_##name##_f32(x[index]);                                                                              \
    v[index] = sb_##name##_f64(u[index]);                                                                              \
    index++;
    SB_TEST_FUNCTIONS(CALL)
    y[index] = sb_pow_f32(x[0], x[1]);
    v[index] = sb_pow_f64(u[0], u[1]);
}

__global__ void conversions(const uint16_t *halves, const float *x, const double *u, const int64_t *whole, float *y,
                            double *v, uint16_t *stored, int64_t *integers) {
    y[0] = sb_f16_to_f32(halves[0]);
    y[1] = sb_bf16_to_f32(halves[0]);
    y[2] = sb_f32_from_i64(whole[0]);
    y[3] = sb_f32_from_u64((uint64_t)whole[0]);
    y[4] = sb_round_half_even_f32(x[0]);
    v[0] = sb_f16_to_f64(halves[0]);
    v[1] = sb_bf16_to_f64(halves[0]);
    v[2] = sb_f64_from_i64(whole[0]);
    v[3] = sb_f64_from_u64((uint64_t)whole[0]);
    v[4] = sb_round_half_even_f64(u[0]);
    stored[0] = sb_f16_from_f32(x[0]);
    stored[1] = sb_bf16_from_f32(x[0]);
    stored[2] = sb_f16_from_f64(u[0]);
    stored[3] = sb_bf16_from_f64(u[0]);
    stored[4] = sb_f16_from_i64(whole[0]);
    stored[5] = sb_f16_from_u64((uint64_t)whole[0]);
    stored[6] = sb_bf16_from_i64(whole[0]);
    stored[7] = sb_bf16_from_u64((uint64_t)whole[0]);
    stored[8] = sb_bits_canonical_f16(halves[0]);
    stored[9] = sb_bits_canonical_bf16(halves[0]);
    int place = 0;
#define TO_INTEGERS(type, value)                                                                                       \
    integers[place++] = (int64_t)sb_i64_from_##type(value);                                                            \
    integers[place++] = (int64_t)sb_u64_from_##type(value);                                                            \
    integers[place++] = sb_i32_from_##type(value);                                                                     \
    integers[place++] = sb_u32_from_##type(value);                                                                     \
    integers[place++] = sb_i16_from_##type(value);                                                                     \
    integers[place++] = sb_u16_from_##type(value);                                                                     \
    integers[place++] = sb_i8_from_##type(value);                                                                      \
    integers[place++] = sb_u8_from_##type(value);                                                                      \
    integers[place++] = sb_bool_from_##type(value);
    TO_INTEGERS(f32, x[0])
    TO_INTEGERS(f64, u[0])
}

__global__ void orders(const float *x, const double *u, float *y, double *v, int64_t *integers) {
    y[0] = sb_max_f32(x[0], x[1]);
    y[1] = sb_min_f32(x[0], x[1]);
    v[0] = sb_max_f64(u[0], u[1]);
    v[1] = sb_min_f64(u[0], u[1]);
    integers[0] = sb_argmax_beats_f32(x[0], 0, x[1], 1);
    integers[1] = sb_argmin_beats_f32(x[0], 0, x[1], 1);
    integers[2] = sb_argmax_beats_f64(u[0], 0, u[1], 1);
    integers[3] = sb_argmin_beats_f64(u[0], 0, u[1], 1);
    integers[4] = sb_bits_canonical_f32(x[0]);
    integers[5] = (int64_t)sb_bits_canonical_f64(u[0]);
}

__global__ void reductions_and_chains(const float *x, const double *u, const uint16_t *a, const uint16_t *b,
                                      int64_t count, float *y, double *v) {
    shifted values = {x, 1.0f};
    y[0] = sb_sum_f32(x, 1, count);
    y[1] = sb_sum_of_squares_f32(x, 1, count);
    y[2] = sb_mean_f32(x, 1, count);
    y[3] = sum_shifted(values, count);
    y[4] = sum_of_squares_shifted(values, count);
    y[5] = sb_chain_f32(x, 1, x, 2, count, 0.0f);
    y[6] = sb_chain16_bf16(a, 1, b, 1, count, 0.0f);
    y[7] = sb_chain16_f16(a, 1, b, 1, count, 0.0f);
    y[8] = sb_chain16_step_bf16(a, b, 0.0f);
    y[9] = sb_chain16_step_f16(a, b, 0.0f);
    v[0] = sb_sum_f64(u, 1, count);
    v[1] = sb_sum_of_squares_f64(u, 1, count);
    v[2] = sb_mean_f64(u, 1, count);
    v[3] = sb_chain_f64(u, 1, u, 1, count, 0.0);
}

__global__ void random_numbers(sb_philox_block *blocks, float *y, double *v) {
    blocks[1] = sb_philox4x32_10(blocks[0], 1, 2);
    y[0] = sb_uniform_f32(blocks[1].word[0]);
    y[1] = sb_uniform_open_f32(blocks[1].word[1]);
    v[0] = sb_uniform_f64(blocks[1].word[2], blocks[1].word[3]);
}
