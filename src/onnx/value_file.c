#include <invar/onnx.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/tensor.h"

/* More than any tensor of test data; a protobuf message cannot be larger anyway. */
#define LIMIT ((size_t)1 << 31)

iv_status iv_onnx_value_load(const char *path, const iv_value_description *description,
                             iv_value *value, iv_error *error) {
    void *bytes;
    size_t size;
    IV_TRY(iv_file_read(path, LIMIT, &bytes, &size, error));
    iv_status status = iv_onnx_value_read(bytes, size, description->kind, description->optional,
                                          description->dtype, value, error);
    iv_free(bytes);
    return status == IV_OK ? IV_OK : iv_fail_within(error, status, "%s: ", path);
}
