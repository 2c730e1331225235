/* A model that keeps a cache of a fixed number of rows by TensorScatter, and what its runs make of it. Include after cmocka.h. */
#ifndef SB_TESTS_CACHE_UPDATE_H
#define SB_TESTS_CACHE_UPDATE_H

#include "stateful.h"

#define UPDATE_BATCH 2
#define UPDATE_ROWS 6
#define UPDATE_WIDTH 3
#define UPDATE_COUNT 2 /* rows that a run writes */
#define UPDATE_ELEMENTS (UPDATE_BATCH * UPDATE_ROWS * UPDATE_WIDTH)

typedef struct update_kind {
    bool circular;
    bool late; /* a node behind the update reads the cache as it was */
} update_kind;

/* cache [batch, rows, width] := TensorScatter(cache, x, starts); output: its sum, made behind, and with `late` + the
 * sum of the cache before. */
static inline sb_status add_cache_update(sb_builder *b, const update_kind *kind, sb_error *error) {
    static const int64_t dims[] = {UPDATE_BATCH, UPDATE_ROWS, UPDATE_WIDTH};
    static const int64_t x_dims[] = {UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, start_dims[] = {UPDATE_BATCH};
    sb_value_description whole = described("cache", SB_F32, 3, dims), list = described("starts", SB_S64, 1, start_dims);
    sb_tensor *initial = numbers(3, dims, 4);
    sb_builder_variable cache;
    sb_builder_value x, starts, old, next, sum, before, shown;
    const sb_builder_attribute mode = sb_attribute_text("mode", kind->circular ? "circular" : "linear");
    sb_status status = sb_builder_add_variable(b, &whole, initial, NULL, &cache, error);
    sb_tensor_release(initial);
    SB_TRY(status);
    SB_TRY(add_input(b, "x", 3, x_dims, &x, error));
    SB_TRY(sb_builder_input(b, &list, &starts, error));
    SB_TRY(sb_builder_read(b, cache, &old, error));
    SB_TRY(sb_builder_op(b, "TensorScatter", 3, (sb_builder_value[]){old, x, starts}, 1, &mode, &next, error));
    SB_TRY(sb_builder_update(b, cache, next, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 1, &next, 0, NULL, &sum, error));
    if (!kind->late)
        return sb_builder_output(b, sum, error);
    SB_TRY(sb_builder_op(b, "ReduceSum", 1, &old, 0, NULL, &before, error));
    SB_TRY(add_binary(b, "Add", before, sum, &shown, error));
    return sb_builder_output(b, shown, error);
}

static inline sb_model *cache_update_model(const update_kind *kind) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_cache_update(b, kind, error), &model, error));
    return model;
}

static inline sb_tensor *start_list(int64_t first, int64_t second) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){UPDATE_BATCH}, (const int64_t[]){first, second}, &tensor, error));
    return tensor;
}

/* What the run makes of the cache, in plain loops. */
static inline void update_by_hand(float *cache, const sb_tensor *x, int64_t first, int64_t second) {
    const int64_t starts[UPDATE_BATCH] = {first, second};
    const float *from = sb_tensor_data(x);
    for (int64_t b = 0; b < UPDATE_BATCH; b++) {
        for (int64_t row = 0; row < UPDATE_COUNT; row++) {
            int64_t to = (starts[b] + row) % UPDATE_ROWS;
            memcpy(cache + (b * UPDATE_ROWS + to) * UPDATE_WIDTH, from + (b * UPDATE_COUNT + row) * UPDATE_WIDTH,
                   UPDATE_WIDTH * sizeof *cache);
        }
    }
}

static inline void check_cache(sb_state *state, const float *expected) {
    sb_tensor *cache = contents(state, "cache");
    assert_memory_equal(sb_tensor_data(cache), expected, UPDATE_ELEMENTS * sizeof *expected);
    sb_tensor_release(cache);
}

#endif
