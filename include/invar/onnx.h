/* Values in ONNX's own files (TensorProto, SequenceProto, OptionalProto), as in the standard's test data. */
#ifndef INVAR_ONNX_H
#define INVAR_ONNX_H

#include <invar/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reads a .pb file as a value of the kind that `description` tells (iv_model_input, iv_model_output): the files do not
 * say themselves what they hold. Where the model says bf16 and the file uint16, the file holds the bits of bf16. The caller releases the value. Errors: IO, INVALID_FILE, UNSUPPORTED. */
IV_API IV_MUST_CHECK iv_status iv_onnx_value_load(const char *path,
                                                  const iv_value_description *description,
                                                  iv_value *value, iv_error *error);

#ifdef __cplusplus
}
#endif
#endif
