/* Runs that update a variable where it lies, with memory running out or calls of the driver failing at every place: what
 * takes memory comes before the first update, and whatever else fails leaves the state as it was or torn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/stateful.h"
#include "thorough.h"

#define UNKNOWN 999
#define OUT_OF_MEMORY 2
#define MOST_WARM 4
#define IN_FLIGHT 3
#define INPUTS 3
#define OUTPUTS 5

/* v [4, 5]; x and z [4, 5], u [n]. v := x + the sums of v's rows, which is written where v lies. Before it an output is
 * made, and behind it there is everything that may take memory: outputs, of which one is a view, a node that may be
 * kept on the CPU, and inputs that are needed nowhere before. */
static sb_status add_model(sb_builder *b, sb_error *error) {
    static const int64_t dims[] = {4, 5}, any[] = {-1}, swapped[] = {1, 0}, axis = 1;
    static const char *const symbol[] = {"n"};
    sb_value_description whole = {.name = "v", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2, .dims = dims};
    sb_value_description first = whole, second = whole;
    sb_value_description third = {
        .name = "u", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = any, .dim_texts = symbol};
    sb_builder_variable v;
    sb_builder_value x, z, u, early, old, axes, sums, next, product, view, size, last, outer, more;
    sb_tensor *initial = numbers(2, dims, 17);
    first.name = "x";
    second.name = "z";
    sb_status status = sb_builder_add_variable(b, &whole, initial, NULL, &v, error);
    sb_tensor_release(initial);
    SB_TRY(status);
    SB_TRY(sb_builder_entry(b, "go", error));
    SB_TRY(sb_builder_input(b, &first, &x, error));
    SB_TRY(sb_builder_input(b, &second, &z, error));
    SB_TRY(sb_builder_input(b, &third, &u, error));
    SB_TRY(sb_builder_op(b, "Neg", 1, &x, 0, NULL, &early, error));
    SB_TRY(sb_builder_read(b, v, &old, error));
    SB_TRY(add_constant(b, "axes", SB_S64, 1, (int64_t[]){1}, &axis, &axes, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 2, (sb_builder_value[]){old, axes}, 0, NULL, &sums, error));
    SB_TRY(add_binary(b, "Add", x, sums, &next, error));
    SB_TRY(sb_builder_update(b, v, next, error));
    SB_TRY(add_binary(b, "Mul", next, x, &product, error));
    SB_TRY(sb_builder_op(b, "Transpose", 1, &product, 1,
                         (sb_builder_attribute[]){sb_attribute_ints("perm", 2, swapped)}, &view, error));
    SB_TRY(sb_builder_op(b, "Abs", 1, &product, 0, NULL, &size, error));
    SB_TRY(add_binary(b, "Add", size, z, &last, error));
    SB_TRY(sb_builder_op(b, "Tanh", 1, &last, 0, NULL, &outer, error));
    SB_TRY(sb_builder_op(b, "Neg", 1, &u, 0, NULL, &more, error));
    sb_builder_value outputs[OUTPUTS] = {early, view, last, outer, more};
    for (int i = 0; i < OUTPUTS; i++)
        SB_TRY(sb_builder_output(b, outputs[i], error));
    return SB_OK;
}

static sb_model *make_model(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_model(b, error), &model, error));
    return model;
}

typedef struct kind {
    sb_graph_mode mode;
    bool device_outputs, strided;
    bool emptied; /* the device was out of memory once, and nothing that was given back waits to be used again */
    const char *force_cpu;
    int warm; /* runs before those that something fails in */
} kind;

/* A session that has run as often as its kind says, and the state on the CPU that it should have. */
typedef struct life {
    const kind *kind;
    sb_device *device;
    sb_state *state, *expected;
    sb_session *session, *cpu;
    sb_tensor *inputs[INPUTS];
    sb_value kept[MOST_WARM * OUTPUTS]; /* outputs, so that blocks come back in another order */
} life;

/* z with gaps between its elements. */
static sb_tensor *with_gaps(void) {
    sb_tensor *wide = numbers(2, (int64_t[]){4, 10}, 2), *view;
    MUST(sb_tensor_slice(wide, 1, 0, 5, 2, &view, error));
    sb_tensor_release(wide);
    return view;
}

static void run_once(const life *l, sb_tensor *u, sb_value *outputs) {
    sb_value values[INPUTS] = {sb_value_of_tensor(l->inputs[0]), sb_value_of_tensor(l->inputs[1]),
                               sb_value_of_tensor(u)};
    MUST(sb_session_run(l->session, values, outputs, error));
}

/* A run whose larger arena does not fit at first. */
static void run_out_of_memory(const life *l, const fake_cuda_control *fake) {
    sb_tensor *large = numbers(1, (int64_t[]){5000}, 3);
    sb_value outputs[OUTPUTS];
    fake->plan_failure("cuMemAlloc", 0, OUT_OF_MEMORY);
    run_once(l, large, outputs);
    assert_true(fake->failure_happened());
    fake->plan_failure(NULL, -1, 0);
    for (int i = 0; i < OUTPUTS; i++)
        sb_value_release(&outputs[i]);
    sb_tensor_release(large);
}

static life begin(const kind *kind, sb_model *model, const setting *s) {
    life l = {.kind = kind, .device = s->device, .inputs = {numbers(2, (int64_t[]){4, 5}, 1)}};
    l.inputs[1] = kind->strided ? with_gaps() : numbers(2, (int64_t[]){4, 5}, 2);
    l.inputs[2] = numbers(1, (int64_t[]){3}, 3);
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    MUST(sb_state_create(model, &options, &l.expected, error));
    options.device = s->device;
    MUST(sb_state_create(model, &options, &l.state, error));
    l.cpu = bound_session(model, l.expected, "go", NULL);
    sb_session_options how = options_on(s->device);
    how.state = l.state;
    how.entry = "go";
    how.graphs = kind->mode;
    how.device_outputs = kind->device_outputs;
    how.force_cpu = kind->force_cpu;
    l.session = session_with(model, &how);
    for (int run = 0; run < kind->warm; run++)
        run_once(&l, l.inputs[2], &l.kept[OUTPUTS * run]);
    if (kind->emptied)
        run_out_of_memory(&l, s->fake);
    return l;
}

static void end(life *l) {
    for (int i = 0; i < MOST_WARM * OUTPUTS; i++)
        sb_value_release(&l->kept[i]);
    sb_session_destroy(l->session);
    sb_session_destroy(l->cpu);
    sb_state_release(l->state);
    sb_state_release(l->expected);
    release_all(l->inputs, INPUTS);
}

/* The runs in which something fails, in flight together; the first failure. */
static sb_status fly(const life *l, sb_error *error) {
    sb_value values[INPUTS], outputs[OUTPUTS];
    for (int i = 0; i < INPUTS; i++)
        values[i] = sb_value_of_tensor(l->inputs[i]);
    uint64_t runs[IN_FLIGHT];
    sb_status first = SB_OK;
    for (int i = 0; i < IN_FLIGHT; i++) {
        sb_error unread;
        sb_status status = sb_session_enqueue(l->session, values, &runs[i], first == SB_OK ? error : &unread);
        first = first == SB_OK ? status : first;
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        sb_error unread;
        if (runs[i] == 0)
            continue;
        sb_status status = sb_session_wait(l->session, runs[i], outputs, first == SB_OK ? error : &unread);
        first = first == SB_OK ? status : first;
        for (int o = 0; o < OUTPUTS; o++)
            sb_value_release(&outputs[o]);
    }
    return first;
}

/* The CPU does as many runs as the state has seen; then both hold the same. */
static void check_contents(const life *l) {
    int64_t runs = version_of(l->state, "v");
    int before = l->kind->warm + l->kind->emptied;
    assert_true(runs >= before && runs <= before + IN_FLIGHT);
    while (version_of(l->expected, "v") < runs) {
        sb_tensor *outputs[OUTPUTS];
        run_session(l->cpu, l->inputs, outputs);
        release_all(outputs, OUTPUTS);
    }
    check_same_contents(l->state, l->expected);
}

typedef void visit_kind(const kind *kind);

/* Not every combination, to save time, but every pair. */
static void for_each_kind(visit_kind *visit) {
    static const char *const forced[] = {NULL, "Abs", "Abs,Transpose"};
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int where = 0; where < 3; where++) {
            for (int warm = 1; warm <= MOST_WARM; warm++)
                visit(&(kind){.mode = mode,
                              .device_outputs = (warm + (int)mode) % 3 == 0,
                              .strided = (warm + where) % 2 != 0,
                              .emptied = (warm + (int)mode + where) % 2 == 0,
                              .force_cpu = forced[where],
                              .warm = warm});
        }
    }
}

/* ---- memory ---- */

/* The library's allocations in turn, one alone or all from there on. */
static void check_allocations(const kind *kind) {
    setting s = start_device();
    s.model = make_model();
    for (int forever = 0; forever < 2; forever++) {
        sb_status status = SB_ERROR_OUT_OF_MEMORY;
        for (int64_t successes = 0; status != SB_OK; successes += failing_step(1)) {
            sb_error error = {SB_OK, ""};
            life l = begin(kind, s.model, &s);
            sb_allocation_fail_after(successes, forever != 0);
            status = fly(&l, &error);
            sb_allocation_fail_after(-1, false);
            assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
            check_contents(&l); /* which are not torn */
            assert_true(counted(l.state).updates_in_place > 0 || kind->force_cpu != NULL || kind->warm == 1);
            if (status == SB_OK && report_of(l.session).failed > 0)
                status = SB_ERROR_OUT_OF_MEMORY; /* recording failed, which is no run's failure */
            end(&l);
            assert_true(successes < 2000);
        }
    }
    finish(&s);
}

static void test_allocations(void **unused) {
    for_each_kind(check_allocations);
}

/* The driver's allocations in turn. */
static void check_driver_memory(const kind *kind) {
    static const char *const calls[] = {"cuMemAlloc", "cuMemHostAlloc"};
    setting s = start_device();
    s.model = make_model();
    for (int i = 0; i < 2; i++) {
        bool happened = true;
        for (int skip = 0; happened; skip++) {
            sb_error error = {SB_OK, ""};
            life l = begin(kind, s.model, &s);
            s.fake->plan_failure(calls[i], skip, OUT_OF_MEMORY);
            sb_status status = fly(&l, &error);
            happened = s.fake->failure_happened();
            s.fake->plan_failure(NULL, -1, 0);
            assert_true(status == SB_OK || (happened && status == SB_ERROR_OUT_OF_MEMORY));
            check_contents(&l);
            end(&l);
        }
    }
    finish(&s);
}

static void test_driver_memory(void **unused) {
    for_each_kind(check_driver_memory);
}

/* ---- calls ---- */

static int torn, whole;

/* Every call of the driver in turn. */
static void check_calls(const kind *kind) {
    setting s = start_device();
    s.model = make_model();
    bool happened = true;
    for (int skip = 0; happened; skip++) {
        sb_error error = {SB_OK, ""}, reason;
        sb_tensor *copy;
        life l = begin(kind, s.model, &s);
        s.fake->plan_failure(NULL, skip, UNKNOWN);
        sb_status status = fly(&l, &error);
        happened = s.fake->failure_happened();
        s.fake->plan_failure(NULL, -1, 0);
        assert_true(status == SB_OK || happened);
        if (sb_state_get(l.state, 0, &copy, &reason) == SB_OK) {
            sb_tensor_release(copy);
            check_contents(&l);
            whole += status != SB_OK;
        } else {
            assert_int_not_equal(status, SB_OK);
            assert_says(reason, "the state is torn, since ");
            assert_says(reason, "CUDA_ERROR_UNKNOWN");
            MUST(sb_state_reset(l.state, error));
            torn++;
        }
        end(&l);
    }
    finish(&s);
}

static void test_calls(void **unused) {
    for_each_kind(check_calls);
    assert_true(torn > 0 && whole > 0);
}

int main(void) {
    setenv("FAKE_CUDA_GUARD", "",
           1); /* none, for thousands of devices: other tests see whether the host follows addresses */
    fresh_fake();
    open_fake(); /* which is kept from now on */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_driver_memory),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
