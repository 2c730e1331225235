/* The kernels' own sources on the host: for the fake driver to run, so that what they compute can
 * be held to the CPU's loops without a GPU. */
#ifndef HOST_KERNELS_H
#define HOST_KERNELS_H

#include "cuda/driver/image.h"
#include "fake_cuda.h"

/* All modules of src/cuda, with whatever kernels the host has. */
extern const sb_cuda_images host_images;

/** Tells the fake about all kernels of src/cuda. */
void define_host_kernels(const fake_cuda_control *fake);

#endif
