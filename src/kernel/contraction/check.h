/* Checking the descriptors of a product, for the CPU and for devices: everything that can be wrong
 * is said here, before anything is computed. */
#ifndef SB_KERNEL_CONTRACTION_CHECK_H
#define SB_KERNEL_CONTRACTION_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/gemm.h>

#include "kernel/contraction/batches.h"
#include "kernel/contraction/engine.h"
#include "kernel/contraction/epilogue.h"
#include "kernel/contraction/row_map.h"

/* No extent is larger, so that sums and small multiples of extents do not overflow. */
#define SB_GEMM_MOST_EXTENT ((int64_t)1 << 48)

/* The bytes from the first to the last element of an operand, over all batches: 0 when it has no
 * element or is not there. Addresses of the process or of the device. */
typedef struct sb_gemm_range {
    uintptr_t first;
    size_t bytes;
} sb_gemm_range;

/* Where memory of the device says how many rows, columns and k are used of a product that has room for more; NULL: all.
 * What is computed for others may be anything. What lies behind the used k is not read as a number. */
typedef struct sb_gemm_used {
    const int64_t *m, *n, *k;
} sb_gemm_used;

/* What products of models have beyond those of <samebit/gemm.h>. Start from SB_GEMM_MODEL_DEFAULT. */
typedef struct sb_gemm_model {
    const sb_gemm_batches *batches; /* of A and B, instead of their batch_stride; NULL: none of their own */
    float addend_scale;             /* bias and residual are multiplied by it before they are added */
    bool rounds;                    /* chains are rounded to C's 16 bits before the epilogue: sb_gemm_epilogue */
    sb_gemm_used used;
} sb_gemm_model;

#define SB_GEMM_MODEL_DEFAULT                                                                                          \
    { .addend_scale = 1.0f }

/* A product that has been checked. Valid during the call that was given `gemm`. */
typedef struct sb_gemm_plan {
    const sb_gemm *gemm; /* a, b, c as given, with addresses where they have elements */
    int64_t m, n, k, batches;
    sb_gemm_batches steps; /* of A and B, over as few dimensions as there can be */
    sb_gemm_used used;
    int64_t columns;                   /* of B: n, or 2n with a gate */
    sb_dtype dtype;                    /* of A and B */
    bool is_empty;                     /* C has no element: nothing to do */
    sb_gemm_epilogue epilogue;         /* with no bias or residual where none was given */
    int64_t group_count;               /* steps of each chain, with and without a row map */
    const sb_row_group *groups;        /* of the row map, on the host; NULL without a map */
    const sb_row_group *device_groups; /* on the device; NULL without a map or groups, and on the CPU */
    sb_gemm_range a, b, c, bias, residual;
    const struct sb_gemm_fused *fused; /* on a device: the nodes of a model behind the product; NULL: none */
} sb_gemm_plan;

/** Checks a product against the contract of <samebit/gemm.h> and fills `*plan`. On a device it asks
 * the driver once for each operand where its memory is; it allocates nothing, launches nothing and
 * is allowed while the thread captures. The name of a schedule is known to be one of the engine's,
 * or NULL; whether it can run the product is its own to say. Messages name the operand, its dtype,
 * extents and strides, and the way out. Errors: INVALID_ARGUMENT, SHAPE, UNSUPPORTED, DEVICE. */
sb_status sb_gemm_check(sb_engine *engine, const sb_gemm *gemm, sb_gemm_plan *plan, sb_error *error);

/** The same for operands that the runtime has placed: everything but where they lie and what schedule they name. Of
 * `model`, the extents' product is gemm->batches. */
sb_status sb_gemm_plan_fill(const sb_gemm *gemm, const sb_gemm_model *model, sb_gemm_plan *plan, sb_error *error);

#endif
