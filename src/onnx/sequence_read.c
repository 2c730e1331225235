/* SequenceProto and OptionalProto: ONNX's test data use them, but the installed onnx.proto does not
 * declare them, so that they are read from the wire. Both have the same fields: 2 elem_type, 3
 * tensors, 4 sparse tensors, 5 sequences, 6 maps, 7 optionals; a sequence has them repeated, an
 * optional has one of them. */
#include "base/allocation.h"
#include "onnx/tensor.h"

enum { FIELD_TENSOR = 3, FIELD_SPARSE = 4, FIELD_SEQUENCE = 5, FIELD_MAP = 6, FIELD_OPTIONAL = 7 };

static sb_status within(sb_status status, const char *what, const sb_wire_field *field, const void *bytes,
                        sb_error *error) {
    if (status == SB_OK)
        return SB_OK;
    return sb_fail_within(error, status, "%s at byte %zu: ", what, (size_t)(field->bytes - (const uint8_t *)bytes));
}

/* Skips to the next field that holds a value; *found is false at the end. */
static sb_status next_item(sb_wire_reader *reader, sb_wire_field *field, bool *found, sb_error *error) {
    *found = false;
    while (reader->at < reader->size) {
        size_t offset = reader->at;
        SB_TRY(sb_wire_next(reader, field, error));
        if (field->number < FIELD_TENSOR || field->number > FIELD_OPTIONAL)
            continue;
        if (field->type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return sb_fail(error, SB_ERROR_INVALID_FILE,
                           "not a sound ONNX file: an item has the wrong wire type at byte %zu", offset);
        if (field->number == FIELD_SPARSE || field->number == FIELD_MAP)
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "a %s at byte %zu: only tensors and sequences of tensors are supported",
                           field->number == FIELD_MAP ? "map" : "sparse tensor", offset);
        *found = true;
        return SB_OK;
    }
    return SB_OK;
}

/* The items so far. */
typedef struct item_list {
    sb_value *items;
    size_t count, capacity;
} item_list;

static sb_status read_items(const void *bytes, size_t size, item_list *list, sb_error *error) {
    sb_wire_reader reader = {.bytes = bytes, .size = size};
    for (;;) {
        sb_wire_field field;
        bool found;
        SB_TRY(next_item(&reader, &field, &found, error));
        if (!found)
            return SB_OK;
        if (field.number != FIELD_TENSOR)
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "item %zu of the sequence is no tensor: only sequences of tensors are "
                           "supported",
                           list->count);
        if (!sb_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items))
            return sb_fail_memory(error, sizeof *list->items);
        sb_tensor *tensor;
        sb_status status = sb_onnx_tensor_read(field.bytes, field.size, &tensor, error);
        SB_TRY(within(status, "the tensor", &field, bytes, error));
        list->items[list->count++] = sb_value_of_tensor(tensor);
    }
}

static sb_status check_dtypes(const item_list *list, sb_dtype *dtype, sb_error *error) {
    for (size_t i = 0; i < list->count; i++) {
        sb_dtype found = list->items[i].tensor->dtype;
        if (i > 0 && found != *dtype)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "item %zu of the sequence is %s, and those before are %s", i,
                           sb_dtype_name(found), sb_dtype_name(*dtype));
        *dtype = found;
    }
    return SB_OK;
}

static sb_status read_sequence(const void *bytes, size_t size, sb_dtype dtype, sb_value *value, sb_error *error) {
    item_list list = {0};
    sb_status status = read_items(bytes, size, &list, error);
    if (status == SB_OK)
        status = check_dtypes(&list, &dtype, error);
    if (status == SB_OK)
        status = sb_value_of_sequence(dtype, (int64_t)list.count, list.items, value, error);
    for (size_t i = 0; i < list.count; i++)
        sb_value_release(&list.items[i]);
    sb_free(list.items);
    return status;
}

static sb_status read_optional(const void *bytes, size_t size, sb_dtype dtype, sb_value *value, sb_error *error) {
    sb_wire_reader reader = {.bytes = bytes, .size = size};
    sb_wire_field field;
    bool found;
    SB_TRY(next_item(&reader, &field, &found, error));
    *value = (sb_value){0};
    if (!found)
        return SB_OK;
    if (field.number == FIELD_OPTIONAL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "an optional inside an optional");
    sb_kind kind = field.number == FIELD_TENSOR ? SB_KIND_TENSOR : SB_KIND_SEQUENCE;
    sb_status status = sb_onnx_value_read(field.bytes, field.size, kind, false, dtype, value, error);
    return within(status, "the optional's value", &field, bytes, error);
}

sb_status sb_onnx_value_read(const void *bytes, size_t size, sb_kind kind, bool optional, sb_dtype dtype,
                             sb_value *value, sb_error *error) {
    if (optional)
        return read_optional(bytes, size, dtype, value, error);
    if (kind == SB_KIND_SEQUENCE)
        return read_sequence(bytes, size, dtype, value, error);
    sb_tensor *tensor;
    SB_TRY(sb_onnx_tensor_read(bytes, size, &tensor, error));
    *value = sb_value_of_tensor(tensor);
    return SB_OK;
}
