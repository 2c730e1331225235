/* Attention's products of f32, by the register tiles of matrix products (cpu/contraction/gemm_kernels.h): lanes are keys in
 * the first, whose keys are transposed a block at a time, and columns of values in the second, which are read where they lie.
 *
 * A weight of +0 takes no part in a chain (0 · ∞, and a sum that is -0), so a tile gets those keys that all its rows weigh;
 * what a row has besides, at the ends of its reach and between gaps, it gets alone. */
#include <string.h>

#include "cpu/attention/unit.h"

/* Elements of a key's width at a time. */
#define WIDTH 512

typedef struct space {
    float *queries; /* [rows][width], where they do not lie so */
    float *keys;    /* [part of the width][keys of a block] */
    float *values;  /* [keys of a block][columns], where they cannot be read in place */
} space;

static int64_t part_of(int64_t width) {
    return width < WIDTH ? width : WIDTH;
}

/* Tiles read whole panels of values. */
static bool in_place(const sb_attention_plan *plan) {
    const sb_attention_work *work = plan->work;
    return work->value_width % plan->gemm->panel == 0 && work->v.column == 1 &&
           (work->past_v.data == NULL || work->past_v.column == 1);
}

static void cut(sb_attention_plan *plan) {
    plan->tile = (plan->work->value_width + plan->gemm->panel - 1) / plan->gemm->panel * plan->gemm->panel;
    plan->tiles = 1;
}

static bool add_bytes(const sb_attention_plan *plan, size_t *bytes) {
    const sb_attention_work *work = plan->work;
    int64_t elements = 0;
    return (work->q.column == 1 || (!__builtin_mul_overflow(plan->rows, work->width, &elements) &&
                                    sb_attention_add_bytes(bytes, elements, sizeof(float)))) &&
           sb_attention_add_bytes(bytes, part_of(work->width), SB_ATTENTION_BLOCK * sizeof(float)) &&
           (in_place(plan) || sb_attention_add_bytes(bytes, plan->tile, SB_ATTENTION_BLOCK * sizeof(float)));
}

/* In the order of add_bytes. */
static space divide(const sb_attention_unit *unit) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    char *left = unit->products;
    space parts = {0};
    if (work->q.column != 1)
        parts.queries = sb_attention_take_part(&left, plan->rows * work->width, sizeof(float));
    parts.keys = sb_attention_take_part(&left, part_of(work->width), SB_ATTENTION_BLOCK * sizeof(float));
    if (!in_place(plan))
        parts.values = sb_attention_take_part(&left, plan->tile, SB_ATTENTION_BLOCK * sizeof(float));
    return parts;
}

static const float *query_of(const sb_attention_unit *unit, int64_t r) {
    const sb_attention_row *row = &unit->row[r];
    return (const float *)(const void *)sb_attention_element(&unit->plan->work->q, row->batch, row->head, row->query,
                                                             0);
}

static void take_queries(sb_attention_unit *unit) {
    const sb_attention_work *work = unit->plan->work;
    if (work->q.column == 1)
        return;
    space parts = divide(unit);
    for (int64_t r = 0; r < unit->count; r++)
        unit->plan->gemm->copy(1, work->width, query_of(unit, r), 0, work->q.column, parts.queries + r * work->width,
                               work->width);
}

/* ---- tiles ---- */

/* A product of some rows by `length` rows of b, each of whole panels: row r is at a[r] + offset, its sums at c[r]. */
typedef struct product {
    int64_t rows, offset, length;
    const float *a[SB_GEMM_ROWS_MAX];
    float *c[SB_GEMM_ROWS_MAX];
    const float *b;
    int64_t b_step, columns;
    bool continues;
} product;

static void multiply(const sb_gemm_kernels *gemm, const product *p) {
    sb_gemm_tile tile = {.a = p->a,
                         .a_offset = p->offset,
                         .runs = 1,
                         .length = p->length,
                         .b_step = p->b_step,
                         .b_panel_step = gemm->panel,
                         .c = p->c,
                         .continues = p->continues};
    int64_t wide = p->rows <= SB_GEMM_WIDE_ROWS ? gemm->wide_panels[p->rows - 1] * gemm->panel : INT64_MAX;
    for (int64_t column = 0; column < p->columns; column += tile.columns) {
        bool is_wide = p->columns - column >= wide;
        tile.columns = is_wide ? wide : gemm->panel;
        tile.b = p->b + column;
        tile.prefetch = (const char *)tile.b;
        tile.c_offset = column;
        (is_wide ? gemm->wide : gemm->tile)[p->rows - 1](&tile);
    }
}

/* How many of `rows` rows a tile takes, so that all take about as many. */
static int64_t share(const sb_gemm_kernels *gemm, int64_t rows) {
    int64_t tiles = (rows + gemm->rows - 1) / gemm->rows;
    return (rows + tiles - 1) / tiles;
}

/* ---- scores ---- */

/* Keys side by side: [width from `start` on][keys], and zeros behind the last. */
static void transpose(const sb_attention_unit *unit, int64_t block, int count, int64_t start, int64_t width,
                      float *to) {
    const sb_gemm_kernels *gemm = unit->plan->gemm;
    for (int64_t done = 0; done < count;) {
        const sb_attention_stretch from = sb_attention_keys_from(unit, false, block + done, block + count);
        const float *data = (const float *)(const void *)from.data + start * from.column;
        gemm->copy(width, from.count, data, from.column, from.row, to + done, SB_ATTENTION_BLOCK);
        done += from.count;
    }
    for (int64_t i = 0; i < width && count < SB_ATTENTION_BLOCK; i++)
        memset(to + i * SB_ATTENTION_BLOCK + count, 0, (size_t)(SB_ATTENTION_BLOCK - count) * sizeof *to);
}

static void score(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    const sb_gemm_kernels *gemm = plan->gemm;
    space parts = divide(unit);
    int64_t each = share(gemm, last - first);
    product p = {.b = parts.keys,
                 .b_step = SB_ATTENTION_BLOCK,
                 .columns = (count + gemm->panel - 1) / gemm->panel * gemm->panel};
    if (work->width == 0)
        memset(unit->scores + first * SB_ATTENTION_BLOCK, 0,
               (size_t)((last - first) * SB_ATTENTION_BLOCK) * sizeof *unit->scores);
    for (int64_t start = 0; start < work->width; start += WIDTH) {
        p.length = part_of(work->width - start);
        p.offset = start;
        p.continues = start > 0;
        transpose(unit, block, count, start, p.length, parts.keys);
        for (int64_t row = first; row < last; row += each) {
            p.rows = last - row < each ? last - row : each;
            for (int64_t r = 0; r < p.rows; r++) {
                p.a[r] = parts.queries != NULL ? parts.queries + (row + r) * work->width : query_of(unit, row + r);
                p.c[r] = unit->scores + (row + r) * SB_ATTENTION_BLOCK;
            }
            multiply(gemm, &p);
        }
    }
}

/* ---- values ---- */

/* Values of keys [start, end) of a block. */
typedef struct values {
    const float *data;
    int64_t step;
    int start, end;
} values;

/* Keys [from, to) for the rows of `p`. */
static void add_keys(const sb_gemm_kernels *gemm, const values *v, product *p, int from, int to) {
    if (from >= to)
        return;
    p->offset = from;
    p->length = to - from;
    p->b = v->data + (from - v->start) * v->step;
    p->b_step = v->step;
    multiply(gemm, p);
}

/* Keys [from, to) for one row, but for those whose weight is +0. */
static void add_row(const sb_attention_unit *unit, const values *v, int64_t row, int from, int to) {
    const sb_attention_plan *plan = unit->plan;
    product p = {.rows = 1, .columns = plan->tile, .continues = true};
    p.a[0] = unit->scores + row * SB_ATTENTION_BLOCK;
    p.c[0] = unit->sums + row * plan->tile;
    for (int key = from; key < to;) {
        int end = key;
        while (end < to && p.a[0][end] != 0)
            end++;
        add_keys(plan->gemm, v, &p, key, end);
        key = end + 1;
    }
}

static int most(int left, int right) {
    return left > right ? left : right;
}

static int least(int left, int right) {
    return left < right ? left : right;
}

/* Rows [first, last), of which there are no more than a tile takes. */
static void add_tile(const sb_attention_unit *unit, const values *v, int64_t first, int64_t last) {
    const sb_attention_plan *plan = unit->plan;
    product p = {.columns = plan->tile, .continues = true};
    int64_t member[SB_GEMM_ROWS_MAX];
    int from = v->start, to = v->end;
    for (int64_t r = first; r < last; r++) {
        const sb_attention_marks *marks = &unit->marks[r];
        int own_from = most(marks->first, v->start), own_to = least(marks->last, v->end);
        if (own_from >= own_to)
            continue;
        if (marks->gaps) {
            add_row(unit, v, r, own_from, own_to);
            continue;
        }
        from = most(from, own_from);
        to = least(to, own_to);
        p.a[p.rows] = unit->scores + r * SB_ATTENTION_BLOCK;
        p.c[p.rows] = unit->sums + r * plan->tile;
        member[p.rows++] = r;
    }
    if (p.rows == 0)
        return;
    to = most(from, to);
    for (int64_t i = 0; i < p.rows; i++)
        add_row(unit, v, member[i], most(unit->marks[member[i]].first, v->start),
                least(from, least(unit->marks[member[i]].last, v->end)));
    add_keys(plan->gemm, v, &p, from, to);
    for (int64_t i = 0; i < p.rows; i++)
        add_row(unit, v, member[i], most(to, most(unit->marks[member[i]].first, v->start)),
                least(unit->marks[member[i]].last, v->end));
}

static void add(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last) {
    const sb_attention_plan *plan = unit->plan;
    space parts = divide(unit);
    int64_t each = share(plan->gemm, last - first);
    for (int done = 0; done < count;) {
        const sb_attention_stretch from = sb_attention_keys_from(unit, true, block + done, block + count);
        values v = {(const float *)(const void *)from.data, from.row, done, done + (int)from.count};
        if (parts.values != NULL) {
            plan->gemm->copy(from.count, plan->work->value_width, v.data, from.row, from.column, parts.values,
                             plan->tile);
            for (int64_t r = 0, gap = plan->tile - plan->work->value_width; r < from.count && gap > 0; r++)
                memset(parts.values + r * plan->tile + plan->work->value_width, 0, (size_t)gap * sizeof(float));
            v.data = parts.values;
            v.step = plan->tile;
        }
        for (int64_t row = first; row < last; row += each)
            add_tile(unit, &v, row, row + each < last ? row + each : last);
        done = v.end;
    }
}

const sb_attention_products sb_attention_products_f32 = {cut, add_bytes, take_queries, score, add};
