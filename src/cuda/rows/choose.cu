/* ChooseTokens and PendingTokens (ops/choose.c). Blocks look at 1,024 tokens of a row each, four for each thread; the block that has
 * finished the last of a row chooses. Whatever is put together over blocks and threads are maxima of keys and sums of whole numbers, so
 * who does it when changes no bit. Threads meet at every SB_CUDA_BARRIER. Where tokens are left out (choose_cut.cuh), the row is chosen from
 * in launches behind. */
#include "cuda/rows/choose_cut.cuh"
#include "cuda/rows/choose_look.cuh"

/* ---- a row's beginning ---- */

/* The settings of a choice; false: they are none that it can be made by. */
SB_CUDA_FUNCTION bool begin(const sb_cuda_choose *p, int64_t choice, sb_choosing *c) {
    const int64_t *integers = p->integers + choice * SB_CHOOSE_INTEGER_COLUMNS;
    const float *reals = p->reals + choice * p->real_columns;
    c->slot = integers[SB_CHOOSE_SLOT];
    c->vocabulary = p->vocabulary;
    c->scale = p->scale;
    c->is_real = true;
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

/* The same, with the logits of the thread's tokens of part `at`. Mostly they are those of the row whose number the choice has, which are
 * asked for before it is known: one wait for memory less. */
SB_CUDA_FUNCTION bool begin_part(const sb_cuda_choose *p, int64_t choice, int64_t at, sb_choosing *c, float *logits) {
    const float *guess = p->logits + SMALLER(choice, p->rows - 1) * p->vocabulary;
    const int64_t token = own_tokens(at);
    load_own(guess, token, p->vocabulary, logits);
    const bool fits = begin(p, choice, c);
    if (fits && c->logits != guess)
        load_own(c->logits, token, p->vocabulary, logits);
    return fits;
}

/* ---- choosing ---- */

/* Of two choices for a slot the later one's token stays. */
SB_CUDA_FUNCTION bool is_overwritten(const sb_cuda_choose *p, int64_t choice, int64_t slot) {
    int32_t is = 0;
    if (choice + 1 == p->choices)
        return false;
    for (int64_t c = choice + 1 + threadIdx.x; c < p->choices; c += THREADS)
        is |= p->integers[c * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == slot;
    return largest_number(is) != 0;
}

/* What a row's parts come to. */
typedef struct sb_choose_sum {
    uint64_t first, drawn;
    float logit; /* of the token drawn */
    int32_t odd, maximum;
    int64_t units;
} sb_choose_sum;

/* Pairs that a thread has at a time: two in each of so many accesses. */
#define PAIR_LOADS 4
#define PAIRS (2 * PAIR_LOADS)
#define EACH_PAIRS(first, begin, count)                                                                                \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t first = (begin) + 2 * (int64_t)threadIdx.x; first < (count); first += PAIRS * THREADS)

/* Those behind the last are such that add nothing. */
SB_CUDA_FUNCTION void load_pairs(const sb_logp_pair *pairs, int64_t first, int64_t count, sb_logp_pair *held) {
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIR_LOADS; i++) {
        const int64_t at = first + 2 * i * THREADS;
        held[2 * i].maximum = held[2 * i + 1].maximum = -SB_LOGP_EXPONENT_LIMIT;
        held[2 * i].sum = held[2 * i + 1].sum = 0.0f;
        if (at < count)
            sb_cuda_load_four((const char *)&pairs[at], sizeof(float), &held[2 * i]);
    }
}

SB_CUDA_FUNCTION int32_t largest_of_pairs(const sb_logp_pair *held, int32_t maximum) {
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIRS; i++)
        maximum = LARGER(held[i].maximum, maximum);
    return maximum;
}

SB_CUDA_FUNCTION int64_t units_of_pairs(const sb_logp_pair *held, int32_t maximum) {
    int64_t units = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIRS; i++)
        units += sb_logp_units(held[i], maximum);
    return units;
}

/* What the thread's parts come to, without their pairs; whether a later choice has the slot, whose token stays then. */
SB_CUDA_FUNCTION sb_choose_found find_in_parts(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice,
                                               int32_t *is_lost) {
    const sb_cuda_choose_part *parts = p->part + choice * p->parts;
    const int64_t count = c->is_real ? p->parts : 0, choices = c->is_real ? p->choices : 0;
    sb_choose_found found;
    found.first = found.drawn = 0;
    found.logit = 0.0f;
    found.odd = (int32_t)c->vocabulary;
    *is_lost = 0;
    SB_CUDA_KEEP_LOOP
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        const sb_cuda_choose_part part = parts[i];
        found.first = LARGER(part.first, found.first);
        found.logit = part.drawn > found.drawn ? part.logit : found.logit;
        found.drawn = LARGER(part.drawn, found.drawn);
        found.odd = SMALLER(part.odd, found.odd);
    }
    SB_CUDA_KEEP_LOOP
    for (int64_t later = choice + 1 + threadIdx.x; later < choices; later += THREADS)
        *is_lost |= p->integers[later * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == c->slot;
    return found;
}

/* Everything of a row, in the first warp; of its parts' exponents and sums in two steps, since units are relative to the largest. */
SB_CUDA_FUNCTION sb_choose_sum sum_parts(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice, bool *is_lost) {
    SB_CUDA_SHARED sb_choose_found of_warps[WARPS];
    SB_CUDA_SHARED int32_t maxima[WARPS], lost[WARPS];
    SB_CUDA_SHARED int64_t units[WARPS];
    const sb_logp_pair *pairs = p->pairs + choice * p->parts * SB_CUDA_CHOOSE_PAIRS;
    const int64_t count = c->is_real ? p->parts * SB_CUDA_CHOOSE_PAIRS : 0;
    const int warp = (int)threadIdx.x / 32, other = (int)threadIdx.x % WARPS;
    sb_logp_pair held[PAIRS];
    sb_choose_sum all;
    int32_t later;
    load_pairs(pairs, 2 * (int64_t)threadIdx.x, count, held);
    sb_choose_found found = find_in_parts(p, c, choice, &later);
    all.maximum = largest_of_pairs(held, INT32_MIN);
    EACH_PAIRS(first, PAIRS * THREADS, count) {
        sb_logp_pair more[PAIRS];
        load_pairs(pairs, first, count, more);
        all.maximum = largest_of_pairs(more, all.maximum);
    }
    found = over_warp(c, &found);
    all.maximum = sb_cuda_largest_s32(all.maximum);
    later = sb_cuda_largest_s32(later);
    if (threadIdx.x % 32 == 0) {
        of_warps[warp] = found;
        maxima[warp] = all.maximum;
        lost[warp] = later;
    }
    SB_CUDA_BARRIER();
    all.maximum = sb_cuda_largest_s32(maxima[other]);
    found = of_warps[other];
    found = over_warp(c, &found);
    *is_lost = sb_cuda_largest_s32(lost[other]) != 0;
    all.first = found.first;
    all.drawn = found.drawn;
    all.logit = found.logit;
    all.odd = found.odd;
    all.units = 0;
    if (all.odd < c->vocabulary) /* a pair with a NaN has no sum */
        return all;
    all.units = units_of_pairs(held, all.maximum);
    EACH_PAIRS(first, PAIRS * THREADS, count) {
        sb_logp_pair more[PAIRS];
        load_pairs(pairs, first, count, more);
        all.units += units_of_pairs(more, all.maximum);
    }
    all.units = sum_of_lanes(all.units, 32);
    if (threadIdx.x % 32 == 0)
        units[warp] = all.units;
    SB_CUDA_BARRIER();
    all.units = sum_of_lanes(units[other], WARPS);
    return all;
}

SB_CUDA_FUNCTION int64_t token_of(uint64_t drawn) {
    return drawn != 0 ? sb_choose_token(drawn) : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
}

/* The token that is chosen where none is left out, and its logit. */
SB_CUDA_FUNCTION int64_t choose(const sb_choosing *c, const sb_choose_sum *all, float *logit) {
    if (all->odd < c->vocabulary)
        return sb_choose_failed(c->logits[all->odd] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, all->odd);
    *logit = sb_choose_value(all->first);
    if (!(*logit > -sb_infinity_f32()))
        return sb_choose_failed(SB_CHOOSE_NOTHING, 0);
    if (c->by.temperature == 0.0f)
        return sb_choose_token(all->first);
    *logit = all->logit;
    return token_of(all->drawn);
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
    if (c->is_real && slot >= 0 && slot < p->slot_count && !is_lost)
        p->slots[slot * p->slot_step] = result->token >= 0 ? result->token : 0;
    if (result->token >= 0)
        logp = (double)sb_logp_value(SB_LOGP_TARGET_VALID, result->logit, p->scale,
                                     sb_logp_row(result->maximum, result->units, 0), result->units);
    if (c->is_real) {
        chosen[SB_CHOOSE_TOKEN] = (double)result->token;
        chosen[SB_CHOOSE_LOGP] = logp;
    }
}

/* Begins a row of which tokens are left out, and of which one can be chosen. */
SB_CUDA_FUNCTION void leave_out(const sb_choosing *c, const sb_choose_sum *all, sb_cuda_choose_row *row) {
    begin_row(c, sb_choose_value(all->first), row);
    row->logit_maximum = all->maximum;
    row->units = all->units;
}

/* Chooses from a row whose parts are there, or begins it for the launches behind. `alone`: where there are none, this block leaves tokens
 * out. */
SB_CUDA_FUNCTION void end_row(const sb_cuda_choose *p, int64_t choice, bool fits, bool alone, const sb_choosing *c) {
    sb_choose_result result;
    bool is_lost;
    if (!fits) {
        result.token = sb_choose_failed(SB_CHOOSE_UNFIT, 0);
        is_lost = is_overwritten(p, choice, c->slot);
        if (threadIdx.x == 0)
            put(p, c, choice, is_lost, &result);
        return;
    }
    const sb_choose_sum all = sum_parts(p, c, choice, &is_lost);
    result.token = choose(c, &all, &result.logit);
    result.token = c->is_real ? result.token : 0;
    result.maximum = all.maximum;
    result.units = all.units;
    /* Where one could come of all tokens, one can of those that are kept. */
    const bool leaves_out = result.token >= 0 && c->cuts && c->by.temperature != 0.0f;
    if (leaves_out && alone) {
        result.token = token_of(draw_kept(c, sb_choose_token(all.first)));
        result.logit = result.token >= 0 ? c->logits[result.token] : 0.0f;
    }
    if (threadIdx.x != 0)
        return;
    if (leaves_out && !alone)
        leave_out(c, &all, &p->row[choice]);
    else
        put(p, c, choice, is_lost, &result);
}

/* Nothing goes on with the row, unless leave_out says so. */
SB_CUDA_FUNCTION void clear_row(sb_cuda_choose_row *row) {
    SB_CUDA_KEEP_LOOP
    for (int r = threadIdx.x; r < SB_CUDA_CHOOSE_RANGES; r += THREADS) {
        row->sums[r] = 0;
        row->counts[r] = 0;
    }
    if (threadIdx.x == 0)
        row->search.goal = SB_CHOOSE_NO_SEARCH;
}

/* A choice that begin_part might find, of no tokens. */
SB_CUDA_FUNCTION void begin_walk(const sb_cuda_choose *p, sb_choosing *c, float *logits) {
    c->logits = p->logits;
    c->noisy = p->noisy;
    c->vocabulary = c->slot = 0;
    c->scale = p->scale;
    c->factor = c->by.temperature = c->by.top_p = 1.0f;
    c->by.min_p = 0.0f;
    c->by.top_k = c->by.position = 0;
    c->by.seed = c->by.request = 0;
    c->maximum = 0;
    c->cuts = c->is_real = false;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++)
        logits[i] = 0.0f;
}

SB_CUDA_BLOCK_KERNEL_EARLY(sb_cuda_choose_tokens, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, at = blockIdx.x % p->parts;
    SB_CUDA_LET_FOLLOW();
    SB_CUDA_KEEP_LOOP
    for (int turn = p->walks ? 0 : 1; turn < 2; turn++) {
        float logits[OWN];
        sb_choosing c;
        bool fits = true;
        if (turn == 0) {
            begin_walk(p, &c, logits);
        } else {
            SB_CUDA_FOLLOW();
            fits = begin_part(p, choice, at, &c, logits);
        }
        if (fits)
            look(&c, at, logits, p->part + blockIdx.x, p->pairs + blockIdx.x * SB_CUDA_CHOOSE_PAIRS);
        if (c.is_real && p->row != NULL && at == 0)
            clear_row(&p->row[choice]);
        if (p->arrived != NULL && is_last_block(p->arrived + choice, p->parts, c.is_real))
            end_row(p, choice, fits, false, &c);
    }
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_of_parts, sb_cuda_choose, p, THREADS, 1) {
    sb_choosing c;
    const bool fits = begin(p, blockIdx.x, &c);
    end_row(p, blockIdx.x, fits, true, &c);
}

/* ---- leaving tokens out ---- */

/* One step of the search that leaves tokens out, by all blocks of a row; behind the last step the search has ended. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_step, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, token = own_tokens(blockIdx.x % p->parts);
    sb_cuda_choose_row *row = &p->row[choice];
    sb_choosing c;
    if (row->search.goal == SB_CHOOSE_NO_SEARCH || !begin(p, choice, &c))
        return;
    c.maximum = row->maximum;
    if (p->step == 0 && c.by.min_p != 0.0f)
        find_light(&c, token, row);
    if (row->search.goal == SB_CHOOSE_FOUND)
        return;
    count_block(&c, token, row);
    if (!is_last_block(p->arrived + choice, p->parts, true))
        return;
    take_step(&c, row);
    if (p->step + 1 == SB_CUDA_CHOOSE_STEPS && row->search.goal != SB_CHOOSE_FOUND) {
        sb_choose_search state = row->search;
        end_searches(&c, &state);
        if (threadIdx.x == 0)
            row->search = state;
    }
}

/* Chooses from the tokens that are kept. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_kept, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, token = own_tokens(blockIdx.x % p->parts);
    sb_cuda_choose_row *row = &p->row[choice];
    sb_choosing c;
    if (row->search.goal == SB_CHOOSE_NO_SEARCH || !begin(p, choice, &c))
        return;
    draw_block(&c, token, row);
    if (!is_last_block(p->arrived + choice, p->parts, true))
        return;
    const bool is_lost = is_overwritten(p, choice, c.slot);
    if (threadIdx.x != 0)
        return;
    sb_choose_result result;
    result.token = token_of(row->drawn);
    result.logit = result.token >= 0 ? c.logits[result.token] : 0.0f;
    result.maximum = (int32_t)row->logit_maximum;
    result.units = row->units;
    put(p, &c, choice, is_lost, &result);
}

/* ---- PendingTokens ---- */

SB_CUDA_KERNEL(sb_cuda_pending_tokens, sb_cuda_pending, p) {
    SB_CUDA_EACH(i, p->count)
    p->to[i] = sb_choose_pending(p->tokens[i], p->slots, p->slot_step, p->slot_count);
}
