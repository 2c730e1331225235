/* samebit generate: text goes on, token by token. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chat.h"
#include "commands.h"
#include "language_model.h"
#include "placement.h"
#include "telling.h"
#include "text.h"
#include "tokenizing.h"

const option generate_options[] = {
    {"prompt", "TEXT", false, "The prompt, which the checkpoint's tokenizer encodes; - for standard input"},
    {"tokens", "IDS", false, "The prompt: token ids with commas between; by default the token that texts begin with"},
    {"tokenizer", "PATH", false,
     "The tokenizer: a folder with tokenizer.json or tokenizer.model, such a file, or a GGUF file; by default the "
     "checkpoint's"},
    ENCODING_OPTIONS,
    CHAT_OPTIONS,
    {"count", "N", false, "The most new tokens; 128 by default"},
    {"temperature", "T", false, "Sample at this temperature; 0, the default, takes the likeliest token"},
    {"top-k", "K", false, "Sample from the K likeliest tokens; 0, the default, from all"},
    {"top-p", "P", false,
     "Sample from the fewest of the likeliest tokens that have this probability together; 1 by default"},
    {"min-p", "P", false,
     "Sample from tokens with at least this share of the likeliest one's probability; 0 by default"},
    {"seed", "N", false, "The seed of sampling; 0 by default"},
    {"request", "N", false, "Which of several requests with one seed this is; 0 by default"},
    {"ignore-stops", NULL, false, "Go on behind tokens that end a text"},
    {"prefill-chunk", "N", false, "The most tokens of the prompt in one run, up to 512; changes no bit"},
    {"logprobs", NULL, false, "Print each token's log-probability"},
    {"score-prompt", NULL, false, "Print the prompt's tokens too, with what the model made of them"},
    {"digest", NULL, false, "Print the SHA-256 digest of the tokens and of the logits that they came from"},
    {"json", NULL, false, "Print what came of it as JSON"},
    {"stats", NULL, false,
     "Tell how many tokens there were and how fast they came, on stderr; a terminal is told anyway"},
    {"receipt", "FILE", false, "Write a receipt, with which 'samebit verify' computes it again"},
    {"sign", "KEY.pem", false, "Sign the receipt with a private Ed25519 key"},
    LANGUAGE_MODEL_OPTIONS,
    LANGUAGE_MODEL_RUN_OPTIONS,
    {0},
};

/* ---- what is asked for ---- */

/* The tokens of a conversation that --prompt goes on with. The template writes the tokens that texts begin with. */
static int read_chat(const arguments *arguments, const sb_tokenizer *tokenizer, int64_t **tokens, int64_t *count) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    char *said, *text = NULL;
    size_t said_bytes, bytes = 0;
    options.bare = true;
    int code = read_text_argument(option_value(arguments, "prompt"), &said, &said_bytes);
    if (code != EXIT_RIGHT)
        return code;
    code = write_chat(arguments, arguments->positional[0], said, said_bytes, &text, &bytes);
    free(said);
    if (code == EXIT_RIGHT)
        code = encode_text(tokenizer, &options, text, bytes, tokens, count);
    if (code == EXIT_RIGHT && *count == 0)
        code = usage_error("--chat: the template writes nothing that has tokens");
    sb_llm_free(text);
    return code;
}

/* The prompt's tokens, to be freed. `tokenizer` is NULL where no text is given. */
static int read_prompt(const arguments *arguments, const sb_llm *llm, const sb_tokenizer *tokenizer, int64_t **tokens,
                       int64_t *count) {
    const char *ids = option_value(arguments, "tokens"), *text = option_value(arguments, "prompt");
    int64_t begin = sb_llm_describe(llm)->begin;
    if (text != NULL && has_option(arguments, "chat"))
        return read_chat(arguments, tokenizer, tokens, count);
    if (text != NULL) {
        int code = encode_argument(arguments, tokenizer, text, tokens, count);
        if (code == EXIT_RIGHT && *count == 0)
            return usage_error("--prompt: the text has no tokens, and the tokenizer puts none before it");
        return code;
    }
    if (ids != NULL)
        return read_token_ids("--tokens", ids, strlen(ids), tokens, count);
    if (begin < 0)
        return usage_error("the checkpoint names no token that texts begin with: give --prompt or --tokens");
    *tokens = malloc(sizeof **tokens);
    *count = 1;
    if (*tokens == NULL)
        return out_of_memory();
    **tokens = begin;
    return EXIT_RIGHT;
}

static bool read_real(const arguments *arguments, const char *name, double least, double most, float *number) {
    const char *text = option_value(arguments, name);
    double value;
    if (text == NULL)
        return true;
    if (!parse_number(text, &value) || !(value >= least && value <= most)) {
        usage_error("--%s %s: a number from %g to %g is expected", name, text, least, most);
        return false;
    }
    *number = (float)value;
    return true;
}

static bool read_generation(const arguments *arguments, sb_llm_generation *generation) {
    long long count = generation->limit, chunk = 0, top_k = 0, seed = 0, request = 0;
    sb_llm_sampling *sampling = &generation->sampling;
    if (!read_count(arguments, "count", 0, 1LL << 40, &count) ||
        !read_count(arguments, "prefill-chunk", 1, 512, &chunk) ||
        !read_count(arguments, "top-k", 0, 1LL << 40, &top_k) || !read_count(arguments, "seed", 0, INT64_MAX, &seed) ||
        !read_count(arguments, "request", 0, UINT32_MAX, &request) ||
        !read_real(arguments, "temperature", 0, 0x1p20, &sampling->temperature) ||
        !read_real(arguments, "top-p", 1e-6, 1, &sampling->top_p) ||
        !read_real(arguments, "min-p", 0, 1, &sampling->min_p))
        return false;
    generation->limit = count;
    generation->chunk = chunk;
    generation->ignore_stops = has_option(arguments, "ignore-stops");
    generation->score_prompt = has_option(arguments, "score-prompt");
    sampling->top_k = top_k;
    sampling->seed = (uint64_t)seed;
    sampling->request = (uint32_t)request;
    return true;
}

/* ---- what is told ---- */

static const char *end_name(sb_llm_end end) {
    static const char *const names[] = {"limit", "stop", "context", "caller"};
    return names[end];
}

static void print_result(const arguments *arguments, const sb_llm_result *result) {
    if (!has_option(arguments, "logprobs"))
        printf("\n");
    if (has_option(arguments, "digest"))
        printf("%s\n", result->digest);
}

/* How fast it was, for whoever watches or asks. */
static void print_statistics(const arguments *arguments, const sb_llm_result *result) {
    char prompt[TEXT_BYTES], first[TEXT_BYTES], each[TEXT_BYTES];
    if (!has_option(arguments, "stats") && !isatty(STDERR_FILENO))
        return;
    int64_t steps = result->new_tokens > 1 ? result->new_tokens - 1 : 0;
    fprintf(stderr, "%lld tokens of the prompt in %s (%.1f/s); %lld new", (long long)result->prompt_tokens,
            duration(result->prompt_ns, prompt), (double)result->prompt_tokens * 1e9 / result->prompt_ns,
            (long long)result->new_tokens);
    if (result->new_tokens > 0)
        fprintf(stderr, ", the first after %s", duration(result->first_token_ns, first));
    if (steps > 0)
        fprintf(stderr, ", then %s each (%.1f/s)", duration(result->decode_ns / (double)steps, each),
                (double)steps * 1e9 / result->decode_ns);
    fprintf(stderr, "; ended by %s\n", end_name(result->end));
}

static json_t *result_json(const sb_llm_result *result, const telling *told) {
    json_t *json =
        json_pack("{s:O, s:s, s:I, s:I, s:s, s:f, s:f, s:f}", "tokens", told->tokens, "digest", result->digest,
                  "prompt_tokens", (json_int_t)result->prompt_tokens, "new_tokens", (json_int_t)result->new_tokens,
                  "end", end_name(result->end), "prompt_ms", result->prompt_ns / 1e6, "first_token_ms",
                  result->first_token_ns / 1e6, "decode_ms", result->decode_ns / 1e6);
    if (json != NULL && told->tokenizer != NULL)
        json_object_set_new(json, "text", told_text(told));
    return json;
}

/* ---- receipts ---- */

/* What would only be found out when all is done. */
static int check_receipt(const arguments *arguments) {
    const char *key = option_value(arguments, "sign");
    sb_error error;
    if (key == NULL)
        return EXIT_RIGHT;
    if (!has_option(arguments, "receipt"))
        return usage_error("--sign needs --receipt FILE");
    return sb_llm_key_check(key, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

static int write_receipt(const arguments *arguments, sb_llm_receipt *receipt) {
    const char *key = option_value(arguments, "sign");
    sb_error error;
    if (key != NULL && sb_llm_receipt_sign(receipt, key, &error) != SB_OK)
        return report(&error);
    return sb_llm_receipt_save(receipt, option_value(arguments, "receipt"), &error) == SB_OK ? EXIT_RIGHT
                                                                                             : report(&error);
}

/* ---- running ---- */

static sb_llm_session *interruptible;

static void interrupt(int signal) {
    (void)signal;
    sb_llm_session_interrupt(interruptible);
}

/* Generates, with what is told of it in `to`. */
static int tell_all(const arguments *arguments, sb_llm *llm, sb_llm_session *session, sb_llm_generation *generation,
                    telling *to) {
    int64_t *tokens = NULL, count = 0;
    sb_error error;
    sb_llm_result result;
    sb_llm_receipt *receipt = NULL;
    int code = read_prompt(arguments, llm, to->tokenizer, &tokens, &count);
    generation->on_token = tell_token;
    generation->context = to;
    generation->receipt = has_option(arguments, "receipt") ? &receipt : NULL;
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    interruptible = session;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    if (code == EXIT_RIGHT && (sb_llm_generate(session, count, tokens, generation, &result, &error) != SB_OK ||
                               tell_rest(to, &error) != SB_OK)) {
        if (to->form != TELL_JSON)
            printf("\n");
        code = report(&error);
    } else if (code == EXIT_RIGHT && to->form == TELL_JSON) {
        code = print_json_value(stdout, result_json(&result, to)) ? EXIT_RIGHT : EXIT_FAILED;
    } else if (code == EXIT_RIGHT) {
        print_result(arguments, &result);
    }
    if (code == EXIT_RIGHT)
        print_statistics(arguments, &result);
    if (receipt != NULL && code == EXIT_RIGHT)
        code = write_receipt(arguments, receipt);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sb_llm_receipt_release(receipt);
    free(tokens);
    return code;
}

/* The tokenizer, where text is asked for; else NULL. */
static int open_tokenizer(const arguments *arguments, sb_tokenizer **tokenizer) {
    const char *path = option_value(arguments, "tokenizer");
    bool text = has_option(arguments, "prompt");
    sb_error error;
    if (text && has_option(arguments, "tokens"))
        return usage_error("--prompt and --tokens are two prompts: give one");
    bool bare = has_option(arguments, "bare"), plain = has_option(arguments, "plain");
    if (!text && (bare || plain))
        return usage_error("--bare and --plain are for --prompt");
    if (!text && path == NULL)
        return EXIT_RIGHT;
    return sb_tokenizer_open(path != NULL ? path : arguments->positional[0], tokenizer, &error) == SB_OK
               ? EXIT_RIGHT
               : report(&error);
}

int run_generate(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_device *device = NULL;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_tokenizer *tokenizer = NULL;
    telling told = {0};
    sb_error error;
    if (!check_chat(arguments) || !read_generation(arguments, &generation) || !read_model_options(arguments, &model) ||
        !read_session_options(arguments, &options))
        return EXIT_USAGE;
    int code = check_receipt(arguments);
    if (code == EXIT_RIGHT)
        code = open_tokenizer(arguments, &tokenizer);
    if (code == EXIT_RIGHT)
        code = open_device(arguments, &options, &device);
    if (code == EXIT_RIGHT)
        code = load_language_model(arguments, &model, has_option(arguments, "receipt"), &llm);
    if (code == EXIT_RIGHT && sb_llm_session_create(llm, &options, &session, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = begin_telling(arguments, tokenizer, &told);
    if (code == EXIT_RIGHT)
        code = tell_all(arguments, llm, session, &generation, &told);
    end_telling(&told);
    sb_tokenizer_release(tokenizer);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(device);
    return code;
}
