#include "cuda/driver/unpack.h"

#include <lzma.h>
#include <stdint.h>

#include "base/allocation.h"
#include "base/error.h"

/* What unpacking may take: the build compresses with a dictionary of 4 MB. */
#define MOST_MEMORY (UINT64_C(8) << 20)

static void *allocate(void *unused, size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : sb_allocate(bytes);
}

static void give_back(void *unused, void *block) {
    sb_free(block);
}

static const lzma_allocator allocator = {allocate, give_back, NULL};

static sb_status fail_damaged(const sb_cuda_image *image, const char *why, sb_error *error) {
    return sb_fail(error, SB_ERROR_INTERNAL,
                   "the library's kernels %s for %s are damaged (%s): build or install Samebit again", image->module,
                   image->architecture, why);
}

/* How many bytes the image claims to have: an xz file ends with an index of what is in it, and a footer that says where
 * that begins. */
static sb_status read_size(const sb_cuda_image *image, size_t *size, sb_error *error) {
    const uint8_t *bytes = (const uint8_t *)image->bytes;
    size_t packed = (size_t)(image->end - image->bytes);
    lzma_stream_flags footer;
    if (packed < 2 * LZMA_STREAM_HEADER_SIZE ||
        lzma_stream_footer_decode(&footer, bytes + packed - LZMA_STREAM_HEADER_SIZE) != LZMA_OK)
        return fail_damaged(image, "no xz file ends like this", error);
    if (footer.backward_size > packed - 2 * LZMA_STREAM_HEADER_SIZE)
        return fail_damaged(image, "its index is larger than it", error);
    lzma_index *index = NULL;
    uint64_t memory = MOST_MEMORY;
    size_t end = packed - LZMA_STREAM_HEADER_SIZE, at = end - (size_t)footer.backward_size;
    lzma_ret result = lzma_index_buffer_decode(&index, &memory, &allocator, bytes, &at, end);
    if (result == LZMA_MEM_ERROR)
        return sb_fail_memory(error, (size_t)footer.backward_size);
    if (result != LZMA_OK)
        return fail_damaged(image, "its index cannot be read", error);
    uint64_t whole = lzma_index_uncompressed_size(index);
    bool fits = lzma_index_stream_size(index) == packed && whole < SIZE_MAX;
    lzma_index_end(index, &allocator);
    *size = (size_t)whole;
    return fits ? SB_OK : fail_damaged(image, "its index speaks of another file", error);
}

static sb_status unpack_into(const sb_cuda_image *image, char *bytes, size_t size, sb_error *error) {
    size_t packed = (size_t)(image->end - image->bytes), read = 0, written = 0;
    uint64_t memory = MOST_MEMORY;
    lzma_ret result = lzma_stream_buffer_decode(&memory, 0, &allocator, (const uint8_t *)image->bytes, &read, packed,
                                                (uint8_t *)bytes, &written, size);
    if (result == LZMA_MEM_ERROR)
        return sb_fail_memory(error, size);
    if (result != LZMA_OK || read != packed || written != size)
        return fail_damaged(image, "what is packed in it has another check", error);
    return SB_OK;
}

sb_status sb_cuda_unpack(const sb_cuda_image *image, char **bytes, sb_error *error) {
    size_t size = 0;
    SB_TRY(read_size(image, &size, error));
    char *made = sb_allocate(size + 1);
    if (made == NULL)
        return sb_fail_memory(error, size + 1);
    sb_status status = unpack_into(image, made, size, error);
    if (status != SB_OK) {
        sb_free(made);
        return status;
    }
    made[size] = '\0';
    *bytes = made;
    return SB_OK;
}
