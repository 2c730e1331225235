/* Any bytes as a JSON schema: refused with a report, or a constraint under which a text can always go on until it is complete, with
 * tokens that each pass when they are put behind it. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "llm/constraint_tokens.h"

enum { STEPS = 60 };

/* One of the tokens whose logits are left, by the input's own bytes. */
static int64_t choose(const float *logits, uint64_t *state) {
    int64_t start = (int64_t)((*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407) >> 33);
    for (int64_t i = 0; i < CONSTRAINT_VOCABULARY; i++) {
        int64_t token = (start + i) % CONSTRAINT_VOCABULARY;
        if (logits[token] == 0)
            return token;
    }
    return -1;
}

static void follow(sb_llm_constraint *constraint, uint64_t seed) {
    sb_llm_constraint_state *state;
    FUZZ_CHECK(sb_llm_constraint_begin(constraint, &state, NULL) == SB_OK);
    for (int step = 0; step < STEPS; step++) {
        float logits[CONSTRAINT_VOCABULARY] = {0};
        int64_t allowed;
        sb_status status =
            sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY, 1, &constraint_stop, &allowed, NULL);
        if (status == SB_ERROR_LIMIT)
            break;
        FUZZ_CHECK(status == SB_OK && allowed > 0);
        int64_t token = choose(logits, &seed);
        FUZZ_CHECK(token >= 0 && (token != constraint_stop || sb_llm_constraint_is_complete(state)));
        if (token == constraint_stop)
            break;
        status = sb_llm_constraint_accept(state, token, NULL);
        FUZZ_CHECK(status == SB_OK || status == SB_ERROR_LIMIT);
        if (status != SB_OK)
            break;
    }
    sb_llm_constraint_end(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sb_tokenizer *tokenizer;
    sb_llm_constraint *constraint;
    sb_error error = {0};
    if (tokenizer == NULL) { /* with its table of bytes, which is made once */
        FUZZ_CHECK((tokenizer = make_constraint_tokenizer(&error)) != NULL);
        FUZZ_CHECK(sb_llm_constraint_create(tokenizer, "true", 4, &constraint, &error) == SB_OK);
        sb_llm_constraint_release(constraint);
    }
    int64_t before = sb_allocation_count().live_blocks;
    sb_status status = sb_llm_constraint_create(tokenizer, (const char *)data, size, &constraint, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK) {
        for (uint64_t seed = 0; seed < 3; seed++)
            follow(constraint, seed + size);
        sb_llm_constraint_release(constraint);
    }
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
