#include "cuda/gemm/gemm.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"

_Static_assert(sizeof(iv_gemm16) <= 1024, "kernels add tensor maps to it");

#define SCHEDULES (IV_GEMM_HOPPER_SCHEDULES + 2)

/* In the order in which iv_gemm_schedule_name counts. */
static const iv_gemm_schedule *schedule_at(int index) {
    static const iv_gemm_schedule *const general[] = {&iv_gemm_general, &iv_gemm_general_small};
    return index < IV_GEMM_HOPPER_SCHEDULES ? &iv_gemm_hopper[index] : general[index - IV_GEMM_HOPPER_SCHEDULES];
}

/* The first of an engine's: only the general ones know Ampere's chain. */
static int first_schedule(const iv_engine *engine) {
    return engine->chain == IV_CHAIN_AMPERE ? IV_GEMM_HOPPER_SCHEDULES : 0;
}

struct iv_gemm_device {
    void *states[SCHEDULES];
    iv_cuda_stream *stream; /* the one given last; NULL before the first */
};

/* ---- creation ---- */

iv_status iv_gemm_device_create(iv_engine *engine, iv_error *error) {
    iv_gemm_device *state = iv_allocate_array(1, sizeof *state);
    if (state == NULL)
        return iv_fail_memory(error, sizeof *state);
    engine->device_state = state;
    iv_status status = iv_cuda_enter(engine->cuda, error);
    if (status == IV_OK) {
        for (int i = first_schedule(engine); i < SCHEDULES && status == IV_OK; i++)
            status = schedule_at(i)->prepare(schedule_at(i), engine, &state->states[i], error);
        status = iv_cuda_leave(engine->cuda, status, error);
    }
    if (status != IV_OK)
        iv_gemm_device_destroy(engine);
    return status;
}

void iv_gemm_device_destroy(iv_engine *engine) {
    iv_gemm_device *state = engine->device_state;
    if (state == NULL)
        return;
    for (int i = 0; i < SCHEDULES; i++)
        schedule_at(i)->release(state->states[i]);
    iv_cuda_stream_destroy(state->stream);
    iv_free(state);
    engine->device_state = NULL;
}

/* ---- choice ---- */

int iv_gemm_device_schedule_count(const iv_engine *engine) {
    return SCHEDULES - first_schedule(engine);
}

const char *iv_gemm_device_schedule_name(const iv_engine *engine, int index) {
    return index >= 0 && index < iv_gemm_device_schedule_count(engine) ? schedule_at(first_schedule(engine) + index)->name : NULL;
}

static iv_status find_named(const iv_engine *engine, const iv_gemm_plan *plan, int *chosen, iv_error *error) {
    const char *name = plan->gemm->schedule;
    char why[IV_GEMM_WHY_BYTES] = "";
    for (int i = first_schedule(engine); i < SCHEDULES; i++) {
        if (strcmp(schedule_at(i)->name, name) != 0)
            continue;
        if (!schedule_at(i)->can(schedule_at(i), engine, engine->device_state->states[i], plan, why))
            return iv_fail(error, IV_ERROR_UNSUPPORTED,
                           "schedule \"%s\" cannot compute this product: %s; leave `schedule` NULL to let one be chosen", name,
                           why);
        *chosen = i;
        return IV_OK;
    }
    return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                   "there is no schedule \"%s\" on a device: iv_gemm_schedule_name names those there are", name);
}

/* The quickest of those that can; the general ones always can. */
static iv_status choose(const iv_engine *engine, const iv_gemm_plan *plan, int *chosen, iv_error *error) {
    if (plan->gemm->schedule != NULL)
        return find_named(engine, plan, chosen, error);
    char why[IV_GEMM_WHY_BYTES] = "";
    double least = 0;
    *chosen = -1;
    for (int i = first_schedule(engine); i < SCHEDULES; i++) {
        if (!schedule_at(i)->can(schedule_at(i), engine, engine->device_state->states[i], plan, why))
            continue;
        double cost = schedule_at(i)->cost(schedule_at(i), engine, plan);
        if (*chosen < 0 || cost < least) {
            *chosen = i;
            least = cost;
        }
    }
    return *chosen >= 0 ? IV_OK
                        : iv_fail(error, IV_ERROR_UNSUPPORTED, "no schedule can compute this product: %s", why);
}

iv_status iv_gemm_device_choose(const iv_engine *engine, const iv_gemm_plan *plan, const char **schedule,
                                iv_error *error) {
    int chosen = 0;
    IV_TRY(choose(engine, plan, &chosen, error));
    *schedule = schedule_at(chosen)->name;
    return IV_OK;
}

/* ---- loading ---- */

iv_status iv_gemm16_load(iv_cuda_device *device, const char *module, size_t parameter_bytes, unsigned layouts,
                         iv_gemm16_kernels **kernels, iv_error *error) {
    iv_gemm16_kernels *made = iv_allocate_array(1, sizeof *made);
    if (made == NULL)
        return iv_fail_memory(error, sizeof *made);
    iv_status status = IV_OK;
    for (int i = 0; i < 8 && status == IV_OK; i++) {
        int is_f16 = i / 4, across_a = i / 2 % 2, across_b = i % 2;
        char name[64];
        if (!(layouts >> i % 4 & 1))
            continue;
        snprintf(name, sizeof name, "iv_%s_%s_%s_%s", module, is_f16 ? "f16" : "bf16", across_a ? "across" : "along",
                 across_b ? "across" : "along");
        status = iv_cuda_kernel_find(device, module, name, parameter_bytes, &made->by[is_f16][across_a][across_b], error);
    }
    if (status == IV_OK)
        *kernels = made;
    else
        iv_free(made);
    return status;
}

/* ---- what kernels need to know ---- */

static iv_gemm16_operand describe(const iv_matrix *matrix, bool lines_are_columns) {
    return (iv_gemm16_operand){
        .data = matrix->data,
        .line_stride = lines_are_columns ? matrix->column_stride : matrix->row_stride,
        .k_stride = lines_are_columns ? matrix->row_stride : matrix->column_stride,
        .batch_stride = matrix->batch_stride,
    };
}

void iv_gemm16_describe(const iv_gemm_plan *plan, iv_gemm16 *parameters) {
    const iv_gemm *gemm = plan->gemm;
    *parameters = (iv_gemm16){
        .m = plan->m,
        .n = plan->n,
        .k = plan->k,
        .batches = plan->batches,
        .a = describe(&gemm->a, false),
        .b = describe(&gemm->b, true),
        .c = {.data = gemm->c.data,
              .row_stride = gemm->c.row_stride,
              .column_stride = gemm->c.column_stride,
              .batch_stride = gemm->c.batch_stride,
              .dtype = (int32_t)gemm->c.dtype,
              .accumulate = gemm->accumulate},
        .groups = (const iv_row_group *)(uintptr_t)plan->device_groups,
        .group_count = plan->group_count,
        .gate = (int32_t)gemm->gate,
        .has_epilogue = !iv_gemm_is_plain(&plan->epilogue),
        .epilogue = plan->epilogue,
    };
}

int iv_gemm_ranges(const iv_gemm_plan *plan, iv_cuda_range ranges[IV_GEMM_RANGES]) {
    const iv_gemm_range *touched[] = {&plan->c, &plan->a, &plan->b, &plan->bias, &plan->residual};
    int count = 0;
    for (size_t i = 0; i < sizeof touched / sizeof touched[0]; i++) {
        if (touched[i]->bytes > 0)
            ranges[count++] = (iv_cuda_range){touched[i]->first, touched[i]->bytes, i == 0};
    }
    if (plan->device_groups != 0)
        ranges[count++] =
            (iv_cuda_range){plan->device_groups, (size_t)plan->group_count * sizeof(iv_row_group), false};
    return count;
}

bool iv_gemm16_reads_along(const iv_gemm16_operand *operand) {
    return operand->k_stride == 1 || operand->line_stride != 1;
}

int iv_gemm16_width(const iv_gemm16 *product, const iv_gemm16_operand *operand) {
    bool along = iv_gemm16_reads_along(operand), is_b = operand == &product->b;
    int64_t lines = is_b && product->gate != IV_GATE_NONE ? 2 * product->n : is_b ? product->n : product->m;
    /* Groups of rows begin anywhere. */
    if (along && (operand->k_stride != 1 || product->groups != NULL))
        return 1;
    int64_t steps = product->batches > 1 ? operand->batch_stride : 0;
    if (along)
        steps |= lines > 1 ? operand->line_stride : 0;
    else
        steps |= (product->k > 1 ? operand->k_stride : 0) |
                 (is_b && product->gate == IV_GATE_STACKED ? product->n : 0);
    steps |= (int64_t)((uintptr_t)operand->data / sizeof(uint16_t));
    return steps % 8 == 0 ? 8 : steps % 2 == 0 ? 2 : 1;
}

/* ---- running ---- */

/* Making a stream known allocates, so the last one is kept: a program mostly has one. */
iv_status iv_gemm_device_stream(iv_engine *engine, void *handle, iv_cuda_stream **stream, iv_error *error) {
    iv_gemm_device *state = engine->device_state;
    if (state->stream == NULL || state->stream->handle != handle) {
        iv_cuda_stream *other = NULL;
        IV_TRY(iv_cuda_stream_wrap(engine->cuda, handle, &other, error));
        iv_cuda_stream_destroy(state->stream);
        state->stream = other;
    }
    *stream = state->stream;
    return IV_OK;
}

iv_status iv_gemm_on_device(iv_engine *engine, void *stream, const iv_gemm_plan *plan, iv_error *error) {
    int chosen = 0;
    /* Kernels wait by themselves for what is before them, behind what they prepare: half a microsecond (measured). */
    iv_cuda_queue queue = {.dependent_launch = true};
    if (plan->is_empty)
        return IV_OK;
    IV_TRY(choose(engine, plan, &chosen, error));
    IV_TRY(iv_gemm_device_stream(engine, stream, &queue.stream, error));
    IV_TRY(iv_cuda_enter(engine->cuda, error));
    iv_status status =
        schedule_at(chosen)->launch(schedule_at(chosen), engine, engine->device_state->states[chosen], &queue, plan, error);
    return iv_cuda_leave(engine->cuda, status, error);
}
