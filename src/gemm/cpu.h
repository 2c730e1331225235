/* Products on the CPU. */
#ifndef IV_GEMM_CPU_H
#define IV_GEMM_CPU_H

#include "gemm/check.h"

/** Allocates what the engine's threads compute in: nothing is allocated later. Reads the engine's
 * workers. Errors: OUT_OF_MEMORY. */
iv_status iv_gemm_scratch_create(iv_engine *engine, iv_error *error);
/** NULL is allowed. */
void iv_gemm_scratch_destroy(iv_gemm_scratch *scratch);

/* The schedules of a CPU: "chain" is the fast one, of the contract's chain alone, "definition" the plain loops that define it. */
int iv_gemm_cpu_schedule_count(const iv_engine *engine);
/** Static storage; NULL when `index` is out of range. */
const char *iv_gemm_cpu_schedule_name(const iv_engine *engine, int index);

/** The schedule that iv_gemm_on_cpu takes. */
const char *iv_gemm_cpu_choose(const iv_engine *engine, const iv_gemm_plan *plan);
/** Computes a checked product on all threads of the engine, and returns when it is done. */
void iv_gemm_on_cpu(iv_engine *engine, const iv_gemm_plan *plan);

#endif
