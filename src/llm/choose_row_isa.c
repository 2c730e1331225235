/* Loops over blocks of logits, compiled once per instruction set. */
#include "llm/choose_row.h"

extern const sb_choose_loops SB_ISA_NAME(sb_choose_loops);

static sb_choose_block look(const float *logits, int count) {
    int32_t largest = INT32_MIN, odd = 0;
    for (int i = 0; i < count; i++) {
        int32_t order = sb_choose_order(logits[i]);
        largest = order > largest ? order : largest;
        odd |= logits[i] < sb_infinity_f32() ? 0 : 1;
    }
    return (sb_choose_block){largest, odd != 0};
}

/* Step after step over the whole block, so that each becomes a loop of vectors. */
static void draw(const float *logits, int count, float factor, const sb_choose_settings *by, int64_t first,
                 float *noisy) {
    uint32_t words[SB_CHOOSE_BLOCK];
    float exponents[SB_CHOOSE_BLOCK];
    for (int i = 0; i < count; i++)
        words[i] = sb_choose_word(by->seed, by->request, by->position, (uint32_t)first + (uint32_t)i);
    for (int i = 0; i < count; i++)
        exponents[i] = sb_choose_exponent(sb_choose_uniform(words[i]));
    for (int i = 0; i < count; i++)
        noisy[i] = sb_choose_noisy(logits[i] * factor, exponents[i]);
}

const sb_choose_loops SB_ISA_NAME(sb_choose_loops) = {look, draw};
