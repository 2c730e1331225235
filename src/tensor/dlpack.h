/* The inside of DLPack imports. See <samebit/dlpack.h> for the contract. */
#ifndef SB_TENSOR_DLPACK_H
#define SB_TENSOR_DLPACK_H

#include <samebit/dlpack.h>

#include "tensor/tensor.h"

/** Whether the structure is there and of a version that is understood. Errors: INVALID_ARGUMENT, UNSUPPORTED. */
sb_status sb_dlpack_check(const DLManagedTensorVersioned *managed, sb_error *error);

/** A tensor over the memory of `from`, wherever that is; as sb_tensor_wrap. `flags` are those of the structure. */
sb_status sb_dlpack_wrap(const DLTensor *from, uint64_t flags, void (*release)(void *context), void *context,
                         sb_tensor **tensor, sb_error *error);

/** Call the deleter of a DLManagedTensorVersioned, and of a DLManagedTensor. */
void sb_dlpack_release(void *managed);
void sb_dlpack_release_legacy(void *managed);

#endif
