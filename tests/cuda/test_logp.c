/* sb_linear_logp on a device against its definition and the CPU, to the byte: without arguments
 * over the fake driver, which runs the kernels' sources on the host; with the file name of a
 * driver's library (libcuda.so.1), on its first device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <samebit/logp.h>

#include "cuda/contraction/gemm16.h"
#include "logp_mirror.h"

/* ---- tests ---- */

static void test_definition(void **unused) {
    setting setting = set_up();
    for (int i = 0; i < 60; i++) {
        cut cut = {0, 0};
        if (i % 3 > 0)
            cut.rows = random_between(&setting.random, 1, 9);
        cut.columns = cut.rows > 0 ? 128 * random_between(&setting.random, 1, 3) : 0;
        check_case(&setting, logp_random(&setting.random, 400), cut);
    }
    tear_down(&setting);
}

/* Extents at the edges of blocks, teams and groups. */
static void test_extents(void **unused) {
    static const int64_t rows[] = {0, 1, 7, 8, 9, 33}, columns[] = {1, 7, 8, 9, 127, 128, 129, 255, 257, 1030};
    setting setting = set_up();
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 10; j++) {
            logp_case c = {.dtype = (i + j) % 2 ? SB_BF16 : SB_F16,
                           .d_hidden_dtype = (i + j) % 2 ? SB_BF16 : SB_F32,
                           .m = rows[i],
                           .k = j % 2 ? 64 : 3, /* with the copy engine and without */
                           .v = columns[j],
                           .inverse_temperature = 1.5f,
                           .ignore_index = -100,
                           .by_words = j % 2,
                           .wants_d_hidden = true,
                           .wants_d_weight = true};
            logp_allocate(&c);
            logp_fill(&c, &setting.random, 5.0f, false);
            check_case(&setting, c, (cut){rows[i] > 0 ? rows[i] : 1, j % 3 ? 128 : 256});
        }
    }
    tear_down(&setting);
}

/* A target that is nowhere gives NaN, and touches nothing but its row and what sums over rows. */
static void test_targets_out_of_range(void **unused) {
    static const int64_t bad[] = {-1, 200, 256, INT64_MIN, INT64_MAX, (int64_t)1 << 32};
    setting setting = set_up();
    for (int i = 0; i < 6; i++) {
        logp_case c = {.dtype = SB_BF16,
                       .d_hidden_dtype = SB_F32,
                       .m = 4,
                       .k = 6,
                       .v = 200,
                       .inverse_temperature = 1.0f,
                       .ignore_index = -100,
                       .wants_d_hidden = true,
                       .wants_d_weight = true};
        logp_allocate(&c);
        logp_fill(&c, &setting.random, 5.0f, false);
        for (int row = 0; row < 4; row++)
            c.targets[row] = row == 2 ? bad[i] : row;
        check_case(&setting, c, (cut){0, 0});
    }
    tear_down(&setting);
}

#define DRIVER(setting, call, ...)                                                                                     \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""};                                                                                 \
        if (SB_CUDA_DO(sb_cuda_device_behind(&(setting)->device), &error_, call, __VA_ARGS__) != SB_OK)                \
            fail_msg("%s", error_.message);                                                                            \
    } while (0)

/* Somebody else captures both passes, in chunks, and replays them on other values. */
static void test_capture(void **unused) {
    setting setting = set_up();
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_BF16,
                   .m = 11,
                   .k = 20,
                   .v = 500,
                   .inverse_temperature = 1.25f,
                   .ignore_index = -100,
                   .by_words = true,
                   .wants_d_hidden = true,
                   .wants_d_weight = true,
                   .accumulate = true};
    logp_allocate(&c);
    logp_fill(&c, &setting.random, 5.0f, false);
    mirror mirror = make_mirror(&setting, c);
    CUstream stream = setting.queue.stream->handle;
    CUgraph graph = NULL;
    CUgraphExec ready = NULL;
    run_passes(&setting, &mirror, NULL, (cut){11, 128}, stream); /* makes the workspace */
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    MUST(sb_cuda_enter(setting.device.handle, error));
    DRIVER(&setting, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    run_passes(&setting, &mirror, NULL, (cut){11, 128}, stream);
    DRIVER(&setting, cuStreamEndCapture, stream, &graph);
    DRIVER(&setting, cuGraphInstantiateWithFlags, &ready, graph, 0);
    for (int replay = 0; replay < 3; replay++) {
        logp_fill(&mirror.here, &setting.random, 5.0f, false);
        logp_case defined = logp_clone(&mirror.here);
        upload(&setting, &mirror);
        DRIVER(&setting, cuGraphLaunch, ready, stream);
        download(&setting, &mirror);
        logp_define_forward(&defined);
        logp_define_backward(&defined);
        LOGP_CHECK_SAME(&mirror.here, &defined, "replayed");
        logp_free(&defined);
    }
    DRIVER(&setting, cuGraphExecDestroy, ready);
    DRIVER(&setting, cuGraphDestroy, graph);
    MUST(sb_cuda_leave(setting.device.handle, SB_OK, error));
    release_mirror(&mirror);
    tear_down(&setting);
}

/* Nothing is allocated, and nothing but kernels is launched. */
static void test_steady(void **unused) {
    setting setting = set_up();
    logp_case c = logp_random(&setting.random, 300);
    mirror mirror = make_mirror(&setting, c);
    CUstream stream = setting.queue.stream->handle;
    run_passes(&setting, &mirror, NULL, (cut){0, 0}, stream);
    sb_allocation_counters before = sb_allocation_count();
    sb_cuda_counters device_before = sb_cuda_device_counters(setting.device.handle);
    run_passes(&setting, &mirror, NULL, (cut){0, 0}, stream);
    sb_allocation_counters after = sb_allocation_count();
    sb_cuda_counters device_after = sb_cuda_device_counters(setting.device.handle);
    assert_int_equal(after.allocations, before.allocations);
    device_before.kernels = device_after.kernels = 0;
    assert_memory_equal(&device_before, &device_after, sizeof device_before);
    release_mirror(&mirror);
    tear_down(&setting);
}

/* Every schedule of the engine, forced on every product, or refused before anything runs. */
static void test_schedules(void **unused) {
    setting setting = set_up();
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_F32,
                   .m = 64,
                   .k = 64,
                   .v = 320,
                   .inverse_temperature = 1.0f,
                   .ignore_index = -100,
                   .by_words = true,
                   .wants_d_hidden = true,
                   .wants_d_weight = true};
    logp_allocate(&c);
    logp_fill(&c, &setting.random, 5.0f, false);
    logp_case defined = logp_clone(&c);
    logp_define_forward(&defined);
    logp_define_backward(&defined);
    mirror mirror = make_mirror(&setting, c);
    run_passes(&setting, &mirror, NULL, (cut){0, 0}, setting.queue.stream->handle);
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    int computed = 0;
    for (int i = 0; i < sb_gemm_schedule_count(setting.gpu); i++) {
        sb_error error = {SB_OK, ""};
        sb_linear_logp logp = logp_describe(&mirror.there);
        sb_linear_logp_gradient gradient = logp_describe_gradient(&mirror.there, NULL);
        logp.workspace = (void *)(uintptr_t)mirror.workspace->address;
        logp.workspace_bytes = mirror.workspace->bytes;
        logp.schedule = sb_gemm_schedule_name(setting.gpu, i);
        sb_status status = sb_linear_logp_forward(setting.gpu, setting.queue.stream->handle, &logp, &error);
        if (status == SB_OK)
            status = sb_linear_logp_backward(setting.gpu, setting.queue.stream->handle, &logp, &gradient, &error);
        if (status == SB_ERROR_UNSUPPORTED)
            continue;
        assert_int_equal(status, SB_OK);
        download(&setting, &mirror);
        LOGP_CHECK_SAME(&mirror.here, &defined, logp.schedule);
        computed++;
    }
    assert_true(computed > 0);
    release_mirror(&mirror);
    logp_free(&defined);
    tear_down(&setting);
}

/* Memory of the host is not followed. */
static void test_host_memory(void **unused) {
    setting setting = set_up();
    logp_case c = logp_random(&setting.random, 300);
    while (c.m == 0 || c.k == 0 || c.v == 0) {
        logp_free(&c);
        c = logp_random(&setting.random, 300);
    }
    mirror mirror = make_mirror(&setting, c);
    run_passes(&setting, &mirror, NULL, (cut){0, 0}, setting.queue.stream->handle);
    sb_linear_logp logp = logp_describe(&mirror.there);
    logp.workspace = (void *)(uintptr_t)mirror.workspace->address;
    logp.workspace_bytes = mirror.workspace->bytes;
    sb_error error = {SB_OK, ""};
    logp.targets = c.targets;
    assert_int_equal(sb_linear_logp_forward(setting.gpu, NULL, &logp, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "targets");
    logp.targets = mirror.there.targets;
    logp.logp = c.logp;
    assert_int_equal(sb_linear_logp_forward(setting.gpu, NULL, &logp, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "logp");
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    release_mirror(&mirror);
    tear_down(&setting);
}

/* ---- failures ---- */

/* What a fresh engine does from beginning to end. */
typedef struct failing {
    const fake_cuda_control *fake;
    const sb_cuda_driver *driver;
} failing;

/* Both passes over three rows, four features and 200 words, in memory of 1 MiB. */
static sb_status run_both(sb_engine *engine, const sb_cuda_memory *memory, sb_error *error) {
    char *data = (char *)(uintptr_t)memory->address;
    sb_linear_logp logp = SB_LINEAR_LOGP_DEFAULT;
    sb_linear_logp_gradient gradient = SB_LINEAR_LOGP_GRADIENT_DEFAULT;
    logp.hidden = logp_matrix(SB_F16, data, 3, 4, 0);
    logp.weight = logp_matrix(SB_F16, data + 1024, 4, 200, 0);
    logp.targets = (const int64_t *)(const void *)(data + 4096);
    logp.logp = (float *)(void *)(data + 5120);
    logp.maximum = (int32_t *)(void *)(data + 6144);
    logp.sum = (float *)(void *)(data + 7168);
    logp.workspace = data + 65536;
    logp.workspace_bytes = memory->bytes - 65536;
    gradient.d_logp = (const float *)(const void *)(data + 8192);
    gradient.d_hidden = logp_matrix(SB_F16, data + 9216, 3, 4, 0);
    gradient.d_weight = logp_matrix(SB_F32, data + 16384, 4, 200, 0);
    SB_TRY(sb_linear_logp_forward(engine, NULL, &logp, error));
    return sb_linear_logp_backward(engine, NULL, &logp, &gradient, error);
}

static sb_status attempt(void *context) {
    const failing *over = context;
    struct sb_device device = {0};
    sb_cuda_memory *memory = NULL;
    sb_engine *engine = NULL;
    sb_error error = {SB_OK, ""};
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    options.device = &device;
    define_host_kernels(over->fake);
    sb_status status = open_device_handle(over->driver, 0, &host_images, &device, &error);
    if (status == SB_OK)
        status = sb_cuda_memory_create(device.handle, 1 << 20, &memory, &error);
    if (status == SB_OK)
        status = sb_engine_create(&options, &engine, &error);
    if (status == SB_OK)
        status = run_both(engine, memory, &error);
    if (status != SB_OK)
        assert_true(error.message[0] != '\0');
    sb_engine_destroy(engine);
    sb_cuda_memory_release(memory);
    sb_cuda_device_release(device.handle);
    return status;
}

static void test_failures(void **unused) {
    if (!is_fake())
        skip();
    failing over = {fresh_fake(), open_fake()};
    check_failing_calls(over.fake, attempt, &over, CUDA_ERROR_OUT_OF_MEMORY);
    check_failing_calls(over.fake, attempt, &over, CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_extents),
        cmocka_unit_test(test_targets_out_of_range),
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_failures),
    };
    if (argc > 1)
        library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
