/* Products on the CPU. */
#ifndef SB_CPU_CONTRACTION_GEMM16_H
#define SB_CPU_CONTRACTION_GEMM16_H

#include "kernel/contraction/check.h"

/** Allocates what the engine's threads compute in: nothing is allocated later. Reads the engine's
 * workers. Errors: OUT_OF_MEMORY. */
sb_status sb_gemm_workspace_create(sb_engine *engine, sb_error *error);
/** NULL is allowed. */
void sb_gemm_workspace_destroy(sb_gemm_workspace *workspace);

/* The schedules of a CPU: "chain" is the fast one, "definition" the plain loops that define it. */
int sb_gemm_cpu_schedule_count(void);
/** Static storage; NULL when `index` is out of range. */
const char *sb_gemm_cpu_schedule_name(int index);

/** The schedule that sb_gemm_on_cpu takes. */
const char *sb_gemm_cpu_choose(const sb_gemm_plan *plan);
/** Computes a checked product on all threads of the engine, and returns when it is done. */
void sb_gemm_on_cpu(sb_engine *engine, const sb_gemm_plan *plan);

#endif
