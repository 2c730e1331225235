/* Products of numbers that are few: both operands of a MatMul, Gemm or Conv in a quantized network are integers of 8 bits times a scale,
 * and its result becomes an integer again. What is defined is the product in f32, rounded at each step; an exact sum of
 * integers says nearly always which integer comes out, and a bound of all roundings where it does not. */
#ifndef SB_OPS_INTEGER_PRODUCT_H
#define SB_OPS_INTEGER_PRODUCT_H

#include "graph/op.h"

/* Sums of this many products of 8 bits stay below 2^31. */
#define SB_INTEGER_PRODUCT_MOST_K 32768
/* Scales by which no product, sum or rounding error of f32 becomes subnormal or infinite. */
#define SB_INTEGER_PRODUCT_LEAST_SCALE 0x1p-40f
#define SB_INTEGER_PRODUCT_MOST_SCALE 0x1p40f

/* What the left operand's elements are: n scale, rounded to f32, of integers n within [least, most]. */
typedef struct sb_integer_operand {
    float scale;
    int32_t least, most; /* at most 255 apart */
} sb_integer_operand;

/** Notes them at a Fused node. Errors: OUT_OF_MEMORY. */
sb_status sb_integer_operand_note(sb_node *fused, const sb_integer_operand *operand, sb_error *error);

/** Those that are noted; false: none are. */
bool sb_integer_operand_of(const sb_node *fused, sb_integer_operand *operand);

/* The right operand of a product as a matrix of taps · channels rows, in the order of the chains; strides in elements. Of a
 * MatMul or Gemm there is one tap. */
typedef struct sb_integer_weights {
    int64_t taps, channels, columns;
    int64_t tap_stride, channel_stride, column_stride;
} sb_integer_weights;

/** That of the weights of `product`: a MatMul or Gemm with a matrix on the right, or a Conv of one group whose kernels lie row-major;
 * false: it is none of those, or has factors or an operand that is transposed on the left. */
bool sb_integer_weights_of(const sb_node *product, const sb_tensor *weights, sb_integer_weights *shape);

/** Into how many elements of a chain a bound of its roundings is cut: whole taps, or a part of one, and whole words of four
 * integers; 0: there is no such number. */
int64_t sb_integer_chunk(const sb_integer_weights *shape);

/** Whether each column is made of integers within [−128, 127] times a unit of its own, but for less than 2^-22 of an element;
 * the units go to `units`, which has room for one for each column. A column of zeros has the unit 1. */
bool sb_integer_columns_find(const float *weights, const sb_integer_weights *shape, float *units);

/** The nodes of a fused product: QuantizeLinear and DequantizeLinear at its end, and whether Relu is before them. */
typedef struct sb_integer_nodes {
    const sb_node *product, *there, *back;
    bool rectifies;
} sb_integer_nodes;
sb_integer_nodes sb_integer_nodes_of(const sb_node *fused);

#endif
