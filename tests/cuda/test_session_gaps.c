/* Constants of products of 16 bits whose rows are no multiples of 16 bytes: on a device gaps are left behind the rows, so that the
 * copy engine fetches them, and nothing is there twice. And operands of which that is true that a run computes: copied ahead of
 * the product, where that is quicker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_models.h"

/* What placement says of products: how many there are, of Hopper's own schedules, and with operands that are copied. */
typedef struct told {
    int products, quick, copied;
} told;

static void note_way(void *context, const sb_placed_node *node) {
    told *told = context;
    if (node->way == NULL)
        return;
    told->products++;
    told->quick += strncmp(node->way, "general", 7) != 0;
    told->copied += node->slow != NULL && strstr(node->slow, "is copied ahead of it") != NULL;
}

static told ways_of(sb_session *session) {
    told told = {0};
    assert_int_equal(sb_session_visit_placement(session, note_way, &told), 0);
    return told;
}

/* ---- constants ---- */

static sb_value_id constant(builder *b, sb_dtype dtype, int rank, const int64_t *dims, uint64_t seed) {
    return builder_constant(b, random_tensor(dtype, rank, dims, seed));
}

/* Tokens mixed by a matrix on the left; layers whose weights lie either way, with nodes behind; a matrix for each head; a result of
 * odd rows. `width` is odd, or not. */
#define MIXER_OUTPUTS 4
static sb_model *mixer(sb_dtype dtype, int64_t width, bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, dtype, 3, (int64_t[]){2, width, 64});
    sb_value_id mixed = builder_binary(&b, "MatMul", constant(&b, dtype, 2, (int64_t[]){width, width}, 1), x);
    sb_value_id turned = transpose(&b, x, 3, (int64_t[]){0, 2, 1}); /* 2 64 width */
    sb_value_id layer = builder_binary(&b, "MatMul", turned, constant(&b, dtype, 2, (int64_t[]){width, width}, 2));
    sb_value_id odd = builder_binary(&b, "MatMul", x, constant(&b, dtype, 2, (int64_t[]){64, width + 2}, 3));
    sb_value_id relu =
        builder_unary(&b, "Relu", builder_binary(&b, "Add", mixed, constant(&b, dtype, 1, (int64_t[]){64}, 4)));
    sb_value_id heads = builder_binary(&b, "MatMul", x, constant(&b, dtype, 3, (int64_t[]){2, 64, width + 4}, 5));
    mark_output(&b, builder_binary(&b, "Add", constant(&b, dtype, 1, (int64_t[]){width}, 6), layer));
    mark_output(&b, relu);
    mark_output(&b, odd);
    mark_output(&b, heads);
    return model_of(&b, passes);
}

/* The blocks of memory that the device has been asked for by sessions of every kind. */
static int64_t check_mixer(sb_dtype dtype, int64_t width, bool passes) {
    setting s = start_device();
    s.model = mixer(dtype, width, passes);
    s.cpu = cpu_session(s.model);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, false, NULL);
        for (uint64_t i = 0; i < 3; i++) {
            sb_tensor *x = random_tensor(dtype, 3, (int64_t[]){2, width, 64}, 20 + i);
            run_both(session, s.cpu, s.device, 1, &x, MIXER_OUTPUTS);
            sb_tensor_release(x);
        }
        told told = ways_of(session);
        assert_int_equal(told.products, 4);
        assert_int_equal(told.quick, 4);
        assert_int_equal(told.copied, 0);
        sb_session_destroy(session);
    }
    int64_t blocks = counters_of(s.device).device_allocations;
    finish(&s);
    return blocks;
}

static void test_constants(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        int64_t even = check_mixer(SB_F16, 48, passes != 0);
        assert_int_equal(check_mixer(SB_F16, 49, passes != 0), even);
        assert_int_equal(check_mixer(SB_BF16, 51, passes != 0), even);
    }
}

/* ---- the same elements for several readers ---- */

/* The view shares the tensor's storage; references are the builder's. */
static sb_value_id turned_constant(builder *b, sb_tensor *tensor) {
    sb_tensor *view;
    MUST(sb_tensor_transpose(tensor, (int[]){1, 0}, &view, error));
    return builder_constant(b, view);
}

/* An embedding whose rows are of an odd width, and the head that is its transpose. */
static sb_model *tied(int64_t width, bool is_tied) {
    builder b = builder_create();
    sb_tensor *table = random_tensor(SB_F16, 2, (int64_t[]){40, width}, 7),
              *other = is_tied ? sb_tensor_retain(table) : random_tensor(SB_F16, 2, (int64_t[]){40, width}, 8);
    sb_value_id tokens = builder_input(&b, SB_S64, 1, (int64_t[]){16});
    sb_value_id head = turned_constant(&b, other);
    sb_value_id rows = builder_binary(&b, "Gather", builder_constant(&b, table), tokens);
    sb_value_id layer = builder_binary(&b, "MatMul", rows, constant(&b, SB_F16, 2, (int64_t[]){width, width}, 9));
    sb_tensor_release(other);
    mark_output(&b, builder_binary(&b, "MatMul", layer, head));
    mark_output(&b, rows);
    return model_of(&b, false);
}

static int64_t check_tied(int64_t width, bool is_tied) {
    setting s = start_device();
    s.model = tied(width, is_tied);
    s.cpu = cpu_session(s.model);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    sb_tensor *tokens = NULL;
    MUST(sb_tensor_create(SB_S64, 1, (int64_t[]){16}, &tokens, error));
    for (int64_t i = 0; i < 16; i++)
        ((int64_t *)sb_tensor_mutable_data(tokens))[i] = i * 7 % 40;
    for (int i = 0; i < 3; i++)
        run_both(session, s.cpu, s.device, 1, &tokens, 2);
    sb_tensor_release(tokens);
    int64_t blocks = counters_of(s.device).device_allocations;
    sb_session_destroy(session);
    finish(&s);
    return blocks;
}

static void test_tied(void **unused) {
    assert_int_equal(check_tied(48, false), check_tied(48, true) + 1);
    assert_int_equal(check_tied(51, false), check_tied(51, true) + 1);
}

/* ---- what a run computes ---- */

/* Weights of attention times values; and a sum over so many that either way of reading pays for a copy. */
static sb_model *computed(bool passes) {
    builder b = builder_create();
    sb_value_id weights = builder_input(&b, SB_F16, 4, (int64_t[]){1, 2, 197, 1029});
    sb_value_id values = builder_input(&b, SB_F16, 4, (int64_t[]){1, 2, 1029, 40});
    sb_value_id bias = constant(&b, SB_F16, 1, (int64_t[]){40}, 11);
    mark_output(
        &b, builder_unary(&b, "Relu", builder_binary(&b, "Add", builder_binary(&b, "MatMul", weights, values), bias)));
    return model_of(&b, passes);
}

static void test_computed(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(computed, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, false, NULL);
            for (uint64_t i = 0; i < 3; i++) {
                sb_tensor *inputs[] = {random_tensor(SB_F16, 4, (int64_t[]){1, 2, 197, 1029}, 30 + i),
                                       random_tensor(SB_F16, 4, (int64_t[]){1, 2, 1029, 40}, 40 + i)};
                run_both(session, s.cpu, s.device, 2, inputs, 1);
                release_all(inputs, 2);
            }
            told told = ways_of(session);
            assert_int_equal(told.quick, told.products);
            assert_int_equal(told.copied, 1);
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_tied),
        cmocka_unit_test(test_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
