/* The public functions that compute products. See <samebit/gemm.h>. */
#include "cpu/contraction/gemm16.h"
#include "cuda/contraction/gemm16.h"
#include "kernel/contraction/check.h"

sb_status sb_gemm_run(sb_engine *engine, void *stream, const sb_gemm *gemm, sb_error *error) {
    sb_gemm_plan plan;
    SB_TRY(sb_gemm_check(engine, gemm, &plan, error));
    if (engine->cuda != NULL)
        return sb_gemm_on_device(engine, stream, &plan, error);
    if (stream != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a stream was given to an engine on the CPU, which has none: give NULL, or make "
                       "the engine on the stream's device");
    sb_gemm_on_cpu(engine, &plan);
    return SB_OK;
}

sb_status sb_gemm_choose(sb_engine *engine, const sb_gemm *gemm, const char **schedule, sb_error *error) {
    sb_gemm_plan plan;
    SB_TRY(sb_gemm_check(engine, gemm, &plan, error));
    if (engine->cuda != NULL)
        return sb_gemm_device_choose(engine, &plan, schedule, error);
    *schedule = sb_gemm_cpu_choose(&plan);
    return SB_OK;
}

int sb_gemm_schedule_count(const sb_engine *engine) {
    return engine->cuda != NULL ? sb_gemm_device_schedule_count() : sb_gemm_cpu_schedule_count();
}

const char *sb_gemm_schedule_name(const sb_engine *engine, int index) {
    return engine->cuda != NULL ? sb_gemm_device_schedule_name(index) : sb_gemm_cpu_schedule_name(index);
}
