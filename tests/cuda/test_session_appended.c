/* Attention of one new row behind a PagedAppend: in graphs that are built, one kernel does both. Its results, and what it leaves in the
 * caches, are those of the two by themselves, whatever the row holds and wherever it goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "ops/pages.h"
#include "session_joined.h"

/* The case of a model, which sb_model_make's callback knows by this alone. */
typedef struct shape {
    sb_dtype dtype;
    int64_t heads, key_heads, width, room;
    int64_t window;  /* keys to the left of a row's own; 0: all */
    int64_t rotated; /* of a head's elements; 0: all */
    bool interleaved;
    bool is_joined; /* whether one kernel is expected */
} shape;
static shape current;

#define TABLE_ROWS 40
enum { ROW, KEYS, VALUES, START, LENGTH, POSITION, INPUTS };
#define OUTPUTS 4

static sb_tensor *halves(int rank, const int64_t *dims, uint64_t seed, bool odd) {
    return random_halves(current.dtype, rank, dims, seed, odd ? 300 : 0);
}

static sb_tensor *number(int64_t value) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){1}, &value, &tensor, error));
    return tensor;
}

/* A node of Samebit's own. */
static void own_node(builder *b, const char *name, int count, const sb_value_id *inputs, sb_attributes *attributes,
                     int outputs, sb_value_id *made) {
    for (int i = 0; i < outputs; i++)
        made[i] = builder_value(b);
    MUST(sb_graph_add_node(b->graph, sb_op_find("samebit", name), 1, name, count, inputs, 0, outputs, made, attributes,
                           NULL, error));
}

static void add_integer(sb_attributes *attributes, const char *name, int64_t value) {
    MUST(sb_attributes_add_ints(attributes, name, true, 1, &value, error));
}

static sb_attributes heads_of(const shape *s) {
    sb_attributes attributes = {0};
    add_integer(&attributes, "q_num_heads", s->heads);
    add_integer(&attributes, "kv_num_heads", s->key_heads);
    return attributes;
}

/* Columns from `begin` to `end` of a row. */
static sb_value_id columns(builder *b, sb_value_id row, int64_t begin, int64_t end) {
    const sb_value_id inputs[] = {row, integers(b, 1, &begin), integers(b, 1, &end), integers(b, 1, (int64_t[]){2})};
    return builder_node(b, "Slice", 4, inputs, NULL);
}

static sb_model *appended(bool passes) {
    builder b = builder_create();
    const shape *s = &current;
    const int64_t queries = s->heads * s->width, keys = s->key_heads * s->width, one = 1, page[] = {1, s->room, keys};
    const int64_t row_dims[] = {1, 1, queries + 2 * keys},
                  table_dims[] = {TABLE_ROWS, (s->rotated ? s->rotated : s->width) / 2};
    sb_value_id in[INPUTS];
    in[ROW] = builder_input(&b, s->dtype, 3, row_dims);
    in[KEYS] = builder_input(&b, s->dtype, 3, page);
    in[VALUES] = builder_input(&b, s->dtype, 3, page);
    for (int i = START; i < INPUTS; i++)
        in[i] = i == POSITION ? builder_input(&b, SB_S64, 2, (int64_t[]){1, 1}) : builder_input(&b, SB_S64, 1, &one);
    /* Not the run's input itself: where that lies is its caller's matter. */
    sb_value_id row = builder_unary(&b, "Neg", in[ROW]);
    sb_value_id begins = integers(&b, 1, (int64_t[]){0}), table = reshape(&b, begins, 2, (int64_t[]){1, 1});
    sb_value_id cosines = builder_constant(&b, halves(2, table_dims, 21, false));
    sb_value_id sines = builder_constant(&b, halves(2, table_dims, 22, false));
    const sb_value_id append[] = {in[KEYS],
                                  in[VALUES],
                                  columns(&b, row, 0, queries),
                                  columns(&b, row, queries, queries + keys),
                                  columns(&b, row, queries + keys, queries + 2 * keys),
                                  in[START],
                                  begins,
                                  table,
                                  cosines,
                                  sines,
                                  in[POSITION]};
    sb_value_id made[3], y;
    sb_attributes attributes = heads_of(s);
    add_integer(&attributes, "rotary_embedding_dim", s->rotated);
    add_integer(&attributes, "interleaved", s->interleaved);
    own_node(&b, "PagedAppend", 11, append, &attributes, 3, made);
    attributes = heads_of(s);
    if (s->window > 0)
        add_integer(&attributes, "left_window_size", s->window);
    own_node(&b, "PagedAttention", 6, (sb_value_id[]){made[2], made[0], made[1], in[LENGTH], begins, table},
             &attributes, 1, &y);
    mark_output(&b, y);
    for (int i = 0; i < 3; i++)
        mark_output(&b, made[i]);
    return model_of(&b, passes);
}

/* A run's inputs. The row is the last key that is seen, but for some runs, which see fewer keys or more, and for those whose row is nobody's. */
static void make_inputs(sb_tensor **inputs, uint64_t run) {
    const shape *s = &current;
    const int64_t places[] = {0, 1, 127, 128, 511, 512, 513, s->room - 1, s->room / 2, 600};
    const int64_t keys = s->key_heads * s->width, page[] = {1, s->room, keys};
    const int64_t wanted = places[run % 10], start = wanted < s->room ? wanted : s->room - 1,
                  position = (int64_t)run % TABLE_ROWS;
    const int64_t length = run % 7 == 5 ? start : run % 7 == 6 ? start + 3 : start + 1;
    const bool odd = run % 4 == 3;
    inputs[ROW] = halves(3, (int64_t[]){1, 1, s->heads * s->width + 2 * keys}, 100 + run, odd);
    inputs[KEYS] = halves(3, page, 200 + run, odd && run % 8 == 3);
    /* Infinities that nothing weighs have the definition compute a row, from memory. */
    inputs[VALUES] = halves(3, page, 300 + run, (odd && run % 8 == 3) || run % 4 == 1);
    inputs[START] = number(run % 9 == 4 ? SB_PAGES_NOBODY : start);
    inputs[LENGTH] = number(length);
    MUST(sb_tensor_from_data(SB_S64, 2, (int64_t[]){1, 1}, &position, &inputs[POSITION], error));
}

static void check(shape given) {
    current = given;
    const joined_runs runs = {20, INPUTS, OUTPUTS, make_inputs};
    check_joined(appended, &runs, given.is_joined);
}

static void test_widths(void **unused) {
    check((shape){SB_BF16, 4, 1, 64, 100, .is_joined = true});
    check((shape){SB_F16, 8, 4, 64, 700, .is_joined = true});
    check((shape){SB_BF16, 16, 2, 128, 1100, .is_joined = true});
    check((shape){SB_F16, 2, 2, 128, 514, .is_joined = true});
}

static void test_windows(void **unused) {
    check((shape){SB_BF16, 3, 1, 64, 1100, .window = 300, .is_joined = true});
    check((shape){SB_F16, 4, 2, 128, 700, .window = 1, .is_joined = true});
}

/* What the kernel does not do. */
static void test_apart(void **unused) {
    check((shape){SB_BF16, 2, 1, 64, 100, .rotated = 32});
    check((shape){SB_BF16, 2, 1, 64, 100, .interleaved = true});
    check((shape){SB_BF16, 2, 1, 80, 100, .is_joined = false});
}

/* A row that there is no room for, or whose position is in no row of the tables, is an error, as it is apart; the next run is right. */
static void test_faults(void **unused) {
    current = (shape){SB_BF16, 4, 2, 64, 100, .is_joined = true};
    setting s = start(appended, true);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    for (uint64_t i = 0; i < 12; i++) {
        const int64_t outside[] = {100, -2, TABLE_ROWS, -1};
        sb_tensor *inputs[INPUTS], *outputs[OUTPUTS];
        sb_error error = {SB_OK, ""};
        make_inputs(inputs, i);
        run_both(session, s.cpu, s.device, INPUTS, inputs, OUTPUTS);
        *(int64_t *)sb_tensor_mutable_data(inputs[i % 4 < 2 ? START : POSITION]) = outside[i % 4];
        assert_int_not_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_OK);
        release_all(inputs, INPUTS);
    }
    sb_session_destroy(session);
    finish(&s);
}

int main(void) {
    /* As many multiprocessors as clusters want. */
    setenv("FAKE_CUDA_DEVICES", "Fake H200:9.0:1073741824:132", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
