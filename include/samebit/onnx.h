/* ONNX's own files: values (TensorProto, SequenceProto, OptionalProto), as in the standard's test data, and models that are
 * written. */
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

/** Writes a model as the ONNX file `path`, for Samebit and whatever else reads the standard's operators: the graph as the
 * passes leave it (constants folded, what nobody needs gone, calls of the file's own functions replaced by their nodes), but
 * with the nodes that they have fused one by one. A model that was loaded without passes is written as it was read. Loaded
 * again, it has the same inputs and outputs, and outputs have the same bits.
 *
 * A file beyond 2 GiB, protobuf's limit, is written with its larger weights in a second one beside it, called `path` with
 * ".data" behind. Each is written whole or not at all, the model last; files of these names are replaced, also those that
 * the model was loaded from.
 *
 * Weights that the model keeps packed alone are made again, and stay. Any thread may call this. Errors: UNSUPPORTED for a
 * model with variables, several entry graphs, or functions of another version of an operator set than its graph, which have no
 * ONNX form, naming them; IO; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_model_save(const sb_model *model, const char *path, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
