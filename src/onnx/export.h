/* Writing graphs as ONNX files, for any runtime that reads them.
 *
 * What the exporter decides, beyond what the ONNX standard says:
 * - Inputs and outputs of the model keep their names. Values inside keep theirs as long as nobody has them already, since the
 *   standard wants names of nested graphs to differ from those around them.
 * - Constants are initialisers. An output that is a constant, and one of a nested graph that is a capture or an input, is
 *   that of an Identity, because not every runtime takes such outputs as they are.
 * - Nodes that passes have fused are written as the nodes of their bodies.
 * - Extents that only the data decide have no name. */
#ifndef SB_ONNX_EXPORT_H
#define SB_ONNX_EXPORT_H

#include "graph/graph.h"
#include "graph/metadata.h"

/** What a protobuf message may have, and so a file without external data. */
#define SB_ONNX_LARGEST_FILE ((size_t)INT32_MAX)

/** Writes a graph without variables, whose constants are on the host, as the file `path`. `metadata`, of the file that the
 * graph was read from, says what the file says of itself; NULL: nothing. When it would have more than `largest` bytes, the
 * larger initialisers go to the file `path` + ".data" beside it. Each file is written whole or not at all, and the model only
 * behind its data. Errors: UNSUPPORTED for what has no ONNX form, naming the node; IO; OUT_OF_MEMORY. */
sb_status sb_onnx_save(const sb_graph *graph, const sb_model_metadata *metadata, const char *path, size_t largest,
                       sb_error *error);

#endif
