/* Boxes that NonMaxSuppression has kept, side by side, and whether another one overlaps any: one function per instruction set. */
#ifndef SB_CPU_REGIONS_KEPT_BOXES_H
#define SB_CPU_REGIONS_KEPT_BOXES_H

#include <stdint.h>

#include "base/isa.h"
#include "ops/regions_values.h"

/* Boxes that are looked at together. */
#define SB_KEPT_BLOCK 64

/* Corners and areas, each an array of whole blocks; behind the last box stand some that overlap none. */
typedef struct sb_kept_boxes {
    int64_t count;
    float *top, *left, *bottom, *right, *area;
} sb_kept_boxes;

/** Whether sb_region_overlaps(box, each of the kept, threshold) for any, for a box without NaN; pure. */
typedef bool sb_kept_overlap(const sb_kept_boxes *kept, sb_region_corners box, float threshold);

extern sb_kept_overlap sb_kept_overlap_scalar;
#if SB_HAS_X86_KERNELS
extern sb_kept_overlap sb_kept_overlap_avx2, sb_kept_overlap_avx512;
#endif

#endif
