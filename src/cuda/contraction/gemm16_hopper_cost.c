/* What a product costs in tiles of a shape. */
#include "cuda/contraction/gemm16_hopper_shapes.h"

#include <math.h>

/* Clusters that run at the same time. Of four blocks an H200 takes 30: parts of it have no multiple of four multiprocessors. */
int sb_gemm16_clusters_at_once(const sb_cuda_device *device, const sb_gemm16_shape *shape) {
    int in_fours = device->multiprocessors * 10 / 11 / 4;
    int clusters = shape->cluster > 2 ? in_fours : device->multiprocessors / shape->cluster;
    return clusters > 0 ? clusters : 1;
}

/* Tiles of 64 k. */
int64_t sb_gemm16_k_blocks(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    return sb_gemm_divide_up(sb_gemm16_has(shape, SB_GEMM16_MAPPED) ? plan->group_count * 16 : plan->k,
                             SB_GEMM16_TILE_K);
}

/* The rows that a tile takes. Swapped, those of weights: so few that all multiprocessors have some, if one round is
 * enough. A product that leaves many idle is slowed down little by itself, but the next one's blocks come to lie where
 * there is room and not where bandwidth is: a layer of 4096 wide products takes 132 us in tiles of 64 rows and 111 in
 * tiles of 32, and the 1B shape's decoding step, whose products are 2048 wide, 799 us in tiles of 32 at least and 749 in
 * tiles of 16. */
#define FEWEST_ROWS 16

int sb_gemm16_tile_rows(const sb_gemm16_shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan) {
    bool is_k_major = plan->gemm->b.row_stride == 1; /* else 64 of them come together */
    if (!sb_gemm16_has(shape, SB_GEMM16_SWAPPED) || !is_k_major)
        return shape->rows;
    int64_t unit = plan->gemm->gate != SB_GATE_NONE ? 16 : 8; /* a swizzle's, and eight gates with their values */
    int64_t others = sb_gemm_divide_up(plan->m, shape->n) * plan->batches; /* 0 where there is nothing to compute */
    int64_t sharers = others > 0 ? sb_gemm16_clusters_at_once(device, shape) / others * shape->cluster : 0;
    int64_t share = sb_gemm_divide_up(sb_gemm16_b_lines(plan), sharers > 0 ? sharers : 1);
    share = share < FEWEST_ROWS ? FEWEST_ROWS : sb_gemm_divide_up(share, unit) * unit;
    return share < shape->rows ? (int)share : shape->rows;
}

/* What happens to a result of each thread before it is stored, in microseconds, while nothing is multiplied: of a warpgroup that
 * takes turns with another, of two at the same time, whose results are half as many, and of one. Measured on an H200 by
 * 4096 x 768 x 3072, 4096 x 3072 x 768 and 1024 x 768 x 3072. The activation is between SiLU and GELU; gates
 * without turns go out one by one. Those of one warpgroup were measured in the layers of Llama-3.2-1B and 3.1-8B, of 128 to 2,048 rows;
 * `turned` is of results that go through shared memory, and `waiting` of few rows, which wait for weights. */
typedef struct ends {
    double addend, residual, activation, gate, nodes;
} ends;
static const ends in_turns = {0.05, 0.04, 0.06, 0.07, 0.0}, side_by_side = {0.09, 0.12, 0.06, 0.20, 0.07},
                  light = {0.03, 0.0, 0.056, 0.0, 0.0}, alone = {0.07, 0.13, 0.08, 0.2, 0.22},
                  turned = {0.07, 0.13, 0.08, 0.2, 0.14}, waiting = {0.07, 0.13, 0.08, 0.0, 0.0};
#define MOST_WAITING 64 /* rows */
/* SiLU in turns where an estimate does for it (docs/results/2026-11-28-ends.md, whose lines the residual and gates in turns are of, too). */
#define SILU_IN_TURNS 0.01
/* A gate whose result two warpgroups send in bulk (256 to 4,096 rows of the same layers). */
#define GATE_IN_BULK 0.1

/* Whether two warpgroups finish results by dozens (sb_gemm16_is_light of the kernels). */
static bool is_light(const sb_gemm_plan *plan) {
    const sb_gemm_epilogue *e = &plan->epilogue;
    return plan->fused == NULL && plan->gemm->gate == SB_GATE_NONE && e->residual.data == NULL && !e->rounds &&
           e->activation <= SB_ACTIVATION_SILU && e->dtype != SB_F32;
}

/* Gates before their values, of two warpgroups that multiply the same tile. */
static bool sends_gates_in_bulk(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    return plan->gemm->gate == SB_GATE_STACKED && !sb_gemm16_has(shape, SB_GEMM16_TURNS) &&
           sb_gemm16_stores_gates_in_bulk(shape);
}

static double activation_cost(const sb_gemm16_shape *shape, const sb_gemm_epilogue *e, const ends *each) {
    if (e->activation <= SB_ACTIVATION_RELU)
        return 0;
    bool is_estimated = e->activation == SB_ACTIVATION_SILU && e->residual.data == NULL;
    return sb_gemm16_has(shape, SB_GEMM16_TURNS) && is_estimated ? SILU_IN_TURNS : each->activation;
}

static double epilogue_cost(const sb_gemm16_shape *shape, const sb_gemm_plan *plan) {
    const ends *of_one = plan->m <= MOST_WAITING                   ? &waiting
                         : sb_gemm16_has(shape, SB_GEMM16_SWAPPED) ? &turned
                                                                   : &alone;
    const ends *each = sb_gemm16_has(shape, SB_GEMM16_TURNS) ? &in_turns
                       : shape->rows == 64                   ? of_one
                       : is_light(plan)                      ? &light
                                                             : &side_by_side;
    const sb_gemm_epilogue *e = &plan->epilogue;
    bool gated = plan->gemm->gate != SB_GATE_NONE;
    double results = (double)shape->n / (sb_gemm16_has(shape, SB_GEMM16_TURNS) ? 1 : 2) / (gated ? 2 : 1), one = 0;
    one += e->bias.data != NULL ? each->addend : 0;
    one += e->residual.data != NULL ? each->residual : 0;
    one += activation_cost(shape, e, each);
    one += gated ? (sends_gates_in_bulk(shape, plan) ? GATE_IN_BULK : each->gate) : 0;
    one += plan->fused != NULL ? each->nodes : 0;
    return one * results;
}

/* The ends of rounds of tiles of so many microseconds of products. Where warpgroups take them in turns, ends are seen behind the last
 * one, and where they take longer than the other's products. */
static double ends_cost(const sb_gemm16_shape *shape, const sb_gemm_plan *plan, double rounds, double products) {
    double end = epilogue_cost(shape, plan);
    return sb_gemm16_has(shape, SB_GEMM16_TURNS) ? rounds * fmax(0, (end - products) / 2) + fmin(products, end)
                                                 : rounds * end;
}

/* What takes so long by itself takes at the same time: little more than the longest of them, but more. */
static double together(double computing, double fetching, double moving, double heating) {
    return sqrt(sqrt(pow(computing, 4) + pow(fetching, 4) + pow(moving, 4) + pow(heating, 4)));
}

/* Operations in a microsecond that the card's power allows, about, however many more its tensor cores could do: what is behind a
 * matrix's end counts too. */
#define MOST_OPERATIONS 8e8

/* `is_whole`: the shape's times are of whole tiles, with their ends, as those of logits and convolutions are. */
double sb_gemm16_shape_cost(const sb_gemm16_shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan,
                            bool is_whole) {
    bool swapped = sb_gemm16_has(shape, SB_GEMM16_SWAPPED);
    int64_t lines = swapped ? sb_gemm16_b_lines(plan) : plan->m,
            most = sb_gemm16_tile_rows(shape, device, plan) * shape->cluster;
    double rows = (double)sb_gemm_divide_up(lines, most);
    double columns = (double)sb_gemm_divide_up(swapped ? plan->m : sb_gemm16_b_lines(plan), shape->n);
    double tiles = rows * columns * (double)plan->batches;
    double rounds = ceil(tiles / sb_gemm16_clusters_at_once(device, shape));
    /* A stage is multiplied whole. */
    int64_t blocks = sb_gemm_divide_up(sb_gemm16_k_blocks(shape, plan), shape->boxes) * shape->boxes;
    double products = (double)blocks * shape->step;
    double moving = sb_gemm16_bytes(plan) / (1e6 * shape->memory);
    if (is_whole) {
        double fetched = tiles * (double)((lines < most ? lines : most) + shape->n) * (double)plan->k * 2;
        return shape->around + together(rounds * products, fetched / (1e6 * shape->cache), moving, 0);
    }
    /* What comes into the busiest multiprocessor, as if it came into all: where tiles are few, the idle ones' ways are no help. */
    int64_t tile_lines = most / shape->cluster;
    double blocks_at_once = (double)sb_gemm16_clusters_at_once(device, shape) * shape->cluster;
    double fetched =
        rounds * blocks_at_once * (double)((lines < tile_lines ? lines : tile_lines) + shape->n) * (double)plan->k * 2;
    double operations = 2 * tiles * shape->cluster * shape->rows * shape->n * (double)blocks * SB_GEMM16_TILE_K;
    return shape->around + ends_cost(shape, plan, rounds, products) +
           together(rounds * (products + shape->turnover), fetched / (1e6 * shape->cache), moving,
                    operations / MOST_OPERATIONS);
}
