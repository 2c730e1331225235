/* Reading ONNX models. */
#ifndef IV_ONNX_IMPORT_H
#define IV_ONNX_IMPORT_H

#include "graph/graph.h"

typedef struct iv_onnx_info iv_onnx_info;

/** Reads a model from memory. `folder` is where external data may lie; NULL: nowhere. `info` may be NULL. */
iv_status iv_onnx_load(const void *bytes, size_t size, const char *folder, iv_scope *scope,
                       iv_graph **graph, iv_onnx_info *info, iv_error *error);

/** Reads a model from a file; external data lie in the file's folder. */
iv_status iv_onnx_load_file(const char *path, iv_scope *scope, iv_graph **graph, iv_onnx_info *info,
                            iv_error *error);

#endif
