/* Receipts as JSON: reading. A receipt comes from a stranger: every field has to be there, of its type and in its range, and no
 * other may be. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <samebit/version.h>

#include "base/allocation.h"
#include "llm/choose.h"
#include "llm/receipt.h"
#include "llm/sample.h"

/* As many as a vocabulary may have (llm/config.c). */
#define MOST_TOKEN (((int64_t)1 << 24) - 1)

/* An object that is being read. */
typedef struct reading {
    const char *name, *place; /* of the file; of the object in it: "sampling.", "steps[3]." */
    const json_t *object;
    sb_error *error;
} reading;

static sb_status wrong(const reading *from, const char *field, const char *wanted) {
    return sb_fail(from->error, SB_ERROR_INVALID_FILE, "%.300s: \"%s%s\" is not %s", from->name, from->place, field,
                   wanted);
}

static sb_status find(const reading *from, const char *field, const json_t **value) {
    *value = json_object_get(from->object, field);
    if (*value != NULL)
        return SB_OK;
    return sb_fail(from->error, SB_ERROR_INVALID_FILE, "%.300s has no \"%s%s\"", from->name, from->place, field);
}

/* Nothing may be there that is not known: a reader that skipped it would call right what it has not looked at. */
static sb_status check_fields(const reading *from, const char *const *known) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from->object, key, value) {
        int i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return sb_fail(from->error, SB_ERROR_INVALID_FILE, "%.300s: \"%s%.60s\" is no field of a receipt",
                           from->name, from->place, key);
    }
    return SB_OK;
}

/* ---- fields ---- */

static sb_status read_integer(const reading *from, const char *field, int64_t least, int64_t most, int64_t *number) {
    const json_t *value;
    SB_TRY(find(from, field, &value));
    *number = json_integer_value(value);
    if (json_is_integer(value) && *number >= least && *number <= most)
        return SB_OK;
    return sb_fail(from->error, SB_ERROR_INVALID_FILE, "%.300s: \"%s%s\" is no whole number from %lld to %lld",
                   from->name, from->place, field, (long long)least, (long long)most);
}

/* A number that is an f32. */
static sb_status read_real(const reading *from, const char *field, float *number) {
    const json_t *value;
    SB_TRY(find(from, field, &value));
    double wide = json_number_value(value);
    *number = json_is_number(value) && fabs(wide) <= 0x1.fffffep127 ? (float)wide : 0;
    return json_is_number(value) && (double)*number == wide ? SB_OK : wrong(from, field, "a number that an f32 holds");
}

static sb_status read_flag(const reading *from, const char *field, bool *flag) {
    const json_t *value;
    SB_TRY(find(from, field, &value));
    *flag = json_is_true(value);
    return json_is_boolean(value) ? SB_OK : wrong(from, field, "true or false");
}

static sb_status read_text(const reading *from, const char *field, const char *wanted, const char **text) {
    const json_t *value;
    SB_TRY(find(from, field, &value));
    *text = json_string_value(value);
    return *text != NULL ? SB_OK : wrong(from, field, wanted);
}

static int digit_of(char digit) {
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static sb_status read_bytes(const reading *from, const char *field, size_t count, unsigned char *bytes) {
    static const char *const wanted[] = {"64 hexadecimal digits in lower case", "128 hexadecimal digits in lower case"};
    const char *what = wanted[count != SB_DIGEST_BYTES], *text;
    SB_TRY(read_text(from, field, what, &text));
    if (strlen(text) != 2 * count)
        return wrong(from, field, what);
    for (size_t i = 0; i < count; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return wrong(from, field, what);
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    return SB_OK;
}

/* As text: not every reader of JSON keeps whole numbers above 2^53. */
static sb_status read_seed(const reading *from, uint64_t *seed) {
    static const char what[] = "a whole number from 0 to 18446744073709551615 as text";
    const char *text;
    SB_TRY(read_text(from, "seed", what, &text));
    uint64_t number = 0;
    bool fits = text[0] != '\0' && (text[0] != '0' || text[1] == '\0');
    for (int i = 0; text[i] != '\0' && fits; i++) {
        fits = text[i] >= '0' && text[i] <= '9' && !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number);
    }
    *seed = number;
    return fits ? SB_OK : wrong(from, "seed", what);
}

/* ---- parts ---- */

static sb_status read_head(const reading *from, sb_llm_receipt *receipt) {
    int64_t numerics;
    sb_llm_fingerprint *files = &receipt->fingerprint;
    SB_TRY(read_integer(from, "numerics", 1, INT32_MAX, &numerics));
    if (numerics != sb_numerics_version())
        return sb_fail(from->error, SB_ERROR_UNSUPPORTED,
                       "%.300s is of numerics version %lld, and this is %d: verify it with a Samebit of that version",
                       from->name, (long long)numerics, sb_numerics_version());
    receipt->numerics = (int)numerics;
    SB_TRY(read_bytes(from, "weights", SB_DIGEST_BYTES, files->weights));
    SB_TRY(read_bytes(from, "configuration", SB_DIGEST_BYTES, files->configuration));
    files->has_tokenizer = !json_is_null(json_object_get(from->object, "tokenizer"));
    if (files->has_tokenizer)
        SB_TRY(read_bytes(from, "tokenizer", SB_DIGEST_BYTES, files->tokenizer));
    static const sb_dtype known[] = {SB_F32, SB_F16, SB_BF16};
    const char *name;
    SB_TRY(read_text(from, "dtype", "f32, f16 or bf16", &name));
    for (int i = 0; i < 3; i++)
        receipt->dtype = strcmp(name, sb_dtype_name(known[i])) == 0 ? known[i] : receipt->dtype;
    if (receipt->dtype == SB_DTYPE_NONE)
        return wrong(from, "dtype", "f32, f16 or bf16");
    return read_integer(from, "context", 1, SB_RECEIPT_TOKENS, &receipt->context);
}

/* Pairs of a token and what is added to its logit; null: minus infinity. */
static sb_status read_biases(const reading *from, sb_llm_receipt *receipt) {
    const json_t *list;
    SB_TRY(find(from, "biases", &list));
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > (size_t)MOST_TOKEN)
        return wrong(from, "biases", "an array of pairs of a token and a number");
    receipt->biases = sb_allocate_array(count + 1, sizeof *receipt->biases);
    if (receipt->biases == NULL)
        return sb_fail_memory(from->error, count * sizeof *receipt->biases);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i), *token = json_array_get(pair, 0), *bias = json_array_get(pair, 1);
        double wide = json_number_value(bias);
        float number = fabs(wide) <= 0x1p20 ? (float)wide : 0;
        if (json_array_size(pair) != 2 || !json_is_integer(token) || json_integer_value(token) > MOST_TOKEN ||
            !(json_is_null(bias) || (json_is_number(bias) && (double)number == wide)))
            return wrong(from, "biases", "an array of pairs of a token and a number that an f32 holds, or null");
        receipt->biases[i] = (sb_llm_logit_bias){json_integer_value(token), json_is_null(bias) ? -INFINITY : number};
    }
    receipt->sampling.bias_count = (int64_t)count;
    receipt->sampling.biases = receipt->biases;
    return SB_OK;
}

/* Fields that are there together, where logits were changed before a token was chosen, or not at all. */
static sb_status read_adjustments(const reading *from, sb_llm_receipt *receipt) {
    static const char *const fields[] = {"repetition_penalty", "presence_penalty", "frequency_penalty", "biases"};
    sb_llm_sampling *sampling = &receipt->sampling;
    bool any = false;
    for (int i = 0; i < 4; i++)
        any = any || json_object_get(from->object, fields[i]) != NULL;
    if (!any)
        return SB_OK;
    SB_TRY(read_real(from, "repetition_penalty", &sampling->repetition_penalty));
    SB_TRY(read_real(from, "presence_penalty", &sampling->presence_penalty));
    SB_TRY(read_real(from, "frequency_penalty", &sampling->frequency_penalty));
    SB_TRY(read_biases(from, receipt));
    return sb_llm_sampling_adjusts(sampling) ? SB_OK : wrong(from, "biases", "something that changes a logit");
}

static sb_status read_constraint(const reading *from, sb_llm_receipt *receipt) {
    static const char *const fields[] = {"schema", "tokens", NULL};
    reading inner = {.name = from->name, .place = "constraint.", .error = from->error};
    const char *schema;
    inner.object = json_object_get(from->object, "constraint");
    if (inner.object == NULL)
        return SB_OK;
    if (!json_is_object(inner.object))
        return wrong(from, "constraint", "an object");
    SB_TRY(check_fields(&inner, fields));
    SB_TRY(read_text(&inner, "schema", "a text", &schema));
    receipt->schema = sb_duplicate_string(schema);
    if (receipt->schema == NULL)
        return sb_fail_memory(from->error, strlen(schema) + 1);
    return read_bytes(&inner, "tokens", SB_DIGEST_BYTES, receipt->tokens);
}

static sb_status read_sampling(const reading *from, sb_llm_receipt *receipt) {
    static const char *const fields[] = {
        "temperature",       "top_k",  "top_p", "min_p", "seed", "request", "repetition_penalty", "presence_penalty",
        "frequency_penalty", "biases", NULL};
    sb_llm_sampling *sampling = &receipt->sampling;
    reading inner = {.name = from->name, .place = "sampling.", .error = from->error};
    int64_t request;
    *sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    SB_TRY(find(from, "sampling", &inner.object));
    if (!json_is_object(inner.object))
        return wrong(from, "sampling", "an object");
    SB_TRY(check_fields(&inner, fields));
    SB_TRY(read_real(&inner, "temperature", &sampling->temperature));
    SB_TRY(read_integer(&inner, "top_k", 0, INT64_MAX, &sampling->top_k));
    SB_TRY(read_real(&inner, "top_p", &sampling->top_p));
    SB_TRY(read_real(&inner, "min_p", &sampling->min_p));
    SB_TRY(read_seed(&inner, &sampling->seed));
    SB_TRY(read_integer(&inner, "request", 0, UINT32_MAX, &request));
    sampling->request = (uint32_t)request;
    SB_TRY(read_adjustments(&inner, receipt));
    return sb_llm_sampling_fits(sampling)
               ? SB_OK
               : wrong(
                     from, "sampling",
                     "in its ranges: a temperature of 0 or from 2^-20 to 2^20, top_p above 0 up to 1, min_p from 0 "
                     "to 1, a repetition penalty from 2^-20 to 2^20, other penalties and biases within 2^20, biases in "
                     "the order of their tokens");
}

static sb_status read_array(const reading *from, const char *field, int64_t least, const json_t **array) {
    SB_TRY(find(from, field, array));
    int64_t count = json_is_array(*array) ? (int64_t)json_array_size(*array) : -1;
    return count >= least && count <= SB_RECEIPT_TOKENS
               ? SB_OK
               : wrong(from, field, least == 0 ? "an array" : "an array of at least one token");
}

static sb_status read_prompt(const reading *from, const json_t *prompt, sb_llm_receipt *receipt) {
    for (int64_t i = 0; i < receipt->prompt_count; i++) {
        const json_t *token = json_array_get(prompt, (size_t)i);
        receipt->prompt[i] = json_integer_value(token);
        if (!json_is_integer(token) || receipt->prompt[i] < 0 || receipt->prompt[i] > MOST_TOKEN)
            return sb_fail(from->error, SB_ERROR_INVALID_FILE,
                           "%.300s: \"prompt[%lld]\" is no token: a whole number from 0 to %lld", from->name,
                           (long long)i, (long long)MOST_TOKEN);
    }
    return SB_OK;
}

static sb_status read_step(const reading *from, sb_receipt_step *step) {
    static const char *const fields[] = {"token", "logp", "state", NULL};
    SB_TRY(check_fields(from, fields));
    SB_TRY(read_integer(from, "token", 0, MOST_TOKEN, &step->token));
    step->logp = sb_receipt_logp(INFINITY);
    if (!json_is_null(json_object_get(from->object, "logp")))
        SB_TRY(read_real(from, "logp", &step->logp));
    return read_bytes(from, "state", SB_DIGEST_BYTES, step->state);
}

static sb_status read_steps(const reading *from, sb_llm_receipt *receipt) {
    const json_t *steps;
    SB_TRY(read_array(from, "steps", 0, &steps));
    receipt->step_count = (int64_t)json_array_size(steps);
    receipt->steps = sb_allocate_array((size_t)receipt->step_count, sizeof *receipt->steps);
    if (receipt->steps == NULL)
        return sb_fail_memory(from->error, (size_t)receipt->step_count * sizeof *receipt->steps);
    for (int64_t i = 0; i < receipt->step_count; i++) {
        char place[40];
        reading inner = {from->name, place, json_array_get(steps, (size_t)i), from->error};
        snprintf(place, sizeof place, "steps[%lld]", (long long)i);
        if (!json_is_object(inner.object))
            return wrong(&inner, "", "an object");
        strcat(place, ".");
        SB_TRY(read_step(&inner, &receipt->steps[i]));
    }
    /* The last new token is put behind nothing. */
    if (receipt->step_count > receipt->limit ||
        receipt->prompt_count + (receipt->step_count > 1 ? receipt->step_count - 1 : 0) > receipt->context)
        return sb_fail(from->error, SB_ERROR_INVALID_FILE,
                       "%.300s: %lld steps behind a prompt of %lld tokens are more than its limit of %lld or its "
                       "context of %lld",
                       from->name, (long long)receipt->step_count, (long long)receipt->prompt_count,
                       (long long)receipt->limit, (long long)receipt->context);
    return SB_OK;
}

static sb_status read_end(const reading *from, sb_llm_receipt *receipt) {
    const char *name;
    SB_TRY(read_text(from, "end", "limit, stop, context, caller or complete", &name));
    int last = receipt->schema != NULL ? SB_LLM_END_COMPLETE : SB_LLM_END_CALLER;
    for (int end = SB_LLM_END_LIMIT; end <= last; end++) {
        if (strcmp(name, sb_llm_end_name((sb_llm_end)end)) == 0) {
            receipt->end = (sb_llm_end)end;
            return SB_OK;
        }
    }
    return wrong(from, "end", "limit, stop, context or caller, or, of a constraint, complete");
}

static sb_status read_rest(const reading *from, sb_llm_receipt *receipt) {
    SB_TRY(read_head(from, receipt));
    SB_TRY(read_sampling(from, receipt));
    SB_TRY(read_constraint(from, receipt));
    SB_TRY(read_integer(from, "limit", 0, INT64_MAX, &receipt->limit));
    SB_TRY(read_flag(from, "ignore_stops", &receipt->ignore_stops));
    SB_TRY(read_end(from, receipt));
    SB_TRY(read_bytes(from, "settings", SB_DIGEST_BYTES, receipt->settings));
    SB_TRY(read_steps(from, receipt));
    SB_TRY(read_bytes(from, "digest", SB_DIGEST_BYTES, receipt->digest));
    receipt->is_signed = json_object_get(from->object, "signature") != NULL;
    return receipt->is_signed ? read_bytes(from, "signature", SB_SIGNATURE_BYTES, receipt->signature) : SB_OK;
}

static sb_status read_receipt(const reading *from, sb_llm_receipt **receipt) {
    static const char *const fields[] = {"format",    "version",      "numerics",   "weights",  "configuration",
                                         "tokenizer", "dtype",        "context",    "prompt",   "sampling",
                                         "limit",     "ignore_stops", "end",        "settings", "steps",
                                         "digest",    "signature",    "constraint", NULL};
    const char *format;
    const json_t *prompt, *tokenizer;
    int64_t version;
    SB_TRY(read_text(from, "format", "\"samebit receipt\"", &format));
    if (strcmp(format, "samebit receipt") != 0)
        return wrong(from, "format", "\"samebit receipt\"");
    SB_TRY(read_integer(from, "version", 1, INT32_MAX, &version));
    if (version != 1)
        return sb_fail(from->error, SB_ERROR_UNSUPPORTED,
                       "%.300s is a receipt of version %lld; 1 is the newest known here", from->name,
                       (long long)version);
    SB_TRY(check_fields(from, fields));
    SB_TRY(find(from, "tokenizer", &tokenizer));
    SB_TRY(read_array(from, "prompt", 1, &prompt));
    sb_llm_receipt *fresh;
    SB_TRY(sb_receipt_create((int64_t)json_array_size(prompt), &fresh, from->error));
    sb_status status = read_prompt(from, prompt, fresh);
    if (status == SB_OK)
        status = read_rest(from, fresh);
    if (status != SB_OK) {
        sb_llm_receipt_release(fresh);
        return status;
    }
    *receipt = fresh;
    return SB_OK;
}

sb_status sb_receipt_parse(const char *name, const char *bytes, size_t size, sb_llm_receipt **receipt,
                           sb_error *error) {
    json_t *object;
    SB_TRY(sb_json_object(name, bytes, size, &object, error));
    const reading from = {name, "", object, error};
    sb_status status = read_receipt(&from, receipt);
    json_decref(object);
    return status;
}
