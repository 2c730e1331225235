/* Decoders: texts of tokens to text. A decoder is a row of stages; each gets the tokens one by one, as they come from
 * a model, and hands on what nothing that follows can change any more. So decoding a stream and decoding the whole
 * are one thing. */
#ifndef SB_TOKENIZER_DECODER_H
#define SB_TOKENIZER_DECODER_H

#include "tokenizer/pattern.h"

typedef enum sb_decode_kind {
    SB_DECODE_BYTE_LEVEL, /* characters that stand for bytes */
    SB_DECODE_METASPACE,  /* signs that stand for spaces; without those of the first token where `first` */
    SB_DECODE_WORDPIECE,  /* a space before tokens that have not the prefix */
    SB_DECODE_BPE,        /* a space in place of the suffix, but for the last token's */
    SB_DECODE_REPLACE,
    SB_DECODE_BYTE_FALLBACK, /* tokens such as <0x0A> that stand for bytes */
    SB_DECODE_FUSE,          /* what follows is one token */
    SB_DECODE_STRIP,         /* so many times a character at the ends of each token */
    SB_DECODE_SPACES         /* a space between tokens: where a tokenizer has no decoder */
} sb_decode_kind;

typedef struct sb_decode_step {
    sb_decode_kind kind;
    bool first;    /* METASPACE */
    bool cleanup;  /* WORDPIECE: no spaces before marks */
    bool fused;    /* it comes behind a FUSE */
    char *content; /* the sign, the prefix, the suffix, the replacement, or what is stripped */
    size_t content_bytes;
    size_t start, stop; /* STRIP */
    sb_pattern pattern; /* REPLACE */
} sb_decode_step;

/** Zeroed, it puts texts one behind the other. */
typedef struct sb_decoder {
    sb_decode_step *steps;
    size_t count, capacity;
} sb_decoder;

/** Appends a step; NULL when memory ran out. */
sb_decode_step *sb_decoder_add(sb_decoder *decoder, sb_decode_kind kind);
/** Appends the steps for sentencepiece's tokens: U+2581 for a space, tokens of bytes, and no space before the text where
 * `prefix`. Errors: OUT_OF_MEMORY. */
sb_status sb_decoder_add_sentencepiece(sb_decoder *decoder, bool prefix, sb_error *error);
/** Checks that the steps can be done in this order. Errors: UNSUPPORTED. */
sb_status sb_decoder_finish(sb_decoder *decoder, sb_error *error);
void sb_decoder_clear(sb_decoder *decoder);

/** What a stage keeps between tokens. */
typedef struct sb_decode_stage {
    size_t count;  /* tokens that it got */
    sb_text kept;  /* what waits for what follows */
    sb_text spare; /* to work in */
    size_t left;   /* STRIP behind FUSE: how many more to strip at the start */
} sb_decode_stage;

typedef struct sb_decoding {
    const sb_decoder *decoder;
    sb_decode_stage *stages; /* one for each step */
    sb_text out;             /* what is decoded and not yet taken: whole characters */
} sb_decoding;

sb_status sb_decoding_begin(sb_decoding *decoding, const sb_decoder *decoder, sb_error *error);
/** The next token's text, which is UTF-8. Errors: LIMIT; OUT_OF_MEMORY. */
sb_status sb_decoding_push(sb_decoding *decoding, sb_span token, sb_error *error);
/** Hands on what was kept. After it the decoding is over. */
sb_status sb_decoding_finish(sb_decoding *decoding, sb_error *error);
void sb_decoding_end(sb_decoding *decoding);

/** Whether the bytes of a token in the middle of a text are a function of the token. Errors: UNSUPPORTED, which says why not. */
sb_status sb_decoder_check_bytes(const sb_decoder *decoder, sb_error *error);
/** Those bytes, in `out`, of a decoder that has been checked; they need not be whole characters. `spare` is to work in. Errors: LIMIT;
 * OUT_OF_MEMORY. */
sb_status sb_decoder_token_bytes(const sb_decoder *decoder, sb_span token, sb_text *out, sb_text *spare,
                                 sb_error *error);

#endif
