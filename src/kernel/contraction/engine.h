/* Engines: where products of 16-bit matrices and log-probabilities are computed. See <samebit/gemm.h>. */
#ifndef SB_KERNEL_CONTRACTION_ENGINE_H
#define SB_KERNEL_CONTRACTION_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/gemm.h>

struct sb_gemm_plan;  /* kernel/contraction/check.h */
struct sb_logp_steps; /* kernel/logp/logp_tasks.h */

/* What a back end implements. */
typedef struct sb_engine_interface {
    /* Frees the engine and all that it holds. */
    void (*destroy)(sb_engine *engine);
    /* The ways to compute products, none of which changes a bit. */
    int (*schedule_count)(void);
    /* Static storage; NULL when `index` is out of range. */
    const char *(*schedule_name)(int index);
    /* The name of the schedule that `run` would take, or its error. */
    sb_status (*choose)(const sb_engine *engine, const struct sb_gemm_plan *plan, const char **schedule,
                        sb_error *error);
    /* Computes a checked product, or gives it to `stream` and returns at once; what has no element is no work. In the
     * steady state nothing is allocated. Errors: UNSUPPORTED when the schedule that plan->gemm names cannot compute it;
     * INVALID_ARGUMENT when there is no such schedule, or no such stream; DEVICE; OUT_OF_MEMORY. */
    sb_status (*run)(sb_engine *engine, void *stream, const struct sb_gemm_plan *plan, sb_error *error);
    const struct sb_logp_steps *logp;

    /* The next three are NULL on the host. */

    /* The index of the device in whose memory an address lies, -1 when it is no memory of a device. Allowed while a
     * stream is captured. Errors: DEVICE. */
    sb_status (*locate)(const sb_engine *engine, const void *address, int *index, sb_error *error);
    /* Copies bytes to a block of the device's memory, where they are when it returns. Errors: DEVICE; OUT_OF_MEMORY. */
    sb_status (*upload)(sb_engine *engine, const void *bytes, size_t count, void **block, const void **address,
                        sb_error *error);
    /* Lets go of such a block. */
    void (*release_block)(void *block);
} sb_engine_interface;

/* Back ends' own engines begin with it. One thread at a time. */
struct sb_engine {
    const sb_engine_interface *interface;
    uint64_t number; /* of all engines that the process ever made, from 1: what row maps know their engine by */
    int device_index;
    const char *device_name; /* NULL on the host */
};

static inline bool sb_engine_on_device(const sb_engine *engine) {
    return engine->device_name != NULL;
}

#endif
