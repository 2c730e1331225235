/* The schedules by TMA and wgmma, of Hopper alone: matrices whose elements lie side by side along one dimension, with
 * addresses and steps that are multiples of 16 bytes. What else there is, the general ones compute. */
#include <math.h>

#include "base/error.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/tensor_map.h"

#define TILE_K 64
#define BOX 64 /* elements of 128 bytes, what the swizzle spreads over the banks */
/* A warpgroup's room for results: gemm16_hopper.cuh. */
#define ROOM_BYTES 16384
#define ALIGNMENT 1024
/* Columns of tiles whose k may end where memory says. */
#define MOST_OPEN 128
/* Of a block's weights, what it asks for before the kernel ahead has ended. */
#define AHEAD_BYTES 65536
/* What a block may have of shared memory, but for its barriers. */
#define SHARED_BYTES (227 * 1024 - 1024)

/* A shape of tiles: the numbers of its source, and what it costs on an H200. */
typedef struct shape {
    const char *modules[2]; /* of bf16 and of f16; their kernels' names begin so too */
    const char *fused[2];   /* those that compute the nodes behind the product; NULL: there are none */
    int rows, n, boxes, stages, cluster;
    unsigned form;
    /* In microseconds: what a tile takes for 64 k, a product before its first tile and behind its last one, and a tile before and behind
     * its k. And in 10^6 bytes a microsecond what the second-level cache and the memory give to all tiles at the same time. */
    double step, around, turnover, cache, memory;
} shape;
enum {
    SWAPPED = 1,   /* B's columns are the kernel's rows, for products of few rows */
    B_K_MAJOR = 2, /* the kernel's B must be K-major */
    MAPPED = 4,    /* with a row map, A and B MN-major */
    TURNS = 8,     /* a tile is one warpgroup's, whose end the other one's products hide; A K-major, results in bulk */
};

/* `stages` are the most there are in tiles of 64 rows, which have as many as fit. Times are fitted to what each shape took on an
 * H200 for 157 products (bench/gemm16_schedules.py, which prints these lines): to the times themselves, by which shapes that
 * nothing was fitted to are judged as well. Less by 1.0 and 0.5 than fitted is what is around 64 x 16 and 64 x 8 of weights' rows:
 * in layers that follow on each other they take less, beside the others, than by themselves. (With 64 x 32 for 2048 -> 3072 and
 * 2048 -> 2048 of one row, the 1B shape's decoding step took 863 us for 763.) */
static const shape shapes[] = {
    {SB_GEMM_MODULES("gemm16_128x256"), SB_GEMM_MODULES("gemm16_fused_128x256"), 128, 256, 1, 4, 2, 0, 0.639, 2.15,
     1.03, 5.9, 3.59},
    {SB_GEMM_MODULES("gemm16_128x224"), {NULL}, 128, 224, 1, 4, 1, 0, 0.534, 1.25, 1.47, 8.4, 4.15},
    {SB_GEMM_MODULES("gemm16_128x192"), SB_GEMM_MODULES("gemm16_fused_128x192"), 128, 192, 1, 4, 1, 0, 0.450, 1.15,
     1.44, 9.2, 3.68},
    {SB_GEMM_MODULES("gemm16_128x128"), SB_GEMM_MODULES("gemm16_fused_128x128"), 128, 128, 1, 6, 1, 0, 0.299, 1.12,
     1.34, 10.9, 3.98},
    {SB_GEMM_MODULES("gemm16_128x112"), {NULL}, 128, 112, 1, 6, 1, B_K_MAJOR, 0.254, 1.25, 2.13, 11.0, 3.99},
    {SB_GEMM_MODULES("gemm16_128x96"), {NULL}, 128, 96, 1, 6, 1, B_K_MAJOR, 0.211, 1.82, 1.84, 11.4, 3.68},
    {SB_GEMM_MODULES("gemm16_128x64"), SB_GEMM_MODULES("gemm16_fused_128x64"), 128, 64, 1, 8, 1, 0, 0.158, 1.57, 1.12,
     12.1, 3.99},
    {SB_GEMM_MODULES("gemm16_64x128"), {NULL}, 64, 128, 2, 32, 1, B_K_MAJOR, 0.160, 1.93, 1.21, 10.3, 4.14},
    {SB_GEMM_MODULES("gemm16_64x112"), {NULL}, 64, 112, 2, 32, 1, B_K_MAJOR, 0.158, 3.04, 0.14, 11.3, 4.28},
    {SB_GEMM_MODULES("gemm16_64x64"), SB_GEMM_MODULES("gemm16_fused_64x64"), 64, 64, 2, 32, 1, B_K_MAJOR, 0.089, 1.96,
     0.54, 11.5, 4.48},
    {SB_GEMM_MODULES("gemm16_64x32"), SB_GEMM_MODULES("gemm16_fused_64x32"), 64, 32, 2, 32, 1, B_K_MAJOR, 0.065, 1.86,
     0.84, 13.6, 4.58},
    {SB_GEMM_MODULES("gemm16_64x16"), SB_GEMM_MODULES("gemm16_fused_64x16"), 64, 16, 4, 32, 1, B_K_MAJOR, 0.035, 2.50,
     1.27, 16.2, 4.57},
    {SB_GEMM_MODULES("gemm16_64x64"), SB_GEMM_MODULES("gemm16_fused_64x64"), 64, 64, 2, 32, 1, SWAPPED | B_K_MAJOR,
     0.050, 1.66, 2.54, 10.5, 4.84},
    {SB_GEMM_MODULES("gemm16_64x32"), SB_GEMM_MODULES("gemm16_fused_64x32"), 64, 32, 2, 32, 1, SWAPPED | B_K_MAJOR,
     0.053, 1.86, 1.31, 10.0, 4.62},
    {SB_GEMM_MODULES("gemm16_64x16"), SB_GEMM_MODULES("gemm16_fused_64x16"), 64, 16, 4, 32, 1, SWAPPED | B_K_MAJOR,
     0.043, 1.09, 0.69, 10.3, 4.61},
    {SB_GEMM_MODULES("gemm16_64x8"), SB_GEMM_MODULES("gemm16_fused_64x8"), 64, 8, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.054,
     1.80, 0.27, 10.3, 4.52},
    {SB_GEMM_MODULES("gemm16_mapped_128x256"), {NULL}, 128, 256, 1, 4, 2, MAPPED, 0.800, 3.28, 0.80, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_mapped_128x128"), {NULL}, 128, 128, 1, 6, 1, MAPPED, 0.510, 3.32, 0.80, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_128x160"), {NULL}, 128, 160, 1, 5, 1, B_K_MAJOR, 0.363, 0.23, 2.83, 10.0, 3.95},
    {SB_GEMM_MODULES("gemm16_128x144"), {NULL}, 128, 144, 1, 5, 1, B_K_MAJOR, 0.330, 0.20, 2.81, 10.6, 3.86},
    {SB_GEMM_MODULES("gemm16_128x80"), {NULL}, 128, 80, 1, 7, 1, B_K_MAJOR, 0.188, 1.82, 0.88, 11.3, 3.80},
    {SB_GEMM_MODULES("gemm16_64x96"), {NULL}, 64, 96, 2, 32, 1, B_K_MAJOR, 0.097, 3.94, 0.13, 11.0, 4.30},
    {SB_GEMM_MODULES("gemm16_64x80"), {NULL}, 64, 80, 2, 32, 1, B_K_MAJOR, 0.114, 2.85, 0.08, 11.3, 4.20},
    {SB_GEMM_MODULES("gemm16_64x192"), {NULL}, 64, 192, 1, 32, 1, SWAPPED | B_K_MAJOR, 0.208, 0.20, 5.33, 15.2, 3.98},
    {SB_GEMM_MODULES("gemm16_64x160"), {NULL}, 64, 160, 1, 32, 1, SWAPPED | B_K_MAJOR, 0.168, 0.20, 4.92, 13.5, 4.12},
    {SB_GEMM_MODULES("gemm16_64x144"), {NULL}, 64, 144, 1, 32, 1, SWAPPED | B_K_MAJOR, 0.153, 0.37, 4.24, 12.8, 4.26},
    {SB_GEMM_MODULES("gemm16_64x128"), {NULL}, 64, 128, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.144, 1.07, 3.17, 11.4, 4.49},
    {SB_GEMM_MODULES("gemm16_64x112"), {NULL}, 64, 112, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.109, 1.00, 3.97, 11.1, 5.45},
    {SB_GEMM_MODULES("gemm16_64x96"), {NULL}, 64, 96, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.091, 1.09, 3.62, 11.1, 4.68},
    {SB_GEMM_MODULES("gemm16_64x80"), {NULL}, 64, 80, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.069, 1.22, 3.46, 10.9, 4.54},
    {SB_GEMM_MODULES("gemm16_turns_128x128"), {NULL}, 128, 128, 1, 6, 2, TURNS, 0.375, 3.44, 1.74, 10.7, 3.00},
};

static bool has(const shape *shape, unsigned form) {
    return (shape->form & form) != 0;
}

/* ---- what it can do ---- */

/* Whether the kernels are machine code with Hopper's own instructions: what the driver compiles for a device of 9.0 has
 * none. They are built together, so one stands for all; each product asks, so the answer is kept. */
static bool has_hopper_code(sb_cuda_device *device) {
    enum { UNKNOWN, ABSENT, PRESENT };
    int known = atomic_load_explicit(&device->hopper_code, memory_order_relaxed);
    if (known == UNKNOWN) {
        char why[SB_CUDA_WHY_BYTES];
        const sb_cuda_image *image =
            sb_cuda_choose_image(device->images, shapes[0].modules[0], device->compute, device->driver->version, why);
        known = device->compute == 90 && image != NULL && image->kind == SB_CUDA_CUBIN_EXACT ? PRESENT : ABSENT;
        atomic_store_explicit(&device->hopper_code, known, memory_order_relaxed);
    }
    return known == PRESENT;
}

/* How TMA sees an operand. */
typedef enum layout { K_MAJOR, MN_MAJOR, NEITHER } layout;

/* What an operand's tensor counts of its batches: 1 where all are the same matrix. */
static int64_t inner_of(const sb_gemm16 *product, const sb_gemm16_operand *operand) {
    return operand->batch_stride != 0 ? product->inner : 1;
}

static int64_t outer_of(const sb_gemm16 *product, const sb_gemm16_operand *operand) {
    return operand->outer_stride != 0 ? product->batches / product->inner : 1;
}

static layout layout_of(const sb_gemm16 *product, const sb_gemm16_operand *operand, int64_t lines) {
    int64_t k = product->k;
    if ((uintptr_t)operand->data % 16 != 0 ||
        (inner_of(product, operand) > 1 && !sb_gemm16_is_step(operand->batch_stride)) ||
        (outer_of(product, operand) > 1 && !sb_gemm16_is_step(operand->outer_stride)))
        return NEITHER;
    if (operand->k_stride == 1 && (lines == 1 || sb_gemm16_is_step(operand->line_stride)))
        return K_MAJOR;
    if (operand->line_stride == 1 && (k == 1 || sb_gemm16_is_step(operand->k_stride)))
        return MN_MAJOR;
    return NEITHER;
}

/* Columns of B. */
static int64_t b_lines(const sb_gemm_plan *plan) {
    return plan->gemm->gate != SB_GATE_NONE ? 2 * plan->n : plan->n;
}

/* Why it cannot compute gates, or those before their values; NULL: it can. */
static const char *refuses_gates(const shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product, layout b) {
    if (plan->gemm->gate == SB_GATE_NONE)
        return NULL;
    if (has(shape, MAPPED) || (!has(shape, SWAPPED) && shape->n % 32 != 0))
        return "it has no gates";
    bool takes_turns = plan->gemm->gate == SB_GATE_STACKED || has(shape, SWAPPED | TURNS);
    if (takes_turns && (b != K_MAJOR || plan->n % 8 != 0 || !sb_gemm16_is_step(plan->n * product->b.line_stride) ||
                        plan->steps.rank > 1 || (shape->boxes > 1 && product->b.batch_stride != 0)))
        return has(shape, SWAPPED | TURNS)
                   ? "gates and values must be K-major, a multiple of 8 of either, of one batch"
                   : "gates before values must be K-major, a multiple of 8, and in tiles of 64 rows of one batch";
    return NULL;
}

/* Whether eight neighbours of a row of results are 16 bytes that can be written at once. */
static bool has_eights(const sb_gemm16 *product) {
    const sb_gemm16_output *c = &product->c;
    return c->dtype != SB_F32 && c->column_stride == 1 && product->n % 8 == 0 && (uintptr_t)c->data % 16 == 0 &&
           (product->m == 1 || sb_gemm16_is_step(c->row_stride)) &&
           (product->batches == 1 || sb_gemm16_is_step(c->batch_stride));
}

/* Whether results can leave by TMA, also where a row ends in between. */
static bool stores_in_bulk(const shape *shape, const sb_gemm16 *product) {
    return !has(shape, SWAPPED) && (product->gate == SB_GATE_NONE || has(shape, TURNS)) && has_eights(product);
}

/* Whether results behind nodes go through shared memory, where they are turned. */
static bool turns_results(const shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product) {
    return has(shape, SWAPPED) && plan->fused != NULL && has_eights(product);
}

/* Why it cannot compute the nodes behind; NULL: it can, or there are none. Tiles of 128 rows compute them in bulk, for an A
 * of rows. */
static const char *refuses_nodes(const shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product, layout a) {
    if (plan->fused == NULL)
        return NULL;
    if (shape->fused[0] == NULL)
        return "it computes no nodes behind the product";
    if (plan->used.k != NULL)
        return "with nodes behind, its k does not end where each run says";
    if (shape->rows == 128 && (a != K_MAJOR || !stores_in_bulk(shape, product)))
        return "with nodes behind, A must be K-major, and C's rows multiples of 16 bytes";
    return NULL;
}

/* Why it cannot finish results while others are multiplied; NULL: it can, or does not. */
static const char *refuses_turns(const shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product, layout a) {
    if (!has(shape, TURNS))
        return NULL;
    if (a != K_MAJOR)
        return "A must be K-major";
    if (plan->used.k != NULL)
        return "its k ends where each run says, which tiles taken in turns do not look up";
    return stores_in_bulk(shape, product) ? NULL : "C must be of 16 bits, its rows multiples of 16 bytes";
}

/* Why the copy engine cannot fetch A and B; NULL: it can. */
static const char *refuses_layouts(const shape *shape, const sb_gemm_plan *plan, layout a, layout b) {
    if (a == NEITHER)
        return "A needs a stride of 1, and an address and other strides of multiples of 16 bytes";
    if (b == NEITHER)
        return "B needs a stride of 1, and an address and other strides of multiples of 16 bytes";
    if (has(shape, B_K_MAJOR) && (has(shape, SWAPPED) ? a : b) != K_MAJOR)
        return has(shape, SWAPPED) ? "A must be K-major" : "B must be K-major";
    if (has(shape, MAPPED) && (a != MN_MAJOR || b != MN_MAJOR || plan->m % BOX != 0 || plan->n % BOX != 0))
        return "A and B must be MN-major, their rows and columns multiples of 64";
    return NULL;
}

static const char *refuses_extents(const shape *shape, const sb_gemm_plan *plan) {
    if (plan->group_count == 0)
        return "there is no k";
    if ((plan->device_groups != NULL) != has(shape, MAPPED))
        return has(shape, MAPPED) ? "it is for products with a row map"
                                  : "its k is in groups of 16 from 0, not in those of a row map";
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 4 || plan->k > INT32_MAX / 2 ||
        plan->batches > INT32_MAX / 2 ||
        (double)plan->m * (double)plan->n * (double)plan->batches / 512 > INT32_MAX / 2)
        return "an extent is more than 2^30, or there are more than 2^30 tiles";
    if (plan->steps.rank > (has(shape, MAPPED) ? 1 : 2))
        return "its batches have more steps than two";
    return shape->boxes > 1 && plan->k % TILE_K != 0 ? "k must be a multiple of 64" : NULL;
}

static const char *refuses_plan(const shape *shape, sb_cuda_device *device, const sb_gemm_plan *plan) {
    if (!has_hopper_code(device))
        return "it needs kernels compiled for sm_90a, and a device of compute capability 9.0";
    const char *why = refuses_extents(shape, plan);
    if (why != NULL)
        return why;
    sb_gemm16 product;
    sb_gemm16_describe(plan, &product);
    layout a = layout_of(&product, &product.a, plan->m), b = layout_of(&product, &product.b, b_lines(plan));
    why = refuses_layouts(shape, plan, a, b);
    if (why == NULL)
        why = refuses_gates(shape, plan, &product, b);
    if (why == NULL)
        why = refuses_nodes(shape, plan, &product, a);
    if (why == NULL)
        why = refuses_turns(shape, plan, &product, a);
    if (why == NULL && plan->used.k != NULL && shape->n > MOST_OPEN)
        why = "its k ends where each run says, which tiles of more than 128 columns do not look up";
    return why;
}

static const char *refuses(const sb_gemm_schedule *self, sb_cuda_device *device, const sb_gemm_plan *plan) {
    return refuses_plan(self->shape, device, plan);
}

/* Clusters that run at the same time. */
static int at_once(const sb_cuda_device *device, const shape *shape) {
    int clusters = device->multiprocessors / shape->cluster;
    return clusters > 0 ? clusters : 1;
}

/* Tiles of 64 k. */
static int64_t blocks_of(const shape *shape, const sb_gemm_plan *plan) {
    return sb_gemm_divide_up(has(shape, MAPPED) ? plan->group_count * 16 : plan->k, TILE_K);
}

/* The rows that a tile takes. Swapped, those of weights: so few that all multiprocessors have some, if one round is
 * enough. A product that leaves many idle is slowed down little by itself, but the next one's blocks come to lie where
 * there is room and not where bandwidth is: a layer of 4096 wide products takes 132 us in tiles of 64 rows and 111 in
 * tiles of 32, and the 1B shape's decoding step, whose products are 2048 wide, 799 us in tiles of 32 at least and 749 in
 * tiles of 16. */
#define FEWEST_ROWS 16

static int rows_of(const shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan) {
    bool is_k_major = plan->gemm->b.row_stride == 1; /* else 64 of them come together */
    if (!has(shape, SWAPPED) || !is_k_major)
        return shape->rows;
    int64_t unit = plan->gemm->gate != SB_GATE_NONE ? 16 : 8; /* a swizzle's, and eight gates with their values */
    int64_t others = sb_gemm_divide_up(plan->m, shape->n) * plan->batches; /* 0 where there is nothing to compute */
    int64_t sharers = others > 0 ? at_once(device, shape) / others : 0;
    int64_t share = sb_gemm_divide_up(b_lines(plan), sharers > 0 ? sharers : 1);
    share = share < FEWEST_ROWS ? FEWEST_ROWS : sb_gemm_divide_up(share, unit) * unit;
    return share < shape->rows ? (int)share : shape->rows;
}

/* What happens to a result of each thread before it is stored, in microseconds, while nothing is multiplied: of a warpgroup that
 * takes turns with another, of two at the same time, whose results are half as many, and of one. Measured on an H200 by
 * 4096 x 768 x 3072, 4096 x 3072 x 768 and 1024 x 768 x 3072. The activation is between SiLU and GELU; gates
 * without turns go out one by one. Not measured: gates and nodes of one warpgroup, which are for few rows, that wait for weights. */
typedef struct ends {
    double addend, residual, activation, gate, nodes;
} ends;
static const ends in_turns = {0.05, 0.13, 0.06, 0.0, 0.0}, side_by_side = {0.09, 0.12, 0.06, 0.20, 0.07},
                  alone = {0.07, 0.13, 0.08, 0.0, 0.0};

static double epilogue_cost(const shape *shape, const sb_gemm_plan *plan) {
    const ends *each = has(shape, TURNS) ? &in_turns : shape->rows == 64 ? &alone : &side_by_side;
    const sb_gemm_epilogue *e = &plan->epilogue;
    bool gated = plan->gemm->gate != SB_GATE_NONE;
    double results = (double)shape->n / (has(shape, TURNS) ? 1 : 2) / (gated ? 2 : 1), one = 0;
    one += e->bias.data != NULL ? each->addend : 0;
    one += e->residual.data != NULL ? each->residual : 0;
    one += e->activation > SB_ACTIVATION_RELU ? each->activation : 0;
    one += gated ? each->gate : 0;
    one += plan->fused != NULL ? each->nodes : 0;
    return one * results;
}

/* Rounds of tiles of so many microseconds of products, and what is between them. Where warpgroups take them in turns, ends of tiles
 * are seen behind the last one, and where they take longer than the other's products. */
static double rounds_cost(const shape *shape, const sb_gemm_plan *plan, double rounds, double products) {
    double end = epilogue_cost(shape, plan);
    if (!has(shape, TURNS))
        return rounds * (products + end + shape->turnover);
    return rounds * (fmax(products, (products + end) / 2) + shape->turnover) + fmin(products, end);
}

/* What takes so long by itself takes at the same time: little more than the longest of them, but more. */
static double together(double computing, double fetching, double moving) {
    return sqrt(sqrt(pow(computing, 4) + pow(fetching, 4) + pow(moving, 4)));
}

/* `is_whole`: the shape's times are of whole tiles, with their ends, as those of logits and convolutions are. */
static double cost_of(const shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan, bool is_whole) {
    bool swapped = has(shape, SWAPPED);
    int64_t lines = swapped ? b_lines(plan) : plan->m, most = rows_of(shape, device, plan) * shape->cluster;
    double rows = (double)sb_gemm_divide_up(lines, most);
    double columns = (double)sb_gemm_divide_up(swapped ? plan->m : b_lines(plan), shape->n);
    double tiles = rows * columns * (double)plan->batches;
    double rounds = ceil(tiles / at_once(device, shape));
    /* A stage is multiplied whole. */
    int64_t blocks = sb_gemm_divide_up(blocks_of(shape, plan), shape->boxes) * shape->boxes;
    double products = (double)blocks * shape->step;
    double computing = is_whole ? rounds * products : rounds_cost(shape, plan, rounds, products);
    double fetched = tiles * (double)((lines < most ? lines : most) + shape->n) * (double)plan->k * 2;
    return shape->around +
           together(computing, fetched / (1e6 * shape->cache), sb_gemm16_bytes(plan) / (1e6 * shape->memory));
}

static double cost(const sb_gemm_schedule *self, const sb_cuda_device *device, const sb_gemm_plan *plan) {
    return cost_of(self->shape, device, plan, false);
}

/* ---- loading ---- */

static unsigned layouts_of(const shape *shape) {
    return has(shape, MAPPED)      ? SB_GEMM_LAYOUTS_MN_MAJOR
           : has(shape, TURNS)     ? SB_GEMM_LAYOUTS_A_K_MAJOR
           : has(shape, B_K_MAJOR) ? SB_GEMM_LAYOUTS_B_K_MAJOR
                                   : SB_GEMM_LAYOUTS_ALL;
}

static sb_status load(const sb_gemm_schedule *self, sb_cuda_device *device, sb_error *error) {
    const shape *shape = self->shape;
    return has_hopper_code(device)
               ? sb_gemm16_load(device, shape->modules, sizeof(sb_gemm16_hopper), layouts_of(shape), error)
               : SB_OK;
}

/* ---- launching ---- */

typedef sb_tensor_boxes boxes;

/* An operand of the kernel, of which `part` lines are fetched at once, for all the k of a stage; or of 64 lines
 * `k_part` k. Where a stage has several boxes, k are counted in them, so that one copy brings all: copies are begun one
 * in some 80 cycles (measured), however little each brings. */
static sb_status encode_operand(sb_cuda_device *device, const sb_gemm_plan *plan, const shape *shape,
                                const sb_gemm16 *product, const sb_gemm16_operand *operand, int64_t lines,
                                layout layout, int part, int k_part, sb_tensor_map *map, sb_error *error) {
    const void *data = operand->data;
    int64_t k = plan->k, line = operand->line_stride, step = operand->k_stride, whole = k / BOX;
    int64_t in = operand->batch_stride, out = operand->outer_stride;
    int64_t inner = inner_of(product, operand), outer = outer_of(product, operand);
    const boxes mn_major = {4, data, {lines, k, inner, outer}, {1, step, in, out}, {BOX, k_part, 1, 1}};
    const boxes one = {4, data, {k, lines, inner, outer}, {1, line, in, out}, {BOX, part, 1, 1}};
    /* Of the groups of a row map, in chunks of 64 lines. */
    const boxes group = {4, data, {BOX, k, lines / BOX, inner}, {1, step, BOX, in}, {BOX, 16, part / BOX, 1}};
    const boxes several = {.rank = outer > 1 ? 5 : 4,
                           .data = data,
                           .extents = {BOX, lines, whole, inner, outer},
                           .steps = {1, line, BOX, in, out},
                           .box = {BOX, part, shape->boxes, 1, 1}};
    const boxes *chosen = has(shape, MAPPED)   ? &group
                          : layout == MN_MAJOR ? &mn_major
                          : shape->boxes == 1  ? &one
                                               : &several;
    return sb_tensor_map_encode(device, plan->dtype, chosen, map, error);
}

/* B with its gates and values, of which eights take turns; `part` lines are fetched at once. */
static sb_status encode_stacked(sb_cuda_device *device, const sb_gemm_plan *plan, const shape *shape, int part,
                                sb_tensor_map *map, sb_error *error) {
    sb_gemm16 product;
    sb_gemm16_describe(plan, &product);
    const sb_gemm16_operand *b = &product.b;
    bool alternate = product.gate == SB_GATE_INTERLEAVED;
    int64_t batches = b->batch_stride != 0 ? plan->batches : 1, eights = plan->n / 8;
    /* From a gate, or value, to the next one, from a gate to its value, and to the eighth gate behind. */
    int64_t line = alternate ? 2 * b->line_stride : b->line_stride;
    int64_t value = alternate ? b->line_stride : plan->n * b->line_stride, eight = 8 * line;
    const boxes one = {.rank = 5,
                       .data = b->data,
                       .extents = {plan->k, 8, 2, eights, batches},
                       .steps = {1, line, value, eight, b->batch_stride},
                       .box = {BOX, 8, 2, part / 16, 1}};
    const boxes several = {.rank = 5,
                           .data = b->data,
                           .extents = {BOX, 8, 2, eights, plan->k / BOX},
                           .steps = {1, line, value, eight, BOX},
                           .box = {BOX, 8, 2, part / 16, shape->boxes}};
    return sb_tensor_map_encode(device, plan->dtype, shape->boxes == 1 ? &one : &several, map, error);
}

static bool stores_pairs(const sb_gemm16_hopper *p) {
    const sb_gemm16_output *c = &p->product.c;
    size_t element = c->dtype == SB_F32 ? 4 : 2;
    return p->column_stride == 1 && p->columns % 2 == 0 && (p->rows == 1 || p->row_stride % 2 == 0) &&
           (p->product.batches == 1 || c->batch_stride % 2 == 0) && (uintptr_t)c->data % (2 * element) == 0;
}

static int threads_of(const shape *shape) {
    return shape->rows * 2 + 128;
}

/* Behind the stages: the warpgroups' rooms for results, which tiles of fewer than 64 columns need where results are turned; and what
 * wgmma, which reads all rows and columns of a tile whether they were fetched or not, reads behind the last stage. */
static int room_bytes(const shape *shape, const sb_gemm16_hopper *p) {
    int room = shape->n >= BOX                 ? shape->rows / 64 * ROOM_BYTES
               : p->storing & SB_GEMM16_TURNED ? (shape->n > 16 ? shape->n : 16) * 128
                                               : 0;
    int a_end = (shape->boxes - 1) * p->a_box_bytes + shape->rows * TILE_K * 2;
    int b_end = p->stage_bytes - p->b_box_bytes + shape->n * TILE_K * 2;
    int end = a_end > b_end ? a_end : b_end;
    return end - p->stage_bytes > room ? end - p->stage_bytes : room;
}

static unsigned shared_bytes(const shape *shape, const sb_gemm16_hopper *p) {
    return (unsigned)(p->stages * p->stage_bytes + room_bytes(shape, p) + ALIGNMENT);
}

/* Lines that a tile fetches of a factor that has `there`. */
static int lines_to_fetch(int64_t there, int most, layout layout) {
    if (layout == MN_MAJOR)
        return (most + BOX - 1) / BOX * BOX;
    int64_t eights = sb_gemm_divide_up(there, 8);
    return eights * 8 < most ? (int)eights * 8 : most;
}

/* The ring of stages. Only those rows and columns are fetched that there are: the tensor cores multiply whatever lies
 * behind them, and no result is kept of it. In tiles of 64 rows stages are smaller then, elsewhere their places stay. */
static void fill_ring(const shape *shape, const layout layouts[2], bool stores, sb_gemm16_hopper *p) {
    int64_t rows = p->rows < p->tile_rows ? p->rows : p->tile_rows;
    bool fetches_all = shape->cluster > 1 || has(shape, MAPPED);
    int a_lines = fetches_all ? shape->rows : lines_to_fetch(rows, shape->rows, layouts[0]);
    bool fetches_columns = fetches_all || p->stacked == 2 || !stores;
    int b_lines = lines_to_fetch(fetches_columns ? shape->n : p->columns, shape->n, layouts[1]);
    p->a_box_bytes = a_lines * TILE_K * 2;
    p->b_box_bytes = b_lines * TILE_K * 2;
    int whole = (shape->rows + lines_to_fetch(shape->n, shape->n, layouts[1])) * TILE_K * 2;
    p->stage_bytes = shape->boxes * (shape->rows == 64 ? p->a_box_bytes + p->b_box_bytes : whole);
    int fitting = (SHARED_BYTES - room_bytes(shape, p) - ALIGNMENT) / p->stage_bytes;
    p->stages = fitting < shape->stages ? fitting : shape->stages;
}

/* Where the last of several tiles begins, so that it ends with the matrix: with an eighth line where 64 lie side by side. */
static int32_t last_first(int64_t lines, int64_t of_tile, layout layout) {
    if (lines < of_tile)
        return INT32_MAX;
    int64_t last = lines - of_tile;
    return (int32_t)(layout == MN_MAJOR ? sb_gemm_divide_up(last, 8) * 8 : last);
}

/* What two tiles compute is written twice, the same: not where results are added to what there is, go elsewhere than to C, or are
 * read as pairs of eights. Groups of a row map are fetched from a 64th line on. */
static void fill_last_tiles(const shape *shape, const layout layouts[2], bool stores, sb_gemm16_hopper *p) {
    const sb_gemm16 *product = &p->product;
    const void *residual = product->epilogue.residual.data;
    bool once = !stores || has(shape, MAPPED) || p->stacked != 0 || product->gate != SB_GATE_NONE ||
                product->c.accumulate || (residual != NULL && residual == product->c.data);
    p->last_row = once ? INT32_MAX : last_first(p->rows, (int64_t)p->tile_rows * shape->cluster, layouts[0]);
    p->last_column = once ? INT32_MAX : last_first(p->columns, shape->n, layouts[1]);
}

/* Weights of which each tile has its own: the matrix that goes through the caches once, and is asked for ahead. */
static void fill_stream(const shape *shape, sb_gemm16_hopper *p) {
    bool swapped = has(shape, SWAPPED);
    const sb_gemm16 *product = &p->product;
    const sb_gemm16_operand *weights = &product->b;
    bool is_repeated = inner_of(product, weights) * outer_of(product, weights) != product->batches;
    if (shape->rows > 64 || is_repeated || (swapped ? p->column_tiles : p->row_tiles) > 1)
        return;
    p->streams = swapped ? 1 : 2;
    int lines = swapped ? p->tile_rows : shape->n;
    int blocks = AHEAD_BYTES / (lines * TILE_K * 2);
    p->ahead = blocks < p->k_blocks ? blocks : p->k_blocks;
}

static void fill(const sb_cuda_device *device, const shape *shape, const sb_gemm_plan *plan, sb_gemm16_hopper *p) {
    const sb_gemm16 *product = &p->product;
    bool swapped = has(shape, SWAPPED);
    p->swapped = swapped;
    int64_t b_columns = product->gate != SB_GATE_NONE ? 2 * product->n : product->n;
    p->rows = swapped ? b_columns : product->m;
    p->columns = swapped ? product->m : b_columns;
    bool takes_turns = product->gate == SB_GATE_STACKED || (has(shape, TURNS) && product->gate != SB_GATE_NONE);
    p->stacked = swapped && product->gate != SB_GATE_NONE ? 1 : takes_turns ? 2 : 0;
    p->used_rows = swapped ? product->used_n : product->used_m;
    p->used_columns = swapped ? product->used_m : product->used_n;
    p->row_stride = swapped ? product->c.column_stride : product->c.row_stride;
    p->column_stride = swapped ? product->c.row_stride : product->c.column_stride;
    p->tile_rows = rows_of(shape, device, plan);
    p->row_tiles = (int32_t)sb_gemm_divide_up(p->rows, p->tile_rows * shape->cluster);
    p->column_tiles = (int32_t)sb_gemm_divide_up(p->columns, shape->n);
    p->tiles = (int32_t)((int64_t)p->row_tiles * p->column_tiles * product->batches);
    p->storing = (product->gate == SB_GATE_NONE && !product->has_epilogue ? SB_GEMM16_PLAIN : 0) |
                 (stores_in_bulk(shape, product) ? SB_GEMM16_BULK : 0) |
                 (turns_results(shape, plan, product) ? SB_GEMM16_TURNED : 0) |
                 (product->c.dtype == SB_F32 ? SB_GEMM16_WIDE : 0) | (stores_pairs(p) ? SB_GEMM16_PAIRS : 0);
}

/* How copies of an operand count batches. */
static sb_gemm16_steps steps_of(const shape *shape, const sb_gemm16 *product, const sb_gemm16_operand *operand,
                                layout layout) {
    bool has_outer = outer_of(product, operand) > 1;
    return (sb_gemm16_steps){.inner = operand->batch_stride != 0,
                             .outer = has_outer,
                             .five = has_outer && shape->boxes > 1 && layout == K_MAJOR};
}

/* The kernel's parameters but for where results go, if it stores them, and the layouts of its A and B. */
static sb_status fill_factors(sb_cuda_device *device, const shape *shape, const sb_gemm_plan *plan, bool stores,
                              sb_gemm16_hopper *p, layout layouts[2], sb_error *error) {
    sb_gemm16_describe(plan, &p->product);
    fill(device, shape, plan, p);
    bool swapped = has(shape, SWAPPED);
    const sb_gemm16_operand *a = swapped ? &p->product.b : &p->product.a;
    const sb_gemm16_operand *b = swapped ? &p->product.a : &p->product.b;
    layouts[0] = layout_of(&p->product, a, p->rows);
    layouts[1] = layout_of(&p->product, b, p->columns);
    fill_ring(shape, layouts, stores, p);
    p->k_blocks = (int32_t)blocks_of(shape, plan);
    p->inner = (int32_t)p->product.inner;
    p->a_steps = steps_of(shape, &p->product, a, layouts[0]);
    p->b_steps = steps_of(shape, &p->product, b, layouts[1]);
    fill_stream(shape, p);
    fill_last_tiles(shape, layouts, stores, p);
    int a_part = p->a_box_bytes / (TILE_K * 2), b_part = p->b_box_bytes / (TILE_K * 2);
    if (p->stacked == 1)
        SB_TRY(encode_stacked(device, plan, shape, a_part, &p->a, error));
    else
        SB_TRY(encode_operand(device, plan, shape, &p->product, a, p->rows, layouts[0], a_part, TILE_K, &p->a, error));
    if (p->stacked == 2)
        return encode_stacked(device, plan, shape, shape->n / shape->cluster, &p->b, error);
    int sharers = has(shape, MAPPED) ? 1 : shape->cluster;
    return encode_operand(device, plan, shape, &p->product, b, p->columns, layouts[1], b_part / sharers,
                          TILE_K / sharers, &p->b, error);
}

/* What a series of tasks can take over: tiles of 64 by 8 of weights' lines, with one matrix of each, whose k are all used. */
static sb_cuda_form form_of(const shape *shape, const sb_gemm_plan *plan, const sb_gemm16_hopper *p,
                            bool a_is_k_major) {
    const sb_gemm16 *product = &p->product;
    bool can = has(shape, SWAPPED) && shape->n == 8 && a_is_k_major && product->batches == 1 &&
               !product->c.accumulate && product->used_k == NULL && p->streams == 1 && p->column_tiles == 1;
    return can ? (sb_cuda_form){SB_CUDA_FORM_PRODUCT, plan->dtype == SB_F16, 0} : (sb_cuda_form){0};
}

/* Gives the kernel to the queue; `parameters` are the kernel's, of which `p` may be but a part. */
static sb_status give(const shape *shape, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                      const sb_cuda_kernel *kernel, sb_cuda_form form, const sb_gemm16_hopper *p,
                      const void *parameters, sb_error *error) {
    const sb_cuda_device *device = queue->stream->device;
    int clusters = p->tiles < at_once(device, shape) ? p->tiles : at_once(device, shape);
    sb_cuda_range ranges[SB_GEMM_RANGES];
    sb_cuda_task task = {
        .kind = SB_CUDA_KERNEL,
        .step = step,
        .kernel = {.kernel = kernel,
                   .form = form,
                   .grid = {(unsigned)(clusters * shape->cluster), 1, 1},
                   .block = {(unsigned)threads_of(shape), 1, 1},
                   .shared_bytes = shared_bytes(shape, p),
                   .parameters = parameters,
                   .range_count = sb_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    return sb_cuda_launch(queue, &task, error);
}

/* Where results go by TMA. */
static sb_status encode_output(sb_cuda_device *device, const sb_gemm_plan *plan, sb_gemm16_hopper *p, sb_error *error) {
    const sb_gemm16_output *c = &p->product.c;
    boxes boxes = {4,
                   c->data,
                   {p->product.n, p->product.m, 1, plan->batches},
                   {1, c->row_stride, 0, c->batch_stride},
                   {BOX, 64, 1, 1}};
    return p->storing & SB_GEMM16_BULK ? sb_tensor_map_encode(device, plan->dtype, &boxes, &p->c, error) : SB_OK;
}

static sb_status launch(const sb_gemm_schedule *self, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                        sb_error *error) {
    const shape *shape = self->shape;
    sb_cuda_device *device = queue->stream->device;
    const sb_cuda_kernel *kernel;
    sb_gemm16_fused given;
    sb_gemm16_hopper *p = &given.product;
    layout layouts[2];
    *p = (sb_gemm16_hopper){0};
    if (plan->fused != NULL)
        given.program = plan->fused->program;
    SB_TRY(fill_factors(device, shape, plan, true, p, layouts, error));
    SB_TRY(encode_output(device, plan, p, error));
    SB_TRY(sb_gemm16_find(device, plan->fused != NULL ? shape->fused : shape->modules,
                          plan->fused != NULL ? sizeof given : sizeof *p, plan->dtype, layouts[0] == MN_MAJOR,
                          layouts[1] == MN_MAJOR, &kernel, error));
    return give(shape, queue, step, plan, kernel, form_of(shape, plan, p, layouts[0] == K_MAJOR), p, &given, error);
}

/* ---- logits ---- */

/* Times of the first by its 7.49 ms for 4096 x 4096 x 151,936 on an H200; those of the second are no more than near. */
static const shape logits_shapes[] = {
    {SB_GEMM_MODULES("gemm16_logits_128x256"), {NULL}, 128, 256, 1, 4, 2, 0, 0.812, 2.77, 0, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_logits_64x256"), {NULL}, 64, 256, 1, 32, 1, 0, 0.480, 2.77, 0, 9.0, 4.20},
};
#define LOGITS_SHAPES (int)(sizeof logits_shapes / sizeof logits_shapes[0])

static const unsigned logits_layouts = 1u << 0 | 1u << 1; /* A is K-major */

sb_status sb_gemm16_logits_load(sb_cuda_device *device, sb_error *error) {
    for (int i = 0; i < LOGITS_SHAPES && has_hopper_code(device); i++)
        SB_TRY(sb_gemm16_load(device, logits_shapes[i].modules, sizeof(sb_gemm16_logits), logits_layouts, error));
    return SB_OK;
}

bool sb_gemm16_logits_can(sb_cuda_device *device, const sb_gemm_plan *plan) {
    sb_gemm16 product;
    if (refuses_plan(&shapes[0], device, plan) != NULL)
        return false;
    sb_gemm16_describe(plan, &product);
    return layout_of(&product, &product.a, plan->m) == K_MAJOR;
}

sb_status sb_gemm16_logits_launch(const sb_cuda_queue *queue, const sb_gemm_plan *plan, const sb_logp_reduce *reduce,
                                  sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    const shape *shape = &logits_shapes[0];
    for (int i = 1; i < LOGITS_SHAPES; i++)
        shape = cost_of(&logits_shapes[i], device, plan, true) < cost_of(shape, device, plan, true) ? &logits_shapes[i]
                                                                                                    : shape;
    sb_gemm16_logits p = {.reduce = *reduce};
    const sb_cuda_kernel *kernel;
    layout layouts[2];
    SB_TRY(fill_factors(device, shape, plan, false, &p.product, layouts, error));
    SB_TRY(
        sb_gemm16_find(device, shape->modules, sizeof p, plan->dtype, false, layouts[1] == MN_MAJOR, &kernel, error));
    return give(shape, queue, -1, plan, kernel, (sb_cuda_form){0}, &p.product, &p, error);
}

/* ---- convolutions ---- */

/* Times are those of the products of these shapes: a map of pixels brings as many bytes as a box. */
static const shape conv_shapes[] = {
    {SB_GEMM_MODULES("gemm16_conv_128x256"), {NULL}, 128, 256, 1, 4, 2, B_K_MAJOR, 0.778, 3.28, 0, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_conv_128x192"), {NULL}, 128, 192, 1, 4, 1, B_K_MAJOR, 0.600, 2.73, 0, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_conv_128x128"), {NULL}, 128, 128, 1, 6, 1, B_K_MAJOR, 0.501, 3.32, 0, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_conv_128x64"), {NULL}, 128, 64, 1, 8, 1, B_K_MAJOR, 0.174, 1.69, 0, 7.6, 4.20},
    {SB_GEMM_MODULES("gemm16_conv_64x64"), {NULL}, 64, 64, 2, 32, 1, B_K_MAJOR, 0.161, 1.68, 0, 9.0, 4.20},
    {SB_GEMM_MODULES("gemm16_conv_64x32"), {NULL}, 64, 32, 2, 32, 1, B_K_MAJOR, 0.103, 1.18, 0, 9.0, 4.20},
};
#define CONV_SHAPES (int)(sizeof conv_shapes / sizeof conv_shapes[0])

bool sb_gemm16_has_hopper_code(sb_cuda_device *device) {
    return has_hopper_code(device);
}

static _Atomic int forced_conv = -1;

int sb_gemm16_conv_shapes(void) {
    return CONV_SHAPES;
}

void sb_gemm16_conv_force(int index) {
    atomic_store(&forced_conv, index);
}

/* Several boxes are in a stage only where k ends with a box. */
static bool takes_conv(const shape *shape, const sb_gemm_plan *plan) {
    return shape->boxes == 1 || plan->k % TILE_K == 0;
}

static int choose_conv(const sb_cuda_device *device, const sb_gemm_plan *plan) {
    int chosen = 0, forced = atomic_load(&forced_conv);
    if (forced >= 0 && takes_conv(&conv_shapes[forced], plan))
        return forced;
    for (int i = 1; i < CONV_SHAPES; i++) {
        if (takes_conv(&conv_shapes[i], plan) &&
            cost_of(&conv_shapes[i], device, plan, true) < cost_of(&conv_shapes[chosen], device, plan, true))
            chosen = i;
    }
    return chosen;
}

sb_status sb_gemm16_conv_fill(sb_cuda_device *device, const sb_gemm_plan *plan, sb_gemm16_conv *p, int *chosen,
                              sb_error *error) {
    layout layouts[2];
    *chosen = choose_conv(device, plan);
    SB_TRY(fill_factors(device, &conv_shapes[*chosen], plan, true, &p->product, layouts, error));
    return encode_output(device, plan, &p->product, error);
}

sb_status sb_gemm16_conv_give(const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan, const sb_gemm16_conv *p,
                              int chosen, sb_error *error) {
    const shape *shape = &conv_shapes[chosen];
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_gemm16_find(queue->stream->device, shape->modules, sizeof *p, plan->dtype, false, false, &kernel, error));
    return give(shape, queue, step, plan, kernel, (sb_cuda_form){0}, &p->product, p, error);
}

#define SCHEDULE(index, title)                                                                                         \
    { .name = title, .shape = &shapes[index], .load = load, .refuses = refuses, .cost = cost, .launch = launch }
const sb_gemm_schedule sb_gemm_hopper[SB_GEMM_HOPPER_SCHEDULES] = {
    SCHEDULE(0, "tile-128x256"),    SCHEDULE(1, "tile-128x224"),    SCHEDULE(2, "tile-128x192"),
    SCHEDULE(3, "tile-128x128"),    SCHEDULE(4, "tile-128x112"),    SCHEDULE(5, "tile-128x96"),
    SCHEDULE(6, "tile-128x64"),     SCHEDULE(7, "tile-64x128"),     SCHEDULE(8, "tile-64x112"),
    SCHEDULE(9, "tile-64x64"),      SCHEDULE(10, "tile-64x32"),     SCHEDULE(11, "tile-64x16"),
    SCHEDULE(12, "swapped-64x64"),  SCHEDULE(13, "swapped-64x32"),  SCHEDULE(14, "swapped-64x16"),
    SCHEDULE(15, "swapped-64x8"),   SCHEDULE(16, "mapped-128x256"), SCHEDULE(17, "mapped-128x128"),
    SCHEDULE(18, "tile-128x160"),   SCHEDULE(19, "tile-128x144"),   SCHEDULE(20, "tile-128x80"),
    SCHEDULE(21, "tile-64x96"),     SCHEDULE(22, "tile-64x80"),     SCHEDULE(23, "swapped-64x192"),
    SCHEDULE(24, "swapped-64x160"), SCHEDULE(25, "swapped-64x144"), SCHEDULE(26, "swapped-64x128"),
    SCHEDULE(27, "swapped-64x112"), SCHEDULE(28, "swapped-64x96"),  SCHEDULE(29, "swapped-64x80"),
    SCHEDULE(30, "turns-128x128"),
};
_Static_assert(sizeof shapes / sizeof shapes[0] == SB_GEMM_HOPPER_SCHEDULES, "a schedule for each shape");
