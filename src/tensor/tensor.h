/* The inside of a tensor. See <invar/tensor.h> for the contract. */
#ifndef IV_TENSOR_TENSOR_H
#define IV_TENSOR_TENSOR_H

#include <stdatomic.h>

#include <invar/tensor.h>

#include "base/error.h"

/* Reference-counted memory under any number of tensors. */
typedef struct iv_storage {
    atomic_int references;
    void *data;
    size_t bytes;
    void (*release)(void *context); /* frees `data`; may be NULL */
    void *context;
    struct iv_cuda_device *device; /* on which `data` is an address, which the host must not follow; NULL: the host's memory.
                                      Kept alive by `context` */
    int device_index;              /* its number, with `device` */
    bool embedded;                 /* lies in `context`, to which `release` gives both back */
} iv_storage;

struct iv_tensor {
    atomic_int references;
    iv_dtype dtype;
    int rank;
    int64_t dims[IV_MAX_RANK];
    int64_t strides[IV_MAX_RANK]; /* in elements */
    iv_storage *storage;
    char *data; /* the element whose indices are all 0 */
    union {
        struct iv_tensor_pool *home; /* where this waits for the next use once it has been let go of; NULL: it is freed */
        iv_tensor *next;             /* of those that wait */
    };
};

/** Fresh storage of `bytes` bytes, not initialised. */
iv_status iv_storage_create(size_t bytes, iv_storage **storage, iv_error *error);
iv_storage *iv_storage_retain(iv_storage *storage);
void iv_storage_release(iv_storage *storage);

/** The product of `dims`, checked: SHAPE when an extent is negative or the product (in bytes of `dtype`) overflows. */
iv_status iv_count_elements(iv_dtype dtype, int rank, const int64_t *dims, int64_t *elements,
                            iv_error *error);

/** Row-major strides of `dims`, in elements. */
void iv_row_major_strides(int rank, const int64_t *dims, int64_t *strides);

/** As iv_tensor_create, but the elements are not initialised (text elements are: to empty text). */
iv_status iv_tensor_create_uninitialised(iv_dtype dtype, int rank, const int64_t *dims,
                                         iv_tensor **tensor, iv_error *error);

/** A tensor over part of `storage` (retained). `strides` NULL means row-major. The caller vouches that every
 * element lies inside the storage. */
iv_status iv_tensor_over(iv_storage *storage, char *data, iv_dtype dtype, int rank,
                         const int64_t *dims, const int64_t *strides, iv_tensor **tensor,
                         iv_error *error);

/** INVALID_ARGUMENT when the tensor's elements lie on a device, for functions that follow addresses; `what` is what cannot be
 * done with it ("compared"). */
iv_status iv_tensor_check_on_host(const iv_tensor *tensor, const char *what, iv_error *error);

/** Copies all elements of `source` to `target`, both on the host; same dtype and extents, any strides. Not for text. */
void iv_tensor_copy_elements(iv_tensor *target, const iv_tensor *source);

/** Whether the memory between the first and the last element of each has bytes in common. Memory that the caller lent to
 * both may go unnoticed. */
bool iv_tensors_overlap(const iv_tensor *left, const iv_tensor *right);

/** Whether two tensors on the host have equal dtype, extents and bits; every NaN equals every NaN. */
bool iv_tensor_equal(const iv_tensor *left, const iv_tensor *right);

/** Writes the extents as "[2,3,4]" into `text` and returns it. 24 bytes per dimension are always enough. */
#define IV_DIMS_TEXT_BYTES (24 * IV_MAX_RANK)
char *iv_dims_text(int rank, const int64_t *dims, char text[IV_DIMS_TEXT_BYTES]);

#endif
