/* Facts of the operators that move elements and run graphs: shapes stay formulas of the model's
 * symbols, and never say more than evaluation keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "graph/op.h"

typedef struct builder {
    sb_scope *scope;
    sb_graph *graph;
    sb_fact facts[64];
    int nodes;
    sb_attributes attributes; /* of the next node */
} builder;

static void must(sb_status status, const sb_error *error) {
    if (status != SB_OK)
        fail_msg("%s", error->message);
}

static builder start(sb_scope *scope) {
    builder fresh = {.scope = scope};
    if (scope == NULL)
        assert_int_equal(sb_scope_create(&fresh.scope, NULL), SB_OK);
    assert_int_equal(sb_graph_create("test", &fresh.graph, NULL), SB_OK);
    return fresh;
}

static sb_value_id add_value(builder *self) {
    char name[16];
    sb_value_id value;
    snprintf(name, sizeof name, "v%zu", self->graph->value_count);
    assert_int_equal(sb_graph_add_value(self->graph, name, &value, NULL), SB_OK);
    return value;
}

/* An input: extents are symbols by name, or numbers as text. */
static sb_value_id input(builder *self, sb_dtype dtype, int rank, const char *const *extents) {
    sb_value_id value = add_value(self);
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = extents[i][0] >= '0' && extents[i][0] <= '9' ? sb_dim_constant(self->scope, atoll(extents[i]))
                                                               : sb_dim_symbol(self->scope, extents[i]);
    sb_fact_set_tensor(&self->facts[value], dtype, rank, dims);
    assert_int_equal(sb_graph_add_input(self->graph, value, NULL), SB_OK);
    return value;
}

#define INPUT(self, dtype, ...)                                                                                        \
    input(self, dtype, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                                  \
          (const char *const[]){__VA_ARGS__})

static sb_value_id constant(builder *self, sb_dtype dtype, int rank, int64_t extent, const void *data) {
    sb_tensor *tensor;
    sb_value_id value;
    char name[16];
    snprintf(name, sizeof name, "v%zu", self->graph->value_count);
    assert_int_equal(sb_tensor_from_data(dtype, rank, &extent, data, &tensor, NULL), SB_OK);
    assert_int_equal(sb_graph_add_constant(self->graph, self->scope, name, tensor, &value, NULL), SB_OK);
    sb_tensor_release(tensor);
    return value;
}

#define NUMBERS(self, ...)                                                                                             \
    constant(self, SB_S64, 1, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

static sb_value_id scalar(builder *self, int64_t number) {
    return constant(self, SB_S64, 0, 1, &number);
}

static void set_int(builder *self, const char *name, int64_t value) {
    assert_int_equal(sb_attributes_add_ints(&self->attributes, name, true, 1, &value, NULL), SB_OK);
}

/* Appends a node with one or more outputs; returns the first, the others follow. */
static sb_value_id node(builder *self, const char *op, int inputs, const sb_value_id *ids, int captures, int outputs) {
    sb_value_id results[8];
    char name[16];
    sb_error error;
    snprintf(name, sizeof name, "n%d", self->nodes++);
    for (int i = 0; i < outputs; i++)
        results[i] = add_value(self);
    assert_non_null(sb_op_find("", op));
    must(sb_graph_add_node(self->graph, sb_op_find("", op), 17, name, inputs, ids, captures, outputs, results,
                           &self->attributes, NULL, &error),
         &error);
    return results[0];
}

#define NODE(self, op, ...)                                                                                            \
    node(self, op, (int)(sizeof((sb_value_id[]){__VA_ARGS__}) / sizeof(sb_value_id)), (sb_value_id[]){__VA_ARGS__}, 0, \
         1)

static void infer(builder *self) {
    sb_error error;
    must(sb_graph_infer(self->graph, self->scope, self->facts, &error), &error);
}

static void expect_fact(const builder *self, sb_value_id value, const char *expected) {
    char text[SB_FACT_TEXT_BYTES];
    assert_string_equal(sb_fact_text(&self->facts[value], text, sizeof text), expected);
}

static void finish(builder *self) {
    for (size_t i = 0; i < 64; i++)
        sb_fact_clear(&self->facts[i]);
    sb_graph_destroy(self->graph);
    sb_scope_destroy(self->scope);
}

/* Hands a finished body over as an attribute of the next node of `outer`. */
static void add_body(builder *outer, const char *name, builder *body) {
    for (size_t i = 0; i < 64; i++)
        sb_fact_clear(&body->facts[i]);
    assert_int_equal(sb_attributes_add_graph(&outer->attributes, name, body->graph, NULL), SB_OK);
}

static void output(builder *self, sb_value_id value) {
    assert_int_equal(sb_graph_add_output(self->graph, value, NULL), SB_OK);
}

/* ---- shape arithmetic ---- */

static void reshape_by_computed_shape(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "time", "12");
    sb_value_id shape = NODE(&b, "Shape", x);
    sb_value_id batch = NODE(&b, "Gather", shape, scalar(&b, 0));
    sb_value_id axes = NUMBERS(&b, 0);
    sb_value_id list = NODE(&b, "Unsqueeze", batch, axes);
    sb_value_id time = NODE(&b, "Slice", shape, NUMBERS(&b, 1), NUMBERS(&b, 2));
    sb_value_id tail = NUMBERS(&b, 4, -1);
    sb_value_id parts[3] = {list, time, tail};
    set_int(&b, "axis", 0);
    sb_value_id wanted = node(&b, "Concat", 3, parts, 0, 1);
    sb_value_id y = NODE(&b, "Reshape", x, wanted);
    infer(&b);
    expect_fact(&b, y, "f32[batch,time,4,3]");
    finish(&b);
}

static void reshape_divides(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "6", "8");
    sb_value_id all = NODE(&b, "Reshape", x, NUMBERS(&b, -1));
    sb_value_id copied = NODE(&b, "Reshape", x, NUMBERS(&b, 0, -1));
    sb_value_id halved = NODE(&b, "Reshape", x, NUMBERS(&b, -1, 24));
    sb_value_id flat = NODE(&b, "Flatten", x);
    infer(&b);
    expect_fact(&b, all, "f32[48*batch]");
    expect_fact(&b, copied, "f32[batch,48]");
    expect_fact(&b, halved, "f32[2*batch,24]");
    expect_fact(&b, flat, "f32[batch,48]");
    finish(&b);
}

static void attention_behind_a_past(void **unused) {
    builder b = start(NULL);
    sb_value_id q = INPUT(&b, SB_F32, "batch", "time", "32"), k = INPUT(&b, SB_F32, "batch", "time", "16");
    sb_value_id v = INPUT(&b, SB_F32, "batch", "time", "12"), past_k = INPUT(&b, SB_F32, "batch", "2", "past", "8");
    sb_value_id past_v = INPUT(&b, SB_F32, "batch", "2", "past", "6");
    set_int(&b, "q_num_heads", 4);
    set_int(&b, "kv_num_heads", 2);
    sb_value_id y = node(&b, "Attention", 6, (sb_value_id[]){q, k, v, SB_NO_VALUE, past_k, past_v}, 0, 4);
    infer(&b);
    expect_fact(&b, y, "f32[batch,time,24]");
    expect_fact(&b, y + 1, "f32[batch,2,past+time,8]");
    expect_fact(&b, y + 2, "f32[batch,2,past+time,6]");
    expect_fact(&b, y + 3, "f32[batch,4,time,past+time]");
    finish(&b);
}

static void views_of_symbols(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "1", "time");
    sb_value_id squeezed = NODE(&b, "Squeeze", x, NUMBERS(&b, 1));
    sb_value_id transposed = NODE(&b, "Transpose", x);
    sb_value_id last = NODE(&b, "Slice", x, NUMBERS(&b, -1), NUMBERS(&b, INT64_MAX), NUMBERS(&b, 0));
    sb_value_id whole = NODE(&b, "Slice", x, NUMBERS(&b, 0), NUMBERS(&b, INT64_MAX), NUMBERS(&b, 2));
    sb_value_id back = NODE(&b, "Slice", x, NUMBERS(&b, -1), NUMBERS(&b, INT64_MIN), NUMBERS(&b, 2), NUMBERS(&b, -1));
    sb_value_id even = NODE(&b, "Slice", x, NUMBERS(&b, 0), NUMBERS(&b, INT32_MAX), NUMBERS(&b, 2), NUMBERS(&b, 2));
    sb_value_id maybe = NODE(&b, "Squeeze", x);
    sb_value_id wide = NODE(&b, "Expand", x, NUMBERS(&b, 7, 1));
    infer(&b);
    expect_fact(&b, squeezed, "f32[batch,time]");
    expect_fact(&b, transposed, "f32[time,1,batch]");
    expect_fact(&b, whole, "f32[batch,1,time]");
    expect_fact(&b, back, "f32[batch,1,time]");
    expect_fact(&b, even, "f32[batch,1,floor((time+1)/2)]");
    expect_fact(&b, maybe, "f32[…]"); /* batch or time may be 1 */
    expect_fact(&b, wide, "f32[batch,7,time]");
    int64_t extent;
    const char *names[] = {"batch", "time"};
    for (int64_t size = 0; size < 3; size++) { /* x[-1:] has one row, or none of none */
        sb_binding binding = {2, names, (int64_t[]){size, 5}};
        assert_true(sb_dim_evaluate(b.facts[last].dims[0], &binding, &extent));
        assert_int_equal(extent, size > 0);
    }
    finish(&b);
}

static void parts_and_wholes(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "time");
    set_int(&b, "axis", 1);
    sb_value_id halves = node(&b, "Split", 1, &x, 0, 2);
    set_int(&b, "axis", 0);
    sb_value_id twice = node(&b, "Concat", 2, (sb_value_id[]){x, x}, 0, 1);
    sb_value_id tiled = NODE(&b, "Tile", x, NUMBERS(&b, 3, 1));
    sb_value_id padded = NODE(&b, "Pad", x, NUMBERS(&b, 0, 1, 0, 2));
    sb_value_id filled = NODE(&b, "ConstantOfShape", NODE(&b, "Shape", x));
    sb_value_id length = NODE(&b, "Gather", NODE(&b, "Shape", x), scalar(&b, 1));
    sb_value_id steps = NODE(&b, "Range", scalar(&b, 0), length, scalar(&b, 1));
    sb_value_id found = NODE(&b, "NonZero", x);
    infer(&b);
    expect_fact(&b, halves, "f32[batch,floor(time/2)]");
    expect_fact(&b, twice, "f32[2*batch,time]");
    expect_fact(&b, tiled, "f32[3*batch,time]");
    expect_fact(&b, padded, "f32[batch,time+3]");
    expect_fact(&b, filled, "f32[batch,time]");
    expect_fact(&b, steps, "s64[time]");
    assert_false(sb_dim_mentions(b.facts[found].dims[1], "batch"));
    assert_false(sb_dim_is_constant(b.facts[found].dims[1], NULL));
    finish(&b);
}

static void size_of_symbols(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "time");
    sb_value_id count = NODE(&b, "Size", x);
    sb_value_id list = NODE(&b, "Unsqueeze", count, NUMBERS(&b, 0));
    sb_value_id flat = NODE(&b, "Reshape", x, list);
    infer(&b);
    expect_fact(&b, flat, "f32[batch*time]");
    finish(&b);
}

/* A table of 512 positions, sliced to the length of x and added to it: where the model runs, the
 * sum is as long as x. */
static void broadcast_with_what_follows(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "time"), y = INPUT(&b, SB_F32, "other", "time");
    sb_value_id table = INPUT(&b, SB_F32, "1", "512"), single = INPUT(&b, SB_F32, "1", "1");
    sb_value_id none = INPUT(&b, SB_F32, "1", "0");
    sb_value_id length = NODE(&b, "Slice", NODE(&b, "Shape", x), NUMBERS(&b, 1), NUMBERS(&b, 2));
    sb_value_id part = NODE(&b, "Slice", table, NUMBERS(&b, 0), length, NUMBERS(&b, 1));
    sb_value_id sum = NODE(&b, "Add", x, part), reversed = NODE(&b, "Add", part, x);
    sb_value_id same = NODE(&b, "Add", x, x), one = NODE(&b, "Add", single, x);
    sb_value_id never = NODE(&b, "Add", NODE(&b, "Slice", none, NUMBERS(&b, 0), length, NUMBERS(&b, 1)), x);
    sb_value_id open = NODE(&b, "Add", x, y);
    infer(&b);
    expect_fact(&b, part, "f32[1,min(time,512)]");
    expect_fact(&b, sum, "f32[batch,time]");
    expect_fact(&b, reversed, "f32[batch,time]");
    expect_fact(&b, same, "f32[batch,time]");
    expect_fact(&b, one, "f32[batch,time]");
    expect_fact(&b, never, "f32[batch,0]");
    assert_false(sb_dim_mentions(b.facts[open].dims[0], "batch")); /* either may be 1 */
    finish(&b);
}

/* ---- questions about shapes ---- */

/* Formulas of batch and time, or numbers, as lists of one. */
enum { QUESTIONED = 8 };

static sb_value_id questioned(builder *b, sb_value_id shape, int index) {
    sb_value_id batch = NODE(b, "Gather", shape, NUMBERS(b, 0)), time = NODE(b, "Gather", shape, NUMBERS(b, 1));
    switch (index) {
    case 0:
        return batch;
    case 1:
        return time;
    case 2:
        return NODE(b, "Add", batch, time);
    case 3:
        return NODE(b, "Add", time, NUMBERS(b, 1));
    case 4:
        return NODE(b, "Sub", time, NUMBERS(b, 2));
    default:
        return NUMBERS(b, (int64_t[]){-1, 0, 3}[index - 5]);
    }
}

static bool is_so(const char *op, int64_t left, int64_t right) {
    return strcmp(op, "Equal") == 0         ? left == right
           : strcmp(op, "Less") == 0        ? left < right
           : strcmp(op, "Greater") == 0     ? left > right
           : strcmp(op, "LessOrEqual") == 0 ? left <= right
                                            : left >= right;
}

static int64_t questioned_number(int index, int64_t batch, int64_t time) {
    return (int64_t[]){batch, time, batch + time, time + 1, time - 2, -1, 0, 3}[index];
}

/* An answer is right for all extents; 1: there is one. */
static int check_answer(const char *op, int left, int right) {
    builder b = start(NULL);
    sb_value_id shape = NODE(&b, "Shape", INPUT(&b, SB_F32, "batch", "time"));
    sb_value_id answer = NODE(&b, op, questioned(&b, shape, left), questioned(&b, shape, right));
    infer(&b);
    expect_fact(&b, answer, "bool[1]");
    const sb_tensor *known = b.facts[answer].constant;
    for (int64_t batch = 0; batch < 5 && known != NULL; batch++) {
        for (int64_t time = 0; time < 5; time++) {
            bool expected = is_so(op, questioned_number(left, batch, time), questioned_number(right, batch, time));
            assert_int_equal(*(const uint8_t *)known->data, expected);
        }
    }
    int found = known != NULL;
    finish(&b);
    return found;
}

static void comparisons_that_no_symbol_decides(void **unused) {
    static const char *const ops[] = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"};
    for (int op = 0; op < 5; op++) {
        int answers = 0;
        for (int left = 0; left < QUESTIONED; left++) {
            for (int right = 0; right < QUESTIONED; right++)
                answers += check_answer(ops[op], left, right);
        }
        assert_true(answers > QUESTIONED + 9); /* those of numbers alone, and with themselves */
        assert_true(check_answer(ops[op], 0, 5));
        assert_true(check_answer(ops[op], 1, 3));
        assert_false(check_answer(ops[op], 0, 7)); /* extents of 3 there are, and others */
        assert_false(check_answer(ops[op], 0, 1));
    }
}

/* What torch.onnx makes of expand(batch, -1, time): extents of -1 become 1, which repeats nothing. */
static void a_shape_is_asked_for_extents_of_minus_one(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "1", "1"), y = INPUT(&b, SB_F32, "2", "time");
    sb_value_id time = NODE(&b, "Gather", NODE(&b, "Shape", y), NUMBERS(&b, 1));
    set_int(&b, "axis", 0);
    sb_value_id wanted = NODE(&b, "Concat", NUMBERS(&b, -1, 2), time);
    sb_value_id asked = NODE(&b, "Equal", wanted, NUMBERS(&b, -1));
    sb_value_id shape = NODE(&b, "Where", asked, NUMBERS(&b, 1, 1, 1), wanted);
    set_int(&b, "to", 9);
    sb_value_id some = NODE(&b, "Cast", wanted); /* to bool: whether an extent is 0 is open */
    sb_value_id expanded = NODE(&b, "Expand", x, shape);
    infer(&b);
    expect_fact(&b, expanded, "f32[batch,2,time]");
    expect_fact(&b, some, "bool[3]");
    assert_null(b.facts[some].constant);
    finish(&b);
}

/* Before operator set 7 a node may say with which axis its second input meets the first. */
static void old_nodes_name_an_axis(void **unused) {
    builder b = start(NULL);
    sb_value_id shape = NODE(&b, "Shape", INPUT(&b, SB_F32, "batch", "time")), sum = add_value(&b);
    sb_value_id column = NODE(&b, "Unsqueeze", shape, NUMBERS(&b, 1));
    sb_error error;
    set_int(&b, "axis", 1);
    sb_value_id square = NODE(&b, "Concat", column, column); /* batch batch, time time */
    set_int(&b, "broadcast", 1);
    set_int(&b, "axis", 0);
    must(sb_graph_add_node(b.graph, sb_op_find("", "Add"), 6, "old", 2, (sb_value_id[]){square, shape}, 0, 1, &sum,
                           &b.attributes, NULL, &error),
         &error);
    infer(&b);
    expect_fact(&b, sum, "s64[2,2]");
    assert_non_null(b.facts[square].elements);
    assert_null(b.facts[sum].elements); /* not batch + time in any place */
    finish(&b);
}

/* ---- graphs within graphs ---- */

/* A loop over x[batch,2] with body (i, condition, x, kept) -> (condition, joined, kept, stacked x);
 * `grows` joins x to itself. */
static sb_value_id make_loop(builder *b, bool grows, sb_value_id trips, sb_value_id condition) {
    builder body = start(b->scope);
    sb_value_id inner[4];
    for (int i = 0; i < 4; i++) {
        inner[i] = add_value(&body);
        assert_int_equal(sb_graph_add_input(body.graph, inner[i], NULL), SB_OK);
    }
    set_int(&body, "axis", 0);
    sb_value_id joined = grows ? node(&body, "Concat", 2, (sb_value_id[]){inner[2], inner[2]}, 0, 1)
                               : node(&body, "Identity", 1, &inner[2], 0, 1);
    sb_attributes_clear(&body.attributes);
    output(&body, NODE(&body, "Identity", inner[1]));
    output(&body, joined);
    output(&body, inner[3]);
    output(&body, inner[2]);
    add_body(b, "body", &body);
    sb_value_id x = INPUT(b, SB_F32, "batch", "2");
    sb_value_id kept = NUMBERS(b, 7);
    return node(b, "Loop", 4, (sb_value_id[]){trips, condition, x, kept}, 0, 3);
}

static void loop_keeps_what_stays(void **unused) {
    builder b = start(NULL);
    sb_value_id y = make_loop(&b, false, scalar(&b, 5), SB_NO_VALUE);
    infer(&b);
    expect_fact(&b, y, "f32[batch,2]");
    assert_non_null(b.facts[y + 1].constant); /* the same in every iteration */
    expect_fact(&b, y + 2, "f32[5,batch,2]");
    finish(&b);
}

static void loop_widens_what_grows(void **unused) {
    builder b = start(NULL);
    sb_value_id y = make_loop(&b, true, scalar(&b, 5), SB_NO_VALUE);
    infer(&b);
    assert_int_equal(b.facts[y].rank, 2);
    assert_false(sb_dim_is_constant(b.facts[y].dims[0], NULL));
    assert_false(sb_dim_mentions(b.facts[y].dims[0], "batch"));
    assert_false(sb_dim_equal(b.facts[y].dims[0], b.facts[y + 2].dims[1]));
    finish(&b);
}

static void loop_ends_when_the_data_say_so(void **unused) {
    builder b = start(NULL);
    sb_value_id condition = input(&b, SB_BOOL, 0, NULL);
    sb_value_id y = make_loop(&b, false, scalar(&b, 5), condition);
    infer(&b);
    assert_false(sb_dim_is_constant(b.facts[y + 2].dims[0], NULL));
    finish(&b);
    b = start(NULL);
    y = make_loop(&b, true, scalar(&b, 0), SB_NO_VALUE);
    infer(&b);
    expect_fact(&b, y, "f32[batch,2]"); /* never runs: what went in */
    assert_true(sb_dim_equal(b.facts[y + 2].dims[0], sb_dim_constant(b.scope, 0)));
    finish(&b);
}

/* If with x[batch,2] captured: the first branch gives x, the second its transpose or a squeeze that cannot be. */
static sb_value_id make_if(builder *b, sb_value_id condition, const char *other) {
    sb_value_id x = INPUT(b, SB_F32, "batch", "2");
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        builder body = start(b->scope);
        sb_value_id captured = add_value(&body);
        assert_int_equal(sb_graph_add_input(body.graph, captured, NULL), SB_OK);
        if (i == 1 && strcmp(other, "Squeeze") == 0)
            output(&body, NODE(&body, "Squeeze", captured, NUMBERS(&body, 1)));
        else
            output(&body, NODE(&body, i == 0 ? "Identity" : other, captured));
        add_body(b, branches[i], &body);
    }
    return node(b, "If", 2, (sb_value_id[]){condition, x}, 1, 1);
}

static void if_describes_both_branches(void **unused) {
    builder b = start(NULL);
    sb_value_id y = make_if(&b, input(&b, SB_BOOL, 0, NULL), "Transpose");
    infer(&b);
    assert_int_equal(b.facts[y].rank, 2);
    assert_false(sb_dim_mentions(b.facts[y].dims[0], "batch"));
    assert_false(sb_dim_is_constant(b.facts[y].dims[1], NULL));
    finish(&b);
    b = start(NULL);
    uint8_t no = 0;
    y = make_if(&b, constant(&b, SB_BOOL, 0, 1, &no), "Transpose");
    infer(&b);
    expect_fact(&b, y, "f32[2,batch]");
    finish(&b);
    b = start(NULL);
    y = make_if(&b, input(&b, SB_BOOL, 0, NULL), "Squeeze"); /* an axis of 2: cannot be taken */
    infer(&b);
    expect_fact(&b, y, "f32[batch,2]");
    finish(&b);
}

static void sequences_keep_what_all_items_share(void **unused) {
    builder b = start(NULL);
    sb_value_id x = INPUT(&b, SB_F32, "batch", "2"), y = INPUT(&b, SB_F32, "batch", "3");
    sb_value_id same = NODE(&b, "SequenceConstruct", x, x);
    sb_value_id mixed = NODE(&b, "SequenceConstruct", x, y);
    sb_value_id at = NODE(&b, "SequenceAt", same, scalar(&b, 0));
    sb_value_id has = NODE(&b, "OptionalHasElement", same);
    infer(&b);
    expect_fact(&b, same, "sequence of f32[batch,2]");
    expect_fact(&b, mixed, "sequence of f32[…]");
    expect_fact(&b, at, "f32[batch,2]");
    assert_non_null(b.facts[has].constant);
    finish(&b);
}

static void find_op(void *count, const sb_op *op) {
    assert_ptr_equal(sb_op_find(op->domain, op->name), op);
    ++*(int *)count;
}

/* Every operator is found by its name and domain, and nothing else is. */
static void operators_have_names(void **unused) {
    int count = 0;
    sb_op_visit(find_op, &count);
    assert_true(count > 150);
    assert_ptr_equal(sb_op_find("ai.onnx", "Add"), sb_op_find("", "Add"));
    assert_null(sb_op_find("", "add"));
    assert_null(sb_op_find("", ""));
    assert_null(sb_op_find("com.example", "Add"));
    assert_null(sb_op_find("", "Fused")); /* of Samebit's own domain */
}

static int leaves_nothing(void **unused) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(operators_have_names, leaves_nothing),
        cmocka_unit_test_teardown(reshape_by_computed_shape, leaves_nothing),
        cmocka_unit_test_teardown(reshape_divides, leaves_nothing),
        cmocka_unit_test_teardown(attention_behind_a_past, leaves_nothing),
        cmocka_unit_test_teardown(views_of_symbols, leaves_nothing),
        cmocka_unit_test_teardown(parts_and_wholes, leaves_nothing),
        cmocka_unit_test_teardown(size_of_symbols, leaves_nothing),
        cmocka_unit_test_teardown(broadcast_with_what_follows, leaves_nothing),
        cmocka_unit_test_teardown(comparisons_that_no_symbol_decides, leaves_nothing),
        cmocka_unit_test_teardown(old_nodes_name_an_axis, leaves_nothing),
        cmocka_unit_test_teardown(a_shape_is_asked_for_extents_of_minus_one, leaves_nothing),
        cmocka_unit_test_teardown(loop_keeps_what_stays, leaves_nothing),
        cmocka_unit_test_teardown(loop_widens_what_grows, leaves_nothing),
        cmocka_unit_test_teardown(loop_ends_when_the_data_say_so, leaves_nothing),
        cmocka_unit_test_teardown(if_describes_both_branches, leaves_nothing),
        cmocka_unit_test_teardown(sequences_keep_what_all_items_share, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
