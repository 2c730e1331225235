/* The definition of f32 matrix products: what every kernel must equal bit for bit. */
#include <math.h>

#include "cpu/contraction/gemm.h"

static float clip(const sb_epilogue_step *step, float y) {
    y = y < step->scalar ? step->scalar : y;
    return y > step->high ? step->high : y;
}

float sb_epilogue_reference(const sb_epilogue *epilogue, float y, int64_t m, int64_t n) {
    for (int s = 0; epilogue != NULL && s < epilogue->count; s++) {
        const sb_epilogue_step *step = &epilogue->steps[s];
        switch (step->kind) {
        case SB_EPILOGUE_SCALE_SHIFT_COLUMNS:
            y = fmaf(y, step->vector[n], step->shift[n]);
            break;
        case SB_EPILOGUE_ADD_COLUMNS:
            y = y + step->vector[n];
            break;
        case SB_EPILOGUE_MUL_COLUMNS:
            y = y * step->vector[n];
            break;
        case SB_EPILOGUE_ADD_ROWS:
            y = y + step->vector[m];
            break;
        case SB_EPILOGUE_ADD_MATRIX:
            y = y + step->scalar * step->vector[m * step->row_stride + n * step->column_stride];
            break;
        case SB_EPILOGUE_MUL_MATRIX:
            y = y * step->vector[m * step->row_stride + n * step->column_stride];
            break;
        case SB_EPILOGUE_ADD_SCALAR:
            y = y + step->scalar;
            break;
        case SB_EPILOGUE_MUL_SCALAR:
            y = y * step->scalar;
            break;
        case SB_EPILOGUE_RELU:
            y = y < 0.0f ? 0.0f : y;
            break;
        case SB_EPILOGUE_CLIP:
            y = clip(step, y);
            break;
        case SB_EPILOGUE_DIV_SCALAR:
            y = y / step->scalar;
            break;
        case SB_EPILOGUE_GATE: {
            const float product = step->factor * y;
            y = y * clip(step, product + step->addend);
            break;
        }
        case SB_EPILOGUE_CALL:
            step->call(step->context, &y, m, n, 1);
            break;
        }
    }
    return y;
}

void sb_gemm_f32_reference(const sb_gemm_args *args, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    for (int64_t m = m0; m < m1; m++) {
        for (int64_t n = n0; n < n1; n++) {
            float *c = args->c + m * args->c_row_stride + n * args->c_column_stride;
            float acc = args->continues ? *c : 0.0f;
            for (int64_t k = 0; k < args->k; k++)
                acc = fmaf(args->a[m * args->a_row_stride + k * args->a_column_stride],
                           args->b[k * args->b_row_stride + n * args->b_column_stride], acc);
            *c = sb_epilogue_reference(args->epilogue, acc, m, n);
        }
    }
}
