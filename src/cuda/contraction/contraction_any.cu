/* Contractions of all dtypes by their definition, a thread for each element: what has no faster kernel. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/chains.cuh"
#include "cuda/contraction/contraction_parameters.h"
#include "cuda/contraction/epilogue.cuh"

/* ---- matrix products ---- */

/* The element that a thread computes. */
typedef struct product_place {
    int64_t batch, row, column;
    int64_t a, b; /* where its chain begins */
} product_place;

SB_CUDA_FUNCTION product_place find_product(const sb_cuda_any_matmul *p, int64_t index) {
    product_place at;
    at.batch = index;
    at.column = sb_cuda_take(&at.batch, p->n);
    at.row = sb_cuda_take(&at.batch, p->m);
    at.a = at.row * p->a_row;
    at.b = at.column * p->b_column;
    int64_t rest = at.batch;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t number = sb_cuda_take(&rest, p->dims[d]);
        at.a += number * p->a_steps[d];
        at.b += number * p->b_steps[d];
    }
    return at;
}

/* Whether nobody looks at the element, which is behind the used rows or columns. */
SB_CUDA_FUNCTION bool is_unused(const sb_cuda_any_matmul *p, const product_place *at) {
    return at->row >= sb_cuda_used(p->used_m, p->m) || at->column >= sb_cuda_used(p->used_n, p->n);
}

SB_CUDA_FUNCTION int64_t find_addend(const sb_cuda_any_matmul *p, const product_place *at) {
    return at->row * p->addend_row + at->column * p->addend_column;
}

/* What the element is behind its chain, in the type of computation. */
#define EPILOGUE_FLOAT(real, load, value)                                                                              \
    if (p->alpha != 1.0f)                                                                                              \
        value = (real)p->alpha * value;                                                                                \
    if (p->addend) {                                                                                                   \
        real other = load;                                                                                             \
        value = value + (p->beta != 1.0f ? (real)p->beta * other : other);                                             \
    }

SB_CUDA_KERNEL(sb_cuda_matmul_any_f64, sb_cuda_any_matmul, p) {
    const int64_t depth = sb_cuda_used(p->used_k, p->k);
    SB_CUDA_EACH(index, p->elements) {
        product_place at = find_product(p, index);
        if (is_unused(p, &at))
            continue;
        double value =
            sb_chain_f64((const double *)p->a + at.a, p->a_k, (const double *)p->b + at.b, p->b_k, depth, 0.0);
        EPILOGUE_FLOAT(double, ((const double *)p->addend)[find_addend(p, &at)], value)
        ((double *)p->y)[index] = value;
    }
}

/* Signed ones too: everything is modulo 2 to the width. */
#define PRODUCT_INTEGER(suffix, type)                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_matmul_any_##suffix, sb_cuda_any_matmul, p) {                                               \
        const int64_t depth = sb_cuda_used(p->used_k, p->k);                                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            product_place at = find_product(p, index);                                                                 \
            if (is_unused(p, &at))                                                                                     \
                continue;                                                                                              \
            const type *a = (const type *)p->a + at.a, *b = (const type *)p->b + at.b;                                 \
            type value = 0;                                                                                            \
            for (int64_t k = 0; k < depth; k++)                                                                        \
                value += a[k * p->a_k] * b[k * p->b_k];                                                                \
            value *= (type)(int64_t)p->alpha;                                                                          \
            if (p->addend)                                                                                             \
                value += (type)(int64_t)p->beta * ((const type *)p->addend)[find_addend(p, &at)];                      \
            ((type *)p->y)[index] = value;                                                                             \
        }                                                                                                              \
    }
PRODUCT_INTEGER(u32, uint32_t)
PRODUCT_INTEGER(u64, uint64_t)

/* ---- convolutions ---- */

/* Where tap `tap` of output position `position` lies in the input, and whether it does; and where
 * in the weights. */
SB_CUDA_FUNCTION bool find_tap(const sb_cuda_any_convolution *p, int64_t position, int64_t tap, int64_t *x_offset,
                               int64_t *w_offset) {
    bool inside = true;
    *x_offset = *w_offset = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t t = sb_cuda_take(&tap, p->kernel[d]), o = sb_cuda_take(&position, p->out[d]);
        int64_t at = o * p->stride[d] + t * p->dilation[d] - p->begin[d];
        inside = inside && at >= 0 && at < p->in[d];
        *x_offset += at * p->x_steps[d];
        *w_offset += t * p->w_steps[d];
    }
    return inside;
}

/* The chain of element `output`, `position` of sample `sample`, and the bias. */
#define CHAIN(suffix, type, load, value)                                                                               \
    do {                                                                                                               \
        int64_t group = output;                                                                                        \
        sb_cuda_take(&group, p->group_outputs);                                                                        \
        int64_t x = sample * p->x_sample + group * p->channels * p->x_channel;                                         \
        sb_cuda_chain_##suffix chain;                                                                                  \
        sb_cuda_chain_start_##suffix(&chain);                                                                          \
        for (int64_t t = 0; t < p->taps; t++) {                                                                        \
            int64_t x_offset, w_offset;                                                                                \
            bool inside = find_tap(p, position, t, &x_offset, &w_offset);                                              \
            const type *left = (const type *)p->x + x + (inside ? x_offset : 0);                                       \
            const type *right = (const type *)p->w + output * p->w_output + w_offset;                                  \
            for (int64_t c = 0; c < p->channels; c++)                                                                  \
                sb_cuda_chain_push_##suffix(&chain, inside ? left[c * p->x_channel] : (type)0,                         \
                                            right[c * p->w_channel]);                                                  \
        }                                                                                                              \
        value = sb_cuda_chain_end_##suffix(&chain);                                                                    \
        if (p->bias)                                                                                                   \
            value = value + load(((const type *)p->bias)[output * p->bias_step]);                                      \
    } while (0)

#define CONVOLUTION(suffix, type, real, load, store)                                                                   \
    SB_CUDA_KERNEL(sb_cuda_conv_any_##suffix, sb_cuda_any_convolution, p) {                                            \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t sample = index, position = sb_cuda_take(&sample, p->positions);                                    \
            int64_t output = sb_cuda_take(&sample, p->outputs);                                                        \
            real value;                                                                                                \
            CHAIN(suffix, type, load, value);                                                                          \
            ((type *)p->y)[index] = store(value);                                                                      \
        }                                                                                                              \
    }
#define SAME(value) (value)
CONVOLUTION(f16, uint16_t, float, sb_f16_to_f32, sb_f16_from_f32)
CONVOLUTION(bf16, uint16_t, float, sb_bf16_to_f32, sb_bf16_from_f32)
CONVOLUTION(f64, double, double, SAME, SAME)

/* With the nodes behind, which only f32 has. */
SB_CUDA_KERNEL(sb_cuda_conv_any_f32, sb_cuda_any_convolution, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t sample = index, position = sb_cuda_take(&sample, p->positions);
        int64_t output = sb_cuda_take(&sample, p->outputs);
        float value;
        CHAIN(f32, float, SAME, value);
        sb_cuda_epilogue_place place;
        sb_cuda_epilogue_begin(&p->epilogue, sample, &place);
        place.row = output;
        place.column = position;
        ((float *)p->y)[index] = sb_cuda_epilogue_f32(&p->epilogue, &place, value);
    }
}
