/* Pooling over windows, as the reference and the kernels see it. */
#ifndef SB_OPS_POOL_H
#define SB_OPS_POOL_H

#include "ops/window.h"

typedef struct sb_pool_params {
    sb_window window;
    bool count_include_pad; /* AveragePool */
    bool column_major;      /* MaxPool: the order of the flat indices */
    float p;                /* LpPool */
} sb_pool_params;

typedef struct sb_pool_global_params {
    float p; /* GlobalLpPool */
} sb_pool_global_params;

/* A pool with all extents known. */
typedef struct sb_pool_shape {
    int axes;
    int64_t batch, channels;
    int64_t positions; /* output positions: the product of axis[].out */
    int64_t capacity;  /* how many elements a window can have inside the input, at most */
    sb_window_axis axis[SB_WINDOW_AXES];
} sb_pool_shape;

/** Reads the attributes of MaxPool, AveragePool and LpPool into an sb_pool_params. */
sb_status sb_pool_prepare(sb_node *node, sb_error *error);

/** Infers output `output` with `dtype`; input 0 is the fact `x`. */
sb_status sb_pool_infer(sb_infer *infer, int output, const sb_fact *x, sb_dtype dtype);

/** The extents for a tensor that sb_pool_infer accepted; `y_dims` are the output's. */
void sb_pool_shape_of(const sb_window *window, const sb_tensor *x, const int64_t *y_dims, sb_pool_shape *shape);

/** The taps [*first, *last) of axis position `at` that lie inside the input. */
void sb_pool_taps(const sb_window_axis *axis, int64_t at, int64_t *first, int64_t *last);

/** Writes the offsets of the window's elements inside the input, in row-major order of the window,
 * for spatial strides in any unit, and returns their number (at most shape->capacity). */
int64_t sb_pool_window(const sb_pool_shape *shape, const int64_t *strides, const int64_t *position, int64_t *offsets);

/** How many taps of the window lie inside the input and its padding. */
int64_t sb_pool_padded_taps(const sb_pool_shape *shape, const int64_t *position);

/** A number that orders elements as maximum does: NaN above all, +0 above -0. For f16, bf16, f32,
 * f64, s8 and u8. */
int64_t sb_pool_order(sb_dtype dtype, const char *element);

/** Writes the least element, the maximum of nothing: minus infinity, or the least integer. */
void sb_pool_store_least(sb_dtype dtype, char *element);

#endif
