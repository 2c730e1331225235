/* Tensors out of attributes and extents: Constant, ConstantOfShape, EyeLike, Range, Shape, Size. */
#include "ops/constants.h"

#include "base/allocation.h"
#include "numerics/convert.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "tensor/walk.h"

/* ---- Constant ---- */

typedef struct constant_params {
    iv_tensor *tensor;
} constant_params;

static iv_status constant_of_list(const iv_attribute *attribute, iv_tensor **tensor,
                                  iv_error *error) {
    int rank = attribute->scalar ? 0 : 1;
    int64_t dims[1] = {attribute->count};
    if (attribute->kind == IV_ATTRIBUTE_FLOATS)
        return iv_tensor_from_data(IV_F32, rank, dims, attribute->floats, tensor, error);
    if (attribute->kind == IV_ATTRIBUTE_INTS)
        return iv_tensor_from_data(IV_S64, rank, dims, attribute->ints, tensor, error);
    iv_string *texts = iv_allocate_array((size_t)attribute->count, sizeof *texts);
    if (texts == NULL)
        return iv_fail_memory(error, (size_t)attribute->count * sizeof *texts);
    for (int64_t i = 0; i < attribute->count; i++)
        texts[i] = (iv_string){attribute->strings[i], strlen(attribute->strings[i])};
    iv_status status = iv_tensor_from_strings(rank, dims, texts, tensor, error);
    iv_free(texts);
    return status;
}

static iv_status prepare_constant(iv_node *node, iv_error *error) {
    constant_params *params = node->params;
    static const struct {
        const char *name;
        iv_attribute_kind kind;
        bool scalar;
    } forms[] = {{"value_float", IV_ATTRIBUTE_FLOATS, true},
                 {"value_floats", IV_ATTRIBUTE_FLOATS, false},
                 {"value_int", IV_ATTRIBUTE_INTS, true},
                 {"value_ints", IV_ATTRIBUTE_INTS, false},
                 {"value_string", IV_ATTRIBUTE_STRINGS, true},
                 {"value_strings", IV_ATTRIBUTE_STRINGS, false}};
    const iv_attribute *value = iv_attributes_find(&node->attributes, "value");
    if (value != NULL && value->kind == IV_ATTRIBUTE_TENSOR) {
        params->tensor = iv_tensor_retain(value->tensor);
        return IV_OK;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const iv_attribute *list = iv_attributes_find(&node->attributes, forms[i].name);
        if (list == NULL)
            continue;
        iv_attribute checked = *list;
        checked.scalar = forms[i].scalar;
        if (list->count != 0 && list->kind != forms[i].kind)
            break;
        if (forms[i].scalar && list->count != 1)
            break;
        checked.kind = forms[i].kind;
        return constant_of_list(&checked, &params->tensor, error);
    }
    return iv_fail(
        error, IV_ERROR_UNSUPPORTED,
        "node %s: Constant needs one of the attributes value, value_float(s), value_int(s) or "
        "value_string(s) with a value of that kind; sparse values must be made dense",
        node->name);
}

static void release_constant(void *params) {
    iv_tensor_release(((constant_params *)params)->tensor);
}

static iv_status infer_constant(iv_infer *infer) {
    const constant_params *params = infer->node->params;
    return iv_fact_of_tensor(&infer->outputs[0], infer->scope, params->tensor, true, infer->error);
}

static iv_status eval_constant(iv_call *call) {
    const constant_params *params = call->node->params;
    return iv_call_set_output(call, 0, iv_tensor_retain(params->tensor));
}

/* ---- ConstantOfShape ---- */

static iv_status prepare_constant_of_shape(iv_node *node, iv_error *error) {
    iv_fill_params *params = node->params;
    const iv_attribute *value = iv_attributes_find(&node->attributes, "value");
    params->dtype = IV_F32;
    if (value == NULL)
        return IV_OK;
    if (value->kind != IV_ATTRIBUTE_TENSOR || iv_tensor_elements(value->tensor) != 1)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: ConstantOfShape's value must be a tensor of one element",
                       node->name);
    params->value = iv_tensor_retain(value->tensor);
    params->dtype = value->tensor->dtype;
    return IV_OK;
}

static void release_fill(void *params) {
    iv_tensor_release(((iv_fill_params *)params)->value);
}

static iv_status infer_constant_of_shape(iv_infer *infer) {
    const iv_fill_params *params = infer->node->params;
    iv_dim dims[IV_MAX_RANK];
    int rank;
    bool known;
    const iv_fact *shape = iv_infer_input(infer, 0);
    IV_TRY(iv_infer_integers(infer, 0, IV_MAX_RANK, dims, &rank, &known));
    if (shape->rank == 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the shape must be a list, not a scalar");
    for (int i = 0; i < rank && known; i++) {
        int64_t extent;
        if (iv_dim_is_constant(dims[i], &extent) && extent < 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "extent %lld of dimension %d is negative",
                                 (long long)extent, i);
    }
    if (rank < 0)
        iv_fact_set_tensor(&infer->outputs[0], params->dtype, IV_RANK_UNKNOWN, NULL);
    else if (known)
        iv_fact_set_tensor(&infer->outputs[0], params->dtype, rank, dims);
    else
        iv_infer_open(infer, 0, params->dtype, rank);
    return IV_OK;
}

static iv_status eval_constant_of_shape(iv_call *call) {
    const iv_fill_params *params = call->node->params;
    int64_t dims[IV_MAX_RANK];
    int rank;
    iv_tensor *output = NULL;
    IV_TRY(iv_move_integers(call, 0, IV_MAX_RANK, dims, &rank));
    IV_TRY(iv_move_output(call, 0, params->dtype, rank, dims, &output));
    size_t size = iv_dtype_size(params->dtype);
    int64_t count = iv_tensor_elements(output);
    if (params->value == NULL) {
        memset(output->data, 0, (size_t)count * size);
    } else {
        for (int64_t i = 0; i < count; i++)
            iv_move_element(output->data + (size_t)i * size, params->value->data, size);
    }
    return iv_move_finish(call, 0, output, IV_OK);
}

/* ---- EyeLike ---- */

static iv_status prepare_eye_like(iv_node *node, iv_error *error) {
    iv_eye_params *params = node->params;
    IV_TRY(iv_node_element_type(node, "dtype", IV_DTYPE_NONE, &params->dtype, error));
    if (params->dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: EyeLike cannot make text",
                       node->name);
    return iv_node_int(node, "k", 0, &params->diagonal, error);
}

static iv_status infer_eye_like(iv_infer *infer) {
    const iv_eye_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, params->dtype != IV_DTYPE_NONE ? IV_SET_ANY : IV_SET_PLAIN,
                            &input));
    if (input->rank != IV_RANK_UNKNOWN && input->rank != 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    iv_infer_shape_of(infer, 0, input,
                      params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype);
    return IV_OK;
}

uint64_t iv_bits_of_one(iv_dtype dtype) {
    switch (dtype) {
    case IV_F16:
        return iv_f16_from_f32(1.0f);
    case IV_BF16:
        return iv_bf16_from_f32(1.0f);
    case IV_F32:
        return iv_bits_from_f32(1.0f);
    case IV_F64:
        return iv_bits_from_f64(1.0);
    default:
        return 1;
    }
}

static void store_bits(char *to, uint64_t bits, size_t size) {
    if (size == 1) {
        uint8_t narrow = (uint8_t)bits;
        memcpy(to, &narrow, 1);
    } else if (size == 2) {
        uint16_t narrow = (uint16_t)bits;
        memcpy(to, &narrow, 2);
    } else if (size == 4) {
        uint32_t narrow = (uint32_t)bits;
        memcpy(to, &narrow, 4);
    } else {
        memcpy(to, &bits, 8);
    }
}

static iv_status eval_eye_like(iv_call *call) {
    const iv_eye_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    if (input->rank != 2)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    iv_dtype dtype = params->dtype != IV_DTYPE_NONE ? params->dtype : input->dtype;
    IV_TRY(iv_call_output_shape(call, 0, dtype, 2, input->dims, &output));
    size_t size = iv_dtype_size(dtype);
    memset(output->data, 0, (size_t)iv_tensor_elements(output) * size);
    for (int64_t row = 0; row < output->dims[0]; row++) {
        int64_t column;
        if (!__builtin_add_overflow(row, params->diagonal, &column) && column >= 0 &&
            column < output->dims[1])
            store_bits(output->data + (size_t)(row * output->dims[1] + column) * size,
                       iv_bits_of_one(dtype), size);
    }
    return IV_OK;
}

/* ---- Range ---- */

static const uint32_t range_dtypes =
    IV_SET_FLOAT | IV_SET(IV_S16) | IV_SET(IV_S32) | IV_SET(IV_S64);

static double range_real(const iv_tensor *tensor) {
    const void *at = tensor->data;
    switch (tensor->dtype) {
    case IV_F16:
        return iv_f16_to_f64(*(const uint16_t *)at);
    case IV_BF16:
        return iv_bf16_to_f64(*(const uint16_t *)at);
    case IV_F32:
        return *(const float *)at;
    default:
        return *(const double *)at;
    }
}

static int64_t range_integer(const iv_tensor *tensor) {
    const void *at = tensor->data;
    return tensor->dtype == IV_S16   ? *(const int16_t *)at
           : tensor->dtype == IV_S32 ? *(const int32_t *)at
                                     : *(const int64_t *)at;
}

__extension__ typedef __int128 wide_integer; /* holds the difference of any two s64 */

/* How many elements there are: max(0, ceil((limit - start) / delta)), for floats evaluated in f64.
 * False when delta is 0 or NaN, or when there would be more than 2^53. */
static bool range_count(const iv_tensor *start, const iv_tensor *limit, const iv_tensor *delta,
                        int64_t *count) {
    if (iv_dtype_is_float(start->dtype)) {
        double exact = __builtin_ceil((range_real(limit) - range_real(start)) / range_real(delta));
        if (range_real(delta) == 0.0 || !(exact <= 9007199254740992.0))
            return false;
        *count = exact > 0.0 ? (int64_t)exact : 0;
        return true;
    }
    wide_integer span = (wide_integer)range_integer(limit) - range_integer(start);
    wide_integer step = range_integer(delta);
    if (step == 0)
        return false;
    wide_integer whole = span / step + (span % step != 0 && (span < 0) == (step < 0));
    *count = whole > 0 ? (int64_t)whole : 0;
    return whole <= INT64_MAX;
}

static iv_status infer_range(iv_infer *infer) {
    const iv_fact *facts[3];
    for (int i = 0; i < 3; i++) {
        IV_TRY(iv_infer_require(infer, i, range_dtypes, &facts[i]));
        if (facts[i]->dtype != facts[0]->dtype)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is %s, input 0 is %s", i,
                                 iv_dtype_name(facts[i]->dtype), iv_dtype_name(facts[0]->dtype));
        int64_t extent;
        if (facts[i]->rank > 1 ||
            (facts[i]->rank == 1 && iv_dim_is_constant(facts[i]->dims[0], &extent) && extent != 1))
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d must be a scalar", i);
    }
    iv_dim extent = NULL;
    if (facts[0]->constant != NULL && facts[1]->constant != NULL && facts[2]->constant != NULL) {
        int64_t count;
        if (!range_count(facts[0]->constant, facts[1]->constant, facts[2]->constant, &count))
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "delta is 0 or the range does not end");
        extent = iv_dim_constant(infer->scope, count);
    } else if (facts[0]->dtype == IV_S64) {
        iv_dim values[3];
        bool all = true;
        int64_t step = 0;
        for (int i = 0; i < 3; i++) {
            bool known;
            int count;
            IV_TRY(iv_infer_integers(infer, i, 1, &values[i], &count, &known));
            all = all && known && count == 1;
        }
        if (all && iv_dim_is_constant(values[2], &step) && step != 0) {
            iv_scope *scope = infer->scope;
            iv_dim span = iv_dim_subtract(scope, values[1], values[0]);
            extent = iv_dim_maximum(scope, iv_dim_constant(scope, 0),
                                    iv_dim_ceiling_divide(scope, span, values[2]));
        }
    }
    if (extent == NULL)
        extent = iv_infer_fresh(infer, 0, 0);
    iv_fact_set_tensor(&infer->outputs[0], facts[0]->dtype, 1, &extent);
    return IV_OK;
}

iv_status iv_range_read(const iv_call *call, iv_range *range) {
    const iv_tensor *start = iv_call_input(call, 0), *limit = iv_call_input(call, 1),
                    *delta = iv_call_input(call, 2);
    if (iv_tensor_elements(start) != 1 || iv_tensor_elements(limit) != 1 ||
        iv_tensor_elements(delta) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "start, limit and delta must be scalars");
    *range = (iv_range){.dtype = start->dtype};
    if (!range_count(start, limit, delta, &range->count))
        return iv_call_fail(call, IV_ERROR_SHAPE, "delta is 0 or the range does not end");
    if (iv_dtype_is_float(start->dtype)) {
        range->start = range_real(start);
        range->delta = range_real(delta);
    } else {
        range->whole_start = (uint64_t)range_integer(start);
        range->whole_delta = (uint64_t)range_integer(delta);
    }
    return IV_OK;
}

static iv_status eval_range(iv_call *call) {
    iv_range range;
    iv_tensor *output;
    IV_TRY(iv_range_read(call, &range));
    IV_TRY(iv_call_output_shape(call, 0, range.dtype, 1, &range.count, &output));
    for (int64_t i = 0; i < range.count; i++)
        iv_range_store(&range, output->data, i);
    return IV_OK;
}

/* ---- Shape and Size ---- */

typedef struct shape_params {
    int64_t start, end;
} shape_params;

static iv_status prepare_shape(iv_node *node, iv_error *error) {
    shape_params *params = node->params;
    IV_TRY(iv_node_int(node, "start", 0, &params->start, error));
    return iv_node_int(node, "end", INT64_MAX, &params->end, error);
}

/* The dimensions that Shape lists: the attributes counted from the end when negative, and clamped
 * to the rank. */
static void shape_bounds(const shape_params *params, int rank, int *from, int *to) {
    int64_t start = params->start, end = params->end;
    start = start < 0 ? (start < -rank ? 0 : start + rank) : start;
    end = end < 0 ? (end < -rank ? 0 : end + rank) : end;
    *from = (int)(start > rank ? rank : start);
    *to = (int)(end > rank ? rank : end);
    *to = *to < *from ? *from : *to;
}

static iv_status infer_shape(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_infer_open(infer, 0, IV_S64, 1);
        return IV_OK;
    }
    int from, to;
    shape_bounds(infer->node->params, input->rank, &from, &to);
    iv_dim extent = iv_dim_constant(infer->scope, to - from);
    iv_fact_set_tensor(&infer->outputs[0], IV_S64, 1, &extent);
    return iv_infer_set_elements(infer, 0, to - from, input->dims + from);
}

static iv_status eval_shape(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    int from, to;
    shape_bounds(call->node->params, input->rank, &from, &to);
    int64_t extent = to - from;
    iv_tensor *output;
    IV_TRY(iv_call_output_shape(call, 0, IV_S64, 1, &extent, &output));
    if (extent != 0)
        memcpy(output->data, input->dims + from, (size_t)extent * sizeof *input->dims);
    return IV_OK;
}

static iv_status infer_size(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    iv_fact_set_tensor(&infer->outputs[0], IV_S64, 0, NULL);
    if (input->rank == IV_RANK_UNKNOWN)
        return IV_OK;
    iv_dim product = iv_dim_product(infer->scope, input->dims, 0, input->rank);
    IV_TRY(iv_scope_check(infer->scope, infer->error));
    return iv_infer_set_elements(infer, 0, 1, &product);
}

static iv_status eval_size(iv_call *call) {
    iv_tensor *output;
    IV_TRY(iv_call_output_shape(call, 0, IV_S64, 0, NULL, &output));
    *(int64_t *)(void *)output->data = iv_tensor_elements(iv_call_input(call, 0));
    return IV_OK;
}

const iv_op iv_ops_constants[] = {
    {.name = "Constant",
     .domain = "",
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(constant_params),
     .prepare = prepare_constant,
     .release = release_constant,
     .infer = infer_constant,
     .eval = eval_constant},
    {.name = "ConstantOfShape",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_fill_params),
     .prepare = prepare_constant_of_shape,
     .release = release_fill,
     .infer = infer_constant_of_shape,
     .eval = eval_constant_of_shape},
    {.name = "EyeLike",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_eye_params),
     .prepare = prepare_eye_like,
     .infer = infer_eye_like,
     .eval = eval_eye_like},
    {.name = "Range",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_range,
     .eval = eval_range},
    {.name = "Shape",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(shape_params),
     .prepare = prepare_shape,
     .infer = infer_shape,
     .eval = eval_shape},
    {.name = "Size",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_size,
     .eval = eval_size},
    {0},
};
