#include <samebit/compare.h>

#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "ops/number.h"
#include "tensor/walk.h"

/* One element as a number, and as a position on the line of all numbers of its dtype,
 * on which neighbours are 1 apart. */
typedef struct element {
    double value;
    int64_t place;
    bool nan;
    uint64_t bits;
} element;

/* Maps sign-magnitude bits to an integer that grows with the number; both zeros get 0. */
static int64_t float_place(uint64_t bits, int width) {
    uint64_t sign = UINT64_C(1) << (width - 1), magnitude = bits & (sign - 1);
    return (bits & sign) != 0 ? -(int64_t)magnitude : (int64_t)magnitude;
}

static element float_element(uint64_t bits, int width, double value) {
    return (element){.value = value, .place = float_place(bits, width), .nan = isnan(value), .bits = bits};
}

static element integer_element(int64_t value) {
    return (element){.value = (double)value, .place = value, .bits = (uint64_t)value};
}

/* Floats by their bits, as the wider ones; f8e8m0, which has no sign, by its exponent. */
static element small_element(sb_dtype dtype, uint8_t code) {
    uint64_t wide = code; /* as wide as any element, for a function of all dtypes */
    double value = sb_number_load(dtype, &wide, 0);
    uint8_t bits = sb_small_canonical(dtype, code);
    if (dtype == SB_F8E8M0)
        return (element){.value = value, .place = bits, .nan = isnan(value), .bits = bits};
    if ((SB_SET(dtype) & SB_SET_SMALL_INTEGER) != 0)
        return integer_element((int64_t)value);
    return float_element(bits, sb_dtype_bits(dtype), value);
}

#define READ(type, name)                                                                                               \
    type name;                                                                                                         \
    memcpy(&name, at, sizeof name)

static element read_element(sb_dtype dtype, const char *at) {
    switch (dtype) {
    case SB_BOOL: {
        READ(uint8_t, value);
        return integer_element(value != 0);
    }
    case SB_U8: {
        READ(uint8_t, value);
        return integer_element(value);
    }
    case SB_U16: {
        READ(uint16_t, value);
        return integer_element(value);
    }
    case SB_U32: {
        READ(uint32_t, value);
        return integer_element(value);
    }
    case SB_U64: {
        READ(uint64_t, value);
        /* Shifted by half the range, differences stay right; only `value` needs the number itself. */
        element unsigned_element = integer_element((int64_t)(value ^ (UINT64_C(1) << 63)));
        unsigned_element.value = (double)value;
        return unsigned_element;
    }
    case SB_S8: {
        READ(int8_t, value);
        return integer_element(value);
    }
    case SB_S16: {
        READ(int16_t, value);
        return integer_element(value);
    }
    case SB_S32: {
        READ(int32_t, value);
        return integer_element(value);
    }
    case SB_S64: {
        READ(int64_t, value);
        return integer_element(value);
    }
    case SB_F16: {
        READ(uint16_t, bits);
        return float_element(bits, 16, sb_f16_to_f32(bits));
    }
    case SB_BF16: {
        READ(uint16_t, bits);
        return float_element(bits, 16, sb_bf16_to_f32(bits));
    }
    case SB_F32: {
        READ(uint32_t, bits);
        READ(float, value);
        return float_element(bits, 32, value);
    }
    case SB_F64: {
        READ(uint64_t, bits);
        READ(double, value);
        return float_element(bits, 64, value);
    }
    default:
        return small_element(dtype, (uint8_t)*at);
    }
}
#undef READ

typedef struct progress {
    sb_dtype dtype;
    double absolute, relative;
    int64_t index;
    sb_comparison *comparison;
} progress;

static void note_difference(progress *progress, const element *left, const element *right) {
    sb_comparison *comparison = progress->comparison;
    bool comparable = !left->nan && !right->nan;
    double error = comparable ? fabs(left->value - right->value) : INFINITY;
    if (isnan(error)) /* equal infinities do not come here; opposite ones give infinity */
        error = INFINITY;
    uint64_t ulps = UINT64_MAX;
    if (comparable)
        ulps = left->place > right->place ? (uint64_t)left->place - (uint64_t)right->place
                                          : (uint64_t)right->place - (uint64_t)left->place;
    comparison->different++;
    if (!(error <= progress->absolute + progress->relative * fabs(right->value)))
        comparison->outside++;
    if (comparable && right->value != 0 && error / fabs(right->value) > comparison->max_relative)
        comparison->max_relative = error / fabs(right->value);
    if (comparison->worst < 0 || error > comparison->worst_error) {
        comparison->worst = progress->index;
        comparison->worst_left = left->value;
        comparison->worst_right = right->value;
        comparison->worst_error = error;
        comparison->worst_ulps = ulps;
    }
}

static void compare_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    progress *progress = context;
    const char *left_at = data[0], *right_at = data[1];
    for (int64_t i = 0; i < count; i++, progress->index++, left_at += steps[0], right_at += steps[1]) {
        element left = read_element(progress->dtype, left_at);
        element right = read_element(progress->dtype, right_at);
        if (left.bits != right.bits && !(left.nan && right.nan))
            note_difference(progress, &left, &right);
    }
}

static void compare_text_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    progress *progress = context;
    const char *left_at = data[0], *right_at = data[1];
    for (int64_t i = 0; i < count; i++, progress->index++, left_at += steps[0], right_at += steps[1]) {
        const sb_string *left = (const sb_string *)(const void *)left_at;
        const sb_string *right = (const sb_string *)(const void *)right_at;
        if (left->bytes == right->bytes && memcmp(left->data, right->data, left->bytes) == 0)
            continue;
        element different = {.nan = true};
        note_difference(progress, &different, &different);
    }
}

sb_status sb_tensor_compare(const sb_tensor *left, const sb_tensor *right, double absolute, double relative,
                            sb_comparison *comparison, sb_error *error) {
    bool same = left->dtype == right->dtype && left->rank == right->rank;
    for (int i = 0; same && i < left->rank; i++)
        same = left->dims[i] == right->dims[i];
    if (!same) {
        char first[SB_DIMS_TEXT_BYTES], second[SB_DIMS_TEXT_BYTES];
        return sb_fail(error, SB_ERROR_SHAPE, "%s%s cannot be compared with %s%s", sb_dtype_name(left->dtype),
                       sb_dims_text(left->rank, left->dims, first), sb_dtype_name(right->dtype),
                       sb_dims_text(right->rank, right->dims, second));
    }
    SB_TRY(sb_tensor_check_on_host(left, "compared", error));
    SB_TRY(sb_tensor_check_on_host(right, "compared", error));
    *comparison = (sb_comparison){.elements = sb_tensor_elements(left), .worst = -1};
    progress progress = {.dtype = left->dtype, .absolute = absolute, .relative = relative, .comparison = comparison};
    sb_walk walk;
    sb_walk_start_ordered(&walk, left->rank, left->dims, 2, (const sb_tensor *const[]){left, right});
    sb_walk_run(&walk, left->dtype == SB_STRING ? compare_text_row : compare_row, &progress);
    return SB_OK;
}
