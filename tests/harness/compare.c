/* Comparing tensors bit for bit, and saying where they differ. */
#include <inttypes.h>

#include "harness/harness.h"
#include "ops/real.h"

static uint64_t bits_at(const sb_tensor *tensor, int64_t offset) {
    uint64_t bits = 0;
    size_t size = sb_dtype_size(tensor->dtype);
    memcpy(&bits, tensor->data + offset * (int64_t)size, size);
    return bits;
}

static bool is_nan(sb_dtype dtype, uint64_t bits) {
    switch (dtype) {
    case SB_F64:
        return (bits & INT64_MAX) > UINT64_C(0x7ff) << 52;
    case SB_F32:
        return (bits & INT32_MAX) > 0x7f800000;
    case SB_F16:
        return (bits & INT16_MAX) > 0x7c00;
    case SB_BF16:
        return (bits & INT16_MAX) > 0x7f80;
    default:
        return false;
    }
}

static bool is_signed(sb_dtype dtype) {
    return dtype == SB_S8 || dtype == SB_S16 || dtype == SB_S32 || dtype == SB_S64;
}

static void print_value(const char *what, sb_dtype dtype, uint64_t bits) {
    int digits = (int)sb_dtype_size(dtype) * 2;
    if (dtype == SB_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        printf("  %-9s %.17g  0x%0*" PRIx64 "\n", what, value, digits, bits);
    } else if (sb_dtype_is_float(dtype)) {
        printf("  %-9s %.9g  0x%0*" PRIx64 "\n", what, (double)sb_real_load_f32(dtype, (const char *)&bits, 0), digits,
               bits);
    } else {
        bool negative = is_signed(dtype) && digits < 16 && (bits >> (4 * digits - 1) & 1) != 0;
        int64_t value = negative ? (int64_t)(bits | ~UINT64_C(0) << (4 * digits)) : (int64_t)bits;
        if (is_signed(dtype))
            printf("  %-9s %" PRId64 "  0x%0*" PRIx64 "\n", what, value, digits, bits);
        else
            printf("  %-9s %" PRIu64 "  0x%0*" PRIx64 "\n", what, bits, digits, bits);
    }
}

static void print_tensor(const char *what, int number, const sb_tensor *tensor) {
    char dims[SB_DIMS_TEXT_BYTES], strides[SB_DIMS_TEXT_BYTES];
    if (tensor == NULL) {
        printf("  %s %d   omitted\n", what, number);
        return;
    }
    int64_t offset = (tensor->data - (char *)tensor->storage->data) / (int64_t)sb_dtype_size(tensor->dtype);
    printf("  %s %d   %s%s, strides %s, first element %" PRId64 " of its storage\n", what, number,
           sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, dims),
           sb_dims_text(tensor->rank, tensor->strides, strides), offset);
}

/* The first element that differs, in row-major order; -1: none. `*left` and `*right` are its bits. */
static int64_t find_difference(const sb_tensor *expected, const sb_tensor *found, int64_t *index, uint64_t *left,
                               uint64_t *right) {
    int64_t count = sb_tensor_elements(expected);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, e = 0, f = 0;
        for (int d = expected->rank - 1; d >= 0; d--) {
            index[d] = rest % expected->dims[d];
            rest /= expected->dims[d];
            e += index[d] * expected->strides[d];
            f += index[d] * found->strides[d];
        }
        *left = bits_at(expected, e);
        *right = bits_at(found, f);
        if (*left != *right && !(is_nan(expected->dtype, *left) && is_nan(expected->dtype, *right)))
            return i;
    }
    return -1;
}

static bool same_shape(const sb_tensor *left, const sb_tensor *right) {
    return left->dtype == right->dtype && left->rank == right->rank &&
           memcmp(left->dims, right->dims, (size_t)left->rank * sizeof *left->dims) == 0;
}

/* The bits of the first element upside down: a comparison that lets this pass lets anything pass. */
static void plant_error(sb_tensor *tensor) {
    if (sb_tensor_elements(tensor) > 0)
        tensor->data[0] = (char)(tensor->data[0] ^ 1);
}

void harness_compare(harness *h, const char *implementation, const sb_tensor *expected, const sb_tensor *found,
                     sb_tensor *const *inputs, int count) {
    char dims[SB_DIMS_TEXT_BYTES];
    int64_t index[SB_MAX_RANK];
    uint64_t left, right;
    if (h->plant)
        plant_error((sb_tensor *)found);
    bool comparable = same_shape(expected, found);
    int64_t at = comparable ? find_difference(expected, found, index, &left, &right) : 0;
    if (at < 0)
        return;
    h->failed++;
    printf("DIFFERS %s, %s\n", h->name, implementation);
    if (comparable) {
        printf("  element   %" PRId64 " of %" PRId64 ", at %s\n", at, sb_tensor_elements(expected),
               sb_dims_text(expected->rank, index, dims));
        print_value("expected", expected->dtype, left);
        print_value("found", expected->dtype, right);
    } else {
        printf("  expected  %s%s\n", sb_dtype_name(expected->dtype),
               sb_dims_text(expected->rank, expected->dims, dims));
    }
    print_tensor("output", 0, found);
    for (int i = 0; i < count; i++)
        print_tensor("input", i, inputs[i]);
    printf("  again     %s --case %s --seed %" PRIu64 "%s%s\n", h->program, h->name, h->seed,
           h->driver != NULL ? " --driver " : "", h->driver != NULL ? h->driver : "");
}
