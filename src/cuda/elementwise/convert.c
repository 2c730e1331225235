/* Cast, and Pow between types. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/list.h"
#include "ops/binary.h"
#include "ops/convert_loops.h"

/* ---- types ---- */

static const char *const type_names[] = {
#define NAME(name, type, kind, load, unused) #name,
    SB_CONVERT_SOURCES(NAME, ) SB_CONVERT_SMALL(NAME, )
#undef NAME
};

sb_cuda_typed sb_cuda_typed_of(sb_dtype dtype) {
    static const unsigned char types[SB_DTYPE_COUNT] = {[SB_BOOL] = SB_CUDA_TYPE_b8,
                                                        [SB_U8] = SB_CUDA_TYPE_u8,
                                                        [SB_U16] = SB_CUDA_TYPE_u16,
                                                        [SB_U32] = SB_CUDA_TYPE_u32,
                                                        [SB_U64] = SB_CUDA_TYPE_u64,
                                                        [SB_S8] = SB_CUDA_TYPE_s8,
                                                        [SB_S16] = SB_CUDA_TYPE_s16,
                                                        [SB_S32] = SB_CUDA_TYPE_s32,
                                                        [SB_S64] = SB_CUDA_TYPE_s64,
                                                        [SB_F16] = SB_CUDA_TYPE_f16,
                                                        [SB_BF16] = SB_CUDA_TYPE_bf16,
                                                        [SB_F32] = SB_CUDA_TYPE_f32,
                                                        [SB_F64] = SB_CUDA_TYPE_f64,
                                                        [SB_F8E4M3FN] = SB_CUDA_TYPE_f8e4m3fn,
                                                        [SB_F8E4M3FNUZ] = SB_CUDA_TYPE_f8e4m3fnuz,
                                                        [SB_F8E5M2] = SB_CUDA_TYPE_f8e5m2,
                                                        [SB_F8E5M2FNUZ] = SB_CUDA_TYPE_f8e5m2fnuz,
                                                        [SB_F8E8M0] = SB_CUDA_TYPE_f8e8m0,
                                                        [SB_F4E2M1] = SB_CUDA_TYPE_f4e2m1,
                                                        [SB_S4] = SB_CUDA_TYPE_s4,
                                                        [SB_U4] = SB_CUDA_TYPE_u4,
                                                        [SB_S2] = SB_CUDA_TYPE_s2,
                                                        [SB_U2] = SB_CUDA_TYPE_u2,
                                                        [SB_F6E2M3] = SB_CUDA_TYPE_f6e2m3,
                                                        [SB_F6E3M2] = SB_CUDA_TYPE_f6e3m2};
    return (sb_cuda_typed){types[dtype], (int32_t)sb_dtype_size(dtype)};
}

const char *sb_cuda_type_name(sb_dtype dtype) {
    return type_names[sb_cuda_typed_of(dtype).type];
}

sb_status sb_cuda_launch_groups(sb_call *call, sb_cuda_work *work, const char *module, const char *name,
                                const char *suffix, int64_t elements) {
    int64_t groups = (elements + SB_CUDA_GROUP - 1) / SB_CUDA_GROUP;
    return sb_cuda_launch_each(call, work, module, name, suffix, groups);
}

/* ---- Cast ---- */

#define EIGHT 8

static bool is_short(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16 || dtype == SB_F32;
}

/* Whether cast_halves.cu has the types, and the elements lie as it needs them. */
static bool is_packed_cast(const sb_cuda_box *box, sb_dtype to, sb_dtype from) {
    return is_short(to) && is_short(from) && box->rank == 1 && box->steps[0][0] == (int64_t)sb_dtype_size(to) &&
           box->steps[1][0] == (int64_t)sb_dtype_size(from) && (intptr_t)box->data[0] % 16 == 0 &&
           (intptr_t)box->data[1] % 16 == 0;
}

static const char *cast_suffix(sb_dtype to) {
    if (!sb_dtype_is_small(to))
        return sb_cuda_type_name(to);
    return (SB_SET(to) & SB_SET_SMALL_INTEGER) != 0 ? "small_integer" : "small_float";
}

static sb_status convert(sb_call *call, const sb_conversion *conversion, sb_tensor *to, const sb_tensor *from) {
    if (to->dtype == from->dtype)
        return sb_call_copy(call, to, from);
    sb_cuda_cast parameters = {.from = sb_cuda_typed_of(from->dtype),
                               .to = sb_cuda_typed_of(to->dtype),
                               .saturate = conversion->saturate,
                               .round = conversion->round};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_box_fill(&parameters.box, to, 1, &from);
    sb_cuda_work_writes(&work, to);
    sb_cuda_work_reads(&work, from);
    const char *suffix = cast_suffix(to->dtype);
    if (!is_packed_cast(&parameters.box, to->dtype, from->dtype))
        return sb_cuda_launch_groups(call, &work, "cast", "sb_cuda_cast", suffix, parameters.box.elements);
    char name[32];
    snprintf(name, sizeof name, "sb_cuda_cast_%s", sb_cuda_type_name(from->dtype));
    return sb_cuda_launch_each(call, &work, "cast_halves", name, suffix, (parameters.box.elements + EIGHT - 1) / EIGHT);
}

sb_status sb_cuda_call_cast(sb_call *call, sb_tensor *to, const sb_tensor *from) {
    const sb_conversion conversion = sb_conversion_of(to->dtype, from->dtype);
    return convert(call, &conversion, to, from);
}

static sb_status launch_cast(sb_call *call) {
    sb_tensor *out;
    const sb_tensor *in = sb_call_input(call, 0);
    SB_TRY(sb_call_output(call, 0, &out));
    const sb_conversion conversion = sb_cast_conversion(call->node, out->dtype, in->dtype);
    return convert(call, &conversion, out, in);
}

/* ---- Pow ---- */

static sb_status launch_power_of_one_type(sb_call *call, const sb_tensor *out, const sb_tensor *const *tensors) {
    sb_cuda_operation operation;
    sb_cuda_elementwise_options options = {0};
    SB_TRY(sb_cuda_find_elementwise(sb_cuda_call_device(call), "Pow", 2, out->dtype, &operation, call->error));
    return sb_cuda_launch_elementwise(sb_cuda_call_queue(call), call->target->step, &operation, &options, out, 2,
                                      tensors, call->error);
}

static sb_status launch_power(sb_call *call) {
    sb_tensor *out, exponents;
    const sb_tensor *tensors[2] = {sb_call_input(call, 0), &exponents};
    sb_binary_align(call, &exponents);
    SB_TRY(sb_call_output(call, 0, &out));
    if (sb_dtype_is_float(out->dtype) && exponents.dtype == out->dtype)
        return launch_power_of_one_type(call, out, tensors);
    const char *computed = out->dtype == SB_F64                 ? "f64"
                           : sb_dtype_is_float(out->dtype)      ? "f32"
                           : sb_dtype_is_float(exponents.dtype) ? "f64"
                                                                : "s64";
    sb_cuda_power parameters = {.base = sb_cuda_typed_of(out->dtype), .exponent = sb_cuda_typed_of(exponents.dtype)};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    parameters.fault = sb_cuda_work_fault(&work, call);
    sb_cuda_box_fill(&parameters.box, out, 2, tensors);
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_reads(&work, tensors[0]);
    sb_cuda_work_reads(&work, tensors[1]);
    return sb_cuda_launch_groups(call, &work, "power", "sb_cuda_power", computed, parameters.box.elements);
}

const sb_kernel sb_cuda_kernels_convert[] = {
    {.op = "Cast", .name = "cast", .supports = sb_cuda_supports_all, .launch = launch_cast},
    {.op = "CastLike", .name = "cast", .supports = sb_cuda_supports_all, .launch = launch_cast},
    {.op = "Pow", .name = "power", .supports = sb_cuda_supports_all, .launch = launch_power},
    {0},
};
