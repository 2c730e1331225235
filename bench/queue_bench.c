/* What a server's queue does with requests of all lengths: prompts of 16 to 1,024 tokens, as many between 16 and 64 as between 256 and 1,024, and
 * 16 to 256 new tokens behind each.
 *
 *     queue_bench [--requests N] [--parallel N] [--rows N] [--passes N] [--prompt N] [--new N] CHECKPOINT [DRIVER]
 *
 * --prompt and --new: the most tokens, in place of 1,024 and 256. All requests are there from the start. Passes have other prompts and
 * lengths, in one queue. Printed of each pass: tokens a second, how long requests waited for their first token, what a step took and how
 * many were one launch of a graph, and a digest over all new tokens, which --parallel and --rows do not change. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "measure.h"
#include "runtime/digest.h"

enum { LEAST_PROMPT = 16, LEAST_NEW = 16, MOST_NEW = 512, CONTEXT = 2048, MOST_STEPS = 1 << 20 };

typedef struct request {
    int64_t tokens[MOST_NEW], count;
    double first_ns;
    int64_t prompt;
} request;

typedef struct serving {
    sb_llm *llm;
    sb_device *device;
    sb_llm_queue *queue;
    int count;
    int64_t most_prompt, most_new; /* tokens */
    request *requests;
    double *step_us;
} serving;

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static sb_status keep_token(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    request *own = context;
    (void)stop, (void)error;
    own->tokens[own->count++] = token->token;
    return SB_OK;
}

static void keep_end(void *context, sb_status status, const sb_error *error, const sb_llm_result *result) {
    request *own = context;
    if (status != SB_OK) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    own->first_ns = result->first_token_ns;
    own->prompt = result->prompt_tokens;
}

static void add_request(serving *s, request *own, uint64_t *random) {
    const int64_t vocabulary = sb_llm_describe(s->llm)->vocabulary;
    int64_t tokens[CONTEXT];
    int doublings = 1;
    while (LEAST_PROMPT << (doublings + 1) <= s->most_prompt)
        doublings++;
    const int64_t least = LEAST_PROMPT << (next_random(random) % (uint64_t)doublings);
    sb_llm_request asked = SB_LLM_REQUEST_DEFAULT;
    asked.count = least + (int64_t)(next_random(random) % (uint64_t)least);
    for (int64_t i = 0; i < asked.count; i++)
        tokens[i] = (int64_t)(next_random(random) % (uint64_t)vocabulary);
    asked.tokens = tokens;
    asked.generation.limit = LEAST_NEW + (int64_t)(next_random(random) % (uint64_t)(s->most_new - LEAST_NEW + 1));
    asked.generation.ignore_stops = asked.generation.no_digest = asked.generation.no_logits = true;
    asked.generation.sampling.temperature = 0;
    asked.generation.on_token = keep_token;
    asked.generation.context = own;
    asked.on_end = keep_end;
    *own = (request){.count = 0};
    MUST(sb_llm_queue_add(s->queue, &asked, error));
}

static int compare_numbers(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void report(const serving *s, double us, int steps, const sb_device_counters *before) {
    unsigned char sum[SB_DIGEST_BYTES];
    double waited = 0, longest = 0;
    sb_device_counters after;
    int64_t made = 0, given = 0;
    sb_digest digest;
    MUST(sb_digest_begin(&digest, error));
    for (int i = 0; i < s->count; i++) {
        const request *own = &s->requests[i];
        made += own->count;
        given += own->prompt;
        waited += own->first_ns / s->count;
        longest = own->first_ns > longest ? own->first_ns : longest;
        for (int64_t t = 0; t < own->count; t++)
            sb_digest_add_integer(&digest, own->tokens[t]);
    }
    MUST(sb_digest_end(&digest, sum, error));
    qsort(s->step_us, (size_t)steps, sizeof *s->step_us, compare_numbers);
    sb_device_count(s->device, &after);
    printf(
        "%d requests, %lld tokens of prompts and %lld new ones in %.3f s: %.0f new tokens/s; first token behind %.1f "
        "ms, the last %.1f; %d steps, the median %.0f us, 90 %% %.0f, the longest %.0f; %lld launches of graphs, %.0f "
        "kernels a step, %.0f MB; digest ",
        s->count, (long long)given, (long long)made, us / 1e6, (double)made * 1e6 / us, waited / 1e6, longest / 1e6,
        steps, s->step_us[steps / 2], s->step_us[steps * 9 / 10], s->step_us[steps - 1],
        (long long)(after.graph_launches - before->graph_launches), (double)(after.kernels - before->kernels) / steps,
        (double)after.device_bytes_most / 1e6);
    for (int i = 0; i < 8; i++)
        printf("%02x", sum[i]);
    printf("\n");
}

static void serve(serving *s, uint64_t seed) {
    bool more = true;
    int steps = 0;
    sb_device_counters before;
    sb_device_count(s->device, &before);
    double start = now_us();
    for (int i = 0; i < s->count; i++)
        add_request(s, &s->requests[i], &seed);
    while (more && steps < MOST_STEPS) {
        double begin = now_us();
        MUST(sb_llm_queue_step(s->queue, &more, error));
        s->step_us[steps++] = now_us() - begin;
    }
    report(s, now_us() - start, steps, &before);
}

int main(int count, char **arguments) {
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_llm_batch_options cache = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_queue_options queue = SB_LLM_QUEUE_OPTIONS_DEFAULT;
    serving s = {.count = 64, .most_prompt = 1024, .most_new = 256};
    int passes = 3, at = 1;
    for (; at + 1 < count && strncmp(arguments[at], "--", 2) == 0; at += 2) {
        const int number = atoi(arguments[at + 1]);
        if (strcmp(arguments[at], "--requests") == 0)
            s.count = number;
        else if (strcmp(arguments[at], "--parallel") == 0)
            queue.parallel = number;
        else if (strcmp(arguments[at], "--rows") == 0)
            queue.rows = number;
        else if (strcmp(arguments[at], "--passes") == 0)
            passes = number;
        else if (strcmp(arguments[at], "--prompt") == 0)
            s.most_prompt = number;
        else if (strcmp(arguments[at], "--new") == 0)
            s.most_new = number;
        else
            at = count;
    }
    if (at >= count || s.count < 1 || s.most_prompt < 2 * LEAST_PROMPT || s.most_new < LEAST_NEW ||
        s.most_new > MOST_NEW || s.most_prompt + s.most_new > CONTEXT) {
        fprintf(stderr,
                "usage: queue_bench [--requests N] [--parallel N] [--rows N] [--passes N] [--prompt N] [--new N] "
                "CHECKPOINT [DRIVER]\n");
        return 2;
    }
    options.context = CONTEXT;
    where.cuda_driver = at + 1 < count ? arguments[at + 1] : NULL;
    queue.no_sharing = true;
    MUST(sb_device_open(&where, 0, &s.device, error));
    session.device = s.device;
    MUST(sb_llm_load(arguments[at], &options, &s.llm, error));
    session.require_device = true;
    cache.session = &session;
    cache.pages = (queue.parallel > 0 ? queue.parallel : 16) * CONTEXT / SB_LLM_PAGE_POSITIONS;
    sb_llm_batch *batch;
    MUST(sb_llm_batch_create(s.llm, &cache, &batch, error));
    MUST(sb_llm_queue_create(batch, &queue, &s.queue, error));
    s.requests = calloc((size_t)s.count, sizeof *s.requests);
    s.step_us = calloc(MOST_STEPS, sizeof *s.step_us);
    for (int pass = 1; pass <= passes; pass++)
        serve(&s, (uint64_t)pass);
    sb_llm_queue_destroy(s.queue);
    sb_llm_batch_release(batch);
    sb_llm_release(s.llm);
    sb_device_release(s.device);
    free(s.requests);
    free(s.step_us);
    return 0;
}
