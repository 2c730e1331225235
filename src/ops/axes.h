/* Lists of axes that an operator takes as an attribute or, in later operator sets, as an input. */
#ifndef SB_OPS_AXES_H
#define SB_OPS_AXES_H

#include "graph/op.h"

typedef struct sb_axes {
    int input;             /* the formal input that holds them; -1: they are an attribute */
    bool none_when_absent; /* an absent or empty list means no axis rather than all of them */
    int64_t count;
    const int64_t *values; /* of the attribute; the node's */
} sb_axes;

/** Reads `axes` and `noop_with_empty_axes`: the axes are input 1 from operator set `input_since` on. */
sb_status sb_axes_prepare(const sb_node *node, int input_since, sb_axes *axes, sb_error *error);

/** The axes as a bit set, where they are *known. Otherwise *named is how many there are, or -1.
 * `rank` may be SB_RANK_UNKNOWN: then nothing is known. */
sb_status sb_axes_of_infer(const sb_infer *infer, const sb_axes *axes, int rank, uint32_t *set, int *named,
                           bool *known);

/** The axes as a bit set, at run time. */
sb_status sb_axes_of_call(const sb_call *call, const sb_axes *axes, int rank, uint32_t *set);

/* The attribute `axes` where its absence is not the same as an empty list. */
typedef struct sb_axis_list {
    bool given;
    int count;
    int64_t axes[SB_MAX_RANK];
} sb_axis_list;

/** Reads it; fails for more axes than any tensor has. */
sb_status sb_axis_list_read(const sb_node *node, sb_axis_list *list, sb_error *error);

#endif
