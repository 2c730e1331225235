/* Tensors: strided views over reference-counted storage.
 *
 * A tensor is immutable once somebody else can see it: the code that creates it writes its elements,
 * hands it on, and nobody writes again. So a tensor may be read from any number of threads, and
 * `iv_tensor_retain` and `iv_tensor_release` may be called from any thread. */
#ifndef INVAR_TENSOR_H
#define INVAR_TENSOR_H

#include <stdint.h>

#include <invar/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of dimensions. */
#define IV_MAX_RANK 12

typedef struct iv_tensor iv_tensor;

/** One element of an `IV_STRING` tensor: `bytes` bytes of UTF-8, not NUL-terminated, owned by the storage. */
typedef struct iv_string {
    const char *data;
    size_t bytes;
} iv_string;

/** Creates a contiguous, row-major tensor with zero bytes as elements.
 *
 * `dims` holds `rank` extents, each at least 0. The caller owns the result and releases it with
 * `iv_tensor_release`. Errors: INVALID_ARGUMENT for a bad dtype, rank or extent or a size that overflows;
 * OUT_OF_MEMORY. */
IV_API IV_MUST_CHECK iv_status iv_tensor_create(iv_dtype dtype, int rank, const int64_t *dims,
                                                iv_tensor **tensor, iv_error *error);

/** Creates a contiguous tensor and copies `iv_dtype_size(dtype)` × (product of `dims`) bytes from `data`.
 * Not for IV_STRING: see `iv_tensor_from_strings`. */
IV_API IV_MUST_CHECK iv_status iv_tensor_from_data(iv_dtype dtype, int rank, const int64_t *dims,
                                                   const void *data, iv_tensor **tensor,
                                                   iv_error *error);

/** Creates an IV_STRING tensor; the text is copied. */
IV_API IV_MUST_CHECK iv_status iv_tensor_from_strings(int rank, const int64_t *dims,
                                                      const iv_string *strings, iv_tensor **tensor,
                                                      iv_error *error);

/** Wraps memory that somebody else owns, without a copy.
 *
 * `strides` are in elements, may be negative or 0, and NULL stands for row-major. `release(context)` is called
 * once, when the last tensor over the memory is released, and may be NULL. When the call fails,
 * `release` is not called: the memory stays the caller's. */
IV_API IV_MUST_CHECK iv_status iv_tensor_wrap(iv_dtype dtype, int rank, const int64_t *dims,
                                              const int64_t *strides, void *data,
                                              void (*release)(void *context), void *context,
                                              iv_tensor **tensor, iv_error *error);

/** Adds a reference and returns the tensor. NULL is allowed. */
IV_API iv_tensor *iv_tensor_retain(iv_tensor *tensor);

/** Drops a reference; the last one frees the tensor. NULL is allowed. */
IV_API void iv_tensor_release(iv_tensor *tensor);

IV_API iv_dtype iv_tensor_dtype(const iv_tensor *tensor);
IV_API int iv_tensor_rank(const iv_tensor *tensor);
/** The extents: `iv_tensor_rank` numbers, valid as long as the tensor. */
IV_API const int64_t *iv_tensor_dims(const iv_tensor *tensor);
/** The strides in elements: `iv_tensor_rank` numbers, valid as long as the tensor. */
IV_API const int64_t *iv_tensor_strides(const iv_tensor *tensor);
/** The number of elements; 1 for rank 0. */
IV_API int64_t iv_tensor_elements(const iv_tensor *tensor);
/** The address of the element whose indices are all 0: on the device for a tensor that lies on one. */
IV_API const void *iv_tensor_data(const iv_tensor *tensor);
/** The same address, for the code that just created the tensor. */
IV_API void *iv_tensor_mutable_data(iv_tensor *tensor);
/** Whether the elements lie row-major without gaps. Empty tensors and scalars do. */
IV_API bool iv_tensor_is_contiguous(const iv_tensor *tensor);

/** A contiguous tensor with the same elements: the tensor itself, retained, when it is contiguous, else a copy.
 * INVALID_ARGUMENT when a copy is needed of a tensor on a device: see iv_tensor_to_host. */
IV_API IV_MUST_CHECK iv_status iv_tensor_contiguous(iv_tensor *tensor, iv_tensor **contiguous,
                                                    iv_error *error);

/* Views. None copies an element; each result keeps the storage alive. They work for every dtype. */

/** A view with other extents over the same storage when strides allow it.
 *
 * `IV_ERROR_UNSUPPORTED` when the elements would have to be moved (make the tensor contiguous first);
 * `IV_ERROR_SHAPE` when the numbers of elements differ. */
IV_API IV_MUST_CHECK iv_status iv_tensor_reshape(iv_tensor *tensor, int rank, const int64_t *dims,
                                                 iv_tensor **view, iv_error *error);
/** A view whose dimension `i` is the tensor's dimension `permutation[i]`. */
IV_API IV_MUST_CHECK iv_status iv_tensor_transpose(iv_tensor *tensor, const int *permutation,
                                                   iv_tensor **view, iv_error *error);
/** A view of `count` elements along `axis`: `start`, `start + step`, … `step` may be negative, not 0. All
 * elements must lie inside the tensor. */
IV_API IV_MUST_CHECK iv_status iv_tensor_slice(iv_tensor *tensor, int axis, int64_t start,
                                               int64_t count, int64_t step, iv_tensor **view,
                                               iv_error *error);
/** A view in which extents of 1 (or missing leading dimensions) are repeated, by numpy's rule. */
IV_API IV_MUST_CHECK iv_status iv_tensor_broadcast(iv_tensor *tensor, int rank, const int64_t *dims,
                                                   iv_tensor **view, iv_error *error);

#ifdef __cplusplus
}
#endif
#endif
