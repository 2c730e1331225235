/* Bernoulli, Multinomial, RandomNormal(Like), RandomUniform(Like).
 *
 * Every number is a function of the seed and of the element's index: the Philox4x32-10 block with
 * counter (index low, index high, class, 0) and key (bits of the seed as f32, 1), or key (0, 0)
 * without a seed, so that runs repeat. Words are used from the first. f16 and bf16 are computed in
 * f32 and rounded once (so that a iv_random_uniform number may round up to its upper bound). */
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/random_values.h"

_Static_assert(IV_RANDOM_RANK == IV_MAX_RANK, "a shape has as many extents as a tensor");

static iv_status prepare_seed(iv_node *node, iv_dtype otherwise, iv_error *error) {
    iv_random_params *params = node->params;
    float seed;
    IV_TRY(iv_node_float(node, "seed", 0.0f, &seed, error));
    if (iv_node_has(node, "seed")) {
        params->key[0] = iv_bits_from_f32(seed);
        params->key[1] = 1;
    }
    return iv_node_element_type(node, "dtype", otherwise, &params->dtype, error);
}

static iv_status check_dtype(const iv_node *node, uint32_t allowed, iv_error *error) {
    iv_dtype dtype = ((const iv_random_params *)node->params)->dtype;
    if (dtype != IV_DTYPE_NONE && (allowed & IV_SET(dtype)) == 0)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "node %s (%s): cannot make random %s",
                       node->name, node->op->name, iv_dtype_name(dtype));
    return IV_OK;
}

static bool is_normal(const iv_node *node) {
    return strncmp(node->op->name, "RandomNormal", 12) == 0;
}

static iv_status prepare_distribution(iv_node *node, iv_dtype otherwise, iv_error *error) {
    iv_random_params *params = node->params;
    bool gaussian = is_normal(node);
    IV_TRY(prepare_seed(node, otherwise, error));
    IV_TRY(iv_node_float(node, gaussian ? "mean" : "low", 0.0f, &params->first, error));
    IV_TRY(iv_node_float(node, gaussian ? "scale" : "high", 1.0f, &params->second, error));
    return check_dtype(node, IV_SET_FLOAT, error);
}

static iv_status prepare_like(iv_node *node, iv_error *error) {
    return prepare_distribution(node, IV_DTYPE_NONE, error);
}

static iv_status prepare_shaped(iv_node *node, iv_error *error) {
    iv_random_params *params = node->params;
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
    iv_random_params *params = node->params;
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

/* ---- distributions ---- */

static iv_status eval_distribution(iv_call *call) {
    const iv_random_params *params = call->node->params;
    bool gaussian = is_normal(call->node);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    int64_t elements = iv_tensor_elements(output);
    for (int64_t i = 0; i < elements; i++)
        iv_number_store(output->dtype, output->data, i,
                        gaussian ? iv_random_normal(params, output->dtype, i)
                                 : iv_random_uniform(params, output->dtype, i));
    return IV_OK;
}

static iv_status infer_shaped(iv_infer *infer) {
    const iv_random_params *params = infer->node->params;
    iv_dim dims[IV_MAX_RANK];
    for (int i = 0; i < params->rank; i++)
        dims[i] = iv_dim_constant(infer->scope, params->shape[i]);
    iv_fact_set_tensor(&infer->outputs[0], params->dtype, params->rank, dims);
    return IV_OK;
}

static iv_status infer_like(iv_infer *infer) {
    const iv_random_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, params->dtype != IV_DTYPE_NONE ? IV_SET_ANY : IV_SET_FLOAT,
                            &input));
    iv_infer_shape_of(infer, 0, input,
                      params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype);
    return IV_OK;
}

/* ---- Bernoulli ---- */

static iv_status infer_bernoulli(iv_infer *infer) {
    const iv_random_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    iv_infer_shape_of(infer, 0, input,
                      params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype);
    return IV_OK;
}

static iv_status eval_bernoulli(iv_call *call) {
    const iv_random_params *params = call->node->params;
    iv_tensor *input, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(input);
    for (int64_t i = 0; i < elements; i++) {
        double p = iv_number_load(input->dtype, input->data, i);
        iv_number_store(output->dtype, output->data, i, iv_random_bernoulli(params, p, i));
    }
    iv_tensor_release(input);
    return IV_OK;
}

/* ---- Multinomial ---- */

static iv_status infer_multinomial(iv_infer *infer) {
    const iv_random_params *params = infer->node->params;
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

static iv_status eval_multinomial(iv_call *call) {
    const iv_random_params *params = call->node->params;
    iv_tensor *input, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(output);
    iv_status status = IV_OK;
    if (input->dims[1] == 0 && elements != 0)
        status = iv_call_fail(call, IV_ERROR_SHAPE, "there is no class to choose");
    for (int64_t i = 0; i < elements && status == IV_OK; i++)
        iv_number_store(output->dtype, output->data, i,
                        (double)iv_random_class(params, input->dtype, input->data, input->dims[1],
                                                i / params->sample_size, i));
    iv_tensor_release(input);
    return status;
}

#define RANDOM_OP(op_name, inputs, prepare_function, infer_function, eval_function)                \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = inputs, .most_inputs = inputs,              \
        .least_outputs = 1, .most_outputs = 1, .flags = IV_OP_RANDOM,                              \
        .params_size = sizeof(iv_random_params), .prepare = prepare_function,                      \
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
