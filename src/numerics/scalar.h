/* Scalar building blocks that gcc, clang and nvcc turn into the same bits.
 *
 * Every function of src/numerics is pure: no globals, no errno, no rounding-mode dependence beyond the default (round
 * to nearest even, subnormals kept), safe from any thread and from device code. The host must be compiled with
 * -ffp-contract=off and without -ffast-math, the device with -fmad=false -ftz=false -prec-div=true -prec-sqrt=true.
 * Contraction happens only through sb_fma_*. */
#ifndef SB_NUMERICS_SCALAR_H
#define SB_NUMERICS_SCALAR_H

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "the numerics contract forbids -ffast-math"
#endif

/* Every function here is `static SB_HD`; SB_HD_HOT marks those that must disappear into a caller's
 * loop for the loop to vectorise. */
#if defined(__CUDACC__)
#define SB_HD __host__ __device__ inline
#define SB_HD_HOT __host__ __device__ __forceinline__
#else
#define SB_HD inline
#define SB_HD_HOT inline __attribute__((always_inline))
#endif

/* The bit pattern of a float, and back. */
static SB_HD_HOT uint32_t sb_bits_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static SB_HD_HOT float sb_bits_to_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static SB_HD_HOT uint64_t sb_bits_from_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static SB_HD_HOT double sb_bits_to_f64(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The one NaN of the contract: what digests and exact comparisons see for every NaN. */
static SB_HD_HOT float sb_nan_f32(void) {
    return sb_bits_to_f32(0x7fc00000u);
}

static SB_HD_HOT double sb_nan_f64(void) {
    return sb_bits_to_f64(0x7ff8000000000000u);
}

static SB_HD_HOT float sb_infinity_f32(void) {
    return sb_bits_to_f32(0x7f800000u);
}

static SB_HD_HOT double sb_infinity_f64(void) {
    return sb_bits_to_f64(0x7ff0000000000000u);
}

/* a * b + c with one rounding. */
static SB_HD_HOT float sb_fma_f32(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

static SB_HD_HOT double sb_fma_f64(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(a, b, c);
#else
    return __builtin_fma(a, b, c);
#endif
}

/* Correctly rounded quotient, whatever the device compiler was told about division. */
static SB_HD_HOT float sb_div_f32(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

static SB_HD_HOT double sb_div_f64(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

/* 1 / d, correctly rounded, for d from 1 to 2, or NaN. A device divides by these very steps, and by others where
 * exponents are near the ends; that way out is a branch, for which it computes one element after the other. */
static SB_HD_HOT float sb_reciprocal_f32(float d) {
#if defined(__CUDA_ARCH__)
    float estimate;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(d));
    float inverse = __fmaf_rn(estimate, __fmaf_rn(-d, estimate, 1.0f), estimate);
    return __fmaf_rn(inverse, __fmaf_rn(-d, inverse, 1.0f), inverse);
#else
    return 1.0f / d;
#endif
}

/* Correctly rounded square root. */
static SB_HD_HOT float sb_sqrt_f32(float x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

static SB_HD_HOT double sb_sqrt_f64(double x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/* 1/sqrt(x) is two roundings by definition: it is what every instruction set can do alike. */
static SB_HD_HOT float sb_rsqrt_f32(float x) {
    return sb_div_f32(1.0f, sb_sqrt_f32(x));
}

static SB_HD_HOT double sb_rsqrt_f64(double x) {
    return sb_div_f64(1.0, sb_sqrt_f64(x));
}

static SB_HD_HOT float sb_abs_f32(float x) {
    return sb_bits_to_f32(sb_bits_from_f32(x) & 0x7fffffffu);
}

static SB_HD_HOT double sb_abs_f64(double x) {
    return sb_bits_to_f64(sb_bits_from_f64(x) & 0x7fffffffffffffffu);
}

/* The magnitude of the first argument with the sign of the second. */
static SB_HD_HOT float sb_copysign_f32(float magnitude, float sign) {
    return sb_bits_to_f32((sb_bits_from_f32(magnitude) & 0x7fffffffu) | (sb_bits_from_f32(sign) & 0x80000000u));
}

static SB_HD_HOT double sb_copysign_f64(double magnitude, double sign) {
    return sb_bits_to_f64((sb_bits_from_f64(magnitude) & 0x7fffffffffffffffu) |
                          (sb_bits_from_f64(sign) & 0x8000000000000000u));
}

/* Exact on every machine: the largest integral value not above x, the smallest one not below it, and
 * the remainder of the truncated quotient. */
#if defined(__CUDACC__)
#define SB_EXACT(name) name
#else
#define SB_EXACT(name) __builtin_##name
#endif
static SB_HD_HOT float sb_floor_f32(float x) {
    return SB_EXACT(floorf)(x);
}

static SB_HD_HOT double sb_floor_f64(double x) {
    return SB_EXACT(floor)(x);
}

static SB_HD_HOT float sb_ceil_f32(float x) {
    return SB_EXACT(ceilf)(x);
}

static SB_HD_HOT double sb_ceil_f64(double x) {
    return SB_EXACT(ceil)(x);
}

static SB_HD_HOT float sb_fmod_f32(float x, float y) {
    return SB_EXACT(fmodf)(x, y);
}

static SB_HD_HOT double sb_fmod_f64(double x, double y) {
    return SB_EXACT(fmod)(x, y);
}
#undef SB_EXACT

/* 2^exponent for -126 <= exponent <= 127 (f32) or -1022 <= exponent <= 1023 (f64). */
static SB_HD_HOT float sb_power_of_two_f32(int32_t exponent) {
    return sb_bits_to_f32((uint32_t)(exponent + 127) << 23);
}

static SB_HD_HOT double sb_power_of_two_f64(int32_t exponent) {
    return sb_bits_to_f64((uint64_t)(uint32_t)(exponent + 1023) << 52);
}

/* value * 2^exponent rounded once, for 0.5 <= |value| < 4 and any |exponent| <= 252 (f32) or 2044 (f64). Where the
 * first product could lose bits the result is zero anyway, so only the last product rounds. */
static SB_HD_HOT float sb_scale_f32(float value, int32_t exponent) {
    int32_t half = exponent >> 1;
    return value * sb_power_of_two_f32(half) * sb_power_of_two_f32(exponent - half);
}

static SB_HD_HOT double sb_scale_f64(double value, int32_t exponent) {
    int32_t half = exponent >> 1;
    return value * sb_power_of_two_f64(half) * sb_power_of_two_f64(exponent - half);
}

#endif
