#include "running.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capacities.h"
#include "inputs.h"
#include "placement.h"
#include "standard_input.h"
#include "stepping.h"

double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- Ctrl-C ---- */

/* The session that a signal interrupts: there is one at a time, and it is set while no handler is installed. */
static sb_session *interruptible;

static void interrupt(int signal) {
    (void)signal;
    sb_session_interrupt(interruptible);
}

static void catch_interrupts(sb_session *session) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    interruptible = session;
    sigaction(SIGINT, &action, NULL);
}

static void leave_interrupts(void) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    if (interruptible != NULL)
        sigaction(SIGINT, &action, NULL);
    interruptible = NULL;
}

/* ---- models and sessions ---- */

static int load_model(const arguments *arguments, const sb_model_options *model, const sb_session_options *session,
                      running *running) {
    sb_error error;
    double start = now_ns();
    running->options = *session;
    int code = load_model_file(arguments->positional[0], model, &running->model);
    if (code == EXIT_RIGHT)
        code = read_capacities(arguments, &running->capacities, &running->capacity_count);
    running->options.capacities = running->capacities;
    running->options.capacity_count = running->capacity_count;
    if (code == EXIT_RIGHT)
        code = open_state(arguments, running->model, &running->options, &running->state);
    if (code != EXIT_RIGHT)
        return code;
    running->options.state = running->state;
    if (running->state != NULL)
        running->options.capacity_count = 0; /* the state has them */
    if (sb_session_create(running->model, &running->options, &running->session, &error) != SB_OK)
        return report(&error);
    running->load_ms = (now_ns() - start) / 1e6;
    catch_interrupts(running->session);
    running->inputs = calloc((size_t)sb_model_input_count(running->model) + 1, sizeof(sb_value));
    running->outputs = calloc((size_t)sb_model_output_count(running->model) + 1, sizeof(sb_value));
    if (running->inputs == NULL || running->outputs == NULL)
        return out_of_memory();
    return EXIT_RIGHT;
}

int open_running(const arguments *arguments, const sb_model_options *model, const sb_session_options *session,
                 running *running) {
    sb_session_options options = *session;
    *running = (struct running){0};
    int code = open_device(arguments, &options, &running->device);
    return code == EXIT_RIGHT ? load_model(arguments, model, &options, running) : code;
}

int open_running_on_cpu(const arguments *arguments, const sb_model_options *model, const sb_session_options *session,
                        running *running) {
    *running = (struct running){0};
    return load_model(arguments, model, session, running);
}

int renew_session(running *running) {
    sb_error error;
    running->options.observer = NULL;
    running->options.task_observer = NULL;
    leave_interrupts();
    sb_session_destroy(running->session);
    running->session = NULL;
    if (sb_session_create(running->model, &running->options, &running->session, &error) != SB_OK)
        return report(&error);
    catch_interrupts(running->session);
    return EXIT_RIGHT;
}

static void release_outputs(running *running) {
    for (int i = 0; running->outputs != NULL && i < sb_model_output_count(running->model); i++)
        sb_value_release(&running->outputs[i]);
}

void close_running(running *running) {
    for (int i = 0; running->inputs != NULL && i < sb_model_input_count(running->model); i++)
        sb_value_release(&running->inputs[i]);
    release_outputs(running);
    free(running->inputs);
    free(running->outputs);
    leave_interrupts();
    sb_session_destroy(running->session);
    sb_state_release(running->state);
    sb_model_release(running->model);
    sb_device_release(running->device);
    free_capacities(running->capacities, running->capacity_count);
    *running = (struct running){0};
}

int run_once(running *running, double *nanoseconds) {
    sb_error error;
    release_outputs(running);
    double start = now_ns();
    sb_status status = sb_session_run(running->session, running->inputs, running->outputs, &error);
    if (nanoseconds != NULL)
        *nanoseconds = now_ns() - start;
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}

int enqueue_run(running *running, uint64_t *run) {
    sb_error error;
    return sb_session_enqueue(running->session, running->inputs, run, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

int wait_for_run(running *running, uint64_t run) {
    sb_error error;
    release_outputs(running);
    return sb_session_wait(running->session, run, running->outputs, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

/* ---- snapshots ---- */

/* Symbols with values; names are owned. */
typedef struct symbols {
    int count;
    char **names;
    int64_t *values;
} symbols;

static bool add_symbol(symbols *symbols, const char *name, int64_t value) {
    for (int i = 0; i < symbols->count; i++) {
        if (strcmp(symbols->names[i], name) == 0)
            return true;
    }
    size_t count = (size_t)symbols->count + 1;
    char **names = realloc(symbols->names, count * sizeof *names);
    if (names != NULL)
        symbols->names = names;
    int64_t *values = realloc(symbols->values, count * sizeof *values);
    if (values != NULL)
        symbols->values = values;
    char *copy = strdup(name);
    if (names == NULL || values == NULL || copy == NULL) {
        free(copy);
        return false;
    }
    names[symbols->count] = copy;
    values[symbols->count++] = value;
    return true;
}

static int inspect_bound(const sb_model *model, const symbols *symbols, sb_inspection **inspection) {
    sb_inspect_options options = SB_INSPECT_OPTIONS_DEFAULT;
    sb_error error;
    options.symbol_count = symbols->count;
    options.symbols = (const char *const *)symbols->names;
    options.symbol_values = symbols->values;
    sb_status status = sb_model_inspect(model, &options, inspection, &error);
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}

static void free_symbols(symbols *symbols) {
    for (int i = 0; i < symbols->count; i++)
        free(symbols->names[i]);
    free(symbols->names);
    free(symbols->values);
}

int inspect_with_settings(const arguments *arguments, const sb_model *model, sb_inspection **inspection) {
    symbols symbols = {0};
    int code = check_settings(arguments, model);
    const char *text, *rest;
    for (int i = 0; code == EXIT_RIGHT && (text = option_value_at(arguments, "set", i)) != NULL; i++) {
        char *name = NULL;
        long long value = 0;
        if (!parse_assignment(text, &name, &rest) || !parse_integer(rest, 0, INT64_MAX, &value) ||
            !add_symbol(&symbols, name, value))
            code = out_of_memory(); /* what is wrong with the text itself, check_settings has said */
        free(name);
    }
    if (code == EXIT_RIGHT)
        code = inspect_bound(model, &symbols, inspection);
    free_symbols(&symbols);
    return code;
}

int inspect_with_inputs(const sb_model *model, const sb_value *inputs, sb_inspection **inspection) {
    symbols symbols = {0};
    int code = EXIT_RIGHT;
    for (int i = 0; i < sb_model_input_count(model) && code == EXIT_RIGHT; i++) {
        const sb_value_description *input = sb_model_input(model, i);
        if (inputs[i].kind != SB_KIND_TENSOR)
            continue;
        for (int d = 0; d < input->rank && d < sb_tensor_rank(inputs[i].tensor); d++) {
            if (input->dims[d] < 0 && !add_symbol(&symbols, input->dim_texts[d], sb_tensor_dims(inputs[i].tensor)[d]))
                code = out_of_memory();
        }
    }
    if (code == EXIT_RIGHT)
        code = inspect_bound(model, &symbols, inspection);
    free_symbols(&symbols);
    return code;
}
