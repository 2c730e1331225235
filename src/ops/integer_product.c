#include "ops/integer_product.h"

#include <string.h>

#include "numerics/convert.h"
#include "ops/convolution.h"
#include "ops/matmul.h"

#define NOTE "left_integers" /* scale, least, most */
#define LEAST_INTEGER (-128)
#define MOST_INTEGER 127
#define TOLERANCE 0x1p-22f
/* A chain's elements between two looks at its sum: as many as cost a sixth of a short product. */
#define CHUNK 128
/* Rows by which units are told apart: nearly all wrong ones fail at the first or the second. */
#define FIRST_ROWS 64

sb_status sb_integer_operand_note(sb_node *fused, const sb_integer_operand *operand, sb_error *error) {
    const float values[3] = {operand->scale, (float)operand->least, (float)operand->most};
    return sb_attributes_add_floats(&fused->attributes, NOTE, false, 3, values, error);
}

bool sb_integer_operand_of(const sb_node *fused, sb_integer_operand *operand) {
    const sb_attribute *note = sb_attributes_find(&fused->attributes, NOTE);
    if (note == NULL || note->kind != SB_ATTRIBUTE_FLOATS || note->count != 3)
        return false;
    *operand = (sb_integer_operand){note->floats[0], (int32_t)note->floats[1], (int32_t)note->floats[2]};
    return true;
}

bool sb_integer_weights_of(const sb_node *product, const sb_tensor *weights, sb_integer_weights *shape) {
    const int64_t *dims = weights->dims, *strides = weights->strides;
    const char *name = product->op->name;
    if (strcmp(name, "Conv") == 0) {
        if (((const sb_conv_params *)product->params)->group != 1 || weights->rank < 3)
            return false;
        *shape = (sb_integer_weights){1, dims[1], dims[0], strides[weights->rank - 1], strides[1], strides[0]};
        for (int d = weights->rank - 1; d >= 2; d--) {
            if (dims[d] > 1 && strides[d] != shape->taps * shape->tap_stride)
                return false;
            shape->taps *= dims[d];
        }
        return true;
    }
    bool is_gemm = strcmp(name, "Gemm") == 0;
    const sb_gemm_params *params = is_gemm ? product->params : NULL;
    if (weights->rank != 2 || (!is_gemm && strcmp(name, "MatMul") != 0) ||
        (is_gemm && (params->alpha != 1 || params->beta != 1 || params->transpose_a)))
        return false;
    int k = is_gemm && params->transpose_b ? 1 : 0;
    *shape = (sb_integer_weights){1, dims[k], dims[1 - k], 0, strides[k], strides[1 - k]};
    return true;
}

int64_t sb_integer_chunk(const sb_integer_weights *shape) {
    if (shape->taps == 1 || shape->channels % CHUNK == 0)
        return CHUNK;
    int64_t taps = shape->channels < CHUNK ? CHUNK / shape->channels : 1;
    while (taps > 0 && taps * shape->channels % 4 != 0)
        taps--;
    return taps * shape->channels;
}

sb_integer_nodes sb_integer_nodes_of(const sb_node *fused) {
    const sb_graph *body = sb_node_graph(fused, "body");
    size_t count = body->node_count;
    return (sb_integer_nodes){body->nodes[0], body->nodes[count - 2], body->nodes[count - 1], count == 4};
}

/* Rows are numbered in the order of the chains. */
static float element(const float *weights, const sb_integer_weights *shape, int64_t row, int64_t column) {
    return weights[row / shape->channels * shape->tap_stride + row % shape->channels * shape->channel_stride +
                   column * shape->column_stride];
}

static bool is_multiple(float value, float unit) {
    float n = sb_round_half_even_f32(value / unit);
    float error = value - n * unit, size = value < 0 ? -value : value;
    return n >= LEAST_INTEGER && n <= MOST_INTEGER && error <= size * TOLERANCE && -error <= size * TOLERANCE;
}

/* Whether elements [begin, end) of a column are multiples. */
static bool are_multiples(const float *weights, const sb_integer_weights *shape, int64_t column, int64_t begin,
                          int64_t end, float unit) {
    for (int64_t row = begin; row < end; row++) {
        if (!is_multiple(element(weights, shape, row, column), unit))
            return false;
    }
    return true;
}

/* Elements that lie next to each other: of a row, one in each column, or of a column, the channels of a tap. */
typedef struct line {
    int64_t count, step;
} line;

/* Whether columns are nearer to each other than channels. */
static bool has_rows(const sb_integer_weights *shape) {
    return shape->column_stride <= shape->channel_stride;
}

static line line_of(const sb_integer_weights *shape) {
    return has_rows(shape) ? (line){shape->columns, shape->column_stride}
                           : (line){shape->channels, shape->channel_stride};
}

/* All lines, and where units begin of which line's elements have one each, or with `has_rows` one for all of them. */
#define EACH_LINE(shape, from, unit)                                                                                   \
    for (int64_t tap = 0; tap < (shape)->taps; tap++)                                                                  \
        for (int64_t i = 0, outer = has_rows(shape) ? (shape)->channels : (shape)->columns,                            \
                     from = tap * (shape)->tap_stride, unit = 0;                                                       \
             i < outer; i++, from += has_rows(shape) ? (shape)->channel_stride : (shape)->column_stride,               \
                     unit += !has_rows(shape))

/* The larger one of a number and a magnitude, and whether the latter is one that a unit could have. */
static inline float larger(float largest, float value, int *odd) {
    const float size = value < 0 ? -value : value;
    *odd |= !(size <= SB_INTEGER_PRODUCT_MOST_SCALE);
    return size > largest ? size : largest;
}

/* The largest magnitudes; false: one of them is none that a unit could have. */
static bool find_largest(const float *weights, const sb_integer_weights *shape, float *restrict largest) {
    const line along = line_of(shape);
    int odd = 0;
    memset(largest, 0, (size_t)shape->columns * sizeof *largest);
    EACH_LINE(shape, from, unit) {
        if (!has_rows(shape)) {
            for (int64_t j = 0; j < along.count; j++)
                largest[unit] = larger(largest[unit], weights[from + j * along.step], &odd);
        } else {
            for (int64_t j = 0; j < along.count; j++)
                largest[j] = larger(largest[j], weights[from + j * along.step], &odd);
        }
    }
    return odd == 0;
}

/* Whether all elements are multiples of their columns' units: line by line, in the order of memory. */
static bool all_are_multiples(const float *weights, const sb_integer_weights *shape, const float *units) {
    const line along = line_of(shape);
    EACH_LINE(shape, from, unit) {
        int odd = 0;
        if (!has_rows(shape)) {
            for (int64_t j = 0; j < along.count; j++)
                odd |= !is_multiple(weights[from + j * along.step], units[unit]);
        } else {
            for (int64_t j = 0; j < along.count; j++)
                odd |= !is_multiple(weights[from + j * along.step], units[j]);
        }
        if (odd)
            return false;
    }
    return true;
}

/* The first unit behind `parts` parts of the largest magnitude that fits the rows up to `rows`; 0: none does. */
static float find_unit(const float *weights, const sb_integer_weights *shape, int64_t column, float largest, int *parts,
                       int64_t rows) {
    while (++*parts <= -LEAST_INTEGER) {
        float unit = largest / (float)*parts;
        if (unit >= SB_INTEGER_PRODUCT_LEAST_SCALE && are_multiples(weights, shape, column, 0, rows, unit))
            return unit;
    }
    return 0;
}

/* The first unit that fits a whole column, of elements up to `largest`; 0: none does. */
static float find_whole_unit(const float *weights, const sb_integer_weights *shape, int64_t column, float largest,
                             int64_t first) {
    int parts = 0;
    float unit;
    do
        unit = find_unit(weights, shape, column, largest, &parts, first);
    while (unit != 0 && !are_multiples(weights, shape, column, first, shape->taps * shape->channels, unit));
    return unit;
}

bool sb_integer_columns_find(const float *weights, const sb_integer_weights *shape, float *units) {
    int64_t rows = shape->taps * shape->channels, first = rows < FIRST_ROWS ? rows : FIRST_ROWS;
    bool found = find_largest(weights, shape, units);
    /* What fits the first rows fits nearly always, and is cheap to find; all of it is looked at as it lies. */
    for (int64_t column = 0; column < shape->columns && found; column++) {
        int parts = 0;
        units[column] = units[column] == 0 ? 1 : find_unit(weights, shape, column, units[column], &parts, first);
        found = units[column] != 0;
    }
    if (!found || all_are_multiples(weights, shape, units))
        return found;
    find_largest(weights, shape, units);
    for (int64_t column = 0; column < shape->columns && found; column++) {
        units[column] = units[column] == 0 ? 1 : find_whole_unit(weights, shape, column, units[column], first);
        found = units[column] != 0;
    }
    return found;
}
