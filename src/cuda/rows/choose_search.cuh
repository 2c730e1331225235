/* The search for the least key that is kept: what it is for, and what is in play. */
#ifndef SB_CUDA_ROWS_CHOOSE_SEARCH_CUH
#define SB_CUDA_ROWS_CHOOSE_SEARCH_CUH

#include "cuda/rows/choose_block.cuh"

/* Whether the sum of tokens in their order, a number of them or of units, is what the search is for. */
SB_CUDA_FUNCTION bool is_reached(const sb_choosing *c, const sb_choose_search *state, int64_t sum) {
    return state->goal == SB_CHOOSE_BY_WEIGHT ? (double)sum >= state->enough : sum >= c->by.top_k;
}

/* Begins the search for `goal`, or for the next one that the settings have. */
SB_CUDA_FUNCTION void begin_search(const sb_choosing *c, int32_t goal, sb_choose_search *state) {
    if (goal == SB_CHOOSE_BY_NUMBER && c->by.top_k == 0)
        goal = SB_CHOOSE_BY_WEIGHT;
    if (goal == SB_CHOOSE_BY_WEIGHT && !sb_choose_weighs(c->by.top_p, c->by.min_p))
        goal = SB_CHOOSE_FOUND;
    state->goal = goal;
    state->end = 64;
    state->prefix = 0;
    state->before = 0;
    state->enough = 0;
}

SB_CUDA_FUNCTION void next_search(const sb_choosing *c, sb_choose_search *state) {
    begin_search(c, state->goal + 1, state);
}

/* Keys in the making: those from `least` on that begin as `prefix` does, but for their lowest `end` bits, of which the upper `bits` say
 * which range it is. */
typedef struct sb_choose_digit {
    uint64_t least, prefix;
    int end, bits;
} sb_choose_digit;

SB_CUDA_FUNCTION sb_choose_digit digit_of(const sb_choose_search *state) {
    sb_choose_digit digit;
    digit.least = state->least;
    digit.prefix = state->prefix;
    digit.end = state->end;
    digit.bits = SMALLER(state->end, SB_CUDA_CHOOSE_BITS);
    return digit;
}

/* What keys have in common but for their lowest `bits`. */
SB_CUDA_FUNCTION uint64_t above(uint64_t key, int bits) {
    return bits < 64 ? key >> bits : 0;
}

SB_CUDA_FUNCTION bool is_in_play(const sb_choose_digit *digit, uint64_t key) {
    return key >= digit->least && above(key, digit->end) == above(digit->prefix, digit->end);
}

/* Whether the token with such a logit, divided by the temperature, is too light for min_p, where the heaviest weighs `most` units. */
SB_CUDA_FUNCTION bool is_light(const sb_choosing *c, float scaled, int64_t most) {
    return (double)sb_choose_units(scaled, c->maximum) < (double)c->by.min_p * (double)most;
}

#endif
