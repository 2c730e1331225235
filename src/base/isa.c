#include "base/isa.h"

#include <stdbool.h>

#include "base/error.h"

#if IV_HAS_X86_KERNELS
#include <cpuid.h>

/* Asked of the processor itself: not every compiler's __builtin_cpu_supports knows the name. */
static bool has_f16c(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

iv_isa iv_isa_detect(void) {
#if IV_HAS_X86_KERNELS
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !has_f16c())
        return IV_ISA_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return IV_ISA_AVX512;
    return IV_ISA_AVX2;
#else
    return IV_ISA_SCALAR;
#endif
}

const char *iv_isa_name(iv_isa isa) {
    switch (isa) {
    case IV_ISA_BEST:
        return "best";
    case IV_ISA_SCALAR:
        return "scalar";
    case IV_ISA_AVX2:
        return "avx2";
    case IV_ISA_AVX512:
        return "avx512";
    }
    return "unknown";
}

iv_status iv_isa_resolve(iv_isa wanted, iv_isa *isa, iv_error *error) {
    iv_isa best = iv_isa_detect();
    if (wanted < IV_ISA_BEST || wanted > IV_ISA_AVX512)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%d is not an instruction set", (int)wanted);
    /* Each set contains the ones before it. */
    if (wanted > best)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "this processor has no %s; its best instruction set is %s", iv_isa_name(wanted),
                       iv_isa_name(best));
    *isa = wanted == IV_ISA_BEST ? best : wanted;
    return IV_OK;
}
