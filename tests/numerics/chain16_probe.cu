// What the tensor core really computes in one k16 step, against sb_chain16_step.
//
//     chain16_probe OUTFILE [tiles per case, default 16384]
//
// Warps run mma.sync.m16n8k16 (bf16 and f16, f32 accumulation) over chains of K = 16 to 1024 on
// many kinds of data. After every step each output is compared with the model, compiled for the
// device from the same header and given the same accumulator, so that a mismatch is always that of
// one step. Prints counts per case and the first mismatches with all their inputs; writes recorded
// steps for test_chain. Exit status 1 if anything differs.
//
// nvcc -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true
//      -gencode=arch=compute_90a,code=sm_90a -I src/numerics tests/numerics/chain16_probe.cu -o
//      chain16_probe
#include "chain.h"
#include "convert.h"
#include "minmax.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

enum Type { BF16 = 0, F16 = 1, TYPES = 2 };

enum Data {
    NORMAL,     // around 1
    WIDE,       // exponents over half of the format's range
    ANY,        // any finite pattern
    ZEROS,      // half of the numbers are zeros of either sign
    SUBNORMAL,  // subnormals and the smallest normal numbers
    LARGE,      // the largest exponents: overflow
    INFINITIES, // some infinities among any finite patterns
    NANS,       // some NaNs and infinities
    CANCELLING, // eight products and their negatives
    NEARLY_CANCELLING,
    MAXIMUM,         // largest significands, equal exponents, mostly one sign
    ZERO_TIMES_HUGE, // zeros meet the largest numbers, other products are small
    FLOOR,           // product exponents around -133
    ONLY_ZEROS,      // zeros of both signs, and products that underflow
    SMALL_PRODUCTS,  // products far below the accumulator
    CASES
};

static const char *const CASE_NAMES[CASES] = {
    "normal",     "wide",   "any",     "zeros",           "subnormal", "large",      "infinities",    "nans",
    "cancelling", "nearly", "maximum", "zero times huge", "floor",     "only zeros", "small products"};

struct Step { // must match `recorded` of test_chain.c
    uint32_t type;
    uint32_t accumulator;
    uint32_t result;
    uint16_t a[16];
    uint16_t b[16];
};

enum { MISMATCHES_KEPT = 4, RECORDED_PER_CASE = 160, WARPS = 4 };

struct Report {
    unsigned long long outputs;
    unsigned long long mismatches;
    unsigned long long zero_sign;  // differ only in the sign of a zero
    unsigned long long not_finite; // one side is infinite or NaN
    unsigned kept;
    Step mismatch[MISMATCHES_KEPT];
    uint32_t model[MISMATCHES_KEPT];
    Step recorded[RECORDED_PER_CASE];
};

static __host__ __device__ uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static __device__ int fraction_bits(int type) {
    return type == BF16 ? 7 : 10;
}

static __device__ int largest_stored_exponent(int type) {
    return type == BF16 ? 254 : 30;
}

// A pattern with the stored exponent clamped to the finite range.
static __device__ uint16_t compose(int type, int stored_exponent, uint64_t random) {
    int top = largest_stored_exponent(type);
    int stored = stored_exponent < 0 ? 0 : stored_exponent > top ? top : stored_exponent;
    int bits = fraction_bits(type);
    uint32_t fraction = (uint32_t)random & ((1u << bits) - 1u);
    return (uint16_t)((random >> 40 & 1) << 15 | (uint32_t)stored << bits | fraction);
}

static __device__ int uniform_between(int low, int high, uint64_t random) {
    return low + (int)((random >> 16 & 0xffffff) % (uint32_t)(high - low + 1));
}

// Element k of a row of A (operand 0) or a column of B (operand 1).
static __device__ uint16_t element(int type, int data, int operand, int k, uint64_t random) {
    int bias = type == BF16 ? 127 : 15;
    int top = largest_stored_exponent(type);
    int bits = fraction_bits(type);
    uint16_t sign = (uint16_t)((random >> 41 & 1) << 15);
    uint16_t infinity = (uint16_t)((top + 1) << bits);
    int any = uniform_between(0, top, random);
    int near_one = bias - (int)(random >> 48 & 3);
    switch (data) {
    case WIDE:
        return compose(type, uniform_between(bias - top / 4, bias + top / 4, random), random);
    case ANY:
        return compose(type, any, random);
    case ZEROS:
        return (random >> 50 & 1) ? sign : compose(type, near_one, random);
    case SUBNORMAL:
        return compose(type, uniform_between(0, 2, random) * operand, random);
    case LARGE:
        return compose(
            type, uniform_between(type == BF16 ? bias + 55 : top - 3, type == BF16 ? bias + 67 : top, random), random);
    case INFINITIES:
        return (random >> 50 & 63) == 0 ? (uint16_t)(infinity | sign) : compose(type, any, random);
    case NANS:
        return (random >> 50 & 63) == 0   ? (uint16_t)(infinity | sign | 1)
               : (random >> 50 & 63) == 1 ? (uint16_t)(infinity | sign)
               : (random >> 50 & 63) == 2 ? sign
                                          : compose(type, near_one, random);
    case MAXIMUM:
        return (uint16_t)(((random >> 50 & 15) == 0 ? 0x8000 : 0) | bias << bits | ((1 << bits) - 1));
    case ZERO_TIMES_HUGE:
        if (k & 1) {
            return compose(type, bias - 4, random);
        }
        return (k >> 1 & 1) == operand ? sign : (uint16_t)(sign | (infinity - 1));
    case FLOOR:
        return type == BF16 ? compose(type, uniform_between(47, (random >> 50 & 3) != 0 ? 58 : 70, random), random)
                            : compose(type, uniform_between(0, 3, random), random);
    case ONLY_ZEROS:
        return (random >> 50 & 7) == 0 && type == BF16 ? compose(type, uniform_between(0, 40, random), random) : sign;
    case SMALL_PRODUCTS:
        return compose(type, uniform_between(bias - (type == BF16 ? 30 : 14), bias, random), random);
    default: // NORMAL, CANCELLING, NEARLY_CANCELLING
        return compose(type, near_one, random);
    }
}

static __device__ float start_value(int data, uint64_t random) {
    uint32_t sign = (uint32_t)(random >> 41 & 1) << 31;
    uint32_t fraction = (uint32_t)random & 0x7fffffu;
    int low = 127 - 2, high = 127 + 2;
    int choice = (int)(random >> 44 & 7);
    if (choice == 0) {
        return sb_bits_to_f32((random >> 47 & 1) ? sign : 0u);
    }
    if (choice == 1) {
        low = 1, high = 254;
    }
    switch (data) {
    case ANY:
        low = 1, high = 254;
        break;
    case SUBNORMAL:
    case ONLY_ZEROS:
    case FLOOR:
        if (choice < 5) {
            return sb_bits_to_f32(sign | (fraction >> (random >> 50 & 15)));
        }
        low = 1, high = 30;
        break;
    case LARGE:
        low = 245, high = 254;
        break;
    case INFINITIES:
    case NANS:
        if (choice == 2) {
            return sb_bits_to_f32(0x7f800000u | sign | (data == NANS && (random >> 47 & 1) ? 1u : 0u));
        }
        break;
    case SMALL_PRODUCTS:
    case WIDE:
    case CANCELLING:
        low = 87, high = 167;
        break;
    default:
        break;
    }
    return sb_bits_to_f32(sign | (uint32_t)uniform_between(low, high, random) << 23 | fraction);
}

static __device__ void tensor_core(int type, float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    if (type == BF16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%10,%11,%12,%13};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
                       "f"(c[2]), "f"(c[3]));
    } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%10,%11,%12,%13};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
                       "f"(c[2]), "f"(c[3]));
    }
}

struct Tile {
    uint16_t a[16][16]; // row, k
    uint16_t b[8][16];  // column, k
};

static __device__ uint32_t pair(const uint16_t *pattern) {
    return (uint32_t)pattern[0] | (uint32_t)pattern[1] << 16;
}

static __device__ void fill(Tile &tile, int type, int data, uint64_t seed, int lane) {
    for (int index = lane; index < 24 * 16; index += 32) {
        int line = index / 16, k = index % 16;
        int operand = line < 16 ? 0 : 1;
        int source = k;
        if ((data == CANCELLING || data == NEARLY_CANCELLING) && k >= 8) {
            source = k - 8;
        }
        uint16_t value = element(type, data, operand, source, mix(seed ^ mix((uint64_t)line * 16 + source)));
        if (source != k && operand == 0) {
            value ^= 0x8000;
            value ^= data == NEARLY_CANCELLING && (mix(seed + k) & 3) == 0 ? 1 : 0;
        }
        uint16_t *place = operand == 0 ? &tile.a[line][k] : &tile.b[line - 16][k];
        *place = value;
    }
}

static __device__ void describe(Step &step, const Tile &tile, int type, int row, int column, float accumulator,
                                float result) {
    step.type = (uint32_t)type;
    step.accumulator = sb_bits_from_f32(accumulator);
    step.result = sb_bits_from_f32(result);
    for (int k = 0; k < 16; k++) {
        step.a[k] = tile.a[row][k];
        step.b[k] = tile.b[column][k];
    }
}

// One warp per tile; gridDim.x * WARPS tiles at a time.
static __global__ void probe(Report *report, int type, int data, unsigned tiles) {
    __shared__ Tile shared[WARPS];
    int lane = threadIdx.x % 32;
    Tile &tile = shared[threadIdx.x / 32];
    int group = lane / 4, pair_index = lane % 4;
    sb_chain16_format format = type == BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    unsigned long long outputs = 0, mismatches = 0, zero_sign = 0, not_finite = 0;
    for (unsigned number = blockIdx.x * WARPS + threadIdx.x / 32; number < tiles; number += gridDim.x * WARPS) {
        int steps = 1 << 2 * (number % 4); // K = 16, 64, 256, 1024
        float c[4];
        for (int slot = 0; slot < 4; slot++) {
            c[slot] = start_value(data, mix(mix(number) ^ ((uint64_t)lane * 4 + slot)));
        }
        for (int position = 0; position < steps; position++) {
            uint64_t seed =
                mix(((uint64_t)number << 16 | (uint64_t)position) ^ ((uint64_t)(type * CASES + data) << 56));
            __syncwarp();
            fill(tile, type, data, seed, lane);
            __syncwarp();
            uint32_t a[4] = {pair(&tile.a[group][2 * pair_index]), pair(&tile.a[group + 8][2 * pair_index]),
                             pair(&tile.a[group][2 * pair_index + 8]), pair(&tile.a[group + 8][2 * pair_index + 8])};
            uint32_t b[2] = {pair(&tile.b[group][2 * pair_index]), pair(&tile.b[group][2 * pair_index + 8])};
            float d[4];
            tensor_core(type, d, a, b, c);
            for (int slot = 0; slot < 4; slot++) {
                int row = group + (slot / 2) * 8, column = 2 * pair_index + slot % 2;
                float model = sb_chain16_step(tile.a[row], tile.b[column], c[slot], format);
                uint32_t hardware_bits = sb_bits_canonical_f32(d[slot]);
                uint32_t model_bits = sb_bits_canonical_f32(model);
                outputs++;
                if (hardware_bits != model_bits) {
                    mismatches++;
                    zero_sign += ((hardware_bits | model_bits) & 0x7fffffffu) == 0;
                    not_finite +=
                        (hardware_bits & 0x7fffffffu) >= 0x7f800000u || (model_bits & 0x7fffffffu) >= 0x7f800000u;
                    unsigned place = atomicAdd(&report->kept, 1u);
                    if (place < MISMATCHES_KEPT) {
                        describe(report->mismatch[place], tile, type, row, column, c[slot], d[slot]);
                        report->model[place] = model_bits;
                    }
                }
                int recorded_lane = (int)(number * 7 % 32);
                if (number < RECORDED_PER_CASE && lane == recorded_lane && slot == (int)(number % 4) &&
                    position == (int)(number % (unsigned)steps)) {
                    describe(report->recorded[number], tile, type, row, column, c[slot], d[slot]);
                }
                // An accumulator of any size hides the floor.
                if (data == FLOOR && (mix(seed + 7u * lane) & 1) != 0) {
                    c[slot] = 0.0f;
                    continue;
                }
                // An infinite or NaN accumulator would end the chain's usefulness.
                bool finite = (hardware_bits & 0x7fffffffu) < 0x7f800000u;
                c[slot] = finite ? d[slot] : start_value(data, mix(seed + (uint64_t)lane * 4 + slot));
            }
        }
    }
    atomicAdd(&report->outputs, outputs);
    atomicAdd(&report->mismatches, mismatches);
    atomicAdd(&report->zero_sign, zero_sign);
    atomicAdd(&report->not_finite, not_finite);
}

// One step with given inputs in row 0 and column 0.
static __global__ void single(Step *step) {
    int lane = threadIdx.x;
    int group = lane / 4, pair_index = lane % 4;
    uint32_t a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
    if (group == 0) {
        a[0] = pair(&step->a[2 * pair_index]);
        a[2] = pair(&step->a[2 * pair_index + 8]);
        b[0] = pair(&step->b[2 * pair_index]);
        b[1] = pair(&step->b[2 * pair_index + 8]);
    }
    float c[4] = {sb_bits_to_f32(step->accumulator), 0.0f, 0.0f, 0.0f}, d[4];
    tensor_core((int)step->type, d, a, b, c);
    if (lane == 0) {
        step->result = sb_bits_from_f32(d[0]);
    }
}

struct Corner {
    const char *text;
    uint16_t a0, b0, a1, b1;
    uint32_t accumulator;
};

static const Corner CORNERS[] = {
    {"infinity * 1 + 1", 0x7f80, 0x3f80, 0, 0, 0x3f800000},
    {"infinity - infinity", 0x7f80, 0x3f80, 0xff80, 0x3f80, 0},
    {"infinity * 0", 0x7f80, 0, 0, 0, 0},
    {"infinity + overflow of the other sign", 0x7f80, 0x3f80, 0xff7f, 0x7f7f, 0},
    {"NaN", 0x7fc1, 0x3f80, 0, 0, 0},
    {"NaN accumulator", 0, 0, 0, 0, 0x7fc00001},
    {"-infinity accumulator", 0x3f80, 0x3f80, 0, 0, 0xff800000},
    {"largest * largest", 0x7f7f, 0x7f7f, 0, 0, 0},
    {"largest * largest - the same, + 1", 0x7f7f, 0x7f7f, 0x7f7f, 0xff7f, 0x3f800000},
    {"2^127 + 2^127", 0x7f00, 0x3f80, 0x7f00, 0x3f80, 0},
    {"largest f32 + 2^103", 0x7300, 0x3f80, 0, 0, 0x7f7fffff},
    {"0 * largest + (1 + 2^-23)", 0, 0x7f7f, 0, 0, 0x3f800001},
    {"0 * largest + smallest f32", 0, 0x7f7f, 0, 0, 1},
    {"1 - 1", 0x3f80, 0x3f80, 0x3f80, 0xbf80, 0},
    {"0 + 0 + -0", 0, 0, 0, 0, 0x80000000},
    {"sixteen -0 products + -0", 0x8000, 0x3f80, 0x8000, 0x3f80, 0x80000000},
    {"2^-252", 0x0080, 0x0080, 0, 0, 0},
    {"-2^-252", 0x8080, 0x0080, 0, 0, 0},
    {"-2^-150", 0x9a00, 0x1a00, 0, 0, 0},
    {"2^-149 - 2^-157", 0x1a00, 0x1a80, 0x9880, 0x1800, 0},
    {"2^-149 - 2^-158", 0x1a00, 0x1a80, 0x9800, 0x1800, 0},
    {"2^-149 - 2^-159", 0x1a00, 0x1a80, 0x9780, 0x1800, 0},
    {"2^-149 - 2^-160", 0x1a00, 0x1a80, 0x9780, 0x1780, 0},
    {"2^-158", 0x1800, 0x1800, 0, 0, 0},
    {"-2^-158 + smallest f32", 0x9800, 0x1800, 0, 0, 1},
    {"smallest f32 accumulator", 0, 0, 0, 0, 1},
    {"largest subnormal accumulator", 0, 0, 0, 0, 0x007fffff},
    {"1 + 2^-25", 0x3f80, 0x3f80, 0, 0, 0x33000000},
    {"1 - 2^-25", 0x3f80, 0x3f80, 0, 0, 0xb3000000},
    {"1 - 2^-26", 0x3f80, 0x3f80, 0, 0, 0xb2800000},
};

static bool check(cudaError_t status, const char *what) {
    if (status != cudaSuccess) {
        fprintf(stderr, "chain16_probe: %s: %s\n", what, cudaGetErrorString(status));
        return false;
    }
    return true;
}

static void print_step(const Step &step, uint32_t model) {
    printf("    acc %08x hardware %08x model %08x\n    a", step.accumulator, step.result, model);
    for (int k = 0; k < 16; k++) {
        printf(" %04x", step.a[k]);
    }
    printf("\n    b");
    for (int k = 0; k < 16; k++) {
        printf(" %04x", step.b[k]);
    }
    printf("\n");
}

static float host_model(const Step &step) {
    sb_chain16_format format = step.type == BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    return sb_chain16_step(step.a, step.b, sb_bits_to_f32(step.accumulator), format);
}

// Prints every corner; returns how many differ.
static int run_corners(FILE *file) {
    int wrong = 0;
    Step *step = nullptr;
    if (!check(cudaMallocManaged(&step, sizeof *step), "allocation")) {
        return 1;
    }
    for (const Corner &corner : CORNERS) {
        memset(step, 0, sizeof *step);
        step->type = BF16;
        step->accumulator = corner.accumulator;
        for (int k = 0; k < 16; k += 2) { // the sixteen-fold corner repeats its pair
            bool repeat = k == 0 || strncmp(corner.text, "sixteen", 7) == 0;
            step->a[k] = repeat ? corner.a0 : 0;
            step->b[k] = repeat ? corner.b0 : 0;
            step->a[k + 1] = repeat ? corner.a1 : 0;
            step->b[k + 1] = repeat ? corner.b1 : 0;
        }
        single<<<1, 32>>>(step);
        if (!check(cudaDeviceSynchronize(), "corner")) {
            return 1;
        }
        float model = host_model(*step);
        bool same = sb_bits_canonical_f32(model) == sb_bits_canonical_f32(sb_bits_to_f32(step->result));
        printf("  %-40s hardware %08x model %08x%s\n", corner.text, step->result, sb_bits_from_f32(model),
               same ? "" : "  DIFFERS");
        fwrite(step, sizeof *step, 1, file);
        wrong += !same;
    }
    cudaFree(step);
    return wrong;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: chain16_probe OUTFILE [tiles per case]\n");
        return 2;
    }
    unsigned tiles = count > 2 ? (unsigned)strtoul(arguments[2], nullptr, 10) : 16384u;
    FILE *file = fopen(arguments[1], "wb");
    Report *report = nullptr;
    if (file == nullptr || !check(cudaMallocManaged(&report, sizeof *report), "allocation")) {
        fprintf(stderr, "chain16_probe: cannot start with %s\n", arguments[1]);
        return 2;
    }
    fwrite("IVCHAIN1", 1, 8, file);
    printf("corners (bf16):\n");
    unsigned long long wrong = (unsigned long long)run_corners(file), outputs = 0;
    for (int type = 0; type < TYPES; type++) {
        for (int data = 0; data < CASES; data++) {
            memset(report, 0, sizeof *report);
            probe<<<132 * 8, 32 * WARPS>>>(report, type, data, tiles);
            if (!check(cudaDeviceSynchronize(), CASE_NAMES[data])) {
                return 2;
            }
            printf("%s %-16s %12llu outputs, %llu differ (%llu in the sign of zero, %llu not "
                   "finite)\n",
                   type == BF16 ? "bf16" : "f16 ", CASE_NAMES[data], report->outputs, report->mismatches,
                   report->zero_sign, report->not_finite);
            for (unsigned index = 0; index < report->kept && index < MISMATCHES_KEPT; index++) {
                print_step(report->mismatch[index], report->model[index]);
            }
            int host_differs = 0;
            for (const Step &step : report->recorded) {
                fwrite(&step, sizeof step, 1, file);
                uint32_t model = sb_bits_canonical_f32(host_model(step));
                host_differs += model != sb_bits_canonical_f32(sb_bits_to_f32(step.result));
            }
            if (host_differs > 0) {
                printf("    %d of the %d recorded steps differ from the model on the host\n", host_differs,
                       RECORDED_PER_CASE);
            }
            wrong += report->mismatches;
            outputs += report->outputs;
        }
    }
    bool written = fclose(file) == 0;
    printf("%llu outputs, %llu differ\n", outputs, wrong);
    return wrong != 0 || !written;
}
