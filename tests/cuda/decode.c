/* Decodes with a model of models/make_decoder.py, one token a run, and writes the SHA-256 of each token's logits: what a
 * cache with a capacity must not change, whatever it runs on.
 *
 *     decode [--prompts N[,N…]] MODEL DIGESTS WAY [TOKENS [CAPACITY [DRIVER]]]
 *
 * With prompts, runs of so many tokens each come first; the session then has buckets for the extent `tokens`: 1, 2, 4, …
 * and the longest prompt.
 *
 * WAY: "hand" hands the cache from run to run at exact extents; "cpu" keeps it in a state with a capacity, on the host;
 * "off", "capture" and "build" do so on the GPU, in that graph mode; "hand-gpu" and "queue" (up to four runs in flight,
 * outputs on the device, timed) are on the GPU too. Rows of the cache behind the used ones are NaN. Prints what the runs
 * took, as counted by the device and the state. Exit 1 when something fails, 2 when a token took more than one launch of
 * a graph and one copy to the device, allocated memory, or copied the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "bench/measure.h"
#include "runtime/digest.h"
#include "runtime/state.h"
#include "tensor/tensor.h"

#define MOST_PAIRS 256
#define MOST_PROMPTS 64
#define DEPTH 4
/* Runs before counting: recording, and a block for each output in flight. */
#define WARM_UP 24

typedef struct decoding {
    const char *way;
    int64_t tokens, capacity;
    int prompt_count;
    int64_t prompts[MOST_PROMPTS], longest; /* their tokens */
    bool on_device, by_hand, queued;
    FILE *digests;
    sb_device *device;
    sb_model *model;
    sb_state *state;
    sb_session *session;
    int pair_count;
    sb_tensor *past[MOST_PAIRS]; /* by hand */
    double *enqueue_us;
    uint64_t random;
} decoding;

/* ---- models and sessions ---- */

static void fill_with_nan(sb_state *state, sb_held_variable *held) {
    sb_tensor *room, *nans;
    sb_dtype dtype = held->tensor->dtype;
    MUST(sb_tensor_create(dtype, held->tensor->rank, held->room, &nans, error));
    memset(sb_tensor_mutable_data(nans), 0xff, (size_t)sb_tensor_elements(nans) * sb_dtype_size(dtype));
    MUST(sb_tensor_over(held->tensor->storage, held->tensor->data, dtype, held->tensor->rank, held->room, NULL, &room,
                        error));
    if (state->queue == NULL) {
        sb_tensor_copy_elements(room, nans);
    } else {
        MUST(sb_state_enter_queue(state, error));
        MUST(sb_state_leave_queue(state, sb_queue_upload(state->queue, room, nans, error), error));
    }
    sb_tensor_release(room);
    sb_tensor_release(nans);
}

static void make_state(decoding *d) {
    static char names[MOST_PAIRS][2][64];
    sb_state_pair pairs[MOST_PAIRS];
    sb_capacity past = {"past", d->capacity, 0};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    for (int i = 0; i < d->pair_count; i++) {
        const char *name = sb_model_input(d->model, 1 + i)->name;
        snprintf(names[i][0], sizeof names[i][0], "%s", name);
        snprintf(names[i][1], sizeof names[i][1], "present%s", name + strlen("past"));
        pairs[i] = (sb_state_pair){names[i][0], names[i][1], -1, NULL};
    }
    options.device = d->device;
    options.pair_count = d->pair_count;
    options.pairs = pairs;
    options.capacity_count = 1;
    options.capacities = &past;
    MUST(sb_state_create(d->model, &options, &d->state, error));
    for (size_t v = 0; v < d->state->count; v++)
        fill_with_nan(d->state, &d->state->variables[v]);
}

static void make_past(decoding *d) {
    for (int i = 0; i < d->pair_count; i++) {
        const sb_value_description *input = sb_model_input(d->model, 1 + i);
        int64_t dims[4] = {input->dims[0], input->dims[1], 0, input->dims[3]};
        MUST(sb_tensor_create(input->dtype, 4, dims, &d->past[i], error));
    }
}

static void open_decoding(decoding *d, const char *path, const char *driver) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_capacity tokens = {"tokens", d->longest, 1};
    where.cuda_driver = driver;
    if (d->on_device)
        MUST(sb_device_open(&where, 0, &d->device, error));
    MUST(sb_model_load(path, NULL, &d->model, error));
    d->pair_count = sb_model_input_count(d->model) - 1;
    if (d->by_hand)
        make_past(d);
    else
        make_state(d);
    options.threads = 0;
    options.state = d->state;
    options.device = d->device;
    options.device_outputs = d->queued || (d->by_hand && d->on_device);
    options.queue_depth = DEPTH;
    options.capacity_count = !d->by_hand && d->prompt_count > 0;
    options.capacities = &tokens;
    options.require_device = d->on_device && !d->by_hand;
    options.graphs = strcmp(d->way, "off") == 0       ? SB_GRAPHS_OFF
                     : strcmp(d->way, "capture") == 0 ? SB_GRAPHS_CAPTURE
                                                      : SB_GRAPHS_BUILD;
    MUST(sb_session_create(d->model, &options, &d->session, error));
}

static void close_decoding(decoding *d) {
    sb_session_destroy(d->session);
    sb_state_release(d->state);
    for (int i = 0; i < d->pair_count; i++)
        sb_tensor_release(d->past[i]);
    sb_model_release(d->model);
    sb_device_release(d->device);
    free(d->enqueue_us);
}

/* ---- tokens ---- */

static sb_tensor *next_tokens(decoding *d, int64_t count) {
    sb_tensor *ids;
    MUST(sb_tensor_create(SB_S64, 2, (int64_t[]){1, count}, &ids, error));
    for (int64_t i = 0; i < count; i++) {
        d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((int64_t *)sb_tensor_mutable_data(ids))[i] = (int64_t)((d->random >> 33) % 31);
    }
    return ids;
}

static void write_digest(decoding *d, sb_tensor *logits) {
    unsigned char sum[SB_DIGEST_BYTES];
    sb_digest digest;
    sb_tensor *host = logits;
    if (sb_tensor_on_device(logits))
        MUST(sb_tensor_to_host(d->device, logits, &host, error));
    MUST(sb_digest_begin(&digest, error));
    sb_digest_add_bytes(&digest, host->data, (size_t)sb_tensor_elements(host) * sb_dtype_size(host->dtype));
    MUST(sb_digest_end(&digest, sum, error));
    for (int i = 0; i < SB_DIGEST_BYTES; i++)
        fprintf(d->digests, "%02x", sum[i]);
    fputc('\n', d->digests);
    if (host != logits)
        sb_tensor_release(host);
}

/* The outputs of a run: logits, and by hand the next past. */
static void take_outputs(decoding *d, sb_value *outputs) {
    write_digest(d, outputs[0].tensor);
    sb_value_release(&outputs[0]);
    for (int i = 0; i < d->pair_count && d->by_hand; i++) {
        sb_tensor_release(d->past[i]);
        d->past[i] = outputs[1 + i].tensor;
    }
}

static void run_one(decoding *d, int64_t tokens) {
    sb_value inputs[1 + MOST_PAIRS] = {{0}}, outputs[1 + MOST_PAIRS];
    sb_tensor *ids = next_tokens(d, tokens);
    inputs[0] = sb_value_of_tensor(ids);
    for (int i = 0; i < d->pair_count && d->by_hand; i++)
        inputs[1 + i] = sb_value_of_tensor(d->past[i]);
    MUST(sb_session_run(d->session, inputs, outputs, error));
    take_outputs(d, outputs);
    sb_tensor_release(ids);
}

static void enqueue_one(decoding *d, uint64_t *run, double *us) {
    sb_value inputs[1 + MOST_PAIRS] = {{0}};
    sb_tensor *ids = next_tokens(d, 1);
    inputs[0] = sb_value_of_tensor(ids);
    double start = now_us();
    MUST(sb_session_enqueue(d->session, inputs, run, error));
    *us = now_us() - start;
    sb_tensor_release(ids);
}

static void wait_for(decoding *d, uint64_t run) {
    sb_value outputs[1 + MOST_PAIRS];
    MUST(sb_session_wait(d->session, run, outputs, error));
    take_outputs(d, outputs);
}

/* ---- what it takes ---- */

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Whether a token behind the first ones took no more than it may. */
static bool is_frugal(const sb_device_counters *before, const sb_device_counters *after, int64_t tokens) {
    return after->graph_launches - before->graph_launches == tokens &&
           after->copies_to_device - before->copies_to_device <= tokens &&
           after->device_allocations == before->device_allocations;
}

static int report(decoding *d, const sb_device_counters *before, double seconds, int64_t counted) {
    sb_device_counters after = {0};
    sb_state_counters held = {0};
    if (d->device != NULL)
        sb_device_count(d->device, &after);
    if (d->state != NULL)
        sb_state_count(d->state, &held);
    printf("%s: %lld tokens, %.1f us a token", d->way, (long long)d->tokens, seconds * 1e6 / (double)counted);
    if (d->queued) {
        qsort(d->enqueue_us, (size_t)counted, sizeof *d->enqueue_us, compare);
        printf(", %.1f us of the host to enqueue one (median; 90%% below %.1f)", d->enqueue_us[counted / 2],
               d->enqueue_us[counted * 9 / 10]);
    }
    printf("\n");
    const char *exact = sb_session_exact_plans(d->session);
    if (exact[0] != '\0')
        printf("plans are for exact extents: %s\n", exact);
    if (d->by_hand)
        return 0;
    printf("  cache: %lld updates, %lld in place, %lld copies\n", (long long)held.updates,
           (long long)held.updates_in_place, (long long)held.copies);
    bool frugal = held.copies == 0 && held.updates_in_place == held.updates && exact[0] == '\0';
    if (d->device != NULL) {
        printf("  a token: %.2f launches of graphs, %.2f copies to the device of %.0f bytes, %.2f to the host, %lld "
               "allocations in all\n",
               (double)(after.graph_launches - before->graph_launches) / (double)counted,
               (double)(after.copies_to_device - before->copies_to_device) / (double)counted,
               (double)(after.bytes_to_device - before->bytes_to_device) / (double)counted,
               (double)(after.copies_to_host - before->copies_to_host) / (double)counted,
               (long long)(after.device_allocations - before->device_allocations));
        frugal = frugal && (strcmp(d->way, "off") == 0 || is_frugal(before, &after, counted));
    }
    return frugal ? 0 : 2;
}

/* Whether no prompt was planned by itself. */
static bool feed_prompts(decoding *d) {
    bool open = true;
    for (int i = 0; i < d->prompt_count; i++) {
        double start = now_us();
        run_one(d, d->prompts[i]);
        printf("a prompt of %lld tokens: %.1f us\n", (long long)d->prompts[i], now_us() - start);
        const char *exact = sb_session_exact_plans(d->session);
        if (exact[0] != '\0')
            printf("  planned for exact extents: %s\n", exact);
        open = open && exact[0] == '\0';
    }
    return open || d->by_hand;
}

static int decode(decoding *d) {
    sb_device_counters before = {0};
    uint64_t runs[DEPTH];
    double start = 0, us;
    int64_t counted = d->tokens - WARM_UP, waited = 0;
    d->enqueue_us = calloc((size_t)d->tokens, sizeof *d->enqueue_us);
    bool exact = !feed_prompts(d);
    for (int64_t token = 0; token < d->tokens; token++) {
        if (token == WARM_UP) {
            start = now_us();
            if (d->device != NULL)
                sb_device_count(d->device, &before);
        }
        if (!d->queued) {
            run_one(d, 1);
            continue;
        }
        if (token - waited == DEPTH)
            wait_for(d, runs[waited++ % DEPTH]);
        enqueue_one(d, &runs[token % DEPTH], &us);
        if (token >= WARM_UP)
            d->enqueue_us[token - WARM_UP] = us;
    }
    while (d->queued && waited < d->tokens)
        wait_for(d, runs[waited++ % DEPTH]);
    int code = report(d, &before, (now_us() - start) / 1e6, counted);
    return code == 0 && exact ? 2 : code;
}

/* Numbers above 0, separated by commas. */
static bool read_prompts(decoding *d, const char *text) {
    while (d->prompt_count < MOST_PROMPTS) {
        char *end;
        long long tokens = strtoll(text, &end, 10);
        if (end == text || tokens < 1)
            return false;
        d->prompts[d->prompt_count++] = tokens;
        d->longest = tokens > d->longest ? tokens : d->longest;
        if (*end == '\0')
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

int main(int count, char **arguments) {
    const char *prompts = NULL;
    if (count > 2 && strcmp(arguments[1], "--prompts") == 0) {
        prompts = arguments[2];
        arguments += 2;
        count -= 2;
    }
    if (count < 4) {
        fprintf(stderr, "usage: decode [--prompts N[,N...]] MODEL DIGESTS WAY [TOKENS [CAPACITY [DRIVER]]]\n");
        return 1;
    }
    decoding d = {.way = arguments[3],
                  .tokens = count > 4 ? atoll(arguments[4]) : 4096,
                  .capacity = count > 5 ? atoll(arguments[5]) : 4096,
                  .digests = fopen(arguments[2], "w"),
                  .random = 1};
    if (prompts != NULL && !read_prompts(&d, prompts)) {
        fprintf(stderr, "--prompts takes up to %d numbers above 0, separated by commas, not %s\n", MOST_PROMPTS,
                prompts);
        return 1;
    }
    d.by_hand = strncmp(d.way, "hand", 4) == 0;
    d.queued = strcmp(d.way, "queue") == 0;
    d.on_device = strcmp(d.way, "hand") != 0 && strcmp(d.way, "cpu") != 0;
    if (d.digests == NULL || d.tokens <= WARM_UP) {
        fprintf(stderr, "cannot write %s, or fewer than %d tokens\n", arguments[2], WARM_UP + 1);
        return 1;
    }
    open_decoding(&d, arguments[1], count > 6 ? arguments[6] : NULL);
    int code = decode(&d);
    if (fclose(d.digests) != 0)
        code = 1;
    close_decoding(&d);
    return code;
}
