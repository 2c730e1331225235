/* Few are kept in a heap whose root is the worst of them, as in the definition: keys that are not above it are passed over by vectors.
 *
 * Many are counted by their uppermost bits, which says from which on they can be among the best, and those alone are sorted, by a byte at a
 * time: 1,000 of 8,400 take 0.2 ms in a heap. */
#include "cpu/rows/topk_select.h"

#include <stdbool.h>

/* From so many on, and where they are no small part, they are counted. */
#define MANY 48
#define PART 64

/* Uppermost bits by which keys are counted, and bits of a digit by which they are sorted. */
#define COUNTED_BITS 11
#define DIGIT_BITS 8

/* A key and where it lies. */
typedef struct candidate {
    uint32_t key, index;
} candidate;

static bool are_many(int64_t length, int64_t k) {
    return k >= MANY && k >= length / PART;
}

size_t sb_topk_select_bytes(int64_t length, int64_t k) {
    size_t bytes;
    const bool many = are_many(length, k);
    const size_t elements = (size_t)(many ? length : k), size = many ? 2 * sizeof(candidate) : sizeof(int64_t);
    return __builtin_mul_overflow(elements, size, &bytes) ? SIZE_MAX : bytes;
}

/* ---- few ---- */

/* Larger for what comes first: of larger keys, and of equal ones of the lower index. */
static int64_t rank_of(int32_t key, int64_t index) {
    return (int64_t)((uint64_t)(uint32_t)key << 32 | (uint64_t)(~(uint32_t)index));
}

static int64_t index_of(int64_t rank) {
    return (int64_t)(~(uint32_t)((uint64_t)rank & UINT32_MAX));
}

static void sift(int64_t *heap, int64_t count, int64_t at) {
    const int64_t sifted = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= sifted)
            break;
        heap[at] = heap[child];
    }
    heap[at] = sifted;
}

static void select_few(const sb_best_kernels *kernels, int64_t length, const int32_t *keys, int64_t k, int64_t *indices,
                       int64_t *heap) {
    for (int64_t i = 0; i < k; i++)
        heap[i] = rank_of(keys[i], i);
    for (int64_t at = k / 2 - 1; at >= 0; at--)
        sift(heap, k, at);
    for (int64_t i = k; i < length; i++) {
        i += kernels->above(length - i, keys + i, (int32_t)(heap[0] >> 32));
        if (i == length)
            break;
        heap[0] = rank_of(keys[i], i);
        sift(heap, k, 0);
    }
    /* The worst one goes last, again and again. */
    for (int64_t last = k - 1; last >= 0; last--) {
        indices[last] = index_of(heap[0]);
        heap[0] = heap[last];
        sift(heap, last, 0);
    }
}

/* ---- many ---- */

/* Keys so that the best are the least, without a sign. */
static uint32_t turned(int32_t key) {
    return ~((uint32_t)key ^ UINT32_C(0x80000000));
}

/* The last of the uppermost bits' values that the best k can have. */
static uint32_t last_of_best(int64_t length, const int32_t *keys, int64_t k) {
    uint32_t counts[1 << COUNTED_BITS] = {0}, value = 0;
    for (int64_t i = 0; i < length; i++)
        counts[turned(keys[i]) >> (32 - COUNTED_BITS)]++;
    for (int64_t found = counts[0]; found < k; found += counts[++value])
        ;
    return value;
}

/* Sorts by one digit; equal ones stay in order. */
static void sort_digit(int64_t count, const candidate *from, candidate *to, int shift) {
    uint32_t places[1 << DIGIT_BITS] = {0}, sum = 0;
    const uint32_t mask = (1 << DIGIT_BITS) - 1;
    for (int64_t i = 0; i < count; i++)
        places[from[i].key >> shift & mask]++;
    for (int digit = 0; digit < 1 << DIGIT_BITS; digit++) {
        const uint32_t here = places[digit];
        places[digit] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[places[from[i].key >> shift & mask]++] = from[i];
}

static void select_many(int64_t length, const int32_t *keys, int64_t k, int64_t *indices, candidate *candidates) {
    const uint32_t last = k < length ? last_of_best(length, keys, k) : UINT32_MAX;
    candidate *other = candidates + length;
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++) {
        const uint32_t key = turned(keys[i]);
        candidates[count] = (candidate){key, (uint32_t)i};
        count += key >> (32 - COUNTED_BITS) <= last;
    }
    for (int shift = 0; shift < 32; shift += DIGIT_BITS) {
        sort_digit(count, candidates, other, shift);
        candidate *sorted = other;
        other = candidates;
        candidates = sorted;
    }
    for (int64_t i = 0; i < k; i++)
        indices[i] = candidates[i].index;
}

void sb_topk_select(const sb_best_kernels *kernels, int64_t length, const int32_t *keys, int64_t k, int64_t *indices,
                    void *memory) {
    if (are_many(length, k))
        select_many(length, keys, k, indices, memory);
    else
        select_few(kernels, length, keys, k, indices, memory);
}
