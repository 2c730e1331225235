/* Updates of ScatterElements, run by run. Indices and updates are read where they lie. An index that is repeated along the last
 * axis, as exporters expand those of index_add and scatter_reduce, is looked at once, and its run is one row. */
#include "cpu/moving/scatter_runs.h"

#include "cpu/moving/combine_row.h"
#include "cpu/moving/indices.h"
#include "ops/moving.h"

/* Strides in elements, of indices, updates and output. */
typedef struct runs {
    sb_scatter_how how;
    sb_combine_row *combine;
    int rank, axis; /* dimensions, of which some were joined */
    int64_t dims[SB_MAX_RANK], picks[SB_MAX_RANK], updates[SB_MAX_RANK], output[SB_MAX_RANK];
    int64_t extent; /* of the output's axis */
    size_t size;    /* bytes of an element */
    sb_dtype dtype;
    sb_dtype index;
    int64_t astray;
} runs;

/* Joins the last dimension to the one before where both are gone through as one by all three. */
static bool join_last(runs *work) {
    int last = work->rank - 1, before = last - 1;
    if (before < 0 || work->axis >= before || work->picks[before] != work->picks[last] * work->dims[last] ||
        work->updates[before] != work->updates[last] * work->dims[last] ||
        work->output[before] != work->output[last] * work->dims[last])
        return false;
    work->picks[before] = work->picks[last];
    work->updates[before] = work->updates[last];
    work->output[before] = work->output[last];
    work->dims[before] *= work->dims[last];
    work->rank--;
    return true;
}

static inline int64_t index_at(const runs *work, const char *picks, int64_t at) {
    return work->index == SB_S64 ? ((const int64_t *)(const void *)picks)[at]
                                 : ((const int32_t *)(const void *)picks)[at];
}

/* One index for the whole run, whose updates and places lie side by side. */
static bool place_row(runs *work, const char *picks, const char *from, char *to) {
    int64_t position, index = index_at(work, picks, 0), count = work->dims[work->rank - 1];
    if (!sb_index_place(index, work->extent, &position)) {
        work->astray = index;
        return false;
    }
    to += position * work->output[work->axis] * (int64_t)work->size;
    if (work->how == SB_SCATTER_SET)
        memcpy(to, from, (size_t)count * work->size);
    else
        work->combine(work->how, work->dtype, count, to, from);
    return true;
}

/* An index for each element. `size`, `how` and `dtype`, which matters to what is combined, are constants. */
static inline bool place_each(runs *work, const char *picks, const char *from, char *to, size_t size,
                              sb_scatter_how how, sb_dtype dtype) {
    const int last = work->rank - 1;
    const int64_t step = work->axis == last ? 0 : work->output[last], along = work->output[work->axis];
    for (int64_t i = 0; i < work->dims[last]; i++) {
        int64_t position, index = index_at(work, picks, i * work->picks[last]);
        if (!sb_index_place(index, work->extent, &position)) {
            work->astray = index;
            return false;
        }
        char *place = to + (position * along + i * step) * (int64_t)size;
        const char *update = from + i * work->updates[last] * (int64_t)size;
        if (how == SB_SCATTER_SET)
            memcpy(place, update, size);
        else
            sb_scatter_combine(how, dtype, place, update);
    }
    return true;
}

/* Elements that are gathered at once. */
#define GATHERED 256

/* An index for each element of 16 bits, along a dimension that is not the axis, so that places differ: what is there and the updates are
 * gathered and combined as rows, whose conversions are vectors. One by one an element took 5 ns. */
static bool place_gathered(runs *work, const char *picks, const char *from, char *to) {
    const int last = work->rank - 1;
    const int64_t along = work->output[work->axis], step = work->output[last], next = work->updates[last];
    const uint16_t *updates = (const uint16_t *)(const void *)from;
    uint16_t *output = (uint16_t *)(void *)to, old[GATHERED], update[GATHERED];
    int64_t places[GATHERED];
    for (int64_t first = 0; first < work->dims[last]; first += GATHERED) {
        const int64_t left = work->dims[last] - first, count = left < GATHERED ? left : GATHERED;
        for (int64_t i = 0; i < count; i++) {
            int64_t position, index = index_at(work, picks, (first + i) * work->picks[last]);
            if (!sb_index_place(index, work->extent, &position)) {
                work->astray = index;
                return false;
            }
            places[i] = position * along + (first + i) * step;
            old[i] = output[places[i]];
            update[i] = updates[(first + i) * next];
        }
        work->combine(work->how, work->dtype, count, old, update);
        for (int64_t i = 0; i < count; i++)
            output[places[i]] = old[i];
    }
    return true;
}

static inline bool combine_each(runs *work, const char *picks, const char *from, char *to, sb_scatter_how how) {
    if (work->dtype != SB_F32 && work->axis != work->rank - 1)
        return place_gathered(work, picks, from, to);
    switch (work->dtype) {
    case SB_F16:
        return place_each(work, picks, from, to, 2, how, SB_F16);
    case SB_BF16:
        return place_each(work, picks, from, to, 2, how, SB_BF16);
    default:
        return place_each(work, picks, from, to, sizeof(float), how, SB_F32);
    }
}

static bool set_each(runs *work, const char *picks, const char *from, char *to) {
    switch (work->size) {
    case 1:
        return place_each(work, picks, from, to, 1, SB_SCATTER_SET, SB_U8);
    case 2:
        return place_each(work, picks, from, to, 2, SB_SCATTER_SET, SB_U8);
    case 4:
        return place_each(work, picks, from, to, 4, SB_SCATTER_SET, SB_U8);
    case 8:
        return place_each(work, picks, from, to, 8, SB_SCATTER_SET, SB_U8);
    default:
        return place_each(work, picks, from, to, work->size, SB_SCATTER_SET, SB_U8);
    }
}

static bool place_run(runs *work, const char *picks, const char *from, char *to) {
    switch (work->how) {
    case SB_SCATTER_ADD:
        return combine_each(work, picks, from, to, SB_SCATTER_ADD);
    case SB_SCATTER_MUL:
        return combine_each(work, picks, from, to, SB_SCATTER_MUL);
    case SB_SCATTER_MAX:
        return combine_each(work, picks, from, to, SB_SCATTER_MAX);
    case SB_SCATTER_MIN:
        return combine_each(work, picks, from, to, SB_SCATTER_MIN);
    default:
        return set_each(work, picks, from, to);
    }
}

static runs describe(sb_scatter_how how, int axis, const sb_tensor *picks, const sb_tensor *updates,
                     const sb_tensor *output, sb_isa isa) {
    runs work = {.how = how,
                 .combine = sb_combine_row_for(isa),
                 .rank = picks->rank,
                 .axis = axis,
                 .extent = output->dims[axis],
                 .size = sb_dtype_size(output->dtype),
                 .dtype = output->dtype,
                 .index = picks->dtype};
    for (int d = 0; d < picks->rank; d++) {
        work.dims[d] = picks->dims[d];
        work.picks[d] = picks->strides[d];
        work.updates[d] = updates->strides[d];
        work.output[d] = output->strides[d];
    }
    while (join_last(&work))
        continue;
    return work;
}

bool sb_scatter_runs(sb_scatter_how how, int axis, const sb_tensor *picks, const sb_tensor *updates, sb_tensor *output,
                     sb_isa isa, int64_t *astray) {
    runs work = describe(how, axis, picks, updates, output, isa);
    const int last = work.rank - 1;
    const int64_t size = (int64_t)work.size, index_size = (int64_t)sb_dtype_size(picks->dtype);
    bool rows = work.axis != last && work.picks[last] == 0 && work.updates[last] == 1 && work.output[last] == 1;
    int64_t at[SB_MAX_RANK] = {0};
    do {
        int64_t pick = 0, update = 0, place = 0;
        for (int d = 0; d < last; d++) {
            pick += at[d] * work.picks[d];
            update += at[d] * work.updates[d];
            place += d == work.axis ? 0 : at[d] * work.output[d];
        }
        const char *index = picks->data + pick * index_size, *from = updates->data + update * size;
        char *to = output->data + place * size;
        if (!(rows ? place_row(&work, index, from, to) : place_run(&work, index, from, to))) {
            *astray = work.astray;
            return false;
        }
    } while (last > 0 && sb_move_next(last, work.dims, at));
    return true;
}
