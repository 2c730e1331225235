/* Kernels of Attention and PagedAttention of f32, f16 and bf16. */
#include <stdio.h>

#include "base/isa.h"
#include "cpu/attention/unit.h"
#include "cpu/list.h"
#include "ops/paged.h"

enum { Q };
enum { SCORES = 3 };

extern const sb_attention_kernels sb_attention_kernels_scalar, sb_attention_kernels_avx2, sb_attention_kernels_avx512;

const sb_attention_kernels *sb_attention_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_attention_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_attention_kernels_avx2;
#endif
    (void)isa;
    return &sb_attention_kernels_scalar;
}

static bool supports_paged(const sb_kernel_query *query, char *why) {
    const sb_dtype dtype = query->inputs[Q]->dtype;
    if (dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16)
        return true;
    snprintf(why, SB_WHY_BYTES, "%s of %s has no kernel; those of f32, f16 and bf16 have", query->node->op->name,
             sb_dtype_name(dtype));
    return false;
}

static bool supports_attention(const sb_kernel_query *query, char *why) {
    const sb_node *node = query->node;
    if (!supports_paged(query, why))
        return false;
    if (sb_attention_is_wide(node, query->inputs[Q]->dtype)) {
        snprintf(why, SB_WHY_BYTES, "Attention with a softmax_precision of f64 has no kernel");
        return false;
    }
    if (node->output_count > SCORES && node->outputs[SCORES] != SB_NO_VALUE) {
        snprintf(why, SB_WHY_BYTES, "Attention that gives out scores has no kernel");
        return false;
    }
    return true;
}

static sb_status launch_attention(sb_call *call) {
    return sb_attention_evaluate(call, sb_attention_describe, sb_attention_run_on_cpu);
}

static sb_status launch_paged(sb_call *call) {
    return sb_attention_evaluate(call, sb_paged_attention_describe, sb_attention_run_on_cpu);
}

const sb_kernel sb_cpu_kernels_attention[] = {
    {.op = "Attention", .name = "attention-blocks", .supports = supports_attention, .launch = launch_attention},
    {0},
};

const sb_kernel sb_cpu_kernels_paged[] = {
    {.op = "PagedAttention",
     .domain = "samebit",
     .name = "attention-blocks",
     .supports = supports_paged,
     .launch = launch_paged},
    {0},
};
