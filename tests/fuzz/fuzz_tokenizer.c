/* Any bytes as tokenizer.json: refused with a report, or a tokenizer that encodes and decodes texts with whatever is
 * in it. */
#include <string.h>

#include <samebit/llm.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "fuzz/tokenizer_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] =
        "The s's \xc3\xa9 e\xcc\x81  \xe6\x97\xa5\xe6\x9c\xac\n\n 123 \xf0\x9f\x98\x80\xe2\x96\x81 <s>x";
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    int64_t before = sb_allocation_count().live_blocks;
    sb_status status = sb_tokenizer_open_memory(data, size, "bytes", &tokenizer, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK) {
        check_tokenizer(tokenizer, text, sizeof text - 1);
        /* Bytes of the file itself, which have what the file looks for. */
        if (size < 2000)
            check_tokenizer(tokenizer, (const char *)data, size);
        sb_tokenizer_release(tokenizer);
    }
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
