/* Digests: a fingerprint of values that is the same on every machine.
 *
 * The digest is the SHA-256 of a canonical form: for each value its kind, dtype, rank and extents as little-endian
 * 64-bit integers, then its elements in row-major order, little-endian, with every NaN replaced by the dtype's positive
 * quiet NaN (0x7f for f8e4m3fn, 0x7e for f8e5m2), elements of less than 8 bits as a byte each, zeros above their bits;
 * text as its length and bytes; sequences as their count and items. */
#ifndef SAMEBIT_DIGEST_H
#define SAMEBIT_DIGEST_H

#include <samebit/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a digest as hexadecimal text with its NUL. */
#define SB_DIGEST_TEXT_BYTES 65

/** Writes the digest of `count` values, in order, as 64 hexadecimal digits.
 * INVALID_ARGUMENT for tensors on a device. */
SB_API SB_MUST_CHECK sb_status sb_digest_values(int count, const sb_value *values, char text[SB_DIGEST_TEXT_BYTES],
                                                sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
