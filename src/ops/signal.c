/* Spectra and windows: BlackmanWindow, DFT, HammingWindow, HannWindow, MelWeightMatrix, STFT. All
 * are evaluated in f64 and rounded once. */
#include "ops/signal.h"

#include "base/allocation.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/signal_values.h"

/* The value of input `index` as one integer, if there is such an input. */
static sb_status one_integer(const sb_call *call, int index, int64_t otherwise, int64_t *value) {
    int count = 1;
    *value = otherwise;
    if (sb_call_input(call, index) != NULL)
        SB_TRY(sb_move_integers(call, index, 1, value, &count));
    return count == 1 ? SB_OK : sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be one integer", index);
}

/* The same in inference, as a formula; NULL when not known. */
static sb_status one_formula(sb_infer *infer, int index, sb_dim *value) {
    int count;
    bool known;
    *value = NULL;
    if (sb_infer_input(infer, index) == NULL)
        return SB_OK;
    SB_TRY(sb_infer_integers(infer, index, 1, value, &count, &known));
    if (!known || count != 1)
        *value = NULL;
    return SB_OK;
}

/* ---- windows ---- */

static sb_status prepare_window(sb_node *node, sb_error *error) {
    sb_signal_params *params = node->params;
    int64_t periodic;
    SB_TRY(sb_node_int(node, "periodic", 1, &periodic, error));
    params->periodic = periodic != 0;
    SB_TRY(sb_node_element_type(node, "output_datatype", SB_F32, &params->dtype, error));
    if ((SB_SET_NUMBER & SB_SET(params->dtype)) == 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s (%s): a window of %s", node->name, node->op->name,
                       sb_dtype_name(params->dtype));
    return SB_OK;
}

static sb_status infer_window(sb_infer *infer) {
    sb_dim size;
    int64_t number;
    SB_TRY(one_formula(infer, 0, &size));
    if (size != NULL && sb_dim_is_constant(size, &number) && number < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "a window of %lld elements", (long long)number);
    if (size == NULL)
        size = sb_infer_fresh(infer, 0, 0);
    sb_fact_set_tensor(&infer->outputs[0], ((const sb_signal_params *)infer->node->params)->dtype, 1, &size);
    return SB_OK;
}

/* a + b·cos(2πn/N) + c·cos(4πn/N) with N the size (periodic) or the size less 1 (symmetric). The
 * only element of a symmetric window of one is 1. */
sb_status sb_window_read_plan(const sb_call *call, sb_window_plan *plan) {
    const sb_signal_params *params = call->node->params;
    const char *name = call->node->op->name;
    if (strcmp(name, "BlackmanWindow") == 0)
        *plan = (sb_window_plan){.a = 0.42, .b = -0.5, .c = 0.08};
    else if (strcmp(name, "HannWindow") == 0)
        *plan = (sb_window_plan){.a = 0.5, .b = -0.5, .c = 0.0};
    else
        *plan = (sb_window_plan){.a = 25.0 / 46.0, .b = -21.0 / 46.0, .c = 0.0};
    SB_TRY(one_integer(call, 0, 0, &plan->size));
    plan->period = params->periodic ? plan->size : plan->size - 1;
    return SB_OK;
}

static sb_status eval_window(sb_call *call) {
    sb_dtype dtype = ((const sb_signal_params *)call->node->params)->dtype;
    sb_window_plan plan;
    sb_tensor *output;
    SB_TRY(sb_window_read_plan(call, &plan));
    SB_TRY(sb_call_output_shape(call, 0, dtype, 1, &plan.size, &output));
    for (int64_t n = 0; n < plan.size; n++)
        sb_number_store(dtype, output->data, n, sb_signal_window(n, plan.period, plan.a, plan.b, plan.c));
    return SB_OK;
}

/* ---- MelWeightMatrix ---- */

static sb_status infer_mel(sb_infer *infer) {
    sb_dim bins, length, dims[2];
    const sb_fact *fact;
    SB_TRY(one_formula(infer, 0, &bins));
    SB_TRY(one_formula(infer, 1, &length));
    SB_TRY(sb_infer_require(infer, 2, SB_SET_INDEX, &fact));
    SB_TRY(sb_infer_require(infer, 3, SB_SET_FLOAT, &fact));
    SB_TRY(sb_infer_require(infer, 4, SB_SET_FLOAT, &fact));
    sb_scope *scope = infer->scope;
    dims[0] = length != NULL ? sb_dim_add(scope, sb_dim_floor_divide(scope, length, sb_dim_constant(scope, 2)),
                                          sb_dim_constant(scope, 1))
                             : sb_infer_fresh(infer, 0, 0);
    dims[1] = bins != NULL ? bins : sb_infer_fresh(infer, 0, 1);
    sb_fact_set_tensor(&infer->outputs[0], ((const sb_signal_params *)infer->node->params)->dtype, 2, dims);
    return SB_OK;
}

/* Column `bin`: a triangle that rises from its left edge to its centre and falls to its right edge. */
static void mel_column(sb_tensor *output, int64_t bin, int64_t left, int64_t centre, int64_t right) {
    int64_t rows = output->dims[0], columns = output->dims[1];
    for (int64_t row = 0; row < rows; row++) {
        double weight = sb_signal_mel_weight(row, left, centre, right);
        sb_number_store(output->dtype, output->data, row * columns + bin, weight);
    }
}

sb_status sb_mel_read(const sb_call *call, sb_mel_plan *plan) {
    SB_TRY(one_integer(call, 0, 0, &plan->bins));
    SB_TRY(one_integer(call, 1, 0, &plan->length));
    SB_TRY(one_integer(call, 2, 0, &plan->rate));
    const sb_tensor *low = sb_call_input(call, 3), *high = sb_call_input(call, 4);
    if (plan->bins < 0 || plan->bins > INT32_MAX || plan->length < 0 || plan->length > INT32_MAX || plan->rate < 1 ||
        sb_tensor_elements(low) != 1 || sb_tensor_elements(high) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld bins, a DFT of %lld and a rate of %lld do not make sense",
                            (long long)plan->bins, (long long)plan->length, (long long)plan->rate);
    plan->low = sb_number_load(low->dtype, low->data, 0);
    plan->high = sb_number_load(high->dtype, high->data, 0);
    return SB_OK;
}

static int64_t plan_edge(const sb_mel_plan *plan, int64_t index) {
    return sb_signal_mel_edge(plan->low, plan->high, index, plan->bins, plan->length, plan->rate);
}

static sb_status eval_mel(sb_call *call) {
    sb_mel_plan plan;
    SB_TRY(sb_mel_read(call, &plan));
    sb_tensor *output;
    const int64_t dims[2] = {plan.length / 2 + 1, plan.bins};
    SB_TRY(sb_call_output_shape(call, 0, ((const sb_signal_params *)call->node->params)->dtype, 2, dims, &output));
    for (int64_t bin = 0; bin < plan.bins; bin++)
        mel_column(output, bin, plan_edge(&plan, bin), plan_edge(&plan, bin + 1), plan_edge(&plan, bin + 2));
    return SB_OK;
}

/* ---- transforms ---- */

/* One transform of `length` complex numbers to `count` of them: X[k] = Σ x[m]·exp(∓2πikm/length), m
 * ascending, each part a chain of fma from +0, the real part of x before the imaginary; the inverse
 * is divided by `length`. */
typedef struct transform {
    int64_t length;
    bool inverse;
    double *cosines, *sines;  /* [length] */
    double *real, *imaginary; /* [length]: the input */
} transform;

static sb_status start_transform(const sb_call *call, transform *work, int64_t length, bool inverse) {
    double *memory = sb_allocate_array((size_t)length, 4 * sizeof *memory);
    if (memory == NULL)
        return sb_fail_memory(call->error, (size_t)length * 4 * sizeof *memory);
    *work = (transform){length, inverse, memory, memory + length, memory + 2 * length, memory + 3 * length};
    for (int64_t i = 0; i < length; i++)
        sb_signal_root(i, length, &work->cosines[i], &work->sines[i]);
    return SB_OK;
}

static void transform_one(const transform *work, int64_t k, double *real, double *imaginary) {
    double re = 0.0, im = 0.0;
    int64_t turn = 0;
    for (int64_t m = 0; m < work->length; m++) {
        double c = work->cosines[turn], s = work->inverse ? -work->sines[turn] : work->sines[turn];
        sb_signal_accumulate(work->real[m], work->imaginary[m], c, s, &re, &im);
        turn += k;
        turn = turn >= work->length ? turn - work->length : turn;
    }
    *real = work->inverse ? re / (double)work->length : re;
    *imaginary = work->inverse ? im / (double)work->length : im;
}

static sb_status prepare_transform(sb_node *node, sb_error *error) {
    sb_signal_params *params = node->params;
    bool framed = strcmp(node->op->name, "STFT") == 0;
    int64_t inverse, onesided;
    SB_TRY(sb_node_int(node, "axis", node->version < 20 ? 1 : -2, &params->axis, error));
    SB_TRY(sb_node_int(node, "inverse", 0, &inverse, error));
    SB_TRY(sb_node_int(node, "onesided", framed ? 1 : 0, &onesided, error));
    params->inverse = inverse != 0;
    params->onesided = onesided != 0;
    return SB_OK;
}

static sb_dim half_spectrum(sb_scope *scope, sb_dim length) {
    return sb_dim_add(scope, sb_dim_floor_divide(scope, length, sb_dim_constant(scope, 2)), sb_dim_constant(scope, 1));
}

/* ---- DFT ---- */

static sb_status infer_dft(sb_infer *infer) {
    const sb_signal_params *params = infer->node->params;
    const sb_fact *input;
    sb_dim length, axis_value;
    int64_t where = params->axis, parts;
    int axis;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    SB_TRY(one_formula(infer, 1, &length));
    SB_TRY(one_formula(infer, 2, &axis_value));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (input->rank < 2 || (sb_dim_is_constant(input->dims[input->rank - 1], &parts) && parts != 1 && parts != 2))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the last of two or more extents must be 1 or 2");
    bool axis_known =
        sb_infer_input(infer, 2) == NULL || (axis_value != NULL && sb_dim_is_constant(axis_value, &where));
    if (!axis_known) {
        sb_infer_open(infer, 0, input->dtype, input->rank);
        return SB_OK;
    }
    SB_TRY(sb_infer_axis(infer, where, input->rank, &axis));
    if (axis == input->rank - 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d holds real and imaginary parts", axis);
    sb_dim dims[SB_MAX_RANK];
    sb_scope *scope = infer->scope;
    bool to_real = params->inverse && params->onesided;
    memcpy(dims, input->dims, sizeof dims);
    if (length == NULL && sb_infer_input(infer, 1) != NULL)
        length = sb_infer_fresh(infer, 0, axis);
    else if (length == NULL)
        length = to_real ? sb_dim_multiply(scope, sb_dim_constant(scope, 2),
                                           sb_dim_subtract(scope, dims[axis], sb_dim_constant(scope, 1)))
                         : dims[axis];
    dims[axis] = params->onesided && !to_real ? half_spectrum(scope, length) : length;
    dims[input->rank - 1] = sb_dim_constant(scope, to_real ? 1 : 2);
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

void sb_dft_read_line(const sb_tensor *input, const sb_dft_plan *plan, int64_t offset, int64_t step, double *real,
                      double *imaginary) {
    int64_t stride = input->strides[plan->axis], part = input->strides[input->rank - 1];
    bool complex = input->dims[input->rank - 1] == 2;
    for (int64_t m = 0; m < plan->length; m++) {
        bool reflected = plan->to_real && m > plan->length / 2;
        int64_t from = reflected ? plan->length - m : m;
        bool there = from < input->dims[plan->axis];
        int64_t at = offset + from * stride;
        real[m * step] = there ? sb_number_load(input->dtype, input->data, at) : 0.0;
        if (imaginary == NULL)
            continue;
        double value = there && complex ? sb_number_load(input->dtype, input->data, at + part) : 0.0;
        imaginary[m * step] = reflected ? -value : value;
    }
}

sb_status sb_dft_read(const sb_call *call, sb_dft_plan *plan) {
    const sb_signal_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t where, extent;
    int last = input->rank - 1;
    plan->to_real = params->inverse && params->onesided;
    SB_TRY(one_integer(call, 2, params->axis, &where));
    SB_TRY(sb_move_axis(call, where, input->rank, &plan->axis));
    extent = input->dims[plan->axis];
    SB_TRY(one_integer(call, 1, plan->to_real ? 2 * (extent - 1) : extent, &plan->length));
    if (plan->length < 1 || plan->length > INT32_MAX || plan->axis == last ||
        (input->dims[last] != 1 && input->dims[last] != 2))
        return sb_call_fail(call, SB_ERROR_SHAPE, "a DFT of length %lld along axis %d of rank %d",
                            (long long)plan->length, plan->axis, input->rank);
    memcpy(plan->dims, input->dims, sizeof plan->dims);
    plan->dims[plan->axis] = params->onesided && !plan->to_real ? plan->length / 2 + 1 : plan->length;
    plan->dims[last] = plan->to_real ? 1 : 2;
    return SB_OK;
}

static sb_status eval_dft(sb_call *call) {
    const sb_signal_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t lines[SB_MAX_RANK], index[SB_MAX_RANK] = {0};
    int last = input->rank - 1;
    sb_dft_plan plan;
    SB_TRY(sb_dft_read(call, &plan));
    int axis = plan.axis;
    bool to_real = plan.to_real;
    const int64_t *dims = plan.dims;
    sb_tensor *output;
    transform work;
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    SB_TRY(start_transform(call, &work, plan.length, params->inverse));
    memcpy(lines, dims, sizeof lines);
    lines[axis] = lines[last] = 1;
    do {
        int64_t from = 0, to = 0;
        for (int d = 0; d < input->rank; d++) {
            from += index[d] * input->strides[d];
            to += index[d] * output->strides[d];
        }
        sb_dft_read_line(input, &plan, from, 1, work.real, work.imaginary);
        for (int64_t k = 0; k < dims[axis]; k++) {
            double real, imaginary;
            transform_one(&work, k, &real, &imaginary);
            sb_number_store(output->dtype, output->data, to + k * output->strides[axis], real);
            if (!to_real)
                sb_number_store(output->dtype, output->data, to + k * output->strides[axis] + 1, imaginary);
        }
    } while (sb_move_next(input->rank, lines, index));
    sb_free(work.cosines);
    return SB_OK;
}

/* ---- STFT ---- */

static sb_status infer_stft(sb_infer *infer) {
    const sb_signal_params *params = infer->node->params;
    const sb_fact *signal, *window = sb_infer_input(infer, 2);
    sb_dim step, length;
    int64_t number;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &signal));
    SB_TRY(one_formula(infer, 1, &step));
    SB_TRY(one_formula(infer, 3, &length));
    if (window != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(signal->dtype), &window));
    /* The standard's text has a third axis of parts. Exporters leave it out where signals are real, and so do peers. */
    if (signal->rank != SB_RANK_UNKNOWN && signal->rank != 3 && signal->rank != 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the signal has rank %d, not 3, nor 2 for a real one",
                             signal->rank);
    if (sb_infer_input(infer, 3) == NULL && window != NULL && window->rank == 1)
        length = window->dims[0];
    sb_infer_open(infer, 0, signal->dtype, 4);
    sb_dim *dims = infer->outputs[0].dims;
    sb_scope *scope = infer->scope;
    dims[3] = sb_dim_constant(scope, 2);
    if (length != NULL)
        dims[2] = params->onesided ? half_spectrum(scope, length) : length;
    if (signal->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    dims[0] = signal->dims[0];
    if (length != NULL && step != NULL && sb_dim_is_constant(step, &number) && number > 0)
        dims[1] = sb_dim_add(scope, sb_dim_constant(scope, 1),
                             sb_dim_floor_divide(scope, sb_dim_subtract(scope, signal->dims[1], length), step));
    return SB_OK;
}

void sb_stft_read_frame(const sb_tensor *signal, const sb_tensor *window, const sb_stft_plan *plan, int64_t batch,
                        int64_t start, int64_t step, double *real, double *imaginary) {
    for (int64_t m = 0; m < plan->length; m++) {
        double weight = 1.0;
        if (window != NULL)
            weight = m < window->dims[0] ? sb_number_load(window->dtype, window->data, m * window->strides[0]) : 0.0;
        int64_t at = batch * signal->strides[0] + (start + m) * signal->strides[1];
        real[m * step] = sb_number_load(signal->dtype, signal->data, at) * weight;
        if (imaginary != NULL)
            imaginary[m * step] =
                plan->complex ? sb_number_load(signal->dtype, signal->data, at + plan->part_stride) * weight : 0.0;
    }
}

sb_status sb_stft_read(const sb_call *call, sb_stft_plan *plan) {
    const sb_signal_params *params = call->node->params;
    const sb_tensor *signal = sb_call_input(call, 0), *window = sb_call_input(call, 2);
    SB_TRY(one_integer(call, 1, 0, &plan->step));
    SB_TRY(one_integer(call, 3, window != NULL && window->rank == 1 ? window->dims[0] : 0, &plan->length));
    bool parted = signal->rank == 3;
    if ((parted && signal->dims[2] != 1 && signal->dims[2] != 2) || plan->step < 1 || plan->length < 1 ||
        plan->length > signal->dims[1] || plan->length > INT32_MAX || (window != NULL && window->rank != 1))
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "frames of %lld every %lld elements do not fit the signal, or the window is no list",
                            (long long)plan->length, (long long)plan->step);
    plan->complex = parted && signal->dims[2] == 2;
    plan->part_stride = plan->complex ? signal->strides[2] : 0;
    plan->frames = (signal->dims[1] - plan->length) / plan->step + 1;
    plan->bins = params->onesided ? plan->length / 2 + 1 : plan->length;
    return SB_OK;
}

static sb_status eval_stft(sb_call *call) {
    const sb_tensor *signal = sb_call_input(call, 0), *window = sb_call_input(call, 2);
    sb_stft_plan plan;
    SB_TRY(sb_stft_read(call, &plan));
    int64_t frames = plan.frames, bins = plan.bins, step = plan.step;
    const int64_t dims[4] = {signal->dims[0], frames, bins, 2};
    sb_tensor *output;
    transform work;
    SB_TRY(sb_call_output_shape(call, 0, signal->dtype, 4, dims, &output));
    SB_TRY(start_transform(call, &work, plan.length, false));
    int64_t element = 0;
    for (int64_t b = 0; b < signal->dims[0]; b++) {
        for (int64_t frame = 0; frame < frames; frame++) {
            sb_stft_read_frame(signal, window, &plan, b, frame * step, 1, work.real, work.imaginary);
            for (int64_t k = 0; k < bins; k++) {
                double real, imaginary;
                transform_one(&work, k, &real, &imaginary);
                sb_number_store(output->dtype, output->data, element++, real);
                sb_number_store(output->dtype, output->data, element++, imaginary);
            }
        }
    }
    sb_free(work.cosines);
    return SB_OK;
}

#define SIGNAL_OP(op_name, least, most, prepare_function, infer_function, eval_function)                               \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most, .least_outputs = 1,                 \
        .most_outputs = 1, .params_size = sizeof(sb_signal_params), .prepare = prepare_function,                       \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_signal[] = {
    SIGNAL_OP("BlackmanWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("DFT", 1, 3, prepare_transform, infer_dft, eval_dft),
    SIGNAL_OP("HammingWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("HannWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("MelWeightMatrix", 5, 5, prepare_window, infer_mel, eval_mel),
    SIGNAL_OP("STFT", 2, 4, prepare_transform, infer_stft, eval_stft),
    {0},
};
