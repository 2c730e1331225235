#include "ops/integer_product.h"

#include "numerics/convert.h"

#define NOTE "left_integers" /* scale, least, most */
#define LEAST_INTEGER (-128)
#define MOST_INTEGER 127
#define TOLERANCE 0x1p-22f
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

static float element(const sb_tensor *matrix, int64_t row, int64_t column) {
    return ((const float *)(const void *)matrix->data)[row * matrix->strides[0] + column * matrix->strides[1]];
}

static bool is_multiple(float value, float unit) {
    float n = sb_round_half_even_f32(value / unit);
    float error = value - n * unit, size = value < 0 ? -value : value;
    return n >= LEAST_INTEGER && n <= MOST_INTEGER && error <= size * TOLERANCE && -error <= size * TOLERANCE;
}

/* Whether elements [begin, end) of a column are multiples. */
static bool are_multiples(const sb_tensor *matrix, int64_t column, int64_t begin, int64_t end, float unit) {
    for (int64_t row = begin; row < end; row++) {
        if (!is_multiple(element(matrix, row, column), unit))
            return false;
    }
    return true;
}

/* The largest magnitudes; false: one of them is none that a unit could have. */
static bool find_largest(const sb_tensor *matrix, float *largest) {
    for (int64_t column = 0; column < matrix->dims[1]; column++)
        largest[column] = 0;
    for (int64_t row = 0; row < matrix->dims[0]; row++) {
        for (int64_t column = 0; column < matrix->dims[1]; column++) {
            float value = element(matrix, row, column), size = value < 0 ? -value : value;
            if (!(size <= SB_INTEGER_PRODUCT_MOST_SCALE))
                return false;
            largest[column] = size > largest[column] ? size : largest[column];
        }
    }
    return true;
}

/* The first unit behind `parts` parts of the largest magnitude that fits the rows up to `rows`; 0: none does. */
static float find_unit(const sb_tensor *matrix, int64_t column, float largest, int *parts, int64_t rows) {
    while (++*parts <= -LEAST_INTEGER) {
        float unit = largest / (float)*parts;
        if (unit >= SB_INTEGER_PRODUCT_LEAST_SCALE && are_multiples(matrix, column, 0, rows, unit))
            return unit;
    }
    return 0;
}

bool sb_integer_columns_find(const sb_tensor *matrix, float *units) {
    int64_t rows = matrix->dims[0], first = rows < FIRST_ROWS ? rows : FIRST_ROWS;
    if (!find_largest(matrix, units))
        return false;
    for (int64_t column = 0; column < matrix->dims[1]; column++) {
        float largest = units[column];
        int parts = 0;
        units[column] = 1;
        if (largest == 0)
            continue;
        do
            units[column] = find_unit(matrix, column, largest, &parts, first);
        while (units[column] != 0 && !are_multiples(matrix, column, first, rows, units[column]));
        if (units[column] == 0)
            return false;
    }
    return true;
}
