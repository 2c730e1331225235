/* samebit generate: text goes on, token by token. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "language_model.h"
#include "placement.h"
#include "text.h"

const option generate_options[] = {
    {"tokens", "IDS", false, "The prompt: token ids with commas between; by default the token that texts begin with"},
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
    {"receipt", "FILE", false, "Write a receipt, with which 'samebit verify' computes it again"},
    {"sign", "KEY.pem", false, "Sign the receipt with a private Ed25519 key"},
    LANGUAGE_MODEL_OPTIONS,
    {"isa", "NAME", false, "Instruction set: scalar, avx2, avx512 or best"},
    {"no-passes", NULL, false, "Run the graph as it was built"},
    {"reference-evaluation", NULL, false,
     "Run the reference evaluation of every node: slow, the definition of the bits"},
    {"threads", "N", false, "Worker threads; 0 means one per processor"},
    {"memory-limit", "BYTES", false, "The most memory for the model, and for its runs, such as 500M or 2G"},
    {"device", "NAME", false, "Where to run: cpu, cuda, cuda:N, or auto for a GPU where there is one"},
    {"require-device", NULL, false, "Fail when a node cannot run on the device, and list all such nodes"},
    {0},
};

/* ---- what is asked for ---- */

static int read_tokens(const char *text, int64_t **tokens, int64_t *count) {
    size_t room = 1;
    for (const char *at = text; *at != '\0'; at++)
        room += *at == ',';
    *tokens = calloc(room, sizeof **tokens);
    *count = 0;
    if (*tokens == NULL)
        return out_of_memory();
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long long token = strtoll(at, &end, 10);
        if (end == at || errno != 0 || token < 0 || (*end != ',' && *end != '\0'))
            return usage_error("--tokens: '%.40s' does not begin with a token's number", at);
        (*tokens)[(*count)++] = token;
        at = end;
        if (*at == '\0')
            return EXIT_RIGHT;
    }
}

/* The prompt's tokens, to be freed. */
static int read_prompt(const arguments *arguments, const sb_llm *llm, int64_t **tokens, int64_t *count) {
    const char *ids = option_value(arguments, "tokens");
    int64_t begin = sb_llm_describe(llm)->begin;
    if (ids != NULL)
        return read_tokens(ids, tokens, count);
    if (begin < 0)
        return usage_error("the checkpoint names no token that texts begin with: give --tokens");
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

typedef struct telling {
    bool logprobs;
    json_t *tokens; /* NULL: printed as they come */
} telling;

/* As many digits as tell every f32 from the others. */
static json_t *logp_json(float logp) {
    return isfinite(logp) ? json_real((double)logp) : json_null();
}

static sb_status tell(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    const telling *to = context;
    (void)stop;
    (void)error;
    if (to->tokens != NULL) {
        json_t *entry = json_pack("{s:I, s:I, s:b}", "position", (json_int_t)token->position, "token",
                                  (json_int_t)token->token, "given", (int)token->given);
        if (to->logprobs && token->has_logp)
            json_object_set_new(entry, "logp", logp_json(token->logp));
        json_array_append_new(to->tokens, entry);
        return SB_OK;
    }
    if (to->logprobs)
        printf("%lld\t%lld\t%.9g\n", (long long)token->position, (long long)token->token,
               token->has_logp ? (double)token->logp : 0.0);
    else
        printf("%lld%s", (long long)token->token, token->stops ? "" : " ");
    fflush(stdout);
    return SB_OK;
}

static const char *end_name(sb_llm_end end) {
    static const char *const names[] = {"limit", "stop", "context", "caller"};
    return names[end];
}

static void print_result(const arguments *arguments, const sb_llm_result *result) {
    char first[TEXT_BYTES], each[TEXT_BYTES];
    if (!has_option(arguments, "logprobs"))
        printf("\n");
    if (has_option(arguments, "digest"))
        printf("%s\n", result->digest);
    int64_t steps = result->new_tokens > 1 ? result->new_tokens - 1 : 0;
    fprintf(stderr, "%lld tokens behind %lld; the first after %s", (long long)result->new_tokens,
            (long long)result->prompt_tokens, duration(result->first_token_ns, first));
    if (steps > 0)
        fprintf(stderr, ", then %s each (%.1f/s)", duration(result->decode_ns / (double)steps, each),
                (double)steps * 1e9 / result->decode_ns);
    fprintf(stderr, "; ended by %s\n", end_name(result->end));
}

static json_t *result_json(const sb_llm_result *result, json_t *tokens) {
    return json_pack("{s:O, s:s, s:I, s:I, s:s, s:f, s:f, s:f}", "tokens", tokens, "digest", result->digest,
                     "prompt_tokens", (json_int_t)result->prompt_tokens, "new_tokens", (json_int_t)result->new_tokens,
                     "end", end_name(result->end), "prompt_ms", result->prompt_ns / 1e6, "first_token_ms",
                     result->first_token_ns / 1e6, "decode_ms", result->decode_ns / 1e6);
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

static int generate(const arguments *arguments, sb_llm *llm, sb_llm_session *session, sb_llm_generation *generation) {
    int64_t *tokens = NULL, count = 0;
    sb_error error;
    sb_llm_result result;
    bool as_json = has_option(arguments, "json");
    telling to = {has_option(arguments, "logprobs"), as_json ? json_array() : NULL};
    sb_llm_receipt *receipt = NULL;
    int code = read_prompt(arguments, llm, &tokens, &count);
    generation->on_token = tell;
    generation->context = &to;
    generation->receipt = has_option(arguments, "receipt") ? &receipt : NULL;
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    interruptible = session;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    if (code == EXIT_RIGHT && sb_llm_generate(session, count, tokens, generation, &result, &error) != SB_OK) {
        if (!as_json)
            printf("\n");
        code = report(&error);
    } else if (code == EXIT_RIGHT && as_json) {
        code = print_json_value(stdout, result_json(&result, to.tokens)) ? EXIT_RIGHT : EXIT_FAILED;
    } else if (code == EXIT_RIGHT) {
        print_result(arguments, &result);
    }
    if (receipt != NULL && code == EXIT_RIGHT)
        code = write_receipt(arguments, receipt);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sb_llm_receipt_release(receipt);
    json_decref(to.tokens);
    free(tokens);
    return code;
}

int run_generate(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_device *device = NULL;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_error error;
    if (!read_generation(arguments, &generation) || !read_model_options(arguments, &model) ||
        !read_session_options(arguments, &options))
        return EXIT_USAGE;
    int code = check_receipt(arguments);
    if (code == EXIT_RIGHT)
        code = open_device(arguments, &options, &device);
    if (code == EXIT_RIGHT)
        code = load_language_model(arguments, &model, has_option(arguments, "receipt"), &llm);
    if (code == EXIT_RIGHT && sb_llm_session_create(llm, &options, &session, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = generate(arguments, llm, session, &generation);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(device);
    return code;
}
