#include "llm/generating.h"

#include <string.h>
#include <time.h>

#include "base/allocation.h"
#include "llm/sample.h"
#include "llm/score.h"

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- beginning ---- */

static sb_status begin_receipt(sb_generating *g, sb_error *error) {
    if (!g->llm->receipts)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a receipt needs a model that was loaded with sb_llm_options.receipts");
    if (g->begin != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a receipt is of a whole sequence, and this one has %lld positions before the prompt: begin an "
                       "empty one",
                       (long long)g->begin);
    SB_TRY(sb_receipt_create(g->count, &g->receipt, error));
    g->receipt->fingerprint = g->llm->fingerprint;
    g->receipt->dtype = g->llm->description.dtype;
    g->receipt->context = g->llm->description.context;
    SB_TRY(sb_receipt_set_sampling(g->receipt, &g->about.sampling, error));
    if (g->about.constraint != NULL)
        SB_TRY(sb_receipt_set_constraint(g->receipt, g->about.constraint, error));
    g->receipt->limit = g->about.limit;
    g->receipt->ignore_stops = g->about.ignore_stops;
    memcpy(g->receipt->prompt, g->tokens, (size_t)g->count * sizeof *g->tokens);
    return sb_receipt_begin(g->receipt, error);
}

sb_status sb_generating_begin(sb_generating *g, const sb_llm *llm, const sb_llm_generation *about, int64_t begin,
                              int64_t count, const int64_t *tokens, sb_error *error) {
    *g = (sb_generating){.llm = llm,
                         .begin = begin,
                         .count = count,
                         .tokens = tokens,
                         .result = {.prompt_tokens = count, .end = SB_LLM_END_CALLER},
                         .begun = now_ns()};
    if (about->struct_bytes != sizeof *about || about->limit < 0 || about->chunk < 0 || count < 1)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "a generation needs a prompt of at least one token, and neither limit (%lld) nor chunk (%lld) may "
            "be negative",
            (long long)about->limit, (long long)about->chunk);
    if (about->present != 0 && (about->present != begin || begin >= count || about->score_prompt))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%lld of the prompt's %lld tokens are said to be in the sequence, which has %lld positions: it "
                       "has to have so "
                       "many, fewer than the prompt, and the prompt cannot be scored",
                       (long long)about->present, (long long)count, (long long)begin);
    if (about->constraint != NULL && about->ignore_stops)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "a constraint with ignore_stops: behind a text that is complete there would be nothing to choose");
    g->about = *about;
    if (about->present != 0) {
        g->begin = 0;
        g->done = g->given = about->present;
    }
    SB_TRY(sb_chooser_begin(&g->chooser, &llm->config, &g->about.sampling, about->constraint, count, tokens, error));
    SB_TRY(sb_digest_begin(&g->digest, error));
    return about->receipt != NULL ? begin_receipt(g, error) : SB_OK;
}

/* ---- what comes next ---- */

/* Wants all rows when they are to be scored, else the prompt's last. */
static int64_t choose_rows(sb_generating *g, int64_t count, bool is_last) {
    if (!g->about.score_prompt) {
        g->rows[0] = count - 1;
        return is_last ? 1 : 0;
    }
    for (int64_t i = 0; i < count; i++)
        g->rows[i] = i;
    return count;
}

void sb_generating_next(sb_generating *g, int64_t most, sb_llm_step_part *part) {
    part->wanted = g->rows;
    if (g->given == g->count) {
        part->tokens = g->ahead == 0 ? &g->next : NULL;
        part->count = part->wanted_count = 1;
        g->rows[0] = 0;
        return;
    }
    int64_t chunk = g->about.chunk > 0 ? g->about.chunk : most;
    if (g->about.score_prompt)
        chunk = sb_llm_score_chunk(g->llm->config.vocabulary, g->about.chunk);
    part->count = g->count - g->given < chunk ? g->count - g->given : chunk;
    part->count = part->count < most ? part->count : most;
    part->tokens = g->tokens + g->given;
    part->wanted_count = choose_rows(g, part->count, g->given + part->count == g->count);
}

/* Whether a token comes next behind the part. */
static bool is_last(const sb_generating *g, const sb_llm_step_part *part) {
    return g->given == g->count || g->given + part->count == g->count;
}

/* The position of the token that comes behind all that are there, and `ahead` more. */
static int64_t next_position(const sb_generating *g, int64_t ahead) {
    return g->begin + g->count + g->result.new_tokens + ahead;
}

/* Whether there may be another token behind those that are there and on their way, as far as numbers tell. */
static bool may_go_on(const sb_generating *g) {
    return g->result.new_tokens + g->ahead < g->about.limit &&
           next_position(g, g->ahead) <= g->llm->description.context;
}

bool sb_generating_has_next(const sb_generating *g) {
    return g->given < g->count || (!g->waits && (g->ahead == 0 || may_go_on(g)));
}

bool sb_generating_is_plain(const sb_generating *g) {
    return g->chooser.logits == NULL;
}

bool sb_generating_may_choose(const sb_generating *g, const sb_llm_step_part *part) {
    return sb_generating_is_plain(g) && is_last(g, part) && may_go_on(g);
}

sb_choose_settings sb_generating_settings(const sb_generating *g) {
    return sb_llm_choose_settings(&g->about.sampling, next_position(g, g->ahead));
}

bool sb_generating_wants_logits(const sb_generating *g, const sb_llm_step_part *part, bool chooses) {
    bool scores = g->about.score_prompt && g->given < g->count;
    bool looks = !g->about.no_digest || (g->about.on_token != NULL && !g->about.no_logits);
    return part->wanted_count > 0 && (!chooses || scores || looks);
}

void sb_generating_gave(sb_generating *g, const sb_llm_step_part *part, bool chooses) {
    g->waits = is_last(g, part) && !chooses;
    g->ahead += chooses;
    if (g->given < g->count)
        g->given += part->count;
}

void sb_generating_turn_back(sb_generating *g) {
    g->given = g->done;
    g->ahead = 0;
    g->waits = false;
}

/* ---- what becomes of it ---- */

static const float *logits_of(const sb_generating *g, const sb_generated *from, int64_t row) {
    return (const float *)sb_tensor_data(from->outputs[SB_LLM_LOGITS]) + (from->row + row) * g->llm->config.vocabulary;
}

static bool is_stop(const sb_generating *g, int64_t token) {
    const sb_llm_config *config = &g->llm->config;
    for (int i = 0; i < config->stop_count && !g->about.ignore_stops; i++) {
        if (config->stops[i] == token)
            return true;
    }
    return false;
}

void sb_generating_digest(sb_generating *g) {
    if (g->undigested != NULL)
        sb_digest_add_numbers(&g->digest, g->llm->config.vocabulary, g->undigested);
    g->undigested = NULL;
}

/* Of new tokens. */
static bool wants_logps(const sb_generating *g) {
    return (g->about.on_token != NULL && !g->about.no_logps) || g->receipt != NULL;
}

/* A token at `position`, whose logits are in row `row`; -1: the first token of the prompt, which has none. */
static sb_status tell(sb_generating *g, const sb_generated *from, int64_t position, int64_t token, bool given,
                      int64_t row, float logp, sb_error *error) {
    const float *logits = row >= 0 && from->outputs[SB_LLM_LOGITS] != NULL ? logits_of(g, from, row) : NULL;
    sb_llm_token what = {.position = position,
                         .token = token,
                         .given = given,
                         .stops = !given && is_stop(g, token),
                         .has_logp = row >= 0 && (given || wants_logps(g)),
                         .logits = logits};
    sb_generating_digest(g);
    if (!g->about.no_digest) {
        sb_digest_add_integer(&g->digest, token);
        g->undigested = logits;
    }
    if (row >= 0)
        what.logp = logp;
    if (g->receipt != NULL && !given)
        SB_TRY(sb_receipt_add(g->receipt, token, what.logp, from->outputs[SB_LLM_HIDDEN], from->row + row, error));
    return g->about.on_token != NULL ? g->about.on_token(g->about.context, &what, &g->stopped, error) : SB_OK;
}

/* Scores the prompt's tokens that the part's logits are of. */
static sb_status score(sb_generating *g, const sb_generated *from, const sb_llm_step_part *part, sb_error *error) {
    float logps[SB_LLM_CHUNK];
    int64_t scored = g->done + part->count < g->count ? part->count : part->count - 1;
    const sb_llm_scored_rows rows = {.count = scored,
                                     .vocabulary = g->llm->config.vocabulary,
                                     .logits = logits_of(g, from, 0),
                                     .targets = g->tokens + g->done + 1,
                                     .logps = logps};
    sb_llm_score_rows(from->workers, &rows);
    for (int64_t i = 0; i < part->count && !g->stopped; i++) {
        int64_t at = g->done + i;
        if (at == 0)
            SB_TRY(tell(g, from, g->begin, g->tokens[0], true, -1, 0, error));
        if (i < scored)
            SB_TRY(tell(g, from, g->begin + at + 1, g->tokens[at + 1], true, i, logps[i], error));
    }
    return SB_OK;
}

static sb_status end(sb_generating *g, sb_llm_end why) {
    g->ended = true;
    g->result.end = why;
    return SB_OK;
}

/* Tells of the token behind all that are there, which has been chosen from the logits of row `row`, and says whether it is the last. */
static sb_status place(sb_generating *g, const sb_generated *from, int64_t row, int64_t token, float logp,
                       sb_error *error) {
    int64_t position = next_position(g, 0);
    SB_TRY(tell(g, from, position, token, false, row, logp, error));
    if (g->result.new_tokens++ == 0)
        g->result.first_token_ns = now_ns() - g->begun;
    if (is_stop(g, token))
        return end(g, SB_LLM_END_STOP);
    SB_TRY(sb_chooser_take(&g->chooser, token, error));
    if (g->stopped)
        return end(g, SB_LLM_END_CALLER);
    if (g->result.new_tokens == g->about.limit)
        return end(g, SB_LLM_END_LIMIT);
    if (position == g->llm->description.context)
        return end(g, SB_LLM_END_CONTEXT);
    g->next = token;
    return SB_OK;
}

/* Chooses the token behind all that are there, from the logits of row `row`. */
static sb_status choose(sb_generating *g, const sb_generated *from, int64_t row, sb_error *error) {
    int64_t token, position = next_position(g, 0);
    if (g->result.new_tokens == g->about.limit)
        return end(g, SB_LLM_END_LIMIT);
    const float *adjusted;
    bool complete;
    SB_TRY(sb_chooser_adjust(&g->chooser, logits_of(g, from, row), &adjusted, &complete, error));
    if (complete)
        return end(g, SB_LLM_END_COMPLETE);
    SB_TRY(sb_llm_sample(adjusted, g->llm->config.vocabulary, &g->about.sampling, position, &token, error));
    float logp = wants_logps(g) ? sb_llm_logp(logits_of(g, from, row), g->llm->config.vocabulary, token) : 0;
    return place(g, from, row, token, logp, error);
}

/* The token behind all that are there, which a device has chosen from the logits of row `row`. */
static sb_status take_chosen(sb_generating *g, const sb_generated *from, int64_t row, sb_error *error) {
    const double *chosen =
        (const double *)sb_tensor_data(from->outputs[SB_LLM_CHOSEN]) + from->choice * SB_CHOOSE_CHOSEN_COLUMNS;
    int64_t token = (int64_t)chosen[SB_CHOOSE_TOKEN];
    g->ahead--;
    if (token < 0)
        return sb_llm_fail_choice(token, &g->about.sampling, error);
    return place(g, from, row, token, wants_logps(g) ? (float)chosen[SB_CHOOSE_LOGP] : 0, error);
}

sb_status sb_generating_take(sb_generating *g, const sb_llm_step_part *part, const sb_generated *from,
                             sb_error *error) {
    if (g->done < g->count) {
        if (g->about.score_prompt)
            SB_TRY(score(g, from, part, error));
        g->done += part->count;
        g->result.prompt_ns = now_ns() - g->begun;
        if (g->stopped)
            return end(g, SB_LLM_END_CALLER);
        if (g->done < g->count)
            return SB_OK;
    }
    if (from->choice >= 0)
        return take_chosen(g, from, part->wanted_count - 1, error);
    g->waits = false;
    return choose(g, from, part->wanted_count - 1, error);
}

/* ---- ending ---- */

sb_status sb_generating_finish(sb_generating *g, sb_llm_result *result, sb_error *error) {
    unsigned char digest[SB_DIGEST_BYTES];
    g->result.decode_ns = now_ns() - g->begun - g->result.first_token_ns;
    if (g->receipt != NULL)
        SB_TRY(sb_receipt_end(g->receipt, g->result.end, error));
    if (sb_digest_end(&g->digest, digest, NULL) != SB_OK)
        return sb_fail_memory(error, sizeof digest);
    if (g->receipt != NULL)
        *g->about.receipt = g->receipt;
    g->receipt = NULL;
    *result = g->result;
    if (!g->about.no_digest)
        sb_hexadecimal(digest, SB_DIGEST_BYTES, result->digest);
    return SB_OK;
}

void sb_generating_clear(sb_generating *g) {
    unsigned char digest[SB_DIGEST_BYTES];
    if (g->digest.context != NULL) {
        sb_status unread = sb_digest_end(&g->digest, digest, NULL);
        (void)unread;
    }
    sb_chooser_end(&g->chooser);
    sb_llm_receipt_release(g->receipt);
    g->receipt = NULL;
}
