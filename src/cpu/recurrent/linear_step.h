/* A position of LinearAttention on some columns of a state: one function per instruction set. */
#ifndef SB_CPU_RECURRENT_LINEAR_STEP_H
#define SB_CPU_RECURRENT_LINEAR_STEP_H

#include <stdint.h>

#include "base/isa.h"

/* Columns of a state that go together. */
#define SB_LINEAR_COLUMNS 64

typedef struct sb_linear_step {
    int64_t width;      /* of keys and queries */
    int columns;        /* that are computed: a multiple of 16, at most SB_LINEAR_COLUMNS */
    float *state;       /* [width][SB_LINEAR_COLUMNS] */
    const float *decay; /* exponents; NULL: none */
    int64_t decays;     /* 1 for the whole state, or `width` */
    float *factors;     /* memory for `decays` floats */
    const float *key;   /* [width] */
    const float *beta;  /* NULL: no correction */
    int64_t heads;      /* of queries that read the state */
    const float *query; /* [heads][width] */
    float scale;
} sb_linear_step;

/** Moves the state on by the values in `u` [SB_LINEAR_COLUMNS], which are overwritten, and reads it: y[heads][SB_LINEAR_COLUMNS]. */
typedef void sb_linear_step_run(const sb_linear_step *step, float *u, float *y);

extern sb_linear_step_run sb_linear_step_scalar;
#if SB_HAS_X86_KERNELS
extern sb_linear_step_run sb_linear_step_avx2, sb_linear_step_avx512;
#endif

static inline sb_linear_step_run *sb_linear_step_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_linear_step_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_linear_step_avx2;
#endif
    (void)isa;
    return sb_linear_step_scalar;
}

#endif
