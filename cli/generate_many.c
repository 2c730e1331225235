#include "generate_many.h"

#include "language_model.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "answer_text.h"
#include "chat.h"
#include "progress.h"
#include "running.h"
#include "telling.h"
#include "text.h"
#include "tokenizing.h"

/* ---- the file ---- */

static int read_line(const char *path, const char *line, size_t bytes, int64_t number, const request *defaults,
                     request_list *list) {
    char why[REQUEST_WHY_BYTES];
    request *more = realloc(list->all, ((size_t)list->count + 1) * sizeof *more);
    if (more == NULL)
        return out_of_memory();
    list->all = more;
    if (!read_request(line, bytes, defaults, &more[list->count], why))
        return usage_error("%s: line %lld: %s", path, (long long)number, why);
    more[list->count++].line = number;
    return EXIT_RIGHT;
}

static bool is_blank(const char *line, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (strchr(" \t\r", line[i]) == NULL || line[i] == '\0')
            return false;
    }
    return true;
}

int read_requests(const char *path, const request *defaults, request_list *list) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int64_t number = 0;
    int code = EXIT_RIGHT;
    ssize_t bytes;
    if (file == NULL) {
        fprintf(stderr, "samebit: cannot read %s: %s\n", path, strerror(errno));
        return EXIT_FAILED;
    }
    while (code == EXIT_RIGHT && (bytes = getline(&line, &room, file)) >= 0) {
        size_t size = (size_t)bytes - (bytes > 0 && line[bytes - 1] == '\n');
        number++;
        if (!is_blank(line, size))
            code = read_line(path, line, size, number, defaults, list);
    }
    if (code == EXIT_RIGHT && ferror(file)) {
        fprintf(stderr, "samebit: cannot read %s: %s\n", path, strerror(errno));
        code = EXIT_FAILED;
    }
    if (code == EXIT_RIGHT && list->count == 0)
        code = usage_error("%s: there are no requests", path);
    free(line);
    if (file != stdin)
        fclose(file);
    return code;
}

void free_requests(request_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        free_request(&list->all[i]);
    free(list->all);
    *list = (request_list){0};
}

int make_receipts_folder(const char *path) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return EXIT_RIGHT;
    fprintf(stderr, "samebit: --receipt %s: with --batch or --samples a folder is expected: %s\n", path,
            strerror(errno));
    return EXIT_FAILED;
}

/* ---- answers ---- */

typedef struct many many;

/* What comes of a sample of a request. */
typedef struct answer {
    many *of;
    const request *asked;
    int64_t sample;
    bool ended;
    json_t *tokens, *logps;
    answer_text text;
    sb_llm_receipt *receipt; /* NULL: none is wanted, or it has not ended */
    sb_status status;
    sb_error error;
    sb_llm_result result;
} answer;

struct many {
    const sb_tokenizer *tokenizer;
    const char *receipts, *key; /* the folder for receipts, and with what they are signed; NULL: none, without */
    bool logprobs, no_digest, failed;
    answer *answers;
    int64_t count, printed;
    int64_t new_tokens; /* of all so far */
};

static sb_status take_token(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    answer *to = context;
    size_t before;
    to->of->new_tokens++;
    if (json_array_append_new(to->tokens, json_integer(token->token)) != 0)
        return run_out(error);
    if (to->of->logprobs &&
        json_array_append_new(to->logps, isfinite(token->logp) ? json_real((double)token->logp) : json_null()) != 0)
        return run_out(error);
    sb_status status = push_answer_text(&to->text, token, &before, error);
    *stop = to->text.watch.found;
    return status;
}

/* The file of an answer's receipt; false where its name is too long. */
static bool name_receipt(const answer *a, char *path, size_t bytes) {
    int length =
        snprintf(path, bytes, "%s/%lld-%lld.json", a->of->receipts, (long long)a->asked->line, (long long)a->sample);
    return length > 0 && (size_t)length < bytes;
}

static sb_status save_receipt(const answer *a, sb_error *error) {
    char path[PATH_MAX];
    if (!name_receipt(a, path, sizeof path)) {
        snprintf(error->message, sizeof error->message, "%.300s: the name is too long for receipts", a->of->receipts);
        return error->status = SB_ERROR_IO;
    }
    sb_status status = a->of->key != NULL ? sb_llm_receipt_sign(a->receipt, a->of->key, error) : SB_OK;
    return status == SB_OK ? sb_llm_receipt_save(a->receipt, path, error) : status;
}

static json_t *answer_json(const answer *a) {
    json_t *json = json_pack("{s:I, s:I}", "line", (json_int_t)a->asked->line, "sample", (json_int_t)a->sample);
    if (a->text.text != NULL)
        json_object_set_new(json, "text", json_stringn(a->text.text, a->text.bytes));
    json_object_set(json, "tokens", a->tokens);
    if (a->of->logprobs)
        json_object_set(json, "logprobs", a->logps);
    if (a->status != SB_OK) {
        json_object_set_new(json, "error", json_string(a->error.message));
        return json;
    }
    json_object_set_new(json, "end", json_string(generation_end_name(a->result.end, a->text.watch.found)));
    json_object_set_new(json, "prompt_tokens", json_integer(a->result.prompt_tokens));
    json_object_set_new(json, "new_tokens", json_integer(a->result.new_tokens));
    if (!a->of->no_digest)
        json_object_set_new(json, "digest", json_string(a->result.digest));
    char path[PATH_MAX];
    if (a->of->receipts != NULL && name_receipt(a, path, sizeof path))
        json_object_set_new(json, "receipt", text_json(path));
    return json;
}

/* Prints those that have ended and behind which none is missing. */
static void print_ended(many *of) {
    clear_progress();
    for (; of->printed < of->count && of->answers[of->printed].ended; of->printed++) {
        json_t *json = answer_json(&of->answers[of->printed]);
        if (json == NULL || json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0)
            of->failed = true;
        printf("\n");
        json_decref(json);
    }
    fflush(stdout);
}

static void take_end(void *context, sb_status status, const sb_error *error, const sb_llm_result *result) {
    answer *a = context;
    size_t before;
    a->ended = true;
    a->status = status;
    if (status == SB_OK) {
        a->result = *result;
        a->status = finish_answer_text(&a->text, &before, &a->error);
        if (a->status == SB_OK && a->receipt != NULL)
            a->status = save_receipt(a, &a->error);
    } else {
        a->error = *error;
    }
    sb_llm_receipt_release(a->receipt);
    a->receipt = NULL;
    a->of->failed = a->of->failed || a->status != SB_OK;
    print_ended(a->of);
}

static int begin_answer(many *of, const request *asked, int64_t sample, answer *a) {
    sb_error error;
    *a = (answer){.of = of, .asked = asked, .sample = sample, .tokens = json_array(), .logps = json_array()};
    if (a->tokens == NULL || a->logps == NULL)
        return out_of_memory();
    return begin_answer_text(of->tokenizer, &asked->stops, &a->text, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

static void free_answers(many *of) {
    for (int64_t i = 0; i < of->count; i++) {
        answer *a = &of->answers[i];
        json_decref(a->tokens);
        json_decref(a->logps);
        free_answer_text(&a->text);
        sb_llm_receipt_release(a->receipt);
    }
    free(of->answers);
}

/* ---- what runs ---- */

/* The text that the checkpoint's template writes of a conversation, to be freed by sb_llm_free. */
static int write_messages(const arguments *arguments, const request *r, sb_chat_template **chat, char **text,
                          size_t *bytes) {
    sb_llm_date date;
    sb_error error;
    if (!read_chat_date(arguments, &date))
        return EXIT_USAGE;
    if (*chat == NULL && sb_chat_template_load(arguments->positional[0], chat, &error) != SB_OK)
        return report(&error);
    if (write_chat(*chat, &date, r->messages, text, bytes, &error) != SB_OK)
        return usage_error("line %lld: \"messages\": %s", (long long)r->line, error.message);
    return EXIT_RIGHT;
}

/* Tokens of a prompt that is a text or a conversation. `*chat` is loaded where it is NULL and wanted. */
static int encode_request(const arguments *arguments, const sb_tokenizer *tokenizer, sb_chat_template **chat,
                          request *r) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    char *text = r->prompt, *written = NULL;
    size_t bytes = text != NULL ? strlen(text) : 0;
    options.bare = has_option(arguments, "bare") || r->messages != NULL;
    options.plain = has_option(arguments, "plain") && r->messages == NULL;
    int code = r->messages != NULL ? write_messages(arguments, r, chat, &written, &bytes) : EXIT_RIGHT;
    if (code == EXIT_RIGHT)
        code = encode_text(tokenizer, &options, written != NULL ? written : text, bytes, &r->tokens, &r->token_count);
    sb_llm_free(written);
    if (code != EXIT_RIGHT || r->token_count > 0)
        return code;
    return usage_error(r->messages != NULL
                           ? "line %lld: the chat template writes nothing that has tokens"
                           : "line %lld: the prompt has no tokens, and the tokenizer puts none before it",
                       (long long)r->line);
}

static int encode_prompts(const arguments *arguments, const sb_tokenizer *tokenizer, request_list *list) {
    sb_chat_template *chat = NULL;
    int code = EXIT_RIGHT;
    for (int64_t i = 0; i < list->count && code == EXIT_RIGHT; i++) {
        if (list->all[i].tokens == NULL)
            code = encode_request(arguments, tokenizer, &chat, &list->all[i]);
    }
    sb_chat_template_free(chat);
    return code;
}

static int descending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Pages for those that take most, as many as run at a time; 0 where memory ran out. */
static int64_t count_pages(const sb_llm *llm, const request_list *list, int64_t answers, int64_t parallel) {
    int64_t context = sb_llm_describe(llm)->context, *each = malloc((size_t)answers * sizeof *each), pages = 0, n = 0;
    if (each == NULL)
        return 0;
    for (int64_t i = 0; i < list->count; i++) {
        const request *r = &list->all[i];
        int64_t positions = r->token_count + (r->limit < context ? r->limit : context);
        positions = positions < context ? positions : context;
        for (int64_t s = 0; s < r->samples; s++)
            each[n++] = (positions + SB_LLM_PAGE_POSITIONS - 1) / SB_LLM_PAGE_POSITIONS;
    }
    qsort(each, (size_t)answers, sizeof *each, descending);
    for (int64_t i = 0; i < answers && i < parallel; i++)
        pages += each[i];
    free(each);
    return pages;
}

/* Puts all requests into the queue, before any runs. */
static int add_all(sb_llm_queue *queue, const request_list *list, const sb_llm_generation *about, many *of) {
    sb_error error;
    for (int64_t i = 0; i < list->count; i++) {
        const request *asked = &list->all[i];
        for (int64_t s = 0; s < asked->samples; s++) {
            sb_llm_request wanted = SB_LLM_REQUEST_DEFAULT;
            answer *a = &of->answers[of->count++];
            int code = begin_answer(of, asked, s, a);
            if (code != EXIT_RIGHT)
                return code;
            wanted.count = asked->token_count;
            wanted.tokens = asked->tokens;
            wanted.on_end = take_end;
            wanted.generation.limit = asked->limit;
            wanted.generation.chunk = about->chunk;
            wanted.generation.ignore_stops = asked->ignore_stops;
            wanted.generation.constraint = about->constraint;
            wanted.generation.sampling = asked->sampling;
            wanted.generation.sampling.bias_count = about->sampling.bias_count;
            wanted.generation.sampling.biases = about->sampling.biases;
            wanted.generation.sampling.request += (uint32_t)s;
            wanted.generation.on_token = take_token;
            wanted.generation.context = a;
            wanted.generation.no_logits = true;
            wanted.generation.no_logps = !of->logprobs;
            wanted.generation.no_digest = of->no_digest;
            wanted.generation.receipt = of->receipts != NULL ? &a->receipt : NULL;
            if (sb_llm_queue_add(queue, &wanted, &error) != SB_OK)
                return usage_error("line %lld: %s", (long long)asked->line, error.message);
        }
    }
    return EXIT_RIGHT;
}

static sb_llm_batch *interruptible;

static void interrupt(int signal) {
    (void)signal;
    sb_llm_batch_interrupt(interruptible);
}

/* What has been done in that time, for whoever watches. */
static void show_many(const sb_llm_queue *queue, const many *of, double took_ns) {
    const sb_llm_queue_counters counters = sb_llm_queue_count(queue);
    show_progress("%lld of %lld answers; %lld new tokens, %.1f/s",
                  (long long)(of->count - counters.waiting - counters.running), (long long)of->count,
                  (long long)of->new_tokens, (double)of->new_tokens * 1e9 / took_ns);
}

/* … and in the end. */
static void print_many(const sb_llm_queue *queue, const many *of, double took_ns) {
    const sb_llm_queue_counters counters = sb_llm_queue_count(queue);
    char took[TEXT_BYTES], first[TEXT_BYTES];
    int64_t prompt_tokens = 0, told = 0;
    double first_ns = 0;
    for (int64_t i = 0; i < of->count; i++) {
        const sb_llm_result *result = &of->answers[i].result; /* of one that failed all is 0 */
        prompt_tokens += result->prompt_tokens;
        told += result->new_tokens > 0;
        first_ns += result->first_token_ns;
    }
    fprintf(stderr, "%lld answers in %s: %lld tokens of prompts, %lld of which were shared, and %lld new ones (%.1f/s)",
            (long long)of->count, duration(took_ns, took), (long long)prompt_tokens, (long long)counters.shared,
            (long long)of->new_tokens, (double)of->new_tokens * 1e9 / took_ns);
    if (told > 0)
        fprintf(stderr, ", the first after %s on average", duration(first_ns / (double)told, first));
    fprintf(stderr, "; %lld steps\n", (long long)counters.steps);
}

static int run_all(sb_llm_batch *batch, sb_llm_queue *queue, const many *of) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sb_error error;
    interruptible = batch;
    sigaction(SIGINT, &action, NULL); /* the second one ends the process */
    const double start = now_ns();
    sb_status status = SB_OK;
    for (bool more = true; more && status == SB_OK;) {
        status = sb_llm_queue_step(queue, &more, &error);
        show_many(queue, of, now_ns() - start);
    }
    clear_progress();
    const int code = status == SB_OK ? EXIT_RIGHT : report(&error);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    if (code == EXIT_RIGHT)
        print_many(queue, of, now_ns() - start);
    return code == EXIT_RIGHT && of->failed ? EXIT_FAILED : code;
}

static int run_queue(sb_llm_batch *batch, const sb_llm_queue_options *how, const request_list *list,
                     const sb_llm_generation *about, many *of) {
    sb_llm_queue *queue;
    sb_error error;
    if (sb_llm_queue_create(batch, how, &queue, &error) != SB_OK)
        return report(&error);
    int code = add_all(queue, list, about, of);
    if (code == EXIT_RIGHT)
        code = run_all(batch, queue, of);
    sb_llm_queue_destroy(queue);
    return code;
}

int generate_many(const arguments *arguments, sb_llm *llm, const sb_session_options *options,
                  const sb_tokenizer *tokenizer, const sb_llm_generation *about, request_list *list) {
    long long parallel = 16, pages = 0;
    int64_t answers = 0, fit = INT64_MAX;
    sb_llm_queue_options how = SB_LLM_QUEUE_OPTIONS_DEFAULT;
    sb_llm_batch_options batch_options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch = NULL;
    sb_error error;
    if (!read_count(arguments, "parallel", 1, 4096, &parallel) || !read_count(arguments, "pages", 1, 1LL << 32, &pages))
        return EXIT_USAGE;
    int code = encode_prompts(arguments, tokenizer, list);
    if (code != EXIT_RIGHT)
        return code;
    for (int64_t i = 0; i < list->count; i++)
        answers += list->all[i].samples;
    many of = {.tokenizer = tokenizer,
               .logprobs = has_option(arguments, "logprobs"),
               .no_digest = has_option(arguments, "no-digest"),
               .receipts = option_value(arguments, "receipt"),
               .key = option_value(arguments, "sign")};
    of.answers = calloc((size_t)answers, sizeof *of.answers);
    batch_options.session = options;
    batch_options.pages = pages > 0 ? pages : count_pages(llm, list, answers, parallel);
    how.parallel = parallel;
    if (pages > 0 && has_option(arguments, "cache-memory"))
        code = usage_error("--pages and --cache-memory say the same: give one");
    if (code == EXIT_RIGHT)
        code = read_cache_memory(arguments, llm, SB_LLM_PAGE_POSITIONS, &fit);
    if (fit / SB_LLM_PAGE_POSITIONS < batch_options.pages)
        batch_options.pages = fit / SB_LLM_PAGE_POSITIONS;
    if (code == EXIT_RIGHT && (of.answers == NULL || batch_options.pages == 0))
        code = out_of_memory();
    if (code == EXIT_RIGHT && sb_llm_batch_create(llm, &batch_options, &batch, &error) != SB_OK)
        code = report(&error);
    if (code == EXIT_RIGHT)
        code = run_queue(batch, &how, list, about, &of);
    free_answers(&of);
    sb_llm_batch_release(batch);
    return code;
}
