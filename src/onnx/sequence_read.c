/* SequenceProto and OptionalProto: ONNX's test data use them, but the installed onnx.proto does not
 * declare them, so that they are read from the wire. Both have the same fields: 2 elem_type, 3
 * tensors, 4 sparse tensors, 5 sequences, 6 maps, 7 optionals; a sequence has them repeated, an
 * optional has one of them. */
#include "base/allocation.h"
#include "onnx/tensor.h"

enum { FIELD_TENSOR = 3, FIELD_SPARSE = 4, FIELD_SEQUENCE = 5, FIELD_MAP = 6, FIELD_OPTIONAL = 7 };

static iv_status within(iv_status status, const char *what, const iv_wire_field *field,
                        const void *bytes, iv_error *error) {
    if (status == IV_OK)
        return IV_OK;
    return iv_fail_within(error, status, "%s at byte %zu: ", what,
                          (size_t)(field->bytes - (const uint8_t *)bytes));
}

/* Skips to the next field that holds a value; *found is false at the end. */
static iv_status next_item(iv_wire_reader *reader, iv_wire_field *field, bool *found,
                           iv_error *error) {
    *found = false;
    while (reader->at < reader->size) {
        size_t offset = reader->at;
        IV_TRY(iv_wire_next(reader, field, error));
        if (field->number < FIELD_TENSOR || field->number > FIELD_OPTIONAL)
            continue;
        if (field->type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return iv_fail(error, IV_ERROR_INVALID_FILE,
                           "not a sound ONNX file: an item has the wrong wire type at byte %zu",
                           offset);
        if (field->number == FIELD_SPARSE || field->number == FIELD_MAP)
            return iv_fail(error, IV_ERROR_UNSUPPORTED,
                           "a %s at byte %zu: only tensors and sequences of tensors are supported",
                           field->number == FIELD_MAP ? "map" : "sparse tensor", offset);
        *found = true;
        return IV_OK;
    }
    return IV_OK;
}

/* The items so far. */
typedef struct item_list {
    iv_value *items;
    size_t count, capacity;
} item_list;

static iv_status read_items(const void *bytes, size_t size, item_list *list, iv_error *error) {
    iv_wire_reader reader = {.bytes = bytes, .size = size};
    for (;;) {
        iv_wire_field field;
        bool found;
        IV_TRY(next_item(&reader, &field, &found, error));
        if (!found)
            return IV_OK;
        if (field.number != FIELD_TENSOR)
            return iv_fail(error, IV_ERROR_UNSUPPORTED,
                           "item %zu of the sequence is no tensor: only sequences of tensors are "
                           "supported",
                           list->count);
        if (!iv_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items))
            return iv_fail_memory(error, sizeof *list->items);
        iv_tensor *tensor;
        iv_status status = iv_onnx_tensor_read(field.bytes, field.size, &tensor, error);
        IV_TRY(within(status, "the tensor", &field, bytes, error));
        list->items[list->count++] = iv_value_of_tensor(tensor);
    }
}

static iv_status check_dtypes(const item_list *list, iv_dtype *dtype, iv_error *error) {
    for (size_t i = 0; i < list->count; i++) {
        iv_dtype found = list->items[i].tensor->dtype;
        if (i > 0 && found != *dtype)
            return iv_fail(error, IV_ERROR_INVALID_FILE,
                           "item %zu of the sequence is %s, and those before are %s", i,
                           iv_dtype_name(found), iv_dtype_name(*dtype));
        *dtype = found;
    }
    return IV_OK;
}

static iv_status read_sequence(const void *bytes, size_t size, iv_dtype dtype, iv_value *value,
                               iv_error *error) {
    item_list list = {0};
    iv_status status = read_items(bytes, size, &list, error);
    if (status == IV_OK)
        status = check_dtypes(&list, &dtype, error);
    if (status == IV_OK)
        status = iv_value_of_sequence(dtype, (int64_t)list.count, list.items, value, error);
    for (size_t i = 0; i < list.count; i++)
        iv_value_release(&list.items[i]);
    iv_free(list.items);
    return status;
}

static iv_status read_optional(const void *bytes, size_t size, iv_dtype dtype, iv_value *value,
                               iv_error *error) {
    iv_wire_reader reader = {.bytes = bytes, .size = size};
    iv_wire_field field;
    bool found;
    IV_TRY(next_item(&reader, &field, &found, error));
    *value = (iv_value){0};
    if (!found)
        return IV_OK;
    if (field.number == FIELD_OPTIONAL)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "an optional inside an optional");
    iv_kind kind = field.number == FIELD_TENSOR ? IV_KIND_TENSOR : IV_KIND_SEQUENCE;
    iv_status status =
        iv_onnx_value_read(field.bytes, field.size, kind, false, dtype, value, error);
    return within(status, "the optional's value", &field, bytes, error);
}

iv_status iv_onnx_value_read(const void *bytes, size_t size, iv_kind kind, bool optional,
                             iv_dtype dtype, iv_value *value, iv_error *error) {
    if (optional)
        return read_optional(bytes, size, dtype, value, error);
    if (kind == IV_KIND_SEQUENCE)
        return read_sequence(bytes, size, dtype, value, error);
    iv_tensor *tensor;
    IV_TRY(iv_onnx_tensor_read(bytes, size, &tensor, error));
    *value = iv_value_of_tensor(tensor);
    return IV_OK;
}
