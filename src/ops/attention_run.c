/* The evaluation of attention, which is its definition: docs/numerics.md, section 10.
 *
 * Rows (a query of a head of a sample) are computed on their own, by whichever thread. Of a row, weights are computed a
 * split at a time, then the values are summed a few columns at a time, so that nothing but the sums has the size of a
 * value. */
#include <string.h>

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/attention.h"
#include "ops/attention_values.h"
#include "ops/contraction.h"
#include "ops/number.h"
#include "ops/real.h"

#define BLOCKS (SB_ATTENTION_SPLIT / SB_ATTENTION_BLOCK)
#define TILE 64           /* columns of values at a time */
#define ROWS_AT_ONCE 1024 /* whose sums of values are in memory */

typedef struct row {
    const sb_attention_work *work;
    sb_attention_row at;
    bool direct; /* scores go to the softmax as the chain leaves them: the scale is in `split` */
    sb_split_scale_f32 split_f32;
    sb_split_scale_f64 split_f64;
} row;

/* In the type of the chains. */
typedef union scores_buffer {
    float f32[SB_ATTENTION_BLOCK];
    double f64[SB_ATTENTION_BLOCK];
} scores_buffer;

/* Weights as they are stored. */
typedef union weights_buffer {
    uint16_t half[SB_ATTENTION_BLOCK];
    float f32[SB_ATTENTION_BLOCK];
    double f64[SB_ATTENTION_BLOCK];
} weights_buffer;

typedef struct block_weights {
    bool any;        /* whether the row takes part */
    int32_t lowered; /* old maximum less the new one, if that has grown here; else 0 */
    int64_t count;
    weights_buffer weights;
} block_weights;

typedef struct split_weights {
    int64_t start, end;
    bool any;
    int32_t maximum;
    block_weights blocks[BLOCKS];
} split_weights;

/* The element of a row of queries, scores or outputs. */
static char *element(const sb_attention_array *array, const row *r, int64_t column) {
    return sb_attention_element(array, r->at.batch, r->at.head, r->at.query, column);
}

/* ---- where keys and values lie ---- */

sb_attention_stretch sb_attention_find_stretch(const sb_attention_work *work, const sb_attention_row *row,
                                               const sb_attention_array *past, const sb_attention_array *fresh,
                                               int64_t key, int64_t column) {
    int64_t batch = row->batch, at = key - work->past, count = work->keys - key;
    const sb_attention_array *from = fresh;
    if (work->pages.table != NULL) {
        batch = sb_pages_find(&work->pages, row->sequence, key, &at);
        count = work->pages.rows - at;
    } else if (key < work->past) {
        from = past;
        at = key;
        count = work->past - key;
    }
    return (sb_attention_stretch){sb_attention_element(from, batch, row->key_head, at, column), from->row, from->column,
                                  count};
}

/* ---- scores ---- */

/* The chains of `count` keys from `start`. */
static void contract_keys(const row *r, int64_t start, int64_t count, scores_buffer *z) {
    const sb_attention_work *work = r->work;
    const char *q = element(&work->q, r, 0);
    memset(z, 0, sizeof *z);
    for (int64_t done = 0; done < count;) {
        const sb_attention_stretch from =
            sb_attention_find_stretch(work, &r->at, &work->past_k, &work->k, start + done, 0);
        int64_t part = from.count < count - done ? from.count : count - done;
        void *acc = work->dtype == SB_F64 ? (void *)(z->f64 + done) : (void *)(z->f32 + done);
        sb_contract_row(work->dtype, part, work->width, q, work->q.column, from.data, from.column, from.row, acc);
        done += part;
    }
}

/* Which keys are seen, and their bias: 0 where there is none. */
static void look(const row *r, int64_t start, int64_t count, bool *seen, double *bias) {
    const sb_attention_work *work = r->work;
    const sb_attention_array *mask = &work->mask;
    for (int64_t j = 0; j < count; j++) {
        seen[j] = start + j >= r->at.reach.first && start + j < r->at.reach.last;
        bias[j] = 0;
    }
    if (mask->data == NULL)
        return;
    const char *from = element(mask, r, start);
    for (int64_t j = 0; j < count && start + j < work->mask_keys; j++) {
        double value = sb_number_load(mask->dtype, from, j * mask->column);
        bool is_open = mask->dtype == SB_BOOL ? value != 0 : value != -sb_infinity_f64();
        seen[j] = seen[j] && is_open;
        bias[j] = mask->dtype == SB_BOOL ? 0 : value;
    }
}

#define DEFINE_FINISH(suffix, real)                                                                                    \
    static void finish_scores_##suffix(const sb_attention_work *work, sb_attention_stage stage, int64_t count,         \
                                       real *s, const double *bias) {                                                  \
        bool biased = work->mask.data != NULL && work->mask.dtype != SB_BOOL && stage >= SB_ATTENTION_BIASED;          \
        real cap = stage >= SB_ATTENTION_CAPPED ? (real)work->cap : 0;                                                 \
        for (int64_t j = 0; j < count; j++)                                                                            \
            s[j] = sb_attention_finish_##suffix(s[j], (real)work->scale, cap, biased, (real)bias[j]);                  \
    }
DEFINE_FINISH(f32, float)
DEFINE_FINISH(f64, double)

static void finish_scores(const sb_attention_work *work, sb_attention_stage stage, int64_t count, scores_buffer *z,
                          const double *bias) {
    if (work->dtype == SB_F64)
        finish_scores_f64(work, stage, count, z->f64, bias);
    else
        finish_scores_f32(work, stage, count, z->f32, bias);
}

/* Gives out scores of all keys of a row, masked ones too. */
static void store_scores(const row *r) {
    const sb_attention_work *work = r->work;
    const sb_attention_array *to = &work->scores;
    scores_buffer z;
    double bias[SB_ATTENTION_BLOCK];
    bool seen[SB_ATTENTION_BLOCK];
    for (int64_t block = 0; block < work->keys; block += SB_ATTENTION_BLOCK) {
        int64_t count = work->keys - block < SB_ATTENTION_BLOCK ? work->keys - block : SB_ATTENTION_BLOCK;
        contract_keys(r, block, count, &z);
        look(r, block, count, seen, bias);
        finish_scores(work, work->stage, count, &z, bias);
        char *out = element(to, r, block);
        for (int64_t j = 0; j < count; j++) {
            bool masked = work->stage == SB_ATTENTION_BIASED && !seen[j];
            double value = work->dtype == SB_F64 ? z.f64[j] : (double)z.f32[j];
            sb_number_store(to->dtype, out, j * to->column, masked ? -sb_infinity_f64() : value);
        }
    }
}

/* ---- values ---- */

/* Stores a weight and says what it has become. */
static double store_weight(sb_dtype dtype, weights_buffer *weights, int64_t at, double weight) {
    sb_number_store(dtype, weights, at, weight);
    return sb_number_load(dtype, weights, at);
}

static const char *value_row(const row *r, int64_t key, int64_t column, int64_t *stride) {
    const sb_attention_work *work = r->work;
    const sb_attention_stretch from = sb_attention_find_stretch(work, &r->at, &work->past_v, &work->v, key, column);
    *stride = from.column;
    return from.data;
}

/* A step of the 16-bit chain over the values of 16 keys. Values whose weight is +0 take no part: they read as zeros. */
static void add_group(const row *r, int64_t key, int64_t count, const uint16_t *weights, int64_t column,
                      int64_t columns, float *acc) {
    uint16_t values[16 * TILE];
    bool any = false;
    for (int64_t k = 0; k < count; k++)
        any = any || weights[k] != 0;
    if (!any)
        return;
    for (int64_t k = 0; k < count; k++) {
        int64_t stride;
        const uint16_t *from = (const void *)value_row(r, key + k, column, &stride);
        for (int64_t c = 0; c < columns; c++)
            values[k * TILE + c] = weights[k] != 0 ? from[c * stride] : 0;
    }
    sb_contract_row(r->work->dtype, columns, count, weights, 1, values, TILE, 1, acc);
}

static void add_block(const row *r, const block_weights *block, int64_t start, int64_t column, int64_t columns,
                      void *acc) {
    sb_dtype dtype = r->work->dtype;
    if (dtype == SB_F16 || dtype == SB_BF16) {
        for (int64_t k = 0; k < block->count; k += 16)
            add_group(r, start + k, block->count - k < 16 ? block->count - k : 16, block->weights.half + k, column,
                      columns, acc);
        return;
    }
    for (int64_t k = 0; k < block->count; k++) {
        int64_t stride;
        const void *weight = dtype == SB_F64 ? (const void *)&block->weights.f64[k] : &block->weights.f32[k];
        if (sb_number_load(dtype, weight, 0) == 0)
            continue;
        const char *from = value_row(r, start + k, column, &stride);
        sb_contract_row(dtype, columns, 1, weight, 1, from, 0, stride, acc);
    }
}

static void multiply(sb_dtype dtype, int64_t count, int32_t difference, void *values) {
    float narrow = sb_split_factor_f32(difference, 0);
    double wide = sb_split_factor_f64(difference, 0);
    for (int64_t c = 0; c < count; c++) {
        if (dtype == SB_F64)
            ((double *)values)[c] = ((double *)values)[c] * wide;
        else
            ((float *)values)[c] = ((float *)values)[c] * narrow;
    }
}

/* Folds a split's sums of values into those of the splits before it, which had the largest exponent `maximum`. */
static void fold_values(sb_dtype dtype, int64_t columns, int32_t maximum, int32_t own, void *sums, void *total) {
    if (own < maximum)
        multiply(dtype, columns, own - maximum, sums);
    else
        multiply(dtype, columns, maximum - own, total);
    for (int64_t c = 0; c < columns; c++) {
        if (dtype == SB_F64)
            ((double *)total)[c] = ((double *)total)[c] + ((double *)sums)[c];
        else
            ((float *)total)[c] = ((float *)total)[c] + ((float *)sums)[c];
    }
}

/* Sums the values of a split, weighted, and folds them into the total. */
static void add_values(const row *r, const split_weights *split, bool any_before, int32_t maximum, void *total) {
    sb_dtype dtype = r->work->dtype;
    size_t size = sb_dtype_size(sb_contraction_accumulator(dtype));
    double sums[TILE];
    for (int64_t column = 0; column < r->work->value_width; column += TILE) {
        int64_t left = r->work->value_width - column, columns = left < TILE ? left : TILE;
        char *to = (char *)total + (size_t)column * size;
        memset(sums, 0, sizeof sums);
        for (int b = 0; b < BLOCKS; b++) {
            const block_weights *block = &split->blocks[b];
            if (block->lowered != 0)
                multiply(dtype, columns, block->lowered, sums);
            if (block->any)
                add_block(r, block, split->start + (int64_t)b * SB_ATTENTION_BLOCK, column, columns, sums);
        }
        if (any_before)
            fold_values(dtype, columns, maximum, split->maximum, sums, to);
        else
            memcpy(to, sums, (size_t)columns * size);
    }
}

/* ---- rows ---- */

#define SB_ATTENTION_REAL float
#define SB_ATTENTION_NAME(name) name##_f32
#define SB_ATTENTION_OTHER(name) name##_f32
#include "ops/attention_row.h"
#undef SB_ATTENTION_REAL
#undef SB_ATTENTION_NAME
#undef SB_ATTENTION_OTHER

#define SB_ATTENTION_REAL double
#define SB_ATTENTION_NAME(name) name##_f64
#define SB_ATTENTION_OTHER(name) name##_f64
#include "ops/attention_row.h"

sb_attention_row sb_attention_find_row(const sb_attention_work *work, int64_t batch, int64_t head, int64_t query) {
    sb_attention_row r = {.batch = batch, .head = head, .query = query};
    r.key_head = head / (work->heads / work->key_heads);
    int64_t length = work->keys, position = work->past + query;
    int64_t sample = batch, left = work->queries - query;
    if (work->pages.table != NULL) {
        const sb_pages_place place = sb_pages_of_row(&work->pages, query);
        r.sequence = sample = place.sequence;
        left = place.left;
    }
    if (work->lengths != NULL) {
        int64_t given = ((const int64_t *)(const void *)work->lengths)[sample * work->lengths_stride];
        length = sb_attention_length(given, work->keys);
        position = length - left;
    }
    if (work->mask.data != NULL && work->mask_keys < length)
        length = work->mask_keys;
    r.reach = sb_attention_reach_of(position, length, work->left, work->causal ? 0 : work->right);
    return r;
}

bool sb_attention_is_direct(const sb_attention_work *work) {
    bool has_bias = work->mask.data != NULL && work->mask.dtype != SB_BOOL;
    return work->given.data != NULL || (work->cap == 0 && !has_bias && sb_attention_is_moderate(work->scale));
}

static row start_row(const sb_attention_work *work, int64_t index) {
    int64_t line = index / work->queries;
    row r = {.work = work,
             .at = sb_attention_find_row(work, line / work->heads, line % work->heads, index % work->queries),
             .direct = sb_attention_is_direct(work)};
    double factor = r.direct && work->given.data == NULL ? work->scale : 1;
    r.split_f32 = sb_split_scale_of_f32((float)factor);
    r.split_f64 = sb_split_scale_of_f64(factor);
    return r;
}

typedef struct rows_task {
    const sb_attention_work *work;
    const sb_attention_array *probabilities;
    int64_t first;
    char *totals;
    size_t row_bytes;
} rows_task;

static void compute_rows(void *context, int64_t begin, int64_t end) {
    const rows_task *task = context;
    const sb_attention_work *work = task->work;
    for (int64_t index = begin; index < end; index++) {
        row r = start_row(work, task->first + index);
        void *total = task->totals + (size_t)index * task->row_bytes;
        bool early = work->scores.data != NULL && work->stage != SB_ATTENTION_PROBABILITY;
        if (early)
            store_scores(&r);
        if (work->y.data == NULL && (early || work->scores.data == NULL))
            continue;
        if (work->wide)
            compute_row_f64(&r, total);
        else
            compute_row_f32(&r, total);
    }
}

static int64_t row_count(const sb_attention_work *work) {
    return work->batch * work->heads * work->queries;
}

sb_status sb_attention_run(const sb_attention_work *work, sb_workers *workers, sb_error *error) {
    int64_t rows = row_count(work), most = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
    rows_task task = {.work = work};
    if (rows == 0)
        return SB_OK;
    task.row_bytes = (size_t)work->value_width * sb_dtype_size(sb_contraction_accumulator(work->dtype));
    task.totals = sb_allocate_array((size_t)most, task.row_bytes);
    if (task.totals == NULL)
        return sb_fail_memory(error, (size_t)most * task.row_bytes);
    for (task.first = 0; task.first < rows; task.first += most)
        sb_workers_run(workers, rows - task.first < most ? rows - task.first : most, 1, compute_rows, &task);
    sb_free(task.totals);
    return SB_OK;
}

sb_status sb_attention_run_defined(sb_call *call, const sb_attention_work *work) {
    return sb_attention_run(work, call->workers, call->error);
}

/* ---- probabilities that a graph has changed ---- */

static double mix_element(const row *r, const sb_attention_array *p, int64_t column) {
    const char *weights = element(p, r, 0);
    float narrow = 0;
    double wide = 0;
    for (int64_t key = 0; key < r->work->keys; key++) {
        int64_t stride;
        double weight = sb_number_load(p->dtype, weights, key * p->column);
        if (weight == 0)
            continue;
        double value = sb_number_load(r->work->dtype, value_row(r, key, column, &stride), 0);
        if (r->work->wide)
            wide = sb_fma_f64(weight, value, wide);
        else
            narrow = sb_fma_f32((float)weight, (float)value, narrow);
    }
    return r->work->wide ? wide : (double)narrow;
}

static void mix_rows(void *context, int64_t begin, int64_t end) {
    const rows_task *task = context;
    const sb_attention_work *work = task->work;
    for (int64_t index = begin; index < end; index++) {
        row r = start_row(work, index);
        char *out = element(&work->y, &r, 0);
        for (int64_t c = 0; c < work->value_width; c++)
            sb_number_store(work->dtype, out, c * work->y.column, mix_element(&r, task->probabilities, c));
    }
}

void sb_attention_mix(const sb_attention_work *work, const sb_attention_array *probabilities, sb_workers *workers) {
    rows_task task = {.work = work, .probabilities = probabilities};
    sb_workers_run(workers, row_count(work), 1, mix_rows, &task);
}

/* ---- descriptions ---- */

double sb_attention_default_scale(sb_dtype dtype, int64_t width) {
    if (width == 0)
        return 1;
    if (dtype == SB_F64)
        return sb_div_f64(1, sb_sqrt_f64((double)width));
    return sb_div_f32(1, sb_sqrt_f32((float)width));
}

sb_attention_array sb_attention_array_of(const sb_tensor *tensor, int64_t heads) {
    if (tensor == NULL)
        return (sb_attention_array){0};
    const int64_t *strides = tensor->strides;
    if (tensor->rank == 4)
        return (sb_attention_array){tensor->data, tensor->dtype, strides[0], strides[1], strides[2], strides[3]};
    int64_t width = heads > 0 ? tensor->dims[2] / heads : 0;
    return (sb_attention_array){tensor->data, tensor->dtype, strides[0], width * strides[2], strides[1], strides[2]};
}
