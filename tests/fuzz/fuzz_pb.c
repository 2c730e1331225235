/* Any bytes as a .pb file, taken for each kind of value: refused with a report, or read; and a
 * tensor is the same when it is written and read again. */
#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "onnx/tensor.h"

static void check_round_trip(sb_tensor *tensor) {
    void *bytes;
    size_t size;
    sb_tensor *again = NULL;
    FUZZ_CHECK(sb_onnx_tensor_write(tensor, "again", &bytes, &size, NULL) == SB_OK);
    FUZZ_CHECK(sb_onnx_tensor_read(bytes, size, &again, NULL) == SB_OK);
    FUZZ_CHECK(sb_tensor_equal(tensor, again));
    sb_tensor_release(again);
    sb_free(bytes);
}

static void read_as(const uint8_t *data, size_t size, sb_kind kind, bool optional) {
    sb_value value = {0};
    sb_error error = {0};
    sb_status status = sb_onnx_value_read(data, size, kind, optional, SB_F32, &value, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_OUT_OF_MEMORY && status != SB_ERROR_INTERNAL);
    FUZZ_CHECK(status == SB_OK || value.kind == SB_KIND_NONE);
    if (value.kind == SB_KIND_TENSOR)
        check_round_trip(value.tensor);
    sb_value_release(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t before = sb_allocation_count().live_blocks;
    read_as(data, size, SB_KIND_TENSOR, false);
    read_as(data, size, SB_KIND_TENSOR, true);
    read_as(data, size, SB_KIND_SEQUENCE, false);
    read_as(data, size, SB_KIND_SEQUENCE, true);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
