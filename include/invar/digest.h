/* Digests: a fingerprint of values that is the same on every machine.
 *
 * The digest is the SHA-256 of a canonical form: for each value its kind, dtype, rank and extents as little-endian 64-bit
 * integers, then its elements in row-major order, little-endian, with every NaN replaced by the dtype's
 * positive quiet NaN; text as its length and bytes; sequences as their count and items. */
#ifndef INVAR_DIGEST_H
#define INVAR_DIGEST_H

#include <invar/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a digest as hexadecimal text with its NUL. */
#define IV_DIGEST_TEXT_BYTES 65

/** Writes the digest of `count` values, in order, as 64 hexadecimal digits. INVALID_ARGUMENT for tensors on a device. */
IV_API IV_MUST_CHECK iv_status iv_digest_values(int count, const iv_value *values,
                                                char text[IV_DIGEST_TEXT_BYTES], iv_error *error);

#ifdef __cplusplus
}
#endif
#endif
