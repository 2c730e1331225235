#include "tokenizer/decoder.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

sb_decode_step *sb_decoder_add(sb_decoder *decoder, sb_decode_kind kind) {
    if (decoder->count == decoder->capacity &&
        !sb_grow((void **)&decoder->steps, &decoder->capacity, decoder->count + 1, sizeof *decoder->steps))
        return NULL;
    sb_decode_step *step = &decoder->steps[decoder->count++];
    *step = (sb_decode_step){.kind = kind};
    return step;
}

/* A step with a text of its own. */
static sb_decode_step *add_with(sb_decoder *decoder, sb_decode_kind kind, const char *content) {
    sb_decode_step *step = sb_decoder_add(decoder, kind);
    if (step == NULL)
        return NULL;
    step->content = sb_duplicate_string(content);
    step->content_bytes = strlen(content);
    return step->content != NULL ? step : NULL;
}

sb_status sb_decoder_add_sentencepiece(sb_decoder *decoder, bool prefix, sb_error *error) {
    static const char sign[] = "\xe2\x96\x81"; /* U+2581 */
    sb_decode_step *step = add_with(decoder, SB_DECODE_REPLACE, " ");
    if (step == NULL)
        return sb_fail_memory(error, sizeof *step);
    SB_TRY(sb_pattern_literal(&step->pattern, sign, 3, error));
    if (sb_decoder_add(decoder, SB_DECODE_BYTE_FALLBACK) == NULL || sb_decoder_add(decoder, SB_DECODE_FUSE) == NULL)
        return sb_fail_memory(error, sizeof *step);
    step = prefix ? add_with(decoder, SB_DECODE_STRIP, " ") : NULL;
    if (prefix && step == NULL)
        return sb_fail_memory(error, sizeof *step);
    if (prefix)
        step->start = 1;
    return SB_OK;
}

sb_status sb_decoder_finish(sb_decoder *decoder, sb_error *error) {
    bool fused = false;
    for (size_t i = 0; i < decoder->count; i++) {
        sb_decode_step *step = &decoder->steps[i];
        step->fused = fused;
        bool one_byte = step->kind == SB_DECODE_REPLACE && step->pattern.kind == SB_PATTERN_LITERAL &&
                        step->pattern.literal_bytes == 1;
        if (fused && step->kind != SB_DECODE_STRIP && step->kind != SB_DECODE_FUSE && !one_byte)
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "decoder %zu of the sequence follows a Fuse, behind which only Strip, and Replace of one "
                           "ASCII character, are supported",
                           i);
        fused = fused || step->kind == SB_DECODE_FUSE || step->kind == SB_DECODE_BYTE_LEVEL;
    }
    return SB_OK;
}

void sb_decoder_clear(sb_decoder *decoder) {
    for (size_t i = 0; i < decoder->count; i++) {
        sb_pattern_clear(&decoder->steps[i].pattern);
        sb_free(decoder->steps[i].content);
    }
    sb_free(decoder->steps);
    *decoder = (sb_decoder){0};
}

/* ---- stages ---- */

static sb_status give(sb_decoding *decoding, size_t stage, sb_span token, sb_error *error);

static sb_status out_of_memory(sb_span token, sb_error *error) {
    return sb_fail_memory(error, token.bytes);
}

/* Gives on what can no longer change of the bytes that are kept, with U+FFFD for what is no character. */
static sb_status give_characters(sb_decoding *decoding, size_t index, bool last, sb_error *error) {
    sb_decode_stage *stage = &decoding->stages[index];
    size_t bad, keep = 0;
    bool unfinished = false;
    stage->spare.bytes = 0;
    for (size_t at = 0; at < stage->kept.bytes && !(unfinished && !last);) {
        size_t valid = sb_utf8_valid(stage->kept.data + at, stage->kept.bytes - at, &bad, &unfinished);
        bool broken = bad != 0 && (last || !unfinished);
        if (!sb_text_append(&stage->spare, stage->kept.data + at, valid) ||
            (broken && !sb_text_append(&stage->spare, "\xef\xbf\xbd", 3)))
            return sb_fail_memory(error, stage->kept.bytes);
        keep = unfinished && !last ? bad : 0;
        at += valid + bad;
    }
    if (keep != 0)
        memmove(stage->kept.data, stage->kept.data + stage->kept.bytes - keep, keep);
    stage->kept.bytes = keep;
    return give(decoding, index + 1, (sb_span){stage->spare.data, stage->spare.bytes}, error);
}

static sb_status byte_level(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    sb_text *kept = &decoding->stages[index].kept;
    size_t before = kept->bytes;
    uint32_t point;
    if (!sb_text_reserve(kept, token.bytes))
        return out_of_memory(token, error);
    for (size_t at = 0; at < token.bytes;) {
        at += sb_point_read(token.data + at, &point);
        int byte = sb_point_to_byte(point);
        if (byte < 0) { /* no text of bytes: it stands for itself */
            kept->bytes = before;
            if (!sb_text_append(kept, token.data, token.bytes))
                return out_of_memory(token, error);
            break;
        }
        kept->data[kept->bytes++] = (char)byte;
    }
    return give_characters(decoding, index, false, error);
}

static sb_status metaspace(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    sb_decode_stage *stage = &decoding->stages[index];
    bool drop = stage->count == 0 && step->first;
    stage->spare.bytes = 0;
    for (size_t at = 0, bytes; at < token.bytes; at += bytes) {
        bytes = sb_point_bytes(token.data[at]);
        bool sign = bytes == step->content_bytes && memcmp(token.data + at, step->content, bytes) == 0;
        if (!(sign ? drop || sb_text_append(&stage->spare, " ", 1)
                   : sb_text_append(&stage->spare, token.data + at, bytes)))
            return out_of_memory(token, error);
    }
    return give(decoding, index + 1, (sb_span){stage->spare.data, stage->spare.bytes}, error);
}

/* Replaces all that are found of `from`, in place: what takes their place is shorter. */
static void shorten(sb_text *text, const char *from, const char *to) {
    size_t from_bytes = strlen(from), to_bytes = strlen(to), kept = 0;
    for (size_t at = 0; at < text->bytes;) {
        if (text->bytes - at >= from_bytes && memcmp(text->data + at, from, from_bytes) == 0) {
            memcpy(text->data + kept, to, to_bytes);
            kept += to_bytes;
            at += from_bytes;
        } else
            text->data[kept++] = text->data[at++];
    }
    text->bytes = kept;
}

static void clean_up(sb_text *text) {
    static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        shorten(text, pairs[i][0], pairs[i][1]);
}

static sb_status wordpiece(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    sb_decode_stage *stage = &decoding->stages[index];
    bool part = token.bytes >= step->content_bytes && memcmp(token.data, step->content, step->content_bytes) == 0;
    size_t skip = stage->count != 0 && part ? step->content_bytes : 0;
    stage->spare.bytes = 0;
    if ((stage->count != 0 && !part && !sb_text_append(&stage->spare, " ", 1)) ||
        !sb_text_append(&stage->spare, token.data + skip, token.bytes - skip))
        return out_of_memory(token, error);
    if (step->cleanup)
        clean_up(&stage->spare);
    return give(decoding, index + 1, (sb_span){stage->spare.data, stage->spare.bytes}, error);
}

/* Writes a token with `by` in place of each suffix. */
static bool replace_all(sb_text *out, sb_span token, sb_span what, const char *by) {
    while (token.bytes != 0) {
        bool found = what.bytes != 0 && token.bytes >= what.bytes && memcmp(token.data, what.data, what.bytes) == 0;
        size_t bytes = found ? what.bytes : 1;
        if (!(found ? sb_text_append(out, by, strlen(by)) : sb_text_append(out, token.data, 1)))
            return false;
        token = (sb_span){token.data + bytes, token.bytes - bytes};
    }
    return true;
}

/* The last token's suffix is nothing, so a token waits for the next. */
static sb_status give_waiting(sb_decoding *decoding, size_t index, bool last, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    sb_decode_stage *stage = &decoding->stages[index];
    stage->spare.bytes = 0;
    if (!replace_all(&stage->spare, (sb_span){stage->kept.data, stage->kept.bytes},
                     (sb_span){step->content, step->content_bytes}, last ? "" : " "))
        return sb_fail_memory(error, stage->kept.bytes);
    return give(decoding, index + 1, (sb_span){stage->spare.data, stage->spare.bytes}, error);
}

static sb_status bpe(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    sb_decode_stage *stage = &decoding->stages[index];
    if (stage->count != 0)
        SB_TRY(give_waiting(decoding, index, false, error));
    stage->kept.bytes = 0;
    return sb_text_append(&stage->kept, token.data, token.bytes) ? SB_OK : out_of_memory(token, error);
}

static sb_status replace(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    sb_text *spare = &decoding->stages[index].spare;
    sb_search search;
    sb_search_memory memory = {0};
    size_t done = 0, begin = 0, end = 0;
    spare->bytes = 0;
    sb_status status = sb_search_begin(&search, &step->pattern, token, &memory, error);
    while (status == SB_OK && done < token.bytes) {
        status = sb_search_next(&search, &begin, &end, error);
        if (status == SB_OK && (!sb_text_append(spare, token.data + done, begin - done) ||
                                (begin < end && !sb_text_append(spare, step->content, step->content_bytes))))
            status = out_of_memory(token, error);
        done = end;
    }
    sb_search_memory_clear(&memory);
    return status == SB_OK ? give(decoding, index + 1, (sb_span){spare->data, spare->bytes}, error) : status;
}

/* The byte of <0xHH>, or -1. */
static int byte_of(sb_span token) {
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    if (token.bytes != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>')
        return -1;
    const char *high = token.data[3] != '\0' ? strchr(digits, token.data[3]) : NULL;
    const char *low = token.data[4] != '\0' ? strchr(digits, token.data[4]) : NULL;
    return high != NULL && low != NULL ? (int)(((high - digits) & 15) << 4 | ((low - digits) & 15)) : -1;
}

/* Bytes in a row are text if all of them are together, and else each of them is unknown. */
static sb_status give_bytes(sb_decoding *decoding, size_t index, sb_error *error) {
    sb_decode_stage *stage = &decoding->stages[index];
    size_t bad, count = stage->kept.bytes;
    bool unfinished;
    if (count == 0)
        return SB_OK;
    sb_text *out = &stage->kept;
    if (sb_utf8_valid(stage->kept.data, count, &bad, &unfinished) != count) {
        out = &stage->spare;
        out->bytes = 0;
        for (size_t i = 0; i < count; i++) {
            if (!sb_text_append(out, "\xef\xbf\xbd", 3))
                return sb_fail_memory(error, 3 * count);
        }
    }
    sb_status status = give(decoding, index + 1, (sb_span){out->data, out->bytes}, error);
    stage->kept.bytes = 0;
    return status;
}

static sb_status byte_fallback(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    int byte = byte_of(token);
    char character = (char)byte;
    if (byte >= 0)
        return sb_text_append(&decoding->stages[index].kept, &character, 1) ? SB_OK : out_of_memory(token, error);
    SB_TRY(give_bytes(decoding, index, error));
    return give(decoding, index + 1, token, error);
}

static size_t count_at_start(const sb_decode_step *step, sb_span token, size_t most) {
    size_t at = 0;
    for (; most != 0 && token.bytes - at >= step->content_bytes &&
           memcmp(token.data + at, step->content, step->content_bytes) == 0;
         most--)
        at += step->content_bytes;
    return at;
}

static size_t count_at_end(const sb_decode_step *step, sb_span token, size_t most) {
    size_t end = token.bytes;
    for (; most != 0 && end >= step->content_bytes &&
           memcmp(token.data + end - step->content_bytes, step->content, step->content_bytes) == 0;
         most--)
        end -= step->content_bytes;
    return token.bytes - end;
}

/* All that comes is one token: its start is stripped until something else has come, and what may be its end waits. */
static sb_status strip_fused(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    sb_decode_stage *stage = &decoding->stages[index];
    if (stage->count == 0)
        stage->left = step->start;
    size_t start = count_at_start(step, token, stage->left);
    stage->left -= start / step->content_bytes;
    if (start < token.bytes)
        stage->left = 0;
    if (!sb_text_append(&stage->kept, token.data + start, token.bytes - start))
        return out_of_memory(token, error);
    size_t end = count_at_end(step, (sb_span){stage->kept.data, stage->kept.bytes}, step->stop);
    SB_TRY(give(decoding, index + 1, (sb_span){stage->kept.data, stage->kept.bytes - end}, error));
    if (end != 0)
        memmove(stage->kept.data, stage->kept.data + stage->kept.bytes - end, end);
    stage->kept.bytes = end;
    return SB_OK;
}

static sb_status strip(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    const sb_decode_step *step = &decoding->decoder->steps[index];
    if (step->fused)
        return strip_fused(decoding, index, token, error);
    size_t start = count_at_start(step, token, step->start);
    sb_span rest = {token.data + start, token.bytes - start};
    rest.bytes -= count_at_end(step, rest, step->stop);
    return give(decoding, index + 1, rest, error);
}

static sb_status spaces(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    if (decoding->stages[index].count != 0)
        SB_TRY(give(decoding, index + 1, sb_span_of(" "), error));
    return give(decoding, index + 1, token, error);
}

/* Gives a token to a stage, or behind the last one to whoever takes the text. */
static sb_status give(sb_decoding *decoding, size_t index, sb_span token, sb_error *error) {
    static sb_status (*const stages[])(sb_decoding *, size_t, sb_span,
                                       sb_error *) = {[SB_DECODE_BYTE_LEVEL] = byte_level,
                                                      [SB_DECODE_METASPACE] = metaspace,
                                                      [SB_DECODE_WORDPIECE] = wordpiece,
                                                      [SB_DECODE_BPE] = bpe,
                                                      [SB_DECODE_REPLACE] = replace,
                                                      [SB_DECODE_BYTE_FALLBACK] = byte_fallback,
                                                      [SB_DECODE_STRIP] = strip,
                                                      [SB_DECODE_SPACES] = spaces,
                                                      [SB_DECODE_FUSE] = NULL};
    if (token.data == NULL) /* a text that was never written to: stages walk along its characters */
        token = sb_span_of("");
    if (index == decoding->decoder->count)
        return sb_text_append(&decoding->out, token.data, token.bytes) ? SB_OK : out_of_memory(token, error);
    sb_decode_kind kind = decoding->decoder->steps[index].kind;
    if (kind == SB_DECODE_FUSE)
        return give(decoding, index + 1, token, error);
    sb_status status = stages[kind](decoding, index, token, error);
    decoding->stages[index].count++;
    return status;
}

/* ---- decoding ---- */

sb_status sb_decoding_begin(sb_decoding *decoding, const sb_decoder *decoder, sb_error *error) {
    *decoding =
        (sb_decoding){.decoder = decoder, .stages = sb_allocate_array(decoder->count + 1, sizeof *decoding->stages)};
    return decoding->stages != NULL ? SB_OK : sb_fail_memory(error, decoder->count * sizeof *decoding->stages);
}

sb_status sb_decoding_push(sb_decoding *decoding, sb_span token, sb_error *error) {
    return give(decoding, 0, token, error);
}

sb_status sb_decoding_finish(sb_decoding *decoding, sb_error *error) {
    for (size_t i = 0; i < decoding->decoder->count; i++) {
        sb_decode_kind kind = decoding->decoder->steps[i].kind;
        if (kind == SB_DECODE_BYTE_LEVEL)
            SB_TRY(give_characters(decoding, i, true, error));
        else if (kind == SB_DECODE_BYTE_FALLBACK)
            SB_TRY(give_bytes(decoding, i, error));
        else if (kind == SB_DECODE_BPE && decoding->stages[i].count != 0)
            SB_TRY(give_waiting(decoding, i, true, error));
    }
    return SB_OK;
}

void sb_decoding_end(sb_decoding *decoding) {
    for (size_t i = 0; decoding->stages != NULL && i < decoding->decoder->count; i++) {
        sb_text_clear(&decoding->stages[i].kept);
        sb_text_clear(&decoding->stages[i].spare);
    }
    sb_free(decoding->stages);
    sb_text_clear(&decoding->out);
    *decoding = (sb_decoding){0};
}
