/* Inside the builder: how far a graph was when a change began, so that a failure takes it back. */
#ifndef SB_GRAPH_BUILDER_CHANGE_H
#define SB_GRAPH_BUILDER_CHANGE_H

#include "graph/builder.h"

typedef struct sb_builder_mark {
    size_t values, inputs, outputs, reads, updates, captures;
} sb_builder_mark;

sb_builder_mark sb_builder_begin_change(const sb_graph_builder *builder);
/** Takes out everything added since but nodes: those are gone already. */
void sb_builder_undo_change(sb_graph_builder *builder, const sb_builder_mark *mark);

#endif
