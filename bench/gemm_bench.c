/* The speed of f32 matrix products and convolutions on one core, with each instruction set of this machine.
 *
 *     bench gemm-f32/ISA/SHAPE samebit=X peer=P unit=GFLOP/s ratio=R
 *
 * X is the best of several runs in processor time of the one thread, weights packed ahead except for attention
 * products; P is the measured peak of multiply-adds: a loop of independent ones that touches no memory. SHAPE 2048 is
 * the square product. `--only TEXT` takes the shapes whose line contains TEXT. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/allocation.h"
#include "base/isa.h"
#include "cpu/contraction/conv.h"

#if SB_HAS_X86_KERNELS
#include <immintrin.h>
#endif

/* -- Peak -------------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static volatile float sink;

#define CHAINS 12
#define STEPS (1 << 20)

#if SB_HAS_X86_KERNELS
__attribute__((target("avx512f"))) static void spin_avx512(void) {
    __m512 acc[CHAINS];
    const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-4f);
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm512_set1_ps((float)i);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_fmadd_ps(acc[i], x, y);
    for (int i = 0; i < CHAINS; i++)
        sink = _mm512_cvtss_f32(acc[i]);
}

__attribute__((target("avx2,fma"))) static void spin_avx2(void) {
    __m256 acc[CHAINS];
    const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-4f);
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm256_set1_ps((float)i);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm256_fmadd_ps(acc[i], x, y);
    for (int i = 0; i < CHAINS; i++)
        sink = _mm256_cvtss_f32(acc[i]);
}
#endif

static void spin_scalar(void) {
    float acc[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        acc[i] = (float)i;
    for (int step = 0; step < STEPS / 16; step++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = fmaf(acc[i], 0.999f, 1e-4f);
    for (int i = 0; i < CHAINS; i++)
        sink = acc[i];
}

static double peak(sb_isa isa) {
    double lanes = 1.0 / 16;
    void (*spin)(void) = spin_scalar;
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512) {
        lanes = 16;
        spin = spin_avx512;
    } else if (isa == SB_ISA_AVX2) {
        lanes = 8;
        spin = spin_avx2;
    }
#endif
    double best = 0;
    for (int repeat = 0; repeat < 30; repeat++) {
        double start = seconds();
        spin();
        double rate = 2.0 * lanes * CHAINS * STEPS / (seconds() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}

/* -- Shapes ------------------------------------------------------------------------------------ */

typedef enum kind { PACKED, RAW, RAW_TRANSPOSED, CONVOLUTION } kind;

/* For a convolution m is the batch, n the output channels, k the input channels. */
typedef struct shape {
    const char *name;
    kind kind;
    int64_t m, n, k;
    int64_t image, window, stride, groups;
    bool channels_first;
} shape;

static const shape shapes[] = {
    {"2048", PACKED, 2048, 2048, 2048, .groups = 1},
    {"resnet-b%-7x7s2-3-64-nchw", CONVOLUTION, 0, 64, 3, 224, 7, 2, 1, true},
    {"resnet-b%-7x7s2-3-64", CONVOLUTION, 0, 64, 3, 224, 7, 2, 1, false},
    {"resnet-b%-1x1-64-64", CONVOLUTION, 0, 64, 64, 56, 1, 1, 1, false},
    {"resnet-b%-3x3-64-64", CONVOLUTION, 0, 64, 64, 56, 3, 1, 1, false},
    {"resnet-b%-1x1-64-256", CONVOLUTION, 0, 256, 64, 56, 1, 1, 1, false},
    {"resnet-b%-1x1-256-64", CONVOLUTION, 0, 64, 256, 56, 1, 1, 1, false},
    {"resnet-b%-1x1-256-128", CONVOLUTION, 0, 128, 256, 56, 1, 1, 1, false},
    {"resnet-b%-1x1s2-256-512", CONVOLUTION, 0, 512, 256, 56, 1, 2, 1, false},
    {"resnet-b%-3x3s2-128-128", CONVOLUTION, 0, 128, 128, 56, 3, 2, 1, false},
    {"resnet-b%-3x3-128-128", CONVOLUTION, 0, 128, 128, 28, 3, 1, 1, false},
    {"resnet-b%-1x1-128-512", CONVOLUTION, 0, 512, 128, 28, 1, 1, 1, false},
    {"resnet-b%-1x1-512-128", CONVOLUTION, 0, 128, 512, 28, 1, 1, 1, false},
    {"resnet-b%-1x1-512-256", CONVOLUTION, 0, 256, 512, 28, 1, 1, 1, false},
    {"resnet-b%-1x1s2-512-1024", CONVOLUTION, 0, 1024, 512, 28, 1, 2, 1, false},
    {"resnet-b%-3x3s2-256-256", CONVOLUTION, 0, 256, 256, 28, 3, 2, 1, false},
    {"resnet-b%-3x3-256-256", CONVOLUTION, 0, 256, 256, 14, 3, 1, 1, false},
    {"resnet-b%-1x1-256-1024", CONVOLUTION, 0, 1024, 256, 14, 1, 1, 1, false},
    {"resnet-b%-1x1-1024-256", CONVOLUTION, 0, 256, 1024, 14, 1, 1, 1, false},
    {"resnet-b%-1x1-1024-512", CONVOLUTION, 0, 512, 1024, 14, 1, 1, 1, false},
    {"resnet-b%-1x1s2-1024-2048", CONVOLUTION, 0, 2048, 1024, 14, 1, 2, 1, false},
    {"resnet-b%-3x3s2-512-512", CONVOLUTION, 0, 512, 512, 14, 3, 2, 1, false},
    {"resnet-b%-3x3-512-512", CONVOLUTION, 0, 512, 512, 7, 3, 1, 1, false},
    {"resnet-b%-1x1-512-2048", CONVOLUTION, 0, 2048, 512, 7, 1, 1, 1, false},
    {"resnet-b%-1x1-2048-512", CONVOLUTION, 0, 512, 2048, 7, 1, 1, 1, false},
    {"mobilenet-3x3s2-3-32-nchw", CONVOLUTION, 1, 32, 3, 224, 3, 2, 1, true},
    {"mobilenet-dw3x3-32", CONVOLUTION, 1, 32, 32, 112, 3, 1, 32, false},
    {"mobilenet-1x1-32-16", CONVOLUTION, 1, 16, 32, 112, 1, 1, 1, false},
    {"mobilenet-1x1-16-96", CONVOLUTION, 1, 96, 16, 112, 1, 1, 1, false},
    {"mobilenet-dw3x3s2-96", CONVOLUTION, 1, 96, 96, 112, 3, 2, 96, false},
    {"mobilenet-1x1-96-24", CONVOLUTION, 1, 24, 96, 56, 1, 1, 1, false},
    {"mobilenet-1x1-24-144", CONVOLUTION, 1, 144, 24, 56, 1, 1, 1, false},
    {"mobilenet-dw3x3-144", CONVOLUTION, 1, 144, 144, 56, 3, 1, 144, false},
    {"mobilenet-1x1-144-32", CONVOLUTION, 1, 32, 144, 28, 1, 1, 1, false},
    {"mobilenet-1x1-32-192", CONVOLUTION, 1, 192, 32, 28, 1, 1, 1, false},
    {"mobilenet-dw3x3-192", CONVOLUTION, 1, 192, 192, 28, 3, 1, 192, false},
    {"mobilenet-1x1-64-384", CONVOLUTION, 1, 384, 64, 14, 1, 1, 1, false},
    {"mobilenet-dw3x3-384", CONVOLUTION, 1, 384, 384, 14, 3, 1, 384, false},
    {"mobilenet-1x1-384-96", CONVOLUTION, 1, 96, 384, 14, 1, 1, 1, false},
    {"mobilenet-dw3x3-960", CONVOLUTION, 1, 960, 960, 7, 3, 1, 960, false},
    {"mobilenet-1x1-960-160", CONVOLUTION, 1, 160, 960, 7, 1, 1, 1, false},
    {"mobilenet-1x1-320-1280", CONVOLUTION, 1, 1280, 320, 7, 1, 1, 1, false},
    {"resnext-3x3g32-128-128", CONVOLUTION, 1, 128, 128, 56, 3, 1, 32, false},
    {"bert-128x768x768", PACKED, 128, 768, 768, .groups = 1},
    {"bert-128x3072x768", PACKED, 128, 3072, 768, .groups = 1},
    {"bert-128x768x3072", PACKED, 128, 768, 3072, .groups = 1},
    {"bert-1024x768x768", PACKED, 1024, 768, 768, .groups = 1},
    {"bert-1024x3072x768", PACKED, 1024, 3072, 768, .groups = 1},
    {"bert-1024x768x3072", PACKED, 1024, 768, 3072, .groups = 1},
    {"attention-qk-128x128x64", RAW_TRANSPOSED, 128, 128, 64, .groups = 1},
    {"attention-pv-128x64x128", RAW, 128, 64, 128, .groups = 1},
    {"raw-512x512x512", RAW, 512, 512, 512, .groups = 1},
    {"gemv-1x2048x512", PACKED, 1, 2048, 512, .groups = 1},
    {"gemv-1x1000x2048", PACKED, 1, 1000, 2048, .groups = 1},
    {"gemv-raw-1x2048x512", RAW, 1, 2048, 512, .groups = 1},
    {"gemm-8x2048x512", PACKED, 8, 2048, 512, .groups = 1},
};

/* -- Running ----------------------------------------------------------------------------------- */

/* Everything one shape needs; plain memory, freed together. */
typedef struct work {
    const sb_gemm_kernels *kernels;
    bool is_convolution;
    sb_gemm_args args;
    sb_conv_plan plan;
    float *a, *b, *c, *packed;
    void *workspace;
    double flops;
} work;

static float *random_floats(int64_t count) {
    float *values = sb_allocate((size_t)count * sizeof *values);
    uint32_t state = 1;
    for (int64_t i = 0; values != NULL && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return values;
}

static bool prepare_convolution(const shape *shape, int64_t batch, work *work) {
    const int64_t image = shape->image, out = (image + shape->stride - 1) / shape->stride;
    const int64_t group_channels = shape->k / shape->groups, window = shape->window;
    const bool first = shape->channels_first;
    sb_conv_shape conv = {.rank = 2,
                          .batch = batch,
                          .groups = shape->groups,
                          .input_channels = shape->k,
                          .output_channels = shape->n,
                          .input = {image, image},
                          .output = {out, out},
                          .kernel = {window, window},
                          .stride = {shape->stride, shape->stride},
                          .dilation = {1, 1},
                          .pad = {window / 2, window / 2},
                          .x_batch_stride = image * image * shape->k,
                          .x_channel_stride = first ? image * image : 1,
                          .x_stride = {first ? image : image * shape->k, first ? 1 : shape->k},
                          .y_batch_stride = out * out * shape->n,
                          .y_channel_stride = 1,
                          .y_stride = {out * shape->n, shape->n}};
    if (sb_conv_f32_plan(work->kernels, &conv, &work->plan, NULL) != SB_OK)
        return false;
    work->flops = 2.0 * (double)work->plan.m * (double)shape->n * (double)work->plan.k;
    work->a = random_floats(batch * image * image * shape->k);
    work->b = random_floats(shape->n * group_channels * window * window);
    work->c = random_floats(batch * out * out * shape->n);
    work->packed = sb_allocate(work->plan.packed_bytes);
    work->workspace = sb_allocate(work->plan.workspace_bytes);
    if (work->b == NULL || work->packed == NULL)
        return false;
    sb_conv_f32_pack(&work->plan, work->b, group_channels * window * window, window * window,
                     (const int64_t[]){window, 1}, work->packed);
    return true;
}

static bool prepare_product(const shape *shape, work *work) {
    work->a = random_floats(shape->m * shape->k);
    work->b = random_floats(shape->k * shape->n);
    work->c = random_floats(shape->m * shape->n);
    const bool transposed = shape->kind == RAW_TRANSPOSED;
    work->args = (sb_gemm_args){.m = shape->m,
                                .n = shape->n,
                                .k = shape->k,
                                .a = work->a,
                                .a_row_stride = shape->k,
                                .a_column_stride = 1,
                                .b = work->b,
                                .b_row_stride = transposed ? 1 : shape->n,
                                .b_column_stride = transposed ? shape->k : 1,
                                .c = work->c,
                                .c_row_stride = shape->n,
                                .c_column_stride = 1};
    work->flops = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
    if (work->b == NULL)
        return false;
    if (shape->kind == PACKED) {
        work->packed = sb_allocate(sb_gemm_f32_packed_bytes(work->kernels, shape->k, shape->n));
        if (work->packed == NULL)
            return false;
        sb_gemm_f32_pack_b(work->kernels, shape->k, shape->n, work->b, shape->n, 1, 0, shape->n, work->packed);
        work->args.packed_b = work->packed;
    }
    work->workspace = sb_allocate(sb_gemm_f32_workspace_bytes(work->kernels, &work->args));
    return true;
}

static void run(const work *work) {
    if (work->is_convolution)
        sb_conv_f32_run(&work->plan, work->a, work->packed, work->c, NULL, 0, work->plan.m, 0, work->plan.n,
                        work->workspace);
    else
        sb_gemm_f32_run(work->kernels, &work->args, 0, work->args.m, 0, work->args.n, work->workspace);
}

/* GFLOP/s of the best of at least 5 timings of at least 2 ms each; 0 when memory ran out. */
static double measure(const shape *shape, int64_t batch, sb_isa isa) {
    work work = {.kernels = sb_gemm_f32_kernels(isa), .is_convolution = shape->kind == CONVOLUTION};
    bool ready = work.is_convolution ? prepare_convolution(shape, batch, &work) : prepare_product(shape, &work);
    double best = 0;
    if (ready && work.a != NULL && work.c != NULL && work.workspace != NULL) {
        double start = seconds();
        run(&work);
        int times = (int)(0.002 / (seconds() - start)) + 1;
        for (int repeat = 0; repeat < 7; repeat++) {
            start = seconds();
            for (int i = 0; i < times; i++)
                run(&work);
            double rate = work.flops * times / (seconds() - start) * 1e-9;
            best = rate > best ? rate : best;
        }
    }
    sb_free(work.a);
    sb_free(work.b);
    sb_free(work.c);
    sb_free(work.packed);
    sb_free(work.workspace);
    return best;
}

int main(int count, char **arguments) {
    const char *only = count == 3 && strcmp(arguments[1], "--only") == 0 ? arguments[2] : "";
    if (count != 1 && count != 3) {
        fprintf(stderr, "usage: %s [--only TEXT]\n", arguments[0]);
        return 2;
    }
    static const sb_isa isas[] = {SB_ISA_AVX512, SB_ISA_AVX2, SB_ISA_SCALAR};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        sb_isa isa;
        if (sb_isa_resolve(isas[i], &isa, NULL) != SB_OK)
            continue;
        const double limit = peak(isa);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const bool batched = strchr(shapes[s].name, '%') != NULL;
            for (int64_t batch = 1; batch <= (batched ? 8 : 1); batch += 7) {
                char name[100];
                const char *mark = strchr(shapes[s].name, '%');
                if (mark != NULL)
                    snprintf(name, sizeof name, "gemm-f32/%s/%.*s%d%s", sb_isa_name(isa), (int)(mark - shapes[s].name),
                             shapes[s].name, (int)batch, mark + 1);
                else
                    snprintf(name, sizeof name, "gemm-f32/%s/%s", sb_isa_name(isa), shapes[s].name);
                /* Without vectors a shape of a network takes seconds. */
                if (strstr(name, only) == NULL || (isa == SB_ISA_SCALAR && strstr(name, "attention") == NULL))
                    continue;
                double rate = measure(&shapes[s], batch, isa);
                printf("bench %s samebit=%.1f peer=%.1f unit=GFLOP/s ratio=%.3f\n", name, rate, limit, rate / limit);
                fflush(stdout);
            }
        }
    }
    return 0;
}
