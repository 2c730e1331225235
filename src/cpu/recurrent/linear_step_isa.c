/* A position of LinearAttention, compiled once per instruction set. Lanes are columns of the state, which do not see each other.
 *
 * A state is gone through twice: decayed and compared with its key on the way, then written and read by the first query on the way.
 * 128 by 64 floats of it stay in a first-level cache. */
#include <stdbool.h>

#include "cpu/recurrent/linear_step.h"
#include "cpu/simd.h"
#include "numerics/elementary.h"

#define VECTORS (SB_LINEAR_COLUMNS / SB_VF_LANES)

/* S = factor S, and known = the chain of S k, of `vectors`, a constant. */
SB_VF_INLINE void decay_and_know(const sb_linear_step *step, bool decays, bool corrects, int vectors, float *known) {
    vf sums[VECTORS];
    for (int v = 0; v < vectors; v++)
        sums[v] = vf_zero();
    for (int64_t i = 0; i < step->width; i++) {
        float *row = step->state + i * SB_LINEAR_COLUMNS;
        const vf factor = vf_set(decays ? step->factors[step->decays == 1 ? 0 : i] : 1.0f);
        const vf key = vf_set(step->key[i]);
        for (int v = 0; v < vectors; v++) {
            vf state = vf_load(row + v * SB_VF_LANES);
            if (decays) {
                state = vf_mul(factor, state);
                vf_store(row + v * SB_VF_LANES, state);
            }
            sums[v] = corrects ? vf_fma(key, state, sums[v]) : sums[v];
        }
    }
    for (int v = 0; v < vectors && corrects; v++)
        vf_store(known + v * SB_VF_LANES, sums[v]);
}

/* S += k u, and what a query reads of it behind that. */
SB_VF_INLINE void write_and_read(const sb_linear_step *step, bool writes, const float *query, int vectors,
                                 const float *u, float *y) {
    const vf scale = vf_set(step->scale);
    vf sums[VECTORS], values[VECTORS];
    for (int v = 0; v < vectors; v++) {
        sums[v] = vf_zero();
        values[v] = vf_load(u + v * SB_VF_LANES);
    }
    for (int64_t i = 0; i < step->width; i++) {
        float *row = step->state + i * SB_LINEAR_COLUMNS;
        const vf key = vf_set(step->key[i]), factor = vf_set(query[i]);
        for (int v = 0; v < vectors; v++) {
            vf state = vf_load(row + v * SB_VF_LANES);
            if (writes) {
                state = vf_fma(key, values[v], state);
                vf_store(row + v * SB_VF_LANES, state);
            }
            sums[v] = vf_fma(factor, state, sums[v]);
        }
    }
    for (int v = 0; v < vectors; v++)
        vf_store(y + v * SB_VF_LANES, vf_mul(scale, sums[v]));
}

SB_VF_INLINE void run_columns(const sb_linear_step *step, int vectors, float *u, float *y) {
    float known[SB_LINEAR_COLUMNS];
    const bool corrects = step->beta != NULL;
    for (int64_t i = 0; i < step->decays && step->decay != NULL; i++)
        step->factors[i] = sb_exp_f32(step->decay[i]);
    if (step->decay != NULL && corrects)
        decay_and_know(step, true, true, vectors, known);
    else if (step->decay != NULL)
        decay_and_know(step, true, false, vectors, known);
    else if (corrects)
        decay_and_know(step, false, true, vectors, known);
    for (int w = 0; w < vectors * SB_VF_LANES && corrects; w++)
        u[w] = *step->beta * (u[w] - known[w]);
    write_and_read(step, true, step->query, vectors, u, y);
    for (int64_t head = 1; head < step->heads; head++)
        write_and_read(step, false, step->query + head * step->width, vectors, u, y + head * SB_LINEAR_COLUMNS);
}

void SB_ISA_NAME(sb_linear_step)(const sb_linear_step *step, float *u, float *y) {
    if (step->columns == SB_LINEAR_COLUMNS)
        run_columns(step, VECTORS, u, y);
    else if (step->columns == 32)
        run_columns(step, 32 / SB_VF_LANES, u, y);
    else
        run_columns(step, step->columns / SB_VF_LANES, u, y);
}
