#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/block.h"
#include "tensor/tensor_pool.h"
#include "tensor/walk.h"

static void free_storage_data(void *context) {
    sb_free(context);
}

sb_status sb_storage_create(size_t bytes, sb_storage **storage, sb_error *error) {
    sb_storage *fresh = sb_allocate(sizeof *fresh);
    void *data = sb_allocate(bytes);
    if (fresh == NULL || data == NULL) {
        sb_free(fresh);
        sb_free(data);
        return sb_fail_memory(error, bytes);
    }
    *fresh = (sb_storage){.references = 1, .data = data, .bytes = bytes, .release = free_storage_data, .context = data};
    *storage = fresh;
    return SB_OK;
}

sb_storage *sb_storage_retain(sb_storage *storage) {
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}

void sb_storage_release(sb_storage *storage) {
    if (storage == NULL)
        return;
    /* acquire-release: the last owner must see every write that the other owners made before they let go. */
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    bool embedded = storage->embedded;
    if (storage->release != NULL)
        storage->release(storage->context);
    if (!embedded)
        sb_free(storage);
}

sb_status sb_count_elements(sb_dtype dtype, int rank, const int64_t *dims, int64_t *elements, sb_error *error) {
    size_t size = sb_dtype_size(dtype);
    if (size == 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%d is not a dtype", (int)dtype);
    if (rank < 0 || rank > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_SHAPE, "rank %d is not between 0 and %d", rank, SB_MAX_RANK);
    if (rank > 0 && dims == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no extents given for rank %d", rank);
    /* The product of the nonzero extents must fit too: strides are made of it even when a tensor is empty. */
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return sb_fail(error, SB_ERROR_SHAPE, "extent %lld of dimension %d is negative", (long long)dims[i], i);
        empty = empty || dims[i] == 0;
        if (dims[i] != 0 && __builtin_mul_overflow(product, dims[i], &product))
            return sb_fail(error, SB_ERROR_SHAPE, "the number of elements overflows at dimension %d", i);
    }
    int64_t bytes;
    if (__builtin_mul_overflow(product, (int64_t)size, &bytes))
        return sb_fail(error, SB_ERROR_SHAPE, "the size of %lld %s elements overflows", (long long)product,
                       sb_dtype_name(dtype));
    *elements = empty ? 0 : product;
    return SB_OK;
}

void sb_row_major_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i] != 0 ? dims[i] : 1;
    }
}

sb_status sb_tensor_over(sb_storage *storage, char *data, sb_dtype dtype, int rank, const int64_t *dims,
                         const int64_t *strides, sb_tensor **tensor, sb_error *error) {
    sb_tensor_pool *home;
    sb_tensor *fresh = sb_tensor_pool_take(&home);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    *fresh = (sb_tensor){.references = 1,
                         .dtype = dtype,
                         .rank = rank,
                         .storage = sb_storage_retain(storage),
                         .data = data,
                         .home = home};
    for (int i = 0; i < rank; i++)
        fresh->dims[i] = dims[i];
    if (strides == NULL)
        sb_row_major_strides(rank, dims, fresh->strides);
    else
        memcpy(fresh->strides, strides, (size_t)rank * sizeof *strides);
    *tensor = fresh;
    return SB_OK;
}

sb_status sb_tensor_create_uninitialised(sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor,
                                         sb_error *error) {
    int64_t elements;
    SB_TRY(sb_count_elements(dtype, rank, dims, &elements, error));
    size_t bytes = (size_t)elements * sb_dtype_size(dtype);
    sb_storage *storage;
    SB_TRY(sb_storage_create(bytes, &storage, error));
    if (dtype == SB_STRING)
        memset(storage->data, 0, bytes);
    sb_status status = sb_tensor_over(storage, storage->data, dtype, rank, dims, NULL, tensor, error);
    sb_storage_release(storage);
    return status;
}

sb_status sb_tensor_create(sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor, sb_error *error) {
    SB_TRY(sb_tensor_create_uninitialised(dtype, rank, dims, tensor, error));
    memset((*tensor)->data, 0, (*tensor)->storage->bytes);
    return SB_OK;
}

static sb_status fail_no_data(int64_t elements, sb_error *error) {
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no memory given for %lld elements", (long long)elements);
}

sb_status sb_tensor_from_data(sb_dtype dtype, int rank, const int64_t *dims, const void *data, sb_tensor **tensor,
                              sb_error *error) {
    if (dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "text has owners of its own: use sb_tensor_from_strings");
    int64_t elements;
    SB_TRY(sb_count_elements(dtype, rank, dims, &elements, error));
    if (data == NULL && elements != 0)
        return fail_no_data(elements, error);
    SB_TRY(sb_tensor_create_uninitialised(dtype, rank, dims, tensor, error));
    if ((*tensor)->storage->bytes != 0)
        memcpy((*tensor)->data, data, (*tensor)->storage->bytes);
    return SB_OK;
}

sb_status sb_tensor_from_strings(int rank, const int64_t *dims, const sb_string *strings, sb_tensor **tensor,
                                 sb_error *error) {
    int64_t elements;
    SB_TRY(sb_count_elements(SB_STRING, rank, dims, &elements, error));
    if (strings == NULL && elements != 0)
        return fail_no_data(elements, error);
    size_t table = (size_t)elements * sizeof(sb_string), bytes = table;
    for (int64_t i = 0; i < elements; i++) {
        if (strings[i].data == NULL && strings[i].bytes != 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no memory given for the %zu bytes of text element %lld",
                           strings[i].bytes, (long long)i);
        if (__builtin_add_overflow(bytes, strings[i].bytes, &bytes))
            return sb_fail(error, SB_ERROR_SHAPE, "the size of the text overflows");
    }
    /* One block holds the table of elements and, behind it, the text they point to. */
    sb_storage *storage;
    SB_TRY(sb_storage_create(bytes, &storage, error));
    sb_string *entries = storage->data;
    char *text = (char *)storage->data + table;
    for (int64_t i = 0; i < elements; i++) {
        if (strings[i].bytes != 0)
            memcpy(text, strings[i].data, strings[i].bytes);
        entries[i] = (sb_string){text, strings[i].bytes};
        text += strings[i].bytes;
    }
    sb_status status = sb_tensor_over(storage, storage->data, SB_STRING, rank, dims, NULL, tensor, error);
    sb_storage_release(storage);
    return status;
}

/* Copies strides from outside, in a form with which nothing can overflow: row-major ones where they
 * do not matter (extents of 1, empty tensors); the rest may not reach further than a quarter of the
 * address space, so that a step past the last element fits too. */
static sb_status adopt_strides(sb_dtype dtype, int rank, const int64_t *dims, int64_t elements, const int64_t *strides,
                               int64_t *adopted, sb_error *error) {
    sb_row_major_strides(rank, dims, adopted);
    int64_t reach = 0;
    for (int i = 0; i < rank && elements != 0 && strides != NULL; i++) {
        if (dims[i] == 1)
            continue;
        int64_t span;
        if (strides[i] == INT64_MIN ||
            __builtin_mul_overflow(dims[i] - 1, strides[i] < 0 ? -strides[i] : strides[i], &span) ||
            __builtin_add_overflow(reach, span, &reach) || reach > INT64_MAX / 4 / (int64_t)sb_dtype_size(dtype))
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "stride %lld of dimension %d reaches beyond any memory",
                           (long long)strides[i], i);
        adopted[i] = strides[i];
    }
    return SB_OK;
}

/* What the elements of a dtype are aligned to in memory. */
static size_t element_alignment(sb_dtype dtype) {
    return dtype == SB_STRING ? _Alignof(sb_string) : sb_dtype_size(dtype);
}

sb_status sb_tensor_wrap(sb_dtype dtype, int rank, const int64_t *dims, const int64_t *strides, void *data,
                         void (*release)(void *context), void *context, sb_tensor **tensor, sb_error *error) {
    int64_t elements;
    SB_TRY(sb_count_elements(dtype, rank, dims, &elements, error));
    if (data == NULL && elements != 0)
        return fail_no_data(elements, error);
    if (elements != 0 && (uintptr_t)data % element_alignment(dtype) != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the memory is not aligned to the %zu bytes of %s: copy it with sb_tensor_from_data",
                       element_alignment(dtype), sb_dtype_name(dtype));
    int64_t adopted[SB_MAX_RANK];
    SB_TRY(adopt_strides(dtype, rank, dims, elements, strides, adopted, error));
    sb_storage *storage = sb_allocate(sizeof *storage);
    if (storage == NULL)
        return sb_fail_memory(error, sizeof *storage);
    /* `release` is set only once nothing can fail any more, so that a failure leaves the memory
     * with the caller. */
    *storage = (sb_storage){.references = 1, .data = data};
    sb_status status = sb_tensor_over(storage, data, dtype, rank, dims, adopted, tensor, error);
    if (status == SB_OK) {
        storage->bytes = (size_t)elements * sb_dtype_size(dtype);
        storage->release = release;
        storage->context = context;
    }
    sb_storage_release(storage);
    return status;
}

sb_tensor *sb_tensor_retain(sb_tensor *tensor) {
    if (tensor != NULL)
        atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void sb_tensor_release(sb_tensor *tensor) {
    if (tensor == NULL || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
        return;
    sb_storage_release(tensor->storage);
    sb_tensor_pool_give(tensor);
}

sb_dtype sb_tensor_dtype(const sb_tensor *tensor) {
    return tensor->dtype;
}

int sb_tensor_rank(const sb_tensor *tensor) {
    return tensor->rank;
}

const int64_t *sb_tensor_dims(const sb_tensor *tensor) {
    return tensor->dims;
}

const int64_t *sb_tensor_strides(const sb_tensor *tensor) {
    return tensor->strides;
}

int64_t sb_tensor_elements(const sb_tensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements *= tensor->dims[i];
    return elements;
}

const void *sb_tensor_data(const sb_tensor *tensor) {
    return tensor->data;
}

void *sb_tensor_mutable_data(sb_tensor *tensor) {
    return tensor->data;
}

bool sb_tensor_is_contiguous(const sb_tensor *tensor) {
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

/* The dimension that goes beside the innermost one of the target: the one along which the source is adjacent, if there is
 * one, so that a copy between two orders of dimensions moves rectangles. */
static int partner_of(const sb_walk *walk, int64_t size) {
    for (int d = walk->rank - 2; d >= 0; d--) {
        if (walk->steps[1][d] == size)
            return d;
    }
    return walk->rank - 2;
}

void sb_tensor_copy_elements(sb_tensor *target, const sb_tensor *source) {
    sb_walk walk;
    const size_t size = sb_dtype_size(source->dtype);
    sb_walk_start(&walk, source->rank, source->dims, 2, (const sb_tensor *const[]){target, source});
    if (walk.elements == 0)
        return;
    int last = walk.rank - 1, partner = partner_of(&walk, (int64_t)size);
    sb_block to = {.data = walk.data[0], .column = walk.steps[0][last]};
    sb_block from = {.data = walk.data[1], .column = walk.steps[1][last]};
    if (partner < 0) {
        sb_block_move(size, 1, walk.dims[last], to, from);
        return;
    }
    to.row = walk.steps[0][partner];
    from.row = walk.steps[1][partner];
    int64_t index[SB_MAX_RANK] = {0};
    for (;;) {
        sb_block_move(size, walk.dims[partner], walk.dims[last], to, from);
        int d = last - 1;
        for (; d >= 0; d--) {
            if (d == partner)
                continue;
            to.data += walk.steps[0][d];
            from.data += walk.steps[1][d];
            if (++index[d] < walk.dims[d])
                break;
            to.data -= walk.dims[d] * walk.steps[0][d];
            from.data -= walk.dims[d] * walk.steps[1][d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

sb_status sb_tensor_check_on_host(const sb_tensor *tensor, const char *what, sb_error *error) {
    if (tensor->storage->device == NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "the tensor lies on device %d and cannot be %s there: copy it with sb_tensor_to_host",
                   tensor->storage->device_index, what);
}

sb_status sb_tensor_contiguous(sb_tensor *tensor, sb_tensor **contiguous, sb_error *error) {
    if (sb_tensor_is_contiguous(tensor)) {
        *contiguous = sb_tensor_retain(tensor);
        return SB_OK;
    }
    SB_TRY(sb_tensor_check_on_host(tensor, "made contiguous", error));
    if (tensor->dtype != SB_STRING) {
        SB_TRY(sb_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, contiguous, error));
        sb_tensor_copy_elements(*contiguous, tensor);
        return SB_OK;
    }
    /* Text: gather the entries in order, then copy them with their text into a storage of their own. */
    int64_t elements = sb_tensor_elements(tensor);
    sb_storage *entries;
    SB_TRY(sb_storage_create((size_t)elements * sizeof(sb_string), &entries, error));
    sb_tensor *gathered = NULL;
    sb_status status =
        sb_tensor_over(entries, entries->data, SB_STRING, tensor->rank, tensor->dims, NULL, &gathered, error);
    if (status == SB_OK) {
        sb_tensor_copy_elements(gathered, tensor);
        status = sb_tensor_from_strings(tensor->rank, tensor->dims, entries->data, contiguous, error);
    }
    sb_tensor_release(gathered);
    sb_storage_release(entries);
    return status;
}

char *sb_dims_text(int rank, const int64_t *dims, char text[SB_DIMS_TEXT_BYTES]) {
    size_t used = (size_t)snprintf(text, SB_DIMS_TEXT_BYTES, "[");
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, SB_DIMS_TEXT_BYTES - used, i == 0 ? "%lld" : ",%lld", (long long)dims[i]);
    snprintf(text + used, SB_DIMS_TEXT_BYTES - used, "]");
    return text;
}

/* The bytes from the first element in memory to behind the last one. */
static void byte_range(const sb_tensor *tensor, uintptr_t *begin, uintptr_t *end) {
    intptr_t size = (intptr_t)sb_dtype_size(tensor->dtype);
    *begin = (uintptr_t)tensor->data;
    *end = *begin + (uintptr_t)size;
    for (int d = 0; d < tensor->rank; d++) {
        intptr_t reach = (intptr_t)((tensor->dims[d] - 1) * tensor->strides[d]) * size;
        *(reach < 0 ? begin : end) += (uintptr_t)reach;
    }
}

bool sb_tensors_coincide(const sb_tensor *left, const sb_tensor *right) {
    if (left->data != right->data || left->rank != right->rank)
        return false;
    for (int d = 0; d < left->rank; d++) {
        if (left->dims[d] != right->dims[d] || (left->dims[d] != 1 && left->strides[d] != right->strides[d]))
            return false;
    }
    return true;
}

bool sb_tensors_overlap(const sb_tensor *left, const sb_tensor *right) {
    if (left->storage != right->storage || sb_tensor_elements(left) == 0 || sb_tensor_elements(right) == 0)
        return false;
    uintptr_t begin[2], end[2];
    byte_range(left, &begin[0], &end[0]);
    byte_range(right, &begin[1], &end[1]);
    return begin[0] < end[1] && begin[1] < end[0];
}
