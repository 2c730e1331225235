/* The kernels' own sources on the host: for the fake driver to run, so that what they compute can
 * be held to the CPU's loops without a GPU. */
#ifndef HOST_KERNELS_H
#define HOST_KERNELS_H

#include "fake_cuda.h"

/** Tells the fake about all kernels of src/cuda/kernels. */
void define_host_kernels(const fake_cuda_control *fake);

#endif
