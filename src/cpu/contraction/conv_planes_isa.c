/* Convolution of few input channels to few output channels, compiled once per instruction set: lanes are pixels of one
 * output row, where a column for each lane would leave most lanes empty.
 *
 * What a tile reads of an input row is first copied, a plane for each channel and each remainder of positions by the
 * stride, with zeros for what is outside; pixels that follow each other then read values that do. Chains go over kernel
 * positions and channels in their order, as everywhere. */
#include "base/isa.h"
#include "cpu/contraction/gemm_epilogue.h"
#include "cpu/contraction/gemm_kernels.h"
#include "cpu/simd.h"

#define UNROLL SB_UNROLL
/* Accumulators of a tile: enough chains to hide how long a multiply-add takes. */
#define ACCUMULATORS 8
/* Floats of a tile's planes: half a first-level cache. */
#define PLANE_FLOATS 4096

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* Values that one plane of a tile of `pixels` has. */
static int64_t plane_length(const sb_conv_line *line, int64_t pixels) {
    return (line->width - 1) * line->dilation / line->stride + pixels;
}

/* plane[i] = from[i * step] for i below count. */
static void copy_values(const float *from, int64_t step, int64_t count, float *plane) {
    switch (step) {
    case 1:
        memcpy(plane, from, (size_t)count * sizeof *plane);
        break;
    case 2:
        for (int64_t i = 0; i < count; i++)
            plane[i] = from[i * 2];
        break;
    case 3:
        for (int64_t i = 0; i < count; i++)
            plane[i] = from[i * 3];
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            plane[i] = from[i * step];
        break;
    }
}

/* The planes of input row `row` for a tile from `pixel` on: channel c's positions with remainder f are plane c stride + f. */
static void copy_planes(const sb_conv_line *line, int64_t row, int64_t pixel, int64_t length, float *planes) {
    const bool outside = line->x[row] == line->zero;
    for (int64_t c = 0; c < line->channels; c++) {
        for (int64_t f = 0; f < line->stride; f++, planes += length) {
            /* Value i is of column start + i stride. */
            const int64_t start = line->start + pixel * line->stride + f;
            const int64_t before = start >= 0 ? 0 : (line->stride - 1 - start) / line->stride;
            const int64_t begin = outside ? length : minimum(before, length);
            const int64_t room = line->columns - start;
            const int64_t end = outside ? length : clamp(room <= 0 ? 0 : (room - 1) / line->stride + 1, begin, length);
            for (int64_t i = 0; i < begin; i++)
                planes[i] = 0.0f;
            if (begin < end)
                copy_values(line->x[row] + c * line->channel_step + (start + begin * line->stride) * line->step,
                            line->stride * line->step, end - begin, planes + begin);
            for (int64_t i = end; i < length; i++)
                planes[i] = 0.0f;
        }
    }
}

/* A step on one column, whose elements lanes are. */
SB_VF_INLINE sb_epilogue_step step_of_column(const sb_epilogue_step *step, int64_t n) {
    sb_epilogue_step own = *step;
    if (step->kind == SB_EPILOGUE_ADD_COLUMNS || step->kind == SB_EPILOGUE_MUL_COLUMNS) {
        own.kind = step->kind == SB_EPILOGUE_ADD_COLUMNS ? SB_EPILOGUE_ADD_SCALAR : SB_EPILOGUE_MUL_SCALAR;
        own.scalar = step->vector[n];
    }
    return own;
}

/* Stores `count` pixels from `pixel` on. */
SB_VF_INLINE void store(const sb_conv_line *line, int64_t pixel, int64_t count, vf *acc, const int columns,
                        const int vectors) {
    const sb_epilogue_block block = {0};
    float results[ACCUMULATORS * SB_VF_LANES];
    const int64_t pixels = (int64_t)vectors * SB_VF_LANES;
    for (int s = 0; s < line->steps; s++) {
        UNROLL for (int j = 0; j < columns; j++) {
            const sb_epilogue_step step = step_of_column(line->epilogue + s, line->n0 + j);
            sb_epilogue_apply(&step, &block, acc + j * vectors, vectors, 1, vectors, true);
        }
    }
    UNROLL for (int i = 0; i < columns * vectors; i++) vf_store(results + i * SB_VF_LANES, acc[i]);
    float *const *y = line->y + pixel;
    if (columns == 1 && (count == 1 || y[1] == y[0] + 1)) {
        memcpy(y[0], results, (size_t)count * sizeof *results);
        return;
    }
    for (int64_t p = 0; p < count; p++) {
        UNROLL for (int j = 0; j < columns; j++) y[p][j] = results[j * pixels + p];
    }
}

/* `columns` and `vectors` are constants, so that the accumulators stay in registers. */
SB_VF_INLINE void compute_tiles(const sb_conv_line *line, const int columns, const int vectors) {
    const int64_t pixels = (int64_t)vectors * SB_VF_LANES, panel = line->panel, length = plane_length(line, pixels);
    float planes[PLANE_FLOATS];
    for (int64_t pixel = 0; pixel < line->pixels; pixel += pixels) {
        vf acc[ACCUMULATORS];
        UNROLL for (int i = 0; i < columns * vectors; i++) acc[i] = vf_zero();
        const float *w = line->w + line->panel_offset;
        for (int64_t row = 0; row < line->rows; row++) {
            copy_planes(line, row, pixel, length, planes);
            for (int64_t tap = 0; tap < line->width; tap++) {
                const int64_t at = tap * line->dilation;
                const float *from = planes + at % line->stride * length + at / line->stride;
                for (int64_t c = 0; c < line->channels; c++, w += panel, from += line->stride * length) {
                    vf value[ACCUMULATORS];
                    UNROLL for (int v = 0; v < vectors; v++) value[v] = vf_load(from + v * SB_VF_LANES);
                    UNROLL for (int j = 0; j < columns; j++) {
                        const vf weight = vf_set(w[j]);
                        UNROLL for (int v = 0; v < vectors; v++) acc[j * vectors + v] =
                            vf_fma(value[v], weight, acc[j * vectors + v]);
                    }
                }
            }
        }
        store(line, pixel, minimum(pixels, line->pixels - pixel), acc, columns, vectors);
    }
}

bool SB_ISA_NAME(sb_conv_f32_planes)(const sb_conv_line *line) {
    const int64_t columns = line->n1 - line->n0;
    const int64_t most = ACCUMULATORS * SB_VF_LANES;
    int64_t floats;
    if (columns > SB_CONV_PLANE_COLUMNS || line->panel_offset + columns > line->panel ||
        __builtin_mul_overflow(plane_length(line, most), line->stride * line->channels, &floats) ||
        floats > PLANE_FLOATS)
        return false;
    for (int s = 0; s < line->steps; s++) {
        const sb_epilogue_kind kind = line->epilogue[s].kind;
        if (kind == SB_EPILOGUE_SCALE_SHIFT_COLUMNS || kind == SB_EPILOGUE_ADD_ROWS || sb_epilogue_has_matrix(kind))
            return false;
    }
    switch (columns) {
    case 1:
        compute_tiles(line, 1, ACCUMULATORS);
        break;
    case 2:
        compute_tiles(line, 2, ACCUMULATORS / 2);
        break;
    case 3:
        compute_tiles(line, 3, ACCUMULATORS / 4);
        break;
    default:
        compute_tiles(line, 4, ACCUMULATORS / 4);
        break;
    }
    return true;
}
