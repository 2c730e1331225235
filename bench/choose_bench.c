/* What a new token of a language model takes on a device by generate, with every kind of choosing: where the device chooses and is ahead of
 * the host, and where the host chooses from logits that come to it; and that both choose the same.
 *
 *     choose_bench [--context N] CHECKPOINT [PROMPT [TOKENS [DRIVER]]]
 *
 * The host is made to choose by a bias of 0. Ends with exit code 1 where tokens differ. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "measure.h"

/* Tokens before counting: plans, recording. */
#define WARM_UP 8

typedef struct choosing {
    const char *name;
    float temperature;
    int64_t top_k;
    float top_p, min_p;
    bool logits; /* come to the host all the same, one step behind */
} choosing;

static const choosing choosings[] = {
    {"the largest logit", 0, 0, 1, 0, false},        {"temperature 0.8", 0.8f, 0, 1, 0, false},
    {"… with top-k 50", 0.8f, 50, 1, 0, false},      {"… with top-p 0.9", 0.8f, 0, 0.9f, 0, false},
    {"… with min-p 0.05", 0.8f, 0, 1, 0.05f, false}, {"the largest, logits fetched", 0, 0, 1, 0, true},
};

/* A generation, as it is heard. */
typedef struct heard {
    sb_device *device;
    int64_t count, measured; /* tokens that have come, and those behind WARM_UP that are measured */
    int64_t *tokens;
    double begin, end;
    sb_device_counters before, after;
} heard;

static sb_status hear(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    heard *h = context;
    (void)stop;
    (void)error;
    h->tokens[h->count++] = token->token;
    if (h->count == WARM_UP) {
        sb_device_count(h->device, &h->before);
        h->begin = now_us();
    }
    if (h->count == WARM_UP + h->measured) {
        sb_device_count(h->device, &h->after);
        h->end = now_us();
    }
    return SB_OK;
}

static heard generate(sb_llm_session *session, sb_device *device, const choosing *how, bool by_host, int64_t prompt,
                      const int64_t *tokens, int64_t count) {
    static const sb_llm_logit_bias nothing = {0, 0};
    sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
    heard h = {.device = device, .measured = count};
    about.limit = count + WARM_UP + 1; /* the step behind those that are measured is given while they are */
    h.tokens = malloc((size_t)about.limit * sizeof *h.tokens);
    about.sampling.temperature = how->temperature;
    about.sampling.top_k = how->top_k;
    about.sampling.top_p = how->top_p;
    about.sampling.min_p = how->min_p;
    about.sampling.seed = 7;
    about.sampling.bias_count = by_host;
    about.sampling.biases = &nothing;
    about.ignore_stops = about.no_digest = about.no_logps = true;
    about.no_logits = !how->logits;
    about.on_token = hear;
    about.context = &h;
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_generate(session, prompt, tokens, &about, NULL, error));
    return h;
}

/* Returns whether both ways choose the same. */
static bool compare(sb_llm_session *session, sb_device *device, const choosing *how, int64_t prompt,
                    const int64_t *tokens, int64_t count) {
    heard ahead = generate(session, device, how, false, prompt, tokens, count);
    heard host = generate(session, device, how, true, prompt, tokens, count);
    bool same =
        ahead.count == host.count && memcmp(ahead.tokens, host.tokens, (size_t)host.count * sizeof *host.tokens) == 0;
    printf("%-30s %8.1f us a token, by the host %8.1f; %s\n", how->name, (ahead.end - ahead.begin) / (double)count,
           (host.end - host.begin) / (double)count, same ? "the same tokens" : "OTHER TOKENS");
#define A_TOKEN(name) (double)(ahead.after.name - ahead.before.name) / (double)count
    printf(
        "  %.2f launches of graphs, %.2f kernels, copies: %.2f to the device of %.0f bytes, %.2f to the host of %.0f "
        "bytes, %.2f allocations\n",
        A_TOKEN(graph_launches), A_TOKEN(kernels), A_TOKEN(copies_to_device), A_TOKEN(bytes_to_device),
        A_TOKEN(copies_to_host), A_TOKEN(bytes_to_host), A_TOKEN(device_allocations));
    free(ahead.tokens);
    free(host.tokens);
    fflush(stdout);
    return same;
}

int main(int count, char **arguments) {
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_llm_session *one;
    sb_llm *llm;
    bool same = true;
    int at = 1;
    if (count > 3 && strcmp(arguments[1], "--context") == 0) {
        options.context = atoll(arguments[2]);
        at = 3;
    }
    if (at >= count || arguments[at][0] == '-') {
        fprintf(stderr, "usage: choose_bench [--context N] CHECKPOINT [PROMPT [TOKENS [DRIVER]]]\n");
        return 2;
    }
    int64_t prompt = at + 1 < count ? atoll(arguments[at + 1]) : 100;
    int64_t tokens = at + 2 < count ? atoll(arguments[at + 2]) : 200;
    where.cuda_driver = at + 3 < count ? arguments[at + 3] : NULL;
    MUST(sb_device_open(&where, 0, &session.device, error));
    MUST(sb_llm_load(arguments[at], &options, &llm, error));
    session.require_device = true;
    MUST(sb_llm_session_create(llm, &session, &one, error));
    int64_t vocabulary = sb_llm_describe(llm)->vocabulary, *given = malloc((size_t)prompt * sizeof *given);
    for (int64_t i = 0; i < prompt; i++)
        given[i] = (int64_t)((uint64_t)(i + 1) * UINT64_C(2654435761) % (uint64_t)vocabulary);
    for (size_t i = 0; i < sizeof choosings / sizeof *choosings; i++)
        same = compare(one, session.device, &choosings[i], prompt, given, tokens) && same;
    free(given);
    sb_llm_session_destroy(one);
    sb_llm_release(llm);
    sb_device_release(session.device);
    return same ? 0 : 1;
}
