/* Running the kernels' sources on the host; host_words.h gives the words of CUDA C++ that they use a meaning.
 *
 * Threads of a block are coroutines that take turns at barriers: each runs up to the next one. Blocks run one after the
 * other, in descending order, so that a kernel that counts on another order shows. Shared memory is static, and full of
 * what the block before has left. */
#include "host_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coroutine.h"
#include "host_words.h"

host_dimensions threadIdx, blockIdx, blockDim, gridDim;

#define MOST_THREADS 1024
#define STACK_BYTES (64 * 1024)
/* Stacks at multiples of a power of 2 would share the same few lines of the caches. */
#define STACK_STEP (STACK_BYTES + 9 * 64)

static struct {
    coroutine scheduler, threads[MOST_THREADS];
    char *stacks; /* kept from grid to grid */
    unsigned stack_count;
    unsigned exchanges[MOST_THREADS];
    const char *name;
    void (*body)(const void *parameters);
    const void *parameters;
    bool barriers; /* whether threads are coroutines */
    unsigned current;
    unsigned waiting; /* how many threads have come to the barrier that the block runs up to */
} block_state;

static void start_thread(unsigned thread) {
    block_state.current = thread;
    threadIdx = (host_dimensions){thread, 0, 0};
}

/* Nobody could go on after what a kernel does wrong here. */
static void refuse(const char *what) {
    fprintf(stderr, "kernel %s, block %u, thread %u: %s\n", block_state.name, blockIdx.x, threadIdx.x, what);
    abort();
}

/* Between two barriers threads run in descending order. All threads must meet at each barrier. */
void host_barrier(void) {
    if (!block_state.barriers)
        refuse("its threads meet at a barrier or exchange values: declare it by SB_CUDA_BLOCK_KERNEL");
    unsigned thread = block_state.current, next = thread > 0 ? thread - 1 : blockDim.x - 1;
    block_state.waiting++;
    if (thread == 0 && block_state.waiting != blockDim.x)
        refuse("some threads came to a barrier that others have passed by");
    if (thread == 0)
        block_state.waiting = 0;
    start_thread(next);
    if (next != thread)
        coroutine_switch(&block_state.threads[thread], &block_state.threads[next]);
}

/* Exchanges take places that alternate: whoever writes to one again has met all others at the barrier of the exchange
 * between, which they came to after reading. */
void host_exchange(void *value, size_t bytes, unsigned source) {
    static uint64_t given[2][MOST_THREADS];
    unsigned thread = block_state.current, place = block_state.exchanges[thread]++ % 2;
    memcpy(&given[place][thread], value, bytes);
    host_barrier();
    memcpy(value, &given[place][source], bytes);
}

static void run_thread(void) {
    block_state.body(block_state.parameters);
    unsigned thread = block_state.current;
    if (block_state.waiting != 0)
        refuse("it ends while other threads wait at a barrier");
    if (thread > 0)
        start_thread(thread - 1);
    coroutine_switch(&block_state.threads[thread],
                     thread > 0 ? &block_state.threads[thread - 1] : &block_state.scheduler);
    abort(); /* nobody comes back */
}

static void run_block_with_barriers(unsigned count) {
    for (unsigned thread = 0; thread < count; thread++) {
        block_state.exchanges[thread] = 0;
        coroutine_prepare(&block_state.threads[thread], run_thread, block_state.stacks + (size_t)thread * STACK_STEP,
                          STACK_BYTES);
    }
    block_state.waiting = 0;
    start_thread(count - 1);
    coroutine_switch(&block_state.scheduler, &block_state.threads[count - 1]);
}

static void make_stacks(unsigned count) {
    if (count <= block_state.stack_count)
        return;
    free(block_state.stacks);
    block_state.stacks = malloc((size_t)count * STACK_STEP);
    if (block_state.stacks == NULL)
        abort();
    block_state.stack_count = count;
}

void host_run_grid(const char *name, void (*body)(const void *parameters), const void *parameters, bool barriers,
                   const unsigned grid[3], const unsigned block[3]) {
    block_state.name = name;
    block_state.barriers = barriers;
    if (grid[1] * grid[2] * block[1] * block[2] != 1 || block[0] > MOST_THREADS)
        refuse("it has blocks of more than one dimension, or of more than 1024 threads");
    gridDim = (host_dimensions){grid[0], 1, 1};
    blockDim = (host_dimensions){block[0], 1, 1};
    block_state.body = body;
    block_state.parameters = parameters;
    if (barriers)
        make_stacks(block[0]);
    for (unsigned index = grid[0]; index-- > 0;) {
        blockIdx = (host_dimensions){index, 0, 0};
        for (unsigned thread = 0; thread < block[0] && !barriers; thread++) {
            threadIdx = (host_dimensions){thread, 0, 0};
            body(parameters);
        }
        if (barriers)
            run_block_with_barriers(block[0]);
    }
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
