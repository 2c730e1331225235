/* How tokens are chosen: what is in force, whether it was asked for or not. */
#include <math.h>
#include <stdlib.h>

#include "constraining.h"

/* A float with as few digits as say which one it is. */
static void print_float(const char *name, float value) {
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    fprintf(stderr, "%s %s", name, text);
}

/* Settings that are not those of the default. */
static void print_sampling(const sb_llm_sampling *s) {
    if (s->temperature == 0) {
        fprintf(stderr, "settings: greedy");
    } else {
        print_float("settings: temperature", s->temperature);
        fprintf(stderr, ", seed %llu, request %lu", (unsigned long long)s->seed, (unsigned long)s->request);
    }
    if (s->temperature != 0 && s->top_k > 0)
        fprintf(stderr, ", top-k %lld", (long long)s->top_k);
    if (s->temperature != 0 && s->top_p != 1)
        print_float(", top-p", s->top_p);
    if (s->temperature != 0 && s->min_p != 0)
        print_float(", min-p", s->min_p);
    if (s->repetition_penalty != 1)
        print_float(", repetition penalty", s->repetition_penalty);
    if (s->presence_penalty != 0)
        print_float(", presence penalty", s->presence_penalty);
    if (s->frequency_penalty != 0)
        print_float(", frequency penalty", s->frequency_penalty);
    if (s->bias_count > 0)
        fprintf(stderr, ", %lld bias%s", (long long)s->bias_count, s->bias_count > 1 ? "es" : "");
}

void print_settings(const sb_llm *llm, const sb_llm_generation *generation, const char *source) {
    const sb_llm_description *about = sb_llm_describe(llm);
    print_sampling(&generation->sampling);
    if (source != NULL)
        fprintf(stderr, " (by %s, where no option says otherwise)", source);
    if (generation->constraint != NULL)
        fprintf(stderr, ", by a schema");
    fprintf(stderr, "; at most %lld tokens", (long long)generation->limit);
    if (generation->ignore_stops)
        fprintf(stderr, ", none of which ends the text");
    for (int i = 0; i < about->stop_count && !generation->ignore_stops; i++)
        fprintf(stderr, "%s%lld", i == 0 ? "; ended by token " : " or ", (long long)about->stops[i]);
    fprintf(stderr, "\n");
}

json_t *settings_json(const sb_llm *llm, const sb_llm_generation *generation) {
    const sb_llm_description *about = sb_llm_describe(llm);
    const sb_llm_sampling *s = &generation->sampling;
    json_t *stops = json_array(), *biases = json_array();
    for (int i = 0; i < about->stop_count && !generation->ignore_stops; i++)
        json_array_append_new(stops, json_integer(about->stops[i]));
    for (int64_t i = 0; i < s->bias_count; i++)
        json_array_append_new(
            biases, json_pack("[I, o]", (json_int_t)s->biases[i].token,
                              isfinite(s->biases[i].bias) ? json_real((double)s->biases[i].bias) : json_null()));
    return json_pack("{s:f, s:I, s:f, s:f, s:I, s:I, s:f, s:f, s:f, s:o, s:b, s:I, s:o}", "temperature",
                     (double)s->temperature, "top_k", (json_int_t)s->top_k, "top_p", (double)s->top_p, "min_p",
                     (double)s->min_p, "seed", (json_int_t)s->seed, "request", (json_int_t)s->request,
                     "repetition_penalty", (double)s->repetition_penalty, "presence_penalty",
                     (double)s->presence_penalty, "frequency_penalty", (double)s->frequency_penalty, "biases", biases,
                     "constrained", (int)(generation->constraint != NULL), "limit", (json_int_t)generation->limit,
                     "stops", stops);
}
