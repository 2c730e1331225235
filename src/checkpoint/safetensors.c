/* safetensors files: 8 bytes of length, a JSON object that says of each tensor its dtype, extents and place, then the
 * elements. */
#include <string.h>

#include "checkpoint/checkpoint.h"

/* The format's own bound. */
#define HEADER_BYTES ((uint64_t)100000000)

static sb_status read_shape(const sb_checkpoint *checkpoint, const json_t *shape, sb_checkpoint_tensor *tensor,
                            sb_error *error) {
    size_t rank = json_array_size(shape);
    bool fits = json_is_array(shape) && rank <= SB_CHECKPOINT_RANK;
    for (size_t d = 0; fits && d < rank; d++) {
        const json_t *extent = json_array_get(shape, d);
        fits = json_is_integer(extent) && json_integer_value(extent) >= 0;
        tensor->dims[d] = fits ? json_integer_value(extent) : 0;
    }
    if (!fits)
        return sb_checkpoint_fail(checkpoint, 8, error,
                                  "the \"shape\" of tensor '%.200s' is no list of up to %d extents", tensor->name,
                                  SB_CHECKPOINT_RANK);
    tensor->rank = (int)rank;
    return SB_OK;
}

/* Where the elements are, which begin at `data` of `size` bytes of the file. */
static sb_status read_place(const sb_checkpoint *checkpoint, const json_t *offsets, size_t data, size_t size,
                            sb_checkpoint_tensor *tensor, sb_error *error) {
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last) || begin < 0 || end < begin)
        return sb_checkpoint_fail(checkpoint, 8, error, "the \"data_offsets\" of tensor '%.200s' are no two places",
                                  tensor->name);
    if ((uint64_t)end > size - data)
        return sb_checkpoint_fail(checkpoint, data, error,
                                  "tensor '%.200s' ends %lld bytes behind, where the file has %zu: it is cut off",
                                  tensor->name, (long long)end, size - data);
    if ((uint64_t)(end - begin) != tensor->bytes)
        return sb_checkpoint_fail(checkpoint, data + (size_t)begin, error,
                                  "tensor '%.200s' takes %lld bytes where its extents and %s want %zu", tensor->name,
                                  (long long)(end - begin), tensor->format->name, tensor->bytes);
    tensor->offset = data + (size_t)begin;
    return SB_OK;
}

static sb_status read_tensor(sb_checkpoint *checkpoint, const char *name, const json_t *about, size_t data, size_t size,
                             sb_error *error) {
    size_t index;
    const char *dtype = json_string_value(json_object_get(about, "dtype"));
    SB_TRY(sb_checkpoint_add(checkpoint, name, strlen(name), &index, error));
    sb_checkpoint_tensor *tensor = &checkpoint->tensors[index];
    tensor->format = dtype != NULL ? sb_weight_format_of_safetensors(dtype) : NULL;
    if (tensor->format == NULL)
        return sb_checkpoint_fail(checkpoint, 8, error,
                                  "tensor '%.200s' has the dtype %.40s, which is not known: convert "
                                  "it to BF16, F16 or F32",
                                  name, dtype != NULL ? dtype : "(none)");
    SB_TRY(read_shape(checkpoint, json_object_get(about, "shape"), tensor, error));
    SB_TRY(sb_checkpoint_measure(checkpoint, tensor, error));
    return read_place(checkpoint, json_object_get(about, "data_offsets"), data, size, tensor, error);
}

sb_status sb_safetensors_read(sb_checkpoint *checkpoint, sb_error *error) {
    const sb_checkpoint_file *file = &checkpoint->files[checkpoint->file_count - 1];
    size_t size = file->mapping->size;
    uint64_t length = 0;
    for (int i = 0; i < 8 && size >= 8; i++)
        length |= (uint64_t)(unsigned char)file->mapping->data[i] << (8 * i);
    if (size < 8 || length > HEADER_BYTES || length > size - 8)
        return sb_checkpoint_fail(checkpoint, 0, error,
                                  "a header of %llu bytes in a file of %zu: no safetensors file, or cut off",
                                  (unsigned long long)length, size);
    json_t *header, *about;
    const char *name;
    SB_TRY(sb_json_object(file->path, file->mapping->data + 8, (size_t)length, &header, error));
    sb_status status = SB_OK;
    json_object_foreach(header, name, about) {
        if (status == SB_OK && strcmp(name, "__metadata__") != 0)
            status = read_tensor(checkpoint, name, about, 8 + (size_t)length, size, error);
    }
    json_decref(header);
    return status;
}
