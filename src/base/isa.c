#include "base/isa.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

#if SB_HAS_X86_KERNELS
#include <cpuid.h>

/* Asked of the processor itself: not every compiler's __builtin_cpu_supports knows the name. */
static bool has_f16c(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

/* VNNI of AVX-512, and of AVX. */
static bool has_vnni_avx512(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 11) != 0;
}
static bool has_vnni_avx2(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}

static bool has_bf16(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 5) != 0;
}

/* *answer is 0 if it was not asked yet, which takes microseconds on a virtual machine; else 1 more than what was said. Threads may ask
 * together. */
static bool ask_once(atomic_int *answer, bool (*ask)(void)) {
    int known = atomic_load_explicit(answer, memory_order_relaxed);
    if (known == 0) {
        known = 1 + ask();
        atomic_store_explicit(answer, known, memory_order_relaxed);
    }
    return known == 2;
}
#endif

bool sb_isa_adds_products(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    static atomic_int avx512, avx2;
    if (isa == SB_ISA_AVX512)
        return ask_once(&avx512, has_vnni_avx512);
    return isa == SB_ISA_AVX2 && ask_once(&avx2, has_vnni_avx2);
#else
    (void)isa;
    return false;
#endif
}

bool sb_isa_multiplies_bf16(void) {
#if SB_HAS_X86_KERNELS
    static atomic_int answer;
    return ask_once(&answer, has_bf16);
#else
    return false;
#endif
}

sb_isa sb_isa_detect(void) {
#if SB_HAS_X86_KERNELS
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return SB_ISA_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return SB_ISA_AVX512;
    return SB_ISA_AVX2;
#else
    return SB_ISA_SCALAR;
#endif
}

const char *sb_isa_name(sb_isa isa) {
    switch (isa) {
    case SB_ISA_BEST:
        return "best";
    case SB_ISA_SCALAR:
        return "scalar";
    case SB_ISA_AVX2:
        return "avx2";
    case SB_ISA_AVX512:
        return "avx512";
    }
    return "unknown";
}

sb_status sb_isa_resolve(sb_isa wanted, sb_isa *isa, sb_error *error) {
    sb_isa best = sb_isa_detect();
    if (wanted < SB_ISA_BEST || wanted > SB_ISA_AVX512)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%d is not an instruction set", (int)wanted);
    /* Each set contains the ones before it. */
    if (wanted > best)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "this processor has no %s; its best instruction set is %s",
                       sb_isa_name(wanted), sb_isa_name(best));
    *isa = wanted == SB_ISA_BEST ? best : wanted;
    return SB_OK;
}
