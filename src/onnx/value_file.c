#include <samebit/onnx.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/tensor.h"

/* More than any tensor of test data; a protobuf message cannot be larger anyway. */
#define LIMIT ((size_t)1 << 31)

/* numpy has no bfloat16, so the standard's test data keep its bits in files that say uint16. */
static sb_status read_as_bf16(sb_value *value, sb_error *error) {
    sb_tensor *bits = value->tensor, *tensor;
    sb_status status =
        sb_tensor_over(bits->storage, bits->data, SB_BF16, bits->rank, bits->dims, bits->strides, &tensor, error);
    sb_value_release(value);
    if (status == SB_OK)
        *value = sb_value_of_tensor(tensor);
    return status;
}

sb_status sb_onnx_value_load(const char *path, const sb_value_description *description, sb_value *value,
                             sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, LIMIT, &bytes, &size, error));
    sb_status status =
        sb_onnx_value_read(bytes, size, description->kind, description->optional, description->dtype, value, error);
    sb_free(bytes);
    if (status == SB_OK && description->dtype == SB_BF16 && value->kind == SB_KIND_TENSOR &&
        value->tensor->dtype == SB_U16)
        status = read_as_bf16(value, error);
    return status == SB_OK ? SB_OK : sb_fail_within(error, status, "%s: ", path);
}
