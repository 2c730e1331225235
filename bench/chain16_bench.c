/* The speed of the 16-bit contraction on one core, with each instruction set of this machine.
 *
 *     bench chain16/ISA samebit=X peer=T unit=GMAC/s ratio=R
 *
 * X is the best of several runs over packed operands, in processor time of the one thread; T is no
 * other library (none computes these bits on a CPU) but the target that the project set itself: 8
 * with AVX-512, 5 with AVX2. The scalar kernels have no target, and their line has none. Lines of
 * other shapes follow with `shape=`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/allocation.h"
#include "cpu/contraction/chain16.h"
#include "numerics/convert.h"

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    sb_dtype dtype;
    bool rounds; /* to that dtype; else the sums are kept */
} shape;

static const shape shapes[] = {
    {NULL, 512, 1024, 1024, SB_BF16, false},
    {"f16", 512, 1024, 1024, SB_F16, false},
    {"bert-128x768x3072", 128, 768, 3072, SB_BF16, false},
    {"conv3x3-196x256x2304", 196, 256, 2304, SB_BF16, false},
    {"attention-128x128x64", 128, 128, 64, SB_BF16, false},
    {"prompt-128x8192x2048", 128, 8192, 2048, SB_BF16, false},
    {"prompt-128x2048x8192", 128, 2048, 8192, SB_BF16, false},
    {"decode-1x2048x2048", 1, 2048, 2048, SB_BF16, false},
    {"decode-2x2048x2048", 2, 2048, 2048, SB_BF16, false},
    {"decode-3x2048x2048", 3, 2048, 2048, SB_BF16, false},
    {"decode-4x2048x2048", 4, 2048, 2048, SB_BF16, false},
    {"decode-6x2048x2048", 6, 2048, 2048, SB_BF16, false},
    {"decode-8x2048x2048", 8, 2048, 2048, SB_BF16, false},
    {"decode-f16-1x2048x2048", 1, 2048, 2048, SB_F16, false},
    {"rounded-512x1024x1024", 512, 1024, 1024, SB_BF16, true},
    {"rounded-bert-128x768x768", 128, 768, 768, SB_BF16, true},
    {"rounded-bert-128x768x3072", 128, 768, 3072, SB_BF16, true},
    {"rounded-prompt-128x8192x2048", 128, 8192, 2048, SB_BF16, true},
    {"rounded-prompt-128x2048x8192", 128, 2048, 8192, SB_BF16, true},
    {"rounded-conv3x3-196x256x2304", 196, 256, 2304, SB_BF16, true},
    {"rounded-conv-784x128x256", 784, 128, 256, SB_BF16, true},
    {"rounded-3x2048x2048", 3, 2048, 2048, SB_BF16, true},
    {"rounded-4x2048x2048", 4, 2048, 2048, SB_BF16, true},
    {"rounded-8x2048x2048", 8, 2048, 2048, SB_BF16, true},
    {"rounded-f16-128x768x768", 128, 768, 768, SB_F16, true},
};

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Roughly normal values, as networks hold them. */
static void fill(sb_dtype dtype, uint16_t *elements, int64_t count) {
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int j = 0; j < 6; j++) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) * 0x1p-24f - 0.5f;
        }
        elements[i] = dtype == SB_BF16 ? sb_bf16_from_f32(sum) : sb_f16_from_f32(sum);
    }
}

/* GMAC/s of one product; 0 when memory ran out. */
static double measure(const shape *shape, sb_isa isa) {
    uint16_t *a = sb_allocate((size_t)(shape->m * shape->k) * sizeof *a);
    uint16_t *b = sb_allocate((size_t)(shape->k * shape->n) * sizeof *b);
    float *c = sb_allocate((size_t)(shape->m * shape->n) * sizeof *c);
    uint16_t *packed = sb_allocate(sb_chain16_packed_bytes(shape->k, shape->n));
    sb_chain16_args args = {.dtype = shape->dtype,
                            .m = shape->m,
                            .n = shape->n,
                            .k = shape->k,
                            .a = a,
                            .a_row_stride = shape->k,
                            .a_column_stride = 1,
                            .packed_b = packed,
                            .c = c,
                            .c_dtype = shape->rounds ? shape->dtype : SB_F32,
                            .c_row_stride = shape->n,
                            .c_column_stride = 1};
    void *workspace = sb_allocate(sb_chain16_workspace_bytes(&args));
    double best = 1e9;
    if (a && b && c && packed && workspace) {
        fill(shape->dtype, a, shape->m * shape->k);
        fill(shape->dtype, b, shape->k * shape->n);
        sb_chain16_pack_b(shape->k, shape->n, b, shape->n, 1, 0, shape->n, packed);
        double begin = seconds();
        do {
            double start = seconds();
            sb_chain16_run(sb_chain16_kernels_of(isa), &args, 0, shape->m, 0, shape->n, workspace);
            double elapsed = seconds() - start;
            best = elapsed < best ? elapsed : best;
        } while (seconds() - begin < 0.7);
    }
    sb_free(workspace);
    sb_free(packed);
    sb_free(c);
    sb_free(b);
    sb_free(a);
    return (double)shape->m * (double)shape->n * (double)shape->k / best * 1e-9;
}

/* Of --isa NAME alone the first shape is timed, for who wants one rate. */
int main(int argument_count, char **arguments) {
    const char *only = argument_count == 3 && strcmp(arguments[1], "--isa") == 0 ? arguments[2] : NULL;
    if (argument_count != 1 && only == NULL) {
        fprintf(stderr, "usage: chain16_bench [--isa scalar|avx2|avx512]\n");
        return 2;
    }
    static const double targets[] = {[SB_ISA_SCALAR] = 0.0, [SB_ISA_AVX2] = 5.0, [SB_ISA_AVX512] = 8.0};
    puts("# chain16: peer is the project's target for one core, not another library");
    for (size_t i = 0; i < (only != NULL ? 1 : sizeof shapes / sizeof *shapes); i++) {
        for (int wanted = SB_ISA_SCALAR; wanted <= SB_ISA_AVX512; wanted++) {
            sb_isa isa;
            if (sb_isa_resolve((sb_isa)wanted, &isa, NULL) != SB_OK ||
                (only != NULL && strcmp(only, sb_isa_name(isa)) != 0))
                continue;
            double speed = measure(&shapes[i], isa), target = targets[isa];
            if (shapes[i].name)
                printf("chain16/%s shape=%s samebit=%.2f unit=GMAC/s\n", sb_isa_name(isa), shapes[i].name, speed);
            else if (target > 0.0)
                printf("bench chain16/%s samebit=%.2f peer=%.2f unit=GMAC/s ratio=%.2f\n", sb_isa_name(isa), speed,
                       target, speed / target);
            else
                printf("chain16/%s samebit=%.2f unit=GMAC/s\n", sb_isa_name(isa), speed);
            fflush(stdout);
        }
    }
    return 0;
}
