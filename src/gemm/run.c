/* The public functions that compute products. See <invar/gemm.h>. */
#include "cuda/gemm/gemm.h"
#include "gemm/check.h"
#include "gemm/cpu.h"

iv_status iv_gemm_run(iv_engine *engine, void *stream, const iv_gemm *gemm, iv_error *error) {
    iv_gemm_plan plan;
    IV_TRY(iv_gemm_check(engine, gemm, &plan, error));
    if (engine->cuda != NULL)
        return iv_gemm_on_device(engine, stream, &plan, error);
    if (stream != NULL)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "a stream was given to an engine on the CPU, which has none: give NULL, or make "
            "the engine on the stream's device");
    iv_gemm_on_cpu(engine, &plan);
    return IV_OK;
}

iv_status iv_gemm_choose(iv_engine *engine, const iv_gemm *gemm, const char **schedule,
                         iv_error *error) {
    iv_gemm_plan plan;
    IV_TRY(iv_gemm_check(engine, gemm, &plan, error));
    if (engine->cuda != NULL)
        return iv_gemm_device_choose(engine, &plan, schedule, error);
    *schedule = iv_gemm_cpu_choose(engine, &plan);
    return IV_OK;
}

int iv_gemm_schedule_count(const iv_engine *engine) {
    return engine->cuda != NULL ? iv_gemm_device_schedule_count(engine) : iv_gemm_cpu_schedule_count(engine);
}

const char *iv_gemm_schedule_name(const iv_engine *engine, int index) {
    return engine->cuda != NULL ? iv_gemm_device_schedule_name(engine, index)
                                : iv_gemm_cpu_schedule_name(engine, index);
}
