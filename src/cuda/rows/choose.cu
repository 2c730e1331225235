/* ChooseTokens and PendingTokens (ops/choose.c). Blocks look at 1,024 tokens of a row each, four for each thread; the block that has
 * finished the last of a row chooses. Whatever is put together over blocks and threads are maxima of keys and sums of whole numbers, so
 * who does it when changes no bit. Threads meet at every SB_CUDA_BARRIER. Where tokens are left out (choose_cut.cuh), the row is chosen from
 * in launches behind. */
#include "cuda/rows/choose_cut.cuh"
#include "cuda/rows/choose_row.cuh"

/* ---- a row's beginning ---- */

/* begin, with the logits of the thread's tokens of part `at`. Mostly they are those of the row whose number the choice has, which are
 * asked for before it is known: one wait for memory less. */
SB_CUDA_FUNCTION bool begin_part(const sb_cuda_choose *p, int64_t choice, int64_t at, sb_choosing *c, float *logits) {
    const float *guess = p->logits + SMALLER(choice, p->rows - 1) * p->vocabulary;
    const int64_t token = own_tokens(at);
    load_own(guess, token, p->vocabulary, logits);
    const bool fits = begin(p, choice, c);
    if (fits && c->logits != guess)
        load_own(c->logits, token, p->vocabulary, logits);
    return fits;
}

/* ---- choosing ---- */

/* Begins a row of which tokens are left out, and of which one can be chosen. */
SB_CUDA_FUNCTION void leave_out(const sb_choosing *c, const sb_choose_sum *all, sb_cuda_choose_row *row) {
    begin_row(c, sb_choose_value(all->found.first), row);
    row->logit_maximum = all->maximum;
    row->units = all->units;
}

/* Chooses from a row whose parts are there, or begins it for the launches behind. `alone`: where there are none, this block leaves tokens
 * out. */
SB_CUDA_FUNCTION void end_row(const sb_cuda_choose *p, int64_t choice, bool fits, bool alone, const sb_choosing *c) {
    SB_CUDA_SHARED sb_choose_sum of_warps[WARPS];
    SB_CUDA_SHARED int64_t units[WARPS];
    SB_CUDA_SHARED int32_t found[WARPS];
    sb_choose_result result;
    if (!fits) {
        result.token = sb_choose_failed(SB_CHOOSE_UNFIT, 0);
        const bool is_lost = is_overwritten(p, choice, c->slot, found);
        if (threadIdx.x == 0)
            put(p, c, choice, is_lost, &result);
        return;
    }
    const sb_choose_sum all = sum_parts(p, c, choice, of_warps, units);
    const bool leaves_out = does_leave_out(c, &all);
    result.maximum = all.maximum;
    result.units = all.units;
    if (!leaves_out)
        result.token = choose(c, &all, &result.logit);
    if (leaves_out && alone) {
        result.token = token_of(draw_kept(c, sb_choose_token(all.found.first)));
        result.logit = result.token >= 0 ? c->logits[result.token] : 0.0f;
    }
    if (threadIdx.x != 0)
        return;
    if (leaves_out && !alone)
        leave_out(c, &all, &p->row[choice]);
    else
        put(p, c, choice, all.is_lost != 0, &result);
}

/* Nothing goes on with the row, unless leave_out says so. */
SB_CUDA_FUNCTION void clear_row(sb_cuda_choose_row *row) {
    SB_CUDA_KEEP_LOOP
    for (int r = threadIdx.x; r < SB_CUDA_CHOOSE_RANGES; r += THREADS) {
        row->sums[r] = 0;
        row->counts[r] = 0;
    }
    if (threadIdx.x == 0)
        row->search.goal = SB_CHOOSE_NO_SEARCH;
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_tokens, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, at = blockIdx.x % p->parts;
    float logits[OWN];
    sb_choosing c;
    const bool fits = begin_part(p, choice, at, &c, logits);
    if (fits)
        look(&c, at, logits, p->part + blockIdx.x, p->pairs + blockIdx.x * SB_CUDA_CHOOSE_PAIRS);
    if (p->row != NULL && at == 0)
        clear_row(&p->row[choice]);
    if (p->arrived != NULL && is_last_block(p->arrived + choice, p->parts))
        end_row(p, choice, fits, false, &c);
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_of_parts, sb_cuda_choose, p, THREADS, 1) {
    sb_choosing c;
    const bool fits = begin(p, blockIdx.x, &c);
    end_row(p, blockIdx.x, fits, true, &c);
}

/* ---- leaving tokens out ---- */

/* One step of the search that leaves tokens out, by all blocks of a row; behind the last step the search has ended. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_step, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, token = own_tokens(blockIdx.x % p->parts);
    sb_cuda_choose_row *row = &p->row[choice];
    sb_choosing c;
    if (row->search.goal == SB_CHOOSE_NO_SEARCH || !begin(p, choice, &c))
        return;
    c.maximum = row->maximum;
    if (p->step == 0 && c.by.min_p != 0.0f)
        find_light(&c, token, row);
    if (row->search.goal == SB_CHOOSE_FOUND)
        return;
    count_block(&c, token, row);
    if (!is_last_block(p->arrived + choice, p->parts))
        return;
    take_step(&c, row);
    if (p->step + 1 == SB_CUDA_CHOOSE_STEPS && row->search.goal != SB_CHOOSE_FOUND) {
        sb_choose_search state = row->search;
        end_searches(&c, &state);
        if (threadIdx.x == 0)
            row->search = state;
    }
}

/* Chooses from the tokens that are kept. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_choose_kept, sb_cuda_choose, p, THREADS, 1) {
    const int64_t choice = blockIdx.x / p->parts, token = own_tokens(blockIdx.x % p->parts);
    sb_cuda_choose_row *row = &p->row[choice];
    sb_choosing c;
    if (row->search.goal == SB_CHOOSE_NO_SEARCH || !begin(p, choice, &c))
        return;
    draw_block(&c, token, row);
    if (!is_last_block(p->arrived + choice, p->parts))
        return;
    SB_CUDA_SHARED int32_t found[WARPS];
    const bool is_lost = is_overwritten(p, choice, c.slot, found);
    if (threadIdx.x != 0)
        return;
    sb_choose_result result;
    result.token = token_of(row->drawn);
    result.logit = result.token >= 0 ? c.logits[result.token] : 0.0f;
    result.maximum = (int32_t)row->logit_maximum;
    result.units = row->units;
    put(p, &c, choice, is_lost, &result);
}

/* ---- PendingTokens ---- */

SB_CUDA_KERNEL(sb_cuda_pending_tokens, sb_cuda_pending, p) {
    SB_CUDA_EACH(i, p->count)
    p->to[i] = sb_choose_pending(p->tokens[i], p->slots, p->slot_step, p->slot_count);
}
