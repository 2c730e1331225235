#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/tensor_pool.h"
#include "tensor/walk.h"

static void free_storage_data(void *context) {
    iv_free(context);
}

iv_status iv_storage_create(size_t bytes, iv_storage **storage, iv_error *error) {
    iv_storage *fresh = iv_allocate(sizeof *fresh);
    void *data = iv_allocate(bytes);
    if (fresh == NULL || data == NULL) {
        iv_free(fresh);
        iv_free(data);
        return iv_fail_memory(error, bytes);
    }
    *fresh = (iv_storage){.references = 1,
                          .data = data,
                          .bytes = bytes,
                          .release = free_storage_data,
                          .context = data};
    *storage = fresh;
    return IV_OK;
}

iv_storage *iv_storage_retain(iv_storage *storage) {
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}

void iv_storage_release(iv_storage *storage) {
    if (storage == NULL)
        return;
    /* acquire-release: the last owner must see every write that the other owners made before they
     * let go. */
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    bool embedded = storage->embedded;
    if (storage->release != NULL)
        storage->release(storage->context);
    if (!embedded)
        iv_free(storage);
}

iv_status iv_count_elements(iv_dtype dtype, int rank, const int64_t *dims, int64_t *elements,
                            iv_error *error) {
    size_t size = iv_dtype_size(dtype);
    if (size == 0)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%d is not a dtype", (int)dtype);
    if (rank < 0 || rank > IV_MAX_RANK)
        return iv_fail(error, IV_ERROR_SHAPE, "rank %d is not between 0 and %d", rank, IV_MAX_RANK);
    if (rank > 0 && dims == NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "no extents given for rank %d", rank);
    /* The product of the nonzero extents must fit too: strides are made of it even when a tensor is
     * empty. */
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return iv_fail(error, IV_ERROR_SHAPE, "extent %lld of dimension %d is negative",
                           (long long)dims[i], i);
        empty = empty || dims[i] == 0;
        if (dims[i] != 0 && __builtin_mul_overflow(product, dims[i], &product))
            return iv_fail(error, IV_ERROR_SHAPE,
                           "the number of elements overflows at dimension %d", i);
    }
    int64_t bytes;
    if (__builtin_mul_overflow(product, (int64_t)size, &bytes))
        return iv_fail(error, IV_ERROR_SHAPE, "the size of %lld %s elements overflows",
                       (long long)product, iv_dtype_name(dtype));
    *elements = empty ? 0 : product;
    return IV_OK;
}

void iv_row_major_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i] != 0 ? dims[i] : 1;
    }
}

iv_status iv_tensor_over(iv_storage *storage, char *data, iv_dtype dtype, int rank,
                         const int64_t *dims, const int64_t *strides, iv_tensor **tensor,
                         iv_error *error) {
    iv_tensor_pool *home;
    iv_tensor *fresh = iv_tensor_pool_take(&home);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    *fresh = (iv_tensor){.references = 1,
                         .dtype = dtype,
                         .rank = rank,
                         .storage = iv_storage_retain(storage),
                         .data = data,
                         .home = home};
    for (int i = 0; i < rank; i++)
        fresh->dims[i] = dims[i];
    if (strides == NULL)
        iv_row_major_strides(rank, dims, fresh->strides);
    else
        memcpy(fresh->strides, strides, (size_t)rank * sizeof *strides);
    *tensor = fresh;
    return IV_OK;
}

iv_status iv_tensor_create_uninitialised(iv_dtype dtype, int rank, const int64_t *dims,
                                         iv_tensor **tensor, iv_error *error) {
    int64_t elements;
    IV_TRY(iv_count_elements(dtype, rank, dims, &elements, error));
    size_t bytes = (size_t)elements * iv_dtype_size(dtype);
    iv_storage *storage;
    IV_TRY(iv_storage_create(bytes, &storage, error));
    if (dtype == IV_STRING)
        memset(storage->data, 0, bytes);
    iv_status status =
        iv_tensor_over(storage, storage->data, dtype, rank, dims, NULL, tensor, error);
    iv_storage_release(storage);
    return status;
}

iv_status iv_tensor_create(iv_dtype dtype, int rank, const int64_t *dims, iv_tensor **tensor,
                           iv_error *error) {
    IV_TRY(iv_tensor_create_uninitialised(dtype, rank, dims, tensor, error));
    memset((*tensor)->data, 0, (*tensor)->storage->bytes);
    return IV_OK;
}

static iv_status fail_no_data(int64_t elements, iv_error *error) {
    return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "no memory given for %lld elements",
                   (long long)elements);
}

iv_status iv_tensor_from_data(iv_dtype dtype, int rank, const int64_t *dims, const void *data,
                              iv_tensor **tensor, iv_error *error) {
    if (dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "text has owners of its own: use iv_tensor_from_strings");
    int64_t elements;
    IV_TRY(iv_count_elements(dtype, rank, dims, &elements, error));
    if (data == NULL && elements != 0)
        return fail_no_data(elements, error);
    IV_TRY(iv_tensor_create_uninitialised(dtype, rank, dims, tensor, error));
    if ((*tensor)->storage->bytes != 0)
        memcpy((*tensor)->data, data, (*tensor)->storage->bytes);
    return IV_OK;
}

iv_status iv_tensor_from_strings(int rank, const int64_t *dims, const iv_string *strings,
                                 iv_tensor **tensor, iv_error *error) {
    int64_t elements;
    IV_TRY(iv_count_elements(IV_STRING, rank, dims, &elements, error));
    if (strings == NULL && elements != 0)
        return fail_no_data(elements, error);
    size_t table = (size_t)elements * sizeof(iv_string), bytes = table;
    for (int64_t i = 0; i < elements; i++) {
        if (strings[i].data == NULL && strings[i].bytes != 0)
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                           "no memory given for the %zu bytes of text element %lld",
                           strings[i].bytes, (long long)i);
        if (__builtin_add_overflow(bytes, strings[i].bytes, &bytes))
            return iv_fail(error, IV_ERROR_SHAPE, "the size of the text overflows");
    }
    /* One block holds the table of elements and, behind it, the text they point to. */
    iv_storage *storage;
    IV_TRY(iv_storage_create(bytes, &storage, error));
    iv_string *entries = storage->data;
    char *text = (char *)storage->data + table;
    for (int64_t i = 0; i < elements; i++) {
        if (strings[i].bytes != 0)
            memcpy(text, strings[i].data, strings[i].bytes);
        entries[i] = (iv_string){text, strings[i].bytes};
        text += strings[i].bytes;
    }
    iv_status status =
        iv_tensor_over(storage, storage->data, IV_STRING, rank, dims, NULL, tensor, error);
    iv_storage_release(storage);
    return status;
}

/* Copies strides from outside, in a form with which nothing can overflow: row-major ones where they
 * do not matter (extents of 1, empty tensors); the rest may not reach further than a quarter of the
 * address space, so that a step past the last element fits too. */
static iv_status adopt_strides(iv_dtype dtype, int rank, const int64_t *dims, int64_t elements,
                               const int64_t *strides, int64_t *adopted, iv_error *error) {
    iv_row_major_strides(rank, dims, adopted);
    int64_t reach = 0;
    for (int i = 0; i < rank && elements != 0 && strides != NULL; i++) {
        if (dims[i] == 1)
            continue;
        int64_t span;
        if (strides[i] == INT64_MIN ||
            __builtin_mul_overflow(dims[i] - 1, strides[i] < 0 ? -strides[i] : strides[i], &span) ||
            __builtin_add_overflow(reach, span, &reach) ||
            reach > INT64_MAX / 4 / (int64_t)iv_dtype_size(dtype))
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                           "stride %lld of dimension %d reaches beyond any memory",
                           (long long)strides[i], i);
        adopted[i] = strides[i];
    }
    return IV_OK;
}

/* What the elements of a dtype are aligned to in memory. */
static size_t element_alignment(iv_dtype dtype) {
    return dtype == IV_STRING ? _Alignof(iv_string) : iv_dtype_size(dtype);
}

iv_status iv_tensor_wrap(iv_dtype dtype, int rank, const int64_t *dims, const int64_t *strides,
                         void *data, void (*release)(void *context), void *context,
                         iv_tensor **tensor, iv_error *error) {
    int64_t elements;
    IV_TRY(iv_count_elements(dtype, rank, dims, &elements, error));
    if (data == NULL && elements != 0)
        return fail_no_data(elements, error);
    if (elements != 0 && (uintptr_t)data % element_alignment(dtype) != 0)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "the memory is not aligned to the %zu bytes of %s: copy it with iv_tensor_from_data",
            element_alignment(dtype), iv_dtype_name(dtype));
    int64_t adopted[IV_MAX_RANK];
    IV_TRY(adopt_strides(dtype, rank, dims, elements, strides, adopted, error));
    iv_storage *storage = iv_allocate(sizeof *storage);
    if (storage == NULL)
        return iv_fail_memory(error, sizeof *storage);
    /* `release` is set only once nothing can fail any more, so that a failure leaves the memory
     * with the caller. */
    *storage = (iv_storage){.references = 1, .data = data};
    iv_status status = iv_tensor_over(storage, data, dtype, rank, dims, adopted, tensor, error);
    if (status == IV_OK) {
        storage->bytes = (size_t)elements * iv_dtype_size(dtype);
        storage->release = release;
        storage->context = context;
    }
    iv_storage_release(storage);
    return status;
}

iv_tensor *iv_tensor_retain(iv_tensor *tensor) {
    if (tensor != NULL)
        atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void iv_tensor_release(iv_tensor *tensor) {
    if (tensor == NULL ||
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
        return;
    iv_storage_release(tensor->storage);
    iv_tensor_pool_give(tensor);
}

iv_dtype iv_tensor_dtype(const iv_tensor *tensor) {
    return tensor->dtype;
}

int iv_tensor_rank(const iv_tensor *tensor) {
    return tensor->rank;
}

const int64_t *iv_tensor_dims(const iv_tensor *tensor) {
    return tensor->dims;
}

const int64_t *iv_tensor_strides(const iv_tensor *tensor) {
    return tensor->strides;
}

int64_t iv_tensor_elements(const iv_tensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements *= tensor->dims[i];
    return elements;
}

const void *iv_tensor_data(const iv_tensor *tensor) {
    return tensor->data;
}

void *iv_tensor_mutable_data(iv_tensor *tensor) {
    return tensor->data;
}

bool iv_tensor_is_contiguous(const iv_tensor *tensor) {
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[i] == 0)
            return true;
    }
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->dims[i];
    }
    return true;
}

typedef struct copy_context {
    size_t size;
} copy_context;

static void copy_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    size_t size = ((copy_context *)context)->size;
    char *target = data[0];
    const char *source = data[1];
    if (steps[0] == (int64_t)size && steps[1] == (int64_t)size) {
        memcpy(target, source, (size_t)count * size);
        return;
    }
/* A copy of constant size is one load and one store, of whatever type the elements are. */
#define COPY(bytes)                                                                                \
    for (int64_t i = 0; i < count; i++, target += steps[0], source += steps[1])                    \
        memcpy(target, source, bytes);
    switch (size) {
    case 1:
        COPY(1) break;
    case 2:
        COPY(2) break;
    case 4:
        COPY(4) break;
    case 8:
        COPY(8) break;
    default:
        COPY(sizeof(iv_string)) break;
    }
#undef COPY
}

void iv_tensor_copy_elements(iv_tensor *target, const iv_tensor *source) {
    iv_walk walk;
    copy_context context = {iv_dtype_size(source->dtype)};
    iv_walk_start(&walk, source->rank, source->dims, 2, (const iv_tensor *const[]){target, source});
    iv_walk_run(&walk, copy_row, &context);
}

iv_status iv_tensor_check_on_host(const iv_tensor *tensor, const char *what, iv_error *error) {
    if (tensor->storage->device == NULL)
        return IV_OK;
    return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                   "the tensor lies on device %d and cannot be %s there: copy it with iv_tensor_to_host",
                   tensor->storage->device_index, what);
}

iv_status iv_tensor_contiguous(iv_tensor *tensor, iv_tensor **contiguous, iv_error *error) {
    if (iv_tensor_is_contiguous(tensor)) {
        *contiguous = iv_tensor_retain(tensor);
        return IV_OK;
    }
    IV_TRY(iv_tensor_check_on_host(tensor, "made contiguous", error));
    if (tensor->dtype != IV_STRING) {
        IV_TRY(iv_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, contiguous,
                                              error));
        iv_tensor_copy_elements(*contiguous, tensor);
        return IV_OK;
    }
    /* Text: gather the entries in order, then copy them with their text into a storage of their
     * own. */
    int64_t elements = iv_tensor_elements(tensor);
    iv_storage *entries;
    IV_TRY(iv_storage_create((size_t)elements * sizeof(iv_string), &entries, error));
    iv_tensor *gathered = NULL;
    iv_status status = iv_tensor_over(entries, entries->data, IV_STRING, tensor->rank, tensor->dims,
                                      NULL, &gathered, error);
    if (status == IV_OK) {
        iv_tensor_copy_elements(gathered, tensor);
        status =
            iv_tensor_from_strings(tensor->rank, tensor->dims, entries->data, contiguous, error);
    }
    iv_tensor_release(gathered);
    iv_storage_release(entries);
    return status;
}

char *iv_dims_text(int rank, const int64_t *dims, char text[IV_DIMS_TEXT_BYTES]) {
    size_t used = (size_t)snprintf(text, IV_DIMS_TEXT_BYTES, "[");
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, IV_DIMS_TEXT_BYTES - used, i == 0 ? "%lld" : ",%lld",
                                 (long long)dims[i]);
    snprintf(text + used, IV_DIMS_TEXT_BYTES - used, "]");
    return text;
}

/* The bytes from the first element in memory to behind the last one. */
static void byte_range(const iv_tensor *tensor, uintptr_t *begin, uintptr_t *end) {
    intptr_t size = (intptr_t)iv_dtype_size(tensor->dtype);
    *begin = (uintptr_t)tensor->data;
    *end = *begin + (uintptr_t)size;
    for (int d = 0; d < tensor->rank; d++) {
        intptr_t reach = (intptr_t)((tensor->dims[d] - 1) * tensor->strides[d]) * size;
        *(reach < 0 ? begin : end) += (uintptr_t)reach;
    }
}

bool iv_tensors_overlap(const iv_tensor *left, const iv_tensor *right) {
    if (left->storage != right->storage || iv_tensor_elements(left) == 0 ||
        iv_tensor_elements(right) == 0)
        return false;
    uintptr_t begin[2], end[2];
    byte_range(left, &begin[0], &end[0]);
    byte_range(right, &begin[1], &end[1]);
    return begin[0] < end[1] && begin[1] < end[0];
}
