/* Timing cases: the median of calls that only compute. What belongs to no call is made ready before: the kernel, what it
 * derives, inputs and outputs. Calls go round copies of the inputs, of which there are more than the last cache holds, or
 * one for each call. The peer is the definition. */
#include <time.h>
#include <unistd.h>

#include "harness/harness.h"

#define RUNS 21
#define WARM_UP 3

double harness_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

size_t harness_beyond_caches(void) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return 2 * (size_t)(cache > (64 << 20) ? cache : 64 << 20);
}

/* Copies of a node's inputs. */
typedef struct copies {
    int count;
    sb_tensor *inputs[RUNS + WARM_UP][HARNESS_INPUTS];
    harness_node nodes[RUNS + WARM_UP];
} copies;

static sb_tensor *copy_of(const sb_tensor *tensor) {
    sb_tensor *copy = NULL;
    sb_storage *storage = NULL;
    MUST(sb_storage_create(tensor->storage->bytes, &storage, error));
    memcpy(storage->data, tensor->storage->data, tensor->storage->bytes);
    MUST(sb_tensor_over(storage, (char *)storage->data + (tensor->data - (char *)tensor->storage->data), tensor->dtype,
                        tensor->rank, tensor->dims, tensor->strides, &copy, error));
    sb_storage_release(storage);
    return copy;
}

static copies *copies_of(const harness_node *node) {
    size_t bytes = 1, enough;
    copies *made = calloc(1, sizeof *made);
    assert_non_null(made);
    for (int i = 0; i < node->node->input_count; i++)
        bytes += node->inputs[i] != NULL ? node->inputs[i]->storage->bytes : 0;
    enough = harness_beyond_caches() / bytes + 2;
    made->count = enough < RUNS + WARM_UP ? (int)enough : RUNS + WARM_UP;
    for (int c = 0; c < made->count; c++) {
        for (int i = 0; i < node->node->input_count; i++)
            made->inputs[c][i] = node->inputs[i] != NULL ? copy_of(node->inputs[i]) : NULL;
        made->nodes[c] = *node;
        made->nodes[c].inputs = made->inputs[c];
    }
    return made;
}

static void release_copies(copies *made) {
    for (int c = 0; c < made->count; c++) {
        for (int i = 0; i < HARNESS_INPUTS; i++)
            sb_tensor_release(made->inputs[c][i]);
    }
    free(made);
}

/* What is written lives as long as the program: fresh pages take longer than emptying. */
void harness_empty_caches(harness *h) {
    static volatile char *other;
    static char turn;
    size_t bytes = harness_beyond_caches();
    if (other == NULL)
        other = malloc(bytes);
    assert_non_null((void *)other);
    turn++;
    for (size_t i = 0; i < bytes; i += 64)
        other[i] = turn;
}

/* The median in microseconds; negative where there is no kernel. Before it is timed, each copy is computed once, which
 * allocates what is asked for. */
static double median(harness *h, const harness_contestant *who, copies *made) {
    double times[RUNS];
    void *ready[RUNS + WARM_UP] = {NULL};
    int count = 0;
    while (count < made->count && (ready[count] = who->prepare(h, &made->nodes[count])) != NULL)
        who->call(ready[count++]);
    if (count > 0)
        who->empty_caches(h);
    for (int run = -WARM_UP; run < RUNS && count > 0; run++) {
        double taken = who->call(ready[(run + WARM_UP) % count]);
        if (run >= 0)
            times[run] = taken;
    }
    for (int c = 0; c < count; c++)
        who->release(ready[c]);
    if (count == 0)
        return -1;
    qsort(times, RUNS, sizeof *times, compare_doubles);
    return times[RUNS / 2];
}

static void print_line(const harness *h, const char *who, double own, double peer) {
    if (own > 0)
        printf("bench %s/%s samebit=%.2f peer=%.2f unit=us ratio=%.2f\n", h->name, who, own, peer, peer / own);
}

void harness_time(harness *h, const harness_node *node) {
    copies *made = copies_of(node);
    sb_isa best = SB_ISA_BEST;
    MUST(sb_isa_resolve(SB_ISA_BEST, &best, error));
    double peer = median(h, &harness_definition, made);
    if ((h->sides & HARNESS_CPU) != 0)
        print_line(h, sb_isa_name(best), median(h, &harness_cpu_kernel, made), peer);
    if ((h->sides & HARNESS_CUDA) != 0 && h->driver != NULL)
        print_line(h, "cuda", median(h, &harness_device_kernel, made), peer);
    else if (h->sides == HARNESS_CUDA && median(h, &harness_device_kernel, made) >= 0)
        printf("%s/cuda: the fake driver's times say nothing\n", h->name);
    release_copies(made);
}
