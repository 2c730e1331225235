/* Run-time values: a tensor, a sequence of values, or nothing.
 *
 * An ONNX optional that holds something is that something; an empty optional is nothing. */
#ifndef IV_GRAPH_VALUE_H
#define IV_GRAPH_VALUE_H

#include <stdatomic.h>

#include "tensor/tensor.h"

typedef enum iv_kind {
    IV_KIND_NONE = 0, /* an omitted input, an unused output, an empty optional */
    IV_KIND_TENSOR = 1,
    IV_KIND_SEQUENCE = 2
} iv_kind;

typedef struct iv_sequence iv_sequence;

typedef struct iv_value {
    iv_kind kind;
    union {
        iv_tensor *tensor;
        iv_sequence *sequence;
    };
} iv_value;

/* An immutable, reference-counted list of values. `dtype` is that of its tensors, known even when the list is empty. */
struct iv_sequence {
    atomic_int references;
    iv_dtype dtype;
    int64_t count;
    iv_value items[];
};

static inline iv_value iv_value_of_tensor(iv_tensor *tensor) {
    return (iv_value){.kind = tensor != NULL ? IV_KIND_TENSOR : IV_KIND_NONE, .tensor = tensor};
}

/** A sequence of `count` items, all IV_KIND_NONE until the caller sets them (it hands its references over). */
iv_status iv_sequence_create(iv_dtype dtype, int64_t count, iv_sequence **sequence, iv_error *error);

/** Adds a reference to what the value holds and returns the value. */
iv_value iv_value_retain(iv_value value);
/** Drops the value's reference and sets it to nothing. */
void iv_value_release(iv_value *value);

#endif
