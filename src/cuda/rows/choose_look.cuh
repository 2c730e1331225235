/* What a block's tokens come to: each warp has a block of the log-probability, of which each thread has four neighbours. */
#ifndef SB_CUDA_ROWS_CHOOSE_LOOK_CUH
#define SB_CUDA_ROWS_CHOOSE_LOOK_CUH

#include "cuda/rows/choose_block.cuh"

/* A column's term, 2^factor's exponent and what is multiplied by it. */
typedef struct sb_choose_term {
    float mantissa, factor;
} sb_choose_term;

/* The pair of the warp's block, of which `count` of the thread's columns are there (docs/numerics.md, section 9): each column's term by its
 * thread, then lanes added by four threads, and by seven others that do the same. */
SB_CUDA_FUNCTION sb_logp_pair pair_of_warp(const float *logits, int64_t count, sb_logp_scale scale) {
    SB_CUDA_SHARED __attribute__((aligned(16))) sb_choose_term terms[WARPS][SB_LOGP_BLOCK];
    const int lane = (int)threadIdx.x % 32;
    sb_choose_term *own = terms[threadIdx.x / 32];
    int32_t exponents[OWN];
    sb_logp_pair pair;
    pair.maximum = -SB_LOGP_EXPONENT_LIMIT;
    pair.sum = 0.0f;
    float words[2 * OWN];
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        const float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        exponents[i] = i < count ? sb_logp_exponent(shifted) : -SB_LOGP_EXPONENT_LIMIT;
        words[2 * i] = i < count ? sb_logp_mantissa(held, shifted, scale) : 0.0f;
        pair.maximum = LARGER(exponents[i], pair.maximum);
    }
    pair.maximum = sb_cuda_largest_s32(pair.maximum);
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++)
        words[2 * i + 1] = sb_logp_factor(exponents[i], pair.maximum);
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i += 2)
        sb_cuda_store_four((char *)&own[lane * OWN + i], sizeof(float), words + 2 * i);
    __syncwarp();
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i += 2) {
        float two[4];
        sb_cuda_load_four((const char *)&own[2 * (lane % SB_LOGP_LANES) + sb_logp_held_column(i)], sizeof(float), two);
        pair.sum = sb_logp_add(pair.sum, two[0], two[1]);
        pair.sum = sb_logp_add(pair.sum, two[2], two[3]);
    }
    /* sb_logp_fold: neighbours first. */
    pair.sum = pair.sum + sb_cuda_shuffle_exchange_f32(pair.sum, 1);
    pair.sum = pair.sum + sb_cuda_shuffle_exchange_f32(pair.sum, 2);
    return pair;
}

/* Adds a token that is drawn with such a number. */
SB_CUDA_FUNCTION void find_drawn(float noisy, float logit, int64_t token, sb_choose_found *found) {
    const uint64_t key = sb_choose_drawn_key(noisy, token);
    found->logit = key > found->drawn ? logit : found->logit;
    found->drawn = LARGER(key, found->drawn);
}

/* Between which numbers a token's noise is, by its random word. */
typedef struct sb_choose_between {
    float low, high;
} sb_choose_between;

/* Noise is -log(-log1p(-u)). -log1p(-u) is u or more, and up to 1/2 no more than 1.387 u, whose logarithm is below 0.328; u's logarithm to base 2 is
 * what its float's bits say as an integer, or up to 0.0861 more. */
SB_CUDA_FUNCTION sb_choose_between noise_between(uint32_t word) {
    const float uniform = sb_choose_uniform(word);
    const float logarithm = (float)((int32_t)sb_bits_from_f32(uniform) - 0x3f800000) * 0x1p-23f * 0.69314718f;
    sb_choose_between between;
    between.high = 0.001f - logarithm;
    between.low = uniform <= 0.5f ? -0.389f - logarithm : -sb_infinity_f32();
    return between;
}

/* Draws the warp's first token, exactly where it can be that: its number with the most noise is not below any other's with the least. */
SB_CUDA_FUNCTION void draw_first(const sb_choosing *c, const float *logits, int64_t token, int64_t count,
                                 sb_choose_found *found) {
    uint32_t words[OWN];
    int32_t most[OWN], best = INT32_MIN;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        const float scaled = logits[i] * c->factor;
        words[i] = sb_choose_word(c->by.seed, c->by.request, c->by.position, (uint32_t)(token + i));
        const sb_choose_between between = noise_between(words[i]);
        const float least = scaled + between.low;
        most[i] = sb_choose_order(scaled + between.high);
        if (i < count && least == least)
            best = LARGER(sb_choose_order(least), best);
    }
    best = sb_cuda_largest_s32(best);
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        if (i < count && most[i] >= best) {
            const float exponent = sb_choose_exponent(sb_choose_uniform(words[i]));
            find_drawn(sb_choose_noisy(logits[i] * c->factor, exponent), logits[i], token + i, found);
        }
    }
}

/* Draws all of the thread's tokens, whose numbers are kept. */
SB_CUDA_FUNCTION void draw_all(const sb_choosing *c, const float *logits, int64_t token, int64_t count) {
    float noisy[OWN];
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++)
        noisy[i] = sb_choose_drawn(logits[i] * c->factor, &c->by, token + i);
    if (are_aligned(c->noisy, token, c->vocabulary)) {
        sb_cuda_store_four((char *)(c->noisy + token), sizeof(float), noisy);
        return;
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++) {
        if (i < count)
            c->noisy[token + i] = noisy[i];
    }
}

/* Over the warp; the logit is that of the lane which alone has the key. */
SB_CUDA_FUNCTION sb_choose_found over_warp(const sb_choosing *c, const sb_choose_found *own) {
    sb_choose_found all = *own;
    all.first = largest_key_of_warp(own->first);
    all.odd = sb_cuda_smallest_s32(own->odd);
    if (c->by.temperature != 0.0f) {
        all.drawn = largest_key_of_warp(own->drawn);
        all.logit = sb_cuda_shuffle_from_f32(own->logit, sb_cuda_first_lane(own->drawn == all.drawn));
    }
    return all;
}

/* Of a row's block `at`, of which the thread has these logits. */
SB_CUDA_FUNCTION void look(const sb_choosing *c, int64_t at, const float *logits, sb_cuda_choose_part *part,
                           sb_logp_pair *pairs) {
    SB_CUDA_SHARED sb_choose_found found[WARPS];
    const int64_t token = own_tokens(at), count = c->vocabulary - token;
    const int warp = (int)threadIdx.x / 32;
    sb_choose_found own;
    own.first = own.drawn = 0;
    own.logit = 0.0f;
    own.odd = (int32_t)c->vocabulary;
    SB_CUDA_UNROLL
    for (int i = OWN - 1; i >= 0; i--) {
        const uint64_t key = i < count ? sb_choose_key(logits[i], token + i) : 0;
        own.first = LARGER(key, own.first);
        own.odd = i < count && !(logits[i] < sb_infinity_f32()) ? (int32_t)(token + i) : own.odd;
    }
    if (c->by.temperature != 0.0f && !c->cuts)
        draw_first(c, logits, token, count, &own);
    else if (c->by.temperature != 0.0f && c->noisy != NULL)
        draw_all(c, logits, token, count);
    own = over_warp(c, &own);
    const sb_logp_pair pair = pair_of_warp(logits, count, c->scale);
    if (threadIdx.x % 32 == 0) {
        found[warp] = own;
        pairs[warp] = pair;
    }
    SB_CUDA_BARRIER();
    if (warp != 0)
        return;
    own = found[threadIdx.x % WARPS];
    own = over_warp(c, &own);
    if (threadIdx.x == 0) {
        part->first = own.first;
        part->drawn = own.drawn;
        part->logit = own.logit;
        part->odd = own.odd;
    }
}

#endif
