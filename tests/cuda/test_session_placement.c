/* Where the nodes of a model run, and what is copied for it: over the fake driver, with the
 * kernels' sources on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_support.h"

static const int64_t SQUARE[] = {6, 6};

static sb_tensor *constant_square(uint64_t seed) {
    return random_tensor(SB_F32, 2, SQUARE, seed);
}

/* Two inputs, a chain with a constant, a view, and two outputs. Without passes, so that every node is there. */
static sb_model *chain(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, SQUARE), y = builder_input(&b, SB_F32, 2, SQUARE);
    sb_value_id weight = builder_constant(&b, constant_square(7));
    sb_value_id sum = builder_binary(&b, "Add", x, y);                    /* Add */
    sb_value_id scaled = builder_binary(&b, "Mul", sum, weight);          /* Mul */
    sb_value_id transposed = transpose(&b, scaled, 2, (int64_t[]){1, 0}); /* a view */
    sb_value_id bent = builder_unary(&b, "Tanh", transposed);             /* Tanh */
    sb_value_id difference = builder_binary(&b, "Sub", bent, sum);        /* Sub */
    sb_value_id result = builder_unary(&b, "Relu", difference);           /* Relu */
    mark_output(&b, result);
    mark_output(&b, bent);
    return model_of(&b, passes);
}

/* ---- what is reported ---- */

typedef struct placement {
    int nodes, on_device, views, to_device, to_host, constants;
    bool without_device;
    char text[4096];
} placement;

static void note_node(void *context, const sb_placed_node *node) {
    placement *all = context;
    size_t used = strlen(all->text);
    snprintf(all->text + used, sizeof all->text - used, "%s %s %s %s [%s]\n", node->on_device ? "device" : "host",
             node->op, node->name, node->kernel, node->why != NULL ? node->why : "");
    if (strcmp(node->op, SB_TRANSFER) == 0) {
        all->to_device += node->on_device;
        all->to_host += !node->on_device;
        all->constants += strncmp(node->kernel, "constant", 8) == 0;
        return;
    }
    all->nodes++;
    all->on_device += node->on_device;
    all->views += strcmp(node->kernel, "view") == 0;
    assert_true((node->why == NULL) == (node->on_device || all->without_device));
}

static placement placement_of(sb_session *session, int expected_on_host) {
    placement all = {0};
    assert_int_equal(sb_session_visit_placement(session, note_node, &all), expected_on_host);
    assert_int_equal(all.nodes - all.on_device, expected_on_host);
    return all;
}

/* ---- placements and their bits ---- */

/* Every subset of sides for the inputs, every graph mode, and nodes forced to the CPU anywhere: the CPU's bits. */
static void test_bits(void **unused) {
    static const struct {
        const char *force;
        int on_host;
    } forced[] = {{NULL, 0},
                  {"Mul", 2 /* and the view of it */},
                  {"Tanh", 1},
                  {"Transpose", 1},
                  {"Add", 1},
                  {"Relu", 1},
                  {"Sub", 1},
                  {"Add,Sub", 2},
                  {"Mul,Tanh", 3},
                  {"nothing", 0},
                  {"Add,Mul,Transpose,Tanh,Sub,Relu", 6}};
    setting s = start(chain, false);
    for (size_t f = 0; f < sizeof forced / sizeof forced[0]; f++) {
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session_options options = options_on(s.device);
            options.force_cpu = forced[f].force;
            options.graphs = mode;
            options.device_outputs = f % 2 == 1;
            sb_session *session = session_with(s.model, &options);
            for (int run = 0; run < 12; run++) {
                sb_tensor *inputs[2];
                for (int i = 0; i < 2; i++) {
                    sb_tensor *host = constant_square((uint64_t)(100 * run + i));
                    inputs[i] = (run / 3 >> i & 1) != 0 ? to_device(s.device, host) : sb_tensor_retain(host);
                    sb_tensor_release(host);
                }
                run_both(session, s.cpu, s.device, 2, inputs, 2);
                release_all(inputs, 2);
            }
            placement_of(session, forced[f].on_host);
            sb_session_destroy(session);
        }
    }
    finish(&s);
}

/* With inputs on the device, and outputs that stay there, nothing crosses; constants crossed once,
 * for both sessions. */
static void test_no_copies_when_placed(void **unused) {
    setting s = start(chain, false);
    sb_session_options options = options_on(s.device);
    options.device_outputs = options.require_device = true;
    sb_session *sessions[2] = {session_with(s.model, &options), session_with(s.model, &options)};
    sb_tensor *host[2] = {constant_square(1), constant_square(2)}, *outputs[2];
    sb_tensor *inputs[2] = {to_device(s.device, host[0]), to_device(s.device, host[1])};
    for (int run = 0; run < 8; run++) {
        sb_device_counters before = counters_of(s.device);
        run_session(sessions[run % 2], inputs, outputs);
        sb_device_counters after = counters_of(s.device);
        assert_int_equal(after.copies_to_device - before.copies_to_device, run == 0 ? 1 : 0);
        assert_int_equal(after.copies_to_host, before.copies_to_host);
        assert_int_equal(after.copies_on_device, before.copies_on_device);
        assert_true(sb_tensor_is_on_device(outputs[0]) && sb_tensor_is_on_device(outputs[1]));
        release_all(outputs, 2);
    }
    placement all = placement_of(sessions[0], 0);
    assert_int_equal(all.to_device, all.constants);
    assert_int_equal(all.to_host, 0);
    run_both(sessions[0], s.cpu, s.device, 2, inputs, 2);
    sb_session_destroy(sessions[0]);
    sb_session_destroy(sessions[1]);
    release_all(host, 2);
    release_all(inputs, 2);
    finish(&s);
}

/* What a run copies, after the first, which uploads constants: values, of which both inputs go to the device by one copy. */
static void check_copies(const setting *s, sb_session *session, sb_tensor *const *inputs, int outputs, int to_device,
                         int copies_to_device, int to_host) {
    sb_tensor *results[MOST_VALUES];
    run_session(session, inputs, results);
    release_all(results, outputs);
    for (int run = 0; run < 4; run++) {
        sb_device_counters before = counters_of(s->device);
        run_session(session, inputs, results);
        sb_device_counters after = counters_of(s->device);
        release_all(results, outputs);
        assert_int_equal(after.copies_to_device - before.copies_to_device, copies_to_device);
        assert_int_equal(after.copies_to_host - before.copies_to_host, to_host);
    }
    placement all = {0};
    sb_session_visit_placement(session, note_node, &all);
    if (all.to_device - all.constants != to_device || all.to_host != to_host)
        fail_msg("%d and %d copies, and reported are:\n%s", to_device, to_host, all.text);
}

/* Each value crosses once in each direction at most, however many steps want it there. */
static void test_copies_around_forced_nodes(void **unused) {
    static const struct {
        const char *force;
        int to_device, copies_to_device, to_host;
    } cases[] = {
        {NULL, 2, 1, 2},   /* both inputs, both outputs */
        {"Mul", 3, 2, 3},  /* and the sum, and the product: which is shown on the CPU … */
        {"Add", 1, 1, 2},  /* the sum goes there instead of the inputs */
        {"Relu", 2, 1, 2}, /* its input comes here instead of its output */
        {"Add,Mul,Transpose,Tanh,Sub,Relu", 0, 0, 0},
    };
    setting s = start(chain, false);
    sb_tensor *inputs[2] = {constant_square(1), constant_square(2)};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        sb_session_options options = options_on(s.device);
        options.force_cpu = cases[c].force;
        sb_session *session = session_with(s.model, &options);
        check_copies(&s, session, inputs, 2, cases[c].to_device, cases[c].copies_to_device, cases[c].to_host);
        sb_session_destroy(session);
    }
    release_all(inputs, 2);
    finish(&s);
}

/* Views between nodes on the CPU stay there, so nothing crosses and comes back at once. */
static sb_model *views_between(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, SQUARE);
    sb_value_id transposed = transpose(&b, x, 2, (int64_t[]){1, 0});
    sb_value_id first = builder_unary(&b, "Exp", transposed);
    sb_value_id flat = reshape(&b, transpose(&b, first, 2, (int64_t[]){1, 0}), 1, (int64_t[]){36});
    sb_value_id second = builder_unary(&b, "Exp", flat);
    sb_value_id third = builder_unary(&b, "Relu", reshape(&b, second, 2, (int64_t[]){4, 9}));
    mark_output(&b, third);
    return model_of(&b, passes);
}

static void test_views_between_cpu_nodes(void **unused) {
    setting s = start(views_between, false);
    sb_tensor *inputs[1] = {constant_square(5)};
    sb_session_options options = options_on(s.device);
    options.force_cpu = "Exp";
    sb_session *session = session_with(s.model, &options);
    check_copies(&s, session, inputs, 1, 1, 1, 1);
    run_both(session, s.cpu, s.device, 1, inputs, 1);
    sb_session_destroy(session);
    options.force_cpu = "Exp,Relu"; /* nothing computes on the device */
    session = session_with(s.model, &options);
    check_copies(&s, session, inputs, 1, 0, 0, 0);
    run_both(session, s.cpu, s.device, 1, inputs, 1);
    sb_session_destroy(session);
    release_all(inputs, 1);
    finish(&s);
}

/* ---- views ---- */

static sb_dtype view_dtype;

/* Transpose, Reshape, Unsqueeze, Slice, Expand and Squeeze, in a row. */
static sb_model *views_only(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, view_dtype, 3, (int64_t[]){4, 1, 6});
    sb_value_id transposed = transpose(&b, x, 3, (int64_t[]){2, 1, 0});                            /* 6 1 4 */
    sb_value_id flat = builder_binary(&b, "Squeeze", transposed, integers(&b, 1, (int64_t[]){1})); /* 6 4 */
    /* 3 4, backwards */
    sb_value_id part =
        builder_node(&b, "Slice", 5,
                     (sb_value_id[]){flat, integers(&b, 1, (int64_t[]){5}), integers(&b, 1, (int64_t[]){0}),
                                     integers(&b, 1, (int64_t[]){0}), integers(&b, 1, (int64_t[]){-2})},
                     NULL);
    sb_value_id deeper = builder_binary(&b, "Unsqueeze", part, integers(&b, 1, (int64_t[]){0})); /* 1 3 4 */
    sb_value_id wide = builder_binary(&b, "Expand", deeper, integers(&b, 3, (int64_t[]){2, 3, 4}));
    sb_value_id same = builder_unary(&b, "Identity", wide);
    mark_output(&b, same);
    mark_output(&b, reshape(&b, x, 2, (int64_t[]){8, 3}));
    return model_of(&b, passes);
}

static void test_views_launch_nothing(void **unused) {
    for (view_dtype = SB_BOOL; view_dtype <= SB_F64; view_dtype++) {
        if (view_dtype == SB_STRING || strcmp(sb_dtype_name(view_dtype), "unknown") == 0)
            continue;
        setting s = start(views_only, false);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session_options options = options_on(s.device);
            options.require_device = options.device_outputs = true;
            options.graphs = mode;
            sb_session *session = session_with(s.model, &options);
            sb_tensor *host = random_tensor(view_dtype, 3, (int64_t[]){4, 1, 6}, 3), *outputs[2];
            sb_tensor *input = to_device(s.device, host);
            for (int run = 0; run < 4; run++) {
                sb_device_counters before = counters_of(s.device);
                run_session(session, &input, outputs);
                sb_device_counters after = counters_of(s.device);
                assert_int_equal(after.kernels, before.kernels);
                assert_int_equal(after.device_allocations, before.device_allocations);
                assert_int_equal(after.copies_to_device, before.copies_to_device);
                assert_int_equal(after.copies_to_host, before.copies_to_host);
                assert_int_equal(after.copies_on_device, before.copies_on_device);
                assert_ptr_equal(sb_tensor_data(outputs[1]), sb_tensor_data(input));
                assert_ptr_equal(outputs[0]->storage, input->storage);
                release_all(outputs, 2);
            }
            run_both(session, s.cpu, s.device, 1, &input, 2);
            sb_tensor_release(host);
            sb_tensor_release(input);
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

/* ---- what is said ---- */

static void test_require_device(void **unused) {
    setting s = start(chain, false);
    sb_session_options options = options_on(s.device);
    options.require_device = true;
    options.force_cpu = "Mul,Tanh_";
    sb_session *session = session_with(s.model, &options);
    sb_tensor *inputs[2] = {constant_square(1), constant_square(2)}, *outputs[2];
    for (int attempt = 0; attempt < 2; attempt++) {
        sb_error error = {SB_OK, ""};
        assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_UNSUPPORTED);
        assert_null(outputs[0]);
        assert_says(error, "3 nodes would run on the CPU"); /* the view of what Mul makes is one */
        assert_says(error, "(Mul): forced to the CPU by \"Mul\"");
        assert_says(error, "(Transpose): it shows what a node on the CPU has made");
        assert_says(error, "(Tanh): forced to the CPU by \"Tanh_\"");
    }
    sb_session_destroy(session);
    release_all(inputs, 2);
    finish(&s);
}

/* Reasons, from the model's graph and those inside its nodes. */
static sb_model *reasons(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, SQUARE);
    sb_value_id indices = builder_unary(&b, "NonZero", x); /* the data decide its shape, which its kernel finds out */
    sb_value_id cast = attribute_node(&b, "Cast", 1, &indices, "to", true, 1, (int64_t[]){1});
    sb_value_id result =
        builder_unary(&b, "Abs", builder_unary(&b, "Unique", cast)); /* and whose kernel there is not */
    mark_output(&b, result);
    mark_output(&b, builder_unary(&b, "Relu", x));
    return model_of(&b, passes);
}

static void test_reasons(void **unused) {
    setting s = start(reasons, false);
    sb_session_options options = options_on(s.device);
    sb_session *session = session_with(s.model, &options);
    assert_int_equal(sb_session_visit_placement(session, note_node, &(placement){0}), 0); /* no run yet */
    sb_tensor *inputs[1] = {constant_square(1)};
    for (int run = 0; run < 3; run++)
        run_both(session, s.cpu, s.device, 1, inputs, 2);
    placement all = {0};
    int on_host = sb_session_visit_placement(session, note_node, &all);
    assert_int_equal(on_host, all.nodes - all.on_device);
    assert_int_equal(all.nodes, 5);
    assert_true(all.on_device >= 1 && on_host >= 1);
    assert_true(strstr(all.text, "device NonZero") != NULL);
    assert_true(strstr(all.text, "host Unique") != NULL);
    sb_session_destroy(session);
    options.device = NULL;
    session = session_with(s.model, &options);
    run_both(session, s.cpu, s.device, 1, inputs, 2);
    placement none = {.without_device = true};
    assert_int_equal(sb_session_visit_placement(session, note_node, &none), 5);
    assert_int_equal(none.nodes, 5);
    assert_int_equal(none.on_device, 0);
    sb_session_destroy(session);
    release_all(inputs, 1);
    finish(&s);
}

/* What makes no sense together is refused, and so are inputs on another device than the session's. */
static void test_refusals(void **unused) {
    setting s = start(chain, false);
    sb_session *session;
    sb_error error = {SB_OK, ""};
    sb_session_options options = options_on(NULL);
    options.device_outputs = true;
    assert_int_equal(sb_session_create(s.model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "sb_device_open");
    options = options_on(s.device);
    options.graphs = (sb_graph_mode)9;
    assert_int_equal(sb_session_create(s.model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_tensor *host = constant_square(1), *inputs[2], *outputs[2];
    inputs[0] = to_device(s.device, host);
    inputs[1] = host;
    assert_int_equal(sb_session_run_tensors(s.cpu, inputs, outputs, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "lies on device 0, and the session runs on the CPU");
    release_all(inputs, 2);
    finish(&s);
}

/* ---- a device only where it is quicker ---- */

static sb_estimate estimate_of(const sb_session *session) {
    sb_estimate estimate;
    sb_session_estimate(session, &estimate);
    return estimate;
}

/* A product of two squares of that width, and a chain of small nodes behind it. */
static sb_model *wide_product(int64_t width) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){width, width});
    sb_value_id weight = builder_constant(&b, random_tensor(SB_F32, 2, (int64_t[]){width, width}, 5));
    mark_output(&b, builder_unary(&b, "Tanh", builder_binary(&b, "MatMul", x, weight)));
    return model_of(&b, false);
}

static sb_model *small_product(bool passes) {
    (void)passes;
    return wide_product(4);
}

static sb_model *large_product(bool passes) {
    (void)passes;
    return wide_product(192);
}

/* Runs with the option; the bits are the CPU's, and the device gets work only if the estimate says so. */
static void check_choice(sb_model *(*make)(bool passes), int64_t width, int threads, bool on_device) {
    setting s = start(make, false);
    sb_session_options options = options_on(s.device);
    options.device_if_quicker = true;
    options.threads = threads;
    sb_session *session = session_with(s.model, &options);
    assert_false(estimate_of(session).made);
    for (int run = 0; run < 4; run++) {
        sb_tensor *input = random_tensor(SB_F32, 2, (int64_t[]){width, width}, (uint64_t)run + 1);
        sb_device_counters before = counters_of(s.device);
        run_both(session, s.cpu, s.device, 1, &input, 1);
        sb_device_counters after = counters_of(s.device);
        assert_int_equal(after.copies_to_device != before.copies_to_device, on_device);
        sb_tensor_release(input);
    }
    sb_estimate estimate = estimate_of(session);
    assert_true(estimate.made && estimate.on_device == on_device && estimate.threads == threads && estimate.nodes == 2);
    assert_true((estimate.device_us < estimate.host_us) == on_device);
    assert_true(estimate.flops >= 2.0 * (double)(width * width * width));
    sb_run_report report;
    sb_session_last_run(session, &report);
    if (!on_device)
        assert_string_equal(report.reason, "the CPU is estimated to be quicker");
    placement all = placement_of(session, on_device ? 0 : 2);
    assert_int_equal(strstr(all.text, "the run is estimated to take") != NULL, !on_device);
    sb_session_destroy(session);
    finish(&s);
}

static void test_quicker(void **unused) {
    check_choice(small_product, 4, 1, false);
    check_choice(large_product, 192, 1, true);
    check_choice(small_product, 4, 2, false);
}

/* Whoever asks for something of the device gets it, and without the option nothing is estimated. */
static void test_not_estimated(void **unused) {
    setting s = start(small_product, false);
    for (int way = 0; way < 4; way++) {
        sb_session_options options = options_on(s.device);
        options.device_if_quicker = way != 0;
        options.device_outputs = way == 1;
        options.require_device = way == 2;
        sb_session *session = session_with(s.model, &options);
        sb_tensor *host = random_tensor(SB_F32, 2, (int64_t[]){4, 4}, 3);
        sb_tensor *input = way == 3 ? to_device(s.device, host) : sb_tensor_retain(host);
        run_both(session, s.cpu, s.device, 1, &input, 1);
        assert_false(estimate_of(session).made);
        placement_of(session, 0);
        sb_tensor_release(input);
        sb_tensor_release(host);
        sb_session_destroy(session);
    }
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_no_copies_when_placed),
        cmocka_unit_test(test_copies_around_forced_nodes),
        cmocka_unit_test(test_views_between_cpu_nodes),
        cmocka_unit_test(test_views_launch_nothing),
        cmocka_unit_test(test_require_device),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_quicker),
        cmocka_unit_test(test_not_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
