#include <samebit/digest.h>

#include <openssl/evp.h>
#include <string.h>

#include "graph/value.h"
#include "tensor/walk.h"

/* Elements are turned into their canonical form in pieces of this many bytes. */
#define PIECE_BYTES 4096

typedef struct digest {
    EVP_MD_CTX *context;
    bool failed;
    sb_dtype dtype;
    size_t size;
} digest;

static void add_bytes(digest *digest, const void *bytes, size_t count) {
    digest->failed = digest->failed || EVP_DigestUpdate(digest->context, bytes, count) != 1;
}

static void add_integer(digest *digest, int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    add_bytes(digest, bytes, sizeof bytes);
}

/* The element's bits, with any NaN replaced by the dtype's positive quiet NaN. */
static uint64_t canonical_bits(sb_dtype dtype, size_t size, const char *element) {
    uint64_t bits = 0;
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    switch (size) {
    case 1:
        memcpy(&byte, element, 1);
        bits = dtype == SB_BOOL ? byte != 0 : byte;
        break;
    case 2:
        memcpy(&half, element, 2);
        bits = half;
        break;
    case 4:
        memcpy(&word, element, 4);
        bits = word;
        break;
    default:
        memcpy(&bits, element, 8);
        break;
    }
    if (dtype == SB_F16 && (bits & 0x7fff) > 0x7c00)
        return 0x7e00;
    if (dtype == SB_BF16 && (bits & 0x7fff) > 0x7f80)
        return 0x7fc0;
    if (dtype == SB_F32 && (bits & 0x7fffffff) > 0x7f800000)
        return 0x7fc00000;
    if (dtype == SB_F64 && (bits & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000))
        return UINT64_C(0x7ff8000000000000);
    return bits;
}

static void add_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    digest *digest = context;
    unsigned char piece[PIECE_BYTES];
    size_t used = 0;
    const char *element = data[0];
    for (int64_t i = 0; i < count; i++, element += steps[0]) {
        if (used + digest->size > sizeof piece) {
            add_bytes(digest, piece, used);
            used = 0;
        }
        uint64_t bits = canonical_bits(digest->dtype, digest->size, element);
        for (size_t b = 0; b < digest->size; b++)
            piece[used++] = (unsigned char)(bits >> (8 * b));
    }
    add_bytes(digest, piece, used);
}

static void add_text_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    const char *element = data[0];
    for (int64_t i = 0; i < count; i++, element += steps[0]) {
        const sb_string *text = (const sb_string *)(const void *)element;
        add_integer(context, (int64_t)text->bytes);
        add_bytes(context, text->data, text->bytes);
    }
}

static void add_tensor(digest *digest, const sb_tensor *tensor) {
    add_integer(digest, tensor->dtype);
    add_integer(digest, tensor->rank);
    for (int i = 0; i < tensor->rank; i++)
        add_integer(digest, tensor->dims[i]);
    digest->dtype = tensor->dtype;
    digest->size = sb_dtype_size(tensor->dtype);
    sb_walk walk;
    sb_walk_start_ordered(&walk, tensor->rank, tensor->dims, 1, &tensor);
    sb_walk_run(&walk, tensor->dtype == SB_STRING ? add_text_row : add_row, digest);
}

static void add_value(digest *digest, sb_value value) {
    add_integer(digest, value.kind);
    if (value.kind == SB_KIND_TENSOR) {
        add_tensor(digest, value.tensor);
    } else if (value.kind == SB_KIND_SEQUENCE) {
        add_integer(digest, value.sequence->count);
        for (int64_t i = 0; i < value.sequence->count; i++)
            add_value(digest, value.sequence->items[i]);
    }
}

sb_status sb_digest_values(int count, const sb_value *values, char text[SB_DIGEST_TEXT_BYTES], sb_error *error) {
    for (int i = 0; i < count; i++) {
        if (values[i].kind == SB_KIND_TENSOR)
            SB_TRY(sb_tensor_check_on_host(values[i].tensor, "digested", error));
    }
    digest digest = {.context = EVP_MD_CTX_new()};
    if (digest.context == NULL)
        return sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: could not start a digest");
    digest.failed = EVP_DigestInit_ex(digest.context, EVP_sha256(), NULL) != 1;
    for (int i = 0; i < count; i++)
        add_value(&digest, values[i]);
    unsigned char bytes[32];
    digest.failed = digest.failed || EVP_DigestFinal_ex(digest.context, bytes, NULL) != 1;
    EVP_MD_CTX_free(digest.context);
    if (digest.failed)
        return sb_fail(error, SB_ERROR_INTERNAL, "the SHA-256 of libcrypto failed");
    for (size_t i = 0; i < sizeof bytes; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[64] = '\0';
    return SB_OK;
}
