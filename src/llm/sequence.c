/* Sequences of a batch: the pages that each has, and what happens to those that several have. */
#include <string.h>

#include "base/allocation.h"
#include "llm/llm.h"
#include "runtime/state.h"

static int64_t pages_for(const sb_llm_batch *batch, int64_t positions) {
    return positions / batch->page_positions + (positions % batch->page_positions != 0);
}

/* ---- beginning and ending ---- */

sb_status sb_llm_sequence_create(sb_llm_batch *batch, sb_llm_sequence **sequence, sb_error *error) {
    sb_llm_sequence *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->batch = batch;
    batch->references++;
    *sequence = fresh;
    return SB_OK;
}

static void drop_pages(sb_llm_sequence *sequence, int64_t from) {
    while (sequence->page_count > from)
        sb_llm_pages_drop(&sequence->batch->pages, sequence->pages[--sequence->page_count]);
}

void sb_llm_sequence_release(sb_llm_sequence *sequence) {
    if (sequence == NULL)
        return;
    drop_pages(sequence, 0);
    sb_llm_batch_release(sequence->batch);
    sb_free(sequence->pages);
    sb_free(sequence);
}

/* Room in the list for `count` pages. */
static sb_status make_room(sb_llm_sequence *sequence, int64_t count, sb_error *error) {
    if (count <= sequence->page_room)
        return SB_OK;
    int64_t room = 2 * sequence->page_room > count ? 2 * sequence->page_room : count;
    int64_t *pages = sb_allocate_array((size_t)room, sizeof *pages);
    if (pages == NULL)
        return sb_fail_memory(error, (size_t)room * sizeof *pages);
    if (sequence->page_count > 0)
        memcpy(pages, sequence->pages, (size_t)sequence->page_count * sizeof *pages);
    sb_free(sequence->pages);
    sequence->pages = pages;
    sequence->page_room = room;
    return SB_OK;
}

sb_status sb_llm_sequence_fork(const sb_llm_sequence *from, int64_t length, sb_llm_sequence **sequence,
                               sb_error *error) {
    sb_llm_sequence *fresh;
    if (length < 0 || length > from->length)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a sequence of %lld positions cannot be forked behind %lld of them", (long long)from->length,
                       (long long)length);
    int64_t count = pages_for(from->batch, length);
    SB_TRY(sb_llm_sequence_create(from->batch, &fresh, error));
    sb_status status = make_room(fresh, count, error);
    if (status != SB_OK) {
        sb_llm_sequence_release(fresh);
        return status;
    }
    for (; fresh->page_count < count; fresh->page_count++) {
        fresh->pages[fresh->page_count] = from->pages[fresh->page_count];
        sb_llm_pages_hold(&from->batch->pages, fresh->pages[fresh->page_count]);
    }
    fresh->length = length;
    fresh->version = from->version;
    *sequence = fresh;
    return SB_OK;
}

int64_t sb_llm_sequence_length(const sb_llm_sequence *sequence) {
    return sequence->length;
}

/* ---- pages ---- */

void sb_llm_sequence_let_go(sb_llm_sequence *sequence) {
    drop_pages(sequence, pages_for(sequence->batch, sequence->length));
}

/* Rows of a page behind the length are looked at by nobody, and written again. */
sb_status sb_llm_sequence_trim(sb_llm_sequence *sequence, int64_t length, sb_error *error) {
    if (length < 0 || length > sequence->length)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the sequence has %lld positions and cannot be cut to %lld",
                       (long long)sequence->length, (long long)length);
    sequence->length = length;
    sb_llm_sequence_let_go(sequence);
    return SB_OK;
}

/* Whether the page that the next position is on is another sequence's, too. */
static bool shares_next(const sb_llm_sequence *sequence) {
    int64_t at = sequence->length / sequence->batch->page_positions;
    return at < sequence->page_count && sequence->batch->pages.holders[sequence->pages[at]] > 1;
}

/* Gives the sequence a page of its own in place of the one that others have, with what that holds. */
static sb_status copy_next(sb_llm_sequence *sequence, sb_error *error) {
    sb_llm_batch *batch = sequence->batch;
    int64_t *page = &sequence->pages[sequence->length / batch->page_positions];
    int64_t copy = sb_llm_pages_take(&batch->pages);
    sb_status status = sb_state_copy_slot(batch->state, *page, copy, error);
    sb_llm_pages_drop(&batch->pages, status == SB_OK ? *page : copy);
    if (status == SB_OK)
        *page = copy;
    else
        sb_state_mend(batch->state); /* the page that was written on is nobody's */
    return status;
}

/* Only the last page that has positions can be shared and written: those before it are full, and what is taken here is the
 * sequence's own. */
sb_status sb_llm_sequence_reserve(sb_llm_sequence *sequence, int64_t count, sb_error *error) {
    sb_llm_batch *batch = sequence->batch;
    int64_t context = batch->llm->description.context;
    if (count < 0 || count > context - sequence->length)
        return sb_fail(error, count < 0 ? SB_ERROR_INVALID_ARGUMENT : SB_ERROR_LIMIT,
                       "%lld tokens behind %lld are more than the context of %lld: load the model with a longer one",
                       (long long)count, (long long)sequence->length, (long long)context);
    bool copies = count > 0 && shares_next(sequence);
    int64_t pages = pages_for(batch, sequence->length + count);
    int64_t fresh = pages > sequence->page_count ? pages - sequence->page_count : 0;
    if (fresh + copies > batch->pages.free_count)
        return sb_fail(
            error, SB_ERROR_LIMIT,
            "%lld tokens behind %lld need %lld more pages of %lld positions, and of %lld pages %lld are free: "
            "release or trim sequences, or make the batch with more pages",
            (long long)count, (long long)sequence->length, (long long)(fresh + copies),
            (long long)batch->page_positions, (long long)batch->pages.count, (long long)batch->pages.free_count);
    SB_TRY(make_room(sequence, pages, error));
    if (copies)
        SB_TRY(copy_next(sequence, error));
    while (sequence->page_count < pages)
        sequence->pages[sequence->page_count++] = sb_llm_pages_take(&batch->pages);
    return SB_OK;
}
