#include "cpu/contraction/gemm16.h"

#include <fenv.h>
#include <stdatomic.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/contraction/epilogue_piece.h"
#include "numerics/chain.h"

/* What a thread computes at once: a tile of C, and as much of k as lets the records of its rows
 * (128 bytes for each row and group: src/cpu/contraction/chain16.c) stay within 1 MiB. So the workspace of a
 * thread has one size for all products. */
enum { TILE_ROWS = 128, TILE_COLUMNS = 256, SEGMENT = 1024 };

/* Smaller tiles for products that would leave threads without work. */
enum { SMALL_TILE_ROWS = 32, SMALL_TILE_COLUMNS = SB_CHAIN16_PANEL };

/* One slot for each thread: whoever begins to work takes a free one. */
struct sb_gemm_workspace {
    int slots;
    size_t slot_bytes;
    atomic_bool *taken;
    char *memory;
};

/* The parts of a slot: two tiles of chains, and what the chains themselves need. */
#define TILE_BYTES ((size_t)TILE_ROWS * TILE_COLUMNS * sizeof(float))

static size_t slot_bytes(void) {
    const sb_chain16_args largest = {.m = TILE_ROWS, .n = TILE_COLUMNS, .k = SEGMENT};
    return 2 * TILE_BYTES + sb_chain16_workspace_bytes(&largest);
}

sb_status sb_gemm_workspace_create(int threads, sb_gemm_workspace **workspace, sb_error *error) {
    sb_gemm_workspace *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    *workspace = fresh;
    fresh->slots = threads;
    fresh->slot_bytes = slot_bytes();
    size_t bytes = (size_t)fresh->slots * fresh->slot_bytes;
    fresh->taken = sb_allocate_array((size_t)fresh->slots, sizeof *fresh->taken);
    fresh->memory = sb_allocate(bytes);
    return fresh->taken != NULL && fresh->memory != NULL ? SB_OK : sb_fail_memory(error, bytes);
}

void sb_gemm_workspace_destroy(sb_gemm_workspace *workspace) {
    if (workspace == NULL)
        return;
    sb_free(workspace->memory);
    sb_free(workspace->taken);
    sb_free(workspace);
}

/* There is always a free one: no more threads work than there are slots. */
static int take_slot(sb_gemm_workspace *workspace) {
    for (int slot = 0;; slot = (slot + 1) % workspace->slots) {
        if (!atomic_exchange_explicit(&workspace->taken[slot], true, memory_order_acquire))
            return slot;
    }
}

static void free_slot(sb_gemm_workspace *workspace, int slot) {
    atomic_store_explicit(&workspace->taken[slot], false, memory_order_release);
}

/* ---- the work ---- */

/* A product, cut into tiles. */
typedef struct job {
    const sb_gemm_plan *plan;
    sb_gemm_workspace *workspace;
    const sb_chain16_kernels *kernels;
    sb_gemm_epilogue_apply_piece *epilogue_piece;
    int64_t tile_rows, tile_columns;
    int64_t row_tiles, column_tiles; /* of one matrix */
} job;

typedef struct tile {
    int64_t batch, row, column, rows, columns;
} tile;

static int64_t parts(int64_t whole, int64_t step) {
    return (whole + step - 1) / step;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static tile find_tile(const job *job, int64_t index) {
    const sb_gemm_plan *plan = job->plan;
    tile found = {.column = index % job->column_tiles * job->tile_columns,
                  .row = index / job->column_tiles % job->row_tiles * job->tile_rows,
                  .batch = index / job->column_tiles / job->row_tiles};
    found.rows = smaller(plan->m - found.row, job->tile_rows);
    found.columns = smaller(plan->n - found.column, job->tile_columns);
    return found;
}

/* Group `index` of the chains. */
static sb_row_group group_at(const sb_gemm_plan *plan, int64_t index) {
    if (plan->groups != NULL)
        return plan->groups[index];
    return (sb_row_group){16 * index, smaller(plan->k - 16 * index, 16)};
}

/* As many groups from `*index` on as can be taken together: they lie behind each other, and all but
 * the last are whole. Moves `*index` behind them. */
static sb_row_group next_segment(const sb_gemm_plan *plan, int64_t *index) {
    sb_row_group segment = group_at(plan, (*index)++);
    while (*index < plan->group_count && segment.count % 16 == 0 && segment.count < SEGMENT)
        segment.count += group_at(plan, (*index)++).count;
    return segment;
}

/* ---- the fast schedule ---- */

/* Where the chains of a tile begin: with +0, or with what C holds. */
static void begin_chains(const sb_gemm_plan *plan, const tile *at, float *chains) {
    if (!plan->gemm->accumulate) {
        memset(chains, 0, (size_t)(at->rows * at->columns) * sizeof *chains);
        return;
    }
    const sb_matrix *c = &plan->gemm->c;
    for (int64_t i = 0; i < at->rows; i++) {
        const float *from = (const float *)c->data + at->batch * c->batch_stride + (at->row + i) * c->row_stride +
                            at->column * c->column_stride;
        for (int64_t j = 0; j < at->columns; j++)
            chains[i * at->columns + j] = from[j * c->column_stride];
    }
}

/* All chains of a tile: `columns` of B from `b_column` on, `b_step` apart. */
static void compute_chains(const job *job, const tile *at, int64_t b_column, int64_t b_step, float *chains,
                           void *workspace) {
    const sb_gemm_plan *plan = job->plan;
    const sb_matrix *a = &plan->gemm->a, *b = &plan->gemm->b;
    begin_chains(plan, at, chains);
    for (int64_t group = 0; group < plan->group_count;) {
        sb_row_group segment = next_segment(plan, &group);
        const sb_chain16_args args = {.dtype = plan->dtype,
                                      .m = at->rows,
                                      .n = at->columns,
                                      .k = segment.count,
                                      .a = (const uint16_t *)a->data + at->batch * a->batch_stride +
                                           at->row * a->row_stride + segment.row * a->column_stride,
                                      .a_row_stride = a->row_stride,
                                      .a_column_stride = a->column_stride,
                                      .b = (const uint16_t *)b->data + at->batch * b->batch_stride +
                                           segment.row * b->row_stride + b_column * b->column_stride,
                                      .b_row_stride = b->row_stride,
                                      .b_column_stride = b_step * b->column_stride,
                                      .initial = chains,
                                      .initial_row_stride = at->columns,
                                      .initial_column_stride = 1,
                                      .c = chains,
                                      .c_dtype = SB_F32,
                                      .c_row_stride = at->columns,
                                      .c_column_stride = 1};
        sb_chain16_run(job->kernels, &args, 0, at->rows, 0, at->columns, workspace);
    }
}

static void compute_tile(const job *job, const tile *at, char *slot) {
    const sb_gemm_plan *plan = job->plan;
    const sb_gemm_epilogue *e = &plan->epilogue;
    const sb_matrix *c = &plan->gemm->c;
    float *chains = (float *)(void *)slot, *values = (float *)(void *)(slot + TILE_BYTES);
    void *workspace = slot + 2 * TILE_BYTES;
    int64_t step = e->gate == SB_GATE_INTERLEAVED ? 2 : 1;
    compute_chains(job, at, sb_gemm_gate_column(e, at->column), step, chains, workspace);
    if (e->gate != SB_GATE_NONE)
        compute_chains(job, at, sb_gemm_value_column(e, at->column), step, values, workspace);
    for (int64_t i = 0; i < at->rows; i++) {
        const sb_gemm_piece piece = {.batch = at->batch,
                                     .row = at->row + i,
                                     .column = at->column,
                                     .count = at->columns,
                                     .chains = chains + i * at->columns,
                                     .values = values + i * at->columns,
                                     .c = c->data,
                                     .index = at->batch * c->batch_stride + (at->row + i) * c->row_stride +
                                              at->column * c->column_stride,
                                     .column_stride = c->column_stride};
        job->epilogue_piece(e, &piece);
    }
}

static void compute_tiles(void *context, int64_t begin, int64_t end) {
    const job *job = context;
    int slot = take_slot(job->workspace);
    for (int64_t index = begin; index < end; index++) {
        tile at = find_tile(job, index);
        compute_tile(job, &at, job->workspace->memory + (size_t)slot * job->workspace->slot_bytes);
    }
    free_slot(job->workspace, slot);
}

static sb_gemm_epilogue_apply_piece *epilogue_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_gemm_epilogue_apply_piece_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_gemm_epilogue_apply_piece_avx2;
#endif
    return sb_gemm_epilogue_apply_piece_scalar;
}

static int64_t count_tiles(job *job) {
    job->row_tiles = parts(job->plan->m, job->tile_rows);
    job->column_tiles = parts(job->plan->n, job->tile_columns);
    return job->plan->batches * job->row_tiles * job->column_tiles;
}

static void run_chain(const sb_cpu_engine *engine, const sb_gemm_plan *plan) {
    job job = {.plan = plan,
               .workspace = engine->workspace,
               .kernels = engine->chain16,
               .epilogue_piece = epilogue_of(engine->isa),
               .tile_rows = TILE_ROWS,
               .tile_columns = TILE_COLUMNS};
    int threads = sb_workers_threads(engine->workers);
    int64_t wanted = threads > 1 ? 2 * (int64_t)threads : 1;
    if (count_tiles(&job) < wanted)
        job.tile_columns = SMALL_TILE_COLUMNS;
    if (count_tiles(&job) < wanted)
        job.tile_rows = SMALL_TILE_ROWS;
    sb_workers_run(engine->workers, count_tiles(&job), 1, compute_tiles, &job);
}

/* ---- the definition ---- */

/* The chain of row `row` of A and column `b_column` of B, from `acc`. */
static float define_chain(const sb_gemm_plan *plan, int64_t batch, int64_t row, int64_t b_column, float acc) {
    if (plan->group_count == 0) /* operands without elements may have no address */
        return acc;
    const sb_matrix *a = &plan->gemm->a, *b = &plan->gemm->b;
    sb_chain16_format format = plan->dtype == SB_BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    const uint16_t *left = (const uint16_t *)a->data + batch * a->batch_stride + row * a->row_stride;
    const uint16_t *right = (const uint16_t *)b->data + batch * b->batch_stride + b_column * b->column_stride;
    for (int64_t index = 0; index < plan->group_count; index++) {
        sb_row_group group = group_at(plan, index);
        acc = sb_chain16(left + group.row * a->column_stride, a->column_stride, right + group.row * b->row_stride,
                         b->row_stride, group.count, acc, format);
    }
    return acc;
}

static void define_element(const sb_gemm_plan *plan, int64_t batch, int64_t row, int64_t column) {
    const sb_gemm_epilogue *e = &plan->epilogue;
    const sb_matrix *c = &plan->gemm->c;
    int64_t index = batch * c->batch_stride + row * c->row_stride + column * c->column_stride;
    float start = plan->gemm->accumulate ? ((const float *)c->data)[index] : 0.0f;
    float gate = define_chain(plan, batch, row, sb_gemm_gate_column(e, column), start);
    float value = 0;
    if (e->gate != SB_GATE_NONE)
        value = define_chain(plan, batch, row, sb_gemm_value_column(e, column), start);
    sb_gemm_store(e, c->data, index, sb_gemm_epilogue_apply(e, batch, row, column, gate, value));
}

static void define_rows(void *context, int64_t begin, int64_t end) {
    const sb_gemm_plan *plan = *(const sb_gemm_plan *const *)context;
    for (int64_t index = begin; index < end; index++) {
        for (int64_t column = 0; column < plan->n; column++)
            define_element(plan, index / plan->m, index % plan->m, column);
    }
}

static void run_definition(const sb_cpu_engine *engine, const sb_gemm_plan *plan) {
    sb_workers_run(engine->workers, plan->batches * plan->m, 1, define_rows, &plan);
}

/* ---- schedules ---- */

static const struct {
    const char *name;
    void (*run)(const sb_cpu_engine *engine, const sb_gemm_plan *plan);
} schedules[] = {{"chain", run_chain}, {"definition", run_definition}};

enum { SCHEDULES = sizeof schedules / sizeof schedules[0] };

int sb_gemm_cpu_schedule_count(void) {
    return SCHEDULES;
}

const char *sb_gemm_cpu_schedule_name(int index) {
    return index >= 0 && index < SCHEDULES ? schedules[index].name : NULL;
}

/* The check has found the name that is asked for in the table. */
static int find_schedule(const sb_gemm_plan *plan) {
    int index = 0;
    while (plan->gemm->schedule != NULL && index < SCHEDULES - 1 &&
           strcmp(schedules[index].name, plan->gemm->schedule) != 0)
        index++;
    return index;
}

sb_status sb_gemm_cpu_choose(const sb_engine *engine, const sb_gemm_plan *plan, const char **schedule,
                             sb_error *error) {
    *schedule = schedules[find_schedule(plan)].name;
    return SB_OK;
}

sb_status sb_gemm_on_cpu(sb_engine *engine, void *stream, const sb_gemm_plan *plan, sb_error *error) {
    if (plan->is_empty)
        return SB_OK;
    /* The caller may round elsewhere or flush subnormals. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    schedules[find_schedule(plan)].run(sb_cpu_engine_of(engine), plan);
    fesetenv(&caller);
    return SB_OK;
}
