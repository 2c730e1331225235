/* Tiles of discrete Fourier transforms: some lines by some numbers of their spectra, in f64.
 *
 * Numbers of a spectrum are lanes, and each is the chain of its definition (src/ops/signal.c), whatever the tile. */
#ifndef SB_CPU_SIGNAL_TRANSFORM_H
#define SB_CPU_SIGNAL_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include <samebit/isa.h>

/* Lines, and numbers of their spectra, that a tile has. With 8 lanes, 4 lines of 2 vectors take 16 accumulators of 32
 * registers; with 4 lanes they are spilled, and were still faster than tiles of 2 lines, which read the roots twice. */
#define SB_TRANSFORM_LINES 4
#define SB_TRANSFORM_NUMBERS 16

typedef struct sb_transform_tile {
    int64_t length;
    /* [length][2][SB_TRANSFORM_NUMBERS]: cosine and sine of each number's root, the sine of an inverse negated. */
    const double *roots;
    /* [length][SB_TRANSFORM_LINES]. `imaginary` is NULL where all imaginary parts are +0 and no real part is f64:
     * adding +0 times a root then changes no sum, none of which is ever -0. */
    const double *real, *imaginary;
    /* [SB_TRANSFORM_LINES][SB_TRANSFORM_NUMBERS] */
    double *sum_real, *sum_imaginary;
} sb_transform_tile;

typedef void sb_transform(const sb_transform_tile *tile);

/** The function of an instruction set that sb_isa_resolve gave. */
sb_transform *sb_transform_for(sb_isa isa);

#endif
