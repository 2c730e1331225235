#include "onnx/text_proto.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *at;
} reader;

typedef struct writer {
    uint8_t *bytes;
    size_t size;
} writer;

/* A field as text names it. */
typedef struct named_field {
    uint32_t number;
    ProtobufCType type;
    const void *descriptor;
} named_field;

static _Noreturn void wrong(const reader *in, const char *what) {
    fprintf(stderr, "text_proto: %s at '%.40s'\n", what, in->at);
    exit(1);
}

static void skip_space(reader *in) {
    while (isspace((unsigned char)*in->at) || *in->at == ',')
        in->at++;
}

static bool accept(reader *in, char c) {
    skip_space(in);
    if (*in->at != c)
        return false;
    in->at++;
    return true;
}

static void put(writer *out, const void *bytes, size_t size) {
    if (out->size + size > TEXT_PROTO_ROOM) {
        fprintf(stderr, "text_proto: more than %d bytes\n", TEXT_PROTO_ROOM);
        exit(1);
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void put_varint(writer *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put(out, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put(out, &(uint8_t){(uint8_t)value}, 1);
}

static size_t read_word(reader *in, char *word, size_t room) {
    skip_space(in);
    size_t length = 0;
    while (isalnum((unsigned char)*in->at) || *in->at == '_') {
        if (length + 1 < room)
            word[length++] = *in->at;
        in->at++;
    }
    word[length] = '\0';
    return length;
}

static named_field find_field(reader *in, const ProtobufCMessageDescriptor *type) {
    static const struct {
        const char *message, *name;
        named_field field;
    } newer[] = {
        {"NodeProto", "overload", {8, PROTOBUF_C_TYPE_STRING, NULL}},
        {"FunctionProto", "overload", {13, PROTOBUF_C_TYPE_STRING, NULL}},
        {"FunctionProto", "attribute_proto", {11, PROTOBUF_C_TYPE_MESSAGE, &onnx__attribute_proto__descriptor}},
    };
    char name[64];
    if (read_word(in, name, sizeof name) == 0)
        wrong(in, "no field name");
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field_by_name(type, name);
    if (known != NULL)
        return (named_field){known->id, known->type, known->descriptor};
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (strcmp(newer[i].message, type->short_name) == 0 && strcmp(newer[i].name, name) == 0)
            return newer[i].field;
    }
    fprintf(stderr, "text_proto: %s has no field %s\n", type->short_name, name);
    exit(1);
}

static void write_text(reader *in, writer *out) {
    writer text = {.bytes = malloc(TEXT_PROTO_ROOM)};
    if (!accept(in, '"'))
        wrong(in, "no text");
    while (*in->at != '"') {
        if (*in->at == '\0')
            wrong(in, "text without an end");
        uint8_t byte = (uint8_t)*in->at++;
        if (byte == '\\') {
            char digits[3] = {in->at[1], in->at[1] != '\0' ? in->at[2] : '\0', '\0'};
            if (*in->at != 'x' || digits[1] == '\0')
                wrong(in, "only \\xHH is known");
            byte = (uint8_t)strtoul(digits, NULL, 16);
            in->at += 3;
        }
        put(&text, &byte, 1);
    }
    in->at++;
    put_varint(out, text.size);
    put(out, text.bytes, text.size);
    free(text.bytes);
}

static int enum_value(reader *in, const ProtobufCEnumDescriptor *type) {
    char name[64];
    skip_space(in);
    if (isdigit((unsigned char)*in->at) || *in->at == '-')
        return (int)strtol(in->at, (char **)&in->at, 10);
    read_word(in, name, sizeof name);
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (value == NULL)
        wrong(in, "unknown name of an enum");
    return value->value;
}

/* Writes one number without a tag. */
static void write_number(reader *in, named_field field, writer *out) {
    char *end;
    skip_space(in);
    if (field.type == PROTOBUF_C_TYPE_ENUM) {
        put_varint(out, (uint64_t)(int64_t)enum_value(in, field.descriptor));
        return;
    }
    if (field.type == PROTOBUF_C_TYPE_FLOAT) {
        float value = strtof(in->at, &end);
        put(out, &value, sizeof value);
    } else if (field.type == PROTOBUF_C_TYPE_DOUBLE) {
        double value = strtod(in->at, &end);
        put(out, &value, sizeof value);
    } else {
        put_varint(out, *in->at == '-' ? (uint64_t)strtoll(in->at, &end, 10) : strtoull(in->at, &end, 10));
    }
    if (end == in->at)
        wrong(in, "no number");
    in->at = end;
}

static int wire_type(ProtobufCType type) {
    return type == PROTOBUF_C_TYPE_FLOAT ? 5 : type == PROTOBUF_C_TYPE_DOUBLE ? 1 : 0;
}

static void write_message(reader *in, const ProtobufCMessageDescriptor *type, char end, writer *out);

static void write_field(reader *in, named_field field, writer *out) {
    bool message = field.type == PROTOBUF_C_TYPE_MESSAGE;
    bool text = field.type == PROTOBUF_C_TYPE_STRING || field.type == PROTOBUF_C_TYPE_BYTES;
    if (message ? !accept(in, '{') : !accept(in, ':'))
        wrong(in, message ? "no {" : "no :");
    bool packed = !message && !text && accept(in, '[');
    put_varint(out, (uint64_t)field.number << 3 | (message || text || packed ? 2u : (unsigned)wire_type(field.type)));
    if (text) {
        write_text(in, out);
    } else if (!message && !packed) {
        write_number(in, field, out);
    } else {
        writer inner = {.bytes = malloc(TEXT_PROTO_ROOM)};
        if (message)
            write_message(in, field.descriptor, '}', &inner);
        else
            while (!accept(in, ']'))
                write_number(in, field, &inner);
        put_varint(out, inner.size);
        put(out, inner.bytes, inner.size);
        free(inner.bytes);
    }
}

static void write_message(reader *in, const ProtobufCMessageDescriptor *type, char end, writer *out) {
    for (skip_space(in); *in->at != end; skip_space(in)) {
        if (*in->at == '\0')
            wrong(in, "a message without an end");
        write_field(in, find_field(in, type), out);
    }
    if (end != '\0')
        in->at++;
}

size_t text_proto(const ProtobufCMessageDescriptor *type, const char *text, uint8_t *bytes) {
    reader in = {text};
    writer out = {.bytes = bytes};
    write_message(&in, type, '\0', &out);
    return out.size;
}
