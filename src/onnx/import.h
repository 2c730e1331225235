/* Reading ONNX models.
 *
 * What the importer decides, beyond what the ONNX standard says:
 * - An initialiser is a constant, also where it is listed as an input, which in the standard gives a default that a
 *   caller may override: such inputs are not inputs of the graph.
 * - Constant nodes become constants, and calls of the model's own functions are replaced by the functions' nodes.
 * - A type attribute (of the operator Optional) becomes text: "tensor(f32)", "sequence(f32)".
 * - Dimensions without a name, or whose name says that nothing is known ("?", "None"), and negative ones, are symbols of
 *   their own.
 * - Dimensions of one name are equal in every run, unless the caller says that they are unrelated: passes rely on it, so that a
 *   run in which they are not is refused.
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

/* A model to read. */
typedef struct sb_onnx_source {
    const char *path; /* of a file, which is mapped, so that it must not be shortened while the graph lives; NULL: … */
    const void *bytes; /* … memory, which is not needed afterwards */
    size_t size;
    const char *folder;    /* with memory: where external data may lie, which are mapped too; NULL: nowhere */
    const char *unrelated; /* as sb_model_options.unrelated_symbols */
} sb_onnx_source;

/** Reads a model. Facts are made in `scope`, and those of the main graph's values are inferred. `metadata` may be NULL;
 * the caller clears it with sb_metadata_clear. What is tolerated is added to `warnings`, which may be NULL; they are the
 * caller's also when reading fails. Errors: INVALID_FILE with the byte offset; INVALID_MODEL and SHAPE with the node,
 * value or tensor; UNSUPPORTED, which for missing operators lists all of them; INVALID_ARGUMENT; IO; OUT_OF_MEMORY. Not to be
 * called for one scope from several threads at once. */
sb_status sb_onnx_read(const sb_onnx_source *source, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                       sb_warnings *warnings, sb_error *error);

/** The same from memory. */
sb_status sb_onnx_load(const void *bytes, size_t size, const char *folder, sb_scope *scope, sb_graph **graph,
                       sb_model_metadata *metadata, sb_warnings *warnings, sb_error *error);

/** The same from a file; external data lie in its folder. */
sb_status sb_onnx_load_file(const char *path, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                            sb_warnings *warnings, sb_error *error);

#endif
