/* The pipelines of Hopper's products: their own source, with rings, barriers, copies and products that happen in the
 * orders in which a device may do them (host_schedules.h), against the CPU's bytes. Devices have few multiprocessors,
 * so that blocks go on to further tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "hopper_cases.h"
#include "logp_mirror.h"
#include "thorough.h"

/* A case under every schedule, by the kernel with this beginning of its name; every stage is used twice at least. Which
 * schedules are left out changes from case to case. */
static void check_everywhere(setting *setting, const product *p, const char *kernel) {
    static int number;
    char text[512];
    hopper_case c = make_hopper_case(setting, p);
    describe_product(p, text, sizeof text);
    for (int i = 0; i < HOPPER_SCHEDULES; i++) {
        if (is_left_out(number++))
            continue;
        bool same = computes_the_same(setting, &c, &hopper_schedules[i]);
        const host_rings rings = host_last_rings();
        if (!same)
            fail_msg("%s: C differs under \"%s\"", text, hopper_schedules[i].name);
        if (strncmp(rings.kernel, kernel, strlen(kernel)) != 0 || rings.least_uses < 2)
            fail_msg("%s: %s is run, of whose %u stages one is used %u times", text, rings.kernel, rings.stages,
                     rings.least_uses);
    }
    release_hopper_case(&c);
}

/* Tiles of 128 rows in every layout; k ends in the middle of a step, C in the middle of a tile. */
static void test_two_warpgroups(void **unused) {
    static const struct {
        const char *schedule;
        int columns, stages;
        bool b_k_major;
    } shapes[] = {
        {"128x256", 256, 4, false}, {"128x224", 224, 4, false}, {"128x192", 192, 4, false}, {"128x128", 128, 6, false},
        {"128x112", 112, 6, true},  {"128x96", 96, 6, true},    {"128x64", 64, 8, false},   {"128x160", 160, 5, true},
        {"128x144", 144, 5, true},  {"128x80", 80, 7, true},
    };
    setting setting = set_up_with(2);
    for (int shape = 0; shape < 10; shape++) {
        for (int form = 0; form < (shapes[shape].b_k_major ? 2 : 4); form++) {
            char schedule[32], kernel[64];
            product p = plain;
            bool a_mn = form % 2 != 0, b_mn = form / 2 != 0, is_f16 = (shape + form) % 2 != 0;
            snprintf(schedule, sizeof schedule, "tile-%s", shapes[shape].schedule);
            snprintf(kernel, sizeof kernel, "sb_gemm16_%s_%s_%s_%s", shapes[shape].schedule, is_f16 ? "f16" : "bf16",
                     a_mn ? "mn" : "k", b_mn ? "mn" : "k");
            p.dtype = is_f16 ? SB_F16 : SB_BF16;
            p.c_dtype = form == 1 ? SB_F32 : p.dtype;
            p.m = 129 + 2 * form;
            p.n = form == 2 ? shapes[shape].columns + 8 : 37 + 2 * form;
            p.k = long_k(shapes[shape].stages, 1) - 43;
            p.a = a_mn ? WIDE_COLUMNS : WIDE_ROWS;
            p.b = b_mn ? WIDE_ROWS : WIDE_COLUMNS;
            p.values = form == 3 ? WIDE : TAME;
            p.schedule = schedule;
            check_everywhere(&setting, &p, kernel);
        }
    }
    tear_down(&setting);
}

/* Tiles that two warpgroups take in turns: an odd number of them, k of one stage and of more than the ring has, all that may
 * happen to results, gates that take turns in the rows or lie apart, batches. */
static void test_turns(void **unused) {
    static const struct {
        int64_t m, n, k, batches;
        sb_gate gate;
        sb_activation activation;
        sb_dtype bias;
        bool residual, b_mn_major;
        layout residuals; /* packed rows by default */
        bool of_f32, in_place;
    } shapes[] = {
        {129, 136, 835, 1, SB_GATE_NONE, SB_ACTIVATION_SILU, SB_F32, .residual = false},
        {300, 392, 200, 1, SB_GATE_NONE, SB_ACTIVATION_GELU, SB_BF16, .residual = true, .b_mn_major = true},
        {600, 264, 72, 2, SB_GATE_NONE, SB_ACTIVATION_NONE, SB_DTYPE_NONE, .residual = false},
        {520, 392, 130, 1, SB_GATE_NONE, SB_ACTIVATION_GELU_TANH, SB_F16, .residual = true},
        {260, 136, 400, 1, SB_GATE_STACKED, SB_ACTIVATION_SILU, SB_F32, .residual = false},
        {150, 200, 330, 1, SB_GATE_INTERLEAVED, SB_ACTIVATION_GELU, SB_F16, .residual = true},
        {515, 72, 64, 2, SB_GATE_STACKED, SB_ACTIVATION_NONE, SB_DTYPE_NONE, .residual = true},
        {129, 520, 900, 1, SB_GATE_NONE, SB_ACTIVATION_RELU, SB_F32, .residual = true, .b_mn_major = true},
        {140, 264, 840, 1, SB_GATE_NONE, SB_ACTIVATION_SILU, SB_DTYPE_NONE, .residual = true},
        {140, 264, 840, 1, SB_GATE_INTERLEAVED, SB_ACTIVATION_SILU, SB_F16, .residual = false},
        {260, 136, 840, 1, SB_GATE_STACKED, SB_ACTIVATION_SILU, SB_DTYPE_NONE, .residual = false},
        {140, 264, 840, 1, SB_GATE_NONE, SB_ACTIVATION_SILU, SB_DTYPE_NONE, .residual = false},
        {270, 264, 200, 2, SB_GATE_NONE, SB_ACTIVATION_NONE, SB_F32, .residual = true, .residuals = WIDE_ROWS},
        {270, 136, 200, 1, SB_GATE_NONE, SB_ACTIVATION_NONE, SB_F32, .residual = true, .b_mn_major = true,
         .residuals = ODD_ROWS},
        {140, 264, 330, 1, SB_GATE_NONE, SB_ACTIVATION_RELU, SB_DTYPE_NONE, .residual = true, .residuals = COLUMNS},
        {270, 200, 130, 1, SB_GATE_NONE, SB_ACTIVATION_NONE, SB_F16, .residual = true, .of_f32 = true},
        {270, 200, 130, 1, SB_GATE_NONE, SB_ACTIVATION_NONE, SB_F32, .residual = true, .in_place = true},
        {270, 72, 130, 1, SB_GATE_STACKED, SB_ACTIVATION_SILU, SB_F32, .residual = true, .residuals = APART},
        {270, 264, 130, 1, SB_GATE_NONE, SB_ACTIVATION_SILU, SB_F32, .residual = true, .residuals = REVERSED},
        {270, 264, 330, 2, SB_GATE_NONE, SB_ACTIVATION_GELU, SB_F32, .b_mn_major = true},
    };
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        product p = plain;
        char kernel[64];
        p.dtype = shape % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = p.dtype;
        p.m = shapes[shape].m;
        p.n = shapes[shape].n;
        p.k = shapes[shape].k;
        p.batches = shapes[shape].batches;
        p.a = WIDE_ROWS;
        p.b = shapes[shape].b_mn_major ? WIDE_ROWS : WIDE_COLUMNS;
        p.c = shape % 3 == 0 ? WIDE_ROWS : ROWS;
        p.residual = shapes[shape].residuals;
        p.in_place = shapes[shape].in_place;
        p.gate = shapes[shape].gate;
        p.activation = shapes[shape].activation;
        p.scale = shape % 4 == 1 ? -0.3f : 1;
        p.bias_dtype =
            shapes[shape].bias == SB_F32 || shapes[shape].bias == SB_DTYPE_NONE ? shapes[shape].bias : p.dtype;
        p.residual_dtype = shapes[shape].of_f32 ? SB_F32 : shapes[shape].residual ? p.dtype : SB_DTYPE_NONE;
        p.values = shape % 4 == 3 ? SPECIAL : shape % 2 != 0 ? WIDE : TAME;
        p.schedule = "turns-128x128";
        snprintf(kernel, sizeof kernel, "sb_gemm16_turns_128x128_%s_k_%s", p.dtype == SB_F16 ? "f16" : "bf16",
                 shapes[shape].b_mn_major ? "mn" : "k");
        check_everywhere(&setting, &p, kernel);
    }
    tear_down(&setting);
}

/* k for which all stages that fit are used twice, of tiles of 64 by `columns` whose A has so many rows. */
static int64_t long_k_of_few(int64_t rows, int columns, int boxes) {
    int64_t lines = (rows < 64 ? round_up(rows, 8) : 64) + columns, most = 226 * 1024 / (boxes * lines * 128);
    return long_k(most < 32 ? (int)most : 32, boxes);
}

/* Tiles of 64 rows: several boxes a stage, two threads that fetch in turn, as few rows of A as there are. */
static void test_one_warpgroup(void **unused) {
    static const struct {
        const char *schedule, *kernel;
        int columns, boxes;
        bool swapped;
    } shapes[] = {
        {"tile-64x112", "sb_gemm16_64x112_", 112, 2, false},   {"tile-64x64", "sb_gemm16_64x64_", 64, 2, false},
        {"tile-64x32", "sb_gemm16_64x32_", 32, 2, false},      {"tile-64x16", "sb_gemm16_64x16_", 16, 4, false},
        {"swapped-64x64", "sb_gemm16_64x64_", 64, 2, true},    {"swapped-64x32", "sb_gemm16_64x32_", 32, 2, true},
        {"swapped-64x16", "sb_gemm16_64x16_", 16, 4, true},    {"swapped-64x8", "sb_gemm16_64x8_", 8, 2, true},
        {"tile-64x96", "sb_gemm16_64x96_", 96, 2, false},      {"tile-64x80", "sb_gemm16_64x80_", 80, 2, false},
        {"swapped-64x192", "sb_gemm16_64x192_", 192, 1, true}, {"swapped-64x144", "sb_gemm16_64x144_", 144, 1, true},
        {"swapped-64x112", "sb_gemm16_64x112_", 112, 2, true}, {"swapped-64x96", "sb_gemm16_64x96_", 96, 2, true},
        {"swapped-64x80", "sb_gemm16_64x80_", 80, 2, true},
    };
    static const int64_t rows[] = {7, 33, 71};
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        for (int form = 0; form < 3; form++) {
            bool swapped = shapes[shape].swapped, mn_major = form == 2;
            int64_t other = shapes[shape].columns + (form == 2 ? 8 : -3);
            product p = plain;
            p.dtype = (shape + form) % 2 != 0 ? SB_F16 : SB_BF16;
            p.c_dtype = form == 1 ? SB_F32 : p.dtype;
            p.m = swapped ? other : rows[form];
            p.n = swapped ? rows[form] : other;
            /* The two multiprocessors share a swapped product's rows, unless they come in 64s. */
            int64_t taken = mn_major ? 64 : swapped ? (rows[form] + 1) / 2 : rows[form];
            p.k = long_k_of_few(taken, shapes[shape].columns, shapes[shape].boxes);
            p.a = mn_major && !swapped ? WIDE_COLUMNS : ROWS;
            p.b = mn_major && swapped ? WIDE_ROWS : COLUMNS;
            p.accumulate = form == 1 && shape % 2 == 0;
            p.schedule = shapes[shape].schedule;
            check_everywhere(&setting, &p, shapes[shape].kernel);
        }
    }
    tear_down(&setting);
}

/* Short k and more tiles than blocks: the ring goes on from tile to tile, and results leave while the next tile's
 * products are in flight. */
static void test_tiles_behind_each_other(void **unused) {
    static const struct {
        const char *schedule, *kernel;
        int64_t m, n, k;
    } shapes[] = {
        {"tile-128x256", "sb_gemm16_128x256_", 300, 776, 128},
        {"tile-128x128", "sb_gemm16_128x128_", 400, 264, 264},
        {"tile-128x96", "sb_gemm16_128x96_", 260, 488, 200},
        {"tile-128x64", "sb_gemm16_128x64_", 400, 200, 320},
        {"tile-64x64", "sb_gemm16_64x64_", 200, 392, 256},
        {"tile-64x16", "sb_gemm16_64x16_", 70, 200, 512},
        {"swapped-64x8", "sb_gemm16_64x8_", 20, 400, 512},
        {"swapped-64x144", "sb_gemm16_64x144_", 140, 400, 384},
        {"swapped-64x80", "sb_gemm16_64x80_", 150, 200, 512},
        {"swapped-64x64", "sb_gemm16_64x64_", 50, 328, 1024},
        {"swapped-64x192", "sb_gemm16_64x192_", 200, 264, 320},
        {"swapped-64x112", "sb_gemm16_64x112_", 112, 136, 1152},
        {"quad-64x96", "sb_gemm16_quad_64x96_", 110, 600, 1280},
        {"quad-64x112", "sb_gemm16_quad_64x112_", 100, 200, 1344},
        {"quad-64x144", "sb_gemm16_quad_64x144_", 300, 264, 320},
        {"quad-64x96", "sb_gemm16_quad_64x96_", 200, 519, 200},
    };
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        product p = plain;
        p.dtype = shape % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = p.dtype;
        p.m = shapes[shape].m;
        p.n = shapes[shape].n;
        p.k = shapes[shape].k;
        p.batches = shape % 3 == 1 ? 2 : 1;
        p.b = COLUMNS;
        p.values = shape == 3 ? WIDE : TAME;
        p.schedule = shapes[shape].schedule;
        check_everywhere(&setting, &p, shapes[shape].kernel);
    }
    tear_down(&setting);
}

/* Gates, epilogues and chains that go on from C. */
static void test_ends(void **unused) {
    static const struct {
        const char *schedule, *kernel;
        int64_t m, n, k;
        sb_gate gate;
        sb_activation activation;
        bool bias, residual, accumulate;
    } shapes[] = {
        {"tile-128x256", "sb_gemm16_128x256_", 130, 136, 576, SB_GATE_STACKED, SB_ACTIVATION_SILU, true, false, false},
        {"tile-128x128", "sb_gemm16_128x128_", 140, 72, 832, SB_GATE_STACKED, SB_ACTIVATION_NONE, false, true, false},
        {"tile-128x64", "sb_gemm16_128x64_", 70, 40, 1100, SB_GATE_INTERLEAVED, SB_ACTIVATION_GELU, true, true, false},
        {"tile-64x32", "sb_gemm16_64x32_", 64, 24, 2560, SB_GATE_STACKED, SB_ACTIVATION_GELU_TANH, false, false, false},
        {"tile-128x192", "sb_gemm16_128x192_", 131, 201, 576, SB_GATE_NONE, SB_ACTIVATION_GELU, true, true, false},
        {"tile-64x112", "sb_gemm16_64x112_", 64, 130, 1280, SB_GATE_NONE, SB_ACTIVATION_RELU, true, false, false},
        {"tile-128x112", "sb_gemm16_128x112_", 131, 120, 840, SB_GATE_NONE, SB_ACTIVATION_NONE, false, false, true},
        {"swapped-64x16", "sb_gemm16_64x16_", 9, 70, 4352, SB_GATE_NONE, SB_ACTIVATION_SILU, true, true, false},
        {"swapped-64x16", "sb_gemm16_64x16_", 5, 72, 3328, SB_GATE_STACKED, SB_ACTIVATION_SILU, true, false, false},
        {"swapped-64x32", "sb_gemm16_64x32_", 33, 40, 3072, SB_GATE_INTERLEAVED, SB_ACTIVATION_SILU, false, true,
         false},
        {"swapped-64x112", "sb_gemm16_64x112_", 100, 40, 1280, SB_GATE_STACKED, SB_ACTIVATION_SILU, true, true, false},
        {"swapped-64x192", "sb_gemm16_64x192_", 157, 70, 1536, SB_GATE_NONE, SB_ACTIVATION_GELU, true, true, false},
        {"swapped-64x144", "sb_gemm16_64x144_", 130, 72, 1600, SB_GATE_NONE, SB_ACTIVATION_NONE, false, false, true},
    };
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        product p = plain;
        p.dtype = shape % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = shapes[shape].accumulate || shape == 1 ? SB_F32 : p.dtype;
        p.m = shapes[shape].m;
        p.n = shapes[shape].n;
        p.k = shapes[shape].k;
        p.a = WIDE_ROWS;
        p.b = WIDE_COLUMNS;
        p.gate = shapes[shape].gate;
        p.activation = shapes[shape].activation;
        p.bias_dtype = shapes[shape].bias ? SB_F32 : SB_DTYPE_NONE;
        p.residual_dtype = shapes[shape].residual ? p.dtype : SB_DTYPE_NONE;
        p.accumulate = shapes[shape].accumulate;
        p.schedule = shapes[shape].schedule;
        check_everywhere(&setting, &p, shapes[shape].kernel);
    }
    tear_down(&setting);
}

/* f32 results that leave by TMA, and chains that go on from C, which comes through the ring: tiles that end with C and that reach over its
 * end, batches, an epilogue; and C whose rows do not lie so, which threads store. */
static void test_wide_results(void **unused) {
    static const struct {
        const char *schedule;
        int64_t m, n, stages, batches;
        layout c;
        bool accumulate, bias, residual, by_threads;
        values values;
    } shapes[] = {
        {"128x256", 300, 260, 4, 2, WIDE_ROWS, true, false, false, false, TAME},
        {"128x256", 131, 516, 4, 1, ROWS, false, true, true, false, WIDE},
        {"128x192", 259, 200, 4, 1, ROWS, true, false, false, false, SPECIAL},
        {"128x192", 140, 196, 4, 1, ROWS, false, true, true, false, SPECIAL},
        {"128x128", 270, 132, 6, 2, ROWS, true, false, false, false, TAME},
        {"128x128", 129, 388, 6, 1, WIDE_ROWS, false, false, false, false, SPECIAL},
        {"128x64", 390, 72, 8, 1, ROWS, true, false, false, false, WIDE},
        {"128x64", 200, 68, 8, 3, ROWS, false, true, false, false, TAME},
        {"128x256", 300, 262, 4, 1, ROWS, true, false, false, true, TAME},
        {"128x128", 130, 136, 6, 1, COLUMNS, true, false, false, true, TAME},
    };
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        char schedule[32], kernel[64];
        product p = plain;
        p.dtype = shape % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = SB_F32;
        p.m = shapes[shape].m;
        p.n = shapes[shape].n;
        p.k = long_k((int)shapes[shape].stages, 1) - 43;
        p.batches = shapes[shape].batches;
        p.a = WIDE_ROWS;
        p.b = WIDE_COLUMNS;
        p.c = shapes[shape].c;
        p.accumulate = shapes[shape].accumulate;
        p.bias_dtype = shapes[shape].bias ? SB_F32 : SB_DTYPE_NONE;
        p.residual_dtype = shapes[shape].residual ? p.dtype : SB_DTYPE_NONE;
        p.scale = shapes[shape].bias ? 0.7f : 1;
        p.values = shapes[shape].values;
        snprintf(schedule, sizeof schedule, "tile-%s", shapes[shape].schedule);
        snprintf(kernel, sizeof kernel, "sb_gemm16_%s_", shapes[shape].schedule);
        p.schedule = schedule;
        check_everywhere(&setting, &p, kernel);
        if ((host_last_rings().stored == 0) != shapes[shape].by_threads)
            fail_msg("%s, case %zu: %u boxes are stored by TMA", kernel, shape, host_last_rings().stored);
    }
    tear_down(&setting);
}

/* A row that lies in shared memory whole: rings used twice and k that end in the middle of a stage, several tiles for a block, which find
 * the row there, and weights that lie either way. */
static void test_one_row(void **unused) {
    static const struct {
        int64_t n, k;
        layout weights;
        sb_gate gate;
        bool accumulate;
    } shapes[] = {
        {33, 9280, COLUMNS, SB_GATE_NONE, false},    {200, 4672, WIDE_COLUMNS, SB_GATE_NONE, true},
        {328, 1280, COLUMNS, SB_GATE_NONE, false},   {104, 4672, COLUMNS, SB_GATE_STACKED, false},
        {136, 3392, WIDE_ROWS, SB_GATE_NONE, false}, {72, 4608, COLUMNS, SB_GATE_INTERLEAVED, false},
    };
    setting setting = set_up_with(2);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        product p = plain;
        p.dtype = shape % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = shapes[shape].accumulate || shape == 2 ? SB_F32 : p.dtype;
        p.m = 1;
        p.n = shapes[shape].n;
        p.k = shapes[shape].k;
        p.b = shapes[shape].weights;
        p.gate = shapes[shape].gate;
        p.activation = p.gate != SB_GATE_NONE ? SB_ACTIVATION_SILU : SB_ACTIVATION_NONE;
        p.accumulate = shapes[shape].accumulate;
        p.values = shape == 4 ? SPECIAL : TAME;
        p.schedule = "row-64x8";
        check_everywhere(&setting, &p, "sb_gemm16_row_64x8_");
    }
    tear_down(&setting);
}

/* Where tiles do not fit the matrix, nothing behind it is fetched: the copy engine takes longer to fill than to fetch. What
 * is added to what C has is computed once, and its tiles reach over the end. */
static void test_nothing_is_filled(void **unused) {
    static const struct {
        const char *schedule;
        int64_t m, n;
        bool accumulate;
    } shapes[] = {
        {"tile-128x128", 300, 200, false}, {"tile-128x256", 300, 264, false},  {"tile-128x64", 96, 40, false},
        {"tile-64x80", 136, 168, false},   {"swapped-64x80", 72, 200, false},  {"swapped-64x16", 8, 200, false},
        {"tile-64x32", 40, 24, false},     {"turns-128x128", 272, 136, false}, {"tile-128x128", 300, 200, true},
    };
    setting setting = set_up_with(2);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        product p = plain;
        p.m = shapes[i].m;
        p.n = shapes[i].n;
        p.k = 512;
        p.a = WIDE_ROWS;
        p.b = WIDE_COLUMNS;
        p.c_dtype = shapes[i].accumulate ? SB_F32 : SB_BF16;
        p.accumulate = shapes[i].accumulate;
        p.schedule = shapes[i].schedule;
        hopper_case c = make_hopper_case(&setting, &p);
        assert_true(computes_the_same(&setting, &c, &hopper_schedules[0]));
        if ((host_last_rings().filled > 0) != shapes[i].accumulate)
            fail_msg("%s fills %u lines of %lld x %lld", p.schedule, host_last_rings().filled, (long long)p.m,
                     (long long)p.n);
        release_hopper_case(&c);
    }
    tear_down(&setting);
}

/* Row maps: samples that end within groups, with infinities and no numbers of the next one behind them. */
static void test_row_maps(void **unused) {
    static const int64_t lengths[] = {17, 0, 40, 16, 1, 70, 33, 100, 15, 64, 47, 90, 5, 31, 128, 3, 66, 20};
    enum { SAMPLES = sizeof lengths / sizeof lengths[0] };
    setting setting = set_up_with(2);
    for (int form = 0; form < 4; form++) {
        product p = plain;
        p.dtype = form % 2 != 0 ? SB_F16 : SB_BF16;
        p.c_dtype = form == 0 ? SB_F32 : p.dtype;
        p.samples = SAMPLES;
        p.lengths = lengths;
        for (int i = 0; i < SAMPLES; i++)
            p.k += lengths[i];
        p.m = form / 2 != 0 ? 192 : 64;
        p.n = form / 2 != 0 ? 128 : 192;
        p.a = COLUMNS;
        p.values = form == 1 ? SPECIAL : TAME;
        p.accumulate = form == 0;
        p.schedule = form / 2 != 0 ? "mapped-128x256" : "mapped-128x128";
        check_everywhere(&setting, &p, form / 2 != 0 ? "sb_gemm16_mapped_128x256_" : "sb_gemm16_mapped_128x128_");
    }
    tear_down(&setting);
}

/* Logits, reduced where they are. */
static void test_logits(void **unused) {
    setting setting = set_up_with(2);
    for (int form = 0; form < 4; form++) {
        logp_case c = {.dtype = form % 2 != 0 ? SB_BF16 : SB_F16,
                       .m = form / 2 != 0 ? 250 : 40,
                       .k = form / 2 != 0 ? 576 : 704,
                       .v = 400,
                       .inverse_temperature = 1.5f,
                       .ignore_index = -100,
                       .by_words = form % 2 != 0};
        logp_allocate(&c);
        logp_fill(&c, &setting.random, 5.0f, false);
        logp_case defined = logp_clone(&c);
        logp_define_forward(&defined);
        mirror mirror = make_mirror(&setting, c);
        sb_linear_logp logp = logp_describe(&mirror.there);
        for (int i = 0; i < HOPPER_SCHEDULES; i++) {
            host_set_schedule(&hopper_schedules[i]);
            run_cut(&setting, &mirror, &logp, NULL, (cut){0, 0}, setting.queue.stream->handle);
            download(&setting, &mirror);
            LOGP_CHECK_SAME(&mirror.here, &defined, hopper_schedules[i].name);
            const host_rings rings = host_last_rings();
            const char *kernel = form / 2 != 0 ? "sb_gemm16_logits_128x256_" : "sb_gemm16_logits_64x256_";
            if (strncmp(rings.kernel, kernel, strlen(kernel)) != 0 || rings.least_uses < 2)
                fail_msg("%s is run, of whose %u stages one is used %u times", rings.kernel, rings.stages,
                         rings.least_uses);
        }
        host_set_schedule(NULL);
        release_mirror(&mirror);
        logp_free(&defined);
    }
    tear_down(&setting);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_warpgroups), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_one_warpgroup),  cmocka_unit_test(test_tiles_behind_each_other),
        cmocka_unit_test(test_ends),           cmocka_unit_test(test_row_maps),
        cmocka_unit_test(test_logits),         cmocka_unit_test(test_nothing_is_filled),
        cmocka_unit_test(test_one_row),        cmocka_unit_test(test_wide_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
