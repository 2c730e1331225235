#include "constraint/constraint.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/allocation.h"
#include "constraint/walk.h"
#include "tokenizer/tokenizer.h"

#define MOST_SCHEMA_BYTES ((size_t)4 << 20)

struct sb_llm_constraint {
    atomic_int references;
    char *schema;
    size_t schema_bytes;
    sb_grammar grammar;
    const sb_token_trie *trie; /* the tokenizer's */
    pthread_mutex_t lock;      /* of what is walked */
    sb_walks walks;
};

struct sb_llm_constraint_state {
    sb_llm_constraint *constraint;
    sb_stacks stacks;
    bool complete;
    uint64_t *bits; /* one for each of the tokenizer's tokens */
};

/* ---- constraints ---- */

static sb_status fill(sb_llm_constraint *constraint, const sb_tokenizer *tokenizer, const char *schema, size_t bytes,
                      sb_error *error) {
    if (bytes > MOST_SCHEMA_BYTES)
        return sb_fail(error, SB_ERROR_LIMIT, "the schema has %zu bytes; up to %zu are read", bytes, MOST_SCHEMA_BYTES);
    constraint->schema = sb_allocate(bytes + 1);
    if (constraint->schema == NULL)
        return sb_fail_memory(error, bytes + 1);
    if (bytes > 0)
        memcpy(constraint->schema, schema, bytes);
    constraint->schema[bytes] = '\0';
    constraint->schema_bytes = bytes;
    SB_TRY(sb_grammar_of_schema(schema, bytes, &constraint->grammar, error));
    SB_TRY(sb_tokenizer_trie(tokenizer, &constraint->trie, error));
    constraint->walks.grammar = &constraint->grammar;
    constraint->walks.trie = constraint->trie;
    return SB_OK;
}

sb_status sb_llm_constraint_create(const sb_tokenizer *tokenizer, const char *schema, size_t bytes,
                                   sb_llm_constraint **constraint, sb_error *error) {
    sb_llm_constraint *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    if (pthread_mutex_init(&fresh->lock, NULL) != 0) {
        sb_free(fresh);
        return sb_fail_memory(error, sizeof fresh->lock);
    }
    sb_status status = fill(fresh, tokenizer, schema, bytes, error);
    if (status == SB_OK)
        *constraint = fresh;
    else
        sb_llm_constraint_release(fresh);
    return status;
}

void sb_llm_constraint_release(sb_llm_constraint *constraint) {
    if (constraint == NULL || atomic_fetch_sub_explicit(&constraint->references, 1, memory_order_acq_rel) != 1)
        return;
    sb_walks_clear(&constraint->walks);
    sb_grammar_clear(&constraint->grammar);
    pthread_mutex_destroy(&constraint->lock);
    sb_free(constraint->schema);
    sb_free(constraint);
}

const char *sb_constraint_schema(const sb_llm_constraint *constraint, size_t *bytes) {
    *bytes = constraint->schema_bytes;
    return constraint->schema;
}

const sb_token_trie *sb_constraint_trie(const sb_llm_constraint *constraint) {
    return constraint->trie;
}

/* ---- a text in progress ---- */

/* One without stacks. */
static sb_status make_state(sb_llm_constraint *constraint, sb_llm_constraint_state **state, sb_error *error) {
    size_t words = sb_constraint_words(constraint->trie->vocabulary);
    sb_llm_constraint_state *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->constraint = constraint;
    atomic_fetch_add_explicit(&constraint->references, 1, memory_order_relaxed);
    fresh->stacks.grammar = &constraint->grammar;
    fresh->bits = sb_allocate_array(words + 1, sizeof *fresh->bits);
    if (fresh->bits == NULL) {
        sb_llm_constraint_end(fresh);
        return sb_fail_memory(error, words * sizeof *fresh->bits);
    }
    *state = fresh;
    return SB_OK;
}

sb_status sb_llm_constraint_begin(sb_llm_constraint *constraint, sb_llm_constraint_state **state, sb_error *error) {
    sb_llm_constraint_state *fresh;
    SB_TRY(make_state(constraint, &fresh, error));
    const sb_grammar_rule *rule = &constraint->grammar.rules[0];
    const sb_frame base = {SB_OUTSIDE, rule->start, rule->counter, SB_MOST_NESTING};
    sb_status status = sb_stacks_add(&fresh->stacks, 0, base, false, error);
    if (status == SB_OK)
        *state = fresh;
    else
        sb_llm_constraint_end(fresh);
    return status;
}

sb_status sb_llm_constraint_copy(const sb_llm_constraint_state *state, sb_llm_constraint_state **copy,
                                 sb_error *error) {
    sb_llm_constraint_state *fresh;
    SB_TRY(make_state(state->constraint, &fresh, error));
    fresh->complete = state->complete;
    sb_status status = sb_stacks_copy(&state->stacks, &fresh->stacks, error);
    if (status == SB_OK)
        *copy = fresh;
    else
        sb_llm_constraint_end(fresh);
    return status;
}

void sb_llm_constraint_end(sb_llm_constraint_state *state) {
    if (state == NULL)
        return;
    sb_stacks_clear(&state->stacks);
    sb_free(state->bits);
    sb_llm_constraint_release(state->constraint);
    sb_free(state);
}

bool sb_llm_constraint_is_complete(const sb_llm_constraint_state *state) {
    return state->complete;
}

/* Sets made on the way lie one behind the other; going back is forgetting them. */
sb_status sb_llm_constraint_accept(sb_llm_constraint_state *state, int64_t token, sb_error *error) {
    sb_stacks *stacks = &state->stacks;
    sb_span text = sb_token_trie_bytes(state->constraint->trie, token);
    size_t tops = stacks->top_count, frames = stacks->frame_count, begin = 0, end = tops;
    sb_status status = SB_OK;
    bool passes = text.bytes > 0;
    for (size_t i = 0; i < text.bytes && status == SB_OK && passes; i++) {
        status = sb_stacks_step(stacks, begin, end, (unsigned char)text.data[i], error);
        begin = end;
        end = stacks->top_count;
        passes = end > begin || (stacks->ended && i + 1 == text.bytes);
    }
    if (status == SB_OK && !passes)
        status =
            sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld cannot come next by the schema", (long long)token);
    if (status == SB_OK) {
        bool ended = stacks->ended;
        status = sb_stacks_keep(stacks, begin, error);
        if (status == SB_OK)
            state->complete = ended;
        return status;
    }
    stacks->top_count = tops;
    stacks->frame_count = frames;
    return status;
}

/* ---- masks ---- */

sb_status sb_constraint_bits(sb_llm_constraint_state *state, uint64_t *bits, int64_t vocabulary, int stop_count,
                             const int64_t *stops, int64_t *allowed, sb_error *error) {
    sb_llm_constraint *constraint = state->constraint;
    int64_t known = constraint->trie->vocabulary;
    size_t words = sb_constraint_words(vocabulary),
           common = sb_constraint_words(vocabulary < known ? vocabulary : known);
    if (vocabulary < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a vocabulary of %lld tokens", (long long)vocabulary);
    pthread_mutex_lock(&constraint->lock);
    sb_status status = sb_walks_mask(&constraint->walks, &state->stacks, state->bits, error);
    pthread_mutex_unlock(&constraint->lock);
    SB_TRY(status);
    memcpy(bits, state->bits, common * sizeof *bits);
    memset(bits + common, 0, (words - common) * sizeof *bits);
    if (vocabulary < known && vocabulary % 64 != 0)
        bits[words - 1] &= (UINT64_C(1) << vocabulary % 64) - 1;
    for (int i = 0; i < stop_count; i++) {
        if (stops[i] < 0 || stops[i] >= vocabulary)
            continue;
        uint64_t bit = UINT64_C(1) << stops[i] % 64, *word = &bits[stops[i] / 64];
        *word = state->complete ? *word | bit : *word & ~bit;
    }
    *allowed = 0;
    for (size_t i = 0; i < words; i++)
        *allowed += __builtin_popcountll(bits[i]);
    return SB_OK;
}

void sb_constraint_apply(const uint64_t *bits, float *logits, int64_t vocabulary) {
    for (int64_t first = 0; first < vocabulary; first += 64) {
        uint64_t word = bits[first / 64];
        int64_t count = vocabulary - first < 64 ? vocabulary - first : 64;
        if (word == UINT64_MAX)
            continue;
        for (int64_t i = 0; i < count; i++)
            logits[first + i] = (word >> i & 1) != 0 ? logits[first + i] : -INFINITY;
    }
}

sb_status sb_llm_constraint_mask(sb_llm_constraint_state *state, float *logits, int64_t vocabulary, int stop_count,
                                 const int64_t *stops, int64_t *allowed, sb_error *error) {
    size_t words = sb_constraint_words(vocabulary > 0 ? vocabulary : 0);
    uint64_t *bits = sb_allocate((words + 1) * sizeof *bits);
    int64_t count;
    if (bits == NULL)
        return sb_fail_memory(error, words * sizeof *bits);
    sb_status status = sb_constraint_bits(state, bits, vocabulary, stop_count, stops, &count, error);
    if (status == SB_OK) {
        sb_constraint_apply(bits, logits, vocabulary);
        *allowed = count;
    }
    sb_free(bits);
    return status;
}
