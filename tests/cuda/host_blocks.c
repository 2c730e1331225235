/* Running the kernels' sources on the host; host_words.h gives the words of CUDA C++ that they use a meaning. */
#include "host_blocks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

host_dimensions threadIdx, blockIdx, blockDim, gridDim;

#define STACK_BYTES (64 * 1024)
/* Stacks at multiples of a power of 2 would share the same few lines of the caches. */
#define STACK_STEP (STACK_BYTES + 9 * 64)

static struct {
    const host_kernel *kernel;
    const void *parameters;
    coroutine scheduler;
    host_thread threads[HOST_MOST_THREADS], *current;
    host_block blocks[HOST_MOST_BLOCKS];
    unsigned block_count, thread_count, alive;
    char *stacks; /* kept from grid to grid */
    unsigned stack_count;
    uint64_t random;
} state;

host_schedule host_now;
host_plant host_planted;
static const host_schedule *chosen;
static uint64_t launches;

void host_set_schedule(const host_schedule *schedule) {
    chosen = schedule;
}

void host_set_plant(host_plant plant) {
    host_planted = plant;
}

/* Whatever a device may do: another order for each launch, the same ones in each run of a program. */
static void choose_schedule(void) {
    launches++;
    host_now = (host_schedule){.name = "random",
                               .prompt_loads = launches % 2 != 0,
                               .prompt_products = launches % 3 == 0,
                               .prompt_stores = launches % 5 == 0,
                               .partial_loads = launches % 7 == 0,
                               .order = HOST_ANY_ORDER,
                               .turns = HOST_SHUFFLED_WARPS,
                               .hurry = (uint32_t)(launches % 4 * 40),
                               .seed = launches};
    if (chosen != NULL)
        host_now = *chosen;
    state.random = host_now.seed * 0x9e3779b97f4a7c15u + 1;
}

uint32_t host_random(uint32_t below) {
    state.random ^= state.random << 13;
    state.random ^= state.random >> 7;
    state.random ^= state.random << 17;
    return (uint32_t)(state.random >> 32) % below;
}

host_thread *host_current(void) {
    return state.current;
}

unsigned host_current_number(void) {
    return (unsigned)(state.current - state.threads);
}

host_block *host_block_of(unsigned rank) {
    return &state.blocks[rank];
}

unsigned host_cluster_size(void) {
    return state.block_count;
}

const char *host_kernel_name(void) {
    return state.kernel->name;
}

/* Under which schedule it happened, where there is one. */
static void end_message(void) {
    if (state.kernel->cluster > 0)
        fprintf(stderr, " (schedule \"%s\", seed %llu)", host_now.name, (unsigned long long)host_now.seed);
    fprintf(stderr, "\n");
}

void host_refuse(const char *format, ...) {
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "kernel %s, block %u, thread %u: %s", state.kernel->name, blockIdx.x, threadIdx.x, what);
    end_message();
    abort();
}

/* ---- waiting ---- */

void host_wait(const host_condition *condition) {
    if (condition->holds(condition))
        return;
    host_thread *thread = state.current;
    thread->condition = *condition;
    thread->waits = true;
    coroutine_switch(&thread->coroutine, &state.scheduler);
}

static bool has_met(const host_condition *condition) {
    const host_meeting *meeting = condition->object;
    return meeting->times > condition->value;
}

static const char *const meetings[] = {"the block's barrier", "the cluster's barrier", "the other lanes of its warp",
                                       "a named barrier"};

static void describe_meeting(const host_condition *condition, char *text, size_t bytes) {
    const host_meeting *meeting = condition->object;
    snprintf(text, bytes, "%s, where %u are", meetings[condition->place], meeting->arrived);
}

void host_meet(host_meeting *meeting, unsigned count, host_meeting_kind kind) {
    const host_condition all = {has_met, describe_meeting, meeting, meeting->times, kind};
    if (++meeting->arrived < count) {
        host_wait(&all);
        return;
    }
    meeting->arrived = 0;
    meeting->times++;
}

unsigned host_warp_size(const host_thread *thread) {
    unsigned first = thread->index / 32 * 32;
    return blockDim.x - first < 32 ? blockDim.x - first : 32;
}

void host_meet_warp(void) {
    host_thread *thread = state.current;
    host_meet(&thread->block->warps[thread->index / 32], host_warp_size(thread), HOST_WARP);
}

static void refuse_meeting(void) {
    if (!state.kernel->meets)
        host_refuse("its threads meet at a barrier or exchange values: declare it by SB_CUDA_BLOCK_KERNEL");
}

void host_barrier(void) {
    refuse_meeting();
    host_meet(&state.current->block->all, blockDim.x, HOST_BLOCK);
}

/* Exchanges take places that alternate: whoever writes to one again has met all others of its warp at the meeting of
 * the exchange between, which they came to after reading. */
void host_exchange(void *value, size_t bytes, unsigned source) {
    static uint64_t given[2][HOST_MOST_THREADS];
    refuse_meeting();
    host_thread *thread = state.current;
    if (source / 32 != thread->index / 32)
        host_refuse("it asks for a value of thread %u, of another warp", source);
    uint64_t *place = given[thread->exchanges++ % 2] + (host_current_number() - thread->index);
    memcpy(&place[thread->index], value, bytes);
    host_meet_warp();
    memcpy(value, &place[source], bytes);
}

const char *host_exchange_all(const void *value, size_t bytes) {
    static char given[2][HOST_MOST_THREADS * HOST_GIVEN_BYTES];
    refuse_meeting();
    host_thread *thread = state.current;
    if (host_warp_size(thread) < 32)
        host_refuse("it has instructions of whole warps, and a warp that is not whole");
    unsigned first = host_current_number() - thread->index % 32;
    char *place = given[thread->exchanges++ % 2] + (size_t)first * HOST_GIVEN_BYTES;
    memcpy(place + thread->index % 32 * HOST_GIVEN_BYTES, value, bytes);
    host_meet_warp();
    return place;
}

/* ---- turns ---- */

static void run_thread(void) {
    state.kernel->body(state.parameters);
    host_thread *thread = state.current;
    host_asynchronous_end_thread();
    if (state.kernel->cluster > 0)
        host_engines_end_thread();
    thread->ended = true;
    thread->block->threads--;
    state.alive--;
    coroutine_switch(&thread->coroutine, &state.scheduler);
    abort(); /* nobody comes back */
}

/* Whether the thread could go on; it has stopped again. */
static bool take_turn(host_thread *thread) {
    if (thread->ended || (thread->waits && !thread->condition.holds(&thread->condition)))
        return false;
    thread->waits = false;
    state.current = thread;
    threadIdx = (host_dimensions){thread->index, 0, 0};
    blockIdx = (host_dimensions){thread->block->index, 0, 0};
    coroutine_switch(&state.scheduler, &thread->coroutine);
    return true;
}

static bool take_turns_in_shuffled_warps(void) {
    unsigned warps[HOST_MOST_THREADS], count = (state.thread_count + 31) / 32;
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        unsigned other = host_random(i + 1);
        warps[i] = warps[other];
        warps[other] = i;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned flip = host_random(2) * 31;
        for (unsigned lane = 0; lane < 32; lane++) {
            unsigned thread = warps[i] * 32 + (lane ^ flip);
            any |= thread < state.thread_count && take_turn(&state.threads[thread]);
        }
    }
    return any;
}

static bool take_turns_of_block(unsigned rank) {
    bool any = false;
    for (unsigned i = 0; i < blockDim.x; i++)
        any |= take_turn(&state.threads[rank * blockDim.x + i]);
    return any;
}

static bool take_turns_block_by_block(void) {
    for (unsigned rank = 0; rank < state.block_count; rank++) {
        if (take_turns_of_block(rank))
            return true;
    }
    return false;
}

/* Without a schedule in descending order, so that a kernel that counts on another shows. */
static bool take_turns(void) {
    host_turns turns = state.kernel->cluster > 0 ? host_now.turns : HOST_DESCENDING;
    bool any = false;
    if (turns == HOST_SHUFFLED_WARPS)
        return take_turns_in_shuffled_warps();
    if (turns == HOST_BLOCK_BY_BLOCK)
        return take_turns_block_by_block();
    for (unsigned i = 0; i < state.thread_count; i++)
        any |= take_turn(&state.threads[turns == HOST_ASCENDING ? i : state.thread_count - 1 - i]);
    return any;
}

/* What every thread waits for, neighbours that wait for the same together. */
_Noreturn static void refuse_deadlock(void) {
    char text[200] = "", next[200];
    unsigned first = 0;
    fprintf(stderr, "kernel %s: no thread can go on", state.kernel->name);
    end_message();
    for (unsigned i = 0; i <= state.thread_count; i++) {
        const host_thread *thread = &state.threads[i < state.thread_count ? i : 0], *run = &state.threads[first];
        if (thread->ended)
            snprintf(next, sizeof next, "ended");
        else {
            size_t used = (size_t)snprintf(next, sizeof next, "waiting for ");
            thread->condition.describe(&thread->condition, next + used, sizeof next - used);
        }
        if (i > 0 && (i == state.thread_count || thread->block != run->block || strcmp(text, next) != 0)) {
            fprintf(stderr, "  block %u, threads %u to %u: %s\n", run->block->index, run->index,
                    state.threads[i - 1].index, text);
            first = i;
        }
        memcpy(text, next, sizeof text);
    }
    abort();
}

static void run_threads(void) {
    while (state.alive > 0) {
        bool any = take_turns();
        bool works = state.kernel->cluster > 0 && (!any || host_random(256) < host_now.hurry);
        if (works)
            any |= host_engines_work();
        if (!any && state.alive > 0)
            refuse_deadlock();
    }
}

/* ---- grids ---- */

static void make_stacks(unsigned count) {
    if (count <= state.stack_count)
        return;
    free(state.stacks);
    state.stacks = malloc((size_t)count * STACK_STEP);
    if (state.stacks == NULL)
        abort();
    state.stack_count = count;
}

static void prepare_block(unsigned rank, unsigned first_index, uint32_t shared_bytes) {
    host_block *block = &state.blocks[rank];
    char *shared = block->shared;
    *block = (host_block){.index = first_index + rank, .rank = rank, .threads = blockDim.x, .shared = shared};
    block->shared_end = HOST_DYNAMIC_SHARED + shared_bytes;
    for (unsigned i = 0; i < blockDim.x; i++) {
        unsigned number = rank * blockDim.x + i;
        host_thread *thread = &state.threads[number];
        thread->block = block;
        thread->index = i;
        thread->exchanges = 0;
        thread->waits = thread->ended = false;
        coroutine_prepare(&thread->coroutine, run_thread, state.stacks + (size_t)number * STACK_STEP, STACK_BYTES);
    }
}

/* The blocks from `first_index` on, which are there together. */
static void run_cluster(unsigned first_index, unsigned blocks, uint32_t shared_bytes) {
    state.block_count = blocks;
    state.thread_count = state.alive = blocks * blockDim.x;
    for (unsigned rank = 0; rank < blocks; rank++)
        prepare_block(rank, first_index, shared_bytes);
    if (state.kernel->cluster > 0 || shared_bytes > 0)
        host_windows_begin();
    if (state.kernel->cluster > 0)
        host_engines_begin();
    run_threads();
    if (state.kernel->cluster > 0)
        host_engines_end();
}

static void refuse_grid(const unsigned grid[3], const unsigned block[3], unsigned cluster, unsigned shared_bytes) {
    const host_kernel *kernel = state.kernel;
    if (grid[1] * grid[2] * block[1] * block[2] != 1 || block[0] * cluster > HOST_MOST_THREADS ||
        cluster > HOST_MOST_BLOCKS)
        host_refuse("it has blocks of more than one dimension, or of more than 1024 threads");
    if (kernel->cluster > 0 && (grid[0] % cluster != 0 || block[0] != kernel->threads))
        host_refuse("it is launched with %u blocks of %u threads: clusters are of %u blocks of %u", grid[0], block[0],
                    cluster, kernel->threads);
    if (shared_bytes > HOST_SHARED_BYTES - 2 * 1024)
        host_refuse("%u bytes of dynamic shared memory leave less than 1024 of what a block may have", shared_bytes);
}

/* Clusters in descending order, as threads. */
void host_run_grid(const host_kernel *kernel, const void *parameters, const unsigned grid[3], const unsigned block[3],
                   unsigned shared_bytes) {
    unsigned cluster = kernel->cluster > 0 ? kernel->cluster : 1;
    state.kernel = kernel;
    state.parameters = parameters;
    gridDim = (host_dimensions){grid[0], 1, 1};
    blockDim = (host_dimensions){block[0], 1, 1};
    refuse_grid(grid, block, cluster, shared_bytes);
    if (kernel->meets)
        make_stacks(cluster * block[0]);
    if (kernel->cluster > 0)
        choose_schedule();
    for (unsigned index = grid[0]; index > 0; index -= cluster) {
        if (kernel->meets) {
            run_cluster(index - cluster, cluster, shared_bytes);
            continue;
        }
        blockIdx = (host_dimensions){index - 1, 0, 0};
        for (unsigned thread = 0; thread < block[0]; thread++) {
            threadIdx = (host_dimensions){thread, 0, 0};
            kernel->body(parameters);
        }
    }
}
