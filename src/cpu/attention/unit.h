/* Rows of attention that are computed together: queries of the heads that share a head of keys, so that keys and values are
 * made ready once for all of them. */
#ifndef SB_CPU_ATTENTION_UNIT_H
#define SB_CPU_ATTENTION_UNIT_H

#include "cpu/attention/weigh.h"
#include "cpu/contraction/chain16_kernels.h"
#include "ops/attention.h"

/* Most rows of a unit. Making a tile of keys or values of 16 bits ready costs more than a step of one row, so that 64 rows
 * make it a small part, and what belongs to them stays in the second cache. */
#define SB_ATTENTION_ROWS 64

/* The two products of a type of elements, over a unit's workspace. */
typedef struct sb_attention_products sb_attention_products;

/* What all units of a call have alike. */
typedef struct sb_attention_plan {
    const sb_attention_work *work;
    sb_attention_formula formula;
    const sb_attention_kernels *kernels;
    const sb_attention_products *products;
    const sb_gemm_kernels *gemm;       /* of f32 */
    const sb_chain16_kernels *chain16; /* of f16 and bf16 */
    int64_t rows;                      /* for which a unit has room */
    int64_t tile, tiles;               /* sums of values lie as [tiles][rows][tile], `tile` columns of values each */
} sb_attention_plan;

/* A thread's. */
typedef struct sb_attention_unit {
    const sb_attention_plan *plan;
    int64_t count; /* of rows */
    sb_attention_row *row;
    sb_attention_sum *sum, *total; /* of each row */
    sb_attention_marks *marks;     /* of the present block */
    float *scores;                 /* [rows][keys of a block]: then weights */
    uint16_t *stored;              /* the same in 16 bits; NULL for f32 */
    float *bias;                   /* of one row */
    float *sums;                   /* of the present split */
    float *totals;                 /* [rows][columns of values]: of all splits before */
    char *products;                /* the products' own workspace, aligned to 64 */
} sb_attention_unit;

struct sb_attention_products {
    /* Sets plan->tile and plan->tiles. */
    void (*cut)(sb_attention_plan *plan);
    /* Adds the bytes of workspace for `plan->rows` rows, each part in whole lines of the cache: false on overflow. */
    bool (*add_bytes)(const sb_attention_plan *plan, size_t *bytes);
    /* Makes the queries of all rows ready. */
    void (*take_queries)(sb_attention_unit *unit);
    /* scores = the chains of rows [first, last) and keys block … block + count - 1 (those of the last one's group of 16 or
     * panel are anything). */
    void (*score)(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last);
    /* sums += the values of these keys by their weights, but for weights of +0. */
    void (*add)(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last);
};

extern const sb_attention_products sb_attention_products_f32, sb_attention_products_16;

/** Adds `count` × `size` bytes, rounded up to whole lines of the cache; false on overflow. */
static inline bool sb_attention_add_bytes(size_t *total, int64_t count, size_t size) {
    size_t bytes;
    return !__builtin_mul_overflow((size_t)count, size, &bytes) && !__builtin_add_overflow(bytes, (size_t)63, &bytes) &&
           !__builtin_add_overflow(*total, bytes / 64 * 64, total);
}

/** Takes a part of that size off a workspace. */
static inline void *sb_attention_take_part(char **workspace, int64_t count, size_t size) {
    char *part = *workspace;
    *workspace += ((size_t)count * size + 63) / 64 * 64;
    return part;
}

/** The largest part of keys [key, end) that is one stretch: of keys, or of values. */
static inline sb_attention_stretch sb_attention_keys_from(const sb_attention_unit *unit, bool values, int64_t key,
                                                          int64_t end) {
    const sb_attention_work *work = unit->plan->work;
    sb_attention_stretch from = values ? sb_attention_find_stretch(work, unit->row, &work->past_v, &work->v, key, 0)
                                       : sb_attention_find_stretch(work, unit->row, &work->past_k, &work->k, key, 0);
    from.count = from.count < end - key ? from.count : end - key;
    return from;
}

/** Computes what `work` wants of y, of f16, bf16 or f32 and not wide, without given scores; on all workers of the call.
 * Errors: OUT_OF_MEMORY. */
sb_status sb_attention_run_on_cpu(sb_call *call, const sb_attention_work *work);

#endif
