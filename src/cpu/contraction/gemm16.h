/* Products on the CPU: what an engine's interface has there. */
#ifndef SB_CPU_CONTRACTION_GEMM16_H
#define SB_CPU_CONTRACTION_GEMM16_H

#include "cpu/contraction/engine.h"
#include "kernel/contraction/check.h"

/** Allocates what `threads` threads compute in: nothing is allocated later. On failure *workspace is what there is of
 * it, for sb_gemm_workspace_destroy. Errors: OUT_OF_MEMORY. */
sb_status sb_gemm_workspace_create(int threads, sb_gemm_workspace **workspace, sb_error *error);
/** NULL is allowed. */
void sb_gemm_workspace_destroy(sb_gemm_workspace *workspace);

/* The schedules of a CPU: "chain" is the fast one, "definition" the plain loops that define it. */
int sb_gemm_cpu_schedule_count(void);
/** Static storage; NULL when `index` is out of range. */
const char *sb_gemm_cpu_schedule_name(int index);

/** The schedule that sb_gemm_on_cpu takes. Always SB_OK. */
sb_status sb_gemm_cpu_choose(const sb_engine *engine, const sb_gemm_plan *plan, const char **schedule, sb_error *error);
/** Computes a checked product on all threads of the engine, and returns when it is done. Always SB_OK. */
sb_status sb_gemm_on_cpu(sb_engine *engine, void *stream, const sb_gemm_plan *plan, sb_error *error);

#endif
