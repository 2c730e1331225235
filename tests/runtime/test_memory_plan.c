/* The memory plan: no two values that live at the same time overlap, values that may outlive the run stay outside, and
 * memory is reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/graph_builder.h"
#include "support/random.h"

static iv_tensor *zeros(int64_t rows) {
    iv_tensor *tensor;
    assert_int_equal(iv_tensor_create(IV_F32, 2, (int64_t[]){rows, 32}, &tensor, NULL), IV_OK);
    return tensor;
}

static iv_plan *plan_of(const builder *b, iv_program **program, int64_t rows) {
    iv_plan *plan;
    iv_tensor *input = zeros(rows);
    iv_value value = iv_value_of_tensor(input);
    assert_int_equal(iv_program_create(b->graph, IV_ISA_SCALAR, true, program, NULL), IV_OK);
    assert_int_equal(iv_plan_create(*program, &(iv_placement){NULL, NULL}, true, &value, &plan, NULL), IV_OK);
    iv_tensor_release(input);
    return plan;
}

/* A chain of 20 nodes needs two buffers, whatever its length. */
static void test_chain_reuses_memory(void **state) {
    (void)state;
    builder b = builder_create();
    iv_value_id x = builder_input(&b, IV_F32, 2, (int64_t[]){-1, 32});
    for (int i = 0; i < 20; i++)
        x = builder_unary(&b, i % 2 == 0 ? "Tanh" : "Relu", x);
    assert_int_equal(iv_graph_add_output(b.graph, x, NULL), IV_OK);
    builder_finish(&b);
    iv_program *program;
    iv_plan *plan = plan_of(&b, &program, 100);
    assert_int_equal(plan->arena_bytes[IV_HOST], 2 * 100 * 32 * sizeof(float));
    assert_int_equal(plan->offsets[x], -1); /* an output outlives the run */
    iv_plan_destroy(plan, program);
    iv_program_destroy(program);
    builder_destroy(&b);
}

/* First and last step at which a value's memory is in use, views included. */
static void lifetime(const iv_graph *graph, iv_value_id value, int64_t *first, int64_t *last) {
    bool *shares = calloc(graph->value_count, sizeof *shares);
    shares[value] = true;
    *first = *last = graph->values[value].producer;
    for (size_t n = 0; n < graph->node_count; n++) {
        const iv_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == IV_NO_VALUE || !shares[node->inputs[i]])
                continue;
            *last = (int64_t)n > *last ? (int64_t)n : *last;
            if ((node->op->flags & IV_OP_VIEW) != 0 && i == 0)
                shares[node->outputs[0]] = true;
        }
    }
    for (size_t o = 0; o < graph->output_count; o++) {
        if (shares[graph->outputs[o]])
            *last = INT64_MAX;
    }
    free(shares);
}

static void check_disjoint(const iv_plan *plan, const iv_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) {
        for (size_t j = i + 1; j < graph->value_count; j++) {
            if (plan->offsets[i] < 0 || plan->offsets[j] < 0)
                continue;
            int64_t dims[IV_MAX_RANK], bytes[2], first[2], last[2];
            size_t values[2] = {i, j};
            for (int k = 0; k < 2; k++) {
                const iv_fact *fact = &plan->facts[values[k]];
                assert_true(iv_fact_is_concrete(fact, dims));
                assert_int_equal(iv_count_elements(fact->dtype, fact->rank, dims, &bytes[k], NULL), IV_OK);
                bytes[k] *= (int64_t)iv_dtype_size(fact->dtype);
                lifetime(graph, (iv_value_id)values[k], &first[k], &last[k]);
                assert_true(last[k] != INT64_MAX);
                assert_true((size_t)(plan->offsets[values[k]] + bytes[k]) <= plan->arena_bytes[IV_HOST]);
            }
            bool together = first[0] <= last[1] && first[1] <= last[0];
            bool overlap = plan->offsets[i] < plan->offsets[j] + bytes[1] &&
                           plan->offsets[j] < plan->offsets[i] + bytes[0];
            assert_false(together && overlap);
        }
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_source source = {seed};
        builder b = builder_create();
        iv_value_id values[30];
        values[0] = builder_input(&b, IV_F32, 2, (int64_t[]){-1, 32});
        for (int i = 1; i < 30; i++) {
            iv_value_id left = values[random_between(&source, 0, i - 1)];
            iv_value_id right = values[random_between(&source, 0, i - 1)];
            switch (random_between(&source, 0, 3)) {
            case 0:
                values[i] = builder_unary(&b, "Exp", left);
                break;
            case 1:
                values[i] = builder_unary(&b, "Identity", left);
                break;
            default:
                values[i] = builder_binary(&b, "Add", left, right);
                break;
            }
        }
        for (int i = 20; i < 30; i += 3)
            assert_int_equal(iv_graph_add_output(b.graph, values[i], NULL), IV_OK);
        builder_finish(&b);
        iv_program *program;
        iv_plan *plan = plan_of(&b, &program, random_between(&source, 1, 50));
        check_disjoint(plan, b.graph);
        iv_plan_destroy(plan, program);
        iv_program_destroy(program);
        builder_destroy(&b);
    }
}

/* ---- copies that views become ---- */

typedef struct seen {
    const iv_storage *storage[8]; /* of each node's output, in order */
    int count;
} seen;

static iv_status note_storage(void *context, iv_node_event *event, iv_error *error) {
    seen *seen = context;
    assert_in_range(seen->count, 0, 7);
    seen->storage[seen->count++] = event->outputs[0].tensor->storage;
    return IV_OK;
}

/* A transposed value cannot be reshaped without a copy: from the second run on the copy lies in the arena, and what it is a copy
 * of is not overwritten while views of it may live. */
static void test_copied_views(void **state) {
    (void)state;
    builder b = builder_create();
    iv_value_id x = builder_input(&b, IV_F32, 2, (int64_t[]){-1, 32});
    iv_tensor *all;
    assert_int_equal(iv_tensor_from_data(IV_S64, 1, (int64_t[]){1}, (int64_t[]){-1}, &all, NULL), IV_OK);
    iv_value_id shape = builder_constant(&b, all);
    iv_value_id first = builder_unary(&b, "Relu", x);
    iv_value_id turned = builder_unary(&b, "Transpose", first);
    iv_value_id flat = builder_binary(&b, "Reshape", turned, shape);
    iv_value_id second = builder_unary(&b, "Exp", flat);
    iv_value_id third = builder_unary(&b, "Neg", second);
    iv_value_id sum = builder_binary(&b, "Add", third, flat);
    assert_int_equal(iv_graph_add_output(b.graph, sum, NULL), IV_OK);
    builder_finish(&b);

    iv_program *program;
    iv_runner *runner;
    seen seen = {{NULL}, 0};
    iv_run_settings settings = {.observer = note_storage, .observer_context = &seen};
    assert_int_equal(iv_program_create(b.graph, IV_ISA_SCALAR, true, &program, NULL), IV_OK);
    assert_int_equal(iv_runner_create(program, &settings, 0, &runner, NULL), IV_OK);
    iv_tensor *input = zeros(10), *outputs[3];
    float *numbers = iv_tensor_mutable_data(input);
    for (int i = 0; i < 320; i++)
        numbers[i] = (float)(i % 37) / 8;
    for (int run = 0; run < 3; run++) {
        iv_value in = iv_value_of_tensor(input), out;
        seen.count = 0;
        assert_int_equal(iv_runner_run(runner, true, &in, &out, NULL), IV_OK);
        outputs[run] = out.tensor;
        assert_int_equal(seen.count, 6);
        assert_ptr_equal(seen.storage[1], seen.storage[0]); /* the transposed view */
        assert_true((seen.storage[2] == seen.storage[0]) == (run > 0));
        assert_true(seen.storage[5] != seen.storage[0]); /* the output */
        assert_true(iv_tensor_equal(outputs[run], outputs[0]));
    }
    for (int run = 0; run < 3; run++)
        iv_tensor_release(outputs[run]);
    iv_tensor_release(input);
    iv_runner_destroy(runner);
    iv_program_destroy(program);
    builder_destroy(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_reuses_memory),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_copied_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
