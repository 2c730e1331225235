/* A vector of doubles, as wide as the instruction set that this file is compiled for: see cpu/simd.h, whose rules hold
 * here. Lanes never mix, and every function rounds once a lane at most.
 *
 * SB_VD_LANES  doubles in a vd */
#ifndef SB_CPU_SIMD_F64_H
#define SB_CPU_SIMD_F64_H

#include "cpu/simd.h"
#include "numerics/scalar.h"

#if defined(SB_ISA_avx512)

#define SB_VD_LANES 8
typedef __m512d vd;

SB_VF_INLINE vd vd_set(double x) {
    return _mm512_set1_pd(x);
}
SB_VF_INLINE vd vd_load(const double *p) {
    return _mm512_loadu_pd(p);
}
SB_VF_INLINE void vd_store(double *p, vd v) {
    _mm512_storeu_pd(p, v);
}
/* a * b + c, rounded once. */
SB_VF_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm512_fmadd_pd(a, b, c);
}
/* -a * b + c, rounded once. */
SB_VF_INLINE vd vd_fma_negated(vd a, vd b, vd c) {
    return _mm512_fnmadd_pd(a, b, c);
}

#elif defined(SB_ISA_avx2)

#define SB_VD_LANES 4
typedef __m256d vd;

SB_VF_INLINE vd vd_set(double x) {
    return _mm256_set1_pd(x);
}
SB_VF_INLINE vd vd_load(const double *p) {
    return _mm256_loadu_pd(p);
}
SB_VF_INLINE void vd_store(double *p, vd v) {
    _mm256_storeu_pd(p, v);
}
SB_VF_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm256_fmadd_pd(a, b, c);
}
SB_VF_INLINE vd vd_fma_negated(vd a, vd b, vd c) {
    return _mm256_fnmadd_pd(a, b, c);
}

#else

#define SB_VD_LANES 1
typedef double vd;

SB_VF_INLINE vd vd_set(double x) {
    return x;
}
SB_VF_INLINE vd vd_load(const double *p) {
    return *p;
}
SB_VF_INLINE void vd_store(double *p, vd v) {
    *p = v;
}
SB_VF_INLINE vd vd_fma(vd a, vd b, vd c) {
    return sb_fma_f64(a, b, c);
}
SB_VF_INLINE vd vd_fma_negated(vd a, vd b, vd c) {
    return sb_fma_f64(-a, b, c);
}

#endif
#endif
