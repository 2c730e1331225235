/* Maximum, minimum and the orders behind argmax, sort and top-k.
 *
 * Maximum and minimum do not depend on the order of their arguments: a NaN wins over everything,
 * and +0 > -0. Argmax and argmin use the same order, NaN first; equal values (where +0 and -0
 * differ, and all NaNs are equal) go to the lowest index. */
#ifndef SB_NUMERICS_MINMAX_H
#define SB_NUMERICS_MINMAX_H

#include "scalar.h"

static SB_HD_HOT int sb_bits_is_nan_f32(float x) {
    return (sb_bits_from_f32(x) & 0x7fffffffu) > 0x7f800000u;
}

static SB_HD_HOT int sb_bits_is_nan_f64(double x) {
    return (sb_bits_from_f64(x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/* The bit pattern with every NaN mapped to one: what exact comparison and digests use. */
static SB_HD_HOT uint32_t sb_bits_canonical_f32(float x) {
    return sb_bits_is_nan_f32(x) ? 0x7fc00000u : sb_bits_from_f32(x);
}

static SB_HD_HOT uint64_t sb_bits_canonical_f64(double x) {
    return sb_bits_is_nan_f64(x) ? 0x7ff8000000000000u : sb_bits_from_f64(x);
}

static SB_HD_HOT uint16_t sb_bits_canonical_f16(uint16_t half) {
    return (half & 0x7fffu) > 0x7c00u ? (uint16_t)0x7e00u : half;
}

static SB_HD_HOT uint16_t sb_bits_canonical_bf16(uint16_t brain) {
    return (brain & 0x7fffu) > 0x7f80u ? (uint16_t)0x7fc0u : brain;
}

/* An integer that orders as the values do: -inf < ... < -0 < +0 < ... < +inf < NaN. */
static SB_HD_HOT int32_t sb_bits_order_f32(float x) {
    int32_t bits = (int32_t)sb_bits_from_f32(x);
    int32_t order = bits < 0 ? bits ^ 0x7fffffff : bits;
    return x == x ? order : INT32_MAX;
}

static SB_HD_HOT int64_t sb_bits_order_f64(double x) {
    int64_t bits = (int64_t)sb_bits_from_f64(x);
    int64_t order = bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
    return x == x ? order : INT64_MAX;
}

/* The same with NaN below everything: NaN wins a minimum. */
static SB_HD_HOT int32_t sb_bits_order_nan_low_f32(float x) {
    return x == x ? sb_bits_order_f32(x) : INT32_MIN;
}

static SB_HD_HOT int64_t sb_bits_order_nan_low_f64(double x) {
    return x == x ? sb_bits_order_f64(x) : INT64_MIN;
}

static SB_HD_HOT float sb_max_f32(float a, float b) {
    float larger = sb_bits_order_f32(a) >= sb_bits_order_f32(b) ? a : b;
    return larger == larger ? larger : sb_nan_f32();
}

static SB_HD_HOT float sb_min_f32(float a, float b) {
    float smaller = sb_bits_order_nan_low_f32(a) <= sb_bits_order_nan_low_f32(b) ? a : b;
    return smaller == smaller ? smaller : sb_nan_f32();
}

static SB_HD_HOT double sb_max_f64(double a, double b) {
    double larger = sb_bits_order_f64(a) >= sb_bits_order_f64(b) ? a : b;
    return larger == larger ? larger : sb_nan_f64();
}

static SB_HD_HOT double sb_min_f64(double a, double b) {
    double smaller = sb_bits_order_nan_low_f64(a) <= sb_bits_order_nan_low_f64(b) ? a : b;
    return smaller == smaller ? smaller : sb_nan_f64();
}

/* Whether candidate (value, index) beats best in an argmax / argmin. Total and order-free:
 * candidates may be offered in any order, from any thread. */
static SB_HD_HOT int sb_argmax_beats_f32(float value, int64_t index, float best, int64_t best_index) {
    int32_t key = sb_bits_order_f32(value);
    int32_t best_key = sb_bits_order_f32(best);
    return key > best_key || (key == best_key && index < best_index);
}

static SB_HD_HOT int sb_argmin_beats_f32(float value, int64_t index, float best, int64_t best_index) {
    int32_t key = sb_bits_order_nan_low_f32(value);
    int32_t best_key = sb_bits_order_nan_low_f32(best);
    return key < best_key || (key == best_key && index < best_index);
}

static SB_HD_HOT int sb_argmax_beats_f64(double value, int64_t index, double best, int64_t best_index) {
    int64_t key = sb_bits_order_f64(value);
    int64_t best_key = sb_bits_order_f64(best);
    return key > best_key || (key == best_key && index < best_index);
}

static SB_HD_HOT int sb_argmin_beats_f64(double value, int64_t index, double best, int64_t best_index) {
    int64_t key = sb_bits_order_nan_low_f64(value);
    int64_t best_key = sb_bits_order_nan_low_f64(best);
    return key < best_key || (key == best_key && index < best_index);
}

#endif
