/* Protobuf's wire format: checked before anything is unpacked, because protobuf-c recurses without
 * a limit and does not say where a file is damaged. */
#ifndef SB_ONNX_WIRE_H
#define SB_ONNX_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "onnx/arena.h"

/** How deep messages may be nested: protobuf's own default. An If inside an If takes three levels. */
#define SB_WIRE_DEPTH 100

/** Checks that `bytes` is a well-formed message of that type: lengths, varints, wire types, text
 * without NUL, singular messages given once, nesting. INVALID_FILE names the offset of the first
 * damage; UNSUPPORTED for nesting and files beyond protobuf's 2 GiB. */
sb_status sb_wire_check(const void *bytes, size_t size, const ProtobufCMessageDescriptor *type, sb_error *error);

/** Checks and unpacks a message into the arena. */
sb_status sb_wire_unpack(const void *bytes, size_t size, const ProtobufCMessageDescriptor *type, sb_arena *arena,
                         ProtobufCMessage **message, sb_error *error);

/** What an arena needs at most for a sound message of `size` bytes. */
size_t sb_wire_budget(size_t size);

/* One field of a message, read without a schema. */
typedef struct sb_wire_field {
    uint32_t number;
    int type;             /* ProtobufCWireType */
    uint64_t value;       /* of a varint */
    const uint8_t *bytes; /* of a length-prefixed field */
    size_t size;
} sb_wire_field;

typedef struct sb_wire_reader {
    const uint8_t *bytes;
    size_t size, at;
} sb_wire_reader;

/** Reads the field at reader->at and steps over it. Call only while at < size. INVALID_FILE names the offset. */
sb_status sb_wire_next(sb_wire_reader *reader, sb_wire_field *field, sb_error *error);

#endif
