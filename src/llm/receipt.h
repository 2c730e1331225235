/* Receipts: what a generation was made of and came to, so that it can be computed again. See <samebit/llm.h> for the contract,
 * docs/llm.md for the file. */
#ifndef SB_LLM_RECEIPT_H
#define SB_LLM_RECEIPT_H

#include <samebit/llm.h>

#include "llm/fingerprint.h"

#define SB_SIGNATURE_BYTES 64

/** The most tokens that a receipt may have. */
#define SB_RECEIPT_TOKENS ((int64_t)1 << 28)

/* One new token. */
typedef struct sb_receipt_step {
    int64_t token;
    float logp;                           /* NaN where it is not finite */
    unsigned char state[SB_DIGEST_BYTES]; /* of the final hidden state that it was chosen from */
} sb_receipt_step;

struct sb_llm_receipt {
    int numerics;
    sb_llm_fingerprint fingerprint;
    sb_dtype dtype;
    int64_t context;
    sb_llm_sampling sampling; /* its biases are `biases` */
    sb_llm_logit_bias *biases;
    char *schema;                          /* of the constraint, with a NUL behind it; NULL: there was none */
    unsigned char tokens[SB_DIGEST_BYTES]; /* over the bytes of the tokens that the constraint knew */
    int64_t limit;
    bool ignore_stops;
    int64_t prompt_count, step_count;
    size_t step_capacity;
    int64_t *prompt;
    sb_receipt_step *steps;
    sb_llm_end end;
    unsigned char settings[SB_DIGEST_BYTES]; /* over what was known before the first step */
    unsigned char digest[SB_DIGEST_BYTES];   /* over that, the steps, one linked to the other, and the end */
    unsigned char link[SB_DIGEST_BYTES];     /* of one that is being made: the last so far */
    bool is_signed;
    unsigned char signature[SB_SIGNATURE_BYTES]; /* of the digest */
};

/** An empty receipt with room for a prompt. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_create(int64_t prompt_count, sb_llm_receipt **receipt, sb_error *error);
/** Begins the steps, when all is set that is known before them. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_begin(sb_llm_receipt *receipt, sb_error *error);
/** Adds a step whose hidden state is row `row` of `hidden` [1, rows, width], on the host. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_add(sb_llm_receipt *receipt, int64_t token, float logp, const sb_tensor *hidden, int64_t row,
                         sb_error *error);
/** Ends the steps, with the digest that sb_receipt_digest has of all of them: each was linked when it was added, while a device
 * was at the next one. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_end(sb_llm_receipt *receipt, sb_llm_end end, sb_error *error);
/** Sets how tokens are chosen, with a copy of the biases. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_set_sampling(sb_llm_receipt *receipt, const sb_llm_sampling *sampling, sb_error *error);
/** Sets the constraint: its schema, and its tokens' digest. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_set_constraint(sb_llm_receipt *receipt, const sb_llm_constraint *constraint, sb_error *error);
/** The digest of the bytes of all tokens that a constraint knows. Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_tokens(const sb_llm_constraint *constraint, unsigned char tokens[SB_DIGEST_BYTES],
                            sb_error *error);
/** The digest of such a row. */
sb_status sb_receipt_state(const sb_tensor *hidden, int64_t row, unsigned char state[SB_DIGEST_BYTES], sb_error *error);
/** What `settings` and `digest` have to be. */
sb_status sb_receipt_settings(const sb_llm_receipt *receipt, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error);
sb_status sb_receipt_digest(const sb_llm_receipt *receipt, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error);

/** A log-probability as receipts hold it. */
float sb_receipt_logp(float logp);
/** Writes 2 * count digits and a NUL. */
void sb_hexadecimal(const unsigned char *bytes, size_t count, char *text);

/** Reads a file's bytes. `name` is for messages. Errors: INVALID_FILE, with the byte offset or the name of what is wrong;
 * UNSUPPORTED for another version of the format or of the numerics; OUT_OF_MEMORY. */
sb_status sb_receipt_parse(const char *name, const char *bytes, size_t size, sb_llm_receipt **receipt, sb_error *error);
/** The file's text, to be freed by free(). Errors: OUT_OF_MEMORY. */
sb_status sb_receipt_text(const sb_llm_receipt *receipt, char **text, sb_error *error);
/** "limit", "stop", "context", "caller", "complete". */
const char *sb_llm_end_name(sb_llm_end end);

#endif
