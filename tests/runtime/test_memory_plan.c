/* The memory plan: no two values that live at the same time overlap, values that may outlive the run stay outside, and
 * memory is reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/list.h"
#include "runtime/replay.h"
#include "support/graph_builder.h"
#include "support/random.h"

static sb_tensor *zeros(int64_t rows) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, 2, (int64_t[]){rows, 32}, &tensor, NULL), SB_OK);
    return tensor;
}

static sb_plan *plan_of(const builder *b, sb_program **program, int64_t rows) {
    sb_plan *plan;
    sb_tensor *input = zeros(rows);
    sb_value value = sb_value_of_tensor(input);
    assert_int_equal(sb_program_create(b->graph, SB_ISA_SCALAR, true, program, NULL), SB_OK);
    assert_int_equal(sb_plan_create(*program, &(sb_placement){0}, true, &value, &plan, NULL), SB_OK);
    sb_tensor_release(input);
    return plan;
}

/* A chain of 20 nodes needs two buffers, whatever its length. */
static void test_chain_reuses_memory(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 32});
    for (int i = 0; i < 20; i++)
        x = builder_unary(&b, i % 2 == 0 ? "Tanh" : "Relu", x);
    assert_int_equal(sb_graph_add_output(b.graph, x, NULL), SB_OK);
    builder_finish(&b);
    sb_program *program;
    sb_plan *plan = plan_of(&b, &program, 100);
    assert_int_equal(plan->arena_bytes[SB_HOST], 2 * 100 * 32 * sizeof(float));
    assert_int_equal(plan->offsets[x], -1); /* an output outlives the run */
    sb_plan_destroy(plan, program);
    sb_program_destroy(program);
    builder_destroy(&b);
}

/* First and last step at which a value's memory is in use, views included. */
static void lifetime(const sb_graph *graph, sb_value_id value, int64_t *first, int64_t *last) {
    bool *shares = calloc(graph->value_count, sizeof *shares);
    shares[value] = true;
    *first = *last = graph->values[value].producer;
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == SB_NO_VALUE || !shares[node->inputs[i]])
                continue;
            *last = (int64_t)n > *last ? (int64_t)n : *last;
            if ((node->op->flags & SB_OP_VIEW) != 0 && i == 0)
                shares[node->outputs[0]] = true;
        }
    }
    for (size_t o = 0; o < graph->output_count; o++) {
        if (shares[graph->outputs[o]])
            *last = INT64_MAX;
    }
    free(shares);
}

static void check_disjoint(const sb_plan *plan, const sb_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) {
        for (size_t j = i + 1; j < graph->value_count; j++) {
            if (plan->offsets[i] < 0 || plan->offsets[j] < 0)
                continue;
            int64_t dims[SB_MAX_RANK], bytes[2], first[2], last[2];
            size_t values[2] = {i, j};
            for (int k = 0; k < 2; k++) {
                const sb_fact *fact = &plan->facts[values[k]];
                assert_true(sb_fact_is_concrete(fact, dims));
                assert_int_equal(sb_count_elements(fact->dtype, fact->rank, dims, &bytes[k], NULL), SB_OK);
                bytes[k] *= (int64_t)sb_dtype_size(fact->dtype);
                lifetime(graph, (sb_value_id)values[k], &first[k], &last[k]);
                assert_true(last[k] != INT64_MAX);
                assert_true((size_t)(plan->offsets[values[k]] + bytes[k]) <= plan->arena_bytes[SB_HOST]);
            }
            bool together = first[0] <= last[1] && first[1] <= last[0];
            bool overlap =
                plan->offsets[i] < plan->offsets[j] + bytes[1] && plan->offsets[j] < plan->offsets[i] + bytes[0];
            assert_false(together && overlap);
        }
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_source source = {seed};
        builder b = builder_create();
        sb_value_id values[30];
        values[0] = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 32});
        for (int i = 1; i < 30; i++) {
            sb_value_id left = values[random_between(&source, 0, i - 1)];
            sb_value_id right = values[random_between(&source, 0, i - 1)];
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
            assert_int_equal(sb_graph_add_output(b.graph, values[i], NULL), SB_OK);
        builder_finish(&b);
        sb_program *program;
        sb_plan *plan = plan_of(&b, &program, random_between(&source, 1, 50));
        check_disjoint(plan, b.graph);
        sb_plan_destroy(plan, program);
        sb_program_destroy(program);
        builder_destroy(&b);
    }
}

/* ---- copies that views become ---- */

typedef struct seen {
    const sb_storage *storage[8]; /* of each node's output, in order */
    int count;
} seen;

static sb_status note_storage(void *context, sb_node_event *event, sb_error *error) {
    seen *seen = context;
    assert_in_range(seen->count, 0, 7);
    seen->storage[seen->count++] = event->outputs[0].tensor->storage;
    return SB_OK;
}

/* A transposed value cannot be reshaped without a copy: from the second run on the copy lies in the arena, and what it
 * is a copy of is not overwritten while views of it may live. */
static void test_copied_views(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 32});
    sb_tensor *all;
    assert_int_equal(sb_tensor_from_data(SB_S64, 1, (int64_t[]){1}, (int64_t[]){-1}, &all, NULL), SB_OK);
    sb_value_id shape = builder_constant(&b, all);
    sb_value_id first = builder_unary(&b, "Relu", x);
    sb_value_id transposed = builder_unary(&b, "Transpose", first);
    sb_value_id flat = builder_binary(&b, "Reshape", transposed, shape);
    sb_value_id second = builder_unary(&b, "Exp", flat);
    sb_value_id third = builder_unary(&b, "Neg", second);
    sb_value_id sum = builder_binary(&b, "Add", third, flat);
    assert_int_equal(sb_graph_add_output(b.graph, sum, NULL), SB_OK);
    builder_finish(&b);

    sb_program *program;
    sb_runner *runner;
    seen seen = {{NULL}, 0};
    sb_run_settings settings = {.observer = note_storage, .observer_context = &seen};
    assert_int_equal(sb_program_create(b.graph, SB_ISA_SCALAR, true, &program, NULL), SB_OK);
    assert_int_equal(sb_runner_create(program, &settings, 0, &runner, NULL), SB_OK);
    sb_tensor *input = zeros(10), *outputs[3];
    float *numbers = sb_tensor_mutable_data(input);
    for (int i = 0; i < 320; i++)
        numbers[i] = (float)(i % 37) / 8;
    for (int run = 0; run < 3; run++) {
        sb_value in = sb_value_of_tensor(input), out;
        seen.count = 0;
        assert_int_equal(sb_runner_run(runner, true, &in, &out, NULL), SB_OK);
        outputs[run] = out.tensor;
        assert_int_equal(seen.count, 6);
        assert_ptr_equal(seen.storage[1], seen.storage[0]); /* the transposed view */
        assert_true((seen.storage[2] == seen.storage[0]) == (run > 0));
        assert_true(seen.storage[5] != seen.storage[0]); /* the output */
        assert_true(sb_tensor_equal(outputs[run], outputs[0]));
    }
    for (int run = 0; run < 3; run++)
        sb_tensor_release(outputs[run]);
    sb_tensor_release(input);
    sb_runner_destroy(runner);
    sb_program_destroy(program);
    builder_destroy(&b);
}

/* ---- two sides ---- */

#define NODES 40

/* What a run does with memory, worked out from the steps: when each copy of a value comes to be, and when it is last
 * seen, by itself, through views of it, or as the source of a copy on the other side. */
typedef struct story {
    const sb_plan *plan;
    const sb_program *program;
    bool present[2 * (NODES + 8)];
    size_t roots[2 * (NODES + 8)];
    int64_t first[2 * (NODES + 8)], last[2 * (NODES + 8)];
    int brought; /* copies from one side to the other */
} story;

static void see_copy(story *story, size_t copy, int64_t step) {
    assert_true(story->present[copy]);
    story->last[story->roots[copy]] = step;
}

static void appear(story *story, size_t copy, size_t root, int64_t step) {
    story->present[copy] = true;
    story->roots[copy] = root;
    if (root == copy)
        story->first[copy] = story->last[copy] = step;
}

static void bring(story *story, sb_value_id value, sb_side side, int64_t step) {
    size_t copy = sb_copy_index(story->program, side, value);
    if (story->present[copy] || story->plan->facts[value].constant != NULL)
        return;
    story->brought++;
    see_copy(story, sb_copy_index(story->program, side == SB_HOST ? SB_DEVICE : SB_HOST, value), step);
    appear(story, copy, copy, step);
}

static void tell_step(story *story, size_t step) {
    const sb_planned_step *planned = &story->plan->steps[step];
    const sb_segment *segment = story->plan->segment_of[step];
    const sb_node *node = story->program->steps[step].node;
    if (planned->mode == SB_STEP_SKIP)
        return;
    assert_int_equal(planned->mode, SB_STEP_STATIC);
    for (size_t i = 0; segment != NULL && segment->first == step && i < segment->input_count; i++)
        bring(story, segment->inputs[i], SB_DEVICE, (int64_t)step);
    for (int i = 0; i < node->input_count; i++) {
        sb_side side = sb_input_side(planned->kernel, planned->side, i);
        if (story->plan->facts[node->inputs[i]].constant != NULL)
            continue;
        /* A segment has everything when it starts. */
        assert_true(segment == NULL || story->present[sb_copy_index(story->program, side, node->inputs[i])]);
        bring(story, node->inputs[i], side, (int64_t)step);
        see_copy(story, sb_copy_index(story->program, side, node->inputs[i]), (int64_t)step);
    }
    size_t made = sb_copy_index(story->program, planned->side, node->outputs[0]), root = made;
    if ((node->op->flags & SB_OP_VIEW) != 0)
        root = story->roots[sb_copy_index(story->program, planned->side, node->inputs[0])];
    appear(story, made, root, (int64_t)step);
}

static size_t copy_bytes(const story *story, size_t copy) {
    int64_t dims[SB_MAX_RANK], elements;
    const sb_fact *fact = &story->plan->facts[copy % story->program->graph->value_count];
    assert_true(sb_fact_is_concrete(fact, dims));
    assert_int_equal(sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL), SB_OK);
    return (size_t)elements * sb_dtype_size(fact->dtype);
}

/* Whether `made` is the output of a step that may lie on its input, which is `old` or a view of it, and sees that last. */
static bool takes_over(const story *story, size_t made, size_t old) {
    const int64_t step = story->first[made];
    if (step < 0 || step >= (int64_t)story->program->graph->node_count || story->last[old] != step)
        return false;
    const sb_planned_step *planned = &story->plan->steps[step];
    const sb_node *node = story->program->steps[step].node;
    const int input = planned->in_place;
    return input >= 0 && sb_copy_index(story->program, planned->side, node->outputs[0]) == made &&
           story->roots[sb_copy_index(story->program, sb_input_side(planned->kernel, planned->side, input),
                                      node->inputs[input])] == old;
}

/* No two copies that live at the same time on one side share bytes, unless one takes over the other's; what escapes has no
 * place. Returns how many copies brought from the other side have one. */
static int check_story(const story *story) {
    const sb_graph *graph = story->program->graph;
    int mirrors = 0;
    for (size_t i = 0; i < 2 * graph->value_count; i++) {
        int64_t offset = story->plan->offsets[i];
        if (offset < 0)
            continue;
        sb_side side = i < graph->value_count ? SB_HOST : SB_DEVICE;
        size_t bytes = copy_bytes(story, i);
        assert_true(story->present[i] && story->roots[i] == i);
        assert_true(story->last[i] < (int64_t)graph->node_count || side != SB_HOST);
        assert_true((size_t)offset + bytes <= story->plan->arena_bytes[side]);
        mirrors += story->plan->sides[i % graph->value_count] != side;
        for (size_t j = i + 1; j < (side == SB_HOST ? 1 : 2) * graph->value_count; j++) {
            int64_t other = story->plan->offsets[j];
            bool together = other >= 0 && story->first[i] <= story->last[j] && story->first[j] <= story->last[i];
            if (offset == other && (takes_over(story, i, j) || takes_over(story, j, i)))
                continue;
            if (together && offset < other + (int64_t)copy_bytes(story, j) && other < offset + (int64_t)bytes)
                fail_msg("copies %zu (steps %lld to %lld) and %zu (steps %lld to %lld) overlap", i,
                         (long long)story->first[i], (long long)story->last[i], j, (long long)story->first[j],
                         (long long)story->last[j]);
        }
    }
    return mirrors;
}

static sb_value_id random_node(builder *b, random_source *source, const sb_value_id *values, int count) {
    sb_value_id left = values[random_between(source, count > 6 ? count - 6 : 0, count - 1)];
    sb_value_id right = values[random_between(source, 0, count - 1)];
    switch (random_between(source, 0, 5)) {
    case 0:
        return builder_unary(b, "Exp", left); /* on the CPU */
    case 1:
        return builder_unary(b, "Transpose", left); /* a view; extents are equal */
    case 2:
        return builder_unary(b, "Relu", left);
    default:
        return builder_binary(b, "Add", left, right);
    }
}

/* Steps forced to the CPU, and all others on a device, of which planning asks nothing. */
static void test_two_sides(void **state) {
    (void)state;
    int mirrors = 0, segments = 0, brought = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_source source = {seed};
        builder b = builder_create();
        sb_value_id values[NODES];
        const sb_device_interface interface = {.find_kernel = sb_cuda_find_kernel};
        sb_queue queue = {.interface = &interface};
        sb_placement placement = {.queue = &queue, .force_cpu = "Exp"};
        values[0] = builder_input(&b, SB_F32, 2, (int64_t[]){32, 32});
        for (int i = 1; i < NODES; i++)
            values[i] = random_node(&b, &source, values, i);
        for (int i = NODES - 1; i > 20; i -= 7)
            assert_int_equal(sb_graph_add_output(b.graph, values[i], NULL), SB_OK);
        builder_finish(&b);
        for (int host_outputs = 0; host_outputs < 2; host_outputs++) {
            sb_program *program;
            sb_plan *plan;
            sb_tensor *input = zeros(32);
            sb_value value = sb_value_of_tensor(input);
            assert_int_equal(sb_program_create(b.graph, SB_ISA_SCALAR, false, &program, NULL), SB_OK);
            assert_int_equal(sb_plan_create(program, &placement, host_outputs != 0, &value, &plan, NULL), SB_OK);
            story story = {.plan = plan, .program = program};
            size_t first = sb_copy_index(program, SB_HOST, b.graph->inputs[0]);
            appear(&story, first, first, -1);
            for (size_t s = 0; s < program->step_count; s++)
                tell_step(&story, s);
            for (size_t o = 0; o < b.graph->output_count; o++) {
                sb_value_id output = b.graph->outputs[o];
                sb_side side = host_outputs != 0 ? SB_HOST : plan->sides[output];
                bring(&story, output, side, (int64_t)program->step_count);
                size_t copy = sb_copy_index(program, side, output);
                see_copy(&story, copy, INT64_MAX);
                assert_int_equal(plan->offsets[copy], -1);
                assert_int_equal(plan->offsets[story.roots[copy]], -1);
            }
            mirrors += check_story(&story);
            segments += (int)plan->segment_count;
            brought += story.brought;
            sb_tensor_release(input);
            sb_plan_destroy(plan, program);
            sb_program_destroy(program);
        }
        builder_destroy(&b);
    }
    assert_true(mirrors > 100 && segments > 100 && brought > mirrors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_reuses_memory),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_copied_views),
        cmocka_unit_test(test_two_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
