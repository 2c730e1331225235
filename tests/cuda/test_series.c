/* Series of tasks in one launch (cuda/series): lists of products that read each other's results, against the CPU's, under several orders
 * of what is asynchronous, replayed, on devices of few multiprocessors; and what does not become a series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda/queue/graph.h"
#include "cuda/rows/rows_parameters.h"
#include "cuda/series/series.h"
#include "hopper_cases.h"
#include "kernel/contraction/check.h"
#include "support/failing.h"

#define MOST 24

/* Products, of which each reads the first columns of what one before it has made, or the first factor. */
typedef struct chain {
    int count;
    pair first, weights[MOST], out[MOST], residual[MOST];
    sb_gemm host[MOST], device[MOST];
    sb_cuda_task_list *list;
} chain;

/* One more product of n columns, which reads k columns of result `from`, or of the first factor for -1. */
static void add_product(setting *setting, chain *chain, int from, int64_t rows, int64_t k, int64_t n, sb_dtype dtype,
                        sb_dtype c_dtype, int form) {
    int i = chain->count++;
    bool is_gated = form % 4 == 1, adds = form % 4 == 2;
    const pair *in = from < 0 ? &chain->first : &chain->out[from];
    chain->weights[i] = make_pair(setting, dtype, k, is_gated ? 2 * n : n, 1, COLUMNS, i % 5 == 4 ? SPECIAL : TAME);
    chain->out[i] = make_pair(setting, c_dtype, rows, n, 1, form % 8 < 4 ? ROWS : WIDE_ROWS, TAME);
    if (adds)
        chain->residual[i] = make_pair(setting, dtype, rows, n, 1, ODD_ROWS, TAME);
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.scale = form % 3 == 0 ? 1.0f : 0.25f;
    gemm.gate = is_gated ? SB_GATE_STACKED : SB_GATE_NONE;
    gemm.activation = is_gated || form % 5 == 3 ? SB_ACTIVATION_SILU : SB_ACTIVATION_NONE;
    chain->host[i] = chain->device[i] = gemm;
    chain->host[i].a = in->host;
    chain->device[i].a = in->device;
    chain->host[i].a.columns = chain->device[i].a.columns = k;
    chain->host[i].b = chain->weights[i].host;
    chain->device[i].b = chain->weights[i].device;
    chain->host[i].c = chain->out[i].host;
    chain->device[i].c = chain->out[i].device;
    if (adds) {
        chain->host[i].residual = chain->residual[i].host;
        chain->device[i].residual = chain->residual[i].device;
    }
    chain->device[i].schedule = "swapped-64x8";
}

static void release_chain(chain *chain) {
    release_pair(&chain->first);
    for (int i = 0; i < chain->count; i++) {
        release_pair(&chain->weights[i]);
        release_pair(&chain->out[i]);
        if (chain->residual[i].memory != NULL)
            release_pair(&chain->residual[i]);
    }
    sb_cuda_task_list_destroy(chain->list);
}

/* The list of the device's tasks, of which none has been carried out. */
static void record(setting *setting, chain *chain) {
    sb_gemm_plan plan;
    MUST(sb_cuda_task_list_create(&chain->list, error));
    const sb_cuda_queue queue = {.stream = setting->queue.stream, .record = chain->list, .only_records = true};
    for (int i = 0; i < chain->count; i++) {
        MUST(sb_gemm_check(setting->gpu, &chain->device[i], &plan, error));
        MUST(sb_gemm_launch(&queue, -1, &plan, NULL, error));
    }
}

static void compute_on_host(setting *setting, chain *chain) {
    for (int i = 0; i < chain->count; i++)
        MUST(sb_gemm_run(setting->cpu, NULL, &chain->host[i], error));
}

/* Whether all results of a list are the CPU's. */
static bool has_results(setting *setting, const chain *chain) {
    size_t where;
    for (int i = 0; i < chain->count; i++) {
        if (!same_bytes(setting, &chain->out[i], &where)) {
            printf("byte %zu of result %d differs\n", where, i);
            return false;
        }
    }
    return true;
}

/* Makes the device's results what nothing is. */
static void spoil_results(setting *setting, const chain *chain) {
    for (int i = 0; i < chain->count; i++) {
        const pair *out = &chain->out[i];
        char *bytes = malloc(out->bytes);
        size_t size = sb_dtype_size(out->host.dtype), first = (size_t)((const char *)out->host.data - out->storage);
        memcpy(bytes, out->storage, out->bytes);
        for (int64_t row = 0; row < out->host.rows; row++) {
            for (int64_t column = 0; column < out->host.columns; column++)
                memset(bytes + first + (size_t)((out->host.rows > 1 ? row * out->host.row_stride : 0) + column) * size,
                       0xa5, size);
        }
        MUST(sb_cuda_upload(setting->staging, &setting->queue, out->memory->address, bytes, out->bytes, error));
        free(bytes);
    }
}

static void launch(setting *setting, const sb_cuda_graph *graph, const host_schedule *schedule) {
    host_set_schedule(schedule);
    MUST(sb_cuda_enter(setting->device.handle, error));
    MUST(sb_cuda_graph_launch(graph, setting->queue.stream, error));
    MUST(sb_cuda_leave(setting->device.handle, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    host_set_schedule(NULL);
}

/* The list as series, some times. */
static void check_series(setting *setting, chain *chain, int tasks) {
    sb_cuda_joined joined;
    sb_cuda_graph *graph;
    compute_on_host(setting, chain);
    MUST(sb_cuda_series_join(setting->device.handle, chain->list, &joined, error));
    assert_non_null(joined.tasks);
    assert_int_equal(sb_cuda_task_list_count(joined.tasks), tasks);
    MUST(sb_cuda_graph_build(setting->device.handle, joined.tasks, false, &graph, error));
    for (int i = 0; i < HOPPER_SCHEDULES; i++) {
        spoil_results(setting, chain);
        launch(setting, graph, &hopper_schedules[i]);
        if (!has_results(setting, chain))
            fail_msg("schedule \"%s\"", hopper_schedules[i].name);
    }
    sb_cuda_graph_destroy(graph);
    sb_cuda_joined_destroy(&joined);
}

/* A decoder's products: sizes that neither tiles nor stages divide, some reading what is not the last result. */
static chain make_chain(setting *setting, int64_t rows, sb_dtype dtype) {
    chain made = {.first = make_pair(setting, dtype, rows, 448, 1, ROWS, TAME)};
    add_product(setting, &made, -1, rows, 448, 320, dtype, dtype, 0);
    add_product(setting, &made, 0, rows, 320, 200, dtype, dtype, 2);
    add_product(setting, &made, 1, rows, 192, 576, dtype, dtype, 1);
    add_product(setting, &made, 2, rows, 576, 136, dtype, dtype, 6);
    add_product(setting, &made, 0, rows, 128, 72, dtype, dtype, 4);
    add_product(setting, &made, 3, rows, 64, 1024, dtype, SB_F32, 0);
    record(setting, &made);
    return made;
}

static void products_follow_on_each_other(void **state) {
    (void)state;
    static const int multiprocessors[] = {4, 3, 1};
    for (int i = 0; i < 3; i++) {
        setting setting = set_up_with(multiprocessors[i]);
        for (int64_t rows = 1; rows <= 8; rows += i == 0 ? 1 : 7) {
            chain chain = make_chain(&setting, rows, rows % 2 != 0 ? SB_BF16 : SB_F16);
            check_series(&setting, &chain, 1);
            release_chain(&chain);
        }
        tear_down(&setting);
    }
}

/* ---- what is no product ---- */

/* RMSNormalization of the first `length` columns of a result, into memory of its own. */
typedef struct norm {
    pair scale, out;
} norm;

static norm add_norm(setting *setting, chain *chain, const pair *in, int64_t rows, int64_t length, int per_lane) {
    const sb_dtype dtype = in->host.dtype;
    char module[32], name[48];
    norm made = {make_pair(setting, dtype, 1, length, 1, ROWS, TAME),
                 make_pair(setting, dtype, rows, length, 1, ROWS, TAME)};
    const pair *const operands[] = {&made.out, in, &made.scale};
    sb_cuda_normalization p = {.kind = SB_CUDA_NORM_RMS, .epsilon = 1e-5f};
    sb_cuda_range ranges[3];
    p.rows = (sb_cuda_rows){.count = rows, .length = length, .outer_rank = 1, .inner_rank = 1};
    p.rows.outer_dims[0] = rows;
    p.rows.inner_dims[0] = length;
    for (int i = 0; i < 3; i++) {
        p.rows.data[i] = operands[i]->device.data;
        p.rows.inner_steps[i][0] = 2;
        p.rows.outer_steps[i][0] = i < 2 && rows > 1 ? 2 * operands[i]->device.row_stride : 0;
        ranges[i] = (sb_cuda_range){operands[i]->memory->address, operands[i]->bytes, i == 0};
    }
    const sb_cuda_kernel *kernel;
    snprintf(module, sizeof module, "normalize_vectors_%s", sb_dtype_name(dtype));
    snprintf(name, sizeof name, "sb_cuda_normalize_few_%d_%s", per_lane, sb_dtype_name(dtype));
    MUST(sb_cuda_kernel_find(setting->device.handle, module, name, sizeof p, &kernel, error));
    const sb_cuda_task task = {.kind = SB_CUDA_KERNEL,
                               .step = -1,
                               .kernel = {.kernel = kernel,
                                          .grid = {(unsigned)rows, 1, 1},
                                          .block = {SB_CUDA_WAVE, 1, 1},
                                          .form = {SB_CUDA_FORM_NORMALIZE, dtype == SB_F16, (uint16_t)per_lane},
                                          .parameters = &p,
                                          .range_count = 3,
                                          .ranges = ranges}};
    const sb_cuda_queue queue = {.stream = setting->queue.stream, .record = chain->list, .only_records = true};
    MUST(sb_cuda_launch(&queue, &task, error));
    return made;
}

static void read_result(setting *setting, const pair *out, char **bytes) {
    *bytes = malloc(out->bytes);
    MUST(sb_cuda_download(setting->staging, &setting->queue, *bytes, out->memory->address, out->bytes, error));
}

/* Normalisations between products, with a task that is part of no series in the midst: what the tasks one by one give. */
static void kinds_are_mixed(void **state) {
    (void)state;
    setting setting = set_up_with(4);
    for (int64_t rows = 1; rows <= 8; rows += 7) {
        const sb_dtype dtype = rows == 1 ? SB_BF16 : SB_F16;
        chain chain = {.first = make_pair(&setting, dtype, rows, 448, 1, ROWS, TAME)};
        chain.list = NULL;
        add_product(&setting, &chain, -1, rows, 448, 1024, dtype, dtype, 0);
        record(&setting, &chain);
        norm norms[2] = {add_norm(&setting, &chain, &chain.out[0], rows, 1024, 4),
                         add_norm(&setting, &chain, &chain.first, rows, 448, 3)};
        sb_cuda_memory *apart;
        MUST(sb_cuda_memory_create(setting.device.handle, 64, &apart, error));
        const sb_cuda_task fill = {.kind = SB_CUDA_FILL, .step = -1, .fill = {.to = apart->address, .bytes = 64}};
        const sb_cuda_queue queue = {.stream = setting.queue.stream, .record = chain.list, .only_records = true};
        MUST(sb_cuda_launch(&queue, &fill, error));
        norm last[2] = {add_norm(&setting, &chain, &norms[0].out, rows, 1024, 4),
                        add_norm(&setting, &chain, &norms[1].out, rows, 448, 3)};
        const pair *const outs[] = {&chain.out[0], &norms[0].out, &norms[1].out, &last[0].out, &last[1].out};
        char *wanted[5], *found[5];
        sb_cuda_graph *graph;
        sb_cuda_joined joined;
        MUST(sb_cuda_graph_build(setting.device.handle, chain.list, false, &graph, error));
        launch(&setting, graph, NULL);
        for (int i = 0; i < 5; i++)
            read_result(&setting, outs[i], &wanted[i]);
        sb_cuda_graph_destroy(graph);
        MUST(sb_cuda_series_join(setting.device.handle, chain.list, &joined, error));
        assert_int_equal(sb_cuda_task_list_count(joined.tasks), 4); /* without a product there is no series */
        MUST(sb_cuda_graph_build(setting.device.handle, joined.tasks, false, &graph, error));
        for (int s = 0; s < HOPPER_SCHEDULES; s++) {
            for (int i = 0; i < 5; i++)
                MUST(sb_cuda_upload(setting.staging, &setting.queue, outs[i]->memory->address, outs[i]->storage,
                                    outs[i]->bytes, error));
            launch(&setting, graph, &hopper_schedules[s]);
            for (int i = 0; i < 5; i++) {
                read_result(&setting, outs[i], &found[i]);
                assert_memory_equal(found[i], wanted[i], outs[i]->bytes);
                free(found[i]);
            }
        }
        sb_cuda_graph_destroy(graph);
        sb_cuda_joined_destroy(&joined);
        sb_cuda_memory_release(apart);
        for (int i = 0; i < 5; i++)
            free(wanted[i]);
        for (int i = 0; i < 2; i++) {
            release_pair(&norms[i].scale);
            release_pair(&norms[i].out);
            release_pair(&last[i].scale);
            release_pair(&last[i].out);
        }
        release_chain(&chain);
    }
    tear_down(&setting);
}

/* A product whose weights a task before it writes begins a series of its own, as does one of another dtype. */
static void what_is_written_is_not_fetched_ahead(void **state) {
    (void)state;
    setting setting = set_up_with(4);
    chain chain = {.first = make_pair(&setting, SB_BF16, 1, 128, 1, ROWS, TAME)};
    sb_cuda_joined joined;
    add_product(&setting, &chain, -1, 1, 128, 8 * 64, SB_BF16, SB_BF16, 0);
    add_product(&setting, &chain, -1, 1, 64, 8, SB_BF16, SB_BF16, 0);
    /* The first result is the second product's weights: 64 k of 8 columns. */
    chain.host[1].b.data = chain.host[0].c.data;
    chain.device[1].b.data = chain.device[0].c.data;
    record(&setting, &chain);
    MUST(sb_cuda_series_join(setting.device.handle, chain.list, &joined, error));
    assert_null(joined.tasks);
    sb_cuda_joined_destroy(&joined);
    release_chain(&chain);
    tear_down(&setting);
}

/* With dependent launch the products of a graph fetch weights that no task of the graph writes before those ahead have ended, and only
 * those. (What else a kernel does before those ahead have ended, only a device shows.) */
static void settled_weights_are_read_ahead(void **state) {
    (void)state;
    setting setting = set_up_with(4);
    for (int written = 0; written < 2; written++) {
        chain chain = {.first = make_pair(&setting, SB_BF16, 1, 128, 1, ROWS, TAME)};
        add_product(&setting, &chain, -1, 1, 128, 8 * 64, SB_BF16, SB_BF16, 0);
        add_product(&setting, &chain, 0, 1, 512, 72, SB_BF16, SB_BF16, 2);
        add_product(&setting, &chain, -1, 1, 64, 8, SB_BF16, SB_BF16, 0);
        if (written) { /* the first result is the last product's weights: 64 k of 8 columns */
            chain.host[2].b.data = chain.host[0].c.data;
            chain.device[2].b.data = chain.device[0].c.data;
        }
        record(&setting, &chain);
        compute_on_host(&setting, &chain);
        for (int dependent = 0; dependent < 2; dependent++) {
            sb_cuda_graph *graph;
            MUST(sb_cuda_graph_build(setting.device.handle, chain.list, dependent, &graph, error));
            assert_int_equal(graph->settled_count, dependent ? 3 - written : 0);
            for (int i = 0; i < HOPPER_SCHEDULES; i++) {
                spoil_results(&setting, &chain);
                launch(&setting, graph, &hopper_schedules[i]);
                assert_true(has_results(&setting, &chain));
            }
            sb_cuda_graph_destroy(graph);
        }
        release_chain(&chain);
    }
    tear_down(&setting);
}

/* Tasks that do not wait for each other are found by each schedule that lets blocks run apart. */
static void a_missing_wait_is_found(void **state) {
    (void)state;
    setting setting = set_up_with(4);
    chain chain = make_chain(&setting, 3, SB_BF16);
    sb_cuda_joined joined;
    sb_cuda_graph *graph;
    int found = 0;
    compute_on_host(&setting, &chain);
    MUST(sb_cuda_series_join(setting.device.handle, chain.list, &joined, error));
    MUST(sb_cuda_graph_build(setting.device.handle, joined.tasks, false, &graph, error));
    for (int i = 0; i < HOPPER_SCHEDULES; i++) {
        spoil_results(&setting, &chain);
        host_ignore_counters(true);
        launch(&setting, graph, &hopper_schedules[i]);
        host_ignore_counters(false);
        found += !has_results(&setting, &chain);
    }
    assert_true(found >= 4);
    sb_cuda_graph_destroy(graph);
    sb_cuda_joined_destroy(&joined);
    release_chain(&chain);
    tear_down(&setting);
}

/* ---- what can fail ---- */

typedef struct joining {
    sb_cuda_device *device;
    const chain *chain;
} joining;

static sb_status join(void *context) {
    const joining *all = context;
    sb_cuda_joined joined;
    sb_error error = {SB_OK, ""};
    sb_status status = sb_cuda_series_join(all->device, all->chain->list, &joined, &error);
    if (status == SB_OK)
        sb_cuda_joined_destroy(&joined);
    return status;
}

static void failing_allocations_leave_nothing(void **state) {
    (void)state;
    setting setting = set_up_with(4);
    chain chain = make_chain(&setting, 1, SB_BF16);
    joining all = {setting.device.handle, &chain};
    assert_int_equal(join(&all), SB_OK); /* the kernel is loaded */
    check_failing_allocations(join, &all);
    release_chain(&chain);
    tear_down(&setting);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_follow_on_each_other),
        cmocka_unit_test(a_missing_wait_is_found),
        cmocka_unit_test(kinds_are_mixed),
        cmocka_unit_test(what_is_written_is_not_fetched_ahead),
        cmocka_unit_test(settled_weights_are_read_ahead),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
