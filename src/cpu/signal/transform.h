/* Tiles of discrete Fourier transforms: some lines by some numbers of their spectra, in f64.
 *
 * Numbers of a spectrum are lanes, and each is the chain of its definition (src/ops/signal.c), whatever the tile. */
#ifndef SB_CPU_SIGNAL_TRANSFORM_H
#define SB_CPU_SIGNAL_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include <samebit/isa.h>

/* Lines, and numbers of their spectra, that a tile has. */
#define SB_TRANSFORM_LINES 6
#define SB_TRANSFORM_NUMBERS 16

typedef struct sb_transform_tile {
    int64_t length;
    int numbers; /* that are wanted, at most SB_TRANSFORM_NUMBERS: sums of others are left as they are, or are anything */
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
