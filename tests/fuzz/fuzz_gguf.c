/* Any bytes as a GGUF file: refused with a report, or all tensors inside of it; and its configuration, tokenizer and suggestions. */
#include "base/allocation.h"
#include "fuzz/checkpoint_bytes.h"
#include "fuzz/tokenizer_checks.h"
#include "llm/config.h"
#include "llm/suggestion.h"
#include "tokenizer/tokenizer.h"

static void try_tokenizer(const sb_gguf_tokenizer *file) {
    static const char text[] = "a b \xc3\xa9 <s>";
    sb_error error = {0};
    sb_tokenizer *tokenizer = sb_tokenizer_new();
    FUZZ_CHECK(tokenizer != NULL);
    sb_status status = sb_tokenizer_read_gguf(tokenizer, file, &error);
    if (status == SB_OK)
        status = sb_tokenizer_finish(tokenizer, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK)
        check_tokenizer(tokenizer, text, sizeof text - 1);
    sb_tokenizer_release(tokenizer);
}

static void try_suggestion(const sb_gguf_metadata *metadata) {
    sb_llm_sampling sampling;
    sb_error error = {0};
    sb_status status = sb_llm_suggestion_of_gguf("file", metadata, &sampling, &error);
    FUZZ_CHECK(status == SB_OK || (status == SB_ERROR_INVALID_FILE && error.message[0] != '\0'));
    if (status == SB_OK)
        FUZZ_CHECK(sampling.temperature >= 0 && sampling.top_k >= 0 && sampling.top_p > 0 && sampling.top_p <= 1 &&
                   sampling.min_p >= 0 && sampling.min_p <= 1 && sampling.repetition_penalty > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_shared_mapping mapping;
    sb_checkpoint_file file;
    sb_error error = {0};
    sb_llm_config config;
    sb_gguf_tokenizer tokenizer;
    int64_t before = sb_allocation_count().live_blocks;
    sb_checkpoint checkpoint = checkpoint_of(data, size, &mapping, &file);
    sb_status status = sb_gguf_read(&checkpoint, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_OUT_OF_MEMORY);
    if (status == SB_OK) {
        check_tensors(&checkpoint, size);
        try_suggestion(&checkpoint.gguf);
        if (sb_llm_config_read(&checkpoint, &config, &error) == SB_OK)
            FUZZ_CHECK(config.heads % config.key_heads == 0 && config.layers >= 1);
        if (sb_gguf_tokenizer_read(&checkpoint.gguf, &tokenizer, &error) == SB_OK) {
            try_tokenizer(&tokenizer);
            sb_gguf_tokenizer_clear(&tokenizer);
        }
    }
    clear_checkpoint(&checkpoint);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
