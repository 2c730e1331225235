/* The inside of a sequence. See <invar/value.h> for the contract. */
#ifndef IV_GRAPH_VALUE_H
#define IV_GRAPH_VALUE_H

#include <stdatomic.h>

#include <invar/value.h>

#include "tensor/tensor.h"

/* `dtype` is that of its tensors, known even when the list is empty. */
struct iv_sequence {
    atomic_int references;
    iv_dtype dtype;
    int64_t count;
    iv_value items[];
};

/** A sequence of `count` items, all IV_KIND_NONE until the caller sets them (it hands its references over). */
iv_status iv_sequence_create(iv_dtype dtype, int64_t count, iv_sequence **sequence, iv_error *error);

#endif
