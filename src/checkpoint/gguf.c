/* GGUF files, versions 2 and 3, little-endian: metadata, what tensors there are, and behind them the elements. */
#include "checkpoint/gguf.h"

#include <string.h>

#include "base/allocation.h"
#include "checkpoint/checkpoint.h"

#define KEY_BYTES 65535
#define MOST_DIMS 4

/* A place in the file; nothing is read behind `size`. */
typedef struct reader {
    const sb_checkpoint *checkpoint;
    const unsigned char *bytes;
    size_t size, at;
} reader;

static uint64_t little_endian(const unsigned char *bytes, size_t count) {
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

static sb_status take(reader *in, size_t bytes, const unsigned char **data, const char *what, sb_error *error) {
    if (bytes > in->size - in->at)
        return sb_checkpoint_fail(in->checkpoint, in->at, error, "the file ends in %s", what);
    *data = in->bytes + in->at;
    in->at += bytes;
    return SB_OK;
}

static sb_status take_number(reader *in, size_t bytes, uint64_t *number, const char *what, sb_error *error) {
    const unsigned char *data;
    SB_TRY(take(in, bytes, &data, what, error));
    *number = little_endian(data, bytes);
    return SB_OK;
}

static sb_status take_text(reader *in, sb_gguf_text *text, const char *what, sb_error *error) {
    uint64_t bytes;
    const unsigned char *data;
    SB_TRY(take_number(in, 8, &bytes, what, error));
    if (bytes > in->size - in->at)
        return sb_checkpoint_fail(in->checkpoint, in->at, error, "%s has %llu bytes, more than the file", what,
                                  (unsigned long long)bytes);
    SB_TRY(take(in, (size_t)bytes, &data, what, error));
    *text = (sb_gguf_text){(const char *)data, (size_t)bytes};
    return SB_OK;
}

/* ---- metadata ---- */

/* Bytes of an item; 0 for texts, arrays and types that do not exist. */
static size_t item_bytes(uint64_t type) {
    static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

static sb_status skip_items(reader *in, uint64_t type, uint64_t count, sb_error *error) {
    const unsigned char *data;
    size_t bytes = item_bytes(type);
    if (type == SB_GGUF_TEXT) {
        sb_gguf_text text;
        /* Each takes 8 bytes at least, so a count that lies ends soon. */
        for (uint64_t i = 0; i < count; i++)
            SB_TRY(take_text(in, &text, "an item of metadata", error));
        return SB_OK;
    }
    if (bytes == 0)
        return sb_checkpoint_fail(in->checkpoint, in->at, error, "metadata of type %llu, which is not known here",
                                  (unsigned long long)type);
    if (count > (in->size - in->at) / bytes)
        return sb_checkpoint_fail(in->checkpoint, in->at, error, "%llu items of metadata are more than the file has",
                                  (unsigned long long)count);
    return take(in, (size_t)count * bytes, &data, "metadata", error);
}

static sb_status take_value(reader *in, sb_gguf_value *value, sb_error *error) {
    uint64_t type;
    SB_TRY(take_text(in, &value->key, "a key of metadata", error));
    if (value->key.bytes > KEY_BYTES)
        return sb_checkpoint_fail(in->checkpoint, in->at, error, "a key of metadata has %zu bytes", value->key.bytes);
    SB_TRY(take_number(in, 4, &type, "metadata", error));
    value->count = 1;
    value->is_array = type == SB_GGUF_ARRAY;
    if (value->is_array) {
        SB_TRY(take_number(in, 4, &type, "metadata", error));
        SB_TRY(take_number(in, 8, &value->count, "metadata", error));
    }
    value->type = (sb_gguf_type)type;
    value->offset = in->at;
    value->data = in->bytes + in->at;
    return skip_items(in, type, value->count, error);
}

static sb_status take_metadata(reader *in, uint64_t count, sb_gguf_metadata *metadata, sb_error *error) {
    for (uint64_t i = 0; i < count; i++) {
        if (!sb_grow((void **)&metadata->values, &metadata->capacity, metadata->count + 1, sizeof *metadata->values))
            return sb_fail_memory(error, (metadata->count + 1) * sizeof *metadata->values);
        SB_TRY(take_value(in, &metadata->values[metadata->count], error));
        metadata->count++;
    }
    return SB_OK;
}

const sb_gguf_value *sb_gguf_find(const sb_gguf_metadata *metadata, const char *key) {
    size_t bytes = strlen(key);
    for (size_t i = 0; i < metadata->count; i++) {
        const sb_gguf_value *value = &metadata->values[i];
        if (value->key.bytes == bytes && memcmp(value->key.data, key, bytes) == 0)
            return value;
    }
    return NULL;
}

bool sb_gguf_integer(const sb_gguf_value *value, uint64_t index, int64_t *number) {
    if (value == NULL || index >= value->count || value->type == SB_GGUF_F32 || value->type == SB_GGUF_F64)
        return false;
    size_t bytes = item_bytes(value->type);
    if (bytes == 0)
        return false;
    uint64_t bits = little_endian(value->data + index * bytes, bytes);
    bool is_signed = value->type == SB_GGUF_S8 || value->type == SB_GGUF_S16 || value->type == SB_GGUF_S32 ||
                     value->type == SB_GGUF_S64;
    if (!is_signed && bits > INT64_MAX)
        return false;
    if (is_signed && bytes < 8 && (bits >> (8 * bytes - 1)) != 0)
        bits -= UINT64_C(1) << (8 * bytes);
    memcpy(number, &bits, sizeof bits);
    return true;
}

bool sb_gguf_real(const sb_gguf_value *value, uint64_t index, double *number) {
    int64_t integer;
    float single;
    if (value != NULL && index < value->count && value->type == SB_GGUF_F32) {
        memcpy(&single, value->data + index * sizeof single, sizeof single);
        *number = (double)single;
        return true;
    }
    if (value != NULL && index < value->count && value->type == SB_GGUF_F64) {
        memcpy(number, value->data + index * sizeof *number, sizeof *number);
        return true;
    }
    if (!sb_gguf_integer(value, index, &integer))
        return false;
    *number = (double)integer;
    return true;
}

sb_gguf_text sb_gguf_next_text(const unsigned char **at) {
    sb_gguf_text text = {(const char *)*at + 8, (size_t)little_endian(*at, 8)};
    *at += 8 + text.bytes;
    return text;
}

bool sb_gguf_string(const sb_gguf_value *value, sb_gguf_text *text) {
    if (value == NULL || value->type != SB_GGUF_TEXT || value->is_array)
        return false;
    const unsigned char *at = value->data;
    *text = sb_gguf_next_text(&at);
    return true;
}

/* ---- tensors ---- */

static sb_status take_tensor(reader *in, sb_checkpoint *checkpoint, sb_error *error) {
    sb_gguf_text name;
    uint64_t dims, extents[MOST_DIMS], type, offset;
    size_t index;
    SB_TRY(take_text(in, &name, "a tensor's name", error));
    if (memchr(name.data, '\0', name.bytes) != NULL || name.bytes > KEY_BYTES)
        return sb_checkpoint_fail(checkpoint, in->at, error, "a tensor's name has %zu bytes, or a NUL among them",
                                  name.bytes);
    SB_TRY(take_number(in, 4, &dims, "a tensor's description", error));
    if (dims > MOST_DIMS)
        return sb_checkpoint_fail(checkpoint, in->at, error, "tensor '%.*s' has %llu dimensions, where %d are the most",
                                  (int)(name.bytes < 200 ? name.bytes : 200), name.data, (unsigned long long)dims,
                                  MOST_DIMS);
    for (uint64_t d = 0; d < dims; d++)
        SB_TRY(take_number(in, 8, &extents[d], "a tensor's description", error));
    SB_TRY(take_number(in, 4, &type, "a tensor's description", error));
    SB_TRY(take_number(in, 8, &offset, "a tensor's description", error));
    SB_TRY(sb_checkpoint_add(checkpoint, name.data, name.bytes, &index, error));
    sb_checkpoint_tensor *tensor = &checkpoint->tensors[index];
    tensor->format = sb_weight_format_of_ggml((int64_t)type);
    if (tensor->format == NULL)
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "%.300s, byte %zu: tensor '%.200s' is of type %llu, which is not read: quantise the model as F32, "
            "F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 or Q2_K to Q6_K",
            checkpoint->files[checkpoint->file_count - 1].path, in->at, tensor->name, (unsigned long long)type);
    tensor->rank = (int)dims;
    for (uint64_t d = 0; d < dims; d++) {
        if (extents[d] > INT64_MAX)
            return sb_checkpoint_fail(checkpoint, in->at, error, "an extent of tensor '%.200s' overflows",
                                      tensor->name);
        tensor->dims[dims - 1 - d] = (int64_t)extents[d]; /* the file has the innermost first */
    }
    SB_TRY(sb_checkpoint_measure(checkpoint, tensor, error));
    tensor->offset = (size_t)offset;
    return SB_OK;
}

/* Turns offsets from where the elements begin into those in the file. */
static sb_status place_tensors(const reader *in, sb_checkpoint *checkpoint, size_t first, sb_error *error) {
    int64_t alignment = 32;
    const sb_gguf_value *given = sb_gguf_find(&checkpoint->gguf, "general.alignment");
    if (given != NULL && (!sb_gguf_integer(given, 0, &alignment) || alignment < 1 || alignment > 1 << 20 ||
                          (alignment & (alignment - 1)) != 0))
        return sb_checkpoint_fail(checkpoint, given->offset, error,
                                  "general.alignment is no power of two from 1 to 2^20");
    size_t data = (in->at + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;
    for (size_t i = first; i < checkpoint->tensor_count; i++) {
        sb_checkpoint_tensor *tensor = &checkpoint->tensors[i];
        size_t room = data < in->size ? in->size - data : 0;
        if (tensor->offset % (size_t)alignment != 0 || tensor->offset > room || tensor->bytes > room - tensor->offset)
            return sb_checkpoint_fail(
                checkpoint, data, error,
                "tensor '%.200s' of %zu bytes lies %zu bytes behind, where the file has %zu, or not "
                "on a multiple of %lld: the file is damaged or cut off",
                tensor->name, tensor->bytes, tensor->offset, room, (long long)alignment);
        tensor->offset += data;
    }
    return SB_OK;
}

sb_status sb_gguf_read(sb_checkpoint *checkpoint, sb_error *error) {
    const sb_shared_mapping *mapping = checkpoint->files[checkpoint->file_count - 1].mapping;
    reader in = {checkpoint, (const unsigned char *)mapping->data, mapping->size, 0};
    uint64_t version, tensors, values;
    size_t first = checkpoint->tensor_count;
    sb_gguf_metadata later = {0}, *metadata = checkpoint->file_count == 1 ? &checkpoint->gguf : &later;
    if (in.size < 4 || memcmp(in.bytes, "GGUF", 4) != 0)
        return sb_checkpoint_fail(checkpoint, 0, error,
                                  "no GGUF file, which begins with \"GGUF\" (safetensors are opened by their folder)");
    in.at = 4;
    SB_TRY(take_number(&in, 4, &version, "its header", error));
    if (version != 2 && version != 3)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "%.300s, byte 4: version %llu of GGUF%s; versions 2 and 3 are read",
                       checkpoint->files[checkpoint->file_count - 1].path, (unsigned long long)version,
                       version > UINT16_MAX ? ", or a big-endian file" : "");
    SB_TRY(take_number(&in, 8, &tensors, "its header", error));
    SB_TRY(take_number(&in, 8, &values, "its header", error));
    sb_status status = take_metadata(&in, values, metadata, error);
    sb_free(later.values);
    SB_TRY(status);
    for (uint64_t i = 0; i < tensors; i++)
        SB_TRY(take_tensor(&in, checkpoint, error));
    return place_tensors(&in, checkpoint, first, error);
}
