/* Bernoulli, Multinomial, RandomNormal(Like), RandomUniform(Like).
 *
 * Every number is a function of the seed and of the element's index: the Philox4x32-10 block with
 * counter (index low, index high, class, 0) and key (bits of the seed as f32, 1), or key (0, 0)
 * without a seed, so that runs repeat. Words are used from the first. f16 and bf16 are computed in
 * f32 and rounded once (so that a sb_random_uniform number may round up to its upper bound). */
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/random_values.h"

_Static_assert(SB_RANDOM_RANK == SB_MAX_RANK, "a shape has as many extents as a tensor");

static sb_status prepare_seed(sb_node *node, sb_dtype otherwise, sb_error *error) {
    sb_random_params *params = node->params;
    float seed;
    SB_TRY(sb_node_float(node, "seed", 0.0f, &seed, error));
    if (sb_node_has(node, "seed")) {
        params->key[0] = sb_bits_from_f32(seed);
        params->key[1] = 1;
    }
    return sb_node_element_type(node, "dtype", otherwise, &params->dtype, error);
}

static sb_status check_dtype(const sb_node *node, uint32_t allowed, sb_error *error) {
    sb_dtype dtype = ((const sb_random_params *)node->params)->dtype;
    if (dtype != SB_DTYPE_NONE && (allowed & SB_SET(dtype)) == 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s (%s): cannot make random %s", node->name, node->op->name,
                       sb_dtype_name(dtype));
    return SB_OK;
}

static bool is_normal(const sb_node *node) {
    return strncmp(node->op->name, "RandomNormal", 12) == 0;
}

static sb_status prepare_distribution(sb_node *node, sb_dtype otherwise, sb_error *error) {
    sb_random_params *params = node->params;
    bool gaussian = is_normal(node);
    SB_TRY(prepare_seed(node, otherwise, error));
    SB_TRY(sb_node_float(node, gaussian ? "mean" : "low", 0.0f, &params->first, error));
    SB_TRY(sb_node_float(node, gaussian ? "scale" : "high", 1.0f, &params->second, error));
    return check_dtype(node, SB_SET_FLOAT, error);
}

static sb_status prepare_like(sb_node *node, sb_error *error) {
    return prepare_distribution(node, SB_DTYPE_NONE, error);
}

static sb_status prepare_shaped(sb_node *node, sb_error *error) {
    sb_random_params *params = node->params;
    int64_t rank, elements;
    const int64_t *shape;
    SB_TRY(prepare_distribution(node, SB_F32, error));
    SB_TRY(sb_node_ints(node, "shape", &rank, &shape, error));
    if (rank > SB_MAX_RANK || !sb_node_has(node, "shape"))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): needs a shape of at most %d extents", node->name,
                       node->op->name, SB_MAX_RANK);
    params->rank = (int)rank;
    if (rank != 0)
        memcpy(params->shape, shape, (size_t)rank * sizeof *shape);
    return sb_count_elements(params->dtype, params->rank, params->shape, &elements, error);
}

static sb_status prepare_multinomial(sb_node *node, sb_error *error) {
    sb_random_params *params = node->params;
    SB_TRY(prepare_seed(node, SB_S32, error));
    SB_TRY(sb_node_int(node, "sample_size", 1, &params->sample_size, error));
    if (params->sample_size < 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: sample_size is %lld", node->name,
                       (long long)params->sample_size);
    return check_dtype(node, SB_SET_INDEX, error);
}

static sb_status prepare_bernoulli(sb_node *node, sb_error *error) {
    SB_TRY(prepare_seed(node, SB_DTYPE_NONE, error));
    return check_dtype(node, SB_SET_PLAIN, error);
}

/* ---- distributions ---- */

static sb_status eval_distribution(sb_call *call) {
    const sb_random_params *params = call->node->params;
    bool gaussian = is_normal(call->node);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    int64_t elements = sb_tensor_elements(output);
    for (int64_t i = 0; i < elements; i++)
        sb_number_store(output->dtype, output->data, i,
                        gaussian ? sb_random_normal(params, output->dtype, i)
                                 : sb_random_uniform(params, output->dtype, i));
    return SB_OK;
}

static sb_status infer_shaped(sb_infer *infer) {
    const sb_random_params *params = infer->node->params;
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < params->rank; i++)
        dims[i] = sb_dim_constant(infer->scope, params->shape[i]);
    sb_fact_set_tensor(&infer->outputs[0], params->dtype, params->rank, dims);
    return SB_OK;
}

static sb_status infer_like(sb_infer *infer) {
    const sb_random_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, params->dtype != SB_DTYPE_NONE ? SB_SET_ANY : SB_SET_FLOAT, &input));
    sb_infer_shape_of(infer, 0, input, params->dtype != SB_DTYPE_NONE ? params->dtype : input->dtype);
    return SB_OK;
}

/* ---- Bernoulli ---- */

static sb_status infer_bernoulli(sb_infer *infer) {
    const sb_random_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    sb_infer_shape_of(infer, 0, input, params->dtype != SB_DTYPE_NONE ? params->dtype : input->dtype);
    return SB_OK;
}

static sb_status eval_bernoulli(sb_call *call) {
    const sb_random_params *params = call->node->params;
    sb_tensor *input, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t elements = sb_tensor_elements(input);
    for (int64_t i = 0; i < elements; i++) {
        double p = sb_number_load(input->dtype, input->data, i);
        sb_number_store(output->dtype, output->data, i, sb_random_bernoulli(params, p, i));
    }
    sb_tensor_release(input);
    return SB_OK;
}

/* ---- Multinomial ---- */

static sb_status infer_multinomial(sb_infer *infer) {
    const sb_random_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    if (input->rank != SB_RANK_UNKNOWN && input->rank != 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    sb_infer_open(infer, 0, params->dtype, 2);
    if (input->rank == 2)
        infer->outputs[0].dims[0] = input->dims[0];
    infer->outputs[0].dims[1] = sb_dim_constant(infer->scope, params->sample_size);
    return SB_OK;
}

static sb_status eval_multinomial(sb_call *call) {
    const sb_random_params *params = call->node->params;
    sb_tensor *input, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t elements = sb_tensor_elements(output);
    sb_status status = SB_OK;
    if (input->dims[1] == 0 && elements != 0)
        status = sb_call_fail(call, SB_ERROR_SHAPE, "there is no class to choose");
    for (int64_t i = 0; i < elements && status == SB_OK; i++)
        sb_number_store(
            output->dtype, output->data, i,
            (double)sb_random_class(params, input->dtype, input->data, input->dims[1], i / params->sample_size, i));
    sb_tensor_release(input);
    return status;
}

#define RANDOM_OP(op_name, inputs, prepare_function, infer_function, eval_function)                                    \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = inputs, .most_inputs = inputs, .least_outputs = 1,              \
        .most_outputs = 1, .flags = SB_OP_RANDOM, .params_size = sizeof(sb_random_params),                             \
        .prepare = prepare_function, .infer = infer_function, .eval = eval_function                                    \
    }

const sb_op sb_ops_random[] = {
    RANDOM_OP("Bernoulli", 1, prepare_bernoulli, infer_bernoulli, eval_bernoulli),
    RANDOM_OP("Multinomial", 1, prepare_multinomial, infer_multinomial, eval_multinomial),
    RANDOM_OP("RandomNormal", 0, prepare_shaped, infer_shaped, eval_distribution),
    RANDOM_OP("RandomNormalLike", 1, prepare_like, infer_like, eval_distribution),
    RANDOM_OP("RandomUniform", 0, prepare_shaped, infer_shaped, eval_distribution),
    RANDOM_OP("RandomUniformLike", 1, prepare_like, infer_like, eval_distribution),
    {0},
};
