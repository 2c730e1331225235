/* Tensors of f16 and bf16 as the copy engine of Hopper sees them. */
#ifndef SB_CUDA_CONTRACTION_TENSOR_MAP_H
#define SB_CUDA_CONTRACTION_TENSOR_MAP_H

#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/driver/device.h"

/* Extents and steps from one element to the next, of which the first is 1, and what is fetched at once. */
typedef struct sb_tensor_boxes {
    unsigned rank; /* 4 or 5 */
    const void *data;
    int64_t extents[5], steps[5];
    int box[5];
} sb_tensor_boxes;

/** Makes a map of 128-byte swizzled boxes, zeros where these reach over the tensor. Addresses are multiples of 16 bytes, and so are steps
 * between elements that there are (sb_gemm16_is_step). The device is entered. Errors: DEVICE. */
sb_status sb_tensor_map_encode(sb_cuda_device *device, sb_dtype dtype, const sb_tensor_boxes *boxes, sb_tensor_map *map,
                               sb_error *error);

#endif
