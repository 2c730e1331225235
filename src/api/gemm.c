/* The public functions that compute products. See <samebit/gemm.h>. */
#include "base/error.h"
#include "kernel/contraction/check.h"

sb_status sb_gemm_run(sb_engine *engine, void *stream, const sb_gemm *gemm, sb_error *error) {
    sb_gemm_plan plan;
    SB_TRY(sb_gemm_check(engine, gemm, &plan, error));
    if (!sb_engine_on_device(engine) && stream != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a stream was given to an engine on the CPU, which has none: give NULL, or make "
                       "the engine on the stream's device");
    return engine->interface->run(engine, stream, &plan, error);
}

sb_status sb_gemm_choose(sb_engine *engine, const sb_gemm *gemm, const char **schedule, sb_error *error) {
    sb_gemm_plan plan;
    SB_TRY(sb_gemm_check(engine, gemm, &plan, error));
    return engine->interface->choose(engine, &plan, schedule, error);
}

int sb_gemm_schedule_count(const sb_engine *engine) {
    return engine->interface->schedule_count();
}

const char *sb_gemm_schedule_name(const sb_engine *engine, int index) {
    return engine->interface->schedule_name(index);
}
