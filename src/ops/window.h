/* Windows that slide over the spatial axes of [batch, channel, spatial…]: what convolutions and
 * pools have in common. */
#ifndef SB_OPS_WINDOW_H
#define SB_OPS_WINDOW_H

#include "graph/op.h"

#define SB_WINDOW_AXES (SB_MAX_RANK - 2)

typedef enum sb_auto_pad {
    SB_PAD_EXPLICIT,
    SB_PAD_SAME_UPPER, /* an odd element goes to the end */
    SB_PAD_SAME_LOWER, /* an odd element goes to the beginning */
    SB_PAD_VALID
} sb_auto_pad;

/* The attributes. Every number is below 2^31, so that products of two of them cannot overflow. */
typedef struct sb_window {
    sb_auto_pad auto_pad;
    bool ceil_mode;
    int axes; /* how many spatial axes the attributes speak of; -1 if none says */
    bool has_kernel;
    int64_t kernel[SB_WINDOW_AXES], strides[SB_WINDOW_AXES], dilations[SB_WINDOW_AXES];
    int64_t begin[SB_WINDOW_AXES], end[SB_WINDOW_AXES]; /* padding */
} sb_window;

/* One axis with its extents: tap t of output position o reads input o * stride + t * dilation - begin. */
typedef struct sb_window_axis {
    int64_t in, out, kernel, stride, dilation, begin, end;
} sb_window_axis;

/** Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. INVALID_MODEL when they
 * are out of range or of different lengths. */
sb_status sb_window_read(const sb_node *node, sb_window *window, sb_error *error);

/** Checks that the attributes speak of `axes` axes (or do not say). */
sb_status sb_window_check_axes(const sb_infer *infer, const sb_window *window, int axes);

/** The output extent of axis `axis` for an input extent and a kernel extent. SHAPE when the window
 * does not fit into the padded input. */
sb_status sb_window_extent(const sb_infer *infer, const sb_window *window, int axis, sb_dim in, sb_dim kernel,
                           sb_dim *out);

/** The axis for extents that are known and were inferred by sb_window_extent. */
sb_window_axis sb_window_resolve(const sb_window *window, int axis, int64_t in, int64_t kernel, int64_t out);

/** Steps row-major `index` below `extents`: false after the last. */
bool sb_window_next(int axes, int64_t *index, const int64_t *extents);

#endif
