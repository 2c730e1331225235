/* Reading ONNX models.
 *
 * What the importer decides, beyond what the ONNX standard says:
 * - An initialiser is a constant, also where it is listed as an input, which in the standard gives a default that a
 *   caller may override: such inputs are not inputs of the graph.
 * - Constant nodes become constants, and calls of the model's own functions are replaced by the functions' nodes.
 * - A type attribute (of the operator Optional) becomes text: "tensor(f32)", "sequence(f32)".
 * - Dimensions without a name, and negative ones, are symbols of their own. */
#ifndef SB_ONNX_IMPORT_H
#define SB_ONNX_IMPORT_H

#include "graph/builder.h"

/** The newest version of the file format itself. */
#define SB_ONNX_NEWEST_IR 14

/* What a file says of itself. All text is owned; "" where the file says nothing. */
typedef struct sb_onnx_info {
    int64_t ir_version, model_version;
    char *producer_name, *producer_version, *domain, *graph_name;
    size_t opset_count;
    struct sb_onnx_opset {
        char *domain; /* "" for the standard's own */
        int64_t version;
    } * opsets;
    size_t metadata_count;
    struct sb_onnx_metadata {
        char *key, *value;
    } * metadata;
} sb_onnx_info;

void sb_onnx_info_clear(sb_onnx_info *info);

/** Reads a model from memory, which is not needed afterwards. `folder` is where external data may lie; NULL:
 * nowhere. Facts are made in `scope`, and those of the main graph's values are inferred. `info` may be NULL; the
 * caller clears it. Errors: INVALID_FILE with the byte offset; INVALID_MODEL and SHAPE with the node, value or
 * tensor; UNSUPPORTED, which for missing operators lists all of them; IO; OUT_OF_MEMORY. Not to be called for one
 * scope from several threads at once. */
sb_status sb_onnx_load(const void *bytes, size_t size, const char *folder, sb_scope *scope, sb_graph **graph,
                       sb_onnx_info *info, sb_error *error);

/** Reads a model from a file; external data lie in the file's folder. They are mapped, so that the
 * files must not be shortened while the graph lives. */
sb_status sb_onnx_load_file(const char *path, sb_scope *scope, sb_graph **graph, sb_onnx_info *info, sb_error *error);

#endif
