#include "tokenizer/splitter.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

/* A match, or what lies between two. */
typedef struct sb_split_part {
    size_t begin, end;
    bool match;
} sb_split_part;

sb_split_step *sb_splitter_add(sb_splitter *splitter, sb_split_kind kind) {
    if (splitter->count == splitter->capacity &&
        !sb_grow((void **)&splitter->steps, &splitter->capacity, splitter->count + 1, sizeof *splitter->steps))
        return NULL;
    sb_split_step *step = &splitter->steps[splitter->count++];
    *step = (sb_split_step){.kind = kind};
    return step;
}

void sb_splitter_clear(sb_splitter *splitter) {
    for (size_t i = 0; i < splitter->count; i++)
        sb_pattern_clear(&splitter->steps[i].pattern);
    sb_free(splitter->steps);
    *splitter = (sb_splitter){0};
}

void sb_split_work_clear(sb_split_work *work) {
    sb_text_clear(&work->text);
    sb_text_clear(&work->next_text);
    sb_free(work->pieces.items);
    sb_free(work->next_pieces.items);
    sb_free(work->parts);
    sb_search_memory_clear(&work->search);
    *work = (sb_split_work){0};
}

static bool add_piece(sb_pieces *pieces, size_t begin, size_t end, bool first) {
    if (begin == end)
        return true;
    if (pieces->count == pieces->capacity &&
        !sb_grow((void **)&pieces->items, &pieces->capacity, pieces->count + 1, sizeof *pieces->items))
        return false;
    pieces->items[pieces->count++] = (sb_piece){begin, end, first};
    return true;
}

/* ---- parts to pieces ---- */

static bool add_part(sb_split_work *work, size_t *count, size_t begin, size_t end, bool match) {
    if (begin == end)
        return true;
    if (*count == work->part_capacity &&
        !sb_grow((void **)&work->parts, &work->part_capacity, *count + 1, sizeof *work->parts))
        return false;
    work->parts[(*count)++] = (sb_split_part){begin, end, match};
    return true;
}

/* Joins parts as the behaviour says; returns how many are left. */
static size_t join_parts(sb_split_behavior behavior, sb_split_part *parts, size_t count) {
    size_t kept = 0;
    if (behavior == SB_SPLIT_MERGED_WITH_NEXT) { /* from the end; what is left lies there */
        size_t first = count;
        bool was_match = false;
        for (size_t i = count; i-- != 0;) {
            sb_split_part part = parts[i];
            if (part.match && !was_match && first != count)
                parts[first].begin = part.begin;
            else
                parts[--first] = part;
            was_match = part.match;
        }
        if (count != first)
            memmove(parts, parts + first, (count - first) * sizeof *parts);
        return count - first;
    }
    bool was_match = false;
    for (size_t i = 0; i < count; i++) {
        sb_split_part part = parts[i];
        bool join = kept != 0 && (behavior == SB_SPLIT_CONTIGUOUS             ? part.match == was_match
                                  : behavior == SB_SPLIT_MERGED_WITH_PREVIOUS ? part.match && !was_match
                                                                              : false);
        if (join)
            parts[kept - 1].end = part.end;
        else if (behavior != SB_SPLIT_REMOVED || !part.match)
            parts[kept++] = part;
        was_match = part.match;
    }
    return kept;
}

static sb_status cut_by_pattern(const sb_split_step *step, sb_span text, sb_piece piece, sb_split_work *work,
                                sb_error *error) {
    sb_search search;
    sb_span inside = {text.data + piece.begin, piece.end - piece.begin};
    size_t count = 0, done = 0, begin = 0, end = 0;
    sb_status status = sb_search_begin(&search, &step->pattern, inside, &work->search, error);
    while (status == SB_OK && done < inside.bytes) {
        status = sb_search_next(&search, &begin, &end, error);
        if (status == SB_OK &&
            (!add_part(work, &count, done, begin, step->invert) || !add_part(work, &count, begin, end, !step->invert)))
            status = sb_fail_memory(error, count * sizeof *work->parts);
        done = end;
    }
    if (status != SB_OK)
        return status;
    count = join_parts(step->behavior, work->parts, count);
    for (size_t i = 0; i < count; i++) {
        const sb_split_part *part = &work->parts[i];
        if (!add_piece(&work->next_pieces, piece.begin + part->begin, piece.begin + part->end,
                       piece.first && part->begin == 0))
            return sb_fail_memory(error, work->next_pieces.count * sizeof(sb_piece));
    }
    return SB_OK;
}

/* Runs of one class; white space goes. */
static sb_status cut_words(sb_span text, sb_piece piece, sb_split_work *work, sb_error *error) {
    enum { NOTHING, WORD, OTHER };
    int before = NOTHING;
    size_t begin = piece.begin, bytes;
    for (size_t at = piece.begin; at <= piece.end; at += bytes) {
        uint32_t point = ' ';
        bytes = at < piece.end ? sb_point_read(text.data + at, &point) : 1;
        int class = sb_is_word(point) ? WORD : sb_is_space(point) ? NOTHING : OTHER;
        if (class == before)
            continue;
        if (before != NOTHING && !add_piece(&work->next_pieces, begin, at, piece.first && begin == piece.begin))
            return sb_fail_memory(error, sizeof piece);
        begin = at;
        before = class;
    }
    return SB_OK;
}

/* ---- steps that change the text ---- */

/* Appends `text` to the next text, with each space as the sign where there is one; with `prefix` before it. */
static bool write_piece(sb_split_work *work, sb_span text, sb_span prefix, const sb_split_step *step) {
    sb_text *out = &work->next_text;
    if (!sb_text_append(out, prefix.data, prefix.bytes))
        return false;
    if (step->kind != SB_SPLIT_METASPACE)
        return sb_text_append(out, text.data, text.bytes);
    while (text.bytes != 0) {
        const char *space = memchr(text.data, ' ', text.bytes);
        size_t before = space != NULL ? (size_t)(space - text.data) : text.bytes;
        if (!sb_text_append(out, text.data, before) ||
            (space != NULL && !sb_text_append(out, step->sign, step->sign_bytes)))
            return false;
        before += space != NULL;
        text = (sb_span){text.data + before, text.bytes - before};
    }
    return true;
}

static sb_span prefix_of(const sb_split_step *step, sb_span text, bool first) {
    if (step->kind == SB_SPLIT_BYTE_LEVEL)
        return sb_span_of(step->prefix_space && text.data[0] != ' ' ? " " : "");
    bool wanted = step->prepend == SB_PREPEND_ALWAYS || (step->prepend == SB_PREPEND_FIRST && first);
    bool there =
        text.data[0] == ' ' || (text.bytes >= step->sign_bytes && memcmp(text.data, step->sign, step->sign_bytes) == 0);
    return (sb_span){step->sign, wanted && !there ? step->sign_bytes : 0};
}

/* Rewrites all pieces; they keep their order and number. */
static sb_status rewrite(const sb_split_step *step, sb_split_work *work, sb_error *error) {
    work->next_text.bytes = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        sb_piece *piece = &work->pieces.items[i];
        sb_span text = {work->text.data + piece->begin, piece->end - piece->begin};
        size_t begin = work->next_text.bytes;
        if (!write_piece(work, text, prefix_of(step, text, piece->first), step))
            return sb_fail_memory(error, work->text.bytes);
        *piece = (sb_piece){begin, work->next_text.bytes, piece->first};
    }
    sb_text swapped = work->text;
    work->text = work->next_text;
    work->next_text = swapped;
    return SB_OK;
}

static sb_status write_bytes(sb_split_work *work, sb_error *error) {
    work->next_text.bytes = 0;
    if (work->text.bytes > SIZE_MAX / 4 || !sb_text_reserve(&work->next_text, 2 * work->text.bytes))
        return sb_fail_memory(error, work->text.bytes);
    for (size_t i = 0; i < work->pieces.count; i++) {
        sb_piece *piece = &work->pieces.items[i];
        size_t begin = work->next_text.bytes;
        for (size_t at = piece->begin; at < piece->end; at++)
            work->next_text.bytes += sb_point_write(sb_byte_to_point((unsigned char)work->text.data[at]),
                                                    work->next_text.data + work->next_text.bytes);
        *piece = (sb_piece){begin, work->next_text.bytes, piece->first};
    }
    sb_text swapped = work->text;
    work->text = work->next_text;
    work->next_text = swapped;
    return SB_OK;
}

/* ---- all steps ---- */

static sb_status cut(const sb_split_step *step, sb_split_work *work, sb_error *error) {
    sb_span text = {work->text.data, work->text.bytes};
    work->next_pieces.count = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        sb_piece piece = work->pieces.items[i];
        SB_TRY(step->kind == SB_SPLIT_WORDS ? cut_words(text, piece, work, error)
                                            : cut_by_pattern(step, text, piece, work, error));
    }
    sb_pieces swapped = work->pieces;
    work->pieces = work->next_pieces;
    work->next_pieces = swapped;
    return SB_OK;
}

static sb_status run_step(const sb_split_step *step, sb_split_work *work, sb_error *error) {
    bool rewrites = step->kind == SB_SPLIT_METASPACE || (step->kind == SB_SPLIT_BYTE_LEVEL && step->prefix_space);
    if (rewrites)
        SB_TRY(rewrite(step, work, error));
    if (step->kind == SB_SPLIT_PATTERN || step->kind == SB_SPLIT_WORDS || step->cut)
        SB_TRY(cut(step, work, error));
    return step->kind == SB_SPLIT_BYTE_LEVEL ? write_bytes(work, error) : SB_OK;
}

sb_status sb_split(const sb_splitter *splitter, sb_span text, bool first, sb_split_work *work, sb_error *error) {
    work->text.bytes = 0;
    work->pieces.count = 0;
    if (!sb_text_append(&work->text, text.data, text.bytes) || !add_piece(&work->pieces, 0, text.bytes, first))
        return sb_fail_memory(error, text.bytes);
    for (size_t i = 0; i < splitter->count; i++)
        SB_TRY(run_step(&splitter->steps[i], work, error));
    return SB_OK;
}
