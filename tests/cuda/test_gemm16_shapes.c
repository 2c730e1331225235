/* What Hopper's schedules are for, and what they refuse, each by name: few rows, gates, row maps, epilogues,
 * tiles that follow each other quickly. Over the fake driver, or with the file name of a driver's library on its
 * first device, as test_gemm16.c. */
#include "gemm16_products.h"
#include "thorough.h"

/* As check_product, and that this schedule is among those that take it. */
static void check_taken(setting *setting, const product *p, const char *schedule) {
    operands all = make_operands(setting, p);
    bool is_taken = takes(setting, p, &all, schedule);
    release_operands(&all);
    if (!is_taken) {
        char text[512];
        describe_product(p, text, sizeof text);
        fail_msg("%s does not take %s", schedule, text);
    }
    check_product(setting, p);
}

/* Weights in either layout, stages of two and four tiles of 64 k, which end in the middle of one. */
static void test_few_rows(void **unused) {
    static const int64_t rows[] = {1, 7, 8, 9, 33, 63, 64}, steps[] = {64, 128, 192, 320};
    setting setting = set_up();
    for (int round = 0; round < 28; round++) {
        if (is_left_out(round))
            continue;
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.m = rows[round % 7];
        p.n = 8 * random_between(&setting.random, 1, 18);
        p.k = steps[round % 4];
        p.batches = round % 5 == 0 ? 2 : 1;
        p.b = round % 3 == 0 ? WIDE_ROWS : COLUMNS;
        p.c = round % 3 == 1 ? WIDE_ROWS : ROWS;
        p.values = (values)(round % VALUES);
        p.accumulate = p.c_dtype == SB_F32 && round % 3 == 0;
        check_taken(&setting, &p, round % 3 == 0 ? "swapped-64x16" : round % 2 != 0 ? "tile-64x16" : "tile-64x112");
    }
    tear_down(&setting);
}

/* Long k, so that every stage of every ring is used and used again, with few rows on either side: of these only those
 * are fetched that there are, and wgmma reads 64. */
static void test_whole_rings(void **unused) {
    static const char *const schedules[] = {"tile-64x112",    "tile-64x64",     "tile-64x32",    "tile-64x16",
                                            "swapped-64x64",  "swapped-64x32",  "swapped-64x16", "swapped-64x8",
                                            "tile-64x96",     "tile-64x80",     "swapped-64x80", "swapped-64x96",
                                            "swapped-64x112", "swapped-64x144", "swapped-64x192"};
    enum { COUNT = sizeof schedules / sizeof schedules[0] };
    static const int64_t extents[] = {1, 8, 21, 40, 64};
    setting setting = set_up();
    for (int round = 0; round < 5 * COUNT; round++) {
        if (is_left_out(round))
            continue;
        const char *schedule = schedules[round % COUNT];
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.m = extents[round / COUNT] + (round % 3 == 0 && strncmp(schedule, "swapped", 7) == 0 ? 100 : 0);
        p.n = extents[(round / COUNT + round) % 5];
        p.k = is_fake() ? 64 * (4 + round % 5) : 64 * (64 + round % 7);
        p.b = COLUMNS;
        p.values = (values)(round % VALUES);
        check_taken(&setting, &p, schedule);
    }
    tear_down(&setting);
}

static void test_gates(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 32; round++) {
        if (is_left_out(round))
            continue;
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.m = random_between(&setting.random, 1, 150);
        p.n = 8 * random_between(&setting.random, 1, 22);
        p.k = round % 3 == 0 ? 64 * random_between(&setting.random, 1, 3) : 8 * random_between(&setting.random, 1, 20);
        p.batches = round % 4 == 0 ? 2 : 1;
        p.gate = round % 2 == 0 ? SB_GATE_STACKED : SB_GATE_INTERLEAVED;
        p.b = COLUMNS;
        p.c = round % 5 == 0 ? WIDE_COLUMNS : ROWS;
        p.values = (values)(round % VALUES);
        p.scale = round % 3 == 1 ? -0.3f : 1.0f;
        p.activation = (sb_activation)(round % (SB_ACTIVATION_GELU_TANH + 1));
        p.bias_dtype = round % 3 == 0 ? SB_DTYPE_NONE : SB_F32;
        p.residual_dtype = round % 4 == 1 ? p.dtype : SB_DTYPE_NONE;
        check_taken(&setting, &p, round % 3 == 0 && p.batches == 1 ? "tile-64x32" : "tile-128x256");
    }
    tear_down(&setting);
}

/* Rows of weights shared out, so that every multiprocessor has some: as many as a tile has, and few. */
static void test_shared_rows(void **unused) {
    static const char *const schedules[] = {"swapped-64x8", "swapped-64x16", "swapped-64x32", "swapped-64x64"};
    static const int multiprocessors[] = {1, 2, 3, 5, 8, 132};
    for (int i = 0; i < 6; i++) {
        setting setting = set_up_with(multiprocessors[i]);
        for (int round = 0; round < 12; round++) {
            if (is_left_out(12 * i + round))
                continue;
            product p = plain;
            p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
            p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
            p.m = random_between(&setting.random, 1, 40);
            p.n = random_between(&setting.random, 1, 300);
            p.k = 64 * random_between(&setting.random, 1, 9);
            p.batches = round % 4 == 0 ? 2 : 1;
            p.b = COLUMNS;
            p.c = round % 5 == 0 ? WIDE_COLUMNS : ROWS;
            p.values = (values)(round % VALUES);
            p.accumulate = p.c_dtype == SB_F32 && round % 3 == 0;
            p.bias_dtype = p.accumulate || round % 3 == 1 ? SB_DTYPE_NONE : SB_F32;
            check_taken(&setting, &p, schedules[round % 4]);
        }
        tear_down(&setting);
    }
}

/* One row, with whatever may be behind it. */
static void test_one_row(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 48; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.m = 1;
        p.gate = round % 4 == 3 ? SB_GATE_STACKED : SB_GATE_NONE;
        p.n = p.gate != SB_GATE_NONE ? 8 * random_between(&setting.random, 1, 40)
                                     : random_between(&setting.random, 1, 300);
        p.k = 64 * random_between(&setting.random, 1, is_fake() ? 9 : 200);
        p.a = round % 3 == 0 ? WIDE_ROWS : ROWS;
        p.b = round % 6 == 0 && p.gate == SB_GATE_NONE ? WIDE_ROWS : COLUMNS;
        p.c = round % 5 == 0 ? WIDE_COLUMNS : ROWS;
        p.values = (values)(round % VALUES);
        p.scale = round % 3 == 1 ? -0.3f : 1.0f;
        p.activation = (sb_activation)(round % (SB_ACTIVATION_GELU_TANH + 1));
        p.bias_dtype = round % 3 == 1 ? SB_F32 : SB_DTYPE_NONE;
        p.residual_dtype = round % 4 == 1 ? p.dtype : SB_DTYPE_NONE;
        check_taken(&setting, &p, "row-64x8");
    }
    tear_down(&setting);
}

/* Gates of few rows, where B's columns are the kernel's rows: with fewer of them than a tile has, and more. */
static void test_gates_of_few_rows(void **unused) {
    static const char *const schedules[] = {"swapped-64x8",  "swapped-64x16",  "swapped-64x32",  "swapped-64x64",
                                            "swapped-64x80", "swapped-64x112", "swapped-64x144", "swapped-64x192"};
    setting setting = set_up();
    for (int round = 0; round < 64; round++) {
        if (is_left_out(round))
            continue;
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.m = random_between(&setting.random, 1, round % 5 == 0 ? 80 : round % 8 < 4 ? 17 : 150);
        p.n = 8 * random_between(&setting.random, 1, 13);
        p.k = 64 * random_between(&setting.random, 1, is_fake() ? 5 : 60);
        p.gate = round / 8 % 2 == 0 ? SB_GATE_STACKED : SB_GATE_INTERLEAVED;
        p.b = COLUMNS;
        p.c = round % 5 == 0 ? WIDE_COLUMNS : ROWS;
        p.values = (values)(round % VALUES);
        p.scale = round % 3 == 1 ? -0.3f : 1.0f;
        p.activation = (sb_activation)(round % (SB_ACTIVATION_GELU_TANH + 1));
        p.bias_dtype = round % 3 == 0 ? SB_DTYPE_NONE : SB_F32;
        p.residual_dtype = round % 4 == 1 ? p.dtype : SB_DTYPE_NONE;
        check_taken(&setting, &p, schedules[round % 8]);
    }
    tear_down(&setting);
}

/* Samples of lengths about 16 and 64, with rows of others behind each that may be infinite or no numbers. */
static void test_samples(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 24; round++) {
        if (is_left_out(round))
            continue;
        int64_t lengths[6];
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = round / 2 % 2 != 0 ? p.dtype : SB_F32;
        p.samples = 6;
        p.lengths = lengths;
        for (int i = 0; i < 6; i++)
            p.k += lengths[i] = random_between(&setting.random, 0, round % 4 == 0 ? 90 : 33);
        if (p.k < 2) /* one line of k is both, and K-major first */
            continue;
        p.m = 64 * random_between(&setting.random, 1, 3);
        p.n = 64 * random_between(&setting.random, 1, 5);
        p.a = round % 3 == 0 ? WIDE_COLUMNS : COLUMNS;
        p.b = round % 3 == 1 ? WIDE_ROWS : ROWS;
        p.values = (values)(round % VALUES);
        p.accumulate = p.c_dtype == SB_F32 && round % 3 == 0;
        check_taken(&setting, &p, round % 2 == 0 ? "mapped-128x256" : "mapped-128x128");
    }
    tear_down(&setting);
}

/* More tiles than a device has multiprocessors, of little k: the results of one are on their way when
 * the next one's come. */
static void test_quick_tiles(void **unused) {
    setting setting = set_up();
    for (int round = 0; round < 2; round++) {
        product p = plain;
        p.dtype = round % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = p.dtype;
        p.m = is_fake() ? 136 : 2100;
        p.n = is_fake() ? 200 : 1768;
        p.k = 128;
        p.b = COLUMNS;
        check_taken(&setting, &p, "tile-128x64");
    }
    tear_down(&setting);
}

/* What each says of what it cannot do. */
static void test_refusals(void **unused) {
    static const int64_t length[] = {64};
    static const struct {
        const char *schedule, *says;
        int64_t m, n, k;
        layout a, b;
        sb_gate gate;
        bool is_mapped;
    } cases[] = {
        {"tile-64x32", "multiple of 64", 8, 64, 72, ROWS, COLUMNS, SB_GATE_NONE, false},
        {"tile-64x32", "K-major", 8, 64, 64, ROWS, ROWS, SB_GATE_NONE, false},
        {"swapped-64x8", "K-major", 64, 64, 64, COLUMNS, ROWS, SB_GATE_NONE, false},
        {"swapped-64x8", "multiple of 8 of either", 8, 20, 64, ROWS, COLUMNS, SB_GATE_INTERLEAVED, false},
        {"swapped-64x16", "multiple of 8 of either", 8, 12, 64, ROWS, COLUMNS, SB_GATE_STACKED, false},
        {"tile-64x112", "no gates", 8, 64, 64, ROWS, COLUMNS, SB_GATE_STACKED, false},
        {"tile-128x64", "gates before values", 8, 64, 64, ROWS, ROWS, SB_GATE_STACKED, false},
        {"tile-128x64", "multiple of 8", 8, 20, 64, ROWS, COLUMNS, SB_GATE_STACKED, false},
        {"tile-128x64", "row map", 64, 64, 64, COLUMNS, ROWS, SB_GATE_NONE, true},
        {"tile-128x64", "16 bytes", 8, 8, 9, ROWS, COLUMNS, SB_GATE_NONE, false},
        {"mapped-128x128", "row map", 64, 64, 64, COLUMNS, ROWS, SB_GATE_NONE, false},
        {"mapped-128x128", "multiples of 64", 72, 64, 64, COLUMNS, ROWS, SB_GATE_NONE, true},
        {"mapped-128x128", "MN-major", 64, 64, 64, ROWS, ROWS, SB_GATE_NONE, true},
        {"quad-64x96", "A and B must be K-major", 64, 64, 64, ROWS, ROWS, SB_GATE_NONE, false},
        {"quad-64x96", "it has no gates", 64, 64, 64, ROWS, COLUMNS, SB_GATE_STACKED, false},
    };
    setting setting = set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        product p = plain;
        p.m = cases[i].m;
        p.n = cases[i].n;
        p.k = cases[i].k;
        p.a = cases[i].a;
        p.b = cases[i].b;
        p.gate = cases[i].gate;
        operands all = make_operands(&setting, &p);
        sb_gemm gemm = describe_gemm(&p, &all, true);
        sb_row_map *map = NULL;
        sb_error error = {SB_OK, ""};
        if (cases[i].is_mapped)
            MUST(sb_row_map_create(setting.gpu, 1, length, &map, error));
        gemm.rows = map;
        gemm.schedule = cases[i].schedule;
        assert_int_equal(sb_gemm_run(setting.gpu, NULL, &gemm, &error), SB_ERROR_UNSUPPORTED);
        assert_says(error, cases[i].schedule);
        assert_says(error, cases[i].says);
        sb_row_map_release(map);
        release_operands(&all);
    }
    tear_down(&setting);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_rows),    cmocka_unit_test(test_whole_rings),       cmocka_unit_test(test_gates),
        cmocka_unit_test(test_shared_rows), cmocka_unit_test(test_gates_of_few_rows), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_quick_tiles), cmocka_unit_test(test_one_row),           cmocka_unit_test(test_refusals),
    };
    if (argc > 1)
        library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
