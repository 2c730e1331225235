/* Requests come and go, and prompts have any length: if each step had as many rows as its parts, most would be planned and recorded anew.
 * So a padded step has one of a few numbers of rows, and unless several rows of a part are wanted, one of a few numbers of wanted rows
 * and of choices. Without padding only sequences and columns of the table are rounded up, which costs nothing. */
#include "llm/step_extents.h"

static int64_t power_above(int64_t number) {
    int64_t power = 1;
    while (power < number)
        power *= 2;
    return power;
}

/* Up to 16, which products take 8 or 16 at a time, powers of two; up to 512 four numbers from one power to the next, so that less than a
 * quarter is added; beyond, where rows take longer, multiples of 64. */
static int64_t padded_rows(int64_t rows) {
    const int64_t power = power_above(rows), step = power <= 16 ? power : power <= 512 ? power / 8 : 64;
    return (rows + step - 1) / step * step;
}

/* Of `count` rows, no more than one a part. Where somebody looks at logits they are copied, 0.5 MB each of 128,256. */
static int64_t padded_wanted(const sb_llm_stepping *s, const sb_llm_step_extents *e, int64_t count) {
    const bool are_copied = s->ahead == NULL || s->ahead->logits;
    return count == 0 ? 0 : are_copied ? power_above(count) : e->sequences;
}

static bool cuts(const sb_llm_ahead *ahead) {
    for (int i = 0; i < ahead->count; i++) {
        const sb_choose_settings *by = &ahead->choices[i].by;
        if (sb_choose_cuts(by->top_k, by->top_p, by->min_p))
            return true;
    }
    return false;
}

sb_llm_step_extents sb_llm_step_extents_of(const sb_llm_stepping *s) {
    sb_llm_step_extents e = {.used.choices = s->ahead != NULL ? s->ahead->count : 0};
    for (int i = 0; i < s->count; i++) {
        e.used.rows += s->parts[i].count;
        e.used.wanted += s->parts[i].wanted_count;
        if (s->parts[i].sequence->page_count > e.columns)
            e.columns = s->parts[i].sequence->page_count;
    }
    e.rows = s->padded ? padded_rows(e.used.rows) : e.used.rows;
    e.columns = power_above(e.columns);
    e.sequences = power_above(s->count + (e.rows > e.used.rows));
    e.wanted = e.used.wanted;
    e.choices = e.used.choices;
    e.settings = s->ahead != NULL && cuts(s->ahead) ? SB_CHOOSE_REAL_COLUMNS : SB_CHOOSE_COLUMNS_OF_ALL;
    if (s->padded && e.used.wanted <= s->count) {
        e.wanted = padded_wanted(s, &e, e.used.wanted);
        e.choices = padded_wanted(s, &e, e.used.choices);
    }
    e.scored = s->scored ? e.wanted : 0;
    return e;
}
