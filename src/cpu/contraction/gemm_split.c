/* Cutting a matrix product for threads. */
#include "cpu/contraction/gemm_kernels.h"

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Multiply-adds under which a further rectangle costs more than it brings: about ten microseconds
 * of one core. */
#define PART_WORK ((double)(1 << 19))

/* Rows from which multiplying takes longer than reading B. A product of fewer takes as long as one of these. */
#define READING_ROWS 6.0

/* Rectangles for each thread, at most: several even out threads of unequal speed. */
#define THREAD_PARTS 4

/* Tiles that a rectangle should keep in a column, so that every value of B that it reads is used often enough. */
#define PART_TILES 4

/* The time that `parts` rectangles of `tiles` × `panels` register tiles take, in register tiles. Besides
 * its tiles a rectangle costs its first weights, which nobody has fetched, and its reading of A and
 * B; and threads wait for the last one. The weights of these are estimates, tried on two threads:
 * ResNet-50 took 40.4 ms instead of 42.2 by a fixed rule, BERT-base and MobileNetV2 the same. */
static double time_of(int64_t tiles, int64_t panels, int64_t parts, int64_t threads) {
    const double rectangle = (double)tiles * (double)panels + 3.0 + 0.25 * (double)(tiles + panels);
    return ((double)divide_up(parts, threads) + 0.15) * rectangle;
}

sb_gemm_split sb_gemm_f32_split(const sb_gemm_kernels *kernels, int64_t m, int64_t n, int64_t k, int threads) {
    sb_gemm_split split = {.m = m, .n = n, .m_step = m, .n_step = n, .m_parts = 1, .n_parts = 1};
    const double rows = (double)m > READING_ROWS ? (double)m : READING_ROWS;
    const double worthwhile = rows * (double)n * (double)(k > 0 ? k : 1) / PART_WORK;
    if (m <= 0 || n <= 0 || threads <= 1 || worthwhile < 2.0)
        return split;
    int64_t most = (int64_t)threads * THREAD_PARTS;
    most = worthwhile < (double)most ? (int64_t)worthwhile : most;
    const int64_t tiles = divide_up(m, kernels->rows), panels = divide_up(n, kernels->panel);
    const int64_t m_most = tiles / PART_TILES > 1 ? minimum(tiles / PART_TILES, most) : 1;
    double best = time_of(tiles, panels, 1, threads);
    for (int64_t m_parts = 1; m_parts <= m_most; m_parts++) {
        for (int64_t n_parts = 1; n_parts <= minimum(panels, most / m_parts); n_parts++) {
            const int64_t part_tiles = divide_up(tiles, m_parts);
            const int64_t part_panels = divide_up(panels, n_parts);
            const double time = time_of(part_tiles, part_panels, m_parts * n_parts, threads);
            if (time >= best)
                continue;
            best = time;
            split.m_step = m_parts > 1 ? part_tiles * kernels->rows : m;
            split.n_step = n_parts > 1 ? part_panels * kernels->panel : n;
        }
    }
    split.m_parts = divide_up(m, split.m_step);
    split.n_parts = divide_up(n, split.n_step);
    return split;
}

void sb_gemm_split_rectangle(const sb_gemm_split *split, int64_t index, int64_t *m0, int64_t *m1, int64_t *n0,
                             int64_t *n1) {
    int64_t row = index / split->n_parts, column = index % split->n_parts;
    *m0 = row * split->m_step;
    *m1 = *m0 + split->m_step < split->m ? *m0 + split->m_step : split->m;
    *n0 = column * split->n_step;
    *n1 = *n0 + split->n_step < split->n ? *n0 + split->n_step : split->n;
}
