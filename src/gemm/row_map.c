#include "gemm/row_map.h"

#include "base/allocation.h"
#include "cuda/staging.h"
#include "gemm/check.h"

/* Adds up the rows and the groups of all samples. */
static iv_status measure(int64_t samples, const int64_t *lengths, iv_row_map *map,
                         iv_error *error) {
    for (int64_t i = 0; i < samples; i++) {
        if (lengths[i] < 0)
            return iv_fail(
                error, IV_ERROR_INVALID_ARGUMENT,
                "row map: sample %lld of %lld has %lld rows: give the number of its rows, "
                "at least 0",
                (long long)i, (long long)samples, (long long)lengths[i]);
        if (lengths[i] > IV_GEMM_MOST_EXTENT - map->rows)
            return iv_fail(
                error, IV_ERROR_INVALID_ARGUMENT,
                "row map: the rows of samples 0 to %lld are more than 2^48: cut the work "
                "into several products that accumulate",
                (long long)i);
        map->rows += lengths[i];
        map->count += iv_row_groups_of(lengths[i]);
    }
    return IV_OK;
}

static iv_status write_groups(int64_t samples, const int64_t *lengths, iv_row_map *map,
                              iv_error *error) {
    map->groups = iv_allocate_array((size_t)map->count, sizeof *map->groups);
    if (map->groups == NULL)
        return iv_fail_memory(error, (size_t)map->count * sizeof *map->groups);
    iv_row_group *group = map->groups;
    int64_t row = 0;
    for (int64_t i = 0; i < samples; i++) {
        int64_t end = row + lengths[i];
        for (; row < end; group++) {
            int64_t rest = end - row;
            *group = (iv_row_group){row, rest < 16 ? rest : 16};
            row += group->count;
        }
    }
    return IV_OK;
}

/* Copies the groups through a stream of its own, so that whatever stream uses them later finds them
 * there. */
static iv_status copy_groups(iv_cuda_device *device, const iv_row_map *map, size_t bytes,
                             iv_error *error) {
    const size_t most = (size_t)1 << 20;
    iv_cuda_stream *stream = NULL;
    iv_cuda_staging *staging = NULL;
    iv_status status = iv_cuda_stream_create(device, &stream, error);
    if (status == IV_OK)
        status = iv_cuda_staging_create(device, bytes < most ? bytes : most, &staging, error);
    if (status == IV_OK) {
        const iv_cuda_queue queue = {.stream = stream};
        status =
            iv_cuda_upload(staging, &queue, map->on_device->address, map->groups, bytes, error);
    }
    iv_cuda_staging_destroy(staging);
    iv_cuda_stream_destroy(stream);
    return status;
}

static iv_status upload_groups(iv_cuda_device *device, iv_row_map *map, iv_error *error) {
    size_t bytes = (size_t)map->count * sizeof *map->groups;
    IV_TRY(iv_cuda_memory_create(device, bytes, &map->on_device, error));
    return copy_groups(device, map, bytes, error);
}

iv_status iv_row_map_create(iv_engine *engine, int64_t samples, const int64_t *lengths,
                            iv_row_map **map, iv_error *error) {
    if (engine == NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "row map: no engine was given");
    if (samples < 0)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "row map: %lld samples: give their number, at least 0", (long long)samples);
    if (samples > 0 && lengths == NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "row map: the lengths of %lld samples are NULL", (long long)samples);
    iv_row_map *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->engine = engine->number;
    iv_status status = measure(samples, lengths, fresh, error);
    if (status == IV_OK)
        status = write_groups(samples, lengths, fresh, error);
    if (status == IV_OK && engine->cuda != NULL && fresh->count > 0)
        status = upload_groups(engine->cuda, fresh, error);
    if (status != IV_OK) {
        iv_row_map_release(fresh);
        return status;
    }
    *map = fresh;
    return IV_OK;
}

void iv_row_map_release(iv_row_map *map) {
    if (map == NULL)
        return;
    iv_cuda_memory_release(map->on_device);
    iv_free(map->groups);
    iv_free(map);
}

int64_t iv_row_map_rows(const iv_row_map *map) {
    return map->rows;
}
