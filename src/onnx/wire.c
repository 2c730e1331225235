#include "onnx/wire.h"

#include <limits.h>
#include <string.h>

/* The longest encodings of a tag or length, and of a 64-bit number; protobuf-c has the same limits. */
#define TAG_BYTES 5
#define VARINT_BYTES 10

static bool read_varint(const uint8_t *bytes, size_t end, size_t *at, int most, uint64_t *value) {
    *value = 0;
    for (int i = 0; i < most && *at < end; i++) {
        uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return true;
    }
    return false;
}

static sb_status damaged(size_t offset, const char *what, sb_error *error) {
    return sb_fail(error, SB_ERROR_INVALID_FILE, "not a sound protobuf file: %s at byte %zu", what, offset);
}

/* Reads up to `end`. Length-prefixed contents are not looked into. */
static sb_status next_field(const uint8_t *bytes, size_t end, size_t *at, sb_wire_field *field, sb_error *error) {
    size_t start = *at;
    uint64_t tag, length = 0;
    if (!read_varint(bytes, end, at, TAG_BYTES, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return damaged(start, "a bad field tag", error);
    *field = (sb_wire_field){.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
    switch (field->type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if (!read_varint(bytes, end, at, VARINT_BYTES, &field->value))
            return damaged(start, "a number that does not end", error);
        return SB_OK;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        length = 8;
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        length = 4;
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(bytes, end, at, TAG_BYTES, &length))
            return damaged(start, "a bad length", error);
        break;
    default:
        return damaged(start, "a field of unknown wire type", error);
    }
    if (length > end - *at)
        return damaged(start, "a field that is longer than what is left of its message", error);
    field->bytes = bytes + *at;
    field->size = (size_t)length;
    *at += field->size;
    return SB_OK;
}

sb_status sb_wire_next(sb_wire_reader *reader, sb_wire_field *field, sb_error *error) {
    return next_field(reader->bytes, reader->size, &reader->at, field, error);
}

static int wire_type(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

static sb_status check_packed(const sb_wire_field *field, int type, size_t offset, sb_error *error) {
    size_t unit = type == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : 8;
    if (type != PROTOBUF_C_WIRE_TYPE_VARINT)
        return field->size % unit == 0 ? SB_OK : damaged(offset, "a list that ends within a number", error);
    /* A varint is too long when more than ten bytes in a row continue; the last byte must not. */
    size_t run = 0;
    for (size_t i = 0; i < field->size; i++) {
        run++;
        if (field->bytes[i] < 0x80)
            run = 0;
        else if (run >= VARINT_BYTES)
            return damaged(offset, "a list with a number that does not end", error);
    }
    return run == 0 ? SB_OK : damaged(offset, "a list that ends within a number", error);
}

/* A message that the walk is inside of. */
typedef struct level {
    const ProtobufCMessageDescriptor *type;
    size_t end;
    uint64_t seen; /* singular messages, by index of the field */
} level;

static sb_status check_known(const ProtobufCFieldDescriptor *known, const sb_wire_field *field, level *in,
                             size_t offset, sb_error *error) {
    int type = wire_type(known->type);
    bool repeated = known->label == PROTOBUF_C_LABEL_REPEATED;
    if (field->type != type) {
        if (repeated && field->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return check_packed(field, type, offset, error);
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "not a sound ONNX file: field %s of %s has the wrong wire type at byte %zu", known->name,
                       in->type->short_name, offset);
    }
    if (known->type == PROTOBUF_C_TYPE_STRING && memchr(field->bytes, 0, field->size) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "not a sound ONNX file: field %s of %s holds a NUL character at byte %zu", known->name,
                       in->type->short_name, offset);
    if (known->type == PROTOBUF_C_TYPE_MESSAGE && !repeated) {
        uint64_t bit = UINT64_C(1) << ((known - in->type->fields) & 63);
        if ((in->seen & bit) != 0)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "not a sound ONNX file: a second %s in one %s at byte %zu",
                           known->name, in->type->short_name, offset);
        in->seen |= bit;
    }
    return SB_OK;
}

sb_status sb_wire_check(const void *memory, size_t size, const ProtobufCMessageDescriptor *type, sb_error *error) {
    if (size > INT32_MAX)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the file has %zu bytes, but protobuf ends at 2 GiB: keep the weights in "
                       "external data",
                       size);
    const uint8_t *bytes = memory;
    level levels[SB_WIRE_DEPTH];
    int depth = 0;
    size_t at = 0;
    levels[0] = (level){type, size, 0};
    while (depth > 0 || at < levels[0].end) {
        level *in = &levels[depth];
        if (at == in->end) {
            depth--;
            continue;
        }
        size_t offset = at;
        sb_wire_field field;
        SB_TRY(next_field(bytes, in->end, &at, &field, error));
        const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(in->type, field.number);
        if (known == NULL)
            continue;
        SB_TRY(check_known(known, &field, in, offset, error));
        if (known->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (++depth == SB_WIRE_DEPTH)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "messages are nested more than %d deep at byte %zu",
                           SB_WIRE_DEPTH, offset);
        levels[depth] = (level){known->descriptor, at, 0};
        at -= field.size;
    }
    return SB_OK;
}

size_t sb_wire_budget(size_t size) {
    /* The worst that a sound field costs is a two-byte message of type AttributeProto, some 250
     * bytes and 40 of bookkeeping; a graph whose nodes are all as short as can be takes about 20
     * times its size. The rest is for small files. */
    size_t budget;
    if (__builtin_mul_overflow(size, (size_t)64, &budget) || budget > SIZE_MAX - (1 << 24))
        return SIZE_MAX;
    return budget + (1 << 24);
}

sb_status sb_wire_unpack(const void *bytes, size_t size, const ProtobufCMessageDescriptor *type, sb_arena *arena,
                         ProtobufCMessage **message, sb_error *error) {
    SB_TRY(sb_wire_check(bytes, size, type, error));
    *message = protobuf_c_message_unpack(type, &arena->allocator, size, bytes);
    if (*message != NULL)
        return SB_OK;
    if (arena->exhausted)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the file of %zu bytes unfolds to far more memory than a model of that size "
                       "needs",
                       size);
    /* The check above leaves protobuf-c no other reason. */
    return sb_fail_memory(error, size);
}
