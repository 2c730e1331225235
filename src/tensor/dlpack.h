/* The inside of DLPack imports. See <invar/dlpack.h> for the contract. */
#ifndef IV_TENSOR_DLPACK_H
#define IV_TENSOR_DLPACK_H

#include <invar/dlpack.h>

#include "tensor/tensor.h"

/** Whether the structure is there and of a version that is understood. Errors: INVALID_ARGUMENT, UNSUPPORTED. */
iv_status iv_dlpack_check(const DLManagedTensorVersioned *managed, iv_error *error);

/** A tensor over the memory of `from`, wherever that is; as iv_tensor_wrap. */
iv_status iv_dlpack_wrap(const DLTensor *from, void (*release)(void *context), void *context,
                         iv_tensor **tensor, iv_error *error);

/** Call the deleter of a DLManagedTensorVersioned, and of a DLManagedTensor. */
void iv_dlpack_release(void *managed);
void iv_dlpack_release_legacy(void *managed);

#endif
