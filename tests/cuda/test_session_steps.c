/* Steps of several sequences on a device, which have more rows than are asked for (llm/step_extents.h): what comes to the host is the
 * CPU's, rows and wanted rows alike, however many there are of each, and also where memory runs out on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "ops/pages.h"
#include "session_support.h"
#include "support/failing.h"
#include "support/random.h"
#include "thorough.h"

enum { VOCABULARY = 97, CONTEXT = 64, SEQUENCES = 5, PAGES = 30, MOST_ROWS = 40 };

static sb_llm *load(const char *name, sb_dtype dtype) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    char path[512];
    sb_llm *llm;
    options.dtype = dtype;
    options.context = CONTEXT;
    options.hidden_states = true;
    snprintf(path, sizeof path, "%s/%s", LLM_MODELS, name);
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

static sb_status open_batch(sb_llm *llm, sb_device *device, sb_llm_batch **batch, sb_error *error) {
    sb_session_options session = options_on(device);
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    session.require_device = device != NULL;
    options.session = &session;
    options.pages = PAGES;
    return sb_llm_batch_create(llm, &options, batch, error);
}

/* A part of a step, for any batch. */
typedef struct part {
    int sequence;
    int64_t count, wanted_count, tokens[MOST_ROWS], wanted[MOST_ROWS];
} part;

/* Parts of some of the sequences: tokens or prompts, of which none, one or some rows are wanted. */
static int draw_parts(random_source *random, part parts[SEQUENCES]) {
    int count = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        if (random_between(random, 0, 2) == 0 && (s + 1 < SEQUENCES || count > 0))
            continue;
        part *p = &parts[count++];
        *p = (part){.sequence = s,
                    .count = random_between(random, 0, 2) == 0 ? random_between(random, 1, MOST_ROWS) : 1};
        const int64_t kind = random_between(random, 0, 5);
        for (int64_t i = 0; i < p->count; i++) {
            p->tokens[i] = random_between(random, 0, VOCABULARY - 1);
            if (kind == 1 ? random_between(random, 0, 1) == 0 : kind > 1 && i == p->count - 1)
                p->wanted[p->wanted_count++] = i;
        }
    }
    return count;
}

static sb_status run(sb_llm_batch *batch, sb_llm_sequence *const *sequences, int count, const part *parts,
                     sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    sb_llm_step_part step[SEQUENCES];
    for (int i = 0; i < count; i++)
        step[i] = (sb_llm_step_part){sequences[parts[i].sequence], parts[i].count, parts[i].tokens,
                                     parts[i].wanted_count, parts[i].wanted};
    return sb_llm_batch_run(batch, count, step, outputs, error);
}

static void check_outputs(sb_tensor *const *found, sb_tensor *const *expected) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++) {
        assert_int_equal(found[i] == NULL, expected[i] == NULL);
        if (found[i] != NULL)
            assert_true(sb_tensor_equal(found[i], expected[i]));
    }
}

static void release_outputs(sb_tensor **outputs) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(outputs[i]);
}

typedef struct side {
    sb_llm_batch *batch;
    sb_llm_sequence *sequences[SEQUENCES];
} side;

static side open_side(sb_llm *llm, sb_device *device) {
    side s;
    MUST(open_batch(llm, device, &s.batch, error));
    for (int i = 0; i < SEQUENCES; i++)
        MUST(sb_llm_sequence_create(s.batch, &s.sequences[i], error));
    return s;
}

static void close_side(side *s) {
    for (int i = 0; i < SEQUENCES; i++)
        sb_llm_sequence_release(s->sequences[i]);
    sb_llm_batch_release(s->batch);
}

static void check_model(sb_device *device, const char *name, sb_dtype dtype, int steps) {
    random_source random = {steps};
    sb_llm *llm = load(name, dtype);
    side cpu = open_side(llm, NULL), other = open_side(llm, device);
    for (int i = 0; i < steps; i++) {
        sb_tensor *expected[SB_LLM_OUTPUTS], *found[SB_LLM_OUTPUTS];
        part parts[SEQUENCES];
        int count = draw_parts(&random, parts);
        for (int p = 0; p < count; p++) { /* a sequence that would become too long begins anew */
            const int s = parts[p].sequence;
            if (sb_llm_sequence_length(cpu.sequences[s]) + parts[p].count > CONTEXT) {
                MUST(sb_llm_sequence_trim(cpu.sequences[s], 0, error));
                MUST(sb_llm_sequence_trim(other.sequences[s], 0, error));
            }
        }
        MUST(run(cpu.batch, cpu.sequences, count, parts, expected, error));
        MUST(run(other.batch, other.sequences, count, parts, found, error));
        check_outputs(found, expected);
        release_outputs(expected);
        release_outputs(found);
    }
    close_side(&cpu);
    close_side(&other);
    sb_llm_release(llm);
}

static void test_steps(void **unused) {
    setting s = start_device();
    const int steps = tests_are_thorough() ? 100 : 25;
    check_model(s.device, "llama", SB_BF16, steps);
    check_model(s.device, "gemma3", SB_F16, steps);
    check_model(s.device, "gpt2", SB_F32, steps);
    finish(&s);
}

/* Steps of 17 to 19 rows are one plan: those of 18 and 19 are launches of what was recorded of 17. Of 20, which are rows of one sequence
 * alone, it is another. */
static void test_recordings(void **unused) {
    _Static_assert(SB_LLM_NOBODY == SB_PAGES_NOBODY, "what language models tell the operators");
    setting s = start_device();
    sb_llm *llm = load("llama", SB_BF16);
    side own = open_side(llm, s.device);
    const int64_t steps[] = {17, 17, 17, 17, 18, 19, 20}; /* of the first three the last is recorded */
    for (int i = 0; i < 7; i++) {
        const int64_t rows = steps[i];
        const int64_t before = counters_of(s.device).graph_launches;
        part one = {.count = rows, .wanted_count = 1, .wanted = {rows - 1}};
        sb_tensor *outputs[SB_LLM_OUTPUTS];
        MUST(sb_llm_sequence_trim(own.sequences[0], 0, error));
        MUST(run(own.batch, own.sequences, 1, &one, outputs, error));
        release_outputs(outputs);
        assert_int_equal(counters_of(s.device).graph_launches - before, i >= 3 && rows < 20);
    }
    close_side(&own);
    sb_llm_release(llm);
    finish(&s);
}

/* ---- what fails ---- */

typedef struct attempt {
    sb_llm *llm;
    sb_device *device;
    sb_tensor *expected[SB_LLM_OUTPUTS];
} attempt;

/* Three tokens of a sequence beside one, of either the last wanted: rows and wanted rows are rounded up. */
static const part few[] = {{0, 3, 1, {5, 9, 13}, {2}}, {1, 1, 1, {44}, {0}}, {2, 1, 1, {7}, {0}}};

static sb_status try_step(void *context) {
    attempt *a = context;
    sb_llm_sequence *sequences[SEQUENCES] = {NULL};
    sb_tensor *found[SB_LLM_OUTPUTS];
    sb_llm_batch *batch;
    sb_error error;
    SB_TRY(open_batch(a->llm, a->device, &batch, &error));
    sb_status status = SB_OK;
    for (int i = 0; i < SEQUENCES && status == SB_OK; i++)
        status = sb_llm_sequence_create(batch, &sequences[i], &error);
    if (status == SB_OK)
        status = run(batch, sequences, 3, few, found, &error);
    if (status == SB_OK) {
        check_outputs(found, a->expected);
        release_outputs(found);
    }
    for (int i = 0; i < SEQUENCES; i++) {
        if (status != SB_OK && sequences[i] != NULL)
            assert_int_equal(sb_llm_sequence_length(sequences[i]), 0);
        sb_llm_sequence_release(sequences[i]);
    }
    sb_llm_batch_release(batch);
    return status;
}

static void test_allocations(void **unused) {
    setting s = start_device();
    attempt a = {load("llama", SB_F32), s.device, {NULL}};
    side cpu = open_side(a.llm, NULL);
    MUST(run(cpu.batch, cpu.sequences, 3, few, a.expected, error));
    close_side(&cpu);
    assert_int_equal(try_step(&a), SB_OK); /* what the model keeps for the device is there */
    check_some_failing_allocations(try_step, &a, tests_are_thorough() ? 1 : 3);
    release_outputs(a.expected);
    sb_llm_release(a.llm);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
