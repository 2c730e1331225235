#include "tensor/npy_header.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

/* The descriptor's letter and size for each dtype that has one of its own. */
static const struct {
    sb_dtype dtype;
    char kind;
    int bytes;
} kinds[] = {
    {SB_BOOL, 'b', 1}, {SB_U8, 'u', 1},  {SB_U16, 'u', 2}, {SB_U32, 'u', 4}, {SB_U64, 'u', 8},
    {SB_S8, 'i', 1},   {SB_S16, 'i', 2}, {SB_S32, 'i', 4}, {SB_S64, 'i', 8}, {SB_F16, 'f', 2},
    {SB_BF16, 'V', 2}, {SB_F32, 'f', 4}, {SB_F64, 'f', 8},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char magic[6] = "\x93NUMPY";

static char native_order(void) {
    const uint16_t probe = 1;
    unsigned char first;
    memcpy(&first, &probe, 1);
    return first == 1 ? '<' : '>';
}

uint64_t sb_npy_element_bytes(const sb_npy_header *header) {
    return header->dtype == SB_STRING ? 4 * (uint64_t)header->characters : sb_dtype_size(header->dtype);
}

sb_status sb_npy_check_magic(const unsigned char *bytes, size_t *prefix, sb_error *error) {
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "byte 0: not a .npy file: it does not begin with \\x93NUMPY");
    int major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "byte 6: .npy format version %d.%d is not one of 1.0, 2.0 and 3.0",
                       major, minor);
    *prefix = major == 1 ? 10 : 12;
    return SB_OK;
}

/* ---- parsing ---- */

/* The header is the text of a Python dictionary with three keys. */
typedef struct parser {
    const char *text;
    size_t bytes, at, offset;
    sb_error *error;
} parser;

static sb_status fail_at(const parser *in, size_t at, const char *what) {
    return sb_fail(in->error, SB_ERROR_INVALID_FILE, "byte %zu: %s", in->offset + at, what);
}

static void skip_spaces(parser *in) {
    while (in->at < in->bytes && in->text[in->at] == ' ')
        in->at++;
}

static bool accept(parser *in, char wanted) {
    skip_spaces(in);
    if (in->at == in->bytes || in->text[in->at] != wanted)
        return false;
    in->at++;
    return true;
}

static bool accept_word(parser *in, const char *word) {
    skip_spaces(in);
    size_t bytes = strlen(word);
    if (in->bytes - in->at < bytes || memcmp(in->text + in->at, word, bytes) != 0)
        return false;
    in->at += bytes;
    return true;
}

/* A string without escapes, copied with a NUL. */
static sb_status parse_string(parser *in, char *into, size_t room) {
    skip_spaces(in);
    size_t start = in->at;
    char quote = accept(in, '\'') ? '\'' : accept(in, '"') ? '"' : '\0';
    if (quote == '\0')
        return fail_at(in, start, "the header of the array wants a string in quotes here");
    const char *first = in->text + in->at;
    size_t length = 0, left = in->bytes - in->at;
    while (length < left && length < room && first[length] != quote && first[length] != '\\' && first[length] >= ' ' &&
           first[length] <= '~')
        length++;
    if (length == left || length == room || first[length] != quote)
        return fail_at(in, start, "a string in the header of the array is damaged or too long");
    memcpy(into, first, length);
    into[length] = '\0';
    in->at += length + 1;
    return SB_OK;
}

static sb_status parse_number(parser *in, int64_t *number) {
    skip_spaces(in);
    size_t start = in->at;
    *number = 0;
    while (in->at < in->bytes && in->text[in->at] >= '0' && in->text[in->at] <= '9') {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, in->text[in->at] - '0', number))
            return fail_at(in, start, "a number in the header of the array overflows 64 bits");
        in->at++;
    }
    return in->at > start ? SB_OK : fail_at(in, start, "the header of the array wants a number of at least 0 here");
}

/* A tuple: "()", "(3,)", "(3, 4)", "(3, 4,)". "(3)" is a number in Python, and numpy never writes it. */
static sb_status parse_shape(parser *in, sb_npy_header *header) {
    size_t start = in->at;
    if (!accept(in, '('))
        return fail_at(in, start, "the shape of the array does not begin with (");
    header->rank = 0;
    for (bool comma = true; !accept(in, ')');) {
        start = in->at;
        if (!comma)
            return fail_at(in, start, "the shape of the array wants a comma or ) here");
        if (header->rank == SB_MAX_RANK)
            return sb_fail(in->error, SB_ERROR_UNSUPPORTED, "byte %zu: the array has more than %d dimensions",
                           in->offset + start, SB_MAX_RANK);
        SB_TRY(parse_number(in, &header->dims[header->rank++]));
        comma = accept(in, ',');
        if (header->rank == 1 && !comma)
            return fail_at(in, in->at, "the shape of the array wants a comma here");
    }
    return SB_OK;
}

/* What follows the [ of a structure: one field that has the name of a small type, of type u1. numpy has no name for such
 * a type, and what ml_dtypes writes is the same for nearly all of them. */
static sb_status parse_small(parser *in, size_t start, sb_npy_header *header) {
    char name[32] = "", type[8] = "";
    bool right = accept(in, '(');
    if (right) {
        SB_TRY(parse_string(in, name, sizeof name));
        right = accept(in, ',');
    }
    sb_dtype dtype = sb_dtype_from_name(name);
    if (!right || !sb_dtype_is_small(dtype))
        return sb_fail(in->error, SB_ERROR_UNSUPPORTED,
                       "byte %zu: the array has structures as elements: save its fields as arrays "
                       "of their own",
                       in->offset + start);
    SB_TRY(parse_string(in, type, sizeof type));
    if (strcmp(type, "|u1") != 0 || !accept(in, ')'))
        return fail_at(in, start, "a structure that stands for a small type has one field of type '|u1'");
    accept(in, ',');
    if (!accept(in, ']'))
        return fail_at(in, start, "a structure that stands for a small type has one field");
    header->swapped = false;
    header->dtype = dtype;
    return SB_OK;
}

static sb_status parse_descriptor(parser *in, sb_npy_header *header) {
    char text[32];
    skip_spaces(in);
    size_t start = in->at;
    if (accept(in, '['))
        return parse_small(in, start, header);
    SB_TRY(parse_string(in, text, sizeof text));
    char order = text[0];
    if (strchr("<>|", order) == NULL || order == '\0' || text[1] == '\0')
        return fail_at(in, start, "the descriptor of the array has no byte order and letter");
    char kind = text[1];
    if (kind == 'O')
        return sb_fail(in->error, SB_ERROR_UNSUPPORTED,
                       "byte %zu: the array has pickled Python objects as elements, which are not read "
                       "because they can run code: convert it with astype() before saving",
                       in->offset + start);
    parser digits = {text, strlen(text), 2, in->offset + start, in->error};
    int64_t number;
    SB_TRY(parse_number(&digits, &number));
    if (digits.at != digits.bytes)
        number = -1; /* dates and the like: no type of ours */
    header->swapped = order != '|' && order != native_order();
    header->dtype = SB_DTYPE_NONE;
    if (kind == 'U' && number >= 0 && number <= INT64_MAX / 4) {
        header->dtype = SB_STRING;
        header->characters = number;
    }
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i].kind == kind && kinds[i].bytes == number)
            header->dtype = kinds[i].dtype;
    }
    /* '>V2' would be a byte-swapped bf16, which nothing writes. */
    bool lacks_order = order == '|' && kind != 'V' && sb_npy_element_bytes(header) > 1;
    if (header->dtype == SB_BF16 && header->swapped)
        header->dtype = SB_DTYPE_NONE;
    if (header->dtype != SB_DTYPE_NONE && lacks_order)
        return fail_at(in, start, "the descriptor of the array lacks the byte order");
    if (kind == 'f' && number == 1) /* as ml_dtypes writes float8_e5m2 */
        header->dtype = SB_F8E5M2;
    if (kind == 'V' && number == 1)
        return sb_fail(
            in->error, SB_ERROR_UNSUPPORTED,
            "byte %zu: the dtype '%s' is all that ml_dtypes writes for any of its types of 8 and fewer bits: "
            "save array.view('uint8').view([('f8e4m3fn', 'u1')]), with f8e4m3fn, f8e4m3fnuz, f8e5m2, "
            "f8e5m2fnuz, f8e8m0, f6e2m3, f6e3m2, f4e2m1, s4, u4, s2 or u2 for its type",
            in->offset + start, text);
    if (header->dtype == SB_DTYPE_NONE)
        return sb_fail(in->error, SB_ERROR_UNSUPPORTED,
                       "byte %zu: arrays of dtype '%s' are not read: convert it with astype() to bool, an "
                       "integer, float16, float32, float64 or str before saving",
                       in->offset + start, text);
    return SB_OK;
}

static sb_status parse_order(parser *in, sb_npy_header *header) {
    header->fortran_order = accept_word(in, "True");
    if (header->fortran_order || accept_word(in, "False"))
        return SB_OK;
    return fail_at(in, in->at, "fortran_order is neither True nor False");
}

static sb_status parse_entry(parser *in, bool seen[3], sb_npy_header *header) {
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    char key[16];
    skip_spaces(in);
    size_t start = in->at;
    SB_TRY(parse_string(in, key, sizeof key));
    int which = 0;
    while (which < 3 && strcmp(key, keys[which]) != 0)
        which++;
    if (which == 3 || seen[which])
        return fail_at(in, start, "a key of the header is there twice, or is not descr, fortran_order or shape");
    seen[which] = true;
    if (!accept(in, ':'))
        return fail_at(in, in->at, "the header of the array wants a colon here");
    return which == 0 ? parse_descriptor(in, header) : which == 1 ? parse_order(in, header) : parse_shape(in, header);
}

sb_status sb_npy_parse_header(const char *text, size_t bytes, size_t offset, sb_npy_header *header, sb_error *error) {
    parser in = {text, bytes, 0, offset, error};
    bool seen[3] = {false};
    *header = (sb_npy_header){.dtype = SB_DTYPE_NONE};
    if (!accept(&in, '{'))
        return fail_at(&in, in.at, "the header of the array does not begin with {");
    for (bool comma = true; !accept(&in, '}'); comma = accept(&in, ',')) {
        if (!comma)
            return fail_at(&in, in.at, "the header of the array wants a comma or } here");
        SB_TRY(parse_entry(&in, seen, header));
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return fail_at(&in, in.at, "the header of the array lacks descr, fortran_order or shape");
    skip_spaces(&in);
    if (in.bytes - in.at != 1 || in.text[in.at] != '\n')
        return fail_at(&in, in.at, "the header of the array does not end in spaces and a line feed");
    return SB_OK;
}

/* ---- writing ---- */

static void format_descriptor(const sb_npy_header *header, char *text, size_t room) {
    if (header->dtype == SB_STRING)
        snprintf(text, room, "'%cU%lld'", native_order(), (long long)header->characters);
    if (sb_dtype_is_small(header->dtype))
        snprintf(text, room, "[('%s', '|u1')]", sb_dtype_name(header->dtype));
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i].dtype == header->dtype)
            snprintf(text, room, "'%c%c%d'", kinds[i].bytes == 1 ? '|' : native_order(), kinds[i].kind, kinds[i].bytes);
    }
}

sb_status sb_npy_format_header(const sb_npy_header *header, void **bytes, size_t *size, sb_error *error) {
    /* 12 extents of at most 19 digits: the text has less than 400 bytes, so version 1 is always enough. */
    char descriptor[32], shape[24 * SB_MAX_RANK + 3] = "", text[512];
    format_descriptor(header, descriptor, sizeof descriptor);
    size_t used = 0;
    for (int i = 0; i < header->rank; i++)
        used +=
            (size_t)snprintf(shape + used, sizeof shape - used, i == 0 ? "%lld" : ", %lld", (long long)header->dims[i]);
    int length = snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (%s%s), }", descriptor,
                          shape, header->rank == 1 ? "," : "");
    size_t total = (10 + (size_t)length + 1 + 63) / 64 * 64;
    unsigned char *block = sb_allocate(total);
    if (block == NULL)
        return sb_fail_memory(error, total);
    memset(block, ' ', total);
    memcpy(block, magic, sizeof magic);
    block[6] = 1;
    block[7] = 0;
    block[8] = (unsigned char)((total - 10) & 0xff);
    block[9] = (unsigned char)((total - 10) >> 8);
    memcpy(block + 10, text, (size_t)length);
    block[total - 1] = '\n';
    *bytes = block;
    *size = total;
    return SB_OK;
}
