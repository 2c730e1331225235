#include <samebit/digest.h>

#include <openssl/evp.h>
#include <string.h>

#include "graph/value.h"
#include "runtime/digest.h"
#include "tensor/walk.h"

/* Elements are turned into their canonical form in pieces of this many bytes. */
#define PIECE_BYTES 4096

sb_status sb_digest_begin(sb_digest *digest, sb_error *error) {
    *digest = (sb_digest){.context = EVP_MD_CTX_new()};
    if (digest->context == NULL)
        return sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: could not start a digest");
    digest->failed = EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) != 1;
    return SB_OK;
}

sb_status sb_digest_end(sb_digest *digest, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    digest->failed = digest->failed || EVP_DigestFinal_ex(digest->context, bytes, NULL) != 1;
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
    return digest->failed ? sb_fail(error, SB_ERROR_INTERNAL, "the SHA-256 of libcrypto failed") : SB_OK;
}

void sb_digest_add_bytes(sb_digest *digest, const void *bytes, size_t count) {
    digest->failed = digest->failed || EVP_DigestUpdate(digest->context, bytes, count) != 1;
}

void sb_digest_add_integer(sb_digest *digest, int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    sb_digest_add_bytes(digest, bytes, sizeof bytes);
}

void sb_digest_add_text(sb_digest *digest, const char *text) {
    size_t bytes = strlen(text);
    sb_digest_add_integer(digest, (int64_t)bytes);
    sb_digest_add_bytes(digest, text, bytes);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements lie in memory as digests have them, the lowest byte first");

/* Elements on their way into a digest. */
typedef union piece {
    uint8_t bytes[PIECE_BYTES];
    uint16_t halves[PIECE_BYTES / 2];
    uint32_t words[PIECE_BYTES / 4];
    uint64_t longs[PIECE_BYTES / 8];
} piece;

/* What stands for any NaN is the dtype's positive quiet one. Written so that the compiler makes vectors of it. */
#define REPLACE_NAN(member, magnitude, infinity, quiet)                                                                \
    for (size_t i = 0; i < count; i++)                                                                                 \
    of->member[i] = (of->member[i] & (magnitude)) > (infinity) ? (quiet) : of->member[i]

/* Brings elements into their canonical form. */
static void make_canonical(sb_dtype dtype, size_t count, piece *of) {
    if (dtype == SB_F16) {
        REPLACE_NAN(halves, 0x7fffu, 0x7c00u, (uint16_t)0x7e00u);
    } else if (dtype == SB_BF16) {
        REPLACE_NAN(halves, 0x7fffu, 0x7f80u, (uint16_t)0x7fc0u);
    } else if (dtype == SB_F32) {
        REPLACE_NAN(words, 0x7fffffffu, 0x7f800000u, 0x7fc00000u);
    } else if (dtype == SB_F64) {
        REPLACE_NAN(longs, UINT64_C(0x7fffffffffffffff), UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000));
    } else if (dtype == SB_BOOL) {
        for (size_t i = 0; i < count; i++)
            of->bytes[i] = of->bytes[i] != 0;
    } else if (sb_dtype_is_small(dtype)) {
        for (size_t i = 0; i < count; i++)
            of->bytes[i] = (uint8_t)sb_small_canonical(dtype, of->bytes[i]);
    }
}

static void add_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    sb_digest *digest = context;
    const size_t size = digest->size, most = PIECE_BYTES / size;
    const char *element = data[0];
    piece next;
    for (size_t left = (size_t)count, taken; left > 0; left -= taken) {
        taken = left < most ? left : most;
        if (steps[0] == (int64_t)size) {
            memcpy(next.bytes, element, taken * size);
            element += taken * size;
        } else {
            for (size_t i = 0; i < taken; i++, element += steps[0])
                memcpy(next.bytes + i * size, element, size);
        }
        make_canonical(digest->dtype, taken, &next);
        sb_digest_add_bytes(digest, next.bytes, taken * size);
    }
}

static void add_text_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    const char *element = data[0];
    for (int64_t i = 0; i < count; i++, element += steps[0]) {
        const sb_string *text = (const sb_string *)(const void *)element;
        sb_digest_add_integer(context, (int64_t)text->bytes);
        sb_digest_add_bytes(context, text->data, text->bytes);
    }
}

/* What stands before a tensor's elements. */
static void add_extents(sb_digest *digest, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_digest_add_integer(digest, dtype);
    sb_digest_add_integer(digest, rank);
    for (int i = 0; i < rank; i++)
        sb_digest_add_integer(digest, dims[i]);
    digest->dtype = dtype;
    digest->size = sb_dtype_size(dtype);
}

void sb_digest_add_numbers(sb_digest *digest, int64_t count, const float *numbers) {
    char *const data[] = {(char *)(uintptr_t)numbers};
    const int64_t step = sizeof *numbers;
    add_extents(digest, SB_F32, 1, &count);
    add_row(digest, count, data, &step);
}

void sb_digest_add_tensor(sb_digest *digest, const sb_tensor *tensor) {
    add_extents(digest, tensor->dtype, tensor->rank, tensor->dims);
    sb_walk walk;
    sb_walk_start_ordered(&walk, tensor->rank, tensor->dims, 1, &tensor);
    sb_walk_run(&walk, tensor->dtype == SB_STRING ? add_text_row : add_row, digest);
}

static void add_value(sb_digest *digest, sb_value value) {
    sb_digest_add_integer(digest, value.kind);
    if (value.kind == SB_KIND_TENSOR) {
        sb_digest_add_tensor(digest, value.tensor);
    } else if (value.kind == SB_KIND_SEQUENCE) {
        sb_digest_add_integer(digest, value.sequence->count);
        for (int64_t i = 0; i < value.sequence->count; i++)
            add_value(digest, value.sequence->items[i]);
    }
}

sb_status sb_digest_values(int count, const sb_value *values, char text[SB_DIGEST_TEXT_BYTES], sb_error *error) {
    for (int i = 0; i < count; i++) {
        if (values[i].kind == SB_KIND_TENSOR)
            SB_TRY(sb_tensor_check_on_host(values[i].tensor, "digested", error));
    }
    sb_digest digest;
    unsigned char bytes[SB_DIGEST_BYTES];
    SB_TRY(sb_digest_begin(&digest, error));
    for (int i = 0; i < count; i++)
        add_value(&digest, values[i]);
    SB_TRY(sb_digest_end(&digest, bytes, error));
    for (size_t i = 0; i < sizeof bytes; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[64] = '\0';
    return SB_OK;
}
