/* What Hopper (sm_90a) has for feeding tensor cores: barriers in shared memory that count bytes, the bulk copies that
 * complete on them, and clusters of blocks that write into each other's shared memory. One instruction each, by the
 * names of the PTX ISA.
 *
 * Addresses of shared memory are 32-bit (`shared`), tensor maps are in the kernel's parameters. On the host, where tests
 * run the kernels, functions of the same names do what the instructions do (tests/cuda/host_hopper.h). */
#ifndef SB_CUDA_CONTRACTION_HOPPER_CUH
#define SB_CUDA_CONTRACTION_HOPPER_CUH

#include "cuda/common/kernel.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SB_HOPPER 1

/* ---- kernels ---- */

/* SB_HOPPER_KERNEL(name, type, given, cluster, threads) { … }: a kernel that takes the struct `given`, of blocks of so
 * many threads in clusters. It begins before the kernel ahead has ended, up to its SB_CUDA_DEPEND(). */
#define SB_HOPPER_KERNEL(name, type, given, cluster, threads)                                                          \
    extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, 1)                           \
        name(const __grid_constant__ type given)

/* The block's dynamic shared memory, and barriers beside it. */
#define SB_HOPPER_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#define SB_HOPPER_BARRIERS(name, count) __shared__ __align__(8) uint64_t name[count]
/* Two of so many, whose addresses are a constant apart. */
#define SB_HOPPER_BARRIER_PAIRS(name, other, count)                                                                    \
    SB_HOPPER_BARRIERS(name, 2 * (count));                                                                             \
    uint64_t *const other = name + (count)

/* A warpgroup keeps `count` registers a thread, or gets so many. */
#define SB_HOPPER_GIVE_REGISTERS(count) asm volatile("setmaxnreg.dec.sync.aligned.u32 " #count ";")
#define SB_HOPPER_TAKE_REGISTERS(count) asm volatile("setmaxnreg.inc.sync.aligned.u32 " #count ";")

/* Has values worked out here, as operands of an assembler statement: the compiler would do so where they are used. */
#define SB_HOPPER_KEEP(...) asm volatile("" : __VA_ARGS__)

SB_CUDA_FUNCTION uint32_t sb_shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* The multiprocessor's clock, and waiting until so many cycles have gone by since it was `begin`. */
SB_CUDA_FUNCTION uint32_t sb_clock(void) {
    uint32_t now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}

SB_CUDA_FUNCTION void sb_clock_wait(uint32_t begin, uint32_t cycles) {
    while (sb_clock() - begin < cycles)
        ;
}

/* ---- barriers (mbarrier): a phase ends when `count` arrivals and all expected bytes are there ---- */

SB_CUDA_FUNCTION void sb_barrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* Barriers just made are seen by the copy engine and by the other blocks of the cluster,
 * behind the cluster's barrier. */
SB_CUDA_FUNCTION void sb_barrier_init_done(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

SB_CUDA_FUNCTION void sb_barrier_expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

SB_CUDA_FUNCTION void sb_barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the barrier of the same place in block `rank` of the cluster. Not with the cluster's release, nor waits
 * with its acquire: that flushes the caches (950 cycles a stage, measured), and what the barriers order is only the
 * copy engine's writes and the tensor cores' reads of shared memory. */
SB_CUDA_FUNCTION void sb_barrier_arrive_at(uint32_t barrier, uint32_t rank) {
    asm volatile("{\n\t.reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Waits until the phase of this parity has ended. */
SB_CUDA_FUNCTION void sb_barrier_wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\n"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* ---- clusters ---- */

SB_CUDA_FUNCTION uint32_t sb_cluster_rank(void) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

SB_CUDA_FUNCTION void sb_cluster_sync(void) {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/* ---- bulk tensor copies ---- */

/* Has the copy engine read a tensor's map, which it would do at the first copy. */
SB_CUDA_FUNCTION void sb_tensor_map_prefetch(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* The box at (x, y, z, w) of the tensor goes to `shared`, and its bytes to the barrier. */
SB_CUDA_FUNCTION void sb_tensor_load(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

/* The same of a map of pixels, of four dimensions: channels from `x` on of as many pixels as the map says, of which the first
 * lies at (y, z, w). The others follow it within the map's corners, in its strides; of each, what is read lies so many
 * pixels further. What is outside of the tensor is zeros. */
SB_CUDA_FUNCTION void sb_tensor_load_pixels(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z,
                                            int w, int further_y, int further_z) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "h"((uint16_t)further_y),
                 "h"((uint16_t)further_z)
                 : "memory");
}

/* Bytes of memory, a multiple of 16 from an address that is one, too. */
SB_CUDA_FUNCTION void sb_bulk_load(uint32_t shared, const void *from, uint32_t bytes, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

/* How the second-level cache keeps what is read once: it is the first to leave. */
SB_CUDA_FUNCTION uint64_t sb_streaming_policy(void) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* sb_tensor_load of what is kept by such a policy. */
SB_CUDA_FUNCTION void sb_tensor_stream(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                                       uint64_t policy) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "l"(policy)
                 : "memory");
}

/* Brings the box into the second-level cache alone. */
SB_CUDA_FUNCTION void sb_tensor_ask(const void *map, int x, int y, int z, int w, uint64_t policy) {
    asm volatile(
        "cp.async.bulk.prefetch.tensor.4d.L2.global.tile.L2::cache_hint [%0, {%1, %2, %3, %4}], %5;" ::"l"(map), "r"(x),
        "r"(y), "r"(z), "r"(w), "l"(policy)
        : "memory");
}

/* The same for all blocks of the cluster whose bits are set: same places, their own barriers. */
SB_CUDA_FUNCTION void sb_tensor_load_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                                         uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "h"(blocks)
                 : "memory");
}

/* All of them for tensors of five dimensions. */
SB_CUDA_FUNCTION void sb_tensor_load_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z,
                                          int w, int v) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
        "[%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
        : "memory");
}

SB_CUDA_FUNCTION void sb_tensor_stream_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z,
                                            int w, int v, uint64_t policy) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "l"(policy)
                 : "memory");
}

SB_CUDA_FUNCTION void sb_tensor_ask_five(const void *map, int x, int y, int z, int w, int v, uint64_t policy) {
    asm volatile(
        "cp.async.bulk.prefetch.tensor.5d.L2.global.tile.L2::cache_hint [%0, {%1, %2, %3, %4, %5}], %6;" ::"l"(map),
        "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "l"(policy)
        : "memory");
}

SB_CUDA_FUNCTION void sb_tensor_load_five_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z,
                                              int w, int v, uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "h"(blocks)
                 : "memory");
}

SB_CUDA_FUNCTION void sb_tensor_store(const void *map, uint32_t shared, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(shared), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

#define SB_TENSOR_STORES_END() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
/* Until all but the thread's last n batches of stores have read shared memory. */
#define SB_TENSOR_STORES_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")

/* What threads have written to shared memory is seen by the copy engine and the tensor cores. */
SB_CUDA_FUNCTION void sb_shared_written(void) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Makes zeros of 16 bytes. */
SB_CUDA_FUNCTION void sb_shared_clear(uint32_t shared) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(shared), "r"(0) : "memory");
}

/* Sixteen bytes of shared memory, eight elements of 16 bits. */
SB_CUDA_FUNCTION void sb_shared_load_eight(uint32_t shared, uint32_t *words) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}

SB_CUDA_FUNCTION void sb_shared_store_eight(uint32_t shared, const uint32_t *words) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

/* Two neighbours of f32. */
SB_CUDA_FUNCTION void sb_shared_load_two(uint32_t shared, float *values) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "r"(shared) : "memory");
}

SB_CUDA_FUNCTION void sb_shared_store_two(uint32_t shared, float one, float other) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(one), "f"(other) : "memory");
}

/* Keeps the first `count` of eight elements of 16 bits, none where that is negative, and makes zeros of the others. */
SB_CUDA_FUNCTION void sb_shared_keep(uint32_t shared, int count) {
    uint32_t words[4];
    sb_shared_load_eight(shared, words);
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        words[i] = count > 2 * i + 1 ? words[i] : count > 2 * i ? words[i] & 0xffffu : 0;
    sb_shared_store_eight(shared, words);
}

/* A barrier of the 128 threads of a warpgroup; `number` from 1. */
SB_CUDA_FUNCTION void sb_warpgroup_sync(int number) {
    asm volatile("bar.sync %0, 128;" ::"r"(number) : "memory");
}

/* ---- matrices in shared memory ---- */

/* Stores four 8 × 8 matrices of 16-bit elements, whose rows' addresses the lanes give, eight each. */
SB_CUDA_FUNCTION void sb_store_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
}

/* The same of their transposes: column j of a matrix is what lies at the address of its row j. */
SB_CUDA_FUNCTION void sb_store_turned_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
}

#define SB_WGMMA_BEGIN() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define SB_WGMMA_END() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define SB_WGMMA_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#elif defined(__CUDACC__)
#define SB_HOPPER 0
#else
#define SB_HOPPER 1
#endif

#if SB_HOPPER
/* The descriptor of a matrix in tiles with the 128-byte swizzle. `leading` and `stride` are bytes: from one group of 64
 * to the next in one direction, and from one group of 8 to the next in the other. */
SB_CUDA_FUNCTION uint64_t sb_matrix_descriptor(uint32_t shared, uint32_t leading, uint32_t stride) {
    return (uint64_t)((shared & 0x3ffffu) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* That of eight lines of k without a swizzle: pieces of 16 bytes, of which those of the next eight k lie `leading` bytes further. */
SB_CUDA_FUNCTION uint64_t sb_plain_descriptor(uint32_t shared, uint32_t leading) {
    return (uint64_t)((shared & 0x3ffffu) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}
#endif

#endif
