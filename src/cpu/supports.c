#include "cpu/supports.h"

#include <stdio.h>

#include "ops/rows.h"

bool sb_cpu_supports_all(const sb_kernel_query *query, char *why) {
    (void)query, (void)why;
    return true;
}

bool sb_cpu_supports_small_floats(const sb_kernel_query *query, char *why) {
    const sb_dtype dtype = query->inputs[0]->dtype;
    if (sb_computing_dtype(dtype) == SB_F32)
        return true;
    snprintf(why, SB_WHY_BYTES, "%s of %s has no kernel; those of f32, f16 and bf16 have", query->node->op->name,
             sb_dtype_name(dtype));
    return false;
}
