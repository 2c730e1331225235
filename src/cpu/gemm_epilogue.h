/* The epilogue's steps on vectors, for the sources that are compiled once per instruction set. */
#ifndef IV_CPU_GEMM_EPILOGUE_H
#define IV_CPU_GEMM_EPILOGUE_H

#include "cpu/gemm.h"
#include "cpu/simd.h"

/* A vector of `lanes` (a whole vector or fewer) elements of a row vector. */
IV_VF_INLINE vf iv_epilogue_load(const float *p, int64_t lanes, const bool whole) {
    return whole ? vf_load(p) : vf_load_first(p, lanes);
}

/* `v` after one step; (m, n) is the first lane's element. */
IV_VF_INLINE vf iv_epilogue_apply(const iv_epilogue_step *step, vf v, int64_t m, int64_t n,
                                  int64_t lanes, const bool whole) {
    switch (step->kind) {
    case IV_EPILOGUE_SCALE_SHIFT_COLUMNS:
        return vf_fma(v, iv_epilogue_load(step->vector + n, lanes, whole),
                      iv_epilogue_load(step->shift + n, lanes, whole));
    case IV_EPILOGUE_ADD_COLUMNS:
        return vf_add(v, iv_epilogue_load(step->vector + n, lanes, whole));
    case IV_EPILOGUE_MUL_COLUMNS:
        return vf_mul(v, iv_epilogue_load(step->vector + n, lanes, whole));
    case IV_EPILOGUE_ADD_ROWS:
        return vf_add(v, vf_set(step->vector[m]));
    case IV_EPILOGUE_ADD_MATRIX:
        return vf_add(v, iv_epilogue_load(step->vector + m * step->row_stride + n, lanes, whole));
    case IV_EPILOGUE_ADD_SCALAR:
        return vf_add(v, vf_set(step->scalar));
    case IV_EPILOGUE_MUL_SCALAR:
        return vf_mul(v, vf_set(step->scalar));
    case IV_EPILOGUE_RELU:
        return vf_at_least(vf_zero(), v);
    case IV_EPILOGUE_CLIP:
        return vf_at_most(vf_set(step->high), vf_at_least(vf_set(step->scalar), v));
    case IV_EPILOGUE_CALL:
        break;
    }
    return v;
}

#endif
