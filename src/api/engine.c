#include "kernel/contraction/engine.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "cpu/contraction/engine.h"
#include "cuda/contraction/engine.h"

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

sb_status sb_engine_create(const sb_engine_options *given, sb_engine **engine, sb_error *error) {
    static atomic_uint_least64_t engines;
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    sb_engine *fresh;
    SB_TRY(read_options(given, &options, error));
    SB_TRY(options.device != NULL ? sb_cuda_engine_create(options.device, &fresh, error)
                                  : sb_cpu_engine_create(options.isa, options.threads, &fresh, error));
    fresh->number = atomic_fetch_add(&engines, 1) + 1;
    *engine = fresh;
    return SB_OK;
}

void sb_engine_destroy(sb_engine *engine) {
    if (engine != NULL)
        engine->interface->destroy(engine);
}
