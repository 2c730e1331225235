#include "llm/receipt.h"

#include <math.h>
#include <string.h>

#include <samebit/version.h>

#include "base/allocation.h"
#include "base/file.h"
#include "constraint/constraint.h"
#include "llm/choose.h"
#include "numerics/scalar.h"

/* A line of JSON for a token is some 150 bytes. */
#define FILE_BYTES ((size_t)1 << 30)

/* ---- life ---- */

sb_status sb_receipt_create(int64_t prompt_count, sb_llm_receipt **receipt, sb_error *error) {
    sb_llm_receipt *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->numerics = sb_numerics_version();
    fresh->prompt_count = prompt_count;
    fresh->sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    fresh->prompt = sb_allocate_array((size_t)prompt_count, sizeof *fresh->prompt);
    if (fresh->prompt == NULL) {
        sb_free(fresh);
        return sb_fail_memory(error, (size_t)prompt_count * sizeof *fresh->prompt);
    }
    *receipt = fresh;
    return SB_OK;
}

void sb_llm_receipt_release(sb_llm_receipt *receipt) {
    if (receipt == NULL)
        return;
    sb_free(receipt->prompt);
    sb_free(receipt->biases);
    sb_free(receipt->schema);
    sb_free(receipt->steps);
    sb_free(receipt);
}

void sb_hexadecimal(const unsigned char *bytes, size_t count, char *text) {
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[2 * count] = '\0';
}

sb_llm_receipt_description sb_llm_receipt_describe(const sb_llm_receipt *receipt) {
    sb_llm_receipt_description d = {.dtype = receipt->dtype,
                                    .context = receipt->context,
                                    .prompt_tokens = receipt->prompt_count,
                                    .new_tokens = receipt->step_count,
                                    .is_signed = receipt->is_signed,
                                    .schema = receipt->schema};
    sb_hexadecimal(receipt->digest, SB_DIGEST_BYTES, d.digest);
    return d;
}

/* ---- how tokens are chosen ---- */

sb_status sb_receipt_set_sampling(sb_llm_receipt *receipt, const sb_llm_sampling *sampling, sb_error *error) {
    size_t count = (size_t)sampling->bias_count;
    receipt->sampling = *sampling;
    receipt->sampling.biases = NULL;
    if (count == 0)
        return SB_OK;
    receipt->biases = sb_allocate_array(count, sizeof *receipt->biases);
    if (receipt->biases == NULL)
        return sb_fail_memory(error, count * sizeof *receipt->biases);
    memcpy(receipt->biases, sampling->biases, count * sizeof *receipt->biases);
    receipt->sampling.biases = receipt->biases;
    return SB_OK;
}

sb_status sb_receipt_tokens(const sb_llm_constraint *constraint, unsigned char tokens[SB_DIGEST_BYTES],
                            sb_error *error) {
    const sb_token_trie *trie = sb_constraint_trie(constraint);
    sb_digest digest;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_integer(&digest, trie->vocabulary);
    for (uint32_t token = 0; token < trie->vocabulary; token++)
        sb_digest_add_integer(&digest, (int64_t)(trie->begin[token + 1] - trie->begin[token]));
    sb_digest_add_bytes(&digest, trie->bytes, trie->begin[trie->vocabulary]);
    return sb_digest_end(&digest, tokens, error);
}

sb_status sb_receipt_set_constraint(sb_llm_receipt *receipt, const sb_llm_constraint *constraint, sb_error *error) {
    size_t bytes;
    const char *schema = sb_constraint_schema(constraint, &bytes);
    receipt->schema = sb_duplicate_string(schema);
    return receipt->schema != NULL ? sb_receipt_tokens(constraint, receipt->tokens, error)
                                   : sb_fail_memory(error, bytes + 1);
}

/* ---- steps ---- */

float sb_receipt_logp(float logp) {
    return isfinite(logp) ? logp : sb_nan_f32();
}

sb_status sb_receipt_state(const sb_tensor *hidden, int64_t row, unsigned char state[SB_DIGEST_BYTES],
                           sb_error *error) {
    sb_digest digest;
    int64_t width = sb_tensor_dims(hidden)[2];
    sb_tensor *view;
    const char *from =
        (const char *)sb_tensor_data(hidden) + (size_t)(row * width) * sb_dtype_size(sb_tensor_dtype(hidden));
    SB_TRY(sb_tensor_wrap(sb_tensor_dtype(hidden), 1, &width, NULL, (void *)(uintptr_t)from, NULL, NULL, &view, error));
    sb_status status = sb_digest_begin(&digest, error);
    if (status == SB_OK) {
        sb_digest_add_tensor(&digest, view);
        status = sb_digest_end(&digest, state, error);
    }
    sb_tensor_release(view);
    return status;
}

/* ---- digests ---- */

static void add_real(sb_digest *digest, float number) {
    sb_digest_add_integer(digest, (int64_t)sb_bits_from_f32(number));
}

/* Nothing where logits are left alone: receipts from before there was this have the same digests. */
static void add_adjustments(sb_digest *digest, const sb_llm_sampling *sampling) {
    if (!sb_llm_sampling_adjusts(sampling))
        return;
    sb_digest_add_text(digest, "adjusted");
    add_real(digest, sampling->repetition_penalty);
    add_real(digest, sampling->presence_penalty);
    add_real(digest, sampling->frequency_penalty);
    sb_digest_add_integer(digest, sampling->bias_count);
    for (int64_t i = 0; i < sampling->bias_count; i++) {
        sb_digest_add_integer(digest, sampling->biases[i].token);
        add_real(digest, sampling->biases[i].bias);
    }
}

sb_status sb_receipt_settings(const sb_llm_receipt *receipt, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    sb_digest digest;
    const sb_llm_fingerprint *files = &receipt->fingerprint;
    const sb_llm_sampling *sampling = &receipt->sampling;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_text(&digest, "samebit receipt 1");
    sb_digest_add_integer(&digest, receipt->numerics);
    sb_digest_add_bytes(&digest, files->weights, SB_DIGEST_BYTES);
    sb_digest_add_bytes(&digest, files->configuration, SB_DIGEST_BYTES);
    sb_digest_add_integer(&digest, files->has_tokenizer);
    sb_digest_add_bytes(&digest, files->tokenizer, SB_DIGEST_BYTES);
    sb_digest_add_text(&digest, sb_dtype_name(receipt->dtype));
    sb_digest_add_integer(&digest, receipt->context);
    add_real(&digest, sampling->temperature);
    sb_digest_add_integer(&digest, sampling->top_k);
    add_real(&digest, sampling->top_p);
    add_real(&digest, sampling->min_p);
    sb_digest_add_integer(&digest, (int64_t)sampling->seed);
    sb_digest_add_integer(&digest, sampling->request);
    add_adjustments(&digest, sampling);
    if (receipt->schema != NULL) {
        sb_digest_add_text(&digest, "constraint");
        sb_digest_add_text(&digest, receipt->schema);
        sb_digest_add_bytes(&digest, receipt->tokens, SB_DIGEST_BYTES);
    }
    sb_digest_add_integer(&digest, receipt->limit);
    sb_digest_add_integer(&digest, receipt->ignore_stops);
    sb_digest_add_integer(&digest, receipt->prompt_count);
    for (int64_t i = 0; i < receipt->prompt_count; i++)
        sb_digest_add_integer(&digest, receipt->prompt[i]);
    return sb_digest_end(&digest, bytes, error);
}

/* Replaces what `link` holds by a digest over it and the step. */
static sb_status add_link(const sb_llm_receipt *receipt, int64_t i, unsigned char link[SB_DIGEST_BYTES],
                          sb_error *error) {
    const sb_receipt_step *step = &receipt->steps[i];
    sb_digest digest;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_bytes(&digest, link, SB_DIGEST_BYTES);
    sb_digest_add_integer(&digest, receipt->prompt_count + i);
    sb_digest_add_bytes(&digest, step->state, SB_DIGEST_BYTES);
    sb_digest_add_integer(&digest, step->token);
    add_real(&digest, step->logp);
    return sb_digest_end(&digest, link, error);
}

/* The digest behind the last link. */
static sb_status close_chain(const sb_llm_receipt *receipt, const unsigned char link[SB_DIGEST_BYTES],
                             unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    sb_digest digest;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_bytes(&digest, link, SB_DIGEST_BYTES);
    sb_digest_add_integer(&digest, receipt->step_count);
    sb_digest_add_text(&digest, sb_llm_end_name(receipt->end));
    return sb_digest_end(&digest, bytes, error);
}

sb_status sb_receipt_digest(const sb_llm_receipt *receipt, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    unsigned char link[SB_DIGEST_BYTES];
    SB_TRY(sb_receipt_settings(receipt, link, error));
    for (int64_t i = 0; i < receipt->step_count; i++)
        SB_TRY(add_link(receipt, i, link, error));
    return close_chain(receipt, link, bytes, error);
}

/* ---- making one ---- */

sb_status sb_receipt_begin(sb_llm_receipt *receipt, sb_error *error) {
    SB_TRY(sb_receipt_settings(receipt, receipt->settings, error));
    memcpy(receipt->link, receipt->settings, sizeof receipt->link);
    return SB_OK;
}

sb_status sb_receipt_add(sb_llm_receipt *receipt, int64_t token, float logp, const sb_tensor *hidden, int64_t row,
                         sb_error *error) {
    size_t count = (size_t)receipt->step_count;
    sb_receipt_step step = {.token = token, .logp = sb_receipt_logp(logp)};
    if (!sb_grow((void **)&receipt->steps, &receipt->step_capacity, count + 1, sizeof step))
        return sb_fail_memory(error, (count + 1) * sizeof step);
    SB_TRY(sb_receipt_state(hidden, row, step.state, error));
    receipt->steps[receipt->step_count] = step;
    SB_TRY(add_link(receipt, receipt->step_count, receipt->link, error));
    receipt->step_count++;
    return SB_OK;
}

sb_status sb_receipt_end(sb_llm_receipt *receipt, sb_llm_end end, sb_error *error) {
    receipt->end = end;
    return close_chain(receipt, receipt->link, receipt->digest, error);
}

/* ---- files ---- */

sb_status sb_llm_receipt_load(const char *path, sb_llm_receipt **receipt, sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, FILE_BYTES, &bytes, &size, error));
    sb_status status = sb_receipt_parse(path, bytes, size, receipt, error);
    sb_free(bytes);
    return status;
}
