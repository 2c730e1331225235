/* The kernels' sources compiled for the host, with the words of CUDA C++ that they use given a
 * meaning here.
 *
 * Threads of a block are coroutines that take turns at barriers: each runs up to the next one.
 * Blocks run one after the other, in descending order, so that a kernel that counts on another
 * order shows. Shared memory is static, and full of what the block before has left. */
#include "host_kernels.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "cuda/kernels/parameters.h"

typedef struct dimensions {
    unsigned x, y, z;
} dimensions;
static dimensions threadIdx, blockIdx, blockDim, gridDim;

#define STACK_BYTES (64 * 1024)
#define MOST_THREADS 1024

static struct {
    ucontext_t scheduler, threads[MOST_THREADS];
    char *stacks;
    bool finished[MOST_THREADS];
    void (*body)(const void *parameters);
    const void *parameters;
    unsigned current;
    bool waits; /* the thread has come to a barrier, not to its end */
} block_state;

static void barrier(void) {
    unsigned thread = block_state.current;
    block_state.waits = true;
    swapcontext(&block_state.threads[thread], &block_state.scheduler);
}

static void run_thread(void) {
    block_state.body(block_state.parameters);
    block_state.waits = false;
}

/* Between two barriers threads run in descending order. All threads must meet at each barrier. */
static void run_block_with_barriers(unsigned count) {
    for (unsigned thread = 0; thread < count; thread++) {
        getcontext(&block_state.threads[thread]);
        block_state.threads[thread].uc_stack.ss_sp =
            block_state.stacks + (size_t)thread * STACK_BYTES;
        block_state.threads[thread].uc_stack.ss_size = STACK_BYTES;
        block_state.threads[thread].uc_link = &block_state.scheduler;
        makecontext(&block_state.threads[thread], run_thread, 0);
    }
    for (bool all_wait = true; all_wait;) {
        unsigned waiting = 0;
        for (unsigned thread = count; thread-- > 0;) {
            threadIdx = (dimensions){thread, 0, 0};
            block_state.current = thread;
            swapcontext(&block_state.scheduler, &block_state.threads[thread]);
            waiting += block_state.waits;
        }
        if (waiting != 0 && waiting != count)
            abort();
        all_wait = waiting > 0;
    }
}

static void run_grid(void (*body)(const void *parameters), const void *parameters, bool barriers,
                     const unsigned grid[3], const unsigned block[3]) {
    if (grid[1] * grid[2] * block[1] * block[2] != 1 || block[0] > MOST_THREADS)
        abort();
    gridDim = (dimensions){grid[0], 1, 1};
    blockDim = (dimensions){block[0], 1, 1};
    block_state.body = body;
    block_state.parameters = parameters;
    if (barriers)
        block_state.stacks = malloc((size_t)block[0] * STACK_BYTES);
    for (unsigned index = grid[0]; index-- > 0;) {
        blockIdx = (dimensions){index, 0, 0};
        for (unsigned thread = 0; thread < block[0] && !barriers; thread++) {
            threadIdx = (dimensions){thread, 0, 0};
            body(parameters);
        }
        if (barriers)
            run_block_with_barriers(block[0]);
    }
    free(block_state.stacks);
    block_state.stacks = NULL;
}

/* ---- the words of kernel.cuh ---- */

static struct {
    const char *name;
    size_t parameter_bytes;
    fake_kernel *run;
} defined[2048];
static int defined_count;

static void define(const char *name, size_t parameter_bytes, fake_kernel *run) {
    if (defined_count == (int)(sizeof defined / sizeof defined[0]))
        abort();
    defined[defined_count].name = name;
    defined[defined_count].parameter_bytes = parameter_bytes;
    defined[defined_count++].run = run;
}

#define IV_CUDA_KERNEL(kernel, type, parameters)                                                   \
    static void kernel##_body(const type *parameters);                                             \
    static void kernel##_thread(const void *given) {                                               \
        kernel##_body(given);                                                                      \
    }                                                                                              \
    static void kernel##_run(const void *given, const unsigned grid[3], const unsigned block[3]) { \
        run_grid(kernel##_thread, given, WITH_BARRIERS, grid, block);                              \
    }                                                                                              \
    __attribute__((constructor)) static void kernel##_define(void) {                               \
        define(#kernel, sizeof(type), kernel##_run);                                               \
    }                                                                                              \
    static void kernel##_body(const type *parameters)
#define IV_CUDA_FUNCTION static inline
#define IV_CUDA_SHARED static
#define IV_CUDA_BARRIER() barrier()
#define IV_CUDA_KEEP_LOOP

#define WITH_BARRIERS false
#include "cuda/kernels/binary_float.cu"
#undef KERNELS
#include "cuda/kernels/copy.cu"
#include "cuda/kernels/elementwise_integer.cu"
#undef KERNELS
#include "cuda/kernels/unary_bf16.cu"
#undef KERNEL
#include "cuda/kernels/unary_f16.cu"
#undef KERNEL
#include "cuda/kernels/unary_f32.cu"
#undef KERNEL
#include "cuda/kernels/unary_f64.cu"
#undef KERNEL
#undef WITH_BARRIERS
#define WITH_BARRIERS true
#include "cuda/kernels/sum.cu"

void define_host_kernels(const fake_cuda_control *fake) {
    for (int i = 0; i < defined_count; i++)
        fake->define_kernel(defined[i].name, defined[i].parameter_bytes, defined[i].run);
}
