/* Log-probabilities of given tokens, the likeliest tokens beside them, and perplexities: against the logits of single steps,
 * looked at one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <samebit/llm.h>

#include "llm/score.h"
#include "support/failing.h"
#include "support/must.h"

enum { TOKENS = 61, VOCABULARY = 97, TOP = 5 };

static int64_t tokens[TOKENS];

static sb_llm_session *open_session(const char *path, int64_t context, int threads) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm *llm;
    sb_llm_session *made;
    options.context = context;
    session.threads = threads;
    MUST(sb_llm_load(path, &options, &llm, error));
    MUST(sb_llm_session_create(llm, &session, &made, error));
    sb_llm_release(llm);
    return made;
}

/* The logits of the position before each of `count` tokens but the first, by a step for each token. */
static void logits_before(sb_llm_session *session, int64_t count, const int64_t *ids, float *logits) {
    static const int64_t only = 0;
    MUST(sb_llm_session_trim(session, 0, error));
    for (int64_t i = 0; i + 1 < count; i++) {
        sb_tensor *row;
        MUST(sb_llm_step(session, 1, ids + i, 1, &only, &row, error));
        memcpy(logits + i * VOCABULARY, sb_tensor_data(row), VOCABULARY * sizeof *logits);
        sb_tensor_release(row);
    }
}

static uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void check_top(const float *logits, const int64_t *found, const float *logps) {
    bool taken[VOCABULARY] = {false};
    for (int place = 0; place < TOP; place++) {
        int best = -1;
        for (int token = 0; token < VOCABULARY; token++) {
            if (!taken[token] && (best < 0 || logits[token] > logits[best]))
                best = token;
        }
        taken[best] = true;
        assert_int_equal(found[place], best);
        assert_int_equal(bits_of(logps[place]), bits_of(sb_llm_logp(logits, VOCABULARY, best)));
    }
}

static void test_scores(void **unused) {
    (void)unused;
    static float logits[TOKENS * VOCABULARY];
    static const char *const models[] = {"models/llama", "models/gemma3", "models/gpt2"};
    static const int64_t chunks[] = {0, 1, 7, 60, 61, 100};
    for (size_t m = 0; m < 3; m++) {
        sb_llm_session *session = open_session(models[m], TOKENS, (int)m);
        logits_before(session, TOKENS, tokens, logits);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            for (int64_t first = 0; first <= TOKENS; first += first == 0 ? 1 : 20) {
                float logps[TOKENS], top_logps[TOKENS * TOP];
                int64_t top_tokens[TOKENS * TOP];
                sb_llm_scoring scoring = {sizeof scoring, chunks[c], first, logps, TOP, top_tokens, top_logps};
                MUST(sb_llm_session_trim(session, 0, error));
                MUST(sb_llm_score(session, TOKENS, tokens, &scoring, error));
                assert_int_equal(sb_llm_session_length(session), TOKENS);
                if (first == 0) {
                    assert_true(isnan(logps[0]) && isnan(top_logps[TOP - 1]));
                    assert_int_equal(top_tokens[0], -1);
                }
                for (int64_t i = first > 0 ? first : 1; i < TOKENS; i++) {
                    const float *before = logits + (i - 1) * VOCABULARY;
                    int64_t row = i - first;
                    assert_int_equal(bits_of(logps[row]), bits_of(sb_llm_logp(before, VOCABULARY, tokens[i])));
                    check_top(before, top_tokens + row * TOP, top_logps + row * TOP);
                }
            }
        }
        sb_llm_session_destroy(session);
    }
}

/* All of the vocabulary, in order. */
static void test_everything(void **unused) {
    (void)unused;
    static float logits[VOCABULARY];
    float logps[2], top_logps[VOCABULARY];
    int64_t top_tokens[VOCABULARY];
    sb_llm_session *session = open_session("models/qwen3", 8, 2);
    sb_llm_scoring scoring = {sizeof scoring, 0, 1, logps, VOCABULARY, top_tokens, top_logps};
    logits_before(session, 2, tokens, logits);
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_score(session, 2, tokens, &scoring, error));
    bool found[VOCABULARY] = {false};
    for (int i = 0; i < VOCABULARY; i++) {
        assert_false(found[top_tokens[i]]);
        found[top_tokens[i]] = true;
        assert_true(i == 0 || logits[top_tokens[i]] <= logits[top_tokens[i - 1]]);
    }
    sb_llm_session_destroy(session);
}

/* ---- blocks of logits ---- */

/* As docs/numerics.md, section 9, has it: one after the other. */
static sb_logp_pair block_pair(const float *logits, int64_t count, sb_logp_scale scale, bool *has_nan) {
    float lanes[SB_LOGP_LANES] = {0}, mantissas[SB_LOGP_BLOCK];
    int32_t exponents[SB_LOGP_BLOCK];
    sb_logp_pair pair = {INT32_MIN, 0};
    for (int64_t i = 0; i < count; i++) {
        float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        exponents[i] = sb_logp_exponent(shifted);
        mantissas[i] = sb_logp_mantissa(held, shifted, scale);
        *has_nan = *has_nan || logits[i] != logits[i];
        pair.maximum = exponents[i] > pair.maximum ? exponents[i] : pair.maximum;
    }
    for (int64_t i = 0; i < count && !*has_nan; i++) {
        float *lane = &lanes[sb_logp_lane(i)];
        *lane = sb_logp_add(*lane, mantissas[i], sb_logp_factor(exponents[i], pair.maximum));
    }
    pair.sum = sb_logp_fold(lanes[0], lanes[1], lanes[2], lanes[3]);
    return pair;
}

/* Every instruction set that the processor has gives the bits of plain loops, for blocks of any length with any numbers. */
static void test_blocks(void **unused) {
    (void)unused;
    static const float special[] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 1e30f, -1e30f, 1e-40f};
    uint32_t random = 1;
    for (int round = 0; round < 3000; round++) {
        float logits[SB_LOGP_BLOCK];
        int64_t count = 1 + round % SB_LOGP_BLOCK;
        for (int64_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            logits[i] = ((float)(random >> 8) / 0x1p23f - 1) * (round % 3 == 0 ? 3.0f : 300.0f);
        }
        if (round % 5 == 0)
            logits[random % (uint32_t)count] = special[round / 5 % 8];
        bool has_nan = false;
        sb_logp_scale scale = sb_logp_scale_of(1.0f);
        sb_logp_pair wanted = block_pair(logits, count, scale, &has_nan);
        for (int isa = SB_ISA_SCALAR; isa <= (int)sb_isa_detect(); isa++) {
            sb_logp_pair found = sb_llm_reduce_block_for((sb_isa)isa)(logits, count, scale);
            assert_int_equal(found.sum != found.sum, has_nan);
            assert_true(has_nan || (found.maximum == wanted.maximum && bits_of(found.sum) == bits_of(wanted.sum)));
        }
    }
}

/* ---- prompts ---- */

typedef struct told {
    int64_t count;
    float logps[TOKENS];
} told;

static sb_status hear(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    told *all = context;
    (void)stop;
    (void)error;
    assert_true(token->given && token->token == tokens[all->count] && token->has_logp == (all->count > 0));
    all->logps[all->count++] = token->logp;
    return SB_OK;
}

static void test_prompts(void **unused) {
    (void)unused;
    float logps[TOKENS];
    told all = {0};
    sb_llm_session *session = open_session("models/llama", TOKENS, 2);
    sb_llm_scoring scoring = SB_LLM_SCORING_DEFAULT;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    scoring.logps = logps;
    MUST(sb_llm_score(session, TOKENS, tokens, &scoring, error));
    MUST(sb_llm_session_trim(session, 0, error));
    generation.limit = 0;
    generation.chunk = 9;
    generation.score_prompt = true;
    generation.on_token = hear;
    generation.context = &all;
    MUST(sb_llm_generate(session, TOKENS, tokens, &generation, NULL, error));
    assert_int_equal(all.count, TOKENS);
    assert_memory_equal(all.logps + 1, logps + 1, (TOKENS - 1) * sizeof *logps);
    sb_llm_session_destroy(session);
}

static void test_refusals(void **unused) {
    (void)unused;
    float logps[TOKENS];
    int64_t wrong[TOKENS];
    sb_error error;
    sb_llm_session *session = open_session("models/llama", 20, 1);
    sb_llm_scoring scoring = SB_LLM_SCORING_DEFAULT;
    assert_int_equal(sb_llm_score(session, 5, tokens, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "no room");
    scoring.logps = logps;
    assert_int_equal(sb_llm_score(session, 21, tokens, &scoring, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "21 tokens behind 0 are more than the context of 20");
    assert_int_equal(sb_llm_score(session, 0, tokens, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    scoring.first = 6;
    assert_int_equal(sb_llm_score(session, 5, tokens, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "from token 6 of 5");
    scoring.first = 0;
    scoring.top = VOCABULARY + 1;
    assert_int_equal(sb_llm_score(session, 5, tokens, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    scoring.top = 1;
    assert_int_equal(sb_llm_score(session, 5, tokens, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    scoring.top = 0;
    /* Behind a token that there is not, the sequence is as it was, although pieces before it have run. */
    memcpy(wrong, tokens, sizeof wrong);
    wrong[9] = VOCABULARY;
    scoring.chunk = 4;
    MUST(sb_llm_score(session, 3, tokens, &scoring, error));
    assert_int_equal(sb_llm_score(session, 10, wrong, &scoring, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_session_length(session), 3);
    sb_llm_session_destroy(session);
}

/* ---- perplexity ---- */

/* Adds what a window's tokens from `scored_from` on lose. */
static void add_window(sb_llm_session *session, int64_t begin, const int64_t *text, int64_t count, int64_t scored_from,
                       double *sum, int64_t *scored) {
    static float logits[TOKENS * VOCABULARY];
    int64_t ids[TOKENS + 1], leading = begin >= 0;
    ids[0] = begin;
    memcpy(ids + leading, text, (size_t)count * sizeof *ids);
    logits_before(session, count + leading, ids, logits);
    for (int64_t i = scored_from; i < count + leading; i++) {
        *sum += -(double)sb_llm_logp(logits + (i - 1) * VOCABULARY, VOCABULARY, ids[i]);
        ++*scored;
    }
}

static void check_perplexity(sb_llm_session *session, const sb_llm_perplexity *how, int64_t count, int64_t windows,
                             double sum, int64_t scored) {
    sb_llm_perplexity_result result;
    MUST(sb_llm_measure_perplexity(session, count, tokens, how, &result, error));
    assert_int_equal(result.windows, windows);
    assert_int_equal(result.of_windows, windows);
    assert_int_equal(result.tokens, count);
    assert_int_equal(result.scored, scored);
    assert_true(result.mean == sum / (double)scored);
    assert_true(fabs(result.perplexity - exp(result.mean)) <= 1e-14 * result.perplexity);
    assert_int_equal(sb_llm_session_length(session), 0);
}

/* Windows that the test writes down: no formula of the library's. */
static void test_windows(void **unused) {
    (void)unused;
    sb_llm_session *session = open_session("models/llama", 24, 1);
    sb_llm_perplexity how = SB_LLM_PERPLEXITY_DEFAULT;
    double sum = 0;
    int64_t scored = 0;
    how.window = 10;
    how.stride = 4;
    add_window(session, -1, tokens, 10, 1, &sum, &scored); /* 0 to 9 */
    add_window(session, -1, tokens + 4, 10, 6, &sum, &scored);
    add_window(session, -1, tokens + 8, 10, 6, &sum, &scored);
    add_window(session, -1, tokens + 10, 10, 8, &sum, &scored); /* 10 to 19, which is the last */
    assert_int_equal(scored, 19);
    check_perplexity(session, &how, 20, 4, sum, scored);

    how.begin = 1;
    sum = 0, scored = 0;
    add_window(session, 1, tokens, 9, 1, &sum, &scored);
    add_window(session, 1, tokens + 4, 9, 6, &sum, &scored);
    add_window(session, 1, tokens + 8, 9, 6, &sum, &scored);
    add_window(session, 1, tokens + 11, 9, 7, &sum, &scored);
    assert_int_equal(scored, 20);
    check_perplexity(session, &how, 20, 4, sum, scored);

    how.stride = 9; /* nothing is seen twice */
    sum = 0, scored = 0;
    add_window(session, 1, tokens, 9, 1, &sum, &scored);
    add_window(session, 1, tokens + 9, 9, 1, &sum, &scored);
    add_window(session, 1, tokens + 11, 9, 8, &sum, &scored);
    assert_int_equal(scored, 20);
    check_perplexity(session, &how, 20, 3, sum, scored);
    sum = 0, scored = 0;
    add_window(session, 1, tokens, 1, 1, &sum, &scored);
    check_perplexity(session, &how, 1, 1, sum, scored);

    how.windows = SB_LLM_WINDOWS_LLAMA_CPP;
    how.stride = 0;
    sum = 0, scored = 0;
    add_window(session, 1, tokens, 9, 6, &sum, &scored);
    add_window(session, 1, tokens + 10, 9, 6, &sum, &scored); /* token 9 is where the beginning is */
    check_perplexity(session, &how, 28, 2, sum, scored);
    check_perplexity(session, &how, 19, 2, sum, scored);
    how.begin = -1;
    how.window = 7;
    sum = 0, scored = 0;
    add_window(session, -1, tokens, 7, 4, &sum, &scored);
    add_window(session, -1, tokens + 7, 7, 4, &sum, &scored);
    check_perplexity(session, &how, 20, 2, sum, scored);
    sb_llm_session_destroy(session);
}

static sb_status count_windows(void *context, const sb_llm_perplexity_result *so_far, sb_error *error) {
    assert_int_equal(so_far->windows, ++*(int64_t *)context);
    if (so_far->windows < 3)
        return SB_OK;
    error->status = SB_ERROR_INTERRUPTED;
    snprintf(error->message, sizeof error->message, "enough");
    return SB_ERROR_INTERRUPTED;
}

static void test_limits(void **unused) {
    (void)unused;
    sb_error error;
    sb_llm_session *session = open_session("models/llama", 24, 1);
    sb_llm_perplexity how = SB_LLM_PERPLEXITY_DEFAULT;
    sb_llm_perplexity_result result, first, other;
    int64_t windows = 0;
    how.window = 10;
    how.limit = 2;
    MUST(sb_llm_measure_perplexity(session, TOKENS, tokens, &how, &result, error));
    assert_int_equal(result.windows, 2);
    assert_int_equal(result.scored, 14); /* 9 and half a window */
    how.chunk = 3;
    MUST(sb_llm_measure_perplexity(session, TOKENS, tokens, &how, &other, error));
    assert_memory_equal(&result, &other, sizeof result); /* the digest, too */
    tokens[12]++;
    MUST(sb_llm_measure_perplexity(session, TOKENS, tokens, &how, &other, error));
    tokens[12]--;
    assert_true(strcmp(result.digest, other.digest) != 0 && result.error > 0);
    how.limit = 0;
    MUST(sb_llm_measure_perplexity(session, 2, tokens, &how, &first, error));
    assert_true(first.scored == 1 && isnan(first.error) && first.perplexity > 0);
    how.on_window = count_windows;
    how.context = &windows;
    assert_int_equal(sb_llm_measure_perplexity(session, TOKENS, tokens, &how, &result, &error), SB_ERROR_INTERRUPTED);
    assert_int_equal(windows, 3);

    const sb_llm_perplexity standard = SB_LLM_PERPLEXITY_DEFAULT;
    how = standard;
    how.window = 25;
    assert_int_equal(sb_llm_measure_perplexity(session, 20, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "windows of 25 positions: they may have from 2 to 24, the model's context");
    how.window = 10;
    how.stride = 10;
    assert_int_equal(sb_llm_measure_perplexity(session, 20, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "the stride may be from 1 to 9");
    how.stride = 0;
    assert_int_equal(sb_llm_measure_perplexity(session, 1, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "a text of 1 tokens has no window of 10 positions in which a token counts: take a longer text");
    how.windows = SB_LLM_WINDOWS_LLAMA_CPP;
    assert_int_equal(sb_llm_measure_perplexity(session, 9, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    how.stride = 3;
    assert_int_equal(sb_llm_measure_perplexity(session, 20, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "one behind the other");
    how.stride = 0;
    how.window = 2;
    assert_int_equal(sb_llm_measure_perplexity(session, 20, tokens, &how, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "longer windows");
    sb_llm_session_destroy(session);
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    float logps[20], top_logps[40];
    int64_t top_tokens[40];
    sb_llm_scoring scoring = {sizeof scoring, 8, 0, logps, 2, top_tokens, top_logps};
    sb_llm_perplexity how = SB_LLM_PERPLEXITY_DEFAULT;
    sb_llm_perplexity_result result;
    how.window = 10;
    options.threads = 1;
    sb_status status = sb_llm_load(context, NULL, &llm, NULL);
    if (status == SB_OK)
        status = sb_llm_session_create(llm, &options, &session, NULL);
    if (status == SB_OK)
        status = sb_llm_score(session, 20, tokens, &scoring, NULL);
    if (status == SB_OK)
        status = sb_llm_measure_perplexity(session, 20, tokens, &how, &result, NULL);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    check_failing_allocations(attempt, "models/llama3");
}

int main(void) {
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (i * 37 + i * i * 5 + 11) % (VOCABULARY - 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),   cmocka_unit_test(test_everything), cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_windows),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
