/* The kernel of DynamicQuantizeLinear. The output has the input's order in memory, so that both are long rows: 16,384 elements took 62 us
 * by the definition, which looks at each element's order in memory and at its dtype. */
#include "cpu/list.h"
#include "cpu/rows/range_rows.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "ops/quantize.h"
#include "tensor/walk.h"

typedef struct ranging {
    sb_range_row *range;
    sb_range_quantize *quantize;
    float least, most, scale;
    uint8_t zero;
} ranging;

static void choose_functions(sb_isa isa, ranging *work) {
    work->range = sb_range_row_scalar;
    work->quantize = sb_range_quantize_scalar;
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512) {
        work->range = sb_range_row_avx512;
        work->quantize = sb_range_quantize_avx512;
    } else if (isa == SB_ISA_AVX2) {
        work->range = sb_range_row_avx2;
        work->quantize = sb_range_quantize_avx2;
    }
#endif
    (void)isa;
}

static void range_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    ranging *work = context;
    work->range(count, (const float *)(const void *)data[0], steps[0] / (int64_t)sizeof(float), &work->least,
                &work->most);
}

static void find_range(const sb_tensor *x, ranging *work) {
    sb_walk walk;
    sb_walk_start(&walk, x->rank, x->dims, 1, &x);
    sb_walk_run(&walk, range_row, work);
}

static void quantize_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    const ranging *work = context;
    work->quantize(count, (const float *)(const void *)data[1], steps[1] / (int64_t)sizeof(float), work->scale,
                   work->zero, (uint8_t *)(void *)data[0], steps[0]);
}

static sb_status launch_dynamic(sb_call *call) {
    sb_tensor *x = sb_call_input(call, 0), *y;
    ranging work = {.least = 0.0f};
    choose_functions(call->isa, &work);
    find_range(x, &work);
    SB_TRY(sb_quantize_store_range(call, work.least, work.most, &work.scale, &work.zero));
    if (!sb_call_wants(call, 0))
        return SB_OK;
    SB_TRY(sb_spread_output(call, 1, &x, &y));
    sb_spread_run(call, quantize_row, &work, y, 1, &x);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_dynamic_quantize[] = {
    {.op = "DynamicQuantizeLinear",
     .name = "dynamic-quantize",
     .supports = sb_cpu_supports_all,
     .launch = launch_dynamic},
    {0},
};
