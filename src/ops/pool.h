/* Pooling over windows, as the reference and the kernels see it. */
#ifndef IV_OPS_POOL_H
#define IV_OPS_POOL_H

#include "ops/window.h"

typedef struct iv_pool_params {
    iv_window window;
    bool count_include_pad; /* AveragePool */
    bool column_major;      /* MaxPool: the order of the flat indices */
    float p;                /* LpPool */
} iv_pool_params;

typedef struct iv_pool_global_params {
    float p; /* GlobalLpPool */
} iv_pool_global_params;

/* A pool with all extents known. */
typedef struct iv_pool_shape {
    int axes;
    int64_t batch, channels;
    int64_t positions; /* output positions: the product of axis[].out */
    int64_t capacity;  /* how many elements a window can have inside the input, at most */
    iv_window_axis axis[IV_WINDOW_AXES];
} iv_pool_shape;

/** Reads the attributes of MaxPool, AveragePool and LpPool into an iv_pool_params. */
iv_status iv_pool_prepare(iv_node *node, iv_error *error);

/** Infers output `output` with `dtype`; input 0 is the fact `x`. */
iv_status iv_pool_infer(iv_infer *infer, int output, const iv_fact *x, iv_dtype dtype);

/** The extents for a tensor that iv_pool_infer accepted; `y_dims` are the output's. */
void iv_pool_shape_of(const iv_window *window, const iv_tensor *x, const int64_t *y_dims,
                      iv_pool_shape *shape);

/** The taps [*first, *last) of axis position `at` that lie inside the input. */
void iv_pool_taps(const iv_window_axis *axis, int64_t at, int64_t *first, int64_t *last);

/** Writes the offsets of the window's elements inside the input, in row-major order of the window,
 * for spatial strides in any unit, and returns their number (at most shape->capacity). */
int64_t iv_pool_window(const iv_pool_shape *shape, const int64_t *strides, const int64_t *position,
                       int64_t *offsets);

/** How many taps of the window lie inside the input and its padding. */
int64_t iv_pool_padded_taps(const iv_pool_shape *shape, const int64_t *position);

/** A number that orders elements as maximum does: NaN above all, +0 above -0. For f16, bf16, f32,
 * f64, s8 and u8. */
int64_t iv_pool_order(iv_dtype dtype, const char *element);

/** Writes the least element, the maximum of nothing: minus infinity, or the least integer. */
void iv_pool_store_least(iv_dtype dtype, char *element);

#endif
