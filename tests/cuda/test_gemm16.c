/* 16-bit products on a device against those of the CPU, bit for bit and byte for byte: without arguments over the
 * fake driver, which runs the kernels' sources on the host; with the file name of a driver's library (libcuda.so.1),
 * on its first device. */
#include "gemm16_products.h"

/* ---- tests ---- */

/* Extents around those of tiles, groups and steps, however operands lie. */
static void test_extents(void **unused) {
    static const int64_t lines[] = {1, 7, 8, 9, 16, 17, 63, 64, 65, 129};
    static const int64_t depths[] = {0, 1, 8, 15, 16, 17, 31, 32, 33, 72};
    setting setting = set_up();
    for (int round = 0; round < 200; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round % 3 != 0 ? p.dtype : SB_F32;
        p.m = lines[random_between(&setting.random, 0, 9)];
        p.n = lines[random_between(&setting.random, 0, 9)];
        p.k = depths[random_between(&setting.random, 0, 9)];
        p.a = (layout)(round % LAYOUTS);
        p.b = (layout)(round / LAYOUTS % LAYOUTS);
        p.c = (layout)(round / 3 % LAYOUTS);
        p.values = (values)(round % VALUES);
        check_product(&setting, &p);
    }
    tear_down(&setting);
}

/* Many whole tiles, and parts of them, so that all ways of fetching take turns in one product. */
static void test_many_tiles(void **unused) {
    static const int64_t extents[][3] = {{136, 264, 48}, {1100, 8, 48}, {12, 76, 64},   {76, 12, 64},
                                         {140, 68, 32},  {72, 40, 230}, {16, 136, 200}, {133, 24, 320}};
    setting setting = set_up();
    for (int round = 0; round < 32; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.m = extents[round / 4][0];
        p.n = extents[round / 4][1];
        p.k = extents[round / 4][2];
        p.a = round % 2 != 0 ? WIDE_ROWS : WIDE_COLUMNS;
        p.b = round / 2 % 2 != 0 ? WIDE_ROWS : WIDE_COLUMNS;
        p.c = round % 3 == 0 ? COLUMNS : ROWS;
        p.values = WIDE;
        p.gate = round >= 20 ? (sb_gate)(round % 3) : SB_GATE_NONE;
        check_product(&setting, &p);
    }
    tear_down(&setting);
}

static void test_batches(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 60; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = p.dtype;
        p.m = random_between(&setting.random, 1, 20);
        p.n = random_between(&setting.random, 1, 20);
        p.k = random_between(&setting.random, 0, 40);
        p.batches = random_between(&setting.random, 2, 9);
        p.a = round % 5 == 0 ? REPEATED : (layout)(round % LAYOUTS);
        p.b = round % 5 == 1 ? REPEATED : (layout)(round / LAYOUTS % LAYOUTS);
        p.c = (layout)(round / 3 % LAYOUTS);
        p.residual_dtype = round % 4 == 0 ? SB_F32 : SB_DTYPE_NONE;
        p.residual = round % 8 == 0 ? REPEATED : (layout)(round / 4 % LAYOUTS);
        p.values = (values)(round % VALUES);
        check_product(&setting, &p);
    }
    tear_down(&setting);
}

/* Everything that can be behind a chain. */
static void test_epilogues(void **unused) {
    static const float scales[] = {1.0f, -0.3f, 1e-30f, 0.0f};
    setting setting = set_up();
    for (int round = 0; round < 240; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 3 != 0 ? p.dtype : SB_F32;
        p.m = random_between(&setting.random, 1, 70);
        p.n = random_between(&setting.random, 1, 70);
        p.k = random_between(&setting.random, 0, 40);
        p.batches = random_between(&setting.random, 1, 2);
        p.a = (layout)(round % LAYOUTS);
        p.b = (layout)(round / LAYOUTS % LAYOUTS);
        p.c = (layout)(round / 3 % LAYOUTS);
        p.values = (values)(round / 5 % VALUES);
        p.scale = scales[round / 7 % 4];
        p.activation = (sb_activation)(round % (SB_ACTIVATION_GELU_TANH + 1));
        p.gate = (sb_gate)(round / 5 % 3);
        p.bias_dtype = round % 4 == 0 ? SB_DTYPE_NONE : round % 4 == 1 ? p.dtype : SB_F32;
        p.bias = round % 3 == 0 ? APART : round % 3 == 1 ? REVERSED : ROWS;
        p.residual_dtype = round / 4 % 3 == 0 ? SB_DTYPE_NONE : round / 4 % 3 == 1 ? p.dtype : SB_F32;
        p.residual = (layout)(round / 2 % LAYOUTS);
        p.in_place = p.residual_dtype == p.c_dtype && round % 5 < 3;
        check_product(&setting, &p);
    }
    tear_down(&setting);
}

/* Uneven samples, empty ones among them, in all layouts, over chains that go on. */
static void test_row_maps(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 120; round++) {
        int64_t lengths[8];
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.samples = (int)random_between(&setting.random, round % 10 == 0 ? 0 : 1, 8);
        p.lengths = lengths;
        for (int i = 0; i < p.samples; i++) {
            lengths[i] = random_between(&setting.random, 0, round % 3 == 0 ? 60 : 40);
            p.k += lengths[i];
        }
        p.m = random_between(&setting.random, 1, 40);
        p.n = random_between(&setting.random, 1, 40);
        p.a = (layout)(round % LAYOUTS);
        p.b = (layout)(round / LAYOUTS % LAYOUTS);
        p.c = (layout)(round / 3 % LAYOUTS);
        if (round % 3 == 0) { /* gradients of weights as they mostly lie */
            p.m = 8 * random_between(&setting.random, 1, 17);
            p.n = 8 * random_between(&setting.random, 1, 9);
            p.a = round % 2 == 0 ? WIDE_COLUMNS : COLUMNS;
            p.b = round % 4 < 2 ? WIDE_ROWS : ROWS;
        }
        p.values = (values)(round % VALUES);
        p.accumulate = round / 2 % 2 == 0;
        check_product(&setting, &p);
    }
    tear_down(&setting);
}

/* A chain that goes on from where C was left is the chain in one piece, when it was left between groups. */
static void test_accumulate(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 12; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.m = 33;
        p.n = 21;
        p.k = 16 * random_between(&setting.random, 2, 8) + round;
        p.a = (layout)(round % LAYOUTS);
        p.b = (layout)(round / 2 % LAYOUTS);
        p.values = WIDE;
        operands all = make_operands(&setting, &p);
        run_on(&setting, &p, &all, false);
        int64_t cut = 16 * random_between(&setting.random, 1, p.k / 16 - 1);
        for (int piece = 0; piece < 2; piece++) {
            sb_gemm gemm = describe_gemm(&p, &all, true);
            gemm.accumulate = piece != 0;
            gemm.a.columns = gemm.b.rows = piece == 0 ? cut : p.k - cut;
            if (piece != 0) {
                gemm.a.data = (uint16_t *)gemm.a.data + cut * gemm.a.column_stride;
                gemm.b.data = (uint16_t *)gemm.b.data + cut * gemm.b.row_stride;
            }
            MUST(sb_gemm_run(setting.gpu, setting.queue.stream->handle, &gemm, error));
        }
        size_t where;
        assert_true(same_bytes(&setting, &all.c, &where));
        release_operands(&all);
    }
    tear_down(&setting);
}

/* Nothing to compute, and chains without a step. */
static void test_empty(void **unused) {
    static const int64_t extents[][4] = {{0, 3, 4, 1}, {3, 0, 4, 1}, {3, 4, 5, 0},
                                         {3, 4, 0, 1}, {3, 4, 0, 3}, {0, 0, 0, 0}};
    setting setting = set_up();
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            product p = plain;
            p.m = extents[i][0];
            p.n = extents[i][1];
            p.k = extents[i][2];
            p.batches = extents[i][3];
            p.values = SPECIAL;
            p.accumulate = accumulate != 0;
            check_product(&setting, &p);
            if (p.accumulate)
                continue;
            p.gate = SB_GATE_STACKED;
            p.activation = SB_ACTIVATION_SILU;
            p.bias_dtype = SB_F32;
            check_product(&setting, &p);
        }
    }
    tear_down(&setting);
}

/* The definition itself, without the CPU's engine. */
static void test_definition(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 8; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.m = 20;
        p.n = 35;
        p.k = 83;
        p.a = (layout)round;
        p.b = (layout)(LAYOUTS - 1 - round);
        p.values = (values)(round % VALUES);
        operands all = make_operands(&setting, &p);
        run_on(&setting, &p, &all, true);
        for (int64_t i = 0; i < p.m * p.n; i++) {
            int64_t row = i / p.n, column = i % p.n;
            const uint16_t *a = (const uint16_t *)all.a.host.data + row * all.a.host.row_stride;
            const uint16_t *b = (const uint16_t *)all.b.host.data + column * all.b.host.column_stride;
            float *c = (float *)all.c.host.data + row * all.c.host.row_stride + column * all.c.host.column_stride;
            *c = p.dtype == SB_F16 ? sb_chain16_f16(a, all.a.host.column_stride, b, all.b.host.row_stride, p.k, 0.0f)
                                   : sb_chain16_bf16(a, all.a.host.column_stride, b, all.b.host.row_stride, p.k, 0.0f);
        }
        size_t where;
        assert_true(same_bytes(&setting, &all.c, &where));
        release_operands(&all);
    }
    tear_down(&setting);
}

/* ---- how it is launched ---- */

static void test_schedules(void **unused) {
    setting setting = set_up();
    product p = plain;
    p.m = p.n = p.k = 5;
    operands all = make_operands(&setting, &p);
    sb_gemm gemm = describe_gemm(&p, &all, true);
    const char *chosen = NULL, *name = NULL;
    int count = sb_gemm_schedule_count(setting.gpu);
    assert_true(count >= 2);
    assert_null(sb_gemm_schedule_name(setting.gpu, -1));
    assert_null(sb_gemm_schedule_name(setting.gpu, count));
    MUST(sb_gemm_choose(setting.gpu, &gemm, &chosen, error));
    bool is_known = false;
    for (int i = 0; i < count; i++) {
        sb_error error = {SB_OK, ""};
        gemm.schedule = sb_gemm_schedule_name(setting.gpu, i);
        is_known = is_known || strcmp(sb_gemm_schedule_name(setting.gpu, i), chosen) == 0;
        sb_status status = sb_gemm_choose(setting.gpu, &gemm, &name, &error);
        if (status == SB_OK) {
            assert_string_equal(name, gemm.schedule);
            continue;
        }
        assert_int_equal(status, SB_ERROR_UNSUPPORTED);
        assert_says(error, gemm.schedule);
        assert_int_equal(sb_gemm_run(setting.gpu, NULL, &gemm, &error), SB_ERROR_UNSUPPORTED);
    }
    assert_true(is_known);
    gemm.schedule = "quick";
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_gemm_run(setting.gpu, NULL, &gemm, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "quick");
    release_operands(&all);
    tear_down(&setting);
}

/* Streams that take turns, the legacy one among them, and no allocation once a stream is known. */
static void test_streams(void **unused) {
    setting setting = set_up();
    sb_cuda_stream *streams[3] = {setting.queue.stream};
    product p = plain;
    p.m = p.n = p.k = 21;
    MUST(sb_cuda_stream_create(setting.device.handle, &streams[1], error));
    MUST(sb_cuda_stream_wrap(setting.device.handle, NULL, &streams[2], error));
    operands all = make_operands(&setting, &p);
    sb_gemm gemm = describe_gemm(&p, &all, true);
    for (int i = 0; i < 6; i++) {
        size_t where;
        CUstream stream = streams[i % 3]->handle;
        fill(&setting, &all.a, TAME);
        fill(&setting, &all.c, TAME);
        MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
        MUST(sb_gemm_run(setting.gpu, stream, &gemm, error));
        sb_allocation_counters before = sb_allocation_count();
        sb_cuda_counters device_before = sb_cuda_device_counters(setting.device.handle);
        for (int again = 0; again < 3; again++)
            MUST(sb_gemm_run(setting.gpu, stream, &gemm, error));
        sb_allocation_counters after = sb_allocation_count();
        sb_cuda_counters device_after = sb_cuda_device_counters(setting.device.handle);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(device_after.device_allocations, device_before.device_allocations);
        assert_int_equal(device_after.kernels, device_before.kernels + 3);
        MUST(sb_cuda_stream_synchronize(streams[i % 3], error));
        run_on(&setting, &p, &all, false);
        assert_true(same_bytes(&setting, &all.c, &where));
    }
    release_operands(&all);
    sb_cuda_stream_destroy(streams[1]);
    sb_cuda_stream_destroy(streams[2]);
    tear_down(&setting);
}

#define DRIVER(setting, call, ...)                                                                                     \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""};                                                                                 \
        if (SB_CUDA_DO(sb_cuda_device_behind(&(setting)->device), &error_, call, __VA_ARGS__) != SB_OK)                \
            fail_msg("%s", error_.message);                                                                            \
    } while (0)

/* Somebody else captures a stream into which products go, the very first use of the stream among them. */
static void test_capture(void **unused) {
    setting setting = set_up();
    product p = plain;
    p.m = 40;
    p.n = 24;
    p.k = 50;
    p.values = WIDE;
    operands all = make_operands(&setting, &p);
    sb_gemm gemm = describe_gemm(&p, &all, true);
    CUstream stream = setting.queue.stream->handle;
    CUgraph graph = NULL;
    CUgraphExec ready = NULL;
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    MUST(sb_cuda_enter(setting.device.handle, error));
    DRIVER(&setting, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(sb_gemm_run(setting.gpu, stream, &gemm, error));
    gemm.accumulate = true;
    MUST(sb_gemm_run(setting.gpu, stream, &gemm, error));
    DRIVER(&setting, cuStreamEndCapture, stream, &graph);
    DRIVER(&setting, cuGraphInstantiateWithFlags, &ready, graph, 0);
    for (int replay = 0; replay < 3; replay++) {
        size_t where;
        fill(&setting, &all.a, WIDE);
        DRIVER(&setting, cuGraphLaunch, ready, stream);
        p.accumulate = false;
        run_on(&setting, &p, &all, false);
        p.accumulate = true;
        run_on(&setting, &p, &all, false);
        assert_true(same_bytes(&setting, &all.c, &where));
    }
    DRIVER(&setting, cuGraphExecDestroy, ready);
    DRIVER(&setting, cuGraphDestroy, graph);
    MUST(sb_cuda_leave(setting.device.handle, SB_OK, error));
    release_operands(&all);
    tear_down(&setting);
}

/* ---- images ---- */

/* With these images only the general schedules may be taken. */
static void check_general_alone(const sb_cuda_images *images) {
    const fake_cuda_control *fake = fresh_fake();
    define_host_kernels(fake);
    struct sb_device device = {0};
    sb_engine *engine;
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    options.device = &device;
    MUST(open_device_handle(open_fake(), 0, images, &device, error));
    MUST(sb_engine_create(&options, &engine, error));
    sb_cuda_memory *memory;
    MUST(sb_cuda_memory_create(device.handle, 4096, &memory, error));
    char *data = (char *)(uintptr_t)memory->address;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = (sb_matrix){SB_BF16, data, 8, 16, 16, 1, 0};
    gemm.b = (sb_matrix){SB_BF16, data + 1024, 16, 8, 1, 16, 0};
    gemm.c = (sb_matrix){SB_BF16, data + 2048, 8, 8, 8, 1, 0};
    const char *chosen = NULL;
    MUST(sb_gemm_choose(engine, &gemm, &chosen, error));
    assert_int_equal(strncmp(chosen, "general", 7), 0);
    for (int i = 0; sb_gemm_schedule_name(engine, i) != NULL; i++) {
        sb_error error = {SB_OK, ""};
        gemm.schedule = sb_gemm_schedule_name(engine, i);
        bool is_general = strncmp(gemm.schedule, "general", 7) == 0;
        assert_int_equal(sb_gemm_choose(engine, &gemm, &chosen, &error), is_general ? SB_OK : SB_ERROR_UNSUPPORTED);
        if (!is_general)
            assert_non_null(strstr(error.message, "sm_90a"));
    }
    sb_cuda_memory_release(memory);
    sb_engine_destroy(engine);
    sb_cuda_device_release(device.handle);
    check_nothing_lives(fake);
}

/* PTX that the driver compiles for a device of 9.0 has none of its own instructions, and a build without machine code
 * for 9.0 has nothing of the modules that are made of them. */
static void test_without_machine_code(void **unused) {
    if (!is_fake())
        skip();
    sb_cuda_image *table = calloc((size_t)host_images.count, sizeof *table);
    assert_non_null(table);
    int general = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < host_images.count; i++) {
            const char *module = host_images.images[i].module;
            bool is_general = strncmp(module, "gemm16_", 7) != 0 || strncmp(module, "gemm16_general", 14) == 0;
            if (is_general != (pass == 0))
                continue;
            table[general] = host_images.images[i];
            table[general].architecture = "compute_90";
            table[general++].kind = SB_CUDA_PTX;
        }
        sb_cuda_images images = {host_images.toolkit, general, table};
        check_general_alone(&images);
    }
    assert_int_equal(general, host_images.count);
    free(table);
}

/* ---- failures ---- */

/* What a fresh engine does from beginning to end. */
typedef struct failing {
    const fake_cuda_control *fake;
    const sb_cuda_driver *driver;
} failing;

static sb_status attempt(void *context) {
    const failing *over = context;
    static const int64_t lengths[] = {3, 20};
    struct sb_device device = {0};
    sb_cuda_memory *memory = NULL;
    sb_engine *engine = NULL;
    sb_row_map *map = NULL;
    sb_error error = {SB_OK, ""};
    sb_gemm gemm = SB_GEMM_DEFAULT;
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    options.device = &device;
    define_host_kernels(over->fake);
    sb_status status = open_device_handle(over->driver, 0, &host_images, &device, &error);
    if (status == SB_OK)
        status = sb_cuda_memory_create(device.handle, 4096, &memory, &error);
    if (status == SB_OK)
        status = sb_engine_create(&options, &engine, &error);
    if (status == SB_OK)
        status = sb_row_map_create(engine, 2, lengths, &map, &error);
    if (status == SB_OK) {
        char *data = (char *)(uintptr_t)memory->address;
        gemm.a = (sb_matrix){SB_F16, data, 3, 23, 23, 1, 0};
        gemm.b = (sb_matrix){SB_F16, data + 1024, 23, 5, 5, 1, 0};
        gemm.c = (sb_matrix){SB_F32, data + 2048, 3, 5, 5, 1, 0};
        gemm.rows = map;
        status = sb_gemm_run(engine, NULL, &gemm, &error);
        /* And one with tensor maps for all three. */
        gemm.a = (sb_matrix){SB_F16, data, 3, 16, 16, 1, 0};
        gemm.b = (sb_matrix){SB_F16, data + 1024, 16, 8, 1, 16, 0};
        gemm.c = (sb_matrix){SB_F16, data + 2048, 3, 8, 8, 1, 0};
        gemm.rows = NULL;
        gemm.schedule = "tile-128x64";
        if (status == SB_OK)
            status = sb_gemm_run(engine, NULL, &gemm, &error);
    }
    if (status != SB_OK)
        assert_true(error.message[0] != '\0');
    sb_row_map_release(map);
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

/* The host's own memory fails in turn. */
static void test_out_of_memory(void **unused) {
    if (!is_fake())
        skip();
    failing over = {fresh_fake(), open_fake()};
    for (int allowed = 0;; allowed++) {
        int64_t blocks = sb_allocation_count().live_blocks;
        sb_allocation_fail_after(allowed, false);
        sb_status status = attempt(&over);
        sb_allocation_fail_after(-1, false);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
        check_nothing_lives(over.fake);
        over.fake->reset();
        if (status == SB_OK)
            break;
        assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
        assert_true(allowed < 1000);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),    cmocka_unit_test(test_extents),
        cmocka_unit_test(test_many_tiles),    cmocka_unit_test(test_batches),
        cmocka_unit_test(test_epilogues),     cmocka_unit_test(test_row_maps),
        cmocka_unit_test(test_accumulate),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_schedules),     cmocka_unit_test(test_streams),
        cmocka_unit_test(test_capture),       cmocka_unit_test(test_failures),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_without_machine_code),
    };
    if (argc > 1)
        library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
