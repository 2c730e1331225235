/* What an instruction set contributes to matrix products and convolutions: register tiles and data
 * movement. Blocking, edges and padding are decided once, in gemm.c and conv.c. */
#ifndef SB_CPU_CONTRACTION_GEMM_KERNELS_H
#define SB_CPU_CONTRACTION_GEMM_KERNELS_H

#include "cpu/contraction/gemm.h"

/* The largest number of rows in a tile over all instruction sets. */
#define SB_GEMM_ROWS_MAX 14

/* Wide tiles are for up to this many rows. */
#define SB_GEMM_WIDE_ROWS 3

/* Bytes that a tile brings nearer for each k. */
#define SB_GEMM_PREFETCH ((int64_t)(8 * sizeof(float)))

/* Whether the line's function shares what is loaded between pixels: then short lines are worth a call. */
static inline bool sb_depthwise_line_shares(int64_t width, int64_t stride, int64_t dilation) {
    return (width == 3 || width == 5 || width == 7) && stride <= 2 && dilation == 1;
}

/* One register tile: `rows` × (at most one panel of columns), over a part of k.
 *
 * Row r's values for ascending k are `runs` runs of `length` values; run i starts at
 * a[i * a_run_step + r] + a_offset. For a matrix that is one run, for a convolution one run per
 * kernel position (or per kernel row, where positions lie behind each other in memory). */
typedef struct sb_gemm_tile {
    const float *const *a;
    int64_t a_run_step, a_offset;
    int64_t runs, length;
    const float *b; /* row k of the panel is at b + k * b_step and has a whole panel's columns to read */
    int64_t b_step;
    int64_t b_panel_step; /* from one panel to the next */
    /* What to bring nearer meanwhile: SB_GEMM_PREFETCH bytes from here for each k. Need not be readable. */
    const char *prefetch;
    float *const *c; /* row r's `columns` contiguous elements start at c[r] + c_offset */
    int64_t c_offset;
    int64_t columns; /* at most `panel`; for `wide` tiles exactly wide_panels times that */
    bool continues;  /* start from c, not from +0 */
    int steps;       /* of the epilogue to apply in registers: 0 unless this is the end of k */
    const sb_epilogue_step *step;
    int64_t m, n; /* of the tile's first element in all of C */
} sb_gemm_tile;

typedef void sb_gemm_tile_function(const sb_gemm_tile *tile);

/* Pixels of the depthwise tile. */
#define SB_DEPTHWISE_PIXELS 6

/* A tile of a depthwise convolution: some output pixels × any channels, one chain per element over `taps` kernel
 * positions. Epilogue operands and columns count as for a matrix: row = pixel, column = channel. */
typedef struct sb_depthwise_tile {
    /* Where input pixels' channel 0 is: x[tap * x_step + pixel], SB_DEPTHWISE_PIXELS of them whatever `pixels` is. */
    const float *const *x;
    int64_t x_step;
    const float *w;  /* [block of `lanes` channels][tap][lane], zero padded, and `lanes` floats more */
    float *const *y; /* each output pixel's channel 0 is at y[pixel] + y_offset */
    int64_t y_offset;
    int64_t taps, pixels;
    int64_t channel0, channel1; /* which channels to compute */
    int steps;
    const sb_epilogue_step *step;
    int64_t m; /* of the first pixel */
} sb_depthwise_tile;

/* The input of consecutive pixels of an output row. Of each kernel row, of `width` positions, x tells where channel 0 of
 * column 0 is, columns lie `step` apart, and pixel p reads from column start + p * stride on, `dilation` apart. Columns
 * outside of [0, columns), and rows whose x is `zero`, are padding: `zero` shows as many zeros as there are channels. */
typedef struct sb_depthwise_line {
    const float *const *x;
    const float *zero;
    int64_t rows, width, stride, dilation;
    int64_t step, start, columns;
} sb_depthwise_line;

/* Consecutive pixels of an output row and columns [n0, n1) of a convolution of one group. Of each kernel row, of `width`
 * positions, x tells where channel 0 of column 0 is; columns lie `step` apart, channels `channel_step`, and pixel p reads
 * from column start + p * stride on, `dilation` apart. Columns outside of [0, columns), and rows whose x is `zero`, which
 * shows one zero, are padding. */
typedef struct sb_conv_line {
    const float *const *x;
    const float *zero;
    int64_t rows, width, channels, stride, dilation;
    int64_t step, channel_step, start, columns;
    const float *w;               /* the panel of column n0, packed as for products */
    int64_t panel;                /* columns of a panel */
    int64_t n0, n1, panel_offset; /* n0's place in its panel */
    float *const *y;              /* each pixel's column n0 */
    bool far;                     /* all of y is too large to be in a cache */
    int64_t pixels;
    int steps;
    const sb_epilogue_step *epilogue;
    int64_t m; /* of the first pixel */
} sb_conv_line;

typedef void sb_conv_line_function(const sb_conv_line *line);

/* Columns that have a kernel of their own, whose lanes are pixels: at most so many. */
#define SB_CONV_PLANE_COLUMNS 4
/* False, and nothing done, where the line is not of that kind. */
typedef bool sb_conv_planes_function(const sb_conv_line *line);

typedef void sb_depthwise_tile_function(const sb_depthwise_tile *tile);
/* Any number of pixels; the tile's x is not read. */
typedef void sb_depthwise_line_function(const sb_depthwise_tile *tile, const sb_depthwise_line *line);

struct sb_gemm_kernels {
    const char *name;
    int64_t lanes;
    int64_t rows;                       /* most rows of a tile */
    int64_t panel;                      /* columns of a packed panel: panels are [k][panel], zero padded */
    sb_gemm_tile_function *const *tile; /* [rows - 1]; one panel */
    /* [rows - 1]: exactly wide_panels[rows - 1] whole panels in one pass, so that a few rows still
     * keep the multipliers busy and several memory streams open. */
    sb_gemm_tile_function *const *wide;
    int64_t wide_panels[SB_GEMM_WIDE_ROWS];
    /* Copies rows × columns elements with any source strides to rows that are contiguous in the destination. */
    void (*copy)(int64_t rows, int64_t columns, const float *source, int64_t row_stride, int64_t column_stride,
                 float *destination, int64_t destination_stride);
    /* Epilogue steps [0, count) over a finished row segment, CALLs included. */
    void (*epilogue_row)(const sb_epilogue_step *step, int steps, float *row, int64_t m, int64_t n, int64_t count);
    sb_depthwise_tile_function *depthwise;
    sb_depthwise_line_function *depthwise_line;
    sb_conv_line_function *conv_line;
    sb_conv_planes_function *conv_planes;
};

sb_depthwise_tile_function sb_depthwise_f32_tile_scalar, sb_depthwise_f32_tile_avx2, sb_depthwise_f32_tile_avx512;
sb_depthwise_line_function sb_depthwise_f32_line_scalar, sb_depthwise_f32_line_avx2, sb_depthwise_f32_line_avx512;
sb_conv_line_function sb_conv_f32_line_scalar, sb_conv_f32_line_avx2, sb_conv_f32_line_avx512;
sb_conv_planes_function sb_conv_f32_planes_scalar, sb_conv_f32_planes_avx2, sb_conv_f32_planes_avx512;

extern const sb_gemm_kernels sb_gemm_f32_kernels_scalar;
extern const sb_gemm_kernels sb_gemm_f32_kernels_avx2;
extern const sb_gemm_kernels sb_gemm_f32_kernels_avx512;

/** Whether a step's operand has an element for each of C's. */
static inline bool sb_epilogue_has_matrix(sb_epilogue_kind kind) {
    return kind == SB_EPILOGUE_ADD_MATRIX || kind == SB_EPILOGUE_MUL_MATRIX;
}

/** Whether a step can run inside a tile: not a CALL, and no matrix with strided columns. */
static inline bool sb_epilogue_in_registers(const sb_epilogue_step *step) {
    return step->kind != SB_EPILOGUE_CALL && (!sb_epilogue_has_matrix(step->kind) || step->column_stride == 1);
}

#endif
