#include "runtime/capacity.h"

#include <string.h>

#include "base/allocation.h"

sb_status sb_capacity_check(const sb_capacity *capacity, sb_error *error) {
    if (capacity->symbol == NULL || capacity->symbol[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a capacity without a symbol");
    if (capacity->capacity < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a capacity of %lld for %.200s: give a positive number",
                       (long long)capacity->capacity, capacity->symbol);
    if (capacity->least < 0 || capacity->least > capacity->capacity)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "plans of %.200s are to begin with %lld, and its capacity is %lld", capacity->symbol,
                       (long long)capacity->least, (long long)capacity->capacity);
    return SB_OK;
}

bool sb_capacities_of_program(const sb_program *program, const char *symbol) {
    for (size_t i = 0; i < program->enter_count; i++) {
        const sb_fact *fact = &program->graph->values[program->enter[i]].fact;
        for (int d = 0; d < fact->rank; d++) {
            if (sb_dim_mentions(fact->dims[d], symbol))
                return true;
        }
    }
    return false;
}

static sb_status add(sb_capacities *capacities, const sb_capacity *given, sb_error *error) {
    SB_TRY(sb_capacity_check(given, error));
    for (int i = 0; i < capacities->count; i++) {
        if (strcmp(capacities->items[i].symbol, given->symbol) == 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "extent %.200s is given two capacities", given->symbol);
    }
    if (!sb_capacities_of_program(capacities->program, given->symbol))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no input has an extent %.200s that could have a capacity",
                       given->symbol);
    char *symbol = sb_duplicate_string(given->symbol);
    if (symbol == NULL)
        return sb_fail_memory(error, strlen(given->symbol) + 1);
    capacities->items[capacities->count++] = (sb_capacity){symbol, given->capacity, given->least};
    return SB_OK;
}

sb_status sb_capacities_create(const sb_program *program, int count, const sb_capacity *items,
                               sb_capacities **capacities, sb_error *error) {
    sb_capacities *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->program = program;
    fresh->items = sb_allocate_array((size_t)count, sizeof *fresh->items);
    fresh->extents = sb_allocate_array((size_t)count, sizeof *fresh->extents);
    fresh->buckets = sb_allocate_array((size_t)count, sizeof *fresh->buckets);
    fresh->shrunk = sb_allocate_array((size_t)count, sizeof *fresh->shrunk);
    sb_status status = SB_OK;
    if (fresh->items == NULL || fresh->extents == NULL || fresh->buckets == NULL || fresh->shrunk == NULL)
        status = sb_fail_memory(error, (size_t)count * sizeof *fresh->items);
    for (int i = 0; i < count && status == SB_OK; i++)
        status = add(fresh, &items[i], error);
    if (status != SB_OK) {
        sb_capacities_destroy(fresh);
        return status;
    }
    *capacities = fresh;
    return SB_OK;
}

void sb_capacities_destroy(sb_capacities *capacities) {
    if (capacities == NULL)
        return;
    for (int i = 0; i < capacities->count; i++)
        sb_free((char *)capacities->items[i].symbol);
    sb_free(capacities->items);
    sb_free(capacities->extents);
    sb_free(capacities->buckets);
    sb_free(capacities->shrunk);
    sb_free(capacities);
}

/* The smallest plan that holds the extent. */
static int64_t bucket_of(const sb_capacity *item, int64_t extent) {
    int64_t bucket = item->least > 0 ? item->least : item->capacity;
    while (bucket < extent && bucket <= item->capacity / 2)
        bucket *= 2;
    return bucket < extent ? item->capacity : bucket;
}

sb_status sb_capacities_choose(sb_capacities *capacities, const sb_binding *run, sb_error *error) {
    capacities->run = *run;
    for (int i = 0; i < capacities->count; i++) {
        const sb_capacity *item = &capacities->items[i];
        capacities->extents[i] = -1;
        for (int s = 0; s < run->count; s++) {
            if (strcmp(run->names[s], item->symbol) == 0)
                capacities->extents[i] = run->values[s];
        }
        if (capacities->extents[i] > item->capacity)
            return sb_fail(error, SB_ERROR_SHAPE, "extent %.200s is %lld, and its capacity is %lld", item->symbol,
                           (long long)capacities->extents[i], (long long)item->capacity);
        capacities->buckets[i] = bucket_of(item, capacities->extents[i]);
        capacities->shrunk[i] = false;
    }
    return SB_OK;
}

/* A cache that is nearly full has room for the extents that the run has, but not for those that it might have had: these
 * are halved until they are `missing` less, which is how much the cache has too many, down to the extents themselves.
 * Whether there was anything to take away. */
static bool shrink(sb_capacities *capacities, const bool *add, int64_t missing) {
    bool less = false;
    for (int i = 0; i < capacities->count; i++) {
        int64_t bucket = capacities->buckets[i], least = capacities->extents[i] > 1 ? capacities->extents[i] : 1;
        if (!add[i] || capacities->extents[i] < 0 || bucket <= least)
            continue;
        int64_t half = bucket / 2;
        while (half > least && half > bucket - missing)
            half /= 2;
        capacities->buckets[i] = half > least ? half : least;
        capacities->shrunk[i] = less = true;
    }
    return less;
}

static sb_status has_no_room(const sb_capacities *capacities, int i, const int64_t *planned, sb_error *error) {
    return sb_fail(error, SB_ERROR_SHAPE,
                   "extent %.200s is %lld, and its capacity, %lld, leaves this run no room for more than %lld: "
                   "trim or reset the state, or give a larger capacity",
                   capacities->items[i].symbol, (long long)capacities->extents[i],
                   (long long)capacities->items[i].capacity, (long long)planned[i]);
}

/* Ends, since a bucket only ever becomes larger until the first time that it becomes smaller, and smaller behind that. */
sb_status sb_capacities_enlarge(sb_capacities *capacities, const int64_t *planned, const bool *add, sb_error *error) {
    bool larger = false;
    for (int i = 0; i < capacities->count; i++) {
        const sb_capacity *item = &capacities->items[i];
        if (capacities->extents[i] <= planned[i])
            continue;
        if (capacities->shrunk[i])
            return has_no_room(capacities, i, planned, error);
        if (capacities->buckets[i] == item->capacity)
            return shrink(capacities, add, capacities->extents[i] - planned[i])
                       ? SB_OK
                       : has_no_room(capacities, i, planned, error);
        capacities->buckets[i] = bucket_of(item, capacities->buckets[i] + 1);
        larger = true;
    }
    return larger ? SB_OK
                  : sb_fail(error, SB_ERROR_UNSUPPORTED,
                            "an extent of the model is larger at some smaller extent of the symbols with a capacity "
                            "than at the capacity itself: leave the capacity out");
}

int sb_capacities_find(const sb_capacities *capacities, sb_dim formula) {
    for (int i = 0; i < capacities->count; i++) {
        if (sb_dim_mentions(formula, capacities->items[i].symbol))
            return i;
    }
    return -1;
}
