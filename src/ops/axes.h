/* Lists of axes that an operator takes as an attribute or, in later operator sets, as an input. */
#ifndef IV_OPS_AXES_H
#define IV_OPS_AXES_H

#include "graph/op.h"

typedef struct iv_axes {
    int input;             /* the formal input that holds them; -1: they are an attribute */
    bool none_when_absent; /* an absent or empty list means no axis rather than all of them */
    int64_t count;
    const int64_t *values; /* of the attribute; the node's */
} iv_axes;

/** Reads `axes` and `noop_with_empty_axes`: the axes are input 1 from operator set `input_since`
 * on. */
iv_status iv_axes_prepare(const iv_node *node, int input_since, iv_axes *axes, iv_error *error);

/** The axes as a bit set, where they are *known. Otherwise *named is how many there are, or -1.
 * `rank` may be IV_RANK_UNKNOWN: then nothing is known. */
iv_status iv_axes_of_infer(const iv_infer *infer, const iv_axes *axes, int rank, uint32_t *set,
                           int *named, bool *known);

/** The axes as a bit set, at run time. */
iv_status iv_axes_of_call(const iv_call *call, const iv_axes *axes, int rank, uint32_t *set);

/* The attribute `axes` where its absence is not the same as an empty list. */
typedef struct iv_axis_list {
    bool given;
    int count;
    int64_t axes[IV_MAX_RANK];
} iv_axis_list;

/** Reads it; fails for more axes than any tensor has. */
iv_status iv_axis_list_read(const iv_node *node, iv_axis_list *list, iv_error *error);

#endif
