/* Any bytes as tokenizer.model: refused with a report, or a tokenizer that encodes and decodes texts. */
#include "base/allocation.h"
#include "fuzz/tokenizer_checks.h"
#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] = "The s's \xc3\xa9  \xe6\x97\xa5\n\n 123 \xf0\x9f\x98\x80\xe2\x96\x81 <s>sea";
    sb_error error = {0};
    int64_t before = sb_allocation_count().live_blocks;
    sb_tokenizer *tokenizer = sb_tokenizer_new();
    FUZZ_CHECK(tokenizer != NULL);
    sb_status status = sb_tokenizer_read_sentencepiece(tokenizer, (sb_span){(const char *)data, size}, &error);
    if (status == SB_OK)
        status = sb_tokenizer_finish(tokenizer, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK)
        check_tokenizer(tokenizer, text, sizeof text - 1);
    sb_tokenizer_release(tokenizer);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
