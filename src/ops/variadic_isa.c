/* The loops of Max, Min, Sum and Mean of several inputs, compiled once per instruction set. A piece's running values stay in the first-level
 * cache, in the computing type, while all inputs go by; only then is it stored, so that an input may lie where the output does. */
#include "base/isa.h"
#include "numerics/minmax.h"
#include "ops/variadic.h"

#define PIECE 256

/* For each element of a piece, `element` of it being at `at`; elements side by side are a case of their own, so that they vectorise. */
#define EACH(type, base, step, statement)                                                                              \
    if ((step) == (int64_t)sizeof(type)) {                                                                             \
        for (int64_t i = 0; i < piece; i++) {                                                                          \
            type *const at = (type *)(void *)(base) + i;                                                               \
            statement;                                                                                                 \
        }                                                                                                              \
    } else {                                                                                                           \
        for (int64_t i = 0; i < piece; i++) {                                                                          \
            type *const at = (type *)(void *)((base) + i * (step));                                                    \
            statement;                                                                                                 \
        }                                                                                                              \
    }

/* `value` is what becomes of the running value `left` and an input's `right`; `result` of the former at the end, of `inputs` inputs. */
#define LOOP(name, running, type, load, value, result)                                                                 \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        const int inputs = ((const sb_variadic_params *)opaque)->inputs;                                               \
        for (int64_t start = 0; start < count; start += PIECE) {                                                       \
            const int64_t piece = count - start < PIECE ? count - start : PIECE;                                       \
            running values[PIECE];                                                                                     \
            EACH(const type, data[1] + start * steps[1], steps[1], values[i] = load(*at))                              \
            for (int n = 2; n <= inputs; n++) {                                                                        \
                EACH(const type, data[n] + start * steps[n], steps[n], const running left = values[i];                 \
                     const running right = load(*at); values[i] = value)                                               \
            }                                                                                                          \
            EACH(type, data[0] + start * steps[0], steps[0], const running left = values[i]; *at = (type)(result))     \
        }                                                                                                              \
    }
#define FLOAT_LOOPS(dtype, suffix, type, real, real_suffix, load, store, unused)                                       \
    LOOP(Max_##suffix, real, type, load, sb_max_##real_suffix(left, right), store(left))                               \
    LOOP(Min_##suffix, real, type, load, sb_min_##real_suffix(left, right), store(left))                               \
    LOOP(Sum_##suffix, real, type, load, left + right, store(left))                                                    \
    LOOP(Mean_##suffix, real, type, load, left + right, store(left / (real)inputs))
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                                               \
    LOOP(Max_##suffix, type, type, SB_SAME, left > right ? left : right, left)                                         \
    LOOP(Min_##suffix, type, type, SB_SAME, left < right ? left : right, left)
SB_FLOAT_TYPES(FLOAT_LOOPS, )
SB_SIGNED_TYPES(INTEGER_LOOPS, )
SB_UNSIGNED_TYPES(INTEGER_LOOPS, )

sb_walk_row *const SB_ISA_NAME(sb_variadic_loops)[SB_VARIADIC_COUNT][SB_DTYPE_COUNT] = {
    [SB_VARIADIC_MAX] = {SB_NUMBER_LOOPS(Max)},
    [SB_VARIADIC_MIN] = {SB_NUMBER_LOOPS(Min)},
    [SB_VARIADIC_SUM] = {SB_FLOAT_LOOPS(Sum)},
    [SB_VARIADIC_MEAN] = {SB_FLOAT_LOOPS(Mean)},
};
