/* Convolutions other than Conv, and Col2Im: one thread for each element of the output, in the order
 * of the definition. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/chains.cuh"
#include "cuda/windows/window_parameters.h"
#include "ops/deform_values.h"
#include "ops/quantized_values.h"
#include "ops/type_lists.h"

/* The coordinates of an element. */
typedef struct window_place {
    int64_t batch, group, output; /* output: channel of the group */
    int64_t position[SB_CUDA_WINDOW_AXES];
    int64_t channel; /* of the output, over all groups */
    int64_t x, w;    /* where the group's input and weights begin */
} window_place;

SB_CUDA_FUNCTION void find_place(const sb_cuda_window *p, int64_t index, window_place *at) {
    int64_t rest = index, position = sb_cuda_take(&rest, p->positions);
    at->output = sb_cuda_take(&rest, p->group_outputs);
    at->group = sb_cuda_take(&rest, p->groups);
    at->batch = rest;
    at->channel = at->group * p->group_outputs + at->output;
    for (int d = p->axes - 1; d >= 0; d--)
        at->position[d] = sb_cuda_take(&position, p->axis[d].out);
    at->x = at->batch * p->x_batch + at->group * p->group_inputs * p->x_channel;
    at->w = at->group * p->w_group + at->output * p->w_output;
}

/* Where tap number `number` reads input and weights, from the group's first elements; false outside
 * of the input. */
SB_CUDA_FUNCTION int find_tap(const sb_cuda_window *p, const window_place *at, int64_t number, int64_t *x, int64_t *w) {
    int inside = 1;
    *x = *w = 0;
    for (int d = p->axes - 1; d >= 0; d--) {
        const sb_cuda_window_axis *axis = &p->axis[d];
        int64_t tap = sb_cuda_take(&number, axis->kernel);
        int64_t from = at->position[d] * axis->stride + tap * axis->dilation - axis->begin;
        inside &= from >= 0 && from < axis->in;
        *x += from * axis->x_stride;
        *w += tap * axis->w_stride;
    }
    return inside;
}

/* The same for a transposed convolution, where positions and inputs change places. */
SB_CUDA_FUNCTION int find_reaching(const sb_cuda_window *p, const window_place *at, int64_t number, int64_t *x,
                                   int64_t *w) {
    int inside = 1;
    *x = *w = 0;
    for (int d = p->axes - 1; d >= 0; d--) {
        const sb_cuda_window_axis *axis = &p->axis[d];
        int64_t tap = sb_cuda_take(&number, axis->kernel);
        int64_t from = at->position[d] + axis->begin - tap * axis->dilation;
        int64_t place = from < 0 ? 0 : from, rest = sb_cuda_take(&place, axis->stride);
        inside &= from >= 0 && rest == 0 && place < axis->in;
        *x += place * axis->x_stride;
        *w += tap * axis->w_stride;
    }
    return inside;
}

#define CONV_TRANSPOSE(dtype, suffix, type, real, real_suffix, load, store, unused)                                    \
    SB_CUDA_KERNEL(sb_cuda_conv_transpose_##suffix, sb_cuda_window, p) {                                               \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            window_place at;                                                                                           \
            sb_cuda_chain_##suffix chain;                                                                              \
            find_place(p, index, &at);                                                                                 \
            sb_cuda_chain_start_##suffix(&chain);                                                                      \
            for (int64_t tap = 0; tap < p->taps; tap++) {                                                              \
                int64_t x, w;                                                                                          \
                if (!find_reaching(p, &at, tap, &x, &w))                                                               \
                    continue;                                                                                          \
                const type *left = (const type *)p->x + at.x + x;                                                      \
                const type *right = (const type *)p->w + at.w + w;                                                     \
                for (int64_t c = 0; c < p->group_inputs; c++)                                                          \
                    sb_cuda_chain_push_##suffix(&chain, left[c * p->x_channel], right[c * p->w_input]);                \
            }                                                                                                          \
            real sum = sb_cuda_chain_end_##suffix(&chain);                                                             \
            if (p->bias)                                                                                               \
                sum = sum + load(((const type *)p->bias)[at.channel * p->bias_stride]);                                \
            ((type *)p->y)[index] = store(sum);                                                                        \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(CONV_TRANSPOSE, )

#define DEFORM(dtype_name, suffix, type, real, real_suffix, load, store, unused)                                       \
    SB_CUDA_KERNEL(sb_cuda_deform_conv_##suffix, sb_cuda_deform, p) {                                                  \
        const sb_cuda_window *v = &p->window;                                                                          \
        const sb_cuda_window_axis *axis = v->axis;                                                                     \
        SB_CUDA_EACH(index, v->elements) {                                                                             \
            window_place at;                                                                                           \
            sb_cuda_chain_##suffix chain;                                                                              \
            find_place(v, index, &at);                                                                                 \
            sb_cuda_chain_start_##suffix(&chain);                                                                      \
            int64_t oy = at.position[0], ox = at.position[1];                                                          \
            for (int64_t number = 0; number < v->taps * v->group_inputs; number++) {                                   \
                int64_t tap = number, c = sb_cuda_take(&tap, v->group_inputs), ky = tap;                               \
                int64_t kx = sb_cuda_take(&ky, axis[1].kernel);                                                        \
                int64_t channel = at.group * v->group_inputs + c;                                                      \
                int64_t moved = channel / p->channels_per_offset * v->taps + tap;                                      \
                const int64_t *s = p->offset_strides, *m = p->mask_strides;                                            \
                const type *offset = (const type *)p->offset + at.batch * s[0] + oy * s[2] + ox * s[3];                \
                sb_deform_image image;                                                                                 \
                image.dtype = p->dtype;                                                                                \
                image.data = v->x;                                                                                     \
                image.offset = at.x + c * v->x_channel;                                                                \
                image.height = axis[0].in;                                                                             \
                image.width = axis[1].in;                                                                              \
                image.row_stride = axis[0].x_stride;                                                                   \
                image.column_stride = axis[1].x_stride;                                                                \
                real py = (real)(oy * axis[0].stride - axis[0].begin + ky * axis[0].dilation);                         \
                real px = (real)(ox * axis[1].stride - axis[1].begin + kx * axis[1].dilation);                         \
                py = py + load(offset[2 * moved * s[1]]);                                                              \
                px = px + load(offset[(2 * moved + 1) * s[1]]);                                                        \
                real value = sb_deform_sample_##real_suffix(&image, py, px);                                           \
                if (p->mask)                                                                                           \
                    value =                                                                                            \
                        value * load(((const type *)p->mask)[at.batch * m[0] + moved * m[1] + oy * m[2] + ox * m[3]]); \
                sb_cuda_chain_push_##suffix(                                                                           \
                    &chain, store(value),                                                                              \
                    ((const type *)v->w)[at.w + c * v->w_input + ky * axis[0].w_stride + kx * axis[1].w_stride]);      \
            }                                                                                                          \
            real sum = sb_cuda_chain_end_##suffix(&chain);                                                             \
            if (v->bias)                                                                                               \
                sum = sum + load(((const type *)v->bias)[at.channel * v->bias_stride]);                                \
            ((type *)v->y)[index] = store(sum);                                                                        \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(DEFORM, )

/* ---- integers ---- */

/* The sum of an element, modulo 2^32. A tap in the padding adds nothing: it is the zero point. */
SB_CUDA_FUNCTION uint32_t integer_sum(const sb_cuda_integer_conv *p, const window_place *at) {
    const sb_cuda_window *v = &p->window;
    uint32_t sum = 0;
    int32_t x_zero = p->x_zero ? sb_quantized_load(p->x_dtype, p->x_zero, 0) : 0;
    int32_t w_zero = p->w_zero ? sb_quantized_load(p->w_dtype, p->w_zero, at->channel * p->w_zero_stride) : 0;
    for (int64_t tap = 0; tap < v->taps; tap++) {
        int64_t x, w;
        if (!find_tap(v, at, tap, &x, &w))
            continue;
        for (int64_t c = 0; c < v->group_inputs; c++) {
            int32_t left = sb_quantized_load(p->x_dtype, v->x, at->x + x + c * v->x_channel);
            int32_t right = sb_quantized_load(p->w_dtype, v->w, at->w + w + c * v->w_input);
            sum += (uint32_t)(left - x_zero) * (uint32_t)(right - w_zero);
        }
    }
    return sum;
}

SB_CUDA_KERNEL(sb_cuda_conv_integer, sb_cuda_integer_conv, p) {
    SB_CUDA_EACH(index, p->window.elements) {
        window_place at;
        find_place(&p->window, index, &at);
        ((uint32_t *)p->window.y)[index] = integer_sum(p, &at);
    }
}

SB_CUDA_KERNEL(sb_cuda_qlinear_conv, sb_cuda_integer_conv, p) {
    SB_CUDA_EACH(index, p->window.elements) {
        window_place at;
        find_place(&p->window, index, &at);
        uint32_t sum = integer_sum(p, &at);
        if (p->window.bias)
            sum += ((const uint32_t *)p->window.bias)[at.channel * p->window.bias_stride];
        float multiplier = (p->x_scale[0] * p->w_scale[at.channel * p->w_scale_stride]) / p->y_scale[0];
        sb_quantized_store(
            p->window.y, index,
            sb_quantized_rescale(p->y_dtype, (int32_t)sum, multiplier, sb_quantized_load(p->y_dtype, p->y_zero, 0)));
    }
}

SB_CUDA_FUNCTION uint32_t integer_product(const sb_cuda_integer_matmul *p, int64_t index) {
    int64_t batch = index, column = sb_cuda_take(&batch, p->n), row = sb_cuda_take(&batch, p->m);
    const sb_cuda_integer_operand *a = &p->a, *b = &p->b;
    int64_t a_at = row * a->row_stride, a_zero_at = row * a->zero_row_stride;
    int64_t b_at = column * b->row_stride, b_zero_at = column * b->zero_row_stride;
    uint32_t sum = 0;
    for (int d = p->batch_rank - 1; d >= 0; d--) {
        int64_t at = sb_cuda_take(&batch, p->batch_dims[d]);
        a_at += at * a->batch_strides[d];
        a_zero_at += at * a->zero_batch_strides[d];
        b_at += at * b->batch_strides[d];
        b_zero_at += at * b->zero_batch_strides[d];
    }
    for (int64_t k = 0; k < p->k; k++) {
        int32_t left = sb_quantized_load(a->dtype, a->data, a_at + k * a->k_stride);
        int32_t right = sb_quantized_load(b->dtype, b->data, b_at + k * b->k_stride);
        if (a->zero)
            left -= sb_quantized_load(a->dtype, a->zero, a_zero_at + k * a->zero_k_stride);
        if (b->zero)
            right -= sb_quantized_load(b->dtype, b->zero, b_zero_at + k * b->zero_k_stride);
        sum += (uint32_t)left * (uint32_t)right;
    }
    return sum;
}

SB_CUDA_KERNEL(sb_cuda_matmul_integer, sb_cuda_integer_matmul, p) {
    SB_CUDA_EACH(index, p->elements)
    ((uint32_t *)p->y)[index] = integer_product(p, index);
}

SB_CUDA_KERNEL(sb_cuda_qlinear_matmul, sb_cuda_integer_matmul, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t rest = index, places[SB_RESCALE_OPERANDS] = {0, 0, 0, 0};
        float scales[3];
        for (int d = p->rank - 1; d >= 0; d--) {
            int64_t at = sb_cuda_take(&rest, p->dims[d]);
            for (int i = 0; i < SB_RESCALE_OPERANDS; i++)
                places[i] += at * p->rescale_strides[i][d];
        }
        for (int i = 0; i < 3; i++)
            scales[i] = sb_real_load_f32(p->scale_dtypes[i], p->rescale[i], places[i]);
        float multiplier = (scales[SB_RESCALE_A_SCALE] * scales[SB_RESCALE_B_SCALE]) / scales[SB_RESCALE_Y_SCALE];
        sb_quantized_store(p->y, index,
                           sb_quantized_rescale(p->y_dtype, (int32_t)integer_product(p, index), multiplier,
                                                sb_quantized_load(p->y_dtype, p->rescale[SB_RESCALE_Y_ZERO],
                                                                  places[SB_RESCALE_Y_ZERO])));
    }
}

/* ---- Col2Im ---- */

/* Each element of the block puts at most one value to a pixel. */
#define FOLD(suffix, type, real, load, store)                                                                          \
    SB_CUDA_KERNEL(sb_cuda_fold_##suffix, sb_cuda_fold, p) {                                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t channel = index, pixel = sb_cuda_take(&channel, p->pixels);                                        \
            int64_t at[SB_CUDA_WINDOW_AXES];                                                                           \
            const type *columns = (const type *)p->columns + channel * p->area * p->count;                             \
            real sum = 0;                                                                                              \
            for (int d = p->rank - 1; d >= 0; d--)                                                                     \
                at[d] = sb_cuda_take(&pixel, p->image[d]) + p->pads[d];                                                \
            for (int64_t number = 0; number < p->area; number++) {                                                     \
                int64_t rest = number, offset = 0, step = 1;                                                           \
                int inside = 1;                                                                                        \
                for (int d = p->rank - 1; d >= 0; d--) {                                                               \
                    int64_t element = sb_cuda_take(&rest, p->block[d]);                                                \
                    int64_t from = at[d] - element * p->dilations[d], place = from < 0 ? 0 : from;                     \
                    int64_t gap = sb_cuda_take(&place, p->strides[d]);                                                 \
                    inside &= from >= 0 && gap == 0 && place < p->places[d];                                           \
                    offset += place * step;                                                                            \
                    step *= p->places[d];                                                                              \
                }                                                                                                      \
                if (inside)                                                                                            \
                    sum = (real)(sum + load(columns[number * p->count + offset]));                                     \
            }                                                                                                          \
            ((type *)p->out)[index] = store(sum);                                                                      \
        }                                                                                                              \
    }
#define FOLD_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused) FOLD(suffix, type, real, load, store)
#define FOLD_INTEGER(size, type) FOLD(size, type, type, SB_SAME, SB_SAME)
SB_FLOAT_TYPES(FOLD_FLOAT, )
SB_CUDA_SIZES(FOLD_INTEGER)
