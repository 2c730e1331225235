/* Products of few rows behind a norm: in graphs that are built, one kernel does both. Its results are those of the norm and the product by
 * themselves, and what the norm makes is still there for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_joined.h"

/* The case of a model, which sb_model_make's callback knows by this alone. */
typedef struct shape {
    sb_dtype dtype;
    int64_t rows, k, n;
    bool gated;     /* a gate and what it opens, else one product */
    bool told;      /* the norm's result is an output too */
    bool added;     /* the product's result is added to the norm's */
    const char *op; /* of the norm */
    bool is_long;   /* many runs */
    bool is_joined; /* whether the norm is expected in the product's kernel */
} shape;
static shape current;

static sb_tensor *halves(const int64_t *dims, int rank, uint64_t seed, bool odd) {
    return random_halves(current.dtype, rank, dims, seed, odd ? 100 : 0);
}

static sb_value_id product(builder *b, sb_value_id rows, uint64_t seed) {
    sb_value_id weights = builder_constant(b, halves((int64_t[]){current.n, current.k}, 2, seed, false));
    return builder_binary(b, "MatMul", rows, transpose(b, weights, 2, (int64_t[]){1, 0}));
}

static sb_model *normed(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, current.dtype, 2, (int64_t[]){current.rows, current.k});
    sb_value_id scales = builder_constant(&b, halves(&current.k, 1, 11, false));
    /* Not the run's input itself: where that lies is its caller's matter. */
    sb_value_id rows = builder_binary(&b, "Add", x, scales);
    sb_value_id norm =
        attribute_node(&b, current.op, 2, (sb_value_id[]){rows, scales}, "axis", true, 1, (int64_t[]){1});
    sb_value_id made = product(&b, norm, 12);
    if (current.gated)
        made = builder_binary(&b, "SwiGLU", made, product(&b, norm, 13));
    mark_output(&b, current.added ? builder_binary(&b, "Add", made, norm) : made);
    mark_output(&b, rows);
    if (current.told)
        mark_output(&b, norm);
    return model_of(&b, passes);
}

static void make_input(sb_tensor **inputs, uint64_t run) {
    inputs[0] = halves((int64_t[]){current.rows, current.k}, 2, 100 + run, run % 4 == 3);
}

static void check(shape given) {
    current = given;
    const joined_runs runs = {given.is_long ? 60 : 8, 1, given.told ? 3 : 2, make_input};
    check_joined(normed, &runs, given.is_joined);
}

/* K that ends in the middle of a stage, and at its end; all numbers of rows for which threads share the work in another way. */
static void test_rows(void **unused) {
    static const int64_t rows[] = {1, 2, 4, 5, 8}, depths[] = {832, 512, 2176};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 3; j++) {
            const sb_dtype dtype = (i + j) % 2 ? SB_F16 : SB_BF16;
            check((shape){dtype, rows[i], depths[j], 72, .told = true, .op = "RMSNormalization", .is_joined = true});
        }
    }
    /* Orders of a sum are told apart by few elements of f16, and by fewer of bf16. */
    check((shape){SB_F16, 1, 4096, 72, .told = true, .is_long = true, .op = "RMSNormalization", .is_joined = true});
    check((shape){SB_F16, 2, 4096, 72, .told = true, .op = "RMSNormalization", .is_joined = true});
    check((shape){SB_BF16, 9, 832, 72, .op = "RMSNormalization"});
}

static void test_gates(void **unused) {
    check((shape){SB_BF16, 1, 512, 48, .gated = true, .op = "RMSNormalization", .is_joined = true});
    check((shape){SB_F16, 3, 832, 80, .gated = true, .op = "RMSNormalization", .is_joined = true});
}

static void test_others_read_it(void **unused) {
    check((shape){SB_BF16, 1, 512, 40, .told = true, .op = "RMSNormalization", .is_joined = true});
    check((shape){SB_F16, 8, 960, 72, .told = true, .op = "RMSNormalization", .is_joined = true});
}

/* What the kernel does not do: other norms, and nodes behind the product, of which this one reads what the norm makes. */
static void test_apart(void **unused) {
    check((shape){SB_BF16, 1, 320, 320, .added = true, .op = "RMSNormalization"});
    check((shape){SB_BF16, 1, 320, 40, .op = "LayerNormalization"});
    check((shape){SB_BF16, 1, 4160, 40, .op = "RMSNormalization"}); /* has a kernel of another kind */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_others_read_it),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
