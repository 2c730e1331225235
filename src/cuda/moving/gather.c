/* Elements picked and placed by index: the gathers, the scatters and OneHot. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/moving/gather_parameters.h"
#include "numerics/convert.h"
#include "ops/gather.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/scatter.h"
#include "ops/selection.h"

/* The largest word, of at most 16 bytes, that blocks of `bytes` bytes at these addresses consist of. */
static int64_t word_bytes(int64_t bytes, const void *first, const void *second) {
    int64_t word = 16;
    while (word > 1 && (((uintptr_t)bytes | (uintptr_t)first | (uintptr_t)second) & (word - 1)) != 0)
        word /= 2;
    return word;
}

static const char *word_suffix(int64_t word) {
    return word == 16 ? "128" : word == 8 ? "64" : word == 4 ? "32" : word == 2 ? "16" : "8";
}

/* What the gathers begin with: the output and packed inputs, which `give_back` releases. */
typedef struct picking {
    sb_tensor *data, *picks, *output;
} picking;

static void give_back(picking *picking) {
    sb_tensor_release(picking->data);
    sb_tensor_release(picking->picks);
}

static sb_status pick_up(sb_call *call, bool packed_data, picking *picking) {
    *picking = (struct picking){0};
    SB_TRY(sb_call_output(call, 0, &picking->output));
    sb_status status = SB_OK;
    if (packed_data)
        status = sb_call_contiguous(call, 0, &picking->data);
    else
        picking->data = sb_tensor_retain(sb_call_input(call, 0));
    if (status == SB_OK)
        status = sb_call_contiguous(call, 1, &picking->picks);
    if (status != SB_OK)
        give_back(picking);
    return status;
}

static void name_ranges(sb_cuda_work *work, const picking *picking) {
    sb_cuda_work_writes(work, picking->output);
    sb_cuda_work_reads(work, picking->data);
    sb_cuda_work_reads(work, picking->picks);
}

/* ---- gathers ---- */

/* Adds a dimension of the output behind those in `p`, as one with the last of them where both are
 * plain and lie behind each other. */
static void add_dimension(sb_cuda_gather_elements *p, int64_t dim, int64_t step, bool is_axis) {
    int last = p->rank - 1;
    if (dim == 1 && !is_axis)
        return;
    if (last >= 0 && last != p->axis && !is_axis && p->steps[last] == step * dim) {
        p->dims[last] *= dim;
        p->steps[last] = step;
        return;
    }
    if (is_axis)
        p->axis = p->rank;
    p->dims[p->rank] = dim;
    p->steps[p->rank++] = step;
}

/* Makes words of the elements that lie together: their bytes. */
static int64_t widen(sb_cuda_gather_elements *p, int64_t size) {
    int last = p->rank - 1;
    if (last == p->axis || p->steps[last] != size)
        return size;
    int64_t bits = p->dims[last] * size;
    for (int d = 0; d < last; d++)
        bits |= p->steps[d];
    int64_t word = word_bytes(bits, p->in, p->out);
    p->dims[last] = p->dims[last] * size / word;
    p->steps[last] = word;
    p->elements = p->elements * size / word;
    return word;
}

/* Lets the kernel end at the used extents of the data's axis and of the indices. */
static void bound(const sb_call *call, int axis, sb_cuda_work *work, sb_cuda_gather_elements *parameters) {
    const sb_tensor *picks = sb_call_input(call, 1);
    sb_cuda_used_axes *axes = &parameters->used;
    parameters->used_extent = sb_cuda_work_used(work, call, 0, axis);
    for (int d = 0; d < picks->rank; d++) {
        const int64_t *used = sb_cuda_work_used(work, call, 1, d);
        if (used == NULL || sb_tensor_elements(picks) == 0)
            continue;
        axes->used[axes->count] = used;
        axes->extents[axes->count] = picks->dims[d];
        axes->inner[axes->count++] = sb_move_product(picks->dims, d + 1, picks->rank);
    }
}

/* The data's axis that is indexed, where it has others that are bounded those are read as far as the indices go; and
 * indices, which are checked. */
static bool bounded_gather(const sb_kernel_query *query, int input, int axis) {
    return true;
}

/* Data are read where they lie: packing them first would move everything, of which a few rows may be wanted. */
static sb_status launch_gather(sb_call *call) {
    picking picking;
    int axis;
    SB_TRY(
        sb_move_axis(call, ((const sb_gather_params *)call->node->params)->axis, sb_call_input(call, 0)->rank, &axis));
    SB_TRY(pick_up(call, false, &picking));
    const sb_tensor *data = picking.data;
    int64_t size = (int64_t)sb_dtype_size(data->dtype);
    sb_cuda_work work = {0};
    sb_cuda_gather_elements parameters = {
        .elements = sb_tensor_elements(picking.output),
        .extent = data->dims[axis],
        .axis = -1,
        .indices = picking.picks->data,
        .wide = picking.picks->dtype == SB_S64,
        .fault = sb_cuda_work_fault(&work, call),
        .in = data->data,
        .out = picking.output->data,
    };
    for (int d = 0; d < data->rank; d++)
        add_dimension(&parameters, d == axis ? sb_tensor_elements(picking.picks) : data->dims[d],
                      data->strides[d] * size, d == axis);
    int64_t word = widen(&parameters, size);
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    bound(call, axis, &work, &parameters);
    name_ranges(&work, &picking);
    sb_status status =
        sb_cuda_launch_each(call, &work, "gather", "sb_cuda_gather", word_suffix(word), parameters.elements);
    give_back(&picking);
    return status;
}

static sb_status launch_gather_elements(sb_call *call) {
    picking picking;
    int axis;
    SB_TRY(
        sb_move_axis(call, ((const sb_gather_params *)call->node->params)->axis, sb_call_input(call, 0)->rank, &axis));
    SB_TRY(pick_up(call, false, &picking));
    const sb_tensor *data = picking.data, *picks = picking.picks;
    sb_cuda_work work = {0};
    sb_cuda_gather_elements parameters = {
        .elements = sb_tensor_elements(picks),
        .extent = data->dims[axis],
        .rank = data->rank,
        .axis = axis,
        .indices = picks->data,
        .wide = picks->dtype == SB_S64,
        .fault = sb_cuda_work_fault(&work, call),
        .in = data->data,
        .out = picking.output->data,
    };
    sb_status status = SB_OK;
    for (int d = 0; d < data->rank && status == SB_OK; d++) {
        parameters.dims[d] = picks->dims[d];
        parameters.steps[d] = data->strides[d] * (int64_t)sb_dtype_size(data->dtype);
        if (d != axis && picks->dims[d] > data->dims[d])
            status =
                sb_call_fail(call, SB_ERROR_SHAPE, "the indices have extent %lld in dimension %d, the data only %lld",
                             (long long)picks->dims[d], d, (long long)data->dims[d]);
    }
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    bound(call, axis, &work, &parameters);
    name_ranges(&work, &picking);
    if (status == SB_OK)
        status = sb_cuda_launch_each(call, &work, "gather", "sb_cuda_gather_elements", sb_cuda_size_suffix(data->dtype),
                                     parameters.elements);
    give_back(&picking);
    return status;
}

static sb_status check_shared(sb_call *call, int shared) {
    const sb_tensor *data = sb_call_input(call, 0), *picks = sb_call_input(call, 1);
    for (int d = 0; d < shared; d++) {
        if (picks->dims[d] != data->dims[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the shared dimension %d has extents %lld in the data, %lld in the indices", d,
                                (long long)data->dims[d], (long long)picks->dims[d]);
    }
    return SB_OK;
}

static sb_status launch_gather_nd(sb_call *call) {
    picking picking;
    int shared = (int)((const sb_gather_params *)call->node->params)->axis;
    SB_TRY(check_shared(call, shared));
    SB_TRY(pick_up(call, true, &picking));
    const sb_tensor *data = picking.data, *picks = picking.picks;
    int depth = (int)picks->dims[picks->rank - 1];
    int64_t size = (int64_t)sb_dtype_size(data->dtype);
    int64_t bytes = sb_move_product(data->dims, shared + depth, data->rank) * size;
    int64_t word = word_bytes(bytes, data->data, picking.output->data);
    sb_cuda_work work = {0};
    sb_cuda_gather_nd parameters = {
        .words = sb_tensor_elements(picking.output) * size / word,
        .tuples = sb_move_product(picks->dims, shared, picks->rank - 1),
        .block = bytes / word,
        .inside = sb_move_product(data->dims, shared, data->rank) * size / word,
        .depth = depth,
        .wide = picks->dtype == SB_S64,
        .indices = picks->data,
        .fault = sb_cuda_work_fault(&work, call),
        .in = data->data,
        .out = picking.output->data,
    };
    memcpy(parameters.dims, data->dims + shared, (size_t)depth * sizeof *data->dims);
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    name_ranges(&work, &picking);
    sb_status status =
        sb_cuda_launch_each(call, &work, "gather", "sb_cuda_gather_nd", word_suffix(word), parameters.words);
    give_back(&picking);
    return status;
}

/* ---- OneHot ---- */

static sb_status launch_one_hot(sb_call *call) {
    const sb_selection_params *params = call->node->params;
    const sb_tensor *depth = sb_call_input(call, 1);
    sb_tensor *indices, *values, *output;
    int64_t dims[SB_MAX_RANK], extent = -1;
    int axis, rank = sb_call_input(call, 0)->rank + 1;
    SB_TRY(sb_move_axis(call, params->axis, rank, &axis));
    if (sb_tensor_elements(depth) == 1)
        extent = sb_i64_from_f64(sb_number_load(depth->dtype, depth->data, 0));
    if (sb_tensor_elements(sb_call_input(call, 2)) != 2 || extent < 0)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "the depth must be one number that is not negative, the values two elements");
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? extent : sb_call_input(call, 0)->dims[i < axis ? i : i - 1];
    SB_TRY(sb_call_output_shape(call, 0, sb_call_input(call, 2)->dtype, rank, dims, &output));
    SB_TRY(sb_call_contiguous(call, 0, &indices));
    sb_status status = sb_call_contiguous(call, 2, &values);
    if (status == SB_OK) {
        sb_cuda_one_hot parameters = {.elements = sb_tensor_elements(output),
                                      .extent = extent,
                                      .inner = sb_move_product(dims, axis + 1, rank),
                                      .dtype = indices->dtype,
                                      .indices = indices->data,
                                      .values = values->data,
                                      .out = output->data};
        sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
        sb_cuda_work_writes(&work, output);
        sb_cuda_work_reads(&work, indices);
        sb_cuda_work_reads(&work, values);
        status = sb_cuda_launch_each(call, &work, "gather", "sb_cuda_one_hot", sb_cuda_size_suffix(values->dtype),
                                     parameters.elements);
        sb_tensor_release(values);
    }
    sb_tensor_release(indices);
    return status;
}

/* ---- scatters ---- */

/* What the steps of a scatter share. */
typedef struct scattering {
    sb_tensor *output, *picks, *updates;
    int64_t count, line, inner, block; /* updates are numbered over [outer, line, inner] */
    int64_t *places, *next;
    uint8_t *first;
} scattering;

static sb_status find_places(sb_call *call, const scattering *s, int depth, int axis) {
    sb_cuda_work work = {0};
    sb_cuda_scatter_places parameters = {
        .updates = s->count,
        .depth = depth,
        .wide = s->picks->dtype == SB_S64,
        .rank = axis >= 0 ? s->picks->rank : 0,
        .axis = axis,
        .indices = s->picks->data,
        .fault = sb_cuda_work_fault(&work, call),
        .places = s->places,
    };
    memcpy(parameters.dims, s->output->dims, sizeof parameters.dims);
    memcpy(parameters.extents, s->picks->dims, sizeof parameters.extents);
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    sb_cuda_work_reads(&work, s->picks);
    sb_cuda_work_touches(&work, s->places, (size_t)s->count * sizeof *s->places, true);
    return sb_cuda_launch_each(call, &work, "scatter", "sb_cuda_scatter_find_places", NULL, s->count);
}

static sb_status link_updates(sb_call *call, const scattering *s) {
    sb_cuda_scatter_links parameters = {.updates = s->count,
                                        .line = s->line,
                                        .inner = s->inner,
                                        .places = s->places,
                                        .next = s->next,
                                        .first = s->first};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_touches(&work, s->places, (size_t)s->count * sizeof *s->places, false);
    sb_cuda_work_touches(&work, s->next, (size_t)s->count * sizeof *s->next, true);
    sb_cuda_work_touches(&work, s->first, (size_t)s->count, true);
    return sb_cuda_launch_each(call, &work, "scatter", "sb_cuda_scatter_link", NULL, s->count);
}

static sb_status apply_updates(sb_call *call, const scattering *s) {
    sb_scatter_how how = ((const sb_scatter_params *)call->node->params)->how;
    sb_cuda_scatter parameters = {.elements = s->count * s->block,
                                  .block = s->block,
                                  .how = how,
                                  .dtype = s->output->dtype,
                                  .places = s->places,
                                  .next = s->next,
                                  .first = s->first,
                                  .from = s->updates->data,
                                  .out = s->output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, s->output);
    sb_cuda_work_reads(&work, s->updates);
    sb_cuda_work_touches(&work, s->places, (size_t)s->count * sizeof *s->places, false);
    sb_cuda_work_touches(&work, s->next, (size_t)s->count * sizeof *s->next, false);
    sb_cuda_work_touches(&work, s->first, (size_t)s->count, false);
    return sb_cuda_launch_each(call, &work, "scatter",
                               how == SB_SCATTER_SET ? "sb_cuda_scatter_set" : "sb_cuda_scatter_combine",
                               sb_cuda_size_suffix(s->output->dtype), parameters.elements);
}

/* Everything after the shapes are checked; `axis` is -1 for ScatterND. */
static sb_status scatter(sb_call *call, scattering *s, int axis) {
    const sb_tensor *data = sb_call_input(call, 0);
    void *memory;
    int depth = axis >= 0 ? 0 : (int)s->picks->dims[s->picks->rank - 1];
    SB_TRY(sb_call_output_shape(call, 0, data->dtype, data->rank, data->dims, &s->output));
    SB_TRY(sb_call_copy(call, s->output, data));
    s->inner = 1;
    if (axis >= 0) {
        s->count = sb_tensor_elements(s->picks);
        s->line = s->picks->dims[axis];
        s->inner = sb_move_product(s->picks->dims, axis + 1, s->picks->rank);
        s->block = 1;
    } else {
        s->count = s->line = sb_move_product(s->picks->dims, 0, s->picks->rank - 1);
        s->block = sb_move_product(data->dims, depth, data->rank);
    }
    if (s->count == 0 || s->block == 0)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, (size_t)s->count * sizeof *s->places, &memory));
    s->places = memory;
    SB_TRY(sb_call_workspace(call, (size_t)s->count * sizeof *s->next, &memory));
    s->next = memory;
    SB_TRY(sb_call_workspace(call, (size_t)s->count, &memory));
    s->first = memory;
    SB_TRY(find_places(call, s, depth, axis));
    SB_TRY(link_updates(call, s));
    return apply_updates(call, s);
}

static sb_status launch_scatter(sb_call *call, bool tuples) {
    const sb_tensor *data = sb_call_input(call, 0), *picks = sb_call_input(call, 1);
    scattering s = {0};
    int axis = -1;
    if (!tuples)
        SB_TRY(sb_move_axis(call, ((const sb_scatter_params *)call->node->params)->axis, data->rank, &axis));
    SB_TRY(tuples ? sb_scatter_check_tuples(call, data, picks, sb_call_input(call, 2))
                  : sb_scatter_check_elements(call, data, picks, sb_call_input(call, 2), axis));
    SB_TRY(sb_call_contiguous(call, 1, &s.picks));
    sb_status status = sb_call_contiguous(call, 2, &s.updates);
    if (status == SB_OK)
        status = scatter(call, &s, axis);
    sb_tensor_release(s.picks);
    sb_tensor_release(s.updates);
    return status;
}

static sb_status launch_scatter_elements(sb_call *call) {
    return launch_scatter(call, false);
}

static sb_status launch_scatter_nd(sb_call *call) {
    return launch_scatter(call, true);
}

#define INDEXED(op_name, kernel_name, host, bounds, launch_function)                                                   \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host, .bounded = bounds,  \
        .launch = launch_function                                                                                      \
    }

const sb_kernel sb_cuda_kernels_gather[] = {
    INDEXED("Gather", "gather", 0, bounded_gather, launch_gather),
    INDEXED("GatherElements", "gather", 0, bounded_gather, launch_gather_elements),
    INDEXED("GatherND", "gather", 0, NULL, launch_gather_nd),
    INDEXED("OneHot", "one_hot", 2, NULL, launch_one_hot),
    INDEXED("Scatter", "scatter", 0, NULL, launch_scatter_elements),
    INDEXED("ScatterElements", "scatter", 0, NULL, launch_scatter_elements),
    INDEXED("ScatterND", "scatter", 0, NULL, launch_scatter_nd),
    {0},
};
