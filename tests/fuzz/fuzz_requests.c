/* Any bytes as a line of a file of requests; as a file with a conversation; and as a text that comes in pieces, watched for the stops that it asks for: what comes
 * out is what stands before the first of them. */
#include <string.h>

#include "../../cli/requests.h"
#include "fuzz/fuzz.h"

static void check_request(const request *r) {
    FUZZ_CHECK((r->prompt != NULL) + (r->messages != NULL) + (r->tokens != NULL) == 1);
    FUZZ_CHECK(r->messages == NULL || json_array_size(r->messages) > 0);
    FUZZ_CHECK(r->tokens == NULL || r->token_count > 0);
    FUZZ_CHECK(r->limit >= 0 && r->samples >= 1);
    FUZZ_CHECK(r->sampling.temperature >= 0 && r->sampling.top_k >= 0);
    FUZZ_CHECK(r->sampling.top_p > 0 && r->sampling.top_p <= 1);
    FUZZ_CHECK(r->sampling.min_p >= 0 && r->sampling.min_p <= 1);
    for (int i = 0; i < r->stops.count; i++)
        FUZZ_CHECK(r->stops.texts[i][0] != '\0');
}

static size_t first_stop(const char *text, size_t size, const stop_texts *stops) {
    for (size_t at = 0; at < size; at++) {
        for (int i = 0; i < stops->count; i++) {
            size_t length = strlen(stops->texts[i]);
            if (length <= size - at && memcmp(text + at, stops->texts[i], length) == 0)
                return at;
        }
    }
    return size;
}

static void watch(const char *text, size_t size, const stop_texts *stops) {
    stop_watch watch = {.stops = stops};
    size_t expected = first_stop(text, size, stops), out = 0, bytes, piece;
    const char *part;
    for (size_t at = 0; at < size; at += piece) {
        piece = 1 + (unsigned char)text[at] % 5;
        piece = piece < size - at ? piece : size - at;
        FUZZ_CHECK(watch_text(&watch, text + at, piece, &part, &bytes));
        FUZZ_CHECK(bytes <= expected - out && memcmp(part, text + out, bytes) == 0);
        out += bytes;
    }
    FUZZ_CHECK(watch_last(&watch, "", 0, &part, &bytes));
    FUZZ_CHECK(bytes <= expected - out && memcmp(part, text + out, bytes) == 0);
    FUZZ_CHECK(out + bytes == expected && watch.found == (expected < size));
    free_watch(&watch);
}

static void try_conversation(const char *text, size_t size) {
    char why[MESSAGES_WHY_BYTES] = "";
    json_t *messages;
    if (!parse_messages(text, size, &messages, why)) {
        FUZZ_CHECK(messages == NULL && why[0] != '\0');
        return;
    }
    for (size_t i = 0; i < json_array_size(messages); i++)
        FUZZ_CHECK(*message_role(json_array_get(messages, i)) != '\0');
    json_decref(messages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    request defaults = {.limit = 128, .samples = 1, .sampling = SB_LLM_SAMPLING_DEFAULT}, made;
    char why[REQUEST_WHY_BYTES] = "";
    FUZZ_CHECK(add_stop_text(&defaults.stops, "\n\n") && add_stop_text(&defaults.stops, "aab"));
    if (read_request((const char *)data, size, &defaults, &made, why)) {
        check_request(&made);
        watch((const char *)data, size < 4096 ? size : 4096, &made.stops);
        free_request(&made);
    } else {
        FUZZ_CHECK(why[0] != '\0');
    }
    free_stop_texts(&defaults.stops);
    try_conversation((const char *)data, size);
    return 0;
}
