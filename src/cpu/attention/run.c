/* Attention on the host: which rows are computed together, and by whom.
 *
 * A unit is up to 64 rows of queries whose heads share a head of keys. Threads take units; where there are too few of them
 * (a step of decoding, in which all rows of a head are one unit) they take splits of units, whose sums are kept apart and
 * folded in order afterwards. Either way each split is computed on its own, and folded as the definition folds it. */
#include <string.h>

#include "cpu/attention/unit.h"
#include "cpu/pieces.h"

#define BLOCK SB_ATTENTION_BLOCK
#define SPLIT SB_ATTENTION_SPLIT

/* What belongs to a unit's rows shall stay in the second cache. */
#define UNIT_BYTES (1 << 19)
/* Few enough that a unit's keys are made ready for little. */
#define FEWEST_ROWS 16
/* Of splits that are kept apart. */
#define MOST_KEPT_BYTES ((size_t)64 << 20)

/* Queries of one sample or sequence. */
typedef struct span {
    int64_t batch, query, queries;
} span;

/* Rows `first` … first + count - 1 of a span and a head of keys: row r is query r / group, head r % group of those that share
 * the keys. */
typedef struct part {
    int64_t span, key_head, first, count;
    int64_t start, splits; /* the first split that a row sees, and how many */
    int64_t kept;          /* splits of the units before */
} part;

typedef struct running {
    sb_attention_plan plan;
    const sb_chain16_kernels *chain16; /* whose `round` stores 16 bits */
    span *spans;
    part *parts;
    int64_t span_count, part_count;
    int64_t group; /* heads of queries for a head of keys */
    /* Where splits are kept apart, for [split][row]: */
    sb_attention_sum *kept_sums;
    float *kept_values; /* [value_width] each */
} running;

/* ---- a unit ---- */

static bool add_unit_bytes(const sb_attention_plan *plan, size_t *bytes) {
    const int64_t rows = plan->rows, wide = plan->work->value_width;
    const bool is_half = plan->work->dtype != SB_F32;
    int64_t sums, totals;
    return !__builtin_mul_overflow(plan->tile * plan->tiles, rows, &sums) &&
           !__builtin_mul_overflow(wide, rows, &totals) &&
           sb_attention_add_bytes(bytes, rows, sizeof(sb_attention_row)) &&
           sb_attention_add_bytes(bytes, rows, sizeof(sb_attention_sum)) &&
           sb_attention_add_bytes(bytes, rows, sizeof(sb_attention_sum)) &&
           sb_attention_add_bytes(bytes, rows, sizeof(sb_attention_marks)) &&
           sb_attention_add_bytes(bytes, rows, BLOCK * sizeof(float)) &&
           sb_attention_add_bytes(bytes, is_half ? rows : 0, BLOCK * sizeof(uint16_t)) &&
           sb_attention_add_bytes(bytes, 1, BLOCK * sizeof(float)) &&
           sb_attention_add_bytes(bytes, sums, sizeof(float)) && sb_attention_add_bytes(bytes, totals, sizeof(float)) &&
           plan->products->add_bytes(plan, bytes);
}

/* In the order of add_unit_bytes. */
static sb_attention_unit divide(const sb_attention_plan *plan, void *workspace) {
    const int64_t rows = plan->rows, wide = plan->work->value_width;
    const bool is_half = plan->work->dtype != SB_F32;
    char *left = workspace;
    sb_attention_unit unit = {.plan = plan};
    unit.row = sb_attention_take_part(&left, rows, sizeof *unit.row);
    unit.sum = sb_attention_take_part(&left, rows, sizeof *unit.sum);
    unit.total = sb_attention_take_part(&left, rows, sizeof *unit.total);
    unit.marks = sb_attention_take_part(&left, rows, sizeof *unit.marks);
    unit.scores = sb_attention_take_part(&left, rows, BLOCK * sizeof(float));
    unit.stored = sb_attention_take_part(&left, is_half ? rows : 0, BLOCK * sizeof(uint16_t));
    unit.bias = sb_attention_take_part(&left, 1, BLOCK * sizeof(float));
    unit.sums = sb_attention_take_part(&left, plan->tile * plan->tiles * rows, sizeof(float));
    unit.totals = sb_attention_take_part(&left, wide * rows, sizeof(float));
    unit.products = left;
    return unit;
}

static sb_attention_row row_of(const running *run, const part *p, int64_t index) {
    const span *of = &run->spans[p->span];
    int64_t row = p->first + index;
    return sb_attention_find_row(run->plan.work, of->batch, p->key_head * run->group + row % run->group,
                                 of->query + row / run->group);
}

/* All rows of a unit: those of one query see alike, and of several sequences it takes a while to find what. */
static void find_unit(const running *run, const part *p, sb_attention_row *rows) {
    for (int64_t r = 0; r < p->count; r++) {
        int64_t row = p->first + r;
        if (r > 0 && row % run->group != 0) {
            rows[r] = rows[r - 1];
            rows[r].head++;
        } else {
            rows[r] = row_of(run, p, r);
        }
    }
}

/* The unit of these rows in a thread's workspace, with nothing summed. */
static sb_attention_unit start_unit(const running *run, const part *p, void *workspace) {
    sb_attention_unit unit = divide(&run->plan, workspace);
    unit.count = p->count;
    find_unit(run, p, unit.row);
    memset(unit.total, 0, (size_t)unit.count * sizeof *unit.total);
    memset(unit.bias, 0, BLOCK * sizeof *unit.bias);
    run->plan.products->take_queries(&unit);
    return unit;
}

/* ---- a split ---- */

static int within(int64_t key, int64_t block, int count) {
    return key <= block ? 0 : key - block < count ? (int)(key - block) : count;
}

/* The piece of a row's sums in tile `tile`. */
static float *sums_of(const sb_attention_unit *unit, int64_t row, int64_t tile) {
    return unit->sums + (tile * unit->plan->rows + row) * unit->plan->tile;
}

static void weigh_row(sb_attention_unit *unit, int64_t block, int count, int64_t r) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_row *row = &unit->row[r];
    const sb_attention_array *mask = &plan->work->mask;
    int first = within(row->reach.first, block, count), last = within(row->reach.last, block, count);
    const float *bias = NULL;
    if (mask->data != NULL) {
        int open = within(plan->work->mask_keys, block, count);
        const char *from = sb_attention_element(mask, row->batch, row->head, row->query, open > 0 ? block : 0);
        plan->kernels->load_bias(mask->dtype, from, mask->column, open, unit->bias);
        bias = unit->bias;
    }
    unit->marks[r] = plan->kernels->weigh(&plan->formula, count, first, last, bias, unit->scores + r * BLOCK,
                                          unit->stored + r * BLOCK, &unit->sum[r]);
    for (int64_t tile = 0; tile < plan->tiles && unit->marks[r].factor != 1; tile++)
        plan->kernels->scale(sums_of(unit, r, tile), plan->tile, unit->marks[r].factor);
}

/* Which rows see any of the keys [block, end), and how many of these keys there are up to the last that is seen. */
static int find_rows(const sb_attention_unit *unit, int64_t block, int64_t end, int64_t *first, int64_t *last) {
    int64_t seen = block;
    *first = unit->count;
    *last = 0;
    for (int64_t r = 0; r < unit->count; r++) {
        const sb_attention_reach *reach = &unit->row[r].reach;
        if (reach->first >= end || reach->last <= block || reach->first >= reach->last || unit->sum[r].is_nan)
            continue;
        *first = r < *first ? r : *first;
        *last = r + 1;
        seen = reach->last > seen ? reach->last : seen;
    }
    return (int)((seen < end ? seen : end) - block);
}

/* The sums of split `split`. */
static void sum_split(sb_attention_unit *unit, int64_t split) {
    const sb_attention_plan *plan = unit->plan;
    for (int64_t r = 0; r < unit->count; r++)
        unit->sum[r] = (sb_attention_sum){.is_nan = unit->total[r].is_nan};
    memset(unit->sums, 0, (size_t)(plan->tile * plan->tiles * plan->rows) * sizeof *unit->sums);
    for (int64_t block = split * SPLIT; block < (split + 1) * SPLIT; block += BLOCK) {
        int64_t first, last;
        int count = find_rows(unit, block, block + BLOCK, &first, &last);
        if (count == 0)
            continue;
        plan->products->score(unit, block, count, first, last);
        for (int64_t r = first; r < last; r++)
            weigh_row(unit, block, count, r);
        plan->products->add(unit, block, count, first, last);
    }
}

/* Folds the sums of a split into those of the splits before it. Columns of values lie in tiles, `step` from one to the next. */
static void fold_row(const sb_attention_plan *plan, const sb_attention_sum *own, const float *sums, int64_t tile,
                     int64_t step, sb_attention_sum *total, float *totals) {
    const int64_t width = plan->work->value_width;
    const float weight = sb_split_fold_f32(own->lanes[0], own->lanes[1], own->lanes[2], own->lanes[3]);
    const bool is_first = !total->any, is_smaller = !is_first && own->maximum < total->maximum;
    total->is_nan = total->is_nan || own->is_nan;
    if (total->is_nan || !own->any)
        return;
    float own_factor = is_smaller ? sb_split_factor_f32(own->maximum, total->maximum) : 1;
    float total_factor = is_first || is_smaller ? 1 : sb_split_factor_f32(total->maximum, own->maximum);
    for (int64_t column = 0; column < width; column += tile, sums += step) {
        int64_t columns = width - column < tile ? width - column : tile;
        if (is_first)
            memcpy(totals + column, sums, (size_t)columns * sizeof *totals);
        else
            plan->kernels->fold(totals + column, total_factor, sums, own_factor, columns);
    }
    total->lanes[0] = is_first ? weight : total->lanes[0] * total_factor + weight * own_factor;
    total->maximum = is_smaller ? total->maximum : own->maximum;
    total->any = true;
}

/* ---- results ---- */

/* Stores totals · share as elements of y. `totals` is used up. */
static void store_row(const running *run, const sb_attention_row *row, const sb_attention_sum *total, float *totals) {
    const sb_attention_work *work = run->plan.work;
    const sb_attention_array *y = &work->y;
    const int64_t width = work->value_width;
    char *to = sb_attention_element(y, row->batch, row->head, row->query, 0);
    if (total->any && !total->is_nan) {
        run->plan.kernels->scale(totals, width, sb_div_f32(1, total->lanes[0]));
    } else {
        for (int64_t c = 0; c < width; c++)
            totals[c] = total->is_nan ? sb_nan_f32() : 0.0f;
    }
    if (work->dtype == SB_F32) {
        float *out = (float *)(void *)to;
        for (int64_t c = 0; c < width; c++)
            out[c * y->column] = totals[c];
        return;
    }
    uint16_t *out = (uint16_t *)(void *)to, rounded[BLOCK];
    for (int64_t start = 0; start < width; start += BLOCK) {
        int64_t count = width - start < BLOCK ? width - start : BLOCK;
        run->chain16->round(work->dtype, totals + start, count, rounded);
        for (int64_t c = 0; c < count; c++)
            out[(start + c) * y->column] = rounded[c];
    }
}

/* ---- what threads take ---- */

/* A whole unit. The last ones first, which see most keys where rows see those before them. */
static void compute_unit(void *context, int64_t index, void *workspace) {
    const running *run = context;
    const sb_attention_plan *plan = &run->plan;
    const part *p = &run->parts[run->part_count - 1 - index];
    sb_attention_unit unit = start_unit(run, p, workspace);
    for (int64_t split = 0; split < p->splits; split++) {
        sum_split(&unit, p->start + split);
        for (int64_t r = 0; r < unit.count; r++)
            fold_row(plan, &unit.sum[r], sums_of(&unit, r, 0), plan->tile, plan->rows * plan->tile, &unit.total[r],
                     unit.totals + r * plan->work->value_width);
    }
    for (int64_t r = 0; r < unit.count; r++)
        store_row(run, &unit.row[r], &unit.total[r], unit.totals + r * plan->work->value_width);
}

/* A split of a unit, whose sums are kept. */
static void compute_split(void *context, int64_t index, void *workspace) {
    const running *run = context;
    const sb_attention_plan *plan = &run->plan;
    const int64_t width = plan->work->value_width;
    const part *p = run->parts;
    while (index >= p->kept + p->splits)
        p++;
    sb_attention_unit unit = start_unit(run, p, workspace);
    sum_split(&unit, p->start + index - p->kept);
    for (int64_t r = 0; r < unit.count; r++) {
        int64_t place = index * plan->rows + r;
        run->kept_sums[place] = unit.sum[r];
        for (int64_t tile = 0; tile < plan->tiles; tile++) {
            int64_t column = tile * plan->tile, left = width - column;
            memcpy(run->kept_values + place * width + column, sums_of(&unit, r, tile),
                   (size_t)(left < plan->tile ? left : plan->tile) * sizeof(float));
        }
    }
}

/* The rows of a unit whose splits are kept. */
static void fold_splits(void *context, int64_t index, void *workspace) {
    const running *run = context;
    const sb_attention_plan *plan = &run->plan;
    const int64_t width = plan->work->value_width;
    const part *p = &run->parts[index];
    float *totals = workspace;
    for (int64_t r = 0; r < p->count; r++) {
        const sb_attention_row row = row_of(run, p, r);
        sb_attention_sum total = {0};
        for (int64_t split = p->kept; split < p->kept + p->splits; split++) {
            int64_t place = split * plan->rows + r;
            fold_row(plan, &run->kept_sums[place], run->kept_values + place * width, width, 0, &total, totals);
        }
        store_row(run, &row, &total, totals);
    }
}

/* ---- cutting ---- */

/* Lists the queries that share keys; only counts them without `spans`. */
static int64_t list_spans(const sb_attention_work *work, span *spans) {
    int64_t count = 0;
    if (work->pages.table == NULL) {
        for (; count < work->batch && spans != NULL; count++)
            spans[count] = (span){count, 0, work->queries};
        return work->batch;
    }
    for (int64_t query = 0; query < work->queries; count++) {
        int64_t queries = sb_pages_of_row(&work->pages, query).left;
        if (spans != NULL)
            spans[count] = (span){0, query, queries};
        query += queries;
    }
    return count;
}

/* Units of at most `rows` rows, as even as they can be; only counts them without parts. Heads times queries fit. */
static int64_t list_parts(running *run, int64_t rows, bool is_made) {
    const sb_attention_work *work = run->plan.work;
    int64_t count = 0;
    for (int64_t s = 0; s < run->span_count; s++) {
        int64_t all = run->spans[s].queries * run->group, units = (all + rows - 1) / rows;
        if (!is_made) {
            count += units * work->key_heads;
            continue;
        }
        int64_t each = (all + units - 1) / units;
        for (int64_t head = 0; head < work->key_heads; head++) {
            for (int64_t first = 0; first < all; first += each)
                run->parts[count++] = (part){s, head, first, all - first < each ? all - first : each, 0, 0, 0};
        }
    }
    return count;
}

/* Which splits the units see. Returns how many that are altogether, and in *most the largest number of a unit. */
static int64_t find_splits(running *run, int64_t *most) {
    int64_t kept = 0, units = 0; /* of a head */
    *most = 0;
    for (int64_t i = 0; i < run->part_count; i++) {
        part *p = &run->parts[i];
        if (p->key_head > 0) { /* heads see alike */
            p->start = run->parts[i - units].start;
            p->splits = run->parts[i - units].splits;
        } else {
            /* A later query reaches no less far, and begins no earlier. */
            int64_t first = row_of(run, p, 0).reach.first, last = row_of(run, p, p->count - 1).reach.last;
            p->start = first / SPLIT;
            p->splits = last > first ? (last - 1) / SPLIT + 1 - p->start : 0;
            units = p->first == 0 ? 1 : units + 1;
        }
        p->kept = kept;
        kept += p->splits;
        *most = p->splits > *most ? p->splits : *most;
    }
    return kept;
}

/* As many rows as a unit's memory may have, and fewer where there would not be work for all threads. */
static void choose_rows(running *run, int threads) {
    sb_attention_plan *plan = &run->plan;
    for (plan->rows = SB_ATTENTION_ROWS; plan->rows > 1; plan->rows /= 2) {
        size_t bytes = 0;
        if (add_unit_bytes(plan, &bytes) && bytes <= UNIT_BYTES)
            break;
    }
    while (threads > 1 && plan->rows > FEWEST_ROWS && list_parts(run, plan->rows, false) < 2 * threads)
        plan->rows /= 2;
}

static sb_status cut(sb_call *call, running *run) {
    const sb_attention_work *work = run->plan.work;
    void *memory;
    run->group = work->heads / work->key_heads;
    run->span_count = list_spans(work, NULL);
    SB_TRY(sb_call_workspace(call, (size_t)run->span_count * sizeof *run->spans, &memory));
    run->spans = memory;
    list_spans(work, run->spans);
    choose_rows(run, sb_workers_threads(call->workers));
    run->part_count = list_parts(run, run->plan.rows, false);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)run->part_count, sizeof *run->parts, &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    run->parts = memory;
    list_parts(run, run->plan.rows, true);
    return SB_OK;
}

/* Bytes of the sums that are kept, in two parts; false where they are too many. */
static bool measure_kept(const running *run, int64_t splits, size_t *sums, size_t *bytes) {
    size_t values, rows;
    return !__builtin_mul_overflow((size_t)splits, (size_t)run->plan.rows, &rows) &&
           !__builtin_mul_overflow(rows, sizeof *run->kept_sums, sums) && *sums <= MOST_KEPT_BYTES &&
           !__builtin_mul_overflow(rows * sizeof(float), (size_t)run->plan.work->value_width, &values) &&
           !__builtin_add_overflow(*sums, values, bytes) && *bytes <= MOST_KEPT_BYTES;
}

static sb_status run_units(sb_call *call, running *run) {
    int threads = sb_workers_threads(call->workers);
    int64_t most, splits = find_splits(run, &most);
    size_t bytes = 0, sums, kept;
    void *memory;
    if (!add_unit_bytes(&run->plan, &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    bool is_apart = threads > 1 && most > 1 && run->part_count < 2 * threads;
    if (!is_apart || !measure_kept(run, splits, &sums, &kept))
        return sb_pieces_run(call, run->part_count, bytes, compute_unit, run);
    SB_TRY(sb_call_workspace(call, kept, &memory));
    run->kept_sums = memory;
    run->kept_values = (float *)(void *)((char *)memory + sums);
    SB_TRY(sb_pieces_run(call, splits, bytes, compute_split, run));
    return sb_pieces_run(call, run->part_count, (size_t)run->plan.work->value_width * sizeof(float), fold_splits, run);
}

sb_status sb_attention_run_on_cpu(sb_call *call, const sb_attention_work *work) {
    if (work->batch == 0 || work->heads == 0 || work->queries == 0 || work->value_width == 0 || work->y.data == NULL)
        return SB_OK;
    const bool is_half = work->dtype != SB_F32, is_direct = sb_attention_is_direct(work);
    running run = {.chain16 = sb_chain16_kernels_of(call->isa)};
    run.plan = (sb_attention_plan){
        .work = work,
        .formula = {.dtype = work->dtype,
                    .direct = is_direct,
                    .biased = work->mask.data != NULL && work->mask.dtype != SB_BOOL,
                    .scale = (float)work->scale,
                    .cap = (float)work->cap,
                    .split = sb_split_scale_of_f32(is_direct ? (float)work->scale : 1)},
        .kernels = sb_attention_kernels_for(call->isa),
        .products = is_half ? &sb_attention_products_16 : &sb_attention_products_f32,
        .gemm = sb_gemm_f32_kernels(call->isa),
        .chain16 = run.chain16,
    };
    run.plan.products->cut(&run.plan);
    SB_TRY(cut(call, &run));
    return run_units(call, &run);
}
