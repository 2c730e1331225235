/* TensorProto in all its forms of storage. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/tensor.h"

static const iv_dtype dtypes[] = {
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT] = IV_F32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8] = IV_U8,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8] = IV_S8,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16] = IV_U16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16] = IV_S16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32] = IV_S32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64] = IV_S64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__STRING] = IV_STRING,
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL] = IV_BOOL,
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16] = IV_F16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE] = IV_F64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32] = IV_U32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64] = IV_U64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16] = IV_BF16,
};
#define DTYPE_COUNT ((int32_t)(sizeof dtypes / sizeof *dtypes))

iv_status iv_onnx_dtype(int32_t data_type, iv_dtype *dtype, iv_error *error) {
    /* Numbers beyond those of the installed onnx.proto, up to ONNX 1.18's. */
    static const char *const foreign[] = {
        [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64] = "complex64",
        [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128] = "complex128",
        [17] = "float8e4m3fn",
        [18] = "float8e4m3fnuz",
        [19] = "float8e5m2",
        [20] = "float8e5m2fnuz",
        [21] = "uint4",
        [22] = "int4",
        [23] = "float4e2m1",
    };
    if (data_type > 0 && data_type < DTYPE_COUNT && dtypes[data_type] != IV_DTYPE_NONE) {
        *dtype = dtypes[data_type];
        return IV_OK;
    }
    if (data_type > 0 && data_type < (int32_t)(sizeof foreign / sizeof *foreign))
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "elements of type %s are not supported: convert them to f32 or f16",
                       foreign[data_type]);
    return iv_fail(error, data_type <= 0 ? IV_ERROR_INVALID_MODEL : IV_ERROR_UNSUPPORTED,
                   "%" PRId32 " is no element type that ONNX defines", data_type);
}

int32_t iv_onnx_data_type(iv_dtype dtype) {
    for (int32_t i = 0; i < DTYPE_COUNT; i++) {
        if (dtypes[i] == dtype)
            return i;
    }
    return ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED;
}

/* A tensor on its way. */
typedef struct reading {
    Onnx__TensorProto *proto;
    iv_arena *arena;
    iv_external *external;
    iv_dtype dtype;
    int rank;
    int64_t dims[IV_MAX_RANK];
    int64_t elements;
    size_t bytes; /* of the dense elements */
} reading;

static iv_status read_type(reading *in, iv_error *error) {
    const Onnx__TensorProto *proto = in->proto;
    IV_TRY(iv_onnx_dtype(proto->data_type, &in->dtype, error));
    if (proto->n_dims > IV_MAX_RANK)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "it has %zu dimensions, and %d are supported",
                       proto->n_dims, IV_MAX_RANK);
    if (proto->segment != NULL)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "it is one segment of a tensor: store it in one piece");
    in->rank = (int)proto->n_dims;
    for (int i = 0; i < in->rank; i++)
        in->dims[i] = proto->dims[i];
    iv_status status = iv_count_elements(in->dtype, in->rank, in->dims, &in->elements, error);
    if (status != IV_OK)
        return iv_fail_within(error, IV_ERROR_INVALID_MODEL, "its shape is bad: ");
    in->bytes = (size_t)in->elements * iv_dtype_size(in->dtype);
    return IV_OK;
}

static iv_status wrong_count(const reading *in, const char *what, size_t found, iv_error *error) {
    char dims[IV_DIMS_TEXT_BYTES];
    return iv_fail(error, IV_ERROR_INVALID_MODEL, "it has %zu %s where %s%s needs %" PRId64, found,
                   what, iv_dtype_name(in->dtype), iv_dims_text(in->rank, in->dims, dims),
                   what[0] == 'b' ? (int64_t)in->bytes : in->elements);
}

static iv_status check_bools(const reading *in, const uint8_t *data, iv_error *error) {
    for (int64_t i = 0; in->dtype == IV_BOOL && i < in->elements; i++) {
        if (data[i] > 1)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "element %" PRId64 " is the byte %d where a bool is 0 or 1", i, data[i]);
    }
    return IV_OK;
}

/* Makes a tensor of `in->bytes` bytes at `data`, which is a field of the message: taken over where
 * it pays. */
static iv_status adopt(const reading *in, void *data, bool *taken, iv_tensor **tensor,
                       iv_error *error) {
    *taken = false;
    if (in->arena == NULL || in->bytes < IV_ARENA_OWN_BLOCK)
        return iv_tensor_from_data(in->dtype, in->rank, in->dims, data, tensor, error);
    /* The block leaves the arena only once the tensor stands. */
    iv_arena_block *block = iv_arena_take(in->arena, data);
    iv_status status = iv_tensor_wrap(in->dtype, in->rank, in->dims, NULL, data,
                                      iv_arena_free_block, block, tensor, error);
    *taken = status == IV_OK;
    if (status != IV_OK)
        iv_arena_free_block(block);
    return status;
}

static iv_status read_raw(reading *in, iv_tensor **tensor, iv_error *error) {
    ProtobufCBinaryData *raw = &in->proto->raw_data;
    if (in->dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "text cannot be stored as raw data");
    if (raw->len != in->bytes)
        return wrong_count(in, "bytes", raw->len, error);
    IV_TRY(check_bools(in, raw->data, error));
    bool taken;
    iv_status status = adopt(in, raw->data, &taken, tensor, error);
    if (taken || (status != IV_OK && in->arena != NULL)) {
        in->proto->has_raw_data = 0;
        *raw = (ProtobufCBinaryData){0};
    }
    return status;
}

/* ---- typed fields ---- */

/* The numbers of `int32_data` stand for all types of up to 32 bits. */
static iv_status narrow(const reading *in, char *target, iv_error *error) {
    int32_t least = 0, most = UINT16_MAX;
    switch (in->dtype) {
    case IV_BOOL:
        most = 1;
        break;
    case IV_U8:
        most = UINT8_MAX;
        break;
    case IV_S8:
        least = INT8_MIN, most = INT8_MAX;
        break;
    case IV_S16:
        least = INT16_MIN, most = INT16_MAX;
        break;
    case IV_F16:
    case IV_BF16:
        least = INT16_MIN; /* the bits; some writers sign-extend them */
        break;
    default:
        break;
    }
    size_t size = iv_dtype_size(in->dtype);
    for (int64_t i = 0; i < in->elements; i++) {
        int32_t value = in->proto->int32_data[i];
        if (value < least || value > most)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "element %" PRId64 " is %" PRId32 ", which is no %s", i, value,
                           iv_dtype_name(in->dtype));
        if (size == 1)
            target[i] = (char)value;
        else
            ((uint16_t *)(void *)target)[i] = (uint16_t)value;
    }
    return IV_OK;
}

static iv_status narrow_u32(const reading *in, uint32_t *target, iv_error *error) {
    for (int64_t i = 0; i < in->elements; i++) {
        uint64_t value = in->proto->uint64_data[i];
        if (value > UINT32_MAX)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "element %" PRId64 " is %" PRIu64 ", which is no u32", i, value);
        target[i] = (uint32_t)value;
    }
    return IV_OK;
}

static iv_status read_narrow(reading *in, iv_tensor **tensor, iv_error *error) {
    iv_tensor *fresh;
    IV_TRY(iv_tensor_create_uninitialised(in->dtype, in->rank, in->dims, &fresh, error));
    iv_status status = in->dtype == IV_U32 ? narrow_u32(in, (uint32_t *)(void *)fresh->data, error)
                                           : narrow(in, fresh->data, error);
    if (status != IV_OK) {
        iv_tensor_release(fresh);
        return status;
    }
    *tensor = fresh;
    return IV_OK;
}

static iv_status read_strings(const reading *in, iv_tensor **tensor, iv_error *error) {
    const Onnx__TensorProto *proto = in->proto;
    if (proto->n_string_data != (size_t)in->elements)
        return wrong_count(in, "texts", proto->n_string_data, error);
    iv_string *strings = iv_allocate_array(proto->n_string_data, sizeof *strings);
    if (strings == NULL)
        return iv_fail_memory(error, proto->n_string_data * sizeof *strings);
    for (size_t i = 0; i < proto->n_string_data; i++)
        strings[i] =
            (iv_string){(const char *)proto->string_data[i].data, proto->string_data[i].len};
    iv_status status = iv_tensor_from_strings(in->rank, in->dims, strings, tensor, error);
    iv_free(strings);
    return status;
}

/* The typed field for the dtype: where it is, how many numbers it has, and whether its numbers are
 * the elements as they are. */
static void typed_field(const reading *in, void ***data, size_t **count, bool *exact) {
    Onnx__TensorProto *proto = in->proto;
    *exact = true;
    switch (in->dtype) {
    case IV_F32:
        *data = (void **)&proto->float_data, *count = &proto->n_float_data;
        return;
    case IV_F64:
        *data = (void **)&proto->double_data, *count = &proto->n_double_data;
        return;
    case IV_S64:
        *data = (void **)&proto->int64_data, *count = &proto->n_int64_data;
        return;
    case IV_U32:
        *exact = false;
        /* fall through */
    case IV_U64:
        *data = (void **)&proto->uint64_data, *count = &proto->n_uint64_data;
        return;
    default:
        *exact = in->dtype == IV_S32;
        *data = (void **)&proto->int32_data, *count = &proto->n_int32_data;
        return;
    }
}

static iv_status read_typed(reading *in, iv_tensor **tensor, iv_error *error) {
    if (in->dtype == IV_STRING)
        return read_strings(in, tensor, error);
    void **data;
    size_t *count;
    bool exact, taken;
    typed_field(in, &data, &count, &exact);
    if (*count != (size_t)in->elements)
        return wrong_count(in, "numbers", *count, error);
    if (!exact)
        return read_narrow(in, tensor, error);
    iv_status status = adopt(in, *data, &taken, tensor, error);
    if (taken || (status != IV_OK && in->arena != NULL)) {
        *data = NULL;
        *count = 0;
    }
    return status;
}

/* ---- external data ---- */

static iv_status parse_bytes(const char *text, const char *key, size_t *value, iv_error *error) {
    char *end;
    unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > INT64_MAX)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "the %s of its external data is '%.40s', which is no number of bytes", key,
                       text);
    *value = (size_t)number;
    return IV_OK;
}

typedef struct external_part {
    const char *location;
    size_t offset, length;
} external_part;

static iv_status find_part(const reading *in, external_part *part, iv_error *error) {
    *part = (external_part){.length = in->bytes};
    for (size_t i = 0; i < in->proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = in->proto->external_data[i];
        const char *key = entry->key != NULL ? entry->key : "";
        const char *value = entry->value != NULL ? entry->value : "";
        if (strcmp(key, "location") == 0)
            part->location = value;
        else if (strcmp(key, "offset") == 0)
            IV_TRY(parse_bytes(value, key, &part->offset, error));
        else if (strcmp(key, "length") == 0)
            IV_TRY(parse_bytes(value, key, &part->length, error));
    }
    if (part->location == NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "its external data have no location");
    if (part->length != in->bytes)
        return wrong_count(in, "bytes of external data", part->length, error);
    return IV_OK;
}

static iv_status read_external(const reading *in, iv_tensor **tensor, iv_error *error) {
    external_part part;
    IV_TRY(find_part(in, &part, error));
    if (in->dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "text cannot be stored as external data");
    if (in->external == NULL)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "its data are in the file %.300s: only models may have external data",
                       part.location);
    iv_shared_mapping *mapping;
    IV_TRY(iv_external_map(in->external, part.location, &mapping, error));
    if (part.offset > mapping->size || in->bytes > mapping->size - part.offset)
        return iv_fail(error, IV_ERROR_INVALID_FILE,
                       "its data are bytes %zu to %zu of %.300s, which has only %zu", part.offset,
                       part.offset + in->bytes, part.location, mapping->size);
    if (in->bytes == 0)
        return iv_tensor_create(in->dtype, in->rank, in->dims, tensor, error);
    const char *data = mapping->data + part.offset;
    IV_TRY(check_bools(in, (const uint8_t *)data, error));
    if ((uintptr_t)data % iv_dtype_size(in->dtype) == 0) {
        IV_TRY(iv_tensor_wrap(in->dtype, in->rank, in->dims, NULL, (void *)data,
                              iv_shared_mapping_release, mapping, tensor, error));
        iv_shared_mapping_retain(mapping);
        return IV_OK;
    }
    /* A small file may point to one large part of another again and again. */
    in->external->copied += in->bytes;
    if (in->external->copied > in->external->mapped)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "its external data begin at byte %zu, which is no multiple of the element's "
                       "size, and overlap those of other tensors: write them one after the other",
                       part.offset);
    return iv_tensor_from_data(in->dtype, in->rank, in->dims, data, tensor, error);
}

/* ---- together ---- */

static iv_status read_elements(reading *in, iv_tensor **tensor, iv_error *error) {
    IV_TRY(read_type(in, error));
    const Onnx__TensorProto *proto = in->proto;
    if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return read_external(in, tensor, error);
    if (in->elements == 0 && in->dtype != IV_STRING)
        return iv_tensor_create(in->dtype, in->rank, in->dims, tensor, error);
    if (proto->has_raw_data && proto->raw_data.len != 0)
        return read_raw(in, tensor, error);
    return read_typed(in, tensor, error);
}

iv_status iv_onnx_tensor_of_proto(Onnx__TensorProto *proto, iv_arena *arena, iv_external *external,
                                  iv_tensor **tensor, iv_error *error) {
    reading in = {.proto = proto, .arena = arena, .external = external};
    iv_status status = read_elements(&in, tensor, error);
    if (status != IV_OK && proto->name != NULL && proto->name[0] != '\0')
        return iv_fail_within(error, status, "tensor '%.200s': ", proto->name);
    return status;
}

iv_status iv_onnx_tensor_read(const void *bytes, size_t size, iv_tensor **tensor, iv_error *error) {
    iv_arena arena;
    iv_arena_begin(&arena, iv_wire_budget(size));
    ProtobufCMessage *message;
    iv_status status =
        iv_wire_unpack(bytes, size, &onnx__tensor_proto__descriptor, &arena, &message, error);
    if (status == IV_OK)
        status = iv_onnx_tensor_of_proto((Onnx__TensorProto *)message, &arena, NULL, tensor, error);
    iv_arena_end(&arena);
    return status;
}
