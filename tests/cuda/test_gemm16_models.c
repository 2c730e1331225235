/* What products of models have beyond those of <samebit/gemm.h>, by every schedule that takes them: batches over several
 * dimensions, whose operands go through them in ways of their own; a factor of what is added; and room for more rows,
 * columns and k than are used, with NaN and infinities behind. Compared byte for byte with the CPU's products one by one. */
#include "cpu/contraction/gemm16.h"
#include "gemm16_products.h"
#include "host_schedules.h"
#include "ops/gated_values.h"
#include "thorough.h"

/* ---- operands ---- */

/* Batches over up to four dimensions, and where in memory the matrices' rows and columns are among them. */
typedef struct batched {
    const char *name;
    int rank;
    int64_t dims[4];
    bool repeats_a[4], repeats_b[4]; /* the operand is the same along the dimension */
    /* The order in memory, outermost first: numbers of dimensions, and ROW and COLUMN for the matrix's own. */
    int a_order[6], b_order[6];
} batched;
enum { ROW = 8, COLUMN = 9 };

static const batched all_batched[] = {
    {"one", 0, {0}, {0}, {0}, {ROW, COLUMN}, {ROW, COLUMN}},
    {"even", 2, {2, 3}, {0}, {0}, {0, 1, ROW, COLUMN}, {0, 1, COLUMN, ROW}},
    /* Q and K, then P and V, of attention over [sample, token, head, element]. */
    {"scores", 2, {2, 3}, {0}, {0}, {0, ROW, 1, COLUMN}, {0, COLUMN, 1, ROW}},
    {"values", 2, {2, 3}, {0}, {0}, {0, 1, ROW, COLUMN}, {0, ROW, 1, COLUMN}},
    /* Queries of which several share a key, and masks that all samples share. */
    {"grouped", 3, {2, 2, 3}, {0}, {0, 0, 1}, {0, ROW, 1, 2, COLUMN}, {0, COLUMN, 1, ROW}},
    {"inner of one", 2, {2, 3}, {1, 0}, {0, 1}, {1, ROW, COLUMN}, {0, ROW, COLUMN}},
    {"outer of one", 2, {2, 3}, {0, 1}, {1, 0}, {0, COLUMN, ROW}, {1, COLUMN, ROW}},
    {"backwards", 3, {2, 3, 2}, {0}, {0}, {2, 1, 0, ROW, COLUMN}, {0, 1, 2, ROW, COLUMN}},
    {"four", 4, {2, 2, 1, 2}, {0, 1, 0, 0}, {1, 0, 0, 0}, {3, ROW, 0, 2, COLUMN}, {1, COLUMN, 3, 2, ROW}},
};
#define BATCHED (int)(sizeof all_batched / sizeof all_batched[0])

/* An operand: its memory on both sides, its matrix of batch 0, and the steps along the batches' dimensions. */
typedef struct operand {
    pair memory;
    sb_matrix host, device;
    int64_t steps[4];
} operand;

static uint16_t garbage_of(sb_dtype dtype, int64_t i) {
    static const uint16_t f16[] = {0x7e00, 0x7c00, 0xfc00}, bf16[] = {0x7fc0, 0x7f80, 0xff80};
    return dtype == SB_F16 ? f16[i % 3] : bf16[i % 3];
}

/* Packed in the order, but for a gap behind each innermost line. */
static operand make_operand(setting *setting, sb_dtype dtype, const batched *b, bool is_b, int64_t rows,
                            int64_t columns, int64_t gap, values values) {
    const int *order = is_b ? b->b_order : b->a_order;
    const bool *repeats = is_b ? b->repeats_b : b->repeats_a;
    int64_t row = 0, column = 0, stride = 1;
    operand made = {0};
    int count = 2;
    for (int d = 0; d < b->rank; d++)
        count += !repeats[d];
    for (int i = count - 1; i >= 0; i--) {
        int64_t extent = order[i] == ROW ? rows : order[i] == COLUMN ? columns : b->dims[order[i]];
        *(order[i] == ROW ? &row : order[i] == COLUMN ? &column : &made.steps[order[i]]) = stride;
        stride *= extent + (i == count - 1 ? gap : 0);
    }
    made.memory = make_pair(setting, dtype, 1, stride, 1, ROWS, values);
    made.host = (sb_matrix){dtype, made.memory.host.data, rows, columns, row, column, 0};
    made.device = made.host;
    made.device.data = made.memory.device.data;
    return made;
}

static void release_operand(operand *operand) {
    release_pair(&operand->memory);
}

static char *element_at(const operand *operand, int64_t first, int64_t row, int64_t column) {
    return (char *)operand->host.data +
           (first + row * operand->host.row_stride + column * operand->host.column_stride) * 2;
}

/* ---- products ---- */

typedef struct extents {
    int64_t m, n, k;
} extents;

typedef struct model_product {
    sb_dtype dtype;
    const batched *batches;
    extents room, used;
    int64_t gap; /* in A and B */
    float addend_scale;
    bool adds;
    values values;
} model_product;

typedef struct model_operands {
    operand a, b;
    pair c, residual, used;
} model_operands;

/* Where batch `number` begins in an operand. */
static int64_t first_of(const batched *b, const operand *operand, int64_t number) {
    int64_t first = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
        first += number % b->dims[d] * operand->steps[d];
        number /= b->dims[d];
    }
    return first;
}

static int64_t batches_of(const batched *b) {
    int64_t batches = 1;
    for (int d = 0; d < b->rank; d++)
        batches *= b->dims[d];
    return batches;
}

/* What no run may read as a number: all k behind the used ones, and the rows and columns there. */
static void spoil(setting *setting, const model_product *p, operand *operand, bool is_b) {
    int64_t rows = is_b ? p->used.k : p->used.m, columns = is_b ? p->used.n : p->used.k;
    for (int64_t number = 0; number < batches_of(p->batches); number++) {
        int64_t first = first_of(p->batches, operand, number);
        for (int64_t i = 0; i < operand->host.rows; i++) {
            for (int64_t j = 0; j < operand->host.columns; j++) {
                uint16_t bits = garbage_of(p->dtype, i + j + number);
                if (i >= rows || j >= columns)
                    memcpy(element_at(operand, first, i, j), &bits, sizeof bits);
            }
        }
    }
    pair *memory = &operand->memory;
    MUST(sb_cuda_upload(setting->staging, &setting->queue, memory->memory->address, memory->storage, memory->bytes,
                        error));
}

static pair make_numbers(setting *setting, const extents *used) {
    pair made = make_pair(setting, SB_F32, 1, 6, 1, ROWS, TAME);
    const int64_t numbers[] = {used->m, used->n, used->k};
    MUST(sb_cuda_upload(setting->staging, &setting->queue, made.memory->address, numbers, sizeof numbers, error));
    return made;
}

static model_operands make_model_operands(setting *setting, const model_product *p) {
    const batched *b = p->batches;
    const extents *room = &p->room;
    model_operands all = {
        .a = make_operand(setting, p->dtype, b, false, room->m, room->k, p->gap, p->values),
        .b = make_operand(setting, p->dtype, b, true, room->k, room->n, p->gap, p->values),
        .c = make_pair(setting, p->dtype, room->m, room->n, batches_of(b), ROWS, TAME),
        .residual = make_pair(setting, p->dtype, room->m, room->n, 1, WIDE_ROWS, p->values),
        .used = make_numbers(setting, &p->used),
    };
    /* C's batches are packed. */
    all.c.host.batch_stride = all.c.device.batch_stride = room->m * room->n;
    spoil(setting, p, &all.a, false);
    spoil(setting, p, &all.b, true);
    return all;
}

static void release_model_operands(model_operands *all) {
    release_operand(&all->a);
    release_operand(&all->b);
    release_pair(&all->c);
    release_pair(&all->residual);
    release_pair(&all->used);
}

/* The used part of a batch on the CPU: of the factor, in f32 behind the chain. */
static void compute_batch(setting *setting, const model_product *p, const model_operands *all, int64_t number,
                          float *chains, uint16_t *to) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = all->a.host;
    gemm.b = all->b.host;
    gemm.a.data = element_at(&all->a, first_of(p->batches, &all->a, number), 0, 0);
    gemm.b.data = element_at(&all->b, first_of(p->batches, &all->b, number), 0, 0);
    gemm.a.rows = p->used.m;
    gemm.b.columns = p->used.n;
    gemm.a.columns = gemm.b.rows = p->used.k;
    gemm.c = (sb_matrix){SB_F32, chains, p->used.m, p->used.n, p->used.n, 1, 0};
    MUST(sb_gemm_run(setting->cpu, NULL, &gemm, error));
    for (int64_t i = 0; i < p->used.m * p->used.n; i++) {
        const sb_matrix *residual = &all->residual.host;
        uint16_t bits =
            ((const uint16_t *)
                 residual->data)[i / p->used.n * residual->row_stride + i % p->used.n * residual->column_stride];
        float other = p->dtype == SB_F16 ? sb_f16_to_f32(bits) : sb_bf16_to_f32(bits), y = chains[i];
        if (p->adds)
            y = y + p->addend_scale * other;
        to[i] = p->dtype == SB_F16 ? sb_f16_from_f32(y) : sb_bf16_from_f32(y);
    }
}

static uint16_t *compute_expected(setting *setting, const model_product *p, const model_operands *all) {
    int64_t batches = batches_of(p->batches), elements = p->used.m * p->used.n;
    uint16_t *expected = malloc((size_t)(batches * elements + 1) * sizeof *expected);
    float *chains = malloc((size_t)(elements + 1) * sizeof *chains);
    assert_non_null(expected);
    assert_non_null(chains);
    for (int64_t number = 0; number < batches; number++)
        compute_batch(setting, p, all, number, chains, expected + number * elements);
    free(chains);
    return expected;
}

/* Gives it to the device by a schedule; false where that refuses it. */
static bool run_schedule(setting *setting, const model_product *p, const model_operands *all, const char *schedule) {
    const batched *b = p->batches;
    sb_gemm_batches batches = {.rank = b->rank};
    sb_gemm_model model = SB_GEMM_MODEL_DEFAULT;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    sb_gemm_plan plan;
    sb_call_way way;
    sb_error said = {SB_OK, ""};
    for (int d = 0; d < b->rank; d++) {
        batches.dims[d] = b->dims[d];
        batches.a_steps[d] = all->a.steps[d];
        batches.b_steps[d] = all->b.steps[d];
    }
    const int64_t *used = (const int64_t *)(uintptr_t)all->used.memory->address;
    model.batches = &batches;
    model.addend_scale = p->addend_scale;
    model.used = (sb_gemm_used){p->used.m < p->room.m ? used : NULL, p->used.n < p->room.n ? used + 1 : NULL,
                                p->used.k < p->room.k ? used + 2 : NULL};
    gemm.a = all->a.device;
    gemm.b = all->b.device;
    gemm.c = all->c.device;
    gemm.batches = batches_of(b);
    if (p->adds)
        gemm.residual = all->residual.device;
    gemm.schedule = schedule;
    MUST(sb_gemm_plan_fill(&gemm, &model, &plan, error));
    sb_status status = sb_gemm_launch(&setting->queue, -1, &plan, &way, &said);
    if (status == SB_OK)
        assert_string_equal(way.name, schedule);
    else if (status != SB_ERROR_UNSUPPORTED)
        fail_msg("%s", said.message);
    return status == SB_OK;
}

/* Whether the used part of C is as expected; `where` says where it is not. */
static bool has_expected(setting *setting, const model_product *p, const model_operands *all, const uint16_t *expected,
                         char *where, size_t bytes) {
    const sb_matrix *c = &all->c.host;
    int64_t elements = p->used.m * p->used.n;
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    MUST(sb_cuda_download(setting->staging, &setting->queue, all->c.storage, all->c.memory->address, all->c.bytes,
                          error));
    for (int64_t i = 0; i < batches_of(p->batches) * elements; i++) {
        int64_t number = i / elements, row = i % elements / p->used.n, column = i % p->used.n;
        uint16_t found =
            ((const uint16_t *)c->data)[number * c->batch_stride + row * c->row_stride + column * c->column_stride];
        if (found == expected[i])
            continue;
        snprintf(where, bytes, "%s, %s: batch %d, row %d, column %d is %04x, not %04x, of %dx%dx%d in %dx%dx%d",
                 p->batches->name, sb_dtype_name(p->dtype), (int)number, (int)row, (int)column, found, expected[i],
                 (int)p->used.m, (int)p->used.n, (int)p->used.k, (int)p->room.m, (int)p->room.n, (int)p->room.k);
        return false;
    }
    return true;
}

/* By every schedule that takes it; returns which, a bit each. */
static uint64_t check_model_product(setting *setting, const model_product *p) {
    uint64_t taken = 0;
    char where[256];
    model_operands all = make_model_operands(setting, p);
    uint16_t *expected = compute_expected(setting, p, &all);
    for (int i = 0; i < sb_gemm_schedule_count(setting->gpu); i++) {
        const char *schedule = sb_gemm_schedule_name(setting->gpu, i);
        MUST(sb_cuda_enter(setting->device.handle, error));
        bool ran = run_schedule(setting, p, &all, schedule);
        MUST(sb_cuda_leave(setting->device.handle, SB_OK, error));
        if (!ran)
            continue;
        if (!has_expected(setting, p, &all, expected, where, sizeof where))
            fail_msg("%s of %s", schedule, where);
        taken |= (uint64_t)1 << i;
    }
    free(expected);
    release_model_operands(&all);
    return taken;
}

/* ---- gates behind rounded chains ---- */

/* Gates before values, whose chains are rounded as a node of their own would round them: by plain loops over the CPU's chains. */
static uint16_t *compute_gated(setting *setting, sb_dtype dtype, const pair *a, const pair *b) {
    int64_t m = a->host.rows, n = b->host.columns / 2;
    float *chains = malloc((size_t)(2 * m * n) * sizeof *chains);
    uint16_t *expected = malloc((size_t)(m * n) * sizeof *expected);
    sb_gemm gemm = SB_GEMM_DEFAULT;
    assert_non_null(chains);
    assert_non_null(expected);
    gemm.a = a->host;
    gemm.b = b->host;
    gemm.c = (sb_matrix){SB_F32, chains, m, 2 * n, 2 * n, 1, 0};
    MUST(sb_gemm_run(setting->cpu, NULL, &gemm, error));
    for (int64_t i = 0; i < m * n; i++) {
        float gate = chains[i / n * 2 * n + i % n], value = chains[i / n * 2 * n + n + i % n];
        expected[i] = dtype == SB_F16 ? sb_gated_value_f16(sb_f16_from_f32(gate), sb_f16_from_f32(value), 1.0f)
                                      : sb_gated_value_bf16(sb_bf16_from_f32(gate), sb_bf16_from_f32(value), 1.0f);
    }
    free(chains);
    return expected;
}

/* By the schedule that it names; false where that refuses. */
static bool run_gated(setting *setting, const sb_gemm *gemm) {
    sb_gemm_model model = SB_GEMM_MODEL_DEFAULT;
    sb_gemm_plan plan;
    sb_error said = {SB_OK, ""};
    model.rounds = true;
    MUST(sb_gemm_plan_fill(gemm, &model, &plan, error));
    MUST(sb_cuda_enter(setting->device.handle, error));
    sb_status status = sb_gemm_launch(&setting->queue, -1, &plan, NULL, &said);
    MUST(sb_cuda_leave(setting->device.handle, SB_OK, error));
    if (status != SB_OK && status != SB_ERROR_UNSUPPORTED)
        fail_msg("%s", said.message);
    return status == SB_OK;
}

static void compare_gated(const sb_gemm *gemm, const pair *c, const uint16_t *expected) {
    int64_t n = c->host.columns;
    for (int64_t i = 0; i < c->host.rows * n; i++) {
        uint16_t found = ((const uint16_t *)c->host.data)[i / n * c->host.row_stride + i % n];
        if (found != expected[i])
            fail_msg("%s, %s, %dx%dx%d: element %d is %04x, not %04x", gemm->schedule, sb_dtype_name(c->host.dtype),
                     (int)c->host.rows, (int)n, (int)gemm->a.columns, (int)i, found, expected[i]);
    }
}

/* The same on the CPU, by both of its schedules. */
static void check_gated_on_cpu(setting *s, const pair *a, const pair *b, const uint16_t *expected) {
    for (int i = 0; i < sb_gemm_cpu_schedule_count(); i++) {
        pair c = make_pair(s, a->host.dtype, a->host.rows, b->host.columns / 2, 1, ROWS, TAME);
        sb_gemm_model model = SB_GEMM_MODEL_DEFAULT;
        sb_gemm gemm = SB_GEMM_DEFAULT;
        sb_gemm_plan plan;
        gemm.a = a->host;
        gemm.b = b->host;
        gemm.c = c.host;
        gemm.gate = SB_GATE_STACKED;
        gemm.activation = SB_ACTIVATION_SILU;
        gemm.schedule = sb_gemm_cpu_schedule_name(i);
        model.rounds = true;
        MUST(sb_gemm_plan_fill(&gemm, &model, &plan, error));
        MUST(sb_gemm_on_cpu(s->cpu, NULL, &plan, error));
        compare_gated(&gemm, &c, expected);
        release_pair(&c);
    }
}

static uint64_t check_gated(setting *s, sb_dtype dtype, int64_t m, int64_t n, int64_t k, values values) {
    uint64_t taken = 0;
    pair a = make_pair(s, dtype, m, k, 1, ROWS, values), b = make_pair(s, dtype, k, 2 * n, 1, COLUMNS, values);
    uint16_t *expected = compute_gated(s, dtype, &a, &b);
    check_gated_on_cpu(s, &a, &b, expected);
    for (int i = 0; i < sb_gemm_schedule_count(s->gpu); i++) {
        pair c = make_pair(s, dtype, m, n, 1, ROWS, TAME);
        sb_gemm gemm = SB_GEMM_DEFAULT;
        gemm.a = a.device;
        gemm.b = b.device;
        gemm.c = c.device;
        gemm.gate = SB_GATE_STACKED;
        gemm.activation = SB_ACTIVATION_SILU;
        gemm.schedule = sb_gemm_schedule_name(s->gpu, i);
        if (run_gated(s, &gemm)) {
            taken |= (uint64_t)1 << i;
            MUST(sb_cuda_stream_synchronize(s->queue.stream, error));
            MUST(sb_cuda_download(s->staging, &s->queue, c.storage, c.memory->address, c.bytes, error));
            compare_gated(&gemm, &c, expected);
        }
        release_pair(&c);
    }
    free(expected);
    release_pair(&a);
    release_pair(&b);
    return taken;
}

static void test_gates_of_nodes(void **unused) {
    static const struct {
        int64_t m, n, k;
    } sizes[] = {{1, 64, 128}, {5, 24, 64}, {64, 72, 192}, {130, 136, 64}, {70, 8, 256}, {3, 7, 40}};
    setting s = set_up();
    uint64_t taken = 0;
    for (int i = 0; i < 12; i++)
        taken |= check_gated(&s, i % 2 == 0 ? SB_BF16 : SB_F16, sizes[i / 2].m, sizes[i / 2].n, sizes[i / 2].k,
                             i % 3 == 0 ? SPECIAL : WIDE);
    /* All that have gates: the general ones, what has factors swapped, one row alone among it, turns, and tiles of a multiple of 32 columns. */
    assert_int_equal(taken, UINT64_C(0x38fd27b6f));
    tear_down(&s);
}

/* ---- tests ---- */

static const model_product ordinary = {.addend_scale = 1.0f};

#define GENERAL ((uint64_t)3 << SB_GEMM_HOPPER_SCHEDULES)
/* Tiles of 128 rows but those that want a K-major B. */
#define LARGE 0x4fu

/* Batches of every kind, in whole tiles and odd ones. */
static void test_batches(void **unused) {
    static const extents sizes[] = {{64, 64, 64}, {5, 24, 128}, {136, 72, 40}, {1, 1, 8}, {33, 7, 65}, {72, 200, 192}};
    setting s = set_up();
    uint64_t taken[BATCHED] = {0};
    for (int i = 0; i < BATCHED * 6; i++) {
        model_product p = ordinary;
        p.dtype = i % 2 == 0 ? SB_F16 : SB_BF16;
        p.batches = &all_batched[i / 6];
        p.room = p.used = sizes[i % 6];
        p.gap = i % 6 == 4 ? 1 : i % 6 == 1 ? 8 : 0;
        p.values = i % 5 == 0 ? SPECIAL : WIDE;
        uint64_t by = check_model_product(&s, &p);
        assert_int_equal(by & GENERAL, GENERAL);
        taken[i / 6] |= by;
    }
    /* With two steps at most, tiles of 128 rows take all; and those of 64 what is K-major. */
    for (int i = 0; i < BATCHED; i++) {
        bool is_two_steps = all_batched[i].rank <= 2 || strcmp(all_batched[i].name, "grouped") == 0;
        if ((taken[i] & LARGE) != (is_two_steps ? LARGE : 0))
            fail_msg("%s is taken by %llx", all_batched[i].name, (unsigned long long)taken[i]);
    }
    tear_down(&s);
}

/* Gemm's beta: each addend times it, rounded, in f32. */
static void test_addend_scale(void **unused) {
    static const float scales[] = {1.0f, 0.3f, -2.0f, 0.0f};
    setting s = set_up();
    for (int i = 0; i < 8; i++) {
        model_product p = ordinary;
        p.dtype = i % 2 == 0 ? SB_F16 : SB_BF16;
        p.batches = &all_batched[0];
        p.room = p.used = i < 4 ? (extents){72, 64, 64} : (extents){9, 5, 24};
        p.adds = true;
        p.addend_scale = scales[i % 4];
        p.values = i % 2 == 0 ? SPECIAL : WIDE;
        assert_int_equal(check_model_product(&s, &p) & GENERAL, GENERAL);
    }
    tear_down(&s);
}

/* Every number of used k in the last stages, and of rows and columns at tiles' ends. */
static void test_used(void **unused) {
    static const int64_t numbers[] = {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 192, 200, 249, 255};
    setting s = set_up();
    uint64_t taken = 0;
    for (int i = 0; i < 18 * 2; i++) {
        static const int places[] = {0, 6, 2, 3};
        if (!tests_are_thorough() && (i + i / 2 + i / 8) % 2 != 0) /* each number in one of two */
            continue;
        model_product p = ordinary;
        p.dtype = i / 2 % 2 == 0 ? SB_F16 : SB_BF16;
        p.batches = &all_batched[places[(i + i / 2) % 4]];
        p.room = i % 4 < 2 ? (extents){136, 72, 256} : (extents){8, 136, 256};
        p.used = (extents){i % 3 == 0 ? p.room.m : 5, i % 5 == 0 ? p.room.n : 65, numbers[i / 2]};
        p.values = WIDE;
        uint64_t by = check_model_product(&s, &p);
        assert_int_equal(by & GENERAL, GENERAL);
        taken |= by;
    }
    /* All but tiles of more than 128 columns, those in turns, in fours and for row maps. */
    assert_int_equal(taken, GENERAL | 0x7387ff8u);
    tear_down(&s);
}

/* Open extents, under schedules in which everything happens late or in any order. */
static void test_used_in_any_order(void **unused) {
    static const host_schedule late[] = {
        {"copies late", false, true, false, false, HOST_OLDEST_FIRST, HOST_DESCENDING, 0, 2},
        {"any order", false, false, false, true, HOST_ANY_ORDER, HOST_SHUFFLED_WARPS, 0, 4},
        {"products late", true, false, false, false, HOST_OLDEST_FIRST, HOST_ASCENDING, 0, 1},
    };
    if (!is_fake())
        return;
    setting s = set_up_with(4);
    for (int i = 0; i < 3 * 3; i++) {
        static const int64_t numbers[] = {61, 300, 450};
        model_product p = ordinary;
        p.dtype = i % 2 == 0 ? SB_F16 : SB_BF16;
        p.batches = &all_batched[2 + i % 2];
        p.room = (extents){72, 72, 512};
        p.used = (extents){70, 72, numbers[i % 3]};
        p.values = WIDE;
        host_set_schedule(&late[i / 3]);
        check_model_product(&s, &p);
        host_set_schedule(NULL);
    }
    tear_down(&s);
}

/* What lies behind the used k would show: without the zeros, in tiles of either number of rows. */
static void test_garbage_shows(void **unused) {
    static const char *const schedules[] = {"tile-128x64", "tile-64x64", "swapped-64x8"};
    if (!is_fake())
        return;
    setting s = set_up();
    for (int i = 0; i < 3 * 2; i++) {
        char where[256];
        model_product p = ordinary;
        p.dtype = i % 2 == 0 ? SB_F16 : SB_BF16;
        p.batches = &all_batched[1];
        p.room = (extents){8, 72, 128};
        p.used = (extents){8, 72, 100};
        model_operands all = make_model_operands(&s, &p);
        uint16_t *expected = compute_expected(&s, &p, &all);
        for (int plant = 0; plant < 2; plant++) {
            host_set_plant(plant ? HOST_PLANT_NO_CLEARING : HOST_NO_PLANT);
            MUST(sb_cuda_enter(s.device.handle, error));
            assert_true(run_schedule(&s, &p, &all, schedules[i / 2]));
            MUST(sb_cuda_leave(s.device.handle, SB_OK, error));
            assert_true(has_expected(&s, &p, &all, expected, where, sizeof where) == (plant == 0));
        }
        host_set_plant(HOST_NO_PLANT);
        free(expected);
        release_model_operands(&all);
    }
    tear_down(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gates_of_nodes),    cmocka_unit_test(test_batches),
        cmocka_unit_test(test_addend_scale),      cmocka_unit_test(test_used),
        cmocka_unit_test(test_used_in_any_order), cmocka_unit_test(test_garbage_shows),
    };
    if (argc > 1)
        library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
