/* Any bytes as a .pb file, taken for each kind of value: refused with a report, or read; and a
 * tensor is the same when it is written and read again. */
#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "onnx/tensor.h"

static void check_round_trip(iv_tensor *tensor) {
    void *bytes;
    size_t size;
    iv_tensor *again = NULL;
    FUZZ_CHECK(iv_onnx_tensor_write(tensor, "again", &bytes, &size, NULL) == IV_OK);
    FUZZ_CHECK(iv_onnx_tensor_read(bytes, size, &again, NULL) == IV_OK);
    FUZZ_CHECK(iv_tensor_equal(tensor, again));
    iv_tensor_release(again);
    iv_free(bytes);
}

static void read_as(const uint8_t *data, size_t size, iv_kind kind, bool optional) {
    iv_value value = {0};
    iv_error error = {0};
    iv_status status = iv_onnx_value_read(data, size, kind, optional, IV_F32, &value, &error);
    FUZZ_CHECK(status == IV_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != IV_ERROR_OUT_OF_MEMORY && status != IV_ERROR_INTERNAL);
    FUZZ_CHECK(status == IV_OK || value.kind == IV_KIND_NONE);
    if (value.kind == IV_KIND_TENSOR)
        check_round_trip(value.tensor);
    iv_value_release(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t before = iv_allocation_count().live_blocks;
    read_as(data, size, IV_KIND_TENSOR, false);
    read_as(data, size, IV_KIND_TENSOR, true);
    read_as(data, size, IV_KIND_SEQUENCE, false);
    read_as(data, size, IV_KIND_SEQUENCE, true);
    FUZZ_CHECK(iv_allocation_count().live_blocks == before);
    return 0;
}
