/* Engines on the CPU. */
#ifndef SB_CPU_CONTRACTION_ENGINE_H
#define SB_CPU_CONTRACTION_ENGINE_H

#include "base/workers.h"
#include "cpu/contraction/chain16.h"
#include "kernel/contraction/engine.h"

/* Workspace of an engine's threads: gemm16.c. */
typedef struct sb_gemm_workspace sb_gemm_workspace;

typedef struct sb_cpu_engine {
    sb_engine base;
    sb_isa isa; /* resolved */
    sb_workers *workers;
    const sb_chain16_kernels *chain16;
    sb_gemm_workspace *workspace;
} sb_cpu_engine;

static inline const sb_cpu_engine *sb_cpu_engine_of(const sb_engine *engine) {
    return (const sb_cpu_engine *)engine;
}

/** An engine of `threads` threads, the caller's included; 0: one per processor. The caller gives it its number. Errors:
 * UNSUPPORTED when the machine lacks the instruction set; OUT_OF_MEMORY. */
sb_status sb_cpu_engine_create(sb_isa isa, int threads, sb_engine **engine, sb_error *error);

#endif
