#include "cuda/driver/unpack.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/allocation.h"
#include "base/error.h"

/* A gzip member: a header, the deflated bytes, and at the end their check and their number, which zlib compares. */
enum { HEADER_BYTES = 10, TRAILER_BYTES = 8 };
/* For inflateInit2: the largest window, and a gzip header. */
enum { GZIP_WINDOW = MAX_WBITS + 16 };
/* Deflate makes 258 bytes of two bits at best. */
enum { LARGEST_RATIO = 1032 };

static sb_status fail_damaged(const sb_cuda_image *image, const char *why, sb_error *error) {
    return sb_fail(error, SB_ERROR_INTERNAL,
                   "the library's kernels %s for %s are damaged (%s): build or install Samebit again", image->module,
                   image->architecture, why);
}

/* How many bytes the image claims to have. */
static sb_status read_size(const sb_cuda_image *image, size_t *size, sb_error *error) {
    size_t packed = (size_t)(image->end - image->bytes);
    if (packed < HEADER_BYTES + TRAILER_BYTES || packed > UINT_MAX)
        return fail_damaged(image, "no gzip file has so many bytes", error);
    const unsigned char *last = (const unsigned char *)image->end;
    *size = (size_t)last[-4] | (size_t)last[-3] << 8 | (size_t)last[-2] << 16 | (size_t)last[-1] << 24;
    if (*size / LARGEST_RATIO > packed)
        return fail_damaged(image, "they are larger than they can be", error);
    return SB_OK;
}

static void *allocate(void *unused, unsigned count, unsigned size) {
    return sb_allocate_array(count, size);
}

static void give_back(void *unused, void *block) {
    sb_free(block);
}

static sb_status inflate_all(const sb_cuda_image *image, char *bytes, size_t size, sb_error *error) {
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)image->bytes,
        .avail_in = (uInt)(image->end - image->bytes),
        .next_out = (Bytef *)bytes,
        .avail_out = (uInt)size,
        .zalloc = allocate,
        .zfree = give_back,
    };
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return sb_fail_memory(error, size);
    int result = inflate(&stream, Z_FINISH);
    sb_status status = SB_OK;
    if (result == Z_MEM_ERROR)
        status = sb_fail_memory(error, size);
    else if (result != Z_STREAM_END || stream.avail_in != 0 || stream.avail_out != 0)
        status = fail_damaged(image, stream.msg != NULL ? stream.msg : "they end too early or too late", error);
    inflateEnd(&stream);
    return status;
}

sb_status sb_cuda_unpack(const sb_cuda_image *image, char **bytes, sb_error *error) {
    size_t size = 0;
    SB_TRY(read_size(image, &size, error));
    char *made = sb_allocate(size + 1);
    if (made == NULL)
        return sb_fail_memory(error, size + 1);
    sb_status status = inflate_all(image, made, size, error);
    if (status != SB_OK) {
        sb_free(made);
        return status;
    }
    made[size] = '\0';
    *bytes = made;
    return SB_OK;
}
