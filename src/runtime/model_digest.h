/* Digests of models: by which a file of a state knows its own. */
#ifndef SB_RUNTIME_MODEL_DIGEST_H
#define SB_RUNTIME_MODEL_DIGEST_H

#include "runtime/digest.h"
#include "runtime/model.h"

/** The SHA-256 of the model as it was imported or built: its entry graphs before the passes, with constants, and its
 * variables. It is the same on every machine and side, with and without passes. Worked out once, when first asked for;
 * any thread may ask. Errors: OUT_OF_MEMORY. */
sb_status sb_model_digest(sb_model *model, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error);

/* While the model is made, by its only thread. */

/** Before the passes, when variables are settled: takes down the graphs, and which constants they have (retained). In time
 * that grows with the nodes, not with the elements. Errors: OUT_OF_MEMORY. */
sb_status sb_model_digest_graphs(sb_model *model, sb_error *error);
/** Behind the passes: digests the constants that they have dropped, and lets go of them. Those that have been folded, for
 * the most part, which read them as well. Errors: OUT_OF_MEMORY. */
sb_status sb_model_digest_dropped(sb_model *model, sb_error *error);
/** Lets go of all constants: when the model goes, before the mutex does. */
void sb_model_digest_clear(sb_model *model);

#endif
