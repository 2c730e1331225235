/* Exact comparison of tensors. */
#include <string.h>

#include "tensor/tensor.h"
#include "tensor/walk.h"

typedef struct comparison {
    sb_dtype dtype;
    bool equal;
} comparison;

static uint64_t load(const char *element, size_t size) {
    uint16_t half;
    uint32_t single;
    uint64_t whole;
    switch (size) {
    case 1:
        return (unsigned char)*element;
    case 2:
        memcpy(&half, element, sizeof half);
        return half;
    case 4:
        memcpy(&single, element, sizeof single);
        return single;
    default:
        memcpy(&whole, element, sizeof whole);
        return whole;
    }
}

static bool same_text(const char *left, const char *right) {
    sb_string a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* The bits without the sign, beyond which a floating-point number of the dtype is a NaN; all ones
 * for the rest. */
static uint64_t infinity_bits(sb_dtype dtype) {
    switch (dtype) {
    case SB_F16:
        return 0x7c00;
    case SB_BF16:
        return 0x7f80;
    case SB_F32:
        return 0x7f800000;
    case SB_F64:
        return UINT64_C(0x7ff0000000000000);
    default:
        return UINT64_MAX;
    }
}

uint8_t sb_small_canonical(sb_dtype dtype, uint8_t element) {
    switch (dtype) {
    case SB_F8E4M3FN:
        return (element & 0x7f) == 0x7f ? 0x7f : element;
    case SB_F8E5M2:
        return (element & 0x7f) > 0x7c ? 0x7e : element;
    default: /* one NaN at most */
        return (uint8_t)(element & ((1u << sb_dtype_bits(dtype)) - 1u));
    }
}

static void compare_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    comparison *now = context;
    size_t size = sb_dtype_size(now->dtype);
    const char *left = data[0], *right = data[1];
    bool dense = steps[0] == (int64_t)size && steps[1] == (int64_t)size;
    if (!now->equal || (dense && now->dtype != SB_STRING && memcmp(left, right, (size_t)count * size) == 0))
        return;
    bool is_small = sb_dtype_is_small(now->dtype);
    uint64_t infinity = infinity_bits(now->dtype);
    uint64_t magnitude = sb_dtype_is_float(now->dtype) ? (UINT64_C(1) << (8 * size - 1)) - 1 : 0;
    for (int64_t i = 0; i < count && now->equal; i++, left += steps[0], right += steps[1]) {
        if (now->dtype == SB_STRING) {
            now->equal = same_text(left, right);
            continue;
        }
        uint64_t a = load(left, size), b = load(right, size);
        if (is_small) {
            a = sb_small_canonical(now->dtype, (uint8_t)a);
            b = sb_small_canonical(now->dtype, (uint8_t)b);
        }
        now->equal = a == b || ((a & magnitude) > infinity && (b & magnitude) > infinity);
    }
}

bool sb_tensor_equal(const sb_tensor *left, const sb_tensor *right) {
    if (left->dtype != right->dtype || left->rank != right->rank ||
        memcmp(left->dims, right->dims, (size_t)left->rank * sizeof *left->dims) != 0)
        return false;
    comparison now = {left->dtype, true};
    sb_walk walk;
    sb_walk_start(&walk, left->rank, left->dims, 2, (const sb_tensor *const[]){left, right});
    sb_walk_run(&walk, compare_row, &now);
    return now.equal;
}
