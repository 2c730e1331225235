#include "cuda/contraction/gemm16.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cuda/contraction/engine.h"

_Static_assert(sizeof(sb_gemm16) <= 1024, "kernels add tensor maps to it");

enum { SCHEDULES = SB_GEMM_SCHEDULES };

/* In the order in which sb_gemm_schedule_name counts. */
static const sb_gemm_schedule *schedule_at(int index) {
    static const sb_gemm_schedule *const general[] = {&sb_gemm_general, &sb_gemm_general_small};
    return index < SB_GEMM_HOPPER_SCHEDULES ? &sb_gemm_hopper[index] : general[index - SB_GEMM_HOPPER_SCHEDULES];
}

sb_status sb_gemm_schedules_load(sb_cuda_device *device, sb_error *error) {
    for (int i = 0; i < SCHEDULES; i++)
        SB_TRY(schedule_at(i)->load(schedule_at(i), device, error));
    return SB_OK;
}

/* ---- choice ---- */

int sb_gemm_device_schedule_count(void) {
    return SCHEDULES;
}

const char *sb_gemm_device_schedule_name(int index) {
    return index >= 0 && index < SCHEDULES ? schedule_at(index)->name : NULL;
}

static sb_status find_named(sb_cuda_device *device, const sb_gemm_plan *plan, int *chosen, sb_error *error) {
    const char *name = plan->gemm->schedule;
    for (int i = 0; i < SCHEDULES; i++) {
        if (strcmp(schedule_at(i)->name, name) != 0)
            continue;
        const char *why = schedule_at(i)->refuses(schedule_at(i), device, plan);
        if (why != NULL)
            return sb_fail(
                error, SB_ERROR_UNSUPPORTED,
                "schedule \"%s\" cannot compute this product: %s; leave `schedule` NULL to let one be chosen", name,
                why);
        *chosen = i;
        return SB_OK;
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "there is no schedule \"%s\" on a device: sb_gemm_schedule_name names those there are", name);
}

/* The quickest of those that can; the general ones always can. */
static int find_quickest(sb_cuda_device *device, const sb_gemm_plan *plan) {
    double least = 0;
    int chosen = -1;
    for (int i = 0; i < SCHEDULES; i++) {
        if (schedule_at(i)->refuses(schedule_at(i), device, plan) != NULL)
            continue;
        double cost = schedule_at(i)->cost(schedule_at(i), device, plan);
        if (chosen < 0 || cost < least) {
            chosen = i;
            least = cost;
        }
    }
    return chosen;
}

static sb_status choose(sb_cuda_device *device, const sb_gemm_plan *plan, int *chosen, sb_error *error) {
    if (plan->gemm->schedule != NULL)
        return find_named(device, plan, chosen, error);
    *chosen = find_quickest(device, plan);
    return SB_OK;
}

double sb_gemm_cost(sb_cuda_device *device, const sb_gemm_plan *plan, bool *hopper) {
    int chosen = find_quickest(device, plan);
    *hopper = chosen < SB_GEMM_HOPPER_SCHEDULES;
    return schedule_at(chosen)->cost(schedule_at(chosen), device, plan);
}

/* What there is to say of a choice: of a general one why all of Hopper's cannot, of which the first asks for least. */
static sb_call_way way_of(sb_cuda_device *device, const sb_gemm_plan *plan, int chosen) {
    sb_call_way way = {schedule_at(chosen)->name, NULL};
    for (int i = 0; chosen >= SB_GEMM_HOPPER_SCHEDULES && i < SB_GEMM_HOPPER_SCHEDULES; i++) {
        const char *why = schedule_at(i)->refuses(schedule_at(i), device, plan);
        if (why == NULL)
            return (sb_call_way){way.name, NULL};
        way.why = i == 0 ? why : way.why;
    }
    return way;
}

sb_status sb_gemm_device_choose(const sb_engine *engine, const sb_gemm_plan *plan, const char **schedule,
                                sb_error *error) {
    int chosen = 0;
    SB_TRY(choose(((const sb_cuda_engine *)engine)->device, plan, &chosen, error));
    *schedule = schedule_at(chosen)->name;
    return SB_OK;
}

/* ---- loading ---- */

sb_status sb_gemm16_find(sb_cuda_device *device, const char *const modules[2], size_t parameter_bytes, sb_dtype dtype,
                         bool a_mn_major, bool b_mn_major, const sb_cuda_kernel **kernel, sb_error *error) {
    const char *module = modules[dtype == SB_F16];
    char name[64];
    snprintf(name, sizeof name, "sb_%s_%s_%s", module, a_mn_major ? "mn" : "k", b_mn_major ? "mn" : "k");
    return sb_cuda_kernel_find(device, module, name, parameter_bytes, kernel, error);
}

sb_status sb_gemm16_load(sb_cuda_device *device, const char *const modules[2], size_t parameter_bytes, unsigned layouts,
                         sb_error *error) {
    const sb_cuda_kernel *kernel;
    for (int i = 0; i < 8; i++) {
        if (layouts >> i % 4 & 1)
            SB_TRY(sb_gemm16_find(device, modules, parameter_bytes, i / 4 ? SB_F16 : SB_BF16, i / 2 % 2, i % 2, &kernel,
                                  error));
    }
    return SB_OK;
}

/* ---- what kernels need to know ---- */

/* Of an H200: bytes in a microsecond. */
#define MEMORY_RATE 4.2e6

double sb_gemm16_bytes(const sb_gemm_plan *plan) {
    return (double)(plan->a.bytes + plan->b.bytes + plan->c.bytes);
}

double sb_gemm16_moving_time(const sb_gemm_plan *plan) {
    return 0.30 + sb_gemm16_bytes(plan) / MEMORY_RATE;
}

static sb_gemm16_operand describe(const sb_gemm_plan *plan, bool is_b) {
    const sb_matrix *matrix = is_b ? &plan->gemm->b : &plan->gemm->a;
    const int64_t *steps = is_b ? plan->steps.b_steps : plan->steps.a_steps;
    int rank = plan->steps.rank;
    return (sb_gemm16_operand){
        .data = matrix->data,
        .line_stride = is_b ? matrix->column_stride : matrix->row_stride,
        .k_stride = is_b ? matrix->row_stride : matrix->column_stride,
        .batch_stride = rank > 0 ? steps[rank - 1] : 0,
        .outer_stride = rank > 1 ? steps[rank - 2] : 0,
    };
}

void sb_gemm16_describe(const sb_gemm_plan *plan, sb_gemm16 *parameters) {
    const sb_gemm *gemm = plan->gemm;
    *parameters = (sb_gemm16){
        .m = plan->m,
        .n = plan->n,
        .k = plan->k,
        .batches = plan->batches,
        .inner = plan->steps.rank > 0 ? plan->steps.dims[plan->steps.rank - 1] : 1,
        .a = describe(plan, false),
        .b = describe(plan, true),
        .c = {.data = gemm->c.data,
              .row_stride = gemm->c.row_stride,
              .column_stride = gemm->c.column_stride,
              .batch_stride = gemm->c.batch_stride,
              .dtype = (int32_t)gemm->c.dtype,
              .accumulate = gemm->accumulate},
        .groups = plan->device_groups,
        .group_count = plan->group_count,
        .used_m = plan->used.m,
        .used_n = plan->used.n,
        .used_k = plan->used.k,
        .gate = (int32_t)gemm->gate,
        .has_epilogue = !sb_gemm_is_plain(&plan->epilogue),
        .epilogue = plan->epilogue,
    };
}

int sb_gemm_ranges(const sb_gemm_plan *plan, sb_cuda_range ranges[SB_GEMM_RANGES]) {
    const sb_gemm_range *touched[] = {&plan->c, &plan->a, &plan->b, &plan->bias, &plan->residual};
    int count = 0;
    for (size_t i = 0; i < sizeof touched / sizeof touched[0]; i++) {
        if (touched[i]->bytes > 0)
            ranges[count++] = (sb_cuda_range){touched[i]->first, touched[i]->bytes, i == 0};
    }
    if (plan->device_groups != NULL)
        ranges[count++] = (sb_cuda_range){(CUdeviceptr)(uintptr_t)plan->device_groups,
                                          (size_t)plan->group_count * sizeof(sb_row_group), false};
    const int64_t *const used[] = {plan->used.m, plan->used.n, plan->used.k};
    for (int i = 0; i < 3; i++) {
        if (used[i] != NULL)
            ranges[count++] = (sb_cuda_range){(CUdeviceptr)(uintptr_t)used[i], sizeof *used[i], false};
    }
    for (int i = 0; plan->fused != NULL && i < plan->fused->range_count; i++)
        ranges[count++] = plan->fused->ranges[i];
    return count;
}

bool sb_gemm16_reads_k_major(const sb_gemm16_operand *operand) {
    return operand->k_stride == 1 || operand->line_stride != 1;
}

int sb_gemm16_width(const sb_gemm16 *product, const sb_gemm_batches *batches, const sb_gemm16_operand *operand) {
    bool k_major = sb_gemm16_reads_k_major(operand), is_b = operand == &product->b;
    int64_t lines = is_b && product->gate != SB_GATE_NONE ? 2 * product->n : is_b ? product->n : product->m;
    /* Groups of rows begin anywhere. */
    if (k_major && (operand->k_stride != 1 || product->groups != NULL))
        return 1;
    int64_t steps = 0;
    for (int d = 0; d < batches->rank; d++)
        steps |= is_b ? batches->b_steps[d] : batches->a_steps[d];
    if (k_major)
        steps |= lines > 1 ? operand->line_stride : 0;
    else
        steps |= (product->k > 1 ? operand->k_stride : 0) | (is_b && product->gate == SB_GATE_STACKED ? product->n : 0);
    steps |= (int64_t)((uintptr_t)operand->data / sizeof(uint16_t));
    return steps % 8 == 0 ? 8 : steps % 2 == 0 ? 2 : 1;
}

/* ---- running ---- */

sb_status sb_gemm_launch(const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan, sb_call_way *way,
                         sb_error *error) {
    int chosen = 0;
    sb_cuda_device *device = queue->stream->device;
    SB_TRY(choose(device, plan, &chosen, error));
    if (way != NULL)
        *way = way_of(device, plan, chosen);
    return schedule_at(chosen)->launch(schedule_at(chosen), queue, step, plan, error);
}

sb_status sb_gemm_on_device(sb_engine *base, void *stream, const sb_gemm_plan *plan, sb_error *error) {
    sb_cuda_engine *engine = sb_cuda_engine_of(base);
    /* Kernels wait by themselves for what is before them, behind what they prepare: half a microsecond (measured). */
    sb_cuda_queue queue = {.dependent_launch = true};
    if (plan->is_empty)
        return SB_OK;
    SB_TRY(sb_cuda_engine_stream(engine, stream, &queue.stream, error));
    SB_TRY(sb_cuda_enter(engine->device, error));
    return sb_cuda_leave(engine->device, sb_gemm_launch(&queue, -1, plan, NULL, error), error);
}
