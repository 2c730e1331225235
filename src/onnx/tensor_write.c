#include <string.h>

#include "base/allocation.h"
#include "onnx/tensor.h"

static sb_status pack(const Onnx__TensorProto *proto, void **bytes, size_t *size, sb_error *error) {
    *size = onnx__tensor_proto__get_packed_size(proto);
    *bytes = sb_allocate(*size);
    if (*bytes == NULL)
        return sb_fail_memory(error, *size);
    onnx__tensor_proto__pack(proto, *bytes);
    return SB_OK;
}

static sb_status pack_strings(Onnx__TensorProto *proto, const sb_tensor *tensor, void **bytes, size_t *size,
                              sb_error *error) {
    size_t count = (size_t)sb_tensor_elements(tensor);
    const sb_string *strings = (const sb_string *)(const void *)tensor->data;
    proto->string_data = sb_allocate_array(count, sizeof *proto->string_data);
    if (proto->string_data == NULL)
        return sb_fail_memory(error, count * sizeof *proto->string_data);
    proto->n_string_data = count;
    for (size_t i = 0; i < count; i++)
        proto->string_data[i] = (ProtobufCBinaryData){strings[i].bytes, (uint8_t *)(uintptr_t)strings[i].data};
    sb_status status = pack(proto, bytes, size, error);
    sb_free(proto->string_data);
    return status;
}

static sb_status pack_numbers(Onnx__TensorProto *proto, const sb_tensor *tensor, void **bytes, size_t *size,
                              sb_error *error) {
    int64_t elements = sb_tensor_elements(tensor);
    size_t wanted = sb_packed_bytes(tensor->dtype, elements);
    proto->has_raw_data = 1;
    proto->raw_data = (ProtobufCBinaryData){wanted, (uint8_t *)tensor->data};
    if (!sb_dtype_is_small(tensor->dtype) || sb_dtype_bits(tensor->dtype) == 8)
        return pack(proto, bytes, size, error);
    proto->raw_data.data = sb_allocate(wanted);
    if (proto->raw_data.data == NULL)
        return sb_fail_memory(error, wanted);
    sb_pack(tensor->dtype, elements, tensor->data, proto->raw_data.data);
    sb_status status = pack(proto, bytes, size, error);
    sb_free(proto->raw_data.data);
    return status;
}

sb_status sb_onnx_tensor_write(sb_tensor *tensor, const char *name, void **bytes, size_t *size, sb_error *error) {
    sb_tensor *dense;
    SB_TRY(sb_tensor_check_on_host(tensor, "written to a file", error));
    SB_TRY(sb_tensor_contiguous(tensor, &dense, error));
    Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    proto.name = (char *)(uintptr_t)name;
    proto.has_data_type = 1;
    proto.data_type = sb_onnx_data_type(dense->dtype);
    proto.n_dims = (size_t)dense->rank;
    proto.dims = dense->dims;
    sb_status status = (dense->dtype == SB_STRING ? pack_strings : pack_numbers)(&proto, dense, bytes, size, error);
    sb_tensor_release(dense);
    return status;
}
