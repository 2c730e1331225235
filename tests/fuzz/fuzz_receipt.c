/* Any bytes as a receipt: refused with a report, or a receipt whose text is read as the same one. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "llm/receipt.h"

static void check_again(const sb_llm_receipt *receipt) {
    sb_llm_receipt *again;
    unsigned char digests[2][SB_DIGEST_BYTES];
    char *text;
    FUZZ_CHECK(receipt->prompt_count >= 1 && receipt->step_count <= receipt->limit);
    FUZZ_CHECK(sb_receipt_text(receipt, &text, NULL) == SB_OK);
    FUZZ_CHECK(sb_receipt_parse("text", text, strlen(text), &again, NULL) == SB_OK);
    free(text);
    FUZZ_CHECK(sb_receipt_digest(receipt, digests[0], NULL) == SB_OK &&
               sb_receipt_digest(again, digests[1], NULL) == SB_OK);
    FUZZ_CHECK(memcmp(digests[0], digests[1], SB_DIGEST_BYTES) == 0);
    FUZZ_CHECK(memcmp(receipt->settings, again->settings, SB_DIGEST_BYTES) == 0 &&
               memcmp(receipt->digest, again->digest, SB_DIGEST_BYTES) == 0 && receipt->is_signed == again->is_signed &&
               memcmp(receipt->signature, again->signature, SB_SIGNATURE_BYTES) == 0);
    sb_llm_receipt_release(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_error error = {0};
    sb_llm_receipt *receipt;
    int64_t before = sb_allocation_count().live_blocks;
    sb_status status = sb_receipt_parse("receipt.json", (const char *)data, size, &receipt, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK) {
        check_again(receipt);
        sb_llm_receipt_release(receipt);
    }
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
