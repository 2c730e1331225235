/* The instructions of src/cuda/contraction/hopper.cuh and wgmma.cuh on the host, and the words around Hopper's kernels.
 * Included by host_words.h.
 *
 * What the device may do late is done late, and what only a fence makes known is not known before: host_engines.h,
 * host_schedules.h. */
#ifndef HOST_HOPPER_H
#define HOST_HOPPER_H

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/** The piece of static shared memory of this name, full of zeros at first, and the block's dynamic shared memory. */
void *host_static_shared(const char *name, uint32_t bytes);
unsigned char *host_dynamic_shared_memory(void);

uint32_t host_shared_address(const void *pointer);
void host_barrier_init(uint32_t barrier, uint32_t count);
void host_barrier_init_done(void);
void host_barrier_expect(uint32_t barrier, uint32_t bytes);
void host_barrier_arrive(uint32_t barrier);
void host_barrier_arrive_at(uint32_t barrier, uint32_t rank);
void host_barrier_wait(uint32_t barrier, uint32_t parity);
uint32_t host_cluster_rank(void);
void host_cluster_sync(void);
void host_cluster_arrive(void);
void host_cluster_wait(void);
void host_cluster_send(uint32_t shared, uint32_t rank, float value, uint32_t barrier);
void host_cluster_send_two(uint32_t shared, uint32_t rank, float first, float second, uint32_t barrier);
void host_cluster_store_long(uint32_t shared, uint32_t rank, uint64_t value);
uint32_t host_cluster_load(uint32_t shared, uint32_t rank);
uint32_t host_cluster_add(uint32_t shared, uint32_t rank, uint32_t number);
void host_tensor_map_prefetch(const void *map);
uint64_t host_streaming_policy(void);
void host_tensor_load(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w);
void host_tensor_stream(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                        uint64_t policy);
void host_tensor_ask(const void *map, int x, int y, int z, int w, uint64_t policy);
void host_bulk_load(uint32_t shared, const void *from, uint32_t bytes, uint32_t barrier);
void host_tensor_load_pixels(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                             int further_y, int further_z);
void host_tensor_load_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                          uint16_t blocks);
void host_tensor_load_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v);
void host_tensor_stream_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v,
                             uint64_t policy);
void host_tensor_ask_five(const void *map, int x, int y, int z, int w, int v, uint64_t policy);
void host_tensor_load_five_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v,
                               uint16_t blocks);
void host_tensor_store(const void *map, uint32_t shared, int x, int y, int z, int w);
void host_tensor_stores_end(void);
void host_tensor_stores_read(unsigned left);
void host_shared_written(void);
void host_shared_clear(uint32_t shared);
void host_shared_keep(uint32_t shared, int count);
/** Eight elements of 16 bits, as the threads of a warp see each other's writes. */
void host_shared_load_eight(uint32_t shared, uint32_t *words);
void host_shared_store_eight(uint32_t shared, const uint32_t *words);
void host_shared_load_two(uint32_t shared, float *values);
void host_shared_store_two(uint32_t shared, float one, float other);
void host_warpgroup_sync(int number);
void host_store_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
void host_store_turned_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
void host_sync_warp(void);

/** One of a batch of products: the descriptors of 64 rows and of `columns` columns of 16 k. With `has_left` the rows are in
 * the threads' registers, and `a` means nothing. */
typedef struct host_product {
    uint64_t a, b;
    unsigned columns;
    bool adds, is_f16, a_mn_major, b_mn_major, has_left;
} host_product;
void host_products_fence(void);
/** `left`: of a product that has it the thread's four pairs, which are read when the product is computed; else NULL. */
void host_multiply(float *sums, const uint32_t *left, const host_product *product);
void host_products_commit(void);
void host_products_wait(unsigned left);

#if defined(__cplusplus)
}
#endif

/* The library has functions of some of these names. */
#define sb_shared_address host_shared_address
#define sb_clock() 0u
#define sb_clock_wait(begin, cycles) ((void)(begin), (void)(cycles))
#define sb_barrier_init host_barrier_init
#define sb_barrier_init_done host_barrier_init_done
#define sb_barrier_expect host_barrier_expect
#define sb_barrier_arrive host_barrier_arrive
#define sb_barrier_arrive_at host_barrier_arrive_at
#define sb_barrier_wait host_barrier_wait
#define sb_cluster_rank host_cluster_rank
#define sb_cluster_sync host_cluster_sync
#define sb_cluster_arrive host_cluster_arrive
#define sb_cluster_arrive_relaxed host_cluster_arrive
#define sb_cluster_wait host_cluster_wait
#define sb_cluster_send host_cluster_send
#define sb_cluster_send_two host_cluster_send_two
#define sb_cluster_store_long host_cluster_store_long
#define sb_cluster_load host_cluster_load
#define sb_cluster_add host_cluster_add
#define sb_tensor_map_prefetch host_tensor_map_prefetch
#define sb_streaming_policy host_streaming_policy
#define sb_tensor_load host_tensor_load
#define sb_bulk_load host_bulk_load
#define sb_tensor_load_pixels host_tensor_load_pixels
#define sb_tensor_stream host_tensor_stream
#define sb_tensor_ask host_tensor_ask
#define sb_tensor_load_all host_tensor_load_all
#define sb_tensor_load_five host_tensor_load_five
#define sb_tensor_stream_five host_tensor_stream_five
#define sb_tensor_ask_five host_tensor_ask_five
#define sb_tensor_load_five_all host_tensor_load_five_all
#define sb_tensor_store host_tensor_store
#define sb_shared_written host_shared_written
#define sb_shared_clear host_shared_clear
#define sb_shared_keep host_shared_keep
#define sb_shared_load_eight host_shared_load_eight
#define sb_shared_store_eight host_shared_store_eight
#define sb_shared_load_two host_shared_load_two
#define sb_shared_store_two host_shared_store_two
#define sb_warpgroup_sync host_warpgroup_sync
#define sb_store_matrices host_store_matrices
#define sb_store_turned_matrices host_store_turned_matrices
#define SB_TENSOR_STORES_END() host_tensor_stores_end()
#define SB_TENSOR_STORES_READ(n) host_tensor_stores_read(n)
#define SB_WGMMA_BEGIN() host_products_fence()
#define SB_WGMMA_END() host_products_commit()
#define SB_WGMMA_WAIT(n) host_products_wait(n)
#define SB_WGMMA_COLUMNS(columns, sums, adds, a, b, type, a_mn_major, b_mn_major)                                      \
    do {                                                                                                               \
        const host_product product = {                                                                                 \
            a, b, columns, (adds) != 0, (type)[0] == 'f', (a_mn_major) != 0, (b_mn_major) != 0, false};                \
        host_multiply(sums, NULL, &product);                                                                           \
    } while (0)
#define SB_WGMMA_LEFT_COLUMNS(columns, sums, adds, left, b, type, b_mn_major)                                          \
    do {                                                                                                               \
        const host_product product = {0, b, columns, (adds) != 0, (type)[0] == 'f', false, (b_mn_major) != 0, true};   \
        host_multiply(sums, left, &product);                                                                           \
    } while (0)
#define SB_WGMMA_LEFT_64(...) SB_WGMMA_LEFT_COLUMNS(64, __VA_ARGS__)
#define SB_WGMMA_LEFT_128(...) SB_WGMMA_LEFT_COLUMNS(128, __VA_ARGS__)
#define SB_WGMMA_8(...) SB_WGMMA_COLUMNS(8, __VA_ARGS__)
#define SB_WGMMA_16(...) SB_WGMMA_COLUMNS(16, __VA_ARGS__)
#define SB_WGMMA_32(...) SB_WGMMA_COLUMNS(32, __VA_ARGS__)
#define SB_WGMMA_64(...) SB_WGMMA_COLUMNS(64, __VA_ARGS__)
#define SB_WGMMA_80(...) SB_WGMMA_COLUMNS(80, __VA_ARGS__)
#define SB_WGMMA_96(...) SB_WGMMA_COLUMNS(96, __VA_ARGS__)
#define SB_WGMMA_112(...) SB_WGMMA_COLUMNS(112, __VA_ARGS__)
#define SB_WGMMA_128(...) SB_WGMMA_COLUMNS(128, __VA_ARGS__)
#define SB_WGMMA_144(...) SB_WGMMA_COLUMNS(144, __VA_ARGS__)
#define SB_WGMMA_160(...) SB_WGMMA_COLUMNS(160, __VA_ARGS__)
#define SB_WGMMA_192(...) SB_WGMMA_COLUMNS(192, __VA_ARGS__)
#define SB_WGMMA_224(...) SB_WGMMA_COLUMNS(224, __VA_ARGS__)
#define SB_WGMMA_256(...) SB_WGMMA_COLUMNS(256, __VA_ARGS__)

/* Registers are whatever they are; nothing is worked out sooner than it is used. */
#define SB_HOPPER_GIVE_REGISTERS(count) (void)0
#define SB_HOPPER_TAKE_REGISTERS(count) (void)0
#define SB_HOPPER_KEEP(...) (void)0

#define SB_HOPPER_BARRIERS(name, count) uint64_t *const name = (uint64_t *)host_static_shared(#name, 8 * (count))
#define SB_HOPPER_BARRIER_PAIRS(name, other, count)                                                                    \
    SB_HOPPER_BARRIERS(name, count);                                                                                   \
    SB_HOPPER_BARRIERS(other, count)
#define SB_HOPPER_DYNAMIC_SHARED(name) unsigned char *const name = host_dynamic_shared_memory()

/* The kernel's parameters are aligned as the driver does it. */
#define SB_HOPPER_KERNEL_BOUNDED(name, type, given, cluster, threads, blocks)                                          \
    HOST_HOPPER_KERNEL(name, type, given, cluster, threads)
#define SB_HOPPER_KERNEL(name, type, given, cluster, threads) HOST_HOPPER_KERNEL(name, type, given, cluster, threads)
#define HOST_HOPPER_KERNEL(kernel, type, given, cluster, threads)                                                      \
    static void kernel##_body(const type &given);                                                                      \
    static void kernel##_thread(const void *parameters) {                                                              \
        kernel##_body(*(const type *)parameters);                                                                      \
    }                                                                                                                  \
    static void kernel##_run(const void *parameters, const unsigned grid[3], const unsigned block[3],                  \
                             unsigned shared_bytes) {                                                                  \
        static const host_kernel self = {#kernel, kernel##_thread, true, cluster, threads};                            \
        static type aligned;                                                                                           \
        memcpy(&aligned, parameters, sizeof aligned);                                                                  \
        host_run_grid(&self, &aligned, grid, block, shared_bytes);                                                     \
    }                                                                                                                  \
    __attribute__((constructor(200))) static void kernel##_define(void) {                                              \
        host_define_kernel(#kernel, sizeof(type), kernel##_run);                                                       \
    }                                                                                                                  \
    static void kernel##_body(const type &given)

typedef struct float2 {
    float x __attribute__((aligned(8)));
    float y;
} float2;
static inline float2 make_float2(float x, float y) {
    const float2 both = {x, y};
    return both;
}

#define __syncthreads() host_barrier()
#define __syncwarp() host_sync_warp()
#define __shfl_sync(mask, value, lane) host_shuffle(value, lane)
static inline int host_shuffle(int value, unsigned lane) {
    host_exchange(&value, sizeof value, threadIdx.x / 32 * 32 + lane);
    return value;
}

#endif
