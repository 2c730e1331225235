/* Whole files: read, mapped, and replaced whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/file.h"
#include "support/failing.h"
#include "support/folder.h"

static void test_read(void **state) {
    static char content[70000];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 7);
    void *bytes;
    size_t size;
    sb_error error;
    static const size_t sizes[] = {0, 1, 5, 4096, 65536, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        folder_write("some", content, sizes[i]);
        assert_int_equal(sb_file_read(folder_path("some"), sizes[i], &bytes, &size, NULL), SB_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(bytes, content, size);
        assert_int_equal(((char *)bytes)[size], 0);
        sb_free(bytes);
        sb_mapping mapping;
        assert_int_equal(sb_file_map(folder_path("some"), &mapping, NULL), SB_OK);
        assert_int_equal(mapping.size, sizes[i]);
        assert_memory_equal(mapping.bytes, content, size);
        sb_file_unmap(&mapping);
        sb_file_unmap(&mapping);
    }
    assert_int_equal(sb_file_read(folder_path("some"), 69999, &bytes, &size, &error), SB_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "69999"));
    assert_int_equal(sb_file_read(folder_path("none"), 1, &bytes, &size, &error), SB_ERROR_IO);
    assert_non_null(strstr(error.message, "none"));
    assert_int_equal(sb_file_read(folder, 1, &bytes, &size, &error), SB_ERROR_IO);
    sb_mapping mapping;
    assert_int_equal(sb_file_map(folder, &mapping, &error), SB_ERROR_IO);
    assert_int_equal(sb_file_map(folder_path("none"), &mapping, &error), SB_ERROR_IO);
    assert_int_equal(sb_file_map("/dev/null", &mapping, &error), SB_ERROR_IO);
}

/* Files without a size of their own grow while they are read, up to the limit. */
static void test_endless(void **state) {
    void *bytes;
    size_t size;
    sb_error error;
    assert_int_equal(sb_file_read("/dev/zero", 100000, &bytes, &size, &error), SB_ERROR_INVALID_FILE);
    assert_int_equal(sb_file_read("/dev/null", 0, &bytes, &size, &error), SB_OK);
    assert_int_equal(size, 0);
    sb_free(bytes);
}

static void expect_content(const char *name, const char *content) {
    void *bytes;
    size_t size;
    assert_int_equal(sb_file_read(folder_path(name), 1000, &bytes, &size, NULL), SB_OK);
    assert_string_equal(bytes, content);
    sb_free(bytes);
}

static void test_write(void **state) {
    static const sb_file_part parts[] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
    sb_error error;
    assert_int_equal(sb_file_write_whole(folder_path("new"), 3, parts, NULL), SB_OK);
    expect_content("new", "one two");
    assert_int_equal(sb_file_write_whole(folder_path("new"), 1, parts, NULL), SB_OK);
    expect_content("new", "one ");
    assert_int_equal(sb_file_write_whole(folder_path("no/file"), 1, parts, &error), SB_ERROR_IO);
    assert_int_equal(folder_count(false), 1);
    /* The name is taken by a folder: the old state stays, and nothing else is left. */
    assert_int_equal(mkdir(folder_path("taken"), 0777), 0);
    assert_int_equal(sb_file_write_whole(folder_path("taken"), 1, parts, &error), SB_ERROR_IO);
    assert_int_equal(folder_count(false), 2);
    assert_int_equal(rmdir(folder_path("taken")), 0);
    /* Given up half-way. */
    sb_replacement replacement;
    assert_int_equal(sb_replacement_begin(folder_path("new"), &replacement, NULL), SB_OK);
    assert_int_equal(folder_count(false), 2);
    sb_replacement_abandon(&replacement);
    assert_int_equal(folder_count(false), 1);
    expect_content("new", "one ");
    /* Somebody removed the temporary file. */
    assert_int_equal(sb_replacement_begin(folder_path("new"), &replacement, NULL), SB_OK);
    unlink(replacement.temporary);
    assert_int_equal(sb_replacement_commit(&replacement, &error), SB_ERROR_IO);
    expect_content("new", "one ");
}

static sb_status write_and_read(void *context) {
    void *bytes = NULL;
    size_t size;
    sb_status status = sb_file_write_whole(folder_path("kept"), 1, &(sb_file_part){"content", 7}, NULL);
    if (status == SB_OK)
        status = sb_file_read(folder_path("kept"), 100, &bytes, &size, NULL);
    sb_free(bytes);
    return status;
}

/* The flush of the folder is the one allocation whose failure is nobody's loss. */
static void test_memory(void **state) {
    int64_t before = sb_allocation_count().live_blocks;
    for (int64_t successes = 0; successes < 20; successes++) {
        sb_allocation_fail_after(successes, false);
        sb_status status = write_and_read(NULL);
        sb_allocation_fail_after(-1, false);
        assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
        assert_true(successes > 1 || status == SB_ERROR_OUT_OF_MEMORY);
        assert_int_equal(sb_allocation_count().live_blocks, before);
        assert_true(folder_count(false) <= 1);
    }
    expect_content("kept", "content");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(test_endless, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(test_write, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(test_memory, folder_open, folder_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
