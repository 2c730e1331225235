/* Maximum, minimum and the orders behind argmax, sort and top-k.
 *
 * Maximum and minimum do not depend on the order of their arguments: a NaN wins over everything,
 * and +0 > -0. Argmax and argmin use the same order, NaN first; equal values (where +0 and -0
 * differ, and all NaNs are equal) go to the lowest index. */
#ifndef IV_NUMERICS_MINMAX_H
#define IV_NUMERICS_MINMAX_H

#include "scalar.h"

static IV_HD_HOT int iv_bits_is_nan_f32(float x) {
    return (iv_bits_from_f32(x) & 0x7fffffffu) > 0x7f800000u;
}

static IV_HD_HOT int iv_bits_is_nan_f64(double x) {
    return (iv_bits_from_f64(x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/* The bit pattern with every NaN mapped to one: what exact comparison and digests use. */
static IV_HD_HOT uint32_t iv_bits_canonical_f32(float x) {
    return iv_bits_is_nan_f32(x) ? 0x7fc00000u : iv_bits_from_f32(x);
}

static IV_HD_HOT uint64_t iv_bits_canonical_f64(double x) {
    return iv_bits_is_nan_f64(x) ? 0x7ff8000000000000u : iv_bits_from_f64(x);
}

static IV_HD_HOT uint16_t iv_bits_canonical_f16(uint16_t half) {
    return (half & 0x7fffu) > 0x7c00u ? (uint16_t)0x7e00u : half;
}

static IV_HD_HOT uint16_t iv_bits_canonical_bf16(uint16_t brain) {
    return (brain & 0x7fffu) > 0x7f80u ? (uint16_t)0x7fc0u : brain;
}

/* An integer that orders as the values do: -inf < ... < -0 < +0 < ... < +inf < NaN. */
static IV_HD_HOT int32_t iv_bits_order_f32(float x) {
    int32_t bits = (int32_t)iv_bits_from_f32(x);
    int32_t order = bits < 0 ? bits ^ 0x7fffffff : bits;
    return x == x ? order : INT32_MAX;
}

static IV_HD_HOT int64_t iv_bits_order_f64(double x) {
    int64_t bits = (int64_t)iv_bits_from_f64(x);
    int64_t order = bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
    return x == x ? order : INT64_MAX;
}

/* The same with NaN below everything: NaN wins a minimum. */
static IV_HD_HOT int32_t iv_bits_order_nan_low_f32(float x) {
    return x == x ? iv_bits_order_f32(x) : INT32_MIN;
}

static IV_HD_HOT int64_t iv_bits_order_nan_low_f64(double x) {
    return x == x ? iv_bits_order_f64(x) : INT64_MIN;
}

static IV_HD_HOT float iv_max_f32(float a, float b) {
    float larger = iv_bits_order_f32(a) >= iv_bits_order_f32(b) ? a : b;
    return larger == larger ? larger : iv_nan_f32();
}

static IV_HD_HOT float iv_min_f32(float a, float b) {
    float smaller = iv_bits_order_nan_low_f32(a) <= iv_bits_order_nan_low_f32(b) ? a : b;
    return smaller == smaller ? smaller : iv_nan_f32();
}

static IV_HD_HOT double iv_max_f64(double a, double b) {
    double larger = iv_bits_order_f64(a) >= iv_bits_order_f64(b) ? a : b;
    return larger == larger ? larger : iv_nan_f64();
}

static IV_HD_HOT double iv_min_f64(double a, double b) {
    double smaller = iv_bits_order_nan_low_f64(a) <= iv_bits_order_nan_low_f64(b) ? a : b;
    return smaller == smaller ? smaller : iv_nan_f64();
}

/* Whether candidate (value, index) beats best in an argmax / argmin. Total and order-free:
 * candidates may be offered in any order, from any thread. */
static IV_HD_HOT int iv_argmax_beats_f32(float value, int64_t index, float best,
                                         int64_t best_index) {
    int32_t key = iv_bits_order_f32(value);
    int32_t best_key = iv_bits_order_f32(best);
    return key > best_key || (key == best_key && index < best_index);
}

static IV_HD_HOT int iv_argmin_beats_f32(float value, int64_t index, float best,
                                         int64_t best_index) {
    int32_t key = iv_bits_order_nan_low_f32(value);
    int32_t best_key = iv_bits_order_nan_low_f32(best);
    return key < best_key || (key == best_key && index < best_index);
}

static IV_HD_HOT int iv_argmax_beats_f64(double value, int64_t index, double best,
                                         int64_t best_index) {
    int64_t key = iv_bits_order_f64(value);
    int64_t best_key = iv_bits_order_f64(best);
    return key > best_key || (key == best_key && index < best_index);
}

static IV_HD_HOT int iv_argmin_beats_f64(double value, int64_t index, double best,
                                         int64_t best_index) {
    int64_t key = iv_bits_order_nan_low_f64(value);
    int64_t best_key = iv_bits_order_nan_low_f64(best);
    return key < best_key || (key == best_key && index < best_index);
}

#endif
