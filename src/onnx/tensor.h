/* ONNX tensors: TensorProto, and the SequenceProto and OptionalProto of ONNX's test data. */
#ifndef IV_ONNX_TENSOR_H
#define IV_ONNX_TENSOR_H

#include "graph/value.h"
#include "onnx/external.h"
#include "onnx/onnx.pb-c.h"
#include "onnx/wire.h"

/** The dtype that ONNX numbers `data_type`; UNSUPPORTED, naming it, for those that Invar does not
 * have. */
iv_status iv_onnx_dtype(int32_t data_type, iv_dtype *dtype, iv_error *error);
/** ONNX's number of a dtype. */
int32_t iv_onnx_data_type(iv_dtype dtype);

/** Makes a tensor of an unpacked TensorProto. Large data move from `arena` into the tensor, after
 * which the message has none, unless `arena` is NULL: then they are copied. `external` may be NULL:
 * then no external data are allowed. */
iv_status iv_onnx_tensor_of_proto(Onnx__TensorProto *proto, iv_arena *arena, iv_external *external,
                                  iv_tensor **tensor, iv_error *error);

/** Makes a dense tensor of an unpacked SparseTensorProto. `*budget` is how many bytes such tensors
 * may still take, because a few bytes of file can ask for any number. */
iv_status iv_onnx_tensor_of_sparse(Onnx__SparseTensorProto *proto, iv_external *external,
                                   size_t *budget, iv_tensor **tensor, iv_error *error);

/** Reads a serialized TensorProto (a .pb file). Errors name the offset or the tensor. */
iv_status iv_onnx_tensor_read(const void *bytes, size_t size, iv_tensor **tensor, iv_error *error);

/** Reads a serialized TensorProto, SequenceProto (kind IV_KIND_SEQUENCE) or, when `optional`,
 * OptionalProto; the file does not say itself which of them it holds. `dtype` is that of an empty
 * sequence. The caller releases `*value`. */
iv_status iv_onnx_value_read(const void *bytes, size_t size, iv_kind kind, bool optional,
                             iv_dtype dtype, iv_value *value, iv_error *error);

/** Writes a tensor as a serialized TensorProto called `name` (NULL: no name): `*bytes`, which the
 * caller frees with iv_free. */
iv_status iv_onnx_tensor_write(iv_tensor *tensor, const char *name, void **bytes, size_t *size,
                               iv_error *error);

#endif
