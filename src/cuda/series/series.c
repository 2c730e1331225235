#include "cuda/series/series.h"

#include <string.h>

#include "base/allocation.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/moving/paged_append_parameters.h"
#include "cuda/queue/staging.h"

/* Shorter ones are launched task by task. */
#define FEWEST_TASKS 2
#define ALIGNMENT 64

/* ---- what can follow on what ---- */

typedef struct maker {
    sb_cuda_device *device;
    const sb_cuda_task_list *list;
    sb_cuda_task_list *tasks; /* in the making */
    char *bytes;              /* of the device's memory; NULL while they are counted */
    size_t used;
    CUdeviceptr address;
    sb_cuda_range *ranges; /* of a series */
    size_t range_capacity;
} maker;

/* A list's parameters lie where tensor maps must not. */
static sb_gemm16_hopper product_of(const sb_cuda_kernel_task *task) {
    sb_gemm16_hopper product;
    memcpy(&product, task->parameters, sizeof product);
    return product;
}

/* Whether `earlier` writes any of the weights that a product fetches ahead. */
static bool writes_weights(const sb_cuda_task *earlier, const sb_cuda_task *task) {
    sb_cuda_range weights = {0};
    const sb_gemm16_hopper product = product_of(&task->kernel);
    const CUdeviceptr first = (CUdeviceptr)(uintptr_t)product.product.b.data;
    for (int i = 0; i < task->kernel.range_count; i++) {
        const sb_cuda_range *range = &task->kernel.ranges[i];
        if (!range->written && range->address <= first && first < range->address + range->bytes)
            weights = *range;
    }
    const sb_cuda_task reading = {.kind = SB_CUDA_KERNEL, .kernel = {.range_count = 1, .ranges = &weights}};
    return weights.bytes == 0 || sb_cuda_tasks_conflict(earlier, &reading);
}

static bool has_form(const sb_cuda_task *task) {
    return task->kind == SB_CUDA_KERNEL && task->kernel.form.kind != SB_CUDA_FORM_NONE &&
           task->kernel.kernel->parameter_bytes <= SB_CUDA_SERIES_PARAMETERS;
}

/* f16 and bf16 have kernels of their own, and heads of either width. 0: any will do. */
static int width_of(const sb_cuda_task *task) {
    return task->kernel.form.kind == SB_CUDA_FORM_ATTENTION ? task->kernel.form.variant & ~1 : 0;
}

static bool have_one_kernel(const sb_cuda_task *one, const sb_cuda_task *other) {
    int width = width_of(one), other_width = width_of(other);
    return one->kernel.form.is_f16 == other->kernel.form.is_f16 &&
           (width == 0 || other_width == 0 || width == other_width);
}

/* Whether the task can be part of a series of the tasks from `first` on. */
static bool can_follow(const sb_cuda_task_list *list, int first, int index) {
    const sb_cuda_task task = sb_cuda_task_list_at(list, index);
    bool fetches = has_form(&task) && task.kernel.form.kind == SB_CUDA_FORM_PRODUCT;
    for (int i = first; i < index && has_form(&task); i++) {
        const sb_cuda_task earlier = sb_cuda_task_list_at(list, i);
        if (!have_one_kernel(&earlier, &task) || (fetches && writes_weights(&earlier, &task)))
            return false;
    }
    return has_form(&task);
}

/* How many tasks from `first` on are a series: 0 where there are no weights to be fetched while others are waited for. */
static int length_of(const sb_cuda_task_list *list, int first) {
    int count = sb_cuda_task_list_count(list), end = first;
    bool fetches = false;
    for (; end < count && can_follow(list, first, end); end++) {
        const sb_cuda_task task = sb_cuda_task_list_at(list, end);
        fetches |= task.kernel.form.kind == SB_CUDA_FORM_PRODUCT;
    }
    return fetches && end - first >= FEWEST_TASKS ? end - first : 0;
}

/* ---- a series ---- */

/* Room for so many bytes among the device's, and where it is in *at, if they are not only counted. */
static CUdeviceptr place(maker *maker, size_t bytes, char **at) {
    size_t first = (maker->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    maker->used = first + bytes;
    *at = maker->bytes != NULL ? maker->bytes + first : NULL;
    return maker->address + first;
}

/* The task that the one of this number in the series has to wait for, and 1; 0: none. All blocks come to tasks in their order, so the
 * latest one stands for all. */
static int awaited(const sb_cuda_task_list *list, int first, int number) {
    const sb_cuda_task task = sb_cuda_task_list_at(list, first + number);
    for (int other = number; other > 0; other--) {
        const sb_cuda_task earlier = sb_cuda_task_list_at(list, first + other - 1);
        if (sb_cuda_tasks_conflict(&task, &earlier))
            return other;
    }
    return 0;
}

/* Whether all rows of a product have room beside the ring, and 16 bytes of each lie so that they are read at once. */
static bool has_whole_rows(const sb_gemm16_hopper *p) {
    const sb_gemm16_operand *rows = &p->product.a;
    return p->product.m * (p->k_blocks + 1) * 64 * 2 <= SB_CUDA_SERIES_ROWS && rows->k_stride == 1;
}

/* Copies of 128 k for a stage: as many as there is room for. */
static int copies_of(const sb_gemm16_hopper *p) {
    int bytes = 2 * (p->a_box_bytes + (has_whole_rows(p) ? 0 : p->b_box_bytes));
    return SB_CUDA_SERIES_STAGE / bytes;
}

static void describe_product(const sb_cuda_kernel_task *task, sb_cuda_series_task *made) {
    const sb_gemm16_hopper product = product_of(task);
    made->parts = product.tiles;
    made->copies = copies_of(&product);
    made->whole_rows = has_whole_rows(&product) ? (int32_t)product.product.m : 0;
    made->has_nodes = task->kernel->parameter_bytes == sizeof(sb_gemm16_fused);
    made->is_open = product.used_rows != NULL || product.used_columns != NULL;
    made->is_stacked = product.stacked == 1;
    made->k_blocks = product.k_blocks;
    made->tile_rows = product.tile_rows;
    made->last_row = product.last_row;
    made->a_box_bytes = product.a_box_bytes;
    made->b_box_bytes = product.b_box_bytes;
}

static void describe_append(const sb_cuda_kernel_task *task, sb_cuda_series_task *made) {
    sb_cuda_paged_append append;
    memcpy(&append, task->parameters, sizeof append);
    made->parts =
        (int32_t)((append.rows * (append.query_units + append.key_units + append.values) + SB_CUDA_SERIES_WORKERS - 1) /
                  SB_CUDA_SERIES_WORKERS);
}

/* What the form of a task asks for. */
static void describe_form(const sb_cuda_kernel_task *task, sb_cuda_series_task *made) {
    switch ((sb_cuda_form_kind)task->form.kind) {
    case SB_CUDA_FORM_PRODUCT:
        describe_product(task, made);
        break;
    case SB_CUDA_FORM_APPEND:
        describe_append(task, made);
        break;
    case SB_CUDA_FORM_ATTENTION:
    case SB_CUDA_FORM_NORMALIZE:
    case SB_CUDA_FORM_NONE:
        made->parts = (int32_t)task->grid[0];
        made->scratch = (int8_t)((task->shared_bytes + SB_CUDA_SERIES_STAGE - 1) / SB_CUDA_SERIES_STAGE);
        break;
    }
}

static sb_cuda_series_task describe(maker *maker, const sb_cuda_kernel_task *task) {
    size_t bytes = (task->kernel->parameter_bytes + 15) / 16 * 16;
    char *at;
    CUdeviceptr parameters = place(maker, bytes, &at);
    if (at != NULL)
        memcpy(at, task->parameters, task->kernel->parameter_bytes);
    sb_cuda_series_task made = {.kind = (int8_t)task->form.kind,
                                .variant = (int16_t)task->form.variant,
                                .parameter_bytes = (int32_t)bytes,
                                .parameters = (const void *)(uintptr_t)parameters};
    describe_form(task, &made);
    return made;
}

/* All that the series' tasks touch. */
static sb_status gather_ranges(maker *maker, int first, int count, int *range_count, sb_error *error) {
    *range_count = 0;
    for (int i = first; i < first + count; i++) {
        const sb_cuda_task task = sb_cuda_task_list_at(maker->list, i);
        size_t wanted = (size_t)*range_count + (size_t)task.kernel.range_count;
        if (!sb_grow((void **)&maker->ranges, &maker->range_capacity, wanted, sizeof *maker->ranges))
            return sb_fail_memory(error, wanted * sizeof *maker->ranges);
        memcpy(maker->ranges + *range_count, task.kernel.ranges,
               (size_t)task.kernel.range_count * sizeof *maker->ranges);
        *range_count += task.kernel.range_count;
    }
    return SB_OK;
}

static sb_status find_kernel(sb_cuda_device *device, bool is_f16, int width, const sb_cuda_kernel **kernel,
                             sb_error *error) {
    static const char *const modules[2][2] = {{"series_64_bf16", "series_64_f16"},
                                              {"series_128_bf16", "series_128_f16"}};
    static const char *const names[2][2] = {{"sb_cuda_series_64_bf16", "sb_cuda_series_64_f16"},
                                            {"sb_cuda_series_128_bf16", "sb_cuda_series_128_f16"}};
    return sb_cuda_kernel_find(device, modules[width > 64][is_f16], names[width > 64][is_f16], sizeof(sb_cuda_series),
                               kernel, error);
}

static sb_status append_series(maker *maker, int first, int count, sb_cuda_series series, sb_error *error) {
    const sb_cuda_task begin = sb_cuda_task_list_at(maker->list, first);
    const sb_cuda_kernel *kernel;
    int range_count, width = 0;
    for (int i = first; i < first + count; i++) {
        const sb_cuda_task task = sb_cuda_task_list_at(maker->list, i);
        width = width_of(&task) > width ? width_of(&task) : width;
    }
    SB_TRY(find_kernel(maker->device, begin.kernel.form.is_f16, width, &kernel, error));
    SB_TRY(gather_ranges(maker, first, count, &range_count, error));
    const sb_cuda_task task = {
        .kind = SB_CUDA_KERNEL,
        .step = begin.step,
        .kernel = {.kernel = kernel,
                   .grid = {(unsigned)maker->device->multiprocessors, 1, 1},
                   .block = {SB_CUDA_SERIES_THREADS, 1, 1},
                   .shared_bytes = SB_CUDA_SERIES_SHARED,
                   .together = true,
                   .parameters = &series,
                   .range_count = range_count,
                   .ranges = maker->ranges},
    };
    return sb_cuda_task_list_append(maker->tasks, &task, error);
}

/* Places what the series reads, and where bytes are written appends its task. */
static sb_status make_series(maker *maker, int first, int count, sb_error *error) {
    char *counters_at, *tasks_at;
    CUdeviceptr counters = place(maker, ((size_t)count + 1) * sizeof(uint32_t), &counters_at);
    CUdeviceptr tasks = place(maker, (size_t)count * sizeof(sb_cuda_series_task), &tasks_at);
    sb_cuda_series_task *made = (sb_cuda_series_task *)(void *)tasks_at;
    int next = 0, multiprocessors = maker->device->multiprocessors;
    for (int i = 0; i < count; i++) {
        const sb_cuda_task task = sb_cuda_task_list_at(maker->list, first + i);
        sb_cuda_series_task described = describe(maker, &task.kernel);
        described.waits = awaited(maker->list, first, i);
        described.first = next;
        /* The next task's first part is the next block's, so that all have as many in the end. */
        next = (next + described.parts) % multiprocessors;
        if (made == NULL)
            continue;
        made[i] = described;
        if (described.waits > 0)
            made[described.waits - 1].is_awaited = 1;
    }
    const sb_cuda_series series = {.tasks = (const sb_cuda_series_task *)(uintptr_t)tasks,
                                   .counters = (uint32_t *)(uintptr_t)counters,
                                   .count = count};
    return made != NULL ? append_series(maker, first, count, series, error) : SB_OK;
}

/* ---- a list ---- */

/* All of the list: once to count bytes, and once to write them. */
static sb_status make_all(maker *maker, sb_error *error) {
    maker->used = 0;
    for (int i = 0; i < sb_cuda_task_list_count(maker->list);) {
        int count = length_of(maker->list, i);
        const sb_cuda_task task = sb_cuda_task_list_at(maker->list, i);
        if (count > 0)
            SB_TRY(make_series(maker, i, count, error));
        else if (maker->bytes != NULL)
            SB_TRY(sb_cuda_task_list_append(maker->tasks, &task, error));
        i += count > 0 ? count : 1;
    }
    return SB_OK;
}

/* Through a stream of its own, and done when it returns. */
static sb_status upload(const maker *maker, sb_error *error) {
    sb_cuda_stream *stream = NULL;
    sb_cuda_staging *staging = NULL;
    sb_status status = sb_cuda_stream_create(maker->device, &stream, error);
    if (status == SB_OK)
        status = sb_cuda_staging_create(maker->device, maker->used, &staging, error);
    if (status == SB_OK) {
        const sb_cuda_queue queue = {.stream = stream};
        status = sb_cuda_upload(staging, &queue, maker->address, maker->bytes, maker->used, error);
    }
    sb_cuda_staging_destroy(staging);
    sb_cuda_stream_destroy(stream);
    return status;
}

static sb_status fill(maker *maker, sb_cuda_joined *joined, sb_error *error) {
    size_t bytes = maker->used;
    SB_TRY(sb_cuda_memory_create(maker->device, bytes, &joined->memory, error));
    maker->address = joined->memory->address;
    maker->bytes = sb_allocate_array(bytes, 1);
    if (maker->bytes == NULL)
        return sb_fail_memory(error, bytes);
    SB_TRY(sb_cuda_task_list_create(&joined->tasks, error));
    maker->tasks = joined->tasks;
    SB_TRY(make_all(maker, error));
    return upload(maker, error);
}

sb_status sb_cuda_series_join(sb_cuda_device *device, const sb_cuda_task_list *list, sb_cuda_joined *joined,
                              sb_error *error) {
    maker maker = {.device = device, .list = list};
    *joined = (sb_cuda_joined){0};
    sb_status status = make_all(&maker, error);
    if (status == SB_OK && maker.used > 0)
        status = fill(&maker, joined, error);
    sb_free(maker.bytes);
    sb_free(maker.ranges);
    if (status != SB_OK)
        sb_cuda_joined_destroy(joined);
    return status;
}

void sb_cuda_joined_destroy(sb_cuda_joined *joined) {
    sb_cuda_task_list_destroy(joined->tasks);
    sb_cuda_memory_release(joined->memory);
    *joined = (sb_cuda_joined){0};
}

/* ---- choice ---- */

sb_status sb_cuda_series_choose_by_name(sb_cuda_device *device, const char *name, sb_error *error) {
    static const char *const names[] = {"quickest", "off", "on"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(name, names[i]) == 0) {
            atomic_store_explicit(&device->series, i, memory_order_relaxed);
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "SAMEBIT_CUDA_SERIES is '%.40s': it is quickest, off or on", name);
}

bool sb_cuda_series_wanted(sb_cuda_device *device) {
    int choice = atomic_load_explicit(&device->series, memory_order_relaxed);
    return choice == SB_CUDA_SERIES_ON;
}
