/* Many sequences in one step: 0 differing bits between a sequence alone and among any others, on any pages, in any pieces,
 * forked, trimmed, joining and leaving; what is refused; memory and pages that run out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"

#include "support/failing.h"
#include "support/must.h"
#include "tiny_models.h"

enum { VOCABULARY = 97, LONGEST = 300, MOST = 64, CONTEXT = 320 };

static uint64_t state = 1;
static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

/* ---- a text: tokens, and the logits that it has alone ---- */

typedef struct text {
    int64_t count;
    int64_t tokens[LONGEST];
    float *expected; /* [count, VOCABULARY] */
} text;

static int64_t all_rows[LONGEST];

typedef struct way {
    sb_dtype dtype;
    int threads;
    sb_isa isa;
    bool reference;
} way;

static sb_llm *load(const char *name, const way *how, int64_t context) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
    char path[256];
    sb_llm *llm;
    model.isa = how->isa;
    model.reference_only = how->reference;
    options.dtype = how->dtype;
    options.context = context;
    options.model = &model;
    snprintf(path, sizeof path, "models/%s", name);
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

static sb_llm_batch *batch_of(sb_llm *llm, const way *how, int64_t pages) {
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    session.threads = how->threads;
    options.session = &session;
    options.pages = pages;
    MUST(sb_llm_batch_create(llm, &options, &batch, error));
    return batch;
}

/* Random tokens, and what a session makes of them, all at once. */
static void make_text(sb_llm *llm, int64_t count, text *made) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_session *session;
    sb_tensor *logits;
    options.threads = 1;
    made->count = count;
    for (int64_t i = 0; i < count; i++)
        made->tokens[i] = draw(VOCABULARY);
    MUST(sb_llm_session_create(llm, &options, &session, error));
    MUST(sb_llm_step(session, count, made->tokens, count, all_rows, &logits, error));
    size_t bytes = (size_t)(count * VOCABULARY) * sizeof(float);
    made->expected = malloc(bytes);
    assert_non_null(made->expected);
    memcpy(made->expected, sb_tensor_data(logits), bytes);
    sb_tensor_release(logits);
    sb_llm_session_destroy(session);
}

static bool same_rows(const text *of, int64_t first, int64_t count, const float *found) {
    return memcmp(of->expected + first * VOCABULARY, found, (size_t)(count * VOCABULARY) * sizeof *found) == 0;
}

/* ---- mixed steps ---- */

/* A text on its way through a batch. */
typedef struct reader {
    const text *of;
    sb_llm_sequence *sequence;
    int64_t joins, chunk; /* the step from which it takes part; tokens in a step, 0: any */
} reader;

/* Of a reader that has left. */
static const text nothing;

/* A step of some of those that are not done; false when all are. `skip` leaves one in so many out. */
static bool step(sb_llm_batch *batch, int count, reader *readers, int64_t now, int64_t skip, const char *what) {
    sb_llm_step_part parts[MOST];
    int chosen[MOST], part_count = 0;
    bool any = false;
    for (int i = 0; i < count; i++) {
        reader *r = &readers[i];
        int64_t done = r->sequence != NULL ? sb_llm_sequence_length(r->sequence) : 0, left = r->of->count - done;
        any = any || left > 0;
        if (left == 0 || r->joins > now || (skip > 1 && draw(skip) == 0))
            continue;
        if (r->sequence == NULL)
            MUST(sb_llm_sequence_create(batch, &r->sequence, error));
        int64_t most = r->chunk > 0 ? r->chunk : 1 + draw(40), piece = left < most ? left : most;
        parts[part_count] = (sb_llm_step_part){r->sequence, piece, r->of->tokens + done, piece, all_rows};
        chosen[part_count++] = i;
    }
    if (part_count == 0)
        return any;
    sb_tensor *logits;
    MUST(sb_llm_batch_step(batch, part_count, parts, &logits, error));
    const float *row = sb_tensor_data(logits);
    for (int p = 0; p < part_count; p++) {
        const reader *r = &readers[chosen[p]];
        int64_t first = sb_llm_sequence_length(r->sequence) - parts[p].count;
        if (!same_rows(r->of, first, parts[p].count, row))
            fail_msg("%s: text %d of %lld tokens differs from itself alone at tokens %lld to %lld, among %d others",
                     what, chosen[p], (long long)r->of->count, (long long)first,
                     (long long)(first + parts[p].count - 1), part_count - 1);
        row += parts[p].count * VOCABULARY;
    }
    assert_int_equal(row - (const float *)sb_tensor_data(logits), sb_tensor_elements(logits));
    sb_tensor_release(logits);
    for (int i = 0; i < count; i++) { /* who is done leaves, and others take its pages */
        if (readers[i].sequence != NULL && sb_llm_sequence_length(readers[i].sequence) == readers[i].of->count &&
            draw(2) == 0) {
            sb_llm_sequence_release(readers[i].sequence);
            readers[i] = (reader){.of = &nothing};
        }
    }
    return true;
}

static void read_all(sb_llm_batch *batch, int count, reader *readers, int64_t skip, const char *what) {
    for (int64_t now = 0; step(batch, count, readers, now, skip, what); now++)
        continue;
    for (int i = 0; i < count; i++)
        sb_llm_sequence_release(readers[i].sequence);
    assert_int_equal(sb_llm_batch_free_pages(batch), sb_llm_batch_pages(batch));
}

/* Pages in an order that nobody has chosen. */
static void shuffle(sb_llm_batch *batch) {
    for (int64_t i = batch->pages.free_count - 1; i > 0; i--) {
        int64_t other = draw(i + 1), kept = batch->pages.free[i];
        batch->pages.free[i] = batch->pages.free[other];
        batch->pages.free[other] = kept;
    }
}

/* Texts of 1 to `longest` tokens, all in one batch: whole, in chunks, and each in its own way, with some left out of each step
 * and some joining late. */
static void check_mixed(const char *name, const way *how, int count, int64_t longest, int64_t context) {
    static const int64_t long_chunks[] = {512, 17, 0}, short_chunks[] = {16, 1, 0};
    text *texts = calloc((size_t)count, sizeof *texts);
    reader readers[MOST];
    char what[128];
    sb_llm *llm = load(name, how, context);
    for (int i = 0; i < count; i++)
        make_text(llm, i == 0 ? longest : 1 + draw(longest), &texts[i]);
    sb_llm_batch *batch = batch_of(llm, how, count * (longest / 16 + 1));
    for (int c = 0; c < 3; c++) {
        int64_t chunk = longest > 64 ? long_chunks[c] : short_chunks[c];
        for (int i = 0; i < count; i++)
            readers[i] = (reader){.of = &texts[i], .chunk = chunk, .joins = chunk == 0 ? draw(12) : 0};
        shuffle(batch);
        snprintf(what, sizeof what, "%s in %s, chunks of %lld, %d threads, isa %d", name, sb_dtype_name(how->dtype),
                 (long long)chunk, how->threads, (int)how->isa);
        read_all(batch, count, readers, chunk == 0 ? 3 : 1, what);
    }
    for (int i = 0; i < count; i++)
        free(texts[i].expected);
    free(texts);
    sb_llm_batch_release(batch);
    sb_llm_release(llm);
}

static bool has_isa(sb_isa isa) {
    sb_isa resolved;
    return sb_isa_resolve(isa, &resolved, NULL) == SB_OK;
}

static void test_many(void **unused) {
    (void)unused;
    check_mixed("llama", &(way){SB_BF16, 2, SB_ISA_BEST, false}, MOST, LONGEST, CONTEXT);
    check_mixed("gemma3", &(way){SB_F32, 1, SB_ISA_BEST, false}, 20, 150, CONTEXT);
}

static void test_families(void **unused) {
    (void)unused;
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
    static const sb_isa isas[] = {SB_ISA_BEST, SB_ISA_SCALAR, SB_ISA_AVX2};
    for (int m = 0; m < TINY_MODELS; m++) {
        for (int d = 0; d < 3; d++) {
            sb_isa isa = isas[(m + d) % 3];
            if (has_isa(isa))
                check_mixed(tiny_models[m].name, &(way){dtypes[d], 1 + (m + d) % 2, isa, (m + d) % 5 == 4}, 6, 40, 0);
        }
    }
}

/* ---- forks ---- */

/* Puts tokens of the text behind the sequence, up to `until`, and compares. */
static void read_until(sb_llm_batch *batch, sb_llm_sequence *sequence, const text *of, int64_t until,
                       const char *what) {
    int64_t done = sb_llm_sequence_length(sequence), count = until - done;
    const sb_llm_step_part part = {sequence, count, of->tokens + done, count, all_rows};
    sb_tensor *logits;
    MUST(sb_llm_batch_step(batch, 1, &part, &logits, error));
    if (!same_rows(of, done, count, sb_tensor_data(logits)))
        fail_msg("%s: tokens %lld to %lld differ from themselves alone", what, (long long)done, (long long)until - 1);
    sb_tensor_release(logits);
}

/* Two texts with the same first `same` tokens, of which the second begins on the first one's pages. */
static void check_fork(sb_llm *llm, sb_llm_batch *batch, int64_t same, int64_t forked_at) {
    static text first, second;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_sequence *a, *b, *c;
    char what[96];
    options.threads = 1;
    make_text(llm, 60, &first);
    free(first.expected);
    second = first;
    for (int64_t i = same; i < 60; i++)
        second.tokens[i] = (first.tokens[i] + 1 + draw(VOCABULARY - 1)) % VOCABULARY;
    for (int t = 0; t < 2; t++) {
        text *of = t == 0 ? &first : &second;
        int64_t kept[LONGEST];
        memcpy(kept, of->tokens, sizeof kept);
        sb_llm_session *session;
        sb_tensor *logits;
        MUST(sb_llm_session_create(llm, &options, &session, error));
        MUST(sb_llm_step(session, 60, kept, 60, all_rows, &logits, error));
        of->expected = malloc(60 * VOCABULARY * sizeof(float));
        memcpy(of->expected, sb_tensor_data(logits), 60 * VOCABULARY * sizeof(float));
        sb_tensor_release(logits);
        sb_llm_session_destroy(session);
    }
    snprintf(what, sizeof what, "a fork behind %lld of %lld", (long long)same, (long long)forked_at);
    MUST(sb_llm_sequence_create(batch, &a, error));
    read_until(batch, a, &first, forked_at, what);
    int64_t before = sb_llm_batch_free_pages(batch);
    MUST(sb_llm_sequence_fork(a, same, &b, error));
    MUST(sb_llm_sequence_fork(a, same, &c, error));
    assert_int_equal(sb_llm_batch_free_pages(batch), before); /* all pages are shared */
    read_until(batch, b, &second, same + 3, what);            /* each writes behind the other's back */
    if (forked_at < 60)
        read_until(batch, a, &first, forked_at + 1, what);
    read_until(batch, b, &second, 60, what);
    read_until(batch, c, &second, 50, what);
    sb_llm_sequence_release(b);
    if (forked_at < 59)
        read_until(batch, a, &first, 60, what);
    MUST(sb_llm_sequence_trim(a, same, error));
    read_until(batch, a, &second, 60, what);
    sb_llm_sequence_release(a);
    read_until(batch, c, &second, 60, what);
    sb_llm_sequence_release(c);
    assert_int_equal(sb_llm_batch_free_pages(batch), sb_llm_batch_pages(batch));
    free(first.expected);
    free(second.expected);
}

static void test_fork(void **unused) {
    (void)unused;
    for (int d = 0; d < 2; d++) {
        const way how = {d == 0 ? SB_BF16 : SB_F32, 1, SB_ISA_BEST, false};
        sb_llm *llm = load("gemma2", &how, CONTEXT);
        sb_llm_batch *batch = batch_of(llm, &how, 16);
        static const int64_t places[][2] = {{0, 20}, {1, 1}, {5, 40}, {15, 16}, {16, 16}, {16, 33}, {17, 17}, {33, 60}};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            shuffle(batch);
            check_fork(llm, batch, places[i][0], places[i][1]);
        }
        sb_llm_batch_release(batch);
        sb_llm_release(llm);
    }
}

/* ---- pages that run out ---- */

static void test_pages(void **unused) {
    (void)unused;
    const way how = {SB_F16, 1, SB_ISA_BEST, false};
    sb_llm *llm = load("qwen3", &how, CONTEXT);
    sb_llm_batch *batch = batch_of(llm, &how, 4);
    text small, large;
    sb_llm_sequence *a, *b, *c;
    sb_tensor *logits = NULL;
    sb_error error = {0};
    make_text(llm, 40, &small);
    make_text(llm, 70, &large);
    MUST(sb_llm_sequence_create(batch, &a, error));
    MUST(sb_llm_sequence_create(batch, &b, error));
    read_until(batch, a, &small, 20, "the first");
    const sb_llm_step_part both[] = {{a, 4, small.tokens + 20, 0, NULL}, {b, 70, large.tokens, 1, all_rows}};
    assert_int_equal(sb_llm_batch_step(batch, 2, both, &logits, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "part 1 of 2: 70 tokens behind 0 need 5 more pages of 16 positions, and of 4 pages 2 are free");
    ASSERT_SAYS(error, "make the batch with more pages");
    assert_int_equal(sb_llm_sequence_length(a), 20);
    assert_int_equal(sb_llm_sequence_length(b), 0);
    assert_int_equal(sb_llm_batch_free_pages(batch), 2);
    read_until(batch, a, &small, 32, "one that goes on when another could not");
    read_until(batch, b, &large, 32, "one that fits exactly");
    assert_int_equal(sb_llm_sequence_reserve(a, 1, &error), SB_ERROR_LIMIT);
    /* A fork takes no page until it writes on one that is shared. */
    MUST(sb_llm_sequence_trim(a, 31, error));
    MUST(sb_llm_sequence_fork(a, 31, &c, error));
    assert_int_equal(sb_llm_sequence_reserve(c, 1, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "need 1 more pages");
    sb_llm_sequence_release(b);
    read_until(batch, c, &small, 40, "one that others made room for");
    read_until(batch, a, &small, 32, "the one that it began as");
    sb_llm_sequence_release(c);
    MUST(sb_llm_sequence_reserve(a, 8, error));
    assert_int_equal(sb_llm_batch_free_pages(batch), 1);
    read_until(batch, a, &small, 40, "with pages taken ahead");
    sb_llm_sequence_release(a);
    free(small.expected);
    free(large.expected);
    sb_llm_batch_release(batch);
    sb_llm_release(llm);
}

/* ---- refusals ---- */

static void test_refused(void **unused) {
    (void)unused;
    const way how = {SB_F32, 1, SB_ISA_BEST, false};
    sb_llm *llm = load("llama", &how, 50);
    sb_llm_batch *batch = batch_of(llm, &how, 0), *other = batch_of(llm, &how, 1);
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_sequence *a, *b;
    sb_tensor *logits;
    sb_error error = {0};
    const int64_t tokens[] = {1, 2, VOCABULARY}, places[] = {0, 2};
    assert_int_equal(sb_llm_batch_pages(batch), 8 * 4);
    MUST(sb_llm_sequence_create(batch, &a, error));
    MUST(sb_llm_sequence_create(other, &b, error));
    const struct {
        int count;
        sb_llm_step_part parts[2];
        sb_status status;
        const char *says;
    } cases[] = {
        {0, {{0}}, SB_ERROR_INVALID_ARGUMENT, "there are no parts"},
        {1, {{b, 1, tokens, 0, NULL}}, SB_ERROR_INVALID_ARGUMENT, "of another batch"},
        {1, {{a, 0, tokens, 0, NULL}}, SB_ERROR_INVALID_ARGUMENT, "there are no tokens"},
        {1, {{a, 3, tokens, 0, NULL}}, SB_ERROR_INVALID_ARGUMENT, "token 2 of 3 is 97; the model has 97"},
        {1, {{a, 2, tokens, 2, places}}, SB_ERROR_INVALID_ARGUMENT, "logits are wanted of token 2 of 2"},
        {1, {{a, 51, all_rows, 0, NULL}}, SB_ERROR_LIMIT, "more than the context of 50"},
        {2, {{a, 1, tokens, 0, NULL}, {a, 1, tokens, 0, NULL}}, SB_ERROR_INVALID_ARGUMENT, "in two parts of one step"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sb_llm_batch_step(batch, cases[i].count, cases[i].parts, &logits, &error), cases[i].status);
        ASSERT_SAYS(error, cases[i].says);
    }
    assert_int_equal(sb_llm_sequence_trim(a, 1, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_sequence_fork(a, 1, &b, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_sequence_reserve(a, -1, &error), SB_ERROR_INVALID_ARGUMENT);
    options.pages = -1;
    assert_int_equal(sb_llm_batch_create(llm, &options, &batch, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_llm_batch_release(batch); /* sequences keep them */
    sb_llm_batch_release(other);
    sb_llm_sequence_release(a);
    sb_llm_sequence_release(b);
    sb_llm_release(llm);
}

/* ---- planted mistakes ---- */

/* The comparison sees pages in a wrong order, a page that is another's, and a shared page that is written without a copy. */
static void test_planted(void **unused) {
    (void)unused;
    for (int d = 0; d < 2; d++) {
        const way how = {d == 0 ? SB_BF16 : SB_F32, 1, SB_ISA_BEST, false};
        sb_llm *llm = load("llama", &how, CONTEXT);
        sb_llm_batch *batch = batch_of(llm, &how, 12);
        text of;
        sb_llm_sequence *a, *b;
        sb_tensor *logits;
        make_text(llm, 60, &of);
        for (int mistake = 0; mistake < 3; mistake++) {
            const sb_llm_step_part last = {NULL, 1, of.tokens + 40, 1, all_rows};
            sb_llm_step_part part = last;
            MUST(sb_llm_sequence_create(batch, &a, error));
            read_until(batch, a, &of, 40, "before");
            MUST(sb_llm_sequence_fork(a, 40, &b, error));
            if (mistake == 0) {
                int64_t page = a->pages[1];
                a->pages[1] = a->pages[2];
                a->pages[2] = page;
            } else if (mistake == 1) {
                a->pages[1] = (a->pages[1] + 6) % 12;
            } else {
                int64_t page = b->pages[2];
                batch->pages.holders[page] = 1;
                MUST(sb_llm_sequence_trim(b, 33, error));
                part = (sb_llm_step_part){b, 2, of.tokens, 0, NULL};
                MUST(sb_llm_batch_step(batch, 1, &part, &logits, error));
                sb_tensor_release(logits);
                batch->pages.holders[page] = 2;
                part = last;
            }
            part.sequence = a;
            MUST(sb_llm_batch_step(batch, 1, &part, &logits, error));
            if (same_rows(&of, 40, 1, sb_tensor_data(logits)))
                fail_msg("mistake %d in %s is not seen", mistake, sb_dtype_name(how.dtype));
            sb_tensor_release(logits);
            if (mistake == 1)
                a->pages[1] = (a->pages[1] + 6) % 12;
            sb_llm_sequence_release(a);
            sb_llm_sequence_release(b);
        }
        free(of.expected);
        sb_llm_batch_release(batch);
        sb_llm_release(llm);
    }
}

/* ---- memory ---- */

static sb_status steps(sb_llm_batch *batch, sb_llm_sequence *a, sb_llm_sequence **b) {
    static const int64_t tokens[20] = {3, 1, 4, 1, 5};
    sb_tensor *logits;
    const sb_llm_step_part alone = {a, 20, tokens, 1, all_rows};
    SB_TRY(sb_llm_batch_step(batch, 1, &alone, &logits, NULL));
    sb_tensor_release(logits);
    SB_TRY(sb_llm_sequence_fork(a, 18, b, NULL));
    const sb_llm_step_part both[] = {{a, 1, tokens, 1, all_rows}, {*b, 20, tokens, 2, all_rows}};
    SB_TRY(sb_llm_batch_step(batch, 2, both, &logits, NULL));
    sb_tensor_release(logits);
    return SB_OK;
}

static sb_status attempt(void *context) {
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    sb_llm_sequence *a = NULL, *b = NULL;
    session.threads = 1;
    options.session = &session;
    options.pages = 8;
    SB_TRY(sb_llm_batch_create(context, &options, &batch, NULL));
    sb_status status = sb_llm_sequence_create(batch, &a, NULL);
    if (status == SB_OK)
        status = steps(batch, a, &b);
    sb_llm_sequence_release(b);
    sb_llm_sequence_release(a);
    sb_llm_batch_release(batch);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    sb_llm *llm = load("llama3", &(way){SB_F32, 1, SB_ISA_BEST, false}, CONTEXT);
    assert_int_equal(attempt(llm), SB_OK); /* what the model keeps for all is there */
    check_failing_allocations(attempt, llm);
    sb_llm_release(llm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),   cmocka_unit_test(test_families), cmocka_unit_test(test_fork),
        cmocka_unit_test(test_pages),  cmocka_unit_test(test_refused),  cmocka_unit_test(test_planted),
        cmocka_unit_test(test_memory),
    };
    for (int64_t i = 0; i < LONGEST; i++)
        all_rows[i] = i;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
