/* What nvcc reads before every kernel: it includes cuda_runtime.h, and finds this one first. The toolkit's own has the runtime's
 * interface, textures and most of C++'s library, 36,000 lines which kernels use nothing of and which took 0.25 of the 0.4 seconds that an
 * empty source took. These are the toolkit's device functions, and what else numerics/scalar.h calls. The machine code is the same;
 * cmake/cuda.cmake tries whether the toolkit's headers can be had in this way. */
#ifndef SB_CUDA_PREAMBLE_CUDA_RUNTIME_H
#define SB_CUDA_PREAMBLE_CUDA_RUNTIME_H

#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#define __CUDA_RUNTIME_API_H__ /* as if its header had been read */

#include <string.h>

#include <builtin_types.h>
#include <device_launch_parameters.h>
#include <vector_functions.h>

extern "C" {
extern __host__ __device__ __device_builtin__ __cudart_builtin__ void *memcpy(void *, const void *, size_t) throw();
extern __host__ __device__ __device_builtin__ __cudart_builtin__ void *memset(void *, int, size_t) throw();
extern __host__ __device__ __device_builtin__ float floorf(float) throw();
extern __host__ __device__ __device_builtin__ float ceilf(float) throw();
extern __host__ __device__ __device_builtin__ float fmodf(float, float) throw();
extern __host__ __device__ __device_builtin__ double floor(double) throw();
extern __host__ __device__ __device_builtin__ double ceil(double) throw();
extern __host__ __device__ __device_builtin__ double fmod(double, double) throw();
}

#include <crt/device_functions.h>

#endif
