/* Spectra and windows: BlackmanWindow, DFT, HammingWindow, HannWindow, MelWeightMatrix, STFT. All
 * are evaluated in f64 and rounded once. */
#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"

typedef struct signal_params {
    iv_dtype dtype;
    bool periodic, inverse, onesided;
    int64_t axis;
} signal_params;

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

/* cos and sin of 2π·index/length, index in [0, length). The quadrant is split off exactly, so that
 * multiples of a quarter turn are. */
static void unit_root(int64_t index, int64_t length, double *cosine, double *sine) {
    int64_t quadrant = 4 * index / length,
            rest = 4 * index % length; /* sizes of tensors are far below 2^61 */
    double angle = (double)rest / (double)length * 1.5707963267948966;
    double c = iv_cos_f64(angle), s = iv_sin_f64(angle);
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

/* ---- windows ---- */

static iv_status prepare_window(iv_node *node, iv_error *error) {
    signal_params *params = node->params;
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
    iv_fact_set_tensor(&infer->outputs[0], ((const signal_params *)infer->node->params)->dtype, 1,
                       &size);
    return IV_OK;
}

/* a + b·cos(2πn/N) + c·cos(4πn/N), added in that order, with N the size (periodic) or the size less
 * 1 (symmetric). The only element of a symmetric window of one is 1. */
static iv_status eval_cosines(iv_call *call, double a, double b, double c) {
    const signal_params *params = call->node->params;
    int64_t size;
    iv_tensor *output;
    IV_TRY(one_integer(call, 0, 0, &size));
    IV_TRY(iv_call_output_shape(call, 0, params->dtype, 1, &size, &output));
    int64_t period = params->periodic ? size : size - 1;
    for (int64_t n = 0; n < size; n++) {
        double once, twice, ignored, value = 1.0;
        if (period > 0) {
            unit_root(n % period, period, &once, &ignored);
            unit_root(2 * n % period, period, &twice, &ignored);
            value = a + b * once + c * twice;
        }
        iv_number_store(params->dtype, output->data, n, value);
    }
    return IV_OK;
}

static iv_status eval_blackman(iv_call *call) {
    return eval_cosines(call, 0.42, -0.5, 0.08);
}

static iv_status eval_hann(iv_call *call) {
    return eval_cosines(call, 0.5, -0.5, 0.0);
}

static iv_status eval_hamming(iv_call *call) {
    return eval_cosines(call, 25.0 / 46.0, -21.0 / 46.0, 0.0);
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
    iv_fact_set_tensor(&infer->outputs[0], ((const signal_params *)infer->node->params)->dtype, 2,
                       dims);
    return IV_OK;
}

/* The spectrogram bin of edge `index`: edges lie at equal steps on the mel scale m = 2595·log10(1 +
 * f/700). */
static int64_t mel_edge(double low, double high, int64_t index, int64_t bins, int64_t length,
                        int64_t rate) {
    const double ln10 = 2.302585092994046;
    double low_mel = 2595.0 * iv_log1p_f64(low / 700.0) / ln10;
    double high_mel = 2595.0 * iv_log1p_f64(high / 700.0) / ln10;
    double mel = (double)index * ((high_mel - low_mel) / (double)(bins + 2)) + low_mel;
    double hertz = 700.0 * iv_expm1_f64(mel / 2595.0 * ln10);
    return iv_i64_from_f64(__builtin_floor((double)(length + 1) * hertz / (double)rate));
}

/* Column `bin`: a triangle that rises from its left edge to its centre and falls to its right edge.
 */
static void mel_column(iv_tensor *output, int64_t bin, int64_t left, int64_t centre,
                       int64_t right) {
    int64_t rows = output->dims[0], columns = output->dims[1];
    for (int64_t row = 0; row < rows; row++) {
        double weight = 0.0;
        if (row >= centre && row < right)
            weight = (double)(right - row) / (double)(right - centre);
        else if (row == centre)
            weight = 1.0;
        else if (row >= left && row < centre)
            weight = (double)(row - left) / (double)(centre - left);
        iv_number_store(output->dtype, output->data, row * columns + bin, weight);
    }
}

static iv_status eval_mel(iv_call *call) {
    int64_t bins, length, rate;
    IV_TRY(one_integer(call, 0, 0, &bins));
    IV_TRY(one_integer(call, 1, 0, &length));
    IV_TRY(one_integer(call, 2, 0, &rate));
    const iv_tensor *low = iv_call_input(call, 3), *high = iv_call_input(call, 4);
    if (bins < 0 || bins > INT32_MAX || length < 0 || length > INT32_MAX || rate < 1 ||
        iv_tensor_elements(low) != 1 || iv_tensor_elements(high) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "%lld bins, a DFT of %lld and a rate of %lld do not make sense",
                            (long long)bins, (long long)length, (long long)rate);
    iv_tensor *output;
    const int64_t dims[2] = {length / 2 + 1, bins};
    IV_TRY(iv_call_output_shape(call, 0, ((const signal_params *)call->node->params)->dtype, 2,
                                dims, &output));
    double from = iv_number_load(low->dtype, low->data, 0),
           to = iv_number_load(high->dtype, high->data, 0);
    for (int64_t bin = 0; bin < bins; bin++)
        mel_column(output, bin, mel_edge(from, to, bin, bins, length, rate),
                   mel_edge(from, to, bin + 1, bins, length, rate),
                   mel_edge(from, to, bin + 2, bins, length, rate));
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
        unit_root(i, length, &work->cosines[i], &work->sines[i]);
    return IV_OK;
}

static void transform_one(const transform *work, int64_t k, double *real, double *imaginary) {
    double re = 0.0, im = 0.0;
    int64_t turn = 0;
    for (int64_t m = 0; m < work->length; m++) {
        double c = work->cosines[turn], s = work->inverse ? -work->sines[turn] : work->sines[turn];
        re = iv_fma_f64(work->real[m], c, re);
        re = iv_fma_f64(work->imaginary[m], s, re);
        im = iv_fma_f64(-work->real[m], s, im);
        im = iv_fma_f64(work->imaginary[m], c, im);
        turn += k;
        turn = turn >= work->length ? turn - work->length : turn;
    }
    *real = work->inverse ? re / (double)work->length : re;
    *imaginary = work->inverse ? im / (double)work->length : im;
}

static iv_status prepare_transform(iv_node *node, iv_error *error) {
    signal_params *params = node->params;
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
    const signal_params *params = infer->node->params;
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

static iv_status eval_dft(iv_call *call) {
    const signal_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t where, length, lines[IV_MAX_RANK], dims[IV_MAX_RANK], index[IV_MAX_RANK] = {0};
    int axis, last = input->rank - 1;
    bool to_real = params->inverse && params->onesided;
    IV_TRY(one_integer(call, 2, params->axis, &where));
    IV_TRY(iv_move_axis(call, where, input->rank, &axis));
    IV_TRY(
        one_integer(call, 1, to_real ? 2 * (input->dims[axis] - 1) : input->dims[axis], &length));
    if (length < 1 || length > INT32_MAX || axis == last ||
        (input->dims[last] != 1 && input->dims[last] != 2))
        return iv_call_fail(call, IV_ERROR_SHAPE, "a DFT of length %lld along axis %d of rank %d",
                            (long long)length, axis, input->rank);
    memcpy(dims, input->dims, sizeof dims);
    dims[axis] = params->onesided && !to_real ? length / 2 + 1 : length;
    dims[last] = to_real ? 1 : 2;
    iv_tensor *output;
    transform work;
    IV_TRY(iv_call_output_shape(call, 0, input->dtype, input->rank, dims, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    IV_TRY(start_transform(call, &work, length, params->inverse));
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
    const signal_params *params = infer->node->params;
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

static iv_status eval_stft(iv_call *call) {
    const signal_params *params = call->node->params;
    const iv_tensor *signal = iv_call_input(call, 0), *window = iv_call_input(call, 2);
    int64_t step, length;
    IV_TRY(one_integer(call, 1, 0, &step));
    IV_TRY(
        one_integer(call, 3, window != NULL && window->rank == 1 ? window->dims[0] : 0, &length));
    if (signal->rank != 3 || (signal->dims[2] != 1 && signal->dims[2] != 2) || step < 1 ||
        length < 1 || length > signal->dims[1] || length > INT32_MAX ||
        (window != NULL && window->rank != 1))
        return iv_call_fail(
            call, IV_ERROR_SHAPE,
            "frames of %lld every %lld elements do not fit the signal, or the window is no list",
            (long long)length, (long long)step);
    int64_t frames = (signal->dims[1] - length) / step + 1,
            bins = params->onesided ? length / 2 + 1 : length;
    const int64_t dims[4] = {signal->dims[0], frames, bins, 2};
    iv_tensor *output;
    transform work;
    IV_TRY(iv_call_output_shape(call, 0, signal->dtype, 4, dims, &output));
    IV_TRY(start_transform(call, &work, length, false));
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
        .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(signal_params),               \
        .prepare = prepare_function, .infer = infer_function, .eval = eval_function                \
    }

const iv_op iv_ops_signal[] = {
    SIGNAL_OP("BlackmanWindow", 1, 1, prepare_window, infer_window, eval_blackman),
    SIGNAL_OP("DFT", 1, 3, prepare_transform, infer_dft, eval_dft),
    SIGNAL_OP("HammingWindow", 1, 1, prepare_window, infer_window, eval_hamming),
    SIGNAL_OP("HannWindow", 1, 1, prepare_window, infer_window, eval_hann),
    SIGNAL_OP("MelWeightMatrix", 5, 5, prepare_window, infer_mel, eval_mel),
    SIGNAL_OP("STFT", 2, 4, prepare_transform, infer_stft, eval_stft),
    {0},
};
