/* Any bytes as a .npz archive: every step refuses with a report, or every array is a tensor. */
#include <string.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "tensor/npz.h"

static void check_report(sb_status status, const sb_error *error) {
    FUZZ_CHECK(status == SB_OK || (error->status == status && error->message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_INTERNAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_npz *npz = NULL;
    sb_error error = {0};
    int64_t before = sb_allocation_count().live_blocks;
    sb_status status = sb_npz_open_memory(data, size, &npz, &error);
    check_report(status, &error);
    FUZZ_CHECK((status == SB_OK) == (npz != NULL));
    for (int i = 0; npz != NULL && i < sb_npz_count(npz); i++) {
        sb_tensor *tensor = NULL;
        error = (sb_error){0};
        status = sb_npz_read(npz, i, &tensor, &error);
        check_report(status, &error);
        FUZZ_CHECK((status == SB_OK) == (tensor != NULL));
        FUZZ_CHECK(sb_npz_find(npz, sb_npz_name(npz, i)) == i);
        sb_tensor_release(tensor);
    }
    sb_npz_close(npz);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
