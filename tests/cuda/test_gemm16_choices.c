/* Which schedule is chosen on a device of 132 multiprocessors: a general one, which computes everything, only where Hopper's refuse, or
 * where a product is small. What a schedule is reckoned to take was fitted to some hundred products, and this goes through others: a gradient of
 * weights behind 128 rows was once given to `general`, which took five times as long as what it was reckoned against. */
#include "gemm16_products.h"

static const int64_t extents[] = {16, 64, 128, 192, 384, 1024, 2880, 4096, 8192};
#define EXTENTS (int)(sizeof extents / sizeof extents[0])
#define MOST_BYTES ((size_t)8192 * 8192 * 4)
/* Of some products: samples and heads. */
#define BATCHES 24

typedef struct buffers {
    sb_cuda_memory *a, *b, *c;
} buffers;

static void *at(const sb_cuda_memory *memory) {
    return (void *)(uintptr_t)memory->address;
}

/* A matrix of rows or of columns that lie side by side. */
static sb_matrix matrix(sb_dtype dtype, const sb_cuda_memory *memory, int64_t rows, int64_t columns, bool by_columns) {
    return (sb_matrix){dtype,         at(memory), rows, columns, by_columns ? 1 : columns, by_columns ? rows : 1,
                       rows * columns};
}

static bool is_general(const char *schedule) {
    return strncmp(schedule, "general", 7) == 0;
}

static bool can_be_quick(const setting *setting, sb_gemm gemm) {
    for (int i = 0; (gemm.schedule = sb_gemm_schedule_name(setting->gpu, i)) != NULL; i++) {
        const char *name;
        sb_error error;
        if (!is_general(gemm.schedule) && sb_gemm_choose(setting->gpu, &gemm, &name, &error) == SB_OK)
            return true;
    }
    return false;
}

static int check_choice(const setting *setting, const buffers *buffers, int64_t m, int64_t n, int64_t k, int way) {
    const sb_dtype c_dtype = way & 4 ? SB_F32 : SB_BF16;
    const int64_t batches = way & 8 ? BATCHES : 1;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    if ((size_t)(batches * m * n * 4) > MOST_BYTES || (size_t)(batches * (m > n ? m : n) * k * 4) > MOST_BYTES)
        return 0;
    gemm.batches = batches;
    gemm.a = matrix(SB_BF16, buffers->a, m, k, way & 1);
    gemm.b = matrix(SB_BF16, buffers->b, k, n, way & 2);
    gemm.c = matrix(c_dtype, buffers->c, m, n, false);
    const char *chosen = NULL;
    MUST(sb_gemm_choose(setting->gpu, &gemm, &chosen, error));
    if (!is_general(chosen) || !can_be_quick(setting, gemm))
        return 0;
    printf("%lld x %lld x %lld, way %d: %s\n", (long long)m, (long long)k, (long long)n, way, chosen);
    return 1;
}

static void test_choices(void **unused) {
    setting setting = set_up_with(132);
    buffers buffers;
    MUST(sb_cuda_memory_create(setting.device.handle, MOST_BYTES / 2, &buffers.a, error));
    MUST(sb_cuda_memory_create(setting.device.handle, MOST_BYTES / 2, &buffers.b, error));
    MUST(sb_cuda_memory_create(setting.device.handle, MOST_BYTES, &buffers.c, error));
    int wrong = 0;
    for (int i = 0; i < EXTENTS * EXTENTS * EXTENTS * 16; i++)
        wrong += check_choice(&setting, &buffers, extents[i / 16 % EXTENTS], extents[i / 16 / EXTENTS % EXTENTS],
                              extents[i / 16 / EXTENTS / EXTENTS], i % 16);
    sb_cuda_memory_release(buffers.a);
    sb_cuda_memory_release(buffers.b);
    sb_cuda_memory_release(buffers.c);
    tear_down(&setting);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
