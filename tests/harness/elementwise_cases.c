/* Element-wise operators of one and of two inputs, all of their lists, of each dtype, and copies of tensors. */
#include "harness/harness.h"
#include "ops/binary.h"
#include "ops/unary.h"
#include "tensor/walk.h"

#define VERSION 28 /* of the operator set: the first in which Mod takes floats by every rule */

/* ---- shapes ---- */

/* Operand 0 is the output, 1 and 2 are the inputs. */
typedef struct shape {
    int rank;
    int64_t dims[4];
    bool permuted[3];      /* strides in another order, with gaps */
    unsigned broadcast[3]; /* dimensions in which the operand has extent 1, a bit each */
} shape;

static const shape shapes[] = {
    {1, {1031}, {false, false, false}, {0, 0, 0}},
    {0, {0}, {false, false, false}, {0, 0, 0}},
    {2, {3, 0}, {false, false, false}, {0, 0, 0}},
    {3, {5, 7, 11}, {false, true, true}, {0, 0, 0}},
    {4, {3, 4, 5, 6}, {true, false, true}, {0, 0, 0}},
    {3, {6, 10, 9}, {false, false, false}, {0, 0, 3}},
    {3, {6, 10, 9}, {false, false, false}, {0, 1, 4}},
    {3, {3, 5, 16}, {false, false, false}, {0, 0, 2}},
    {3, {3, 5, 8}, {false, false, false}, {0, 4, 3}},
    {3, {3, 6, 12}, {false, true, false}, {0, 0, 1}},
    /* matrices, which kernels move by tiles where they are transposed */
    {2, {70, 37}, {false, true, true}, {0, 0, 0}},
    {3, {33, 3, 40}, {false, true, false}, {0, 0, 0}},
    {3, {33, 17, 3}, {true, false, false}, {0, 0, 0}},
    {2, {40, 9}, {false, true, false}, {0, 0, 3}},
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

static sb_tensor *operand(harness *h, const shape *shape, int which, sb_dtype dtype) {
    int64_t dims[SB_MAX_RANK];
    for (int d = 0; d < shape->rank; d++)
        dims[d] = (shape->broadcast[which] >> d & 1) != 0 ? 1 : shape->dims[d];
    return shape->permuted[which] ? permuted_tensor(h, dtype, shape->rank, dims)
                                  : make_tensor(h, dtype, shape->rank, dims, PACKED);
}

/* What random_tensor is asked for beside those shapes: no multiple of any vector. */
static const int64_t odd[] = {3, 5, 37};

static bool is_among(const char *name, int count, const char *const *names) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static sb_dtype result_dtype(const char *op, sb_dtype dtype) {
    static const char *const questions[] = {
        "IsNaN", "IsInf", "Not", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"};
    return is_among(op, sizeof questions / sizeof questions[0], questions) ? SB_BOOL : dtype;
}

/* ---- operators of one input ---- */

#define NAME(op) #op,
static const char *const unary_names[] = {SB_UNARY_OPS(NAME) "GeluTanh"};

/* The attributes behind a and b of unary_formulas.h. */
static const struct {
    const char *op, *names[2];
} unary_attributes[] = {
    {"LeakyRelu", {"alpha", NULL}}, {"ThresholdedRelu", {"alpha", NULL}},
    {"Elu", {"alpha", NULL}},       {"Selu", {"alpha", "gamma"}},
    {"Celu", {"alpha", NULL}},      {"HardSigmoid", {"alpha", "beta"}},
    {"Swish", {"alpha", NULL}},     {"Shrink", {"lambd", "bias"}},
};

/* Variant 3: as they are unless given. */
static void set_unary_attributes(harness_case *test, int variant) {
    static const float values[][2] = {{0.25f, 1.5f}, {0, 1}, {1.6732632f, 1.050701f}};
    if (strcmp(test->op, "IsInf") == 0 && variant < 3) {
        set_int(test, "detect_negative", variant > 0);
        set_int(test, "detect_positive", variant < 2);
    }
    for (size_t i = 0; i < sizeof unary_attributes / sizeof unary_attributes[0] && variant < 3; i++) {
        for (int a = 0; a < 2 && strcmp(test->op, unary_attributes[i].op) == 0; a++) {
            if (unary_attributes[i].names[a] != NULL)
                set_float(test, unary_attributes[i].names[a], values[variant][a]);
        }
    }
}

static harness_case unary_case(int row, sb_tensor *input, int variant) {
    bool by_tanh = row == SB_UNARY_ROW_GeluTanh;
    harness_case test = harness_op(by_tanh ? "Gelu" : unary_names[row], VERSION);
    add_input(&test, input);
    if (by_tanh)
        set_text(&test, "approximate", "tanh");
    set_unary_attributes(&test, variant);
    return test;
}

static void check_unary(harness *h, int row, sb_dtype dtype, int s) {
    harness_case test = unary_case(row, operand(h, &shapes[s], 1, dtype), s % 4);
    if (shapes[s].permuted[0])
        place_output(&test, operand(h, &shapes[s], 0, result_dtype(test.op, dtype)));
    harness_run(h, &test);
}

HARNESS_GROUP(elementwise, unary, HARNESS_CPU | HARNESS_CUDA) {
    for (int row = 0; row < SB_UNARY_ROWS; row++) {
        int found = 0;
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            if (sb_unary_loops_scalar[row][dtype] == NULL)
                continue;
            found++;
            for (int s = 0; s < SHAPES; s++)
                check_unary(h, row, (sb_dtype)dtype, s);
            for (int kind = 0; kind < DISTRIBUTIONS; kind++) {
                harness_case test =
                    unary_case(row, random_tensor(h, (distribution)kind, (sb_dtype)dtype, 3, odd), kind % 4);
                harness_run(h, &test);
            }
        }
        assert_true(found > 0);
    }
}

/* Every f16 and bf16 that there is. */
HARNESS_GROUP(elementwise, halves, HARNESS_CUDA) {
    for (int row = 0; row < SB_UNARY_ROWS; row++) {
        for (int dtype = SB_F16; dtype <= SB_BF16; dtype++) {
            if (sb_unary_loops_scalar[row][dtype] == NULL)
                continue;
            sb_tensor *all = make_tensor(h, (sb_dtype)dtype, 1, (int64_t[]){65536}, PACKED);
            for (int i = 0; i < 65536; i++)
                ((uint16_t *)(void *)all->data)[i] = (uint16_t)i;
            harness_case test = unary_case(row, all, 0);
            harness_run(h, &test);
        }
    }
}

/* ---- operators of two inputs ---- */

/* By the rows of the tables of loops, and Sum, which has none of its own. */
static const char *const binary_names[] = {SB_BINARY_OPS(NAME) "Mod", "BitShift", "Max", "Min", "Pow", "Sum"};
#define SUM SB_BINARY_ROWS

static harness_case binary_case(int row, sb_tensor *left, sb_tensor *right) {
    harness_case test = harness_op(binary_names[row], VERSION);
    add_input(&test, left);
    add_input(&test, right);
    if (row == SB_BINARY_ROW_Mod || row == SB_BINARY_ROW_Fmod)
        set_int(&test, "fmod", row == SB_BINARY_ROW_Fmod);
    if (row == SB_BINARY_ROW_BitShift || row == SB_BINARY_ROW_ShiftRight)
        set_text(&test, "direction", row == SB_BINARY_ROW_BitShift ? "LEFT" : "RIGHT");
    return test;
}

/* Whether the kernels' name is the operator's: they can be told where their output lies. */
static bool is_direct(int row) {
    return row != SUM && row != SB_BINARY_ROW_Max && row != SB_BINARY_ROW_Min && row != SB_BINARY_ROW_Pow;
}

static bool has_row(int row, sb_dtype dtype) {
    return sb_binary_loops_scalar[row == SUM ? SB_BINARY_ROW_Pow : row][dtype] != NULL;
}

static bool divides_integers(int row, sb_dtype dtype) {
    bool divides = row == SB_BINARY_ROW_Div || row == SB_BINARY_ROW_Mod || row == SB_BINARY_ROW_Fmod;
    return divides && sb_dtype_is_integer(dtype);
}

static void check_binary(harness *h, int row, sb_dtype dtype, const shape *shape) {
    harness_case test = binary_case(row, operand(h, shape, 1, dtype), operand(h, shape, 2, dtype));
    if (shape->permuted[0] && is_direct(row))
        place_output(&test, operand(h, shape, 0, result_dtype(test.op, dtype)));
    harness_run(h, &test);
}

static void check_distribution(harness *h, int row, sb_dtype dtype, distribution kind) {
    int64_t other[] = {random_between(&h->random, 0, 1) == 0 ? 1 : 5, random_between(&h->random, 0, 1) == 0 ? 1 : 37};
    harness_case test =
        binary_case(row, random_tensor(h, kind, dtype, 3, odd), random_tensor(h, kind, dtype, 2, other));
    harness_run(h, &test);
}

HARNESS_GROUP(elementwise, binary, HARNESS_CPU | HARNESS_CUDA) {
    for (int row = 0; row <= SUM; row++) {
        int found = 0;
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            if (!has_row(row, (sb_dtype)dtype) || divides_integers(row, (sb_dtype)dtype))
                continue;
            found++;
            for (int s = 0; s < SHAPES; s++)
                check_binary(h, row, (sb_dtype)dtype, &shapes[s]);
            for (int kind = 0; kind < DISTRIBUTIONS; kind++)
                check_distribution(h, row, (sb_dtype)dtype, (distribution)kind);
        }
        assert_true(found > 0);
    }
}

/* Divisors: as they come, where those that are 0 are at fault, or none of them 0 and many of them -1; and dividends that
 * are the least number, whose quotient by -1 does not exist. */
static void choose_divisors(harness *h, sb_tensor *left, sb_tensor *right) {
    size_t size = sb_dtype_size(right->dtype);
    uint64_t least = UINT64_C(1) << (8 * size - 1);
    for (size_t i = 0; i < right->storage->bytes / size; i++) {
        uint64_t value = 0, bits = random_bits(&h->random);
        char *at = (char *)right->storage->data + i * size;
        memcpy(&value, at, size);
        value = bits % 8 == 0 ? UINT64_MAX : value == 0 ? 1 + (bits >> 8) % 7 : value;
        memcpy(at, &value, size);
    }
    for (size_t i = 0; i < left->storage->bytes / size; i++) {
        if (random_bits(&h->random) % 4 == 0)
            memcpy((char *)left->storage->data + i * size, &least, size);
    }
}

/* Of integers. */
HARNESS_GROUP(elementwise, divisions, HARNESS_CUDA) {
    static const int rows[] = {SB_BINARY_ROW_Div, SB_BINARY_ROW_Mod, SB_BINARY_ROW_Fmod};
    for (int i = 0; i < 3; i++) {
        int found = 0;
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            if (!divides_integers(rows[i], (sb_dtype)dtype) || !has_row(rows[i], (sb_dtype)dtype))
                continue;
            found++;
            for (int s = 0; s < SHAPES; s++) {
                sb_tensor *left = operand(h, &shapes[s], 1, (sb_dtype)dtype);
                sb_tensor *right = operand(h, &shapes[s], 2, (sb_dtype)dtype);
                if ((s + dtype) % 5 != 0)
                    choose_divisors(h, left, right);
                harness_case test = binary_case(rows[i], left, right);
                if (shapes[s].permuted[0])
                    place_output(&test, operand(h, &shapes[s], 0, (sb_dtype)dtype));
                harness_run(h, &test);
            }
        }
        assert_true(found > 0);
    }
}

/* Floats of every distance of exponents, half of them with few different ones, the least: remainders come from a device's
 * own fmod, which has to be exact. */
static sb_tensor *many_exponents(harness *h, sb_dtype dtype, int64_t count) {
    sb_tensor *tensor = make_tensor(h, dtype, 1, &count, PACKED);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(&h->random);
        if (dtype == SB_F64)
            ((uint64_t *)(void *)tensor->data)[i] = i % 2 != 0 ? bits & 0x803fffffffffffff : bits;
        else
            ((uint32_t *)(void *)tensor->data)[i] = (uint32_t)(bits >> 32) & (i % 2 != 0 ? 0x83ffffffu : UINT32_MAX);
    }
    return tensor;
}

HARNESS_GROUP(elementwise, remainders, HARNESS_CUDA) {
    for (int i = 0; i < 4; i++) {
        sb_dtype dtype = i < 2 ? SB_F32 : SB_F64;
        int row = i % 2 == 0 ? SB_BINARY_ROW_Mod : SB_BINARY_ROW_Fmod;
        sb_tensor *left = many_exponents(h, dtype, 1 << 17), *right = many_exponents(h, dtype, 1 << 17);
        harness_case test = binary_case(row, left, right);
        harness_run(h, &test);
    }
}

/* ---- what kernels of other operators are made of ---- */

/* *fault: an integer has been divided by 0. */
static sb_tensor *apply_loop(int row, sb_tensor *const inputs[2], const sb_tensor *like, bool *fault) {
    sb_tensor *result;
    sb_walk walk;
    sb_binary_context context = {false};
    MUST(sb_tensor_create(like->dtype, like->rank, like->dims, &result, error));
    const sb_tensor *operands[3] = {result, inputs[0], inputs[1]};
    sb_walk_start(&walk, result->rank, result->dims, 3, operands);
    sb_walk_run(&walk, sb_binary_loops_scalar[row][inputs[0]->dtype], &context);
    *fault = context.divided_by_zero;
    return result;
}

static void check_join(harness *h, int row, sb_dtype dtype, const shape *shape) {
    const char *op = row == SB_BINARY_ROW_Fmod ? "Fmod" : binary_names[row];
    sb_tensor *place = operand(h, shape, 0, dtype);
    sb_tensor *inputs[2] = {operand(h, shape, 1, dtype), operand(h, shape, 2, dtype)};
    char what[64];
    snprintf(what, sizeof what, "two operands of %s", op);
    if (harness_wants(h, what, inputs, 2) && (h->sides & HARNESS_CUDA) != 0) {
        bool expected_fault, found_fault;
        sb_tensor *expected = apply_loop(row, inputs, place, &expected_fault);
        sb_tensor *found = harness_join_on_device(h, op, place, inputs, &found_fault);
        harness_compare(h, "the device's kernel", expected, found, inputs, 2);
        if (expected_fault != found_fault)
            harness_fail("%s: the device notes %s", what, found_fault ? "a fault" : "no fault");
        sb_tensor_release(expected);
        sb_tensor_release(found);
    }
    for (int i = 0; i < 2; i++)
        sb_tensor_release(inputs[i]);
    sb_tensor_release(place);
    harness_next(h);
}

/* Joining two operands at a time, with the output in any place: what Max, Min and Pow of other dtypes come down to. And
 * what integers divided by 0 give beside the fault, which no node shows. */
HARNESS_GROUP(elementwise, joins, HARNESS_CUDA) {
    static const int rows[] = {SB_BINARY_ROW_Max, SB_BINARY_ROW_Min, SB_BINARY_ROW_Pow,
                               SB_BINARY_ROW_Div, SB_BINARY_ROW_Mod, SB_BINARY_ROW_Fmod};
    for (int i = 0; i < 6; i++) {
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            bool joins = has_row(rows[i], (sb_dtype)dtype) && (i < 3 || divides_integers(rows[i], (sb_dtype)dtype));
            for (int s = 0; s < SHAPES && joins; s++)
                check_join(h, rows[i], (sb_dtype)dtype, &shapes[s]);
        }
    }
}

static void check_copy(harness *h, sb_dtype dtype, const shape *shape) {
    sb_tensor *place = operand(h, shape, 0, dtype), *from = operand(h, shape, 1, dtype);
    if (harness_wants(h, "copy", &from, 1) && (h->sides & HARNESS_CUDA) != 0) {
        sb_tensor *spread, *expected, *found = harness_copy_on_device(h, place, from);
        MUST(sb_tensor_broadcast(from, place->rank, place->dims, &spread, error));
        MUST(sb_tensor_create(dtype, place->rank, place->dims, &expected, error));
        sb_tensor_copy_elements(expected, spread);
        harness_compare(h, "the device's copying", expected, found, &from, 1);
        sb_tensor_release(spread);
        sb_tensor_release(expected);
        sb_tensor_release(found);
    }
    sb_tensor_release(place);
    sb_tensor_release(from);
    harness_next(h);
}

/* Heads of a transformer: rows that stay together. */
static void check_rows(harness *h, sb_dtype dtype, int64_t length) {
    sb_tensor *packed = make_tensor(h, dtype, 4, (int64_t[]){2, 5, 3, length}, PACKED), *heads = NULL;
    const int64_t dims[4] = {2, 3, 5, length}, strides[4] = {15 * length, length, 3 * length, 1};
    MUST(sb_tensor_wrap(dtype, 4, dims, strides, packed->data, NULL, NULL, &heads, error));
    if (harness_wants(h, "copy of rows", &heads, 1) && (h->sides & HARNESS_CUDA) != 0) {
        sb_tensor *place = make_tensor(h, dtype, 4, heads->dims, PACKED), *expected;
        sb_tensor *found = harness_copy_on_device(h, place, heads);
        MUST(sb_tensor_create(dtype, 4, heads->dims, &expected, error));
        sb_tensor_copy_elements(expected, heads);
        harness_compare(h, "the device's copying", expected, found, &heads, 1);
        sb_tensor_release(place);
        sb_tensor_release(expected);
        sb_tensor_release(found);
    }
    sb_tensor_release(heads);
    sb_tensor_release(packed);
    harness_next(h);
}

HARNESS_GROUP(elementwise, copies, HARNESS_CUDA) {
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int s = 0; s < SHAPES; s++)
            check_copy(h, (sb_dtype)dtype, &shapes[s]);
        for (int64_t length = 4; length <= 64; length += length < 16 ? 4 : 16)
            check_rows(h, (sb_dtype)dtype, length);
    }
}
