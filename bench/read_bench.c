/* How fast threads read memory: the bound of whatever goes by once, as a language model's weights do for a token.
 *
 *     bench read/tTHREADS samebit=X unit=GB/s
 *
 * Each thread combines the words of its part of 1 GiB, fetched ahead, in pages of 2 MB where the machine gives them; the best of several
 * passes counts. Nothing of the library is timed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES ((size_t)1 << 30)
enum { MOST_THREADS = 256, PASSES = 5, LINE = 64, AHEAD = 8192 };

/* A cache line, as vectors that every machine has. */
typedef uint64_t quarter __attribute__((vector_size(16)));
typedef struct words {
    quarter of[4];
} words;

typedef struct part {
    const words *begin, *end;
    uint64_t sum;
} part;

static void *read_part(void *context) {
    part *part = context;
    quarter first = {0}, second = {0}, third = {0}, fourth = {0};
    for (const words *at = part->begin; at < part->end; at++) {
        __builtin_prefetch((const void *)((uintptr_t)at + AHEAD));
        first ^= at->of[0];
        second ^= at->of[1];
        third ^= at->of[2];
        fourth ^= at->of[3];
    }
    const quarter all = (first ^ second) ^ (third ^ fourth);
    part->sum = all[0] ^ all[1];
    return NULL;
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* GB/s of one pass; 0 when a thread could not be started. */
static double read_all(part *parts, int threads) {
    pthread_t handles[MOST_THREADS];
    int started = 0;
    double begin = seconds();
    while (started < threads && pthread_create(&handles[started], NULL, read_part, &parts[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(handles[i], NULL);
    return started == threads ? (double)BYTES / (seconds() - begin) * 1e-9 : 0;
}

int main(int argument_count, char **arguments) {
    const int threads = argument_count == 2 ? atoi(arguments[1]) : 0;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: read_bench THREADS (1 to %d)\n", MOST_THREADS);
        return 2;
    }
    words *memory = aligned_alloc((size_t)2 << 20, BYTES);
    if (memory == NULL) {
        fprintf(stderr, "read_bench: no memory for 1 GiB\n");
        return 1;
    }
    (void)madvise(memory, BYTES, MADV_HUGEPAGE); /* a hint */
    memset(memory, 1, BYTES);
    const size_t lines = BYTES / LINE / (size_t)threads;
    part parts[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        parts[i] = (part){memory + (size_t)i * lines, memory + (size_t)(i + 1) * lines, 0};
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double rate = read_all(parts, threads);
        best = rate > best ? rate : best;
    }
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++)
        sum += parts[i].sum;
    free(memory);
    printf("bench read/t%d samebit=%.1f unit=GB/s # %u\n", threads, best, (unsigned)(sum & 1));
    return best > 0 ? 0 : 1;
}
