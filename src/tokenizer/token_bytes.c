/* What a single token puts into the middle of a text. Unlike decoding, which makes characters, this is bytes: a token may begin or
 * end within a character. */
#include <string.h>

#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

/* The byte of <0xHH>, or -1. */
static int byte_of(sb_span token) {
    int value = 0;
    if (token.bytes != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        static const char digits[] = "0123456789ABCDEFabcdef";
        const char *digit = token.data[i] != '\0' ? strchr(digits, token.data[i]) : NULL;
        if (digit == NULL)
            return -1;
        value = value * 16 + (int)(digit - digits < 16 ? digit - digits : digit - digits - 6);
    }
    return value;
}

/* Characters that stand for bytes; where one of them does not, the token stands for itself. */
static bool add_byte_level(sb_text *out, sb_span token) {
    size_t before = out->bytes;
    uint32_t point;
    if (!sb_text_reserve(out, token.bytes))
        return false;
    for (size_t at = 0; at < token.bytes;) {
        at += sb_point_read(token.data + at, &point);
        int byte = sb_point_to_byte(point);
        if (byte < 0) {
            out->bytes = before;
            return sb_text_append(out, token.data, token.bytes);
        }
        out->data[out->bytes++] = (char)byte;
    }
    return true;
}

static bool add_signs(sb_text *out, sb_span token, sb_span sign) {
    for (size_t at = 0, bytes; at < token.bytes; at += bytes) {
        bytes = sb_point_bytes(token.data[at]);
        bool found = sb_span_equal((sb_span){token.data + at, bytes}, sign);
        if (!(found ? sb_text_append(out, " ", 1) : sb_text_append(out, token.data + at, bytes)))
            return false;
    }
    return true;
}

static sb_status add_replaced(sb_text *out, sb_span token, const sb_decode_step *step, sb_error *error) {
    sb_search search;
    sb_search_memory memory = {0};
    size_t done = 0, begin = 0, end = 0;
    sb_status status = sb_search_begin(&search, &step->pattern, token, &memory, error);
    while (status == SB_OK && done < token.bytes) {
        status = sb_search_next(&search, &begin, &end, error);
        if (status == SB_OK && (!sb_text_append(out, token.data + done, begin - done) ||
                                (begin < end && !sb_text_append(out, step->content, step->content_bytes))))
            status = sb_fail_memory(error, token.bytes);
        done = end;
    }
    sb_search_memory_clear(&memory);
    return status;
}

sb_status sb_decoder_check_bytes(const sb_decoder *decoder, sb_error *error) {
    for (size_t i = 0; i < decoder->count; i++) {
        const sb_decode_step *step = &decoder->steps[i];
        bool spaces =
            step->kind == SB_DECODE_WORDPIECE || step->kind == SB_DECODE_BPE || step->kind == SB_DECODE_SPACES;
        bool strips = step->kind == SB_DECODE_STRIP &&
                      (step->stop != 0 || step->content_bytes != 1 || step->content[0] != ' ' || !step->fused);
        if (spaces || strips)
            return sb_fail(
                error, SB_ERROR_UNSUPPORTED,
                "the tokenizer's decoder %s, so that the bytes of a token depend on its neighbours: its text "
                "cannot be constrained token by token. Decoders of bytes, Metaspace and sentencepiece's can",
                spaces ? "puts spaces between tokens" : "strips tokens at their ends");
    }
    return SB_OK;
}

/* One step; `*bytes` says that what comes out is bytes, which no later step looks at. */
static sb_status do_step(const sb_decode_step *step, sb_span token, sb_text *out, bool *bytes, sb_error *error) {
    int byte = byte_of(token);
    char character = (char)byte;
    bool whole = true;
    out->bytes = 0;
    switch (step->kind) {
    case SB_DECODE_BYTE_LEVEL:
        whole = add_byte_level(out, token);
        *bytes = true;
        break;
    case SB_DECODE_METASPACE:
        whole = add_signs(out, token, (sb_span){step->content, step->content_bytes});
        break;
    case SB_DECODE_REPLACE:
        return add_replaced(out, token, step, error);
    case SB_DECODE_BYTE_FALLBACK:
        whole = byte >= 0 ? sb_text_append(out, &character, 1) : sb_text_append(out, token.data, token.bytes);
        *bytes = byte >= 0;
        break;
    default: /* Fuse, and what strips the beginning of a text */
        whole = sb_text_append(out, token.data, token.bytes);
        break;
    }
    return whole ? SB_OK : sb_fail_memory(error, token.bytes);
}

sb_status sb_decoder_token_bytes(const sb_decoder *decoder, sb_span token, sb_text *out, sb_text *spare,
                                 sb_error *error) {
    bool bytes = false;
    out->bytes = 0;
    if (!sb_text_append(out, token.data, token.bytes))
        return sb_fail_memory(error, token.bytes);
    for (size_t i = 0; i < decoder->count && !bytes; i++) {
        SB_TRY(do_step(&decoder->steps[i], (sb_span){out->data, out->bytes}, spare, &bytes, error));
        sb_text kept = *out;
        *out = *spare;
        *spare = kept;
    }
    return SB_OK;
}
