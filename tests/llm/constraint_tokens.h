/* What tests of constraints share: tokenizers of given texts, and texts chosen at random under a mask. */
#ifndef SB_TESTS_CONSTRAINT_TOKENS_H
#define SB_TESTS_CONSTRAINT_TOKENS_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/llm.h>

#include "support/random.h"

/* Texts of more than one byte; a NUL ends each, since none has one inside. Some end or begin within a character. */
static const char *const constraint_pieces[] = {
    "{\"",      "\":",      "\": ",   "\", \"",  "\",\"",    "\"}",       "\"]",          "}}",     "]}",
    "}]",       "]]",       "[[",     "[{\"",    "},{\"",    "\":\"",     "\": \"",       "\":[",   "\":{\"",
    "},",       "],",       ", ",     ",\n",     "{\n",      "{\n  ",     "[\n",          "\n  ",   "\n    ",
    "\n}",      "\n]",      "true",   "false",   "null",     "tr",        "nul",          "12",     "123",
    "99",       "000",      "0.",     ".5",      "-1",       "e1",        "1e",           "name",   "type",
    "value",    "next\"",   "\"a\":", "\"a\"",   "ab",       "abc",       "aabb",         "\"name", "kind",
    "\\n",      "\\\"",     "\\u",    "\\u00",   "\\ud83d",  "\\ude00",   "u00",          "d83",    "ä",
    "öü",       "é",        "€",      "€€",      "\xe2\x82", "\x82\xac",  "\xac\"",       "😀",      "\xf0\x9f",
    "\x98\x80", "\x9f\x98", "日",     "本語",    "a\xc3",    "\xa4\"",    "\xc3\xa4\xc3", "    ",   "                ",
    "20",       "19",       "-0",     "Z\"",     "T12:",     ":00",       "@ex",          ".com",   "property_",
    "null}",    "1]",       "1,",     "\":1,\"", "]]]]]]",   "}}}}}}}}}}"};

enum {
    CONSTRAINT_PIECES = sizeof constraint_pieces / sizeof *constraint_pieces,
    CONSTRAINT_VOCABULARY = 256 + CONSTRAINT_PIECES + 2
};
/* The last two: one that ends a text, and one that is no text. */
static const int64_t constraint_stop = CONSTRAINT_VOCABULARY - 2;

/* The characters by which byte-level vocabularies write bytes. */
static inline size_t write_byte_level(unsigned char byte, char *text) {
    unsigned point = byte, next = 256;
    bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    for (unsigned b = 0; !itself && b < byte; b++)
        next += !((b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae);
    point = itself ? byte : next;
    if (point < 0x80) {
        text[0] = (char)point;
        return 1;
    }
    text[0] = (char)(0xc0 | point >> 6);
    text[1] = (char)(0x80 | (point & 0x3f));
    return 2;
}

static inline void add_token(json_t *vocabulary, const char *bytes, size_t count, int64_t id) {
    char text[512];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += write_byte_level((unsigned char)bytes[i], text + length);
    text[length] = '\0';
    json_object_set_new(vocabulary, text, json_integer(id));
}

/* A tokenizer of all bytes, the pieces, a token that ends texts and another special one. NULL where memory ran out. */
static inline sb_tokenizer *make_constraint_tokenizer(sb_error *error) {
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < 256; byte++)
        add_token(vocabulary, (const char[]){(char)byte}, 1, byte);
    for (int i = 0; i < CONSTRAINT_PIECES; i++)
        add_token(vocabulary, constraint_pieces[i], strlen(constraint_pieces[i]), 256 + i);
    json_t *added = json_pack("[{s:I,s:s,s:b},{s:I,s:s,s:b}]", "id", (json_int_t)constraint_stop, "content", "<end>",
                              "special", 1, "id", (json_int_t)constraint_stop + 1, "content", "<other>", "special", 1);
    json_t *all = json_pack("{s:o,s:{s:s,s:o,s:[]},s:{s:s},s:{s:s,s:b,s:b}}", "added_tokens", added, "model", "type",
                            "BPE", "vocab", vocabulary, "merges", "decoder", "type", "ByteLevel", "pre_tokenizer",
                            "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 0);
    char *text = json_dumps(all, JSON_COMPACT);
    sb_tokenizer *tokenizer = NULL;
    if (text == NULL || sb_tokenizer_open_memory(text, strlen(text), "pieces", &tokenizer, error) != SB_OK)
        tokenizer = NULL;
    free(text);
    json_decref(all);
    return tokenizer;
}

/* The bytes of one of its tokens. */
static inline const char *constraint_token(int64_t token, size_t *bytes) {
    static char single[256];
    if (token < 256) {
        single[token] = (char)token;
        *bytes = 1;
        return &single[token];
    }
    *bytes = token < 256 + CONSTRAINT_PIECES ? strlen(constraint_pieces[token - 256]) : 0;
    return *bytes > 0 ? constraint_pieces[token - 256] : "";
}

/* Fresh logits; from `patience` bytes on those that end something are far larger. */
static inline void draw_logits(random_source *random, float *logits, bool impatient) {
    for (int i = 0; i < CONSTRAINT_VOCABULARY; i++) {
        size_t bytes;
        const char *text = constraint_token(i, &bytes);
        bool ends = i == constraint_stop || (bytes == 1 && strchr("\"}]", text[0]) != NULL);
        logits[i] = (float)(random_bits(random) >> 40) * 0x1p-24f;
        if (i == constraint_stop)
            logits[i] *= 0.9f;
        if (impatient && ends)
            logits[i] += 4 - (float)(bytes == 0);
    }
}

/* Writes a text at random, of which `*bytes` are less than `room`. Returns false, with a reason, where none can go on. */
static inline bool draw_text(sb_llm_constraint *constraint, random_source *random, char *text, size_t room,
                             size_t *bytes, size_t patience, sb_error *error) {
    float logits[CONSTRAINT_VOCABULARY];
    sb_llm_constraint_state *state;
    int64_t allowed, token = -1;
    *bytes = 0;
    if (sb_llm_constraint_begin(constraint, &state, error) != SB_OK)
        return false;
    bool right = true;
    while (right && *bytes < room - 600) {
        sb_llm_sampling greedy = SB_LLM_SAMPLING_DEFAULT;
        size_t more;
        draw_logits(random, logits, *bytes >= patience);
        right = sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY, 1, &constraint_stop, &allowed, error) ==
                    SB_OK &&
                sb_llm_sample(logits, CONSTRAINT_VOCABULARY, &greedy, 0, &token, error) == SB_OK;
        if (!right || token == constraint_stop)
            break;
        right = sb_llm_constraint_accept(state, token, error) == SB_OK;
        const char *piece = constraint_token(token, &more);
        memcpy(text + *bytes, piece, more);
        *bytes += more;
    }
    if (right && token != constraint_stop) {
        snprintf(error->message, sizeof error->message, "the text does not end");
        right = false;
    }
    text[*bytes] = '\0';
    sb_llm_constraint_end(state);
    return right;
}

#endif
