#include <string.h>

#include "base/allocation.h"
#include "onnx/tensor.h"

static iv_status pack(const Onnx__TensorProto *proto, void **bytes, size_t *size, iv_error *error) {
    *size = onnx__tensor_proto__get_packed_size(proto);
    *bytes = iv_allocate(*size);
    if (*bytes == NULL)
        return iv_fail_memory(error, *size);
    onnx__tensor_proto__pack(proto, *bytes);
    return IV_OK;
}

static iv_status pack_strings(Onnx__TensorProto *proto, const iv_tensor *tensor, void **bytes,
                              size_t *size, iv_error *error) {
    size_t count = (size_t)iv_tensor_elements(tensor);
    const iv_string *strings = (const iv_string *)(const void *)tensor->data;
    proto->string_data = iv_allocate_array(count, sizeof *proto->string_data);
    if (proto->string_data == NULL)
        return iv_fail_memory(error, count * sizeof *proto->string_data);
    proto->n_string_data = count;
    for (size_t i = 0; i < count; i++)
        proto->string_data[i] =
            (ProtobufCBinaryData){strings[i].bytes, (uint8_t *)(uintptr_t)strings[i].data};
    iv_status status = pack(proto, bytes, size, error);
    iv_free(proto->string_data);
    return status;
}

iv_status iv_onnx_tensor_write(iv_tensor *tensor, const char *name, void **bytes, size_t *size,
                               iv_error *error) {
    iv_tensor *dense;
    IV_TRY(iv_tensor_check_on_host(tensor, "written to a file", error));
    IV_TRY(iv_tensor_contiguous(tensor, &dense, error));
    Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    proto.name = (char *)(uintptr_t)name;
    proto.has_data_type = 1;
    proto.data_type = iv_onnx_data_type(dense->dtype);
    proto.n_dims = (size_t)dense->rank;
    proto.dims = dense->dims;
    size_t elements = (size_t)iv_tensor_elements(dense);
    iv_status status;
    if (dense->dtype == IV_STRING) {
        status = pack_strings(&proto, dense, bytes, size, error);
    } else {
        proto.has_raw_data = 1;
        proto.raw_data =
            (ProtobufCBinaryData){elements * iv_dtype_size(dense->dtype), (uint8_t *)dense->data};
        status = pack(&proto, bytes, size, error);
    }
    iv_tensor_release(dense);
    return status;
}
