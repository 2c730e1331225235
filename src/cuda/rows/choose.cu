/* ChooseTokens and PendingTokens (ops/choose.c). Blocks look at 1,024 tokens of a row each, one for each thread; the block that has
 * finished the last of a row chooses. Whatever is put together over blocks and threads are maxima of keys and sums of whole numbers, so
 * who does it when changes no bit. Threads meet at every SB_CUDA_BARRIER.
 *
 * Where tokens are left out, that block searches for the key from which on they are kept: it counts, or weighs, the tokens of each of
 * eight ranges of keys, goes on with the range in which the goal is reached, three bits at a time, and once that has few tokens, with
 * those alone. */
#include "cuda/logp/logp.cuh"
#include "cuda/rows/choose_parameters.h"

#define THREADS SB_CUDA_CHOOSE_TOKENS
#define WARPS (THREADS / 32)
#define RANGE_BITS 3
#define RANGES (1 << RANGE_BITS)

/* A row that is chosen from. */
typedef struct sb_choosing {
    const float *logits;
    int64_t vocabulary;
    sb_choose_settings by;
    float factor;
    int32_t maximum; /* that weights are relative to */
    bool cuts;
    float *noisy; /* where it does: [vocabulary] */
} sb_choosing;

/* Logits that a thread asks for together: while they come, others are looked at by nobody. */
#define HELD 8

/* A thread's turns over `count` tokens: in each, HELD of them, a block apart. */
#define EACH_TURN(first, count)                                                                                        \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t first = threadIdx.x; first < (count); first += HELD * THREADS)
/* Its tokens of a turn. */
#define EACH_TOKEN(token, held, first, count)                                                                          \
    SB_CUDA_UNROLL                                                                                                     \
    for (int held = 0; held < HELD; held++)                                                                            \
        for (int64_t token = (first) + held * THREADS, again = 1; again != 0 && token < (count); again = 0)

/* ---- over a block ---- */

#define OVER_BLOCK(name, type, BETTER)                                                                                 \
    SB_CUDA_FUNCTION type name(type value) {                                                                           \
        SB_CUDA_SHARED type found[WARPS];                                                                              \
        for (int half = 16; half > 0; half /= 2) {                                                                     \
            const type other = (type)sb_cuda_shuffle_down_u64((uint64_t)value, half, 32);                              \
            value = BETTER(other, value);                                                                              \
        }                                                                                                              \
        if (threadIdx.x % 32 == 0)                                                                                     \
            found[threadIdx.x / 32] = value;                                                                           \
        SB_CUDA_BARRIER();                                                                                             \
        value = found[0];                                                                                              \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int warp = 1; warp < WARPS; warp++)                                                                       \
            value = BETTER(found[warp], value);                                                                        \
        SB_CUDA_BARRIER();                                                                                             \
        return value;                                                                                                  \
    }
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
OVER_BLOCK(largest_key, uint64_t, LARGER)
OVER_BLOCK(largest_number, int64_t, LARGER)
OVER_BLOCK(smallest_number, int64_t, SMALLER)
OVER_BLOCK(sum_of_numbers, int64_t, SUM)

/* Counts the block, behind what it has written and before what it will read. Returns how many have been before. */
SB_CUDA_FUNCTION uint32_t arrive(uint32_t *word) {
#if defined(__CUDA_ARCH__)
    __threadfence();
    const uint32_t before = atomicAdd(word, 1u);
    __threadfence();
    return before;
#else
    return (*word)++;
#endif
}

/* The next place in a list of the block's. */
SB_CUDA_FUNCTION uint32_t take_place(uint32_t *count) {
#if defined(__CUDA_ARCH__)
    return atomicAdd(count, 1u);
#else
    return (*count)++;
#endif
}

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

/* ---- leaving tokens out ---- */

/* What a sum over tokens in their order is to reach: a number of them, or of units, a part of all units that there are. */
typedef struct sb_choose_goal {
    bool weighs;
    int64_t count;
    double enough;
} sb_choose_goal;

SB_CUDA_FUNCTION bool is_reached(const sb_choose_goal *goal, int64_t sum) {
    return goal->weighs ? (double)sum >= goal->enough : sum >= goal->count;
}

SB_CUDA_FUNCTION float scaled_of(const sb_choosing *c, int64_t token) {
    return c->logits[token] * c->factor;
}

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

/* Keys in the making: those from `least` on that begin as `prefix` does, but for their lowest `end` bits, of which the upper `bits` say
 * which range it is. */
typedef struct sb_choose_digit {
    uint64_t least, prefix;
    int end, bits;
} sb_choose_digit;

/* What keys have in common but for their lowest `bits`. */
SB_CUDA_FUNCTION uint64_t above(uint64_t key, int bits) {
    return bits < 64 ? key >> bits : 0;
}

SB_CUDA_FUNCTION bool is_in_play(const sb_choose_digit *digit, uint64_t key) {
    return key >= digit->least && above(key, digit->end) == above(digit->prefix, digit->end);
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
                list->keys[take_place(&list->count)] = key;
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

/* The least key of those that are kept: of the token with which the goal is reached, among tokens from `least` on in their order; `least`
 * where it is not. Where one token is left in a range, the range's end will do. */
SB_CUDA_FUNCTION uint64_t search(const sb_choosing *c, sb_choose_goal goal, uint64_t least) {
    SB_CUDA_SHARED sb_choose_list list;
    SB_CUDA_SHARED sb_choose_ranges all;
    sb_choose_digit digit;
    int64_t before = 0;
    bool has_list = false;
    digit.least = least;
    digit.prefix = 0;
    digit.end = 64;
    SB_CUDA_KEEP_LOOP
    while (digit.end > 0) {
        digit.bits = digit.end > 1 ? RANGE_BITS : 1; /* 21 digits and a bit */
        sum_tokens(c, goal.weighs, &digit, has_list ? &list : NULL, &all);
        if (digit.end == 64) {
            int64_t total = 0;
            SB_CUDA_KEEP_LOOP
            for (int r = 0; r < RANGES; r++)
                total += all.sums[r];
            goal.enough = (double)c->by.top_p * (double)total;
            if (!is_reached(&goal, total))
                return least;
        }
        int range = RANGES - 1;
        SB_CUDA_KEEP_LOOP
        while (range > 0 && !is_reached(&goal, before + all.sums[range]))
            before += all.sums[range--];
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
    return LARGER(digit.prefix, least);
}

/* The least key behind all tokens that are too light: behind the first of them none is kept, whatever it weighs. */
SB_CUDA_FUNCTION uint64_t heavy_enough(const sb_choosing *c, float heaviest) {
    const double enough = (double)c->by.min_p * (double)sb_choose_units(heaviest, c->maximum);
    uint64_t light = 0;
    EACH_TURN(first, c->vocabulary) {
        float scaled[HELD];
        ask_for(c, first, scaled);
        EACH_TOKEN(token, h, first, c->vocabulary) {
            const uint64_t key = sb_choose_key(scaled[h], token);
            if (key > light && (double)sb_choose_units(scaled[h], c->maximum) < enough)
                light = key;
        }
    }
    return largest_key(light) + 1;
}

/* The least key of those that are kept by all settings: docs/numerics.md, section 11. */
SB_CUDA_FUNCTION uint64_t least_kept(const sb_choosing *c, float heaviest) {
    uint64_t least = 0;
    SB_CUDA_KEEP_LOOP
    for (int weighs = 0; weighs < 2; weighs++) {
        sb_choose_goal goal;
        goal.weighs = weighs != 0;
        goal.count = c->by.top_k;
        goal.enough = 0;
        if (goal.weighs ? c->by.top_p != 1.0f || c->by.min_p != 0.0f : goal.count > 0)
            least = search(c, goal, least);
    }
    if (c->by.min_p == 0.0f)
        return least;
    const uint64_t heavy = heavy_enough(c, heaviest);
    return LARGER(heavy, least);
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

SB_CUDA_FUNCTION int64_t choose(const sb_choosing *c, const sb_choose_sum *all) {
    if (all->odd < c->vocabulary)
        return sb_choose_failed(c->logits[all->odd] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, all->odd);
    const int64_t first = sb_choose_token(all->first);
    if (!(c->logits[first] > -sb_infinity_f32()))
        return sb_choose_failed(SB_CHOOSE_NOTHING, 0);
    if (c->by.temperature == 0.0f)
        return first;
    const uint64_t drawn = c->cuts ? draw_kept(c, first) : all->drawn;
    return drawn != 0 ? sb_choose_token(drawn) : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
}

SB_CUDA_FUNCTION bool begin(const sb_cuda_choose *p, int64_t choice, sb_choosing *c) {
    const int64_t *integers = p->integers + choice * SB_CHOOSE_INTEGER_COLUMNS;
    const float *reals = p->reals + choice * SB_CHOOSE_REAL_COLUMNS;
    if (!sb_choose_is_fit(integers, reals, p->rows, p->slot_count))
        return false;
    c->logits = p->logits + integers[SB_CHOOSE_ROW] * p->vocabulary;
    c->vocabulary = p->vocabulary;
    c->by = sb_choose_read(integers, reals);
    c->factor = c->by.temperature != 0.0f ? sb_div_f32(1.0f, c->by.temperature) : 0.0f;
    c->maximum = 0;
    c->cuts = sb_choose_cuts(c->by.top_k, c->by.top_p, c->by.min_p);
    c->noisy = p->noisy + choice * p->vocabulary;
    return true;
}

/* Of two choices for a slot the later one's token stays. */
SB_CUDA_FUNCTION bool is_overwritten(const sb_cuda_choose *p, int64_t choice, int64_t slot) {
    int64_t is = 0;
    for (int64_t c = choice + 1 + threadIdx.x; c < p->choices; c += THREADS)
        is = p->integers[c * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == slot ? 1 : is;
    return largest_number(is) != 0;
}

SB_CUDA_FUNCTION void choose_of_parts(const sb_cuda_choose *p, int64_t choice) {
    int64_t token = sb_choose_failed(SB_CHOOSE_UNFIT, 0);
    const int64_t slot = p->integers[choice * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT];
    double logp = sb_nan_f64();
    sb_choosing c;
    if (begin(p, choice, &c)) {
        const sb_choose_sum all = sum_parts(p, p->part + choice * p->parts);
        token = choose(&c, &all);
        if (token >= 0)
            logp = (double)sb_logp_value(SB_LOGP_TARGET_VALID, c.logits[token], sb_logp_scale_of(1.0f),
                                         sb_logp_row((int32_t)all.maximum, all.units, 0), all.units);
    }
    const bool is_lost = is_overwritten(p, choice, slot);
    if (threadIdx.x != 0)
        return;
    p->chosen[choice * SB_CHOOSE_CHOSEN_COLUMNS + SB_CHOOSE_TOKEN] = (double)token;
    p->chosen[choice * SB_CHOOSE_CHOSEN_COLUMNS + SB_CHOOSE_LOGP] = logp;
    if (slot >= 0 && slot < p->slot_count && !is_lost)
        p->slots[slot * p->slot_step] = token >= 0 ? token : 0;
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_tokens, sb_cuda_choose, p, THREADS, 1) {
    SB_CUDA_SHARED int is_last;
    const int64_t choice = blockIdx.x / p->parts, at = blockIdx.x % p->parts;
    sb_choosing c;
    if (begin(p, choice, &c))
        look(&c, at, p->part + choice * p->parts + at);
    if (p->arrived == NULL)
        return;
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0) {
        is_last = arrive(p->arrived + choice) + 1 == (uint32_t)p->parts;
        if (is_last)
            p->arrived[choice] = 0;
    }
    SB_CUDA_BARRIER();
    if (is_last)
        choose_of_parts(p, choice);
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_of_parts, sb_cuda_choose, p, THREADS, 1) {
    choose_of_parts(p, blockIdx.x);
}

/* ---- PendingTokens ---- */

SB_CUDA_KERNEL(sb_cuda_pending_tokens, sb_cuda_pending, p) {
    SB_CUDA_EACH(i, p->count)
    p->to[i] = sb_choose_pending(p->tokens[i], p->slots, p->slot_step, p->slot_count);
}
