/* Reading ONNX models.
 *
 * What the importer decides, beyond what the ONNX standard says:
 * - An initialiser is a constant, also where it is listed as an input, which in the standard gives a default that a
 *   caller may override: such inputs are not inputs of the graph.
 * - Constant nodes become constants, and calls of the model's own functions are replaced by the functions' nodes.
 * - A type attribute (of the operator Optional) becomes text: "tensor(f32)", "sequence(f32)".
 * - Dimensions without a name, or whose name says that nothing is known ("?", "None"), and negative ones, are symbols of
 *   their own.
 * - What breaks the standard's rules and yet has one meaning is read, with a warning: types declared for outputs and inner
 *   values that are not what nodes make; nodes in another order than they can run in; several initialisers of one name, of
 *   which the last counts; inputs typed in value_info alone; attributes that no
 *   version of an operator has, which are ignored, or only other ones, or that a called function does not list; format
 *   versions and operator sets that are not known yet,
 *   read as the newest known. */
#ifndef SB_ONNX_IMPORT_H
#define SB_ONNX_IMPORT_H

#include "graph/builder.h"
#include "graph/metadata.h"
#include "graph/warnings.h"

/** The newest version of the file format itself. */
#define SB_ONNX_NEWEST_IR 14

/** Reads a model from memory, which is not needed afterwards. `folder` is where external data may lie; NULL:
 * nowhere. Facts are made in `scope`, and those of the main graph's values are inferred. `metadata` may be NULL;
 * the caller clears it with sb_metadata_clear. What is tolerated is added to `warnings`, which may be NULL; they are the
 * caller's also when reading fails. Errors: INVALID_FILE with the byte offset; INVALID_MODEL and SHAPE with the node,
 * value or tensor; UNSUPPORTED, which for missing operators lists all of them; IO; OUT_OF_MEMORY. Not to be called for
 * one scope from several threads at once. */
sb_status sb_onnx_load(const void *bytes, size_t size, const char *folder, sb_scope *scope, sb_graph **graph,
                       sb_model_metadata *metadata, sb_warnings *warnings, sb_error *error);

/** Reads a model from a file; external data lie in the file's folder. They are mapped, so that the
 * files must not be shortened while the graph lives. */
sb_status sb_onnx_load_file(const char *path, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                            sb_warnings *warnings, sb_error *error);

#endif
