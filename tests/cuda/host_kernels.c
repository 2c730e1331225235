/* Running the kernels' sources on the host; host_words.h gives the words of CUDA C++ that they use
 * a meaning.
 *
 * Threads of a block are coroutines that take turns at barriers: each runs up to the next one.
 * Blocks run one after the other, in descending order, so that a kernel that counts on another
 * order shows. Shared memory is static, and full of what the block before has left. */
#include "host_kernels.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "host_words.h"

host_dimensions threadIdx, blockIdx, blockDim, gridDim;

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

void host_barrier(void) {
    unsigned thread = block_state.current;
    block_state.waits = true;
    swapcontext(&block_state.threads[thread], &block_state.scheduler);
}

void host_exchange(void *value, size_t bytes, unsigned source) {
    static uint64_t given[MOST_THREADS];
    memcpy(&given[block_state.current], value, bytes);
    host_barrier();
    memcpy(value, &given[source], bytes);
    host_barrier();
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
            threadIdx = (host_dimensions){thread, 0, 0};
            block_state.current = thread;
            swapcontext(&block_state.scheduler, &block_state.threads[thread]);
            waiting += block_state.waits;
        }
        if (waiting != 0 && waiting != count)
            abort();
        all_wait = waiting > 0;
    }
}

void host_run_grid(void (*body)(const void *parameters), const void *parameters, bool barriers,
                     const unsigned grid[3], const unsigned block[3]) {
    if (grid[1] * grid[2] * block[1] * block[2] != 1 || block[0] > MOST_THREADS)
        abort();
    gridDim = (host_dimensions){grid[0], 1, 1};
    blockDim = (host_dimensions){block[0], 1, 1};
    block_state.body = body;
    block_state.parameters = parameters;
    if (barriers)
        block_state.stacks = malloc((size_t)block[0] * STACK_BYTES);
    for (unsigned index = grid[0]; index-- > 0;) {
        blockIdx = (host_dimensions){index, 0, 0};
        for (unsigned thread = 0; thread < block[0] && !barriers; thread++) {
            threadIdx = (host_dimensions){thread, 0, 0};
            body(parameters);
        }
        if (barriers)
            run_block_with_barriers(block[0]);
    }
    free(block_state.stacks);
    block_state.stacks = NULL;
}

static struct {
    const char *name;
    size_t parameter_bytes;
    fake_kernel *run;
} defined[8192];
static int defined_count;

void host_define_kernel(const char *name, size_t parameter_bytes, fake_kernel *run) {
    if (defined_count == (int)(sizeof defined / sizeof defined[0]))
        abort();
    defined[defined_count].name = name;
    defined[defined_count].parameter_bytes = parameter_bytes;
    defined[defined_count++].run = run;
}

void define_host_kernels(const fake_cuda_control *fake) {
    for (int i = 0; i < defined_count; i++)
        fake->define_kernel(defined[i].name, defined[i].parameter_bytes, defined[i].run);
}
