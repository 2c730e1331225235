/* Tensors: strided views over reference-counted storage.
 *
 * A tensor is immutable once somebody else can see it: the code that creates it writes its elements,
 * hands it on, and nobody writes again. So a tensor may be read from any number of threads, and
 * `sb_tensor_retain` and `sb_tensor_release` may be called from any thread. */
#ifndef SAMEBIT_TENSOR_H
#define SAMEBIT_TENSOR_H

#include <stdint.h>

#include <samebit/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of dimensions. */
#define SB_MAX_RANK 12

typedef struct sb_tensor sb_tensor;

/** One element of an `SB_STRING` tensor: `bytes` bytes of UTF-8, not NUL-terminated, owned by the storage. */
typedef struct sb_string {
    const char *data;
    size_t bytes;
} sb_string;

/** Creates a contiguous, row-major tensor with zero bytes as elements.
 *
 * `dims` holds `rank` extents, each at least 0. The caller owns the result and releases it with `sb_tensor_release`.
 * Errors: INVALID_ARGUMENT for a bad dtype, rank or extent or a size that overflows; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tensor_create(sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor,
                                                sb_error *error);

/** Creates a contiguous tensor and copies `sb_dtype_size(dtype)` × (product of `dims`) bytes from `data`.
 * Not for SB_STRING: see `sb_tensor_from_strings`. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_data(sb_dtype dtype, int rank, const int64_t *dims, const void *data,
                                                   sb_tensor **tensor, sb_error *error);

/** Creates an SB_STRING tensor; the text is copied. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_strings(int rank, const int64_t *dims, const sb_string *strings,
                                                      sb_tensor **tensor, sb_error *error);

/** Wraps memory that somebody else owns, without a copy.
 *
 * `strides` are in elements, may be negative or 0, and NULL stands for row-major. `release(context)` is called
 * once, when the last tensor over the memory is released, and may be NULL. When the call fails,
 * `release` is not called: the memory stays the caller's. */
SB_API SB_MUST_CHECK sb_status sb_tensor_wrap(sb_dtype dtype, int rank, const int64_t *dims, const int64_t *strides,
                                              void *data, void (*release)(void *context), void *context,
                                              sb_tensor **tensor, sb_error *error);

/** Adds a reference and returns the tensor. NULL is allowed. */
SB_API sb_tensor *sb_tensor_retain(sb_tensor *tensor);

/** Drops a reference; the last one frees the tensor. NULL is allowed. */
SB_API void sb_tensor_release(sb_tensor *tensor);

SB_API sb_dtype sb_tensor_dtype(const sb_tensor *tensor);
SB_API int sb_tensor_rank(const sb_tensor *tensor);
/** The extents: `sb_tensor_rank` numbers, valid as long as the tensor. */
SB_API const int64_t *sb_tensor_dims(const sb_tensor *tensor);
/** The strides in elements: `sb_tensor_rank` numbers, valid as long as the tensor. */
SB_API const int64_t *sb_tensor_strides(const sb_tensor *tensor);
/** The number of elements; 1 for rank 0. */
SB_API int64_t sb_tensor_elements(const sb_tensor *tensor);
/** The address of the element whose indices are all 0: on the device for a tensor that lies on one. */
SB_API const void *sb_tensor_data(const sb_tensor *tensor);
/** The same address, for the code that just created the tensor. */
SB_API void *sb_tensor_mutable_data(sb_tensor *tensor);
/** Whether the elements lie row-major without gaps. Empty tensors and scalars do. */
SB_API bool sb_tensor_is_contiguous(const sb_tensor *tensor);

/** A contiguous tensor with the same elements: the tensor itself, retained, when it is contiguous, else a copy.
 * INVALID_ARGUMENT when a copy is needed of a tensor on a device: see sb_tensor_to_host. */
SB_API SB_MUST_CHECK sb_status sb_tensor_contiguous(sb_tensor *tensor, sb_tensor **contiguous, sb_error *error);

/* Views. None copies an element; each result keeps the storage alive. They work for every dtype. */

/** A view with other extents over the same storage when strides allow it.
 *
 * `SB_ERROR_UNSUPPORTED` when the elements would have to be moved (make the tensor contiguous first);
 * `SB_ERROR_SHAPE` when the numbers of elements differ. */
SB_API SB_MUST_CHECK sb_status sb_tensor_reshape(sb_tensor *tensor, int rank, const int64_t *dims, sb_tensor **view,
                                                 sb_error *error);
/** A view whose dimension `i` is the tensor's dimension `permutation[i]`. */
SB_API SB_MUST_CHECK sb_status sb_tensor_transpose(sb_tensor *tensor, const int *permutation, sb_tensor **view,
                                                   sb_error *error);
/** A view of `count` elements along `axis`: `start`, `start + step`, … `step` may be negative, not 0. All
 * elements must lie inside the tensor. */
SB_API SB_MUST_CHECK sb_status sb_tensor_slice(sb_tensor *tensor, int axis, int64_t start, int64_t count, int64_t step,
                                               sb_tensor **view, sb_error *error);
/** A view in which extents of 1 (or missing leading dimensions) are repeated, by numpy's rule. */
SB_API SB_MUST_CHECK sb_status sb_tensor_broadcast(sb_tensor *tensor, int rank, const int64_t *dims, sb_tensor **view,
                                                   sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
