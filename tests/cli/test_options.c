/* Every option of every command is looked at: one that the table offers, and that the command takes and does nothing
 * with, is found here. The commands run in this process, on a GPU that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "options.h"

#define DIGITS DIGITS_FOLDER "/digits.onnx"
#define CASES "/usr/share/libonnx-testdata/data/node"
#define CHECKPOINT LLM_MODELS "/llama-text" /* written by the test llm_models */
#define RECEIPT "options_receipt.json"      /* of generate, which stands before verify */
#define TEXT "options_text.txt"             /* ids, and a text as well */
#define MOST_ARGUMENTS 16

/* ---- what a command is called with ---- */

/* What is of devices is tried on one, with a small model: the device that is not there takes its time. */
static bool is_of_devices(const option *option) {
    static const char *const names[] = {"device", "force-cpu", "require-device",    "allow-cpu",
                                        "graphs", "queue",     "explain-placement", "left-on-cpu"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(option->name, names[i]) == 0)
            return true;
    }
    return false;
}

/* What is of states is tried with a sum, of which one operand is what the sum was. */
static bool is_of_states(const option *option) {
    return strcmp(option->name, "state") == 0 || strcmp(option->name, "save-state") == 0 ||
           strcmp(option->name, "load-state") == 0;
}

/* What bench has for language models. */
static bool is_of_language(const command *command, const option *option) {
    static const char *const names[] = {"llm", "prompts", "count", "dtype", "bandwidth", "lines", "explain-step"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && strcmp(command->name, "bench") == 0; i++) {
        if (strcmp(option->name, names[i]) == 0)
            return true;
    }
    return false;
}

typedef enum place { ANYWHERE, ON_CPU, ON_DEVICE, WITH_STATE, OF_LANGUAGE } place;

static place place_of(const command *command, const option *option) {
    return is_of_devices(option)             ? ON_DEVICE
           : is_of_states(option)            ? WITH_STATE
           : is_of_language(command, option) ? OF_LANGUAGE
                                             : ON_CPU;
}

/* Options that a command is given beside the one in question; those of the same name,
 * and of names that exclude it, with commas between, are left out. */
static const struct {
    place place;
    const char *command, *name, *value, *excluded_by, *only_with;
} companions[] = {
    {ON_DEVICE, "run", "device", "cuda", NULL, NULL},
    {ON_DEVICE, "run", "input", "x=" CASES "/test_relu/test_data_set_0/input_0.pb", NULL, NULL},
    {WITH_STATE, "run", "input", "x=" CASES "/test_add/test_data_set_0/input_0.pb", NULL, NULL},
    {WITH_STATE, "run", "state", "y=sum", NULL, NULL},
    {ON_CPU, "run", "input", "image=" DIGITS_FOLDER "/samples.npy", "steps", NULL},
    {ON_DEVICE, "compare", "device", "cuda", NULL, NULL},
    {ON_CPU, "compare", "reference", DIGITS_FOLDER "/reference.npz", "record", NULL},
    {ON_DEVICE, "bench", "device", "cuda", NULL, NULL},
    {ON_DEVICE, "bench", "seconds", "0", "runs", NULL},
    {ON_CPU, "bench", "seconds", "0", "runs", NULL},
    {OF_LANGUAGE, "bench", "llm", NULL, NULL, NULL},
    {OF_LANGUAGE, "bench", "prompts", "3", NULL, NULL},
    {OF_LANGUAGE, "bench", "runs", "1", NULL, NULL},
    {ON_DEVICE, "profile", "device", "cuda", NULL, NULL},
    {ANYWHERE, "profile", "runs", "1", NULL, NULL},
    {ON_DEVICE, "conformance", "device", "cuda", NULL, NULL},
    {ANYWHERE, "conformance", "only", "test_abs", NULL, NULL},
    {ON_DEVICE, "generate", "device", "cuda", NULL, NULL},
    {ANYWHERE, "generate", "prompt", "a text", "tokens,batch", NULL},
    {.place = ANYWHERE, .command = "generate", .name = "chat", .only_with = "system"},
    {.place = ANYWHERE, .command = "generate", .name = "chat", .only_with = "conversation"},
    {.place = ANYWHERE, .command = "generate", .name = "chat", .only_with = "date"},
    {.place = ANYWHERE, .command = "generate", .name = "json", .only_with = "top-logprobs"},
    {.place = ANYWHERE, .command = "tokenize", .name = "decode", .only_with = "skip-special"},
    {ANYWHERE, "generate", "count", "1", NULL, NULL},
    {ANYWHERE, "generate", "receipt", RECEIPT, "batch,samples,parallel,pages,no-digest", NULL},
    {ANYWHERE, "generate", "samples", "2", NULL, "parallel"},
    {ANYWHERE, "generate", "samples", "2", NULL, "pages"},
    {ANYWHERE, "generate", "samples", "2", NULL, "no-digest"},
    {ON_DEVICE, "verify", "device", "cuda", NULL, NULL},
    {ON_DEVICE, "perplexity", "device", "cuda", NULL, NULL},
    {ANYWHERE, "perplexity", "windows", "1", NULL, NULL},
};

/* An argument for each option that takes one; of a command where it matters.
 * A test fails for an option that has none. */
static const struct {
    const char *command, *name, *value;
} samples[] = {
    {"run", "set", "batch=20"},
    {"compare", "set", "batch=1"},
    {NULL, "set", "batch=2"},
    {NULL, "state", "y=sum"},
    {NULL, "steps", DIGITS_FOLDER "/samples.npy"},
    {NULL, "save-state", "options.state"},
    {NULL, "load-state", "options.state"},
    {NULL, "input", "image=" DIGITS_FOLDER "/samples.npy"},
    {NULL, "output", "options.npz"},
    {NULL, "isa", "scalar"},
    {NULL, "unrelated", "batch"},
    {NULL, "threads", "1"},
    {NULL, "iteration-limit", "100"},
    {NULL, "memory-limit", "1G"},
    {NULL, "device", "cuda:0"},
    {NULL, "force-cpu", "Relu"},
    {NULL, "allow-cpu", "options_allowed.txt"},
    {NULL, "graphs", "capture"},
    {NULL, "svg", "options.svg"},
    {NULL, "onnx", "options.onnx"},
    {NULL, "reference", DIGITS_FOLDER "/reference.npz"},
    {NULL, "tolerance", "0,0"},
    {NULL, "record", "options_recorded.npz"},
    {NULL, "html", "options.html"},
    {NULL, "runs", "1"},
    {NULL, "seconds", "0"},
    {NULL, "warmup", "1"},
    {NULL, "queue", "3"},
    {NULL, "capacity", "batch=2..64"},
    {NULL, "trace", "options_trace.json"},
    {NULL, "only", "test_abs"},
    {NULL, "manifest", "options_allowed.txt"},
    {NULL, "digests", "options_digests.txt"},
    {NULL, "repeat", "2"},
    {NULL, "left-on-cpu", "options_left.txt"},
    {NULL, "tokens", "1,2"},
    {NULL, "prompt", "a text"},
    {NULL, "tokenizer", CHECKPOINT},
    {NULL, "system", "be brief"},
    {NULL, "conversation", "options_conversation.json"},
    {NULL, "date", "2026-02-28"},
    {NULL, "count", "2"},
    {NULL, "temperature", "0.5"},
    {NULL, "top-k", "3"},
    {NULL, "top-p", "0.9"},
    {NULL, "min-p", "0.1"},
    {NULL, "repetition-penalty", "1.5"},
    {NULL, "presence-penalty", "0.5"},
    {NULL, "frequency-penalty", "-0.5"},
    {NULL, "logit-bias", "7=-inf"},
    {NULL, "json-schema", "{\"type\":\"integer\"}"},
    {NULL, "top-logprobs", "2"},
    {NULL, "seed", "7"},
    {NULL, "request", "3"},
    {NULL, "prefill-chunk", "1"},
    {NULL, "stop", "the end"},
    {NULL, "batch", "options_requests.jsonl"},
    {NULL, "samples", "2"},
    {NULL, "parallel", "2"},
    {NULL, "pages", "9"},
    {NULL, "cache-memory", "8M"},
    {NULL, "dtype", "bf16"},
    {NULL, "context", "64"},
    {NULL, "receipt", RECEIPT},
    {NULL, "sign", KEYS_FOLDER "/private.pem"},
    {NULL, "key", KEYS_FOLDER "/public.pem"},
    {NULL, "sample", "1"},
    {NULL, "method", "full"},
    {NULL, "stride", "3"},
    {NULL, "windows", "1"},
    {NULL, "begin", "1"},
    {NULL, "prompts", "3,5"},
    {NULL, "bandwidth", "10"},
};

static const char *operand_of(const char *command, place place) {
    if (strcmp(command, "devices") == 0)
        return NULL;
    if (strcmp(command, "digest") == 0)
        return DIGITS_FOLDER "/samples.npy";
    if (strcmp(command, "conformance") == 0)
        return CASES;
    if (strcmp(command, "generate") == 0 || strcmp(command, "verify") == 0 || strcmp(command, "info") == 0 ||
        strcmp(command, "tokenize") == 0 || strcmp(command, "perplexity") == 0 || place == OF_LANGUAGE)
        return CHECKPOINT;
    return place == ON_DEVICE    ? CASES "/test_relu/model.onnx"
           : place == WITH_STATE ? CASES "/test_add/model.onnx"
                                 : DIGITS;
}

static const char *sample_of(const command *command, const option *option) {
    for (size_t i = 0; i < sizeof samples / sizeof samples[0] && option->argument != NULL; i++) {
        if (strcmp(samples[i].name, option->name) == 0 &&
            (samples[i].command == NULL || strcmp(samples[i].command, command->name) == 0))
            return samples[i].value;
    }
    if (option->argument != NULL)
        fail_msg("samebit %s --%s has no sample here", command->name, option->name);
    return NULL;
}

/* ---- calling ---- */

typedef struct call {
    int count;
    char texts[MOST_ARGUMENTS][512];
    char *arguments[MOST_ARGUMENTS];
} call;

static void add(call *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->texts[call->count], sizeof call->texts[0], format, arguments);
    va_end(arguments);
    call->arguments[call->count] = call->texts[call->count];
    call->count++;
}

static void add_option(call *call, const char *name, const char *value) {
    add(call, "--%s", name);
    if (value != NULL)
        add(call, "%s", value);
}

static bool is_among(const char *name, const char *list) {
    size_t size = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0'))
            return true;
    }
    return false;
}

/* Fills what is all zeros, where it stays: arguments point into it. */
static void make_call(const command *command, const option *option, call *call) {
    place place = place_of(command, option);
    const char *operand = operand_of(command->name, place);
    add(call, "%s", command->name);
    if (operand != NULL)
        add(call, "%s", operand);
    if (strcmp(command->name, "tokenize") == 0)
        add(call, "1,2"); /* ids, and a text as well */
    if (strcmp(command->name, "verify") == 0)
        add(call, "%s", RECEIPT);
    if (strcmp(command->name, "perplexity") == 0)
        add(call, "%s", TEXT);
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
        bool excluded = (companions[i].place != ANYWHERE && companions[i].place != place) ||
                        strcmp(companions[i].name, option->name) == 0 ||
                        is_among(option->name, companions[i].excluded_by) ||
                        (companions[i].only_with != NULL && strcmp(companions[i].only_with, option->name) != 0);
        if (strcmp(companions[i].command, command->name) == 0 && !excluded)
            add_option(call, companions[i].name, companions[i].value);
    }
    add_option(call, option->name, sample_of(command, option));
}

/* Runs the command with its output going to a file. */
static int run_aside(const command *command, const arguments *arguments) {
    fflush(NULL);
    int kept = dup(STDOUT_FILENO), kept_errors = dup(STDERR_FILENO);
    FILE *file = fopen("options_output.txt", "w");
    assert_true(kept >= 0 && kept_errors >= 0 && file != NULL);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int code = command->run(arguments);
    fflush(NULL);
    dup2(kept, STDOUT_FILENO);
    dup2(kept_errors, STDERR_FILENO);
    close(kept);
    close(kept_errors);
    fclose(file);
    return code;
}

static void check_option(const command *command, const option *option) {
    call call = {0};
    arguments arguments;
    bool asked = false;
    make_call(command, option, &call);
    assert_true(parse_arguments(command, call.count, call.arguments, &arguments));
    int code = run_aside(command, &arguments);
    for (int i = 0; i < arguments.option_count; i++)
        asked = asked || (arguments.options[i] == option && arguments.asked[i]);
    if (code == EXIT_USAGE || code == EXIT_FAILED)
        fail_msg("samebit %s --%s ends with %d: see options_output.txt", command->name, option->name, code);
    if (!asked)
        fail_msg("samebit %s takes --%s and does nothing with it", command->name, option->name);
    free_arguments(&arguments);
}

/* ---- tests ---- */

static void test_every_option(void **state) {
    (void)state;
    int options = 0;
    for (const command *command = commands; command->name != NULL; command++) {
        for (const option *option = command->options; option->name != NULL; option++, options++) {
            place place = place_of(command, option);
            bool needs_cases = place == ON_DEVICE || place == WITH_STATE || strcmp(command->name, "conformance") == 0;
            if (!needs_cases || access(CASES, R_OK) == 0)
                check_option(command, option);
        }
    }
    assert_true(options > 60);
}

/* What the test above looks at: an option that nobody asks for stays as it was given. */
static void test_unasked(void **state) {
    (void)state;
    const command *command = commands;
    char *texts[] = {"run", "model", "--digest", "--threads", "2"};
    arguments arguments;
    assert_true(parse_arguments(command, 5, texts, &arguments));
    assert_int_equal(arguments.option_count, 2);
    assert_false(arguments.asked[0] || arguments.asked[1]);
    assert_string_equal(option_value(&arguments, "threads"), "2");
    assert_true(!arguments.asked[0] && arguments.asked[1]);
    assert_string_equal(unused_option(&arguments), "digest");
    assert_false(has_option(&arguments, "json"));
    assert_true(has_option(&arguments, "digest") && arguments.asked[0]);
    assert_null(unused_option(&arguments));
    free_arguments(&arguments);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_option), cmocka_unit_test(test_unasked)};
    setenv("SAMEBIT_CUDA_DRIVER", FAKE_GPU, 1);
    FILE *allowed = fopen("options_allowed.txt", "w");
    if (allowed == NULL || fclose(allowed) != 0)
        return 1;
    FILE *requests = fopen("options_requests.jsonl", "w");
    if (requests == NULL || fputs("{\"tokens\": [1, 2]}\n", requests) < 0 || fclose(requests) != 0)
        return 1;
    FILE *conversation = fopen("options_conversation.json", "w");
    if (conversation == NULL || fputs("{\"messages\": []}\n", conversation) < 0 || fclose(conversation) != 0)
        return 1;
    FILE *text = fopen(TEXT, "w");
    if (text == NULL || fputs("1 2 3 4 5 6 7 8 9", text) < 0 || fclose(text) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
