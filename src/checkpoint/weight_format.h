/* How weights lie in checkpoints: formats of elements, plain or in blocks with scales, and what they mean in f32.
 *
 * The formulas of quantised formats, with every rounding, are in docs/numerics.md ("Quantised weights"). */
#ifndef SB_CHECKPOINT_WEIGHT_FORMAT_H
#define SB_CHECKPOINT_WEIGHT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <samebit/dtype.h>

/** The most elements of a block. */
#define SB_WEIGHT_BLOCK 256

typedef struct sb_weight_format {
    const char *name; /* as the file's format calls it: "BF16", "Q4_K" */
    int64_t elements; /* of a block; 1 for plain formats */
    size_t bytes;     /* of a block */
    bool is_float;    /* plain f32, f16 or bf16: `dtype` */
    sb_dtype dtype;
    int ggml;                /* its number in GGUF files; -1: none */
    const char *safetensors; /* its name in safetensors files; NULL: none */
    /* One block to f32. NULL: weights in this format are not computed with. */
    void (*decode)(const uint8_t *block, float *values);
} sb_weight_format;

/** The format with that number in GGUF files, or NULL. */
const sb_weight_format *sb_weight_format_of_ggml(int64_t number);
/** The format of that name in safetensors files, or NULL. */
const sb_weight_format *sb_weight_format_of_safetensors(const char *name);

/** Rounds `blocks` blocks to `dtype`, f32, f16 or bf16: the f32 value of the format's formula, then at most one
 * rounding. `format->decode` is not NULL. */
void sb_weight_convert(const sb_weight_format *format, const void *blocks, int64_t count, sb_dtype dtype, void *to);

#endif
