/* Einsum.
 *
 * Labels that are not in the output are summed: their indices run row-major over the order in which
 * they first appear in the equation. Each output element is one chain over those indices: the
 * operands but the last are multiplied from left to right, each product rounded, and acc =
 * fma(product, last operand, acc) from +0; with one operand acc = acc + operand. f16 and bf16 are
 * computed in f32 and rounded once, f64 in f64, integers wrap around. With one operand and nothing
 * to sum, elements only move. */
#include "ops/einsum.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/real.h"

/* ---- the equation ---- */

static iv_status parse_term(const iv_node *node, const char **at, iv_einsum_term *result,
                            iv_error *error) {
    bool ellipsis = false;
    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        char letter = **at;
        if (letter == ' ')
            continue;
        uint8_t label = IV_EINSUM_MARK;
        if (letter >= 'a' && letter <= 'z')
            label = (uint8_t)(letter - 'a' + 26);
        else if (letter >= 'A' && letter <= 'Z')
            label = (uint8_t)(letter - 'A');
        else if (strncmp(*at, "...", 3) != 0 || ellipsis)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "node %s: the equation is wrong at \"%s\"", node->name, *at);
        if (label == IV_EINSUM_MARK) {
            ellipsis = true;
            *at += 2;
        }
        if (result->count > IV_MAX_RANK)
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: a term has more than %d labels",
                           node->name, IV_MAX_RANK);
        result->labels[result->count++] = label;
    }
    return IV_OK;
}

/* Without an output in the equation it is: the ellipsis, then the labels that appear once, in the
 * order of ASCII. */
static void imply_output(iv_einsum_params *params) {
    int seen[IV_EINSUM_LABELS] = {0};
    bool ellipsis = false;
    iv_einsum_term *output = &params->terms[params->count];
    for (int t = 0; t < params->count; t++) {
        for (int i = 0; i < params->terms[t].count; i++) {
            ellipsis = ellipsis || params->terms[t].labels[i] == IV_EINSUM_MARK;
            if (params->terms[t].labels[i] != IV_EINSUM_MARK)
                seen[params->terms[t].labels[i]]++;
        }
    }
    if (ellipsis)
        output->labels[output->count++] = IV_EINSUM_MARK;
    for (int label = 0; label < IV_EINSUM_ELLIPSIS; label++) {
        if (seen[label] == 1)
            output->labels[output->count++] = (uint8_t)label;
    }
}

static iv_status prepare_einsum(iv_node *node, iv_error *error) {
    iv_einsum_params *params = node->params;
    const char *equation;
    IV_TRY(iv_node_string(node, "equation", "", &equation, error));
    params->count = node->input_count - node->capture_count;
    params->terms = iv_allocate_array((size_t)params->count + 1, sizeof *params->terms);
    if (params->terms == NULL)
        return iv_fail_memory(error, (size_t)params->count * sizeof *params->terms);
    const char *at = equation;
    for (int t = 0; t < params->count; t++) {
        IV_TRY(parse_term(node, &at, &params->terms[t], error));
        bool last = t == params->count - 1;
        if (*at != (last ? *at == '-' ? '-' : '\0' : ','))
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "node %s: %d operands for the equation %s", node->name, params->count,
                           equation);
        if (!last)
            at++;
    }
    if (*at == '\0') {
        imply_output(params);
        return IV_OK;
    }
    if (at[1] != '>')
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: the equation is wrong at \"%s\"",
                       node->name, at);
    at += 2;
    IV_TRY(parse_term(node, &at, &params->terms[params->count], error));
    if (*at != '\0')
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: the equation is wrong at \"%s\"",
                       node->name, at);
    return IV_OK;
}

static void release_einsum(void *params) {
    iv_free(((iv_einsum_params *)params)->terms);
}

/* The label of each dimension of a term, its ellipsis standing for `wide` dimensions. Returns the
 * rank. */
static int spread(const iv_einsum_term *source, int wide, uint8_t *labels) {
    int rank = 0;
    for (int i = 0; i < source->count && rank < IV_EINSUM_LABELS; i++) {
        if (source->labels[i] != IV_EINSUM_MARK) {
            labels[rank++] = source->labels[i];
            continue;
        }
        for (int e = wide - 1; e >= 0 && rank < IV_EINSUM_LABELS; e--)
            labels[rank++] = (uint8_t)(IV_EINSUM_ELLIPSIS + e);
    }
    return rank;
}

static bool has_ellipsis(const iv_einsum_term *source) {
    return memchr(source->labels, IV_EINSUM_MARK, (size_t)source->count) != NULL;
}

/* ---- inference ---- */

static iv_status join_label(iv_infer *infer, int label, iv_dim *extent, iv_dim other) {
    int64_t left = 0, right = 0;
    bool known = *extent != NULL && iv_dim_is_constant(*extent, &left);
    bool also = iv_dim_is_constant(other, &right);
    if (*extent == NULL || (label >= IV_EINSUM_ELLIPSIS && known && left == 1)) {
        *extent = other;
        return IV_OK;
    }
    if (label >= IV_EINSUM_ELLIPSIS && (iv_dim_equal(*extent, other) || (also && right == 1)))
        return IV_OK;
    if (known && also && left != right)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "one label has the extents %lld and %lld",
                             (long long)left, (long long)right);
    /* Extents of an ellipsis may turn out to be 1, which is broadcast; those of a letter are equal.
     */
    if (also)
        *extent = other;
    else if (label >= IV_EINSUM_ELLIPSIS && !known)
        *extent = iv_infer_fresh(infer, 0, label);
    return IV_OK;
}

static iv_status infer_einsum(iv_infer *infer) {
    const iv_einsum_params *params = infer->node->params;
    iv_dim extents[IV_EINSUM_LABELS] = {NULL}, dims[IV_EINSUM_LABELS];
    uint8_t labels[IV_EINSUM_LABELS];
    const iv_fact *first = NULL;
    int widest = 0;
    bool open = false;
    for (int t = 0; t < params->count; t++) {
        const iv_fact *input;
        IV_TRY(iv_infer_require(infer, t, IV_SET_NUMBER, &input));
        first = t == 0 ? input : first;
        if (input->dtype != first->dtype)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is %s, input 0 is %s", t,
                                 iv_dtype_name(input->dtype), iv_dtype_name(first->dtype));
        if (input->rank == IV_RANK_UNKNOWN) {
            open = true;
            continue;
        }
        bool spreads = has_ellipsis(&params->terms[t]);
        int wide = input->rank - params->terms[t].count + (spreads ? 1 : 0);
        if (wide < 0 || (wide > 0 && !spreads))
            return iv_infer_fail(infer, IV_ERROR_SHAPE,
                                 "input %d has rank %d, its term %d labels", t,
                                 input->rank, params->terms[t].count);
        widest = wide > widest ? wide : widest;
        spread(&params->terms[t], wide, labels);
        for (int d = 0; d < input->rank; d++)
            IV_TRY(join_label(infer, labels[d], &extents[labels[d]], input->dims[d]));
    }
    int rank = spread(&params->terms[params->count], widest, labels);
    if (rank > IV_MAX_RANK)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most",
                             rank, IV_MAX_RANK);
    for (int d = 0; d < rank && !open; d++) {
        dims[d] = extents[labels[d]];
        if (dims[d] == NULL || memchr(labels, labels[d], (size_t)d) != NULL)
            return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL,
                                 "label %d of the output is in no input, or repeated", d);
    }
    iv_fact_set_tensor(&infer->outputs[0], first->dtype, open ? IV_RANK_UNKNOWN : rank, dims);
    return IV_OK;
}

/* ---- evaluation ---- */

iv_status iv_einsum_plan(const iv_call *call, iv_einsum_nest *loops) {
    const iv_einsum_params *params = call->node->params;
    int64_t extents[IV_EINSUM_LABELS];
    uint8_t labels[IV_EINSUM_LABELS], order[IV_EINSUM_LABELS];
    int widest = 0, position[IV_EINSUM_LABELS];
    for (int i = 0; i < IV_EINSUM_LABELS; i++)
        extents[i] = position[i] = -1;
    for (int t = 0; t < params->count; t++) {
        int wide = loops->tensors[t]->rank - params->terms[t].count +
                   (has_ellipsis(&params->terms[t]) ? 1 : 0);
        widest = wide > widest ? wide : widest;
    }
    int count = loops->outer = spread(&params->terms[params->count], widest, order);
    for (int i = 0; i < count; i++)
        position[order[i]] = i;
    for (int t = 0; t < params->count; t++) {
        const iv_tensor *tensor = loops->tensors[t];
        spread(&params->terms[t], tensor->rank - params->terms[t].count + 1, labels);
        for (int d = 0; d < tensor->rank; d++) {
            int label = labels[d];
            int64_t *extent = &extents[label];
            if (position[label] < 0) {
                position[label] = count;
                order[count++] = (uint8_t)label;
            }
            if (*extent >= 0 && *extent != tensor->dims[d] &&
                (label < IV_EINSUM_ELLIPSIS || (*extent != 1 && tensor->dims[d] != 1)))
                return iv_call_fail(call, IV_ERROR_SHAPE, "one label has the extents %lld and %lld",
                                    (long long)*extent, (long long)tensor->dims[d]);
            if (*extent < 0 || *extent == 1)
                *extent = tensor->dims[d];
        }
    }
    loops->inner = count - loops->outer;
    for (int i = 0; i < count; i++)
        loops->dims[i] = extents[order[i]];
    for (int t = 0; t < params->count; t++) {
        const iv_tensor *tensor = loops->tensors[t];
        spread(&params->terms[t], tensor->rank - params->terms[t].count + 1, labels);
        for (int d = 0; d < tensor->rank; d++) {
            /* A repeated label walks the diagonal: its steps add up. */
            if (tensor->dims[d] != 1)
                loops->steps[t][position[labels[d]]] += tensor->strides[d];
        }
    }
    return IV_OK;
}

static int64_t operand_offset(const iv_einsum_nest *loops, int operand, const int64_t *index) {
    int64_t offset = loops->offsets[operand];
    for (int i = 0; i < loops->inner; i++)
        offset += index[i] * loops->steps[operand][loops->outer + i];
    return offset;
}

static bool is_empty(int rank, const int64_t *dims) {
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0)
            return true;
    }
    return false;
}

#define LOAD_f32(tensor, offset) iv_real_load_f32((tensor)->dtype, (tensor)->data, offset)
#define LOAD_f64(tensor, offset) (((const double *)(const void *)(tensor)->data)[offset])

/* The innermost summed label is a plain loop over steps; the others are counted. */
#define DEFINE_CHAIN(suffix, type)                                                                 \
    static type chain_##suffix(const iv_einsum_nest *loops) {                                      \
        type acc = (type)0;                                                                        \
        int64_t index[IV_EINSUM_LABELS] = {0};                                                     \
        const int64_t *dims = loops->dims + loops->outer;                                          \
        if (is_empty(loops->inner, dims))                                                          \
            return acc;                                                                            \
        do {                                                                                       \
            int last = loops->operands - 1;                                                        \
            type value = LOAD_##suffix(loops->tensors[last], operand_offset(loops, last, index));  \
            if (last == 0) {                                                                       \
                acc += value;                                                                      \
                continue;                                                                          \
            }                                                                                      \
            type product = LOAD_##suffix(loops->tensors[0], operand_offset(loops, 0, index));      \
            for (int t = 1; t < last; t++)                                                         \
                product *= LOAD_##suffix(loops->tensors[t], operand_offset(loops, t, index));      \
            acc = iv_fma_##suffix(product, value, acc);                                            \
        } while (iv_move_next(loops->inner, dims, index));                                         \
        return acc;                                                                                \
    }

DEFINE_CHAIN(f32, float)
DEFINE_CHAIN(f64, double)

static uint64_t load_integer(const iv_tensor *tensor, int64_t offset) {
    const void *at = tensor->data + offset * (int64_t)iv_dtype_size(tensor->dtype);
    switch (tensor->dtype) {
    case IV_S8:
        return (uint64_t)(int64_t) * (const int8_t *)at;
    case IV_S16:
        return (uint64_t)(int64_t) * (const int16_t *)at;
    case IV_S32:
        return (uint64_t)(int64_t) * (const int32_t *)at;
    case IV_U8:
        return *(const uint8_t *)at;
    case IV_U16:
        return *(const uint16_t *)at;
    case IV_U32:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static uint64_t chain_integer(const iv_einsum_nest *loops) {
    uint64_t sum = 0;
    int64_t index[IV_EINSUM_LABELS] = {0};
    const int64_t *dims = loops->dims + loops->outer;
    if (is_empty(loops->inner, dims))
        return sum;
    do {
        uint64_t product = 1;
        for (int t = 0; t < loops->operands; t++)
            product *= load_integer(loops->tensors[t], operand_offset(loops, t, index));
        sum += product;
    } while (iv_move_next(loops->inner, dims, index));
    return sum;
}

static void store_integer(iv_tensor *output, int64_t element, uint64_t value) {
    switch (iv_dtype_size(output->dtype)) {
    case 1:
        ((uint8_t *)(void *)output->data)[element] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)(void *)output->data)[element] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)(void *)output->data)[element] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)(void *)output->data)[element] = value;
        break;
    }
}

static void run_nest(iv_einsum_nest *loops, iv_tensor *output) {
    int64_t index[IV_EINSUM_LABELS] = {0}, element = 0;
    size_t size = iv_dtype_size(output->dtype);
    bool moves = loops->operands == 1 && loops->inner == 0;
    if (is_empty(loops->outer, loops->dims))
        return;
    do {
        for (int t = 0; t < loops->operands; t++) {
            loops->offsets[t] = 0;
            for (int i = 0; i < loops->outer; i++)
                loops->offsets[t] += index[i] * loops->steps[t][i];
        }
        if (moves)
            iv_move_element(output->data + element * (int64_t)size,
                            loops->tensors[0]->data + loops->offsets[0] * (int64_t)size, size);
        else if (output->dtype == IV_F64)
            ((double *)(void *)output->data)[element] = chain_f64(loops);
        else if (iv_dtype_is_float(output->dtype))
            iv_real_store_f32(output->dtype, output->data, element, chain_f32(loops));
        else
            store_integer(output, element, chain_integer(loops));
        element++;
    } while (iv_move_next(loops->outer, loops->dims, index));
}

static iv_status eval_einsum(iv_call *call) {
    const iv_einsum_params *params = call->node->params;
    size_t count = (size_t)params->count;
    iv_einsum_nest loops = {.operands = params->count,
                            .tensors = iv_allocate_array(count, sizeof *loops.tensors),
                            .steps = iv_allocate_array(count, sizeof *loops.steps),
                            .offsets = iv_allocate_array(count, sizeof *loops.offsets)};
    iv_status status = IV_OK;
    iv_tensor *output;
    if (loops.tensors == NULL || loops.steps == NULL || loops.offsets == NULL)
        status = iv_fail_memory(call->error, count * sizeof *loops.steps);
    for (int t = 0; t < params->count && status == IV_OK; t++)
        loops.tensors[t] = iv_call_input(call, t);
    if (status == IV_OK)
        status = iv_einsum_plan(call, &loops);
    if (status == IV_OK)
        status = iv_call_output(call, 0, &output);
    if (status == IV_OK)
        run_nest(&loops, output);
    iv_free(loops.tensors);
    iv_free(loops.steps);
    iv_free(loops.offsets);
    return status;
}

const iv_op iv_ops_einsum[] = {
    {.name = "Einsum",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_einsum_params),
     .prepare = prepare_einsum,
     .release = release_einsum,
     .infer = infer_einsum,
     .eval = eval_einsum},
    {0},
};
