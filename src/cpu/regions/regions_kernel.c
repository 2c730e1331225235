/* The kernels of NonMaxSuppression and RoiAlign. */
#include "cpu/list.h"
#include "cpu/regions/align.h"
#include "cpu/regions/suppression.h"

const sb_kernel sb_cpu_kernels_regions[] = {
    {.op = "NonMaxSuppression",
     .name = "suppression",
     .supports = sb_suppression_supports,
     .finds_extents = true,
     .launch = sb_suppression_launch},
    {.op = "RoiAlign", .name = "align", .supports = sb_align_supports, .launch = sb_align_launch},
    {0},
};
