/* The schedules by TMA and wgmma, of Hopper alone: matrices whose elements lie side by side along one dimension, with
 * addresses and steps that are multiples of 16 bytes. What else there is, the general ones compute. */
#include "base/error.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/gemm16_hopper_shapes.h"
#include "cuda/contraction/gemm16_normed.h"
#include "cuda/contraction/tensor_map.h"

#define BOX 64 /* elements of 128 bytes, what the swizzle spreads over the banks */
/* A warpgroup's room for results: gemm16_hopper.cuh. */
#define ROOM_BYTES 16384
#define ALIGNMENT 1024
/* Columns of tiles whose k may end where memory says. */
#define MOST_OPEN 128
/* Of a block's weights, what it asks for before the kernel ahead has ended. */
#define AHEAD_BYTES 65536
/* The share of what memory can give that blocks ask for at first, together. Decoding of the 1B shape on an H200: 963, 975 and 965 tokens a
 * second with 0.74, 0.85 and 0.96, 924 with all at once. */
#define PACE 0.85
/* Rows of products that do so: of 16 a step of decoding takes longer by it. */
#define MOST_PACED 8
/* What a block may have of shared memory, but for its barriers. */
#define SHARED_BYTES (227 * 1024 - 1024)

enum {
    SWAPPED = SB_GEMM16_SWAPPED,
    B_K_MAJOR = SB_GEMM16_B_K_MAJOR,
    MAPPED = SB_GEMM16_MAPPED,
    TURNS = SB_GEMM16_TURNS,
    BOTH_K_MAJOR = SB_GEMM16_BOTH_K_MAJOR,
    SWAPPED_K_MAJOR = SB_GEMM16_SWAPPED | SB_GEMM16_BOTH_K_MAJOR,
    ROW = SB_GEMM16_ROW,
};

/* `stages` are the most there are in tiles of 64 rows, which have as many as fit. Times are fitted to what each shape took on an
 * H200 for some hundred products (bench/gemm16_schedules.py, which prints these lines): to the times themselves, by which shapes that
 * nothing was fitted to are judged as well. What a product takes around its tiles and a tile around its k is told apart by products of
 * short k and many tiles alone; those of tiles of 128 rows were fitted to some of them, and otherwise to what was there before. */
static const sb_gemm16_shape shapes[] = {
    {SB_GEMM_MODULES("gemm16_128x256"), SB_GEMM_MODULES("gemm16_fused_128x256"), 128, 256, 1, 4, 2, 0, 0.280, 3.18,
     2.86, 11.0, 3.52},
    {SB_GEMM_MODULES("gemm16_128x224"), {NULL}, 128, 224, 1, 4, 1, 0, 0.319, 2.04, 1.83, 11.1, 3.87},
    {SB_GEMM_MODULES("gemm16_128x192"), SB_GEMM_MODULES("gemm16_fused_128x192"), 128, 192, 1, 4, 1, 0, 0.300, 2.66,
     1.23, 11.6, 3.86},
    {SB_GEMM_MODULES("gemm16_128x128"), SB_GEMM_MODULES("gemm16_fused_128x128"), 128, 128, 1, 6, 1, 0, 0.240, 2.18,
     1.23, 13.7, 4.14},
    {SB_GEMM_MODULES("gemm16_128x112"), {NULL}, 128, 112, 1, 6, 1, B_K_MAJOR, 0.243, 1.67, 1.14, 15.4, 3.97},
    {SB_GEMM_MODULES("gemm16_128x96"), {NULL}, 128, 96, 1, 6, 1, B_K_MAJOR, 0.200, 1.46, 1.31, 15.0, 3.73},
    {SB_GEMM_MODULES("gemm16_128x64"), SB_GEMM_MODULES("gemm16_fused_128x64"), 128, 64, 1, 8, 1, 0, 0.140, 1.38, 1.17,
     13.7, 4.06},
    {SB_GEMM_MODULES("gemm16_64x112"), {NULL}, 64, 112, 2, 32, 1, B_K_MAJOR, 0.139, 2.16, 0.93, 14.5, 3.89},
    {SB_GEMM_MODULES("gemm16_64x64"), SB_GEMM_MODULES("gemm16_fused_64x64"), 64, 64, 2, 32, 1, B_K_MAJOR, 0.051, 1.45,
     1.48, 14.3, 4.30},
    {SB_GEMM_MODULES("gemm16_64x32"), SB_GEMM_MODULES("gemm16_fused_64x32"), 64, 32, 2, 32, 1, B_K_MAJOR, 0.059, 1.29,
     1.31, 16.1, 4.48},
    {SB_GEMM_MODULES("gemm16_64x16"), SB_GEMM_MODULES("gemm16_fused_64x16"), 64, 16, 4, 32, 1, B_K_MAJOR, 0.044, 2.31,
     0.33, 19.2, 4.01},
    {SB_GEMM_MODULES("gemm16_64x64"), SB_GEMM_MODULES("gemm16_fused_64x64"), 64, 64, 2, 32, 1, SWAPPED | B_K_MAJOR,
     0.029, 1.67, 2.43, 13.8, 4.63},
    {SB_GEMM_MODULES("gemm16_64x32"), SB_GEMM_MODULES("gemm16_fused_64x32"), 64, 32, 2, 32, 1, SWAPPED | B_K_MAJOR,
     0.053, 1.86, 1.31, 12.7, 4.70},
    {SB_GEMM_MODULES("gemm16_64x16"), SB_GEMM_MODULES("gemm16_fused_64x16"), 64, 16, 4, 32, 1, SWAPPED | B_K_MAJOR,
     0.047, 2.39, 0.79, 13.7, 4.61},
    {SB_GEMM_MODULES("gemm16_64x8"), SB_GEMM_MODULES("gemm16_fused_64x8"), 64, 8, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.065,
     2.79, 0.26, 17.1, 3.30},
    {SB_GEMM_MODULES("gemm16_mapped_128x256"), {NULL}, 128, 256, 1, 4, 2, MAPPED, 0.560, 3.28, 0.80, 9.9, 4.20},
    {SB_GEMM_MODULES("gemm16_mapped_128x128"), {NULL}, 128, 128, 1, 6, 1, MAPPED, 0.360, 3.32, 0.80, 12.0, 4.20},
    {SB_GEMM_MODULES("gemm16_128x160"), {NULL}, 128, 160, 1, 5, 1, B_K_MAJOR, 0.305, 2.80, 1.09, 13.0, 3.98},
    {SB_GEMM_MODULES("gemm16_128x144"), {NULL}, 128, 144, 1, 5, 1, B_K_MAJOR, 0.280, 2.68, 1.15, 13.7, 4.05},
    {SB_GEMM_MODULES("gemm16_128x80"), {NULL}, 128, 80, 1, 7, 1, B_K_MAJOR, 0.186, 1.12, 1.59, 14.5, 4.14},
    {SB_GEMM_MODULES("gemm16_64x96"), {NULL}, 64, 96, 2, 32, 1, B_K_MAJOR, 0.088, 2.30, 1.60, 13.8, 4.11},
    {SB_GEMM_MODULES("gemm16_64x80"), {NULL}, 64, 80, 2, 32, 1, B_K_MAJOR, 0.079, 1.49, 1.52, 14.0, 3.98},
    {SB_GEMM_MODULES("gemm16_64x192"), {NULL}, 64, 192, 1, 32, 1, SWAPPED | B_K_MAJOR, 0.133, 0.20, 4.39, 16.9, 5.00},
    {SB_GEMM_MODULES("gemm16_64x144"), {NULL}, 64, 144, 1, 32, 1, SWAPPED | B_K_MAJOR, 0.092, 0.51, 3.62, 14.8, 5.00},
    {SB_GEMM_MODULES("gemm16_64x112"), {NULL}, 64, 112, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.096, 0.59, 3.27, 13.9, 5.00},
    {SB_GEMM_MODULES("gemm16_64x96"), {NULL}, 64, 96, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.076, 0.98, 3.04, 13.6, 5.00},
    {SB_GEMM_MODULES("gemm16_64x80"), {NULL}, 64, 80, 2, 32, 1, SWAPPED | B_K_MAJOR, 0.051, 0.77, 3.23, 13.4, 4.60},
    {SB_GEMM_MODULES("gemm16_turns_128x128"), {NULL}, 128, 128, 1, 6, 2, TURNS, 0.315, 3.44, 1.74, 14.0, 4.00},
    {SB_GEMM_MODULES("gemm16_quad_64x96"), {NULL}, 64, 96, 1, 32, 4, SWAPPED_K_MAJOR, 0.106, 0.83, 2.54, 15.2, 3.78},
    {SB_GEMM_MODULES("gemm16_quad_64x112"), {NULL}, 64, 112, 1, 32, 4, SWAPPED_K_MAJOR, 0.099, 0.20, 3.63, 15.1, 3.45},
    {SB_GEMM_MODULES("gemm16_quad_64x144"), {NULL}, 64, 144, 1, 32, 4, SWAPPED_K_MAJOR, 0.120, 0.20, 3.63, 15.6, 3.30},
    /* Those of swapped tiles of 64 by 16, but for half a microsecond: not fitted. */
    {SB_GEMM_MODULES("gemm16_row_64x8"), SB_GEMM_MODULES("gemm16_fused_row_64x8"), 64, 8, 4, 32, 1,
     SWAPPED | B_K_MAJOR | ROW, 0.047, 1.89, 0.79, 13.7, 4.61},
};

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

bool sb_gemm16_can_fetch(const sb_gemm_plan *plan, bool is_b) {
    sb_gemm16 product;
    sb_gemm16_describe(plan, &product);
    return layout_of(&product, is_b ? &product.b : &product.a, is_b ? sb_gemm16_b_lines(plan) : plan->m) != NEITHER;
}

/* Why it cannot compute gates, or those before their values; NULL: it can. */
static const char *refuses_gates(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product,
                                 layout b) {
    if (plan->gemm->gate == SB_GATE_NONE)
        return NULL;
    if (sb_gemm16_has(shape, MAPPED | BOTH_K_MAJOR) || (!sb_gemm16_has(shape, SWAPPED) && shape->n % 32 != 0))
        return "it has no gates";
    bool takes_turns = plan->gemm->gate == SB_GATE_STACKED || sb_gemm16_has(shape, SWAPPED | TURNS);
    if (takes_turns && (b != K_MAJOR || plan->n % 8 != 0 || !sb_gemm16_is_step(plan->n * product->b.line_stride) ||
                        plan->steps.rank > 1 || (shape->boxes > 1 && product->b.batch_stride != 0)))
        return sb_gemm16_has(shape, SWAPPED | TURNS)
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
static bool stores_in_bulk(const sb_gemm16_shape *shape, const sb_gemm16 *product) {
    bool gates =
        sb_gemm16_has(shape, TURNS) || (product->gate == SB_GATE_STACKED && sb_gemm16_stores_gates_in_bulk(shape));
    return !sb_gemm16_has(shape, SWAPPED) && (product->gate == SB_GATE_NONE || gates) && has_eights(product);
}

/* Whether f32 results can, of two warpgroups, whose boxes have 32 of their columns. */
static bool stores_wide_in_bulk(const sb_gemm16_shape *shape, const sb_gemm16 *product) {
    const sb_gemm16_output *c = &product->c;
    return shape->rows == 128 && shape->n % BOX == 0 && !sb_gemm16_has(shape, TURNS | MAPPED) &&
           product->gate == SB_GATE_NONE && c->dtype == SB_F32 && c->data != NULL && c->column_stride == 1 &&
           product->n % 4 == 0 && (uintptr_t)c->data % 16 == 0 &&
           (product->m == 1 || sb_gemm16_is_step(2 * c->row_stride)) &&
           (product->batches == 1 || sb_gemm16_is_step(2 * c->batch_stride));
}

/* Whether results go through shared memory, where they are turned: behind nodes, and where a thread would store dozens of them by two
 * bytes. 64 x 160 took 5 us so. */
static bool turns_results(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product) {
    return sb_gemm16_has(shape, SWAPPED) && (plan->fused != NULL || shape->n >= BOX) && product->gate == SB_GATE_NONE &&
           has_eights(product);
}

/* Why it cannot compute the nodes behind; NULL: it can, or there are none. Tiles of 128 rows compute them in bulk, for an A
 * of rows. */
static const char *refuses_nodes(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product,
                                 layout a) {
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
static const char *refuses_turns(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, const sb_gemm16 *product,
                                 layout a) {
    if (!sb_gemm16_has(shape, TURNS))
        return NULL;
    if (a != K_MAJOR)
        return "A must be K-major";
    if (plan->used.k != NULL)
        return "its k ends where each run says, which tiles taken in turns do not look up";
    return stores_in_bulk(shape, product) ? NULL : "C must be of 16 bits, its rows multiples of 16 bytes";
}

/* Why the copy engine cannot fetch A and B; NULL: it can. */
static const char *refuses_layouts(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, layout a, layout b) {
    if (a == NEITHER)
        return "A needs a stride of 1, and an address and other strides of multiples of 16 bytes";
    if (b == NEITHER)
        return "B needs a stride of 1, and an address and other strides of multiples of 16 bytes";
    if (sb_gemm16_has(shape, B_K_MAJOR) && (sb_gemm16_has(shape, SWAPPED) ? a : b) != K_MAJOR)
        return sb_gemm16_has(shape, SWAPPED) ? "A must be K-major" : "B must be K-major";
    if (sb_gemm16_has(shape, BOTH_K_MAJOR) && (a != K_MAJOR || b != K_MAJOR))
        return "A and B must be K-major";
    if (sb_gemm16_has(shape, MAPPED) && (a != MN_MAJOR || b != MN_MAJOR || plan->m % BOX != 0 || plan->n % BOX != 0))
        return "A and B must be MN-major, their rows and columns multiples of 64";
    return NULL;
}

static const char *refuses_extents(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    if (plan->group_count == 0)
        return "there is no k";
    if ((plan->device_groups != NULL) != sb_gemm16_has(shape, MAPPED))
        return sb_gemm16_has(shape, MAPPED) ? "it is for products with a row map"
                                            : "its k is in groups of 16 from 0, not in those of a row map";
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 4 || plan->k > INT32_MAX / 2 ||
        plan->batches > INT32_MAX / 2 ||
        (double)plan->m * (double)plan->n * (double)plan->batches / 512 > INT32_MAX / 2)
        return "an extent is more than 2^30, or there are more than 2^30 tiles";
    if (plan->steps.rank > (sb_gemm16_has(shape, MAPPED) ? 1 : 2))
        return "its batches have more steps than two";
    return shape->boxes > 1 && plan->k % SB_GEMM16_TILE_K != 0 ? "k must be a multiple of 64" : NULL;
}

/* The longest row that is kept in shared memory. */
#define MOST_ROW_BYTES 65536

/* Why it cannot keep the row; NULL: it can, or need not. */
static const char *refuses_row(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    if (!sb_gemm16_has(shape, ROW))
        return NULL;
    if (plan->m != 1 || plan->batches != 1)
        return "it is for one row of one batch";
    if (plan->k * 2 > MOST_ROW_BYTES)
        return "its row has more than 64 KiB";
    return plan->used.k != NULL ? "its k ends where each run says, which a row that is kept whole does not" : NULL;
}

static const char *refuses_plan(const sb_gemm16_shape *shape, sb_cuda_device *device, const sb_gemm_plan *plan) {
    if (!has_hopper_code(device))
        return "it needs kernels compiled for sm_90a, and a device of compute capability 9.0";
    const char *why = refuses_extents(shape, plan);
    if (why != NULL)
        return why;
    sb_gemm16 product;
    sb_gemm16_describe(plan, &product);
    layout a = layout_of(&product, &product.a, plan->m), b = layout_of(&product, &product.b, sb_gemm16_b_lines(plan));
    why = refuses_layouts(shape, plan, a, b);
    if (why == NULL)
        why = refuses_gates(shape, plan, &product, b);
    if (why == NULL)
        why = refuses_nodes(shape, plan, &product, a);
    if (why == NULL)
        why = refuses_turns(shape, plan, &product, a);
    if (why == NULL)
        why = refuses_row(shape, plan);
    if (why == NULL && plan->used.k != NULL && (shape->n > MOST_OPEN || sb_gemm16_has(shape, BOTH_K_MAJOR)))
        why = "its k ends where each run says, which tiles of more than 128 columns and those in fours do not look up";
    return why;
}

static const char *refuses(const sb_gemm_schedule *self, sb_cuda_device *device, const sb_gemm_plan *plan) {
    return refuses_plan(self->shape, device, plan);
}

/* What tiles of up to sixteen columns, and of 32 for as many rows, whose weights no other tile reads, take less among layers that follow
 * on each other than by themselves, beside the others. (With 64 x 32 for 2048 -> 3072 and 2048 -> 2048 of one row, the 1B shape's decoding
 * step took 863 us for 763; of 32 rows 882 by what is quickest alone and 817 with `swapped-64x32` for all.) */
#define LESS_IN_LAYERS 1.2

static double cost(const sb_gemm_schedule *self, const sb_cuda_device *device, const sb_gemm_plan *plan) {
    const sb_gemm16_shape *shape = self->shape;
    bool is_narrow = shape->n <= 16 && (plan->m <= shape->n || plan->fused != NULL);
    bool fits = shape->n == 32 && plan->m <= 32 && plan->m > 16;
    bool is_alone = sb_gemm16_has(shape, SWAPPED) && (is_narrow || fits);
    return sb_gemm16_shape_cost(shape, device, plan, false) - (is_alone ? LESS_IN_LAYERS : 0);
}

/* ---- loading ---- */

static unsigned layouts_of(const sb_gemm16_shape *shape) {
    return sb_gemm16_has(shape, MAPPED)         ? SB_GEMM_LAYOUTS_MN_MAJOR
           : sb_gemm16_has(shape, TURNS)        ? SB_GEMM_LAYOUTS_A_K_MAJOR
           : sb_gemm16_has(shape, BOTH_K_MAJOR) ? SB_GEMM_LAYOUTS_K_MAJOR
           : sb_gemm16_has(shape, B_K_MAJOR)    ? SB_GEMM_LAYOUTS_B_K_MAJOR
                                                : SB_GEMM_LAYOUTS_ALL;
}

static sb_status load(const sb_gemm_schedule *self, sb_cuda_device *device, sb_error *error) {
    const sb_gemm16_shape *shape = self->shape;
    return has_hopper_code(device)
               ? sb_gemm16_load(device, shape->modules, sizeof(sb_gemm16_hopper), layouts_of(shape), error)
               : SB_OK;
}

/* ---- launching ---- */

typedef sb_tensor_boxes boxes;

/* An operand of the kernel, of which `part` lines are fetched at once, for all the k of a stage; or of 64 lines
 * `k_part` k. Where a stage has several boxes, k are counted in them, so that one copy brings all: copies are begun one
 * in some 80 cycles (measured), however little each brings. */
static sb_status encode_operand(sb_cuda_device *device, const sb_gemm_plan *plan, const sb_gemm16_shape *shape,
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
    const boxes *chosen = sb_gemm16_has(shape, MAPPED) ? &group
                          : layout == MN_MAJOR         ? &mn_major
                          : shape->boxes == 1          ? &one
                                                       : &several;
    return sb_tensor_map_encode(device, plan->dtype, chosen, map, error);
}

/* B with its gates and values, of which eights take turns; `part` lines are fetched at once. */
static sb_status encode_stacked(sb_cuda_device *device, const sb_gemm_plan *plan, const sb_gemm16_shape *shape,
                                int part, sb_tensor_map *map, sb_error *error) {
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

static int threads_of(const sb_gemm16_shape *shape) {
    return shape->rows * 2 + 128;
}

/* Behind the stages: the warpgroups' rooms for results, which tiles of fewer than 64 columns need where results are turned; and what
 * wgmma, which reads all rows and columns of a tile whether they were fetched or not, reads behind the last stage. */
static int room_bytes(const sb_gemm16_shape *shape, const sb_gemm16_hopper *p) {
    int read = shape->rows * SB_GEMM16_TILE_K * 2;
    int row = SB_GEMM16_ROWS_BYTES(1, (int)sb_gemm_divide_up(p->product.k, BOX), shape->boxes) + 16 * 128;
    if (sb_gemm16_has(shape, ROW))
        return row > read ? row : read;
    int turned = p->storing & SB_GEMM16_TURNED ? (shape->n > 16 ? shape->n : 16) * 128 : 0;
    int sent = shape->n >= BOX ? shape->rows / 64 * ROOM_BYTES : 0;
    int room = turned > sent ? turned : sent;
    int a_end = (shape->boxes - 1) * p->a_box_bytes + shape->rows * SB_GEMM16_TILE_K * 2;
    int b_end = p->stage_bytes - p->b_box_bytes + shape->n * SB_GEMM16_TILE_K * 2;
    int end = a_end > b_end ? a_end : b_end;
    return end - p->stage_bytes > room ? end - p->stage_bytes : room;
}

static unsigned shared_bytes(const sb_gemm16_shape *shape, const sb_gemm16_hopper *p) {
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
static void fill_ring(const sb_gemm16_shape *shape, const layout layouts[2], bool stores, sb_gemm16_hopper *p) {
    int64_t rows = p->rows < p->tile_rows ? p->rows : p->tile_rows;
    bool fetches_all = shape->cluster > 1 || sb_gemm16_has(shape, MAPPED);
    int a_lines = fetches_all && shape->rows > 64 ? shape->rows : lines_to_fetch(rows, shape->rows, layouts[0]);
    bool fetches_columns = fetches_all || p->stacked == 2 || !stores;
    int b_lines =
        sb_gemm16_has(shape, ROW) ? 0 : lines_to_fetch(fetches_columns ? shape->n : p->columns, shape->n, layouts[1]);
    p->a_box_bytes = a_lines * SB_GEMM16_TILE_K * 2;
    p->b_box_bytes = b_lines * SB_GEMM16_TILE_K * 2;
    int whole = (shape->rows + lines_to_fetch(shape->n, shape->n, layouts[1])) * SB_GEMM16_TILE_K * 2;
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
static void fill_last_tiles(const sb_gemm16_shape *shape, const layout layouts[2], bool stores, sb_gemm16_hopper *p) {
    const sb_gemm16 *product = &p->product;
    const void *residual = product->epilogue.residual.data;
    bool once = !stores || sb_gemm16_has(shape, MAPPED) || p->stacked != 0 || product->gate != SB_GATE_NONE ||
                product->c.accumulate || (residual != NULL && residual == product->c.data);
    p->last_row = once ? INT32_MAX : last_first(p->rows, (int64_t)p->tile_rows * shape->cluster, layouts[0]);
    p->last_column = once ? INT32_MAX : last_first(p->columns, shape->n, layouts[1]);
}

/* Weights of which each tile has its own: the matrix that goes through the caches once, and is asked for ahead. */
static void fill_stream(const sb_cuda_device *device, const sb_gemm16_shape *shape, sb_gemm16_hopper *p) {
    bool swapped = sb_gemm16_has(shape, SWAPPED);
    const sb_gemm16 *product = &p->product;
    const sb_gemm16_operand *weights = &product->b;
    bool is_repeated = inner_of(product, weights) * outer_of(product, weights) != product->batches;
    if (shape->rows > 64 || is_repeated || (swapped ? p->column_tiles : p->row_tiles) > 1)
        return;
    p->streams = swapped ? 1 : 2;
    if (device->memory_rate > 0 && product->m <= MOST_PACED)
        p->pace = (int32_t)(shape->boxes * (swapped ? p->a_box_bytes : p->b_box_bytes) / (PACE * device->memory_rate));
    int lines = swapped ? p->tile_rows : shape->n;
    int blocks = AHEAD_BYTES / (lines * SB_GEMM16_TILE_K * 2);
    p->ahead = blocks < p->k_blocks ? blocks : p->k_blocks;
}

static void fill(const sb_cuda_device *device, const sb_gemm16_shape *shape, const sb_gemm_plan *plan,
                 sb_gemm16_hopper *p) {
    const sb_gemm16 *product = &p->product;
    bool swapped = sb_gemm16_has(shape, SWAPPED);
    p->swapped = swapped;
    int64_t b_columns = product->gate != SB_GATE_NONE ? 2 * product->n : product->n;
    p->rows = swapped ? b_columns : product->m;
    p->columns = swapped ? product->m : b_columns;
    bool takes_turns =
        product->gate == SB_GATE_STACKED || (sb_gemm16_has(shape, TURNS) && product->gate != SB_GATE_NONE);
    p->stacked = swapped && product->gate != SB_GATE_NONE ? 1 : takes_turns ? 2 : 0;
    p->used_rows = swapped ? product->used_n : product->used_m;
    p->used_columns = swapped ? product->used_m : product->used_n;
    p->row_stride = swapped ? product->c.column_stride : product->c.row_stride;
    p->column_stride = swapped ? product->c.row_stride : product->c.column_stride;
    p->tile_rows = sb_gemm16_tile_rows(shape, device, plan);
    p->row_tiles = (int32_t)sb_gemm_divide_up(p->rows, p->tile_rows * shape->cluster);
    p->column_tiles = (int32_t)sb_gemm_divide_up(p->columns, shape->n);
    p->tiles = (int32_t)((int64_t)p->row_tiles * p->column_tiles * product->batches);
    p->storing = (product->gate == SB_GATE_NONE && !product->has_epilogue ? SB_GEMM16_PLAIN : 0) |
                 (stores_in_bulk(shape, product) ? SB_GEMM16_BULK : 0) |
                 (stores_wide_in_bulk(shape, product) ? SB_GEMM16_WIDE_BULK : 0) |
                 (turns_results(shape, plan, product) ? SB_GEMM16_TURNED : 0) |
                 (product->c.dtype == SB_F32 ? SB_GEMM16_WIDE : 0) | (stores_pairs(p) ? SB_GEMM16_PAIRS : 0);
}

/* How copies of an operand count batches. */
static sb_gemm16_steps steps_of(const sb_gemm16_shape *shape, const sb_gemm16 *product,
                                const sb_gemm16_operand *operand, layout layout) {
    bool has_outer = outer_of(product, operand) > 1;
    return (sb_gemm16_steps){.inner = operand->batch_stride != 0,
                             .outer = has_outer,
                             .five = has_outer && shape->boxes > 1 && layout == K_MAJOR};
}

/* The kernel's parameters but for where results go, if it stores them, and the layouts of its A and B. */
static sb_status fill_factors(sb_cuda_device *device, const sb_gemm16_shape *shape, const sb_gemm_plan *plan,
                              bool stores, sb_gemm16_hopper *p, layout layouts[2], sb_error *error) {
    sb_gemm16_describe(plan, &p->product);
    fill(device, shape, plan, p);
    bool swapped = sb_gemm16_has(shape, SWAPPED);
    const sb_gemm16_operand *a = swapped ? &p->product.b : &p->product.a;
    const sb_gemm16_operand *b = swapped ? &p->product.a : &p->product.b;
    layouts[0] = layout_of(&p->product, a, p->rows);
    layouts[1] = layout_of(&p->product, b, p->columns);
    fill_ring(shape, layouts, stores, p);
    p->k_blocks = (int32_t)sb_gemm16_k_blocks(shape, plan);
    p->inner = (int32_t)p->product.inner;
    p->a_steps = steps_of(shape, &p->product, a, layouts[0]);
    p->b_steps = steps_of(shape, &p->product, b, layouts[1]);
    fill_stream(device, shape, p);
    fill_last_tiles(shape, layouts, stores, p);
    int a_part = p->a_box_bytes / (SB_GEMM16_TILE_K * 2), b_part = p->b_box_bytes / (SB_GEMM16_TILE_K * 2);
    if (p->stacked == 1)
        SB_TRY(encode_stacked(device, plan, shape, a_part, &p->a, error));
    else
        SB_TRY(encode_operand(device, plan, shape, &p->product, a, p->rows, layouts[0], a_part, SB_GEMM16_TILE_K, &p->a,
                              error));
    if (p->stacked == 2)
        return encode_stacked(device, plan, shape, shape->n / shape->cluster, &p->b, error);
    if (sb_gemm16_has(shape, ROW))
        return SB_OK;
    int sharers = sb_gemm16_has(shape, MAPPED) ? 1 : shape->cluster;
    return encode_operand(device, plan, shape, &p->product, b, p->columns, layouts[1], b_part / sharers,
                          SB_GEMM16_TILE_K / sharers, &p->b, error);
}

/* Weights that are fetched before the kernels ahead have ended, in tiles for few rows: where no number in memory, which one of them
 * may write, says what is fetched. */
#define MOST_SETTLED 16
/* Of the shapes in place of which there is one that normalises its rows. */
#define NORMED_BOXES 4

static sb_cuda_settled settled_of(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, const sb_gemm16_hopper *p) {
    bool is_open = p->used_rows != NULL || p->used_columns != NULL || p->product.used_k != NULL;
    if (shape->rows > 64 || shape->n > MOST_SETTLED || shape->cluster > 1 || p->streams == 0 || is_open)
        return (sb_cuda_settled){0};
    return (sb_cuda_settled){
        .place = offsetof(sb_gemm16_hopper, ahead), .count = 1, .ranges = {{plan->b.first, plan->b.bytes, false}}};
}

/* Gives the kernel to the queue; `parameters` are the kernel's, of which `p` may be but a part. */
static sb_status give(const sb_gemm16_shape *shape, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                      const sb_cuda_kernel *kernel, const sb_gemm16_hopper *p, const void *parameters,
                      sb_error *error) {
    const sb_cuda_device *device = queue->stream->device;
    int clusters =
        p->tiles < sb_gemm16_clusters_at_once(device, shape) ? p->tiles : sb_gemm16_clusters_at_once(device, shape);
    sb_cuda_range ranges[SB_GEMM_RANGES];
    sb_cuda_task task = {
        .kind = SB_CUDA_KERNEL,
        .step = step,
        .kernel = {.kernel = kernel,
                   .settled = settled_of(shape, plan, p),
                   .join = shape->boxes == NORMED_BOXES && plan->fused == NULL ? sb_gemm16_join_norm : NULL,
                   .grid = {(unsigned)(clusters * shape->cluster), 1, 1},
                   .block = {(unsigned)threads_of(shape), 1, 1},
                   .shared_bytes = shared_bytes(shape, p),
                   .parameters = parameters,
                   .range_count = sb_gemm_ranges(plan, ranges),
                   .ranges = ranges},
    };
    return sb_cuda_launch(queue, &task, error);
}

/* Where results go by TMA, as elements of 16 bits: two for each of f32. */
static sb_status encode_output(sb_cuda_device *device, const sb_gemm_plan *plan, sb_gemm16_hopper *p, sb_error *error) {
    const sb_gemm16_output *c = &p->product.c;
    int64_t elements = p->storing & SB_GEMM16_WIDE_BULK ? 2 : 1;
    boxes boxes = {4,
                   c->data,
                   {elements * p->product.n, p->product.m, 1, plan->batches},
                   {1, elements * c->row_stride, 0, elements * c->batch_stride},
                   {BOX, 64, 1, 1}};
    return p->storing & (SB_GEMM16_BULK | SB_GEMM16_WIDE_BULK)
               ? sb_tensor_map_encode(device, plan->dtype, &boxes, &p->c, error)
               : SB_OK;
}

static sb_status launch(const sb_gemm_schedule *self, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                        sb_error *error) {
    const sb_gemm16_shape *shape = self->shape;
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
    return give(shape, queue, step, plan, kernel, p, &given, error);
}

/* ---- logits ---- */

/* Times of the first by its 7.49 ms for 4096 x 4096 x 151,936 on an H200; those of the second are no more than near. */
static const sb_gemm16_shape logits_shapes[] = {
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
    const sb_gemm16_shape *shape = &logits_shapes[0];
    for (int i = 1; i < LOGITS_SHAPES; i++)
        shape = sb_gemm16_shape_cost(&logits_shapes[i], device, plan, true) <
                        sb_gemm16_shape_cost(shape, device, plan, true)
                    ? &logits_shapes[i]
                    : shape;
    sb_gemm16_logits p = {.reduce = *reduce};
    const sb_cuda_kernel *kernel;
    layout layouts[2];
    SB_TRY(fill_factors(device, shape, plan, false, &p.product, layouts, error));
    SB_TRY(
        sb_gemm16_find(device, shape->modules, sizeof p, plan->dtype, false, layouts[1] == MN_MAJOR, &kernel, error));
    return give(shape, queue, -1, plan, kernel, &p.product, &p, error);
}

/* ---- convolutions ---- */

/* Times are those of the products of these shapes: a map of pixels brings as many bytes as a box. */
static const sb_gemm16_shape conv_shapes[] = {
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
static bool takes_conv(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    return shape->boxes == 1 || plan->k % SB_GEMM16_TILE_K == 0;
}

static int choose_conv(const sb_cuda_device *device, const sb_gemm_plan *plan) {
    int chosen = 0, forced = atomic_load(&forced_conv);
    if (forced >= 0 && takes_conv(&conv_shapes[forced], plan))
        return forced;
    for (int i = 1; i < CONV_SHAPES; i++) {
        if (takes_conv(&conv_shapes[i], plan) && sb_gemm16_shape_cost(&conv_shapes[i], device, plan, true) <
                                                     sb_gemm16_shape_cost(&conv_shapes[chosen], device, plan, true))
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
    const sb_gemm16_shape *shape = &conv_shapes[chosen];
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_gemm16_find(queue->stream->device, shape->modules, sizeof *p, plan->dtype, false, false, &kernel, error));
    return give(shape, queue, step, plan, kernel, &p->product, p, error);
}

#define SCHEDULE(index, title)                                                                                         \
    { .name = title, .shape = &shapes[index], .load = load, .refuses = refuses, .cost = cost, .launch = launch }
const sb_gemm_schedule sb_gemm_hopper[SB_GEMM_HOPPER_SCHEDULES] = {
    SCHEDULE(0, "tile-128x256"),    SCHEDULE(1, "tile-128x224"),    SCHEDULE(2, "tile-128x192"),
    SCHEDULE(3, "tile-128x128"),    SCHEDULE(4, "tile-128x112"),    SCHEDULE(5, "tile-128x96"),
    SCHEDULE(6, "tile-128x64"),     SCHEDULE(7, "tile-64x112"),     SCHEDULE(8, "tile-64x64"),
    SCHEDULE(9, "tile-64x32"),      SCHEDULE(10, "tile-64x16"),     SCHEDULE(11, "swapped-64x64"),
    SCHEDULE(12, "swapped-64x32"),  SCHEDULE(13, "swapped-64x16"),  SCHEDULE(14, "swapped-64x8"),
    SCHEDULE(15, "mapped-128x256"), SCHEDULE(16, "mapped-128x128"), SCHEDULE(17, "tile-128x160"),
    SCHEDULE(18, "tile-128x144"),   SCHEDULE(19, "tile-128x80"),    SCHEDULE(20, "tile-64x96"),
    SCHEDULE(21, "tile-64x80"),     SCHEDULE(22, "swapped-64x192"), SCHEDULE(23, "swapped-64x144"),
    SCHEDULE(24, "swapped-64x112"), SCHEDULE(25, "swapped-64x96"),  SCHEDULE(26, "swapped-64x80"),
    SCHEDULE(27, "turns-128x128"),  SCHEDULE(28, "quad-64x96"),     SCHEDULE(29, "quad-64x112"),
    SCHEDULE(30, "quad-64x144"),    SCHEDULE(31, "row-64x8"),
};
_Static_assert(sizeof shapes / sizeof shapes[0] == SB_GEMM_HOPPER_SCHEDULES, "a schedule for each shape");
