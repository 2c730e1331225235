#include "requests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same limits as those of the options that say the same for all. */
#define MOST_TOKENS (1LL << 40)
#define MOST_SAMPLES 4096

/* A line that is being read. */
typedef struct reading {
    request *made;
    char *why;
    bool own_stops; /* the line has stops in place of the defaults */
} reading;

static bool complain(const reading *r, const char *name, const char *wanted) {
    snprintf(r->why, REQUEST_WHY_BYTES, "\"%.40s\": %s is expected", name, wanted);
    return false;
}

static bool read_whole(const reading *r, const char *name, const json_t *value, int64_t least, int64_t most,
                       int64_t *number) {
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)least, (long long)most);
    if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most)
        return complain(r, name, wanted);
    *number = json_integer_value(value);
    return true;
}

static bool read_real(const reading *r, const char *name, const json_t *value, double least, double most,
                      float *number) {
    char wanted[80];
    double given = json_is_number(value) ? json_number_value(value) : (double)NAN;
    snprintf(wanted, sizeof wanted, "a number from %g to %g", least, most);
    if (!(given >= least && given <= most))
        return complain(r, name, wanted);
    *number = (float)given;
    return true;
}

static bool read_prompt(const reading *r, const char *name, const json_t *value) {
    if (!json_is_string(value))
        return complain(r, name, "a text");
    if (strlen(json_string_value(value)) != json_string_length(value))
        return complain(r, name, "a text without U+0000");
    r->made->prompt = strdup(json_string_value(value));
    return r->made->prompt != NULL || complain(r, name, "a machine with more memory");
}

static bool read_tokens(const reading *r, const char *name, const json_t *value) {
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count == 0)
        return complain(r, name, "a list of token ids, of at least one,");
    r->made->tokens = malloc(count * sizeof *r->made->tokens);
    r->made->token_count = (int64_t)count;
    if (r->made->tokens == NULL)
        return complain(r, name, "a machine with more memory");
    for (size_t i = 0; i < count; i++) {
        if (!read_whole(r, name, json_array_get(value, i), 0, MOST_TOKENS, &r->made->tokens[i]))
            return false;
    }
    return true;
}

static bool read_messages(const reading *r, const char *name, json_t *value) {
    if (!check_messages(value, r->why))
        return false;
    if (json_array_size(value) == 0)
        return complain(r, name, "a list of messages, of at least one,");
    r->made->messages = json_incref(value);
    return true;
}

static bool add_stop(reading *r, const char *name, const json_t *value) {
    if (!json_is_string(value) || json_string_length(value) == 0 ||
        strlen(json_string_value(value)) != json_string_length(value))
        return complain(r, name, "a text that is not empty, or a list of such,");
    return add_stop_text(&r->made->stops, json_string_value(value)) || complain(r, name, "a machine with more memory");
}

static bool read_stops(reading *r, const char *name, const json_t *value) {
    r->own_stops = true;
    if (!json_is_array(value))
        return add_stop(r, name, value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!add_stop(r, name, json_array_get(value, i)))
            return false;
    }
    return true;
}

static bool read_truth(const reading *r, const char *name, const json_t *value, bool *truth) {
    *truth = json_is_true(value);
    return json_is_boolean(value) || complain(r, name, "true or false");
}

static bool read_member(reading *r, const char *name, json_t *value) {
    sb_llm_sampling *sampling = &r->made->sampling;
    int64_t number;
    if (strcmp(name, "prompt") == 0)
        return read_prompt(r, name, value);
    if (strcmp(name, "messages") == 0)
        return read_messages(r, name, value);
    if (strcmp(name, "tokens") == 0)
        return read_tokens(r, name, value);
    if (strcmp(name, "count") == 0)
        return read_whole(r, name, value, 0, MOST_TOKENS, &r->made->limit);
    if (strcmp(name, "samples") == 0)
        return read_whole(r, name, value, 1, MOST_SAMPLES, &r->made->samples);
    if (strcmp(name, "temperature") == 0)
        return read_real(r, name, value, 0, 0x1p20, &sampling->temperature);
    if (strcmp(name, "top_k") == 0)
        return read_whole(r, name, value, 0, MOST_TOKENS, &sampling->top_k);
    if (strcmp(name, "top_p") == 0)
        return read_real(r, name, value, 1e-6, 1, &sampling->top_p);
    if (strcmp(name, "min_p") == 0)
        return read_real(r, name, value, 0, 1, &sampling->min_p);
    if (strcmp(name, "seed") == 0) {
        bool fits = read_whole(r, name, value, 0, INT64_MAX, &number);
        sampling->seed = fits ? (uint64_t)number : 0;
        return fits;
    }
    if (strcmp(name, "request") == 0) {
        bool fits = read_whole(r, name, value, 0, UINT32_MAX, &number);
        sampling->request = fits ? (uint32_t)number : 0;
        return fits;
    }
    if (strcmp(name, "stop") == 0)
        return read_stops(r, name, value);
    if (strcmp(name, "ignore_stops") == 0)
        return read_truth(r, name, value, &r->made->ignore_stops);
    snprintf(r->why, REQUEST_WHY_BYTES,
             "\"%.40s\" is not known; there are prompt, messages, tokens, count, samples, temperature, top_k, top_p, "
             "min_p, seed, "
             "request, stop, ignore_stops",
             name);
    return false;
}

static bool read_object(reading *r, json_t *object, const request *defaults) {
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        snprintf(r->why, REQUEST_WHY_BYTES, "an object of JSON is expected");
        return false;
    }
    json_object_foreach(object, name, value) {
        if (!read_member(r, name, value))
            return false;
    }
    if ((r->made->prompt != NULL) + (r->made->messages != NULL) + (r->made->tokens != NULL) != 1) {
        snprintf(r->why, REQUEST_WHY_BYTES, "one of \"prompt\", \"messages\" and \"tokens\" is expected");
        return false;
    }
    if (r->made->samples - 1 > (int64_t)UINT32_MAX - (int64_t)r->made->sampling.request)
        return complain(r, "samples", "fewer, as each is a request of its own: a smaller number");
    return r->own_stops || copy_stop_texts(&defaults->stops, &r->made->stops) ||
           complain(r, "stop", "a machine with more memory");
}

bool read_request(const char *line, size_t bytes, const request *defaults, request *made, char why[REQUEST_WHY_BYTES]) {
    json_error_t error;
    reading r = {.made = made, .why = why};
    *made = *defaults;
    made->prompt = NULL;
    made->messages = NULL;
    made->tokens = NULL;
    made->token_count = 0;
    made->stops = (stop_texts){0};
    json_t *object = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        snprintf(why, REQUEST_WHY_BYTES, "byte %d: %.120s", error.position, error.text);
    bool fits = object != NULL && read_object(&r, object, defaults);
    json_decref(object);
    if (!fits)
        free_request(made);
    return fits;
}

void free_request(request *request) {
    free(request->prompt);
    json_decref(request->messages);
    free(request->tokens);
    free_stop_texts(&request->stops);
    *request = (struct request){0};
}
