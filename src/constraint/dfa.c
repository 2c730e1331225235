#include "constraint/dfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "base/names.h"

/* ---- subsets ---- */

typedef struct making {
    const sb_nfa *nfa;
    uint32_t accept;
    sb_dfa *dfa;
    sb_names known;
    uint32_t *work; /* the subset that is being made, room for all states */
    uint32_t work_count;
    uint32_t *mark; /* of a state: the round in which it was last added */
    uint32_t round;
    int64_t followed; /* edges, since they were last counted */
    uint32_t *sorted; /* edges of a subset, by class */
    size_t sorted_capacity;
    uint32_t **sets; /* of a state of the DFA: its NFA states */
    size_t set_capacity;
    uint32_t *counts;
    size_t count_capacity, next_capacity, accept_capacity;
    sb_error *error;
} making;

static void begin_set(making *m) {
    m->work_count = 0;
    m->round++;
}

/* Adds a state and all that empty edges lead to from there. */
static void add_state(making *m, uint32_t state) {
    uint32_t done = m->work_count;
    if (m->mark[state] == m->round)
        return;
    m->mark[state] = m->round;
    m->work[m->work_count++] = state;
    for (; done < m->work_count; done++) {
        for (uint32_t e = m->nfa->first[m->work[done]]; e != SB_NO_EDGE; e = m->nfa->edges[e].next) {
            const sb_nfa_edge *edge = &m->nfa->edges[e];
            m->followed++;
            if (edge->kind == SB_EDGE_EMPTY && m->mark[edge->to] != m->round) {
                m->mark[edge->to] = m->round;
                m->work[m->work_count++] = edge->to;
            }
        }
    }
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Only states from which a byte or a call leads, and the last one, tell subsets apart. */
static void keep_telling(making *m) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->work_count; i++) {
        uint32_t state = m->work[i];
        bool tells = state == m->accept;
        for (uint32_t e = m->nfa->first[state]; e != SB_NO_EDGE && !tells; e = m->nfa->edges[e].next)
            tells = m->nfa->edges[e].kind != SB_EDGE_EMPTY;
        if (tells)
            m->work[kept++] = state;
    }
    m->work_count = kept;
    qsort(m->work, kept, sizeof *m->work, ascending);
}

static sb_status too_many(sb_error *error) {
    return sb_fail(error, SB_ERROR_LIMIT,
                   "a part of the schema takes more than %u states: use fewer or shorter enumerations, patterns and "
                   "lengths",
                   SB_MOST_DFA_STATES);
}

static sb_status count_followed(making *m) {
    *m->nfa->left -= m->followed;
    m->followed = 0;
    return *m->nfa->left > 0
               ? SB_OK
               : sb_fail(m->error, SB_ERROR_LIMIT,
                         "the schema's patterns and enumerations take more than %lld steps to become automata: use "
                         "fewer or shorter ones, and shorter repetitions within a pattern",
                         (long long)SB_MOST_FOLLOWED_EDGES);
}

static sb_status add_row(making *m, uint32_t *state) {
    sb_dfa *dfa = m->dfa;
    size_t count = dfa->state_count, width = sb_dfa_width(dfa);
    if (count == SB_MOST_DFA_STATES || (count + 1) * width > SB_MOST_DFA_ENTRIES)
        return too_many(m->error);
    uint32_t *set = sb_allocate((m->work_count + 1) * sizeof *set);
    bool room = set != NULL && sb_grow((void **)&m->sets, &m->set_capacity, count + 1, sizeof *m->sets) &&
                sb_grow((void **)&m->counts, &m->count_capacity, count + 1, sizeof *m->counts) &&
                sb_grow((void **)&dfa->next, &m->next_capacity, (count + 1) * width, sizeof *dfa->next) &&
                sb_grow((void **)&dfa->accepts, &m->accept_capacity, count + 1, sizeof *dfa->accepts);
    if (set != NULL)
        memcpy(set, m->work, m->work_count * sizeof *set);
    if (!room || !sb_names_put_span(&m->known, (const char *)set, m->work_count * sizeof *set, (int32_t)count)) {
        sb_free(set);
        return sb_fail_memory(m->error, (count + 1) * width * sizeof *dfa->next);
    }
    m->sets[count] = set;
    m->counts[count] = m->work_count;
    dfa->accepts[count] = false;
    for (uint32_t i = 0; i < m->work_count; i++)
        dfa->accepts[count] = dfa->accepts[count] || set[i] == m->accept;
    for (size_t i = 0; i < width; i++)
        dfa->next[count * width + i] = SB_DEAD;
    *state = dfa->state_count++;
    return SB_OK;
}

/* The state for the subset in `work`; SB_DEAD for the empty one. */
static sb_status find_state(making *m, uint32_t *state) {
    SB_TRY(count_followed(m));
    keep_telling(m);
    *state = SB_DEAD;
    if (m->work_count == 0)
        return SB_OK;
    const int32_t *known = sb_names_find_span(&m->known, (const char *)m->work, m->work_count * sizeof *m->work);
    if (known != NULL) {
        *state = (uint32_t)*known;
        return SB_OK;
    }
    return add_row(m, state);
}

/* ---- symbols ---- */

/* Bytes are of one class where no edge begins or ends between them. */
static void find_classes(const sb_nfa *nfa, sb_dfa *dfa) {
    bool begins[257] = {true};
    for (size_t e = 0; e < nfa->edge_count; e++) {
        if (nfa->edges[e].kind == SB_EDGE_BYTES)
            begins[nfa->edges[e].low] = begins[nfa->edges[e].high + 1] = true;
    }
    dfa->classes = 0;
    for (int byte = 0; byte < 256; byte++) {
        dfa->classes += begins[byte];
        dfa->class_of[byte] = (uint8_t)(dfa->classes - 1);
    }
}

static sb_status find_called(const sb_nfa *nfa, sb_dfa *dfa, sb_error *error) {
    size_t capacity = 0;
    for (size_t e = 0; e < nfa->edge_count; e++) {
        if (nfa->edges[e].kind != SB_EDGE_CALL)
            continue;
        uint32_t i = 0;
        while (i < dfa->called_count && dfa->called[i] != nfa->edges[e].rule)
            i++;
        if (i < dfa->called_count)
            continue;
        if (!sb_grow((void **)&dfa->called, &capacity, (size_t)dfa->called_count + 1, sizeof *dfa->called))
            return sb_fail_memory(error, capacity * sizeof *dfa->called);
        dfa->called[dfa->called_count++] = nfa->edges[e].rule;
    }
    return SB_OK;
}

/* Puts the edges of a subset that take bytes in the order of classes, once for each class that they take: `begins[c]` is the first of
 * class c, `begins[classes]` how many there are. Classes of `.` alone are thirty, and a subset may have as many edges, few of which are
 * of the same class. */
static sb_status sort_edges(making *m, uint32_t from, size_t *begins) {
    const uint8_t *class_of = m->dfa->class_of;
    size_t ends[257] = {0}, sum = 0;
    for (int filling = 0; filling < 2; filling++) {
        for (uint32_t i = 0; i < m->counts[from]; i++) {
            for (uint32_t e = m->nfa->first[m->sets[from][i]]; e != SB_NO_EDGE; e = m->nfa->edges[e].next) {
                const sb_nfa_edge *edge = &m->nfa->edges[e];
                m->followed++;
                for (int c = class_of[edge->low]; edge->kind == SB_EDGE_BYTES && c <= class_of[edge->high]; c++) {
                    if (filling)
                        m->sorted[ends[c]] = e;
                    ends[c]++;
                }
            }
        }
        for (uint32_t c = 0; c < m->dfa->classes && !filling; c++) {
            begins[c] = sum;
            sum += ends[c];
            ends[c] = begins[c];
        }
        if (!filling && !sb_grow((void **)&m->sorted, &m->sorted_capacity, sum, sizeof *m->sorted))
            return sb_fail_memory(m->error, sum * sizeof *m->sorted);
    }
    begins[m->dfa->classes] = sum;
    return SB_OK;
}

/* Where a byte of each class leads. */
static sb_status do_bytes(making *m, uint32_t from) {
    size_t width = sb_dfa_width(m->dfa), begins[257];
    SB_TRY(sort_edges(m, from, begins));
    for (uint32_t symbol = 0; symbol < m->dfa->classes; symbol++) {
        uint32_t state;
        begin_set(m);
        for (size_t i = begins[symbol]; i < begins[symbol + 1]; i++) {
            if (m->nfa->edges[m->sorted[i]].action != m->nfa->edges[m->sorted[begins[symbol]]].action)
                return sb_fail(m->error, SB_ERROR_INTERNAL, "a byte of the schema's automaton counts in two ways");
            add_state(m, m->nfa->edges[m->sorted[i]].to);
            m->followed++;
        }
        SB_TRY(find_state(m, &state));
        if (state != SB_DEAD)
            m->dfa->next[from * width + symbol] = state | (uint32_t)m->nfa->edges[m->sorted[begins[symbol]]].action
                                                              << 30;
    }
    return SB_OK;
}

static sb_status do_calls(making *m, uint32_t from) {
    size_t width = sb_dfa_width(m->dfa);
    for (uint32_t c = 0; c < m->dfa->called_count; c++) {
        uint32_t state;
        begin_set(m);
        for (uint32_t i = 0; i < m->counts[from]; i++) {
            for (uint32_t e = m->nfa->first[m->sets[from][i]]; e != SB_NO_EDGE; e = m->nfa->edges[e].next) {
                const sb_nfa_edge *edge = &m->nfa->edges[e];
                m->followed++;
                if (edge->kind == SB_EDGE_CALL && edge->rule == m->dfa->called[c])
                    add_state(m, edge->to);
            }
        }
        SB_TRY(find_state(m, &state));
        m->dfa->next[from * width + m->dfa->classes + c] = state;
    }
    return SB_OK;
}

static sb_status make(making *m, uint32_t start) {
    uint32_t first;
    SB_TRY(find_called(m->nfa, m->dfa, m->error));
    m->work = sb_allocate_array(m->nfa->state_count, sizeof *m->work);
    m->mark = sb_allocate_array(m->nfa->state_count, sizeof *m->mark);
    if (m->work == NULL || m->mark == NULL)
        return sb_fail_memory(m->error, m->nfa->state_count * sizeof *m->work);
    begin_set(m);
    add_state(m, start);
    keep_telling(m);
    SB_TRY(add_row(m, &first));
    for (uint32_t state = 0; state < m->dfa->state_count; state++) {
        SB_TRY(do_bytes(m, state));
        SB_TRY(do_calls(m, state));
    }
    return SB_OK;
}

sb_status sb_dfa_make(const sb_nfa *nfa, uint32_t start, uint32_t accept, sb_dfa *dfa, sb_error *error) {
    making m = {.nfa = nfa, .accept = accept, .dfa = dfa, .error = error};
    *dfa = (sb_dfa){0};
    if (nfa->status != SB_OK)
        return nfa->status;
    find_classes(nfa, dfa);
    sb_status status = make(&m, start);
    for (uint32_t i = 0; i < dfa->state_count; i++)
        sb_free(m.sets[i]);
    sb_free(m.sets);
    sb_free(m.counts);
    sb_free(m.sorted);
    sb_free(m.work);
    sb_free(m.mark);
    sb_names_clear(&m.known);
    if (status != SB_OK)
        sb_dfa_clear(dfa);
    return status;
}

/* ---- two of them ---- */

typedef struct pairing {
    const sb_dfa *left, *right;
    sb_dfa *dfa;
    uint64_t **pairs; /* of a state; each its own block, for the table of names */
    size_t pair_capacity, next_capacity, accept_capacity;
    sb_names known;
    bool without;
    sb_error *error;
} pairing;

/* The state of a pair; the right one may be dead where it is taken away. */
static sb_status find_pair(pairing *p, uint32_t left, uint32_t right, uint32_t *state) {
    uint64_t key = (uint64_t)left << 32 | right;
    sb_dfa *dfa = p->dfa;
    size_t count = dfa->state_count, width = dfa->classes;
    const int32_t *known = sb_names_find_span(&p->known, (const char *)&key, sizeof key);
    if (known != NULL) {
        *state = (uint32_t)*known;
        return SB_OK;
    }
    if (count == SB_MOST_DFA_STATES || (count + 1) * width > SB_MOST_DFA_ENTRIES)
        return too_many(p->error);
    uint64_t *kept = sb_allocate(sizeof *kept);
    bool room = kept != NULL && sb_grow((void **)&p->pairs, &p->pair_capacity, count + 1, sizeof *p->pairs) &&
                sb_grow((void **)&dfa->next, &p->next_capacity, (count + 1) * width, sizeof *dfa->next) &&
                sb_grow((void **)&dfa->accepts, &p->accept_capacity, count + 1, sizeof *dfa->accepts);
    if (kept != NULL)
        *kept = key;
    if (!room || !sb_names_put_span(&p->known, (const char *)kept, sizeof *kept, (int32_t)count)) {
        sb_free(kept);
        return sb_fail_memory(p->error, (count + 1) * width * sizeof *dfa->next);
    }
    p->pairs[count] = kept;
    bool right_accepts = right != SB_DEAD && p->right->accepts[right];
    dfa->accepts[count] = p->left->accepts[left] && right_accepts != p->without;
    *state = dfa->state_count++;
    return SB_OK;
}

static uint32_t follow(const sb_dfa *dfa, uint32_t state, int byte) {
    return state == SB_DEAD ? SB_DEAD : dfa->next[(size_t)state * sb_dfa_width(dfa) + dfa->class_of[byte]];
}

static sb_status pair_up(pairing *p) {
    uint32_t state;
    int last[2] = {-1, -1};
    for (int byte = 0; byte < 256; byte++) {
        int now[2] = {p->left->class_of[byte], p->right->class_of[byte]};
        p->dfa->classes += now[0] != last[0] || now[1] != last[1];
        p->dfa->class_of[byte] = (uint8_t)(p->dfa->classes - 1);
        memcpy(last, now, sizeof last);
    }
    SB_TRY(find_pair(p, 0, 0, &state));
    for (state = 0; state < p->dfa->state_count; state++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t left = follow(p->left, (uint32_t)(*p->pairs[state] >> 32), byte), to = SB_DEAD;
            uint32_t right = follow(p->right, (uint32_t)*p->pairs[state], byte);
            if (byte > 0 && p->dfa->class_of[byte] == p->dfa->class_of[byte - 1])
                continue;
            if (left != SB_DEAD && (right != SB_DEAD || p->without))
                SB_TRY(find_pair(p, left, right, &to));
            p->dfa->next[(size_t)state * p->dfa->classes + p->dfa->class_of[byte]] = to;
        }
    }
    return SB_OK;
}

static sb_status combine(const sb_dfa *left, const sb_dfa *right, bool without, sb_dfa *dfa, sb_error *error) {
    pairing p = {.left = left, .right = right, .dfa = dfa, .without = without, .error = error};
    *dfa = (sb_dfa){0};
    sb_status status = pair_up(&p);
    for (uint32_t i = 0; i < dfa->state_count; i++)
        sb_free(p.pairs[i]);
    sb_free(p.pairs);
    sb_names_clear(&p.known);
    if (status != SB_OK)
        sb_dfa_clear(dfa);
    return status;
}

sb_status sb_dfa_both(const sb_dfa *left, const sb_dfa *right, sb_dfa *dfa, sb_error *error) {
    return combine(left, right, false, dfa, error);
}

sb_status sb_dfa_without(const sb_dfa *left, const sb_dfa *right, sb_dfa *dfa, sb_error *error) {
    return combine(left, right, true, dfa, error);
}

/* ---- using them ---- */

/* Marks the states from which the end can be reached; the first of them begins everything. */
static void mark_useful(const sb_dfa *dfa, bool *useful) {
    size_t width = sb_dfa_width(dfa);
    memcpy(useful, dfa->accepts, dfa->state_count);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t state = dfa->state_count; state-- > 0;) {
            for (size_t i = 0; i < width && !useful[state]; i++) {
                uint32_t entry = dfa->next[state * width + i];
                useful[state] = entry != SB_DEAD && useful[SB_NEXT_STATE(entry)];
                changed = changed || useful[state];
            }
        }
    }
}

bool sb_dfa_embed(const sb_dfa *dfa, sb_nfa *nfa, uint32_t from, uint32_t to) {
    bool *useful = sb_allocate_array(dfa->state_count, sizeof *useful);
    uint32_t base = (uint32_t)nfa->state_count;
    if (useful == NULL) {
        sb_nfa_fail(nfa, sb_fail_memory(nfa->error, dfa->state_count));
        return true;
    }
    mark_useful(dfa, useful);
    bool any = useful[0];
    for (uint32_t state = 0; state < dfa->state_count && any; state++)
        sb_nfa_state(nfa);
    for (uint32_t state = 0; state < dfa->state_count && any && nfa->status == SB_OK; state++) {
        if (dfa->accepts[state])
            sb_nfa_empty(nfa, base + state, to);
        for (int byte = 0, end; byte < 256 && useful[state]; byte = end) {
            uint32_t next = follow(dfa, state, byte);
            for (end = byte + 1; end < 256 && follow(dfa, state, end) == next; end++)
                ;
            if (next != SB_DEAD && useful[SB_NEXT_STATE(next)])
                sb_nfa_bytes(nfa, base + state, (unsigned)byte, (unsigned)end - 1, SB_NEXT_ACTION(next),
                             base + SB_NEXT_STATE(next));
        }
    }
    if (any)
        sb_nfa_empty(nfa, from, base);
    sb_free(useful);
    return any;
}

bool sb_dfa_takes(const sb_dfa *dfa, const char *text, size_t bytes) {
    uint32_t state = 0;
    for (size_t i = 0; i < bytes && state != SB_DEAD; i++)
        state = follow(dfa, state, (unsigned char)text[i]);
    return state != SB_DEAD && dfa->accepts[state];
}

bool sb_dfa_takes_any(const sb_dfa *dfa) {
    for (uint32_t state = 0; state < dfa->state_count; state++) {
        if (dfa->accepts[state]) /* all states can be reached from the first */
            return true;
    }
    return false;
}

void sb_dfa_clear(sb_dfa *dfa) {
    sb_free(dfa->called);
    sb_free(dfa->next);
    sb_free(dfa->accepts);
    *dfa = (sb_dfa){0};
}
