/* Where the memory of a product lies: an engine on a device takes nothing that lies elsewhere, and says so before
 * anything is launched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <samebit/gemm.h>

#include "cuda/driver/device_open.h"
#include "cuda/driver/memory.h"
#include "host_kernels.h"
#include "kernel/contraction/check.h"
#include "support/must.h"
#include "with_fake.h"

enum { EXTENT = 4, BYTES = EXTENT * EXTENT * sizeof(float) };

/* Two devices, an engine on each, and memory of every kind. */
typedef struct setting {
    const fake_cuda_control *fake;
    struct sb_device devices[2];
    sb_engine *engines[2];
    sb_cuda_memory *memory[2];
    sb_cuda_memory *operands[4]; /* on device 0 */
    sb_cuda_pinned *pinned;
} setting;

static void set_up(setting *s) {
    static const fake_device devices[] = {{"First", 90, 4, 1 << 24}, {"Second", 90, 4, 1 << 24}};
    *s = (setting){.fake = fresh_fake()};
    s->fake->set_devices(2, devices);
    define_host_kernels(s->fake);
    const sb_cuda_driver *driver = NULL;
    MUST(sb_cuda_driver_open(FAKE_CUDA, &driver, NULL, NULL, error));
    /* The driver was opened when it had one device. */
    static sb_cuda_driver both;
    both = *driver;
    both.device_count = 2;
    for (int i = 0; i < 2; i++) {
        MUST(open_device_handle(&both, i, &host_images, &s->devices[i], error));
        MUST(sb_cuda_memory_create(s->devices[i].handle, BYTES, &s->memory[i], error));
        sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
        options.device = &s->devices[i];
        MUST(sb_engine_create(&options, &s->engines[i], error));
    }
    for (int i = 0; i < 4; i++)
        MUST(sb_cuda_memory_create(s->devices[0].handle, BYTES, &s->operands[i], error));
    MUST(sb_cuda_pinned_create(s->devices[0].handle, BYTES, &s->pinned, error));
}

static void tear_down(setting *s) {
    sb_cuda_pinned_destroy(s->pinned);
    for (int i = 0; i < 4; i++)
        sb_cuda_memory_release(s->operands[i]);
    for (int i = 0; i < 2; i++) {
        sb_cuda_memory_release(s->memory[i]);
        sb_engine_destroy(s->engines[i]);
        sb_cuda_device_release(s->devices[i].handle);
    }
    check_nothing_lives(s->fake);
}

static void *address_of(const sb_cuda_memory *memory) {
    return (void *)(uintptr_t)memory->address;
}

static sb_matrix matrix_at(sb_dtype dtype, void *data) {
    return (sb_matrix){dtype, data, EXTENT, EXTENT, EXTENT, 1, 0};
}

/* A product with every operand, all on device 0. */
static sb_gemm good(const setting *s) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = matrix_at(SB_BF16, address_of(s->operands[0]));
    gemm.b = matrix_at(SB_BF16, address_of(s->operands[1]));
    gemm.c = matrix_at(SB_F32, address_of(s->memory[0]));
    gemm.bias = matrix_at(SB_F32, address_of(s->operands[2]));
    gemm.bias.rows = 1;
    gemm.residual = matrix_at(SB_F32, address_of(s->operands[3]));
    return gemm;
}

/* Refused by device 0, in words, and without a kernel. */
static void refused(const setting *s, const sb_gemm *gemm, const char *operand, const char *what) {
    sb_error error = {SB_OK, ""};
    int launches = s->fake->calls("cuLaunchKernelEx");
    assert_int_equal(sb_gemm_run(s->engines[0], NULL, gemm, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(error.message, operand, strlen(operand)), 0);
    assert_says(error, what);
    assert_says(error, "device 0, First");
    assert_int_equal(s->fake->calls("cuLaunchKernelEx"), launches);
}

/* Each operand in each wrong place. */
static void test_places(void **unused) {
    setting s;
    set_up(&s);
    static float host[EXTENT * EXTENT];
    void *const places[] = {host, s.pinned->data, address_of(s.memory[1])};
    static const char *const words[] = {"no memory of a device", "no memory of a device", "it lies on device 1"};
    static const char *const names[] = {"a (", "b (", "c (", "bias (", "residual ("};
    for (int place = 0; place < 3; place++) {
        for (int operand = 0; operand < 5; operand++) {
            sb_gemm gemm = good(&s);
            sb_matrix *const operands[] = {&gemm.a, &gemm.b, &gemm.c, &gemm.bias, &gemm.residual};
            MUST(sb_gemm_run(s.engines[0], NULL, &gemm, error));
            operands[operand]->data = places[place];
            refused(&s, &gemm, names[operand], words[place]);
        }
    }
    tear_down(&s);
}

/* One question for each operand that is there, and none for the others. */
static void test_questions(void **unused) {
    setting s;
    set_up(&s);
    sb_gemm gemm = good(&s);
    int before = s.fake->calls("cuPointerGetAttributes");
    MUST(sb_gemm_run(s.engines[0], NULL, &gemm, error));
    assert_int_equal(s.fake->calls("cuPointerGetAttributes"), before + 5);
    gemm.bias.data = gemm.residual.data = NULL;
    MUST(sb_gemm_run(s.engines[0], NULL, &gemm, error));
    assert_int_equal(s.fake->calls("cuPointerGetAttributes"), before + 8);
    gemm.a.columns = gemm.b.rows = 0; /* no elements: their addresses are nothing */
    gemm.a.data = gemm.b.data = &s;
    MUST(sb_gemm_run(s.engines[0], NULL, &gemm, error));
    assert_int_equal(s.fake->calls("cuPointerGetAttributes"), before + 9);
    const char *schedule = NULL;
    MUST(sb_gemm_choose(s.engines[0], &gemm, &schedule, error));
    assert_non_null(schedule);
    tear_down(&s);
}

/* What the other device computes is on its own memory. */
static void test_other_device(void **unused) {
    setting s;
    set_up(&s);
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = (sb_matrix){.dtype = SB_F16, .rows = 1, .columns = 0};
    gemm.b = (sb_matrix){.dtype = SB_F16, .rows = 0, .columns = 1};
    gemm.c = (sb_matrix){SB_F32, address_of(s.memory[1]), 1, 1, 1, 1, 1};
    MUST(sb_gemm_run(s.engines[1], NULL, &gemm, error));
    refused(&s, &gemm, "c (", "it lies on device 1");
    tear_down(&s);
}

/* A row map is on its engine's device before anybody asks, and belongs to that engine alone. */
static void test_row_maps(void **unused) {
    setting s;
    set_up(&s);
    static const int64_t lengths[] = {3, 1};
    sb_row_map *map = NULL;
    sb_error error = {SB_OK, ""};
    MUST(sb_row_map_create(s.engines[0], 2, lengths, &map, error));
    assert_memory_equal(map->device_groups, map->groups, 2 * sizeof *map->groups);
    sb_gemm gemm = good(&s);
    gemm.rows = map;
    MUST(sb_gemm_run(s.engines[0], NULL, &gemm, error));
    assert_int_equal(sb_gemm_run(s.engines[1], NULL, &gemm, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "another engine");
    /* It may outlive its engine. */
    sb_engine_destroy(s.engines[0]);
    s.engines[0] = NULL;
    sb_row_map_release(map);
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_other_device),
        cmocka_unit_test(test_row_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
