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
static iv_status one_integer(const iv_call *call, int index, int64_t otherwise, int64_t *value) {
    int count = 1;
    *value = otherwise;
    if (iv_call_input(call, index) != NULL)
        IV_TRY(iv_move_integers(call, index, 1, value, &count));
    return count == 1 ? IV_OK
                      : iv_call_fail(call, IV_ERROR_SHAPE, "input %d must be one integer", index);
}

/* The same in inference, as a formula; NULL when not known. */
static iv_status one_formula(iv_infer *infer, int index, iv_dim *value) {
    int count;
    bool known;
    *value = NULL;
    if (iv_infer_input(infer, index) == NULL)
        return IV_OK;
    IV_TRY(iv_infer_integers(infer, index, 1, value, &count, &known));
    if (!known || count != 1)
        *value = NULL;
    return IV_OK;
}

/* ---- windows ---- */

static iv_status prepare_window(iv_node *node, iv_error *error) {
    iv_signal_params *params = node->params;
    int64_t periodic;
    IV_TRY(iv_node_int(node, "periodic", 1, &periodic, error));
    params->periodic = periodic != 0;
    IV_TRY(iv_node_element_type(node, "output_datatype", IV_F32, &params->dtype, error));
    if ((IV_SET_NUMBER & IV_SET(params->dtype)) == 0)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "node %s (%s): a window of %s", node->name,
                       node->op->name, iv_dtype_name(params->dtype));
    return IV_OK;
}

static iv_status infer_window(iv_infer *infer) {
    iv_dim size;
    int64_t number;
    IV_TRY(one_formula(infer, 0, &size));
    if (size != NULL && iv_dim_is_constant(size, &number) && number < 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "a window of %lld elements", (long long)number);
    if (size == NULL)
        size = iv_infer_fresh(infer, 0, 0);
    iv_fact_set_tensor(&infer->outputs[0], ((const iv_signal_params *)infer->node->params)->dtype,
                       1, &size);
    return IV_OK;
}

/* a + b·cos(2πn/N) + c·cos(4πn/N) with N the size (periodic) or the size less 1 (symmetric). The
 * only element of a symmetric window of one is 1. */
iv_status iv_window_read_plan(const iv_call *call, iv_window_plan *plan) {
    const iv_signal_params *params = call->node->params;
    const char *name = call->node->op->name;
    if (strcmp(name, "BlackmanWindow") == 0)
        *plan = (iv_window_plan){.a = 0.42, .b = -0.5, .c = 0.08};
    else if (strcmp(name, "HannWindow") == 0)
        *plan = (iv_window_plan){.a = 0.5, .b = -0.5, .c = 0.0};
    else
        *plan = (iv_window_plan){.a = 25.0 / 46.0, .b = -21.0 / 46.0, .c = 0.0};
    IV_TRY(one_integer(call, 0, 0, &plan->size));
    plan->period = params->periodic ? plan->size : plan->size - 1;
    return IV_OK;
}

static iv_status eval_window(iv_call *call) {
    iv_dtype dtype = ((const iv_signal_params *)call->node->params)->dtype;
    iv_window_plan plan;
    iv_tensor *output;
    IV_TRY(iv_window_read_plan(call, &plan));
    IV_TRY(iv_call_output_shape(call, 0, dtype, 1, &plan.size, &output));
    for (int64_t n = 0; n < plan.size; n++)
        iv_number_store(dtype, output->data, n,
                        iv_signal_window(n, plan.period, plan.a, plan.b, plan.c));
    return IV_OK;
}

/* ---- MelWeightMatrix ---- */

static iv_status infer_mel(iv_infer *infer) {
    iv_dim bins, length, dims[2];
    const iv_fact *fact;
    IV_TRY(one_formula(infer, 0, &bins));
    IV_TRY(one_formula(infer, 1, &length));
    IV_TRY(iv_infer_require(infer, 2, IV_SET_INDEX, &fact));
    IV_TRY(iv_infer_require(infer, 3, IV_SET_FLOAT, &fact));
    IV_TRY(iv_infer_require(infer, 4, IV_SET_FLOAT, &fact));
    iv_scope *scope = infer->scope;
    dims[0] = length != NULL
                  ? iv_dim_add(scope, iv_dim_floor_divide(scope, length, iv_dim_constant(scope, 2)),
                               iv_dim_constant(scope, 1))
                  : iv_infer_fresh(infer, 0, 0);
    dims[1] = bins != NULL ? bins : iv_infer_fresh(infer, 0, 1);
    iv_fact_set_tensor(&infer->outputs[0], ((const iv_signal_params *)infer->node->params)->dtype,
                       2, dims);
    return IV_OK;
}

/* Column `bin`: a triangle that rises from its left edge to its centre and falls to its right edge.
 */
static void mel_column(iv_tensor *output, int64_t bin, int64_t left, int64_t centre,
                       int64_t right) {
    int64_t rows = output->dims[0], columns = output->dims[1];
    for (int64_t row = 0; row < rows; row++) {
        double weight = iv_signal_mel_weight(row, left, centre, right);
        iv_number_store(output->dtype, output->data, row * columns + bin, weight);
    }
}

iv_status iv_mel_read(const iv_call *call, iv_mel_plan *plan) {
    IV_TRY(one_integer(call, 0, 0, &plan->bins));
    IV_TRY(one_integer(call, 1, 0, &plan->length));
    IV_TRY(one_integer(call, 2, 0, &plan->rate));
    const iv_tensor *low = iv_call_input(call, 3), *high = iv_call_input(call, 4);
    if (plan->bins < 0 || plan->bins > INT32_MAX || plan->length < 0 || plan->length > INT32_MAX ||
        plan->rate < 1 || iv_tensor_elements(low) != 1 || iv_tensor_elements(high) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "%lld bins, a DFT of %lld and a rate of %lld do not make sense",
                            (long long)plan->bins, (long long)plan->length, (long long)plan->rate);
    plan->low = iv_number_load(low->dtype, low->data, 0);
    plan->high = iv_number_load(high->dtype, high->data, 0);
    return IV_OK;
}

static int64_t plan_edge(const iv_mel_plan *plan, int64_t index) {
    return iv_signal_mel_edge(plan->low, plan->high, index, plan->bins, plan->length, plan->rate);
}

static iv_status eval_mel(iv_call *call) {
    iv_mel_plan plan;
    IV_TRY(iv_mel_read(call, &plan));
    iv_tensor *output;
    const int64_t dims[2] = {plan.length / 2 + 1, plan.bins};
    IV_TRY(iv_call_output_shape(call, 0, ((const iv_signal_params *)call->node->params)->dtype, 2,
                                dims, &output));
    for (int64_t bin = 0; bin < plan.bins; bin++)
        mel_column(output, bin, plan_edge(&plan, bin), plan_edge(&plan, bin + 1),
                   plan_edge(&plan, bin + 2));
    return IV_OK;
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

static iv_status start_transform(const iv_call *call, transform *work, int64_t length,
                                 bool inverse) {
    double *memory = iv_allocate_array((size_t)length, 4 * sizeof *memory);
    if (memory == NULL)
        return iv_fail_memory(call->error, (size_t)length * 4 * sizeof *memory);
    *work = (transform){
        length, inverse, memory, memory + length, memory + 2 * length, memory + 3 * length};
    for (int64_t i = 0; i < length; i++)
        iv_signal_root(i, length, &work->cosines[i], &work->sines[i]);
    return IV_OK;
}

static void transform_one(const transform *work, int64_t k, double *real, double *imaginary) {
    double re = 0.0, im = 0.0;
    int64_t turn = 0;
    for (int64_t m = 0; m < work->length; m++) {
        double c = work->cosines[turn], s = work->inverse ? -work->sines[turn] : work->sines[turn];
        iv_signal_accumulate(work->real[m], work->imaginary[m], c, s, &re, &im);
        turn += k;
        turn = turn >= work->length ? turn - work->length : turn;
    }
    *real = work->inverse ? re / (double)work->length : re;
    *imaginary = work->inverse ? im / (double)work->length : im;
}

static iv_status prepare_transform(iv_node *node, iv_error *error) {
    iv_signal_params *params = node->params;
    bool framed = strcmp(node->op->name, "STFT") == 0;
    int64_t inverse, onesided;
    IV_TRY(iv_node_int(node, "axis", node->version < 20 ? 1 : -2, &params->axis, error));
    IV_TRY(iv_node_int(node, "inverse", 0, &inverse, error));
    IV_TRY(iv_node_int(node, "onesided", framed ? 1 : 0, &onesided, error));
    params->inverse = inverse != 0;
    params->onesided = onesided != 0;
    return IV_OK;
}

static iv_dim half_spectrum(iv_scope *scope, iv_dim length) {
    return iv_dim_add(scope, iv_dim_floor_divide(scope, length, iv_dim_constant(scope, 2)),
                      iv_dim_constant(scope, 1));
}

/* ---- DFT ---- */

static iv_status infer_dft(iv_infer *infer) {
    const iv_signal_params *params = infer->node->params;
    const iv_fact *input;
    iv_dim length, axis_value;
    int64_t where = params->axis, parts;
    int axis;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    IV_TRY(one_formula(infer, 1, &length));
    IV_TRY(one_formula(infer, 2, &axis_value));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    if (input->rank < 2 ||
        (iv_dim_is_constant(input->dims[input->rank - 1], &parts) && parts != 1 && parts != 2))
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the last of two or more extents must be 1 or 2");
    bool axis_known = iv_infer_input(infer, 2) == NULL ||
                      (axis_value != NULL && iv_dim_is_constant(axis_value, &where));
    if (!axis_known) {
        iv_infer_open(infer, 0, input->dtype, input->rank);
        return IV_OK;
    }
    IV_TRY(iv_infer_axis(infer, where, input->rank, &axis));
    if (axis == input->rank - 1)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "axis %d holds real and imaginary parts", axis);
    iv_dim dims[IV_MAX_RANK];
    iv_scope *scope = infer->scope;
    bool to_real = params->inverse && params->onesided;
    memcpy(dims, input->dims, sizeof dims);
    if (length == NULL && iv_infer_input(infer, 1) != NULL)
        length = iv_infer_fresh(infer, 0, axis);
    else if (length == NULL)
        length =
            to_real ? iv_dim_multiply(scope, iv_dim_constant(scope, 2),
                                      iv_dim_subtract(scope, dims[axis], iv_dim_constant(scope, 1)))
                    : dims[axis];
    dims[axis] = params->onesided && !to_real ? half_spectrum(scope, length) : length;
    dims[input->rank - 1] = iv_dim_constant(scope, to_real ? 1 : 2);
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return IV_OK;
}

/* Reads one line along `axis` of the input: cut or filled with zeros to the length; half a spectrum
 * is completed by its mirror image. */
static void read_line(const iv_tensor *input, int axis, int64_t offset, bool mirror,
                      transform *work) {
    bool complex = input->dims[input->rank - 1] == 2;
    int64_t step = input->strides[axis], part = input->strides[input->rank - 1];
    for (int64_t m = 0; m < work->length; m++) {
        bool reflected = mirror && m > work->length / 2;
        int64_t from = reflected ? work->length - m : m;
        bool there = from < input->dims[axis];
        int64_t at = offset + from * step;
        work->real[m] = there ? iv_number_load(input->dtype, input->data, at) : 0.0;
        work->imaginary[m] =
            there && complex ? iv_number_load(input->dtype, input->data, at + part) : 0.0;
        if (reflected)
            work->imaginary[m] = -work->imaginary[m];
    }
}

iv_status iv_dft_read(const iv_call *call, iv_dft_plan *plan) {
    const iv_signal_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t where, extent;
    int last = input->rank - 1;
    plan->to_real = params->inverse && params->onesided;
    IV_TRY(one_integer(call, 2, params->axis, &where));
    IV_TRY(iv_move_axis(call, where, input->rank, &plan->axis));
    extent = input->dims[plan->axis];
    IV_TRY(one_integer(call, 1, plan->to_real ? 2 * (extent - 1) : extent, &plan->length));
    if (plan->length < 1 || plan->length > INT32_MAX || plan->axis == last ||
        (input->dims[last] != 1 && input->dims[last] != 2))
        return iv_call_fail(call, IV_ERROR_SHAPE, "a DFT of length %lld along axis %d of rank %d",
                            (long long)plan->length, plan->axis, input->rank);
    memcpy(plan->dims, input->dims, sizeof plan->dims);
    plan->dims[plan->axis] =
        params->onesided && !plan->to_real ? plan->length / 2 + 1 : plan->length;
    plan->dims[last] = plan->to_real ? 1 : 2;
    return IV_OK;
}

static iv_status eval_dft(iv_call *call) {
    const iv_signal_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t lines[IV_MAX_RANK], index[IV_MAX_RANK] = {0};
    int last = input->rank - 1;
    iv_dft_plan plan;
    IV_TRY(iv_dft_read(call, &plan));
    int axis = plan.axis;
    bool to_real = plan.to_real;
    const int64_t *dims = plan.dims;
    iv_tensor *output;
    transform work;
    IV_TRY(iv_call_output_shape(call, 0, input->dtype, input->rank, dims, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    IV_TRY(start_transform(call, &work, plan.length, params->inverse));
    memcpy(lines, dims, sizeof lines);
    lines[axis] = lines[last] = 1;
    do {
        int64_t from = 0, to = 0;
        for (int d = 0; d < input->rank; d++) {
            from += index[d] * input->strides[d];
            to += index[d] * output->strides[d];
        }
        read_line(input, axis, from, to_real, &work);
        for (int64_t k = 0; k < dims[axis]; k++) {
            double real, imaginary;
            transform_one(&work, k, &real, &imaginary);
            iv_number_store(output->dtype, output->data, to + k * output->strides[axis], real);
            if (!to_real)
                iv_number_store(output->dtype, output->data, to + k * output->strides[axis] + 1,
                                imaginary);
        }
    } while (iv_move_next(input->rank, lines, index));
    iv_free(work.cosines);
    return IV_OK;
}

/* ---- STFT ---- */

static iv_status infer_stft(iv_infer *infer) {
    const iv_signal_params *params = infer->node->params;
    const iv_fact *signal, *window = iv_infer_input(infer, 2);
    iv_dim step, length;
    int64_t number;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &signal));
    IV_TRY(one_formula(infer, 1, &step));
    IV_TRY(one_formula(infer, 3, &length));
    if (window != NULL)
        IV_TRY(iv_infer_require(infer, 2, IV_SET(signal->dtype), &window));
    if (signal->rank != IV_RANK_UNKNOWN && signal->rank != 3)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the signal has rank %d, not 3", signal->rank);
    if (iv_infer_input(infer, 3) == NULL && window != NULL && window->rank == 1)
        length = window->dims[0];
    iv_infer_open(infer, 0, signal->dtype, 4);
    iv_dim *dims = infer->outputs[0].dims;
    iv_scope *scope = infer->scope;
    dims[3] = iv_dim_constant(scope, 2);
    if (length != NULL)
        dims[2] = params->onesided ? half_spectrum(scope, length) : length;
    if (signal->rank != 3)
        return IV_OK;
    dims[0] = signal->dims[0];
    if (length != NULL && step != NULL && iv_dim_is_constant(step, &number) && number > 0)
        dims[1] = iv_dim_add(
            scope, iv_dim_constant(scope, 1),
            iv_dim_floor_divide(scope, iv_dim_subtract(scope, signal->dims[1], length), step));
    return IV_OK;
}

/* Frame `frame` of one signal: its elements times the window. */
static void read_frame(const iv_tensor *signal, const iv_tensor *window, int64_t offset,
                       int64_t start, transform *work) {
    bool complex = signal->dims[2] == 2;
    for (int64_t m = 0; m < work->length; m++) {
        double weight = 1.0;
        if (window != NULL)
            weight = m < window->dims[0]
                         ? iv_number_load(window->dtype, window->data, m * window->strides[0])
                         : 0.0;
        int64_t at = offset + (start + m) * signal->strides[1];
        work->real[m] = iv_number_load(signal->dtype, signal->data, at) * weight;
        work->imaginary[m] =
            complex ? iv_number_load(signal->dtype, signal->data, at + signal->strides[2]) * weight
                    : 0.0;
    }
}

iv_status iv_stft_read(const iv_call *call, iv_stft_plan *plan) {
    const iv_signal_params *params = call->node->params;
    const iv_tensor *signal = iv_call_input(call, 0), *window = iv_call_input(call, 2);
    IV_TRY(one_integer(call, 1, 0, &plan->step));
    IV_TRY(one_integer(call, 3, window != NULL && window->rank == 1 ? window->dims[0] : 0,
                       &plan->length));
    if (signal->rank != 3 || (signal->dims[2] != 1 && signal->dims[2] != 2) || plan->step < 1 ||
        plan->length < 1 || plan->length > signal->dims[1] || plan->length > INT32_MAX ||
        (window != NULL && window->rank != 1))
        return iv_call_fail(
            call, IV_ERROR_SHAPE,
            "frames of %lld every %lld elements do not fit the signal, or the window is no list",
            (long long)plan->length, (long long)plan->step);
    plan->frames = (signal->dims[1] - plan->length) / plan->step + 1;
    plan->bins = params->onesided ? plan->length / 2 + 1 : plan->length;
    return IV_OK;
}

static iv_status eval_stft(iv_call *call) {
    const iv_tensor *signal = iv_call_input(call, 0), *window = iv_call_input(call, 2);
    iv_stft_plan plan;
    IV_TRY(iv_stft_read(call, &plan));
    int64_t frames = plan.frames, bins = plan.bins, step = plan.step;
    const int64_t dims[4] = {signal->dims[0], frames, bins, 2};
    iv_tensor *output;
    transform work;
    IV_TRY(iv_call_output_shape(call, 0, signal->dtype, 4, dims, &output));
    IV_TRY(start_transform(call, &work, plan.length, false));
    int64_t element = 0;
    for (int64_t b = 0; b < signal->dims[0]; b++) {
        for (int64_t frame = 0; frame < frames; frame++) {
            read_frame(signal, window, b * signal->strides[0], frame * step, &work);
            for (int64_t k = 0; k < bins; k++) {
                double real, imaginary;
                transform_one(&work, k, &real, &imaginary);
                iv_number_store(output->dtype, output->data, element++, real);
                iv_number_store(output->dtype, output->data, element++, imaginary);
            }
        }
    }
    iv_free(work.cosines);
    return IV_OK;
}

#define SIGNAL_OP(op_name, least, most, prepare_function, infer_function, eval_function)           \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most,                 \
        .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(iv_signal_params),            \
        .prepare = prepare_function, .infer = infer_function, .eval = eval_function                \
    }

const iv_op iv_ops_signal[] = {
    SIGNAL_OP("BlackmanWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("DFT", 1, 3, prepare_transform, infer_dft, eval_dft),
    SIGNAL_OP("HammingWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("HannWindow", 1, 1, prepare_window, infer_window, eval_window),
    SIGNAL_OP("MelWeightMatrix", 5, 5, prepare_window, infer_mel, eval_mel),
    SIGNAL_OP("STFT", 2, 4, prepare_transform, infer_stft, eval_stft),
    {0},
};
