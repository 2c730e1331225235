/* Any bytes as a .npy file: refused with a report, or read, and then written and read again as the same tensor. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "tensor/npy.h"

static void check_round_trip(sb_tensor *tensor) {
    void *bytes;
    size_t size;
    sb_tensor *again = NULL;
    FUZZ_CHECK(sb_npy_write(tensor, &bytes, &size, NULL) == SB_OK);
    FUZZ_CHECK(sb_npy_read(bytes, size, &again, NULL) == SB_OK);
    FUZZ_CHECK(sb_tensor_equal(tensor, again));
    sb_tensor_release(again);
    sb_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_tensor *tensor = NULL;
    sb_error error = {0};
    int64_t before = sb_allocation_count().live_blocks;
    sb_status status = sb_npy_read(data, size, &tensor, &error);
    FUZZ_CHECK((status == SB_OK) == (tensor != NULL));
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_OUT_OF_MEMORY); /* sizes are checked before memory is asked for */
    if (tensor != NULL)
        check_round_trip(tensor);
    sb_tensor_release(tensor);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
