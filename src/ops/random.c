/* Bernoulli, Multinomial, RandomNormal(Like), RandomUniform(Like).
 *
 * Every number is a function of the seed and of the element's index: the Philox4x32-10 block with
 * counter (index low, index high, class, 0) and key (bits of the seed as f32, 1), or key (0, 0)
 * without a seed, so that runs repeat. Words are used from the first. f16 and bf16 are computed in
 * f32 and rounded once (so that a uniform number may round up to its upper bound). */
#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "numerics/philox.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"

typedef struct random_params {
    iv_dtype dtype; /* NONE: the input's */
    uint32_t key[2];
    float first, second; /* low and high, or mean and scale */
    int64_t sample_size;
    int rank;
    int64_t shape[IV_MAX_RANK];
} random_params;

static iv_status prepare_seed(iv_node *node, iv_dtype otherwise, iv_error *error) {
    random_params *params = node->params;
    float seed;
    IV_TRY(iv_node_float(node, "seed", 0.0f, &seed, error));
    if (iv_node_has(node, "seed")) {
        params->key[0] = iv_bits_from_f32(seed);
        params->key[1] = 1;
    }
    return iv_node_element_type(node, "dtype", otherwise, &params->dtype, error);
}

static iv_status check_dtype(const iv_node *node, uint32_t allowed, iv_error *error) {
    iv_dtype dtype = ((const random_params *)node->params)->dtype;
    if (dtype != IV_DTYPE_NONE && (allowed & IV_SET(dtype)) == 0)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "node %s (%s): cannot make random %s",
                       node->name, node->op->name, iv_dtype_name(dtype));
    return IV_OK;
}

static bool is_normal(const iv_node *node) {
    return strncmp(node->op->name, "RandomNormal", 12) == 0;
}

static iv_status prepare_distribution(iv_node *node, iv_dtype otherwise, iv_error *error) {
    random_params *params = node->params;
    bool normal = is_normal(node);
    IV_TRY(prepare_seed(node, otherwise, error));
    IV_TRY(iv_node_float(node, normal ? "mean" : "low", 0.0f, &params->first, error));
    IV_TRY(iv_node_float(node, normal ? "scale" : "high", 1.0f, &params->second, error));
    return check_dtype(node, IV_SET_FLOAT, error);
}

static iv_status prepare_like(iv_node *node, iv_error *error) {
    return prepare_distribution(node, IV_DTYPE_NONE, error);
}

static iv_status prepare_shaped(iv_node *node, iv_error *error) {
    random_params *params = node->params;
    int64_t rank, elements;
    const int64_t *shape;
    IV_TRY(prepare_distribution(node, IV_F32, error));
    IV_TRY(iv_node_ints(node, "shape", &rank, &shape, error));
    if (rank > IV_MAX_RANK || !iv_node_has(node, "shape"))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): needs a shape of at most %d extents", node->name,
                       node->op->name, IV_MAX_RANK);
    params->rank = (int)rank;
    if (rank != 0)
        memcpy(params->shape, shape, (size_t)rank * sizeof *shape);
    return iv_count_elements(params->dtype, params->rank, params->shape, &elements, error);
}

static iv_status prepare_multinomial(iv_node *node, iv_error *error) {
    random_params *params = node->params;
    IV_TRY(prepare_seed(node, IV_S32, error));
    IV_TRY(iv_node_int(node, "sample_size", 1, &params->sample_size, error));
    if (params->sample_size < 1)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: sample_size is %lld", node->name,
                       (long long)params->sample_size);
    return check_dtype(node, IV_SET_INDEX, error);
}

static iv_status prepare_bernoulli(iv_node *node, iv_error *error) {
    IV_TRY(prepare_seed(node, IV_DTYPE_NONE, error));
    return check_dtype(node, IV_SET_PLAIN, error);
}

/* ---- numbers ---- */

static iv_philox_block random_block(const random_params *params, int64_t index, int64_t category) {
    iv_philox_block counter = {
        {(uint32_t)index, (uint32_t)((uint64_t)index >> 32), (uint32_t)category, 0}};
    return iv_philox4x32_10(counter, params->key[0], params->key[1]);
}

/* first + u·(second - first), each operation rounded; u has 24 bits (53 for f64). */
static double uniform(const random_params *params, iv_dtype dtype, int64_t index) {
    iv_philox_block block = random_block(params, index, 0);
    if (dtype == IV_F64) {
        double span = (double)params->second - (double)params->first;
        return (double)params->first + iv_uniform_f64(block.word[0], block.word[1]) * span;
    }
    float span = params->second - params->first;
    return params->first + iv_uniform_f32(block.word[0]) * span;
}

/* Box and Muller's transform: first + second·(sqrt(-2 ln u)·cos(2π v)), in f32 (f64 for f64). */
static double normal(const random_params *params, iv_dtype dtype, int64_t index) {
    iv_philox_block block = random_block(params, index, 0);
    if (dtype == IV_F64) {
        /* 53 bits and a half, so that the logarithm is finite. */
        double u = iv_uniform_f64(block.word[0], block.word[1]) + 5.5511151231257827e-17;
        double v = iv_uniform_f64(block.word[2], block.word[3]);
        double radius = iv_sqrt_f64(-2.0 * iv_log_f64(u));
        return (double)params->first +
               (double)params->second * (radius * iv_cos_f64(6.283185307179586 * v));
    }
    float radius = iv_sqrt_f32(-2.0f * iv_log_f32(iv_uniform_open_f32(block.word[0])));
    float angle = 6.2831853f * iv_uniform_f32(block.word[1]);
    return params->first + params->second * (radius * iv_cos_f32(angle));
}

static iv_status eval_distribution(iv_call *call) {
    const random_params *params = call->node->params;
    bool gaussian = is_normal(call->node);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    int64_t elements = iv_tensor_elements(output);
    for (int64_t i = 0; i < elements; i++)
        iv_number_store(output->dtype, output->data, i,
                        gaussian ? normal(params, output->dtype, i)
                                 : uniform(params, output->dtype, i));
    return IV_OK;
}

static iv_status infer_shaped(iv_infer *infer) {
    const random_params *params = infer->node->params;
    iv_dim dims[IV_MAX_RANK];
    for (int i = 0; i < params->rank; i++)
        dims[i] = iv_dim_constant(infer->scope, params->shape[i]);
    iv_fact_set_tensor(&infer->outputs[0], params->dtype, params->rank, dims);
    return IV_OK;
}

static iv_status infer_like(iv_infer *infer) {
    const random_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, params->dtype != IV_DTYPE_NONE ? IV_SET_ANY : IV_SET_FLOAT,
                            &input));
    iv_infer_shape_of(infer, 0, input,
                      params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype);
    return IV_OK;
}

/* ---- Bernoulli ---- */

static iv_status infer_bernoulli(iv_infer *infer) {
    const random_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    iv_infer_shape_of(infer, 0, input,
                      params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype);
    return IV_OK;
}

/* 1 where u < p, else 0; u has 24 bits, so that a probability of 1 always gives 1. */
static iv_status eval_bernoulli(iv_call *call) {
    const random_params *params = call->node->params;
    iv_tensor *input, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(input);
    for (int64_t i = 0; i < elements; i++) {
        double u = iv_uniform_f32(random_block(params, i, 0).word[0]);
        iv_number_store(output->dtype, output->data, i,
                        u < iv_number_load(input->dtype, input->data, i) ? 1.0 : 0.0);
    }
    iv_tensor_release(input);
    return IV_OK;
}

/* ---- Multinomial ---- */

static iv_status infer_multinomial(iv_infer *infer) {
    const random_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    if (input->rank != IV_RANK_UNKNOWN && input->rank != 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    iv_infer_open(infer, 0, params->dtype, 2);
    if (input->rank == 2)
        infer->outputs[0].dims[0] = input->dims[0];
    infer->outputs[0].dims[1] = iv_dim_constant(infer->scope, params->sample_size);
    return IV_OK;
}

/* The class that maximises logit - ln(-ln u), u being the class's own number (Gumbel-max): no sum
 * over the classes, so no order of one. In f32; ties go to the lower class. */
static int64_t sample_class(const random_params *params, const iv_tensor *input, int64_t row,
                            int64_t index) {
    int64_t classes = input->dims[1], best = 0;
    float best_score = 0.0f;
    for (int64_t c = 0; c < classes; c++) {
        float u = iv_uniform_open_f32(random_block(params, index, c).word[0]);
        float logit = (float)iv_number_load(input->dtype, input->data, row * classes + c);
        float score = logit - iv_log_f32(-iv_log_f32(u));
        if (c == 0 || iv_argmax_beats_f32(score, c, best_score, best)) {
            best = c;
            best_score = score;
        }
    }
    return best;
}

static iv_status eval_multinomial(iv_call *call) {
    const random_params *params = call->node->params;
    iv_tensor *input, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(output);
    iv_status status = IV_OK;
    if (input->dims[1] == 0 && elements != 0)
        status = iv_call_fail(call, IV_ERROR_SHAPE, "there is no class to choose");
    for (int64_t i = 0; i < elements && status == IV_OK; i++)
        iv_number_store(output->dtype, output->data, i,
                        (double)sample_class(params, input, i / params->sample_size, i));
    iv_tensor_release(input);
    return status;
}

#define RANDOM_OP(op_name, inputs, prepare_function, infer_function, eval_function)                \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = inputs, .most_inputs = inputs,              \
        .least_outputs = 1, .most_outputs = 1, .flags = IV_OP_RANDOM,                              \
        .params_size = sizeof(random_params), .prepare = prepare_function,                         \
        .infer = infer_function, .eval = eval_function                                             \
    }

const iv_op iv_ops_random[] = {
    RANDOM_OP("Bernoulli", 1, prepare_bernoulli, infer_bernoulli, eval_bernoulli),
    RANDOM_OP("Multinomial", 1, prepare_multinomial, infer_multinomial, eval_multinomial),
    RANDOM_OP("RandomNormal", 0, prepare_shaped, infer_shaped, eval_distribution),
    RANDOM_OP("RandomNormalLike", 1, prepare_like, infer_like, eval_distribution),
    RANDOM_OP("RandomUniform", 0, prepare_shaped, infer_shaped, eval_distribution),
    RANDOM_OP("RandomUniformLike", 1, prepare_like, infer_like, eval_distribution),
    {0},
};
