/* The standard's own test models: loaded, loaded without enough memory, and loaded damaged. */
#define _GNU_SOURCE /* nftw */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/import.h"
#include "support/failing.h"
#include "support/random.h"

enum { MOST_MODELS = 4000 };

static char *paths[MOST_MODELS];
static size_t path_count;

static int note_path(const char *path, const struct stat *about, int kind, struct FTW *where) {
    size_t length = strlen(path);
    if (kind == FTW_F && length > 5 && strcmp(path + length - 5, ".onnx") == 0 && path_count < MOST_MODELS)
        paths[path_count++] = strdup(path);
    return 0;
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static int set_up(void **state) {
    nftw(ONNX_TESTDATA, note_path, 16, FTW_PHYS);
    qsort(paths, path_count, sizeof *paths, compare_paths);
    return path_count > 1000 ? 0 : -1;
}

static int tear_down(void **state) {
    for (size_t i = 0; i < path_count; i++)
        free(paths[i]);
    return 0;
}

static sb_status load(const void *bytes, size_t size, sb_error *error) {
    sb_scope *scope;
    sb_graph *graph;
    SB_TRY(sb_scope_create(&scope, error));
    sb_status status = sb_onnx_load(bytes, size, NULL, scope, &graph, NULL, NULL, error);
    if (status == SB_OK)
        sb_graph_destroy(graph);
    sb_scope_destroy(scope);
    return status;
}

/* What loads not lacks an operator, and nothing else. */
static void test_all(void **state) {
    size_t loaded = 0;
    for (size_t i = 0; i < path_count; i++) {
        sb_scope *scope;
        sb_graph *graph;
        sb_error error = {0};
        assert_int_equal(sb_scope_create(&scope, &error), SB_OK);
        sb_status status = sb_onnx_load_file(paths[i], scope, &graph, NULL, NULL, &error);
        if (status == SB_OK) {
            loaded++;
            sb_graph_destroy(graph);
        } else if (status != SB_ERROR_UNSUPPORTED || strstr(error.message, "that Samebit lacks") == NULL) {
            fail_msg("%s", error.message);
        }
        sb_scope_destroy(scope);
        assert_int_equal(sb_allocation_count().live_blocks, 0);
    }
    assert_true(loaded > 1000);
}

typedef struct model_bytes {
    void *bytes;
    size_t size;
} model_bytes;

static sb_status load_bytes(void *context) {
    const model_bytes *model = context;
    sb_error error;
    return load(model->bytes, model->size, &error);
}

static bool has_part(const char *path) {
    static const char *const parts[] = {"test_loop13_seq/",
                                        "test_if_opt/",
                                        "test_scan9_sum/",
                                        "test_sequence_map_add_1_sequence_1_tensor_expanded/",
                                        "test_Conv2d/",
                                        "simple/test_expand_shape_model1/",
                                        "test_layer_normalization_4d_axis1_expanded/",
                                        "test_LSTM"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strstr(path, parts[i]) != NULL)
            return true;
    }
    return false;
}

/* Each allocation in turn fails. */
static void test_no_memory(void **state) {
    size_t tried = 0;
    for (size_t i = 0; i < path_count; i++) {
        model_bytes model;
        if (!has_part(paths[i]))
            continue;
        assert_int_equal(sb_file_read(paths[i], SIZE_MAX, &model.bytes, &model.size, NULL), SB_OK);
        check_failing_allocations(load_bytes, &model);
        sb_free(model.bytes);
        tried++;
    }
    assert_true(tried >= 7);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* ---- damage ---- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Loads a copy of just its size, so that sanitizers see a step past the end. */
static void load_damaged(const uint8_t *bytes, size_t size) {
    uint8_t *exact = malloc(size + (size == 0));
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    sb_error error = {0};
    double begin = seconds();
    sb_status status = load(exact, size, &error);
    free(exact);
    if (status == SB_ERROR_OUT_OF_MEMORY || status == SB_ERROR_INTERNAL)
        fail_msg("%s", error.message);
    assert_true(status == SB_OK || error.message[0] != '\0');
    if (seconds() - begin > 20)
        fail_msg("a damaged model of %zu bytes took %.0f s", size, seconds() - begin);
}

static void damage(random_source *source, const uint8_t *sound, uint8_t *bytes, size_t size) {
    memcpy(bytes, sound, size);
    for (int64_t flips = random_between(source, 1, 3); flips > 0; flips--) {
        size_t at = (size_t)random_between(source, 0, (int64_t)size - 1);
        if (random_between(source, 0, 3) == 0)
            bytes[at] = (uint8_t)random_bits(source);
        else
            bytes[at] ^= (uint8_t)(1u << random_between(source, 0, 7));
    }
}

/* Truncations and flipped bits, over all models in turn until the time is over (SAMEBIT_TEST_SECONDS,
 * 10 by default). */
static void test_damaged(void **state) {
    const char *limit = getenv("SAMEBIT_TEST_SECONDS");
    double end = seconds() + (limit != NULL ? atof(limit) : 10);
    size_t rounds = 0, inputs = 0;
    random_source source = {1};
    for (; rounds < 400 && seconds() < end; rounds++) {
        for (size_t i = rounds % 7; i < path_count && seconds() < end; i += 7) {
            void *sound;
            size_t size;
            assert_int_equal(sb_file_read(paths[i], SIZE_MAX, &sound, &size, NULL), SB_OK);
            uint8_t *bytes = malloc(size + 1);
            assert_non_null(bytes);
            for (int k = 0; k < 12; k++, inputs++) {
                size_t length = k == 0 ? (size_t)random_between(&source, 0, (int64_t)size) : size;
                damage(&source, sound, bytes, size);
                load_damaged(k == 0 ? sound : bytes, length);
            }
            free(bytes);
            sb_free(sound);
            assert_int_equal(sb_allocation_count().live_blocks, 0);
        }
    }
    print_message("%zu damaged models\n", inputs);
    assert_true(inputs > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
