/* Protobuf messages written as text, in protobuf's own text format, so that tests can show the
 * models they are about:
 *
 *     ir_version: 8
 *     opset_import { version: 17 }
 *     graph { node { op_type: "Relu" input: "x" output: "y" } }
 *
 * Numbers in brackets are written packed. A few fields that are newer than the installed onnx.proto
 * are known as well. */
#ifndef SB_TESTS_TEXT_PROTO_H
#define SB_TESTS_TEXT_PROTO_H

#include "onnx/onnx.pb-c.h"

#define TEXT_PROTO_ROOM 65536

/** Writes the message of type `type` that `text` describes to `bytes` (TEXT_PROTO_ROOM of them) and
 * returns its size. Ends the process when the text is wrong. */
size_t text_proto(const ProtobufCMessageDescriptor *type, const char *text, uint8_t *bytes);

#endif
