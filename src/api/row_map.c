#include "kernel/contraction/row_map.h"

#include "base/allocation.h"
#include "cuda/queue/staging.h"
#include "kernel/contraction/check.h"

/* Adds up the rows and the groups of all samples. */
static sb_status measure(int64_t samples, const int64_t *lengths, sb_row_map *map, sb_error *error) {
    for (int64_t i = 0; i < samples; i++) {
        if (lengths[i] < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "row map: sample %lld of %lld has %lld rows: give the number of its rows, "
                           "at least 0",
                           (long long)i, (long long)samples, (long long)lengths[i]);
        if (lengths[i] > SB_GEMM_MOST_EXTENT - map->rows)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "row map: the rows of samples 0 to %lld are more than 2^48: cut the work "
                           "into several products that accumulate",
                           (long long)i);
        map->rows += lengths[i];
        map->count += sb_row_groups_of(lengths[i]);
    }
    return SB_OK;
}

static sb_status write_groups(int64_t samples, const int64_t *lengths, sb_row_map *map, sb_error *error) {
    map->groups = sb_allocate_array((size_t)map->count, sizeof *map->groups);
    if (map->groups == NULL)
        return sb_fail_memory(error, (size_t)map->count * sizeof *map->groups);
    sb_row_group *group = map->groups;
    int64_t row = 0;
    for (int64_t i = 0; i < samples; i++) {
        int64_t end = row + lengths[i];
        for (; row < end; group++) {
            int64_t rest = end - row;
            *group = (sb_row_group){row, rest < 16 ? rest : 16};
            row += group->count;
        }
    }
    return SB_OK;
}

/* Copies the groups through a stream of its own, so that whatever stream uses them later finds them
 * there. */
static sb_status copy_groups(sb_cuda_device *device, const sb_row_map *map, size_t bytes, sb_error *error) {
    const size_t most = (size_t)1 << 20;
    sb_cuda_stream *stream = NULL;
    sb_cuda_staging *staging = NULL;
    sb_status status = sb_cuda_stream_create(device, &stream, error);
    if (status == SB_OK)
        status = sb_cuda_staging_create(device, bytes < most ? bytes : most, &staging, error);
    if (status == SB_OK) {
        const sb_cuda_queue queue = {.stream = stream};
        status = sb_cuda_upload(staging, &queue, map->on_device->address, map->groups, bytes, error);
    }
    sb_cuda_staging_destroy(staging);
    sb_cuda_stream_destroy(stream);
    return status;
}

static sb_status upload_groups(sb_cuda_device *device, sb_row_map *map, sb_error *error) {
    size_t bytes = (size_t)map->count * sizeof *map->groups;
    SB_TRY(sb_cuda_memory_create(device, bytes, &map->on_device, error));
    return copy_groups(device, map, bytes, error);
}

sb_status sb_row_map_create(sb_engine *engine, int64_t samples, const int64_t *lengths, sb_row_map **map,
                            sb_error *error) {
    if (engine == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "row map: no engine was given");
    if (samples < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "row map: %lld samples: give their number, at least 0",
                       (long long)samples);
    if (samples > 0 && lengths == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "row map: the lengths of %lld samples are NULL",
                       (long long)samples);
    sb_row_map *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->engine = engine->number;
    sb_status status = measure(samples, lengths, fresh, error);
    if (status == SB_OK)
        status = write_groups(samples, lengths, fresh, error);
    if (status == SB_OK && engine->cuda != NULL && fresh->count > 0)
        status = upload_groups(engine->cuda, fresh, error);
    if (status != SB_OK) {
        sb_row_map_release(fresh);
        return status;
    }
    *map = fresh;
    return SB_OK;
}

void sb_row_map_release(sb_row_map *map) {
    if (map == NULL)
        return;
    sb_cuda_memory_release(map->on_device);
    sb_free(map->groups);
    sb_free(map);
}

int64_t sb_row_map_rows(const sb_row_map *map) {
    return map->rows;
}
