/* Receipts as JSON: writing. The form is in docs/llm.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "llm/choose.h"
#include "llm/receipt.h"

const char *sb_llm_end_name(sb_llm_end end) {
    static const char *const names[] = {"limit", "stop", "context", "caller", "complete"};
    return names[end];
}

/* Text of so many bytes as digits; NULL when memory has run out, which whatever it is put into reports. */
static json_t *hexadecimal(const unsigned char *bytes, size_t count) {
    char text[2 * SB_SIGNATURE_BYTES + 1];
    sb_hexadecimal(bytes, count, text);
    return json_string(text);
}

static json_t *biases_json(const sb_llm_sampling *sampling) {
    json_t *biases = json_array();
    bool complete = biases != NULL;
    for (int64_t i = 0; i < sampling->bias_count && complete; i++) {
        float bias = sampling->biases[i].bias;
        complete =
            json_array_append_new(biases, json_pack("[I, o]", (json_int_t)sampling->biases[i].token,
                                                    isfinite(bias) ? json_real((double)bias) : json_null())) == 0;
    }
    if (complete)
        return biases;
    json_decref(biases);
    return NULL;
}

static json_t *sampling_json(const sb_llm_sampling *sampling) {
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, sampling->seed);
    json_t *json = json_pack("{s:f, s:I, s:f, s:f, s:s, s:I}", "temperature", (double)sampling->temperature, "top_k",
                             (json_int_t)sampling->top_k, "top_p", (double)sampling->top_p, "min_p",
                             (double)sampling->min_p, "seed", seed, "request", (json_int_t)sampling->request);
    json_t *more = json != NULL && sb_llm_sampling_adjusts(sampling)
                       ? json_pack("{s:f, s:f, s:f, s:o}", "repetition_penalty", (double)sampling->repetition_penalty,
                                   "presence_penalty", (double)sampling->presence_penalty, "frequency_penalty",
                                   (double)sampling->frequency_penalty, "biases", biases_json(sampling))
                       : NULL;
    if (json != NULL && sb_llm_sampling_adjusts(sampling) && (more == NULL || json_object_update(json, more) != 0)) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

static json_t *prompt_json(const sb_llm_receipt *receipt) {
    json_t *prompt = json_array();
    bool complete = prompt != NULL;
    for (int64_t i = 0; i < receipt->prompt_count && complete; i++)
        complete = json_array_append_new(prompt, json_integer(receipt->prompt[i])) == 0;
    if (complete)
        return prompt;
    json_decref(prompt);
    return NULL;
}

static json_t *step_json(const sb_receipt_step *step) {
    return json_pack("{s:I, s:o, s:o}", "token", (json_int_t)step->token, "logp",
                     isfinite(step->logp) ? json_real((double)step->logp) : json_null(), "state",
                     hexadecimal(step->state, SB_DIGEST_BYTES));
}

static json_t *steps_json(const sb_llm_receipt *receipt) {
    json_t *steps = json_array();
    bool complete = steps != NULL;
    for (int64_t i = 0; i < receipt->step_count && complete; i++)
        complete = json_array_append_new(steps, step_json(&receipt->steps[i])) == 0;
    if (complete)
        return steps;
    json_decref(steps);
    return NULL;
}

static json_t *receipt_json(const sb_llm_receipt *receipt) {
    const sb_llm_fingerprint *files = &receipt->fingerprint;
    json_t *json = json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:s, s:I, s:o, s:o, s:I, s:b, s:s, s:o, s:o, s:o}",
                             "format", "samebit receipt", "version", 1, "numerics", receipt->numerics, "weights",
                             hexadecimal(files->weights, SB_DIGEST_BYTES), "configuration",
                             hexadecimal(files->configuration, SB_DIGEST_BYTES), "tokenizer",
                             files->has_tokenizer ? hexadecimal(files->tokenizer, SB_DIGEST_BYTES) : json_null(),
                             "dtype", sb_dtype_name(receipt->dtype), "context", (json_int_t)receipt->context, "prompt",
                             prompt_json(receipt), "sampling", sampling_json(&receipt->sampling), "limit",
                             (json_int_t)receipt->limit, "ignore_stops", (int)receipt->ignore_stops, "end",
                             sb_llm_end_name(receipt->end), "settings", hexadecimal(receipt->settings, SB_DIGEST_BYTES),
                             "steps", steps_json(receipt), "digest", hexadecimal(receipt->digest, SB_DIGEST_BYTES));
    json_t *constraint = json != NULL && receipt->schema != NULL
                             ? json_pack("{s:s, s:o}", "schema", receipt->schema, "tokens",
                                         hexadecimal(receipt->tokens, SB_DIGEST_BYTES))
                             : NULL;
    if (json != NULL && receipt->schema != NULL && json_object_set_new(json, "constraint", constraint) != 0) {
        json_decref(json);
        return NULL;
    }
    if (json != NULL && receipt->is_signed &&
        json_object_set_new(json, "signature", hexadecimal(receipt->signature, SB_SIGNATURE_BYTES)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

sb_status sb_receipt_text(const sb_llm_receipt *receipt, char **text, sb_error *error) {
    json_t *json = receipt_json(receipt);
    *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    return *text != NULL ? SB_OK : sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: could not write a receipt");
}

sb_status sb_llm_receipt_save(const sb_llm_receipt *receipt, const char *path, sb_error *error) {
    char *text;
    SB_TRY(sb_receipt_text(receipt, &text, error));
    const sb_file_part parts[] = {{text, strlen(text)}, {"\n", 1}};
    sb_status status = sb_file_write_whole(path, 2, parts, error);
    free(text);
    return status;
}
