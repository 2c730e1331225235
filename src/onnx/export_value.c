/* Tensors and types, from the library's to messages. */
#include <string.h>

#include "base/allocation.h"
#include "onnx/exporter.h"

void *sb_exporter_room(sb_exporter *exporter, size_t count, size_t bytes, sb_error *error) {
    void *room = count <= SIZE_MAX / 2 / bytes ? sb_arena_allocate(&exporter->arena, count * bytes) : NULL;
    if (room == NULL)
        (void)sb_fail_memory(error, count * bytes);
    else
        memset(room, 0, count * bytes);
    return room;
}

void *sb_exporter_copy(sb_exporter *exporter, const void *source, size_t bytes, sb_error *error) {
    void *room = sb_exporter_room(exporter, 1, bytes, error);
    return room != NULL ? memcpy(room, source, bytes) : NULL;
}

/* ---- tensors ---- */

/* Takes the reference over, also when it fails. */
static sb_status keep(sb_exporter *exporter, sb_tensor *tensor, sb_error *error) {
    if (!sb_grow((void **)&exporter->kept, &exporter->kept_capacity, exporter->kept_count + 1,
                 sizeof *exporter->kept)) {
        sb_tensor_release(tensor);
        return sb_fail_memory(error, sizeof *exporter->kept);
    }
    exporter->kept[exporter->kept_count++] = tensor;
    return SB_OK;
}

static sb_status fill_strings(sb_exporter *exporter, const sb_tensor *tensor, Onnx__TensorProto *proto,
                              sb_error *error) {
    size_t count = (size_t)sb_tensor_elements(tensor);
    const sb_string *strings = (const sb_string *)(const void *)tensor->data;
    proto->string_data = sb_exporter_room(exporter, count, sizeof *proto->string_data, error);
    if (proto->string_data == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    proto->n_string_data = count;
    for (size_t i = 0; i < count; i++)
        proto->string_data[i] = (ProtobufCBinaryData){strings[i].bytes, (uint8_t *)(uintptr_t)strings[i].data};
    return SB_OK;
}

static sb_status fill_numbers(sb_exporter *exporter, const sb_tensor *tensor, Onnx__TensorProto *proto,
                              sb_error *error) {
    int64_t elements = sb_tensor_elements(tensor);
    proto->has_raw_data = 1;
    proto->raw_data = (ProtobufCBinaryData){sb_packed_bytes(tensor->dtype, elements), (uint8_t *)tensor->data};
    exporter->small_types = exporter->small_types || sb_dtype_is_small(tensor->dtype);
    if (!sb_dtype_is_small(tensor->dtype) || sb_dtype_bits(tensor->dtype) == 8)
        return SB_OK;
    proto->raw_data.data = sb_exporter_room(exporter, proto->raw_data.len, 1, error);
    if (proto->raw_data.data == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    sb_pack(tensor->dtype, elements, tensor->data, proto->raw_data.data);
    return SB_OK;
}

sb_status sb_export_tensor(sb_exporter *exporter, sb_tensor *tensor, const char *name, Onnx__TensorProto **proto,
                           sb_error *error) {
    sb_tensor *dense;
    SB_TRY(sb_tensor_check_on_host(tensor, "written to a file", error));
    SB_TRY(sb_tensor_contiguous(tensor, &dense, error));
    SB_TRY(keep(exporter, dense, error));
    *proto = sb_new_TensorProto(exporter, error);
    if (*proto == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    (*proto)->name = (char *)(uintptr_t)name;
    (*proto)->has_data_type = 1;
    (*proto)->data_type = sb_onnx_data_type(dense->dtype);
    (*proto)->n_dims = (size_t)dense->rank;
    (*proto)->dims = dense->dims;
    return (dense->dtype == SB_STRING ? fill_strings : fill_numbers)(exporter, dense, *proto, error);
}

/* ---- types ---- */

/* A name for an extent, or NULL for one that only the data decide: a fresh symbol has a '#' in its name. */
static sb_status dim_name(sb_exporter *exporter, sb_dim dim, char **name, sb_error *error) {
    char text[256];
    sb_dim_text(dim, text, sizeof text);
    *name = NULL;
    if (strchr(text, '#') != NULL || strlen(text) + 1 == sizeof text)
        return SB_OK;
    *name = sb_exporter_copy(exporter, text, strlen(text) + 1, error);
    return *name != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
}

static sb_status shape(sb_exporter *exporter, const sb_fact *fact, Onnx__TensorShapeProto **proto, sb_error *error) {
    *proto = sb_new_TensorShapeProto(exporter, error);
    if (*proto == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    (*proto)->n_dim = (size_t)fact->rank;
    (*proto)->dim = sb_exporter_room(exporter, (size_t)fact->rank, sizeof *(*proto)->dim, error);
    if ((*proto)->dim == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    for (int d = 0; d < fact->rank; d++) {
        Onnx__TensorShapeProto__Dimension *dim = sb_new_TensorShapeProto__Dimension(exporter, error);
        if (dim == NULL)
            return SB_ERROR_OUT_OF_MEMORY;
        (*proto)->dim[d] = dim;
        char *name;
        int64_t number;
        if (sb_dim_is_constant(fact->dims[d], &number)) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = number;
            continue;
        }
        SB_TRY(dim_name(exporter, fact->dims[d], &name, error));
        if (name != NULL) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = name;
        }
    }
    return SB_OK;
}

static Onnx__TypeProto *tensor_type(sb_exporter *exporter, sb_dtype dtype, sb_error *error) {
    Onnx__TypeProto *type = sb_new_TypeProto(exporter, error);
    if (type == NULL)
        return NULL;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = sb_new_TypeProto__Tensor(exporter, error);
    if (type->tensor_type == NULL)
        return NULL;
    type->tensor_type->has_elem_type = 1;
    type->tensor_type->elem_type = sb_onnx_data_type(dtype);
    exporter->small_types = exporter->small_types || sb_dtype_is_small(dtype);
    return type;
}

static Onnx__TypeProto *sequence_type(sb_exporter *exporter, Onnx__TypeProto *inner, sb_error *error) {
    Onnx__TypeProto *type = inner != NULL ? sb_new_TypeProto(exporter, error) : NULL;
    if (type == NULL)
        return NULL;
    type->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    type->sequence_type = sb_new_TypeProto__Sequence(exporter, error);
    if (type->sequence_type == NULL)
        return NULL;
    type->sequence_type->elem_type = inner;
    return type;
}

static Onnx__TypeProto *optional_type(sb_exporter *exporter, Onnx__TypeProto *inner, sb_error *error) {
    Onnx__TypeProto *type = inner != NULL ? sb_new_TypeProto(exporter, error) : NULL;
    if (type == NULL)
        return NULL;
    type->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
    type->optional_type = sb_new_TypeProto__Optional(exporter, error);
    if (type->optional_type == NULL)
        return NULL;
    type->optional_type->elem_type = inner;
    return type;
}

sb_status sb_export_type(sb_exporter *exporter, const sb_fact *fact, Onnx__TypeProto **proto, sb_error *error) {
    *proto = NULL;
    if (fact->kind == SB_KIND_NONE || fact->dtype == SB_DTYPE_NONE)
        return SB_OK;
    Onnx__TypeProto *type = tensor_type(exporter, fact->dtype, error);
    if (type == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    if (fact->rank != SB_RANK_UNKNOWN)
        SB_TRY(shape(exporter, fact, &type->tensor_type->shape, error));
    if (fact->kind == SB_KIND_SEQUENCE)
        type = sequence_type(exporter, type, error);
    if (fact->optional)
        type = optional_type(exporter, type, error);
    *proto = type;
    return type != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
}

sb_status sb_export_type_text(sb_exporter *exporter, const char *text, Onnx__TypeProto **proto, sb_error *error) {
    static const char optional[] = "optional(", sequence[] = "sequence(", tensor[] = "tensor(";
    bool is_optional = strncmp(text, optional, sizeof optional - 1) == 0;
    text += is_optional ? sizeof optional - 1 : 0;
    bool is_sequence = strncmp(text, sequence, sizeof sequence - 1) == 0;
    text += is_sequence ? sizeof sequence - 1 : strncmp(text, tensor, sizeof tensor - 1) == 0 ? sizeof tensor - 1 : 0;
    char name[32] = "";
    size_t length = strcspn(text, ")");
    if (length < sizeof name)
        memcpy(name, text, length);
    sb_dtype dtype = sb_dtype_from_name(name);
    if (dtype == SB_DTYPE_NONE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "'%.60s' is no type", text);
    Onnx__TypeProto *type = tensor_type(exporter, dtype, error);
    if (is_sequence)
        type = sequence_type(exporter, type, error);
    if (is_optional)
        type = optional_type(exporter, type, error);
    *proto = type;
    return type != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
}
