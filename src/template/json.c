/* The filter tojson: json.dumps of Python, as the transformers package calls it. */
#include <math.h>
#include <stdio.h>

#include "base/allocation.h"
#include "template/value.h"

/* How it is written. */
typedef struct writer {
    sb_jinja *jinja;
    bool ascii, sorted, lines; /* lines: an indent was given */
    sb_jinja_value indent;     /* a text */
    sb_jinja_value item_separator, key_separator;
} writer;

static sb_status write_text(sb_jinja *jinja, const char *text) {
    return sb_jinja_write(jinja, text, strlen(text));
}

static sb_status write_hexadecimal(sb_jinja *jinja, int32_t unit) {
    char text[16];
    return sb_jinja_write(jinja, text, (size_t)snprintf(text, sizeof text, "\\u%04x", (unsigned)unit & 0xffff));
}

/* A character that JSON does not have as it is. */
static sb_status write_escape(const writer *w, int32_t point) {
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *at = shorts; *at != '\0'; at += 2) {
        if (point == *at)
            return sb_jinja_write(w->jinja, (const char[]){'\\', at[1]}, 2);
    }
    if (point < 0x10000)
        return write_hexadecimal(w->jinja, point);
    SB_TRY(write_hexadecimal(w->jinja, 0xd800 + ((point - 0x10000) >> 10)));
    return write_hexadecimal(w->jinja, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

static sb_status write_string(const writer *w, const sb_jinja_text *text) {
    size_t written = 0; /* what is as it is goes out in one piece */
    SB_TRY(write_text(w->jinja, "\""));
    for (size_t at = 0, step; at < text->bytes; at += step) {
        int32_t point = sb_jinja_point(text->data + at, &step);
        if (point >= 0x20 && point != '"' && point != '\\' && (!w->ascii || point < 0x7f))
            continue;
        SB_TRY(sb_jinja_write(w->jinja, text->data + written, at - written));
        SB_TRY(write_escape(w, point));
        written = at + step;
    }
    SB_TRY(sb_jinja_write(w->jinja, text->data + written, text->bytes - written));
    return write_text(w->jinja, "\"");
}

static sb_status write_scalar(sb_jinja *jinja, sb_jinja_value value) {
    switch (value.kind) {
    case SB_JINJA_NONE:
        return write_text(jinja, "null");
    case SB_JINJA_BOOLEAN:
        return write_text(jinja, value.boolean ? "true" : "false");
    case SB_JINJA_REAL:
        if (!isfinite(value.real))
            return write_text(jinja, isnan(value.real) ? "NaN" : value.real < 0 ? "-Infinity" : "Infinity");
        return sb_jinja_write_value(jinja, value);
    case SB_JINJA_INTEGER:
        return sb_jinja_write_value(jinja, value);
    default:
        SB_TRY(sb_jinja_check_defined(jinja, value));
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a value of type %s is no JSON",
                             sb_jinja_kind_name(value));
    }
}

static sb_status write_key(const writer *w, sb_jinja_value key) {
    if (key.kind == SB_JINJA_TEXT)
        return write_string(w, key.text);
    SB_TRY(write_text(w->jinja, "\""));
    SB_TRY(write_scalar(w->jinja, key));
    return write_text(w->jinja, "\"");
}

static sb_status break_line(const writer *w, int level) {
    if (!w->lines)
        return SB_OK;
    SB_TRY(write_text(w->jinja, "\n"));
    for (int i = 0; i < level; i++)
        SB_TRY(sb_jinja_write_value(w->jinja, w->indent));
    return SB_OK;
}

static sb_status write_json(const writer *w, sb_jinja_value value, int level);

static sb_status write_items(const writer *w, const sb_jinja_list *list, int level) {
    SB_TRY(write_text(w->jinja, "["));
    for (size_t i = 0; i < list->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write_value(w->jinja, w->item_separator));
        SB_TRY(break_line(w, level + 1));
        SB_TRY(write_json(w, list->items[i], level + 1));
    }
    if (list->count != 0)
        SB_TRY(break_line(w, level));
    return write_text(w->jinja, "]");
}

/* The dict with its keys in order; json.dumps sorts items, whose keys differ. */
static sb_status sort_members(sb_jinja *jinja, const sb_jinja_dict *dict, const sb_jinja_dict **sorted) {
    sb_jinja_dict *copy;
    SB_TRY(sb_jinja_new_dict(jinja, dict->count, &copy));
    for (size_t i = 0; i < dict->count; i++) {
        size_t at = copy->count++;
        SB_TRY(sb_jinja_spend(jinja, i / 4));
        for (; at > 0; at--) {
            int order;
            SB_TRY(sb_jinja_compare(jinja, copy->entries[at - 1].key, dict->entries[i].key, "<", &order));
            if (order <= 0)
                break;
            copy->entries[at] = copy->entries[at - 1];
        }
        copy->entries[at] = dict->entries[i];
    }
    *sorted = copy;
    return SB_OK;
}

static sb_status write_members(const writer *w, const sb_jinja_dict *dict, int level) {
    if (w->sorted)
        SB_TRY(sort_members(w->jinja, dict, &dict));
    SB_TRY(write_text(w->jinja, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write_value(w->jinja, w->item_separator));
        SB_TRY(break_line(w, level + 1));
        SB_TRY(write_key(w, dict->entries[i].key));
        SB_TRY(sb_jinja_write_value(w->jinja, w->key_separator));
        SB_TRY(write_json(w, dict->entries[i].value, level + 1));
    }
    if (dict->count != 0)
        SB_TRY(break_line(w, level));
    return write_text(w->jinja, "}");
}

static sb_status write_json(const writer *w, sb_jinja_value value, int level) {
    sb_status status = sb_jinja_enter(w->jinja);
    if (status != SB_OK)
        return status;
    if (value.kind == SB_JINJA_TEXT)
        status = write_string(w, value.text);
    else if (value.kind == SB_JINJA_LIST || value.kind == SB_JINJA_TUPLE)
        status = write_items(w, value.list, level);
    else if (value.kind == SB_JINJA_DICT)
        status = write_members(w, value.dict, level);
    else
        status = write_scalar(w->jinja, value);
    w->jinja->depth--;
    return status;
}

/* An indent is a text, or how many blanks. */
static sb_status read_indent(sb_jinja *jinja, sb_jinja_value given, writer *w) {
    w->lines = given.kind != SB_JINJA_MISSING && given.kind != SB_JINJA_NONE;
    w->indent = given;
    if (!w->lines || given.kind == SB_JINJA_TEXT)
        return SB_OK;
    int64_t blanks;
    SB_TRY(sb_jinja_take_integer(jinja, "the indent of tojson", given, 0, &blanks));
    size_t begin = sb_jinja_begin(jinja);
    if (blanks > 1000)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "an indent of more than 1000 blanks");
    for (int64_t i = 0; i < blanks; i++)
        SB_TRY(write_text(jinja, " "));
    return sb_jinja_take(jinja, begin, &w->indent);
}

static sb_status read_separators(sb_jinja *jinja, sb_jinja_value given, writer *w) {
    const char *standard = w->lines ? "," : ", ";
    SB_TRY(sb_jinja_text_over(jinja, standard, strlen(standard), &w->item_separator));
    SB_TRY(sb_jinja_text_over(jinja, ": ", 2, &w->key_separator));
    if (given.kind == SB_JINJA_MISSING || given.kind == SB_JINJA_NONE)
        return SB_OK;
    if ((given.kind != SB_JINJA_LIST && given.kind != SB_JINJA_TUPLE) || given.list->count != 2 ||
        given.list->items[0].kind != SB_JINJA_TEXT || given.list->items[1].kind != SB_JINJA_TEXT)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the separators of tojson have to be two texts");
    w->item_separator = given.list->items[0];
    w->key_separator = given.list->items[1];
    return SB_OK;
}

static sb_status to_json(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    writer w = {.jinja = jinja, .ascii = sb_jinja_true(arguments[0]), .sorted = sb_jinja_true(arguments[3])};
    SB_TRY(read_indent(jinja, arguments[1], &w));
    SB_TRY(read_separators(jinja, arguments[2], &w));
    size_t begin = sb_jinja_begin(jinja);
    SB_TRY(write_json(&w, self, 0));
    return sb_jinja_take(jinja, begin, result);
}

const sb_jinja_row sb_jinja_tojson = {"tojson", "ensure_ascii indent separators sort_keys", 0, to_json, NULL};
