/* The kernels of integer_product.h over the macros of an instruction set, included by its source. */
#include <string.h>

#include "cpu/contraction/integer_product.h"

#define TILE_ROWS 5
#define TILE_COLUMNS (VECTORS * LANES)
/* Chains that a repair computes side by side, as each waits four cycles for the step before. */
#define CHAINS 8
/* Rows of B that come nearer ahead: chains of a few rows read it faster than a processor sees by itself. */
#define AHEAD 24
#define EACH_UNROLLED _Pragma("GCC unroll 8")

/* ---- A's integers ---- */

/* The bits of SB_QUANTIZE_ROUNDING, above which the integers of a sum with it count. */
#define ROUNDING_BITS 0x4b400000

/* A vector of a row: n = a / scale is within less than a thousandth of an integer, so that a product with the reciprocal rounds
 * to it. */
static inline void convert_vector(const sb_integer_block *block, const float *a, floats *squares, uint8_t *to) {
    floats shifted = f_add(f_mul(f_load(a), f_set(block->a_reciprocal)), f_set(SB_QUANTIZE_ROUNDING));
    floats n = f_sub(shifted, f_set(SB_QUANTIZE_ROUNDING));
    *squares = f_fma(n, n, *squares);
    i_store_bytes(to, i_sub(i_from_bits(shifted), i_set(ROUNDING_BITS + block->a_least)));
}

static float sum_of(floats sums) {
    float parts[LANES], sum = 0;
    f_store(parts, sums);
    for (int j = 0; j < LANES; j++)
        sum += parts[j];
    return sum;
}

/* Elements side by side, of which a step other than 1 and a run's end make copies. */
static const float *side_by_side(const float *a, int64_t step, int64_t count, float *room) {
    if (step == 1 && count >= LANES)
        return a;
    for (int64_t j = 0; j < LANES; j++)
        room[j] = j < count ? a[j * step] : 0;
    return room;
}

static void convert_run(const sb_integer_block *block, const float *a, int64_t count, floats *squares, uint8_t *to) {
    float room[LANES];
    uint8_t last[LANES];
    for (int64_t l = 0; l < count; l += LANES) {
        int64_t left = count - l;
        convert_vector(block, side_by_side(a + l * block->a_step, block->a_step, left, room), squares,
                       left < LANES ? last : to + l);
        if (left < LANES)
            memcpy(to + l, last, (size_t)left);
    }
}

static void convert_row(const sb_integer_block *block, const float *const *taps, uint8_t *to, float *norms) {
    floats squares = f_set(0);
    int64_t place = 0;
    for (int64_t tap = 0; tap < block->taps; tap++) {
        for (int64_t l = 0, count; l < block->channels; l += count) {
            int64_t room = block->chunk - place % block->chunk;
            count = block->channels - l < room ? block->channels - l : room;
            convert_run(block, taps[tap] + l * block->a_step, count, &squares, to + place);
            place += count;
            if (place % block->chunk != 0 && place != block->k)
                continue;
            *norms++ = __builtin_sqrtf(sum_of(squares));
            squares = f_set(0);
        }
    }
    memset(to + block->k, 0, (size_t)(block->pitch - block->k));
}

static int64_t chunk_length(const sb_integer_block *block, int64_t chunk) {
    int64_t left = block->k - chunk * block->chunk;
    return left < block->chunk ? left : block->chunk;
}

static void convert(const sb_integer_block *block) {
    for (int64_t row = 0; row < block->rows; row++)
        convert_row(block, block->a + row * block->taps, block->integers + row * block->pitch,
                    block->row_norms + row * block->chunks);
}

/* ---- sums of integers ---- */

/* A tile: sums of integers, but for the starts, and what the sums at the ends of chunks add to a bound. */
typedef struct tile {
    int32_t sums[TILE_ROWS][TILE_COLUMNS];
    float paths[TILE_ROWS][TILE_COLUMNS];
} tile;

/* `rows` rows from `row` on by the columns of a panel. */
static inline __attribute__((always_inline)) void dot_rows(int rows, const sb_integer_block *block, int64_t row,
                                                           int64_t panel, tile *tile) {
    const int64_t pitch = block->pitch;
    const uint8_t *a = block->integers + row * pitch;
    const int8_t *b = block->panels + panel * pitch * TILE_COLUMNS;
    integers sums[TILE_ROWS][VECTORS];
    EACH_UNROLLED for (int r = 0; r < rows; r++) {
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = i_set(0);
            f_store(&tile->paths[r][v * LANES], f_set(0));
        }
    }
    for (int64_t c = 0; c < block->chunks; c++) {
        int64_t fours = (chunk_length(block, c) + 3) / 4;
        for (int64_t four = 0; four < fours; four++, a += 4, b += 4 * TILE_COLUMNS) {
            integers columns[VECTORS];
            EACH_UNROLLED for (int v = 0; v < VECTORS; v++) columns[v] = i_load(b + v * LANES * 4);
            EACH_UNROLLED for (int r = 0; r < rows; r++) {
                int32_t word;
                memcpy(&word, a + r * pitch, sizeof word);
                integers row_word = i_set(word);
                EACH_UNROLLED for (int v = 0; v < VECTORS; v++) sums[r][v] = i_dot(sums[r][v], row_word, columns[v]);
            }
        }
        if (c + 1 == block->chunks)
            break;
        const int32_t *starts = block->starts + c * block->columns + panel * TILE_COLUMNS;
        /* Half of this chunk and half of the next, each with the element in its middle. */
        const floats length = f_set((float)(chunk_length(block, c) + chunk_length(block, c + 1) + 2) / 2);
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) {
            const integers start = i_load(starts + v * LANES);
            EACH_UNROLLED for (int r = 0; r < rows; r++) {
                float *path = &tile->paths[r][v * LANES];
                f_store(path, f_fma(f_from_i(i_abs(i_add(sums[r][v], start))), length, f_load(path)));
            }
        }
    }
    EACH_UNROLLED for (int r = 0; r < rows; r++) {
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) i_store(&tile->sums[r][v * LANES], sums[r][v]);
    }
}

static void dot_tile(int rows, const sb_integer_block *block, int64_t row, int64_t panel, tile *tile) {
    switch (rows) {
    case 1:
        dot_rows(1, block, row, panel, tile);
        break;
    case 2:
        dot_rows(2, block, row, panel, tile);
        break;
    case 3:
        dot_rows(3, block, row, panel, tile);
        break;
    case 4:
        dot_rows(4, block, row, panel, tile);
        break;
    default:
        dot_rows(TILE_ROWS, block, row, panel, tile);
    }
}

/* ---- from sums to results ---- */

/* What is wrong by less than the range's ends are from a half is not looked at more closely there. */
#define BEYOND 0.25f

/* Results of vector `v` of a tile's row, to `y`; false: one of them is not certain. */
static bool settle(const sb_integer_block *block, const tile *tile, int r, int v, int64_t row, int64_t column,
                   float *y) {
    const sb_quantize_trip *trip = block->trip;
    const int64_t chunks = block->chunks, columns = block->columns;
    const floats factor = f_load(block->factors + column);
    integers sum = i_add(i_load(&tile->sums[r][v * LANES]), i_load(block->starts + (chunks - 1) * columns + column));
    const floats offset = f_load(block->offsets + column);
    floats quotient = f_fma(f_from_i(sum), factor, offset);
    quotient = f_min(f_max(quotient, f_set(trip->least - BEYOND)), f_set(trip->most + BEYOND));
    floats shifted = f_add(quotient, f_set(SB_QUANTIZE_ROUNDING));
    floats distance = f_abs(f_sub(quotient, f_sub(shifted, f_set(SB_QUANTIZE_ROUNDING))));
    const floats half = f_set((float)(chunk_length(block, chunks - 1) + 1) / 2);
    floats path = f_fma(f_from_i(i_abs(sum)), half, f_load(&tile->paths[r][v * LANES]));
    for (int64_t c = 0; c < chunks; c++)
        path =
            f_fma(f_set(block->row_norms[(row + r) * chunks + c]), f_load(block->norms + c * columns + column), path);
    /* Half a step less what roundings may be: of the chain, and of the quotient here and there. */
    floats room = f_sub(f_set(0.5f), f_mul(f_mul(path, f_set(1.02f * 0x1p-24f)), factor));
    room = f_sub(room, f_mul(f_add(f_abs(quotient), f_abs(offset)), f_set(0x1p-21f)));
    f_store(y, f_mul(f_sub(shifted, f_set(trip->rounded)), f_set(trip->factor)));
    return !f_any_not_above(room, distance);
}

static floats trip_of(const sb_quantize_trip *trip, floats x) {
    floats quotient = f_div(x, f_set(trip->scale));
    quotient = f_max(f_min(quotient, f_set(trip->most)), f_set(trip->least));
    quotient = f_sub(f_add(quotient, f_set(SB_QUANTIZE_ROUNDING)), f_set(trip->rounded));
    return f_mul(quotient, f_set(trip->factor));
}

/* How many columns of a vector there are. */
static int64_t columns_from(const sb_integer_block *block, int64_t column) {
    int64_t left = block->n - column;
    return left < LANES ? left : LANES;
}

static void store(const sb_integer_block *block, int64_t row, int64_t column, const float *values) {
    float *y = block->y + row * block->y_row_stride + column;
    int64_t count = columns_from(block, column);
    if (count == LANES)
        f_store(y, f_load(values));
    else if (count > 0)
        memcpy(y, values, (size_t)count * sizeof *y);
}

/* A column of vectors of which some are not certain: those of `count` rows, by their chains, CHAINS at a time. */
static void repair(const sb_integer_block *block, int64_t column, const uint32_t *rows, int64_t count) {
    const int64_t step = block->a_step, width = block->packed_panel, within = column % width;
    const float *b = block->packed + (column - within) * block->k + within, *a[CHAINS];
    floats sums[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        sums[c] = f_set(0);
    for (int64_t tap = 0; tap < block->taps; tap++) {
        for (int c = 0; c < CHAINS; c++)
            a[c] = block->a[rows[c < count ? c : count - 1] * block->taps + tap];
        for (int64_t l = 0; l < block->channels; l++, b += width) {
            const floats columns = f_load(b);
            __builtin_prefetch(b + AHEAD * width);
            EACH_UNROLLED for (int c = 0; c < CHAINS; c++) sums[c] = f_fma(f_set(a[c][l * step]), columns, sums[c]);
        }
    }
    for (int c = 0; c < CHAINS && c < count; c++) {
        float values[LANES];
        f_store(values, trip_of(block->trip, f_add(sums[c], f_load(block->biases + column))));
        store(block, rows[c], column, values);
    }
}

/* Rows whose vector is not certain, of each column of vectors in a panel. */
typedef struct repairs {
    int64_t counts[VECTORS];
    uint32_t rows[VECTORS][SB_INTEGER_ROWS];
} repairs;

static void settle_tile(const sb_integer_block *block, int64_t row, int rows, int64_t panel, const tile *tile,
                        repairs *repairs) {
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            float values[LANES];
            int64_t column = panel * TILE_COLUMNS + v * LANES;
            if (column >= block->n)
                break;
            if (settle(block, tile, r, v, row, column, values))
                store(block, row + r, column, values);
            else
                repairs->rows[v][repairs->counts[v]++] = (uint32_t)(row + r);
        }
    }
}

static void compute_panel(const sb_integer_block *block, int64_t panel) {
    tile tile;
    repairs repairs;
    memset(repairs.counts, 0, sizeof repairs.counts);
    for (int64_t row = 0; row < block->rows; row += TILE_ROWS) {
        int rows = block->rows - row < TILE_ROWS ? (int)(block->rows - row) : TILE_ROWS;
        dot_tile(rows, block, row, panel, &tile);
        settle_tile(block, row, rows, panel, &tile, &repairs);
    }
    for (int v = 0; v < VECTORS; v++) {
        for (int64_t done = 0; done < repairs.counts[v]; done += CHAINS)
            repair(block, panel * TILE_COLUMNS + v * LANES, repairs.rows[v] + done, repairs.counts[v] - done);
    }
}

static void compute(const sb_integer_block *block) {
    for (int64_t panel = block->first_panel; panel < block->last_panel; panel++)
        compute_panel(block, panel);
}
