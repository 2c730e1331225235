/* Products of 16-bit matrices on a device and on the CPU, compared byte for byte: what the tests of schedules share. */
#ifndef GEMM16_PRODUCTS_H
#define GEMM16_PRODUCTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <samebit/gemm.h>

#include "cuda/contraction/gemm16.h"
#include "cuda/driver/device_open.h"
#include "cuda/queue/staging.h"
#include "engine_setting.h"
#include "numerics/chain.h"
#include "support/random.h"

/* ---- matrices on both sides ---- */

typedef enum layout {
    ROWS,         /* packed, rows behind each other */
    COLUMNS,      /* packed, columns behind each other */
    WIDE_ROWS,    /* rows that begin at multiples of 8 elements */
    WIDE_COLUMNS, /* and columns */
    ODD_ROWS,     /* rows an odd number of elements apart, from an odd element on */
    EVEN_COLUMNS, /* columns an even number apart, from an even element on */
    APART,        /* no two elements side by side */
    REVERSED,     /* negative strides */
    LAYOUTS,
    REPEATED /* every row, and batch, is the same: only for what is read */
} layout;

typedef enum values { TAME, WIDE, SPECIAL, VALUES } values;

/* A matrix with the memory around it, the same on both sides. */
typedef struct pair {
    sb_matrix host, device;
    size_t bytes;
    char *storage;
    sb_cuda_memory *memory;
} pair;

/* A float of 16 or 32 bits. */
static void put_value(random_source *random, sb_dtype dtype, values values, char *to) {
    uint64_t bits = random_bits(random);
    float value = (float)(int32_t)bits * 0x1p-31f;
    if (values == WIDE)
        value *= sb_power_of_two_f32((int32_t)(bits >> 32) % 30 - (int32_t)(bits >> 40) % 15);
    uint32_t word = sb_bits_from_f32(value);
    if (values == SPECIAL && (bits >> 48) % 64 == 0)
        word = (uint32_t)random_bits(random);
    uint16_t half = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
    if (values == SPECIAL && (bits >> 48) % 64 == 0) {
        static const uint16_t special[] = {0x8000, 0x7f80, 0xff80, 0x7c00, 0xfc00,
                                           0x7fff, 0x0001, 0x8001, 0x7bff, 0xff7f};
        half = (bits >> 54) % 2 != 0 ? special[(bits >> 55) % 10] : (uint16_t)word;
    }
    if (dtype == SB_F32)
        memcpy(to, &word, sizeof word);
    else
        memcpy(to, &half, sizeof half);
}

static void fill(setting *setting, pair *pair, values values) {
    size_t size = sb_dtype_size(pair->host.dtype);
    for (size_t i = 0; i < pair->bytes / size; i++)
        put_value(&setting->random, pair->host.dtype, values, pair->storage + i * size);
    MUST(sb_cuda_upload(setting->staging, &setting->queue, pair->memory->address, pair->storage, pair->bytes, error));
}

static int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

static pair make_pair(setting *setting, sb_dtype dtype, int64_t rows, int64_t columns, int64_t batches, layout layout,
                      values values) {
    bool by_columns = layout == COLUMNS || layout == WIDE_COLUMNS || layout == EVEN_COLUMNS;
    int64_t lines = by_columns ? columns : rows, length = by_columns ? rows : columns, inner = layout == APART ? 3 : 1;
    int64_t outer = length * inner, first = 0;
    if (layout == WIDE_ROWS || layout == WIDE_COLUMNS)
        outer = round_up(length + 1, 8);
    if (layout == ODD_ROWS) {
        outer += 1 + outer % 2;
        first = 1;
    }
    if (layout == EVEN_COLUMNS) {
        outer = round_up(outer, 2) + 2;
        first = 2;
    }
    if (layout == REPEATED)
        outer = 0;
    int64_t batch = round_up(outer * (lines > 0 ? lines : 1), layout == ODD_ROWS ? 3 : 8);
    int64_t last = layout == REPEATED ? length : batch * (batches - 1) + outer * (lines - 1) + inner * (length - 1) + 1;
    /* Often there is nothing behind the last element, so that a sanitizer sees what is read there. */
    int64_t span =
        first + (last > 0 && rows > 0 && columns > 0 ? last : 1) + random_between(&setting->random, 0, 1) * 9;
    sb_matrix matrix = {
        .dtype = dtype,
        .rows = rows,
        .columns = columns,
        .row_stride = by_columns ? inner : outer,
        .column_stride = by_columns ? outer : inner,
        .batch_stride = layout == REPEATED ? 0 : batch,
    };
    if (layout == REVERSED && rows > 0 && columns > 0 && batches > 0) {
        first =
            (rows - 1) * matrix.row_stride + (columns - 1) * matrix.column_stride + (batches - 1) * matrix.batch_stride;
        matrix.row_stride *= -1;
        matrix.column_stride *= -1;
        matrix.batch_stride *= -1;
    }
    if (rows == 1)
        matrix.row_stride = INT64_MAX / 7;
    if (columns == 1)
        matrix.column_stride = INT64_MIN / 5;
    if (batches == 1)
        matrix.batch_stride = INT64_MAX / 3;
    pair made = {.host = matrix, .device = matrix, .bytes = (size_t)span * sb_dtype_size(dtype)};
    made.storage = malloc(made.bytes);
    assert_non_null(made.storage);
    MUST(sb_cuda_memory_create(setting->device.handle, made.bytes, &made.memory, error));
    made.host.data = made.storage + (size_t)first * sb_dtype_size(dtype);
    made.device.data = (void *)(uintptr_t)(made.memory->address + (size_t)first * sb_dtype_size(dtype));
    fill(setting, &made, values);
    return made;
}

static void release_pair(pair *pair) {
    free(pair->storage);
    sb_cuda_memory_release(pair->memory);
}

/* Whether the whole memory of a matrix is the same on both sides: what lies between its elements too. */
static bool same_bytes(const setting *setting, const pair *pair, size_t *where) {
    char *found = malloc(pair->bytes);
    assert_non_null(found);
    MUST(sb_cuda_download(setting->staging, &setting->queue, found, pair->memory->address, pair->bytes, error));
    for (*where = 0; *where < pair->bytes && found[*where] == pair->storage[*where];)
        ++*where;
    free(found);
    return *where == pair->bytes;
}

/* ---- products on both sides ---- */

typedef struct product {
    sb_dtype dtype, c_dtype, bias_dtype, residual_dtype; /* SB_DTYPE_NONE: no bias, no residual */
    int64_t m, n, k, batches;
    layout a, b, c, bias, residual;
    values values;
    float scale;
    sb_activation activation;
    sb_gate gate;
    bool accumulate, in_place; /* the residual is C */
    int samples;
    const int64_t *lengths; /* with samples: the row map */
    const char *schedule;
} product;

static const product plain = {.dtype = SB_BF16, .c_dtype = SB_F32, .batches = 1, .scale = 1.0f};

static void describe_product(const product *p, char *text, size_t bytes) {
    snprintf(text, bytes,
             "%s -> %s, %lldx%lldx%lld, %lld batches, layouts %d %d %d %d %d, values %d, bias %d, residual %d, "
             "activation %d, "
             "gate %d, accumulate %d, in place %d, %d samples, schedule %s",
             sb_dtype_name(p->dtype), sb_dtype_name(p->c_dtype), (long long)p->m, (long long)p->n, (long long)p->k,
             (long long)p->batches, p->a, p->b, p->c, p->bias, p->residual, p->values, p->bias_dtype, p->residual_dtype,
             p->activation, p->gate, p->accumulate, p->in_place, p->samples,
             p->schedule != NULL ? p->schedule : "chosen");
}

typedef struct operands {
    pair a, b, c, bias, residual;
} operands;

static operands make_operands(setting *setting, const product *p) {
    int64_t columns = p->gate != SB_GATE_NONE ? 2 * p->n : p->n;
    return (operands){
        make_pair(setting, p->dtype, p->m, p->k, p->batches, p->a, p->values),
        make_pair(setting, p->dtype, p->k, columns, p->batches, p->b, p->values),
        make_pair(setting, p->c_dtype, p->m, p->n, p->batches, p->c, p->values),
        make_pair(setting, p->bias_dtype != SB_DTYPE_NONE ? p->bias_dtype : SB_F32, 1, columns, p->batches, p->bias,
                  TAME),
        make_pair(setting, p->residual_dtype != SB_DTYPE_NONE ? p->residual_dtype : SB_F32, p->m, p->n, p->batches,
                  p->residual, p->values),
    };
}

static void release_operands(operands *all) {
    release_pair(&all->a);
    release_pair(&all->b);
    release_pair(&all->c);
    release_pair(&all->bias);
    release_pair(&all->residual);
}

static sb_gemm describe_gemm(const product *p, const operands *all, bool on_device) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = on_device ? all->a.device : all->a.host;
    gemm.b = on_device ? all->b.device : all->b.host;
    gemm.c = on_device ? all->c.device : all->c.host;
    gemm.batches = p->batches;
    gemm.scale = p->scale;
    if (p->bias_dtype != SB_DTYPE_NONE)
        gemm.bias = on_device ? all->bias.device : all->bias.host;
    if (p->residual_dtype != SB_DTYPE_NONE)
        gemm.residual = p->in_place ? gemm.c : on_device ? all->residual.device : all->residual.host;
    gemm.activation = p->activation;
    gemm.gate = p->gate;
    gemm.accumulate = p->accumulate;
    return gemm;
}

static void run_on(setting *setting, const product *p, const operands *all, bool on_device) {
    sb_engine *engine = on_device ? setting->gpu : setting->cpu;
    sb_gemm gemm = describe_gemm(p, all, on_device);
    sb_row_map *map = NULL;
    if (p->lengths != NULL)
        MUST(sb_row_map_create(engine, p->samples, p->lengths, &map, error));
    gemm.rows = map;
    gemm.schedule = on_device ? p->schedule : NULL;
    MUST(sb_gemm_run(engine, on_device ? setting->queue.stream->handle : NULL, &gemm, error));
    if (on_device)
        MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    sb_row_map_release(map);
}

/* Whether the device's schedule takes the product. */
static bool takes(setting *setting, const product *p, const operands *all, const char *schedule) {
    sb_gemm gemm = describe_gemm(p, all, true);
    sb_row_map *map = NULL;
    const char *chosen;
    sb_error error = {SB_OK, ""};
    if (p->lengths != NULL)
        MUST(sb_row_map_create(setting->gpu, p->samples, p->lengths, &map, error));
    gemm.rows = map;
    gemm.schedule = schedule;
    sb_status status = sb_gemm_choose(setting->gpu, &gemm, &chosen, &error);
    sb_row_map_release(map);
    if (status != SB_OK && status != SB_ERROR_UNSUPPORTED)
        fail_msg("%s", error.message);
    return status == SB_OK;
}

/* A product by every schedule that takes it, against the CPU's. */
static inline void check_product(setting *setting, const product *given) {
    product p = *given;
    char text[512];
    size_t where;
    int taken = 0;
    operands all = make_operands(setting, &p);
    char *before = malloc(all.c.bytes);
    assert_non_null(before);
    memcpy(before, all.c.storage, all.c.bytes);
    run_on(setting, &p, &all, false);
    for (int i = 0; i < sb_gemm_schedule_count(setting->gpu); i++) {
        p.schedule = sb_gemm_schedule_name(setting->gpu, i);
        if (!takes(setting, &p, &all, p.schedule))
            continue;
        taken++;
        MUST(sb_cuda_upload(setting->staging, &setting->queue, all.c.memory->address, before, all.c.bytes, error));
        run_on(setting, &p, &all, true);
        if (!same_bytes(setting, &all.c, &where)) {
            describe_product(&p, text, sizeof text);
            fail_msg("%s: byte %zu of C differs", text, where);
        }
    }
    assert_true(taken >= 2); /* the general ones take everything */
    free(before);
    release_operands(&all);
}

#endif
