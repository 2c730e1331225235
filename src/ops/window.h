/* Windows that slide over the spatial axes of [batch, channel, spatial…]: what convolutions and
 * pools have in common. */
#ifndef IV_OPS_WINDOW_H
#define IV_OPS_WINDOW_H

#include "graph/op.h"

#define IV_WINDOW_AXES (IV_MAX_RANK - 2)

typedef enum iv_auto_pad {
    IV_PAD_EXPLICIT,
    IV_PAD_SAME_UPPER, /* an odd element goes to the end */
    IV_PAD_SAME_LOWER, /* an odd element goes to the beginning */
    IV_PAD_VALID
} iv_auto_pad;

/* The attributes. Every number is below 2^31, so that products of two of them cannot overflow. */
typedef struct iv_window {
    iv_auto_pad auto_pad;
    bool ceil_mode;
    int axes; /* how many spatial axes the attributes speak of; -1 if none says */
    bool has_kernel;
    int64_t kernel[IV_WINDOW_AXES], strides[IV_WINDOW_AXES], dilations[IV_WINDOW_AXES];
    int64_t begin[IV_WINDOW_AXES], end[IV_WINDOW_AXES]; /* padding */
} iv_window;

/* One axis with its extents: tap t of output position o reads input o * stride + t * dilation -
 * begin. */
typedef struct iv_window_axis {
    int64_t in, out, kernel, stride, dilation, begin, end;
} iv_window_axis;

/** Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. INVALID_MODEL when they
 * are out of range or of different lengths. */
iv_status iv_window_read(const iv_node *node, iv_window *window, iv_error *error);

/** Checks that the attributes speak of `axes` axes (or do not say). */
iv_status iv_window_check_axes(const iv_infer *infer, const iv_window *window, int axes);

/** The output extent of axis `axis` for an input extent and a kernel extent. SHAPE when the window
 * does not fit into the padded input. */
iv_status iv_window_extent(const iv_infer *infer, const iv_window *window, int axis, iv_dim in,
                           iv_dim kernel, iv_dim *out);

/** The axis for extents that are known and were inferred by iv_window_extent. */
iv_window_axis iv_window_resolve(const iv_window *window, int axis, int64_t in, int64_t kernel,
                                 int64_t out);

/** Steps row-major `index` below `extents`: false after the last. */
bool iv_window_next(int axes, int64_t *index, const int64_t *extents);

#endif
