/* Receipts: what was generated in one way verifies in every other, and what was changed is found, and where. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <samebit/llm.h>

#include "llm/llm.h"
#include "llm/receipt.h"
#include "numerics/scalar.h"
#include "support/failing.h"
#include "support/must.h"
#include "tiny_models.h"

enum { STEPS = 9 };
static const int64_t prompt[] = {1, 50, 7, 23, 88, 4, 61};
enum { PROMPT = sizeof prompt / sizeof *prompt };

typedef struct way {
    sb_dtype dtype;
    int64_t chunk;
    int threads;
    sb_isa isa;
    bool no_passes, reference;
} way;

static sb_llm_session *session_of(const char *path, const way *how) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm *llm;
    sb_llm_session *made;
    model.isa = how->isa;
    model.passes = !how->no_passes;
    model.reference_only = how->reference;
    options.dtype = how->dtype;
    options.model = &model;
    options.receipts = true;
    session.threads = how->threads;
    MUST(sb_llm_load(path, &options, &llm, error));
    MUST(sb_llm_session_create(llm, &session, &made, error));
    sb_llm_release(llm);
    return made;
}

static const way plain = {SB_BF16, 0, 1, SB_ISA_BEST, false, false};

static sb_llm_sampling warm(uint64_t seed) {
    sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
    sampling.temperature = 0.8f;
    sampling.seed = seed;
    return sampling;
}

static sb_llm_receipt *generate(sb_llm_session *session, sb_llm_sampling sampling, int64_t chunk) {
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_receipt *receipt = NULL;
    generation.limit = STEPS;
    generation.chunk = chunk;
    generation.ignore_stops = true;
    generation.sampling = sampling;
    generation.receipt = &receipt;
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_generate(session, PROMPT, prompt, &generation, NULL, error));
    MUST(sb_llm_session_trim(session, 0, error));
    assert_int_equal(receipt->step_count, STEPS);
    return receipt;
}

static sb_llm_verdict verify(sb_llm_session *session, const sb_llm_receipt *receipt, int64_t chunk, int64_t sample) {
    sb_llm_verification options = SB_LLM_VERIFICATION_DEFAULT;
    sb_llm_verdict verdict;
    options.chunk = chunk;
    options.sample = sample;
    options.threads = sample == 0 ? 1 : 2;
    MUST(sb_llm_verify(session, receipt, &options, &verdict, error));
    return verdict;
}

static void expect_same(const char *what, const sb_llm_verdict *verdict) {
    if (verdict->count != 0)
        fail_msg("%s: %s of step %lld: %s", what, sb_llm_difference_name(verdict->findings[0].what),
                 (long long)verdict->findings[0].step, verdict->findings[0].message);
    assert_int_equal(verdict->checked, verdict->steps);
}

/* What a forger does who knows the format: digests that fit what the receipt says. */
static void redo(sb_llm_receipt *receipt) {
    MUST(sb_receipt_settings(receipt, receipt->settings, error));
    MUST(sb_receipt_digest(receipt, receipt->digest, error));
}

/* Exactly these findings, in their order; a step of -2 is anyone's. */
static void expect_findings(const sb_llm_verdict *verdict, int count, const sb_llm_finding *wanted) {
    for (int i = 0; i < verdict->count || i < count; i++) {
        const sb_llm_finding *have = &verdict->findings[i];
        if (i >= verdict->count || i >= count || have->what != wanted[i].what ||
            (wanted[i].step != -2 && have->step != wanted[i].step))
            fail_msg("finding %d is %s of step %lld (%s); %d are wanted, this one %s of step %lld", i,
                     i < verdict->count ? sb_llm_difference_name(have->what) : "missing", (long long)have->step,
                     i < verdict->count ? have->message : "", count,
                     i < count ? sb_llm_difference_name(wanted[i].what) : "not", (long long)wanted[i].step);
    }
}

#define EXPECT(verdict, ...)                                                                                           \
    expect_findings(&verdict, (int)(sizeof(sb_llm_finding[]){__VA_ARGS__} / sizeof(sb_llm_finding)),                   \
                    (sb_llm_finding[]){__VA_ARGS__})

/* ---- what is right ---- */

static void test_ways(void **unused) {
    (void)unused;
    static const char *const names[] = {"models/llama", "models/gemma2", "models/gpt2", "models/qwen3.gguf"};
    for (int i = 0; i < 12; i++) {
        sb_dtype dtype = (sb_dtype[]){SB_F32, SB_F16, SB_BF16}[i % 3];
        const way ways[] = {{dtype, 0, 3, SB_ISA_BEST, false, false},
                            {dtype, 1, 1, SB_ISA_SCALAR, false, false},
                            {dtype, 3, 1, SB_ISA_BEST, true, false},
                            {dtype, 5, 1, SB_ISA_BEST, false, true}};
        sb_llm_sampling sampling = i / 3 == 1 ? (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT : warm(7);
        sampling.top_k = i / 3 == 2 ? 20 : 0;
        sampling.top_p = i / 3 == 3 ? 0.9f : 1;
        sb_llm_session *session = session_of(names[i / 3], &(way){dtype, 0, 1, SB_ISA_BEST, false, false});
        sb_llm_receipt *receipt = generate(session, sampling, 0), *read;
        MUST(sb_llm_receipt_save(receipt, "receipt.json", error));
        MUST(sb_llm_receipt_load("receipt.json", &read, error));
        sb_llm_session_destroy(session);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            session = session_of(names[i / 3], &ways[w]);
            sb_llm_verdict verdict = verify(session, read, ways[w].chunk, 0);
            expect_same(names[i / 3], &verdict);
            /* The same generation there has the same receipt. */
            if (w == 1) {
                sb_llm_receipt *again = generate(session, sampling, ways[w].chunk);
                assert_memory_equal(again->digest, receipt->digest, SB_DIGEST_BYTES);
                sb_llm_receipt_release(again);
            }
            sb_llm_session_destroy(session);
        }
        sb_llm_receipt_release(receipt);
        sb_llm_receipt_release(read);
    }
}

/* Ends other than the limit: a token that ends texts, a full context, the caller. */
static sb_status stop_at_third(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    (void)token;
    (void)error;
    *stop = ++*(int *)context == 3;
    return SB_OK;
}

static void test_ends(void **unused) {
    (void)unused;
    sb_llm_session *session = session_of("models/llama", &plain);
    bool seen[4] = {false};
    for (int i = 0; i < 60; i++) {
        sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
        sb_llm_receipt *receipt = NULL;
        int told = 0;
        generation.limit = i % 3 == 0 ? 20 : i % 3 == 1 ? 1000 : 30;
        generation.sampling = warm((uint64_t)i);
        generation.sampling.temperature = 3;
        generation.on_token = i % 3 == 2 ? stop_at_third : NULL;
        generation.context = &told;
        generation.receipt = &receipt;
        MUST(sb_llm_generate(session, PROMPT, prompt, &generation, NULL, error));
        MUST(sb_llm_session_trim(session, 0, error));
        seen[receipt->end] = true;
        sb_llm_verdict verdict = verify(session, receipt, 0, 0);
        expect_same(sb_llm_end_name(receipt->end), &verdict);
        if (receipt->end == SB_LLM_END_STOP || receipt->end == SB_LLM_END_CONTEXT) {
            receipt->end = SB_LLM_END_LIMIT;
            redo(receipt);
            verdict = verify(session, receipt, 0, 0);
            EXPECT(verdict, {SB_LLM_DIFFERENT_END, -1, ""});
        }
        sb_llm_receipt_release(receipt);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    sb_llm_session_destroy(session);
}

/* ---- what was changed ---- */

static void test_changed_receipts(void **unused) {
    (void)unused;
    sb_llm_session *session = session_of("models/llama", &plain);
    for (int forged = 0; forged < 2; forged++) {
        const sb_llm_finding settings = {SB_LLM_DIFFERENT_SETTINGS, -1, ""}, digest = {SB_LLM_DIFFERENT_DIGEST, -1, ""};
        /* A token. */
        sb_llm_receipt *receipt = generate(session, warm(3), 0);
        receipt->steps[5].token = (receipt->steps[5].token + 1) % 97;
        if (forged)
            redo(receipt);
        sb_llm_verdict verdict = verify(session, receipt, 0, 0);
        if (forged)
            EXPECT(verdict, {SB_LLM_DIFFERENT_TOKEN, 5, ""});
        else
            EXPECT(verdict, {SB_LLM_DIFFERENT_TOKEN, 5, ""}, digest);
        assert_int_equal(verdict.checked, 6);
        sb_llm_receipt_release(receipt);
        /* A token that the model has not got. */
        receipt = generate(session, warm(3), 0);
        receipt->steps[4].token = 97;
        redo(receipt);
        verdict = verify(session, receipt, 2, 0);
        EXPECT(verdict, {SB_LLM_DIFFERENT_TOKEN, 4, ""});
        sb_llm_receipt_release(receipt);
        /* The seed: the first step whose choice another seed changes. */
        receipt = generate(session, warm(3), 0);
        sb_llm_receipt *other = generate(session, warm(4), 0);
        int64_t first = 0;
        while (receipt->steps[first].token == other->steps[first].token)
            first++;
        receipt->sampling.seed = 4;
        if (forged)
            redo(receipt);
        verdict = verify(session, receipt, 0, 0);
        if (forged)
            EXPECT(verdict, {SB_LLM_DIFFERENT_TOKEN, first, ""});
        else
            EXPECT(verdict, settings, {SB_LLM_DIFFERENT_TOKEN, first, ""}, digest);
        sb_llm_receipt_release(other);
        sb_llm_receipt_release(receipt);
        /* The prompt. */
        receipt = generate(session, warm(3), 0);
        receipt->prompt[2]++;
        if (forged)
            redo(receipt);
        verdict = verify(session, receipt, 0, 0);
        if (forged)
            EXPECT(verdict, {SB_LLM_DIFFERENT_STATE, 0, ""});
        else
            EXPECT(verdict, settings, {SB_LLM_DIFFERENT_STATE, 0, ""}, digest);
        receipt->prompt[2] = 97;
        redo(receipt);
        verdict = verify(session, receipt, 0, 0);
        EXPECT(verdict, {SB_LLM_DIFFERENT_STATE, 0, ""});
        sb_llm_receipt_release(receipt);
        /* The last bit of a log-probability. */
        receipt = generate(session, warm(3), 0);
        receipt->steps[7].logp = nextafterf(receipt->steps[7].logp, 0);
        if (forged)
            redo(receipt);
        verdict = verify(session, receipt, 0, 0);
        if (forged)
            EXPECT(verdict, {SB_LLM_DIFFERENT_LOGP, 7, ""});
        else
            EXPECT(verdict, {SB_LLM_DIFFERENT_LOGP, 7, ""}, digest);
        sb_llm_receipt_release(receipt);
        /* Steps left out at the end. */
        receipt = generate(session, warm(3), 0);
        receipt->step_count -= 2;
        if (forged)
            redo(receipt);
        verdict = verify(session, receipt, 0, 0);
        if (forged)
            EXPECT(verdict, {SB_LLM_DIFFERENT_END, -1, ""});
        else
            EXPECT(verdict, {SB_LLM_DIFFERENT_END, -1, ""}, digest);
        sb_llm_receipt_release(receipt);
    }
    sb_llm_session_destroy(session);
}

/* A model whose hidden state is off by the last bit of one element, in one step. */
static void test_ulp(void **unused) {
    (void)unused;
    sb_llm_session *session = session_of("models/llama", &plain);
    sb_llm_receipt *receipt = generate(session, warm(3), 0);
    int64_t sequence[PROMPT + STEPS], wanted = PROMPT + 2;
    memcpy(sequence, prompt, sizeof prompt);
    for (int i = 0; i < STEPS; i++)
        sequence[PROMPT + i] = receipt->steps[i].token;
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    unsigned char state[SB_DIGEST_BYTES];
    MUST(sb_llm_run(session, PROMPT + STEPS - 1, sequence, 1, &wanted, outputs, error));
    MUST(sb_receipt_state(outputs[SB_LLM_HIDDEN], 0, state, error));
    assert_memory_equal(state, receipt->steps[3].state, sizeof state);
    for (int i = 0; i < 32; i += 31) {
        uint16_t *bits = (uint16_t *)sb_tensor_mutable_data(outputs[SB_LLM_HIDDEN]) + i;
        *bits ^= 1;
        MUST(sb_receipt_state(outputs[SB_LLM_HIDDEN], 0, receipt->steps[3].state, error));
        *bits ^= 1;
        redo(receipt);
        MUST(sb_llm_session_trim(session, 0, error));
        sb_llm_verdict verdict = verify(session, receipt, 0, 0);
        EXPECT(verdict, {SB_LLM_DIFFERENT_STATE, 3, ""});
    }
    sb_tensor_release(outputs[SB_LLM_LOGITS]);
    sb_tensor_release(outputs[SB_LLM_HIDDEN]);
    sb_llm_receipt_release(receipt);
    sb_llm_session_destroy(session);
}

static tiny_bytes read_bytes(const char *path) {
    tiny_bytes bytes = {0};
    char piece[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) != 0;)
        tiny_add(&bytes, piece, count);
    fclose(file);
    return bytes;
}

/* The lowest bit of a weight of the last layer. In the second model it changes no hidden state, since these round to bf16: only the
 * digest of the weights tells. A higher one is seen in the states as well. */
static void test_changed_weights(void **unused) {
    (void)unused;
    sb_llm_session *session = session_of("models/llama", &plain);
    sb_llm_receipt *receipt = generate(session, warm(3), 0);
    tiny_bytes bytes = read_bytes("models/llama/model.safetensors"), config = read_bytes("models/llama/config.json");
    const sb_checkpoint_tensor *tensor =
        sb_checkpoint_find(session->llm->checkpoint, "model.layers.1.self_attn.v_proj.weight");
    assert_non_null(tensor);
    char *byte = &bytes.data[tensor->offset + 2 * (size_t)(3 * 32 + 5)];
    mkdir("changed", 0777);
    *byte ^= 1;
    tiny_save(&bytes, "changed/model.safetensors");
    tiny_save(&config, "changed/config.json");
    sb_llm_session *other = session_of("changed", &plain);
    sb_llm_verdict verdict = verify(other, receipt, 0, 0);
    EXPECT(verdict, {SB_LLM_DIFFERENT_WEIGHTS, -1, ""}, {SB_LLM_DIFFERENT_STATE, -2, ""});
    /* With the digest of those weights, as if they had been the ones: the hidden states tell. */
    receipt->fingerprint = other->llm->fingerprint;
    redo(receipt);
    verdict = verify(other, receipt, 0, 0);
    EXPECT(verdict, {SB_LLM_DIFFERENT_STATE, -2, ""});
    sb_llm_session_destroy(other);
    sb_llm_receipt_release(receipt);
    /* The configuration, in a byte that means nothing; a tokenizer. */
    receipt = generate(session, warm(3), 0);
    *byte ^= 1;
    tiny_save(&bytes, "changed/model.safetensors");
    tiny_add(&config, "\n", 1);
    tiny_save(&config, "changed/config.json");
    tiny_save(&(tiny_bytes){(char *)(uintptr_t) "{}", 2, 0}, "changed/tokenizer.json");
    other = session_of("changed", &plain);
    verdict = verify(other, receipt, 0, 0);
    EXPECT(verdict, {SB_LLM_DIFFERENT_CONFIGURATION, -1, ""}, {SB_LLM_DIFFERENT_TOKENIZER, -1, ""});
    sb_llm_receipt_release(receipt);
    receipt = generate(other, warm(3), 0);
    verdict = verify(other, receipt, 0, 0);
    expect_same("with a tokenizer", &verdict);
    assert_int_equal(remove("changed/tokenizer.json"), 0);
    sb_llm_session_destroy(other);
    sb_llm_session_destroy(session);
    sb_llm_receipt_release(receipt);
    free(bytes.data);
    free(config.data);
    /* GGUF. */
    session = session_of("models/gpt2.gguf", &plain);
    receipt = generate(session, warm(3), 0);
    bytes = read_bytes("models/gpt2.gguf");
    tensor = sb_checkpoint_find(session->llm->checkpoint, "blk.1.ffn_down.weight");
    assert_non_null(tensor);
    for (int i = 0; i < 2; i++) {
        bytes.data[tensor->offset] ^= (char)(i == 0 ? 1 : 0x41);
        tiny_save(&bytes, "changed.gguf");
        other = session_of("changed.gguf", &plain);
        verdict = verify(other, receipt, 0, 0);
        if (i == 0)
            EXPECT(verdict, {SB_LLM_DIFFERENT_WEIGHTS, -1, ""});
        else
            EXPECT(verdict, {SB_LLM_DIFFERENT_WEIGHTS, -1, ""}, {SB_LLM_DIFFERENT_STATE, -2, ""});
        sb_llm_session_destroy(other);
    }
    sb_llm_session_destroy(session);
    sb_llm_receipt_release(receipt);
    free(bytes.data);
}

/* Steps are few of all, each in its turn: one wrong step of nine is found by one of three in a third of tries. (All of 60, or none:
 * once in 10^10 runs.) */
static void test_sampled_steps(void **unused) {
    (void)unused;
    sb_llm_session *session = session_of("models/llama", &plain);
    sb_llm_receipt *receipt = generate(session, warm(3), 0);
    sb_llm_verdict verdict = verify(session, receipt, 0, 4);
    assert_int_equal(verdict.count, 0);
    assert_int_equal(verdict.checked, 4);
    verdict = verify(session, receipt, 1, 100);
    expect_same("more than all", &verdict);
    receipt->steps[6].state[0] ^= 1;
    redo(receipt);
    int found = 0;
    for (int i = 0; i < 60; i++) {
        verdict = verify(session, receipt, 0, 3);
        if (verdict.count != 0)
            EXPECT(verdict, {SB_LLM_DIFFERENT_STATE, 6, ""});
        found += verdict.count;
    }
    assert_true(found > 0 && found < 60);
    sb_llm_receipt_release(receipt);
    sb_llm_session_destroy(session);
}

/* ---- files ---- */

static void refuse(const char *from, const char *to, sb_status status, const char *says) {
    sb_error error;
    sb_llm_receipt *receipt;
    tiny_bytes bytes = read_bytes("receipt.json"), changed = {0};
    tiny_add(&bytes, "", 1);
    char *place = strstr(bytes.data, from);
    if (place == NULL)
        fail_msg("there is no '%s' in a receipt", from);
    tiny_add(&changed, bytes.data, (size_t)(place - bytes.data));
    tiny_add(&changed, to, strlen(to));
    tiny_add(&changed, place + strlen(from), strlen(place + strlen(from)));
    tiny_save(&changed, "refused.json");
    assert_int_equal(sb_llm_receipt_load("refused.json", &receipt, &error), status);
    ASSERT_SAYS(error, says);
    ASSERT_SAYS(error, "refused.json");
    free(bytes.data);
    free(changed.data);
}

static void test_refusals(void **unused) {
    (void)unused;
    sb_error error;
    sb_llm_receipt *receipt;
    sb_llm_session *session = session_of("models/llama", &plain);
    receipt = generate(session, warm(3), 0);
    MUST(sb_llm_receipt_save(receipt, "receipt.json", error));
    const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"{", "[", "refused.json, byte"},
        {"samebit receipt", "another receipt", "\"format\" is not \"samebit receipt\""},
        {"\"numerics\": 2", "\"numerics\": 0", "\"numerics\" is no whole number from 1 to 2147483647"},
        {"\"numerics\"", "\"numeric\"", "\"numeric\" is no field of a receipt"},
        {"\"limit\": 9,", "", "has no \"limit\""},
        {"\"limit\": 9,", "\"limit\": 9, \"limit\": 9,", "duplicate"},
        {"\"limit\": 9", "\"limit\": 8", "9 steps behind a prompt of 7 tokens are more than its limit of 8"},
        {"\"limit\": 9", "\"limit\": 9.5", "\"limit\" is no whole number"},
        {"\"context\": 64", "\"context\": 14", "or its context of 14"},
        {"\"tokenizer\": null,", "", "has no \"tokenizer\""},
        {"\"tokenizer\": null", "\"tokenizer\": 5", "\"tokenizer\" is not 64 hexadecimal digits"},
        {"\"weights\": \"", "\"weights\": \"0", "\"weights\" is not 64 hexadecimal digits"},
        {"\"configuration\": \"", "\"configuration\": \"G\", \"x\": \"", "\"x\" is no field of a receipt"},
        {"\"bf16\"", "\"f64\"", "\"dtype\" is not f32, f16 or bf16"},
        {"\"prompt\": [", "\"prompt\": [-1,", "\"prompt[0]\" is no token"},
        {"\"prompt\": [", "\"prompt\": [], \"y\": [", "\"y\" is no field"},
        {"\"temperature\": 0.80000001192092896", "\"temperature\": 0.8",
         "\"sampling.temperature\" is not a number that an f32 holds"},
        {"\"temperature\": 0.80000001192092896", "\"temperature\": -1", "\"sampling\" is not in its ranges"},
        {"\"top_k\": 0", "\"top_k\": -1", "\"sampling.top_k\" is no whole number"},
        {"\"seed\": \"3\"", "\"seed\": 3", "\"sampling.seed\" is not a whole number"},
        {"\"seed\": \"3\"", "\"seed\": \"03\"", "\"sampling.seed\" is not a whole number"},
        {"\"seed\": \"3\"", "\"seed\": \"18446744073709551616\"", "\"sampling.seed\" is not a whole number"},
        {"\"request\": 0", "\"request\": 4294967296", "\"sampling.request\" is no whole number from 0 to 4294967295"},
        {"\"request\": 0", "\"request\": 0, \"z\": 1", "\"sampling.z\" is no field"},
        {"\"ignore_stops\": true", "\"ignore_stops\": 1", "\"ignore_stops\" is not true or false"},
        {"\"end\": \"limit\"", "\"end\": \"never\"", "\"end\" is not limit, stop, context or caller"},
        {"\"steps\": [", "\"steps\": [5,", "\"steps[0]\" is not an object"},
        {"\"token\": ", "\"token\": -", "\"steps[0].token\" is no whole number"},
        {"\"logp\": ", "\"logp\": 1e300, \"w\": ", "\"steps[0].w\" is no field"},
        {"\"logp\": -", "\"logp\": \"-\", \"state\": -", "duplicate"},
        {"\"state\": \"", "\"state\": \"A", "\"steps[0].state\" is not 64 hexadecimal digits"},
        {"\"digest\": \"", "\"signature\": \"00\", \"digest\": \"", "\"signature\" is not 128 hexadecimal digits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].from, cases[i].to, SB_ERROR_INVALID_FILE, cases[i].says);
    refuse("\"version\": 1", "\"version\": 2", SB_ERROR_UNSUPPORTED, "is a receipt of version 2");
    refuse("\"numerics\": 2", "\"numerics\": 1", SB_ERROR_UNSUPPORTED, "is of numerics version 1");
    assert_int_equal(sb_llm_receipt_load("no/such.json", &receipt, &error), SB_ERROR_IO);
    assert_int_equal(sb_llm_receipt_save(receipt, "no/such.json", &error), SB_ERROR_IO);
    /* Sessions that do not fit. */
    sb_llm_verdict verdict;
    sb_llm_verification options = SB_LLM_VERIFICATION_DEFAULT;
    receipt->context = 63;
    assert_int_equal(sb_llm_verify(session, receipt, NULL, &verdict, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "in bf16 for a context of 64; the receipt wants bf16 and 63");
    receipt->context = 64;
    options.sample = -1;
    assert_int_equal(sb_llm_verify(session, receipt, &options, &verdict, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_tensor *logits;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_receipt *none = NULL;
    generation.receipt = &none;
    MUST(sb_llm_step(session, 1, prompt, 0, NULL, &logits, error));
    sb_tensor_release(logits);
    assert_int_equal(sb_llm_verify(session, receipt, NULL, &verdict, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_generate(session, 1, prompt, &generation, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "this one has 1 positions before the prompt");
    sb_llm_session_destroy(session);
    sb_llm *llm;
    MUST(sb_llm_load("models/llama", NULL, &llm, error));
    MUST(sb_llm_session_create(llm, NULL, &session, error));
    assert_int_equal(sb_llm_verify(session, receipt, NULL, &verdict, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_generate(session, 1, prompt, &generation, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "loaded with sb_llm_options.receipts");
    assert_null(none);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_llm_receipt_release(receipt);
}

/* ---- signatures ---- */

static void write_keys(int kind, const char *password, const char *private_path, const char *public_path) {
    EVP_PKEY *key = kind == EVP_PKEY_ED25519 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519") : EVP_EC_gen("P-256");
    FILE *file = fopen(private_path, "wb");
    assert_non_null(key);
    assert_int_equal(PEM_write_PrivateKey(file, key, password != NULL ? EVP_aes_128_cbc() : NULL,
                                          (const unsigned char *)password, password != NULL ? (int)strlen(password) : 0,
                                          NULL, NULL),
                     1);
    fclose(file);
    file = fopen(public_path, "wb");
    assert_int_equal(PEM_write_PUBKEY(file, key), 1);
    fclose(file);
    EVP_PKEY_free(key);
}

static void test_signatures(void **unused) {
    (void)unused;
    sb_error error;
    bool fits;
    write_keys(EVP_PKEY_ED25519, NULL, "key.pem", "public.pem");
    write_keys(EVP_PKEY_ED25519, NULL, "other.pem", "other-public.pem");
    write_keys(EVP_PKEY_ED25519, "secret", "locked.pem", "locked-public.pem");
    write_keys(EVP_PKEY_EC, NULL, "curve.pem", "curve-public.pem");
    sb_llm_session *session = session_of("models/llama", &plain);
    sb_llm_receipt *receipt = generate(session, warm(3), 0), *read;
    sb_llm_session_destroy(session);
    MUST(sb_llm_receipt_check_signature(receipt, "public.pem", &fits, error));
    assert_false(fits); /* not signed */
    MUST(sb_llm_key_check("key.pem", error));
    MUST(sb_llm_receipt_sign(receipt, "key.pem", error));
    MUST(sb_llm_receipt_save(receipt, "signed.json", error));
    MUST(sb_llm_receipt_load("signed.json", &read, error));
    assert_true(sb_llm_receipt_describe(read).is_signed);
    MUST(sb_llm_receipt_check_signature(read, "public.pem", &fits, error));
    assert_true(fits);
    MUST(sb_llm_receipt_check_signature(read, "other-public.pem", &fits, error));
    assert_false(fits);
    read->steps[2].token ^= 1; /* the digest is of all of it, and the signature is the digest's */
    redo(read);
    MUST(sb_llm_receipt_check_signature(read, "public.pem", &fits, error));
    assert_false(fits);
    const char *const bad[] = {"locked.pem", "curve.pem", "public.pem", "signed.json"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sb_llm_key_check(bad[i], &error), SB_ERROR_INVALID_FILE);
        assert_int_equal(sb_llm_receipt_sign(receipt, bad[i], &error), SB_ERROR_INVALID_FILE);
        ASSERT_SAYS(error, bad[i]);
        ASSERT_SAYS(error, "openssl genpkey");
    }
    assert_int_equal(sb_llm_receipt_check_signature(read, "key.pem", &fits, &error), SB_ERROR_INVALID_FILE);
    assert_int_equal(sb_llm_receipt_check_signature(read, "curve-public.pem", &fits, &error), SB_ERROR_INVALID_FILE);
    assert_int_equal(sb_llm_receipt_check_signature(read, "no-key.pem", &fits, &error), SB_ERROR_IO);
    sb_llm_receipt_release(read);
    sb_llm_receipt_release(receipt);
}

/* ---- memory ---- */

static sb_status attempt_files(void *context) {
    sb_llm_fingerprint fingerprint;
    return sb_llm_fingerprint_of(context, &fingerprint, NULL);
}

static sb_status attempt(void *context) {
    sb_llm_session *session = NULL;
    sb_llm_receipt *receipt = NULL, *read = NULL;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_verification how = SB_LLM_VERIFICATION_DEFAULT;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_verdict verdict;
    generation.limit = 2;
    generation.sampling.temperature = 1;
    generation.receipt = &receipt;
    options.threads = how.threads = 1;
    sb_status status = sb_llm_session_create(context, &options, &session, NULL);
    if (status == SB_OK)
        status = sb_llm_generate(session, 3, prompt, &generation, NULL, NULL);
    if (status == SB_OK)
        status = sb_llm_session_trim(session, 0, NULL);
    if (status == SB_OK)
        status = sb_llm_receipt_sign(receipt, "key.pem", NULL);
    if (status == SB_OK)
        status = sb_llm_receipt_save(receipt, "memory.json", NULL);
    if (status == SB_OK)
        status = sb_llm_receipt_load("memory.json", &read, NULL);
    if (status == SB_OK)
        status = sb_llm_verify(session, read, &how, &verdict, NULL);
    if (status == SB_OK)
        assert_int_equal(verdict.count, 0);
    sb_llm_receipt_release(receipt);
    sb_llm_receipt_release(read);
    sb_llm_session_destroy(session);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    sb_llm *llm;
    sb_llm_options loading = SB_LLM_OPTIONS_DEFAULT;
    loading.receipts = true;
    write_keys(EVP_PKEY_ED25519, NULL, "key.pem", "public.pem");
    MUST(sb_llm_load("models/llama3", &loading, &llm, error));
    check_failing_allocations(attempt_files, llm->checkpoint);
    /* Once before, for what the model keeps from its first run on. */
    assert_int_equal(attempt(llm), SB_OK);
    check_failing_allocations(attempt, llm);
    sb_llm_release(llm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_changed_receipts),
        cmocka_unit_test(test_ulp),
        cmocka_unit_test(test_changed_weights),
        cmocka_unit_test(test_sampled_steps),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
