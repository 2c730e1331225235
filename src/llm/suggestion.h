/* How tokens are to be chosen by a checkpoint's generation_config.json, or by the metadata of a GGUF file. */
#ifndef SB_LLM_SUGGESTION_H
#define SB_LLM_SUGGESTION_H

#include <jansson.h>
#include <samebit/llm.h>

#include "checkpoint/gguf.h"

/** What an object of JSON, called `path` in messages, says of sampling; the rest as SB_LLM_SAMPLING_DEFAULT has it. Errors:
 * INVALID_FILE for what is of the wrong kind or out of range, with the key. */
sb_status sb_llm_suggestion_of(const char *path, const json_t *json, sb_llm_sampling *sampling, sb_error *error);
/** The same of the keys general.sampling.*, by the convention of llama.cpp, of the GGUF file `path`. */
sb_status sb_llm_suggestion_of_gguf(const char *path, const sb_gguf_metadata *metadata, sb_llm_sampling *sampling,
                                    sb_error *error);

#endif
