/* The log-probability of a token from the logits of all: docs/numerics.md, section 9. Blocks are added up in the processor's
 * best instruction set, whatever the model's is, since the bits are the same: in plain C, 262,144 logits take 3.5 ms, which is
 * a tenth of a small model's token; with AVX-512 0.16. */
#include "base/isa.h"
#include "llm/score.h"

/* Pairs of a row's first blocks, which are kept between the two passes over it: 524,288 tokens'. Of blocks behind them the
 * second pass makes them again. */
#define KEPT_PAIRS 4096

extern sb_llm_reduce_block sb_llm_reduce_block_scalar, sb_llm_reduce_block_avx2, sb_llm_reduce_block_avx512;

sb_llm_reduce_block *sb_llm_reduce_block_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_llm_reduce_block_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_llm_reduce_block_avx2;
#endif
    (void)isa;
    return sb_llm_reduce_block_scalar;
}

sb_llm_logp_row sb_llm_logp_row_of(const float *logits, int64_t vocabulary) {
    sb_logp_pair kept[KEPT_PAIRS];
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    int32_t maximum = INT32_MIN;
    bool has_nan = false;
    sb_llm_reduce_block *reduce = sb_llm_reduce_block_for(sb_isa_detect());
    sb_llm_logp_row row = {.units = 0};
    for (int64_t i = 0, block = 0; i < vocabulary; i += SB_LOGP_BLOCK, block++) {
        int64_t count = vocabulary - i < SB_LOGP_BLOCK ? vocabulary - i : SB_LOGP_BLOCK;
        sb_logp_pair pair = reduce(logits + i, count, scale);
        has_nan = has_nan || pair.sum != pair.sum;
        maximum = pair.maximum > maximum ? pair.maximum : maximum;
        if (block < KEPT_PAIRS)
            kept[block] = pair;
    }
    for (int64_t i = 0, block = 0; i < vocabulary && !has_nan; i += SB_LOGP_BLOCK, block++) {
        int64_t count = vocabulary - i < SB_LOGP_BLOCK ? vocabulary - i : SB_LOGP_BLOCK;
        sb_logp_pair pair = block < KEPT_PAIRS ? kept[block] : reduce(logits + i, count, scale);
        row.units += sb_logp_units(pair, maximum);
    }
    row.pair = sb_logp_row(maximum, row.units, has_nan);
    return row;
}

float sb_llm_logp_in(const sb_llm_logp_row *row, const float *logits, int64_t vocabulary, int64_t token) {
    sb_logp_target kind = sb_logp_target_kind(token, -1, vocabulary);
    if (kind != SB_LOGP_TARGET_VALID)
        return sb_nan_f32();
    return sb_logp_value(kind, logits[token], sb_logp_scale_of(1.0f), row->pair, row->units);
}

float sb_llm_logp(const float *logits, int64_t vocabulary, int64_t token) {
    sb_llm_logp_row row = sb_llm_logp_row_of(logits, vocabulary);
    return sb_llm_logp_in(&row, logits, vocabulary, token);
}
