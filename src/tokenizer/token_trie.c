#include "tokenizer/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/tokenizer.h"

/* Of all tokens together: ids of bytes are 32 bits wide. */
#define MOST_BYTES ((size_t)1 << 30)

/* A token with its text, in the order of which the trie is made. */
typedef struct entry {
    const char *data;
    uint32_t bytes, id;
} entry;

/* ---- bytes ---- */

static sb_status add_bytes(const sb_tokenizer *tokenizer, int64_t id, sb_text *all, sb_text work[2], sb_error *error) {
    sb_span text;
    text.data = sb_tokenizer_token(tokenizer, id, &text.bytes);
    if (text.data == NULL || sb_tokenizer_is_special(tokenizer, id))
        return SB_OK;
    SB_TRY(sb_decoder_token_bytes(&tokenizer->decoder, text, &work[0], &work[1], error));
    if (all->bytes + work[0].bytes > MOST_BYTES)
        return sb_fail(error, SB_ERROR_LIMIT, "the vocabulary's texts are longer than 1 GiB together");
    return work[0].bytes == 0 || sb_text_append(all, work[0].data, work[0].bytes)
               ? SB_OK
               : sb_fail_memory(error, all->bytes + work[0].bytes);
}

static sb_status collect(const sb_tokenizer *tokenizer, sb_token_trie *trie, sb_error *error) {
    sb_text all = {0}, work[2] = {{0}, {0}};
    sb_status status = SB_OK;
    size_t count = trie->vocabulary;
    trie->begin = sb_allocate_array(count + 1, sizeof *trie->begin);
    if (trie->begin == NULL)
        return sb_fail_memory(error, (count + 1) * sizeof *trie->begin);
    for (uint32_t id = 0; id < count && status == SB_OK; id++) {
        status = add_bytes(tokenizer, id, &all, work, error);
        trie->begin[id + 1] = (uint32_t)all.bytes;
    }
    trie->bytes = all.data;
    sb_text_clear(&work[0]);
    sb_text_clear(&work[1]);
    return status;
}

/* ---- the trie ---- */

static int by_text(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = memcmp(a->data, b->data, a->bytes < b->bytes ? a->bytes : b->bytes);
    if (order != 0)
        return order;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static uint32_t common_bytes(const entry *a, const entry *b) {
    uint32_t bytes = 0;
    while (bytes < a->bytes && bytes < b->bytes && a->data[bytes] == b->data[bytes])
        bytes++;
    return bytes;
}

/* Nodes of all texts: each text has those that the one before it has not. */
static uint32_t count_nodes(const entry *entries, uint32_t count) {
    uint32_t nodes = 1;
    for (uint32_t i = 0; i < count; i++)
        nodes += entries[i].bytes - (i > 0 ? common_bytes(&entries[i - 1], &entries[i]) : 0);
    return nodes;
}

static bool make_room(sb_token_trie *trie, uint32_t nodes) {
    trie->node_count = nodes;
    trie->byte = sb_allocate_array(nodes, sizeof *trie->byte);
    trie->end = sb_allocate_array(nodes, sizeof *trie->end);
    trie->first_token = sb_allocate_array((size_t)nodes + 1, sizeof *trie->first_token);
    trie->tokens = sb_allocate_array((size_t)trie->token_count + 1, sizeof *trie->tokens);
    return trie->byte != NULL && trie->end != NULL && trie->first_token != NULL && trie->tokens != NULL;
}

/* `path` has the node of each beginning of the present text. */
static void fill(sb_token_trie *trie, const entry *entries, uint32_t *path) {
    uint32_t nodes = 1, depth = 0;
    path[0] = 0;
    for (uint32_t i = 0; i < trie->token_count; i++) {
        uint32_t common = i > 0 ? common_bytes(&entries[i - 1], &entries[i]) : 0;
        for (; depth > common; depth--)
            trie->end[path[depth]] = nodes;
        for (; depth < entries[i].bytes; nodes++) {
            trie->byte[nodes] = (unsigned char)entries[i].data[depth];
            trie->first_token[nodes] = i;
            path[++depth] = nodes;
        }
        trie->tokens[i] = entries[i].id;
    }
    for (uint32_t d = 0; d <= depth; d++)
        trie->end[path[d]] = nodes;
    trie->first_token[nodes] = trie->token_count;
}

static sb_status build(sb_token_trie *trie, entry *entries, sb_error *error) {
    for (uint32_t id = 0; id < trie->vocabulary; id++) {
        uint32_t bytes = trie->begin[id + 1] - trie->begin[id];
        if (bytes == 0)
            continue;
        entries[trie->token_count++] = (entry){trie->bytes + trie->begin[id], bytes, id};
        trie->longest = bytes > trie->longest ? bytes : trie->longest;
    }
    qsort(entries, trie->token_count, sizeof *entries, by_text);
    uint32_t *path = sb_allocate_array((size_t)trie->longest + 1, sizeof *path);
    if (path == NULL || !make_room(trie, count_nodes(entries, trie->token_count))) {
        sb_free(path);
        return sb_fail_memory(error, (size_t)trie->node_count * 10);
    }
    fill(trie, entries, path);
    sb_free(path);
    return SB_OK;
}

sb_status sb_token_trie_create(const sb_tokenizer *tokenizer, sb_token_trie **trie, sb_error *error) {
    SB_TRY(sb_decoder_check_bytes(&tokenizer->decoder, error));
    sb_token_trie *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->vocabulary = (uint32_t)sb_tokenizer_vocabulary(tokenizer);
    sb_status status = collect(tokenizer, fresh, error);
    entry *entries = status == SB_OK ? sb_allocate_array((size_t)fresh->vocabulary + 1, sizeof *entries) : NULL;
    if (status == SB_OK)
        status = entries != NULL ? build(fresh, entries, error)
                                 : sb_fail_memory(error, (size_t)fresh->vocabulary * sizeof *entries);
    sb_free(entries);
    if (status != SB_OK) {
        sb_token_trie_free(fresh);
        return status;
    }
    *trie = fresh;
    return SB_OK;
}

void sb_token_trie_free(sb_token_trie *trie) {
    if (trie == NULL)
        return;
    sb_free(trie->byte);
    sb_free(trie->end);
    sb_free(trie->first_token);
    sb_free(trie->tokens);
    sb_free(trie->bytes);
    sb_free(trie->begin);
    sb_free(trie);
}
