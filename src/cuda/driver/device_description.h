/* What can be told of a device that is not in use. */
#ifndef SB_CUDA_DRIVER_DEVICE_DESCRIPTION_H
#define SB_CUDA_DRIVER_DEVICE_DESCRIPTION_H

#include <samebit/device.h>

#include "cuda/driver/device.h"

/* A description with the texts that it points to. */
typedef struct sb_cuda_description {
    sb_device_description description;
    char name[SB_CUDA_NAME_BYTES];
    char kernels[64];
    char why[SB_ERROR_MESSAGE_BYTES];
} sb_cuda_description;

/** Describes device `index`, in *entry, which does not move afterwards.
 * One that does not answer is described as far as it goes. */
void sb_cuda_describe_device(const sb_cuda_driver *driver, int index, sb_cuda_description *entry);

#endif
