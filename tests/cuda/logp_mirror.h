/* Cases of log-probabilities on a device, compared with their definition byte for byte. Include after cmocka.h. */
#ifndef LOGP_MIRROR_H
#define LOGP_MIRROR_H

#include <samebit/logp.h>

#include "engine_setting.h"
#include "gemm/logp_cases.h"
#include "kernel/logp/logp_run.h"

enum { HIDDEN, WEIGHT, TARGETS, D_LOGP, LOGP, SUM, MAXIMUM, D_HIDDEN, D_WEIGHT, BLOCKS };

/* A case whose addresses are the device's. */
typedef struct mirror {
    logp_case here, there;
    sb_cuda_memory *blocks[BLOCKS], *workspace;
} mirror;

static inline size_t bytes_of(const logp_case *c, int block) {
    switch (block) {
    case HIDDEN:
        return (size_t)logp_hidden_elements(c) * 2;
    case WEIGHT:
        return (size_t)logp_weight_elements(c) * 2;
    case TARGETS:
        return (size_t)c->m * 8;
    case D_HIDDEN:
        return (size_t)logp_hidden_elements(c) * 4;
    case D_WEIGHT:
        return (size_t)logp_weight_elements(c) * 4;
    default:
        return (size_t)c->m * 4;
    }
}

static inline void *here_of(const logp_case *c, int block) {
    void *const blocks[] = {c->hidden, c->weight,  c->targets,  c->d_logp,  c->logp,
                            c->sum,    c->maximum, c->d_hidden, c->d_weight};
    return blocks[block];
}

static inline void upload(setting *setting, const mirror *mirror) {
    for (int i = 0; i < BLOCKS; i++) {
        if (bytes_of(&mirror->here, i) > 0)
            MUST(sb_cuda_upload(setting->staging, &setting->queue, mirror->blocks[i]->address,
                                here_of(&mirror->here, i), bytes_of(&mirror->here, i), error));
    }
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
}

static inline void download(setting *setting, const mirror *mirror) {
    for (int i = LOGP; i < BLOCKS; i++) {
        if (bytes_of(&mirror->here, i) > 0)
            MUST(sb_cuda_download(setting->staging, &setting->queue, here_of(&mirror->here, i),
                                  mirror->blocks[i]->address, bytes_of(&mirror->here, i), error));
    }
}

/* Takes over the case. */
static inline mirror make_mirror(setting *setting, logp_case here) {
    mirror made = {.here = here, .there = here};
    void *there[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        MUST(sb_cuda_memory_create(setting->device.handle, bytes_of(&here, i) + 64, &made.blocks[i], error));
        there[i] = (void *)(uintptr_t)made.blocks[i]->address;
    }
    made.there.hidden = there[HIDDEN];
    made.there.weight = there[WEIGHT];
    made.there.targets = there[TARGETS];
    made.there.d_logp = there[D_LOGP];
    made.there.logp = there[LOGP];
    made.there.sum = there[SUM];
    made.there.maximum = there[MAXIMUM];
    made.there.d_hidden = there[D_HIDDEN];
    made.there.d_weight = there[D_WEIGHT];
    upload(setting, &made);
    return made;
}

static inline void release_mirror(mirror *mirror) {
    for (int i = 0; i < BLOCKS; i++)
        sb_cuda_memory_release(mirror->blocks[i]);
    sb_cuda_memory_release(mirror->workspace);
    logp_free(&mirror->here);
}

/* How the work is cut: 0 for what the library chooses. */
typedef struct cut {
    int64_t rows, columns;
} cut;

static inline void run_cut(setting *setting, mirror *mirror, sb_linear_logp *logp,
                           const sb_linear_logp_gradient *gradient, cut cut, CUstream stream) {
    sb_logp_plan plan;
    MUST(sb_logp_measure(setting->gpu, logp, gradient, &plan, error));
    if (cut.columns > 0)
        MUST(sb_logp_lay_out(&plan, plan.wants_d_weight ? plan.rows : cut.rows, cut.columns, error));
    if (mirror->workspace == NULL || mirror->workspace->bytes < plan.bytes) {
        sb_cuda_memory_release(mirror->workspace);
        MUST(sb_cuda_memory_create(setting->device.handle, plan.bytes, &mirror->workspace, error));
    }
    logp->workspace = (void *)(uintptr_t)mirror->workspace->address;
    logp->workspace_bytes = plan.bytes;
    if (cut.columns > 0) {
        MUST(sb_logp_check_memory(setting->gpu, &plan, error));
        MUST(sb_logp_run(setting->gpu, stream, &plan, error));
    } else if (gradient != NULL) {
        MUST(sb_linear_logp_backward(setting->gpu, stream, logp, gradient, error));
    } else {
        MUST(sb_linear_logp_forward(setting->gpu, stream, logp, error));
    }
}

/* Both passes; the map is the caller's. */
static inline void run_passes(setting *setting, mirror *mirror, const sb_row_map *map, cut cut, CUstream stream) {
    sb_linear_logp logp = logp_describe(&mirror->there);
    sb_linear_logp_gradient gradient = logp_describe_gradient(&mirror->there, map);
    run_cut(setting, mirror, &logp, NULL, cut, stream);
    run_cut(setting, mirror, &logp, &gradient, cut, stream);
}

/* Runs a case, which this takes over, on the device, and compares it with the definition. */
static inline void check_case(setting *setting, logp_case c, cut cut) {
    logp_case defined = logp_clone(&c);
    mirror mirror = make_mirror(setting, c);
    sb_row_map *map = NULL;
    if (c.samples > 0)
        MUST(sb_row_map_create(setting->gpu, c.samples, c.lengths, &map, error));
    run_passes(setting, &mirror, map, cut, setting->queue.stream->handle);
    download(setting, &mirror);
    logp_define_forward(&defined);
    logp_define_backward(&defined);
    LOGP_CHECK_SAME(&mirror.here, &defined, cut.columns > 0 ? "in chunks" : "at once");
    sb_row_map_release(map);
    release_mirror(&mirror);
    logp_free(&defined);
}

#endif
