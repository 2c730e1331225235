#include "ops/convert_loops.h"

#include "ops/convert_values.h"

/* ---- the small types ---- */

/* Conversions from and to small types go through f32 or s8, in at most three loops. */
#define CHUNK 256
#define MOST_STAGES 3

typedef struct stage {
    sb_walk_row *loop;
    size_t size; /* of an element of the result */
} stage;

typedef struct path {
    stage stages[MOST_STAGES];
    int count;
    sb_dtype at; /* what the last stage gives */
} path;

static bool is_small_integer(sb_dtype dtype) {
    return (SB_SET(dtype) & SB_SET_SMALL_INTEGER) != 0;
}

/* To f32 rounded to odd, for types that f32 does not hold exactly. */
#define TO_ODD(from, from_type, kind, load)                                                                            \
    static inline float odd_##from(from_type value) {                                                                  \
        return SB_TO_odd_FROM_##kind(SB_FROM_##kind(load(value)));                                                     \
    }                                                                                                                  \
    SB_UNARY_LOOP(to_odd_##from, void, float, from_type, odd_##from)
TO_ODD(u32, uint32_t, u64, SB_SAME)
TO_ODD(u64, uint64_t, u64, SB_SAME)
TO_ODD(s32, int32_t, s32, SB_SAME)
TO_ODD(s64, int64_t, s64, SB_SAME)
TO_ODD(f64, double, f64, SB_SAME)
#undef TO_ODD

static sb_walk_row *const to_odd[SB_DTYPE_COUNT] = {
    [SB_U32] = to_odd_u32, [SB_U64] = to_odd_u64, [SB_S32] = to_odd_s32, [SB_S64] = to_odd_s64, [SB_F64] = to_odd_f64};

static void append(path *path, sb_walk_row *loop, sb_dtype to) {
    path->stages[path->count++] = (stage){loop, sb_dtype_size(to)};
    path->at = to;
}

/* One more loop, unless there is nothing to convert. */
static void step(path *path, sb_isa isa, sb_dtype to) {
    if (path->at != to)
        append(path, SB_PICK_LOOPS(sb_convert_loops, isa)[to][path->at], to);
}

static path find_path(sb_isa isa, const sb_conversion *conversion) {
    path found = {.at = conversion->from};
    if (sb_dtype_is_small(found.at))
        step(&found, isa, is_small_integer(found.at) ? SB_S8 : SB_F32);
    if (is_small_integer(conversion->to)) {
        step(&found, isa, sb_dtype_is_float(found.at) ? SB_S32 : SB_S8);
    } else if (sb_dtype_is_small(conversion->to)) {
        if (to_odd[found.at] != NULL)
            append(&found, to_odd[found.at], SB_F32);
        step(&found, isa, SB_F32);
    }
    step(&found, isa, conversion->to);
    return found;
}

/* A small type is on at least one side, and they differ. */
static void convert_small(sb_isa isa, void *context, int64_t count, char *const *data, const int64_t *steps) {
    const path path = find_path(isa, context);
    float wide[2][CHUNK]; /* no stage but the last gives more than 4 bytes an element */
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        char *operands[2] = {NULL, data[1] + start * steps[1]};
        int64_t distances[2] = {0, steps[1]};
        for (int i = 0; i < path.count; i++) {
            bool last = i == path.count - 1;
            operands[0] = last ? data[0] + start * steps[0] : (char *)wide[i % 2];
            distances[0] = last ? steps[0] : (int64_t)path.stages[i].size;
            path.stages[i].loop(context, size, operands, distances);
            operands[1] = operands[0];
            distances[1] = distances[0];
        }
    }
}

static void convert_small_scalar(void *context, int64_t count, char *const *data, const int64_t *steps) {
    convert_small(SB_ISA_SCALAR, context, count, data, steps);
}

static void convert_small_avx2(void *context, int64_t count, char *const *data, const int64_t *steps) {
    convert_small(SB_ISA_AVX2, context, count, data, steps);
}

static void convert_small_avx512(void *context, int64_t count, char *const *data, const int64_t *steps) {
    convert_small(SB_ISA_AVX512, context, count, data, steps);
}

/* ---- all types ---- */

sb_walk_row *sb_convert_loop_for(sb_isa isa, sb_dtype to, sb_dtype from) {
    sb_walk_row *const(*loops)[SB_DTYPE_COUNT] = SB_PICK_LOOPS(sb_convert_loops, isa);
    if (to == SB_STRING || from == SB_STRING || sb_dtype_size(to) == 0 || sb_dtype_size(from) == 0)
        return NULL;
    if (to == from)
        return loops[SB_DTYPE_NONE][sb_dtype_size(to)];
    if (loops[to][from] != NULL)
        return loops[to][from];
    return isa == SB_ISA_AVX512 ? convert_small_avx512 : isa == SB_ISA_AVX2 ? convert_small_avx2 : convert_small_scalar;
}

sb_walk_row *sb_convert_loop(sb_dtype to, sb_dtype from) {
    return sb_dtype_is_small(to) || sb_dtype_is_small(from) ? NULL : sb_convert_loop_for(SB_ISA_SCALAR, to, from);
}

sb_conversion sb_conversion_of(sb_dtype to, sb_dtype from) {
    return (sb_conversion){.to = to, .from = from, .saturate = 1, .round = SB_ROUND_UP};
}

void sb_convert_elements(void *context, int64_t count, char *const *data, const int64_t *steps) {
    const sb_conversion *conversion = context;
    sb_convert_loop_for(SB_ISA_SCALAR, conversion->to, conversion->from)(context, count, data, steps);
}

void sb_convert_row(sb_dtype to, void *target, sb_dtype from, const void *source, int64_t step, int64_t count) {
    sb_conversion conversion = sb_conversion_of(to, from);
    char *data[2] = {target, (char *)(uintptr_t)source};
    int64_t steps[2] = {(int64_t)sb_dtype_size(to), step};
    sb_convert_elements(&conversion, count, data, steps);
}
