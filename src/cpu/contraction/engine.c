#include "cpu/contraction/engine.h"

#include "base/allocation.h"
#include "cpu/contraction/gemm16.h"
#include "cpu/logp/logp_cpu.h"

static void destroy(sb_engine *base) {
    sb_cpu_engine *engine = (sb_cpu_engine *)base;
    sb_gemm_workspace_destroy(engine->workspace);
    sb_workers_destroy(engine->workers);
    sb_free(engine);
}

static const sb_engine_interface interface = {
    .destroy = destroy,
    .schedule_count = sb_gemm_cpu_schedule_count,
    .schedule_name = sb_gemm_cpu_schedule_name,
    .choose = sb_gemm_cpu_choose,
    .run = sb_gemm_on_cpu,
    .logp = &sb_logp_cpu_steps,
};

static sb_status fill(sb_cpu_engine *engine, sb_isa isa, int threads, sb_error *error) {
    SB_TRY(sb_isa_resolve(isa, &engine->isa, error));
    engine->chain16 = sb_chain16_kernels_of(engine->isa);
    SB_TRY(sb_workers_create(threads, &engine->workers, error));
    return sb_gemm_workspace_create(sb_workers_threads(engine->workers), &engine->workspace, error);
}

sb_status sb_cpu_engine_create(sb_isa isa, int threads, sb_engine **engine, sb_error *error) {
    sb_cpu_engine *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->base.interface = &interface;
    sb_status status = fill(fresh, isa, threads, error);
    if (status != SB_OK) {
        destroy(&fresh->base);
        return status;
    }
    *engine = &fresh->base;
    return SB_OK;
}
