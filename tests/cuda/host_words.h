/* The words of CUDA C++ in the kernels' sources, for the host's C++ compiler: included ahead of each
 * source. Threads of a block that wait for each other are coroutines. */
#ifndef HOST_WORDS_H
#define HOST_WORDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct host_dimensions {
    unsigned x, y, z;
} host_dimensions;
extern host_dimensions threadIdx, blockIdx, blockDim, gridDim;

/** Lets the other threads of the block run up to this barrier. Ends the program with a message in a kernel that is not
 * declared by SB_CUDA_BLOCK_KERNEL, as host_exchange does. */
void host_barrier(void);
/** Replaces `*value` by what thread `source` of the block gave, of the same warp. All threads of the warp take part. */
void host_exchange(void *value, size_t bytes, unsigned source);
/** Begins to copy so many bytes to shared memory (from NULL: zeros), ends a batch of copies, and waits until all but the
 * thread's last `left` batches have arrived. */
void host_begin_copy(void *to, const void *from, unsigned bytes);
void host_end_copies(void);
void host_wait_copies(unsigned left);
/** A kernel, of which each thread runs `body`. */
typedef struct host_kernel {
    const char *name;
    void (*body)(const void *parameters);
    bool meets;                /* whether its threads wait for each other */
    unsigned cluster, threads; /* of a kernel for Hopper: the blocks of a cluster, the threads of a block; else 0 */
} host_kernel;
/** Runs all blocks, of one dimension. */
void host_run_grid(const host_kernel *kernel, const void *parameters, const unsigned grid[3], const unsigned block[3],
                   unsigned shared_bytes);
/** Adds to what define_host_kernels tells a fake. */
void host_define_kernel(const char *name, size_t parameter_bytes, fake_kernel *run);

#if defined(__cplusplus)
}
#endif

#define SB_CUDA_KERNEL(kernel, type, parameters) HOST_KERNEL(kernel, type, parameters, false)
#define SB_CUDA_BLOCK_KERNEL(kernel, type, parameters) HOST_KERNEL(kernel, type, parameters, true)
#define HOST_KERNEL(kernel, type, parameters, meets)                                                                   \
    static void kernel##_body(const type *parameters);                                                                 \
    static void kernel##_thread(const void *given) {                                                                   \
        kernel##_body((const type *)given);                                                                            \
    }                                                                                                                  \
    static void kernel##_run(const void *given, const unsigned grid[3], const unsigned block[3],                       \
                             unsigned shared_bytes) {                                                                  \
        static const host_kernel self = {#kernel, kernel##_thread, meets, 0, 0};                                       \
        host_run_grid(&self, given, grid, block, shared_bytes);                                                        \
    }                                                                                                                  \
    __attribute__((constructor(200))) static void kernel##_define(void) {                                              \
        host_define_kernel(#kernel, sizeof(type), kernel##_run);                                                       \
    }                                                                                                                  \
    static void kernel##_body(const type *parameters)
#define SB_CUDA_FUNCTION static inline
#define SB_CUDA_SHARED static
#define SB_CUDA_BARRIER() host_barrier()
#define SB_CUDA_KEEP_LOOP

#include "host_hopper.h"

#endif
