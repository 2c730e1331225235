/* Values: what goes into a model and what comes out: a tensor, a sequence of values, or nothing. */
#ifndef SAMEBIT_VALUE_H
#define SAMEBIT_VALUE_H

#include <samebit/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sb_kind {
    SB_KIND_NONE = 0, /**< an omitted input, an unused output, an empty optional */
    SB_KIND_TENSOR = 1,
    SB_KIND_SEQUENCE = 2
} sb_kind;

/** An immutable, reference-counted list of values. */
typedef struct sb_sequence sb_sequence;

/** A value and one reference to what it holds. An optional that holds something is that something. */
typedef struct sb_value {
    sb_kind kind;
    union {
        sb_tensor *tensor;     /**< with SB_KIND_TENSOR */
        sb_sequence *sequence; /**< with SB_KIND_SEQUENCE */
    };
} sb_value;

/** The value that holds `tensor`, whose reference moves into it; nothing when it is NULL. */
SB_API sb_value sb_value_of_tensor(sb_tensor *tensor);
/** Adds a reference to what the value holds and returns the value. */
SB_API sb_value sb_value_retain(sb_value value);
/** Drops the value's reference and sets it to nothing. */
SB_API void sb_value_release(sb_value *value);

/** Creates a sequence of `count` values (each retained) whose tensors have `dtype` and lie on the host (else
 * INVALID_ARGUMENT). The caller releases it by sb_value_release. */
SB_API SB_MUST_CHECK sb_status sb_value_of_sequence(sb_dtype dtype, int64_t count, const sb_value *items,
                                                    sb_value *value, sb_error *error);
/** The number of items of a sequence. */
SB_API int64_t sb_sequence_count(const sb_sequence *sequence);
/** Item `index`, which must be in range; borrowed. */
SB_API sb_value sb_sequence_item(const sb_sequence *sequence, int64_t index);
/** The dtype of the sequence's tensors. */
SB_API sb_dtype sb_sequence_dtype(const sb_sequence *sequence);

#ifdef __cplusplus
}
#endif
#endif
