/* ONNX tensors: TensorProto, and the SequenceProto and OptionalProto of ONNX's test data. */
#ifndef SB_ONNX_TENSOR_H
#define SB_ONNX_TENSOR_H

#include "graph/value.h"
#include "onnx/external.h"
#include "onnx/onnx.pb-c.h"
#include "onnx/wire.h"

/** The dtype that ONNX numbers `data_type`; UNSUPPORTED, naming it, for those that Samebit does not have. */
sb_status sb_onnx_dtype(int32_t data_type, sb_dtype *dtype, sb_error *error);
/** ONNX's number of a dtype. */
int32_t sb_onnx_data_type(sb_dtype dtype);

/** Bytes of `elements` elements in a file: those of less than 8 bits are packed. Not for text. */
size_t sb_packed_bytes(sb_dtype dtype, int64_t elements);
/** Packed elements of less than 8 bits, the first one lowest, to one a byte; and back, with zeros behind the last. */
void sb_unpack(sb_dtype dtype, int64_t elements, const void *packed, void *unpacked);
void sb_pack(sb_dtype dtype, int64_t elements, const void *unpacked, void *packed);

/** Makes a tensor of an unpacked TensorProto. Large data move from `arena` into the tensor, after
 * which the message has none, unless `arena` is NULL: then they are copied. `external` may be NULL:
 * then no external data are allowed. */
sb_status sb_onnx_tensor_of_proto(Onnx__TensorProto *proto, sb_arena *arena, sb_external *external, sb_tensor **tensor,
                                  sb_error *error);

/** Makes a dense tensor of an unpacked SparseTensorProto. `*budget` is how many bytes such tensors
 * may still take, because a few bytes of file can ask for any number. */
sb_status sb_onnx_tensor_of_sparse(Onnx__SparseTensorProto *proto, sb_external *external, size_t *budget,
                                   sb_tensor **tensor, sb_error *error);

/** Reads a serialized TensorProto (a .pb file). Errors name the offset or the tensor. */
sb_status sb_onnx_tensor_read(const void *bytes, size_t size, sb_tensor **tensor, sb_error *error);

/** Reads a serialized TensorProto, SequenceProto (kind SB_KIND_SEQUENCE) or, when `optional`,
 * OptionalProto; the file does not say itself which of them it holds. `dtype` is that of an empty
 * sequence. The caller releases `*value`. */
sb_status sb_onnx_value_read(const void *bytes, size_t size, sb_kind kind, bool optional, sb_dtype dtype,
                             sb_value *value, sb_error *error);

/** Writes a tensor as a serialized TensorProto called `name` (NULL: no name): `*bytes`, which the
 * caller frees with sb_free. */
sb_status sb_onnx_tensor_write(sb_tensor *tensor, const char *name, void **bytes, size_t *size, sb_error *error);

#endif
