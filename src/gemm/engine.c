#include "gemm/engine.h"

#include <fenv.h>
#include <stdatomic.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/device_open.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/logp.h"
#include "gemm/cpu.h"

static iv_status read_options(const iv_engine_options *given, iv_engine_options *options,
                              iv_error *error) {
    if (given == NULL)
        return IV_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "iv_engine_options has %zu bytes where this library knows %zu: start from "
                       "IV_ENGINE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    if (options->chain != IV_CHAIN_HOPPER && options->chain != IV_CHAIN_AMPERE)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "an engine's chain of %d is neither IV_CHAIN_HOPPER (0, the contract) nor IV_CHAIN_AMPERE (1)",
                       (int)options->chain);
    return IV_OK;
}

static iv_status fill_cpu(iv_engine *engine, const iv_engine_options *options, iv_error *error) {
    IV_TRY(iv_isa_resolve(options->isa, &engine->isa, error));
    engine->chain16 = iv_chain16_kernels_of(engine->isa);
    /* Threads inherit the floating-point environment: the contract's is the default one. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    iv_status status = iv_workers_create(options->threads, &engine->workers, error);
    fesetenv(&caller);
    IV_TRY(status);
    return iv_gemm_scratch_create(engine, error);
}

static iv_status fill_engine(iv_engine *engine, const iv_engine_options *options, iv_error *error) {
    static atomic_uint_least64_t engines;
    engine->number = atomic_fetch_add(&engines, 1) + 1;
    engine->chain = options->chain;
    if (options->device == NULL)
        return fill_cpu(engine, options, error);
    engine->cuda = iv_cuda_device_retain(options->device->cuda);
    IV_TRY(iv_gemm_device_create(engine, error));
    return iv_logp_device_prepare(engine, error);
}

iv_status iv_engine_create(const iv_engine_options *given, iv_engine **engine, iv_error *error) {
    iv_engine_options options = IV_ENGINE_OPTIONS_DEFAULT;
    IV_TRY(read_options(given, &options, error));
    iv_engine *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    iv_status status = fill_engine(fresh, &options, error);
    if (status != IV_OK) {
        iv_engine_destroy(fresh);
        return status;
    }
    *engine = fresh;
    return IV_OK;
}

void iv_engine_destroy(iv_engine *engine) {
    if (engine == NULL)
        return;
    iv_gemm_scratch_destroy(engine->scratch);
    iv_workers_destroy(engine->workers);
    if (engine->cuda != NULL)
        iv_gemm_device_destroy(engine);
    iv_cuda_device_release(engine->cuda);
    iv_free(engine);
}
