#include "tokenizer/added_tokens.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

sb_status sb_added_tokens_add(sb_added_tokens *added, sb_added_token token, sb_error *error) {
    if (token.bytes == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the added token %d is empty", (int)token.number);
    if (token.bytes > SB_MOST_TOKEN_BYTES)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "the added token %d has %zu bytes: at most %d are supported",
                       (int)token.number, token.bytes, SB_MOST_TOKEN_BYTES);
    if (added->count == added->capacity &&
        !sb_grow((void **)&added->items, &added->capacity, added->count + 1, sizeof *added->items))
        return sb_fail_memory(error, sizeof *added->items);
    char *copy = sb_allocate(token.bytes + 1);
    if (copy == NULL || !sb_pairs_put(&added->by_number, (uint32_t)token.number, 0, (uint32_t)added->count, 0)) {
        sb_free(copy);
        return sb_fail_memory(error, token.bytes);
    }
    memcpy(copy, token.text, token.bytes);
    copy[token.bytes] = '\0';
    token.text = copy;
    added->items[added->count++] = token;
    return SB_OK;
}

sb_status sb_added_search_put(sb_added_search *search, size_t index, sb_span text, sb_error *error) {
    uint32_t node = 0;
    sb_pair_entry *edge = NULL;
    if (text.bytes == 0)
        return SB_OK; /* nothing of it is left to be found */
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        edge = sb_pairs_find(&search->trie, node, byte);
        if (edge == NULL) {
            if (!sb_pairs_put(&search->trie, node, byte, ++search->nodes, 0))
                return sb_fail_memory(error, sizeof *edge);
            edge = sb_pairs_find(&search->trie, node, byte);
        }
        node = edge->first;
    }
    if (edge->second == 0)
        edge->second = (uint32_t)index + 1;
    search->begins[(unsigned char)text.data[0]] = true;
    return SB_OK;
}

const sb_added_token *sb_added_tokens_find(const sb_added_tokens *added, int64_t number) {
    const sb_pair_entry *entry =
        number >= 0 && number < INT32_MAX ? sb_pairs_find(&added->by_number, (uint32_t)number, 0) : NULL;
    return entry != NULL ? &added->items[entry->first] : NULL;
}

void sb_added_tokens_clear(sb_added_tokens *added) {
    for (size_t i = 0; i < added->count; i++)
        sb_free(added->items[i].text);
    sb_free(added->items);
    sb_pairs_clear(&added->by_number);
    sb_pairs_clear(&added->in_raw.trie);
    sb_pairs_clear(&added->in_normalized.trie);
    *added = (sb_added_tokens){0};
}

/* ---- searching ---- */

/* The longest token that begins at `at`; *end is where it ends. */
static const sb_added_token *longest_at(const sb_added_tokens *added, const sb_added_search *search, sb_span text,
                                        size_t at, size_t *end) {
    const sb_added_token *found = NULL;
    uint32_t node = 0;
    for (size_t i = at; i < text.bytes; i++) {
        const sb_pair_entry *edge = sb_pairs_find(&search->trie, node, (unsigned char)text.data[i]);
        if (edge == NULL)
            break;
        node = edge->first;
        if (edge->second != 0) {
            found = &added->items[edge->second - 1];
            *end = i + 1;
        }
    }
    return found;
}

static bool is_word_at(sb_span text, size_t at) {
    uint32_t point;
    if (at >= text.bytes)
        return false;
    sb_point_read(text.data + at, &point);
    return sb_is_word(point);
}

static bool stands_alone(sb_span text, size_t begin, size_t end) {
    return (begin == 0 || !is_word_at(text, sb_point_before(text.data, begin))) && !is_word_at(text, end);
}

static bool is_space_at(sb_span text, size_t at) {
    uint32_t point;
    sb_point_read(text.data + at, &point);
    return sb_is_space(point);
}

bool sb_added_search_next(const sb_added_tokens *added, const sb_added_search *search, sb_span text, bool special,
                          size_t done, size_t *at, size_t *begin, size_t *end, const sb_added_token **token) {
    while (*at < text.bytes) {
        if (!search->begins[(unsigned char)text.data[*at]]) {
            ++*at;
            continue;
        }
        const sb_added_token *found = longest_at(added, search, text, *at, end);
        if (found == NULL) {
            ++*at;
            continue;
        }
        *begin = *at;
        *at = *end;
        if ((found->special && !special) || (found->single_word && !stands_alone(text, *begin, *end)))
            continue; /* what it covers is passed all the same */
        while (found->left && *begin > done && is_space_at(text, sb_point_before(text.data, *begin)))
            *begin = sb_point_before(text.data, *begin);
        while (found->right && *end < text.bytes && is_space_at(text, *end))
            *end += sb_point_bytes(text.data[*end]);
        *token = found;
        return true;
    }
    return false;
}
