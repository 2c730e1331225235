/* A fake driver that knows all kernels of src/cuda from the start, and guards its memory unless FAKE_CUDA_GUARD is
 * set to nothing. */
#include <stdlib.h>

#include "host_kernels.h"

fake_cuda_get fake_cuda_get_control;

__attribute__((constructor)) static void know_kernels(void) {
    setenv("FAKE_CUDA_GUARD", "1", 0);
    define_host_kernels(fake_cuda_get_control());
}
