/* The schedules that compute every product: any strides, alignments, groups of rows, gates and
 * epilogues, with tiles of two sizes. */
#include <math.h>

#include "base/error.h"
#include "cuda/contraction/gemm16.h"

/* A size of tiles, and about what it costs on an H200. */
typedef struct tile {
    const char *modules[2];
    const char *fused[2]; /* with the nodes behind */
    int m, n, threads;
    double step;    /* microseconds that a multiprocessor needs for 32 k of a tile, other tiles beside it */
    double latency; /* … and that they take when there is none */
    double first;   /* a product's first tile's beginning and end */
    double around;  /* … and those of a tile, others beside it */
} tile;

static const tile large_tile = {
    SB_GEMM_MODULES("gemm16_general"), SB_GEMM_MODULES("gemm16_general_fused"), 128, 128, 256, 0.40, 0.50, 8.5, 6.3};
static const tile small_tile = {SB_GEMM_MODULES("gemm16_general_small"),
                                SB_GEMM_MODULES("gemm16_general_small_fused"),
                                64,
                                64,
                                128,
                                0.15,
                                0.30,
                                6.0,
                                2.0};

static sb_status load(const sb_gemm_schedule *self, sb_cuda_device *device, sb_error *error) {
    const tile *tile = self->shape;
    return sb_gemm16_load(device, tile->modules, sizeof(sb_gemm16_general), SB_GEMM_LAYOUTS_ALL, error);
}

static const char *refuses(const sb_gemm_schedule *self, sb_cuda_device *device, const sb_gemm_plan *plan) {
    return NULL;
}

/* Columns of C in a tile. */
static int columns_of(const tile *tile, const sb_gemm_plan *plan) {
    return plan->gemm->gate != SB_GATE_NONE ? tile->n / 2 : tile->n;
}

/* What happens to a result of each thread before it is stored, in microseconds: 4096 x 768 x 3072 with a bias and an activation
 * took 156 on an H200, and the same of 1024 rows 54. */
static double ends_of(const tile *tile, const sb_gemm_plan *plan) {
    const sb_gemm_epilogue *e = &plan->epilogue;
    double each = (e->bias.data != NULL ? 0.06 : 0) + (e->residual.data != NULL ? 0.12 : 0) +
                  (e->activation > SB_ACTIVATION_RELU ? 0.17 : 0) + (plan->fused != NULL ? 0.06 : 0);
    return each * tile->m * columns_of(tile, plan) / tile->threads;
}

static double cost(const sb_gemm_schedule *self, const sb_cuda_device *device, const sb_gemm_plan *plan) {
    const tile *tile = self->shape;
    double count = (double)sb_gemm_divide_up(plan->m, tile->m) *
                   (double)sb_gemm_divide_up(plan->n, columns_of(tile, plan)) * (double)plan->batches;
    double rounds = count / device->multiprocessors, all = fmax(1, rounds);
    double computing = tile->first + (all - 1) * tile->around + all * ends_of(tile, plan) +
                       (double)sb_gemm_divide_up(plan->group_count, 2) * fmax(rounds * tile->step, tile->latency);
    return fmax(computing, sb_gemm16_moving_time(plan)) + computing / 8;
}

/* Strides of extents of one may be anything, and kernels compute addresses before they know whether they need them. */
static void drop_idle_strides(sb_gemm16 *p) {
    sb_gemm16_operand *operands[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        int64_t lines = i == 0 ? p->m : p->gate != SB_GATE_NONE ? 2 * p->n : p->n;
        operands[i]->line_stride *= lines > 1;
        operands[i]->k_stride *= p->k > 1;
    }
    p->c.row_stride *= p->m > 1;
    p->c.column_stride *= p->n > 1;
    p->c.batch_stride *= p->batches > 1;
}

static sb_status launch(const sb_gemm_schedule *self, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                        sb_error *error) {
    const tile *tile = self->shape;
    const sb_cuda_kernel *kernel;
    sb_cuda_range ranges[SB_GEMM_RANGES];
    sb_gemm16_general_fused given;
    sb_gemm16_general *parameters = &given.product;
    *parameters = (sb_gemm16_general){
        .batches = plan->steps,
        .row_tiles = sb_gemm_divide_up(plan->m, tile->m),
        .column_tiles = sb_gemm_divide_up(plan->n, columns_of(tile, plan)),
    };
    sb_gemm16 *product = &parameters->product;
    sb_gemm16_describe(plan, product);
    drop_idle_strides(product);
    /* No more than C has elements, which are all in memory. */
    parameters->tiles = parameters->row_tiles * parameters->column_tiles * plan->batches;
    parameters->a_width = sb_gemm16_width(product, &plan->steps, &product->a);
    parameters->b_width = sb_gemm16_width(product, &plan->steps, &product->b);
    bool a_mn_major = !sb_gemm16_reads_k_major(&product->a), b_mn_major = !sb_gemm16_reads_k_major(&product->b);
    if (plan->fused != NULL)
        given.program = plan->fused->program;
    SB_TRY(sb_gemm16_find(queue->stream->device, plan->fused != NULL ? tile->fused : tile->modules,
                          plan->fused != NULL ? sizeof given : sizeof *parameters, plan->dtype, a_mn_major, b_mn_major,
                          &kernel, error));
    sb_cuda_task task = {
        .kind = SB_CUDA_KERNEL,
        .step = step,
        .kernel = {.kernel = kernel,
                   .grid = {parameters->tiles < INT32_MAX ? (unsigned)parameters->tiles : INT32_MAX, 1, 1},
                   .block = {(unsigned)tile->threads, 1, 1},
                   .parameters = &given,
                   .range_count = sb_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    return sb_cuda_launch(queue, &task, error);
}

#define SCHEDULE(of_tile, title)                                                                                       \
    { .name = title, .shape = &of_tile##_tile, .load = load, .refuses = refuses, .cost = cost, .launch = launch }
const sb_gemm_schedule sb_gemm_general = SCHEDULE(large, "general");
const sb_gemm_schedule sb_gemm_general_small = SCHEDULE(small, "general-small");
