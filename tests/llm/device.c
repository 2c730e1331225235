/* device PART MODEL [NAME=VALUE…]: whether a model's logits have the same bits on a device in every way in which tokens can be handed
 * over, and those of the CPU. Parts:
 *
 *   cpu     the text by pieces on the device and on the CPU: every logit
 *   pieces  the text in pieces of 512 against pieces of other sizes, with steps given one by one, captured and built; each way goes on
 *           from the same prefix, which is shared, on pages in random order
 *   mixed   many texts in one batch against each alone: whole, in pieces, joining and leaving; at every place among the others
 *   first   how long it takes from nothing to the first new token
 *   logging what receipts add to the time of new tokens, of one request and of sequences= together
 *
 * Values: driver= (the driver's library; "none": the CPU in the device's place), dtype=, tokens= of a text, prefix= of which are only
 * run, chunks=1,16,17, graphs=off,capture,build, sequences= of mixed, spoil=1 (the cache is filled before with the
 * last token, whose values the model makes infinite, and cut to nothing), plant=1 (two tokens of what is compared are exchanged, which has to be found), threads=. Ends with 0 where nothing
 * differs, 1 where something does, 3 where it could not be run. */
#include <samebit/samebit.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != SB_OK) {                                                                                         \
            fprintf(stderr, "%s\n", error.message);                                                                    \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { MOST_TOKENS = 1 << 17, MOST_SEQUENCES = 64, MOST_WAYS = 16 };

static sb_error error;
static int64_t rows[MOST_TOKENS], vocabulary;
static long long compared, differing;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t state = 1;
static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

/* ---- what is asked for ---- */

static int argument_count;
static char **arguments;

static const char *value_of(const char *name, const char *otherwise) {
    size_t length = strlen(name);
    for (int i = 3; i < argument_count; i++) {
        if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=')
            return arguments[i] + length + 1;
    }
    return otherwise;
}

static int64_t number_of(const char *name, int64_t otherwise) {
    const char *value = value_of(name, NULL);
    return value != NULL ? atoll(value) : otherwise;
}

static int numbers_of(const char *name, const char *otherwise, int64_t *numbers) {
    int count = 0;
    for (const char *at = value_of(name, otherwise); at != NULL && count < MOST_WAYS; at = strchr(at, ',')) {
        at += *at == ',';
        numbers[count++] = atoll(at);
    }
    return count;
}

static sb_device *open_device(void) {
    const char *driver = value_of("driver", NULL);
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device;
    if (driver != NULL && strcmp(driver, "none") == 0)
        return NULL;
    options.cuda_driver = driver;
    CHECK(sb_device_open(&options, 0, &device, &error));
    return device;
}

static sb_llm *load_for(const char *path, int64_t context, bool receipts) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    const char *dtype = value_of("dtype", "bf16");
    sb_llm *llm;
    options.dtype = strcmp(dtype, "f32") == 0 ? SB_F32 : strcmp(dtype, "f16") == 0 ? SB_F16 : SB_BF16;
    options.context = context;
    options.receipts = receipts;
    CHECK(sb_llm_load(path, &options, &llm, &error));
    vocabulary = sb_llm_describe(llm)->vocabulary;
    return llm;
}

static sb_llm *load(const char *path, int64_t context) {
    return load_for(path, context, false);
}

static sb_session_options on(sb_device *device) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.device = device;
    options.require_device = device != NULL;
    options.threads = (int)number_of("threads", 0);
    return options;
}

static sb_graph_mode mode_of(const char *name, size_t length) {
    for (int mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        const char *known = sb_graph_mode_name((sb_graph_mode)mode);
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return (sb_graph_mode)mode;
    }
    fprintf(stderr, "graphs=%s: there are off, capture and build\n", name);
    exit(2);
}

static int64_t *random_text(int64_t count) {
    int64_t *tokens = malloc((size_t)(count + 1) * sizeof *tokens);
    if (tokens == NULL)
        exit(3);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = draw(vocabulary - (number_of("spoil", 0) != 0)); /* (the last one spoils) */
    return tokens;
}

/* With plant=1 the text that is compared has two of its tokens in the other order. */
static int64_t *planted(const int64_t *tokens, int64_t count) {
    int64_t *copy = malloc((size_t)(count + 1) * sizeof *copy);
    if (copy == NULL)
        exit(3);
    memcpy(copy, tokens, (size_t)count * sizeof *copy);
    for (int64_t i = 0; number_of("plant", 0) != 0 && i + 1 < count; i++) {
        if (copy[i] != copy[i + 1]) {
            copy[i] = tokens[i + 1];
            copy[i + 1] = tokens[i];
            break;
        }
    }
    return copy;
}

/* ---- comparing ---- */

/* Counts the floats of `count` rows that differ in any bit. */
static void compare(const char *what, int64_t first, int64_t count, const float *expected, const float *found) {
    compared += count * vocabulary;
    if (memcmp(expected, found, (size_t)(count * vocabulary) * sizeof *found) == 0)
        return;
    for (int64_t i = 0; i < count * vocabulary; i++) {
        if (memcmp(&expected[i], &found[i], sizeof *found) == 0)
            continue;
        if (differing++ == 0)
            printf("%s: logit %lld of token %lld is %a where %a is expected\n", what, (long long)(i % vocabulary),
                   (long long)(first + i / vocabulary), (double)found[i], (double)expected[i]);
    }
}

static int report(const char *part, double start) {
    printf("%s %s %s: %lld of %lld logits differ, %.1f s\n", part, arguments[2], value_of("dtype", "bf16"), differing,
           compared, now() - start);
    return differing != 0;
}

static float *allocate_rows(int64_t count) {
    float *made = malloc((size_t)(count * vocabulary) * sizeof *made);
    if (made == NULL) {
        fprintf(stderr, "no memory for %lld rows of logits\n", (long long)count);
        exit(3);
    }
    return made;
}

/* Puts tokens behind a sequence in pieces; rows of logits to `to`, unless it is NULL. */
static void read_on(sb_llm_batch *batch, sb_llm_sequence *sequence, int64_t count, const int64_t *tokens, int64_t chunk,
                    float *to) {
    sb_tensor *logits;
    for (int64_t done = 0; done < count; done += chunk) {
        int64_t piece = count - done < chunk ? count - done : chunk;
        const sb_llm_step_part part = {sequence, piece, tokens + done, to != NULL ? piece : 0, rows};
        CHECK(sb_llm_batch_step(batch, 1, &part, &logits, &error));
        if (to != NULL)
            memcpy(to + done * vocabulary, sb_tensor_data(logits), (size_t)(piece * vocabulary) * sizeof *to);
        sb_tensor_release(logits);
    }
}

static sb_llm_batch *batch_of(sb_llm *llm, const sb_session_options *session, int64_t positions, int64_t sequences) {
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    options.session = session;
    options.pages = (positions / SB_LLM_PAGE_POSITIONS + 2) * sequences;
    CHECK(sb_llm_batch_create(llm, &options, &batch, &error));
    return batch;
}

/* Takes all pages, one by one, and gives them back in random order, which is the order in which they are taken next. */
static void shuffle_pages(sb_llm_batch *batch) {
    int64_t count = sb_llm_batch_free_pages(batch);
    sb_llm_sequence **takers = calloc((size_t)count, sizeof *takers);
    if (takers == NULL)
        exit(3);
    for (int64_t i = 0; i < count; i++) {
        CHECK(sb_llm_sequence_create(batch, &takers[i], &error));
        CHECK(sb_llm_sequence_reserve(takers[i], 1, &error));
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        int64_t other = draw(i + 1);
        sb_llm_sequence_release(takers[other]);
        takers[other] = takers[i];
    }
    free(takers);
}

/* With spoil=1: fills the cache with the last token's keys and values, which the model makes infinite, and forgets them. */
static void spoil(sb_llm_session *session, int64_t count) {
    int64_t tokens[64];
    sb_tensor *logits;
    if (number_of("spoil", 0) == 0)
        return;
    for (int i = 0; i < 64; i++)
        tokens[i] = vocabulary - 1;
    for (int64_t done = 0; done < count; done += 64) {
        CHECK(sb_llm_step(session, count - done < 64 ? count - done : 64, tokens, 1, rows, &logits, &error));
        float first = *(const float *)sb_tensor_data(logits);
        sb_tensor_release(logits);
        if (first == first) {
            fprintf(stderr, "the last token's logits are numbers: nothing is spoiled\n");
            exit(3);
        }
    }
    CHECK(sb_llm_session_trim(session, 0, &error));
}

/* ---- parts ---- */

static int check_cpu(const char *path) {
    double start = now();
    int64_t count = number_of("tokens", 20), chunks[MOST_WAYS], before = 0;
    int ways = numbers_of("chunks", "64", chunks);
    sb_device *device = open_device();
    sb_llm *llm = load(path, count + 64);
    sb_session_options there = on(device), here = on(NULL);
    sb_llm_session *device_session, *host_session;
    int64_t *tokens = random_text(count), *other = planted(tokens, count);
    CHECK(sb_llm_session_create(llm, &there, &device_session, &error));
    CHECK(sb_llm_session_create(llm, &here, &host_session, &error));
    spoil(device_session, count + 63);
    spoil(host_session, count + 63);
    for (int way = 0; before < count; way += way + 1 < ways) { /* the sizes in turn, the last one from then on */
        int64_t piece = count - before < chunks[way] ? count - before : chunks[way];
        sb_tensor *expected, *found;
        CHECK(sb_llm_step(host_session, piece, tokens + before, piece, rows, &expected, &error));
        CHECK(sb_llm_step(device_session, piece, other + before, piece, rows, &found, &error));
        compare("the device", before, piece, sb_tensor_data(expected), sb_tensor_data(found));
        sb_tensor_release(expected);
        sb_tensor_release(found);
        before += piece;
    }
    free(tokens);
    free(other);
    sb_llm_session_destroy(device_session);
    sb_llm_session_destroy(host_session);
    sb_llm_release(llm);
    sb_device_release(device);
    return report("cpu", start);
}

static int check_pieces(const char *path) {
    double start = now();
    int64_t count = number_of("tokens", 300), prefix = number_of("prefix", 0), chunks[MOST_WAYS], last = count - prefix;
    int ways = numbers_of("chunks", "1,16,17,512", chunks);
    sb_device *device = open_device();
    sb_llm *llm = load(path, count);
    sb_session_options session = on(device);
    int64_t *tokens = random_text(count), *other = planted(tokens + prefix, last);
    float *expected = allocate_rows(last), *found = allocate_rows(last);
    sb_llm_sequence *begin, *sequence;
    char what[96];
    session.graphs = SB_GRAPHS_OFF;
    sb_llm_batch *batch = batch_of(llm, &session, count, 1);
    CHECK(sb_llm_sequence_create(batch, &sequence, &error));
    read_on(batch, sequence, prefix, tokens, 512, NULL);
    read_on(batch, sequence, last, tokens + prefix, 512, expected);
    sb_llm_sequence_release(sequence);
    sb_llm_batch_release(batch);
    for (const char *mode = value_of("graphs", "off,capture,build"); mode != NULL; mode = strchr(mode, ',')) {
        mode += *mode == ',';
        session.graphs = mode_of(mode, strcspn(mode, ","));
        batch = batch_of(llm, &session, count, 2);
        shuffle_pages(batch);
        CHECK(sb_llm_sequence_create(batch, &begin, &error));
        read_on(batch, begin, prefix, tokens, 512, NULL);
        for (int way = 0; way < ways; way++) {
            double began = now();
            CHECK(sb_llm_sequence_fork(begin, prefix, &sequence, &error));
            read_on(batch, sequence, last, other, chunks[way], found);
            sb_llm_sequence_release(sequence);
            snprintf(what, sizeof what, "graphs %s, pieces of %lld behind %lld", sb_graph_mode_name(session.graphs),
                     (long long)chunks[way], (long long)prefix);
            compare(what, prefix, last, expected, found);
            printf("  %s: %.2f s\n", what, now() - began);
            fflush(stdout);
        }
        sb_llm_sequence_release(begin);
        sb_llm_batch_release(batch);
    }
    free(tokens);
    free(other);
    free(expected);
    free(found);
    sb_llm_release(llm);
    sb_device_release(device);
    return report("pieces", start);
}

/* ---- many texts ---- */

typedef struct text {
    int64_t count, *tokens, *other;
    float *expected;
    sb_llm_sequence *sequence;
} text;

/* A step of the texts that are named, each with at most `chunk` (0: any number) of what it has left. */
static void step_of(sb_llm_batch *batch, text *texts, int count, const int *order, int64_t chunk, const char *what) {
    sb_llm_step_part parts[MOST_SEQUENCES] = {{0}};
    sb_tensor *logits;
    for (int i = 0; i < count; i++) {
        text *t = &texts[order[i]];
        int64_t done = sb_llm_sequence_length(t->sequence), left = t->count - done;
        int64_t most = chunk > 0 ? chunk : 1 + draw(300);
        int64_t piece = left < most ? left : most;
        parts[i] = (sb_llm_step_part){t->sequence, piece, t->other + done, piece, rows};
    }
    CHECK(sb_llm_batch_step(batch, count, parts, &logits, &error));
    const float *row = sb_tensor_data(logits);
    for (int i = 0; i < count; i++) {
        const text *t = &texts[order[i]];
        int64_t first = sb_llm_sequence_length(t->sequence) - parts[i].count;
        compare(what, first, parts[i].count, t->expected + first * vocabulary, row);
        row += parts[i].count * vocabulary;
    }
    sb_tensor_release(logits);
}

/* All texts from their beginnings; with a chunk of 0 some are left out of each step, so that they join and leave. */
static void read_together(sb_llm_batch *batch, text *texts, int count, int64_t chunk) {
    char what[64];
    int order[MOST_SEQUENCES];
    snprintf(what, sizeof what, "many texts, pieces of %lld", (long long)chunk);
    shuffle_pages(batch);
    for (int i = 0; i < count; i++)
        CHECK(sb_llm_sequence_create(batch, &texts[i].sequence, &error));
    for (bool left = true; left;) {
        int taking = 0;
        left = false;
        for (int i = 0; i < count; i++) {
            bool unfinished = sb_llm_sequence_length(texts[i].sequence) < texts[i].count;
            left = left || unfinished;
            if (unfinished && (chunk > 0 || draw(3) > 0))
                order[taking++] = i;
        }
        if (taking > 0)
            step_of(batch, texts, taking, order, chunk, what);
    }
    for (int i = 0; i < count; i++)
        sb_llm_sequence_release(texts[i].sequence);
}

/* The last tokens of each one by one, in batches of 1 to all, each at another place each time. */
static void read_at_places(sb_llm_batch *batch, text *texts, int count) {
    char what[64];
    int order[MOST_SEQUENCES];
    for (int i = 0; i < count; i++) {
        CHECK(sb_llm_sequence_create(batch, &texts[i].sequence, &error));
        read_on(batch, texts[i].sequence, texts[i].count - 1, texts[i].other, 512, NULL);
    }
    for (int size = 1; size <= count; size++) {
        for (int turn = 0; turn < (size < count ? 1 : count); turn++) {
            for (int i = 0; i < size; i++) {
                order[i] = (i + turn + size) % count;
                CHECK(sb_llm_sequence_trim(texts[order[i]].sequence, texts[order[i]].count - 1, &error));
            }
            snprintf(what, sizeof what, "one token each, %d texts, turn %d", size, turn);
            step_of(batch, texts, size, order, 1, what);
        }
    }
    for (int i = 0; i < count; i++)
        sb_llm_sequence_release(texts[i].sequence);
}

static int check_mixed(const char *path) {
    double start = now();
    static text texts[MOST_SEQUENCES];
    int64_t longest = number_of("tokens", 3000), chunks[MOST_WAYS], total = 0;
    int count = (int)number_of("sequences", MOST_SEQUENCES), ways = numbers_of("chunks", "512,17,0", chunks);
    sb_device *device = open_device();
    sb_llm *llm = load(path, longest);
    sb_session_options session = on(device);
    sb_llm_session *alone;
    CHECK(sb_llm_session_create(llm, &session, &alone, &error));
    for (int i = 0; i < count; i++) {
        text *t = &texts[i];
        int64_t below = i % 4 == 0 ? longest : i % 4 == 1 ? 300 : 40;
        t->count = i == 0 ? longest : i == 1 ? 1 : 2 + draw(below < longest - 1 ? below : longest - 1);
        t->tokens = random_text(t->count);
        t->other = planted(t->tokens, t->count);
        t->expected = allocate_rows(t->count);
        total += t->count;
        CHECK(sb_llm_session_trim(alone, 0, &error));
        for (int64_t done = 0; done < t->count; done += 512) {
            sb_tensor *logits;
            int64_t piece = t->count - done < 512 ? t->count - done : 512;
            CHECK(sb_llm_step(alone, piece, t->tokens + done, piece, rows, &logits, &error));
            memcpy(t->expected + done * vocabulary, sb_tensor_data(logits),
                   (size_t)(piece * vocabulary) * sizeof(float));
            sb_tensor_release(logits);
        }
    }
    sb_llm_session_destroy(alone);
    printf("  %d texts of 1 to %lld tokens, %lld in all; alone: %.2f s\n", count, (long long)longest, (long long)total,
           now() - start);
    sb_llm_batch *batch = batch_of(llm, &session, total / count + SB_LLM_PAGE_POSITIONS, count);
    for (int way = 0; way < ways; way++) {
        double began = now();
        read_together(batch, texts, count, chunks[way]);
        printf("  pieces of %lld%s: %.2f s\n", (long long)chunks[way], chunks[way] == 0 ? " (any)" : "", now() - began);
        fflush(stdout);
    }
    double began = now();
    read_at_places(batch, texts, count);
    printf("  one token each at every place: %.2f s\n", now() - began);
    for (int i = 0; i < count; i++) {
        free(texts[i].tokens);
        free(texts[i].other);
        free(texts[i].expected);
    }
    sb_llm_batch_release(batch);
    sb_llm_release(llm);
    sb_device_release(device);
    return report("mixed", start);
}

/* ---- the first token ---- */

static int time_first(const char *path) {
    double start = now(), at = start;
    int64_t count = number_of("tokens", 100);
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_result result;
    sb_llm_session *session;
    generation.limit = 1;
    generation.ignore_stops = generation.no_digest = true;
#define LAP(what)                                                                                                      \
    do {                                                                                                               \
        printf("  %-34s %8.1f ms\n", what, 1e3 * (now() - at));                                                        \
        fflush(stdout);                                                                                                \
        at = now();                                                                                                    \
    } while (0)
    sb_device *device = open_device();
    LAP("opening the device");
    sb_llm *llm = load(path, 0);
    LAP("opening the checkpoint");
    sb_session_options options = on(device);
    CHECK(sb_llm_session_create(llm, &options, &session, &error));
    LAP("making a session");
    int64_t *tokens = random_text(count);
    CHECK(sb_llm_generate(session, count, tokens, &generation, &result, &error));
    LAP("the first token, weights and all");
    printf("first %s %s: %lld tokens, %.1f ms from nothing to the first new one\n", path, value_of("dtype", "bf16"),
           (long long)count, 1e3 * (now() - start));
    generation.limit = number_of("steps", 32);
    for (int i = 0; i < 3; i++) {
        CHECK(sb_llm_session_trim(session, 0, &error));
        CHECK(sb_llm_generate(session, count, tokens, &generation, &result, &error));
        printf("  again: the first after %.1f ms, then %.3f ms each\n", result.first_token_ns / 1e6,
               result.decode_ns / 1e6 / (double)(result.new_tokens > 1 ? result.new_tokens - 1 : 1));
    }
    free(tokens);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(device);
    return 0;
}

/* ---- receipts ---- */

static void end_request(void *context, sb_status status, const sb_error *why, const sb_llm_result *result) {
    (void)context;
    (void)result;
    if (status != SB_OK) {
        fprintf(stderr, "%s\n", why->message);
        exit(3);
    }
}

/* Seconds that `count` requests take together, whose prompts are one token each, so that all of it is new tokens. */
static double time_requests(sb_llm_batch *batch, int count, int64_t steps, bool receipts) {
    static sb_llm_receipt *kept[MOST_SEQUENCES];
    static int64_t tokens[MOST_SEQUENCES];
    sb_llm_queue_options how = SB_LLM_QUEUE_OPTIONS_DEFAULT;
    sb_llm_queue *queue;
    how.parallel = count;
    CHECK(sb_llm_queue_create(batch, &how, &queue, &error));
    for (int i = 0; i < count; i++) {
        sb_llm_request request = SB_LLM_REQUEST_DEFAULT;
        tokens[i] = draw(vocabulary);
        request.count = 1;
        request.tokens = &tokens[i];
        request.on_end = end_request;
        request.generation.limit = steps;
        request.generation.ignore_stops = request.generation.no_digest = true;
        request.generation.receipt = receipts ? &kept[i] : NULL;
        CHECK(sb_llm_queue_add(queue, &request, &error));
    }
    double start = now();
    CHECK(sb_llm_queue_run(queue, &error));
    double took = now() - start;
    for (int i = 0; i < count && receipts; i++)
        sb_llm_receipt_release(kept[i]);
    sb_llm_queue_destroy(queue);
    return took;
}

/* The least of several times of each, taken in turn. */
static int time_logging(const char *path) {
    int64_t steps = number_of("steps", 200), sizes[MOST_WAYS];
    int size_count = numbers_of("sequences", "1,32", sizes);
    sb_device *device = open_device();
    sb_session_options session = on(device);
    for (int s = 0; s < size_count; s++) {
        double best[2] = {1e9, 1e9};
        sb_llm *llm[2];
        sb_llm_batch *batch[2];
        for (int with = 0; with < 2; with++) {
            llm[with] = load_for(path, steps + 16, with == 1);
            batch[with] = batch_of(llm[with], &session, steps + 16, sizes[s]);
        }
        for (int run = 0; run < 2 + number_of("runs", 4); run++) {
            for (int with = 0; with < 2; with++) {
                double took = time_requests(batch[with], (int)sizes[s], steps, with == 1);
                if (run >= 2 && took < best[with])
                    best[with] = took;
            }
        }
        printf("logging %s: %lld together, %lld tokens each: %.3f ms a step without, %.3f with receipts: %+.2f %%\n",
               path, (long long)sizes[s], (long long)steps, 1e3 * best[0] / (double)steps,
               1e3 * best[1] / (double)steps, 100 * (best[1] / best[0] - 1));
        for (int with = 0; with < 2; with++) {
            sb_llm_batch_release(batch[with]);
            sb_llm_release(llm[with]);
        }
    }
    sb_device_release(device);
    return 0;
}

int main(int argc, char **argv) {
    argument_count = argc;
    arguments = argv;
    if (argc < 3) {
        fprintf(stderr, "usage: device cpu|pieces|mixed|first|logging MODEL [NAME=VALUE…]\n");
        return 2;
    }
    state = (uint64_t)number_of("seed", 1);
    for (int64_t i = 0; i < MOST_TOKENS; i++)
        rows[i] = i;
    static const struct {
        const char *name;
        int (*run)(const char *path);
    } parts[] = {{"cpu", check_cpu},
                 {"pieces", check_pieces},
                 {"mixed", check_mixed},
                 {"first", time_first},
                 {"logging", time_logging}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run(argv[2]);
    }
    fprintf(stderr, "there is no part %s\n", argv[1]);
    return 2;
}
