/* The inside of a sequence. See <samebit/value.h> for the contract. */
#ifndef SB_GRAPH_VALUE_H
#define SB_GRAPH_VALUE_H

#include <stdatomic.h>

#include <samebit/value.h>

#include "tensor/tensor.h"

/* `dtype` is that of its tensors, known even when the list is empty. */
struct sb_sequence {
    atomic_int references;
    sb_dtype dtype;
    int64_t count;
    sb_value items[];
};

/** A sequence of `count` items, all SB_KIND_NONE until the caller sets them (it hands its references over). */
sb_status sb_sequence_create(sb_dtype dtype, int64_t count, sb_sequence **sequence, sb_error *error);

#endif
