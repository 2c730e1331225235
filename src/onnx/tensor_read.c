/* TensorProto in all its forms of storage. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/tensor.h"

static const sb_dtype dtypes[] = {
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT] = SB_F32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8] = SB_U8,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8] = SB_S8,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16] = SB_U16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16] = SB_S16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32] = SB_S32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64] = SB_S64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__STRING] = SB_STRING,
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL] = SB_BOOL,
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16] = SB_F16,
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE] = SB_F64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32] = SB_U32,
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64] = SB_U64,
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16] = SB_BF16,
    /* Numbers beyond those of the installed onnx.proto. */
    [17] = SB_F8E4M3FN,
    [18] = SB_F8E4M3FNUZ,
    [19] = SB_F8E5M2,
    [20] = SB_F8E5M2FNUZ,
    [21] = SB_U4,
    [22] = SB_S4,
    [23] = SB_F4E2M1,
    [24] = SB_F8E8M0,
    [25] = SB_U2,
    [26] = SB_S2,
    [27] = SB_F6E2M3,
    [28] = SB_F6E3M2,
};
#define DTYPE_COUNT ((int32_t)(sizeof dtypes / sizeof *dtypes))

sb_status sb_onnx_dtype(int32_t data_type, sb_dtype *dtype, sb_error *error) {
    if (data_type > 0 && data_type < DTYPE_COUNT && dtypes[data_type] != SB_DTYPE_NONE) {
        *dtype = dtypes[data_type];
        return SB_OK;
    }
    if (data_type == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64 || data_type == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "elements of type %s are not supported: hold real and imaginary parts along an axis of 2",
                       data_type == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64 ? "complex64" : "complex128");
    return sb_fail(error, data_type <= 0 ? SB_ERROR_INVALID_MODEL : SB_ERROR_UNSUPPORTED,
                   "%" PRId32 " is no element type that ONNX defines", data_type);
}

int32_t sb_onnx_data_type(sb_dtype dtype) {
    for (int32_t i = 0; i < DTYPE_COUNT; i++) {
        if (dtypes[i] == dtype)
            return i;
    }
    return ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED;
}

/* A tensor on its way. */
typedef struct reading {
    Onnx__TensorProto *proto;
    sb_arena *arena;
    sb_external *external;
    sb_dtype dtype;
    int rank;
    int64_t dims[SB_MAX_RANK];
    int64_t elements;
    size_t bytes; /* of the dense elements, as files have them */
} reading;

static sb_status read_type(reading *in, sb_error *error) {
    const Onnx__TensorProto *proto = in->proto;
    SB_TRY(sb_onnx_dtype(proto->data_type, &in->dtype, error));
    if (proto->n_dims > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "it has %zu dimensions, and %d are supported", proto->n_dims,
                       SB_MAX_RANK);
    if (proto->segment != NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "it is one segment of a tensor: store it in one piece");
    in->rank = (int)proto->n_dims;
    for (int i = 0; i < in->rank; i++)
        in->dims[i] = proto->dims[i];
    sb_status status = sb_count_elements(in->dtype, in->rank, in->dims, &in->elements, error);
    if (status != SB_OK)
        return sb_fail_within(error, SB_ERROR_INVALID_MODEL, "its shape is bad: ");
    in->bytes = sb_packed_bytes(in->dtype, in->elements);
    return SB_OK;
}

/* How many elements a number of the typed field holds. */
static int elements_per_number(sb_dtype dtype) {
    return sb_dtype_is_small(dtype) && sb_dtype_bits(dtype) < 6 ? 8 / sb_dtype_bits(dtype) : 1;
}

/* How many numbers the typed field has. */
static int64_t numbers_of(const reading *in) {
    int per_number = elements_per_number(in->dtype);
    return in->elements / per_number + (in->elements % per_number != 0);
}

static sb_status wrong_count(const reading *in, const char *what, size_t found, sb_error *error) {
    char dims[SB_DIMS_TEXT_BYTES];
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "it has %zu %s where %s%s needs %" PRId64, found, what,
                   sb_dtype_name(in->dtype), sb_dims_text(in->rank, in->dims, dims),
                   what[0] == 'b'   ? (int64_t)in->bytes
                   : what[0] == 'n' ? numbers_of(in)
                                    : in->elements);
}

static sb_status check_bools(const reading *in, const uint8_t *data, sb_error *error) {
    for (int64_t i = 0; in->dtype == SB_BOOL && i < in->elements; i++) {
        if (data[i] > 1)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "element %" PRId64 " is the byte %d where a bool is 0 or 1",
                           i, data[i]);
    }
    return SB_OK;
}

/* Makes a tensor of `in->bytes` bytes at `data`, which is a field of the message: taken over where it pays. */
static sb_status adopt(const reading *in, void *data, bool *taken, sb_tensor **tensor, sb_error *error) {
    *taken = false;
    if (in->arena == NULL || in->bytes < SB_ARENA_OWN_BLOCK)
        return sb_tensor_from_data(in->dtype, in->rank, in->dims, data, tensor, error);
    /* The block leaves the arena only once the tensor stands. */
    sb_arena_block *block = sb_arena_take(in->arena, data);
    sb_status status =
        sb_tensor_wrap(in->dtype, in->rank, in->dims, NULL, data, sb_arena_free_block, block, tensor, error);
    *taken = status == SB_OK;
    if (status != SB_OK)
        sb_arena_free_block(block);
    return status;
}

/* A tensor of elements of less than 8 bits, which `data` has packed. */
static sb_status read_packed(const reading *in, const void *data, sb_tensor **tensor, sb_error *error) {
    sb_tensor *fresh;
    SB_TRY(sb_tensor_create_uninitialised(in->dtype, in->rank, in->dims, &fresh, error));
    sb_unpack(in->dtype, in->elements, data, fresh->data);
    *tensor = fresh;
    return SB_OK;
}

static bool is_packed(const reading *in) {
    return sb_dtype_is_small(in->dtype) && sb_dtype_bits(in->dtype) < 8;
}

static sb_status read_raw(reading *in, sb_tensor **tensor, sb_error *error) {
    ProtobufCBinaryData *raw = &in->proto->raw_data;
    if (in->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "text cannot be stored as raw data");
    if (raw->len != in->bytes)
        return wrong_count(in, "bytes", raw->len, error);
    if (is_packed(in))
        return read_packed(in, raw->data, tensor, error);
    SB_TRY(check_bools(in, raw->data, error));
    bool taken;
    sb_status status = adopt(in, raw->data, &taken, tensor, error);
    if (taken || (status != SB_OK && in->arena != NULL)) {
        in->proto->has_raw_data = 0;
        *raw = (ProtobufCBinaryData){0};
    }
    return status;
}

/* ---- typed fields ---- */

/* The numbers of `int32_data` stand for all types of up to 32 bits. */
static sb_status narrow(const reading *in, char *target, sb_error *error) {
    int32_t least = 0, most = UINT16_MAX;
    switch (in->dtype) {
    case SB_BOOL:
        most = 1;
        break;
    case SB_U8:
        most = UINT8_MAX;
        break;
    case SB_S8:
        least = INT8_MIN, most = INT8_MAX;
        break;
    case SB_S16:
        least = INT16_MIN, most = INT16_MAX;
        break;
    case SB_F16:
    case SB_BF16:
        least = INT16_MIN; /* the bits; some writers sign-extend them */
        break;
    case SB_F6E2M3:
    case SB_F6E3M2:
        most = 63;
        break;
    default:
        if (sb_dtype_is_small(in->dtype))
            least = INT8_MIN, most = UINT8_MAX; /* the bits, as above */
        break;
    }
    size_t size = sb_dtype_size(in->dtype);
    for (int64_t i = 0; i < in->elements; i++) {
        int32_t value = in->proto->int32_data[i];
        if (value < least || value > most)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "element %" PRId64 " is %" PRId32 ", which is no %s", i,
                           value, sb_dtype_name(in->dtype));
        if (size == 1)
            target[i] = (char)value;
        else
            ((uint16_t *)(void *)target)[i] = (uint16_t)value;
    }
    return SB_OK;
}

/* Numbers of `int32_data` that hold a byte of packed elements each: two of 4 bits, four of 2. */
static sb_status narrow_packed(const reading *in, char *target, sb_error *error) {
    int per_byte = 8 / sb_dtype_bits(in->dtype);
    for (int64_t i = 0; i < in->elements; i += per_byte) {
        int32_t value = in->proto->int32_data[i / per_byte];
        if (value < INT8_MIN || value > UINT8_MAX)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "number %" PRId64 " is %" PRId32 ", which is no byte with %d elements of %s", i / per_byte,
                           value, per_byte, sb_dtype_name(in->dtype));
        uint8_t byte = (uint8_t)value;
        int64_t left = in->elements - i;
        sb_unpack(in->dtype, left < per_byte ? left : per_byte, &byte, target + i);
    }
    return SB_OK;
}

static sb_status narrow_u32(const reading *in, uint32_t *target, sb_error *error) {
    for (int64_t i = 0; i < in->elements; i++) {
        uint64_t value = in->proto->uint64_data[i];
        if (value > UINT32_MAX)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "element %" PRId64 " is %" PRIu64 ", which is no u32", i,
                           value);
        target[i] = (uint32_t)value;
    }
    return SB_OK;
}

static sb_status read_narrow(reading *in, sb_tensor **tensor, sb_error *error) {
    sb_tensor *fresh;
    SB_TRY(sb_tensor_create_uninitialised(in->dtype, in->rank, in->dims, &fresh, error));
    sb_status status = in->dtype == SB_U32                  ? narrow_u32(in, (uint32_t *)(void *)fresh->data, error)
                       : elements_per_number(in->dtype) > 1 ? narrow_packed(in, fresh->data, error)
                                                            : narrow(in, fresh->data, error);
    if (status != SB_OK) {
        sb_tensor_release(fresh);
        return status;
    }
    *tensor = fresh;
    return SB_OK;
}

static sb_status read_strings(const reading *in, sb_tensor **tensor, sb_error *error) {
    const Onnx__TensorProto *proto = in->proto;
    if (proto->n_string_data != (size_t)in->elements)
        return wrong_count(in, "texts", proto->n_string_data, error);
    sb_string *strings = sb_allocate_array(proto->n_string_data, sizeof *strings);
    if (strings == NULL)
        return sb_fail_memory(error, proto->n_string_data * sizeof *strings);
    for (size_t i = 0; i < proto->n_string_data; i++)
        strings[i] = (sb_string){(const char *)proto->string_data[i].data, proto->string_data[i].len};
    sb_status status = sb_tensor_from_strings(in->rank, in->dims, strings, tensor, error);
    sb_free(strings);
    return status;
}

/* The typed field for the dtype: where it is, how many numbers it has, and whether its numbers are
 * the elements as they are. */
static void typed_field(const reading *in, void ***data, size_t **count, bool *exact) {
    Onnx__TensorProto *proto = in->proto;
    *exact = true;
    switch (in->dtype) {
    case SB_F32:
        *data = (void **)&proto->float_data, *count = &proto->n_float_data;
        return;
    case SB_F64:
        *data = (void **)&proto->double_data, *count = &proto->n_double_data;
        return;
    case SB_S64:
        *data = (void **)&proto->int64_data, *count = &proto->n_int64_data;
        return;
    case SB_U32:
        *exact = false;
        /* fall through */
    case SB_U64:
        *data = (void **)&proto->uint64_data, *count = &proto->n_uint64_data;
        return;
    default:
        *exact = in->dtype == SB_S32;
        *data = (void **)&proto->int32_data, *count = &proto->n_int32_data;
        return;
    }
}

static sb_status read_typed(reading *in, sb_tensor **tensor, sb_error *error) {
    if (in->dtype == SB_STRING)
        return read_strings(in, tensor, error);
    void **data;
    size_t *count;
    bool exact, taken;
    typed_field(in, &data, &count, &exact);
    if (*count != (size_t)numbers_of(in))
        return wrong_count(in, "numbers", *count, error);
    if (!exact)
        return read_narrow(in, tensor, error);
    sb_status status = adopt(in, *data, &taken, tensor, error);
    if (taken || (status != SB_OK && in->arena != NULL)) {
        *data = NULL;
        *count = 0;
    }
    return status;
}

/* ---- external data ---- */

static sb_status parse_bytes(const char *text, const char *key, size_t *value, sb_error *error) {
    char *end;
    unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > INT64_MAX)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "the %s of its external data is '%.40s', which is no number of bytes", key, text);
    *value = (size_t)number;
    return SB_OK;
}

typedef struct external_part {
    const char *location;
    size_t offset, length;
} external_part;

static sb_status find_part(const reading *in, external_part *part, sb_error *error) {
    *part = (external_part){.length = in->bytes};
    for (size_t i = 0; i < in->proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = in->proto->external_data[i];
        const char *key = entry->key != NULL ? entry->key : "";
        const char *value = entry->value != NULL ? entry->value : "";
        if (strcmp(key, "location") == 0)
            part->location = value;
        else if (strcmp(key, "offset") == 0)
            SB_TRY(parse_bytes(value, key, &part->offset, error));
        else if (strcmp(key, "length") == 0)
            SB_TRY(parse_bytes(value, key, &part->length, error));
    }
    if (part->location == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "its external data have no location");
    if (part->length != in->bytes)
        return wrong_count(in, "bytes of external data", part->length, error);
    return SB_OK;
}

static sb_status read_external(const reading *in, sb_tensor **tensor, sb_error *error) {
    external_part part;
    SB_TRY(find_part(in, &part, error));
    if (in->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "text cannot be stored as external data");
    if (in->external == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "its data are in the file %.300s: only models may have external data", part.location);
    sb_shared_mapping *mapping;
    SB_TRY(sb_external_map(in->external, part.location, &mapping, error));
    if (part.offset > mapping->size || in->bytes > mapping->size - part.offset)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "its data are bytes %zu to %zu of %.300s, which has only %zu",
                       part.offset, part.offset + in->bytes, part.location, mapping->size);
    if (in->bytes == 0)
        return sb_tensor_create(in->dtype, in->rank, in->dims, tensor, error);
    const char *data = mapping->data + part.offset;
    SB_TRY(check_bools(in, (const uint8_t *)data, error));
    if (!is_packed(in) && (uintptr_t)data % sb_dtype_size(in->dtype) == 0) {
        SB_TRY(sb_tensor_wrap(in->dtype, in->rank, in->dims, NULL, (void *)data, sb_shared_mapping_release, mapping,
                              tensor, error));
        sb_shared_mapping_retain(mapping);
        return SB_OK;
    }
    /* A small file may point to one large part of another again and again. */
    in->external->copied += in->bytes;
    if (in->external->copied > in->external->mapped)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "its external data begin at byte %zu, are packed or at no multiple of the element's "
                       "size, and overlap those of other tensors: write them one after the other",
                       part.offset);
    if (is_packed(in))
        return read_packed(in, data, tensor, error);
    return sb_tensor_from_data(in->dtype, in->rank, in->dims, data, tensor, error);
}

/* ---- together ---- */

static sb_status read_elements(reading *in, sb_tensor **tensor, sb_error *error) {
    SB_TRY(read_type(in, error));
    const Onnx__TensorProto *proto = in->proto;
    if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return read_external(in, tensor, error);
    if (in->elements == 0 && in->dtype != SB_STRING)
        return sb_tensor_create(in->dtype, in->rank, in->dims, tensor, error);
    if (proto->has_raw_data && proto->raw_data.len != 0)
        return read_raw(in, tensor, error);
    return read_typed(in, tensor, error);
}

sb_status sb_onnx_tensor_of_proto(Onnx__TensorProto *proto, sb_arena *arena, sb_external *external, sb_tensor **tensor,
                                  sb_error *error) {
    reading in = {.proto = proto, .arena = arena, .external = external};
    sb_status status = read_elements(&in, tensor, error);
    if (status != SB_OK && proto->name != NULL && proto->name[0] != '\0')
        return sb_fail_within(error, status, "tensor '%.200s': ", proto->name);
    return status;
}

sb_status sb_onnx_tensor_read(const void *bytes, size_t size, sb_tensor **tensor, sb_error *error) {
    sb_arena arena;
    sb_arena_begin(&arena, sb_wire_budget(size));
    ProtobufCMessage *message;
    sb_status status = sb_wire_unpack(bytes, size, &onnx__tensor_proto__descriptor, &arena, &message, error);
    if (status == SB_OK)
        status = sb_onnx_tensor_of_proto((Onnx__TensorProto *)message, &arena, NULL, tensor, error);
    sb_arena_end(&arena);
    return status;
}
