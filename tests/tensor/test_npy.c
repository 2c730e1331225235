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
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
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

static sb_tensor *read_good(const char *header, const void *data, size_t bytes) {
    sb_tensor *tensor = NULL;
    sb_error error = {0};
    if (sb_npy_read(file, make_file(header, data, bytes), &tensor, &error) != SB_OK)
        fail_msg("%s: %s", header, error.message);
    return tensor;
}

static void expect_elements(sb_tensor *tensor, sb_dtype dtype, int rank, const int64_t *dims, const void *data) {
    sb_tensor *expected = NULL;
    assert_int_equal(sb_tensor_from_data(dtype, rank, dims, data, &expected, NULL), SB_OK);
    assert_true(sb_tensor_equal(tensor, expected));
    sb_tensor_release(expected);
    sb_tensor_release(tensor);
}

static void test_reads_numpy(void **state) {
    static const int64_t six[] = {2, 3};
    static const uint16_t halves[] = {0x3c00, 0x0102, 0, 0, 0, 0x7c00};
    static const unsigned char swapped[] = {0x3c, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0x7c, 0};
    static const unsigned char fortran[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
    expect_elements(read_good("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", halves, 12), SB_F16, 2,
                    six, halves);
    expect_elements(read_good("{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }", swapped, 12), SB_F16, 2,
                    six, halves);
    /* Any order of keys, either kind of quotes, with and without the last commas. */
    expect_elements(read_good("{\"shape\":(2,3,),'fortran_order':True ,\"descr\":'|u1'}", fortran, 6), SB_U8, 2, six,
                    rows);
    expect_elements(read_good("{'descr': '<V2', 'fortran_order': False, 'shape': (6,), }", halves, 12), SB_BF16, 1,
                    &(const int64_t){6}, halves);
    expect_elements(read_good("{'descr': '|V2', 'fortran_order': False, 'shape': (6,), }", halves, 12), SB_BF16, 1,
                    &(const int64_t){6}, halves);
    expect_elements(read_good("{'descr': '>i8', 'fortran_order': True, 'shape': (), }", "\0\0\0\0\0\0\1\2", 8), SB_S64,
                    0, NULL, &(const int64_t){0x102});
    expect_elements(read_good("{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9), }", NULL, 0), SB_F64, 2,
                    (const int64_t[]){0, 9}, NULL);

    /* As numpy writes one field of bytes, and as ml_dtypes writes float8_e5m2. */
    expect_elements(read_good("{'descr': [('f8e4m3fn', '|u1')], 'fortran_order': False, 'shape': (6,), }", rows, 6),
                    SB_F8E4M3FN, 1, &(const int64_t){6}, rows);
    expect_elements(read_good("{'descr': [('u2', '|u1'),], 'fortran_order': True, 'shape': (2, 3), }", fortran, 6),
                    SB_U2, 2, six, rows);
    expect_elements(read_good("{'descr': '<f1', 'fortran_order': False, 'shape': (6,), }", rows, 6), SB_F8E5M2, 1,
                    &(const int64_t){6}, rows);

    /* The view of Fortran order has the file's own layout. */
    sb_tensor *tensor = read_good("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", fortran, 6);
    assert_memory_equal(sb_tensor_strides(tensor), ((const int64_t[]){1, 2}), 16);
    sb_tensor_release(tensor);
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
        sb_tensor *tensor = NULL;
        assert_int_equal(sb_npy_read(file, 13 + length, &tensor, NULL), SB_OK);
        expect_elements(tensor, SB_U8, 1, &(const int64_t){1}, "\7");
    }
}

static void test_text(void **state) {
    static const uint32_t points[] = {'a', 0, 0,   0, 0xe9, 0x6f22,   0x1f600, 0,
                                      'b', 0, 'c', 0, 0,    0x10ffff, 0xd7ff,  0xe000};
    unsigned char swapped[sizeof points];
    for (size_t i = 0; i < sizeof points; i++)
        swapped[i] = ((const unsigned char *)points)[i ^ 3];
    static const sb_string strings[] = {{"a", 1},
                                        {"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80", 9},
                                        {"b\0c", 3},
                                        {"\0\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 11}};
    sb_tensor *expected = NULL, *tensor, *again = NULL;
    assert_int_equal(sb_tensor_from_strings(2, (const int64_t[]){2, 2}, strings, &expected, NULL), SB_OK);
    tensor = read_good("{'descr': '<U4', 'fortran_order': False, 'shape': (2, 2), }", points, sizeof points);
    assert_true(sb_tensor_equal(tensor, expected));
    void *bytes;
    size_t size;
    assert_int_equal(sb_npy_write(tensor, &bytes, &size, NULL), SB_OK);
    assert_memory_equal((char *)bytes + size - sizeof points, points, sizeof points);
    assert_int_equal(sb_npy_read(bytes, size, &again, NULL), SB_OK);
    assert_true(sb_tensor_equal(again, expected));
    sb_free(bytes);
    sb_tensor_release(again);
    sb_tensor_release(tensor);
    tensor = read_good("{'descr': '>U4', 'fortran_order': False, 'shape': (2, 2), }", swapped, sizeof swapped);
    assert_true(sb_tensor_equal(tensor, expected));
    sb_tensor_release(tensor);
    sb_tensor_release(expected);
    sb_tensor_release(read_good("{'descr': '<U0', 'fortran_order': False, 'shape': (0,), }", NULL, 0));
}

static void test_round_trips(void **state) {
    static model plan;
    random_source source = {11};
    for (int dtype = SB_BOOL; dtype < SB_DTYPE_COUNT; dtype++) {
        for (int round = 0; round < 40; round++) {
            sb_tensor *tensor = model_random(&source, (sb_dtype)dtype, &plan), *again = NULL;
            void *bytes;
            size_t size;
            assert_int_equal(sb_npy_write(tensor, &bytes, &size, NULL), SB_OK);
            assert_int_equal(sb_npy_read(bytes, size, &again, NULL), SB_OK);
            model_check(again, &plan);
            sb_free(bytes);
            sb_tensor_release(again);
            sb_tensor_release(tensor);
        }
    }
    /* The longest header. */
    int64_t dims[SB_MAX_RANK] = {0};
    for (int i = 1; i < SB_MAX_RANK; i++)
        dims[i] = i == 1 ? INT64_MAX / 8 : 1;
    sb_tensor *tensor = NULL, *again = NULL;
    assert_int_equal(sb_tensor_create(SB_U64, SB_MAX_RANK, dims, &tensor, NULL), SB_OK);
    void *bytes;
    size_t size;
    assert_int_equal(sb_npy_write(tensor, &bytes, &size, NULL), SB_OK);
    assert_int_equal(size % 64, 0);
    assert_int_equal(sb_npy_read(bytes, size, &again, NULL), SB_OK);
    assert_true(sb_tensor_equal(tensor, again));
    sb_free(bytes);
    sb_tensor_release(again);
    sb_tensor_release(tensor);
}

static void test_hostile_headers(void **state) {
    static const struct {
        const char *header;
        sb_status status;
        const char *words;
    } bad[] = {
        {"", SB_ERROR_INVALID_FILE, "begin with {"},
        {"{", SB_ERROR_INVALID_FILE, "string in quotes"},
        {"{}", SB_ERROR_INVALID_FILE, "lacks"},
        {"{'descr': '<f4', 'fortran_order': False}", SB_ERROR_INVALID_FILE, "lacks"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", SB_ERROR_INVALID_FILE, "twice"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte 27"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "colon"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "comma"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", SB_ERROR_INVALID_FILE, "begin with ("},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", SB_ERROR_INVALID_FILE, "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", SB_ERROR_INVALID_FILE, "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", SB_ERROR_INVALID_FILE, "at least 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", SB_ERROR_INVALID_FILE,
         "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}", SB_ERROR_INVALID_FILE,
         "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}", SB_ERROR_INVALID_FILE,
         "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", SB_ERROR_INVALID_FILE, "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", SB_ERROR_INVALID_FILE, "but 4 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}", SB_ERROR_UNSUPPORTED,
         "more than 12"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", SB_ERROR_INVALID_FILE, "line feed"},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte order"},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte order"},
        {"{'descr': '|U1', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte order"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte order"},
        {"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "byte order"},
        {"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "number"},
        {"{'descr': '<f4", SB_ERROR_INVALID_FILE, "damaged"},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "damaged"},
        {"{'descr': '<f4\n', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "damaged"},
        {"{'descr': '>V2', 'fortran_order': False, 'shape': (2,)}", SB_ERROR_UNSUPPORTED, "'>V2'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '|S4', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '<M8[D]', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "pickled"},
        {"{'descr': '<V1', 'fortran_order': False, 'shape': (4,)}", SB_ERROR_UNSUPPORTED, "view([('f8e4m3fn', 'u1')])"},
        {"{'descr': [('s4', '<f4')], 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "'|u1'"},
        {"{'descr': [('s4', '|u1'), ('u4', '|u1')], 'fortran_order': False, 'shape': (2,)}", SB_ERROR_INVALID_FILE,
         "one field"},
        {"{'descr': [('s4', '|u1', (2,))], 'fortran_order': False, 'shape': (2,)}", SB_ERROR_INVALID_FILE, "one field"},
        {"{'descr': [('f32', '|u1')], 'fortran_order': False, 'shape': (4,)}", SB_ERROR_UNSUPPORTED, "structures"},
        {"{'descr': [4], 'fortran_order': False, 'shape': (4,)}", SB_ERROR_UNSUPPORTED, "structures"},
        {"{'descr': [", SB_ERROR_UNSUPPORTED, "structures"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "structures"},
        {"{'descr': '<U9223372036854775807', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_UNSUPPORTED, "astype"},
        {"{'descr': '<U2305843009213693951', 'fortran_order': False, 'shape': "
         "(4611686018427387904,)}",
         SB_ERROR_INVALID_FILE, "overflows"},
        {"{'descr': '<U2305843009213693951', 'fortran_order': False, 'shape': (16,)}", SB_ERROR_INVALID_FILE,
         "but 4 bytes follow"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", SB_ERROR_INVALID_FILE, "neither 0 nor 1"},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", SB_ERROR_INVALID_FILE, "not a Unicode character"},
    };
    int64_t most = sb_allocation_count().live_bytes + 65536;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sb_tensor *tensor = NULL;
        sb_error error = {0};
        size_t size = make_file(bad[i].header, "\0\xd8\0\0", 4);
        sb_status status = sb_npy_read(file, size, &tensor, &error);
        if (status != bad[i].status || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].header, sb_status_name(status), error.message);
        assert_null(tensor);
    }
    /* Text without characters takes no bytes, however much of it there is. */
    sb_tensor *tensor = NULL;
    size_t size = make_file("{'descr': '<U0', 'fortran_order': False, 'shape': (100000000000,), }", NULL, 0);
    assert_int_equal(sb_npy_read(file, size, &tensor, NULL), SB_ERROR_INVALID_FILE);
    assert_true(sb_allocation_count().peak_bytes < most + (1 << 20));
}

static void test_hostile_prefixes(void **state) {
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    sb_tensor *tensor = NULL;
    sb_error error;
    size_t size = make_file(header, "abcdefgh!", 9);
    /* Exactly one length is right. */
    for (size_t cut = 0; cut <= size; cut++) {
        sb_status status = sb_npy_read(file, cut, &tensor, &error);
        assert_int_equal(status, cut == size - 1 ? SB_OK : SB_ERROR_INVALID_FILE);
    }
    sb_tensor_release(tensor);
    file[0] = 'x';
    assert_int_equal(sb_npy_read(file, size - 1, &tensor, &error), SB_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "byte 0"));
    file[0] = '\x93';
    file[6] = 4;
    assert_int_equal(sb_npy_read(file, size - 1, &tensor, &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "4.0"));
    file[6] = 2; /* now the header's length is made of its own text too, and huge */
    assert_int_equal(sb_npy_read(file, size - 1, &tensor, &error), SB_ERROR_INVALID_FILE);
    static char large[200000] = "\x93NUMPY\2\0\0\0\2\0";
    assert_int_equal(sb_npy_read(large, sizeof large, &tensor, &error), SB_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "131072"));
}

static void test_unwritable_text(void **state) {
    static const sb_string bad[] = {{"\xff", 1},
                                    {"\xc3", 1},
                                    {"\xc0\x80", 2},
                                    {"\xed\xa0\x80", 3},
                                    {"\xf5\x80\x80\x80", 4},
                                    {"\xf4\x90\x80\x80", 4},
                                    {"\xe6\xbc", 2},
                                    {"\x80", 1},
                                    {"a\0", 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sb_tensor *tensor = NULL;
        sb_error error = {0};
        void *bytes = NULL;
        size_t size;
        assert_int_equal(sb_tensor_from_strings(0, NULL, &bad[i], &tensor, NULL), SB_OK);
        assert_int_equal(sb_npy_write(tensor, &bytes, &size, &error), SB_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "text element 0"));
        assert_null(bytes);
        sb_tensor_release(tensor);
    }
}

static sb_status write_and_read(void *context) {
    sb_dtype dtype = *(const sb_dtype *)context;
    sb_tensor *tensor = NULL, *transposed = NULL, *again = NULL;
    void *bytes = NULL;
    size_t size;
    sb_status status = sb_tensor_create(dtype, 2, (const int64_t[]){3, 2}, &tensor, NULL);
    if (status == SB_OK)
        status = sb_tensor_transpose(tensor, (const int[]){1, 0}, &transposed, NULL);
    if (status == SB_OK)
        status = sb_npy_write(transposed, &bytes, &size, NULL);
    if (status == SB_OK)
        status = sb_npy_read(bytes, size, &again, NULL);
    sb_free(bytes);
    sb_tensor_release(again);
    again = NULL;
    static const char header[] = "{'descr': '>U1', 'fortran_order': True, 'shape': (1, 2), }";
    if (status == SB_OK)
        status = sb_npy_read(file, make_file(header, "\0\0\0a\0\0\0b", 8), &again, NULL);
    sb_tensor_release(again);
    sb_tensor_release(transposed);
    sb_tensor_release(tensor);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(write_and_read, &(sb_dtype){SB_F32});
    check_failing_allocations(write_and_read, &(sb_dtype){SB_STRING});
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
