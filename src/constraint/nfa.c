#include "constraint/nfa.h"

#include <string.h>

#include "base/allocation.h"

sb_status sb_nfa_fail(sb_nfa *nfa, sb_status status) {
    if (nfa->status == SB_OK) {
        nfa->status = status;
        if (nfa->error != NULL)
            nfa->first_error = *nfa->error;
    } else if (nfa->error != NULL) {
        *nfa->error = nfa->first_error; /* what failed since is a consequence, or can wait */
    }
    return nfa->status;
}

uint32_t sb_nfa_state(sb_nfa *nfa) {
    if (nfa->status != SB_OK)
        return 0;
    if (nfa->state_count == SB_MOST_NFA_STATES) {
        sb_nfa_fail(nfa, sb_fail(nfa->error, SB_ERROR_LIMIT,
                                 "a part of the schema takes more than %zu states: use fewer or shorter enumerations, "
                                 "patterns and lengths",
                                 SB_MOST_NFA_STATES));
        return 0;
    }
    if (!sb_grow((void **)&nfa->first, &nfa->state_capacity, nfa->state_count + 1, sizeof *nfa->first)) {
        sb_nfa_fail(nfa, sb_fail_memory(nfa->error, nfa->state_count * sizeof *nfa->first));
        return 0;
    }
    nfa->first[nfa->state_count] = SB_NO_EDGE;
    return (uint32_t)nfa->state_count++;
}

static void add(sb_nfa *nfa, uint32_t from, sb_nfa_edge edge) {
    if (nfa->status != SB_OK)
        return;
    if (nfa->edge_count >= 4 * SB_MOST_NFA_STATES) {
        sb_nfa_fail(nfa, sb_fail(nfa->error, SB_ERROR_LIMIT, "a part of the schema takes more than %zu edges",
                                 4 * SB_MOST_NFA_STATES));
        return;
    }
    if (!sb_grow((void **)&nfa->edges, &nfa->edge_capacity, nfa->edge_count + 1, sizeof edge)) {
        sb_nfa_fail(nfa, sb_fail_memory(nfa->error, nfa->edge_count * sizeof edge));
        return;
    }
    edge.next = nfa->first[from];
    nfa->edges[nfa->edge_count] = edge;
    nfa->first[from] = (uint32_t)nfa->edge_count++;
}

void sb_nfa_empty(sb_nfa *nfa, uint32_t from, uint32_t to) {
    add(nfa, from, (sb_nfa_edge){.kind = SB_EDGE_EMPTY, .to = to});
}

void sb_nfa_bytes(sb_nfa *nfa, uint32_t from, unsigned low, unsigned high, sb_count_action action, uint32_t to) {
    add(nfa, from,
        (sb_nfa_edge){
            .kind = SB_EDGE_BYTES, .low = (uint8_t)low, .high = (uint8_t)high, .action = (uint8_t)action, .to = to});
}

void sb_nfa_call(sb_nfa *nfa, uint32_t from, uint32_t rule, uint32_t to) {
    add(nfa, from, (sb_nfa_edge){.kind = SB_EDGE_CALL, .rule = rule, .to = to});
}

uint32_t sb_nfa_text(sb_nfa *nfa, uint32_t from, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        uint32_t to = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, (unsigned char)text[i], (unsigned char)text[i], SB_COUNT_NONE, to);
        from = to;
    }
    return from;
}

static bool all_are(const unsigned char *bytes, int count, unsigned value) {
    for (int i = 0; i < count; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

/* Rows with a first byte from `low` to `high` and any others. */
static void any_rest(sb_nfa *nfa, uint32_t from, uint32_t to, unsigned low, unsigned high, int rest, unsigned least,
                     unsigned most, sb_count_action action) {
    for (int i = 0; i <= rest; i++) {
        uint32_t next = i == rest ? to : sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, i == 0 ? low : least, i == 0 ? high : most, i == 0 ? action : SB_COUNT_NONE, next);
        from = next;
    }
}

void sb_nfa_rows(sb_nfa *nfa, uint32_t from, uint32_t to, const unsigned char *low, const unsigned char *high,
                 int count, unsigned least, unsigned most, sb_count_action action) {
    unsigned first = low[0], last = high[0];
    if (nfa->status != SB_OK)
        return;
    if (count == 1) {
        sb_nfa_bytes(nfa, from, first, last, action, to);
        return;
    }
    if (first == last) {
        uint32_t next = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, first, first, action, next);
        sb_nfa_rows(nfa, next, to, low + 1, high + 1, count - 1, least, most, SB_COUNT_NONE);
        return;
    }
    unsigned char ends[2][SB_MOST_ROW];
    memset(ends[0], (int)least, sizeof ends[0]);
    memset(ends[1], (int)most, sizeof ends[1]);
    if (!all_are(low + 1, count - 1, least)) {
        uint32_t next = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, first, first, action, next);
        sb_nfa_rows(nfa, next, to, low + 1, ends[1], count - 1, least, most, SB_COUNT_NONE);
        first++;
    }
    if (!all_are(high + 1, count - 1, most)) {
        uint32_t next = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, last, last, action, next);
        sb_nfa_rows(nfa, next, to, ends[0], high + 1, count - 1, least, most, SB_COUNT_NONE);
        last--;
    }
    if (first <= last)
        any_rest(nfa, from, to, first, last, count - 1, least, most, action);
}

void sb_nfa_clear(sb_nfa *nfa) {
    sb_free(nfa->first);
    sb_free(nfa->edges);
    *nfa = (sb_nfa){.error = nfa->error};
}
