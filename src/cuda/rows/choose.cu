/* ChooseTokens and PendingTokens (ops/choose.c). Blocks look at 1,024 tokens of a row each, one for each thread; the block that has
 * finished the last of a row chooses. Whatever is put together over blocks and threads are maxima of keys and sums of whole numbers, so
 * who does it when changes no bit. Threads meet at every SB_CUDA_BARRIER. Where tokens are left out (choose_cut.cuh), the row is chosen from
 * in launches behind. */
#include "cuda/rows/choose_cut.cuh"

/* ---- a block's tokens ---- */

/* The pairs of eight blocks, each by four threads of the first warp. */
SB_CUDA_FUNCTION void reduce_pairs(const float *held, int64_t left, sb_cuda_choose_part *part) {
    const int block = (int)threadIdx.x / SB_LOGP_LANES, first = 2 * ((int)threadIdx.x % SB_LOGP_LANES);
    float logits[SB_LOGP_HELD];
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i++)
        logits[i] = held[block * SB_LOGP_BLOCK + first + sb_logp_held_column(i)];
    const sb_logp_pair pair = sb_logp_reduce_held(logits, left - block * SB_LOGP_BLOCK - first, sb_logp_scale_of(1.0f));
    if (first == 0)
        part->pairs[block] = pair;
}

SB_CUDA_FUNCTION void look(const sb_choosing *c, int64_t at, sb_cuda_choose_part *part) {
    SB_CUDA_SHARED float held[THREADS];
    const int64_t first = at * THREADS, token = first + threadIdx.x;
    const bool is_there = token < c->vocabulary;
    const float logit = is_there ? c->logits[token] : 0.0f;
    uint64_t key = 0, drawn = 0;
    held[threadIdx.x] = logit;
    if (is_there) {
        key = sb_choose_key(logit, token);
        if (c->by.temperature != 0.0f) {
            const float noisy = sb_choose_drawn(logit * c->factor, &c->by, token);
            drawn = sb_choose_drawn_key(noisy, token);
            if (c->cuts)
                c->noisy[token] = noisy;
        }
    }
    key = largest_key(key);
    drawn = largest_key(drawn);
    const int64_t odd = smallest_number(logit < sb_infinity_f32() ? c->vocabulary : token);
    if (threadIdx.x < 32)
        reduce_pairs(held, c->vocabulary - first, part);
    if (threadIdx.x == 0) {
        part->first = key;
        part->drawn = drawn;
        part->odd = odd;
    }
}

/* ---- choosing ---- */

/* What a row's parts come to. */
typedef struct sb_choose_sum {
    uint64_t first, drawn;
    int64_t odd, maximum, units;
} sb_choose_sum;

SB_CUDA_FUNCTION sb_choose_sum sum_parts(const sb_cuda_choose *p, const sb_cuda_choose_part *part) {
    const int64_t blocks = (p->vocabulary + SB_LOGP_BLOCK - 1) / SB_LOGP_BLOCK;
    sb_choose_sum all;
    all.first = all.drawn = 0;
    all.odd = p->vocabulary;
    all.maximum = INT32_MIN;
    all.units = 0;
    for (int64_t i = threadIdx.x; i < p->parts; i += THREADS) {
        all.first = LARGER(part[i].first, all.first);
        all.drawn = LARGER(part[i].drawn, all.drawn);
        all.odd = SMALLER(part[i].odd, all.odd);
    }
    all.first = largest_key(all.first);
    all.drawn = largest_key(all.drawn);
    all.odd = smallest_number(all.odd);
    if (all.odd < p->vocabulary) /* a pair with a NaN has no sum */
        return all;
    for (int64_t i = threadIdx.x; i < blocks; i += THREADS) {
        const sb_logp_pair pair = part[i / SB_CUDA_CHOOSE_PAIRS].pairs[i % SB_CUDA_CHOOSE_PAIRS];
        all.maximum = LARGER(pair.maximum, all.maximum);
    }
    all.maximum = largest_number(all.maximum);
    for (int64_t i = threadIdx.x; i < blocks; i += THREADS)
        all.units +=
            sb_logp_units(part[i / SB_CUDA_CHOOSE_PAIRS].pairs[i % SB_CUDA_CHOOSE_PAIRS], (int32_t)all.maximum);
    all.units = sum_of_numbers(all.units);
    return all;
}

SB_CUDA_FUNCTION int64_t token_of(uint64_t drawn) {
    return drawn != 0 ? sb_choose_token(drawn) : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
}

SB_CUDA_FUNCTION int64_t choose(const sb_choosing *c, const sb_choose_sum *all) {
    if (all->odd < c->vocabulary)
        return sb_choose_failed(c->logits[all->odd] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, all->odd);
    const int64_t first = sb_choose_token(all->first);
    if (!(c->logits[first] > -sb_infinity_f32()))
        return sb_choose_failed(SB_CHOOSE_NOTHING, 0);
    if (c->by.temperature == 0.0f)
        return first;
    const uint64_t drawn = c->cuts ? draw_kept(c, first) : all->drawn;
    return token_of(drawn);
}

SB_CUDA_FUNCTION bool begin(const sb_cuda_choose *p, int64_t choice, sb_choosing *c) {
    const int64_t *integers = p->integers + choice * SB_CHOOSE_INTEGER_COLUMNS;
    const float *reals = p->reals + choice * p->real_columns;
    if (!sb_choose_is_fit(integers, reals, p->real_columns, p->rows, p->slot_count))
        return false;
    c->logits = p->logits + integers[SB_CHOOSE_ROW] * p->vocabulary;
    c->vocabulary = p->vocabulary;
    c->by = sb_choose_read(integers, reals, p->real_columns);
    c->factor = c->by.temperature != 0.0f ? sb_div_f32(1.0f, c->by.temperature) : 0.0f;
    c->maximum = 0;
    c->cuts = sb_choose_cuts(c->by.top_k, c->by.top_p, c->by.min_p);
    c->noisy = p->noisy != NULL ? p->noisy + choice * p->vocabulary : NULL;
    return true;
}

/* Of two choices for a slot the later one's token stays. */
SB_CUDA_FUNCTION bool is_overwritten(const sb_cuda_choose *p, int64_t choice, int64_t slot) {
    int64_t is = 0;
    for (int64_t c = choice + 1 + threadIdx.x; c < p->choices; c += THREADS)
        is = p->integers[c * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == slot ? 1 : is;
    return largest_number(is) != 0;
}

/* Puts down what has been chosen of a row with such a sum. */
SB_CUDA_FUNCTION void put(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice, int64_t token, int64_t maximum,
                          int64_t units) {
    const int64_t slot = p->integers[choice * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT];
    const bool is_lost = is_overwritten(p, choice, slot);
    double logp = sb_nan_f64();
    if (threadIdx.x != 0)
        return;
    if (token >= 0)
        logp = (double)sb_logp_value(SB_LOGP_TARGET_VALID, c->logits[token], sb_logp_scale_of(1.0f),
                                     sb_logp_row((int32_t)maximum, units, 0), units);
    p->chosen[choice * SB_CHOOSE_CHOSEN_COLUMNS + SB_CHOOSE_TOKEN] = (double)token;
    p->chosen[choice * SB_CHOOSE_CHOSEN_COLUMNS + SB_CHOOSE_LOGP] = logp;
    if (slot >= 0 && slot < p->slot_count && !is_lost)
        p->slots[slot * p->slot_step] = token >= 0 ? token : 0;
}

/* Chooses, or, where launches behind leave tokens out, begins the row. */
SB_CUDA_FUNCTION void choose_of_parts(const sb_cuda_choose *p, int64_t choice) {
    int64_t token = sb_choose_failed(SB_CHOOSE_UNFIT, 0);
    sb_choosing c;
    sb_choose_sum all;
    all.maximum = all.units = 0;
    if (begin(p, choice, &c)) {
        all = sum_parts(p, p->part + choice * p->parts);
        const bool goes_on = p->row != NULL && c.cuts && c.by.temperature != 0.0f;
        c.cuts = c.cuts && !goes_on;
        token = choose(&c, &all);
        if (goes_on && token >= 0) { /* (where one could come of all tokens, one can of those that are kept) */
            if (threadIdx.x == 0) {
                begin_row(&c, sb_choose_token(all.first), &p->row[choice]);
                p->row[choice].logit_maximum = all.maximum;
                p->row[choice].units = all.units;
            }
            return;
        }
    }
    put(p, &c, choice, token, all.maximum, all.units);
}

/* Nothing goes on with the row, unless choose_of_parts says so. */
SB_CUDA_FUNCTION void clear_row(sb_cuda_choose_row *row) {
    for (int r = threadIdx.x; r < SB_CUDA_CHOOSE_RANGES; r += THREADS) {
        row->sums[r] = 0;
        row->counts[r] = 0;
    }
    if (threadIdx.x == 0)
        row->search.goal = SB_CHOOSE_NO_SEARCH;
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_tokens, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, at = blockIdx.x % p->parts;
    sb_choosing c;
    if (begin(p, choice, &c))
        look(&c, at, p->part + choice * p->parts + at);
    if (p->row != NULL && at == 0)
        clear_row(&p->row[choice]);
    if (p->arrived != NULL && is_last_block(p->arrived + choice, p->parts))
        choose_of_parts(p, choice);
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_of_parts, sb_cuda_choose, p, THREADS, 1) {
    choose_of_parts(p, blockIdx.x);
}

/* One step of the search that leaves tokens out, by all blocks of a row; behind the last step the search has ended. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_step, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, token = blockIdx.x % p->parts * THREADS + threadIdx.x;
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
    if (!is_last_block(p->arrived + choice, p->parts))
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
    const int64_t choice = blockIdx.x / p->parts, token = blockIdx.x % p->parts * THREADS + threadIdx.x;
    sb_cuda_choose_row *row = &p->row[choice];
    sb_choosing c;
    if (row->search.goal == SB_CHOOSE_NO_SEARCH || !begin(p, choice, &c))
        return;
    draw_block(&c, token, row);
    if (is_last_block(p->arrived + choice, p->parts))
        put(p, &c, choice, token_of(row->drawn), row->logit_maximum, row->units);
}

/* ---- PendingTokens ---- */

SB_CUDA_KERNEL(sb_cuda_pending_tokens, sb_cuda_pending, p) {
    SB_CUDA_EACH(i, p->count)
    p->to[i] = sb_choose_pending(p->tokens[i], p->slots, p->slot_step, p->slot_count);
}
