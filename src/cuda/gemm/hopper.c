/* The schedules by TMA and wgmma, of Hopper alone: matrices whose elements lie side by side along one dimension, with addresses
 * and steps that are multiples of 16 bytes. What else there is, the general ones compute. */
#include <math.h>
#include <stdio.h>

#include "base/allocation.h"
#include "base/error.h"
#include "cuda/gemm/gemm.h"
#include "cuda/kernels/gemm16_hopper_parameters.h"

#define TILE_K 64
#define BOX 64 /* elements of 128 bytes, what the swizzle spreads over the banks */
/* A warpgroup's room for results: gemm16_hopper.cuh. */
#define ROOM_BYTES 16384
#define ALIGNMENT 1024

/* A shape of tiles: the numbers of its source, and what it costs on an H200. */
typedef struct shape {
    const char *module, *kernel; /* the kernels' names begin so */
    int rows, n, stages, cluster;
    bool turned; /* B's columns are the kernel's rows, for products of few rows */
    bool b_along; /* the kernel's B must lie along k; where there are `boxes`, its A too */
    int boxes;   /* tiles of 64 k in a stage of a skinny kernel; 0: by wgmma */
    int threads;
    double step;   /* microseconds that a tile takes for 64 k, other tiles beside it */
    double around; /* … and the product before and behind its k */
} shape;

/* The fetching warp takes a whole warpgroup where it gives registers away. Times are fitted to those of every shape on an H200 for
 * the layers of bench/gemm16_schedules.py, which fits them: the choice by them takes 0.1 % longer than the best one for
 * each. */
static const shape shapes[] = {
    {"gemm16_128x256", "gemm16_128x256", 128, 256, 4, 2, false, false, 0, 384, 0.766, 2.77},
    {"gemm16_128x224", "gemm16_128x224", 128, 224, 4, 1, false, false, 0, 384, 0.651, 3.60},
    {"gemm16_128x192", "gemm16_128x192", 128, 192, 4, 1, false, false, 0, 384, 0.505, 3.63},
    {"gemm16_128x128", "gemm16_128x128", 128, 128, 6, 1, false, false, 0, 384, 0.422, 3.75},
    {"gemm16_128x64", "gemm16_128x64", 128, 64, 8, 1, false, false, 0, 384, 0.326, 2.82},
    {"gemm16_64x64", "gemm16_64x64", 64, 64, 12, 1, true, true, 0, 160, 0.207, 1.51},
    {"gemm16_64x32", "gemm16_64x32", 64, 32, 14, 1, true, true, 0, 160, 0.167, 1.07},
    {"gemm16_64x16", "gemm16_64x16", 64, 16, 18, 1, true, true, 0, 160, 0.125, 2.18},
    {"gemm16_64x8", "gemm16_64x8", 64, 8, 20, 1, true, true, 0, 160, 0.193, 1.70},
    {"gemm16_64x32", "gemm16_64x32", 64, 32, 14, 1, false, true, 0, 160, 0.186, 2.02},
    {"gemm16_64x64", "gemm16_64x64", 64, 64, 12, 1, false, true, 0, 160, 0.157, 1.92},
    {"gemm16_64x128", "gemm16_64x128", 64, 128, 8, 1, false, true, 0, 160, 0.438, 1.90},
    {"gemm16_64x256", "gemm16_64x256", 64, 256, 5, 1, false, true, 0, 160, 0.519, 4.98},
    {"gemm16_skinny", "gemm16_skinny_16x8", 16, 8, 9, 1, true, true, 8, 64, 0.067, 1.44},
    {"gemm16_skinny", "gemm16_skinny_32x8", 32, 8, 11, 1, true, true, 4, 96, 0.136, 0.78},
    {"gemm16_skinny", "gemm16_skinny_64x8", 64, 8, 6, 1, true, true, 4, 160, 0.084, 1.43},
    {"gemm16_skinny", "gemm16_skinny_16x16", 16, 16, 13, 1, true, true, 4, 96, 0.077, 1.55},
    {"gemm16_skinny", "gemm16_skinny_32x16", 32, 16, 9, 1, true, true, 4, 160, 0.108, 0.77},
    {"gemm16_skinny", "gemm16_skinny_64x16", 64, 16, 10, 1, true, true, 2, 160, 0.172, 1.41},
    {"gemm16_skinny", "gemm16_skinny_16x32", 16, 32, 18, 1, true, true, 2, 160, 0.111, 2.58},
    {"gemm16_skinny", "gemm16_skinny_32x32", 32, 32, 13, 1, true, true, 2, 160, 0.120, 1.93},
    {"gemm16_skinny", "gemm16_skinny_64x32", 64, 32, 8, 1, true, true, 2, 288, 0.194, 2.05},
};

/* ---- what it can do ---- */

/* How TMA sees an operand. */
typedef enum layout { ALONG, ACROSS, NEITHER } layout;

static bool is_step(int64_t stride) {
    return stride > 0 && stride % 8 == 0 && stride < (int64_t)1 << 39;
}

static layout layout_of(const iv_gemm16_operand *operand, int64_t lines, int64_t k, int64_t batches) {
    if ((uintptr_t)operand->data % 16 != 0 ||
        (batches > 1 && operand->batch_stride != 0 && !is_step(operand->batch_stride)))
        return NEITHER;
    if (operand->k_stride == 1 && (lines == 1 || is_step(operand->line_stride)))
        return ALONG;
    if (operand->line_stride == 1 && (k == 1 || is_step(operand->k_stride)))
        return ACROSS;
    return NEITHER;
}

static bool refuse(char *why, const char *reason) {
    snprintf(why, IV_GEMM_WHY_BYTES, "%s", reason);
    return false;
}

static bool can(const iv_gemm_schedule *self, const iv_engine *engine, const void *state, const iv_gemm_plan *plan,
                char *why) {
    const shape *shape = self->shape;
    iv_gemm16 product;
    if (state == NULL)
        return refuse(why, "it needs kernels compiled for sm_90a, and a device of compute capability 9.0");
    if (plan->gemm->gate != IV_GATE_NONE || plan->group_count == 0)
        return refuse(why, plan->group_count == 0 ? "there is no k" : "it has no gates");
    if (plan->device_groups != 0)
        return refuse(why, "its k is in groups of 16 from 0, not in those of a row map");
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 2 || plan->k > INT32_MAX / 2 || plan->batches > INT32_MAX / 2 ||
        (double)plan->m * (double)plan->n * (double)plan->batches / 512 > INT32_MAX / 2)
        return refuse(why, "an extent is more than 2^30, or there are more than 2^30 tiles");
    iv_gemm16_describe(plan, &product);
    layout a = layout_of(&product.a, plan->m, plan->k, plan->batches);
    layout b = layout_of(&product.b, plan->n, plan->k, plan->batches);
    if (a == NEITHER || b == NEITHER)
        return refuse(why, a == NEITHER ? "A needs a stride of 1, and an address and other strides of multiples of 16 bytes"
                                        : "B needs a stride of 1, and an address and other strides of multiples of 16 bytes");
    bool a_must = shape->b_along && (shape->turned || shape->boxes > 0);
    bool b_must = shape->b_along && (!shape->turned || shape->boxes > 0);
    if ((a_must && a != ALONG) || (b_must && b != ALONG))
        return refuse(why, a_must && a != ALONG ? "A's rows must lie along k" : "B's columns must lie along k");
    return true;
}

/* Bytes in a microsecond: of the second-level cache in all multiprocessors' fetching, and of memory. */
#define CACHE_RATE 7.90e6
#define MEMORY_RATE 4.2e6

/* Clusters that run at the same time. */
static int at_once(const iv_engine *engine, const shape *shape) {
    int clusters = engine->cuda->multiprocessors / shape->cluster;
    return clusters > 0 ? clusters : 1;
}

static double cost(const iv_gemm_schedule *self, const iv_engine *engine, const iv_gemm_plan *plan) {
    const shape *shape = self->shape;
    double rows = (double)iv_gemm_divide_up(shape->turned ? plan->n : plan->m, shape->rows * shape->cluster);
    double columns = (double)iv_gemm_divide_up(shape->turned ? plan->m : plan->n, shape->n);
    double tiles = rows * columns * (double)plan->batches;
    double rounds = ceil(tiles / at_once(engine, shape));
    /* Without a cluster to share it, a B that is fetched in 64s takes longer. */
    bool fetches_slowly = shape->cluster == 1 && shape->n > 128 && plan->gemm->b.column_stride == 1;
    double computing = shape->around + rounds * (double)iv_gemm_divide_up(plan->k, TILE_K) * shape->step * (fetches_slowly ? 1.17 : 1);
    double fetched = tiles * (shape->rows * shape->cluster + shape->n) * (double)plan->k * 2 / CACHE_RATE;
    double moved = 0.95 + (double)(plan->a.bytes + plan->b.bytes + plan->c.bytes) / MEMORY_RATE;
    /* Of shapes that wait for memory alike, that which computes least. */
    return fmax(fmax(computing, fetched), moved) + computing / 8;
}

/* ---- loading ---- */

/* Whether the module is machine code with Hopper's own instructions: what the driver compiles for a device of 9.0 has none. */
static bool has_hopper_code(const iv_cuda_device *device, const char *module) {
    char why[IV_CUDA_WHY_BYTES];
    const iv_cuda_image *image =
        iv_cuda_choose_image(device->images, module, device->compute, device->driver->version, why);
    return device->compute == 90 && image != NULL && image->kind == IV_CUDA_CUBIN_EXACT;
}

static iv_status prepare(const iv_gemm_schedule *self, iv_engine *engine, void **state, iv_error *error) {
    const shape *shape = self->shape;
    *state = NULL;
    if (!has_hopper_code(engine->cuda, shape->module))
        return IV_OK;
    iv_gemm16_kernels *kernels;
    IV_TRY(iv_gemm16_load(engine->cuda, shape->module, shape->kernel, sizeof(iv_gemm16_hopper), shape->boxes == 0,
                          !shape->b_along, &kernels, error));
    *state = kernels;
    return IV_OK;
}

/* ---- launching ---- */

/* A tensor as the copy engine sees it: `inner` elements side by side, `outer` times, in batches. */
typedef struct boxes {
    const void *data;
    int64_t inner, outer, step; /* from one outer to the next, in elements */
    int64_t batches, batch_step;
    int box_inner, box_outer;
} boxes;

static iv_status encode(const iv_engine *engine, iv_dtype dtype, const boxes *boxes, iv_tensor_map *map, iv_error *error) {
    /* Where there is no next one, any step will do. */
    int64_t step = boxes->outer > 1 ? boxes->step : 8, batch_step = boxes->batches > 1 ? boxes->batch_step : 8;
    cuuint64_t dims[] = {(cuuint64_t)boxes->inner, (cuuint64_t)boxes->outer, (cuuint64_t)boxes->batches};
    cuuint64_t strides[] = {(cuuint64_t)step * 2, (cuuint64_t)batch_step * 2};
    cuuint32_t box[] = {(cuuint32_t)boxes->box_inner, (cuuint32_t)boxes->box_outer, 1}, ones[] = {1, 1, 1};
    _Static_assert(sizeof(CUtensorMap) == sizeof *map && _Alignof(CUtensorMap) == _Alignof(iv_tensor_map), "the driver's map");
    return IV_CUDA_DO(engine->cuda, error, cuTensorMapEncodeTiled, (CUtensorMap *)(void *)map,
                      dtype == IV_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3,
                      (void *)(uintptr_t)boxes->data, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* An operand of the kernel, which fetches `part` lines at once, or of 64 lines `k_part` k. */
static iv_status encode_operand(const iv_engine *engine, const iv_gemm_plan *plan, const iv_gemm16_operand *operand,
                                int64_t lines, layout layout, int part, int k_part, iv_tensor_map *map,
                                iv_error *error) {
    bool along = layout == ALONG;
    boxes boxes = {
        .data = operand->data,
        .inner = along ? plan->k : lines,
        .outer = along ? lines : plan->k,
        .step = along ? operand->line_stride : operand->k_stride,
        .batches = operand->batch_stride != 0 ? plan->batches : 1,
        .batch_step = operand->batch_stride,
        .box_inner = BOX,
        .box_outer = along ? part : k_part,
    };
    return encode(engine, plan->dtype, &boxes, map, error);
}

/* Whether results can leave by TMA, which writes 16 bytes at once, also where a row ends in between. */
static bool stores_in_bulk(const iv_gemm16 *product, bool turned) {
    const iv_gemm16_output *c = &product->c;
    return !turned && !product->has_epilogue && c->dtype != IV_F32 && c->column_stride == 1 && product->n % 8 == 0 &&
           (uintptr_t)c->data % 16 == 0 && (product->m == 1 || is_step(c->row_stride)) &&
           (product->batches == 1 || is_step(c->batch_stride));
}

static bool stores_pairs(const iv_gemm16_hopper *p) {
    const iv_gemm16_output *c = &p->product.c;
    size_t element = c->dtype == IV_F32 ? 4 : 2;
    return p->column_stride == 1 && p->columns % 2 == 0 && (p->rows == 1 || p->row_stride % 2 == 0) &&
           (p->product.batches == 1 || c->batch_stride % 2 == 0) && (uintptr_t)c->data % (2 * element) == 0;
}

static void fill(const shape *shape, iv_gemm16_hopper *p) {
    const iv_gemm16 *product = &p->product;
    p->turned = shape->turned;
    p->rows = shape->turned ? product->n : product->m;
    p->columns = shape->turned ? product->m : product->n;
    p->row_stride = shape->turned ? product->c.column_stride : product->c.row_stride;
    p->column_stride = shape->turned ? product->c.row_stride : product->c.column_stride;
    p->row_tiles = (int32_t)iv_gemm_divide_up(p->rows, shape->rows * shape->cluster);
    p->column_tiles = (int32_t)iv_gemm_divide_up(p->columns, shape->n);
    p->tiles = (int32_t)((int64_t)p->row_tiles * p->column_tiles * product->batches);
    p->k_blocks = (int32_t)iv_gemm_divide_up(product->k, TILE_K);
    p->bulk_store = stores_in_bulk(product, shape->turned);
    p->pairs = stores_pairs(p);
}

static unsigned shared_bytes(const shape *shape, layout b_layout) {
    int width = b_layout == ACROSS ? (shape->n + BOX - 1) / BOX * BOX : shape->n;
    int stage = (shape->rows + width) * TILE_K * 2;
    return (unsigned)(shape->boxes > 0 ? shape->stages * shape->boxes * stage + ALIGNMENT
                                       : shape->stages * stage + shape->rows / 64 * ROOM_BYTES + ALIGNMENT);
}

/* The kernel's parameters but for where results go: returns the layouts of its A and B. */
static iv_status fill_factors(const iv_engine *engine, const shape *shape, const iv_gemm_plan *plan, iv_gemm16_hopper *p,
                              layout layouts[2], iv_error *error) {
    iv_gemm16_describe(plan, &p->product);
    fill(shape, p);
    const iv_gemm16_operand *a = shape->turned ? &p->product.b : &p->product.a;
    const iv_gemm16_operand *b = shape->turned ? &p->product.a : &p->product.b;
    layouts[0] = layout_of(a, p->rows, plan->k, plan->batches);
    layouts[1] = layout_of(b, p->columns, plan->k, plan->batches);
    p->a_batched = a->batch_stride != 0;
    p->b_batched = b->batch_stride != 0;
    IV_TRY(encode_operand(engine, plan, a, p->rows, layouts[0], shape->rows, TILE_K, &p->a, error));
    return encode_operand(engine, plan, b, p->columns, layouts[1], shape->n / shape->cluster, TILE_K / shape->cluster, &p->b,
                          error);
}

static iv_status launch(const iv_gemm_schedule *self, const iv_engine *engine, const void *state,
                        const iv_cuda_queue *queue, const iv_gemm_plan *plan, iv_error *error) {
    const shape *shape = self->shape;
    const iv_gemm16_kernels *kernels = state;
    iv_gemm16_hopper p = {0};
    layout layouts[2];
    IV_TRY(fill_factors(engine, shape, plan, &p, layouts, error));
    if (p.bulk_store) {
        const iv_gemm16_output *c = &p.product.c;
        boxes boxes = {c->data, p.columns, p.rows, c->row_stride, plan->batches, c->batch_stride, BOX, 64};
        IV_TRY(encode(engine, plan->dtype, &boxes, &p.c, error));
    }
    int clusters = p.tiles < at_once(engine, shape) ? p.tiles : at_once(engine, shape);
    iv_cuda_range ranges[IV_GEMM_RANGES];
    iv_cuda_task task = {
        .kind = IV_CUDA_KERNEL,
        .step = -1,
        .kernel = {.kernel = kernels->by[plan->dtype == IV_F16][layouts[0] == ACROSS][layouts[1] == ACROSS],
                   .grid = {(unsigned)(clusters * shape->cluster), 1, 1},
                   .block = {(unsigned)shape->threads, 1, 1},
                   .shared_bytes = shared_bytes(shape, layouts[1]),
                   .parameters = &p,
                   .range_count = iv_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    return iv_cuda_launch(queue, &task, error);
}

/* ---- logits ---- */

#define LOGITS "gemm16_logits"

static iv_status find_logits(const iv_engine *engine, bool is_f16, bool b_across, const iv_cuda_kernel **kernel,
                             iv_error *error) {
    char name[64];
    snprintf(name, sizeof name, "iv_" LOGITS "_%s_along_%s", is_f16 ? "f16" : "bf16", b_across ? "across" : "along");
    return iv_cuda_kernel_find(engine->cuda, LOGITS, name, sizeof(iv_gemm16_logits), kernel, error);
}

iv_status iv_gemm16_logits_prepare(const iv_engine *engine, iv_error *error) {
    const iv_cuda_kernel *kernel;
    for (int i = 0; i < 4 && has_hopper_code(engine->cuda, LOGITS); i++)
        IV_TRY(find_logits(engine, i / 2, i % 2, &kernel, error));
    return IV_OK;
}

bool iv_gemm16_logits_can(const iv_engine *engine, const iv_gemm_plan *plan) {
    char why[IV_GEMM_WHY_BYTES];
    iv_gemm16 product;
    if (!has_hopper_code(engine->cuda, LOGITS) || !can(&iv_gemm_hopper[0], engine, engine, plan, why))
        return false;
    iv_gemm16_describe(plan, &product);
    return layout_of(&product.a, plan->m, plan->k, 1) == ALONG;
}

iv_status iv_gemm16_logits_launch(const iv_engine *engine, const iv_cuda_queue *queue, const iv_gemm_plan *plan,
                                  const iv_logp_reduce *reduce, iv_error *error) {
    const shape *shape = &shapes[0];
    iv_gemm16_logits p = {.reduce = *reduce};
    layout layouts[2];
    IV_TRY(fill_factors(engine, shape, plan, &p.product, layouts, error));
    int clusters = p.product.tiles < at_once(engine, shape) ? p.product.tiles : at_once(engine, shape);
    iv_cuda_range ranges[IV_GEMM_RANGES];
    iv_cuda_task task = {
        .kind = IV_CUDA_KERNEL,
        .step = -1,
        .kernel = {.grid = {(unsigned)(clusters * shape->cluster), 1, 1},
                   .block = {(unsigned)shape->threads, 1, 1},
                   .shared_bytes = shared_bytes(shape, layouts[1]),
                   .parameters = &p,
                   .range_count = iv_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    IV_TRY(find_logits(engine, plan->dtype == IV_F16, layouts[1] == ACROSS, &task.kernel.kernel, error));
    return iv_cuda_launch(queue, &task, error);
}

#define SCHEDULE(index, title)                                                                     \
    {                                                                                              \
        .name = title, .shape = &shapes[index], .prepare = prepare, .release = iv_free,            \
        .can = can, .cost = cost, .launch = launch                                                 \
    }
const iv_gemm_schedule iv_gemm_hopper[IV_GEMM_HOPPER_SCHEDULES] = {
    SCHEDULE(0, "tile-128x256"),
    SCHEDULE(1, "tile-128x224"),
    SCHEDULE(2, "tile-128x192"),
    SCHEDULE(3, "tile-128x128"),
    SCHEDULE(4, "tile-128x64"),
    SCHEDULE(5, "turned-64x64"),
    SCHEDULE(6, "turned-64x32"),
    SCHEDULE(7, "turned-64x16"),
    SCHEDULE(8, "turned-64x8"),
    SCHEDULE(9, "tile-64x32"),
    SCHEDULE(10, "tile-64x64"),
    SCHEDULE(11, "tile-64x128"),
    SCHEDULE(12, "tile-64x256"),
    SCHEDULE(13, "skinny-16x8"),
    SCHEDULE(14, "skinny-32x8"),
    SCHEDULE(15, "skinny-64x8"),
    SCHEDULE(16, "skinny-16x16"),
    SCHEDULE(17, "skinny-32x16"),
    SCHEDULE(18, "skinny-64x16"),
    SCHEDULE(19, "skinny-16x32"),
    SCHEDULE(20, "skinny-32x32"),
    SCHEDULE(21, "skinny-64x32"),
};
_Static_assert(sizeof shapes / sizeof shapes[0] == IV_GEMM_HOPPER_SCHEDULES, "a schedule for each shape");
