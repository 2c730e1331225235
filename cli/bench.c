/* samebit bench: how long runs take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_language.h"
#include "capacities.h"
#include "commands.h"
#include "inputs.h"
#include "placement.h"
#include "progress.h"
#include "running.h"
#include "text.h"

const option bench_options[] = {
    {"runs", "N", false, "Runs to measure; default: as many as fit into --seconds"},
    {"seconds", "S", false, "Measure for about this long; default 2"},
    {"warmup", "N", false, "Runs before measuring; default 2"},
    {"queue", "N", false,
     "Keep N runs in flight, 1 to 16; default 1. Times are then those from the end of one run to the end of the next"},
    {"json", NULL, false, "Print the statistics as JSON"},
    INPUT_OPTIONS,
    MODEL_OPTIONS,
    FILE_OPTION,
    SESSION_OPTIONS,
    CAPACITY_OPTION,
    LANGUAGE_BENCH_OPTIONS,
    {0},
};

/* What a session takes. */
#define MOST_IN_FLIGHT 16
/* Runs without --runs end here: beyond, the statistics do not change. */
#define MOST_RUNS 1000000

typedef struct benchmark {
    long long runs, warmup; /* runs 0: by time */
    long long queue;        /* runs in flight */
    double seconds;
    size_t count, capacity;
    double *times; /* nanoseconds, ascending once measured */
    double load_ms, first_ns, flops;
} benchmark;

static int compare_times(const void *left, const void *right) {
    double first = *(const double *)left, second = *(const double *)right;
    return (first > second) - (first < second);
}

/* The time that a share of the runs stay below: nearest rank. */
static double percentile(const benchmark *bench, double share) {
    size_t rank = (size_t)ceil(share * (double)bench->count);
    return bench->times[rank > 0 ? rank - 1 : 0];
}

static double mean(const benchmark *bench) {
    double sum = 0;
    for (size_t i = 0; i < bench->count; i++)
        sum += bench->times[i];
    return sum / (double)bench->count;
}

static bool add_time(benchmark *bench, double nanoseconds) {
    if (bench->count == bench->capacity) {
        size_t capacity = bench->capacity > 0 ? 2 * bench->capacity : 1024;
        double *times = realloc(bench->times, capacity * sizeof *times);
        if (times == NULL)
            return false;
        bench->times = times;
        bench->capacity = capacity;
    }
    bench->times[bench->count++] = nanoseconds;
    return true;
}

static bool is_enough(const benchmark *bench, double began) {
    if (bench->runs > 0)
        return (long long)bench->count >= bench->runs;
    return bench->count >= MOST_RUNS || (bench->count > 0 && now_ns() - began >= bench->seconds * 1e9);
}

/* One run after the other. */
static int measure_single(benchmark *bench, running *running) {
    int code = EXIT_RIGHT;
    double taken = 0;
    for (double began = now_ns(); code == EXIT_RIGHT && !is_enough(bench, began);) {
        show_progress("measuring: run %zu", bench->count + 1);
        code = run_once(running, &taken);
        if (code == EXIT_RIGHT && !add_time(bench, taken))
            code = out_of_memory();
    }
    return code;
}

/* With `queue` runs in flight: the oldest is waited for, and another takes its place. */
static int measure_queued(benchmark *bench, running *running) {
    uint64_t flights[MOST_IN_FLIGHT];
    size_t queue = (size_t)bench->queue, next = 0;
    int code = EXIT_RIGHT;
    for (size_t i = 0; i < queue && code == EXIT_RIGHT; i++)
        code = enqueue_run(running, &flights[i]);
    double began = now_ns(), before = began;
    while (code == EXIT_RIGHT && !is_enough(bench, began)) {
        show_progress("measuring: run %zu", bench->count + 1);
        code = wait_for_run(running, flights[next]);
        double now = now_ns();
        if (code == EXIT_RIGHT && !add_time(bench, now - before))
            code = out_of_memory();
        before = now;
        if (code == EXIT_RIGHT)
            code = enqueue_run(running, &flights[next]);
        next = (next + 1) % queue;
    }
    for (size_t i = 0; i < queue && code == EXIT_RIGHT; i++)
        code = wait_for_run(running, flights[(next + i) % queue]);
    return code;
}

static int measure(benchmark *bench, running *running) {
    int code = EXIT_RIGHT;
    double taken = 0;
    for (long long i = 0; i < bench->warmup && code == EXIT_RIGHT; i++) {
        show_progress("warming up: run %lld of %lld", i + 1, bench->warmup);
        code = run_once(running, &taken);
        bench->first_ns = i == 0 ? taken : bench->first_ns;
    }
    if (code == EXIT_RIGHT)
        code = bench->queue > 1 ? measure_queued(bench, running) : measure_single(bench, running);
    clear_progress();
    if (code == EXIT_RIGHT) {
        bench->first_ns = bench->warmup == 0 ? bench->times[0] : bench->first_ns;
        qsort(bench->times, bench->count, sizeof *bench->times, compare_times);
    }
    return code;
}

static int print_bench_json(const arguments *arguments, const benchmark *bench, const sb_session_options *session,
                            sb_isa isa) {
    json_t *all =
        json_pack("{s:o, s:s, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "model",
                  text_json(arguments->positional[0]), "isa", sb_isa_name(isa), "threads", session->threads, "runs",
                  (json_int_t)bench->count, "queue", (json_int_t)bench->queue, "load_ms", bench->load_ms, "first_ms",
                  bench->first_ns / 1e6, "min_ms", bench->times[0] / 1e6, "median_ms", percentile(bench, 0.5) / 1e6,
                  "p90_ms", percentile(bench, 0.9) / 1e6, "max_ms", bench->times[bench->count - 1] / 1e6, "mean_ms",
                  mean(bench) / 1e6, "flops", bench->flops >= 0 ? json_real(bench->flops) : json_null());
    return print_json_value(stdout, all) ? EXIT_RIGHT : EXIT_FAILED;
}

static void print_bench(const arguments *arguments, const benchmark *bench, const sb_session_options *session,
                        sb_isa isa) {
    char least[TEXT_BYTES], middle[TEXT_BYTES], high[TEXT_BYTES], average[TEXT_BYTES];
    char first[TEXT_BYTES], rate[TEXT_BYTES];
    printf("%s, %s, ", arguments->positional[0], sb_isa_name(isa));
    if (session->threads == 0)
        puts("a thread per processor");
    else
        printf("%d thread%s\n", session->threads, session->threads == 1 ? "" : "s");
    if (bench->queue > 1)
        printf("%lld runs in flight\n", bench->queue);
    printf("load %s, first run %s\n", duration(bench->load_ms * 1e6, first), duration(bench->first_ns, rate));
    printf("%zu run%s: min %s, median %s, p90 %s, mean %s\n", bench->count, bench->count == 1 ? "" : "s",
           duration(bench->times[0], least), duration(percentile(bench, 0.5), middle),
           duration(percentile(bench, 0.9), high), duration(mean(bench), average));
    printf("%s runs per second", scaled(1e9 / percentile(bench, 0.5), rate));
    if (bench->flops > 0)
        printf(", %.3g GFLOP/s", bench->flops / percentile(bench, 0.5));
    puts(" at the median");
}

static int bench_model(const arguments *arguments, const sb_model_options *model_options,
                       const sb_session_options *session_options, benchmark *bench) {
    running running;
    sb_inspection *graph = NULL;
    sb_isa isa = SB_ISA_BEST;
    int code = open_running(arguments, model_options, session_options, &running);
    if (code == EXIT_RIGHT)
        code = read_inputs(arguments, running.model, true, running.inputs);
    if (code == EXIT_RIGHT)
        code = inspect_with_inputs(running.model, running.inputs, &graph);
    if (code == EXIT_RIGHT)
        code = measure(bench, &running);
    sb_error error;
    if (code == EXIT_RIGHT && sb_isa_resolve(model_options->isa, &isa, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT) {
        const sb_inspected_totals *totals = sb_inspection_totals(graph);
        bench->load_ms = running.load_ms;
        bench->flops = totals->nodes_without_flops == 0 ? (double)totals->flop_count : -1;
        if (has_option(arguments, "json"))
            code = print_bench_json(arguments, bench, session_options, isa);
        else
            print_bench(arguments, bench, session_options, isa);
    }
    if (code == EXIT_RIGHT)
        code = report_placement(arguments, running.session, running.device);
    sb_inspection_release(graph);
    close_running(&running);
    return code;
}

int run_bench(const arguments *arguments) {
    sb_model_options model_options;
    sb_session_options session_options;
    benchmark bench = {.warmup = 2, .queue = 1, .seconds = 2};
    if (has_option(arguments, "llm"))
        return bench_language_model(arguments);
    if (!check_no_language_bench(arguments))
        return EXIT_USAGE;
    const char *seconds = option_value(arguments, "seconds");
    if (!read_model_options(arguments, &model_options) || !read_session_options(arguments, &session_options) ||
        !read_count(arguments, "runs", 1, MOST_RUNS, &bench.runs) ||
        !read_count(arguments, "warmup", 0, MOST_RUNS, &bench.warmup) ||
        !read_count(arguments, "queue", 1, MOST_IN_FLIGHT, &bench.queue))
        return EXIT_USAGE;
    session_options.queue_depth = (int)bench.queue;
    if (seconds != NULL && (!parse_number(seconds, &bench.seconds) || bench.seconds < 0))
        return usage_error("--seconds takes a number of at least 0, not %s", seconds);
    if (seconds != NULL && bench.runs > 0)
        return usage_error("--runs and --seconds exclude each other");
    int code = bench_model(arguments, &model_options, &session_options, &bench);
    free(bench.times);
    return code;
}
