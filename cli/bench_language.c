#include "bench_language.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "explain_step.h"
#include "language_model.h"
#include "placement.h"
#include "progress.h"
#include "running.h"
#include "text.h"

#define MOST_PROMPTS 16
#define MOST_RUNS 1000

/* A mean, and the standard deviation of what it is made of. */
typedef struct rate {
    double mean, spread;
} rate;

/* What was measured of one prompt length. */
typedef struct measurement {
    int64_t prompt;
    rate prefill, decode; /* tokens a second */
    double first_ns;      /* to the first token, in the mean */
    double token_bytes;   /* that a new token reads, half way through; 0: not known */
} measurement;

typedef struct language_bench {
    long long runs, warmup, count;
    double bandwidth; /* bytes a second; 0: not known */
    int prompts;
    measurement measured[MOST_PROMPTS];
    int64_t longest;
    bool explains;
    explained_step explained; /* of a new token behind the longest prompt */
} language_bench;

/* ---- what is asked for ---- */

static const char *const only_language[] = {"prompts", "count", "dtype", "bandwidth", "lines", "explain-step"};

bool check_no_language_bench(const arguments *arguments) {
    for (size_t i = 0; i < sizeof only_language / sizeof *only_language; i++) {
        if (has_option(arguments, only_language[i])) {
            usage_error("--%s is for --llm", only_language[i]);
            return false;
        }
    }
    return true;
}

static int read_prompts(const char *text, language_bench *bench) {
    for (const char *at = text; *at != '\0';) {
        char *end;
        errno = 0;
        long long length = strtoll(at, &end, 10);
        if (end == at || errno != 0 || length < 1 || length > 1 << 24 || (*end != ',' && *end != '\0') ||
            (*end == ',' && end[1] == '\0'))
            return usage_error("--prompts takes lengths from 1 on with commas between, not %s", text);
        if (bench->prompts == MOST_PROMPTS)
            return usage_error("--prompts takes at most %d lengths", MOST_PROMPTS);
        bench->measured[bench->prompts++].prompt = length;
        bench->longest = length > bench->longest ? length : bench->longest;
        at = *end == ',' ? end + 1 : end;
    }
    return bench->prompts > 0 ? EXIT_RIGHT : usage_error("--prompts takes lengths with commas between");
}

static int read_bench(const arguments *arguments, language_bench *bench) {
    const char *prompts = option_value(arguments, "prompts"), *bandwidth = option_value(arguments, "bandwidth");
    if (!read_count(arguments, "runs", 1, MOST_RUNS, &bench->runs) ||
        !read_count(arguments, "warmup", 0, MOST_RUNS, &bench->warmup) ||
        !read_count(arguments, "count", 2, 1 << 24, &bench->count))
        return EXIT_USAGE;
    if (bandwidth != NULL && (!parse_number(bandwidth, &bench->bandwidth) || !(bench->bandwidth > 0)))
        return usage_error("--bandwidth takes a number above 0, not %s", bandwidth);
    bench->bandwidth *= 1e9;
    bench->explains = has_option(arguments, "explain-step");
    return read_prompts(prompts != NULL ? prompts : "128,512", bench);
}

/* ---- what a token reads ---- */

/* The graph of a step of one token, of which the logits are wanted. */
static int inspect_step(const sb_llm *llm, sb_inspection **graph) {
    static const char *const symbols[] = {"rows", "wanted"};
    static const int64_t ones[] = {1, 1};
    sb_inspect_options options = SB_INSPECT_OPTIONS_DEFAULT;
    sb_error error;
    options.symbol_count = 2;
    options.symbols = symbols;
    options.symbol_values = ones;
    return sb_model_inspect(sb_llm_model(llm), &options, graph, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

/* Of the cache, all layers together. */
static double cache_bytes(const sb_llm_description *d, int64_t length) {
    int64_t windowed = d->window > 0 && d->window < length ? d->window : length;
    int64_t rows = d->windowed_layers * windowed + (d->layers - d->windowed_layers) * length;
    return (double)rows * 2 * (double)(d->key_heads * d->head_width) * (double)sb_dtype_size(d->dtype);
}

/* The bytes that cannot be spared for a token behind `length` others: those of the nodes' rules, but for the cache, which
 * they count with the room that it has. */
static int count_bytes(const sb_llm *llm, int64_t length, double *bytes) {
    sb_inspection *graph;
    int code = inspect_step(llm, &graph);
    if (code != EXIT_RIGHT)
        return code;
    *bytes = cache_bytes(sb_llm_describe(llm), length);
    for (int i = 0; i < sb_inspection_node_count(graph); i++) {
        const sb_inspected_node *node = sb_inspection_node(graph, i);
        if (strncmp(node->op, "Paged", 5) != 0)
            *bytes += node->byte_count > 0 ? (double)node->byte_count : 0;
    }
    sb_inspection_release(graph);
    return EXIT_RIGHT;
}

typedef struct step_bytes {
    const sb_inspection *graph;
    const sb_llm_description *about;
    int64_t length;
} step_bytes;

/* Likewise of the node of a name. Attention reads the cache (where only some layers have a window, each its share of all), and what
 * puts keys and values there reads and writes one row of each. */
static double bytes_of_node(const void *context, const char *name) {
    const step_bytes *step = context;
    const sb_llm_description *d = step->about;
    for (int i = 0; i < sb_inspection_node_count(step->graph); i++) {
        const sb_inspected_node *node = sb_inspection_node(step->graph, i);
        if (strcmp(node->name, name) != 0)
            continue;
        if (strcmp(node->op, "PagedAttention") == 0)
            return cache_bytes(d, step->length + 1) / (double)d->layers;
        if (strncmp(node->op, "Paged", 5) == 0)
            return 4 * (double)(d->key_heads * d->head_width) * (double)sb_dtype_size(d->dtype);
        return node->byte_count > 0 ? (double)node->byte_count : 0;
    }
    return 0;
}

static int explain(language_bench *bench, sb_llm *llm, const sb_session_options *options, const int64_t *tokens) {
    sb_inspection *graph;
    int code = inspect_step(llm, &graph);
    if (code != EXIT_RIGHT)
        return code;
    const step_bytes bytes = {graph, sb_llm_describe(llm), bench->longest};
    code = explain_step(llm, options, bench->longest, tokens, bytes_of_node, &bytes, &bench->explained);
    sb_inspection_release(graph);
    return code;
}

/* ---- measuring ---- */

static sb_llm_session *interruptible;

static void interrupt(int signal) {
    (void)signal;
    sb_llm_session_interrupt(interruptible);
}

static rate rate_of(const double *values, long long count) {
    double sum = 0, squares = 0;
    for (long long i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    for (long long i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (rate){mean, count > 1 ? sqrt(squares / (double)(count - 1)) : 0};
}

/* One generation from an empty sequence. */
static int run_one(const language_bench *bench, sb_llm_session *session, const int64_t *tokens, int64_t count,
                   sb_llm_result *result) {
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_error error;
    generation.limit = bench->count;
    generation.ignore_stops = generation.no_digest = true;
    if (sb_llm_session_trim(session, 0, &error) != SB_OK ||
        sb_llm_generate(session, count, tokens, &generation, result, &error) != SB_OK)
        return report(&error);
    return EXIT_RIGHT;
}

static int measure(const language_bench *bench, sb_llm_session *session, const int64_t *tokens, measurement *measured) {
    double prefill[MOST_RUNS], decode[MOST_RUNS], first = 0;
    sb_llm_result result;
    int code = EXIT_RIGHT;
    for (long long i = -bench->warmup; i < bench->runs && code == EXIT_RIGHT; i++) {
        show_progress("%lld tokens: run %lld of %lld", (long long)measured->prompt, i + bench->warmup + 1,
                      bench->runs + bench->warmup);
        code = run_one(bench, session, tokens, measured->prompt, &result);
        if (code != EXIT_RIGHT || i < 0)
            continue;
        prefill[i] = (double)measured->prompt * 1e9 / result.prompt_ns;
        decode[i] = (double)(result.new_tokens - 1) * 1e9 / result.decode_ns;
        first += result.first_token_ns / (double)bench->runs;
    }
    clear_progress();
    if (code != EXIT_RIGHT)
        return code;
    measured->prefill = rate_of(prefill, bench->runs);
    measured->decode = rate_of(decode, bench->runs);
    measured->first_ns = first;
    return EXIT_RIGHT;
}

static int measure_all(language_bench *bench, sb_llm *llm, const sb_session_options *options, sb_llm_session *session) {
    int64_t vocabulary = sb_llm_describe(llm)->vocabulary, *tokens = calloc((size_t)bench->longest, sizeof *tokens);
    int code = tokens != NULL ? EXIT_RIGHT : out_of_memory();
    for (int64_t i = 0; i < bench->longest && code == EXIT_RIGHT; i++)
        tokens[i] = (int64_t)((uint64_t)(i + 1) * UINT64_C(2654435761) % (uint64_t)vocabulary);
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    interruptible = session;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    for (int i = 0; i < bench->prompts && code == EXIT_RIGHT; i++) {
        measurement *measured = &bench->measured[i];
        code = measure(bench, session, tokens, measured);
        if (code == EXIT_RIGHT)
            code = count_bytes(llm, measured->prompt + bench->count / 2, &measured->token_bytes);
    }
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    if (code == EXIT_RIGHT && bench->explains)
        code = explain(bench, llm, options, tokens);
    free(tokens);
    return code;
}

/* ---- what is told ---- */

static double read_rate(const measurement *measured) {
    return measured->token_bytes * measured->decode.mean;
}

static void print_table(const language_bench *bench) {
    char read[TEXT_BYTES], first[TEXT_BYTES];
    for (int i = 0; i < bench->prompts; i++) {
        const measurement *m = &bench->measured[i];
        printf("prompt %lld: %.2f ± %.2f tokens/s, the first new one after %s\n", (long long)m->prompt, m->prefill.mean,
               m->prefill.spread, duration(m->first_ns, first));
        printf("  then %lld: %.2f ± %.2f tokens/s, %s each, %.1f GB/s", bench->count - 1, m->decode.mean,
               m->decode.spread, bytes_text(m->token_bytes, read), read_rate(m) / 1e9);
        if (bench->bandwidth > 0)
            printf(", %.1f %% of the bandwidth", 100 * read_rate(m) / bench->bandwidth);
        printf("\n");
    }
    if (bench->explains)
        print_explained_step(&bench->explained, bench->bandwidth);
}

static void print_lines(const arguments *arguments, const language_bench *bench) {
    const char *path = arguments->positional[0], *slash = strrchr(path, '/');
    char name[TEXT_BYTES];
    printable(slash != NULL && slash[1] != '\0' ? slash + 1 : path, name);
    for (int i = 0; i < bench->prompts; i++) {
        const measurement *m = &bench->measured[i];
        printf("bench prefill/%s/b1/c%lld samebit=%.2f spread=%.2f unit=tokens/s\n", name, (long long)m->prompt,
               m->prefill.mean, m->prefill.spread);
        printf("bench decode/%s/b1/c%lld samebit=%.2f spread=%.2f unit=tokens/s gb_per_s=%.2f\n", name,
               (long long)m->prompt, m->decode.mean, m->decode.spread, read_rate(m) / 1e9);
    }
}

static json_t *rate_json(rate rate) {
    return json_pack("{s:f, s:f}", "mean", rate.mean, "deviation", rate.spread);
}

static int print_json(const arguments *arguments, const language_bench *bench, const sb_llm_description *about,
                      const char *isa, int threads) {
    json_t *all = json_array();
    for (int i = 0; i < bench->prompts; i++) {
        const measurement *m = &bench->measured[i];
        json_t *share = bench->bandwidth > 0 ? json_real(read_rate(m) / bench->bandwidth) : json_null();
        json_array_append_new(all, json_pack("{s:I, s:I, s:o, s:o, s:f, s:f, s:o}", "prompt", (json_int_t)m->prompt,
                                             "new_tokens", (json_int_t)bench->count, "prompt_tokens_per_second",
                                             rate_json(m->prefill), "tokens_per_second", rate_json(m->decode),
                                             "first_token_ms", m->first_ns / 1e6, "bytes_per_token", m->token_bytes,
                                             "bandwidth_share", share));
    }
    json_t *json = json_pack("{s:o, s:s, s:s, s:i, s:I, s:I, s:o}", "model", text_json(arguments->positional[0]),
                             "dtype", sb_dtype_name(about->dtype), "isa", isa, "threads", threads, "runs",
                             (json_int_t)bench->runs, "batch", (json_int_t)1, "measurements", all);
    if (bench->explains)
        json_object_set_new(json, "step", explained_step_json(&bench->explained, bench->bandwidth));
    return print_json_value(stdout, json) ? EXIT_RIGHT : EXIT_FAILED;
}

static int print_bench(const arguments *arguments, const language_bench *bench, const sb_llm *llm, sb_isa asked,
                       int threads, bool as_json, bool as_lines) {
    const sb_llm_description *about = sb_llm_describe(llm);
    sb_isa isa;
    sb_error error;
    if (sb_isa_resolve(asked, &isa, &error) != SB_OK)
        return report(&error);
    if (as_json)
        return print_json(arguments, bench, about, sb_isa_name(isa), threads);
    if (as_lines) {
        print_lines(arguments, bench);
        return EXIT_RIGHT;
    }
    printf("%s, %s, %s, ", arguments->positional[0], sb_dtype_name(about->dtype), sb_isa_name(isa));
    if (threads == 0)
        puts("a thread per processor");
    else
        printf("%d thread%s\n", threads, threads == 1 ? "" : "s");
    print_table(bench);
    return EXIT_RIGHT;
}

int bench_language_model(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    language_bench bench = {.runs = 5, .warmup = 1, .count = 32};
    sb_device *device = NULL;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_llm_options loading = SB_LLM_OPTIONS_DEFAULT;
    sb_error error;
    bool as_json = has_option(arguments, "json"), as_lines = has_option(arguments, "lines");
    int code = read_bench(arguments, &bench);
    if (code == EXIT_RIGHT && (!read_model_options(arguments, &model) || !read_session_options(arguments, &options) ||
                               !read_language_dtype(arguments, &loading.dtype)))
        code = EXIT_USAGE;
    if (code == EXIT_RIGHT)
        code = open_device(arguments, &options, &device);
    const char *unused = code == EXIT_RIGHT ? unused_option(arguments) : NULL;
    if (unused != NULL)
        code = usage_error("--%s is not for --llm", unused);
    loading.context = bench.longest + bench.count;
    loading.model = &model;
    if (code == EXIT_RIGHT && (sb_llm_load(arguments->positional[0], &loading, &llm, &error) != SB_OK ||
                               sb_llm_session_create(llm, &options, &session, &error) != SB_OK))
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = measure_all(&bench, llm, &options, session);
    if (code == EXIT_RIGHT)
        code = print_bench(arguments, &bench, llm, model.isa, options.threads, as_json, as_lines);
    free_explained_step(&bench.explained);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(device);
    return code;
}
