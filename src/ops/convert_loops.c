#include "ops/convert_loops.h"

sb_walk_row *sb_convert_loop_for(sb_isa isa, sb_dtype to, sb_dtype from) {
    sb_walk_row *const(*loops)[SB_DTYPE_COUNT] = SB_PICK_LOOPS(sb_convert_loops, isa);
    if (to != from || loops[to][from] == NULL)
        return loops[to][from];
    return loops[SB_DTYPE_NONE][sb_dtype_size(to)];
}

sb_walk_row *sb_convert_loop(sb_dtype to, sb_dtype from) {
    return sb_convert_loop_for(SB_ISA_SCALAR, to, from);
}

void sb_convert_row(sb_dtype to, void *target, sb_dtype from, const void *source, int64_t step, int64_t count) {
    char *data[2] = {target, (char *)(uintptr_t)source};
    int64_t steps[2] = {(int64_t)sb_dtype_size(to), step};
    sb_convert_loop(to, from)(NULL, count, data, steps);
}
