#include "kernel/contraction/row_map.h"

#include "base/allocation.h"
#include "base/error.h"
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

static sb_status upload_groups(sb_engine *engine, sb_row_map *map, sb_error *error) {
    size_t bytes = (size_t)map->count * sizeof *map->groups;
    const void *address;
    SB_TRY(engine->interface->upload(engine, map->groups, bytes, &map->block, &address, error));
    map->release_block = engine->interface->release_block;
    map->device_groups = address;
    return SB_OK;
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
    if (status == SB_OK && sb_engine_on_device(engine) && fresh->count > 0)
        status = upload_groups(engine, fresh, error);
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
    if (map->block != NULL)
        map->release_block(map->block);
    sb_free(map->groups);
    sb_free(map);
}

int64_t sb_row_map_rows(const sb_row_map *map) {
    return map->rows;
}
