#include "tensor/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/allocation.h"
#include "tensor/npy_header.h"
#include "tensor/utf.h"

/* ---- reading ---- */

static sb_status fail_truncated(uint64_t size, sb_error *error) {
    return sb_fail(error, SB_ERROR_INVALID_FILE, "byte %llu: the file ends inside the header of the array",
                   (unsigned long long)size);
}

/* Reads and parses everything before the elements, which start at `*offset`. */
static sb_status read_header(const sb_npy_source *source, sb_npy_header *header, uint64_t *offset, sb_error *error) {
    unsigned char prefix[SB_NPY_PREFIX_BYTES] = {0};
    size_t prefix_bytes;
    if (source->size < 10)
        return fail_truncated(source->size, error);
    SB_TRY(source->read(source->context, prefix, 10, error));
    SB_TRY(sb_npy_check_magic(prefix, &prefix_bytes, error));
    if (source->size < prefix_bytes)
        return fail_truncated(source->size, error);
    if (prefix_bytes > 10)
        SB_TRY(source->read(source->context, prefix + 10, prefix_bytes - 10, error));
    size_t length = 0;
    for (size_t i = prefix_bytes; i > 8; i--)
        length = length << 8 | prefix[i - 1];
    if (length > source->size - prefix_bytes)
        return fail_truncated(source->size, error);
    if (length > SB_NPY_MOST_HEADER)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "byte 8: a header of %zu bytes is more than any array needs (%d)",
                       length, SB_NPY_MOST_HEADER);
    char *text = sb_allocate(length);
    if (text == NULL)
        return sb_fail_memory(error, length);
    sb_status status = source->read(source->context, text, length, error);
    if (status == SB_OK)
        status = sb_npy_parse_header(text, length, prefix_bytes, header, error);
    sb_free(text);
    *offset = prefix_bytes + length;
    return status;
}

/* The number of elements, checked against what the file holds before anything is allocated for them. */
static sb_status count_elements(const sb_npy_header *header, uint64_t offset, uint64_t size, int64_t *elements,
                                sb_error *error) {
    sb_error why;
    if (sb_count_elements(header->dtype, header->rank, header->dims, elements, &why) != SB_OK)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the array's shape: %s", why.message);
    uint64_t bytes;
    char dims[SB_DIMS_TEXT_BYTES];
    if (__builtin_mul_overflow((uint64_t)*elements, sb_npy_element_bytes(header), &bytes) || bytes != size - offset)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "byte %llu: the array %s%s needs %lld elements of %llu bytes, but %llu bytes follow",
                       (unsigned long long)offset, sb_dtype_name(header->dtype),
                       sb_dims_text(header->rank, header->dims, dims), (long long)*elements,
                       (unsigned long long)sb_npy_element_bytes(header), (unsigned long long)(size - offset));
    /* Text of no characters takes no room in the file, so nothing else would bound the number of elements. */
    if (bytes == 0 && *elements != 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "byte %llu: %lld text elements have room for no character at all",
                       (unsigned long long)offset, (long long)*elements);
    return SB_OK;
}

static void swap_bytes(char *data, int64_t elements, size_t size) {
    for (int64_t i = 0; i < elements; i++, data += size) {
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            char byte = data[low];
            data[low] = data[high];
            data[high] = byte;
        }
    }
}

static sb_status check_bools(const unsigned char *data, int64_t elements, uint64_t offset, sb_error *error) {
    for (int64_t i = 0; i < elements; i++) {
        if (data[i] > 1)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "byte %llu: the bool is %d, neither 0 nor 1",
                           (unsigned long long)offset + (unsigned long long)i, data[i]);
    }
    return SB_OK;
}

/* Reads elements that memory holds as the file does, but for the byte order. */
static sb_status read_numbers(const sb_npy_source *source, const sb_npy_header *header, const int64_t *dims,
                              int64_t elements, uint64_t offset, sb_tensor **tensor, sb_error *error) {
    sb_tensor *fresh;
    SB_TRY(sb_tensor_create_uninitialised(header->dtype, header->rank, dims, &fresh, error));
    size_t size = sb_dtype_size(header->dtype);
    sb_status status =
        elements == 0 ? SB_OK : source->read(source->context, fresh->data, (size_t)elements * size, error);
    if (status == SB_OK && header->dtype == SB_BOOL)
        status = check_bools((const unsigned char *)fresh->data, elements, offset, error);
    if (status != SB_OK) {
        sb_tensor_release(fresh);
        return status;
    }
    if (header->swapped)
        swap_bytes(fresh->data, elements, size);
    *tensor = fresh;
    return SB_OK;
}

/* Makes the tensor of UTF-32 elements, which are in this machine's byte order. */
static sb_status make_strings(const sb_npy_header *header, const int64_t *dims, int64_t elements, uint64_t offset,
                              const uint32_t *points, sb_tensor **tensor, sb_error *error) {
    size_t characters = (size_t)header->characters, bytes = 0, bad;
    for (int64_t i = 0; i < elements; i++) {
        size_t piece;
        const uint32_t *element = points + (size_t)i * characters;
        if (!sb_utf32_measure(element, sb_utf32_length(element, characters), &piece, &bad))
            return sb_fail(error, SB_ERROR_INVALID_FILE, "byte %llu: 0x%x is not a Unicode character",
                           (unsigned long long)(offset + 4 * ((uint64_t)i * characters + bad)), (unsigned)element[bad]);
        bytes += piece; /* at most 4 bytes per character: as much as the file has */
    }
    sb_string *strings = sb_allocate_array((size_t)elements, sizeof *strings);
    char *text = sb_allocate(bytes);
    if (strings == NULL || text == NULL) {
        sb_free(strings);
        sb_free(text);
        return sb_fail_memory(error, bytes + (size_t)elements * sizeof *strings);
    }
    char *end = text;
    for (int64_t i = 0; i < elements; i++) {
        const uint32_t *element = points + (size_t)i * characters;
        strings[i].data = end;
        end = sb_utf32_to_utf8(element, sb_utf32_length(element, characters), end);
        strings[i].bytes = (size_t)(end - strings[i].data);
    }
    sb_status status = sb_tensor_from_strings(header->rank, dims, strings, tensor, error);
    sb_free(strings);
    sb_free(text);
    return status;
}

static sb_status read_strings(const sb_npy_source *source, const sb_npy_header *header, const int64_t *dims,
                              int64_t elements, uint64_t offset, sb_tensor **tensor, sb_error *error) {
    size_t count = (size_t)elements * (size_t)header->characters;
    uint32_t *points = sb_allocate(4 * count);
    if (points == NULL)
        return sb_fail_memory(error, 4 * count);
    sb_status status = count == 0 ? SB_OK : source->read(source->context, points, 4 * count, error);
    if (status == SB_OK && header->swapped)
        swap_bytes((char *)points, (int64_t)count, 4);
    if (status == SB_OK)
        status = make_strings(header, dims, elements, offset, points, tensor, error);
    sb_free(points);
    return status;
}

sb_status sb_npy_read_from(const sb_npy_source *source, sb_tensor **tensor, sb_error *error) {
    sb_npy_header header;
    uint64_t offset;
    int64_t elements, dims[SB_MAX_RANK];
    SB_TRY(read_header(source, &header, &offset, error));
    SB_TRY(count_elements(&header, offset, source->size, &elements, error));
    for (int i = 0; i < header.rank; i++)
        dims[i] = header.dims[header.fortran_order ? header.rank - 1 - i : i];
    sb_tensor *stored;
    SB_TRY((header.dtype == SB_STRING ? read_strings : read_numbers)(source, &header, dims, elements, offset, &stored,
                                                                     error));
    if (!header.fortran_order || header.rank < 2) {
        *tensor = stored;
        return SB_OK;
    }
    int reversed[SB_MAX_RANK];
    for (int i = 0; i < header.rank; i++)
        reversed[i] = header.rank - 1 - i;
    sb_status status = sb_tensor_transpose(stored, reversed, tensor, error);
    sb_tensor_release(stored);
    return status;
}

typedef struct memory_reader {
    const char *bytes;
} memory_reader;

static sb_status read_memory(void *context, void *into, size_t bytes, sb_error *error) {
    memory_reader *reader = context;
    memcpy(into, reader->bytes, bytes);
    reader->bytes += bytes;
    return SB_OK;
}

sb_status sb_npy_read(const void *bytes, size_t size, sb_tensor **tensor, sb_error *error) {
    memory_reader reader = {bytes};
    return sb_npy_read_from(&(sb_npy_source){read_memory, &reader, size}, tensor, error);
}

typedef struct file_reader {
    int descriptor;
} file_reader;

static sb_status read_descriptor(void *context, void *into, size_t bytes, sb_error *error) {
    const file_reader *reader = context;
    for (size_t got = 0; got < bytes;) {
        ssize_t piece = read(reader->descriptor, (char *)into + got, bytes - got);
        if (piece < 0 && errno == EINTR)
            continue;
        if (piece < 0)
            return sb_fail(error, SB_ERROR_IO, "%s", strerror(errno));
        if (piece == 0)
            return sb_fail(error, SB_ERROR_IO, "the file became shorter while it was read");
        got += (size_t)piece;
    }
    return SB_OK;
}

sb_status sb_npy_read_file(const char *path, sb_tensor **tensor, sb_error *error) {
    file_reader reader = {open(path, O_RDONLY | O_CLOEXEC)};
    if (reader.descriptor < 0)
        return sb_fail(error, SB_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat info;
    sb_status status;
    if (fstat(reader.descriptor, &info) != 0)
        status = sb_fail(error, SB_ERROR_IO, "%s", strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = sb_fail(error, SB_ERROR_IO, "not a regular file");
    else
        status = sb_npy_read_from(&(sb_npy_source){read_descriptor, &reader, (uint64_t)info.st_size}, tensor, error);
    close(reader.descriptor);
    return status == SB_OK ? SB_OK : sb_fail_within(error, status, "%s: ", path);
}

/* ---- writing ---- */

/* The most characters of an element; INVALID_ARGUMENT when numpy could not give the text back. */
static sb_status measure_strings(const sb_string *strings, int64_t elements, size_t *characters, sb_error *error) {
    *characters = 1; /* as numpy, which has no text of width 0 */
    for (int64_t i = 0; i < elements; i++) {
        size_t length;
        if (!sb_utf8_measure(strings[i].data, strings[i].bytes, &length))
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "text element %lld is not UTF-8", (long long)i);
        if (strings[i].bytes > 0 && strings[i].data[strings[i].bytes - 1] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "text element %lld ends in a NUL character, which .npy files cannot hold", (long long)i);
        *characters = length > *characters ? length : *characters;
    }
    return SB_OK;
}

static sb_status image_strings(sb_npy_image *image, size_t *characters, sb_error *error) {
    const sb_string *strings = (const sb_string *)(const void *)image->contiguous->data;
    int64_t elements = sb_tensor_elements(image->contiguous);
    SB_TRY(measure_strings(strings, elements, characters, error));
    size_t count;
    if (__builtin_mul_overflow((size_t)elements, *characters, &count))
        return sb_fail_memory(error, SIZE_MAX);
    uint32_t *points = sb_allocate_array(count, sizeof *points);
    if (points == NULL)
        return sb_fail_memory(error, count > SIZE_MAX / 4 ? SIZE_MAX : 4 * count);
    for (int64_t i = 0; i < elements; i++)
        sb_utf8_to_utf32(strings[i].data, strings[i].bytes, points + (size_t)i * *characters);
    image->text = points;
    image->parts[1] = (sb_file_part){points, 4 * count};
    return SB_OK;
}

static sb_status fill_image(sb_tensor *tensor, sb_npy_image *image, sb_error *error) {
    size_t characters = 0;
    SB_TRY(sb_tensor_check_on_host(tensor, "written to a file", error));
    SB_TRY(sb_tensor_contiguous(tensor, &image->contiguous, error));
    if (tensor->dtype == SB_STRING)
        SB_TRY(image_strings(image, &characters, error));
    else
        image->parts[1] =
            (sb_file_part){image->contiguous->data, (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype)};
    sb_npy_header header = {.dtype = tensor->dtype, .characters = (int64_t)characters, .rank = tensor->rank};
    memcpy(header.dims, tensor->dims, sizeof header.dims);
    SB_TRY(sb_npy_format_header(&header, &image->header, &image->parts[0].size, error));
    image->parts[0].bytes = image->header;
    return SB_OK;
}

sb_status sb_npy_image_create(sb_tensor *tensor, sb_npy_image *image, sb_error *error) {
    *image = (sb_npy_image){.header = NULL};
    sb_status status = fill_image(tensor, image, error);
    if (status != SB_OK)
        sb_npy_image_release(image);
    return status;
}

void sb_npy_image_release(sb_npy_image *image) {
    sb_free(image->header);
    sb_free(image->text);
    sb_tensor_release(image->contiguous);
    *image = (sb_npy_image){.header = NULL};
}

sb_status sb_npy_write(sb_tensor *tensor, void **bytes, size_t *size, sb_error *error) {
    sb_npy_image image;
    SB_TRY(sb_npy_image_create(tensor, &image, error));
    size_t total = image.parts[0].size + image.parts[1].size;
    char *block = sb_allocate(total);
    if (block == NULL) {
        sb_npy_image_release(&image);
        return sb_fail_memory(error, total);
    }
    memcpy(block, image.parts[0].bytes, image.parts[0].size);
    if (image.parts[1].size != 0)
        memcpy(block + image.parts[0].size, image.parts[1].bytes, image.parts[1].size);
    sb_npy_image_release(&image);
    *bytes = block;
    *size = total;
    return SB_OK;
}

sb_status sb_npy_write_file(const char *path, sb_tensor *tensor, sb_error *error) {
    sb_npy_image image;
    sb_status status = sb_npy_image_create(tensor, &image, error);
    if (status != SB_OK)
        return sb_fail_within(error, status, "%s: ", path);
    status = sb_file_write_whole(path, 2, image.parts, error);
    sb_npy_image_release(&image);
    return status;
}
