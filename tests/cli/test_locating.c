/* Where two runs begin to differ: a node whose result is spoilt is the one that is found, whichever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "../../cli/locating.h"
#include "support/must.h"

enum { COUNT = 9, MOST_NODES = 400 };

static const int64_t ids[COUNT] = {1, 50, 7, 23, 88, 4, 61, 12, 30};

/* An observer in front of the recording one, which spoils the last bit of an element of node `wrong` in run `run`. */
typedef struct spoiling {
    locating *to;
    int64_t node, run, nodes, runs;
    char first[160], spoilt[160];
} spoiling;

static sb_status watch(void *context, sb_node_event *event, sb_error *error) {
    spoiling *s = context;
    if (event->depth == 0 && event->output_count > 0) {
        if (s->nodes == 0)
            snprintf(s->first, sizeof s->first, "%s", event->name);
        else if (strcmp(s->first, event->name) == 0) {
            s->runs++;
            s->nodes = 0;
        }
        if (s->nodes++ == s->node && s->runs == s->run && sb_tensor_elements(event->outputs[0].tensor) > 0) {
            const sb_tensor *old = event->outputs[0].tensor;
            sb_tensor *dense, *made;
            MUST(sb_tensor_contiguous((sb_tensor *)(uintptr_t)old, &dense, error));
            MUST(sb_tensor_from_data(sb_tensor_dtype(dense), sb_tensor_rank(dense), sb_tensor_dims(dense),
                                     sb_tensor_data(dense), &made, error));
            sb_tensor_release(dense);
            *(unsigned char *)sb_tensor_mutable_data(made) ^= 1;
            sb_value_release(&event->outputs[0]);
            event->outputs[0] = sb_value_of_tensor(made);
            snprintf(s->spoilt, sizeof s->spoilt, "%s", event->name);
        }
    }
    return locate_by_node(s->to, event, error);
}

/* Runs the tokens in two pieces. */
static sb_status run_by(bool reference, sb_observer *observer, void *context, sb_error *error) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
    sb_session_options how = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm *llm;
    sb_llm_session *session;
    const int64_t last = 3;
    model.reference_only = reference;
    options.model = &model;
    options.context = 16;
    how.threads = 1;
    how.observer = observer;
    how.observer_context = context;
    MUST(sb_llm_load("models/gemma3", &options, &llm, error));
    MUST(sb_llm_session_create(llm, &how, &session, error));
    sb_status status = SB_OK;
    for (int64_t first = 0; first < 8 && status == SB_OK; first += 4) {
        sb_tensor *logits = NULL;
        status = sb_llm_step(session, 4, ids + first, 1, &last, &logits, error);
        if (status == SB_OK)
            sb_tensor_release(logits);
    }
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    return status;
}

static void test_locating(void **unused) {
    (void)unused;
    sb_error error;
    int found = 0;
    locating same = {0};
    MUST(run_by(false, locate_by_node, &same, error));
    size_t nodes = same.count / 2;
    assert_true(same.count > 20 && same.count < MOST_NODES);
    begin_comparing(&same);
    MUST(run_by(true, locate_by_node, &same, error)); /* nothing differs */
    assert_false(same.result.found);
    free_locating(&same);
    for (int64_t run = 0; run < 2; run++) {
        for (size_t node = 1; node < nodes; node += 7) {
            locating nodes_of = {0};
            spoiling spoilt = {&nodes_of, (int64_t)node, run, 0, 0, "", ""};
            MUST(run_by(false, watch, &spoilt, error));
            if (spoilt.spoilt[0] == '\0') {
                free_locating(&nodes_of);
                continue;
            }
            begin_comparing(&nodes_of);
            assert_int_equal(run_by(true, locate_by_node, &nodes_of, &error), SB_ERROR_INTERRUPTED);
            assert_true(nodes_of.result.found);
            assert_string_equal(nodes_of.result.name, spoilt.spoilt);
            assert_int_equal(nodes_of.result.run, run);
            if (strncmp(spoilt.spoilt, "layer.1.", 8) == 0)
                assert_int_equal(nodes_of.result.layer, 1);
            found++;
            free_locating(&nodes_of);
        }
    }
    assert_true(found >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_locating)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
