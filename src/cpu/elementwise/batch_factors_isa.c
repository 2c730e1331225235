/* The row loops of batch normalisation, compiled once per instruction set. */
#include "base/isa.h"
#include "numerics/scalar.h"
#include "ops/convert_loops.h"
#include "ops/loops.h"

/* Elements of 16 bits that are widened at once: with what comes of them, 8 KiB of the first-level cache. */
#define PIECE 1024

#define AT(base, index, step) (*(float *)(void *)((base) + (index) * (step)))

/* Factors differ from element to element where channels are innermost in memory; else all of a row are of one channel. */
static void batch_f32(void *context, int64_t count, char *const *data, const int64_t *steps) {
    (void)context;
    const int64_t size = sizeof(float);
    float *restrict y = (float *)(void *)data[0];
    const float *restrict x = (const float *)(void *)data[1];
    const float *restrict a = (const float *)(void *)data[2];
    const float *restrict b = (const float *)(void *)data[3];
    if (steps[0] == size && steps[1] == size && steps[2] == size && steps[3] == size) {
        for (int64_t i = 0; i < count; i++)
            y[i] = sb_fma_f32(x[i], a[i], b[i]);
        return;
    }
    if (steps[0] == size && steps[1] == size && steps[2] == 0 && steps[3] == 0) {
        const float factor = *a, shift = *b;
        for (int64_t i = 0; i < count; i++)
            y[i] = sb_fma_f32(x[i], factor, shift);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        AT(data[0], i, steps[0]) =
            sb_fma_f32(AT(data[1], i, steps[1]), AT(data[2], i, steps[2]), AT(data[3], i, steps[3]));
}

static void batch_16(sb_dtype dtype, int64_t count, char *const *data, const int64_t *steps) {
    _Alignas(64) float x[PIECE], y[PIECE];
    const int64_t size = sizeof(float);
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t piece = count - start < PIECE ? count - start : PIECE;
        char *in = data[1] + start * steps[1], *out = data[0] + start * steps[0];
        char *a = data[2] + start * steps[2], *b = data[3] + start * steps[3];
        SB_ISA_NAME(sb_convert_loops)
        [SB_F32][dtype](NULL, piece, (char *const[]){(char *)x, in}, (const int64_t[]){size, steps[1]});
        batch_f32(NULL, piece, (char *const[]){(char *)y, (char *)x, a, b},
                  (const int64_t[]){size, size, steps[2], steps[3]});
        SB_ISA_NAME(sb_convert_loops)
        [dtype][SB_F32](NULL, piece, (char *const[]){out, (char *)y}, (const int64_t[]){steps[0], size});
    }
}

static void batch_f16(void *context, int64_t count, char *const *data, const int64_t *steps) {
    (void)context;
    batch_16(SB_F16, count, data, steps);
}

static void batch_bf16(void *context, int64_t count, char *const *data, const int64_t *steps) {
    (void)context;
    batch_16(SB_BF16, count, data, steps);
}

SB_DECLARE_LOOPS(sb_batch_factors_loops, 1)
sb_walk_row *const SB_ISA_NAME(sb_batch_factors_loops)[1][SB_DTYPE_COUNT] = {
    {[SB_F32] = batch_f32, [SB_F16] = batch_f16, [SB_BF16] = batch_bf16}};
