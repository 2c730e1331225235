#include "cuda/common/elements.h"

#include <stdio.h>

#include "cuda/moving/moving_parameters.h"

#define THREADS 256

sb_status sb_cuda_launch_each(sb_call *call, sb_cuda_work *work, const char *module, const char *name,
                              const char *suffix, int64_t elements) {
    char full[64];
    if (elements == 0)
        return SB_OK;
    snprintf(full, sizeof full, "%s%s%s", name, suffix != NULL ? "_" : "", suffix != NULL ? suffix : "");
    work->module = module;
    work->kernel = full;
    work->threads = THREADS;
    work->blocks = sb_cuda_call_blocks(call, (elements + THREADS - 1) / THREADS);
    return sb_cuda_call_launch(call, work);
}

const char *sb_cuda_size_suffix(sb_dtype dtype) {
    switch (sb_dtype_size(dtype)) {
    case 1:
        return "8";
    case 2:
        return "16";
    case 4:
        return "32";
    default:
        return "64";
    }
}

bool sb_cuda_supports_all(const sb_kernel_query *query, char *why) {
    return true;
}

sb_status sb_cuda_call_fill(sb_call *call, sb_tensor *to, uint64_t bits) {
    sb_cuda_fill parameters = {.elements = sb_tensor_elements(to), .bits = bits, .out = to->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, to);
    return sb_cuda_launch_each(call, &work, "moving", "sb_cuda_fill", sb_cuda_size_suffix(to->dtype),
                               parameters.elements);
}

sb_status sb_cuda_call_packed(sb_call *call, int index, sb_tensor **tensor) {
    *tensor = NULL;
    return sb_call_input(call, index) != NULL ? sb_call_contiguous(call, index, tensor) : SB_OK;
}
