/* Threads of blocks on the host, which wait for each other: coroutines that go on when what they wait for has come. Whoever stops
 * switches to the next that can, and whoever makes something come wakes those who may wait for it, so that the others are not
 * asked. Blocks of a cluster are there at the same time, all others one after the other.
 *
 * What engines of the device do by themselves while threads run (copies and products of Hopper: host_copies.c,
 * host_products.c) is done whenever the schedule says, at the latest when no thread can go on. When that helps nobody
 * either, the program ends with a message that says what every thread waits for. */
#ifndef HOST_BLOCKS_H
#define HOST_BLOCKS_H

#include "coroutine.h"
#include "host_schedules.h"
#include "host_words.h"

enum {
    HOST_MOST_THREADS = 4096, /* of a cluster */
    HOST_MOST_BLOCKS = 8,     /* of a cluster */
    HOST_NAMED_BARRIERS = 16,
    HOST_MOST_SHARED = 8, /* named pieces of static shared memory */
    /* Where things lie in a block's shared memory: what the driver keeps for itself, named pieces, and dynamic memory,
     * whose beginning has the alignment that is promised for it and no more. */
    HOST_STATIC_SHARED = 1024,
    HOST_DYNAMIC_SHARED = 8192 + 16,
    HOST_SHARED_BYTES = 1024 + 227 * 1024, /* that a block may have, and the driver's */
    HOST_WINDOW_BYTES = HOST_DYNAMIC_SHARED + 227 * 1024,
};

/* Where threads meet. */
typedef enum host_meeting_kind { HOST_BLOCK, HOST_CLUSTER, HOST_WARP, HOST_NAMED } host_meeting_kind;

/* The bytes of what has not come: NaNs of f32, f16 and bf16. */
#define HOST_POISON 0xff

/* Threads that meet: how many have come, and how often all have. */
typedef struct host_meeting {
    unsigned arrived;
    uint64_t times;
} host_meeting;

/* What a thread waits for. */
typedef struct host_condition {
    bool (*holds)(const struct host_condition *condition);
    void (*describe)(const struct host_condition *condition, char *text, size_t bytes);
    const void *object;
    uint64_t value;
    uint32_t place;
} host_condition;

typedef struct host_block {
    unsigned index, rank; /* in the grid, in the cluster */
    unsigned threads;     /* that have not ended */
    char *shared;         /* its shared memory: HOST_WINDOW_BYTES, of which those below `shared_end` are there */
    uint32_t shared_end;
    struct {
        const char *name;
        uint32_t first, bytes;
    } pieces[HOST_MOST_SHARED];
    host_meeting all, warps[HOST_MOST_THREADS / 32], named[HOST_NAMED_BARRIERS];
} host_block;

typedef struct host_thread {
    coroutine coroutine;
    host_block *block;
    unsigned index, number; /* in the block, in the cluster */
    unsigned exchanges;
    bool waits, ended;
    host_condition condition;
} host_thread;

/** The schedule and the fault of the kernel that runs. */
extern host_schedule host_now;
extern host_plant host_planted;

/** The thread that runs, its number in the cluster, the cluster's blocks, and the kernel. */
host_thread *host_current(void);
unsigned host_current_number(void);
host_block *host_block_of(unsigned rank);
unsigned host_cluster_size(void);
const char *host_kernel_name(void);

/** What each thread of the warp gives, as all see it: of thread `lane` at lane * HOST_GIVEN_BYTES, until the thread's exchange but
 * one after this. */
#define HOST_GIVEN_BYTES 32
const char *host_exchange_all(const void *value, size_t bytes);
/** Gives each block of the cluster its shared memory, the dynamic part full of poison. */
void host_windows_begin(void);
/** Until `condition` holds. It is asked again only behind host_wake_watching, which whoever may have made it hold calls. */
void host_wait(const host_condition *condition);
/** Has all threads that host_wait has stopped ask again whether they can go on. */
void host_wake_watching(void);
/** Until `count` threads have come. */
void host_meet(host_meeting *meeting, unsigned count, host_meeting_kind kind);
/** The threads of the warp that the thread is in, which may be fewer than 32 in a block's last. */
unsigned host_warp_size(const host_thread *thread);
void host_meet_warp(void);

/** Ends the program with a message: nobody could go on after what a kernel does wrong here. */
_Noreturn void host_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Numbers that follow from the schedule's seed. */
uint32_t host_random(uint32_t below);

/* ---- what the engines tell the scheduler ---- */

/** Begins with a cluster of kernels for Hopper, and ends with it; the latter refuses what is unfinished. */
void host_engines_begin(void);
void host_engines_end(void);
/** Refuse what the thread that ends leaves unfinished. */
void host_engines_end_thread(void);
void host_asynchronous_end_thread(void);
/** Does one piece of the work that is there, chosen as the schedule says; false if there is none. */
bool host_engines_work(void);

#endif
