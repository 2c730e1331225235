#include "cpu/contraction/integer_product.h"

#include <stdatomic.h>
#include <stdbool.h>

#if SB_HAS_X86_KERNELS
#include <cpuid.h>

/* Asked of the processor itself: not every compiler knows the names. VNNI of AVX-512, and of AVX. */
static bool has_dots(sb_isa isa) {
    unsigned eax, ebx, ecx, edx;
    if (isa == SB_ISA_AVX512)
        return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 11) != 0;
    return isa == SB_ISA_AVX2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}
#endif

const sb_integer_kernels *sb_integer_kernels_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    /* 0: not asked yet, which takes microseconds on a virtual machine; else 1 more than the answer. Threads may ask together. */
    static atomic_int answers[SB_ISA_AVX512 + 1];
    int answer = atomic_load_explicit(&answers[isa], memory_order_relaxed);
    if (answer == 0) {
        answer = 1 + has_dots(isa);
        atomic_store_explicit(&answers[isa], answer, memory_order_relaxed);
    }
    if (answer == 2)
        return isa == SB_ISA_AVX512 ? &sb_integer_kernels_avx512 : &sb_integer_kernels_avx2;
#endif
    (void)isa;
    return NULL;
}
