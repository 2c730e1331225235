/* samebit verify: a receipt computed again. */
#include <stdlib.h>

#include "commands.h"
#include "language_model.h"
#include "locating.h"
#include "placement.h"
#include "support.h"
#include "text.h"

const option verify_options[] = {
    {"sample", "N", false, "Check N steps that the system's random source chooses; by default all"},
    {"locate", NULL, false,
     "Where a step differs, compare each node with its reference evaluation, which is slow, and tell the first that "
     "computes something else"},
    {"key", "PUB.pem", false, "The receipt has to be signed by the private half of this Ed25519 key"},
    {"prefill-chunk", "N", false, "The most tokens in one run, up to 512; changes no bit"},
    {"json", NULL, false, "Print what was found as JSON"},
    {"tokenizer", "PATH", false, "The tokenizer, for a receipt with a constraint; by default the checkpoint's"},
    LANGUAGE_MODEL_RUN_OPTIONS,
    {0},
};

/* A receipt or key that cannot be used: not what the receipt says is wrong, but that it says nothing. */
static int unusable(const sb_error *error) {
    int code = report(error);
    return code == EXIT_FAILED ? EXIT_USAGE : code;
}

/* ---- what was found ---- */

typedef struct outcome {
    const sb_llm_verdict *verdict;
    bool has_key, key_fits; /* whether a key was given; whether the receipt is signed by it */
    bool located;           /* --locate has looked … */
    located first;          /* … and found this */
} outcome;

static bool is_same(const outcome *outcome) {
    return outcome->verdict->count == 0 && (!outcome->has_key || outcome->key_fits);
}

static json_t *findings_json(const outcome *outcome) {
    json_t *findings = json_array();
    if (outcome->has_key && !outcome->key_fits)
        json_array_append_new(findings, json_pack("{s:s, s:n, s:s}", "what", "signature", "step", "message",
                                                  "the receipt is not signed by the key"));
    for (int i = 0; i < outcome->verdict->count; i++) {
        const sb_llm_finding *finding = &outcome->verdict->findings[i];
        json_array_append_new(findings, json_pack("{s:s, s:o, s:s}", "what", sb_llm_difference_name(finding->what),
                                                  "step", finding->step < 0 ? json_null() : json_integer(finding->step),
                                                  "message", finding->message));
    }
    return findings;
}

static void print_findings(const outcome *outcome) {
    if (outcome->has_key && !outcome->key_fits)
        printf("signature: the receipt is not signed by the key\n");
    for (int i = 0; i < outcome->verdict->count; i++) {
        const sb_llm_finding *finding = &outcome->verdict->findings[i];
        printf("%s", sb_llm_difference_name(finding->what));
        if (finding->step >= 0)
            printf(" of step %lld", (long long)finding->step);
        printf(": %s\n", finding->message);
    }
}

static void print_located(const outcome *outcome) {
    const located *first = &outcome->first;
    if (!outcome->located)
        return;
    if (!first->found) {
        printf("located: each node computes what its reference evaluation does, so the difference is in what the "
               "receipt was "
               "made of: weights, tokens before, or another machine's results\n");
        return;
    }
    printf("located: ");
    if (first->layer >= 0)
        printf("layer %lld, ", first->layer);
    printf("node ");
    print_escaped(stdout, first->name);
    printf(" (%s): %s computes something else than its reference evaluation, in run %lld of the sequence\n", first->op,
           first->kernel, (long long)first->run + 1);
}

static json_t *located_json(const outcome *outcome) {
    const located *first = &outcome->first;
    if (!outcome->located || !first->found)
        return json_null();
    return json_pack("{s:o, s:s, s:s, s:o, s:I}", "node", text_json(first->name), "op", first->op, "kernel",
                     first->kernel, "layer", first->layer >= 0 ? json_integer(first->layer) : json_null(), "run",
                     (json_int_t)first->run);
}

static int print_outcome(const arguments *arguments, const sb_llm_receipt *receipt, const outcome *outcome) {
    const sb_llm_verdict *verdict = outcome->verdict;
    const sb_llm_receipt_description about = sb_llm_receipt_describe(receipt);
    bool same = is_same(outcome);
    if (has_option(arguments, "json")) {
        json_t *json = json_pack("{s:b, s:s, s:I, s:I, s:o, s:o}", "same", (int)same, "digest", about.digest, "steps",
                                 (json_int_t)verdict->steps, "checked", (json_int_t)verdict->checked, "signed",
                                 outcome->has_key ? json_boolean(outcome->key_fits) : json_null(), "findings",
                                 findings_json(outcome));
        if (outcome->located)
            json_object_set_new(json, "located", located_json(outcome));
        if (!print_json_value(stdout, json))
            return EXIT_FAILED;
        return same ? EXIT_RIGHT : EXIT_DIFFERENT;
    }
    print_findings(outcome);
    print_located(outcome);
    printf("%s: %lld of %lld steps checked", same ? "the same" : "different", (long long)verdict->checked,
           (long long)verdict->steps);
    if (about.is_signed && !outcome->has_key)
        printf("; its signature was not looked at, which takes --key");
    else if (outcome->key_fits)
        printf("; signed by the key");
    printf("\n");
    return same ? EXIT_RIGHT : EXIT_DIFFERENT;
}

/* ---- running ---- */

/* Verifies with the model as the options say. */
static sb_status verify_by(const arguments *arguments, const sb_llm_receipt *receipt, const sb_model_options *model,
                           const sb_session_options *options, const sb_llm_verification *how, sb_llm_verdict *verdict,
                           sb_error *error) {
    const sb_llm_receipt_description about = sb_llm_receipt_describe(receipt);
    sb_llm_options loading = SB_LLM_OPTIONS_DEFAULT;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    loading.dtype = about.dtype;
    loading.context = about.context;
    loading.model = model;
    loading.receipts = true;
    sb_status status = sb_llm_load(arguments->positional[0], &loading, &llm, error);
    if (status == SB_OK)
        status = sb_llm_session_create(llm, options, &session, error);
    if (status == SB_OK)
        status = sb_llm_verify(session, receipt, how, verdict, error);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    return status;
}

/* Runs the same tokens by the model's ways, and then by the reference evaluation of each node, until one of those differs. */
static sb_status locate(const arguments *arguments, const sb_llm_receipt *receipt, const sb_model_options *model,
                        const sb_session_options *options, const sb_llm_verification *how, located *first,
                        sb_error *error) {
    locating nodes = {0};
    sb_llm_verdict unused;
    sb_session_options watched = *options;
    sb_model_options reference = *model;
    watched.observer = locate_by_node;
    watched.observer_context = &nodes;
    sb_status status = verify_by(arguments, receipt, model, &watched, how, &unused, error);
    reference.reference_only = true;
    watched.device = NULL;
    watched.require_device = false;
    watched.force_cpu = NULL;
    begin_comparing(&nodes);
    if (status == SB_OK)
        status = verify_by(arguments, receipt, &reference, &watched, how, &unused, error);
    *first = nodes.result;
    free_locating(&nodes);
    return first->found ? SB_OK : status;
}

static bool has_step(const sb_llm_verdict *verdict) {
    bool has = false;
    for (int i = 0; i < verdict->count; i++)
        has = has || verdict->findings[i].step >= 0;
    return has;
}

static int verify(const arguments *arguments, const sb_llm_receipt *receipt, const sb_model_options *model,
                  const sb_session_options *options, const sb_llm_verification *how, outcome *outcome) {
    sb_llm_verdict verdict;
    sb_error error;
    if (verify_by(arguments, receipt, model, options, how, &verdict, &error) != SB_OK)
        return report(&error);
    outcome->verdict = &verdict;
    outcome->located = has_option(arguments, "locate") && has_step(&verdict);
    if (outcome->located && locate(arguments, receipt, model, options, how, &outcome->first, &error) != SB_OK)
        return report(&error);
    return print_outcome(arguments, receipt, outcome);
}

static int read_verification(const arguments *arguments, sb_model_options *model, sb_session_options *options,
                             sb_llm_verification *how) {
    long long sample = 0, chunk = 0;
    if (!read_count(arguments, "sample", 1, 1LL << 28, &sample) ||
        !read_count(arguments, "prefill-chunk", 1, 512, &chunk) || !read_model_options(arguments, model) ||
        !read_session_options(arguments, options))
        return EXIT_USAGE;
    if (has_option(arguments, "locate") && (sample != 0 || model->reference_only))
        return usage_error(
            "--locate looks at all steps, and compares with --reference-evaluation: give neither beside it");
    *how = (sb_llm_verification)SB_LLM_VERIFICATION_DEFAULT;
    how->sample = sample;
    how->chunk = chunk;
    how->threads = options->threads;
    return EXIT_RIGHT;
}

/* For a receipt with a constraint, or where one is given; else NULL. */
static int open_tokenizer(const arguments *arguments, const sb_llm_receipt *receipt, sb_tokenizer **tokenizer) {
    const char *path = option_value(arguments, "tokenizer");
    sb_error error;
    if (path == NULL && sb_llm_receipt_describe(receipt).schema == NULL)
        return EXIT_RIGHT;
    return sb_tokenizer_open(path != NULL ? path : arguments->positional[0], tokenizer, &error) == SB_OK
               ? EXIT_RIGHT
               : report(&error);
}

int run_verify(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    sb_llm_verification how;
    sb_device *device = NULL;
    sb_llm_receipt *receipt = NULL;
    sb_tokenizer *tokenizer = NULL;
    sb_error error;
    const char *key = option_value(arguments, "key");
    outcome outcome = {.has_key = key != NULL};
    int code = read_verification(arguments, &model, &options, &how);
    if (code == EXIT_RIGHT && sb_llm_receipt_load(arguments->positional[1], &receipt, &error) != SB_OK)
        code = unusable(&error);
    if (code == EXIT_RIGHT && key != NULL &&
        sb_llm_receipt_check_signature(receipt, key, &outcome.key_fits, &error) != SB_OK)
        code = unusable(&error);
    if (code == EXIT_RIGHT)
        code = open_tokenizer(arguments, receipt, &tokenizer);
    how.tokenizer = tokenizer;
    if (code == EXIT_RIGHT)
        code = open_device(arguments, &options, &device);
    if (code == EXIT_RIGHT)
        code = verify(arguments, receipt, &model, &options, &how, &outcome);
    sb_tokenizer_release(tokenizer);
    sb_llm_receipt_release(receipt);
    sb_device_release(device);
    return code;
}
