/* Kernels of Resize and Upsample: `nearest` of any dtype, and interpolation of f32, f16 and bf16. Of 16 bits, elements are
 * widened first, passes are those of f32, and the last one rounds what is still in the cache.
 *
 * Both compute in the order of dimensions in memory that the input has, so that channels that are innermost stay there:
 * they are moved in lines, and the lanes of interpolation. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/moving/resize_rows.h"
#include "cpu/pieces.h"
#include "cpu/spread.h"
#include "cpu/widen.h"
#include "ops/contraction.h"
#include "ops/convert_loops.h"
#include "ops/moving.h"
#include "ops/resize.h"

/* Elements below which a thread is not worth waking. */
#define GRAIN_ELEMENTS 16384

static bool supports_resize(const sb_kernel_query *query, char *why) {
    const sb_resize_params *params = query->node->params;
    const sb_fact *x = query->inputs[0];
    if (x->dtype == SB_STRING) {
        snprintf(why, SB_WHY_BYTES, "text has no kernel of %s", query->node->op->name);
        return false;
    }
    if (params->rule.transform == SB_RESIZE_TF_CROP_AND_RESIZE) {
        snprintf(why, SB_WHY_BYTES, "tf_crop_and_resize has no kernel");
        return false;
    }
    const bool computed_in_f32 = x->dtype == SB_F32 || x->dtype == SB_F16 || x->dtype == SB_BF16;
    if (params->rule.mode != SB_RESIZE_NEAREST && !computed_in_f32) {
        snprintf(why, SB_WHY_BYTES, "interpolation of %s has no kernel; those of f32, f16 and bf16 have",
                 sb_dtype_name(x->dtype));
        return false;
    }
    return true;
}

/* A resize with its dimensions in the order of memory, outermost first. */
typedef struct resizing {
    int rank;
    const sb_resize_axis *axes[SB_MAX_RANK]; /* NULL where a dimension stays as it is */
    int64_t in[SB_MAX_RANK], out[SB_MAX_RANK];
    int64_t steps[SB_MAX_RANK]; /* of the input, in bytes */
    size_t size;                /* of an element */
    const char *from;
    char *to;
    int line; /* from this dimension on everything stays as it is, and is adjacent in the input */
    int64_t line_bytes;
} resizing;

/* ---- nearest ---- */

static int64_t looks_at(const resizing *work, int d, int64_t position) {
    return work->axes[d] != NULL ? work->axes[d]->first[position] : position;
}

/* Elements along dimension d, each of `bytes`, which may be a line. */
static void pick_line(const resizing *work, int d, size_t bytes, const char *from, char *to) {
#define PICK(constant)                                                                                                 \
    for (int64_t i = 0; i < work->out[d]; i++)                                                                         \
        memcpy(to + i * (int64_t)(constant), from + looks_at(work, d, i) * work->steps[d], constant);
    switch (bytes) {
    case 1:
        PICK(1) break;
    case 2:
        PICK(2) break;
    case 4:
        PICK(4) break;
    case 8:
        PICK(8) break;
    default:
        PICK(bytes) break;
    }
#undef PICK
}

/* Everything from dimension d on. Positions that look at the same place as the one before are copies of it. */
static void pick_from(const resizing *work, int d, int64_t begin, int64_t end, const char *from, char *to) {
    if (d == work->line) {
        memcpy(to, from, (size_t)work->line_bytes);
        return;
    }
    if (d == work->line - 1 && begin == 0 && end == work->out[d]) {
        pick_line(work, d, (size_t)work->line_bytes, from, to);
        return;
    }
    int64_t bytes = work->line_bytes;
    for (int i = d + 1; i < work->line; i++)
        bytes *= work->out[i];
    for (int64_t i = begin; i < end; i++, to += bytes) {
        int64_t at = looks_at(work, d, i);
        if (i > begin && at == looks_at(work, d, i - 1))
            memcpy(to, to - bytes, (size_t)bytes);
        else
            pick_from(work, d + 1, 0, d + 1 < work->rank ? work->out[d + 1] : 0, from + at * work->steps[d], to);
    }
}

/* The outermost dimensions are cut for threads as one: `split` of them. */
typedef struct split_picking {
    const resizing *work;
    int split;
    int64_t bytes; /* of the output behind the split dimensions */
} split_picking;

static void pick_part(void *context, int64_t begin, int64_t end) {
    const split_picking *picking = context;
    const resizing *work = picking->work;
    for (int64_t part = begin; part < end; part++) {
        const char *from = work->from;
        int64_t rest = part;
        for (int d = picking->split - 1; d >= 0; d--) {
            from += looks_at(work, d, rest % work->out[d]) * work->steps[d];
            rest /= work->out[d];
        }
        int d = picking->split;
        pick_from(work, d, 0, d < work->rank ? work->out[d] : 0, from, work->to + part * picking->bytes);
    }
}

static void pick_all(sb_call *call, resizing *work) {
    work->line = work->rank;
    work->line_bytes = (int64_t)work->size;
    while (work->line > 0 && work->axes[work->line - 1] == NULL && work->steps[work->line - 1] == work->line_bytes)
        work->line_bytes *= work->out[--work->line];
    split_picking picking = {.work = work, .bytes = work->line_bytes};
    for (int d = 0; d < work->line; d++)
        picking.bytes *= work->out[d];
    int64_t parts = 1;
    while (picking.split < work->line - 1 && parts < 16) {
        parts *= work->out[picking.split];
        picking.bytes /= work->out[picking.split++];
    }
    int64_t elements = picking.bytes / (int64_t)work->size;
    sb_workers_run(call->workers, parts, GRAIN_ELEMENTS / elements + 1, pick_part, &picking);
}

/* ---- interpolation ---- */

typedef struct pass {
    sb_resize_lines *lines;
    /* Of lines of one element: where taps lie and what they weigh, [taps][out]; NULL where a line has more. */
    sb_resize_elements *elements;
    int32_t *places;
    float *weights;
    const sb_resize_axis *axis;
    int64_t inner;
    const float *from;
    void *to; /* floats, or what is rounded to */
    /* Of 16 bits: lines of a piece, pieces of the lines that the axis makes, and how they are rounded. */
    int64_t piece, pieces;
    int64_t size;
    sb_walk_row *round;
} pass;

static void run_pass(void *context, int64_t begin, int64_t end) {
    const pass *pass = context;
    float *to = pass->to;
    const sb_resize_axis *axis = pass->axis;
    for (int64_t o = begin; o < end; o++) {
        if (pass->places != NULL)
            pass->elements(axis->taps, axis->out, axis->out, pass->places, pass->weights, pass->from + o * axis->in,
                           to + o * axis->out);
        else
            pass->lines(axis, pass->inner, pass->from + o * axis->in * pass->inner, to + o * axis->out * pass->inner);
    }
}

/* Some lines of the last pass, rounded while they are in the cache. */
static void run_rounded(void *context, int64_t index, void *workspace) {
    const pass *pass = context;
    const int64_t o = index / pass->pieces, first = index % pass->pieces * pass->piece;
    const int64_t left = pass->axis->out - first;
    sb_resize_axis axis = *pass->axis;
    axis.first += first;
    axis.weights += first * axis.taps;
    axis.out = left < pass->piece ? left : pass->piece;
    const float *from = pass->from + o * axis.in * pass->inner;
    if (pass->places != NULL)
        pass->elements(axis.taps, axis.out, pass->axis->out, pass->places + first, pass->weights + first, from,
                       workspace);
    else
        pass->lines(&axis, pass->inner, from, workspace);
    char *to = (char *)pass->to + (o * pass->axis->out + first) * pass->inner * pass->size;
    pass->round(NULL, axis.out * pass->inner, (char *[]){to, workspace},
                (const int64_t[]){pass->size, (int64_t)sizeof(float)});
}

/* Elements of a piece of the last pass of 16 bits. */
#define PIECE_ELEMENTS 8192

static sb_status run_last_pass(sb_call *call, const resizing *work, pass *pass, int64_t outer) {
    const sb_dtype dtype = sb_call_input(call, 0)->dtype;
    pass->to = work->to;
    if (dtype == SB_F32) {
        sb_workers_run(call->workers, outer, GRAIN_ELEMENTS / (pass->axis->out * pass->inner) + 1, run_pass, pass);
        return SB_OK;
    }
    const int64_t lines = PIECE_ELEMENTS / pass->inner + 1;
    pass->piece = lines < pass->axis->out ? lines : pass->axis->out;
    pass->pieces = (pass->axis->out + pass->piece - 1) / pass->piece;
    pass->size = (int64_t)work->size;
    pass->round = sb_convert_loop_for(call->isa, dtype, SB_F32);
    return sb_pieces_run(call, outer * pass->pieces, (size_t)(pass->piece * pass->inner) * sizeof(float), run_rounded,
                         pass);
}

static void choose_kernels(sb_isa isa, pass *pass) {
    pass->lines = sb_resize_lines_scalar;
    pass->elements = sb_resize_elements_scalar;
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512) {
        pass->lines = sb_resize_lines_avx512;
        pass->elements = sb_resize_elements_avx512;
    } else if (isa == SB_ISA_AVX2) {
        pass->lines = sb_resize_lines_avx2;
        pass->elements = sb_resize_elements_avx2;
    }
#endif
    (void)isa;
}

/* Lines of one element have their taps found once for all of them. */
static sb_status find_taps(sb_call *call, pass *pass) {
    const sb_resize_axis *axis = pass->axis;
    const int64_t count = axis->out * axis->taps;
    void *places, *weights;
    if (pass->inner != 1 || axis->in > INT32_MAX)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *pass->places, &places));
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *pass->weights, &weights));
    pass->places = places;
    pass->weights = weights;
    for (int t = 0; t < axis->taps; t++) {
        for (int64_t x = 0; x < axis->out; x++) {
            pass->places[t * axis->out + x] = (int32_t)sb_resize_inside(axis->first[x] + t, axis->in);
            pass->weights[t * axis->out + x] = (float)axis->weights[x * axis->taps + t];
        }
    }
    return SB_OK;
}

/* No axis changes: every element stays, of 16 bits by way of f32, which makes any NaN the one that there is. */
static void keep_all(sb_call *call, const resizing *work, const float *from) {
    const int64_t elements = sb_move_product(work->in, 0, work->rank);
    const sb_dtype dtype = sb_call_input(call, 0)->dtype;
    if (dtype == SB_F32)
        memcpy(work->to, from, (size_t)elements * sizeof *from);
    else
        sb_convert_row(dtype, work->to, SB_F32, from, (int64_t)sizeof *from, elements);
}

/* Axes go one after the other, the last one of the tensor (not of memory) first. `places` says where each lies in memory. */
static sb_status interpolate_all(sb_call *call, const resizing *work, const int *places) {
    int64_t dims[SB_MAX_RANK];
    const float *current = (const float *)(const void *)work->from;
    int left = 0;
    memcpy(dims, work->in, sizeof dims);
    for (int d = 0; d < work->rank; d++)
        left += work->axes[d] != NULL;
    if (left == 0)
        keep_all(call, work, current);
    for (int axis = work->rank - 1; axis >= 0; axis--) {
        int d = places[axis];
        if (work->axes[d] == NULL)
            continue;
        pass pass = {.axis = work->axes[d], .from = current};
        choose_kernels(call->isa, &pass);
        int64_t outer = sb_move_product(dims, 0, d), elements;
        pass.inner = sb_move_product(dims, d + 1, work->rank);
        dims[d] = work->out[d];
        SB_TRY(find_taps(call, &pass));
        if (--left == 0)
            return run_last_pass(call, work, &pass, outer);
        SB_TRY(sb_count_elements(SB_F32, work->rank, dims, &elements, call->error));
        SB_TRY(sb_call_workspace(call, (size_t)elements * sizeof(float), &pass.to));
        sb_workers_run(call->workers, outer, GRAIN_ELEMENTS / (pass.axis->out * pass.inner) + 1, run_pass, &pass);
        current = pass.to;
    }
    return SB_OK;
}

/* ---- both ---- */

/* The input as f32 with its elements adjacent in the order of its dimensions in memory. */
static sb_status densify(sb_call *call, const sb_tensor *input, const int *order, resizing *work) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], stride = 1;
    bool dense = true;
    sb_tensor wide = {.rank = 0};
    SB_TRY(sb_widen(call, input, &wide));
    work->from = wide.data;
    for (int i = input->rank - 1; i >= 0; i--) {
        dims[i] = wide.dims[order[i]];
        strides[i] = wide.strides[order[i]];
        dense = dense && (dims[i] == 1 || strides[i] == stride);
        stride *= dims[i];
    }
    if (dense)
        return SB_OK;
    void *copy;
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(input) * sizeof(float), &copy));
    sb_gather_dense(sizeof(float), input->rank, dims, strides, wide.data, copy);
    work->from = copy;
    return SB_OK;
}

static sb_status make_output(sb_call *call, const sb_tensor *input, const int64_t *dims, int *order,
                             sb_tensor **output) {
    int64_t known[SB_MAX_RANK];
    sb_memory_order(input, order);
    if (sb_fact_is_concrete(&call->facts[0], known))
        return sb_call_output_ordered(call, 0, order, output);
    for (int d = 0; d < input->rank; d++)
        order[d] = d;
    return sb_call_output_shape(call, 0, input->dtype, input->rank, dims, output);
}

/* Whether the axis changes anything. `nearest` may look elsewhere even where the extents are the same. */
static bool changes(const sb_resize_axis *axis, const sb_resize_rule *rule) {
    if (axis->first == NULL)
        return false;
    if (rule->mode != SB_RESIZE_NEAREST)
        return !sb_resize_is_identity(axis, rule);
    bool same = axis->in == axis->out;
    for (int64_t i = 0; i < axis->out && same; i++)
        same = axis->first[i] == i;
    return !same;
}

static sb_status run_resize(sb_call *call, const sb_tensor *input, const sb_resize_axis *axes, const int *order,
                            sb_tensor *output) {
    const sb_resize_params *params = call->node->params;
    resizing work = {.rank = input->rank, .size = sb_dtype_size(input->dtype), .from = input->data, .to = output->data};
    int places[SB_MAX_RANK];
    for (int d = 0; d < work.rank; d++) {
        const sb_resize_axis *axis = &axes[order[d]];
        places[order[d]] = d;
        work.axes[d] = changes(axis, &params->rule) ? axis : NULL;
        work.in[d] = input->dims[order[d]];
        work.out[d] = output->dims[order[d]];
        work.steps[d] = input->strides[order[d]] * (int64_t)work.size;
    }
    if (params->rule.mode == SB_RESIZE_NEAREST) {
        pick_all(call, &work);
        return SB_OK;
    }
    SB_TRY(densify(call, input, order, &work));
    return interpolate_all(call, &work, places);
}

static sb_status launch_resize(sb_call *call) {
    const sb_resize_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_resize_axis axes[SB_MAX_RANK] = {{0}};
    uint32_t resized;
    int64_t dims[SB_MAX_RANK];
    int order[SB_MAX_RANK];
    sb_tensor *output;
    SB_TRY(sb_resize_read(call, input, axes, &resized, dims));
    SB_TRY(make_output(call, input, dims, order, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    sb_status status = SB_OK;
    for (int d = 0; d < input->rank && status == SB_OK; d++) {
        if ((resized >> d & 1) != 0)
            status = sb_resize_plan(&axes[d], &params->rule, call->error);
    }
    if (status == SB_OK)
        status = run_resize(call, input, axes, order, output);
    for (int d = 0; d < input->rank; d++)
        sb_resize_clear(&axes[d]);
    return status;
}

const sb_kernel sb_cpu_kernels_resize[] = {
    {.op = "Resize", .name = "resize", .supports = supports_resize, .launch = launch_resize},
    {.op = "Upsample", .name = "resize", .supports = supports_resize, .launch = launch_resize},
    {0},
};
