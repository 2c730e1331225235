/* Requests over a batch: who runs, with whose pages, and what each step is made of.
 *
 * On a device steps choose tokens themselves, and while it does one the next is there: between two calls of sb_llm_queue_step one step is on
 * its way. A request has then two lengths: its sequence's, with the positions of such steps, and `known`, without. What other requests
 * begin with are known positions alone.
 *
 * A request joins only when the pages that are free, less those that the running ones may still take, are enough for all that it
 * may come to. So whether it fails is a matter of its own size, not of its company. */
#include <string.h>

#include "base/allocation.h"
#include "llm/generating.h"

#define DEFAULT_PARALLEL 16
#define MOST_KEPT 64    /* requests that have ended, whose pages are there for the next */
#define LEAST_SHARED 16 /* tokens for which another request's pages are worth it */
#define MOST_AHEAD 2    /* steps on their way */

typedef struct entry {
    struct entry *next;
    sb_generating g;
    sb_llm_end_function *on_end;
    sb_llm_sequence *sequence;
    int64_t known;       /* positions of it whose steps have been taken */
    int64_t pages;       /* that it may come to have */
    struct entry *donor; /* whose prompt it waits for: both run */
    int64_t same;        /* tokens that it begins with like that */
    int64_t *tokens;
} entry;

/* A list, first in first out. */
typedef struct entries {
    entry *first, **end;
    int64_t count;
} entries;

/* A step, and who has which part of it: each array has room for `parallel`. */
typedef struct departure {
    sb_llm_flight flight;
    int count;
    sb_llm_step_part *parts;
    entry **owners;   /* NULL: it has ended meanwhile */
    int64_t *choices; /* which of the step's choices is each one's next token; -1: none */
} departure;

struct sb_llm_queue {
    sb_llm_batch *batch;
    int64_t parallel, rows; /* rows of 0: step_rows says */
    bool shares;
    entries waiting, running, kept; /* kept: have ended */
    sb_llm_queue_counters counters;
    departure departures[MOST_AHEAD];
    int first, underway;    /* those that are on their way, the oldest first */
    sb_llm_choice *choices; /* of the step that is being given: [parallel] */
};

static void put(entries *list, entry *e) {
    if (list->first == NULL)
        list->end = &list->first;
    e->next = NULL;
    *list->end = e;
    list->end = &e->next;
    list->count++;
}

static void take_out(entries *list, entry *e) {
    entry **at = &list->first;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->next == NULL)
        list->end = at;
    list->count--;
}

/* ---- making and ending ---- */

static void destroy_entry(entry *e) {
    if (e == NULL)
        return;
    sb_generating_clear(&e->g);
    sb_llm_sequence_release(e->sequence);
    sb_free(e->tokens);
    sb_free(e);
}

static void destroy_all(entries *list) {
    while (list->first != NULL) {
        entry *e = list->first;
        take_out(list, e);
        destroy_entry(e);
    }
}

static void release_outputs(sb_tensor *outputs[SB_LLM_OUTPUTS]) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(outputs[i]);
}

static departure *oldest(sb_llm_queue *queue) {
    departure *d = &queue->departures[queue->first];
    queue->first = (queue->first + 1) % MOST_AHEAD;
    queue->underway--;
    return d;
}

/* Lets steps that are on their way go by, whatever becomes of them. */
static void drop(sb_llm_queue *queue) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    while (queue->underway > 0) {
        if (sb_llm_batch_collect(queue->batch, &oldest(queue)->flight, outputs, NULL) == SB_OK)
            release_outputs(outputs);
        else
            sb_llm_batch_mend(queue->batch);
    }
}

void sb_llm_queue_destroy(sb_llm_queue *queue) {
    if (queue == NULL)
        return;
    drop(queue);
    destroy_all(&queue->waiting);
    destroy_all(&queue->running);
    destroy_all(&queue->kept);
    sb_llm_batch_release(queue->batch);
    for (int i = 0; i < MOST_AHEAD; i++) {
        sb_free(queue->departures[i].parts);
        sb_free(queue->departures[i].owners);
        sb_free(queue->departures[i].choices);
    }
    sb_free(queue->choices);
    sb_free(queue);
}

static sb_status make_room(sb_llm_queue *queue, sb_error *error) {
    size_t count = (size_t)queue->parallel;
    bool has = (queue->choices = sb_allocate_array(count, sizeof *queue->choices)) != NULL;
    for (int i = 0; i < MOST_AHEAD && has; i++) {
        departure *d = &queue->departures[i];
        d->parts = sb_allocate_array(count, sizeof *d->parts);
        d->owners = sb_allocate_array(count, sizeof *d->owners);
        d->choices = sb_allocate_array(count, sizeof *d->choices);
        has = d->parts != NULL && d->owners != NULL && d->choices != NULL;
    }
    return has ? SB_OK : sb_fail_memory(error, count * sizeof(sb_llm_step_part));
}

sb_status sb_llm_queue_create(sb_llm_batch *batch, const sb_llm_queue_options *options, sb_llm_queue **queue,
                              sb_error *error) {
    const sb_llm_queue_options standard = SB_LLM_QUEUE_OPTIONS_DEFAULT;
    options = options != NULL ? options : &standard;
    if (options->struct_bytes != sizeof *options || options->parallel < 0 || options->parallel > 1 << 16 ||
        options->rows < 0)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "sb_llm_queue_options: struct_bytes is not set, %lld in parallel are not from 0 to 65536, or %lld "
            "rows are negative",
            (long long)options->parallel, (long long)options->rows);
    sb_llm_queue *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->batch = batch;
    batch->references++;
    fresh->parallel = options->parallel > 0 ? options->parallel : DEFAULT_PARALLEL;
    fresh->rows = options->rows;
    fresh->shares = !options->no_sharing;
    sb_status status = make_room(fresh, error);
    if (status != SB_OK) {
        sb_llm_queue_destroy(fresh);
        return status;
    }
    *queue = fresh;
    return SB_OK;
}

/* ---- requests ---- */

/* Pages for the prompt and all new tokens but the last, which is put behind nothing. */
static sb_status measure(const sb_llm_queue *queue, const sb_llm_request *request, int64_t *pages, sb_error *error) {
    int64_t context = queue->batch->llm->description.context, page = queue->batch->page_positions;
    if (request->count > context)
        return sb_fail(error, SB_ERROR_LIMIT,
                       "a prompt of %lld tokens is more than the context of %lld: load the model with a longer one",
                       (long long)request->count, (long long)context);
    int64_t more = request->generation.limit > 0 ? request->generation.limit - 1 : 0;
    int64_t positions = request->count + (more < context - request->count ? more : context - request->count);
    *pages = positions / page + (positions % page != 0);
    if (*pages <= queue->batch->pages.count)
        return SB_OK;
    return sb_fail(
        error, SB_ERROR_LIMIT,
        "a prompt of %lld tokens and %lld new ones need %lld pages of %lld positions, and there are %lld: make "
        "the batch with more pages, or ask for fewer tokens",
        (long long)request->count, (long long)request->generation.limit, (long long)*pages, (long long)page,
        (long long)queue->batch->pages.count);
}

static sb_status check_request(const sb_llm_queue *queue, const sb_llm_request *request, sb_error *error) {
    int64_t vocabulary = queue->batch->llm->description.vocabulary;
    if (request->struct_bytes != sizeof *request || request->count < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a request needs struct_bytes and a prompt of at least one token");
    for (int64_t i = 0; i < request->count; i++) {
        if (request->tokens[i] < 0 || request->tokens[i] >= vocabulary)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld of %lld is %lld; the model has %lld",
                           (long long)i, (long long)request->count, (long long)request->tokens[i],
                           (long long)vocabulary);
    }
    return SB_OK;
}

static sb_status fill_entry(const sb_llm_queue *queue, const sb_llm_request *request, entry *e, sb_error *error) {
    e->on_end = request->on_end;
    SB_TRY(measure(queue, request, &e->pages, error));
    e->tokens = sb_allocate_array((size_t)request->count, sizeof *e->tokens);
    if (e->tokens == NULL)
        return sb_fail_memory(error, (size_t)request->count * sizeof *e->tokens);
    memcpy(e->tokens, request->tokens, (size_t)request->count * sizeof *e->tokens);
    return sb_generating_begin(&e->g, queue->batch->llm, &request->generation, 0, request->count, e->tokens, error);
}

sb_status sb_llm_queue_add(sb_llm_queue *queue, const sb_llm_request *request, sb_error *error) {
    SB_TRY(check_request(queue, request, error));
    entry *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    sb_status status = fill_entry(queue, request, fresh, error);
    if (status != SB_OK) {
        destroy_entry(fresh);
        return status;
    }
    put(&queue->waiting, fresh);
    return SB_OK;
}

/* ---- pages ---- */

static bool evict(sb_llm_queue *queue) {
    entry *oldest = queue->kept.first;
    if (oldest == NULL)
        return false;
    take_out(&queue->kept, oldest);
    destroy_entry(oldest);
    return true;
}

/* Pages that a running request may still take: a page that others have too is copied when it is written. */
static int64_t outstanding(const entry *e) {
    const sb_llm_sequence *sequence = e->sequence;
    int64_t at = sequence->length / sequence->batch->page_positions;
    bool copies = at < sequence->page_count && sequence->batch->pages.holders[sequence->pages[at]] > 1;
    return e->pages - sequence->page_count + copies;
}

static int64_t all_outstanding(const sb_llm_queue *queue) {
    int64_t wanted = 0;
    for (const entry *e = queue->running.first; e != NULL; e = e->next)
        wanted += outstanding(e);
    return wanted;
}

/* Whether free pages are enough for all that run; lets go of those that are kept until they are. Fewer are wanted then, too: a
 * page whose other holder is gone is not copied. */
static bool have_pages(sb_llm_queue *queue) {
    while (queue->batch->pages.free_count < all_outstanding(queue)) {
        if (!evict(queue))
            return false;
    }
    return true;
}

/* ---- equal beginnings ---- */

static int64_t count_same(const entry *left, const entry *right) {
    int64_t most = left->g.count < right->g.count ? left->g.count : right->g.count, same = 0;
    while (same < most && left->tokens[same] == right->tokens[same])
        same++;
    return same;
}

/* Looks for the request whose prompt begins most like this one's. The last token of a prompt is always run: its logits are
 * wanted. */
static void find_donor(const sb_llm_queue *queue, entry *e) {
    const entries *const lists[] = {&queue->running, &queue->kept};
    e->donor = NULL;
    e->same = LEAST_SHARED - 1;
    for (int l = 0; l < 2 && queue->shares && !e->g.about.score_prompt; l++) {
        for (entry *other = lists[l]->first; other != NULL; other = other->next) {
            int64_t same = count_same(e, other);
            same = same < e->g.count - 1 ? same : e->g.count - 1;
            if (l == 1 && same > other->known)
                same = other->known;
            if (same > e->same) {
                e->donor = other;
                e->same = same;
            }
        }
    }
}

/* Takes over the beginning that the donor has by now. */
static sb_status share(sb_llm_queue *queue, entry *e, sb_error *error) {
    int64_t length = e->donor->known < e->same ? e->donor->known : e->same;
    sb_llm_sequence *fork;
    SB_TRY(sb_llm_sequence_fork(e->donor->sequence, length, &fork, error));
    sb_llm_sequence_release(e->sequence);
    e->sequence = fork;
    e->donor = NULL;
    e->g.done = e->g.given = e->known = length;
    queue->counters.shared += length;
    return SB_OK;
}

static bool is_ready(const entry *donor, int64_t same) {
    return donor->g.ended || donor->known >= same;
}

/* ---- joining and leaving ---- */

/* What it has in steps on their way is nobody's. They may still write behind its known positions, where nobody looks: whoever has those
 * pages next writes before it reads, in a step behind them. */
static void forget_ahead(sb_llm_queue *queue, entry *e) {
    for (int i = 0; i < queue->underway; i++) {
        departure *d = &queue->departures[(queue->first + i) % MOST_AHEAD];
        for (int o = 0; o < d->count; o++)
            d->owners[o] = d->owners[o] == e ? NULL : d->owners[o];
    }
    sb_status trimmed = sb_llm_sequence_trim(e->sequence, e->known, NULL); /* always possible: it is as long */
    (void)trimmed;
}

/* Leaves the running ones, and tells of it. Who waits for it goes on with what it has. */
static void leave(sb_llm_queue *queue, entry *e, sb_status status, const sb_error *why) {
    sb_error error = {0};
    sb_llm_result result;
    e->g.ended = true;
    forget_ahead(queue, e);
    for (entry *other = queue->running.first; other != NULL; other = other->next) {
        if (other->donor == e && share(queue, other, NULL) != SB_OK)
            other->donor = NULL; /* it runs its prompt itself */
    }
    take_out(&queue->running, e);
    if (status == SB_OK) {
        status = sb_generating_finish(&e->g, &result, &error);
        why = &error;
    }
    sb_generating_clear(&e->g);
    put(&queue->kept, e);
    if (queue->kept.count > MOST_KEPT)
        evict(queue);
    if (e->on_end != NULL)
        e->on_end(e->g.about.context, status, why, status == SB_OK ? &result : NULL);
}

/* Lets the first of those that wait join; *joins says whether there were pages. */
static sb_status join(sb_llm_queue *queue, bool *joins, sb_error *error) {
    entry *e = queue->waiting.first;
    *joins = false;
    SB_TRY(sb_llm_sequence_create(queue->batch, &e->sequence, error));
    find_donor(queue, e);
    int64_t shared = queue->counters.shared;
    sb_status status = e->donor != NULL && is_ready(e->donor, e->same) ? share(queue, e, error) : SB_OK;
    take_out(&queue->waiting, e);
    put(&queue->running, e);
    *joins = status == SB_OK && have_pages(queue);
    if (*joins)
        return SB_OK;
    take_out(&queue->running, e);
    entry *behind = queue->waiting.first;
    e->next = behind;
    queue->waiting.first = e;
    queue->waiting.end = behind == NULL ? &e->next : queue->waiting.end;
    queue->waiting.count++;
    sb_llm_sequence_release(e->sequence);
    e->sequence = NULL;
    e->donor = NULL;
    e->g.done = e->g.given = e->known = 0;
    queue->counters.shared = shared;
    return status;
}

/* Those whose donors have come far enough begin. */
static sb_status settle(sb_llm_queue *queue, sb_error *error) {
    for (entry *e = queue->running.first; e != NULL; e = e->next) {
        if (e->donor != NULL && is_ready(e->donor, e->same))
            SB_TRY(share(queue, e, error));
    }
    bool joins = true;
    while (joins && queue->waiting.first != NULL && queue->running.count < queue->parallel)
        SB_TRY(join(queue, &joins, error));
    return SB_OK;
}

/* Pages that were computed with weights that have been replaced are nobody's beginning. */
static void forget_replaced(sb_llm_queue *queue) {
    while (queue->kept.first != NULL && queue->kept.first->sequence->version != queue->batch->llm->version)
        evict(queue);
}

/* ---- a step ---- */

/* What a request puts into the step, if there are pages for it: `most` tokens. Without pages, which somebody else must have
 * taken from the batch, it ends, once its steps on their way have been heard of. */
static bool add_part(sb_llm_queue *queue, departure *d, entry *e, int64_t most) {
    sb_llm_step_part *part = &d->parts[d->count];
    sb_error error;
    part->sequence = e->sequence;
    sb_generating_next(&e->g, most, part);
    sb_status status = sb_llm_sequence_reserve(e->sequence, part->count, &error);
    while (status == SB_ERROR_LIMIT && evict(queue))
        status = sb_llm_sequence_reserve(e->sequence, part->count, &error);
    if (status == SB_OK)
        d->owners[d->count++] = e;
    else if (e->sequence->length == e->known)
        leave(queue, e, status, &error);
    return status == SB_OK;
}

/* The most rows of a step. Those that are at new tokens get one more with each step, and should not wait long for it; where nobody is,
 * long steps of prompts take less time on a device. */
static int64_t step_rows(const sb_llm_queue *queue) {
    if (queue->rows > 0)
        return queue->rows;
    for (const entry *e = queue->running.first; e != NULL; e = e->next) {
        if (e->g.given == e->g.count)
            return SB_LLM_CHUNK;
    }
    return sb_llm_batch_chunk(queue->batch, 0);
}

/* New tokens first, one of each request; then prompts, as far as there is room. */
static void gather(sb_llm_queue *queue, departure *d) {
    int64_t room = step_rows(queue);
    d->count = 0;
    for (int prompts = 0; prompts < 2; prompts++) {
        for (entry *e = queue->running.first, *next; e != NULL; e = next) {
            next = e->next;
            bool has_prompt = e->g.given < e->g.count;
            if (has_prompt != (prompts == 1) || e->donor != NULL || (has_prompt && room < 1) ||
                !sb_generating_has_next(&e->g))
                continue;
            if (add_part(queue, d, e, room))
                room -= d->parts[d->count - 1].count;
        }
    }
}

/* Leaves the step to the device, with a choice for each token that it can choose. */
static sb_status give(sb_llm_queue *queue, departure *d, sb_error *error) {
    sb_llm_ahead ahead = {.choices = queue->choices};
    int64_t row = 0;
    for (int i = 0; i < d->count; i++) {
        const sb_generating *g = &d->owners[i]->g;
        const sb_llm_step_part *part = &d->parts[i];
        bool chooses = sb_llm_batch_has_device(queue->batch) && sb_generating_may_choose(g, part);
        row += part->wanted_count;
        d->choices[i] = chooses ? ahead.count : -1;
        if (chooses)
            queue->choices[ahead.count++] = (sb_llm_choice){i, row - 1, sb_generating_settings(g)};
        ahead.logits = ahead.logits || sb_generating_wants_logits(g, part, chooses);
    }
    SB_TRY(sb_llm_batch_enqueue(queue->batch, d->count, d->parts, &ahead, &d->flight, error));
    for (int i = 0; i < d->count; i++)
        sb_generating_gave(&d->owners[i]->g, &d->parts[i], d->choices[i] >= 0);
    queue->underway++;
    return SB_OK;
}

/* Where the host chooses for one that runs, it would be left out of every other step if the next were given before: none is. */
static int most_ahead(const sb_llm_queue *queue) {
    bool waits = !sb_llm_batch_has_device(queue->batch) || queue->batch->options.queue_depth < MOST_AHEAD;
    for (const entry *e = queue->running.first; e != NULL && !waits; e = e->next)
        waits = !sb_generating_is_plain(&e->g) || e->g.about.score_prompt;
    return waits ? 1 : MOST_AHEAD;
}

/* Gives steps until as many are on their way as may be, or nobody has anything to put into one. */
static sb_status fill(sb_llm_queue *queue, sb_error *error) {
    while (queue->underway < most_ahead(queue)) {
        departure *d = &queue->departures[(queue->first + queue->underway) % MOST_AHEAD];
        SB_TRY(settle(queue, error));
        gather(queue, d);
        if (d->count == 0)
            break;
        SB_TRY(give(queue, d, error));
    }
    return SB_OK;
}

/* Logits from which on threads share digests out: these take one some 60 us, as 128,256 take 500. */
#define MANY_LOGITS (1 << 14)

/* The digests of the step's parts from `begin` on, each of which is of another request. */
static void digest_parts(void *context, int64_t begin, int64_t end) {
    const departure *d = context;
    for (int64_t i = begin; i < end; i++) {
        if (d->owners[i] != NULL)
            sb_generating_digest(&d->owners[i]->g);
    }
}

static void digest_all(sb_llm_queue *queue, departure *d) {
    const int64_t vocabulary = queue->batch->llm->config.vocabulary;
    int64_t logits = 0;
    for (int i = 0; i < d->count; i++)
        logits += d->owners[i] != NULL && d->owners[i]->g.undigested != NULL ? vocabulary : 0;
    if (logits > 0)
        sb_workers_run(logits < MANY_LOGITS ? NULL : sb_llm_batch_workers(queue->batch), d->count, 1, digest_parts, d);
}

/* Tells of the step's tokens, one request behind the other; then of those requests that have ended well, when all digests are made, which
 * take longer than all else: 0.5 ms each of 128,256 logits. */
static void hand_out(sb_llm_queue *queue, departure *d, sb_tensor *const outputs[SB_LLM_OUTPUTS]) {
    sb_generated from = {.outputs = outputs, .workers = sb_llm_batch_workers(queue->batch)};
    queue->counters.steps++;
    for (int i = 0; i < d->count; i++) {
        sb_error error;
        entry *e = d->owners[i];
        const sb_llm_step_part *part = &d->parts[i];
        queue->counters.rows += part->count;
        if (e != NULL) {
            from.choice = d->choices[i];
            e->known += part->count;
            sb_status status = sb_generating_take(&e->g, part, &from, &error);
            if (status != SB_OK) {
                d->owners[i] = NULL;
                leave(queue, e, status, &error);
            }
        }
        from.row += part->wanted_count;
    }
    digest_all(queue, d);
    for (int i = 0; i < d->count; i++) {
        if (d->owners[i] != NULL && d->owners[i]->g.ended)
            leave(queue, d->owners[i], SB_OK, NULL);
    }
}

/* Behind a step that failed: requests are where they were when the last one was taken. */
static void turn_back(sb_llm_queue *queue) {
    drop(queue);
    for (entry *e = queue->running.first; e != NULL; e = e->next) {
        sb_status trimmed = sb_llm_sequence_trim(e->sequence, e->known, NULL); /* always possible: it is as long */
        (void)trimmed;
        sb_generating_turn_back(&e->g);
    }
    sb_llm_batch_mend(queue->batch);
}

/* Waits for the oldest step, and hands out what it gave. */
static sb_status take(sb_llm_queue *queue, sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    departure *d = oldest(queue);
    sb_status status = sb_llm_batch_collect(queue->batch, &d->flight, outputs, error);
    if (status != SB_OK) {
        turn_back(queue);
        return status;
    }
    hand_out(queue, d, outputs);
    release_outputs(outputs);
    return SB_OK;
}

/* A step that could not be given fails once those before it have been taken, if they go well. */
static sb_status take_all(sb_llm_queue *queue, sb_status status, const sb_error *why, sb_error *error) {
    while (queue->underway > 0)
        SB_TRY(take(queue, error));
    return sb_fail(error, status, "%s", why->message);
}

/* The first of those that wait, which nobody runs beside, and who has no pages all the same: the caller's own sequences have
 * them. */
static void refuse_first(sb_llm_queue *queue) {
    entry *e = queue->waiting.first;
    sb_error error;
    sb_status status =
        sb_fail(&error, SB_ERROR_LIMIT,
                "%lld pages are needed, and sequences outside of the queue leave %lld of %lld: release "
                "them, or make the batch with more pages",
                (long long)e->pages, (long long)queue->batch->pages.free_count, (long long)queue->batch->pages.count);
    take_out(&queue->waiting, e);
    if (e->on_end != NULL)
        e->on_end(e->g.about.context, status, &error, NULL);
    destroy_entry(e);
}

sb_status sb_llm_queue_step(sb_llm_queue *queue, bool *more, sb_error *error) {
    sb_error why;
    *more = true;
    forget_replaced(queue);
    sb_status status = fill(queue, &why);
    if (status != SB_OK)
        return take_all(queue, status, &why, error);
    if (queue->underway > 0)
        SB_TRY(take(queue, error));
    else if (queue->running.count == 0 && queue->waiting.count > 0)
        refuse_first(queue);
    *more = queue->running.count + queue->waiting.count > 0;
    if (!*more)
        drop(queue);
    return SB_OK;
}

sb_status sb_llm_queue_run(sb_llm_queue *queue, sb_error *error) {
    bool more = true;
    while (more)
        SB_TRY(sb_llm_queue_step(queue, &more, error));
    return SB_OK;
}

sb_llm_queue_counters sb_llm_queue_count(const sb_llm_queue *queue) {
    sb_llm_queue_counters counters = queue->counters;
    counters.waiting = queue->waiting.count;
    counters.running = queue->running.count;
    return counters;
}
