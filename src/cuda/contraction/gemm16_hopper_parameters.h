/* What the kernels of 16-bit products by TMA and wgmma take, for the host and for the device. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_HOPPER_PARAMETERS_H
#define SB_CUDA_CONTRACTION_GEMM16_HOPPER_PARAMETERS_H

#include "cuda/common/divisor.h"
#include "cuda/contraction/gemm16_parameters.h"
#include "kernel/logp/logp_tasks.h"

/* A tensor map of the driver (CUtensorMap), which the copy engine reads. */
typedef struct sb_tensor_map {
    uint64_t words[16];
} __attribute__((aligned(64))) sb_tensor_map;

enum {
    SB_GEMM16_PLAIN = 1,      /* only rounded, without gates and epilogues */
    SB_GEMM16_BULK = 2,       /* by TMA: of 16 bits, without a gate */
    SB_GEMM16_WIDE = 4,       /* as f32 */
    SB_GEMM16_PAIRS = 8,      /* those of two neighbouring columns may be stored at once */
    SB_GEMM16_TURNED = 16,    /* swapped, through shared memory: of 16 bits, 16 bytes at once */
    SB_GEMM16_WIDE_BULK = 32, /* as f32, by TMA */
};

/* How the copy engine goes from batch to batch of an operand: what it counts of the inner and of the outer step, 0 where
 * all read the same matrix, else 1; and whether its tensor has a fifth dimension for the outer one, where stages of several
 * boxes need the third. */
typedef struct sb_gemm16_steps {
    int32_t inner, outer, five;
} sb_gemm16_steps;

/* The kernel computes rows × columns tiles of C, or of C transposed when `swapped`: then A of the kernel is B of the
 * product, and its rows are C's columns. A chain does not depend on which factor is which. */
typedef struct sb_gemm16_hopper {
    sb_gemm16 product;
    sb_tensor_map a, b;                /* of the kernel */
    sb_tensor_map c;                   /* where results leave in bulk */
    int64_t rows, columns;             /* of the kernel's C */
    int64_t row_stride, column_stride; /* the same of C */
    int32_t row_tiles, column_tiles;   /* tiles of clusters, and of columns */
    int32_t tile_rows;                 /* that a tile takes of the rows it could, where the factors are swapped */
    int32_t last_row, last_column;     /* where the last tiles begin at the latest; INT32_MAX: where the others end */
    int32_t tiles;                     /* of clusters, of all batches */
    int32_t k_blocks;                  /* of 64 */
    int32_t stages;                    /* in shared memory */
    int32_t stage_bytes;              /* of one: in tiles of 64 rows, fewer where the kernel's A or B has fewer lines */
    int32_t a_box_bytes, b_box_bytes; /* of A's part and of B's for 64 k, as they are fetched */
    int32_t inner;                    /* batches of one outer step; all where there is only one step */
    sb_gemm16_steps a_steps, b_steps;
    const int64_t *used_rows, *used_columns; /* of the kernel's C, in memory of the device; NULL: all */
    int32_t swapped;
    int32_t stacked; /* 1 or 2 where eight gates and eight values take turns in the lines of A or of B, else 0 */
    int32_t storing; /* how results leave: some of SB_GEMM16_PLAIN, … */
    int32_t streams; /* 1 or 2 where no two tiles read the same of A or of B, else 0 */
    int32_t pace;    /* cycles for a stage of those, while they are fetched before the kernel ahead has ended */
    int32_t
        ahead; /* k of those, in 64s, asked for before the kernel ahead has ended; SB_CUDA_SETTLED: nobody ahead writes them */
} sb_gemm16_hopper;

/* A product whose rows are what the output positions of a convolution see of its input: each kernel position gives as many
 * 64s of k as its channels need, the last one filled with zeros. Maps of pixels bring them. */
typedef struct sb_gemm16_conv {
    sb_gemm16_hopper product;      /* `a` is a map of pixels; a batch is a sample, or all samples are one */
    int32_t channels;              /* of the input */
    int32_t kernel[2];             /* kernel positions along width and height */
    int32_t stride[2], begin[2];   /* of the output positions, and the padding in front of them */
    int32_t dilation[2];           /* of the kernel positions */
    sb_cuda_divisor width, height; /* of the output */
} sb_gemm16_conv;

/* A product, and the nodes behind it. */
typedef struct sb_gemm16_fused {
    sb_gemm16_hopper product;
    sb_gemm16_nodes program;
} sb_gemm16_fused;

/* Up to eight rows that a product normalises by their root mean square before it multiplies them: strides in elements, of which a row has
 * `length`, up to 4096. `out` has them too then. */
typedef struct sb_gemm16_norm {
    const uint16_t *x, *scales;
    uint16_t *out;
    int64_t x_row, out_row;
    int32_t rows, length;
    float epsilon;
} sb_gemm16_norm;

typedef struct sb_gemm16_normed {
    sb_gemm16_hopper product; /* the kernel's columns are the rows */
    sb_gemm16_norm norm;
} sb_gemm16_normed;

/* Shared memory behind the ring: the rows, of which eight k of each lie beside each other, then the next eight, up to the end of the last
 * stage, and what the tensor cores read behind them in place of the rows that there are not; and what threads tell each other of sums. */
#define SB_GEMM16_ROWS_BYTES(rows, k_blocks, boxes) (((k_blocks) + (boxes)-1) / (boxes) * (boxes)*128 * (rows) + 128)
#define SB_GEMM16_LANES_BYTES 512

/* A product of logits, and what becomes of them. */
typedef struct sb_gemm16_logits {
    sb_gemm16_hopper product;
    sb_logp_reduce reduce;
} sb_gemm16_logits;

#endif
