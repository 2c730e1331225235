/* Tiles of transforms, compiled once per instruction set. */
#include "base/isa.h"
#include "cpu/signal/transform.h"
#include "cpu/simd_f64.h"

/* With 8 lanes, 6 lines of 2 vectors take 24 accumulators of 32 registers; with 4 lanes and 16 registers, 6 lines of one take
 * 12. With 4 lines, whose 8 sums wait for each other there, 498 spectra of 400 samples took 5.4 ms at best instead of 4.7 (AVX2). */
#if SB_VF_REGISTERS == 32
#define VECTORS 2
#else
#define VECTORS 1
#endif

/* `vectors` and `complex` are constants, so that a real line costs two steps a root instead of four. */
SB_VF_INLINE void sum_numbers(const int vectors, const bool complex, const sb_transform_tile *tile, int first) {
    vd re[SB_TRANSFORM_LINES][VECTORS], im[SB_TRANSFORM_LINES][VECTORS];
    SB_UNROLL
    for (int line = 0; line < SB_TRANSFORM_LINES; line++) {
        SB_UNROLL
        for (int v = 0; v < vectors; v++)
            re[line][v] = im[line][v] = vd_set(0.0);
    }
    for (int64_t m = 0; m < tile->length; m++) {
        const double *cosines = tile->roots + m * 2 * SB_TRANSFORM_NUMBERS + first;
        const double *sines = cosines + SB_TRANSFORM_NUMBERS;
        SB_UNROLL
        for (int line = 0; line < SB_TRANSFORM_LINES; line++) {
            vd x = vd_set(tile->real[m * SB_TRANSFORM_LINES + line]);
            vd y = complex ? vd_set(tile->imaginary[m * SB_TRANSFORM_LINES + line]) : x;
            SB_UNROLL
            for (int v = 0; v < vectors; v++) {
                vd c = vd_load(cosines + v * SB_VD_LANES), s = vd_load(sines + v * SB_VD_LANES);
                re[line][v] = vd_fma(x, c, re[line][v]);
                if (complex)
                    re[line][v] = vd_fma(y, s, re[line][v]);
                im[line][v] = vd_fma_negated(x, s, im[line][v]);
                if (complex)
                    im[line][v] = vd_fma(y, c, im[line][v]);
            }
        }
    }
    for (int line = 0; line < SB_TRANSFORM_LINES; line++) {
        for (int v = 0; v < vectors; v++) {
            int at = line * SB_TRANSFORM_NUMBERS + first + v * SB_VD_LANES;
            vd_store(tile->sum_real + at, re[line][v]);
            vd_store(tile->sum_imaginary + at, im[line][v]);
        }
    }
}

void SB_ISA_NAME(sb_transform)(const sb_transform_tile *tile);
void SB_ISA_NAME(sb_transform)(const sb_transform_tile *tile) {
    for (int first = 0; first < tile->numbers; first += VECTORS * SB_VD_LANES) {
        const bool narrow = tile->numbers - first <= SB_VD_LANES;
        if (tile->imaginary != NULL)
            sum_numbers(VECTORS, true, tile, first);
        else if (narrow)
            sum_numbers(1, false, tile, first);
        else
            sum_numbers(VECTORS, false, tile, first);
    }
}
