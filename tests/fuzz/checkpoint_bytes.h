/* A checkpoint whose only file is any bytes. */
#ifndef SB_TESTS_CHECKPOINT_BYTES_H
#define SB_TESTS_CHECKPOINT_BYTES_H

#include <string.h>

#include "checkpoint/checkpoint.h"
#include "fuzz/fuzz.h"

static inline sb_checkpoint checkpoint_of(const uint8_t *data, size_t size, sb_shared_mapping *mapping,
                                          sb_checkpoint_file *file) {
    *mapping = (sb_shared_mapping){.references = 1, .size = size, .data = (const char *)data};
    *file = (sb_checkpoint_file){(char *)(uintptr_t) "file", mapping};
    return (sb_checkpoint){.path = (char *)(uintptr_t) "file", .file_count = 1, .files = file};
}

/* Every tensor lies inside the file; small ones are read. */
static inline void check_tensors(const sb_checkpoint *checkpoint, size_t size) {
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const sb_checkpoint_tensor *tensor = &checkpoint->tensors[i];
        sb_tensor *values = NULL;
        FUZZ_CHECK(tensor->bytes <= size && tensor->offset <= size - tensor->bytes);
        if (tensor->elements > 4096)
            continue;
        sb_status status = sb_checkpoint_read(checkpoint, tensor, SB_BF16, &values, NULL);
        FUZZ_CHECK(status == SB_OK || tensor->format->decode == NULL);
        FUZZ_CHECK(values == NULL || sb_tensor_elements(values) == tensor->elements);
        sb_tensor_release(values);
    }
}

static inline void clear_checkpoint(sb_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        sb_free(checkpoint->tensors[i].name);
    sb_names_clear(&checkpoint->names);
    sb_free(checkpoint->tensors);
    sb_free(checkpoint->gguf.values);
    json_decref(checkpoint->config);
}

#endif
