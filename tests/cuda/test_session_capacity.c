/* Capacities on a device: one recording for all lengths of a cache, whose rows behind the last are NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/decoder.h"

#include "runtime/runner_internal.h"
#include "runtime/session_internal.h"

typedef struct decoding {
    sb_device *device;
    sb_model *model;
    sb_state *state;
    sb_session *session;
    decoder_by_hand hand;
} decoding;

static void begin(decoding *d, const char *file, int64_t least, sb_graph_mode graphs) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    fake_with_kernels();
    d->device = open_device();
    d->model = load_decoder(file);
    d->state = decoder_state(d->model, d->device, DECODER_POSITIONS, least);
    options.threads = 1;
    options.state = d->state;
    options.device = d->device;
    options.graphs = graphs;
    MUST(sb_session_create(d->model, &options, &d->session, error));
    begin_by_hand(&d->hand, d->model);
}

static void end(decoding *d) {
    check_cache(d->state, &d->hand);
    assert_string_equal(sb_session_exact_plans(d->session), "");
    end_by_hand(&d->hand);
    sb_session_destroy(d->session);
    sb_state_release(d->state);
    sb_model_release(d->model);
    sb_device_release(d->device);
}

static void check_step(decoding *d, sb_tensor *ids) {
    sb_tensor *expected = step_by_hand(&d->hand, ids), *actual = bound_step(d->session, ids);
    assert_true(sb_tensor_equal(actual, expected));
    sb_tensor_release(actual);
    sb_tensor_release(expected);
}

static void check_runs(const char *file, int64_t least, sb_graph_mode graphs, const int64_t *chunks, int chunk_count) {
    random_source source = {5};
    decoding d;
    begin(&d, file, least, graphs);
    for (int64_t used = 0, runs = 0; used + chunks[runs % chunk_count] <= DECODER_POSITIONS; runs++) {
        sb_tensor *ids = decoder_ids(&source, chunks[runs % chunk_count]);
        check_step(&d, ids);
        used += chunks[runs % chunk_count];
        sb_tensor_release(ids);
    }
    end(&d);
}

static void test_tokens_one_by_one(void **context) {
    for (int i = 0; i < 2; i++) {
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++)
            check_runs(decoder_files[i], 0, mode, (int64_t[]){1}, 1);
    }
}

static void test_chunks_and_buckets(void **context) {
    for (int i = 0; i < 2; i++) {
        check_runs(decoder_files[i], 0, SB_GRAPHS_BUILD, (int64_t[]){7, 1, 1, 19, 3, 1}, 6);
        check_runs(decoder_files[i], 10, SB_GRAPHS_BUILD, (int64_t[]){1, 1, 5}, 3);
    }
}

/* From the third token on: one launch of a graph, no copy to the device, no plan, no memory, the cache stays where it is. */
static void test_what_a_token_takes(void **context) {
    random_source source = {6};
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        decoding d;
        begin(&d, decoder_files[0], 0, mode);
        const sb_plan *plan = NULL;
        for (int token = 0; token < 40; token++) {
            sb_tensor *ids = decoder_ids(&source, 1);
            sb_device_counters before = counters_of(d.device);
            check_step(&d, ids);
            sb_device_counters after = counters_of(d.device);
            plan = token == 2 ? d.session->runner->plan : plan;
            if (token > 3) {
                assert_ptr_equal(d.session->runner->plan, plan);
                assert_int_equal(after.graph_launches - before.graph_launches, 1);
                assert_int_equal(after.device_allocations - before.device_allocations, 0);
                assert_int_equal(after.copies_to_device - before.copies_to_device, 0);
                assert_int_equal(after.copies_to_host - before.copies_to_host, 1); /* the logits */
            }
            sb_tensor_release(ids);
        }
        sb_state_counters counters;
        sb_state_count(d.state, &counters);
        assert_int_equal(counters.copies, 0);
        assert_int_equal(counters.updates_in_place, 40 * DECODER_PAIRS);
        end(&d);
    }
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_one_by_one),
        cmocka_unit_test(test_chunks_and_buckets),
        cmocka_unit_test(test_what_a_token_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
