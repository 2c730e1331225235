#ifndef SB_CUDA_CONTRACTION_HOPPER_CODE_H
#define SB_CUDA_CONTRACTION_HOPPER_CODE_H

#include "cuda/driver/device.h"

/** Whether a device has kernels of Hopper's own instructions. */
bool sb_gemm16_has_hopper_code(sb_cuda_device *device);

#endif
