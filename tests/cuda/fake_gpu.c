/* A fake driver that knows all kernels of src/cuda/kernels from the start. */
#include "host_kernels.h"

fake_cuda_get fake_cuda_get_control;

__attribute__((constructor)) static void know_kernels(void) {
    define_host_kernels(fake_cuda_get_control());
}
