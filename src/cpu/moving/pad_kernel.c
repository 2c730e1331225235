/* The kernel of Pad, in the order of dimensions in memory that the input has: lines are copied, filled or mirrored whole. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/spread.h"
#include "ops/pad.h"
#include "tensor/block.h"

/* Elements below which a thread is not worth waking. */
#define GRAIN_ELEMENTS 16384

static bool supports_pad(const sb_kernel_query *query, char *why) {
    if (query->inputs[0]->dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of Pad");
    return false;
}

/* A padding with its dimensions in the order of memory, outermost first. */
typedef struct padding {
    int rank;
    sb_pad_mode mode;
    int64_t in[SB_MAX_RANK], out[SB_MAX_RANK], before[SB_MAX_RANK];
    int64_t steps[SB_MAX_RANK]; /* of the input, in bytes */
    int64_t line[SB_MAX_RANK];  /* bytes of the output behind one position of a dimension */
    size_t size;                /* of an element */
    const char *from, *constant;
    char *to;
} padding;

/* What position o of dimension d looks at, -1: the constant. */
static int64_t looks_at(const padding *pad, int d, int64_t o) {
    return sb_pad_look(pad->mode, o - pad->before[d], pad->in[d]);
}

/* Elements so few that they are written before a call for a block has looked at them. */
#define FEW 8

/* `count` elements of the constant. */
static void fill(const padding *pad, int64_t count, char *to) {
    if (count <= FEW) {
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * (int64_t)pad->size, pad->constant, pad->size);
        return;
    }
    sb_block_move(pad->size, 1, count, (sb_block){to, 0, (int64_t)pad->size},
                  (sb_block){(char *)(uintptr_t)pad->constant, 0, 0});
}

/* The innermost dimension: what lies within the input is one copy. */
static void pad_line(const padding *pad, const char *from, char *to) {
    int d = pad->rank - 1;
    int64_t size = (int64_t)pad->size, out = pad->out[d];
    int64_t begin = pad->before[d] > 0 ? pad->before[d] : 0, end = pad->before[d] + pad->in[d];
    begin = begin < out ? begin : out;
    end = end < begin ? begin : end < out ? end : out;
    if (begin < end && pad->steps[d] == size)
        memcpy(to + begin * size, from + (begin - pad->before[d]) * size, (size_t)((end - begin) * size));
    else if (begin < end)
        sb_block_move(pad->size, 1, end - begin, (sb_block){to + begin * size, 0, size},
                      (sb_block){(char *)(uintptr_t)from + (begin - pad->before[d]) * pad->steps[d], 0, pad->steps[d]});
    if (pad->mode == SB_PAD_CONSTANT) {
        fill(pad, begin, to);
        fill(pad, out - end, to + end * size);
        return;
    }
    for (int64_t o = 0; o < begin; o++)
        memcpy(to + o * size, from + looks_at(pad, d, o) * pad->steps[d], pad->size);
    for (int64_t o = end; o < out; o++)
        memcpy(to + o * size, from + looks_at(pad, d, o) * pad->steps[d], pad->size);
}

static void pad_from(const padding *pad, int d, const char *from, char *to) {
    if (d == pad->rank - 1) {
        pad_line(pad, from, to);
        return;
    }
    for (int64_t o = 0; o < pad->out[d]; o++, to += pad->line[d]) {
        int64_t at = looks_at(pad, d, o);
        if (at < 0)
            fill(pad, pad->line[d] / (int64_t)pad->size, to);
        else
            pad_from(pad, d + 1, from + at * pad->steps[d], to);
    }
}

/* Positions of the two outermost dimensions, as one. */
static void pad_part(void *context, int64_t begin, int64_t end) {
    const padding *pad = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t outer = part / pad->out[1], inner = part % pad->out[1];
        int64_t first = looks_at(pad, 0, outer), second = looks_at(pad, 1, inner);
        char *to = pad->to + outer * pad->line[0] + inner * pad->line[1];
        if (first < 0 || second < 0)
            fill(pad, pad->line[1] / (int64_t)pad->size, to);
        else
            pad_from(pad, 2, pad->from + first * pad->steps[0] + second * pad->steps[1], to);
    }
}

/* Leaves out dimensions of 1, and joins those that are not padded to those outside of them, where the input's elements
 * follow each other; to padded ones only where none is looked at twice. */
static void describe(const sb_tensor *input, const int *order, const int64_t *before, const int64_t *dims,
                     padding *pad) {
    int64_t size = (int64_t)pad->size;
    bool joinable = false;
    pad->rank = 0;
    for (int i = 0; i < input->rank; i++) {
        int d = order[i], last = pad->rank - 1;
        int64_t step = input->strides[d] * size;
        bool plain = before[d] == 0 && dims[d] == input->dims[d];
        if (plain && dims[d] == 1)
            continue;
        if (plain && joinable && pad->steps[last] == step * dims[d]) {
            pad->in[last] *= dims[d];
            pad->out[last] *= dims[d];
            pad->before[last] *= dims[d];
            pad->steps[last] = step;
            continue;
        }
        pad->in[pad->rank] = input->dims[d];
        pad->out[pad->rank] = dims[d];
        pad->before[pad->rank] = before[d];
        pad->steps[pad->rank++] = step;
        joinable = plain || pad->mode == SB_PAD_CONSTANT;
    }
}

/* Puts dimensions of 1 in front until there are three, and works out the lines. */
static void complete(padding *pad) {
    while (pad->rank < 3) {
        memmove(pad->in + 1, pad->in, sizeof pad->in - sizeof *pad->in);
        memmove(pad->out + 1, pad->out, sizeof pad->out - sizeof *pad->out);
        memmove(pad->before + 1, pad->before, sizeof pad->before - sizeof *pad->before);
        memmove(pad->steps + 1, pad->steps, sizeof pad->steps - sizeof *pad->steps);
        pad->in[0] = pad->out[0] = 1;
        pad->before[0] = pad->steps[0] = 0;
        pad->rank++;
    }
    int64_t bytes = (int64_t)pad->size;
    for (int d = pad->rank - 1; d >= 0; d--) {
        pad->line[d] = bytes;
        bytes *= pad->out[d];
    }
}

static sb_status launch_pad(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    _Alignas(sb_string) char constant[sizeof(sb_string)];
    int64_t before[SB_MAX_RANK], dims[SB_MAX_RANK], known[SB_MAX_RANK];
    int order[SB_MAX_RANK];
    sb_tensor *output;
    SB_TRY(sb_pad_constant(call, constant));
    SB_TRY(sb_pad_extents(call, before, dims));
    if (sb_fact_is_concrete(&call->facts[0], known)) {
        sb_memory_order(input, order);
        SB_TRY(sb_call_output_ordered(call, 0, order, &output));
    } else {
        for (int d = 0; d < input->rank; d++)
            order[d] = d;
        SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, &output));
    }
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    padding pad = {.mode = ((const sb_pad_params *)call->node->params)->mode,
                   .size = sb_dtype_size(input->dtype),
                   .from = input->data,
                   .constant = constant,
                   .to = output->data};
    describe(input, order, before, dims, &pad);
    complete(&pad);
    int64_t elements = pad.line[1] / (int64_t)pad.size;
    sb_workers_run(call->workers, pad.out[0] * pad.out[1], GRAIN_ELEMENTS / elements + 1, pad_part, &pad);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_pad[] = {
    {.op = "Pad", .name = "pad", .supports = supports_pad, .launch = launch_pad},
    {0},
};
