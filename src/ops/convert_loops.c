#include "ops/convert_loops.h"

iv_walk_row *iv_convert_loop_for(iv_isa isa, iv_dtype to, iv_dtype from) {
    iv_walk_row *const(*loops)[IV_DTYPE_COUNT] = IV_PICK_LOOPS(iv_convert_loops, isa);
    if (to != from || loops[to][from] == NULL)
        return loops[to][from];
    return loops[IV_DTYPE_NONE][iv_dtype_size(to)];
}

iv_walk_row *iv_convert_loop(iv_dtype to, iv_dtype from) {
    return iv_convert_loop_for(IV_ISA_SCALAR, to, from);
}

void iv_convert_row(iv_dtype to, void *target, iv_dtype from, const void *source, int64_t step,
                    int64_t count) {
    char *data[2] = {target, (char *)(uintptr_t)source};
    int64_t steps[2] = {(int64_t)iv_dtype_size(to), step};
    iv_convert_loop(to, from)(NULL, count, data, steps);
}
