#define _GNU_SOURCE /* sched_getaffinity */
#include "base/workers.h"

#include <fenv.h>
#include <pthreadpool.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/allocation.h"

/* A loop ends when all of the pool's threads have looked at it, also those for which nothing was left. Where other
 * processes have the processors, a thread comes when it is its turn, some milliseconds later, and so would each of a
 * network's hundred loops. So a loop that has waited that long for nothing lets the caller do the next ones by himself:
 * one of them, and twice as many each time, up to MOST_ALONE. A network of 11 ms took 444 on a busy machine before. */
#define LATE_NANOSECONDS 500000
#define MOST_ALONE 1024

struct sb_workers {
    pthreadpool_t pool; /* NULL until a loop has work for several threads */
    bool was_refused;   /* there was no memory for it */
    int threads;
    uint32_t flags; /* how the pool's threads wait */
    int alone;      /* loops that the caller still does by himself */
    int penalty;    /* how many it was the last time */
};

/* How many processors this process may use. */
static int processor_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

sb_status sb_workers_create(int threads, sb_workers **workers, sb_error *error) {
    if (threads < 0 || threads > 1024)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%d threads: give 0 (all) to 1024", threads);
    sb_workers *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->threads = threads > 0 ? threads : processor_count();
    /* Waiting threads spin, which is quick, unless there are more of them than processors: then they would keep
     * each other from working. */
    if (fresh->threads > processor_count())
        fresh->flags = PTHREADPOOL_FLAG_YIELD_WORKERS;
    *workers = fresh;
    return SB_OK;
}

/* Starting threads takes longer than a small model runs, and they spin until their first loop: so they are started by
 * the first loop that has work for them. They inherit the floating-point environment, which has to be the default one
 * (nearest even, subnormals kept). */
static pthreadpool_t start_pool(sb_workers *workers) {
    if (workers->pool == NULL && !workers->was_refused) {
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        workers->pool = pthreadpool_create((size_t)workers->threads);
        fesetenv(&caller);
        workers->was_refused = workers->pool == NULL;
    }
    return workers->pool;
}

void sb_workers_destroy(sb_workers *workers) {
    if (workers == NULL)
        return;
    if (workers->pool != NULL)
        pthreadpool_destroy(workers->pool);
    sb_free(workers);
}

int sb_workers_threads(const sb_workers *workers) {
    return workers != NULL ? workers->threads : 1;
}

typedef struct loop {
    sb_worker_task *task;
    void *context;
    _Atomic int64_t done; /* when the last piece that is done was */
} loop;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ThreadSanitizer cannot see the order that pthreadpool keeps, whose code is not instrumented: what was written before
 * a loop is seen by its pieces, and what they write is seen after it. So it is told. */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define ANNOTATE_ACQUIRE(address) __tsan_acquire(address)
#define ANNOTATE_RELEASE(address) __tsan_release(address)
#else
#define ANNOTATE_ACQUIRE(address) ((void)(address))
#define ANNOTATE_RELEASE(address) ((void)(address))
#endif

static void run_piece(void *context, size_t begin, size_t count) {
    loop *running = context;
    ANNOTATE_ACQUIRE(&running->task);
    running->task(running->context, (int64_t)begin, (int64_t)(begin + count));
    const int64_t time = now();
    int64_t latest = atomic_load_explicit(&running->done, memory_order_relaxed);
    while (latest < time && !atomic_compare_exchange_weak_explicit(&running->done, &latest, time, memory_order_relaxed,
                                                                   memory_order_relaxed)) {
    }
    ANNOTATE_RELEASE(&running->context);
}

/* What the next loops do, after one that was done at `done` and has ended now. */
static void learn(sb_workers *workers, int64_t done) {
    if (now() - done < LATE_NANOSECONDS) {
        workers->penalty /= 2;
        return;
    }
    workers->penalty = workers->penalty < MOST_ALONE / 2 ? 2 * workers->penalty + 1 : MOST_ALONE;
    workers->alone = workers->penalty;
}

void sb_workers_run(sb_workers *workers, int64_t count, int64_t grain, sb_worker_task *task, void *context) {
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    int threads = sb_workers_threads(workers);
    if (threads == 1 || count <= grain || start_pool(workers) == NULL) {
        task(context, 0, count);
        return;
    }
    if (workers->alone > 0) {
        workers->alone--;
        task(context, 0, count);
        return;
    }
    /* Four pieces a thread even out uneven progress without much dispatch. */
    int64_t pieces = 4 * (int64_t)threads, piece = (count + pieces - 1) / pieces;
    if (piece < grain)
        piece = grain;
    loop running = {.task = task, .context = context};
    /* Never the pool's other flag: it would flush subnormals. */
    ANNOTATE_RELEASE(&running.task);
    pthreadpool_parallelize_1d_tile_1d(workers->pool, run_piece, &running, (size_t)count, (size_t)piece,
                                       workers->flags);
    ANNOTATE_ACQUIRE(&running.context);
    learn(workers, atomic_load_explicit(&running.done, memory_order_relaxed));
}
