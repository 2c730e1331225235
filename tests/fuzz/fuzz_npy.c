/* Any bytes as a .npy file: refused with a report, or read, and then written and read again as the
 * same tensor. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "tensor/npy.h"

static void check_round_trip(iv_tensor *tensor) {
    void *bytes;
    size_t size;
    iv_tensor *again = NULL;
    FUZZ_CHECK(iv_npy_write(tensor, &bytes, &size, NULL) == IV_OK);
    FUZZ_CHECK(iv_npy_read(bytes, size, &again, NULL) == IV_OK);
    FUZZ_CHECK(iv_tensor_equal(tensor, again));
    iv_tensor_release(again);
    iv_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    iv_tensor *tensor = NULL;
    iv_error error = {0};
    int64_t before = iv_allocation_count().live_blocks;
    iv_status status = iv_npy_read(data, size, &tensor, &error);
    FUZZ_CHECK((status == IV_OK) == (tensor != NULL));
    FUZZ_CHECK(status == IV_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != IV_ERROR_OUT_OF_MEMORY); /* sizes are checked before memory is asked for */
    if (tensor != NULL)
        check_round_trip(tensor);
    iv_tensor_release(tensor);
    FUZZ_CHECK(iv_allocation_count().live_blocks == before);
    return 0;
}
