/* Leaving tokens out: the search for the key from which on they are kept. It counts, or weighs, the tokens of each range of keys, goes on with
 * the range in which the goal is reached, and so on digit by digit, from the highest one on. All sums are of whole numbers, so who adds
 * what when changes no bit.
 *
 * Two ways, to the same key. One block by itself: three bits at a time, and once a range has few tokens, with those alone. All blocks of a row:
 * eleven bits in each launch, behind which the last block takes the step; after 33 bits a range has one token, but where logits are equal or
 * nearly, and what is then left the first way ends. */
#ifndef SB_CUDA_ROWS_CHOOSE_CUT_CUH
#define SB_CUDA_ROWS_CHOOSE_CUT_CUH

#include "cuda/rows/choose_search.cuh"

#define RANGE_BITS 3
#define RANGES (1 << RANGE_BITS)

/* ---- by one block ---- */

/* The logits of a turn, divided by the temperature. */
SB_CUDA_FUNCTION void ask_for(const sb_choosing *c, int64_t first, float *scaled) {
    SB_CUDA_UNROLL
    for (int h = 0; h < HELD; h++)
        scaled[h] = first + h * THREADS < c->vocabulary ? c->logits[first + h * THREADS] : 0.0f;
    SB_CUDA_UNROLL
    for (int h = 0; h < HELD; h++)
        scaled[h] = scaled[h] * c->factor;
}

/* Sums and numbers of tokens by ranges. */
typedef struct sb_choose_ranges {
    int64_t sums[RANGES];
    int32_t counts[RANGES];
} sb_choose_ranges;

/* Of all threads of the block. */
SB_CUDA_FUNCTION void sum_ranges(const sb_choose_ranges *own, sb_choose_ranges *all) {
    SB_CUDA_SHARED int64_t found[WARPS][2 * RANGES];
    SB_CUDA_UNROLL
    for (int r = 0; r < 2 * RANGES; r++) {
        int64_t value = r < RANGES ? own->sums[r] : own->counts[r - RANGES];
        for (int half = 16; half > 0; half /= 2)
            value += (int64_t)sb_cuda_shuffle_down_u64((uint64_t)value, half, 32);
        if (threadIdx.x % 32 == 0)
            found[threadIdx.x / 32][r] = value;
    }
    SB_CUDA_BARRIER();
    if (threadIdx.x < 2 * RANGES) {
        int64_t sum = 0;
        SB_CUDA_KEEP_LOOP
        for (int warp = 0; warp < WARPS; warp++)
            sum += found[warp][threadIdx.x];
        if (threadIdx.x < RANGES)
            all->sums[threadIdx.x] = sum;
        else
            all->counts[threadIdx.x - RANGES] = (int32_t)sum;
    }
    SB_CUDA_BARRIER();
}

SB_CUDA_FUNCTION void add_token(const sb_choosing *c, bool weighs, const sb_choose_digit *digit, uint64_t key,
                                float scaled, sb_choose_ranges *ranges) {
    if (!is_in_play(digit, key))
        return;
    const uint32_t range = (uint32_t)(key >> (digit->end - digit->bits)) & ((1u << digit->bits) - 1);
    const int64_t units = weighs ? sb_choose_units(scaled, c->maximum) : 1;
    SB_CUDA_UNROLL
    for (uint32_t r = 0; r < RANGES; r++) {
        ranges->sums[r] += r == range ? units : 0;
        ranges->counts[r] += r == range;
    }
}

/* Tokens of a range, which are so few that the block has them all. */
typedef struct sb_choose_list {
    uint64_t keys[THREADS];
    uint32_t count;
} sb_choose_list;

SB_CUDA_FUNCTION void list_range(const sb_choosing *c, const sb_choose_digit *digit, sb_choose_list *list) {
    if (threadIdx.x == 0)
        list->count = 0;
    SB_CUDA_BARRIER();
    EACH_TURN(first, c->vocabulary) {
        float scaled[HELD];
        ask_for(c, first, scaled);
        EACH_TOKEN(token, h, first, c->vocabulary) {
            const uint64_t key = sb_choose_key(scaled[h], token);
            if (is_in_play(digit, key))
                list->keys[add_to(&list->count, 1)] = key;
        }
    }
    SB_CUDA_BARRIER();
}

/* Sums of the ranges, over all tokens or those of a list. */
SB_CUDA_FUNCTION void sum_tokens(const sb_choosing *c, bool weighs, const sb_choose_digit *digit,
                                 const sb_choose_list *list, sb_choose_ranges *all) {
    sb_choose_ranges own;
    SB_CUDA_UNROLL
    for (int r = 0; r < RANGES; r++) {
        own.sums[r] = 0;
        own.counts[r] = 0;
    }
    if (list == NULL) {
        EACH_TURN(first, c->vocabulary) {
            float scaled[HELD];
            ask_for(c, first, scaled);
            EACH_TOKEN(token, h, first, c->vocabulary)
            add_token(c, weighs, digit, sb_choose_key(scaled[h], token), scaled[h], &own);
        }
    } else if (threadIdx.x < list->count) {
        const uint64_t key = list->keys[threadIdx.x];
        add_token(c, weighs, digit, key, scaled_of(c, sb_choose_token(key)), &own);
    }
    sum_ranges(&own, all);
}

/* Goes on with a search over the tokens from state->least on in their order, to the key of that with which the goal is reached, which
 * becomes the least; it stays where it is not reached. Where one token is left in a range, the range's end will do. */
SB_CUDA_FUNCTION void search(const sb_choosing *c, sb_choose_search *state) {
    SB_CUDA_SHARED sb_choose_list list;
    SB_CUDA_SHARED sb_choose_ranges all;
    sb_choose_digit digit = digit_of(state);
    bool has_list = false;
    SB_CUDA_KEEP_LOOP
    while (digit.end > 0) {
        digit.bits = SMALLER(digit.end, RANGE_BITS);
        sum_tokens(c, state->goal == SB_CHOOSE_BY_WEIGHT, &digit, has_list ? &list : NULL, &all);
        if (digit.end == 64) {
            int64_t total = 0;
            SB_CUDA_KEEP_LOOP
            for (int r = 0; r < RANGES; r++)
                total += all.sums[r];
            state->enough = (double)c->by.top_p * (double)total;
            if (!is_reached(c, state, total))
                break;
        }
        int range = RANGES - 1;
        SB_CUDA_KEEP_LOOP
        while (range > 0 && !is_reached(c, state, state->before + all.sums[range]))
            state->before += all.sums[range--];
        digit.end -= digit.bits;
        digit.prefix |= (uint64_t)range << digit.end;
        const int32_t found = all.counts[range];
        SB_CUDA_BARRIER();
        if (found == 1)
            break;
        if (!has_list && found <= THREADS) {
            list_range(c, &digit, &list);
            has_list = true;
        }
    }
    state->least = LARGER(digit.prefix, state->least);
    next_search(c, state);
}

/* Ends all searches. */
SB_CUDA_FUNCTION void end_searches(const sb_choosing *c, sb_choose_search *state) {
    SB_CUDA_KEEP_LOOP
    while (state->goal < SB_CHOOSE_FOUND)
        search(c, state);
}

/* The least key behind all tokens that are too light: behind the first of them none is kept, whatever it weighs. */
SB_CUDA_FUNCTION uint64_t heavy_enough(const sb_choosing *c, float heaviest) {
    const int64_t most = sb_choose_units(heaviest, c->maximum);
    uint64_t light = 0;
    EACH_TURN(first, c->vocabulary) {
        float scaled[HELD];
        ask_for(c, first, scaled);
        EACH_TOKEN(token, h, first, c->vocabulary) {
            const uint64_t key = sb_choose_key(scaled[h], token);
            if (key > light && is_light(c, scaled[h], most))
                light = key;
        }
    }
    return largest_key(light) + 1;
}

/* The least key of those that are kept by all settings: docs/numerics.md, section 11. */
SB_CUDA_FUNCTION uint64_t least_kept(const sb_choosing *c, float heaviest) {
    sb_choose_search state;
    state.least = 0;
    begin_search(c, SB_CHOOSE_BY_NUMBER, &state);
    end_searches(c, &state);
    if (c->by.min_p == 0.0f)
        return state.least;
    const uint64_t heavy = heavy_enough(c, heaviest);
    return LARGER(heavy, state.least);
}

/* `first` is the first by logits: divided by the temperature its logit is the largest, too. */
SB_CUDA_FUNCTION uint64_t draw_kept(const sb_choosing *c, int64_t first) {
    uint64_t drawn = 0;
    sb_choosing with = *c;
    with.maximum = sb_choose_maximum(scaled_of(c, first));
    const uint64_t least = least_kept(&with, scaled_of(c, first));
    EACH_TURN(begin, c->vocabulary) {
        float scaled[HELD];
        ask_for(c, begin, scaled);
        EACH_TOKEN(token, h, begin, c->vocabulary) {
            if (sb_choose_key(scaled[h], token) >= least) {
                const uint64_t key = sb_choose_drawn_key(c->noisy[token], token);
                drawn = LARGER(key, drawn);
            }
        }
    }
    return largest_key(drawn);
}

/* ---- by all blocks of a row ---- */

/* What a block's tokens come to, by ranges. Units, below 2^40, are added in two halves: of 1,024 tokens each is below 2^31. */
typedef struct sb_choose_counts {
    uint32_t counts[SB_CUDA_CHOOSE_RANGES], low[SB_CUDA_CHOOSE_RANGES], high[SB_CUDA_CHOOSE_RANGES];
} sb_choose_counts;
#define HALF_BITS 20

/* Adds a token to the block's. */
SB_CUDA_FUNCTION void count_token(const sb_choosing *c, const sb_choose_digit *digit, bool weighs, int64_t token,
                                  float scaled, sb_choose_counts *own) {
    const uint64_t key = sb_choose_key(scaled, token);
    const uint32_t range = (uint32_t)(key >> (digit->end - digit->bits)) & ((1u << digit->bits) - 1);
    if (!is_in_play(digit, key))
        return;
    const uint64_t units = weighs ? (uint64_t)sb_choose_units(scaled, c->maximum) : 1;
    add_to(&own->counts[range], 1);
    add_to(&own->low[range], (uint32_t)(units & ((1u << HALF_BITS) - 1)));
    add_to(&own->high[range], (uint32_t)(units >> HALF_BITS));
}

/* Adds the block's tokens, of which the thread's begin with `token`, to those of the row. */
SB_CUDA_FUNCTION void count_block(const sb_choosing *c, int64_t token, sb_cuda_choose_row *row) {
    SB_CUDA_SHARED sb_choose_counts own;
    float logits[OWN];
    const sb_choose_digit digit = digit_of(&row->search);
    const bool weighs = row->search.goal == SB_CHOOSE_BY_WEIGHT;
    load_own(c->logits, token, c->vocabulary, logits);
    for (int r = threadIdx.x; r < SB_CUDA_CHOOSE_RANGES; r += THREADS)
        own.counts[r] = own.low[r] = own.high[r] = 0;
    SB_CUDA_BARRIER();
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        if (token + i < c->vocabulary)
            count_token(c, &digit, weighs, token + i, logits[i] * c->factor, &own);
    }
    SB_CUDA_BARRIER();
    for (int r = threadIdx.x; r < SB_CUDA_CHOOSE_RANGES; r += THREADS) {
        if (own.counts[r] != 0) {
            add_to(&row->counts[r], own.counts[r]);
            add_to_sum(&row->sums[r], ((int64_t)own.high[r] << HALF_BITS) + own.low[r]);
        }
    }
}

/* Ranges of a step that a thread looks at. */
#define OWN_RANGES (SB_CUDA_CHOOSE_RANGES / THREADS)

/* The range with which the goal is reached, from the last one down; 0 where it is in none of the thread's. `sum` is that of all ranges
 * behind them, and becomes that of all behind the range. */
SB_CUDA_FUNCTION int find_range(const sb_choosing *c, const sb_choose_search *state, const int64_t *sums,
                                int64_t *sum) {
    const int first = OWN_RANGES * (int)threadIdx.x;
    int64_t with = *sum;
    int found = 0;
    bool has = false;
    SB_CUDA_UNROLL
    for (int r = OWN_RANGES - 1; r >= 0; r--) {
        const int64_t before = with;
        with += sums[r];
        const bool is = !has && (is_reached(c, state, with) || first + r == 0);
        found = is ? first + r : found;
        *sum = is ? before : *sum;
        has = has || is;
    }
    return found;
}

/* Goes on with the range in which the goal is reached, by all threads of one block. */
SB_CUDA_FUNCTION void take_step(const sb_choosing *c, sb_cuda_choose_row *row) {
    SB_CUDA_SHARED int64_t before;
    const int first = OWN_RANGES * (int)threadIdx.x;
    sb_choose_search state = row->search;
    int64_t sums[OWN_RANGES], own = 0;
    SB_CUDA_UNROLL
    for (int r = 0; r < OWN_RANGES; r++) {
        sums[r] = row->sums[first + r];
        own += sums[r];
    }
    int64_t sum = state.before + sum_behind(own);
    const int64_t total = sum_of_numbers(own);
    if (state.end == 64)
        state.enough = (double)c->by.top_p * (double)total;
    bool ends = state.end == 64 && !is_reached(c, &state, total);
    if (!ends) {
        const int32_t found = find_range(c, &state, sums, &sum), range = largest_number(found);
        if (range / OWN_RANGES == (int)threadIdx.x)
            before = sum;
        SB_CUDA_BARRIER();
        state.before = before;
        state.end -= SMALLER(state.end, SB_CUDA_CHOOSE_BITS);
        state.prefix |= (uint64_t)range << state.end;
        ends = state.end == 0 || row->counts[range] == 1;
    }
    if (ends) {
        state.least = LARGER(state.prefix, state.least);
        next_search(c, &state);
    }
    SB_CUDA_BARRIER();
    SB_CUDA_UNROLL
    for (int r = 0; r < OWN_RANGES; r++) {
        row->sums[first + r] = 0;
        row->counts[first + r] = 0;
    }
    if (threadIdx.x == 0)
        row->search = state;
    SB_CUDA_BARRIER();
}

/* Begins a row, whose ranges are zeros: `logit` is the first by logits. */
SB_CUDA_FUNCTION void begin_row(const sb_choosing *c, float logit, sb_cuda_choose_row *row) {
    row->heaviest = logit * c->factor;
    row->maximum = sb_choose_maximum(row->heaviest);
    row->light = row->drawn = 0;
    row->search.least = 0;
    begin_search(c, SB_CHOOSE_BY_NUMBER, &row->search);
}

/* The block's largest key of tokens that are too light; the thread's begin with `token`. */
SB_CUDA_FUNCTION void find_light(const sb_choosing *c, int64_t token, sb_cuda_choose_row *row) {
    const int64_t most = sb_choose_units(row->heaviest, c->maximum);
    float logits[OWN];
    uint64_t light = 0;
    load_own(c->logits, token, c->vocabulary, logits);
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        const float scaled = logits[i] * c->factor;
        const uint64_t key = sb_choose_key(scaled, token + i);
        if (token + i < c->vocabulary && key > light && is_light(c, scaled, most))
            light = key;
    }
    light = largest_key(light);
    if (threadIdx.x == 0)
        raise_to(&row->light, light);
}

/* The first by noise of a block's tokens that are kept; the thread's begin with `token`. */
SB_CUDA_FUNCTION void draw_block(const sb_choosing *c, int64_t token, sb_cuda_choose_row *row) {
    uint64_t drawn = 0, least = row->search.least;
    float logits[OWN], noisy[OWN];
    load_own(c->logits, token, c->vocabulary, logits);
    load_own(c->noisy, token, c->vocabulary, noisy);
    if (c->by.min_p != 0.0f)
        least = LARGER(row->light + 1, least);
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        if (token + i < c->vocabulary && sb_choose_key(logits[i] * c->factor, token + i) >= least) {
            const uint64_t key = sb_choose_drawn_key(noisy[i], token + i);
            drawn = LARGER(key, drawn);
        }
    }
    drawn = largest_key(drawn);
    if (threadIdx.x == 0)
        raise_to(&row->drawn, drawn);
}

#endif
