#define _GNU_SOURCE /* memmem */
/* StringConcat and StringSplit. */
#include <string.h>
#include <utf8proc.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/moving.h"
#include "rules/counting.h"
#include "rules/question.h"

/* ---- StringConcat: the text of the first input, then that of the second, broadcast ---- */

static sb_status infer_concat(sb_infer *infer) {
    const sb_fact *facts[2];
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_STRING), &facts[0]));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(SB_STRING), &facts[1]));
    return sb_infer_broadcast(infer, 0, SB_STRING, 2, facts);
}

/* Operand 0 is the output's entry, 1 and 2 are the texts. */
static void measure_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    size_t *bytes = opaque;
    for (int64_t i = 0; i < count; i++) {
        size_t left = SB_CONST_AT(sb_string, data[1], steps[1], i).bytes;
        size_t right = SB_CONST_AT(sb_string, data[2], steps[2], i).bytes, both;
        if (__builtin_add_overflow(left, right, &both) || __builtin_add_overflow(*bytes, both, bytes))
            *bytes = SIZE_MAX;
    }
}

static void append(char **to, sb_string text) {
    if (text.bytes != 0)
        memcpy(*to, text.data, text.bytes);
    *to += text.bytes;
}

static void join_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    char **to = opaque;
    for (int64_t i = 0; i < count; i++) {
        char *begin = *to;
        append(to, SB_CONST_AT(sb_string, data[1], steps[1], i));
        append(to, SB_CONST_AT(sb_string, data[2], steps[2], i));
        SB_AT(sb_string, data[0], steps[0], i) = (sb_string){begin, (size_t)(*to - begin)};
    }
}

static sb_status eval_concat(sb_call *call) {
    sb_tensor *output;
    SB_TRY(sb_move_output_fact(call, 0, &output));
    const sb_tensor *operands[3] = {output, sb_call_input(call, 0), sb_call_input(call, 1)};
    size_t bytes = 0;
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 3, operands);
    sb_walk_run(&walk, measure_row, &bytes);
    char *texts = sb_allocate(bytes), *to = texts;
    sb_status status = texts == NULL ? sb_fail_memory(call->error, bytes) : SB_OK;
    if (status == SB_OK)
        sb_walk_run(&walk, join_row, &to);
    status = sb_move_finish(call, 0, output, status);
    sb_free(texts);
    return status;
}

/* ---- StringSplit: the parts of each text along a new last axis, filled up with empty text ---- */

typedef struct split_params {
    const char *delimiter; /* the node's; empty: white space */
    int64_t most;          /* splits */
} split_params;

static sb_status prepare_split(sb_node *node, sb_error *error) {
    split_params *params = node->params;
    SB_TRY(sb_node_string(node, "delimiter", "", &params->delimiter, error));
    SB_TRY(sb_node_int(node, "maxsplit", -1, &params->most, error));
    if (params->most < 0)
        params->most = INT64_MAX;
    return SB_OK;
}

static sb_status infer_split(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_STRING), &input));
    if (infer->output_count > 1)
        sb_infer_shape_of(infer, 1, input, SB_S64);
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], SB_STRING, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (input->rank == SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, and the output would have one more",
                             input->rank);
    sb_dim dims[SB_MAX_RANK];
    memcpy(dims, input->dims, sizeof dims);
    dims[input->rank] = sb_infer_fresh(infer, 0, input->rank);
    sb_fact_set_tensor(&infer->outputs[0], SB_STRING, input->rank + 1, dims);
    return SB_OK;
}

static bool is_space(utf8proc_int32_t point) {
    return (point >= 0x09 && point <= 0x0d) || (point >= 0x1c && point <= 0x20) || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 || point == 0x2029 ||
           point == 0x202f || point == 0x205f || point == 0x3000;
}

/* Bytes of the character that the text begins with, and whether it is a space. A byte that is not UTF-8 is one of its
 * own, and no space. */
static size_t first_character(sb_string text, bool *space) {
    utf8proc_int32_t point;
    utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.bytes, &point);
    *space = step > 0 && is_space(point);
    return step > 0 ? (size_t)step : 1;
}

static void drop(sb_string *text, size_t bytes) {
    text->data += bytes;
    text->bytes -= bytes;
}

/* Bytes up to the first space, or up to the first character that is none. */
static size_t measure_run(sb_string text, bool of_spaces) {
    size_t bytes = 0;
    for (sb_string rest = text; rest.bytes != 0;) {
        bool space;
        size_t step = first_character(rest, &space);
        if (space != of_spaces)
            break;
        drop(&rest, step);
        bytes += step;
    }
    return bytes;
}

/* What is left of a text that is being split. */
typedef struct splitting {
    const split_params *params;
    size_t delimiter; /* bytes */
    sb_string rest;
    int64_t splits;
    bool done;
} splitting;

/* Takes the next part of the rest; false when there is none. */
static bool next_part(splitting *at, sb_string *part) {
    if (at->delimiter == 0)
        drop(&at->rest, at->rest.bytes != 0 ? measure_run(at->rest, true) : 0);
    if (at->done || (at->delimiter == 0 && at->rest.bytes == 0))
        return false;
    bool may_split = at->splits++ < at->params->most && at->rest.bytes != 0;
    size_t length = at->rest.bytes, gap = 0;
    if (may_split && at->delimiter == 0) {
        length = measure_run(at->rest, false);
    } else if (may_split) {
        const char *found = memmem(at->rest.data, at->rest.bytes, at->params->delimiter, at->delimiter);
        length = found != NULL ? (size_t)(found - at->rest.data) : length;
        gap = found != NULL ? at->delimiter : 0;
    }
    *part = (sb_string){at->rest.data, length};
    at->done = length == at->rest.bytes;
    if (at->rest.bytes != 0)
        drop(&at->rest, length + gap);
    return true;
}

/* Operand 0 is the text. */
typedef struct split_context {
    const split_params *params;
    size_t delimiter;
    int64_t *counts; /* the next one to write, and later to read */
    int64_t most;
    sb_string *parts; /* the next row of `most` to write; NULL: only count */
} split_context;

static void split_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    split_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        splitting at = {context->params, context->delimiter, SB_CONST_AT(sb_string, data[0], steps[0], i), 0, false};
        sb_string part;
        int64_t parts = 0;
        for (; next_part(&at, &part); parts++) {
            if (context->parts != NULL)
                context->parts[parts] = part;
        }
        if (context->parts != NULL) {
            context->parts += context->most;
            continue;
        }
        *context->counts++ = parts;
        context->most = parts > context->most ? parts : context->most;
    }
}

static sb_status set_parts(sb_call *call, const sb_walk *walk, split_context *context) {
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t dims[SB_MAX_RANK], elements;
    memcpy(dims, input->dims, sizeof dims);
    dims[input->rank] = context->most;
    SB_TRY(sb_count_elements(SB_STRING, input->rank + 1, dims, &elements, call->error));
    sb_string *parts = sb_allocate_array((size_t)elements, sizeof *parts);
    if (parts == NULL)
        return sb_fail_memory(call->error, (size_t)elements * sizeof *parts);
    context->parts = parts;
    sb_walk_run(walk, split_row, context);
    sb_tensor *output;
    sb_status status = sb_tensor_from_strings(input->rank + 1, dims, parts, &output, call->error);
    sb_free(parts);
    return status == SB_OK ? sb_call_set_output(call, 0, output) : status;
}

static sb_status eval_split(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    const split_params *params = call->node->params;
    split_context context = {.params = params, .delimiter = strlen(params->delimiter)};
    sb_tensor *counts;
    SB_TRY(sb_tensor_create_uninitialised(SB_S64, input->rank, input->dims, &counts, call->error));
    context.counts = (int64_t *)(void *)counts->data;
    sb_walk walk;
    sb_walk_start_ordered(&walk, input->rank, input->dims, 1, &input);
    sb_walk_run(&walk, split_row, &context);
    sb_status status = sb_call_wants(call, 0) ? set_parts(call, &walk, &context) : SB_OK;
    if (status != SB_OK || !sb_call_wants(call, 1)) {
        sb_tensor_release(counts);
        return status;
    }
    return sb_call_set_output(call, 1, counts);
}

const sb_op sb_ops_text_parts[] = {
    {.name = "StringConcat",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_concat,
     .eval = eval_concat},
    {.name = "StringSplit",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 2,
     .params_size = sizeof(split_params),
     .prepare = prepare_split,
     .infer = infer_split,
     .eval = eval_split},
    {0},
};

static sb_status axes_of_split(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_unknown(answer, "the text with the most parts decides an extent");
}

const sb_axes_entry sb_axes_text_parts[] = {
    {.op = {"StringConcat"},
     .rule = sb_axis_broadcast,
     .independent = "every axis",
     .exact = "extents of 1 that are repeated"},
    {.op = {"StringSplit"}, .rule = axes_of_split, .exact = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_text_parts[] = {
    {.op = {"StringConcat"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted},
    {.op = {"StringSplit"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted},
    {.op = {NULL}},
};
