/* Values: what goes into a model and what comes out: a tensor, a sequence of values, or nothing. */
#ifndef INVAR_VALUE_H
#define INVAR_VALUE_H

#include <invar/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum iv_kind {
    IV_KIND_NONE = 0, /**< an omitted input, an unused output, an empty optional */
    IV_KIND_TENSOR = 1,
    IV_KIND_SEQUENCE = 2
} iv_kind;

/** An immutable, reference-counted list of values. */
typedef struct iv_sequence iv_sequence;

/** A value and one reference to what it holds. An optional that holds something is that something. */
typedef struct iv_value {
    iv_kind kind;
    union {
        iv_tensor *tensor;     /**< with IV_KIND_TENSOR */
        iv_sequence *sequence; /**< with IV_KIND_SEQUENCE */
    };
} iv_value;

/** The value that holds `tensor`, whose reference moves into it; nothing when it is NULL. */
IV_API iv_value iv_value_of_tensor(iv_tensor *tensor);
/** Adds a reference to what the value holds and returns the value. */
IV_API iv_value iv_value_retain(iv_value value);
/** Drops the value's reference and sets it to nothing. */
IV_API void iv_value_release(iv_value *value);

/** Creates a sequence of `count` values (each retained) whose tensors have `dtype` and lie on the host (else
 * INVALID_ARGUMENT). The caller releases it by iv_value_release. */
IV_API IV_MUST_CHECK iv_status iv_value_of_sequence(iv_dtype dtype, int64_t count,
                                                    const iv_value *items, iv_value *value,
                                                    iv_error *error);
/** The number of items of a sequence. */
IV_API int64_t iv_sequence_count(const iv_sequence *sequence);
/** Item `index`, which must be in range; borrowed. */
IV_API iv_value iv_sequence_item(const iv_sequence *sequence, int64_t index);
/** The dtype of the sequence's tensors. */
IV_API iv_dtype iv_sequence_dtype(const iv_sequence *sequence);

#ifdef __cplusplus
}
#endif
#endif
