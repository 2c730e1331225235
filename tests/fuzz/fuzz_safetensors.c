/* Any bytes as a safetensors file: refused with a report, or all tensors inside of it. */
#include "base/allocation.h"
#include "fuzz/checkpoint_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_shared_mapping mapping;
    sb_checkpoint_file file;
    sb_error error = {0};
    int64_t before = sb_allocation_count().live_blocks;
    sb_checkpoint checkpoint = checkpoint_of(data, size, &mapping, &file);
    sb_status status = sb_safetensors_read(&checkpoint, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_OUT_OF_MEMORY);
    if (status == SB_OK)
        check_tensors(&checkpoint, size);
    clear_checkpoint(&checkpoint);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
