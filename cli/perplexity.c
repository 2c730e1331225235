/* samebit perplexity: how well a language model foretells a text. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "language_model.h"
#include "placement.h"
#include "progress.h"
#include "running.h"
#include "text.h"
#include "tokenizing.h"

#define USUAL_CONTEXT 512

const option perplexity_options[] = {
    {"method", "NAME", false,
     "How the text is cut: full (every token counts once) or llama.cpp (the second half of each window)"},
    {"context", "N", false,
     "The positions of a window; 512 by default, or what the checkpoint declares where that is less"},
    {"stride", "N", false, "With --method full: how far the next window's end is; half of --context by default"},
    {"windows", "N", false, "Run so many windows at most"},
    {"tokens", NULL, false, "FILE holds token ids with commas or white space between, not text"},
    {"begin", "ID", false,
     "The token before each window, or none; by default what the tokenizer puts before a text, and of --tokens none"},
    {"tokenizer", "PATH", false, "The tokenizer, as for generate; by default the checkpoint's"},
    {"plain", NULL, false, "Special tokens that are written in the text are text too"},
    {"prefill-chunk", "N", false, "The most tokens in one run, up to 512; changes no bit"},
    {"digest", NULL, false, "Print the SHA-256 digest of the tokens that count and their log-probabilities"},
    {"json", NULL, false, "Print what came of it as JSON"},
    {"dtype", "NAME", false,
     "Compute in f32, f16 or bf16; by default as most weights are, and bf16 where they are quantised"},
    LANGUAGE_MODEL_RUN_OPTIONS,
    {0},
};

/* ---- what is asked for ---- */

static bool read_measure(const arguments *arguments, sb_llm_perplexity *how) {
    const char *method = option_value(arguments, "method");
    long long context = 0, stride = 0, windows = 0, chunk = 0;
    if (method != NULL && strcmp(method, "full") != 0 && strcmp(method, "llama.cpp") != 0) {
        usage_error("--method takes full or llama.cpp, not %s", method);
        return false;
    }
    if (method != NULL && strcmp(method, "llama.cpp") == 0)
        how->windows = SB_LLM_WINDOWS_LLAMA_CPP;
    if (!read_count(arguments, "context", 2, 1LL << 28, &context) ||
        !read_count(arguments, "stride", 1, 1LL << 28, &stride) ||
        !read_count(arguments, "windows", 1, 1LL << 40, &windows) ||
        !read_count(arguments, "prefill-chunk", 1, 512, &chunk))
        return false;
    if (stride != 0 && how->windows == SB_LLM_WINDOWS_LLAMA_CPP) {
        usage_error("--stride is for --method full: llama.cpp's windows stand one behind the other");
        return false;
    }
    how->window = context;
    how->stride = stride;
    how->limit = windows;
    how->chunk = chunk;
    return true;
}

/* The token that the tokenizer puts before a text; -1: none. */
static int find_begin(const sb_tokenizer *tokenizer, int64_t *begin) {
    sb_encode_options bare = SB_ENCODE_DEFAULT;
    int64_t *with = NULL, *without = NULL, with_count, without_count;
    bare.bare = true;
    *begin = -1;
    int code = encode_text(tokenizer, NULL, "a", 1, &with, &with_count);
    if (code == EXIT_RIGHT)
        code = encode_text(tokenizer, &bare, "a", 1, &without, &without_count);
    if (code == EXIT_RIGHT && with_count > without_count && (without_count == 0 || with[0] != without[0]))
        *begin = with[0];
    free(with);
    free(without);
    return code;
}

static int read_begin(const arguments *arguments, const sb_tokenizer *tokenizer, int64_t *begin) {
    const char *text = option_value(arguments, "begin");
    long long id = -1;
    *begin = -1;
    if (text == NULL)
        return tokenizer != NULL ? find_begin(tokenizer, begin) : EXIT_RIGHT;
    if (strcmp(text, "none") != 0 && !parse_integer(text, 0, INT32_MAX, &id))
        return usage_error("--begin takes a token's id or none, not %s", text);
    *begin = id;
    return EXIT_RIGHT;
}

/* The text's own tokens, to be freed, and the one that begins each window. */
static int read_tokens(const arguments *arguments, int64_t **tokens, int64_t *count, int64_t *begin) {
    const char *file = arguments->positional[1], *path = option_value(arguments, "tokenizer");
    sb_encode_options options = SB_ENCODE_DEFAULT;
    sb_tokenizer *tokenizer = NULL;
    char *text = NULL;
    size_t bytes;
    sb_error error;
    bool ids = has_option(arguments, "tokens");
    options.bare = true;
    options.plain = has_option(arguments, "plain");
    if (ids && (path != NULL || options.plain))
        return usage_error("--tokenizer and --plain are for text, and --tokens says that FILE holds ids");
    int code = read_text_file(file, &text, &bytes);
    if (code == EXIT_RIGHT && !ids &&
        sb_tokenizer_open(path != NULL ? path : arguments->positional[0], &tokenizer, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = ids ? read_token_ids("--tokens", text, bytes, tokens, count)
                   : encode_text(tokenizer, &options, text, bytes, tokens, count);
    if (code == EXIT_RIGHT)
        code = read_begin(arguments, tokenizer, begin);
    sb_tokenizer_release(tokenizer);
    free(text);
    return code;
}

/* ---- what is told ---- */

static sb_status show_window(void *context, const sb_llm_perplexity_result *so_far, sb_error *error) {
    (void)context;
    (void)error;
    show_progress("window %lld of %lld: perplexity %.4f ± %.4f", (long long)so_far->windows,
                  (long long)so_far->of_windows, so_far->perplexity, so_far->error);
    return SB_OK;
}

static json_t *number_json(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *result_json(const arguments *arguments, const sb_llm_perplexity *how,
                           const sb_llm_perplexity_result *result, double seconds) {
    bool full = how->windows == SB_LLM_WINDOWS_FULL;
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:s, s:f}", "model",
                     text_json(arguments->positional[0]), "method", full ? "full" : "llama.cpp", "context",
                     (json_int_t)how->window, "stride", full ? json_integer(how->stride) : json_null(), "begin",
                     how->begin >= 0 ? json_integer(how->begin) : json_null(), "windows", (json_int_t)result->windows,
                     "tokens", (json_int_t)result->tokens, "scored", (json_int_t)result->scored, "mean",
                     number_json(result->mean), "perplexity", number_json(result->perplexity), "standard_error",
                     number_json(result->error), "digest", result->digest, "seconds", seconds);
}

static int print_measure(const arguments *arguments, const sb_llm_perplexity *how,
                         const sb_llm_perplexity_result *result, double seconds) {
    char text[TEXT_BYTES];
    if (has_option(arguments, "json"))
        return print_json_value(stdout, result_json(arguments, how, result, seconds)) ? EXIT_RIGHT : EXIT_FAILED;
    printf("perplexity %.6f ± %.6f\n", result->perplexity, result->error);
    printf("%lld of %lld tokens in %lld windows of %lld positions", (long long)result->scored,
           (long long)result->tokens, (long long)result->windows, (long long)how->window);
    if (how->windows == SB_LLM_WINDOWS_FULL)
        printf(", %lld apart", (long long)how->stride);
    if (how->begin >= 0)
        printf(", token %lld before each", (long long)how->begin);
    printf("; mean negative log-probability %.9f\n", result->mean);
    if (has_option(arguments, "digest"))
        printf("%s\n", result->digest);
    fprintf(stderr, "%s\n", duration(seconds * 1e9, text));
    return EXIT_RIGHT;
}

/* ---- running ---- */

static sb_llm_session *interruptible;

static void interrupt(int signal) {
    (void)signal;
    sb_llm_session_interrupt(interruptible);
}

static int measure(const arguments *arguments, sb_llm_session *session, sb_llm_perplexity *how, int64_t count,
                   const int64_t *tokens) {
    sb_llm_perplexity_result result;
    sb_error error;
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    double begun = now_ns();
    how->on_window = show_window;
    interruptible = session;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    show_progress("window 1");
    sb_status status = sb_llm_measure_perplexity(session, count, tokens, how, &result, &error);
    clear_progress();
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    if (status != SB_OK)
        return report(&error);
    return print_measure(arguments, how, &result, (now_ns() - begun) / 1e9);
}

/* A session of a model whose cache has room for one window. What is not asked for is filled in. */
static int open_session(const arguments *arguments, const sb_model_options *model, const sb_session_options *options,
                        sb_llm_perplexity *how, sb_llm **llm, sb_llm_session **session) {
    sb_error error;
    int code = load_language_model(arguments, model, false, llm);
    if (code != EXIT_RIGHT)
        return code;
    int64_t context = sb_llm_describe(*llm)->context;
    if (how->window == 0)
        how->window = context < USUAL_CONTEXT ? context : USUAL_CONTEXT;
    if (how->stride == 0 && how->windows == SB_LLM_WINDOWS_FULL)
        how->stride = how->window / 2;
    if (how->begin >= sb_llm_describe(*llm)->vocabulary)
        return usage_error("--begin %lld: the model has %lld tokens", (long long)how->begin,
                           (long long)sb_llm_describe(*llm)->vocabulary);
    return sb_llm_session_create(*llm, options, session, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

int run_perplexity(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    sb_llm_perplexity how = SB_LLM_PERPLEXITY_DEFAULT;
    sb_device *device = NULL;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    int64_t *tokens = NULL, count = 0;
    if (!read_measure(arguments, &how) || !read_model_options(arguments, &model) ||
        !read_session_options(arguments, &options))
        return EXIT_USAGE;
    int code = read_tokens(arguments, &tokens, &count, &how.begin);
    if (code == EXIT_RIGHT)
        code = open_device(arguments, &options, &device);
    if (code == EXIT_RIGHT)
        code = open_session(arguments, &model, &options, &how, &llm, &session);
    if (code == EXIT_RIGHT)
        code = measure(arguments, session, &how, count, tokens);
    free(tokens);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(device);
    return code;
}
