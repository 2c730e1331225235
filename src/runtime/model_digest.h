/* Digests of models: by which a file of a state knows its own. */
#ifndef SB_RUNTIME_MODEL_DIGEST_H
#define SB_RUNTIME_MODEL_DIGEST_H

#include "runtime/digest.h"
#include "runtime/model.h"

/** The SHA-256 of the model as it runs: its entry graphs after the passes, with constants, and its variables. It is the
 * same on every machine and side. Worked out once, when first asked for; any thread may ask. */
sb_status sb_model_digest(sb_model *model, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error);

#endif
