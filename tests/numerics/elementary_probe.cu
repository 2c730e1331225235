// The elementary functions on the GPU and on the CPU must agree on every bit (NaNs being one
// value): each one-argument f32 function over all 2^32 inputs, the f64 functions and pow on random
// ones. Exit status 1 if not.
//
//     elementary_probe [function ...]
//
// gcc -std=c17 -O3 -mavx2 -mfma -mf16c -ffp-contract=off -fno-math-errno -fno-trapping-math -I
// src/numerics
//     -c tests/numerics/elementary_host.c -o elementary_host.o
// nvcc -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true
// -gencode=arch=compute_90a,code=sm_90a
//      -I src/numerics tests/numerics/elementary_probe.cu elementary_host.o -o elementary_probe
#include "elementary.h"
#include "elementary_host.h"
#include "functions.h"
#include "minmax.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <mutex>
#include <thread>
#include <vector>

static const char *const NAMES[] = {
#define NAME(name, exact, lowest, highest) #name,
    SB_TEST_FUNCTIONS(NAME)};
enum { FUNCTION_COUNT = sizeof NAMES / sizeof NAMES[0], BLOCK = 1 << 13, PRINTED = 3 };
static const uint64_t CHUNK = uint64_t(1) << 26;
static const uint64_t INPUTS = uint64_t(1) << 32;
static const uint64_t SAMPLES = uint64_t(1) << 22;

static __host__ __device__ uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static __device__ float evaluate_f32(int function, float x) {
    int index = 0;
#define CALL_F32(name, exact, lowest, highest)                                                                         \
    if (function == index++) {                                                                                         \
        return sb_##name##_f32(x);                                                                                     \
    }
    SB_TEST_FUNCTIONS(CALL_F32)
    return 0.0f;
}

static __device__ double evaluate_f64(int function, double x) {
    int index = 0;
#define CALL_F64(name, exact, lowest, highest)                                                                         \
    if (function == index++) {                                                                                         \
        return sb_##name##_f64(x);                                                                                     \
    }
    SB_TEST_FUNCTIONS(CALL_F64)
    return 0.0;
}

// Results for inputs start, start + 1, ... and their order-free checksum.
static __global__ void chunk_f32(int function, uint32_t start, float *results, unsigned long long *checksum) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (uint64_t index = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; index < CHUNK; index += stride) {
        uint32_t input = start + (uint32_t)index;
        float result = evaluate_f32(function, sb_bits_to_f32(input));
        results[index] = result;
        sum += mix((uint64_t)input << 32 | sb_bits_canonical_f32(result));
    }
    atomicAdd(checksum, sum);
}

// Random doubles: any pattern, or of ordinary size.
static __host__ __device__ double sample_f64(uint64_t index) {
    uint64_t bits = mix(index);
    if (index % 2 != 0) {
        return sb_bits_to_f64(bits);
    }
    uint64_t exponent = 1023 - 20 + bits % 31;
    return sb_bits_to_f64((bits & 0x800fffffffffffffu) | exponent << 52);
}

static __host__ __device__ float sample_f32(uint64_t index) {
    uint32_t bits = (uint32_t)mix(index);
    return sb_bits_to_f32(index % 2 != 0 ? bits : (bits & 0x807fffffu) | (127u - 6u + bits % 13u) << 23);
}

static __global__ void samples_f64(int function, double *results) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t index = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; index < SAMPLES; index += stride) {
        results[index] = evaluate_f64(function, sample_f64(index));
    }
}

static __global__ void samples_pow(float *narrow, double *wide) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t index = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; index < SAMPLES; index += stride) {
        narrow[index] = sb_pow_f32(sample_f32(index), sample_f32(index + SAMPLES));
        wide[index] = sb_pow_f64(sample_f64(index), sample_f64(index + SAMPLES));
    }
}

static bool check(cudaError_t status, const char *what) {
    if (status != cudaSuccess) {
        fprintf(stderr, "elementary_probe: %s: %s\n", what, cudaGetErrorString(status));
        return false;
    }
    return true;
}

struct Totals {
    std::mutex lock;
    uint64_t mismatches = 0;
    uint64_t checksum = 0;
};

template <typename Work> static void on_all_threads(Work work) {
    unsigned count = std::thread::hardware_concurrency();
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < (count > 0 ? count : 1); index++) {
        threads.emplace_back(work);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

static void compare_chunk(int function, uint32_t start, const float *device, Totals &totals) {
    std::atomic<uint64_t> next{0};
    on_all_threads([&] {
        std::vector<float> x(BLOCK), y(BLOCK);
        uint64_t mismatches = 0, checksum = 0;
        for (uint64_t base; (base = next.fetch_add(BLOCK)) < CHUNK;) {
            for (int index = 0; index < BLOCK; index++) {
                x[index] = sb_bits_to_f32(start + (uint32_t)base + (uint32_t)index);
            }
            sb_host_evaluate_f32(function, x.data(), y.data(), BLOCK);
            for (int index = 0; index < BLOCK; index++) {
                uint32_t input = start + (uint32_t)base + (uint32_t)index;
                uint32_t host = sb_bits_canonical_f32(y[index]);
                checksum += mix((uint64_t)input << 32 | host);
                if (host != sb_bits_canonical_f32(device[base + index])) {
                    std::lock_guard<std::mutex> guard(totals.lock);
                    if (totals.mismatches + mismatches++ < PRINTED) {
                        printf("    %s(%08x): CPU %08x GPU %08x\n", NAMES[function], input, host,
                               sb_bits_from_f32(device[base + index]));
                    }
                }
            }
        }
        std::lock_guard<std::mutex> guard(totals.lock);
        totals.mismatches += mismatches;
        totals.checksum += checksum;
    });
}

struct Buffers {
    float *device[2] = {nullptr, nullptr};
    float *host[2] = {nullptr, nullptr};
    unsigned long long *checksum = nullptr;
    cudaStream_t stream[2] = {nullptr, nullptr};
};

static bool allocate(Buffers &buffers) {
    bool right = check(cudaMalloc(&buffers.checksum, sizeof *buffers.checksum), "allocation");
    for (int side = 0; side < 2; side++) {
        right = right && check(cudaMalloc(&buffers.device[side], CHUNK * sizeof(float)), "allocation") &&
                check(cudaMallocHost(&buffers.host[side], CHUNK * sizeof(float)), "pinned allocation") &&
                check(cudaStreamCreate(&buffers.stream[side]), "stream");
    }
    return right;
}

static bool launch(const Buffers &buffers, int function, uint64_t start) {
    int side = (int)(start / CHUNK % 2);
    chunk_f32<<<132 * 16, 256, 0, buffers.stream[side]>>>(function, (uint32_t)start, buffers.device[side],
                                                          buffers.checksum);
    return check(cudaMemcpyAsync(buffers.host[side], buffers.device[side], CHUNK * sizeof(float),
                                 cudaMemcpyDeviceToHost, buffers.stream[side]),
                 NAMES[function]);
}

// The GPU works on the next chunk while the CPU compares this one. Returns whether all agree.
static bool run_function(const Buffers &buffers, int function) {
    Totals totals;
    unsigned long long device_checksum = 0;
    if (!check(cudaMemset(buffers.checksum, 0, sizeof *buffers.checksum), "memset") || !launch(buffers, function, 0)) {
        return false;
    }
    for (uint64_t start = 0; start < INPUTS; start += CHUNK) {
        int side = (int)(start / CHUNK % 2);
        if (start + CHUNK < INPUTS && !launch(buffers, function, start + CHUNK)) {
            return false;
        }
        if (!check(cudaStreamSynchronize(buffers.stream[side]), NAMES[function])) {
            return false;
        }
        compare_chunk(function, (uint32_t)start, buffers.host[side], totals);
    }
    if (!check(cudaMemcpy(&device_checksum, buffers.checksum, sizeof device_checksum, cudaMemcpyDeviceToHost),
               "checksum")) {
        return false;
    }
    printf("%-10s f32 GPU %016llx CPU %016llx, %llu of 2^32 differ\n", NAMES[function], device_checksum,
           (unsigned long long)totals.checksum, (unsigned long long)totals.mismatches);
    fflush(stdout);
    return totals.mismatches == 0 && totals.checksum == device_checksum;
}

// Compares SAMPLES doubles from the GPU with host(base, count, y), which fills y with the CPU's
// results.
template <typename Host> static bool compare_f64(const char *name, const double *device, Host host) {
    std::atomic<uint64_t> next{0}, mismatches{0};
    on_all_threads([&] {
        std::vector<double> y(BLOCK);
        for (uint64_t base; (base = next.fetch_add(BLOCK)) < SAMPLES;) {
            host(base, y.data());
            for (int index = 0; index < BLOCK; index++) {
                mismatches += sb_bits_canonical_f64(y[index]) != sb_bits_canonical_f64(device[base + index]);
            }
        }
    });
    printf("%-10s f64 %llu of %llu samples differ\n", name, (unsigned long long)mismatches.load(),
           (unsigned long long)SAMPLES);
    return mismatches == 0;
}

static bool run_f64(int function, double *results) {
    samples_f64<<<132 * 8, 256>>>(function, results);
    if (!check(cudaDeviceSynchronize(), NAMES[function])) {
        return false;
    }
    return compare_f64(NAMES[function], results, [&](uint64_t base, double *y) {
        std::vector<double> x(BLOCK);
        for (int index = 0; index < BLOCK; index++) {
            x[index] = sample_f64(base + index);
        }
        sb_host_evaluate_f64(function, x.data(), y, BLOCK);
    });
}

static bool run_pow(double *results, float *narrow) {
    samples_pow<<<132 * 8, 256>>>(narrow, results);
    if (!check(cudaDeviceSynchronize(), "pow")) {
        return false;
    }
    bool right = compare_f64("pow", results, [&](uint64_t base, double *z) {
        std::vector<double> x(BLOCK), y(BLOCK);
        for (int index = 0; index < BLOCK; index++) {
            x[index] = sample_f64(base + index);
            y[index] = sample_f64(base + index + SAMPLES);
        }
        sb_host_pow_f64(x.data(), y.data(), z, BLOCK);
    });
    uint64_t mismatches = 0;
    for (uint64_t base = 0; base < SAMPLES; base += BLOCK) {
        std::vector<float> x(BLOCK), y(BLOCK), z(BLOCK);
        for (int index = 0; index < BLOCK; index++) {
            x[index] = sample_f32(base + index);
            y[index] = sample_f32(base + index + SAMPLES);
        }
        sb_host_pow_f32(x.data(), y.data(), z.data(), BLOCK);
        for (int index = 0; index < BLOCK; index++) {
            mismatches += sb_bits_canonical_f32(z[index]) != sb_bits_canonical_f32(narrow[base + index]);
        }
    }
    printf("%-10s f32 %llu of %llu samples differ\n", "pow", (unsigned long long)mismatches,
           (unsigned long long)SAMPLES);
    return right && mismatches == 0;
}

int main(int count, char **arguments) {
    Buffers buffers;
    double *results = nullptr;
    float *narrow = nullptr;
    if (!allocate(buffers) || !check(cudaMallocManaged(&results, SAMPLES * sizeof *results), "allocation") ||
        !check(cudaMallocManaged(&narrow, SAMPLES * sizeof *narrow), "allocation")) {
        return 2;
    }
    bool right = true;
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        bool wanted = count < 2;
        for (int argument = 1; argument < count; argument++) {
            wanted = wanted || strcmp(arguments[argument], NAMES[function]) == 0;
        }
        if (wanted) {
            right = run_f64(function, results) && right;
            right = run_function(buffers, function) && right;
        }
    }
    right = run_pow(results, narrow) && right;
    printf(right ? "all agree\n" : "GPU and CPU DIFFER\n");
    return right ? 0 : 1;
}
