/* What the parts of the exporter share. */
#ifndef SB_ONNX_EXPORTER_H
#define SB_ONNX_EXPORTER_H

#include "base/names.h"
#include "graph/op.h"
#include "onnx/arena.h"
#include "onnx/export.h"
#include "onnx/tensor.h"

/* A set of operators that the file imports. */
typedef struct sb_exported_set {
    const char *domain;
    int version;
    const char *node; /* the first one of it, for messages */
} sb_exported_set;

/* The messages of a file in the making. They look at the graph's own names, lists and elements; everything else lies in
 * the arena or is kept. */
typedef struct sb_exporter {
    sb_arena arena;
    sb_names names; /* that are taken, to the number of the last one made of each */
    size_t set_count, set_capacity;
    sb_exported_set *sets;
    size_t kept_count, kept_capacity;
    sb_tensor **kept; /* that messages look at */
    size_t initialiser_count, initialiser_capacity;
    Onnx__TensorProto **initialisers; /* of all graphs */
    bool small_types;                 /* whether some type needs a format version of late */
} sb_exporter;

/** Zeroed room for `count` items of `bytes` bytes, as long as the exporter; NULL with the error set when memory runs out. */
void *sb_exporter_room(sb_exporter *exporter, size_t count, size_t bytes, sb_error *error);
/** The same with a copy of `bytes` bytes. */
void *sb_exporter_copy(sb_exporter *exporter, const void *source, size_t bytes, sb_error *error);

/* A fresh message of a kind: `NODE_PROTO`, `node_proto` and `NodeProto` name it. */
#define SB_EXPORTED_MESSAGE(Type, INIT)                                                                                \
    static inline Onnx__##Type *sb_new_##Type(sb_exporter *exporter, sb_error *error) {                                \
        const Onnx__##Type blank = INIT;                                                                               \
        return sb_exporter_copy(exporter, &blank, sizeof blank, error);                                                \
    }
SB_EXPORTED_MESSAGE(AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT)
SB_EXPORTED_MESSAGE(GraphProto, ONNX__GRAPH_PROTO__INIT)
SB_EXPORTED_MESSAGE(ModelProto, ONNX__MODEL_PROTO__INIT)
SB_EXPORTED_MESSAGE(NodeProto, ONNX__NODE_PROTO__INIT)
SB_EXPORTED_MESSAGE(OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT)
SB_EXPORTED_MESSAGE(StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT)
SB_EXPORTED_MESSAGE(TensorProto, ONNX__TENSOR_PROTO__INIT)
SB_EXPORTED_MESSAGE(TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT)
SB_EXPORTED_MESSAGE(TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT)
SB_EXPORTED_MESSAGE(TypeProto, ONNX__TYPE_PROTO__INIT)
SB_EXPORTED_MESSAGE(TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT)
SB_EXPORTED_MESSAGE(TypeProto__Sequence, ONNX__TYPE_PROTO__SEQUENCE__INIT)
SB_EXPORTED_MESSAGE(TypeProto__Optional, ONNX__TYPE_PROTO__OPTIONAL__INIT)
SB_EXPORTED_MESSAGE(ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT)

/** The message of a tensor on the host, which it looks at, called `name` (NULL: not). */
sb_status sb_export_tensor(sb_exporter *exporter, sb_tensor *tensor, const char *name, Onnx__TensorProto **proto,
                           sb_error *error);
/** The message of a type; *proto NULL when nothing is known. */
sb_status sb_export_type(sb_exporter *exporter, const sb_fact *fact, Onnx__TypeProto **proto, sb_error *error);
/** The same of a type as attributes have it: "optional(sequence(f32))". */
sb_status sb_export_type_text(sb_exporter *exporter, const char *text, Onnx__TypeProto **proto, sb_error *error);

/** The message of the model's graph; notes what it needs. */
sb_status sb_export_graph(sb_exporter *exporter, const sb_graph *graph, Onnx__GraphProto **proto, sb_error *error);

#endif
