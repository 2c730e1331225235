/* Numbers of a configuration by name, from config.json or a GGUF file's metadata alike. */
#ifndef SB_LLM_CONFIG_SOURCE_H
#define SB_LLM_CONFIG_SOURCE_H

#include "checkpoint/checkpoint.h"

typedef struct sb_config_source {
    const char *path;
    const json_t *json;           /* NULL: GGUF */
    const sb_gguf_metadata *gguf; /* keys are ARCHITECTURE.name … */
    char architecture[64];        /* … with this */
} sb_config_source;

/** The number under `json` or `gguf` (each may be NULL), in `*number`, which stays as it is, with `*found` false, where
 * there is none, or a null. INVALID_FILE for what is no number, or not from `least` to `most`. */
sb_status sb_config_real(const sb_config_source *source, const char *json, const char *gguf, double least, double most,
                         double *number, bool *found, sb_error *error);
/** The same for whole numbers. */
sb_status sb_config_integer(const sb_config_source *source, const char *json, const char *gguf, int64_t least,
                            int64_t most, int64_t *number, bool *found, sb_error *error);
/** The same for truth values. */
sb_status sb_config_flag(const sb_config_source *source, const char *json, bool *flag, sb_error *error);
/** A text, up to `bytes`, cut to fit; "" where there is none. */
void sb_config_text(const sb_config_source *source, const char *json, const char *gguf, char *text, size_t bytes);

#endif
