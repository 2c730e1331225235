/* Cutting a matrix product for threads. */
#include "cpu/gemm_kernels.h"

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

/* Multiply-adds under which a further rectangle costs more than it brings: about ten microseconds
 * of one core. */
#define PART_WORK ((double)(1 << 19))

/* Rows that a rectangle should keep, so that every value of B that it reads is used often enough.
 */
#define PART_ROWS 56

/* The step that cuts `extent` into `parts` parts of whole `unit`s. */
static int64_t step_of(int64_t extent, int64_t parts, int64_t unit) {
    return divide_up(divide_up(extent, parts), unit) * unit;
}

iv_gemm_split iv_gemm_f32_split(const iv_gemm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                                int threads) {
    iv_gemm_split split = {.m = m, .n = n, .m_step = m, .n_step = n, .m_parts = 1, .n_parts = 1};
    const double work = (double)m * (double)n * (double)(k > 0 ? k : 1);
    int64_t wanted = threads > 1 ? threads : 1;
    if (work < PART_WORK * (double)wanted)
        wanted = (int64_t)(work / PART_WORK);
    if (m <= 0 || n <= 0 || wanted <= 1)
        return split;

    /* Several rectangles a thread even out threads of unequal speed. */
    if (threads > 1 && work > 16.0 * PART_WORK * (double)wanted)
        wanted *= 4;

    int64_t m_most = divide_up(m, PART_ROWS), n_most = divide_up(n, kernels->panel);
    int64_t m_parts = wanted < m_most ? wanted : m_most;
    int64_t n_parts = divide_up(wanted, m_parts);
    if (n_parts > n_most)
        n_parts = n_most;
    split.m_step = m_parts > 1 ? step_of(m, m_parts, kernels->rows) : m;
    split.n_step = n_parts > 1 ? step_of(n, n_parts, kernels->panel) : n;
    split.m_parts = divide_up(m, split.m_step);
    split.n_parts = divide_up(n, split.n_step);
    return split;
}

void iv_gemm_split_rectangle(const iv_gemm_split *split, int64_t index, int64_t *m0, int64_t *m1,
                             int64_t *n0, int64_t *n1) {
    int64_t row = index / split->n_parts, column = index % split->n_parts;
    *m0 = row * split->m_step;
    *m1 = *m0 + split->m_step < split->m ? *m0 + split->m_step : split->m;
    *n0 = column * split->n_step;
    *n1 = *n0 + split->n_step < split->n ? *n0 + split->n_step : split->n;
}
