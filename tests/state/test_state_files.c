/* States in files: saved and restored, as a whole and by slot; and files that are cut short,
 * damaged, or of something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/state.h"
#include "stateful.h"
#include "support/failing.h"
#include "support/folder.h"

/* A state that differs from a fresh one. */
static sb_state *used_state(sb_model *model, int64_t slots, uint64_t seed) {
    sb_state *state = slots_state(model, NULL, slots);
    sb_tensor *v = numbers(2, (int64_t[]){slots, 4}, seed), *w = numbers(1, (int64_t[]){4}, seed + 1);
    MUST(sb_state_set(state, 0, v, error));
    MUST(sb_state_set(state, 1, w, error));
    MUST(sb_state_set(state, 1, w, error));
    sb_tensor_release(v);
    sb_tensor_release(w);
    return state;
}

typedef struct file {
    unsigned char *bytes;
    size_t size;
} file;

static file read_whole(const char *path) {
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    file whole = {malloc(1 << 16), 0};
    whole.size = fread(whole.bytes, 1, 1 << 16, stream);
    fclose(stream);
    return whole;
}

static void test_round_trip(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = used_state(model, 3, 10), *other = slots_state(model, NULL, 3);
    const char *path = folder_path("whole");
    MUST(sb_state_save(state, path, error));
    MUST(sb_state_restore(other, path, error));
    check_same_contents(state, other);
    MUST(sb_state_save(other, folder_path("again"), error));
    file first = read_whole(path), second = read_whole(folder_path("again"));
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    free(first.bytes);
    free(second.bytes);
    assert_int_equal(folder_count(true), 2); /* nothing beside the files */
    sb_state_release(state);
    sb_state_release(other);
    sb_model_release(model);
}

/* A slot goes to another slot of a state of another size. */
static void test_slot(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = used_state(model, 3, 20), *other = used_state(model, 5, 30);
    const char *path = folder_path("slot");
    sb_tensor *before = contents(other, "v"), *source = contents(state, "v"), *w = contents(other, "w");
    MUST(sb_state_save_slot(state, 2, path, error));
    MUST(sb_state_restore_slot(other, 4, path, error));
    sb_tensor *after = contents(other, "v"), *same = contents(other, "w");
    assert_memory_equal(sb_tensor_data(after), sb_tensor_data(before), 64);
    assert_memory_equal((const char *)sb_tensor_data(after) + 64, (const char *)sb_tensor_data(source) + 32, 16);
    check_equal(same, w);
    assert_int_equal(version_of(other, "v"), 2);
    sb_error error;
    assert_int_equal(sb_state_restore(other, path, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "at byte 48: one slot, where a whole state is to be restored");
    MUST(sb_state_save(state, path, error));
    assert_int_equal(sb_state_restore_slot(other, 0, path, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "at byte 48: a whole state");
    assert_int_equal(sb_state_save_slot(state, 3, path, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_state_restore_slot(state, 3, path, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_tensor *all[] = {before, source, w, after, same};
    for (int i = 0; i < 5; i++)
        sb_tensor_release(all[i]);
    sb_state_release(state);
    sb_state_release(other);
    sb_model_release(model);
}

/* ---- hostile files ---- */

typedef struct hostile {
    sb_model *model;
    sb_state *state, *expected; /* what stands before and after each attempt */
    file file;
} hostile;

static hostile start(void) {
    hostile h = {.model = slots_model()};
    sb_state *saved = used_state(h.model, 3, 40);
    h.state = used_state(h.model, 3, 50);
    h.expected = used_state(h.model, 3, 50);
    MUST(sb_state_save(saved, folder_path("hostile"), error));
    h.file = read_whole(folder_path("hostile"));
    sb_state_release(saved);
    return h;
}

static void finish(hostile *h) {
    free(h->file.bytes);
    sb_state_release(h->state);
    sb_state_release(h->expected);
    sb_model_release(h->model);
}

static sb_status attempt(hostile *h, size_t size, const char *says) {
    sb_error error = {SB_OK, ""};
    sb_status status = sb_state_restore_memory(h->state, SB_ALL_SLOTS, h->file.bytes, size, "file", &error);
    assert_int_not_equal(status, SB_OK);
    assert_int_not_equal(status, SB_ERROR_INTERNAL);
    ASSERT_SAYS(error, "file: at byte ");
    ASSERT_SAYS(error, says);
    check_same_contents(h->state, h->expected);
    return status;
}

static void test_cut_short(void **unused) {
    hostile h = start();
    for (size_t size = 0; size < h.file.size; size++)
        assert_int_equal(attempt(&h, size, "cut short"), SB_ERROR_INVALID_FILE);
    h.file.bytes = realloc(h.file.bytes, h.file.size + 1);
    h.file.bytes[h.file.size] = 0;
    assert_int_equal(attempt(&h, h.file.size + 1, "too many"), SB_ERROR_INVALID_FILE);
    finish(&h);
}

static void test_every_byte(void **unused) {
    hostile h = start();
    for (size_t at = 0; at < h.file.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            h.file.bytes[at] ^= (unsigned char)(1 << bit);
            attempt(&h, h.file.size, "");
            h.file.bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    MUST(sb_state_restore_memory(h.state, SB_ALL_SLOTS, h.file.bytes, h.file.size, "file", error));
    finish(&h);
}

static void test_foreign(void **unused) {
    hostile h = start();
    unsigned char *bytes = h.file.bytes;
    for (unsigned char version = 0; version < 4; version++) {
        static const char *const says[] = {"at byte 8: version 0 of the format, where this library reads version 2",
                                           "at byte 8: version 1 of the format, where this library reads version 2",
                                           NULL,
                                           "at byte 8: version 3 of the format, where this library reads version 2"};
        bytes[8] = version;
        if (says[version] != NULL)
            assert_int_equal(attempt(&h, h.file.size, says[version]), SB_ERROR_UNSUPPORTED);
    }
    bytes[8] = 2;
    bytes[12] = 0;
    assert_int_equal(attempt(&h, h.file.size, "version 0 of the numerics"), SB_ERROR_UNSUPPORTED);
    bytes[12] = (unsigned char)sb_numerics_version();
    bytes[16] ^= 1;
    assert_int_equal(attempt(&h, h.file.size, "another model"), SB_ERROR_INVALID_ARGUMENT);
    bytes[16] ^= 1;
    bytes[52] = 3;
    assert_int_equal(attempt(&h, h.file.size, "3 variables, where the state has 2"), SB_ERROR_SHAPE);
    bytes[52] = 2;
    memset(bytes + 56, 0xff, 4); /* the length of a name */
    assert_int_equal(attempt(&h, h.file.size, "cut short"), SB_ERROR_INVALID_FILE);
    finish(&h);
    /* A state of the same model with other extents. */
    sb_model *model = slots_model(), *lstm = lstm_model();
    sb_state *small = slots_state(model, NULL, 2), *large = slots_state(model, NULL, 3),
             *pairs = lstm_state(lstm, NULL, 2);
    sb_error error;
    MUST(sb_state_save(small, folder_path("small"), error));
    assert_int_equal(sb_state_restore(large, folder_path("small"), &error), SB_ERROR_SHAPE);
    ASSERT_SAYS(error, "variable v has another dtype or other extents than f32[3,4] in the state");
    assert_int_equal(sb_state_restore(pairs, folder_path("small"), &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_state_restore(small, folder_path("missing"), &error), SB_ERROR_IO);
    assert_int_equal(sb_state_save(small, folder_path("no/such/folder"), &error), SB_ERROR_IO);
    sb_state_release(small);
    sb_state_release(large);
    sb_state_release(pairs);
    sb_model_release(model);
    sb_model_release(lstm);
}

/* ---- memory ---- */

static sb_status save_and_restore(void *context) {
    hostile *h = context;
    sb_error error = {SB_OK, ""};
    SB_TRY(sb_state_save(h->expected, folder_path("memory"), &error));
    SB_TRY(sb_state_save_slot(h->expected, 1, folder_path("memory_slot"), &error));
    SB_TRY(sb_state_restore(h->state, folder_path("memory"), &error));
    return sb_state_restore_slot(h->state, 1, folder_path("memory_slot"), &error);
}

static void test_memory(void **unused) {
    hostile h = start();
    check_failing_allocations(save_and_restore, &h);
    finish(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_slot),    cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_every_byte), cmocka_unit_test(test_foreign), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
