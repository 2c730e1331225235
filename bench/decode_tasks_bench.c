/* What a device does for a new token of a language model: its tasks, one behind the other, with the time that each takes by
 * itself; then what a token takes when nothing is looked at, and what the device was given for it.
 *
 *     decode_tasks_bench [--batch N] [--piece N] [--context N] [--alone] [--capture] [--plain] CHECKPOINT [PROMPT [TOKENS [DRIVER]]]
 *
 * --batch: N sequences on pages, with a row each in every step, whose prompts are timed, too; else one in one piece, as by generate.
 * --piece: prompts are fed so many tokens of each at a time, as queues do. --context: positions that there is room for. --alone: without dependent launch. --capture: graphs as the driver
 * captures them. --plain: without passes. Prints a digest over all logits of the timed steps, which no option may change. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "measure.h"
#include "runtime/digest.h"

#define MOST_SEQUENCES 256
/* Steps before counting: plans, recording. */
#define WARM_UP 6
/* Prompts that are timed. */
#define PROMPTS 9

typedef struct decoding {
    sb_llm *llm;
    sb_device *device;
    int count;
    int64_t prompt, piece; /* of which so many tokens are fed at a time */
    bool paged;
    sb_llm_session *session; /* one sequence … */
    sb_llm_batch *batch;     /* … or some */
    sb_llm_sequence *sequences[MOST_SEQUENCES];
    int64_t tokens[MOST_SEQUENCES]; /* the last ones */
    bool shown;                     /* the next tasks are printed */
} decoding;

static sb_status show(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    decoding *d = context;
    double sum = 0;
    (void)error;
    for (size_t i = 0; i < count && d->shown; i++) {
        double us = (double)(spans[i].end_ns - spans[i].start_ns) / 1e3;
        sum += us;
        printf("%4zu %8.2f us  %-44s %s %s\n", i, us, spans[i].task, spans[i].op != NULL ? spans[i].op : "-",
               spans[i].name != NULL ? spans[i].name : "-");
    }
    if (d->shown)
        printf("%zu tasks, %.1f us in all\n", count, sum);
    return SB_OK;
}

/* ---- sequences ---- */

static void open_batch(decoding *d, const sb_session_options *session) {
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    d->tokens[0] = 1;
    if (!d->paged) {
        MUST(sb_llm_session_create(d->llm, session, &d->session, error));
        return;
    }
    options.session = session;
    options.pages = d->count * ((d->prompt + 4096) / SB_LLM_PAGE_POSITIONS + 2);
    MUST(sb_llm_batch_create(d->llm, &options, &d->batch, error));
    for (int s = 0; s < d->count; s++) {
        MUST(sb_llm_sequence_create(d->batch, &d->sequences[s], error));
        d->tokens[s] = 1 + s;
    }
}

static void close_batch(decoding *d) {
    if (!d->paged) {
        sb_llm_session_destroy(d->session);
        return;
    }
    for (int s = 0; s < d->count; s++)
        sb_llm_sequence_release(d->sequences[s]);
    sb_llm_batch_release(d->batch);
}

/* A step of `rows` tokens of each sequence; their last logits. */
static sb_tensor *step(decoding *d, int64_t rows, int64_t *tokens[]) {
    sb_llm_step_part parts[MOST_SEQUENCES];
    int64_t last = rows - 1;
    sb_tensor *logits;
    if (!d->paged) {
        MUST(sb_llm_step(d->session, rows, tokens[0], 1, &last, &logits, error));
        return logits;
    }
    for (int s = 0; s < d->count; s++)
        parts[s] = (sb_llm_step_part){d->sequences[s], rows, tokens[s], 1, &last};
    MUST(sb_llm_batch_step(d->batch, d->count, parts, &logits, error));
    return logits;
}

static void feed_prompts(decoding *d) {
    int64_t vocabulary = sb_llm_describe(d->llm)->vocabulary, *tokens[MOST_SEQUENCES], *left[MOST_SEQUENCES];
    for (int s = 0; s < d->count; s++) {
        tokens[s] = malloc((size_t)d->prompt * sizeof **tokens);
        for (int64_t i = 0; i < d->prompt; i++)
            tokens[s][i] = (int64_t)((uint64_t)(i + 1 + 77 * s) * UINT64_C(2654435761) % (uint64_t)vocabulary);
    }
    for (int64_t fed = 0; fed < d->prompt; fed += d->piece) {
        for (int s = 0; s < d->count; s++)
            left[s] = tokens[s] + fed;
        sb_tensor_release(step(d, d->prompt - fed < d->piece ? d->prompt - fed : d->piece, left));
    }
    for (int s = 0; s < d->count; s++)
        free(tokens[s]);
}

/* The likeliest token of each sequence is its next. */
static void next(decoding *d, sb_digest *digest) {
    int64_t vocabulary = sb_llm_describe(d->llm)->vocabulary, *tokens[MOST_SEQUENCES];
    sb_llm_sampling greedy = SB_LLM_SAMPLING_DEFAULT;
    greedy.temperature = 0;
    for (int s = 0; s < d->count; s++)
        tokens[s] = &d->tokens[s];
    sb_tensor *logits = step(d, 1, tokens);
    for (int s = 0; s < d->count; s++) {
        const float *row = (const float *)sb_tensor_data(logits) + s * vocabulary;
        MUST(sb_llm_sample(row, vocabulary, &greedy, 0, &d->tokens[s], error));
    }
    if (digest != NULL)
        sb_digest_add_tensor(digest, logits);
    sb_tensor_release(logits);
}

/* ---- what is printed ---- */

static void list_tasks(decoding *d, sb_session_options options) {
    options.task_observer = show;
    options.task_observer_context = d;
    open_batch(d, &options);
    feed_prompts(d);
    for (int i = 0; i < WARM_UP; i++) {
        d->shown = i == WARM_UP - 1;
        next(d, NULL);
    }
    close_batch(d);
}

/* Prompts of new sequences on the pages of the old ones. */
static void time_prompts(decoding *d, const sb_session_options *options) {
    double best = 1e300;
    if (!d->paged)
        return;
    open_batch(d, options);
    for (int i = 0; i < WARM_UP + PROMPTS; i++) {
        double begin = now_us();
        feed_prompts(d);
        double us = now_us() - begin;
        if (i >= WARM_UP)
            best = us < best ? us : best;
        for (int s = 0; s < d->count; s++) {
            sb_llm_sequence_release(d->sequences[s]);
            MUST(sb_llm_sequence_create(d->batch, &d->sequences[s], error));
        }
    }
    printf("%d prompts of %lld tokens, %lld of each in a step: the best of %d %.1f us\n", d->count,
           (long long)d->prompt, (long long)(d->piece < d->prompt ? d->piece : d->prompt), PROMPTS, best);
    close_batch(d);
}

static void time_tokens(decoding *d, const sb_session_options *options, int64_t count) {
    sb_device_counters before, after;
    unsigned char sum[SB_DIGEST_BYTES];
    sb_digest digest;
    double best = 1e300;
    open_batch(d, options);
    feed_prompts(d);
    MUST(sb_digest_begin(&digest, error));
    for (int i = 0; i < WARM_UP; i++)
        next(d, &digest);
    sb_device_count(d->device, &before);
    double start = now_us();
    for (int64_t i = 0; i < count; i++) {
        double begin = now_us();
        next(d, NULL);
        best = now_us() - begin < best ? now_us() - begin : best;
    }
    double us = (now_us() - start) / (double)count;
    sb_device_count(d->device, &after);
    printf("a step of %d: %.1f us, the best %.1f, choosing included\n", d->count, us, best);
#define A_STEP(name) (double)(after.name - before.name) / (double)count
    printf("  %.2f launches of graphs, %.2f kernels, copies: %.2f to the device of %.0f bytes, %.2f to the "
           "host of %.0f bytes, %.2f allocations\n",
           A_STEP(graph_launches), A_STEP(kernels), A_STEP(copies_to_device), A_STEP(bytes_to_device),
           A_STEP(copies_to_host), A_STEP(bytes_to_host), A_STEP(device_allocations));
#undef A_STEP
    MUST(sb_digest_end(&digest, sum, error));
    printf("  digest ");
    for (int i = 0; i < SB_DIGEST_BYTES; i++)
        printf("%02x", sum[i]);
    printf("\n");
    close_batch(d);
}

int main(int count, char **arguments) {
    decoding d = {.count = 1, .prompt = 100, .piece = INT64_MAX};
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
    int at = 1;
    for (; at < count && strncmp(arguments[at], "--", 2) == 0; at++) {
        if (strcmp(arguments[at], "--batch") == 0 && at + 1 < count)
            d.count = atoi(arguments[++at]), d.paged = true;
        else if (strcmp(arguments[at], "--context") == 0 && at + 1 < count)
            options.context = atoll(arguments[++at]);
        else if (strcmp(arguments[at], "--piece") == 0 && at + 1 < count)
            d.piece = atoll(arguments[++at]);
        else if (strcmp(arguments[at], "--alone") == 0)
            session.dependent_launch = false;
        else if (strcmp(arguments[at], "--capture") == 0)
            session.graphs = SB_GRAPHS_CAPTURE;
        else if (strcmp(arguments[at], "--plain") == 0)
            model.passes = false;
        else
            at = count;
    }
    if (at >= count || d.count < 1 || d.count > MOST_SEQUENCES || d.piece < 1) {
        fprintf(stderr, "usage: decode_tasks_bench [--batch N] [--piece N] [--context N] [--alone] [--capture] "
                        "[--plain] CHECKPOINT [PROMPT [TOKENS [DRIVER]]]\n");
        return 2;
    }
    const char *checkpoint = arguments[at];
    d.prompt = at + 1 < count ? atoll(arguments[at + 1]) : 100;
    int64_t tokens = at + 2 < count ? atoll(arguments[at + 2]) : 200;
    where.cuda_driver = at + 3 < count ? arguments[at + 3] : NULL;
    options.model = &model;
    MUST(sb_device_open(&where, 0, &d.device, error));
    MUST(sb_llm_load(checkpoint, &options, &d.llm, error));
    session.device = d.device;
    session.require_device = true;
    list_tasks(&d, session);
    time_prompts(&d, &session);
    time_tokens(&d, &session, tokens);
    sb_llm_release(d.llm);
    sb_device_release(d.device);
    return 0;
}
