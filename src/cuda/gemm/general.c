/* The schedules that compute every product: any strides, alignments, groups of rows, gates and
 * epilogues, with tiles of two sizes. */
#include "base/allocation.h"
#include "base/error.h"
#include "cuda/gemm/gemm.h"

/* A size of tiles, and about what it costs on an H200. */
typedef struct tile {
    const char *modules[2]; /* by iv_chain */
    int m, n, threads;
    double step;    /* microseconds that a multiprocessor needs for 32 k of a tile, other tiles beside it */
    double latency; /* … and that they take when there is none */
} tile;

static const tile large_tile = {{"gemm16_general", "gemm16_ampere"}, 128, 128, 256, 0.40, 0.50};
static const tile small_tile = {{"gemm16_general_small", "gemm16_ampere_small"}, 64, 64, 128, 0.15, 0.30};

static iv_status prepare(const iv_gemm_schedule *self, iv_engine *engine, void **state, iv_error *error) {
    const tile *tile = self->shape;
    iv_gemm16_kernels *kernels;
    IV_TRY(iv_gemm16_load(engine->cuda, tile->modules[engine->chain], sizeof(iv_gemm16_general), IV_GEMM_LAYOUTS_ALL, &kernels,
                          error));
    *state = kernels;
    return IV_OK;
}

static bool can(const iv_gemm_schedule *self, const iv_engine *engine, const void *state, const iv_gemm_plan *plan,
                char *why) {
    return true;
}

/* Columns of C in a tile. */
static int columns_of(const tile *tile, const iv_gemm_plan *plan) {
    return plan->gemm->gate != IV_GATE_NONE ? tile->n / 2 : tile->n;
}

static double cost(const iv_gemm_schedule *self, const iv_engine *engine, const iv_gemm_plan *plan) {
    const tile *tile = self->shape;
    double count = (double)iv_gemm_divide_up(plan->m, tile->m) * (double)iv_gemm_divide_up(plan->n, columns_of(tile, plan)) *
                   (double)plan->batches;
    double each = count / engine->cuda->multiprocessors * tile->step;
    return 4 + (double)iv_gemm_divide_up(plan->group_count, 2) * (each > tile->latency ? each : tile->latency);
}

/* Strides of extents of one may be anything, and kernels compute addresses before they know whether they need them. */
static void drop_idle_strides(iv_gemm16 *p) {
    iv_gemm16_operand *operands[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        int64_t lines = i == 0 ? p->m : p->gate != IV_GATE_NONE ? 2 * p->n : p->n;
        operands[i]->line_stride *= lines > 1;
        operands[i]->k_stride *= p->k > 1;
        operands[i]->batch_stride *= p->batches > 1;
    }
    p->c.row_stride *= p->m > 1;
    p->c.column_stride *= p->n > 1;
    p->c.batch_stride *= p->batches > 1;
}

static iv_status launch(const iv_gemm_schedule *self, const iv_engine *engine, const void *state,
                        const iv_cuda_queue *queue, const iv_gemm_plan *plan, iv_error *error) {
    const iv_gemm16_kernels *kernels = state;
    const tile *tile = self->shape;
    iv_cuda_range ranges[IV_GEMM_RANGES];
    iv_gemm16_general parameters = {
        .row_tiles = iv_gemm_divide_up(plan->m, tile->m),
        .column_tiles = iv_gemm_divide_up(plan->n, columns_of(tile, plan)),
    };
    iv_gemm16 *product = &parameters.product;
    iv_gemm16_describe(plan, product);
    drop_idle_strides(product);
    /* No more than C has elements, which are all in memory. */
    parameters.tiles = parameters.row_tiles * parameters.column_tiles * plan->batches;
    parameters.a_width = iv_gemm16_width(product, &product->a);
    parameters.b_width = iv_gemm16_width(product, &product->b);
    bool a_across = !iv_gemm16_reads_along(&product->a), b_across = !iv_gemm16_reads_along(&product->b);
    iv_cuda_task task = {
        .kind = IV_CUDA_KERNEL,
        .step = -1,
        .kernel = {.kernel = kernels->by[plan->dtype == IV_F16][a_across][b_across],
                   .grid = {parameters.tiles < INT32_MAX ? (unsigned)parameters.tiles : INT32_MAX, 1, 1},
                   .block = {(unsigned)tile->threads, 1, 1},
                   .parameters = &parameters,
                   .range_count = iv_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    return iv_cuda_launch(queue, &task, error);
}

#define SCHEDULE(of_tile, title)                                                                   \
    {                                                                                              \
        .name = title, .shape = &of_tile##_tile, .prepare = prepare, .release = iv_free, .can = can, \
        .cost = cost, .launch = launch                                                             \
    }
const iv_gemm_schedule iv_gemm_general = SCHEDULE(large, "general");
const iv_gemm_schedule iv_gemm_general_small = SCHEDULE(small, "general-small");
