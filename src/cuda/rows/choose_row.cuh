/* How choosing from a row begins, what it comes to, and where that goes. */
#ifndef SB_CUDA_ROWS_CHOOSE_ROW_CUH
#define SB_CUDA_ROWS_CHOOSE_ROW_CUH

#include "cuda/rows/choose_sum.cuh"

/* The settings of a choice; false: they are none that it can be made by. */
SB_CUDA_FUNCTION bool begin(const sb_cuda_choose *p, int64_t choice, sb_choosing *c) {
    const int64_t *integers = p->integers + choice * SB_CHOOSE_INTEGER_COLUMNS;
    const float *reals = p->reals + choice * p->real_columns;
    c->slot = integers[SB_CHOOSE_SLOT];
    c->vocabulary = p->vocabulary;
    c->scale = p->scale;
    if (!sb_choose_is_fit(integers, reals, p->real_columns, p->rows, p->slot_count))
        return false;
    c->logits = p->logits + integers[SB_CHOOSE_ROW] * p->vocabulary;
    c->by = sb_choose_read(integers, reals, p->real_columns);
    c->factor = c->by.temperature != 0.0f ? sb_div_f32(1.0f, c->by.temperature) : 0.0f;
    c->maximum = 0;
    c->cuts = sb_choose_cuts(c->by.top_k, c->by.top_p, c->by.min_p);
    c->noisy = p->noisy != NULL ? p->noisy + choice * p->vocabulary : NULL;
    return true;
}

/* Of two choices for a slot the later one's token stays. `found` is the block's. */
SB_CUDA_FUNCTION bool is_overwritten(const sb_cuda_choose *p, int64_t choice, int64_t slot, int32_t *found) {
    int32_t is = 0;
    if (choice + 1 == p->choices)
        return false;
    for (int64_t c = choice + 1 + threadIdx.x; c < p->choices; c += THREADS)
        is |= p->integers[c * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == slot;
    return largest_number_by(found, is) != 0;
}

SB_CUDA_FUNCTION int64_t token_of(uint64_t drawn) {
    return drawn != 0 ? sb_choose_token(drawn) : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
}

/* Why none can be chosen, as a number below 0; else 0. */
SB_CUDA_FUNCTION int64_t failure_of(const sb_choosing *c, const sb_choose_sum *all) {
    if (all->found.odd < c->vocabulary)
        return sb_choose_failed(c->logits[all->found.odd] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, all->found.odd);
    return sb_choose_value(all->found.first) > -sb_infinity_f32() ? 0 : sb_choose_failed(SB_CHOOSE_NOTHING, 0);
}

/* Whether tokens are left out before one is drawn. */
SB_CUDA_FUNCTION bool does_leave_out(const sb_choosing *c, const sb_choose_sum *all) {
    return c->cuts && c->by.temperature != 0.0f && failure_of(c, all) == 0;
}

/* The token that is chosen where none is left out, and its logit. */
SB_CUDA_FUNCTION int64_t choose(const sb_choosing *c, const sb_choose_sum *all, float *logit) {
    const int64_t failure = failure_of(c, all);
    if (failure < 0)
        return failure;
    *logit = sb_choose_value(all->found.first);
    if (c->by.temperature == 0.0f)
        return sb_choose_token(all->found.first);
    *logit = all->found.logit;
    return token_of(all->found.drawn);
}

/* A choice's result, but for its place. */
typedef struct sb_choose_result {
    int64_t token, units;
    int32_t maximum;
    float logit; /* the token's, if there is one */
} sb_choose_result;

/* Puts down what has been chosen, by one thread. */
SB_CUDA_FUNCTION void put(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice, bool is_lost,
                          const sb_choose_result *result) {
    const int64_t slot = c->slot;
    double *chosen = p->chosen + choice * SB_CHOOSE_CHOSEN_COLUMNS, logp = sb_nan_f64();
    if (slot >= 0 && slot < p->slot_count && !is_lost)
        p->slots[slot * p->slot_step] = result->token >= 0 ? result->token : 0;
    if (result->token >= 0)
        logp = (double)sb_logp_value(SB_LOGP_TARGET_VALID, result->logit, p->scale,
                                     sb_logp_row(result->maximum, result->units, 0), result->units);
    chosen[SB_CHOOSE_TOKEN] = (double)result->token;
    chosen[SB_CHOOSE_LOGP] = logp;
}

#endif
