/* What a kernel takes that carries out a series of tasks, for the host and for the device. */
#ifndef SB_CUDA_SERIES_SERIES_PARAMETERS_H
#define SB_CUDA_SERIES_SERIES_PARAMETERS_H

#include <stdint.h>

/* Threads of a block: those that work, which have the block's first numbers, and those that fetch. */
#define SB_CUDA_SERIES_WORKERS 128
#define SB_CUDA_SERIES_THREADS 256
/* Stages of a block's ring, and behind it room for the rows of a product, where they are few enough to lie there whole: all of the ring
 * brings weights then. */
#define SB_CUDA_SERIES_STAGES 10
#define SB_CUDA_SERIES_STAGE 18432
#define SB_CUDA_SERIES_ROWS 32768
#define SB_CUDA_SERIES_SHARED (SB_CUDA_SERIES_STAGES * SB_CUDA_SERIES_STAGE + SB_CUDA_SERIES_ROWS + 1024)
/* A task's parameters, of which each block has a copy. */
#define SB_CUDA_SERIES_PARAMETERS 2560

/* What a task of a series computes. */
typedef enum sb_cuda_form_kind {
    SB_CUDA_FORM_NONE,    /* a kernel that is launched by itself */
    SB_CUDA_FORM_PRODUCT, /* of few rows: gemm16_hopper.cuh in tiles of 64 by 8 of weights' lines */
    SB_CUDA_FORM_NORMALIZE, /* of few rows: rows/normalize_few.cuh; the variant: elements of a row for each of 256 lanes */
    SB_CUDA_FORM_APPEND,    /* moving/paged_append.cuh */
    SB_CUDA_FORM_ATTENTION /* of few rows: attention/attention16_decode.cuh; the variant: the widest heads, and 1 with pages */
} sb_cuda_form_kind;

typedef struct sb_cuda_form {
    uint8_t kind;   /* sb_cuda_form_kind */
    uint8_t is_f16; /* else bf16 */
    uint16_t variant;
} sb_cuda_form;

/* One task: when it may begin, what a block needs to know of it beforehand, and what the kernel that it would be by itself takes. It is
 * read a task ahead, since memory takes a microsecond to answer. */
typedef struct sb_cuda_series_task {
    const void *parameters;  /* in memory of the device, aligned to 64 bytes */
    int32_t parameter_bytes; /* a multiple of 16, at most SB_CUDA_SERIES_PARAMETERS */
    int32_t
        waits; /* the task that all blocks must have done before anything but weights is read or written, and 1; 0: none */
    int32_t first;            /* the block that takes the task's first part */
    int32_t parts;            /* tiles, or the blocks that it would have by itself */
    int16_t variant;          /* of the form */
    int8_t kind;              /* sb_cuda_form_kind */
    int8_t is_awaited;        /* whether a task waits for this one */
    int8_t has_nodes;         /* whether nodes are behind the product */
    int8_t is_open;           /* whether memory says which of a product's tiles are looked at */
    int8_t is_stacked;        /* whether eight gates and eight values take turns in a product's weights */
    int8_t scratch;           /* stages of the ring that lie side by side, for what a task has in shared memory */
    int32_t k_blocks, copies; /* of products: of 64 k each, and copies of 128 k that a stage takes */
    int32_t tile_rows, last_row;
    int32_t a_box_bytes, b_box_bytes;
    int32_t whole_rows; /* of the product, where they lie in shared memory whole; 0: stages bring them */
} __attribute__((aligned(64))) sb_cuda_series_task; /* so that the parameters behind it lie as tensor maps must */

typedef struct sb_cuda_series {
    const sb_cuda_series_task *tasks; /* in memory of the device */
    uint32_t *
        counters; /* of blocks that have done each task, and behind them of those that have done all; 0 between launches */
    int32_t count;
} sb_cuda_series;

#endif
