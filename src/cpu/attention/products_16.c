/* Attention's products of f16 and bf16, by the kernels of the 16-bit chain (cpu/contraction/chain16_kernels.h): columns are
 * keys in the first, and columns of values in the second, 16 of whose keys are a group.
 *
 * A weight of +0 takes no part. Beside a finite value the chain leaves it out by itself, and a group of nothing else is not
 * computed; where a value may be an infinity or a NaN, rows with such weights get the group's values with zeros in those
 * places. */
#include <string.h>

#include "cpu/attention/unit.h"

enum { GROUP = SB_CHAIN16_GROUP, PANEL = SB_CHAIN16_PANEL, BLOCK_GROUPS = SB_ATTENTION_BLOCK / GROUP };

/* Elements of a key's width at a time. */
#define WIDTH 512

typedef struct space {
    sb_chain16_a *queries; /* [groups][rows] */
    sb_chain16_a *weights; /* [groups of a block][rows] */
    sb_chain16_b *tile;
    uint16_t *panel; /* of keys: part of the width; of values: a block and a group, of which packing may fill a part */
    uint16_t *elements; /* of a query or key, with zeros up to whole groups */
    uint16_t *gathered; /* keys of a panel [PANEL][part of the width], where they do not lie so */
    float *acc;         /* [tiles of a panel][rows][columns] */
} space;

static int64_t groups_of(int64_t width) {
    return width / GROUP + (width % GROUP != 0);
}

static int64_t part_of(int64_t width) {
    return width < WIDTH ? groups_of(width) * GROUP : WIDTH;
}

static int64_t panel_rows(const sb_attention_work *work) {
    int64_t keys = part_of(work->width), values = SB_ATTENTION_BLOCK + GROUP;
    return keys > values ? keys : values;
}

static void cut(sb_attention_plan *plan) {
    plan->tile = plan->chain16->columns;
    plan->tiles = (plan->work->value_width + plan->tile - 1) / plan->tile;
}

static bool add_bytes(const sb_attention_plan *plan, size_t *bytes) {
    const sb_attention_work *work = plan->work;
    int64_t records;
    return !__builtin_mul_overflow(plan->rows, groups_of(work->width), &records) &&
           sb_attention_add_bytes(bytes, records, sizeof(sb_chain16_a)) &&
           sb_attention_add_bytes(bytes, plan->rows * BLOCK_GROUPS, sizeof(sb_chain16_a)) &&
           sb_attention_add_bytes(bytes, 1, sizeof(sb_chain16_b)) &&
           sb_attention_add_bytes(bytes, panel_rows(work), PANEL * sizeof(uint16_t)) &&
           sb_attention_add_bytes(bytes, groups_of(work->width), GROUP * sizeof(uint16_t)) &&
           sb_attention_add_bytes(bytes, part_of(work->width), PANEL * sizeof(uint16_t)) &&
           sb_attention_add_bytes(bytes, plan->rows, PANEL * sizeof(float));
}

/* In the order of add_bytes. */
static space divide(const sb_attention_unit *unit) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    char *left = unit->products;
    space parts;
    parts.queries = sb_attention_take_part(&left, plan->rows * groups_of(work->width), sizeof(sb_chain16_a));
    parts.weights = sb_attention_take_part(&left, plan->rows * BLOCK_GROUPS, sizeof(sb_chain16_a));
    parts.tile = sb_attention_take_part(&left, 1, sizeof(sb_chain16_b));
    parts.panel = sb_attention_take_part(&left, panel_rows(work), PANEL * sizeof(uint16_t));
    parts.elements = sb_attention_take_part(&left, groups_of(work->width), GROUP * sizeof(uint16_t));
    parts.gathered = sb_attention_take_part(&left, part_of(work->width), PANEL * sizeof(uint16_t));
    parts.acc = sb_attention_take_part(&left, plan->rows, PANEL * sizeof(float));
    return parts;
}

static void gather(int64_t count, const uint16_t *from, int64_t step, uint16_t *to) {
    if (step == 1) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i * step];
}

static void take_queries(sb_attention_unit *unit) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    space parts = divide(unit);
    int64_t groups = groups_of(work->width);
    memset(parts.elements, 0, (size_t)(groups * GROUP) * sizeof *parts.elements);
    for (int64_t r = 0; r < unit->count; r++) {
        const sb_attention_row *row = &unit->row[r];
        gather(work->width,
               (const uint16_t *)(const void *)sb_attention_element(&work->q, row->batch, row->head, row->query, 0),
               work->q.column, parts.elements);
        plan->chain16->expand_a(work->dtype, parts.elements, groups, parts.queries + r, plan->rows);
    }
}

/* ---- scores ---- */

/* Packs the widths [start, start + width) of keys key … key + count - 1, a panel. */
static void pack_keys(const sb_attention_unit *unit, const space *parts, int64_t key, int count, int64_t start,
                      int64_t width) {
    const uint16_t *columns[PANEL];
    for (int done = 0; done < count;) {
        const sb_attention_stretch from = sb_attention_keys_from(unit, false, key + done, key + count);
        const uint16_t *data = (const uint16_t *)(const void *)from.data + start * from.column;
        for (int64_t j = 0; j < from.count; j++, done++, data += from.row) {
            columns[done] = data;
            if (from.column == 1)
                continue;
            columns[done] = parts->gathered + done * width;
            gather(width, data, from.column, parts->gathered + done * width);
        }
    }
    sb_chain16_pack_columns(width, count, columns, parts->panel);
}

/* The scores of one panel of keys. */
static void score_panel(sb_attention_unit *unit, const space *parts, int64_t key, int count, int64_t first,
                        int64_t last, float *scores) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    const sb_chain16_kernels *kernels = plan->chain16;
    const int columns = kernels->columns;
    const int64_t rows = last - first;
    memset(parts->acc, 0, (size_t)(rows * PANEL) * sizeof *parts->acc);
    for (int64_t start = 0; start < work->width; start += WIDTH) {
        int64_t left = work->width - start, width = left < WIDTH ? left : WIDTH;
        pack_keys(unit, parts, key, count, start, width);
        float *acc = parts->acc;
        for (int column = 0; column < count; column += columns, acc += rows * columns) {
            const uint16_t *panel = parts->panel + column;
            const sb_chain16_a *records = parts->queries + start / GROUP * plan->rows + first;
            int valid = count - column < columns ? count - column : columns;
            for (int64_t group = 0; group < groups_of(width); group++) {
                kernels->expand_b(work->dtype, panel + group * GROUP * PANEL, valid, parts->tile);
                kernels->step(work->dtype, records + group * plan->rows, rows, parts->tile, acc);
            }
        }
    }
    const float *acc = parts->acc;
    for (int column = 0; column < count; column += columns) {
        for (int64_t r = 0; r < rows; r++, acc += columns)
            memcpy(scores + r * SB_ATTENTION_BLOCK + column, acc, (size_t)columns * sizeof *acc);
    }
}

static void score(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last) {
    const space parts = divide(unit);
    for (int key = 0; key < count; key += PANEL) {
        int keys = count - key < PANEL ? count - key : PANEL;
        score_panel(unit, &parts, block + key, keys, first, last, unit->scores + first * SB_ATTENTION_BLOCK + key);
    }
}

/* ---- values ---- */

/* Packs columns [column, column + count) of the values of a block's keys. */
static void pack_values(const sb_attention_unit *unit, int64_t block, int keys, int64_t column, int count,
                        uint16_t *panel) {
    for (int done = 0; done < keys;) {
        const sb_attention_stretch from = sb_attention_keys_from(unit, true, block + done, block + keys);
        const uint16_t *data = (const uint16_t *)(const void *)from.data + column * from.column;
        sb_chain16_pack_b(from.count, count, data, from.row, from.column, 0, count, panel + done * PANEL);
        done += (int)from.count;
    }
    int missing = (GROUP - keys % GROUP) % GROUP;
    memset(panel + keys * PANEL, 0, (size_t)(missing * PANEL) * sizeof *panel);
}

static bool is_empty(const sb_chain16_a *weights) {
    return weights->top == SB_CHAIN16_TOP_ZERO;
}

/* One row of a group among whose values there may be an infinity or a NaN. */
static void add_carefully(const sb_attention_plan *plan, const uint16_t *panel, int valid, const sb_chain16_a *weights,
                          float *sums) {
    uint16_t values[GROUP * PANEL];
    sb_chain16_b tile;
    for (int k = 0; k < GROUP; k++) {
        memset(values + k * PANEL, 0, PANEL * sizeof *values);
        if (weights->raw[k] != 0)
            memcpy(values + k * PANEL, panel + k * PANEL, (size_t)plan->chain16->columns * sizeof *values);
    }
    plan->chain16->expand_b(plan->work->dtype, values, valid, &tile);
    plan->chain16->step(plan->work->dtype, weights, 1, &tile, sums);
}

/* A group of keys for `rows` rows. */
static void add_group(const sb_attention_plan *plan, const space *parts, const uint16_t *panel, int valid, int64_t rows,
                      const sb_chain16_a *weights, float *sums) {
    const sb_chain16_kernels *kernels = plan->chain16;
    const sb_dtype dtype = plan->work->dtype;
    const int columns = kernels->columns;
    bool expanded = false;
    for (int64_t row = 0; row < rows;) {
        int64_t end = row;
        while (end < rows && !is_empty(&weights[end]))
            end++;
        if (end > row && !expanded)
            kernels->expand_b(dtype, panel, valid, parts->tile);
        expanded = expanded || end > row;
        if (end > row && !parts->tile->exceptional)
            kernels->step(dtype, weights + row, end - row, parts->tile, sums + row * columns);
        for (int64_t r = row; r < end && parts->tile->exceptional; r++)
            add_carefully(plan, panel, valid, weights + r, sums + r * columns);
        row = end + 1;
    }
}

static void add(sb_attention_unit *unit, int64_t block, int count, int64_t first, int64_t last) {
    const sb_attention_plan *plan = unit->plan;
    const sb_attention_work *work = plan->work;
    const space parts = divide(unit);
    const int groups = (count + GROUP - 1) / GROUP, columns = plan->chain16->columns;
    for (int64_t r = first; r < last; r++)
        plan->chain16->expand_a(work->dtype, unit->stored + r * SB_ATTENTION_BLOCK, groups, parts.weights + r,
                                plan->rows);
    for (int64_t column = 0; column < work->value_width; column += PANEL) {
        int64_t left = work->value_width - column;
        int panel_columns = left < PANEL ? (int)left : PANEL;
        pack_values(unit, block, count, column, panel_columns, parts.panel);
        for (int tile = 0; tile < panel_columns; tile += columns) {
            int valid = panel_columns - tile < columns ? panel_columns - tile : columns;
            float *sums = unit->sums + ((column + tile) / columns * plan->rows + first) * columns;
            for (int group = 0; group < groups; group++)
                add_group(plan, &parts, parts.panel + group * GROUP * PANEL + tile, valid, last - first,
                          parts.weights + group * plan->rows + first, sums);
        }
    }
}

const sb_attention_products sb_attention_products_16 = {cut, add_bytes, take_queries, score, add};
