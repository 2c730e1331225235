/* Writing models: files that are read again have the same outputs, weights move to a file of their own, and what fails
 * leaves nothing behind. (tests/python/onnx_save_test.py writes every model of the onnx package.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <samebit/samebit.h>

#include "onnx/export.h"
#include "onnx/text_model.h"
#include "support/failing.h"

#define DIGITS DIGITS_FOLDER "/digits.onnx"
/* Between what the digits take without their larger weights and with them. */
#define SMALL ((size_t)20000)

static char folder[] = "save-XXXXXX";

static const char *path_of(const char *name) {
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int count_files(void) {
    int count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static long size_of(const char *name) {
    struct stat info;
    return stat(path_of(name), &info) == 0 ? (long)info.st_size : -1;
}

static void remove_files(void) {
    (void)remove(path_of("a.onnx"));
    (void)remove(path_of("a.onnx.data"));
    assert_int_equal(count_files(), 0);
}

static void digest_of(const char *path, char text[65]) {
    sb_model *model;
    sb_session *session;
    sb_tensor *samples;
    sb_error error = {SB_OK, ""};
    if (sb_model_load(path, NULL, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    assert_int_equal(sb_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, &error), SB_OK);
    assert_int_equal(sb_session_create(model, NULL, &session, &error), SB_OK);
    sb_value input = sb_value_of_tensor(samples), output;
    assert_int_equal(sb_session_run(session, &input, &output, &error), SB_OK);
    assert_int_equal(sb_digest_values(1, &output, text, &error), SB_OK);
    sb_value_release(&output);
    sb_tensor_release(samples);
    sb_session_destroy(session);
    sb_model_release(model);
}

/* The digits as they are read. */
typedef struct digits {
    sb_scope *scope;
    sb_graph *graph;
    sb_model_metadata info;
} digits;

static digits load_digits(void) {
    digits read = {0};
    assert_int_equal(sb_scope_create(&read.scope, NULL), SB_OK);
    assert_int_equal(sb_onnx_load_file(DIGITS, read.scope, &read.graph, &read.info, NULL, NULL), SB_OK);
    return read;
}

static void unload_digits(digits *read) {
    sb_graph_destroy(read->graph);
    sb_metadata_clear(&read->info);
    sb_scope_destroy(read->scope);
}

static void test_same_bits(void **state) {
    (void)state;
    char expected[65], found[65];
    digest_of(DIGITS, expected);
    for (int passes = 0; passes < 2; passes++) {
        sb_model *model;
        sb_session *session;
        sb_tensor *samples, *output;
        sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
        sb_error error = {SB_OK, ""};
        options.passes = passes;
        assert_int_equal(sb_model_load(DIGITS, &options, &model, &error), SB_OK);
        /* Also behind a run, when weights are kept packed. */
        for (int runs = 0; runs < 2; runs++) {
            if (sb_model_save(model, path_of("a.onnx"), &error) != SB_OK)
                fail_msg("%s", error.message);
            assert_int_equal(count_files(), 1);
            digest_of(path_of("a.onnx"), found);
            assert_string_equal(found, expected);
            assert_int_equal(sb_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, &error), SB_OK);
            assert_int_equal(sb_session_create(model, NULL, &session, &error), SB_OK);
            assert_int_equal(sb_session_run_tensors(session, &samples, &output, &error), SB_OK);
            sb_tensor_release(output);
            sb_tensor_release(samples);
            sb_session_destroy(session);
        }
        sb_model_release(model);
    }
    remove_files();
}

static void test_data_in_a_file_of_their_own(void **state) {
    (void)state;
    char expected[65], found[65];
    sb_error error = {SB_OK, ""};
    digits read = load_digits();
    digest_of(DIGITS, expected);
    if (sb_onnx_save(read.graph, &read.info, path_of("a.onnx"), SMALL, &error) != SB_OK)
        fail_msg("%s", error.message);
    assert_int_equal(count_files(), 2);
    long model = size_of("a.onnx"), data = size_of("a.onnx.data");
    assert_true(model > 0 && (size_t)model <= SMALL);
    assert_true(data > model);
    digest_of(path_of("a.onnx"), found);
    assert_string_equal(found, expected);
    /* Onto the files that a model was loaded from. */
    sb_model *again;
    assert_int_equal(sb_model_load(path_of("a.onnx"), NULL, &again, &error), SB_OK);
    assert_int_equal(sb_model_save(again, path_of("a.onnx"), &error), SB_OK);
    assert_true(size_of("a.onnx") > data - 8 * 4096);
    digest_of(path_of("a.onnx"), found);
    assert_string_equal(found, expected);
    sb_model_release(again);
    remove_files();
    /* Too much besides. */
    assert_int_equal(sb_onnx_save(read.graph, &read.info, path_of("a.onnx"), 1000, &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "and 1000 are the most"));
    assert_int_equal(count_files(), 0);
    unload_digits(&read);
}

/* A disk that is full, after more and more bytes: what was there stays as it was. */
static void test_writing_fails(void **state) {
    (void)state;
    digits read = load_digits();
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int external = 0; external < 2; external++) {
        size_t largest = external ? SMALL : SB_ONNX_LARGEST_FILE;
        assert_int_equal(sb_onnx_save(read.graph, &read.info, path_of("a.onnx"), largest, NULL), SB_OK);
        int files = count_files();
        long model = size_of("a.onnx"), data = size_of("a.onnx.data");
        long whole = data > model ? data : model;
        for (long room = 0; room < whole; room += whole / 7) {
            sb_error error = {SB_OK, ""};
            limit = (struct rlimit){(rlim_t)room, before.rlim_max};
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
            sb_status status = sb_onnx_save(read.graph, NULL, path_of("a.onnx"), largest, &error);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            assert_int_equal(status, SB_ERROR_IO);
            assert_non_null(strstr(error.message, "cannot write save-"));
            assert_int_equal(count_files(), files);
            assert_int_equal(size_of("a.onnx"), model);
            assert_int_equal(size_of("a.onnx.data"), data);
        }
        remove_files();
        sb_error error = {SB_OK, ""};
        assert_int_equal(sb_onnx_save(read.graph, NULL, "no/such/folder/a.onnx", largest, &error), SB_ERROR_IO);
        assert_non_null(strstr(error.message, "no/such/folder/a.onnx"));
    }
    /* The data cannot take their name. */
    assert_int_equal(mkdir(path_of("a.onnx.data"), 0777), 0);
    assert_int_equal(sb_onnx_save(read.graph, NULL, path_of("a.onnx"), SMALL, NULL), SB_ERROR_IO);
    assert_int_equal(count_files(), 1);
    assert_int_equal(rmdir(path_of("a.onnx.data")), 0);
    /* The model cannot: its data go again. */
    assert_int_equal(mkdir(path_of("a.onnx"), 0777), 0);
    assert_int_equal(sb_onnx_save(read.graph, NULL, path_of("a.onnx"), SMALL, NULL), SB_ERROR_IO);
    assert_int_equal(count_files(), 1);
    assert_int_equal(rmdir(path_of("a.onnx")), 0);
    unload_digits(&read);
}

static sb_status save_both_ways(void *context) {
    const digits *read = context;
    SB_TRY(sb_onnx_save(read->graph, &read->info, path_of("a.onnx"), SB_ONNX_LARGEST_FILE, NULL));
    return sb_onnx_save(read->graph, &read->info, path_of("a.onnx"), SMALL, NULL);
}

static void test_without_memory(void **state) {
    (void)state;
    digits read = load_digits();
    check_failing_allocations(save_both_ways, &read);
    remove_files();
    unload_digits(&read);
}

/* Attributes of every kind, a nested graph with captures, packed elements, text, an optional type. */
#define EVERYTHING                                                                                                     \
    OPSET(21)                                                                                                          \
    "graph { name: \"g\" input " VALUE("c", "9", "") "input " FLOATS(                                                  \
        "x",                                                                                                           \
        SYMBOL(                                                                                                        \
            "n") "dim { } ") "initializer { name: \"t\" data_type: 22 dims: 3 raw_data: \"\\x21\\x03\" } "             \
                             "initializer { name: \"s\" data_type: 8 dims: 2 string_data: \"a\" string_data: \"\" } "  \
                             "node { op_type: \"Constant\" output: \"k\" attribute { name: \"value_floats\" type: 6 "  \
                             "floats: 1 floats: 2 } } "                                                                \
                             "node { op_type: \"LeakyRelu\" name: \"r\" input: \"x\" output: \"y\" attribute { name: " \
                             "\"alpha\" type: 1 f: 0.5 } } "                                                           \
                             "node { op_type: \"Transpose\" input: \"y\" output: \"z\" attribute { name: \"perm\" "    \
                             "type: 7 ints: 1 ints: 0 } } "                                                            \
                             "node { op_type: \"Optional\" output: \"o\" attribute { name: \"type\" type: 13 tp { "    \
                             "tensor_type { elem_type: 1 } } } } "                                                     \
                             "node { op_type: \"If\" name: \"i\" input: \"c\" output: \"b\" "                          \
                             "attribute { name: \"then_branch\" type: 5 g { name: \"p\" node { op_type: \"Neg\" "      \
                             "input: \"y\" output: \"x\" } "                                                           \
                             "output { name: \"x\" } } } "                                                             \
                             "attribute { name: \"else_branch\" type: 5 g { name: \"q\" output { name: \"y\" } } } } " \
                             "output { name: \"b\" } output { name: \"z\" } output { name: \"t\" } output { name: "    \
                             "\"s\" } output { name: \"k\" } "                                                         \
                             "output { name: \"o\" } output { name: \"x\" } }"

static void write_text(const char *text, char *described, size_t bytes) {
    loaded_model model = load_or_fail(text);
    sb_error error = {SB_OK, ""};
    sb_status status = sb_onnx_save(model.graph, &model.info, path_of("a.onnx"), SB_ONNX_LARGEST_FILE, &error);
    unload(&model);
    if (status != SB_OK) {
        snprintf(described, bytes, "%s", error.message);
        return;
    }
    sb_model *again;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.passes = false;
    if (sb_model_load(path_of("a.onnx"), &options, &again, &error) != SB_OK)
        fail_msg("%s", error.message);
    size_t used = 0;
    for (int i = 0; i < sb_model_input_count(again) + sb_model_output_count(again); i++) {
        int output = i - sb_model_input_count(again);
        const sb_value_description *value = output < 0 ? sb_model_input(again, i) : sb_model_output(again, output);
        used += (size_t)snprintf(described + used, bytes - used, "%s:%s%s", value->name,
                                 value->optional ? "optional " : "", sb_dtype_name(value->dtype));
        for (int d = 0; d < value->rank; d++)
            used += (size_t)snprintf(described + used, bytes - used, d == 0 ? "[%s" : ",%s", value->dim_texts[d]);
        used += (size_t)snprintf(described + used, bytes - used, value->rank > 0 ? "] " : " ");
    }
    assert_int_equal(sb_model_warning_count(again), 0);
    sb_model_release(again);
}

static void test_everything(void **state) {
    (void)state;
    char described[1024];
    write_text(EVERYTHING, described, sizeof described);
    assert_string_equal(described, "c:bool x:f32[n,x.1#1] b:f32[n,x.1#1] z:f32[x.1#1,n] t:s4[3] s:string[2] k:f32[2] "
                                   "o:optional none x:f32[n,x.1#1] ");
    remove_files();
}

static void test_refusals(void **state) {
    (void)state;
    char described[1024];
    write_text(
        OPSET(17) "opset_import { domain: \"my\" version: 1 } graph { name: \"g\" input " FLOATS(
            "x",
            DIM(2)) "node { op_type: \"Relu\" name: \"r\" input: \"x\" output: \"a\" } "
                    "node { op_type: \"F\" domain: \"my\" name: \"f\" input: \"a\" output: \"y\" } output { name: "
                    "\"y\" } } "
                    "functions { domain: \"my\" name: \"F\" opset_import { version: 13 } input: \"p\" output: \"q\" "
                    "node { op_type: \"Neg\" name: \"n\" input: \"p\" output: \"q\" } }",
        described, sizeof described);
    assert_non_null(strstr(described, "node f/n (Neg) is of version 13 of its operator set and node r of version 17"));
    assert_int_equal(count_files(), 0);
}

/* What ONNX has no form for. */
static void test_variables(void **state) {
    (void)state;
    sb_builder *builder;
    sb_builder_value read, next;
    sb_builder_variable variable;
    sb_model *model;
    sb_error error = {SB_OK, ""};
    sb_value_description described = {
        .name = "kept", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = (int64_t[]){2}};
    assert_int_equal(sb_builder_create(&builder, &error), SB_OK);
    assert_int_equal(sb_builder_add_variable(builder, &described, NULL, NULL, &variable, &error), SB_OK);
    assert_int_equal(sb_builder_read(builder, variable, &read, &error), SB_OK);
    assert_int_equal(sb_builder_op(builder, "Neg", 1, &read, 0, NULL, &next, &error), SB_OK);
    assert_int_equal(sb_builder_update(builder, variable, next, &error), SB_OK);
    assert_int_equal(sb_builder_output(builder, next, &error), SB_OK);
    assert_int_equal(sb_builder_build(builder, NULL, &model, &error), SB_OK);
    sb_builder_destroy(builder);
    assert_int_equal(sb_model_save(model, path_of("a.onnx"), &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "variables (kept)"));
    assert_int_equal(count_files(), 0);
    sb_model_release(model);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_data_in_a_file_of_their_own),
        cmocka_unit_test(test_writing_fails), cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_everything),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_variables),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
