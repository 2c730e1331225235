#include "cuda/ops/elements.h"

#include <stdio.h>

#include "cuda/kernels/moving_parameters.h"

#define THREADS 256

iv_status iv_cuda_launch_each(iv_call *call, iv_cuda_work *work, const char *module,
                              const char *name, const char *suffix, int64_t elements) {
    char full[64];
    if (elements == 0)
        return IV_OK;
    snprintf(full, sizeof full, "%s%s%s", name, suffix != NULL ? "_" : "",
             suffix != NULL ? suffix : "");
    work->module = module;
    work->kernel = full;
    work->threads = THREADS;
    work->blocks = iv_cuda_call_blocks(call, (elements + THREADS - 1) / THREADS);
    return iv_cuda_call_launch(call, work);
}

const char *iv_cuda_size_suffix(iv_dtype dtype) {
    switch (iv_dtype_size(dtype)) {
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

bool iv_cuda_supports_all(const iv_kernel_query *query, char *why) {
    return true;
}

iv_status iv_cuda_call_fill(iv_call *call, iv_tensor *to, uint64_t bits) {
    iv_cuda_fill parameters = {.elements = iv_tensor_elements(to), .bits = bits, .out = to->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, to);
    return iv_cuda_launch_each(call, &work, "moving", "iv_cuda_fill",
                               iv_cuda_size_suffix(to->dtype), parameters.elements);
}

iv_status iv_cuda_call_packed(iv_call *call, int index, iv_tensor **tensor) {
    *tensor = NULL;
    return iv_call_input(call, index) != NULL ? iv_call_contiguous(call, index, tensor) : IV_OK;
}
