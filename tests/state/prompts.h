/* Prompts of many lengths and tokens behind them, of an exported decoder, with what each run gives at exact extents on the
 * CPU. Include after cmocka.h. */
#ifndef SB_TESTS_PROMPTS_H
#define SB_TESTS_PROMPTS_H

#include "decoder.h"

#define PROMPT_RUNS 32
#define PROMPT_CAPACITY 1024
#define PROMPT_LONGEST 700

/* Tokens of each run; 0: the cache is emptied. Formulas are kept for 256 positions. */
static const int64_t prompt_tokens[PROMPT_RUNS] = {1, 1,   5, 1, 1,   255, 1, 257, 1, 300, 1, 1, 0,   700, 1, 1,
                                                   1, 300, 1, 0, 300, 1,   1, 700, 1, 0,   5, 1, 256, 1,   9, 1};

typedef struct prompt_script {
    sb_tensor *ids[PROMPT_RUNS], *logits[PROMPT_RUNS]; /* NULL where the cache is emptied */
} prompt_script;

static inline prompt_script write_prompts(sb_model *model) {
    prompt_script script = {{NULL}, {NULL}};
    random_source source = {13};
    decoder_by_hand hand;
    begin_by_hand(&hand, model);
    for (int run = 0; run < PROMPT_RUNS; run++) {
        if (prompt_tokens[run] == 0) {
            end_by_hand(&hand);
            begin_by_hand(&hand, model);
            continue;
        }
        script.ids[run] = decoder_ids(&source, prompt_tokens[run]);
        script.logits[run] = step_by_hand(&hand, script.ids[run]);
    }
    end_by_hand(&hand);
    return script;
}

static inline void drop_prompts(prompt_script *script) {
    for (int run = 0; run < PROMPT_RUNS; run++) {
        sb_tensor_release(script->ids[run]);
        sb_tensor_release(script->logits[run]);
    }
}

/* Runs the script with a state whose room behind the used rows is NaN: no run is planned for itself. */
static inline void check_prompts(const prompt_script *script, sb_session *session, sb_state *state) {
    for (int run = 0; run < PROMPT_RUNS; run++) {
        if (prompt_tokens[run] == 0) {
            MUST(sb_state_reset(state, error));
            put_nan_behind(state);
            continue;
        }
        sb_tensor *logits = bound_step(session, script->ids[run]);
        if (!sb_tensor_equal(logits, script->logits[run]))
            fail_msg("run %d, of %lld tokens, has other logits", run, (long long)prompt_tokens[run]);
        const char *why = sb_session_exact_plans(session);
        if (why[0] != '\0')
            fail_msg("run %d, of %lld tokens, was planned for itself: %s", run, (long long)prompt_tokens[run], why);
        sb_tensor_release(logits);
    }
    sb_state_counters counters;
    sb_state_count(state, &counters);
    assert_int_equal(counters.copies, 0);
    assert_int_equal(counters.updates_in_place, counters.updates);
}

/* How the symbols of a session are planned: by buckets from `tokens_least` and `past_least` on, 0 for one alone. */
typedef struct prompt_buckets {
    bool tokens; /* whether `tokens` has a capacity: else each length has a plan, which is for all pasts */
    int64_t tokens_least, past_least;
} prompt_buckets;

static const prompt_buckets prompt_kinds[] = {
    {true, 0, 0}, {true, 1, 0}, {true, 64, 32}, {false, 0, 0}, {true, 700, 1}};

enum { PROMPT_KINDS = sizeof prompt_kinds / sizeof prompt_kinds[0] };

static inline void run_prompts(sb_model *model, const prompt_script *script, sb_device *device, sb_graph_mode graphs,
                               const prompt_buckets *kind) {
    sb_state *state = decoder_state(model, device, PROMPT_CAPACITY, kind->past_least);
    sb_capacity tokens = {"tokens", PROMPT_LONGEST, kind->tokens_least};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = 1;
    options.state = state;
    options.device = device;
    options.graphs = graphs;
    options.capacity_count = kind->tokens;
    options.capacities = &tokens;
    MUST(sb_session_create(model, &options, &session, error));
    check_prompts(script, session, state);
    sb_session_destroy(session);
    sb_state_release(state);
}

#endif
