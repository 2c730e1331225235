/* Packed forms of weights that change: every run has the bits of one that is fed by hand, and a version is packed once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "training.h"

#include "support/folder.h"

#define STEPS 1000
/* The filter's, the matrix's, and the transposed matrix's, which the gradient takes. */
#define FORMS 3

static sb_session *observed_session(sb_model *model, sb_state *state, const char *entry, int threads,
                                    sb_observer *observer) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = threads;
    options.state = state;
    options.entry = entry;
    options.observer = observer;
    MUST(sb_session_create(model, &options, &session, error));
    return session;
}

static sb_session *learning_session(sb_model *model, sb_state *state, const char *entry, int threads) {
    return observed_session(model, state, entry, threads, NULL);
}

/* ---- ending runs ---- */

static int next_ends;

/* Ends a run behind a node. */
static sb_status end_run(void *context, sb_node_event *event, sb_error *error) {
    (void)context;
    (void)event;
    if (next_ends-- != 0)
        return SB_OK;
    error->status = SB_ERROR_LIMIT;
    strcpy(error->message, "enough");
    return SB_ERROR_LIMIT;
}

/* ---- training ---- */

static void test_training(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_BF16, SB_F16};
    for (int way = 0; way < 4; way++) {
        sb_dtype dtype = dtypes[way % 3];
        sb_model *model = learning_model(dtype, false);
        sb_state *state = state_on(NULL, model);
        sb_session *session = learning_session(model, state, "train", way < 3 ? 1 : 3);
        teacher t = start_teacher(dtype);
        int64_t bytes = 0;
        for (uint64_t step = 0; step < STEPS; step++) {
            if (!step_agrees(&t, session, step))
                fail_msg("%s: step %d differs", sb_dtype_name(dtype), (int)step);
            assert_int_equal(counted(state).derivations, (int64_t)(step + 1) * FORMS);
            bytes = bytes != 0 ? bytes : counted(state).derived_bytes;
            assert_true(bytes > 0);
            assert_int_equal(counted(state).derived_bytes, bytes);
        }
        check_weights(&t, state);
        assert_true(t.changes > t.steps / 2);
        end_teacher(&t);
        sb_session_destroy(session);
        sb_state_release(state);
        sb_model_release(model);
    }
}

/* ---- training and rollout over one state ---- */

/* Which forms that both sessions read are those of the weights as they are now. */
typedef struct current {
    bool filter, matrix;
} current;

/* What changes weights between runs, and in the teacher as well. */
static void disturb(random_source *source, teacher *t, sb_state *state, sb_state *other, current *current) {
    const char *path = folder_path("weights");
    switch (random_between(source, 0, 11)) {
    case 0:
        MUST(sb_state_reset(state, error));
        current->filter = current->matrix = false;
        break;
    case 1: {
        sb_tensor *matrix = typed_numbers(t->dtype, 2, matrix_dims, (uint64_t)random_between(source, 0, 1000));
        MUST(sb_state_set(state, sb_state_variable_index(state, "matrix"), matrix, error));
        sb_tensor_release(matrix);
        current->matrix = false;
        break;
    }
    case 2: { /* other contents, of the same version */
        sb_state_variable variable;
        MUST(sb_state_save(state, path, error));
        MUST(sb_state_restore(other, path, error));
        int index = sb_state_variable_index(other, "filter");
        sb_tensor *filter = typed_numbers(t->dtype, 4, filter_dims, (uint64_t)random_between(source, 0, 1000));
        sb_state_describe(other, index, &variable);
        MUST(sb_state_set(other, index, filter, error));
        other->variables[index].version = variable.version;
        MUST(sb_state_save(other, path, error));
        MUST(sb_state_restore(state, path, error));
        sb_tensor_release(filter);
        current->filter = current->matrix = false;
        break;
    }
    case 3:
        MUST(sb_state_copy(other, state, error));
        MUST(sb_state_reset(state, error));
        MUST(sb_state_copy(state, other, error));
        current->filter = current->matrix = false;
        break;
    default:
        return;
    }
    set_weights(t, contents(state, "filter"), contents(state, "matrix"));
}

/* Two sessions in any order, and whatever else changes the weights: forms are made when they are first read after a
 * change, by whichever session, and by nobody else. */
static void test_two_sessions(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_BF16};
    for (int d = 0; d < 2; d++) {
        random_source source = {5};
        sb_model *model = learning_model(dtypes[d], false);
        sb_state *state = state_on(NULL, model), *other = state_on(NULL, model);
        sb_session *train = learning_session(model, state, "train", 2),
                   *rollout = learning_session(model, state, "rollout", 1);
        teacher t = start_teacher(dtypes[d]);
        current current = {false, false};
        int64_t expected = 0; /* forms made */
        int reused = 0;
        for (uint64_t turn = 0; turn < 600; turn++) {
            int64_t before = counted(state).derivations;
            disturb(&source, &t, state, other, &current);
            assert_int_equal(counted(state).derivations, before);
            bool trains = random_between(&source, 0, 2) == 0;
            expected += !current.filter + !current.matrix + trains; /* who rolls out has no transposed matrix */
            reused += current.filter && current.matrix;
            assert_true(trains ? step_agrees(&t, train, turn) : rollout_agrees(&t, rollout, turn));
            current.filter = current.matrix = !trains;
            assert_int_equal(counted(state).derivations, expected);
        }
        assert_true(reused > 50);
        assert_int_equal(count_derived(state), FORMS);
        check_weights(&t, state);
        end_teacher(&t);
        sb_session_destroy(train);
        sb_session_destroy(rollout);
        sb_state_release(state);
        sb_state_release(other);
        sb_model_release(model);
    }
}

#define TRAINED 60 /* steps of one thread, while the others roll out */
#define ROLLERS 2

typedef struct shared {
    sb_model *model;
    sb_state *state;
    sb_tensor *image, *rolled[TRAINED + 1]; /* what a rollout gives behind that many steps */
} shared;

static void *train_on(void *context) {
    const shared *shared = context;
    sb_session *session = learning_session(shared->model, shared->state, "train", 1);
    teacher t = start_teacher(SB_F32);
    bool same = true;
    for (uint64_t step = 0; step < TRAINED; step++)
        same = same && step_agrees(&t, session, step);
    end_teacher(&t);
    sb_session_destroy(session);
    return same ? context : NULL;
}

/* Each run sees the weights of some step, whole and as they are packed, and of none before the one that it saw last. */
static void *roll_out(void *context) {
    const shared *shared = context;
    sb_session *session = learning_session(shared->model, shared->state, "rollout", 1);
    int seen = 0;
    while (seen < TRAINED) {
        sb_tensor *output;
        run_tensors(session, (sb_tensor *const[]){shared->image}, &output);
        while (seen <= TRAINED && !sb_tensor_equal(output, shared->rolled[seen]))
            seen++;
        sb_tensor_release(output);
    }
    sb_session_destroy(session);
    return seen == TRAINED ? context : NULL;
}

/* One thread trains while others roll out: the packed forms that they share change hands with the state. */
static void test_threads(void **unused) {
    shared shared = {.model = learning_model(SB_F32, false), .image = typed_numbers(SB_F32, 4, image_dims, 9)};
    sb_state *by_hand = state_on(NULL, shared.model);
    sb_session *step = learning_session(shared.model, by_hand, "train", 1),
               *look = learning_session(shared.model, by_hand, "rollout", 1);
    pthread_t threads[1 + ROLLERS];
    shared.state = state_on(NULL, shared.model);
    for (uint64_t i = 0; i <= TRAINED; i++) {
        sb_tensor *inputs[] = {typed_numbers(SB_F32, 4, image_dims, i), typed_numbers(SB_F32, 2, target_dims, i + 7)};
        sb_tensor *outputs[STEP_OUTPUTS];
        run_tensors(look, &shared.image, &shared.rolled[i]);
        assert_true(i == 0 || !sb_tensor_equal(shared.rolled[i], shared.rolled[i - 1]));
        run_tensors(step, inputs, outputs);
        clear_tensors(inputs, 2);
        clear_tensors(outputs, STEP_OUTPUTS);
    }
    sb_session_destroy(step);
    sb_session_destroy(look);
    for (int i = 0; i <= ROLLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i == 0 ? train_on : roll_out, &shared), 0);
    for (int i = 0; i <= ROLLERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &shared);
    }
    assert_true(counted(shared.state).derivations >= TRAINED * FORMS);
    clear_tensors(shared.rolled, TRAINED + 1);
    sb_tensor_release(shared.image);
    sb_state_release(by_hand);
    sb_state_release(shared.state);
    sb_model_release(shared.model);
}

/* ---- slots ---- */

static const int64_t slot_dims[] = {6, 5}, one_slot[] = {5}, row_dims[] = {-1, 6};

/* v [6 slots, 5]: y = x · v, or "mix", after which each slot is x plus half the sum of them all. */
static sb_status add_slot_product(sb_builder *b, bool by_hand, sb_error *error) {
    static const float half = 0.5f;
    sb_value_description description = described("v", SB_F32, 2, slot_dims);
    sb_variable_options slots = SB_VARIABLE_OPTIONS_DEFAULT;
    sb_builder_variable v = {0};
    sb_builder_value x, w, y, factor, axes, sum, next;
    slots.slots = true;
    if (!by_hand) {
        sb_tensor *initial = numbers(1, one_slot, 5);
        sb_status status = sb_builder_add_variable(b, &description, initial, &slots, &v, error);
        sb_tensor_release(initial);
        SB_TRY(status);
    }
    SB_TRY(sb_builder_entry(b, "product", error));
    SB_TRY(add_input(b, "x", 2, row_dims, &x, error));
    SB_TRY(by_hand ? sb_builder_input(b, &description, &w, error) : sb_builder_read(b, v, &w, error));
    SB_TRY(add_binary(b, "MatMul", x, w, &y, error));
    SB_TRY(sb_builder_output(b, y, error));
    if (by_hand)
        return SB_OK;
    SB_TRY(sb_builder_entry(b, "mix", error));
    SB_TRY(add_input(b, "x", 2, slot_dims, &x, error));
    SB_TRY(sb_builder_read(b, v, &w, error));
    SB_TRY(add_constant(b, "half", SB_F32, 0, NULL, &half, &factor, error));
    SB_TRY(add_constant(b, "axes", SB_S64, 1, (int64_t[]){1}, (int64_t[]){0}, &axes, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 2, (sb_builder_value[]){w, axes}, 0, NULL, &sum, error));
    SB_TRY(add_binary(b, "Mul", sum, factor, &sum, error));
    SB_TRY(add_binary(b, "Add", x, sum, &next, error));
    return sb_builder_update(b, v, next, error);
}

static sb_model *slot_product_model(bool by_hand) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_slot_product(b, by_hand, error), &model, error));
    return model;
}

typedef struct slot_product {
    sb_state *state;
    sb_session *product, *mix, *ended;
    int torn;
} slot_product;

/* Mixes; with `ends`, in a run that ends behind its last node, which from the second run on writes the slots. */
static void mix(slot_product *s, uint64_t turn, bool ends) {
    sb_tensor *x = numbers(2, slot_dims, turn), *v;
    next_ends = ends ? 2 : -1;
    sb_status status = sb_session_run_tensors(turn % 6 == 5 ? s->ended : s->mix, &x, NULL, NULL);
    sb_tensor_release(x);
    assert_int_equal(status, ends ? SB_ERROR_LIMIT : SB_OK);
    if (sb_state_get(s->state, 0, &v, NULL) != SB_OK) {
        s->torn++;
        MUST(sb_state_reset(s->state, error));
        return;
    }
    sb_tensor_release(v);
}

/* One of the ways in which slots change; whether what was made of them is to be made again. */
static bool change_slots(slot_product *s, uint64_t turn) {
    const char *path = folder_path("slot");
    switch (turn % 6) {
    case 0:
        MUST(sb_state_reset_slot(s->state, (int64_t)(turn / 6 % 6), error));
        return true;
    case 1:
        mix(s, turn, false);
        return true;
    case 2:
        MUST(sb_state_copy_slot(s->state, 1, 4, error));
        return true;
    case 3:
        MUST(sb_state_save_slot(s->state, 2, path, error));
        return false;
    case 4:
        MUST(sb_state_restore_slot(s->state, 5, path, error));
        return true;
    default:
        mix(s, turn, turn > 6);
        return true;
    }
}

static void test_slots(void **unused) {
    sb_model *model = slot_product_model(false), *by_hand = slot_product_model(true);
    slot_product s = {.state = state_on(NULL, model)};
    sb_session *reference = bound_session(by_hand, NULL, "product", NULL);
    s.product = bound_session(model, s.state, "product", NULL);
    s.mix = bound_session(model, s.state, "mix", NULL);
    s.ended = observed_session(model, s.state, "mix", 1, end_run);
    for (uint64_t turn = 0; turn < 90; turn++) {
        bool changes = change_slots(&s, turn);
        sb_tensor *x = numbers(2, (int64_t[]){3, 6}, turn), *v = contents(s.state, "v"), *y, *expected;
        for (int again = 0; again < 2; again++) {
            int64_t before = counted(s.state).derivations;
            run_tensors(s.product, &x, &y);
            run_tensors(reference, (sb_tensor *[]){x, v}, &expected);
            check_equal(y, expected);
            assert_int_equal(counted(s.state).derivations - before, changes && again == 0);
            clear_tensors((sb_tensor *[]){y, expected}, 2);
        }
        clear_tensors((sb_tensor *[]){x, v}, 2);
    }
    assert_true(counted(s.state).updates_in_place > 0);
    assert_true(s.torn > 0);
    sb_session_destroy(s.product);
    sb_session_destroy(s.mix);
    sb_session_destroy(s.ended);
    sb_session_destroy(reference);
    sb_state_release(s.state);
    sb_model_release(model);
    sb_model_release(by_hand);
}

/* Rows whose number changes from run to run, in one plan for them all. */
static void test_capacity(void **unused) {
    sb_model *model = slot_product_model(false), *by_hand = slot_product_model(true);
    sb_state *state = state_on(NULL, model);
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *product, *reference = bound_session(by_hand, NULL, "product", NULL);
    options.threads = 1;
    options.state = state;
    options.entry = "product";
    options.capacity_count = 1;
    options.capacities = &(sb_capacity){.symbol = "batch", .capacity = 8, .least = 8};
    MUST(sb_session_create(model, &options, &product, error));
    for (uint64_t turn = 0; turn < 40; turn++) {
        sb_tensor *x = numbers(2, (int64_t[]){1 + (int64_t)(turn * 5 % 8), 6}, turn), *v, *y, *expected;
        if (turn % 10 == 9) {
            v = numbers(2, slot_dims, turn);
            MUST(sb_state_set(state, 0, v, error));
            sb_tensor_release(v);
        }
        v = contents(state, "v");
        run_tensors(product, &x, &y);
        run_tensors(reference, (sb_tensor *[]){x, v}, &expected);
        check_equal(y, expected);
        clear_tensors((sb_tensor *[]){x, v, y, expected}, 4);
    }
    assert_int_equal(counted(state).derivations, 5);
    assert_int_equal(count_derived(state), 1);
    sb_tensor *x = numbers(2, (int64_t[]){3, 6}, 1), *v = numbers(2, slot_dims, 99), *y, *expected;
    MUST(sb_state_set(state, 0, v, error));
    assert_true(plant_stale(state, 0)); /* it is what the launches take */
    run_tensors(product, &x, &y);
    run_tensors(reference, (sb_tensor *[]){x, v}, &expected);
    assert_false(sb_tensor_equal(y, expected));
    clear_tensors((sb_tensor *[]){x, v, y, expected}, 4);
    sb_session_destroy(product);
    sb_session_destroy(reference);
    sb_state_release(state);
    sb_model_release(model);
    sb_model_release(by_hand);
}

/* a [1, past] times past [past, 4], which a run makes one row longer. */
static sb_status add_growing(sb_builder *b, sb_error *error) {
    static const int64_t one[] = {1, -1}, past[] = {-1, 4}, row[] = {1, 4};
    static const char *const one_texts[] = {NULL, "past"}, *const past_texts[] = {"past", NULL};
    sb_value_description a_like = described("a", SB_F32, 2, one), past_like = described("past", SB_F32, 2, past);
    sb_builder_attribute axis = sb_attribute_int("axis", 0);
    sb_builder_node append = SB_BUILDER_NODE_DEFAULT;
    sb_builder_value a, old, x, product, present;
    a_like.dim_texts = one_texts;
    past_like.dim_texts = past_texts;
    SB_TRY(sb_builder_input(b, &a_like, &a, error));
    SB_TRY(sb_builder_input(b, &past_like, &old, error));
    SB_TRY(add_input(b, "x", 2, row, &x, error));
    SB_TRY(add_binary(b, "MatMul", a, old, &product, error));
    append.op = "Concat";
    append.input_count = 2;
    append.inputs = (sb_builder_value[]){old, x};
    append.attribute_count = 1;
    append.attributes = &axis;
    append.output_names = (const char *const[]){"present"};
    SB_TRY(sb_builder_add_node(b, &append, &present, error));
    SB_TRY(sb_builder_output(b, product, error));
    return sb_builder_output(b, present, error);
}

/* What grows changes with every run: it is packed by the launches that read it, and nothing is kept of it. */
static void test_growing(void **unused) {
    sb_builder *b;
    sb_model *model;
    sb_state *state;
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_growing(b, error), &model, error));
    options.pair_count = 1;
    options.pairs = &(sb_state_pair){"past", "present", -1, NULL};
    options.capacity_count = 1;
    options.capacities = &(sb_capacity){"past", 40, 8};
    MUST(sb_state_create(model, &options, &state, error));
    sb_session *session = learning_session(model, state, NULL, 1), *by_hand = bound_session(model, NULL, NULL, NULL);
    for (int64_t past = 0; past < 40; past++) {
        sb_tensor *inputs[] = {numbers(2, (int64_t[]){1, past}, 3), contents(state, "past"),
                               numbers(2, (int64_t[]){1, 4}, (uint64_t)past)};
        sb_tensor *outputs[2], *expected[2];
        run_tensors(by_hand, inputs, expected);
        run_tensors(session, (sb_tensor *[]){inputs[0], NULL, inputs[2]}, outputs);
        check_equal(outputs[0], expected[0]);
        clear_tensors(inputs, 3);
        clear_tensors(expected, 2);
        sb_tensor_release(outputs[0]);
    }
    assert_int_equal(counted(state).derivations, 0);
    assert_int_equal(counted(state).derived_bytes, 0);
    sb_session_destroy(session);
    sb_session_destroy(by_hand);
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- what has to show, and what fails ---- */

static void test_stale(void **unused) {
    check_stale_shows(SB_F32, NULL, SB_GRAPHS_OFF);
    check_stale_shows(SB_F16, NULL, SB_GRAPHS_OFF);
}

/* Runs that end half-way, and what the other session, and the same one, make of the state then. */
static void test_ended_runs(void **unused) {
    sb_model *model = learning_model(SB_F32, false);
    sb_state *state = state_on(NULL, model);
    sb_session *train = observed_session(model, state, "train", 1, end_run),
               *rollout = learning_session(model, state, "rollout", 1);
    teacher t = start_teacher(SB_F32);
    int ended = 0;
    for (uint64_t turn = 0; turn < 80; turn++) {
        sb_tensor *inputs[] = {typed_numbers(SB_F32, 4, image_dims, turn), typed_numbers(SB_F32, 2, target_dims, turn)};
        sb_tensor *outputs[STEP_OUTPUTS];
        next_ends = (int)(turn % 40);
        if (sb_session_run_tensors(train, inputs, outputs, NULL) == SB_OK)
            clear_tensors(outputs, STEP_OUTPUTS);
        else
            ended++;
        clear_tensors(inputs, 2);
        set_weights(&t, contents(state, "filter"), contents(state, "matrix"));
        next_ends = -1;
        if (turn % 2 == 0)
            assert_true(rollout_agrees(&t, rollout, turn));
        assert_true(step_agrees(&t, train, turn));
    }
    assert_true(ended > 20);
    end_teacher(&t);
    sb_session_destroy(train);
    sb_session_destroy(rollout);
    sb_state_release(state);
    sb_model_release(model);
}

/* A run that fails may have made forms half: those that it only reads are made again too. */
static void test_failed(void **unused) {
    sb_model *model = learning_model(SB_F32, false);
    sb_state *state = state_on(NULL, model);
    sb_session *rollout = observed_session(model, state, "rollout", 1, end_run);
    teacher t = start_teacher(SB_F32);
    for (int ends = 0; ends < 3; ends++) {
        sb_tensor *x = typed_numbers(SB_F32, 4, image_dims, 1), *y;
        next_ends = -1;
        for (int again = 0; again < 2; again++) {
            assert_true(rollout_agrees(&t, rollout, (uint64_t)ends));
            assert_int_equal(counted(state).derivations, 2 * (ends + 1)); /* the filter and the matrix */
        }
        next_ends = ends;
        assert_int_equal(sb_session_run_tensors(rollout, &x, &y, NULL), SB_ERROR_LIMIT);
        sb_tensor_release(x);
    }
    end_teacher(&t);
    sb_session_destroy(rollout);
    sb_state_release(state);
    sb_model_release(model);
}

static bool other_derived;

static sb_status derive_other(sb_call *call, const sb_tensor *from, void *derived) {
    (void)call;
    (void)from;
    (void)derived;
    other_derived = true;
    return SB_OK;
}

/* Gives every variable forms of another kernel, of the layouts and sizes that those in `like` have. */
static void plant_others(sb_state *state, const sb_state *like) {
    static const sb_kernel other = {.name = "other", .derive = derive_other};
    for (size_t i = 0; i < state->count; i++) {
        for (const sb_derived_value *known = like->variables[i].derived; known != NULL; known = known->next) {
            sb_derived_value *planted = sb_allocate_array(1, sizeof *planted);
            assert_non_null(planted);
            *planted = (sb_derived_value){.variable = &state->variables[i],
                                          .kernel = &other,
                                          .layout = known->layout,
                                          .contents = state->variables[i].contents,
                                          .next = state->variables[i].derived};
            MUST(sb_storage_create(known->storage->bytes, &planted->storage, error));
            state->variables[i].derived = planted;
        }
    }
}

/* Kernels that number their layouts alike do not take each other's forms. */
static void test_other_kernels(void **unused) {
    sb_model *model = learning_model(SB_F32, false);
    sb_state *state = state_on(NULL, model), *first = state_on(NULL, model);
    sb_session *train = learning_session(model, first, "train", 1);
    teacher t = start_teacher(SB_F32), same = start_teacher(SB_F32);
    assert_true(step_agrees(&t, train, 0));
    plant_others(state, first);
    sb_session_destroy(train);
    train = learning_session(model, state, "train", 1);
    for (uint64_t step = 0; step < 5; step++)
        assert_true(step_agrees(&same, train, step));
    assert_int_equal(count_derived(state), 2 * FORMS);
    assert_false(other_derived);
    end_teacher(&t);
    end_teacher(&same);
    sb_session_destroy(train);
    sb_state_release(state);
    sb_state_release(first);
    sb_model_release(model);
}

/* Every allocation of a run failing, in its turn: nothing has changed, and the next run is as if there had been none. */
static void test_memory(void **unused) {
    for (int runs = 0; runs < 3; runs++) {
        for (int64_t successes = 0;; successes++) {
            sb_model *model = learning_model(SB_F32, false);
            sb_state *state = state_on(NULL, model);
            sb_session *train = learning_session(model, state, "train", 1),
                       *rollout = learning_session(model, state, "rollout", 1);
            teacher t = start_teacher(SB_F32);
            for (int run = 0; run < runs; run++)
                assert_true(step_agrees(&t, train, (uint64_t)run));
            sb_tensor *x = typed_numbers(SB_F32, 4, image_dims, 9), *target = typed_numbers(SB_F32, 2, target_dims, 9);
            sb_tensor *y[STEP_OUTPUTS];
            sb_session *failing = successes % 2 == 0 ? train : rollout;
            sb_error error = {SB_OK, ""};
            sb_allocation_fail_after(successes / 2, false);
            sb_status status = sb_session_run_tensors(failing, (sb_tensor *[]){x, target}, y, &error);
            sb_allocation_fail_after(-1, false);
            if (status == SB_OK)
                clear_tensors(y, failing == train ? STEP_OUTPUTS : 1);
            else
                assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
            if (status == SB_OK && failing == train)
                set_weights(&t, contents(state, "filter"), contents(state, "matrix"));
            else
                check_weights(&t, state);
            assert_true(rollout_agrees(&t, rollout, 10));
            assert_true(step_agrees(&t, train, 11));
            clear_tensors((sb_tensor *[]){x, target}, 2);
            end_teacher(&t);
            sb_session_destroy(train);
            sb_session_destroy(rollout);
            sb_state_release(state);
            sb_model_release(model);
            if (status == SB_OK && failing == train)
                break;
        }
    }
}

/* A state whose limit has room for the variables alone. */
static void test_limit(void **unused) {
    sb_model *model = learning_model(SB_F32, false);
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_state *state;
    sb_error error = {SB_OK, ""};
    options.memory_limit = 4096;
    MUST(sb_state_create(model, &options, &state, error));
    sb_session *rollout = learning_session(model, state, "rollout", 1);
    sb_tensor *x = typed_numbers(SB_F32, 4, image_dims, 1), *y;
    assert_int_equal(sb_session_run_tensors(rollout, &x, &y, &error), SB_ERROR_OUT_OF_MEMORY);
    ASSERT_SAYS(error, "variable ");
    ASSERT_SAYS(error, "keeps a form of ");
    ASSERT_SAYS(error, "memory_limit");
    sb_tensor *filter = contents(state, "filter"); /* it is not torn */
    assert_int_equal(version_of(state, "filter"), 0);
    clear_tensors((sb_tensor *[]){x, filter}, 2);
    sb_session_destroy(rollout);
    sb_state_release(state);
    sb_model_release(model);
}

/* The name of a test, to run that alone. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training), cmocka_unit_test_setup_teardown(test_two_sessions, folder_open, folder_close),
        cmocka_unit_test(test_threads),  cmocka_unit_test_setup_teardown(test_slots, folder_open, folder_close),
        cmocka_unit_test(test_capacity), cmocka_unit_test(test_growing),
        cmocka_unit_test(test_stale),    cmocka_unit_test(test_ended_runs),
        cmocka_unit_test(test_failed),   cmocka_unit_test(test_other_kernels),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_limit),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
