/* .npz archives and the public functions over both formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <samebit/io.h>
#include <zip.h>

#include "base/file.h"
#include "support/failing.h"
#include "support/folder.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/random_view.h"

static int close_all(void **state) {
    return folder_close(state) == 0 && sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

enum { ARRAYS = 14 };

/* One random view of each dtype. */
static void make_arrays(random_source *source, const char **names, sb_tensor **tensors) {
    static model plan;
    for (int i = 0; i < ARRAYS; i++) {
        names[i] = sb_dtype_name((sb_dtype)(i + 1));
        tensors[i] = model_random(source, (sb_dtype)(i + 1), &plan);
    }
}

static void release_arrays(sb_tensor **tensors) {
    for (int i = 0; i < ARRAYS; i++)
        sb_tensor_release(tensors[i]);
}

static void expect_arrays(const char *path, const char *const *names, sb_tensor *const *tensors) {
    int count;
    char **loaded_names;
    sb_tensor **loaded;
    assert_int_equal(sb_tensors_load(path, &count, &loaded_names, &loaded, NULL), SB_OK);
    assert_int_equal(count, ARRAYS);
    for (int i = 0; i < count; i++) {
        assert_string_equal(loaded_names[i], names[i]);
        assert_true(sb_tensor_equal(loaded[i], tensors[i]));
        sb_tensor *one = NULL;
        assert_int_equal(sb_tensor_load(path, names[i], &one, NULL), SB_OK);
        assert_true(sb_tensor_equal(one, tensors[i]));
        sb_tensor_release(one);
    }
    sb_tensors_free(count, loaded_names, loaded);
}

static void test_round_trip(void **state) {
    random_source source = {21};
    for (int round = 0; round < 10; round++) {
        const char *names[ARRAYS];
        sb_tensor *tensors[ARRAYS];
        make_arrays(&source, names, tensors);
        const char *path = folder_path("arrays.npz");
        assert_int_equal(sb_tensors_save(path, ARRAYS, names, tensors, NULL), SB_OK);
        expect_arrays(path, names, tensors);
        release_arrays(tensors);
    }
    assert_int_equal(folder_count(false), 1);
}

/* The same arrays give the same file: no date of writing, no order of hashing. */
static void test_same_bytes(void **state) {
    random_source source = {22};
    const char *names[ARRAYS];
    sb_tensor *tensors[ARRAYS];
    make_arrays(&source, names, tensors);
    void *bytes[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sb_tensors_save(folder_path("a.npz"), ARRAYS, names, tensors, NULL), SB_OK);
        assert_int_equal(sb_file_read(folder_path("a.npz"), 1 << 24, &bytes[i], &sizes[i], NULL), SB_OK);
        setenv("TZ", i == 0 ? "Asia/Kathmandu" : "UTC", 1);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    sb_free(bytes[0]);
    sb_free(bytes[1]);
    release_arrays(tensors);
}

/* An archive as numpy.savez_compressed writes it (method ZIP_CM_DEFLATE), or another. */
static void make_archive(const char *name, int method, int count, const char *const *members, void *const *bytes,
                         const size_t *sizes) {
    zip_t *archive = zip_open(folder_path(name), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(archive);
    for (int i = 0; i < count; i++) {
        zip_source_t *source = zip_source_buffer(archive, bytes[i], sizes[i], 0);
        zip_int64_t index = zip_file_add(archive, members[i], source, 0);
        assert_true(index >= 0);
        assert_int_equal(zip_set_file_compression(archive, (zip_uint64_t)index, method, 0), 0);
    }
    assert_int_equal(zip_close(archive), 0);
}

static void test_deflated(void **state) {
    random_source source = {23};
    const char *names[ARRAYS], *members[ARRAYS];
    char member_names[ARRAYS][32];
    sb_tensor *tensors[ARRAYS];
    void *bytes[ARRAYS];
    size_t sizes[ARRAYS];
    make_arrays(&source, names, tensors);
    for (int i = 0; i < ARRAYS; i++) {
        snprintf(member_names[i], sizeof member_names[i], "%s.npy", names[i]);
        members[i] = member_names[i];
        assert_int_equal(sb_npy_write(tensors[i], &bytes[i], &sizes[i], NULL), SB_OK);
    }
    make_archive("deflated.npz", ZIP_CM_DEFLATE, ARRAYS, members, bytes, sizes);
    expect_arrays(folder_path("deflated.npz"), names, tensors);
    for (int i = 0; i < ARRAYS; i++)
        sb_free(bytes[i]);
    release_arrays(tensors);
}

static void expect_refusal(const char *path, const char *name, sb_status status, const char *words) {
    sb_tensor *tensor = NULL;
    sb_error error = {0};
    assert_int_equal(sb_tensor_load(path, name, &tensor, &error), status);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
    assert_null(tensor);
}

static void test_names(void **state) {
    sb_tensor *tensor = NULL, *loaded = NULL;
    sb_error error;
    assert_int_equal(sb_tensor_create(SB_S16, 1, &(const int64_t){3}, &tensor, NULL), SB_OK);
    sb_tensor *const twice[] = {tensor, tensor};
    const char *path = folder_path("a.npz");

    assert_int_equal(sb_tensors_save(path, 1, (const char *const[]){"only"}, twice, NULL), SB_OK);
    assert_int_equal(sb_tensor_load(path, NULL, &loaded, NULL), SB_OK);
    sb_tensor_release(loaded);
    expect_refusal(path, "other", SB_ERROR_INVALID_ARGUMENT, "no array other; it has: only");
    assert_int_equal(sb_tensors_save(path, 2, (const char *const[]){"x", "d\xc3\xa9/y"}, twice, NULL), SB_OK);
    expect_refusal(path, NULL, SB_ERROR_INVALID_ARGUMENT, "2 arrays: name one of them: x, d\xc3\xa9/y");
    assert_int_equal(sb_tensor_load(path, "d\xc3\xa9/y", &loaded, NULL), SB_OK);
    sb_tensor_release(loaded);

    assert_int_equal(sb_tensors_save(path, 2, (const char *const[]){"x", "x"}, twice, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "two arrays are named x"));
    assert_int_equal(sb_tensors_save(path, 2, (const char *const[]){"x", ""}, twice, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensors_save(path, 2, (const char *const[]){"x", NULL}, twice, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensors_save(path, -1, NULL, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    /* What failed left the old file. */
    assert_int_equal(sb_tensor_load(path, "x", &loaded, NULL), SB_OK);
    sb_tensor_release(loaded);
    assert_int_equal(sb_tensors_save(folder_path("no/a.npz"), 1, (const char *const[]){"x"}, twice, &error),
                     SB_ERROR_IO);

    int count = -1;
    char **names;
    sb_tensor **tensors;
    assert_int_equal(sb_tensors_save(path, 0, NULL, NULL, NULL), SB_OK);
    assert_int_equal(sb_tensors_load(path, &count, &names, &tensors, NULL), SB_OK);
    assert_int_equal(count, 0);
    sb_tensors_free(count, names, tensors);
    expect_refusal(path, NULL, SB_ERROR_INVALID_ARGUMENT, "0 arrays");

    const char *single = folder_path("a.npy");
    assert_int_equal(sb_tensor_save(single, tensor, NULL), SB_OK);
    assert_int_equal(sb_tensors_load(single, &count, &names, &tensors, NULL), SB_OK);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "");
    assert_true(sb_tensor_equal(tensors[0], tensor));
    sb_tensors_free(count, names, tensors);
    expect_refusal(single, "x", SB_ERROR_INVALID_ARGUMENT, "x cannot be picked");
    expect_refusal(folder_path("none"), NULL, SB_ERROR_IO, "none");
    expect_refusal(folder, NULL, SB_ERROR_IO, folder);
    folder_write("text", "hello, world", 12);
    expect_refusal(folder_path("text"), NULL, SB_ERROR_INVALID_FILE, "neither");
    folder_write("empty", "", 0);
    expect_refusal(folder_path("empty"), NULL, SB_ERROR_INVALID_FILE, "neither");
    folder_write("short.npy", "\x93NUMPY\1\0v\0{", 11);
    expect_refusal(folder_path("short.npy"), NULL, SB_ERROR_INVALID_FILE, "short.npy: byte 11");
    sb_tensor_release(tensor);
}

static void test_hostile_members(void **state) {
    sb_tensor *tensor = NULL;
    void *bytes[2];
    size_t sizes[2];
    assert_int_equal(sb_tensor_create(SB_F64, 1, &(const int64_t){500}, &tensor, NULL), SB_OK);
    assert_int_equal(sb_npy_write(tensor, &bytes[0], &sizes[0], NULL), SB_OK);
    bytes[1] = bytes[0];
    sizes[1] = sizes[0];
    const char *path = folder_path("bad.npz");
    make_archive("bad.npz", ZIP_CM_STORE, 1, (const char *const[]){"readme.txt"}, bytes, sizes);
    expect_refusal(path, NULL, SB_ERROR_UNSUPPORTED, "readme.txt");
    make_archive("bad.npz", ZIP_CM_STORE, 1, (const char *const[]){"npy"}, bytes, sizes);
    expect_refusal(path, NULL, SB_ERROR_UNSUPPORTED, "npy is not");
    sizes[0]--;
    make_archive("bad.npz", ZIP_CM_DEFLATE, 1, (const char *const[]){"a.npy"}, bytes, sizes);
    expect_refusal(path, NULL, SB_ERROR_INVALID_FILE, "bad.npz: a.npy: byte 128");

    sizes[0]++;
    /* Two members of one name, which libzip itself refuses to write: the second name is changed afterwards. */
    make_archive("bad.npz", ZIP_CM_STORE, 2, (const char *const[]){"a.npy", "b.npy"}, bytes, sizes);
    void *archive;
    size_t size;
    assert_int_equal(sb_file_read(path, 1 << 20, &archive, &size, NULL), SB_OK);
    for (char *at = archive; at + 5 < (char *)archive + size; at++) {
        if (memcmp(at, "b.npy", 5) == 0)
            *at = 'a';
    }
    folder_write("bad.npz", archive, size);
    expect_refusal(path, "a", SB_ERROR_INVALID_FILE, "two arrays are named a");
    sb_free(archive);
    sb_free(bytes[0]);
    sb_tensor_release(tensor);
}

/* The size that the directory tells (at byte 24 of its entry) is a lie that only a bomb could make true. */
static void test_bomb(void **state) {
    static char zeros[100000];
    static char header[] = "\x93NUMPY\1\0v\0{'descr': '|u1', 'fortran_order': False, 'shape': (99872,), }";
    memset(zeros + sizeof header - 1, ' ', 128 - sizeof header);
    memcpy(zeros, header, sizeof header - 1);
    zeros[127] = '\n';
    make_archive("bomb.npz", ZIP_CM_DEFLATE, 1, (const char *const[]){"a.npy"}, (void *[]){zeros},
                 (size_t[]){sizeof zeros});
    sb_tensor *tensor = NULL;
    assert_int_equal(sb_tensor_load(folder_path("bomb.npz"), NULL, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(tensor), 99872);
    sb_tensor_release(tensor);
    void *bytes;
    size_t size;
    assert_int_equal(sb_file_read(folder_path("bomb.npz"), 1 << 20, &bytes, &size, NULL), SB_OK);
    char *entry = bytes;
    while (memcmp(entry, "PK\1\2", 4) != 0)
        entry++;
    memcpy(entry + 24, "\0\0\0\x70", 4);
    folder_write("bomb.npz", bytes, size);
    int64_t peak = sb_allocation_count().peak_bytes;
    expect_refusal(folder_path("bomb.npz"), NULL, SB_ERROR_INVALID_FILE, "cannot hold them");
    assert_true(sb_allocation_count().peak_bytes < peak + (1 << 20));
    /* Within the ratio, the bytes themselves disagree. */
    memcpy(entry + 24, "\xa1\x86\1\0", 4);
    folder_write("bomb.npz", bytes, size);
    tensor = NULL;
    assert_int_not_equal(sb_tensor_load(folder_path("bomb.npz"), NULL, &tensor, NULL), SB_OK);
    sb_free(bytes);
}

/* Every byte of an archive changed, one after the other: refused, or the arrays are whole. */
static void test_damage(void **state) {
    sb_tensor *tensor = NULL;
    static const uint32_t data[] = {1, 2, 3, 4};
    assert_int_equal(sb_tensor_from_data(SB_U32, 1, &(const int64_t){4}, data, &tensor, NULL), SB_OK);
    for (int deflated = 0; deflated < 2; deflated++) {
        void *image, *archive;
        size_t image_size, size;
        assert_int_equal(sb_npy_write(tensor, &image, &image_size, NULL), SB_OK);
        make_archive("a.npz", deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 1, (const char *const[]){"a.npy"}, &image,
                     &image_size);
        assert_int_equal(sb_file_read(folder_path("a.npz"), 1 << 20, &archive, &size, NULL), SB_OK);
        int refused = 0;
        for (size_t i = 0; i < 2 * size; i++) {
            unsigned char *byte = (unsigned char *)archive + i % size, saved = *byte;
            *byte ^= i < size ? 1 : 0xff;
            sb_npz *npz = NULL;
            sb_tensor *loaded = NULL;
            if (sb_npz_open_memory(archive, size, &npz, NULL) != SB_OK || sb_npz_count(npz) != 1 ||
                sb_npz_read(npz, 0, &loaded, NULL) != SB_OK)
                refused++;
            else
                assert_true(sb_tensor_equal(loaded, tensor));
            sb_tensor_release(loaded);
            sb_npz_close(npz);
            *byte = saved;
        }
        assert_true(refused > 200);
        /* And cut anywhere. */
        for (size_t cut = 0; cut < size; cut++) {
            sb_npz *npz = NULL;
            assert_int_not_equal(sb_npz_open_memory(archive, cut, &npz, NULL), SB_OK);
        }
        sb_free(archive);
        sb_free(image);
    }
    sb_tensor_release(tensor);
}

static void test_indices(void **state) {
    sb_tensor *tensor = NULL, *loaded = NULL;
    sb_npz *npz;
    assert_int_equal(sb_tensor_create(SB_BOOL, 0, NULL, &tensor, NULL), SB_OK);
    assert_int_equal(
        sb_npz_write(folder_path("a.npz"), 1, (const char *const[]){"x"}, (sb_tensor *const[]){tensor}, NULL), SB_OK);
    assert_int_equal(sb_npz_open(folder_path("a.npz"), &npz, NULL), SB_OK);
    assert_int_equal(sb_npz_find(npz, "x"), 0);
    assert_int_equal(sb_npz_find(npz, "x.npy"), -1);
    assert_string_equal(sb_npz_name(npz, 0), "x");
    assert_int_equal(sb_npz_read(npz, 1, &loaded, NULL), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_npz_read(npz, -1, &loaded, NULL), SB_ERROR_INVALID_ARGUMENT);
    sb_npz_close(npz);
    sb_npz_close(NULL);
    assert_int_equal(sb_npz_open(folder_path("none"), &npz, NULL), SB_ERROR_IO);
    sb_tensor_release(tensor);
}

static sb_status save_and_load(void *context) {
    sb_tensor *const *tensors = context;
    char **names;
    sb_tensor **loaded;
    int count;
    const char *path = folder_path("memory.npz");
    sb_status status = sb_tensors_save(path, 2, (const char *const[]){"one", "two"}, tensors, NULL);
    if (status == SB_OK)
        status = sb_tensors_load(path, &count, &names, &loaded, NULL);
    if (status == SB_OK)
        sb_tensors_free(count, names, loaded);
    return status;
}

/* As check_failing_allocations, except that the flush of the folder may fail without harm. */
static void test_memory(void **state) {
    sb_tensor *tensors[2] = {NULL};
    assert_int_equal(sb_tensor_create(SB_F32, 1, &(const int64_t){3}, &tensors[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_create(SB_STRING, 1, &(const int64_t){3}, &tensors[1], NULL), SB_OK);
    int64_t before = sb_allocation_count().live_blocks;
    int failures = 0, successes_in_a_row = 0;
    for (int64_t successes = 0; successes_in_a_row < 3; successes++) {
        sb_allocation_fail_after(successes, false);
        sb_status status = save_and_load(tensors);
        sb_allocation_fail_after(-1, false);
        assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
        failures += status != SB_OK;
        successes_in_a_row = status == SB_OK ? successes_in_a_row + 1 : 0;
        assert_int_equal(sb_allocation_count().live_blocks, before);
        assert_true(folder_count(false) <= 1);
    }
    assert_true(failures > 15);
    sb_tensor_release(tensors[0]);
    sb_tensor_release(tensors[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_same_bytes, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_deflated, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_names, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_hostile_members, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_bomb, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_damage, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_indices, folder_open, close_all),
        cmocka_unit_test_setup_teardown(test_memory, folder_open, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
