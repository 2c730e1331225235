#include "cpu/contraction/epilogue_piece.h"

/* Elements that are taken at once: their addends fit on the stack. */
enum { CHUNK = 64 };

/* `count` elements of an addend from column `column` on, `step` columns apart, as f32, not scaled yet. */
static void convert_chunk(const sb_gemm_addend *addend, int64_t batch, int64_t row, int64_t column, int64_t step,
                          int64_t count, float *out) {
    int64_t first = batch * addend->batch_stride + row * addend->row_stride + column * addend->column_stride;
    int64_t stride = step * addend->column_stride;
    if (addend->dtype == SB_F32) {
        const float *from = (const float *)addend->data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = from[i * stride];
        return;
    }
    const uint16_t *from = (const uint16_t *)addend->data + first;
    uint16_t bits[CHUNK];
    for (int64_t i = 0; i < count; i++)
        bits[i] = from[i * stride];
    if (addend->dtype == SB_BF16) {
        for (int64_t i = 0; i < count; i++)
            out[i] = sb_bf16_to_f32(bits[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            out[i] = sb_f16_to_f32(bits[i]);
    }
}

static void load_chunk(const sb_gemm_addend *addend, int64_t batch, int64_t row, int64_t column, int64_t step,
                       int64_t count, float *out) {
    convert_chunk(addend, batch, row, column, step, count, out);
    for (int64_t i = 0; i < count && addend->scale != 1.0f; i++)
        out[i] = addend->scale * out[i];
}

static void scale_and_bias(const sb_gemm_epilogue *e, int64_t batch, int64_t b_column, int64_t count,
                           float *restrict y) {
    for (int64_t i = 0; i < count && e->rounds; i++)
        y[i] = sb_gemm_round_chain(e, y[i]);
    if (e->scale != 1.0f) {
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] * e->scale;
    }
    if (e->bias.data) {
        float bias[CHUNK];
        load_chunk(&e->bias, batch, 0, b_column, e->gate == SB_GATE_INTERLEAVED ? 2 : 1, count, bias);
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] + bias[i];
    }
}

#define ACTIVATE(activation)                                                                                           \
    case activation:                                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = sb_gemm_activate(activation, y[i]);                                                                 \
        break
static void activate(int32_t activation, int64_t count, float *restrict y) {
    switch (activation) {
        ACTIVATE(SB_ACTIVATION_RELU);
        ACTIVATE(SB_ACTIVATION_SILU);
        ACTIVATE(SB_ACTIVATION_GELU);
        ACTIVATE(SB_ACTIVATION_GELU_TANH);
    default:
        break;
    }
}

static void store(const sb_gemm_epilogue *e, const sb_gemm_piece *piece, int64_t index, int64_t count,
                  const float *restrict y) {
    int64_t stride = piece->column_stride;
    if (e->dtype == SB_F32) {
        float *c = (float *)piece->c + index;
        for (int64_t i = 0; i < count; i++)
            c[i * stride] = sb_gemm_canonical(y[i]);
        return;
    }
    uint16_t rounded[CHUNK];
    if (e->dtype == SB_BF16) {
        for (int64_t i = 0; i < count; i++)
            rounded[i] = sb_bf16_from_f32(y[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            rounded[i] = sb_f16_from_f32(y[i]);
    }
    uint16_t *c = (uint16_t *)piece->c + index;
    for (int64_t i = 0; i < count; i++)
        c[i * stride] = rounded[i];
}

static void epilogue_chunk(const sb_gemm_epilogue *e, const sb_gemm_piece *piece, int64_t begin, int64_t count) {
    int64_t column = piece->column + begin;
    float *y = piece->chains + begin;
    scale_and_bias(e, piece->batch, sb_gemm_gate_column(e, column), count, y);
    activate(e->activation, count, y);
    if (e->gate != SB_GATE_NONE) {
        float *values = piece->values + begin;
        scale_and_bias(e, piece->batch, sb_gemm_value_column(e, column), count, values);
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] * values[i];
    }
    if (e->residual.data) {
        float residual[CHUNK];
        load_chunk(&e->residual, piece->batch, piece->row, column, 1, count, residual);
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] + residual[i];
    }
    store(e, piece, piece->index + begin * piece->column_stride, count, y);
}

void SB_ISA_NAME(sb_gemm_epilogue_apply_piece)(const sb_gemm_epilogue *e, const sb_gemm_piece *piece) {
    for (int64_t begin = 0; begin < piece->count; begin += CHUNK) {
        int64_t rest = piece->count - begin;
        epilogue_chunk(e, piece, begin, rest < CHUNK ? rest : CHUNK);
    }
}
