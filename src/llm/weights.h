/* Weights of a family by what they are for, wherever and however the checkpoint has them. */
#ifndef SB_LLM_WEIGHTS_H
#define SB_LLM_WEIGHTS_H

#include "llm/config.h"

#define SB_LLM_NAME_BYTES 256

/** What the tensor that has a weight (`bias`: or its bias) is called, and its extents in the file; false where the family has
 * none. Roles that share a tensor give the same. */
bool sb_llm_weight_tensor(const sb_llm_config *config, sb_llm_role role, int64_t layer, bool bias,
                          char name[SB_LLM_NAME_BYTES], int *rank, int64_t dims[2]);

/** Whether the model has that weight: the family does and, of the head, it is not the embedding's matrix. */
bool sb_llm_has_weight(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role);

/** A matrix [outputs, inputs] of `dtype`, of any strides; `layer` is looked at for weights of layers. The caller releases
 * it. Errors: INVALID_FILE where the tensor is missing, or its extents are not the configuration's (with file, tensor, byte
 * offset and both); those of sb_checkpoint_read. */
sb_status sb_llm_matrix(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role, int64_t layer,
                        sb_dtype dtype, sb_tensor **matrix, sb_error *error);
/** Its bias [outputs], or NULL where there is none. Otherwise as above. */
sb_status sb_llm_matrix_bias(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role,
                             int64_t layer, sb_dtype dtype, sb_tensor **bias, sb_error *error);
/** What a norm multiplies by, in f32, with the 1 of families that add it; and the bias of a LayerNormalization (else
 * NULL), in `dtype`. */
sb_status sb_llm_norm(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role, int64_t layer,
                      sb_dtype dtype, sb_tensor **scale, sb_tensor **bias, sb_error *error);

/** Refuses a checkpoint with tensors that nobody has asked for (UNSUPPORTED): they would belong to a model that this one
 * only looks like. Buffers that are known to mean nothing are left out. */
sb_status sb_llm_check_unused(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_error *error);

#endif
