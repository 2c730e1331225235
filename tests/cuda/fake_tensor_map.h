/* What the fake driver writes into a tensor map, for the kernels that run on the host. */
#ifndef FAKE_TENSOR_MAP_H
#define FAKE_TENSOR_MAP_H

#include <stdint.h>

#define FAKE_TENSOR_MAP_MARK 0x5b7e4507u

/* A tensor of 16-bit elements with boxes of at most 64 elements of its first dimension. A map of pixels has, instead of
 * the rest of a box, a row of pixels: of channels, width, height and samples. */
typedef struct fake_tensor_map {
    uint32_t mark, rank;
    uint64_t address;
    uint64_t strides[4]; /* bytes from one to the next of dimension 1, … */
    uint64_t extents[5];
    uint16_t box[5];
    uint8_t swizzle; /* CUtensorMapSwizzle */
    uint8_t is_pixels;
    uint16_t pixels;
    uint8_t element_strides[2]; /* of width and height */
    int8_t lower[2], upper[2];  /* corners */
} fake_tensor_map;

#endif
