/* Reading the parts of a tokenizer.json. */
#ifndef SB_TOKENIZER_JSON_PARTS_H
#define SB_TOKENIZER_JSON_PARTS_H

#include <jansson.h>

#include "tokenizer/tokenizer.h"

/** The text of a member; data is NULL where it is none. */
sb_span sb_json_text(const json_t *json, const char *name);
/** Whether a member is true; `otherwise` where it is no truth value. */
bool sb_json_flag(const json_t *json, const char *name, bool otherwise);
/** A copy of a member's text, NULL where it is none or empty. Errors: INVALID_FILE, for one with a NUL inside;
 * OUT_OF_MEMORY. */
sb_status sb_json_copy(const json_t *json, const char *name, char **copy, sb_error *error);
/** Whether a span is this text. */
bool sb_json_is(sb_span text, const char *name);
/** A pattern: {"String": …} or {"Regex": …}. */
sb_status sb_json_pattern(const json_t *json, sb_pattern *pattern, sb_error *error);

/* Parts, which append to what is there; null is nothing. `depth` of sequences around it. Errors: INVALID_FILE;
 * UNSUPPORTED; OUT_OF_MEMORY. */
sb_status sb_json_normalizer(sb_normalizer *normalizer, const json_t *json, int depth, sb_error *error);
sb_status sb_json_splitter(sb_splitter *splitter, const json_t *json, int depth, sb_error *error);
sb_status sb_json_surroundings(sb_tokenizer *tokenizer, const json_t *json, int depth, sb_error *error);
sb_status sb_json_decoder(sb_decoder *decoder, const json_t *json, int depth, sb_error *error);
/** Adds the token of that number. Errors: INVALID_FILE; UNSUPPORTED; OUT_OF_MEMORY. */
sb_status sb_json_added_token(sb_tokenizer *tokenizer, int64_t number, const json_t *json, sb_error *error);

/** Calls a reader of parts for the parts of a sequence, the member `name`. */
#define SB_JSON_SEQUENCE(read, target, json, name, depth, error)                                                       \
    do {                                                                                                               \
        const json_t *sb_parts_ = json_object_get(json, name);                                                         \
        if (!json_is_array(sb_parts_) || (depth) > 16)                                                                 \
            return sb_fail(error, SB_ERROR_INVALID_FILE,                                                               \
                           "a sequence has no parts (\"%s\"), or is one of too many in each other", name);             \
        for (size_t sb_i_ = 0; sb_i_ < json_array_size(sb_parts_); sb_i_++)                                            \
            SB_TRY(read(target, json_array_get(sb_parts_, sb_i_), (depth) + 1, error));                                \
        return SB_OK;                                                                                                  \
    } while (0)

#endif
