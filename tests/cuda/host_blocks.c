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

enum { WARPS = HOST_MOST_THREADS / 32 };

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
    /* A bit for each thread: whether it may be able to go on, and whether it is to be woken by host_wake_watching. */
    uint32_t to_ask[WARPS], watching[WARPS];
    /* The round: its warps in order and which way each goes; whose turn it is, and its lanes that have not had theirs. */
    struct {
        unsigned warps[WARPS], count, place;
        bool descends[WARPS], any;
        uint32_t lanes;
    } round;
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
    return state.current->number;
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

static void wake(unsigned first, unsigned count) {
    for (unsigned end = first + count; first < end;) {
        unsigned lane = first % 32, lanes = 32 - lane < end - first ? 32 - lane : end - first;
        state.to_ask[first / 32] |= UINT32_MAX >> (32 - lanes) << lane;
        first += lanes;
    }
}

void host_wake_watching(void) {
    for (unsigned warp = 0; warp < WARPS; warp++)
        state.to_ask[warp] |= state.watching[warp];
}

static void give_turn(coroutine *from);

/* Until the condition holds, which it does not yet. */
static void stop(const host_condition *condition) {
    host_thread *thread = state.current;
    thread->condition = *condition;
    thread->waits = true;
    state.to_ask[thread->number / 32] &= ~(1u << thread->number % 32);
    give_turn(&thread->coroutine);
}

void host_wait(const host_condition *condition) {
    if (condition->holds(condition))
        return;
    const host_thread *thread = state.current;
    uint32_t *watching = &state.watching[thread->number / 32], lane = 1u << thread->number % 32;
    *watching |= lane;
    stop(condition);
    *watching &= ~lane;
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

/* Whether the thread that comes is the last of so many. */
static bool is_last(host_meeting *meeting, unsigned count) {
    if (++meeting->arrived < count)
        return false;
    meeting->arrived = 0;
    meeting->times++;
    return true;
}

void host_meet(host_meeting *meeting, unsigned count, host_meeting_kind kind) {
    const host_condition all = {has_met, describe_meeting, meeting, meeting->times, kind};
    if (is_last(meeting, count))
        host_wake_watching();
    else
        host_wait(&all);
}

/* The same of the `count` threads from number `first` on. Nobody else comes to such a meeting, and they do so by this function
 * alone: so they need not be watched. */
static void meet_neighbours(host_meeting *meeting, unsigned first, unsigned count, host_meeting_kind kind) {
    const host_condition all = {has_met, describe_meeting, meeting, meeting->times, kind};
    if (is_last(meeting, count))
        wake(first, count);
    else
        stop(&all);
}

unsigned host_warp_size(const host_thread *thread) {
    unsigned first = thread->index / 32 * 32;
    return blockDim.x - first < 32 ? blockDim.x - first : 32;
}

void host_meet_warp(void) {
    const host_thread *thread = state.current;
    meet_neighbours(&thread->block->warps[thread->index / 32], thread->number - thread->index % 32,
                    host_warp_size(thread), HOST_WARP);
}

static void refuse_meeting(void) {
    if (!state.kernel->meets)
        host_refuse("its threads meet at a barrier or exchange values: declare it by SB_CUDA_BLOCK_KERNEL");
}

void host_barrier(void) {
    refuse_meeting();
    host_thread *thread = state.current;
    meet_neighbours(&thread->block->all, thread->number - thread->index, blockDim.x, HOST_BLOCK);
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
    give_turn(&thread->coroutine);
    abort(); /* nobody comes back */
}

static bool can_go_on(const host_thread *thread) {
    return !thread->ended && (!thread->waits || thread->condition.holds(&thread->condition));
}

/* The next thread of the warp whose turn it is that can go on; the others have had their turn. */
static host_thread *next_of_warp(void) {
    unsigned warp = state.round.warps[state.round.place];
    bool descends = state.round.descends[state.round.place];
    uint32_t lanes;
    while ((lanes = state.to_ask[warp] & state.round.lanes) != 0) {
        unsigned lane = (unsigned)(descends ? 31 - __builtin_clz(lanes) : __builtin_ctz(lanes));
        uint32_t one = 1u << lane;
        host_thread *thread = &state.threads[warp * 32 + lane];
        state.round.lanes = descends ? one - 1 : ~(one | (one - 1));
        if (can_go_on(thread))
            return thread;
        state.to_ask[warp] &= ~one;
    }
    return NULL;
}

/* The next thread of the round that can go on; NULL: the round is over, which block by block it is behind the first block that has
 * done something. */
static host_thread *next_of_round(void) {
    bool by_block = state.kernel->cluster > 0 && host_now.turns == HOST_BLOCK_BY_BLOCK;
    for (; state.round.place < state.round.count; state.round.place++, state.round.lanes = UINT32_MAX) {
        host_thread *thread = next_of_warp();
        if (thread != NULL) {
            state.round.any = true;
            return thread;
        }
        if (by_block && state.round.any && (state.round.place + 1) * 32 % blockDim.x == 0)
            break;
    }
    return NULL;
}

/* Goes on with the next thread of the round, or with the scheduler when the round is over. */
static void give_turn(coroutine *from) {
    host_thread *thread = next_of_round();
    if (thread == NULL) {
        coroutine_switch(from, &state.scheduler);
        return;
    }
    thread->waits = false;
    state.current = thread;
    threadIdx = (host_dimensions){thread->index, 0, 0};
    blockIdx = (host_dimensions){thread->block->index, 0, 0};
    coroutine_switch(from, &thread->coroutine);
}

static void shuffle_warps(void) {
    for (unsigned i = 0; i < state.round.count; i++) {
        unsigned other = host_random(i + 1);
        state.round.warps[i] = state.round.warps[other];
        state.round.warps[other] = i;
    }
    for (unsigned i = 0; i < state.round.count; i++)
        state.round.descends[i] = host_random(2) != 0;
}

/* Without a schedule in descending order, so that a kernel that counts on another shows. */
static void order_warps(void) {
    host_turns turns = state.kernel->cluster > 0 ? host_now.turns : HOST_DESCENDING;
    if (turns == HOST_SHUFFLED_WARPS) {
        shuffle_warps();
        return;
    }
    for (unsigned i = 0; i < state.round.count; i++) {
        state.round.warps[i] = turns == HOST_DESCENDING ? state.round.count - 1 - i : i;
        state.round.descends[i] = turns == HOST_DESCENDING;
    }
}

/* A round: each thread has its turn, if it can go on then. Whether one could. */
static bool take_turns(void) {
    state.round.count = (state.thread_count + 31) / 32;
    state.round.place = 0;
    state.round.lanes = UINT32_MAX;
    state.round.any = false;
    order_warps();
    give_turn(&state.scheduler);
    return state.round.any;
}

/* Threads are asked only when somebody has woken them: whoever makes a condition hold has to. */
static void refuse_sleep(void) {
    for (unsigned i = 0; i < state.thread_count; i++) {
        host_thread *thread = &state.threads[i];
        state.current = thread;
        if (can_go_on(thread))
            host_refuse("thread %u of block %u could go on, and the emulation has not woken it", thread->index,
                        thread->block->index);
    }
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
        if (!any && state.alive > 0) {
            refuse_sleep();
            refuse_deadlock();
        }
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
        thread->number = number;
        thread->exchanges = 0;
        thread->waits = thread->ended = false;
        coroutine_prepare(&thread->coroutine, run_thread, state.stacks + (size_t)number * STACK_STEP, STACK_BYTES);
    }
}

/* The blocks from `first_index` on, which are there together. */
static void run_cluster(unsigned first_index, unsigned blocks, uint32_t shared_bytes) {
    state.block_count = blocks;
    state.thread_count = state.alive = blocks * blockDim.x;
    memset(state.to_ask, 0, sizeof state.to_ask);
    memset(state.watching, 0, sizeof state.watching);
    wake(0, state.thread_count);
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
    if (kernel->cluster > 0 && block[0] % 32 != 0)
        host_refuse("it has blocks of %u threads, which are no whole warps", block[0]);
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
