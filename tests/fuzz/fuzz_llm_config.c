/* Any bytes as config.json, and as generation_config.json: refused with a report, or numbers that hang together, and tables of angles. */
#include "base/allocation.h"
#include "fuzz/checkpoint_bytes.h"
#include "llm/rope.h"
#include "llm/suggestion.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_error error = {0};
    sb_llm_config config;
    sb_tensor *cosines, *sines;
    int64_t before = sb_allocation_count().live_blocks;
    sb_checkpoint checkpoint = {.path = (char *)(uintptr_t) "config.json"};
    sb_status status = sb_json_object("config.json", (const char *)data, size, &checkpoint.config, &error);
    sb_llm_sampling sampling;
    if (status == SB_OK && sb_llm_suggestion_of("generation_config.json", checkpoint.config, &sampling, NULL) == SB_OK)
        FUZZ_CHECK(sampling.temperature >= 0 && sampling.top_k >= 0 && sampling.top_p > 0 && sampling.top_p <= 1 &&
                   sampling.min_p >= 0 && sampling.min_p <= 1 && sampling.repetition_penalty > 0);
    if (status == SB_OK)
        status = sb_llm_config_read(&checkpoint, &config, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK) {
        FUZZ_CHECK(config.heads % config.key_heads == 0 && config.layers >= 1 && config.rotated <= config.head_width);
        for (int64_t layer = 0; layer < config.layers; layer++)
            (void)sb_llm_layer_has_window(&config, layer);
        if (!config.family->learned_positions && config.rotated <= 512 &&
            sb_rope_tables(&checkpoint, &config, &config.rope, 3, SB_BF16, &cosines, &sines, &error) == SB_OK) {
            sb_tensor_release(cosines);
            sb_tensor_release(sines);
        }
    }
    clear_checkpoint(&checkpoint);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
