/* Batches: the cache's pages, and steps of several sequences in one run. */
#include <string.h>

#include "base/allocation.h"
#include "llm/llm.h"
#include "llm/step_extents.h"
#include "runtime/leaving_out.h"
#include "runtime/session_threads.h"
#include "runtime/state.h"

#define DEFAULT_SEQUENCES 8

static int64_t pages_for(int64_t positions, int64_t page) {
    return positions / page + (positions % page != 0);
}

/* ---- making one ---- */

/* The cache and the session of the model as it is now. On failure the batch has those that it had. */
static sb_status renew(sb_llm_batch *batch, sb_error *error) {
    static const char *const symbols[] = {SB_LLM_PAGES_SYMBOL, SB_LLM_PAGE_SYMBOL};
    const int64_t extents[] = {batch->pages.count, batch->page_positions};
    sb_state_options how = SB_STATE_OPTIONS_DEFAULT;
    sb_session_options own = batch->options;
    sb_state *state, *old_state = batch->state;
    sb_session *session, *old_session = batch->session;
    how.device = own.device;
    how.memory_limit = own.memory_limit;
    how.symbol_count = 2;
    how.symbols = symbols;
    how.symbol_values = extents;
    SB_TRY(sb_state_create(batch->llm->model, &how, &state, error));
    own.state = state;
    own.entry = "step";
    sb_status status = sb_session_create(batch->llm->model, &own, &session, error);
    if (status != SB_OK) {
        sb_state_release(state);
        return status;
    }
    batch->state = state;
    batch->session = session; /* before the old one is gone: a handler of signals may interrupt it */
    batch->version = batch->llm->version;
    sb_session_destroy(old_session);
    sb_state_release(old_state);
    return SB_OK;
}

static sb_status keep_options(sb_llm_batch *batch, const sb_session_options *options, sb_error *error) {
    batch->options = *options;
    if (options->struct_bytes != sizeof *options || options->force_cpu == NULL)
        return SB_OK; /* (of another size: creating the session refuses it) */
    batch->options.force_cpu = batch->force_cpu = sb_duplicate_string(options->force_cpu);
    return batch->force_cpu != NULL ? SB_OK : sb_fail_memory(error, strlen(options->force_cpu) + 1);
}

sb_status sb_llm_batch_make(sb_llm *llm, const sb_session_options *options, int64_t pages, int64_t page_positions,
                            sb_llm_batch **batch, sb_error *error) {
    if (options->entry != NULL || options->state != NULL || options->capacity_count != 0 || options->device_outputs)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sequences have an entry graph and a state of their own, and logits come to the host: leave "
                       "entry, state, capacities and device_outputs as they are");
    sb_llm_batch *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    fresh->llm = llm;
    fresh->page_positions = page_positions;
    atomic_fetch_add_explicit(&llm->references, 1, memory_order_relaxed);
    sb_status status = sb_llm_pages_create(pages, &fresh->pages, error);
    if (status == SB_OK)
        status = keep_options(fresh, options, error);
    if (status == SB_OK)
        status = renew(fresh, error);
    if (status != SB_OK) {
        sb_llm_batch_release(fresh);
        return status;
    }
    *batch = fresh;
    return SB_OK;
}

sb_status sb_llm_batch_create(sb_llm *llm, const sb_llm_batch_options *options, sb_llm_batch **batch, sb_error *error) {
    const sb_llm_batch_options standard = SB_LLM_BATCH_OPTIONS_DEFAULT;
    const sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    options = options != NULL ? options : &standard;
    if (options->struct_bytes != sizeof *options || options->pages < 0 || options->pages > (int64_t)1 << 32)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_llm_batch_options: struct_bytes is not set, or %lld pages are not from 0 to 2^32",
                       (long long)options->pages);
    int64_t pages = options->pages;
    if (pages == 0)
        pages = DEFAULT_SEQUENCES * pages_for(llm->description.context, SB_LLM_PAGE_POSITIONS);
    return sb_llm_batch_make(llm, options->session != NULL ? options->session : &session, pages, SB_LLM_PAGE_POSITIONS,
                             batch, error);
}

void sb_llm_batch_release(sb_llm_batch *batch) {
    if (batch == NULL || --batch->references > 0)
        return;
    sb_session_destroy(batch->session);
    sb_state_release(batch->state);
    sb_llm_pages_clear(&batch->pages);
    sb_llm_release(batch->llm);
    sb_free(batch->force_cpu);
    sb_free(batch);
}

void sb_llm_batch_interrupt(sb_llm_batch *batch) {
    sb_session_interrupt(batch->session);
}

int64_t sb_llm_batch_pages(const sb_llm_batch *batch) {
    return batch->pages.count;
}

int64_t sb_llm_batch_free_pages(const sb_llm_batch *batch) {
    return batch->pages.free_count;
}

/* ---- checking a step ---- */

/* `ahead`: a part may take the token that waits for it. */
static sb_status check_part(const sb_llm_batch *batch, const sb_llm_step_part *part, bool ahead, sb_error *error) {
    const sb_llm_description *about = &batch->llm->description;
    int64_t length = part->sequence->length;
    if (part->sequence->batch != batch)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a sequence is of another batch");
    if (length > 0 && part->sequence->version != batch->llm->version)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the %lld positions of a sequence are of weights that were replaced: trim it to 0",
                       (long long)length);
    if (part->count < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there are no tokens");
    if (part->count > about->context - length)
        return sb_fail(error, SB_ERROR_LIMIT,
                       "%lld tokens behind %lld are more than the context of %lld: load the model with a longer one",
                       (long long)part->count, (long long)length, (long long)about->context);
    bool waits = ahead && part->tokens == NULL && part->count == 1 && length > 0;
    for (int64_t i = 0; i < part->count && !waits; i++) {
        if (part->tokens[i] < 0 || part->tokens[i] >= about->vocabulary)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld of %lld is %lld; the model has %lld",
                           (long long)i, (long long)part->count, (long long)part->tokens[i],
                           (long long)about->vocabulary);
    }
    for (int64_t i = 0; i < part->wanted_count; i++) {
        if (part->wanted[i] < 0 || part->wanted[i] >= part->count)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "logits are wanted of token %lld of %lld",
                           (long long)part->wanted[i], (long long)part->count);
    }
    return SB_OK;
}

/* Whether no sequence is in two parts. */
static bool are_distinct(int count, const sb_llm_step_part *parts) {
    bool distinct = true;
    for (int i = 0; i < count; i++)
        parts[i].sequence->part = -1;
    for (int i = 0; i < count; i++) {
        distinct = distinct && parts[i].sequence->part < 0;
        parts[i].sequence->part = i;
    }
    return distinct;
}

static sb_status check_parts(const sb_llm_batch *batch, int count, const sb_llm_step_part *parts, bool ahead,
                             sb_error *error) {
    if (count < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there are no parts");
    for (int i = 0; i < count; i++)
        SB_TRY(check_part(batch, &parts[i], ahead, error));
    if (!are_distinct(count, parts))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a sequence is in two parts of one step");
    return SB_OK;
}

/* ---- what a run is told ---- */

static sb_status create_inputs(const sb_llm_step_extents *extents, sb_tensor *inputs[SB_LLM_INPUTS], sb_error *error) {
    const int64_t rows[] = {1, extents->rows}, table[] = {extents->sequences, extents->columns};
    const int64_t integers[] = {extents->choices, SB_CHOOSE_INTEGER_COLUMNS};
    const int64_t reals[] = {extents->choices, extents->settings};
    SB_TRY(sb_tensor_create(SB_S64, 2, rows, &inputs[SB_LLM_TOKENS], error));
    SB_TRY(sb_tensor_create(SB_S64, 2, rows, &inputs[SB_LLM_POSITIONS], error));
    for (int i = SB_LLM_STARTS; i <= SB_LLM_BEGINS; i++)
        SB_TRY(sb_tensor_create(SB_S64, 1, table, &inputs[i], error));
    SB_TRY(sb_tensor_create(SB_S64, 2, table, &inputs[SB_LLM_TABLE], error));
    SB_TRY(sb_tensor_create(SB_S64, 1, &extents->wanted, &inputs[SB_LLM_WANTED], error));
    SB_TRY(sb_tensor_create(SB_S64, 2, integers, &inputs[SB_LLM_CHOICES], error));
    SB_TRY(sb_tensor_create(SB_F32, 2, reals, &inputs[SB_LLM_SETTINGS], error));
    return sb_tensor_create(SB_S64, 1, &extents->scored, &inputs[SB_LLM_SCORED], error);
}

/* The page of a position that the sequence has, or is about to have: where the token behind it waits. */
static int64_t page_of(const sb_llm_sequence *sequence, int64_t position) {
    return sequence->pages[position / sequence->batch->page_positions];
}

static int64_t token_of(const sb_llm_step_part *part, int64_t row) {
    return part->tokens != NULL ? part->tokens[row]
                                : sb_choose_waiting(page_of(part->sequence, part->sequence->length - 1));
}

/* Choices behind those of the step have no row and no slot, and come to nothing. */
static void fill_choices(const sb_llm_stepping *s, const sb_llm_step_extents *extents,
                         sb_tensor *inputs[SB_LLM_INPUTS]) {
    static const sb_choose_settings nothing = {.top_p = 1};
    int64_t *integers = sb_tensor_mutable_data(inputs[SB_LLM_CHOICES]);
    float *reals = sb_tensor_mutable_data(inputs[SB_LLM_SETTINGS]);
    for (int64_t i = 0; i < extents->choices; i++) {
        const sb_llm_choice *choice = i < extents->used.choices ? &s->ahead->choices[i] : NULL;
        const sb_llm_step_part *part = choice != NULL ? &s->parts[choice->part] : NULL;
        sb_choose_write(choice != NULL ? &choice->by : &nothing, choice != NULL ? choice->row : -1,
                        part != NULL ? page_of(part->sequence, part->sequence->length + part->count - 1) : -1,
                        integers + i * SB_CHOOSE_INTEGER_COLUMNS, reals + i * extents->settings, extents->settings);
    }
}

/* The sequences of the parts; then one that is nobody's, which has the rows behind theirs, if there are any; then some without rows. */
static void fill_sequences(const sb_llm_stepping *step, const sb_llm_step_extents *extents,
                           int64_t *const to[SB_LLM_INPUTS]) {
    int64_t begin = 0;
    for (int64_t s = 0; s < extents->sequences; s++) {
        const sb_llm_step_part *part = s < step->count ? &step->parts[s] : NULL;
        const sb_llm_sequence *sequence = part != NULL ? part->sequence : NULL;
        to[SB_LLM_BEGINS][s] = begin;
        to[SB_LLM_STARTS][s] = part != NULL ? sequence->length : SB_LLM_NOBODY;
        to[SB_LLM_LENGTHS][s] = part != NULL ? sequence->length + part->count : 0;
        for (int64_t c = 0; c < extents->columns; c++)
            to[SB_LLM_TABLE][s * extents->columns + c] =
                part != NULL && c < sequence->page_count ? sequence->pages[c] : 0;
        begin = part != NULL ? begin + part->count : extents->rows;
    }
}

static void fill_rows(const sb_llm_stepping *step, const sb_llm_step_extents *extents,
                      int64_t *const to[SB_LLM_INPUTS]) {
    int64_t row = 0, wanted = 0;
    for (int s = 0; s < step->count; s++) {
        const sb_llm_step_part *part = &step->parts[s];
        for (int64_t i = 0; i < part->wanted_count; i++)
            to[SB_LLM_WANTED][wanted++] = row + part->wanted[i];
        for (int64_t i = 0; i < part->count; i++) {
            to[SB_LLM_TOKENS][row] = token_of(part, i);
            to[SB_LLM_POSITIONS][row++] = part->sequence->length + i;
        }
    }
    for (; row < extents->rows; row++)
        to[SB_LLM_TOKENS][row] = to[SB_LLM_POSITIONS][row] = 0;
    for (; wanted < extents->wanted; wanted++)
        to[SB_LLM_WANTED][wanted] = 0;
    for (int64_t i = 0; i < extents->scored; i++)
        to[SB_LLM_SCORED][i] = i;
}

static void fill_inputs(const sb_llm_stepping *step, const sb_llm_step_extents *extents,
                        sb_tensor *inputs[SB_LLM_INPUTS]) {
    int64_t *to[SB_LLM_INPUTS];
    for (int i = 0; i < SB_LLM_INPUTS; i++)
        to[i] = i != SB_LLM_SETTINGS ? sb_tensor_mutable_data(inputs[i]) : NULL;
    fill_sequences(step, extents, to);
    fill_rows(step, extents, to);
    fill_choices(step, extents, inputs);
}

/* ---- a step ---- */

static sb_status reserve(int count, const sb_llm_step_part *parts, sb_error *error) {
    for (int i = 0; i < count; i++) {
        sb_error why;
        sb_status status = sb_llm_sequence_reserve(parts[i].sequence, parts[i].count, &why);
        if (status != SB_OK)
            return count == 1 ? sb_fail(error, status, "%s", why.message)
                              : sb_fail(error, status, "part %d of %d: %s", i, count, why.message);
    }
    return SB_OK;
}

/* ---- steps on their way ---- */

/* Waits for the oldest one, and keeps what came of it for its owner. */
static void land(sb_llm_batch *batch) {
    sb_llm_flight *flight = batch->flights;
    sb_value values[SB_LLM_OUTPUTS] = {{0}};
    batch->flights = flight->behind;
    batch->flight_count--;
    flight->status = sb_session_wait(batch->session, flight->run, values, &flight->error);
    flight->run = 0;
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        flight->outputs[i] = flight->status == SB_OK && values[i].kind == SB_KIND_TENSOR ? values[i].tensor : NULL;
}

/* A step needs a place in the session's queue; and a session that is about to go has none of their runs left. */
static void make_way(sb_llm_batch *batch) {
    bool is_old = batch->version != batch->llm->version;
    while (batch->flight_count > 0 && (is_old || batch->flight_count >= batch->options.queue_depth))
        land(batch);
}

static sb_status give(sb_llm_batch *batch, sb_tensor *const inputs[SB_LLM_INPUTS], bool logits, sb_llm_flight *flight,
                      sb_error *error) {
    sb_value values[SB_LLM_INPUTS];
    for (int i = 0; i < SB_LLM_INPUTS; i++)
        values[i] = (sb_value){.kind = SB_KIND_TENSOR, .tensor = inputs[i]};
    *flight = (sb_llm_flight){0};
    sb_session_leave_out(batch->session, logits ? 0 : 1 << SB_LLM_LOGITS);
    SB_TRY(sb_session_enqueue(batch->session, values, &flight->run, error));
    sb_llm_flight **last = &batch->flights;
    while (*last != NULL)
        last = &(*last)->behind;
    *last = flight;
    batch->flight_count++;
    return SB_OK;
}

/* Leaves of the output, [1, rows, …], the first rows; NULL stays. */
static sb_status keep_first(sb_tensor **output, int64_t rows, sb_error *error) {
    sb_tensor *all = *output, *first;
    if (all == NULL || all->dims[1] <= rows)
        return SB_OK;
    const int64_t dims[] = {1, rows, all->dims[2]};
    SB_TRY(sb_tensor_over(all->storage, all->data, all->dtype, 3, dims, NULL, &first, error));
    sb_tensor_release(all);
    *output = first;
    return SB_OK;
}

/* Nobody chooses: there is nothing to be had. */
static sb_status run_now(sb_llm_batch *batch, const sb_llm_step_extents *extents,
                         sb_tensor *const inputs[SB_LLM_INPUTS], sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    sb_session_leave_out(batch->session, 0);
    SB_TRY(sb_session_run_tensors(batch->session, inputs, outputs, error));
    sb_tensor_release(outputs[SB_LLM_CHOSEN]);
    outputs[SB_LLM_CHOSEN] = NULL;
    sb_status status = SB_OK;
    for (int i = 0; i < SB_LLM_OUTPUTS && status == SB_OK; i++)
        status = keep_first(&outputs[i], extents->used.wanted, error);
    for (int i = 0; i < SB_LLM_OUTPUTS && status != SB_OK; i++) {
        sb_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

/* (A graph without hidden states takes no SB_LLM_SCORED, the last of the inputs.) */
static sb_status start(sb_llm_batch *batch, const sb_llm_stepping *s, sb_llm_flight *flight,
                       sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    sb_tensor *inputs[SB_LLM_INPUTS] = {NULL};
    const sb_llm_step_extents extents = sb_llm_step_extents_of(s);
    sb_status status = create_inputs(&extents, inputs, error);
    if (status == SB_OK) {
        fill_inputs(s, &extents, inputs);
        status = s->ahead != NULL ? give(batch, inputs, s->ahead->logits, flight, error)
                                  : run_now(batch, &extents, inputs, outputs, error);
        if (status != SB_OK)
            sb_llm_batch_mend(batch);
    }
    for (int i = 0; i < SB_LLM_INPUTS; i++)
        sb_tensor_release(inputs[i]);
    return status;
}

static sb_status step(sb_llm_batch *batch, const sb_llm_stepping *s, sb_llm_flight *flight,
                      sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    SB_TRY(check_parts(batch, s->count, s->parts, s->ahead != NULL, error));
    make_way(batch);
    if (batch->version != batch->llm->version)
        SB_TRY(renew(batch, error));
    sb_status status = reserve(s->count, s->parts, error);
    if (status == SB_OK)
        status = start(batch, s, flight, outputs, error);
    for (int i = 0; i < s->count; i++) {
        sb_llm_sequence *sequence = s->parts[i].sequence;
        if (status == SB_OK) {
            sequence->version = batch->version;
            sequence->length += s->parts[i].count;
        } else {
            sb_llm_sequence_let_go(sequence);
        }
    }
    return status;
}

static void no_outputs(sb_tensor *outputs[SB_LLM_OUTPUTS]) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        outputs[i] = NULL;
}

sb_workers *sb_llm_batch_workers(const sb_llm_batch *batch) {
    return sb_session_workers(batch->session);
}

bool sb_llm_batch_has_device(const sb_llm_batch *batch) {
    return sb_session_has_device(batch->session);
}

/* Whether steps have rows that nobody needs: on a device, where planning and recording take as long as some tokens do. A single page has one
 * sequence, which is a session's, and is at new tokens nearly always. */
static bool pads(const sb_llm_batch *batch) {
    return sb_llm_batch_has_device(batch) && batch->pages.count > 1;
}

int64_t sb_llm_batch_chunk(const sb_llm_batch *batch, int64_t asked) {
    if (asked > 0)
        return asked < SB_LLM_MOST_CHUNK ? asked : SB_LLM_MOST_CHUNK;
    return sb_llm_batch_has_device(batch) ? SB_LLM_MOST_CHUNK : SB_LLM_CHUNK;
}

sb_status sb_llm_batch_enqueue(sb_llm_batch *batch, int count, const sb_llm_step_part *parts, const sb_llm_ahead *ahead,
                               sb_llm_flight *flight, sb_error *error) {
    const sb_llm_stepping s = {count, parts, ahead, true, pads(batch)};
    return step(batch, &s, flight, NULL, error);
}

sb_status sb_llm_batch_collect(sb_llm_batch *batch, sb_llm_flight *flight, sb_tensor *outputs[SB_LLM_OUTPUTS],
                               sb_error *error) {
    while (flight->run != 0)
        land(batch);
    for (int i = 0; i < SB_LLM_OUTPUTS; i++) {
        outputs[i] = flight->outputs[i];
        flight->outputs[i] = NULL;
    }
    return flight->status == SB_OK ? SB_OK : sb_fail(error, flight->status, "%s", flight->error.message);
}

void sb_llm_batch_mend(sb_llm_batch *batch) {
    sb_state_mend(batch->state);
}

sb_status sb_llm_batch_run(sb_llm_batch *batch, int count, const sb_llm_step_part *parts,
                           sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    const sb_llm_stepping s = {count, parts, NULL, true, pads(batch)};
    no_outputs(outputs);
    return step(batch, &s, NULL, outputs, error);
}

sb_status sb_llm_batch_look(sb_llm_batch *batch, int count, const sb_llm_step_part *parts, sb_tensor **hidden,
                            sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    const sb_llm_stepping s = {count, parts, NULL, false, pads(batch)};
    no_outputs(outputs);
    SB_TRY(step(batch, &s, NULL, outputs, error));
    sb_tensor_release(outputs[SB_LLM_LOGITS]);
    *hidden = outputs[SB_LLM_HIDDEN];
    return SB_OK;
}

sb_status sb_llm_batch_step(sb_llm_batch *batch, int count, const sb_llm_step_part *parts, sb_tensor **logits,
                            sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    SB_TRY(sb_llm_batch_run(batch, count, parts, outputs, error));
    sb_tensor_release(outputs[SB_LLM_HIDDEN]);
    *logits = outputs[SB_LLM_LOGITS];
    return SB_OK;
}
