/* Clusters whose blocks tell each other numbers by each other's shared memory, and of which a multiprocessor takes several.
 * On the host: tests/cuda/host_hopper.h. */
#ifndef SB_CUDA_CONTRACTION_CLUSTER_CUH
#define SB_CUDA_CONTRACTION_CLUSTER_CUH

#include "cuda/contraction/hopper.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* SB_HOPPER_KERNEL of blocks of which a multiprocessor shall take `blocks`. */
#define SB_HOPPER_KERNEL_BOUNDED(name, type, given, cluster, threads, blocks)                                          \
    extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, blocks)                      \
        name(const __grid_constant__ type given)

/* The cluster's barrier in two goes: a thread that has come waits for all others when it needs them. */
SB_CUDA_FUNCTION void sb_cluster_arrive(void) {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

/* The same for threads that have nothing to tell the others but that they have read: an arrival that releases waits for all copies that are on
 * their way. */
SB_CUDA_FUNCTION void sb_cluster_arrive_relaxed(void) {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

SB_CUDA_FUNCTION void sb_cluster_wait(void) {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* Words go to the same place of block `rank` of the cluster, and its barrier at `barrier` counts their bytes. */
SB_CUDA_FUNCTION void sb_cluster_send(uint32_t shared, uint32_t rank, float value, uint32_t barrier) {
    asm volatile(
        "{\n\t.reg .b32 remote, told;\n\t"
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
        "mapa.shared::cluster.u32 told, %3, %1;\n\t"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [remote], %2, [told];\n\t}" ::"r"(shared),
        "r"(rank), "f"(value), "r"(barrier)
        : "memory");
}

SB_CUDA_FUNCTION void sb_cluster_send_two(uint32_t shared, uint32_t rank, float first, float second, uint32_t barrier) {
    asm volatile("{\n\t.reg .b32 remote, told;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mapa.shared::cluster.u32 told, %4, %1;\n\t"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [remote], {%2, %3}, [told];"
                 "\n\t}" ::"r"(shared),
                 "r"(rank), "f"(first), "f"(second), "r"(barrier)
                 : "memory");
}

/* Stores a word there, which the block sees behind the cluster's barrier. */
SB_CUDA_FUNCTION void sb_cluster_store_long(uint32_t shared, uint32_t rank, uint64_t value) {
    asm volatile("{\n\t.reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "st.shared::cluster.u64 [remote], %2;\n\t}" ::"r"(shared),
                 "r"(rank), "l"(value)
                 : "memory");
}

/* The word at the same place of block `rank`; and adding to it, which returns what it was. */
SB_CUDA_FUNCTION uint32_t sb_cluster_load(uint32_t shared, uint32_t rank) {
    uint32_t value;
    asm volatile("{\n\t.reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %1, %2;\n\t"
                 "ld.shared::cluster.u32 %0, [remote];\n\t}"
                 : "=r"(value)
                 : "r"(shared), "r"(rank)
                 : "memory");
    return value;
}

SB_CUDA_FUNCTION uint32_t sb_cluster_add(uint32_t shared, uint32_t rank, uint32_t number) {
    uint32_t before;
    asm volatile("{\n\t.reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %1, %2;\n\t"
                 "atom.shared::cluster.add.u32 %0, [remote], %3;\n\t}"
                 : "=r"(before)
                 : "r"(shared), "r"(rank), "r"(number)
                 : "memory");
    return before;
}
#endif

#endif
