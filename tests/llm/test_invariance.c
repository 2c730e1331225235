/* A logit does not depend on the pieces in which tokens were handed over, on threads, instruction sets, passes or the format
 * of the file: 0 differing bits for every family, in every type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <samebit/llm.h>

#include "support/must.h"
#include "tiny_models.h"

enum { TOKENS = 41, VOCABULARY = 97, LOGITS = TOKENS * VOCABULARY };

static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
static int64_t tokens[TOKENS], rows[TOKENS];

typedef struct way {
    sb_dtype dtype;
    int64_t chunk;
    int threads;
    sb_isa isa;
    bool no_passes, reference;
} way;

static void run(sb_llm_session *session, int64_t chunk, const int64_t *ids, float *logits) {
    for (int64_t done = 0; done < TOKENS; done += chunk) {
        int64_t count = TOKENS - done < chunk ? TOKENS - done : chunk;
        sb_tensor *piece;
        MUST(sb_llm_step(session, count, ids + done, count, rows, &piece, error));
        assert_int_equal(sb_tensor_elements(piece), count * VOCABULARY);
        memcpy(logits + done * VOCABULARY, sb_tensor_data(piece), (size_t)(count * VOCABULARY) * sizeof *logits);
        sb_tensor_release(piece);
    }
}

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
    session.threads = how->threads;
    MUST(sb_llm_load(path, &options, &llm, error));
    MUST(sb_llm_session_create(llm, &session, &made, error));
    sb_llm_release(llm);
    return made;
}

static void logits_of(const char *path, const way *how, const int64_t *ids, float *logits) {
    sb_llm_session *session = session_of(path, how);
    run(session, how->chunk, ids, logits);
    sb_llm_session_destroy(session);
}

static void check_same(const char *name, const char *what, const float *expected, const float *found) {
    for (int i = 0; i < LOGITS; i++) {
        if (memcmp(&expected[i], &found[i], sizeof *found) != 0)
            fail_msg("%s, %s: logit %d of token %d is %a where %a is expected", name, what, i % VOCABULARY,
                     i / VOCABULARY, (double)found[i], (double)expected[i]);
    }
}

static bool has_isa(sb_isa isa) {
    sb_isa resolved;
    return sb_isa_resolve(isa, &resolved, NULL) == SB_OK;
}

static void check_family(const tiny_model *model, sb_dtype dtype) {
    static float expected[LOGITS], found[LOGITS];
    const way ways[] = {{dtype, 1, 1, SB_ISA_BEST, false, false},     {dtype, 16, 2, SB_ISA_BEST, false, false},
                        {dtype, 17, 3, SB_ISA_BEST, true, false},     {dtype, TOKENS, 1, SB_ISA_SCALAR, false, false},
                        {dtype, 17, 2, SB_ISA_AVX2, false, false},    {dtype, 16, 1, SB_ISA_BEST, false, true},
                        {dtype, TOKENS, 3, SB_ISA_BEST, false, false}};
    char path[256], what[128];
    snprintf(path, sizeof path, "models/%s", model->name);
    logits_of(path, &(way){dtype, TOKENS, 2, SB_ISA_BEST, false, false}, tokens, expected);
    for (int i = 0; i < LOGITS; i++)
        assert_true(expected[i] == expected[i]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (!has_isa(ways[i].isa))
            continue;
        logits_of(path, &ways[i], tokens, found);
        snprintf(what, sizeof what, "%s in pieces of %lld, %d threads, way %zu", sb_dtype_name(dtype),
                 (long long)ways[i].chunk, ways[i].threads, i);
        check_same(model->name, what, expected, found);
    }
    snprintf(path, sizeof path, "models/%s.gguf", model->name);
    if (model->architecture != NULL) {
        logits_of(path, &(way){dtype, 16, 2, SB_ISA_BEST, false, false}, tokens, found);
        check_same(model->name, "the GGUF file", expected, found);
    }
}

static void test_families(void **unused) {
    (void)unused;
    for (int i = 0; i < TINY_MODELS; i++) {
        for (int d = 0; d < 3; d++)
            check_family(&tiny_models[i], dtypes[d]);
    }
}

/* A cache that was cut forgets what was behind: going on gives the bits of never having been there. */
static void test_trim(void **unused) {
    (void)unused;
    static float expected[LOGITS], found[LOGITS];
    const way how = {SB_BF16, TOKENS, 2, SB_ISA_BEST, false, false};
    sb_llm_session *session = session_of("models/gemma3", &how);
    sb_tensor *logits;
    run(session, TOKENS, tokens, expected);
    MUST(sb_llm_session_trim(session, 7, error));
    int64_t other[5] = {90, 91, 92, 93, 94};
    MUST(sb_llm_step(session, 5, other, 0, NULL, &logits, error));
    assert_int_equal(sb_tensor_elements(logits), 0);
    sb_tensor_release(logits);
    MUST(sb_llm_session_trim(session, 0, error));
    run(session, 3, tokens, found);
    check_same("gemma3", "after trimming", expected, found);
    sb_llm_session_destroy(session);
}

/* The comparison sees a mistake in the order of keys: two tokens exchanged change every later logit's bits in each type. */
static void test_planted_order(void **unused) {
    (void)unused;
    static float expected[LOGITS], found[LOGITS];
    int64_t swapped[TOKENS];
    memcpy(swapped, tokens, sizeof swapped);
    swapped[3] = tokens[4];
    swapped[4] = tokens[3];
    for (int d = 0; d < 3; d++) {
        const way how = {dtypes[d], 16, 2, SB_ISA_BEST, false, false};
        logits_of("models/llama", &how, tokens, expected);
        logits_of("models/llama", &how, swapped, found);
        assert_memory_equal(expected, found, 3 * VOCABULARY * sizeof *found);
        assert_memory_not_equal(expected + 5 * VOCABULARY, found + 5 * VOCABULARY,
                                (LOGITS - 5 * VOCABULARY) * sizeof *found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_trim),
                                       cmocka_unit_test(test_planted_order)};
    for (int64_t i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 37 + i * i * 5) % VOCABULARY;
        rows[i] = i;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
