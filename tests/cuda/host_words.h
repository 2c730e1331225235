/* The words of CUDA C++ in the kernels' sources, for the host's compiler: included ahead of each
 * source. WITH_BARRIERS says whether the source's threads wait for each other, which makes
 * coroutines of them. */
#ifndef HOST_WORDS_H
#define HOST_WORDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"

typedef struct host_dimensions {
    unsigned x, y, z;
} host_dimensions;
extern host_dimensions threadIdx, blockIdx, blockDim, gridDim;

/** Lets the other threads of the block run up to this barrier. */
void host_barrier(void);
/** Replaces `*value` by what the block's thread `source` gave. All threads of the block take part. */
void host_exchange(void *value, size_t bytes, unsigned source);
/** Runs all blocks, of one dimension. */
void host_run_grid(void (*body)(const void *parameters), const void *parameters, bool barriers, const unsigned grid[3],
                   const unsigned block[3]);
/** Adds to what define_host_kernels tells a fake. */
void host_define_kernel(const char *name, size_t parameter_bytes, fake_kernel *run);

#define SB_CUDA_KERNEL(kernel, type, parameters)                                                                       \
    static void kernel##_body(const type *parameters);                                                                 \
    static void kernel##_thread(const void *given) {                                                                   \
        kernel##_body(given);                                                                                          \
    }                                                                                                                  \
    static void kernel##_run(const void *given, const unsigned grid[3], const unsigned block[3]) {                     \
        host_run_grid(kernel##_thread, given, WITH_BARRIERS, grid, block);                                             \
    }                                                                                                                  \
    __attribute__((constructor(200))) static void kernel##_define(void) {                                              \
        host_define_kernel(#kernel, sizeof(type), kernel##_run);                                                       \
    }                                                                                                                  \
    static void kernel##_body(const type *parameters)
#define SB_CUDA_FUNCTION static inline
#define SB_CUDA_SHARED static
#define SB_CUDA_BARRIER() host_barrier()
#define SB_CUDA_KEEP_LOOP

#endif
