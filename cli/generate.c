/* samebit generate: text goes on, token by token. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chat.h"
#include "commands.h"
#include "constraining.h"
#include "converse.h"
#include "generate_many.h"
#include "language_model.h"
#include "placement.h"
#include "progress.h"
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
    {"temperature", "T", false,
     "Sample at this temperature; 0 takes the likeliest token. By default what the checkpoint suggests in "
     "generation_config.json or a GGUF file's keys, and 0 where it says nothing; so for the next three and "
     "--repetition-penalty"},
    {"top-k", "K", false, "Sample from the K likeliest tokens; 0 from all"},
    {"top-p", "P", false,
     "Sample from the fewest of the likeliest tokens that have this probability together; 1 from all"},
    {"min-p", "P", false, "Sample from tokens with at least this share of the likeliest one's probability; 0 from all"},
    {"no-defaults", NULL, false, "Take no settings of sampling from the checkpoint"},
    PENALTY_OPTIONS,
    {"seed", "N", false, "The seed of sampling; 0 by default"},
    {"request", "N", false, "Which of several requests with one seed this is; 0 by default"},
    {"stop", "TEXT", true, "End where the text has come to TEXT, which is left out"},
    CONSTRAINT_OPTIONS,
    {"ignore-stops", NULL, false, "Go on behind tokens that end a text"},
    MANY_OPTIONS,
    {"prefill-chunk", "N", false,
     "The most tokens of the prompt in one run, up to 2,048, which a device usually has; else 512. Changes no bit"},
    {"logprobs", NULL, false, "Print each token's log-probability"},
    {"top-logprobs", "N", false,
     "With --json: the N likeliest tokens of each step and their log-probabilities, up to 100"},
    {"score-prompt", NULL, false, "Print the prompt's tokens too, with what the model made of them"},
    {"digest", NULL, false, "Print the SHA-256 digest of the tokens and of the logits that they came from"},
    {"json", NULL, false, "Print what came of it as JSON"},
    {"stats", NULL, false,
     "Tell how many tokens there were and how fast they came, on stderr; a terminal is told anyway"},
    {"receipt", "FILE", false,
     "Write a receipt, with which 'samebit verify' computes it again; with --batch and --samples a folder, for "
     "LINE-SAMPLE.json of each "
     "answer"},
    {"sign", "KEY.pem", false, "Sign receipts with a private Ed25519 key"},
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
    sb_chat_template *chat = NULL;
    sb_llm_date date;
    sb_error error;
    int code = read_chat_date(arguments, &date)
                   ? read_text_argument(option_value(arguments, "prompt"), &said, &said_bytes)
                   : EXIT_USAGE;
    if (code != EXIT_RIGHT)
        return code;
    json_t *messages = NULL;
    code = begin_chat(arguments, &messages);
    if (code == EXIT_RIGHT && !add_chat_message(messages, "user", said, said_bytes))
        code = usage_error("--prompt has to be UTF-8");
    free(said);
    if (code == EXIT_RIGHT && (sb_chat_template_load(arguments->positional[0], &chat, &error) != SB_OK ||
                               write_chat(chat, &date, messages, &text, &bytes, &error) != SB_OK))
        code = report(&error);
    json_decref(messages);
    sb_chat_template_free(chat);
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

/* The options that say how, and the checkpoint's suggestions where there are none. Exit codes as in options.h. */
static int read_generation(const arguments *arguments, sb_llm_generation *generation) {
    sb_llm_sampling *sampling = &generation->sampling;
    sb_error error;
    if (!has_option(arguments, "no-defaults") &&
        sb_llm_suggest_sampling(arguments->positional[0], sampling, &error) != SB_OK) {
        /* A file that is damaged elsewhere is of no use without its suggestions either. */
        size_t said = strlen(error.message);
        if (strstr(error.message, "generation_config.json") != NULL ||
            strstr(error.message, "general.sampling.") != NULL)
            snprintf(error.message + said, sizeof error.message - said, "; --no-defaults does without");
        return report(&error);
    }
    long long count = generation->limit, chunk = 0, top_k = sampling->top_k, seed = 0, request = 0;
    if (!read_count(arguments, "count", 0, 1LL << 40, &count) ||
        !read_count(arguments, "prefill-chunk", 1, 2048, &chunk) ||
        !read_count(arguments, "top-k", 0, 1LL << 40, &top_k) || !read_count(arguments, "seed", 0, INT64_MAX, &seed) ||
        !read_count(arguments, "request", 0, UINT32_MAX, &request) ||
        !read_real(arguments, "temperature", 0, 0x1p20, &sampling->temperature) ||
        !read_real(arguments, "top-p", 1e-6, 1, &sampling->top_p) ||
        !read_real(arguments, "min-p", 0, 1, &sampling->min_p) || !read_penalties(arguments, sampling))
        return EXIT_USAGE;
    generation->limit = count;
    generation->chunk = chunk;
    generation->ignore_stops = has_option(arguments, "ignore-stops");
    generation->score_prompt = has_option(arguments, "score-prompt");
    sampling->top_k = top_k;
    sampling->seed = (uint64_t)seed;
    sampling->request = (uint32_t)request;
    return EXIT_RIGHT;
}

/* What of the checkpoint has a say in how tokens are chosen; NULL: nothing. */
static const char *suggesting(const arguments *arguments) {
    const sb_llm_sampling standard = SB_LLM_SAMPLING_DEFAULT;
    const char *path = arguments->positional[0];
    sb_llm_sampling suggested;
    struct stat info;
    bool any = !has_option(arguments, "no-defaults") && stat(path, &info) == 0 &&
               sb_llm_suggest_sampling(path, &suggested, NULL) == SB_OK &&
               (suggested.temperature != standard.temperature || suggested.top_k != standard.top_k ||
                suggested.top_p != standard.top_p || suggested.min_p != standard.min_p ||
                suggested.repetition_penalty != standard.repetition_penalty);
    return !any ? NULL : S_ISDIR(info.st_mode) ? "generation_config.json" : "general.sampling of the GGUF file";
}

/* ---- what is told ---- */

static void print_result(const arguments *arguments, const sb_llm_result *result) {
    if (!has_option(arguments, "logprobs"))
        printf("\n");
    if (has_option(arguments, "digest"))
        printf("%s\n", result->digest);
}

/* The most memory that was in use, and of how much: of the device, else of the process, with the files' pages that it has touched. */
static void print_memory(const arguments *arguments, const sb_device *device) {
    char used[TEXT_BYTES], of[TEXT_BYTES];
    const char *limit = option_value(arguments, "memory-limit");
    double most, all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    long long bytes;
    struct rusage usage = {0};
    if (device != NULL) {
        sb_device_counters counters;
        sb_device_list *list;
        sb_device_count(device, &counters);
        if (sb_device_list_create(NULL, &list, NULL) != SB_OK)
            return;
        most = (double)counters.device_bytes_most;
        all = 0;
        if (sb_device_index(device) < sb_device_list_count(list))
            all = (double)sb_device_list_at(list, sb_device_index(device))->memory_bytes;
        sb_device_list_release(list);
    } else {
        getrusage(RUSAGE_SELF, &usage);
        most = 1024.0 * (double)usage.ru_maxrss;
    }
    bool limited = limit != NULL && parse_bytes(limit, &bytes) && bytes > 0;
    all = limited ? (double)bytes : all;
    fprintf(stderr, "; memory: %s", bytes_text(most, used));
    if (all > 0)
        fprintf(stderr, ", %.1f %% of %s%s", 100 * most / all,
                limited          ? "the limit of "
                : device != NULL ? "the device's "
                                 : "the machine's ",
                bytes_text(all, of));
}

/* How fast it was, for whoever watches or asks. */
static void print_statistics(const arguments *arguments, const sb_llm_result *result, const telling *told,
                             const sb_device *device) {
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
    fprintf(stderr, "; ended by %s", generation_end_name(result->end, told->answer.watch.found));
    print_memory(arguments, device);
    fprintf(stderr, "\n");
}

static json_t *result_json(const sb_llm_result *result, const telling *told) {
    json_t *json = json_pack(
        "{s:O, s:s, s:I, s:I, s:s, s:f, s:f, s:f}", "tokens", told->tokens, "digest", result->digest, "prompt_tokens",
        (json_int_t)result->prompt_tokens, "new_tokens", (json_int_t)result->new_tokens, "end",
        generation_end_name(result->end, told->answer.watch.found), "prompt_ms", result->prompt_ns / 1e6,
        "first_token_ms", result->first_token_ns / 1e6, "decode_ms", result->decode_ns / 1e6);
    if (json != NULL && told->tokenizer != NULL)
        json_object_set_new(json, "text", told_text(told));
    return json;
}

/* ---- receipts ---- */

/* What would only be found out when all is done. */
static int check_receipt(const arguments *arguments, bool many) {
    const char *key = option_value(arguments, "sign"), *path = option_value(arguments, "receipt");
    sb_error error;
    if (key != NULL && path == NULL)
        return usage_error("--sign needs --receipt FILE");
    if (key != NULL && sb_llm_key_check(key, &error) != SB_OK)
        return report(&error);
    return path != NULL && many ? make_receipts_folder(path) : EXIT_RIGHT;
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
static int tell_all(const arguments *arguments, sb_llm *llm, sb_llm_session *session, const sb_device *device,
                    sb_llm_generation *generation, telling *to) {
    int64_t *tokens = NULL, count = 0;
    sb_error error;
    sb_llm_result result;
    sb_llm_receipt *receipt = NULL;
    char weights[TEXT_BYTES];
    int code = read_prompt(arguments, llm, to->tokenizer, &tokens, &count);
    to->vocabulary = sb_llm_describe(llm)->vocabulary;
    generation->on_token = tell_token;
    generation->no_logps = !has_option(arguments, "logprobs");
    generation->no_digest = !has_option(arguments, "digest") && !has_option(arguments, "json");
    generation->no_logits = to->top == 0;
    generation->context = to;
    generation->receipt = has_option(arguments, "receipt") ? &receipt : NULL;
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    interruptible = session;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    if (code == EXIT_RIGHT && to->form != TELL_JSON)
        print_settings(llm, generation, suggesting(arguments));
    if (code == EXIT_RIGHT)
        show_progress("weights of %s, and a prompt of %lld tokens",
                      bytes_text((double)sb_llm_describe(llm)->weight_bytes, weights), (long long)count);
    sb_status status = SB_OK;
    if (code == EXIT_RIGHT)
        status = sb_llm_generate(session, count, tokens, generation, &result, &error);
    clear_progress();
    if (code == EXIT_RIGHT && (status != SB_OK || tell_rest(to, &error) != SB_OK)) {
        if (to->form != TELL_JSON)
            printf("\n");
        code = report(&error);
    } else if (code == EXIT_RIGHT && to->form == TELL_JSON) {
        json_t *json = result_json(&result, to);
        json_object_set_new(json, "settings", settings_json(llm, generation));
        code = print_json_value(stdout, json) ? EXIT_RIGHT : EXIT_FAILED;
    } else if (code == EXIT_RIGHT) {
        print_result(arguments, &result);
    }
    if (code == EXIT_RIGHT)
        print_statistics(arguments, &result, to, device);
    if (receipt != NULL && code == EXIT_RIGHT)
        code = write_receipt(arguments, receipt);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sb_llm_receipt_release(receipt);
    free(tokens);
    return code;
}

/* The tokenizer, where a prompt is a text, or what comes of it is asked for; else NULL. */
static int open_tokenizer(const arguments *arguments, bool text, sb_tokenizer **tokenizer) {
    const char *path = option_value(arguments, "tokenizer");
    sb_error error;
    bool bare = has_option(arguments, "bare"), plain = has_option(arguments, "plain");
    if (!text && (bare || plain))
        return usage_error("--bare and --plain are for --prompt");
    if (!text && path == NULL && !has_option(arguments, "stop") && !is_constrained(arguments))
        return EXIT_RIGHT;
    return sb_tokenizer_open(path != NULL ? path : arguments->positional[0], tokenizer, &error) == SB_OK
               ? EXIT_RIGHT
               : report(&error);
}

/* ---- many ---- */

/* What options say of each request. */
static bool read_defaults(const arguments *arguments, const sb_llm_generation *generation, request *defaults) {
    long long samples = 1;
    *defaults = (request){.line = 1,
                          .limit = generation->limit,
                          .ignore_stops = generation->ignore_stops,
                          .sampling = generation->sampling};
    const char *stop;
    for (int i = 0; (stop = option_value_at(arguments, "stop", i)) != NULL; i++) {
        if (*stop == '\0') {
            usage_error("--stop: a text that is not empty is expected");
            return false;
        }
        if (!add_stop_text(&defaults->stops, stop)) {
            out_of_memory();
            return false;
        }
    }
    if (!read_count(arguments, "samples", 1, 4096, &samples))
        return false;
    defaults->samples = samples;
    return true;
}

/* Requests of --batch, if there is one: before anything is loaded. *text says whether a tokenizer is needed. */
static int read_batch(const arguments *arguments, const request *defaults, request_list *list, bool *text) {
    static const char *const others[] = {"prompt", "tokens", "chat", "score-prompt", "top-logprobs"};
    static const char *const own[] = {"parallel", "pages", "no-digest"};
    const char *path = option_value(arguments, "batch");
    bool many = path != NULL || defaults->samples > 1;
    *text = has_option(arguments, "prompt") || is_conversation(arguments);
    if (*text && has_option(arguments, "tokens"))
        return usage_error("--prompt and --tokens are two prompts: give one");
    for (size_t i = path != NULL ? 0 : 3; i < sizeof others / sizeof *others && many; i++) {
        if (has_option(arguments, others[i]))
            return usage_error("--%s does not go with --%s", others[i], path != NULL ? "batch" : "samples");
    }
    for (size_t i = 0; i < sizeof own / sizeof *own && !many; i++) {
        if (has_option(arguments, own[i]))
            return usage_error("--%s is for --batch and --samples", own[i]);
    }
    if (path == NULL)
        return EXIT_RIGHT;
    int code = read_requests(path, defaults, list);
    for (int64_t i = 0; i < list->count && code == EXIT_RIGHT; i++)
        *text = *text || list->all[i].tokens == NULL || list->all[i].stops.count > 0;
    return code;
}

/* The only prompt, of which several samples are wanted. */
static int read_only(const arguments *arguments, const sb_llm *llm, const sb_tokenizer *tokenizer,
                     const request *defaults, request_list *list) {
    if (list->count > 0)
        return EXIT_RIGHT;
    list->all = calloc(1, sizeof *list->all);
    if (list->all == NULL)
        return out_of_memory();
    list->count = 1;
    *list->all = *defaults;
    list->all->stops = (stop_texts){0};
    if (!copy_stop_texts(&defaults->stops, &list->all->stops))
        return out_of_memory();
    return read_prompt(arguments, llm, tokenizer, &list->all->tokens, &list->all->token_count);
}

/* ---- the command ---- */

/* One prompt, whose text is told as it comes. */
static int generate_one(const arguments *arguments, sb_llm *llm, const sb_session_options *options,
                        const sb_tokenizer *tokenizer, const stop_texts *stops, sb_llm_generation *generation) {
    sb_llm_session *session = NULL;
    telling told = {0};
    sb_error error;
    int64_t fit;
    int code = read_cache_memory(arguments, llm, sb_llm_describe(llm)->context, &fit);
    if (code == EXIT_RIGHT && sb_llm_session_create(llm, options, &session, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = begin_telling(arguments, tokenizer, stops, &told);
    if (code == EXIT_RIGHT)
        code = tell_all(arguments, llm, session, options->device, generation, &told);
    end_telling(&told);
    sb_llm_session_destroy(session);
    return code;
}

/* With what was read: `list` has the requests of --batch. */
static int generate(const arguments *arguments, sb_session_options *options, const sb_model_options *model,
                    sb_llm_generation *generation, const request *defaults, request_list *list, bool text) {
    sb_device *device = NULL;
    sb_llm *llm = NULL;
    sb_tokenizer *tokenizer = NULL;
    sb_llm_logit_bias *biases = NULL;
    bool many = list->count > 0 || defaults->samples > 1;
    int code = check_receipt(arguments, many);
    if (code == EXIT_RIGHT)
        code = open_tokenizer(arguments, text, &tokenizer);
    if (code == EXIT_RIGHT)
        code = read_biases(arguments, &generation->sampling, &biases);
    if (code == EXIT_RIGHT)
        code = open_constraint(arguments, tokenizer, &generation->constraint);
    if (code == EXIT_RIGHT)
        code = open_device(arguments, options, &device);
    if (code == EXIT_RIGHT)
        code = load_language_model(arguments, model, has_option(arguments, "receipt"), &llm);
    if (code == EXIT_RIGHT && is_conversation(arguments)) {
        print_settings(llm, generation, suggesting(arguments));
        code = converse(arguments, llm, options, tokenizer, &defaults->stops, generation);
    } else if (code == EXIT_RIGHT && !many) {
        code = generate_one(arguments, llm, options, tokenizer, &defaults->stops, generation);
    } else if (code == EXIT_RIGHT) {
        code = read_only(arguments, llm, tokenizer, defaults, list);
        if (code == EXIT_RIGHT)
            code = generate_many(arguments, llm, options, tokenizer, generation, list);
    }
    sb_llm_constraint_release(generation->constraint);
    free(biases);
    sb_tokenizer_release(tokenizer);
    sb_llm_release(llm);
    sb_device_release(device);
    return code;
}

int run_generate(const arguments *arguments) {
    sb_model_options model;
    sb_session_options options;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    request defaults = {0};
    request_list list = {0};
    bool text;
    int code = check_chat(arguments) ? read_generation(arguments, &generation) : EXIT_USAGE;
    if (code == EXIT_RIGHT)
        code = read_model_options(arguments, &model) && read_session_options(arguments, &options) &&
                       read_defaults(arguments, &generation, &defaults)
                   ? read_batch(arguments, &defaults, &list, &text)
                   : EXIT_USAGE;
    if (code == EXIT_RIGHT)
        code = generate(arguments, &options, &model, &generation, &defaults, &list, text);
    free_requests(&list);
    free_request(&defaults);
    return code;
}
