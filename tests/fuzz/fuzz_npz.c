/* Any bytes as a .npz archive: every step refuses with a report, or every array is a tensor. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "tensor/npz.h"

static void check_report(iv_status status, const iv_error *error) {
    FUZZ_CHECK(status == IV_OK || (error->status == status && error->message[0] != '\0'));
    FUZZ_CHECK(status != IV_ERROR_INTERNAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    iv_npz *npz = NULL;
    iv_error error = {0};
    int64_t before = iv_allocation_count().live_blocks;
    iv_status status = iv_npz_open_memory(data, size, &npz, &error);
    check_report(status, &error);
    FUZZ_CHECK((status == IV_OK) == (npz != NULL));
    for (int i = 0; npz != NULL && i < iv_npz_count(npz); i++) {
        iv_tensor *tensor = NULL;
        error = (iv_error){0};
        status = iv_npz_read(npz, i, &tensor, &error);
        check_report(status, &error);
        FUZZ_CHECK((status == IV_OK) == (tensor != NULL));
        FUZZ_CHECK(iv_npz_find(npz, iv_npz_name(npz, i)) == i);
        iv_tensor_release(tensor);
    }
    iv_npz_close(npz);
    FUZZ_CHECK(iv_allocation_count().live_blocks == before);
    return 0;
}
