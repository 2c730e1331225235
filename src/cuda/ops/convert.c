/* Cast, and Pow between types. */
#include <stdio.h>
#include <string.h>

#include "cuda/compute.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/typed.h"
#include "ops/binary.h"

/* ---- types ---- */

static const char *const type_names[] = {
#define NAME(name, type, kind, load, unused) #name,
    IV_CONVERT_SOURCES(NAME, )
#undef NAME
};

iv_cuda_typed iv_cuda_typed_of(iv_dtype dtype) {
    static const unsigned char types[IV_DTYPE_COUNT] = {
        [IV_BOOL] = IV_CUDA_TYPE_b8, [IV_U8] = IV_CUDA_TYPE_u8,     [IV_U16] = IV_CUDA_TYPE_u16,
        [IV_U32] = IV_CUDA_TYPE_u32, [IV_U64] = IV_CUDA_TYPE_u64,   [IV_S8] = IV_CUDA_TYPE_s8,
        [IV_S16] = IV_CUDA_TYPE_s16, [IV_S32] = IV_CUDA_TYPE_s32,   [IV_S64] = IV_CUDA_TYPE_s64,
        [IV_F16] = IV_CUDA_TYPE_f16, [IV_BF16] = IV_CUDA_TYPE_bf16, [IV_F32] = IV_CUDA_TYPE_f32,
        [IV_F64] = IV_CUDA_TYPE_f64};
    return (iv_cuda_typed){types[dtype], (int32_t)iv_dtype_size(dtype)};
}

const char *iv_cuda_type_name(iv_dtype dtype) {
    return type_names[iv_cuda_typed_of(dtype).type];
}

iv_status iv_cuda_launch_groups(iv_call *call, iv_cuda_work *work, const char *module,
                                const char *name, const char *suffix, int64_t elements) {
    int64_t groups = (elements + IV_CUDA_GROUP - 1) / IV_CUDA_GROUP;
    return iv_cuda_launch_each(call, work, module, name, suffix, groups);
}

/* ---- Cast ---- */

iv_status iv_cuda_call_cast(iv_call *call, iv_tensor *to, const iv_tensor *from) {
    if (to->dtype == from->dtype)
        return iv_call_copy(call, to, from);
    iv_cuda_cast parameters = {.from = iv_cuda_typed_of(from->dtype)};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_box_fill(&parameters.box, to, 1, &from);
    iv_cuda_work_writes(&work, to);
    iv_cuda_work_reads(&work, from);
    return iv_cuda_launch_groups(call, &work, "cast", "iv_cuda_cast", iv_cuda_type_name(to->dtype),
                                 parameters.box.elements);
}

static iv_status launch_cast(iv_call *call) {
    iv_tensor *out;
    IV_TRY(iv_call_output(call, 0, &out));
    return iv_cuda_call_cast(call, out, iv_call_input(call, 0));
}

/* ---- Pow ---- */

static iv_status launch_power_of_one_type(iv_call *call, const iv_tensor *out,
                                          const iv_tensor *const *tensors) {
    const iv_cuda_kernel *kernel;
    iv_cuda_elementwise_options options = {0};
    IV_TRY(iv_cuda_find_elementwise(call->target->queue->stream->device, "Pow", 2, out->dtype,
                                    &kernel, call->error));
    return iv_cuda_launch_elementwise(call->target->queue, call->target->step, kernel, &options, out,
                                      2, tensors, call->error);
}

static iv_status launch_power(iv_call *call) {
    iv_tensor *out, exponents;
    const iv_tensor *tensors[2] = {iv_call_input(call, 0), &exponents};
    iv_binary_align(call, &exponents);
    IV_TRY(iv_call_output(call, 0, &out));
    if (iv_dtype_is_float(out->dtype) && exponents.dtype == out->dtype)
        return launch_power_of_one_type(call, out, tensors);
    const char *computed = out->dtype == IV_F64                   ? "f64"
                           : iv_dtype_is_float(out->dtype)        ? "f32"
                           : iv_dtype_is_float(exponents.dtype)   ? "f64"
                                                                  : "s64";
    iv_cuda_power parameters = {.base = iv_cuda_typed_of(out->dtype),
                                .exponent = iv_cuda_typed_of(exponents.dtype)};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    parameters.fault = iv_cuda_work_fault(&work, call);
    iv_cuda_box_fill(&parameters.box, out, 2, tensors);
    iv_cuda_work_writes(&work, out);
    iv_cuda_work_reads(&work, tensors[0]);
    iv_cuda_work_reads(&work, tensors[1]);
    return iv_cuda_launch_groups(call, &work, "power", "iv_cuda_power", computed,
                                 parameters.box.elements);
}

const iv_kernel iv_cuda_kernels_convert[] = {
    {.op = "Cast", .name = "cast", .supports = iv_cuda_supports_all, .launch = launch_cast},
    {.op = "CastLike", .name = "cast", .supports = iv_cuda_supports_all, .launch = launch_cast},
    {.op = "Pow", .name = "power", .supports = iv_cuda_supports_all, .launch = launch_power},
    {0},
};
