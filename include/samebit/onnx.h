/* Values in ONNX's own files (TensorProto, SequenceProto, OptionalProto), as in the standard's test data. */
#ifndef SAMEBIT_ONNX_H
#define SAMEBIT_ONNX_H

#include <samebit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reads a .pb file as a value of the kind that `description` tells (sb_model_input, sb_model_output): the files do not
 * say themselves what they hold. Where the model says bf16 and the file uint16, the file holds the bits of bf16. The
 * caller releases the value. Errors: IO, INVALID_FILE, UNSUPPORTED. */
SB_API SB_MUST_CHECK sb_status sb_onnx_value_load(const char *path, const sb_value_description *description,
                                                  sb_value *value, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
