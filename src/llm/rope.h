/* Tables of rotary embeddings (docs/numerics.md, "Rotary tables"). */
#ifndef SB_LLM_ROPE_H
#define SB_LLM_ROPE_H

#include "llm/config.h"

/** Inverse frequencies of the rotated pairs, rounded to f32, and what the tables are multiplied by. `context` is the
 * longest sequence that there will be: rules that change with the length go by it, once. Errors: INVALID_FILE for
 * factors that do not fit; UNSUPPORTED; OUT_OF_MEMORY. `frequencies` has room for config->rotated / 2. */
sb_status sb_rope_frequencies(const sb_checkpoint *checkpoint, const sb_llm_config *config, const sb_rope_config *rope,
                              int64_t context, float *frequencies, float *scale, sb_error *error);

/** The tables [context, rotated / 2] of cosines and sines, rounded to `dtype`. The caller releases both. Errors: those
 * above. */
sb_status sb_rope_tables(const sb_checkpoint *checkpoint, const sb_llm_config *config, const sb_rope_config *rope,
                         int64_t context, sb_dtype dtype, sb_tensor **cosines, sb_tensor **sines, sb_error *error);

#endif
