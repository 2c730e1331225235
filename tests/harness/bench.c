/* Timing cases: the median of many runs after some that warm up, each on another copy of the inputs, of which there are
 * more than the last cache holds. The peer is the definition. */
#include <time.h>
#include <unistd.h>

#include "harness/harness.h"

#define RUNS 21
#define WARM_UP 3
#define MOST_COPIES 4096

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Copies of a node's inputs. */
typedef struct copies {
    int count;
    sb_tensor *(*inputs)[SB_WALK_OPERANDS];
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

static copies copies_of(const harness_node *node) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t wanted = 2 * (size_t)(cache > 0 ? cache : 32 << 20), bytes = 1;
    for (int i = 0; i < node->node->input_count; i++)
        bytes += node->inputs[i] != NULL ? node->inputs[i]->storage->bytes : 0;
    copies made = {.count = wanted / bytes + 2 < MOST_COPIES ? (int)(wanted / bytes + 2) : MOST_COPIES};
    made.inputs = calloc((size_t)made.count, sizeof *made.inputs);
    assert_non_null(made.inputs);
    for (int c = 0; c < made.count; c++) {
        for (int i = 0; i < node->node->input_count; i++)
            made.inputs[c][i] = node->inputs[i] != NULL ? copy_of(node->inputs[i]) : NULL;
    }
    return made;
}

static void release_copies(copies *made, int inputs) {
    for (int c = 0; c < made->count; c++) {
        for (int i = 0; i < inputs; i++)
            sb_tensor_release(made->inputs[c][i]);
    }
    free(made->inputs);
}

/* Who is timed. */
typedef enum contestant { DEFINITION, CPU_KERNEL, DEVICE_KERNEL } contestant;

/* The median in microseconds; negative where there is no kernel. What a run makes ready,
 * and a device's copies, count too. */
static double median(harness *h, const harness_node *node, contestant who, sb_isa isa, const copies *made) {
    double times[RUNS];
    int next = 0;
    for (int run = -WARM_UP; run < RUNS; run++) {
        sb_tensor *outputs[HARNESS_OUTPUTS] = {NULL};
        char why[SB_WHY_BYTES];
        harness_node own = *node;
        own.inputs = made->inputs[next++ % made->count];
        double start = now();
        harness_outcome outcome = who == DEFINITION   ? harness_define(&own, outputs, why)
                                  : who == CPU_KERNEL ? harness_run_cpu(&own, isa, 1, outputs, why)
                                                      : harness_run_device(h, &own, outputs, why);
        if (run >= 0)
            times[run] = now() - start;
        for (int i = 0; i < HARNESS_OUTPUTS; i++)
            sb_tensor_release(outputs[i]);
        if (outcome == HARNESS_ABSENT)
            return -1;
    }
    qsort(times, RUNS, sizeof *times, compare_doubles);
    return times[RUNS / 2];
}

static void print_line(const harness *h, const char *who, double own, double peer) {
    if (own >= 0)
        printf("bench %s/%s samebit=%.2f peer=%.2f unit=us ratio=%.2f\n", h->name, who, own, peer, peer / own);
}

void harness_time(harness *h, const harness_node *node, sb_isa best) {
    copies made = copies_of(node);
    double peer = median(h, node, DEFINITION, best, &made);
    if ((h->sides & HARNESS_CPU) != 0)
        print_line(h, sb_isa_name(best), median(h, node, CPU_KERNEL, best, &made), peer);
    /* The fake driver's times say nothing. */
    if ((h->sides & HARNESS_CUDA) != 0 && h->driver != NULL)
        print_line(h, "cuda", median(h, node, DEVICE_KERNEL, best, &made), peer);
    release_copies(&made, node->node->input_count);
}
