/* Loops over rows of elements, written once and made for every element type.
 *
 * A loop is an sb_walk_row: operand 0 is the output, the others are inputs, steps are in bytes. f16
 * and bf16 are loaded to f32 (exact), computed there and rounded once when stored; f32 and f64 are
 * computed as they are. Integers wrap around. */
#ifndef SB_OPS_LOOPS_H
#define SB_OPS_LOOPS_H

#include "graph/op.h"
#include "ops/type_lists.h"
#include "tensor/walk.h"

/* The element `index` steps of `step` bytes behind `base`. */
#define SB_AT(type, base, step, index) (*(type *)(void *)((base) + (index) * (step)))
#define SB_CONST_AT(type, base, step, index) (*(const type *)(const void *)((base) + (index) * (step)))

/* Entries of a table of loops indexed by dtype. */
#define SB_FLOAT_LOOPS(name)                                                                                           \
    [SB_F16] = name##_f16, [SB_BF16] = name##_bf16, [SB_F32] = name##_f32, [SB_F64] = name##_f64
#define SB_SIGNED_LOOPS(name) [SB_S8] = name##_s8, [SB_S16] = name##_s16, [SB_S32] = name##_s32, [SB_S64] = name##_s64
#define SB_UNSIGNED_LOOPS(name) [SB_U8] = name##_u8, [SB_U16] = name##_u16, [SB_U32] = name##_u32, [SB_U64] = name##_u64
#define SB_INTEGER_LOOPS(name) SB_SIGNED_LOOPS(name), SB_UNSIGNED_LOOPS(name)
#define SB_NUMBER_LOOPS(name) SB_FLOAT_LOOPS(name), SB_INTEGER_LOOPS(name)

/* Which dtypes a table of loops has: a set for sb_infer_require. */
static inline uint32_t sb_loop_dtypes(sb_walk_row *const *loops) {
    uint32_t set = 0;
    for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++)
        set |= loops[dtype] != NULL ? SB_SET(dtype) : 0;
    return set;
}

/* Tables of loops are compiled once per instruction set, in sources that end in _isa.c:
 * SB_DECLARE_LOOPS declares them all, SB_PICK_LOOPS gives the one for `isa`. `[SB_DTYPE_COUNT]` is
 * the last index. */
#define SB_DECLARE_LOOPS(name, count)                                                                                  \
    extern sb_walk_row *const name##_scalar[count][SB_DTYPE_COUNT];                                                    \
    extern sb_walk_row *const name##_avx2[count][SB_DTYPE_COUNT];                                                      \
    extern sb_walk_row *const name##_avx512[count][SB_DTYPE_COUNT];
#if SB_HAS_X86_KERNELS
#define SB_PICK_LOOPS(name, isa)                                                                                       \
    ((isa) == SB_ISA_AVX512 ? name##_avx512 : (isa) == SB_ISA_AVX2 ? name##_avx2 : name##_scalar)
#else
#define SB_PICK_LOOPS(name, isa) ((void)(isa), name##_scalar)
#endif

/* static void name(…): out = expression(x), with `context` in reach. Rows without gaps are a case
 * of their own so that they vectorise. */
#define SB_UNARY_LOOP(name, context_type, out_type, in_type, expression)                                               \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        context_type *context = opaque;                                                                                \
        (void)context;                                                                                                 \
        if (steps[0] == sizeof(out_type) && steps[1] == sizeof(in_type)) {                                             \
            out_type *restrict out = (out_type *)(void *)data[0];                                                      \
            const in_type *restrict in = (const in_type *)(const void *)data[1];                                       \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = (out_type)expression(in[i]);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(out_type, data[0], steps[0], i) = (out_type)expression(SB_CONST_AT(in_type, data[1], steps[1], i));  \
    }

/* The same for out = expression(x, y); a repeated x or y (a scalar, or a value per row) is a case of its own too. */
#define SB_BINARY_LOOP(name, context_type, out_type, left_type, right_type, expression)                                \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        context_type *context = opaque;                                                                                \
        (void)context;                                                                                                 \
        bool left_packed = steps[1] == sizeof(left_type), right_packed = steps[2] == sizeof(right_type);               \
        if (steps[0] == sizeof(out_type) &&                                                                            \
            ((left_packed && (right_packed || steps[2] == 0)) || (right_packed && steps[1] == 0))) {                   \
            out_type *restrict out = (out_type *)(void *)data[0];                                                      \
            const left_type *restrict left = (const left_type *)(const void *)data[1];                                 \
            const right_type *restrict right = (const right_type *)(const void *)data[2];                              \
            if (left_packed && right_packed) {                                                                         \
                for (int64_t i = 0; i < count; i++)                                                                    \
                    out[i] = (out_type)expression(left[i], right[i]);                                                  \
                return;                                                                                                \
            }                                                                                                          \
            if (left_packed) {                                                                                         \
                right_type repeated = *right;                                                                          \
                for (int64_t i = 0; i < count; i++)                                                                    \
                    out[i] = (out_type)expression(left[i], repeated);                                                  \
                return;                                                                                                \
            }                                                                                                          \
            left_type repeated = *left;                                                                                \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = (out_type)expression(repeated, right[i]);                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(out_type, data[0], steps[0], i) = (out_type)expression(                                              \
                SB_CONST_AT(left_type, data[1], steps[1], i), SB_CONST_AT(right_type, data[2], steps[2], i));          \
    }

#endif
