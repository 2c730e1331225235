/* What a model's file says of itself: sb_model_metadata, whose memory is owned here. */
#ifndef SB_GRAPH_METADATA_H
#define SB_GRAPH_METADATA_H

#include <samebit/model.h>

/** Frees all text and lists, which were allocated one by one and may be NULL, and makes everything nothing. */
void sb_metadata_clear(sb_model_metadata *metadata);

#endif
