#include <invar/onnx.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/tensor.h"

/* More than any tensor of test data; a protobuf message cannot be larger anyway. */
#define LIMIT ((size_t)1 << 31)

/* numpy has no bfloat16, so the standard's test data keep its bits in files that say uint16. */
static iv_status read_as_bf16(iv_value *value, iv_error *error) {
    iv_tensor *bits = value->tensor, *tensor;
    iv_status status = iv_tensor_over(bits->storage, bits->data, IV_BF16, bits->rank, bits->dims,
                                      bits->strides, &tensor, error);
    iv_value_release(value);
    if (status == IV_OK)
        *value = iv_value_of_tensor(tensor);
    return status;
}

iv_status iv_onnx_value_load(const char *path, const iv_value_description *description,
                             iv_value *value, iv_error *error) {
    void *bytes;
    size_t size;
    IV_TRY(iv_file_read(path, LIMIT, &bytes, &size, error));
    iv_status status = iv_onnx_value_read(bytes, size, description->kind, description->optional,
                                          description->dtype, value, error);
    iv_free(bytes);
    if (status == IV_OK && description->dtype == IV_BF16 && value->kind == IV_KIND_TENSOR &&
        value->tensor->dtype == IV_U16)
        status = read_as_bf16(value, error);
    return status == IV_OK ? IV_OK : iv_fail_within(error, status, "%s: ", path);
}
