/* Random chains of views beside a naive model of them: a list of which element of the first tensor
 * stands where. Include after cmocka.h. */
#ifndef SB_TESTS_RANDOM_VIEW_H
#define SB_TESTS_RANDOM_VIEW_H

#include <stdio.h>
#include <string.h>

#include "support/random.h"
#include "tensor/tensor.h"

#define MODEL_ELEMENTS 4096
#define MODEL_TEXT 16

/* Element ids in row-major order of the extents. */
typedef struct model {
    int rank;
    int64_t dims[SB_MAX_RANK];
    int64_t count;
    int64_t ids[MODEL_ELEMENTS];
} model;

/* The bytes of element `id`: any pattern, NaNs included, that differs between ids below 256 for 1-byte types. */
static inline void model_bytes(sb_dtype dtype, int64_t id, char *bytes) {
    random_source source = {(uint64_t)id};
    uint64_t pattern = random_bits(&source);
    memcpy(bytes, &pattern, sizeof pattern);
    bytes[0] = (char)(dtype == SB_BOOL ? id & 1 : id);
}

static inline size_t model_text(int64_t id, char text[MODEL_TEXT]) {
    return (size_t)snprintf(text, MODEL_TEXT, "%.*s%lld", (int)(id % 3 * 2), "\xc3\xa9\xc3\xa9", (long long)id);
}

static inline int64_t model_count(int rank, const int64_t *dims) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

/* Row-major position to indices. */
static inline void model_unravel(int rank, const int64_t *dims, int64_t position, int64_t *index) {
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = position % dims[i];
        position /= dims[i];
    }
}

static inline int64_t model_ravel(int rank, const int64_t *dims, const int64_t *index) {
    int64_t position = 0;
    for (int i = 0; i < rank; i++)
        position = position * dims[i] + index[i];
    return position;
}

/* A contiguous tensor whose element i is element id i, and its model. */
static inline sb_tensor *model_start(sb_dtype dtype, int rank, const int64_t *dims, model *plan) {
    plan->rank = rank;
    memcpy(plan->dims, dims, (size_t)rank * sizeof *dims);
    plan->count = model_count(rank, dims);
    assert_true(plan->count <= MODEL_ELEMENTS);
    for (int64_t i = 0; i < plan->count; i++)
        plan->ids[i] = i;
    sb_tensor *tensor = NULL;
    if (dtype == SB_STRING) {
        static char texts[MODEL_ELEMENTS][MODEL_TEXT];
        static sb_string strings[MODEL_ELEMENTS];
        for (int64_t i = 0; i < plan->count; i++)
            strings[i] = (sb_string){texts[i], model_text(i, texts[i])};
        assert_int_equal(sb_tensor_from_strings(rank, dims, strings, &tensor, NULL), SB_OK);
        return tensor;
    }
    static char data[MODEL_ELEMENTS * 8 + 8];
    size_t size = sb_dtype_size(dtype);
    for (int64_t i = 0; i < plan->count; i++) {
        char bytes[8];
        model_bytes(dtype, i, bytes);
        memcpy(data + (size_t)i * size, bytes, size);
    }
    assert_int_equal(sb_tensor_from_data(dtype, rank, dims, data, &tensor, NULL), SB_OK);
    return tensor;
}

/* Whether the element at `address` is element `id`. */
static inline bool model_is(sb_dtype dtype, const char *address, int64_t id) {
    if (dtype == SB_STRING) {
        sb_string string;
        char text[MODEL_TEXT];
        memcpy(&string, address, sizeof string);
        size_t bytes = model_text(id, text);
        return string.bytes == bytes && memcmp(string.data, text, bytes) == 0;
    }
    char bytes[8];
    model_bytes(dtype, id, bytes);
    return memcmp(address, bytes, sb_dtype_size(dtype)) == 0;
}

/* Compares the tensor with its model, element by element. */
static inline void model_check(const sb_tensor *tensor, const model *plan) {
    assert_int_equal(sb_tensor_rank(tensor), plan->rank);
    assert_int_equal(sb_tensor_elements(tensor), plan->count);
    assert_memory_equal(sb_tensor_dims(tensor), plan->dims, (size_t)plan->rank * sizeof *plan->dims);
    int64_t size = (int64_t)sb_dtype_size(sb_tensor_dtype(tensor)), index[SB_MAX_RANK];
    const char *data = sb_tensor_data(tensor);
    for (int64_t i = 0; i < plan->count; i++) {
        model_unravel(plan->rank, plan->dims, i, index);
        const char *address = data;
        for (int d = 0; d < plan->rank; d++)
            address += index[d] * sb_tensor_strides(tensor)[d] * size;
        assert_true(model_is(sb_tensor_dtype(tensor), address, plan->ids[i]));
    }
}

/* Fills dims with a random shape of `count` elements. */
static inline int model_random_shape(random_source *source, int64_t count, int64_t *dims) {
    int rank = 0;
    int64_t rest = count;
    while (rank < 5 && (rest > 1 || random_between(source, 0, 3) == 0)) {
        int64_t extent = random_between(source, 1, rest < 8 ? rest : 8);
        while (rest % extent != 0)
            extent--;
        dims[rank++] = extent;
        rest /= extent;
    }
    if (rest > 1)
        dims[rank++] = rest;
    return rank;
}

/* The model after a transposition, slice or broadcast: `from` maps indices of the result to indices
 * of the old model. */
static inline void model_gather(model *plan, int rank, const int64_t *dims,
                                void (*from)(const void *how, const int64_t *index, int64_t *old), const void *how) {
    static model old;
    old = *plan;
    plan->rank = rank;
    memcpy(plan->dims, dims, (size_t)rank * sizeof *dims);
    plan->count = model_count(rank, dims);
    assert_true(plan->count <= MODEL_ELEMENTS);
    for (int64_t i = 0; i < plan->count; i++) {
        int64_t index[SB_MAX_RANK], old_index[SB_MAX_RANK] = {0};
        model_unravel(rank, dims, i, index);
        from(how, index, old_index);
        plan->ids[i] = old.ids[model_ravel(old.rank, old.dims, old_index)];
    }
}

typedef struct model_mapping {
    int rank, old_rank, axis;
    int permutation[SB_MAX_RANK];
    int64_t old_dims[SB_MAX_RANK], start, step;
} model_mapping;

static inline void model_from_transposed(const void *how, const int64_t *index, int64_t *old) {
    const model_mapping *map = how;
    for (int i = 0; i < map->rank; i++)
        old[map->permutation[i]] = index[i];
}

static inline void model_from_sliced(const void *how, const int64_t *index, int64_t *old) {
    const model_mapping *map = how;
    for (int i = 0; i < map->rank; i++)
        old[i] = i == map->axis ? map->start + index[i] * map->step : index[i];
}

static inline void model_from_broadcast(const void *how, const int64_t *index, int64_t *old) {
    const model_mapping *map = how;
    for (int i = 0; i < map->old_rank; i++)
        old[i] = map->old_dims[i] == 1 ? 0 : index[i + map->rank - map->old_rank];
}

static inline sb_tensor *model_transpose(random_source *source, sb_tensor *tensor, model *plan) {
    model_mapping map = {.rank = plan->rank};
    int64_t dims[SB_MAX_RANK];
    for (int i = 0; i < plan->rank; i++) {
        int j = (int)random_between(source, 0, i);
        map.permutation[i] = map.permutation[j];
        map.permutation[j] = i;
    }
    for (int i = 0; i < plan->rank; i++)
        dims[i] = plan->dims[map.permutation[i]];
    sb_tensor *view = NULL;
    assert_int_equal(sb_tensor_transpose(tensor, map.permutation, &view, NULL), SB_OK);
    model_gather(plan, plan->rank, dims, model_from_transposed, &map);
    return view;
}

static inline sb_tensor *model_slice(random_source *source, sb_tensor *tensor, model *plan) {
    if (plan->rank == 0)
        return sb_tensor_retain(tensor);
    model_mapping map = {.rank = plan->rank, .axis = (int)random_between(source, 0, plan->rank - 1)};
    int64_t dims[SB_MAX_RANK], extent = plan->dims[map.axis];
    memcpy(dims, plan->dims, sizeof dims);
    if (extent == 0)
        return sb_tensor_retain(tensor);
    map.start = random_between(source, 0, extent - 1);
    map.step = random_between(source, 1, 3) * (random_between(source, 0, 1) ? 1 : -1);
    int64_t most = map.step > 0 ? (extent - 1 - map.start) / map.step + 1 : map.start / -map.step + 1;
    dims[map.axis] = random_between(source, random_between(source, 0, 15) == 0 ? 0 : 1, most);
    sb_tensor *view = NULL;
    assert_int_equal(sb_tensor_slice(tensor, map.axis, map.start, dims[map.axis], map.step, &view, NULL), SB_OK);
    model_gather(plan, plan->rank, dims, model_from_sliced, &map);
    return view;
}

static inline sb_tensor *model_broadcast(random_source *source, sb_tensor *tensor, model *plan) {
    model_mapping map = {.old_rank = plan->rank};
    memcpy(map.old_dims, plan->dims, sizeof map.old_dims);
    int64_t dims[SB_MAX_RANK];
    int extra = plan->rank < 7 ? (int)random_between(source, 0, 1) : 0;
    map.rank = plan->rank + extra;
    for (int i = 0; i < map.rank; i++) {
        int64_t old = i < extra ? 1 : plan->dims[i - extra];
        dims[i] = old == 1 ? random_between(source, 1, 3) : old;
    }
    if (model_count(map.rank, dims) > MODEL_ELEMENTS)
        return sb_tensor_retain(tensor);
    sb_tensor *view = NULL;
    assert_int_equal(sb_tensor_broadcast(tensor, map.rank, dims, &view, NULL), SB_OK);
    model_gather(plan, map.rank, dims, model_from_broadcast, &map);
    return view;
}

/* A reshape where strides allow it; else the tensor itself, after checking that moving was truly needed. */
static inline sb_tensor *model_reshape(random_source *source, sb_tensor *tensor, model *plan) {
    int64_t dims[SB_MAX_RANK];
    int rank = model_random_shape(source, plan->count == 0 ? 1 : plan->count, dims);
    if (plan->count == 0)
        dims[rank++] = 0;
    sb_tensor *view = NULL;
    sb_status status = sb_tensor_reshape(tensor, rank, dims, &view, NULL);
    if (status == SB_OK) {
        plan->rank = rank;
        memcpy(plan->dims, dims, sizeof dims);
        return view;
    }
    assert_int_equal(status, SB_ERROR_UNSUPPORTED);
    assert_false(sb_tensor_is_contiguous(tensor));
    return sb_tensor_retain(tensor);
}

/* One random view of the tensor; drops the caller's reference to it. */
static inline sb_tensor *model_step(random_source *source, sb_tensor *tensor, model *plan) {
    sb_tensor *view;
    switch (random_between(source, 0, 4)) {
    case 0:
        view = model_transpose(source, tensor, plan);
        break;
    case 1:
    case 2:
        view = model_slice(source, tensor, plan);
        break;
    case 3:
        view = model_broadcast(source, tensor, plan);
        break;
    default:
        view = model_reshape(source, tensor, plan);
        break;
    }
    sb_tensor_release(tensor);
    return view;
}

/* A random tensor after a random chain of views. */
static inline sb_tensor *model_random(random_source *source, sb_dtype dtype, model *plan) {
    static const int64_t counts[] = {1, 2, 7, 12, 60, 64, 210, 360, 0};
    int64_t dims[SB_MAX_RANK], count = counts[random_between(source, 0, 8)];
    int rank = model_random_shape(source, count == 0 ? 6 : count, dims);
    if (count == 0 && rank > 0)
        dims[random_between(source, 0, rank - 1)] = 0;
    sb_tensor *tensor = model_start(dtype, rank, dims, plan);
    for (int64_t left = random_between(source, 0, 6); left > 0; left--)
        tensor = model_step(source, tensor, plan);
    return tensor;
}

#endif
