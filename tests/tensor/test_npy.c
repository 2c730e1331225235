/* .npy files: what numpy writes, what is written, and what hostile files do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tensor/npy.h"
#include "tensor/npy_header.h"
#include "tensor/random_view.h"

static int no_leak(void **state) {
    return iv_allocation_count().live_blocks == 0 ? 0 : -1;
}

/* A file of version 1 with that header text (padded to a length that is no multiple of anything)
 * and those elements. */
static char file[4096];
static size_t make_file(const char *header, const void *data, size_t bytes) {
    size_t length = strlen(header) + 4;
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)(length & 255);
    file[9] = (char)(length >> 8);
    memcpy(file + 10, header, length - 4);
    memcpy(file + 10 + length - 4, "   \n", 4);
    if (bytes != 0)
        memcpy(file + 10 + length, data, bytes);
    return 10 + length + bytes;
}

static iv_tensor *read_good(const char *header, const void *data, size_t bytes) {
    iv_tensor *tensor = NULL;
    iv_error error = {0};
    if (iv_npy_read(file, make_file(header, data, bytes), &tensor, &error) != IV_OK)
        fail_msg("%s: %s", header, error.message);
    return tensor;
}

static void expect_elements(iv_tensor *tensor, iv_dtype dtype, int rank, const int64_t *dims,
                            const void *data) {
    iv_tensor *expected = NULL;
    assert_int_equal(iv_tensor_from_data(dtype, rank, dims, data, &expected, NULL), IV_OK);
    assert_true(iv_tensor_equal(tensor, expected));
    iv_tensor_release(expected);
    iv_tensor_release(tensor);
}

static void test_reads_numpy(void **state) {
    static const int64_t six[] = {2, 3};
    static const uint16_t halves[] = {0x3c00, 0x0102, 0, 0, 0, 0x7c00};
    static const unsigned char swapped[] = {0x3c, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0x7c, 0};
    static const unsigned char fortran[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
    expect_elements(
        read_good("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", halves, 12),
        IV_F16, 2, six, halves);
    expect_elements(
        read_good("{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }", swapped, 12),
        IV_F16, 2, six, halves);
    /* Any order of keys, either kind of quotes, with and without the last commas. */
    expect_elements(
        read_good("{\"shape\":(2,3,),'fortran_order':True ,\"descr\":'|u1'}", fortran, 6), IV_U8, 2,
        six, rows);
    expect_elements(
        read_good("{'descr': '<V2', 'fortran_order': False, 'shape': (6,), }", halves, 12), IV_BF16,
        1, &(const int64_t){6}, halves);
    expect_elements(
        read_good("{'descr': '|V2', 'fortran_order': False, 'shape': (6,), }", halves, 12), IV_BF16,
        1, &(const int64_t){6}, halves);
    expect_elements(
        read_good("{'descr': '>i8', 'fortran_order': True, 'shape': (), }", "\0\0\0\0\0\0\1\2", 8),
        IV_S64, 0, NULL, &(const int64_t){0x102});
    expect_elements(
        read_good("{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9), }", NULL, 0), IV_F64, 2,
        (const int64_t[]){0, 9}, NULL);

    /* The view of Fortran order has the file's own layout. */
    iv_tensor *tensor =
        read_good("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", fortran, 6);
    assert_memory_equal(iv_tensor_strides(tensor), ((const int64_t[]){1, 2}), 16);
    iv_tensor_release(tensor);
}

static void test_versions(void **state) {
    static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n";
    for (char version = 2; version <= 3; version++) {
        size_t length = sizeof header - 1;
        memcpy(file, "\x93NUMPY", 6);
        file[6] = version;
        file[7] = 0;
        memcpy(file + 8, (const char[]){(char)length, 0, 0, 0}, 4);
        memcpy(file + 12, header, length);
        file[12 + length] = 7;
        iv_tensor *tensor = NULL;
        assert_int_equal(iv_npy_read(file, 13 + length, &tensor, NULL), IV_OK);
        expect_elements(tensor, IV_U8, 1, &(const int64_t){1}, "\7");
    }
}

static void test_text(void **state) {
    static const uint32_t points[] = {'a', 0, 0,   0, 0xe9, 0x6f22,   0x1f600, 0,
                                      'b', 0, 'c', 0, 0,    0x10ffff, 0xd7ff,  0xe000};
    unsigned char swapped[sizeof points];
    for (size_t i = 0; i < sizeof points; i++)
        swapped[i] = ((const unsigned char *)points)[i ^ 3];
    static const iv_string strings[] = {{"a", 1},
                                        {"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80", 9},
                                        {"b\0c", 3},
                                        {"\0\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 11}};
    iv_tensor *expected = NULL, *tensor, *again = NULL;
    assert_int_equal(iv_tensor_from_strings(2, (const int64_t[]){2, 2}, strings, &expected, NULL),
                     IV_OK);
    tensor = read_good("{'descr': '<U4', 'fortran_order': False, 'shape': (2, 2), }", points,
                       sizeof points);
    assert_true(iv_tensor_equal(tensor, expected));
    void *bytes;
    size_t size;
    assert_int_equal(iv_npy_write(tensor, &bytes, &size, NULL), IV_OK);
    assert_memory_equal((char *)bytes + size - sizeof points, points, sizeof points);
    assert_int_equal(iv_npy_read(bytes, size, &again, NULL), IV_OK);
    assert_true(iv_tensor_equal(again, expected));
    iv_free(bytes);
    iv_tensor_release(again);
    iv_tensor_release(tensor);
    tensor = read_good("{'descr': '>U4', 'fortran_order': False, 'shape': (2, 2), }", swapped,
                       sizeof swapped);
    assert_true(iv_tensor_equal(tensor, expected));
    iv_tensor_release(tensor);
    iv_tensor_release(expected);
    iv_tensor_release(
        read_good("{'descr': '<U0', 'fortran_order': False, 'shape': (0,), }", NULL, 0));
}

static void test_round_trips(void **state) {
    static model plan;
    random_source source = {11};
    for (int dtype = IV_BOOL; dtype < IV_DTYPE_COUNT; dtype++) {
        for (int round = 0; round < 40; round++) {
            iv_tensor *tensor = model_random(&source, (iv_dtype)dtype, &plan), *again = NULL;
            void *bytes;
            size_t size;
            assert_int_equal(iv_npy_write(tensor, &bytes, &size, NULL), IV_OK);
            assert_int_equal(iv_npy_read(bytes, size, &again, NULL), IV_OK);
            model_check(again, &plan);
            iv_free(bytes);
            iv_tensor_release(again);
            iv_tensor_release(tensor);
        }
    }
    /* The longest header. */
    int64_t dims[IV_MAX_RANK] = {0};
    for (int i = 1; i < IV_MAX_RANK; i++)
        dims[i] = i == 1 ? INT64_MAX / 8 : 1;
    iv_tensor *tensor = NULL, *again = NULL;
    assert_int_equal(iv_tensor_create(IV_U64, IV_MAX_RANK, dims, &tensor, NULL), IV_OK);
    void *bytes;
    size_t size;
    assert_int_equal(iv_npy_write(tensor, &bytes, &size, NULL), IV_OK);
    assert_int_equal(size % 64, 0);
    assert_int_equal(iv_npy_read(bytes, size, &again, NULL), IV_OK);
    assert_true(iv_tensor_equal(tensor, again));
    iv_free(bytes);
    iv_tensor_release(again);
    iv_tensor_release(tensor);
}

static void test_hostile_headers(void **state) {
    static const struct {
        const char *header;
        iv_status status;
        const char *words;
    } bad[] = {
        {"", IV_ERROR_INVALID_FILE, "begin with {"},
        {"{", IV_ERROR_INVALID_FILE, "string in quotes"},
        {"{}", IV_ERROR_INVALID_FILE, "lacks"},
        {"{'descr': '<f4', 'fortran_order': False}", IV_ERROR_INVALID_FILE, "lacks"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
         IV_ERROR_INVALID_FILE, "twice"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
         IV_ERROR_INVALID_FILE, "byte 27"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE, "colon"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE, "comma"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", IV_ERROR_INVALID_FILE,
         "begin with ("},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", IV_ERROR_INVALID_FILE, "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", IV_ERROR_INVALID_FILE,
         "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", IV_ERROR_INVALID_FILE,
         "at least 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
         IV_ERROR_INVALID_FILE, "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}",
         IV_ERROR_INVALID_FILE, "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}",
         IV_ERROR_INVALID_FILE, "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", IV_ERROR_INVALID_FILE,
         "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", IV_ERROR_INVALID_FILE,
         "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         IV_ERROR_UNSUPPORTED, "more than 12"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", IV_ERROR_INVALID_FILE,
         "line feed"},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "byte order"},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "byte order"},
        {"{'descr': '|U1', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "byte order"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "byte order"},
        {"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "byte order"},
        {"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE, "number"},
        {"{'descr': '<f4", IV_ERROR_INVALID_FILE, "damaged"},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "damaged"},
        {"{'descr': '<f4\n', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "damaged"},
        {"{'descr': '>V2', 'fortran_order': False, 'shape': (2,)}", IV_ERROR_UNSUPPORTED, "'>V2'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '|S4', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '<M8[D]', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_UNSUPPORTED,
         "astype"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_UNSUPPORTED, "pickled"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", IV_ERROR_UNSUPPORTED,
         "structures"},
        {"{'descr': '<U9223372036854775807', 'fortran_order': False, 'shape': (1,)}",
         IV_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '<U2305843009213693951', 'fortran_order': False, 'shape': "
         "(4611686018427387904,)}",
         IV_ERROR_INVALID_FILE, "overflows"},
        {"{'descr': '<U2305843009213693951', 'fortran_order': False, 'shape': (16,)}",
         IV_ERROR_INVALID_FILE, "but 4 bytes follow"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", IV_ERROR_INVALID_FILE,
         "neither 0 nor 1"},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", IV_ERROR_INVALID_FILE,
         "not a Unicode character"},
    };
    int64_t most = iv_allocation_count().live_bytes + 65536;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iv_tensor *tensor = NULL;
        iv_error error = {0};
        size_t size = make_file(bad[i].header, "\0\xd8\0\0", 4);
        iv_status status = iv_npy_read(file, size, &tensor, &error);
        if (status != bad[i].status || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].header, iv_status_name(status), error.message);
        assert_null(tensor);
    }
    /* Text without characters takes no bytes, however much of it there is. */
    iv_tensor *tensor = NULL;
    size_t size =
        make_file("{'descr': '<U0', 'fortran_order': False, 'shape': (100000000000,), }", NULL, 0);
    assert_int_equal(iv_npy_read(file, size, &tensor, NULL), IV_ERROR_INVALID_FILE);
    assert_true(iv_allocation_count().peak_bytes < most + (1 << 20));
}

static void test_hostile_prefixes(void **state) {
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    iv_tensor *tensor = NULL;
    iv_error error;
    size_t size = make_file(header, "abcdefgh!", 9);
    /* Exactly one length is right. */
    for (size_t cut = 0; cut <= size; cut++) {
        iv_status status = iv_npy_read(file, cut, &tensor, &error);
        assert_int_equal(status, cut == size - 1 ? IV_OK : IV_ERROR_INVALID_FILE);
    }
    iv_tensor_release(tensor);
    file[0] = 'x';
    assert_int_equal(iv_npy_read(file, size - 1, &tensor, &error), IV_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "byte 0"));
    file[0] = '\x93';
    file[6] = 4;
    assert_int_equal(iv_npy_read(file, size - 1, &tensor, &error), IV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "4.0"));
    file[6] = 2; /* now the header's length is made of its own text too, and huge */
    assert_int_equal(iv_npy_read(file, size - 1, &tensor, &error), IV_ERROR_INVALID_FILE);
    static char large[200000] = "\x93NUMPY\2\0\0\0\2\0";
    assert_int_equal(iv_npy_read(large, sizeof large, &tensor, &error), IV_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "131072"));
}

static void test_unwritable_text(void **state) {
    static const iv_string bad[] = {{"\xff", 1},
                                    {"\xc3", 1},
                                    {"\xc0\x80", 2},
                                    {"\xed\xa0\x80", 3},
                                    {"\xf5\x80\x80\x80", 4},
                                    {"\xf4\x90\x80\x80", 4},
                                    {"\xe6\xbc", 2},
                                    {"\x80", 1},
                                    {"a\0", 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iv_tensor *tensor = NULL;
        iv_error error = {0};
        void *bytes = NULL;
        size_t size;
        assert_int_equal(iv_tensor_from_strings(0, NULL, &bad[i], &tensor, NULL), IV_OK);
        assert_int_equal(iv_npy_write(tensor, &bytes, &size, &error), IV_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "text element 0"));
        assert_null(bytes);
        iv_tensor_release(tensor);
    }
}

static iv_status write_and_read(void *context) {
    iv_dtype dtype = *(const iv_dtype *)context;
    iv_tensor *tensor = NULL, *turned = NULL, *again = NULL;
    void *bytes = NULL;
    size_t size;
    iv_status status = iv_tensor_create(dtype, 2, (const int64_t[]){3, 2}, &tensor, NULL);
    if (status == IV_OK)
        status = iv_tensor_transpose(tensor, (const int[]){1, 0}, &turned, NULL);
    if (status == IV_OK)
        status = iv_npy_write(turned, &bytes, &size, NULL);
    if (status == IV_OK)
        status = iv_npy_read(bytes, size, &again, NULL);
    iv_free(bytes);
    iv_tensor_release(again);
    again = NULL;
    static const char header[] = "{'descr': '>U1', 'fortran_order': True, 'shape': (1, 2), }";
    if (status == IV_OK)
        status = iv_npy_read(file, make_file(header, "\0\0\0a\0\0\0b", 8), &again, NULL);
    iv_tensor_release(again);
    iv_tensor_release(turned);
    iv_tensor_release(tensor);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(write_and_read, &(iv_dtype){IV_F32});
    check_failing_allocations(write_and_read, &(iv_dtype){IV_STRING});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_hostile_headers, no_leak), /* first: it looks at the peak */
        cmocka_unit_test_teardown(test_reads_numpy, no_leak),
        cmocka_unit_test_teardown(test_versions, no_leak),
        cmocka_unit_test_teardown(test_text, no_leak),
        cmocka_unit_test_teardown(test_round_trips, no_leak),
        cmocka_unit_test_teardown(test_hostile_prefixes, no_leak),
        cmocka_unit_test_teardown(test_unwritable_text, no_leak),
        cmocka_unit_test_teardown(test_memory, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
