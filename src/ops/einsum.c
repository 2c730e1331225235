/* Einsum.
 *
 * Labels that are not in the output are summed: their indices run row-major over the order in which they first appear
 * in the equation. Each output element is one chain over those indices: the operands but the last are multiplied from
 * left to right, each product rounded, and acc = fma(product, last operand, acc) from +0; with one operand
 * acc = acc + operand. f16 and bf16 are computed in f32 and rounded once, f64 in f64, integers wrap around. With one
 * operand and nothing to sum, elements only move. */
#include "ops/einsum.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/real.h"

/* ---- the equation ---- */

static sb_status parse_term(const sb_node *node, const char **at, sb_einsum_term *result, sb_error *error) {
    bool ellipsis = false;
    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        char letter = **at;
        if (letter == ' ')
            continue;
        uint8_t label = SB_EINSUM_MARK;
        if (letter >= 'a' && letter <= 'z')
            label = (uint8_t)(letter - 'a' + 26);
        else if (letter >= 'A' && letter <= 'Z')
            label = (uint8_t)(letter - 'A');
        else if (strncmp(*at, "...", 3) != 0 || ellipsis)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: the equation is wrong at \"%s\"", node->name, *at);
        if (label == SB_EINSUM_MARK) {
            ellipsis = true;
            *at += 2;
        }
        if (result->count > SB_MAX_RANK)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: a term has more than %d labels", node->name,
                           SB_MAX_RANK);
        result->labels[result->count++] = label;
    }
    return SB_OK;
}

/* Without an output in the equation it is: the ellipsis, then the labels that appear once, in the
 * order of ASCII. */
static void imply_output(sb_einsum_params *params) {
    int seen[SB_EINSUM_LABELS] = {0};
    bool ellipsis = false;
    sb_einsum_term *output = &params->terms[params->count];
    for (int t = 0; t < params->count; t++) {
        for (int i = 0; i < params->terms[t].count; i++) {
            ellipsis = ellipsis || params->terms[t].labels[i] == SB_EINSUM_MARK;
            if (params->terms[t].labels[i] != SB_EINSUM_MARK)
                seen[params->terms[t].labels[i]]++;
        }
    }
    if (ellipsis)
        output->labels[output->count++] = SB_EINSUM_MARK;
    for (int label = 0; label < SB_EINSUM_ELLIPSIS; label++) {
        if (seen[label] == 1)
            output->labels[output->count++] = (uint8_t)label;
    }
}

static sb_status prepare_einsum(sb_node *node, sb_error *error) {
    sb_einsum_params *params = node->params;
    const char *equation;
    SB_TRY(sb_node_string(node, "equation", "", &equation, error));
    params->count = node->input_count - node->capture_count;
    params->terms = sb_allocate_array((size_t)params->count + 1, sizeof *params->terms);
    if (params->terms == NULL)
        return sb_fail_memory(error, (size_t)params->count * sizeof *params->terms);
    const char *at = equation;
    for (int t = 0; t < params->count; t++) {
        SB_TRY(parse_term(node, &at, &params->terms[t], error));
        bool last = t == params->count - 1;
        if (*at != (last ? *at == '-' ? '-' : '\0' : ','))
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %d operands for the equation %s", node->name,
                           params->count, equation);
        if (!last)
            at++;
    }
    if (*at == '\0') {
        imply_output(params);
        return SB_OK;
    }
    if (at[1] != '>')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: the equation is wrong at \"%s\"", node->name, at);
    at += 2;
    SB_TRY(parse_term(node, &at, &params->terms[params->count], error));
    if (*at != '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: the equation is wrong at \"%s\"", node->name, at);
    return SB_OK;
}

static void release_einsum(void *params) {
    sb_free(((sb_einsum_params *)params)->terms);
}

/* The label of each dimension of a term, its ellipsis standing for `wide` dimensions. Returns the rank. */
static int spread(const sb_einsum_term *source, int wide, uint8_t *labels) {
    int rank = 0;
    for (int i = 0; i < source->count && rank < SB_EINSUM_LABELS; i++) {
        if (source->labels[i] != SB_EINSUM_MARK) {
            labels[rank++] = source->labels[i];
            continue;
        }
        for (int e = wide - 1; e >= 0 && rank < SB_EINSUM_LABELS; e--)
            labels[rank++] = (uint8_t)(SB_EINSUM_ELLIPSIS + e);
    }
    return rank;
}

static bool has_ellipsis(const sb_einsum_term *source) {
    return memchr(source->labels, SB_EINSUM_MARK, (size_t)source->count) != NULL;
}

/* ---- inference ---- */

static sb_status join_label(sb_infer *infer, int label, sb_dim *extent, sb_dim other) {
    int64_t left = 0, right = 0;
    bool known = *extent != NULL && sb_dim_is_constant(*extent, &left);
    bool also = sb_dim_is_constant(other, &right);
    if (*extent == NULL || (label >= SB_EINSUM_ELLIPSIS && known && left == 1)) {
        *extent = other;
        return SB_OK;
    }
    if (label >= SB_EINSUM_ELLIPSIS && (sb_dim_equal(*extent, other) || (also && right == 1)))
        return SB_OK;
    if (known && also && left != right)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "one label has the extents %lld and %lld", (long long)left,
                             (long long)right);
    /* Extents of an ellipsis may turn out to be 1, which is broadcast; those of a letter are equal. */
    if (also)
        *extent = other;
    else if (label >= SB_EINSUM_ELLIPSIS && !known)
        *extent = sb_infer_fresh(infer, 0, label);
    return SB_OK;
}

static sb_status infer_einsum(sb_infer *infer) {
    const sb_einsum_params *params = infer->node->params;
    sb_dim extents[SB_EINSUM_LABELS] = {NULL}, dims[SB_EINSUM_LABELS];
    uint8_t labels[SB_EINSUM_LABELS];
    const sb_fact *first = NULL;
    int widest = 0;
    bool open = false;
    for (int t = 0; t < params->count; t++) {
        const sb_fact *input;
        SB_TRY(sb_infer_require(infer, t, SB_SET_NUMBER, &input));
        first = t == 0 ? input : first;
        if (input->dtype != first->dtype)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is %s, input 0 is %s", t, sb_dtype_name(input->dtype),
                                 sb_dtype_name(first->dtype));
        if (input->rank == SB_RANK_UNKNOWN) {
            open = true;
            continue;
        }
        bool spreads = has_ellipsis(&params->terms[t]);
        int wide = input->rank - params->terms[t].count + (spreads ? 1 : 0);
        if (wide < 0 || (wide > 0 && !spreads))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d, its term %d labels", t, input->rank,
                                 params->terms[t].count);
        widest = wide > widest ? wide : widest;
        spread(&params->terms[t], wide, labels);
        for (int d = 0; d < input->rank; d++)
            SB_TRY(join_label(infer, labels[d], &extents[labels[d]], input->dims[d]));
    }
    int rank = spread(&params->terms[params->count], widest, labels);
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    for (int d = 0; d < rank && !open; d++) {
        dims[d] = extents[labels[d]];
        if (dims[d] == NULL || memchr(labels, labels[d], (size_t)d) != NULL)
            return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "label %d of the output is in no input, or repeated",
                                 d);
    }
    sb_fact_set_tensor(&infer->outputs[0], first->dtype, open ? SB_RANK_UNKNOWN : rank, dims);
    return SB_OK;
}

/* ---- evaluation ---- */

sb_status sb_einsum_plan(const sb_call *call, sb_einsum_nest *loops) {
    const sb_einsum_params *params = call->node->params;
    int64_t extents[SB_EINSUM_LABELS];
    uint8_t labels[SB_EINSUM_LABELS], order[SB_EINSUM_LABELS];
    int widest = 0, position[SB_EINSUM_LABELS];
    for (int i = 0; i < SB_EINSUM_LABELS; i++)
        extents[i] = position[i] = -1;
    for (int t = 0; t < params->count; t++) {
        int wide = loops->tensors[t]->rank - params->terms[t].count + (has_ellipsis(&params->terms[t]) ? 1 : 0);
        widest = wide > widest ? wide : widest;
    }
    int count = loops->outer = spread(&params->terms[params->count], widest, order);
    for (int i = 0; i < count; i++)
        position[order[i]] = i;
    for (int t = 0; t < params->count; t++) {
        const sb_tensor *tensor = loops->tensors[t];
        spread(&params->terms[t], tensor->rank - params->terms[t].count + 1, labels);
        for (int d = 0; d < tensor->rank; d++) {
            int label = labels[d];
            int64_t *extent = &extents[label];
            if (position[label] < 0) {
                position[label] = count;
                order[count++] = (uint8_t)label;
            }
            if (*extent >= 0 && *extent != tensor->dims[d] &&
                (label < SB_EINSUM_ELLIPSIS || (*extent != 1 && tensor->dims[d] != 1)))
                return sb_call_fail(call, SB_ERROR_SHAPE, "one label has the extents %lld and %lld", (long long)*extent,
                                    (long long)tensor->dims[d]);
            if (*extent < 0 || *extent == 1)
                *extent = tensor->dims[d];
        }
    }
    loops->inner = count - loops->outer;
    for (int i = 0; i < count; i++)
        loops->dims[i] = extents[order[i]];
    for (int t = 0; t < params->count; t++) {
        const sb_tensor *tensor = loops->tensors[t];
        spread(&params->terms[t], tensor->rank - params->terms[t].count + 1, labels);
        for (int d = 0; d < tensor->rank; d++) {
            /* A repeated label walks the diagonal: its steps add up. */
            if (tensor->dims[d] != 1)
                loops->steps[t][position[labels[d]]] += tensor->strides[d];
        }
    }
    return SB_OK;
}

static int64_t operand_offset(const sb_einsum_nest *loops, int operand, const int64_t *index) {
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

#define LOAD_f32(tensor, offset) sb_real_load_f32((tensor)->dtype, (tensor)->data, offset)
#define LOAD_f64(tensor, offset) (((const double *)(const void *)(tensor)->data)[offset])

/* The innermost summed label is a plain loop over steps; the others are counted. */
#define DEFINE_CHAIN(suffix, type)                                                                                     \
    static type chain_##suffix(const sb_einsum_nest *loops) {                                                          \
        type acc = (type)0;                                                                                            \
        int64_t index[SB_EINSUM_LABELS] = {0};                                                                         \
        const int64_t *dims = loops->dims + loops->outer;                                                              \
        if (is_empty(loops->inner, dims))                                                                              \
            return acc;                                                                                                \
        do {                                                                                                           \
            int last = loops->operands - 1;                                                                            \
            type value = LOAD_##suffix(loops->tensors[last], operand_offset(loops, last, index));                      \
            if (last == 0) {                                                                                           \
                acc += value;                                                                                          \
                continue;                                                                                              \
            }                                                                                                          \
            type product = LOAD_##suffix(loops->tensors[0], operand_offset(loops, 0, index));                          \
            for (int t = 1; t < last; t++)                                                                             \
                product *= LOAD_##suffix(loops->tensors[t], operand_offset(loops, t, index));                          \
            acc = sb_fma_##suffix(product, value, acc);                                                                \
        } while (sb_move_next(loops->inner, dims, index));                                                             \
        return acc;                                                                                                    \
    }

DEFINE_CHAIN(f32, float)
DEFINE_CHAIN(f64, double)

static uint64_t load_integer(const sb_tensor *tensor, int64_t offset) {
    const void *at = tensor->data + offset * (int64_t)sb_dtype_size(tensor->dtype);
    switch (tensor->dtype) {
    case SB_S8:
        return (uint64_t)(int64_t) * (const int8_t *)at;
    case SB_S16:
        return (uint64_t)(int64_t) * (const int16_t *)at;
    case SB_S32:
        return (uint64_t)(int64_t) * (const int32_t *)at;
    case SB_U8:
        return *(const uint8_t *)at;
    case SB_U16:
        return *(const uint16_t *)at;
    case SB_U32:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static uint64_t chain_integer(const sb_einsum_nest *loops) {
    uint64_t sum = 0;
    int64_t index[SB_EINSUM_LABELS] = {0};
    const int64_t *dims = loops->dims + loops->outer;
    if (is_empty(loops->inner, dims))
        return sum;
    do {
        uint64_t product = 1;
        for (int t = 0; t < loops->operands; t++)
            product *= load_integer(loops->tensors[t], operand_offset(loops, t, index));
        sum += product;
    } while (sb_move_next(loops->inner, dims, index));
    return sum;
}

static void store_integer(sb_tensor *output, int64_t element, uint64_t value) {
    switch (sb_dtype_size(output->dtype)) {
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

static void run_nest(sb_einsum_nest *loops, sb_tensor *output) {
    int64_t index[SB_EINSUM_LABELS] = {0}, element = 0;
    size_t size = sb_dtype_size(output->dtype);
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
            sb_move_element(output->data + element * (int64_t)size,
                            loops->tensors[0]->data + loops->offsets[0] * (int64_t)size, size);
        else if (output->dtype == SB_F64)
            ((double *)(void *)output->data)[element] = chain_f64(loops);
        else if (sb_dtype_is_float(output->dtype))
            sb_real_store_f32(output->dtype, output->data, element, chain_f32(loops));
        else
            store_integer(output, element, chain_integer(loops));
        element++;
    } while (sb_move_next(loops->outer, loops->dims, index));
}

static sb_status eval_einsum(sb_call *call) {
    const sb_einsum_params *params = call->node->params;
    size_t count = (size_t)params->count;
    sb_einsum_nest loops = {.operands = params->count,
                            .tensors = sb_allocate_array(count, sizeof *loops.tensors),
                            .steps = sb_allocate_array(count, sizeof *loops.steps),
                            .offsets = sb_allocate_array(count, sizeof *loops.offsets)};
    sb_status status = SB_OK;
    sb_tensor *output;
    if (loops.tensors == NULL || loops.steps == NULL || loops.offsets == NULL)
        status = sb_fail_memory(call->error, count * sizeof *loops.steps);
    for (int t = 0; t < params->count && status == SB_OK; t++)
        loops.tensors[t] = sb_call_input(call, t);
    if (status == SB_OK)
        status = sb_einsum_plan(call, &loops);
    if (status == SB_OK)
        status = sb_call_output(call, 0, &output);
    if (status == SB_OK)
        run_nest(&loops, output);
    sb_free(loops.tensors);
    sb_free(loops.steps);
    sb_free(loops.offsets);
    return status;
}

const sb_op sb_ops_einsum[] = {
    {.name = "Einsum",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_einsum_params),
     .prepare = prepare_einsum,
     .release = release_einsum,
     .infer = infer_einsum,
     .eval = eval_einsum},
    {0},
};
