#include <invar/compare.h>

#include <math.h>
#include <string.h>

#include "numerics/convert.h"
#include "tensor/walk.h"

/* One element as a number, and as a position on the line of all numbers of its dtype, on which neighbours are 1 apart. */
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

#define READ(type, name)                                                                           \
    type name;                                                                                     \
    memcpy(&name, at, sizeof name)

static element read_element(iv_dtype dtype, const char *at) {
    switch (dtype) {
    case IV_BOOL: {
        READ(uint8_t, value);
        return integer_element(value != 0);
    }
    case IV_U8: {
        READ(uint8_t, value);
        return integer_element(value);
    }
    case IV_U16: {
        READ(uint16_t, value);
        return integer_element(value);
    }
    case IV_U32: {
        READ(uint32_t, value);
        return integer_element(value);
    }
    case IV_U64: {
        READ(uint64_t, value);
        /* Shifted by half the range, differences stay right; only `value` needs the number itself. */
        element unsigned_element = integer_element((int64_t)(value ^ (UINT64_C(1) << 63)));
        unsigned_element.value = (double)value;
        return unsigned_element;
    }
    case IV_S8: {
        READ(int8_t, value);
        return integer_element(value);
    }
    case IV_S16: {
        READ(int16_t, value);
        return integer_element(value);
    }
    case IV_S32: {
        READ(int32_t, value);
        return integer_element(value);
    }
    case IV_S64: {
        READ(int64_t, value);
        return integer_element(value);
    }
    case IV_F16: {
        READ(uint16_t, bits);
        return float_element(bits, 16, iv_f16_to_f32(bits));
    }
    case IV_BF16: {
        READ(uint16_t, bits);
        return float_element(bits, 16, iv_bf16_to_f32(bits));
    }
    case IV_F32: {
        READ(uint32_t, bits);
        READ(float, value);
        return float_element(bits, 32, value);
    }
    case IV_F64: {
        READ(uint64_t, bits);
        READ(double, value);
        return float_element(bits, 64, value);
    }
    default:
        return (element){0};
    }
}
#undef READ

typedef struct progress {
    iv_dtype dtype;
    double absolute, relative;
    int64_t index;
    iv_comparison *comparison;
} progress;

static void note_difference(progress *progress, const element *left, const element *right) {
    iv_comparison *comparison = progress->comparison;
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
        const iv_string *left = (const iv_string *)(const void *)left_at;
        const iv_string *right = (const iv_string *)(const void *)right_at;
        if (left->bytes == right->bytes && memcmp(left->data, right->data, left->bytes) == 0)
            continue;
        element different = {.nan = true};
        note_difference(progress, &different, &different);
    }
}

iv_status iv_tensor_compare(const iv_tensor *left, const iv_tensor *right, double absolute,
                            double relative, iv_comparison *comparison, iv_error *error) {
    bool same = left->dtype == right->dtype && left->rank == right->rank;
    for (int i = 0; same && i < left->rank; i++)
        same = left->dims[i] == right->dims[i];
    if (!same) {
        char first[IV_DIMS_TEXT_BYTES], second[IV_DIMS_TEXT_BYTES];
        return iv_fail(error, IV_ERROR_SHAPE, "%s%s cannot be compared with %s%s",
                       iv_dtype_name(left->dtype), iv_dims_text(left->rank, left->dims, first),
                       iv_dtype_name(right->dtype), iv_dims_text(right->rank, right->dims, second));
    }
    IV_TRY(iv_tensor_check_on_host(left, "compared", error));
    IV_TRY(iv_tensor_check_on_host(right, "compared", error));
    *comparison = (iv_comparison){.elements = iv_tensor_elements(left), .worst = -1};
    progress progress = {
        .dtype = left->dtype, .absolute = absolute, .relative = relative, .comparison = comparison};
    iv_walk walk;
    iv_walk_start_ordered(&walk, left->rank, left->dims, 2, (const iv_tensor *const[]){left, right});
    iv_walk_run(&walk, left->dtype == IV_STRING ? compare_text_row : compare_row, &progress);
    return IV_OK;
}
