/* Digests of a checkpoint's files, by which a receipt knows them again. */
#ifndef SB_LLM_FINGERPRINT_H
#define SB_LLM_FINGERPRINT_H

#include "checkpoint/checkpoint.h"
#include "runtime/digest.h"

/* SHA-256, of what sb_digest_add_text, _integer and _bytes write:
 *
 *     weights        for each tensor, in the order of names as bytes: its name, its format's name, rank, extents, and the
 *                    SHA-256 of its bytes in the file. So it does not matter how files split tensors.
 *     configuration  of a folder for config.json, and generation_config.json if it is there, name, number of bytes, bytes;
 *                    of GGUF files for each the number of bytes in front of its first tensor's, and these
 *     tokenizer      of a folder the same of those of `tokenizer_files` (fingerprint.c) that are there. GGUF files have
 *                    theirs in front, with the configuration */
typedef struct sb_llm_fingerprint {
    unsigned char weights[SB_DIGEST_BYTES], configuration[SB_DIGEST_BYTES], tokenizer[SB_DIGEST_BYTES];
    bool has_tokenizer; /* else `tokenizer` is zeros */
} sb_llm_fingerprint;

/** Reads all of the checkpoint's files, with as many threads as there are processors. Errors: IO; INVALID_FILE for a
 * configuration that is too large; OUT_OF_MEMORY. */
sb_status sb_llm_fingerprint_of(const sb_checkpoint *checkpoint, sb_llm_fingerprint *fingerprint, sb_error *error);

#endif
