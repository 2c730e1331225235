/* A language model's decoder, exported by torch.onnx (models/make_decoder.py), with its cache in a state: what each run
 * makes longer. Include after cmocka.h. */
#ifndef SB_TESTS_DECODER_H
#define SB_TESTS_DECODER_H

#include <string.h>

#include <samebit/samebit.h>

#include "runtime/state.h"
#include "support/must.h"
#include "support/random.h"
#include "tensor/tensor.h"

#define DECODER_PAIRS 4
#define DECODER_OUTPUTS (1 + DECODER_PAIRS)
#define DECODER_HEADS 2
#define DECODER_WIDTH 8 /* of a head */
#define DECODER_VOCABULARY 31
#define DECODER_POSITIONS 160 /* that most tests use; the models have 1024 */

static const char *const decoder_files[] = {"decoder_dynamo.onnx", "decoder_torchscript.onnx"};
static const char *const decoder_past[] = {"past_key_0", "past_value_0", "past_key_1", "past_value_1"};
static const char *const decoder_present[] = {"present_key_0", "present_value_0", "present_key_1", "present_value_1"};

static inline sb_model *load_decoder(const char *file) {
    sb_model *model;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", DECODER_FOLDER, file);
    MUST(sb_model_load(path, NULL, &model, error));
    return model;
}

static inline sb_status try_decoder_state(sb_model *model, sb_device *device, int64_t capacity, int64_t least,
                                          sb_state **state, sb_error *error) {
    sb_state_pair pairs[DECODER_PAIRS];
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_capacity past = {"past", capacity, least};
    for (int i = 0; i < DECODER_PAIRS; i++)
        pairs[i] = (sb_state_pair){decoder_past[i], decoder_present[i], -1, NULL};
    options.device = device;
    options.pair_count = DECODER_PAIRS;
    options.pairs = pairs;
    options.capacity_count = 1;
    options.capacities = &past;
    return sb_state_create(model, &options, state, error);
}

/* NaN wherever the state has room, which is behind every row as long as none is used. */
static inline void put_nan_behind(sb_state *state) {
    for (size_t v = 0; v < state->count; v++) {
        const sb_held_variable *held = &state->variables[v];
        sb_tensor *room, *nans;
        assert_int_equal(sb_tensor_elements(held->tensor), 0);
        MUST(sb_tensor_create(SB_F32, held->tensor->rank, held->room, &nans, error));
        for (int64_t i = 0; i < sb_tensor_elements(nans); i++)
            ((uint32_t *)sb_tensor_mutable_data(nans))[i] = UINT32_C(0x7fc12345);
        MUST(sb_tensor_over(held->tensor->storage, held->tensor->data, SB_F32, held->tensor->rank, held->room, NULL,
                            &room, error));
        if (state->queue == NULL) {
            sb_tensor_copy_elements(room, nans);
        } else {
            MUST(sb_state_enter_queue(state, error));
            sb_status status = sb_queue_upload(state->queue, room, nans, NULL);
            assert_int_equal(sb_state_leave_queue(state, status, NULL), SB_OK);
        }
        sb_tensor_release(room);
        sb_tensor_release(nans);
    }
}

static inline sb_state *decoder_state(sb_model *model, sb_device *device, int64_t capacity, int64_t least) {
    sb_state *state;
    MUST(try_decoder_state(model, device, capacity, least, &state, error));
    put_nan_behind(state);
    return state;
}

static inline sb_tensor *decoder_ids(random_source *source, int64_t tokens) {
    sb_tensor *ids;
    MUST(sb_tensor_create(SB_S64, 2, (int64_t[]){1, tokens}, &ids, error));
    for (int64_t i = 0; i < tokens; i++)
        ((int64_t *)sb_tensor_mutable_data(ids))[i] = (int64_t)random_between(source, 0, DECODER_VOCABULARY - 1);
    return ids;
}

/* The model run by hand: each run's present is the next one's past, at exact extents, on the CPU. */
typedef struct decoder_by_hand {
    sb_session *session;
    sb_tensor *past[DECODER_PAIRS];
} decoder_by_hand;

static inline void begin_by_hand(decoder_by_hand *hand, sb_model *model) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1;
    MUST(sb_session_create(model, &options, &hand->session, error));
    for (int i = 0; i < DECODER_PAIRS; i++)
        MUST(sb_tensor_create(SB_F32, 4, (int64_t[]){1, DECODER_HEADS, 0, DECODER_WIDTH}, &hand->past[i], error));
}

/* The logits, which the caller releases. */
static inline sb_tensor *step_by_hand(decoder_by_hand *hand, sb_tensor *ids) {
    sb_tensor *inputs[DECODER_OUTPUTS] = {ids}, *outputs[DECODER_OUTPUTS];
    memcpy(inputs + 1, hand->past, sizeof hand->past);
    MUST(sb_session_run_tensors(hand->session, inputs, outputs, error));
    for (int i = 0; i < DECODER_PAIRS; i++)
        sb_tensor_release(hand->past[i]);
    memcpy(hand->past, outputs + 1, sizeof hand->past);
    return outputs[0];
}

static inline void end_by_hand(decoder_by_hand *hand) {
    for (int i = 0; i < DECODER_PAIRS; i++)
        sb_tensor_release(hand->past[i]);
    sb_session_destroy(hand->session);
}

static inline sb_status try_bound_step(sb_session *session, sb_tensor *ids, sb_tensor **logits, sb_error *error) {
    sb_value inputs[DECODER_OUTPUTS] = {sb_value_of_tensor(ids)}, outputs[DECODER_OUTPUTS];
    SB_TRY(sb_session_run(session, inputs, outputs, error));
    for (int i = 1; i < DECODER_OUTPUTS; i++)
        assert_int_equal(outputs[i].kind, SB_KIND_NONE);
    *logits = outputs[0].tensor;
    return SB_OK;
}

static inline sb_tensor *bound_step(sb_session *session, sb_tensor *ids) {
    sb_tensor *logits;
    sb_error error;
    if (try_bound_step(session, ids, &logits, &error) != SB_OK)
        fail_msg("%s", error.message);
    return logits;
}

/* The state's cache is what was handed from run to run by hand. */
static inline void check_cache(sb_state *state, const decoder_by_hand *hand) {
    for (int i = 0; i < DECODER_PAIRS; i++) {
        sb_tensor *held;
        MUST(sb_state_get(state, sb_state_variable_index(state, decoder_past[i]), &held, error));
        assert_true(sb_tensor_equal(held, hand->past[i]));
        sb_tensor_release(held);
    }
}

#endif
