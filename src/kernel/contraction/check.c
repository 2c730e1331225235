#include "kernel/contraction/check.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/contraction/layout.h"

/* The operands, C last: the others may not overlap it. */
enum { A, B, BIAS, RESIDUAL, C, OPERANDS };

typedef struct operand {
    const char *name;
    const sb_matrix *matrix;
    int64_t row_stride; /* a bias has none */
    bool is_given;      /* bias and residual may be left out */
    bool has_elements;
    sb_gemm_layout layout; /* where it has elements */
} operand;

/* What a check works on. */
typedef struct inspection {
    sb_engine *engine;
    const sb_gemm *gemm;
    const sb_gemm_model *model;
    operand operands[OPERANDS];
} inspection;

#define TEXT_BYTES 256

/* "a (bf16, 3 x 5, strides 5 and 1, batch stride 0)" */
static const char *describe(const operand *operand, char text[TEXT_BYTES]) {
    const sb_matrix *matrix = operand->matrix;
    snprintf(text, TEXT_BYTES, "%s (%s, %lld x %lld, strides %lld and %lld, batch stride %lld)", operand->name,
             sb_dtype_name(matrix->dtype), (long long)matrix->rows, (long long)matrix->columns,
             (long long)operand->row_stride, (long long)matrix->column_stride, (long long)matrix->batch_stride);
    return text;
}

/* Fails with a message about an operand: FAIL(status, operand, "format after its description", …). */
#define FAIL(status, operand, format, ...)                                                                             \
    do {                                                                                                               \
        char text_[TEXT_BYTES];                                                                                        \
        return sb_fail(error, (status), "%s: " format, describe((operand), text_), __VA_ARGS__);                       \
    } while (0)

/* ---- the description by itself ---- */

static sb_status check_settings(const sb_gemm *gemm, sb_error *error) {
    if ((int)gemm->activation < SB_ACTIVATION_NONE || gemm->activation > SB_ACTIVATION_GELU_TANH)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "activation %d: give one of sb_activation, 0 (none) to %d",
                       (int)gemm->activation, SB_ACTIVATION_GELU_TANH);
    if ((int)gemm->gate < SB_GATE_NONE || gemm->gate > SB_GATE_INTERLEAVED)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "gate %d: give one of sb_gate, 0 (none) to %d",
                       (int)gemm->gate, SB_GATE_INTERLEAVED);
    if (gemm->batches < 0 || gemm->batches > SB_GEMM_MOST_EXTENT)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%lld batches: give a number from 0 to 2^48; SB_GEMM_DEFAULT has 1", (long long)gemm->batches);
    return SB_OK;
}

static sb_status check_extents(const operand *operand, sb_error *error) {
    const sb_matrix *matrix = operand->matrix;
    if (matrix->rows < 0 || matrix->columns < 0 || matrix->rows > SB_GEMM_MOST_EXTENT ||
        matrix->columns > SB_GEMM_MOST_EXTENT)
        FAIL(SB_ERROR_SHAPE, operand, "extents go from 0 to 2^48, and %lld does not",
             (long long)(matrix->rows < 0 || matrix->rows > SB_GEMM_MOST_EXTENT ? matrix->rows : matrix->columns));
    return SB_OK;
}

static sb_status check_dtypes(const inspection *all, sb_error *error) {
    sb_dtype dtype = all->gemm->a.dtype;
    if (dtype != SB_BF16 && dtype != SB_F16)
        FAIL(SB_ERROR_SHAPE, &all->operands[A],
             "these products take bf16 and f16, not %s: convert it, or use the operators for f32",
             sb_dtype_name(dtype));
    if (all->gemm->b.dtype != dtype)
        FAIL(SB_ERROR_SHAPE, &all->operands[B], "a is %s and b is %s: both must have one dtype; convert one of them",
             sb_dtype_name(dtype), sb_dtype_name(all->gemm->b.dtype));
    for (int i = BIAS; i < OPERANDS; i++) {
        const operand *operand = &all->operands[i];
        if (operand->is_given && operand->matrix->dtype != SB_F32 && operand->matrix->dtype != dtype)
            FAIL(SB_ERROR_SHAPE, operand, "%s must be f32 or a's %s, not %s", operand->name, sb_dtype_name(dtype),
                 sb_dtype_name(operand->matrix->dtype));
    }
    return SB_OK;
}

/* ---- how operands fit each other ---- */

static sb_status check_products(const inspection *all, sb_error *error) {
    const sb_gemm *gemm = all->gemm;
    char other[TEXT_BYTES];
    if (gemm->a.columns != gemm->b.rows)
        FAIL(SB_ERROR_SHAPE, &all->operands[A],
             "has %lld columns, and %s has %lld rows: both are K; swap extents and strides of an "
             "operand to transpose it",
             (long long)gemm->a.columns, describe(&all->operands[B], other), (long long)gemm->b.rows);
    if (gemm->c.rows != gemm->a.rows)
        FAIL(SB_ERROR_SHAPE, &all->operands[C], "has %lld rows, and %s has %lld: both are M", (long long)gemm->c.rows,
             describe(&all->operands[A], other), (long long)gemm->a.rows);
    if (gemm->gate == SB_GATE_NONE && gemm->c.columns != gemm->b.columns)
        FAIL(SB_ERROR_SHAPE, &all->operands[C],
             "has %lld columns, and %s has %lld: both are N; only with a gate has b twice as many",
             (long long)gemm->c.columns, describe(&all->operands[B], other), (long long)gemm->b.columns);
    if (gemm->gate != SB_GATE_NONE && gemm->b.columns != 2 * gemm->c.columns)
        FAIL(SB_ERROR_SHAPE, &all->operands[B],
             "has %lld columns: with a gate it needs a gate and a value for each of the %lld "
             "columns "
             "of c, %lld in all",
             (long long)gemm->b.columns, (long long)gemm->c.columns, (long long)(2 * gemm->c.columns));
    return SB_OK;
}

static sb_status check_addends(const inspection *all, sb_error *error) {
    const sb_gemm *gemm = all->gemm;
    if (all->operands[BIAS].is_given && (gemm->bias.rows != 1 || gemm->bias.columns != gemm->b.columns))
        FAIL(SB_ERROR_SHAPE, &all->operands[BIAS], "must be 1 x %lld, one element for each column of b",
             (long long)gemm->b.columns);
    if (all->operands[RESIDUAL].is_given &&
        (gemm->residual.rows != gemm->c.rows || gemm->residual.columns != gemm->c.columns))
        FAIL(SB_ERROR_SHAPE, &all->operands[RESIDUAL],
             "must be %lld x %lld as c is; give a stride of 0 to repeat rows or columns", (long long)gemm->c.rows,
             (long long)gemm->c.columns);
    return SB_OK;
}

static sb_status check_accumulate(const inspection *all, sb_error *error) {
    const sb_gemm *gemm = all->gemm;
    if (!gemm->accumulate)
        return SB_OK;
    if (gemm->c.dtype != SB_F32)
        FAIL(SB_ERROR_SHAPE, &all->operands[C],
             "accumulate continues chains, which are f32, and c is %s: give an f32 c and round it "
             "when the last piece has been added",
             sb_dtype_name(gemm->c.dtype));
    const char *what = !(gemm->scale == 1.0f)                   ? "a scale other than 1"
                       : gemm->bias.data != NULL                ? "a bias"
                       : gemm->activation != SB_ACTIVATION_NONE ? "an activation"
                       : gemm->gate != SB_GATE_NONE             ? "a gate"
                       : gemm->residual.data != NULL            ? "a residual"
                                                                : NULL;
    if (what != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "accumulate with %s: what lies in c is an unfinished chain, so there is no "
                       "epilogue; apply it in a product of its own after the last piece",
                       what);
    return SB_OK;
}

static sb_status check_row_map(const inspection *all, sb_error *error) {
    const sb_row_map *map = all->gemm->rows;
    if (map == NULL)
        return SB_OK;
    if (map->engine != all->engine->number)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the row map was made by another engine: make one with sb_row_map_create and "
                       "the engine that computes the product");
    if (map->rows != all->gemm->a.columns)
        FAIL(SB_ERROR_SHAPE, &all->operands[A],
             "its K is %lld, and the samples of the row map have %lld rows together: the map cuts "
             "K, "
             "so both must be equal",
             (long long)all->gemm->a.columns, (long long)map->rows);
    return SB_OK;
}

/* ---- memory ---- */

/* The bytes of all its batches: those of a model's A and B step as the model says. */
static bool lay_out(const inspection *all, operand *operand) {
    const sb_gemm_batches *batches = all->model->batches;
    bool is_a = operand == &all->operands[A], is_b = operand == &all->operands[B];
    if (batches == NULL || (!is_a && !is_b))
        return sb_gemm_layout_of(operand->matrix, operand->row_stride, all->gemm->batches, &operand->layout);
    return sb_gemm_layout_of_batches(operand->matrix, operand->row_stride, batches->rank, batches->dims,
                                     is_a ? batches->a_steps : batches->b_steps, &operand->layout);
}

static sb_status check_memory(const inspection *all, operand *operand, sb_error *error) {
    const sb_matrix *matrix = operand->matrix;
    size_t size = sb_dtype_size(matrix->dtype);
    if (!operand->has_elements)
        return SB_OK;
    if (matrix->data == NULL)
        FAIL(SB_ERROR_INVALID_ARGUMENT, operand, "it has elements, and its data is %s", "NULL");
    if ((uintptr_t)matrix->data % size != 0)
        FAIL(SB_ERROR_INVALID_ARGUMENT, operand, "data %p is not aligned to the %zu bytes of an element", matrix->data,
             size);
    if (!lay_out(all, operand))
        FAIL(SB_ERROR_INVALID_ARGUMENT, operand,
             "with %lld batches its elements lie further apart than addresses reach: check extents "
             "and strides, which count elements",
             (long long)all->gemm->batches);
    return SB_OK;
}

/* Whether two strides lead to the same places. */
static bool same_stride(int64_t one, int64_t other, int64_t count) {
    return one == other || count == 1;
}

/* A residual that is C itself: each element is read before it is written. */
static bool is_c_itself(const inspection *all, const operand *operand) {
    const sb_matrix *c = all->operands[C].matrix, *matrix = operand->matrix;
    return operand == &all->operands[RESIDUAL] && matrix->data == c->data && matrix->dtype == c->dtype &&
           same_stride(matrix->row_stride, c->row_stride, c->rows) &&
           same_stride(matrix->column_stride, c->column_stride, c->columns) &&
           same_stride(matrix->batch_stride, c->batch_stride, all->gemm->batches);
}

static sb_status check_output(const inspection *all, sb_error *error) {
    const operand *c = &all->operands[C];
    if (!c->has_elements)
        return SB_OK;
    if (!sb_gemm_layout_is_distinct(&c->layout))
        FAIL(SB_ERROR_INVALID_ARGUMENT, c,
             "with %lld batches elements of c coincide: each stride of what is written must be "
             "larger "
             "than what the smaller ones span",
             (long long)all->gemm->batches);
    for (int i = A; i < C; i++) {
        const operand *other = &all->operands[i];
        char text[TEXT_BYTES];
        if (other->has_elements && !is_c_itself(all, other) && !sb_gemm_layouts_are_apart(&c->layout, &other->layout))
            FAIL(SB_ERROR_INVALID_ARGUMENT, c, "it overlaps %s, which is read while c is written%s",
                 describe(other, text),
                 i == RESIDUAL ? ": give c its own memory, or c's very data, dtype and strides"
                               : ": give c its own memory");
    }
    return SB_OK;
}

/* ---- the engine's side ---- */

static sb_status check_schedule(const inspection *all, sb_error *error) {
    const char *wanted = all->gemm->schedule;
    if (wanted == NULL)
        return SB_OK;
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; i < all->engine->interface->schedule_count(); i++) {
        const char *name = all->engine->interface->schedule_name(i);
        if (strcmp(name, wanted) == 0)
            return SB_OK;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", name);
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "no schedule is called \"%.64s\": this engine has %s; NULL lets it choose", wanted, names);
}

/* Where the first element of an operand lies. */
static sb_status check_place(const inspection *all, const operand *operand, sb_error *error) {
    const sb_engine *engine = all->engine;
    int index;
    SB_TRY(engine->interface->locate(engine, operand->matrix->data, &index, error));
    if (index < 0)
        FAIL(SB_ERROR_INVALID_ARGUMENT, operand,
             "its data %p are no memory of a device, and the engine computes on device %d, %s: copy "
             "them there, or use an engine on the CPU",
             operand->matrix->data, engine->device_index, engine->device_name);
    if (index != engine->device_index)
        FAIL(SB_ERROR_INVALID_ARGUMENT, operand,
             "it lies on device %d, and the engine computes on device %d, %s: copy it there, or "
             "make "
             "an engine on its device",
             index, engine->device_index, engine->device_name);
    return SB_OK;
}

static sb_status check_places(const inspection *all, sb_error *error) {
    for (int i = 0; i < OPERANDS && sb_engine_on_device(all->engine); i++) {
        if (all->operands[i].has_elements)
            SB_TRY(check_place(all, &all->operands[i], error));
    }
    return SB_OK;
}

/* ---- all of it ---- */

static inspection inspect(sb_engine *engine, const sb_gemm *gemm, const sb_gemm_model *model) {
    inspection all = {.engine = engine,
                      .gemm = gemm,
                      .model = model,
                      .operands = {
                          [A] = {"a", &gemm->a, gemm->a.row_stride, .is_given = true},
                          [B] = {"b", &gemm->b, gemm->b.row_stride, .is_given = true},
                          [BIAS] = {"bias", &gemm->bias, 0, .is_given = gemm->bias.data != NULL},
                          [RESIDUAL] = {"residual", &gemm->residual, gemm->residual.row_stride,
                                        .is_given = gemm->residual.data != NULL},
                          [C] = {"c", &gemm->c, gemm->c.row_stride, .is_given = true},
                      }};
    return all;
}

static sb_status check_all(inspection *all, sb_error *error) {
    const sb_gemm *gemm = all->gemm;
    SB_TRY(check_settings(gemm, error));
    for (int i = 0; i < OPERANDS; i++) {
        if (all->operands[i].is_given)
            SB_TRY(check_extents(&all->operands[i], error));
    }
    SB_TRY(check_dtypes(all, error));
    SB_TRY(check_products(all, error));
    SB_TRY(check_addends(all, error));
    SB_TRY(check_accumulate(all, error));
    SB_TRY(check_row_map(all, error));
    for (int i = 0; i < OPERANDS; i++) {
        operand *operand = &all->operands[i];
        operand->has_elements =
            operand->is_given && operand->matrix->rows > 0 && operand->matrix->columns > 0 && gemm->batches > 0;
        SB_TRY(check_memory(all, operand, error));
    }
    return check_output(all, error);
}

static sb_gemm_range range_of(const operand *operand) {
    if (!operand->has_elements)
        return (sb_gemm_range){0, 0};
    return (sb_gemm_range){operand->layout.first, operand->layout.span};
}

/* Leaves out strides of extents of one, which lead nowhere. */
static sb_gemm_addend addend_of(const inspection *all, const operand *operand) {
    const sb_matrix *matrix = operand->matrix;
    if (!operand->has_elements)
        return (sb_gemm_addend){.data = NULL};
    return (sb_gemm_addend){.data = matrix->data,
                            .dtype = matrix->dtype,
                            .scale = all->model->addend_scale,
                            .row_stride = matrix->rows > 1 ? operand->row_stride : 0,
                            .column_stride = matrix->columns > 1 ? matrix->column_stride : 0,
                            .batch_stride = matrix->batch_stride};
}

static sb_gemm_epilogue epilogue_of(const inspection *all) {
    const sb_gemm *gemm = all->gemm;
    return (sb_gemm_epilogue){.scale = gemm->scale,
                              .activation = gemm->activation,
                              .gate = gemm->gate,
                              .dtype = gemm->c.dtype,
                              .rounds = all->model->rounds,
                              .columns = gemm->c.columns,
                              .bias = addend_of(all, &all->operands[BIAS]),
                              .residual = addend_of(all, &all->operands[RESIDUAL])};
}

/* How the matrices of A and B follow each other. */
static sb_gemm_batches steps_of(const inspection *all) {
    const sb_gemm *gemm = all->gemm;
    const sb_gemm_batches even = {
        .rank = 1, .dims = {gemm->batches}, .a_steps = {gemm->a.batch_stride}, .b_steps = {gemm->b.batch_stride}};
    return sb_gemm_batches_merged(all->model->batches != NULL ? all->model->batches : &even);
}

static void fill_plan(const inspection *all, sb_gemm_plan *plan) {
    const sb_gemm *gemm = all->gemm;
    const sb_row_map *map = gemm->rows;
    *plan = (sb_gemm_plan){.gemm = gemm,
                           .m = gemm->c.rows,
                           .n = gemm->c.columns,
                           .k = gemm->a.columns,
                           .batches = gemm->batches,
                           .steps = steps_of(all),
                           .used = all->model->used,
                           .columns = gemm->b.columns,
                           .dtype = gemm->a.dtype,
                           .is_empty = !all->operands[C].has_elements,
                           .epilogue = epilogue_of(all),
                           .group_count = sb_row_groups_of(gemm->a.columns),
                           .a = range_of(&all->operands[A]),
                           .b = range_of(&all->operands[B]),
                           .c = range_of(&all->operands[C]),
                           .bias = range_of(&all->operands[BIAS]),
                           .residual = range_of(&all->operands[RESIDUAL])};
    if (map == NULL)
        return;
    plan->groups = map->groups;
    plan->group_count = map->count;
    plan->device_groups = map->device_groups;
}

sb_status sb_gemm_check(sb_engine *engine, const sb_gemm *gemm, sb_gemm_plan *plan, sb_error *error) {
    if (engine == NULL || gemm == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a product needs %s, which is NULL",
                       engine == NULL ? "an engine" : "an sb_gemm that describes it");
    if (gemm->struct_bytes != sizeof *gemm)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_gemm has %zu bytes where this library knows %zu: start from "
                       "SB_GEMM_DEFAULT, and use the library's own header",
                       gemm->struct_bytes, sizeof *gemm);
    const sb_gemm_model none = SB_GEMM_MODEL_DEFAULT;
    inspection all = inspect(engine, gemm, &none);
    SB_TRY(check_all(&all, error));
    SB_TRY(check_schedule(&all, error));
    SB_TRY(check_places(&all, error));
    fill_plan(&all, plan);
    return SB_OK;
}

sb_status sb_gemm_plan_fill(const sb_gemm *gemm, const sb_gemm_model *model, sb_gemm_plan *plan, sb_error *error) {
    inspection all = inspect(NULL, gemm, model);
    SB_TRY(check_all(&all, error));
    fill_plan(&all, plan);
    return SB_OK;
}
