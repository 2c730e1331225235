#include "kernel/contraction/engine.h"

#include <fenv.h>
#include <stdatomic.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/contraction/gemm16.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/driver/device_open.h"
#include "cuda/logp/logp.h"

static sb_status read_options(const sb_engine_options *given, sb_engine_options *options, sb_error *error) {
    if (given == NULL)
        return SB_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_engine_options has %zu bytes where this library knows %zu: start from "
                       "SB_ENGINE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    return SB_OK;
}

static sb_status fill_cpu(sb_engine *engine, const sb_engine_options *options, sb_error *error) {
    SB_TRY(sb_isa_resolve(options->isa, &engine->isa, error));
    engine->chain16 = sb_chain16_kernels_of(engine->isa);
    /* Threads inherit the floating-point environment: the contract's is the default one. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    sb_status status = sb_workers_create(options->threads, &engine->workers, error);
    fesetenv(&caller);
    SB_TRY(status);
    return sb_gemm_workspace_create(engine, error);
}

static sb_status fill_engine(sb_engine *engine, const sb_engine_options *options, sb_error *error) {
    static atomic_uint_least64_t engines;
    engine->number = atomic_fetch_add(&engines, 1) + 1;
    if (options->device == NULL)
        return fill_cpu(engine, options, error);
    engine->cuda = sb_cuda_device_retain(sb_cuda_device_behind(options->device));
    SB_TRY(sb_gemm_device_create(engine, error));
    return sb_logp_device_prepare(engine, error);
}

sb_status sb_engine_create(const sb_engine_options *given, sb_engine **engine, sb_error *error) {
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    SB_TRY(read_options(given, &options, error));
    sb_engine *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    sb_status status = fill_engine(fresh, &options, error);
    if (status != SB_OK) {
        sb_engine_destroy(fresh);
        return status;
    }
    *engine = fresh;
    return SB_OK;
}

void sb_engine_destroy(sb_engine *engine) {
    if (engine == NULL)
        return;
    sb_gemm_workspace_destroy(engine->workspace);
    sb_workers_destroy(engine->workers);
    if (engine->cuda != NULL)
        sb_gemm_device_destroy(engine);
    sb_cuda_device_release(engine->cuda);
    sb_free(engine);
}
