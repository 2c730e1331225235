/* Making digests: SHA-256 over canonical forms. See <samebit/digest.h>. */
#ifndef SB_RUNTIME_DIGEST_H
#define SB_RUNTIME_DIGEST_H

#include <samebit/digest.h>

#include "base/error.h"

#define SB_DIGEST_BYTES 32

typedef struct sb_digest {
    struct evp_md_ctx_st *context;
    bool failed;    /* what is added after a failure is ignored, and the end reports it */
    sb_dtype dtype; /* of the tensor that is being added */
    size_t size;    /* of its elements */
} sb_digest;

/** Starts a digest, which sb_digest_end ends in any case. Errors: OUT_OF_MEMORY. */
sb_status sb_digest_begin(sb_digest *digest, sb_error *error);
sb_status sb_digest_end(sb_digest *digest, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error);

void sb_digest_add_bytes(sb_digest *digest, const void *bytes, size_t count);
/** Eight bytes, the lowest first. */
void sb_digest_add_integer(sb_digest *digest, int64_t value);
/** Its length and its bytes. */
void sb_digest_add_text(sb_digest *digest, const char *text);
/** Numbers, as a tensor f32 [count] is added. */
void sb_digest_add_numbers(sb_digest *digest, int64_t count, const float *numbers);
/** A tensor on the host: dtype, rank, extents, elements. */
void sb_digest_add_tensor(sb_digest *digest, const sb_tensor *tensor);

#endif
