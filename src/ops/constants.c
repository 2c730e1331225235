/* Tensors out of attributes and extents: Constant, ConstantOfShape, EyeLike, Range, Shape, Size. */
#include "ops/constants.h"

#include "base/allocation.h"
#include "numerics/convert.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "tensor/walk.h"

/* ---- Constant ---- */

typedef struct constant_params {
    sb_tensor *tensor;
} constant_params;

static sb_status constant_of_list(const sb_attribute *attribute, sb_tensor **tensor, sb_error *error) {
    int rank = attribute->scalar ? 0 : 1;
    int64_t dims[1] = {attribute->count};
    if (attribute->kind == SB_ATTRIBUTE_FLOATS)
        return sb_tensor_from_data(SB_F32, rank, dims, attribute->floats, tensor, error);
    if (attribute->kind == SB_ATTRIBUTE_INTS)
        return sb_tensor_from_data(SB_S64, rank, dims, attribute->ints, tensor, error);
    sb_string *texts = sb_allocate_array((size_t)attribute->count, sizeof *texts);
    if (texts == NULL)
        return sb_fail_memory(error, (size_t)attribute->count * sizeof *texts);
    for (int64_t i = 0; i < attribute->count; i++)
        texts[i] = (sb_string){attribute->strings[i], strlen(attribute->strings[i])};
    sb_status status = sb_tensor_from_strings(rank, dims, texts, tensor, error);
    sb_free(texts);
    return status;
}

static sb_status prepare_constant(sb_node *node, sb_error *error) {
    constant_params *params = node->params;
    static const struct {
        const char *name;
        sb_attribute_kind kind;
        bool scalar;
    } forms[] = {{"value_float", SB_ATTRIBUTE_FLOATS, true},   {"value_floats", SB_ATTRIBUTE_FLOATS, false},
                 {"value_int", SB_ATTRIBUTE_INTS, true},       {"value_ints", SB_ATTRIBUTE_INTS, false},
                 {"value_string", SB_ATTRIBUTE_STRINGS, true}, {"value_strings", SB_ATTRIBUTE_STRINGS, false}};
    const sb_attribute *value = sb_attributes_find(&node->attributes, "value");
    if (value != NULL && value->kind == SB_ATTRIBUTE_TENSOR) {
        params->tensor = sb_tensor_retain(value->tensor);
        return SB_OK;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const sb_attribute *list = sb_attributes_find(&node->attributes, forms[i].name);
        if (list == NULL)
            continue;
        sb_attribute checked = *list;
        checked.scalar = forms[i].scalar;
        if (list->count != 0 && list->kind != forms[i].kind)
            break;
        if (forms[i].scalar && list->count != 1)
            break;
        checked.kind = forms[i].kind;
        return constant_of_list(&checked, &params->tensor, error);
    }
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "node %s: Constant needs one of the attributes value, value_float(s), value_int(s) or "
                   "value_string(s) with a value of that kind; sparse values must be made dense",
                   node->name);
}

static void release_constant(void *params) {
    sb_tensor_release(((constant_params *)params)->tensor);
}

static sb_status infer_constant(sb_infer *infer) {
    const constant_params *params = infer->node->params;
    return sb_fact_of_tensor(&infer->outputs[0], infer->scope, params->tensor, true, infer->error);
}

static sb_status eval_constant(sb_call *call) {
    const constant_params *params = call->node->params;
    return sb_call_set_output(call, 0, sb_tensor_retain(params->tensor));
}

/* ---- ConstantOfShape ---- */

static sb_status prepare_constant_of_shape(sb_node *node, sb_error *error) {
    sb_fill_params *params = node->params;
    const sb_attribute *value = sb_attributes_find(&node->attributes, "value");
    params->dtype = SB_F32;
    if (value == NULL)
        return SB_OK;
    if (value->kind != SB_ATTRIBUTE_TENSOR || sb_tensor_elements(value->tensor) != 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: ConstantOfShape's value must be a tensor of one element", node->name);
    params->value = sb_tensor_retain(value->tensor);
    params->dtype = value->tensor->dtype;
    return SB_OK;
}

static void release_fill(void *params) {
    sb_tensor_release(((sb_fill_params *)params)->value);
}

static sb_status infer_constant_of_shape(sb_infer *infer) {
    const sb_fill_params *params = infer->node->params;
    sb_dim dims[SB_MAX_RANK];
    int rank;
    bool known;
    const sb_fact *shape = sb_infer_input(infer, 0);
    SB_TRY(sb_infer_integers(infer, 0, SB_MAX_RANK, dims, &rank, &known));
    if (shape->rank == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the shape must be a list, not a scalar");
    for (int i = 0; i < rank && known; i++) {
        int64_t extent;
        if (sb_dim_is_constant(dims[i], &extent) && extent < 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %lld of dimension %d is negative", (long long)extent,
                                 i);
    }
    if (rank < 0)
        sb_fact_set_tensor(&infer->outputs[0], params->dtype, SB_RANK_UNKNOWN, NULL);
    else if (known)
        sb_fact_set_tensor(&infer->outputs[0], params->dtype, rank, dims);
    else
        sb_infer_open(infer, 0, params->dtype, rank);
    return SB_OK;
}

static sb_status eval_constant_of_shape(sb_call *call) {
    const sb_fill_params *params = call->node->params;
    int64_t dims[SB_MAX_RANK];
    int rank;
    sb_tensor *output = NULL;
    SB_TRY(sb_move_integers(call, 0, SB_MAX_RANK, dims, &rank));
    SB_TRY(sb_move_output(call, 0, params->dtype, rank, dims, &output));
    size_t size = sb_dtype_size(params->dtype);
    int64_t count = sb_tensor_elements(output);
    if (params->value == NULL) {
        memset(output->data, 0, (size_t)count * size);
    } else {
        for (int64_t i = 0; i < count; i++)
            sb_move_element(output->data + (size_t)i * size, params->value->data, size);
    }
    return sb_move_finish(call, 0, output, SB_OK);
}

/* ---- EyeLike ---- */

static sb_status prepare_eye_like(sb_node *node, sb_error *error) {
    sb_eye_params *params = node->params;
    SB_TRY(sb_node_element_type(node, "dtype", SB_DTYPE_NONE, &params->dtype, error));
    if (params->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: EyeLike cannot make text", node->name);
    return sb_node_int(node, "k", 0, &params->diagonal, error);
}

static sb_status infer_eye_like(sb_infer *infer) {
    const sb_eye_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, params->dtype != SB_DTYPE_NONE ? SB_SET_ANY : SB_SET_PLAIN, &input));
    if (input->rank != SB_RANK_UNKNOWN && input->rank != 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    sb_infer_shape_of(infer, 0, input, params->dtype != SB_DTYPE_NONE ? params->dtype : input->dtype);
    return SB_OK;
}

uint64_t sb_bits_of_one(sb_dtype dtype) {
    switch (dtype) {
    case SB_F16:
        return sb_f16_from_f32(1.0f);
    case SB_BF16:
        return sb_bf16_from_f32(1.0f);
    case SB_F32:
        return sb_bits_from_f32(1.0f);
    case SB_F64:
        return sb_bits_from_f64(1.0);
    default:
        break;
    }
    uint64_t bits = 1;
    if (sb_dtype_is_small(dtype))
        sb_number_store(dtype, &bits, 0, 1.0); /* its byte is the lowest, and 1 fits it */
    return bits;
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

static sb_status eval_eye_like(sb_call *call) {
    const sb_eye_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    if (input->rank != 2)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    sb_dtype dtype = params->dtype != SB_DTYPE_NONE ? params->dtype : input->dtype;
    SB_TRY(sb_call_output_shape(call, 0, dtype, 2, input->dims, &output));
    size_t size = sb_dtype_size(dtype);
    memset(output->data, 0, (size_t)sb_tensor_elements(output) * size);
    for (int64_t row = 0; row < output->dims[0]; row++) {
        int64_t column;
        if (!__builtin_add_overflow(row, params->diagonal, &column) && column >= 0 && column < output->dims[1])
            store_bits(output->data + (size_t)(row * output->dims[1] + column) * size, sb_bits_of_one(dtype), size);
    }
    return SB_OK;
}

/* ---- Range ---- */

static const uint32_t range_dtypes = SB_SET_FLOAT | SB_SET(SB_S16) | SB_SET(SB_S32) | SB_SET(SB_S64);

static double range_real(const sb_tensor *tensor) {
    const void *at = tensor->data;
    switch (tensor->dtype) {
    case SB_F16:
        return sb_f16_to_f64(*(const uint16_t *)at);
    case SB_BF16:
        return sb_bf16_to_f64(*(const uint16_t *)at);
    case SB_F32:
        return *(const float *)at;
    default:
        return *(const double *)at;
    }
}

static int64_t range_integer(const sb_tensor *tensor) {
    const void *at = tensor->data;
    return tensor->dtype == SB_S16   ? *(const int16_t *)at
           : tensor->dtype == SB_S32 ? *(const int32_t *)at
                                     : *(const int64_t *)at;
}

/* How many elements there are: max(0, ceil((limit - start) / delta)), for floats evaluated in f64.
 * False when delta is 0 or NaN, or when there would be more than 2^53. */
static bool range_count(const sb_tensor *start, const sb_tensor *limit, const sb_tensor *delta, int64_t *count) {
    if (sb_dtype_is_float(start->dtype)) {
        double exact = __builtin_ceil((range_real(limit) - range_real(start)) / range_real(delta));
        if (range_real(delta) == 0.0 || !(exact <= 9007199254740992.0))
            return false;
        *count = exact > 0.0 ? (int64_t)exact : 0;
        return true;
    }
    if (range_integer(delta) == 0)
        return false;
    uint64_t length = sb_range_length(range_integer(start), range_integer(limit), range_integer(delta));
    *count = (int64_t)length;
    return length <= INT64_MAX;
}

/* The elements of a short range as formulas: its count is known, start and step need not be numbers. */
static sb_status set_range_elements(sb_infer *infer, sb_dim extent, sb_dim start, sb_dim step) {
    sb_dim elements[SB_FACT_ELEMENTS];
    int64_t count;
    if (!sb_dim_is_constant(extent, &count) || count > SB_FACT_ELEMENTS)
        return SB_OK;
    for (int64_t i = 0; i < count; i++)
        elements[i] = i == 0 ? start : sb_dim_add(infer->scope, elements[i - 1], step);
    SB_TRY(sb_scope_check(infer->scope, infer->error));
    return sb_infer_set_elements(infer, 0, count, elements);
}

/* Elements of f16 and bf16 come from products and sums in f32, which is what `stash_type` asks for unless it says otherwise. */
static sb_status check_stash(const sb_infer *infer, sb_dtype dtype) {
    sb_dtype stash;
    SB_TRY(sb_node_element_type(infer->node, "stash_type", SB_F32, &stash, infer->error));
    if ((dtype == SB_F16 || dtype == SB_BF16) && stash != SB_F32)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "ranges of %s are computed in f32; stash_type asks for %s",
                             sb_dtype_name(dtype), sb_dtype_name(stash));
    return SB_OK;
}

static sb_status infer_range(sb_infer *infer) {
    const sb_fact *facts[3];
    for (int i = 0; i < 3; i++) {
        SB_TRY(sb_infer_require(infer, i, range_dtypes, &facts[i]));
        if (facts[i]->dtype != facts[0]->dtype)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is %s, input 0 is %s", i,
                                 sb_dtype_name(facts[i]->dtype), sb_dtype_name(facts[0]->dtype));
        int64_t extent;
        if (facts[i]->rank > 1 ||
            (facts[i]->rank == 1 && sb_dim_is_constant(facts[i]->dims[0], &extent) && extent != 1))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d must be a scalar", i);
    }
    SB_TRY(check_stash(infer, facts[0]->dtype));
    sb_dim extent = NULL, values[3];
    bool formulas = false;
    if (facts[0]->constant != NULL && facts[1]->constant != NULL && facts[2]->constant != NULL) {
        int64_t count;
        if (!range_count(facts[0]->constant, facts[1]->constant, facts[2]->constant, &count))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "delta is 0 or the range does not end");
        extent = sb_dim_constant(infer->scope, count);
    } else if (facts[0]->dtype == SB_S64) {
        bool all = true;
        int64_t step = 0;
        for (int i = 0; i < 3; i++) {
            bool known;
            int count;
            SB_TRY(sb_infer_integers(infer, i, 1, &values[i], &count, &known));
            all = all && known && count == 1;
        }
        if (all && sb_dim_is_constant(values[2], &step) && step != 0) {
            sb_scope *scope = infer->scope;
            sb_dim span = sb_dim_subtract(scope, values[1], values[0]);
            extent = sb_dim_maximum(scope, sb_dim_constant(scope, 0), sb_dim_ceiling_divide(scope, span, values[2]));
            formulas = true;
        }
    }
    if (extent == NULL)
        extent = sb_infer_fresh(infer, 0, 0);
    sb_fact_set_tensor(&infer->outputs[0], facts[0]->dtype, 1, &extent);
    return formulas ? set_range_elements(infer, extent, values[0], values[2]) : SB_OK;
}

sb_status sb_range_read(const sb_call *call, sb_range *range) {
    const sb_tensor *start = sb_call_input(call, 0), *limit = sb_call_input(call, 1), *delta = sb_call_input(call, 2);
    if (sb_tensor_elements(start) != 1 || sb_tensor_elements(limit) != 1 || sb_tensor_elements(delta) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "start, limit and delta must be scalars");
    *range = (sb_range){.dtype = start->dtype};
    if (!range_count(start, limit, delta, &range->count))
        return sb_call_fail(call, SB_ERROR_SHAPE, "delta is 0 or the range does not end");
    if (sb_dtype_is_float(start->dtype)) {
        range->start = range_real(start);
        range->delta = range_real(delta);
    } else {
        range->whole_start = (uint64_t)range_integer(start);
        range->whole_limit = range_integer(limit);
        range->whole_delta = (uint64_t)range_integer(delta);
    }
    return SB_OK;
}

/* Every element; `range` is a copy, so that the compiler knows its dtype in each loop. */
static void store_range(const sb_range *whole, void *data) {
    sb_range range = *whole;
#define ELEMENTS(known)                                                                                                \
    case known:                                                                                                        \
        range.dtype = known;                                                                                           \
        for (int64_t i = 0; i < range.count; i++)                                                                      \
            sb_range_store(&range, data, i);                                                                           \
        break;
    switch (range.dtype) {
        ELEMENTS(SB_F16)
        ELEMENTS(SB_BF16)
        ELEMENTS(SB_F32)
        ELEMENTS(SB_F64)
        ELEMENTS(SB_S16)
        ELEMENTS(SB_S32)
        ELEMENTS(SB_S64)
    default:
        break;
    }
#undef ELEMENTS
}

static sb_status eval_range(sb_call *call) {
    sb_range range;
    sb_tensor *output;
    SB_TRY(sb_range_read(call, &range));
    SB_TRY(sb_call_output_shape(call, 0, range.dtype, 1, &range.count, &output));
    store_range(&range, output->data);
    return SB_OK;
}

/* ---- Shape and Size ---- */

typedef struct shape_params {
    int64_t start, end;
} shape_params;

static sb_status prepare_shape(sb_node *node, sb_error *error) {
    shape_params *params = node->params;
    SB_TRY(sb_node_int(node, "start", 0, &params->start, error));
    return sb_node_int(node, "end", INT64_MAX, &params->end, error);
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

static sb_status infer_shape(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_infer_open(infer, 0, SB_S64, 1);
        return SB_OK;
    }
    int from, to;
    shape_bounds(infer->node->params, input->rank, &from, &to);
    sb_dim extent = sb_dim_constant(infer->scope, to - from);
    sb_fact_set_tensor(&infer->outputs[0], SB_S64, 1, &extent);
    return sb_infer_set_elements(infer, 0, to - from, input->dims + from);
}

static sb_status eval_shape(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    int from, to;
    shape_bounds(call->node->params, input->rank, &from, &to);
    int64_t extent = to - from;
    sb_tensor *output;
    SB_TRY(sb_call_output_shape(call, 0, SB_S64, 1, &extent, &output));
    if (extent != 0)
        memcpy(output->data, input->dims + from, (size_t)extent * sizeof *input->dims);
    return SB_OK;
}

static sb_status infer_size(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    sb_fact_set_tensor(&infer->outputs[0], SB_S64, 0, NULL);
    if (input->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    sb_dim product = sb_dim_product(infer->scope, input->dims, 0, input->rank);
    SB_TRY(sb_scope_check(infer->scope, infer->error));
    return sb_infer_set_elements(infer, 0, 1, &product);
}

static sb_status eval_size(sb_call *call) {
    sb_tensor *output;
    SB_TRY(sb_call_output_shape(call, 0, SB_S64, 0, NULL, &output));
    *(int64_t *)(void *)output->data = sb_tensor_elements(sb_call_input(call, 0));
    return SB_OK;
}

const sb_op sb_ops_constants[] = {
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
     .params_size = sizeof(sb_fill_params),
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
     .params_size = sizeof(sb_eye_params),
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
