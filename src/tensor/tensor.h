/* The inside of a tensor. See <samebit/tensor.h> for the contract. */
#ifndef SB_TENSOR_TENSOR_H
#define SB_TENSOR_TENSOR_H

#include <stdatomic.h>

#include <samebit/tensor.h>

#include "base/error.h"

/* Reference-counted memory under any number of tensors. */
typedef struct sb_storage {
    atomic_int references;
    void *data;
    size_t bytes;
    void (*release)(void *context); /* frees `data`; may be NULL */
    void *context;
    /* Whose memory `data` is an address in, which the host must not follow: the back end's device, kept alive by
     * `context`; NULL: the host's. */
    void *device;
    int device_index; /* its number, with `device` */
    bool embedded;    /* lies in `context`, to which `release` gives both back */
    /* Nobody outside of the model that holds it knows this memory, and one tensor alone looks at it: the model may free it
     * where it can make the elements again (runtime/program_elements.c). */
    bool dispensable;
    /* Of a file that is mapped, and dispensable but for that: to keep it costs no memory, since the system may drop its pages
     * and read them again. */
    bool mapped;
} sb_storage;

struct sb_tensor {
    atomic_int references;
    sb_dtype dtype;
    int rank;
    int64_t dims[SB_MAX_RANK];
    int64_t strides[SB_MAX_RANK]; /* in elements */
    sb_storage *storage;
    char *data; /* the element whose indices are all 0 */
    union {
        /* Where this waits for the next use once it has been let go of; NULL: it is freed. */
        struct sb_tensor_pool *home;
        sb_tensor *next; /* of those that wait */
    };
};

/** Fresh storage of `bytes` bytes, not initialised. */
sb_status sb_storage_create(size_t bytes, sb_storage **storage, sb_error *error);
sb_storage *sb_storage_retain(sb_storage *storage);
void sb_storage_release(sb_storage *storage);

/** The product of `dims`, checked: SHAPE when an extent is negative or the product (in bytes of `dtype`) overflows. */
sb_status sb_count_elements(sb_dtype dtype, int rank, const int64_t *dims, int64_t *elements, sb_error *error);

/** Row-major strides of `dims`, in elements. */
void sb_row_major_strides(int rank, const int64_t *dims, int64_t *strides);

/** As sb_tensor_create, but the elements are not initialised (text elements are: to empty text). */
sb_status sb_tensor_create_uninitialised(sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor,
                                         sb_error *error);

/** A tensor over part of `storage` (retained). `strides` NULL means row-major. The caller vouches that every
 * element lies inside the storage. */
sb_status sb_tensor_over(sb_storage *storage, char *data, sb_dtype dtype, int rank, const int64_t *dims,
                         const int64_t *strides, sb_tensor **tensor, sb_error *error);

/** INVALID_ARGUMENT when the tensor's elements lie on a device, for functions that follow addresses; `what` is what
 * cannot be done with it ("compared"). */
sb_status sb_tensor_check_on_host(const sb_tensor *tensor, const char *what, sb_error *error);

/** Copies all elements of `source` to `target`, both on the host; same dtype and extents, any strides. Not for text. */
void sb_tensor_copy_elements(sb_tensor *target, const sb_tensor *source);

/** Whether two tensors of one element size have the same extents and lie in the same place, element by element. */
bool sb_tensors_coincide(const sb_tensor *left, const sb_tensor *right);

/** Whether the memory between the first and the last element of each has bytes in common. Memory that the caller lent
 * to both may go unnoticed. */
bool sb_tensors_overlap(const sb_tensor *left, const sb_tensor *right);

/** What an element of a small dtype (sb_dtype_is_small) is for digests and comparisons: its bits alone, and for any NaN
 * the one that sb_<dtype>_from_f32 gives. */
uint8_t sb_small_canonical(sb_dtype dtype, uint8_t element);

/** Whether two tensors on the host have equal dtype, extents and bits; every NaN equals every NaN. */
bool sb_tensor_equal(const sb_tensor *left, const sb_tensor *right);

/** Writes the extents as "[2,3,4]" into `text` and returns it. 24 bytes per dimension are always enough. */
#define SB_DIMS_TEXT_BYTES (24 * SB_MAX_RANK)
char *sb_dims_text(int rank, const int64_t *dims, char text[SB_DIMS_TEXT_BYTES]);

#endif
