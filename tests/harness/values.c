/* Tensors of awkward values that lie awkwardly in memory. */
#include <math.h>

#include "harness/harness.h"
#include "numerics/convert.h"
#include "ops/real.h"

const sb_dtype float_types[4] = {SB_F16, SB_BF16, SB_F32, SB_F64};

/* Values that are worth more than chance gives them. */
static void fill_awkward(random_source *random, sb_dtype dtype, void *data, size_t count) {
    static const float special[] = {0.0f,   -0.0f, 1.0f,   -1.0f,  2.0f,     3.0f,   0.5f,    -2.5f,
                                    1e-30f, 7.0f,  100.0f, -0.75f, 65504.0f, 255.5f, -128.5f, 1e-40f};
    static const float rare[] = {INFINITY, -INFINITY, NAN, -1e-40f};
    size_t size = sb_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(random);
        float narrow = (bits >> 42 & 63) == 0 ? rare[bits >> 32 & 3] : special[bits >> 32 & 15];
        double wide = (double)narrow;
        bool plain = (bits >> 40 & 3) != 0;
        char *at = (char *)data + i * size;
        switch (dtype) {
        case SB_BOOL:
            *at = (char)(bits & 1);
            break;
        case SB_F64:
            memcpy(at, plain ? (const void *)&wide : &bits, size);
            break;
        case SB_F32:
            memcpy(at, plain ? (const void *)&narrow : &bits, size);
            break;
        case SB_F16:
        case SB_BF16: {
            uint16_t half = dtype == SB_F16 ? sb_f16_from_f32(narrow) : sb_bf16_from_f32(narrow);
            memcpy(at, plain ? (const void *)&half : &bits, size);
            break;
        }
        default:
            bits = plain ? bits >> 60 : bits;
            memcpy(at, &bits, size);
        }
    }
}

/* Strides of the layout, and the element of the storage that is the first. */
static int64_t lay_out(random_source *random, layout layout, int rank, const int64_t *dims, int64_t *strides,
                       int64_t *count) {
    int64_t stride = layout == APART ? 3 : 1, first = layout == SHIFTED ? 1 : 0;
    for (int i = 0; i < rank; i++) {
        int d = layout == TRANSPOSED ? i : rank - 1 - i;
        strides[d] = stride;
        if (layout == BROADCAST && random_bits(random) % 2 == 0)
            strides[d] = 0;
        else
            stride *= dims[d] > 0 ? dims[d] : 1;
    }
    for (int d = 0; d < rank && layout == REVERSED; d++) {
        first += dims[d] > 0 ? (dims[d] - 1) * strides[d] : 0;
        strides[d] = -strides[d];
    }
    *count = stride + (layout == APART ? 4 : 2);
    return first;
}

sb_tensor *make_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, layout layout) {
    int64_t strides[SB_MAX_RANK], count;
    int64_t first = lay_out(&h->random, layout, rank, dims, strides, &count);
    sb_tensor *base = NULL, *tensor = NULL;
    MUST(sb_tensor_create(dtype, 1, &count, &base, error));
    fill_awkward(&h->random, dtype, base->data, (size_t)count);
    h->values |= 1u << AWKWARD;
    MUST(sb_tensor_over(base->storage, base->data + first * (int64_t)sb_dtype_size(dtype), dtype, rank, dims, strides,
                        &tensor, error));
    sb_tensor_release(base);
    return tensor;
}

sb_tensor *permuted_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims) {
    static const int orders[5][4] = {{0}, {0}, {1, 0}, {1, 2, 0}, {2, 0, 3, 1}}; /* the slowest dimension first */
    int64_t memory[SB_MAX_RANK];
    int back[SB_MAX_RANK];
    sb_tensor *whole, *rows, *tensor;
    assert_true(rank < 5);
    for (int i = 0; i < rank; i++) {
        memory[i] = dims[orders[rank][i]] + (i == rank - 1);
        back[orders[rank][i]] = i;
    }
    whole = make_tensor(h, dtype, rank, memory, PACKED);
    if (rank == 0)
        return whole;
    MUST(sb_tensor_slice(whole, rank - 1, 0, memory[rank - 1] - 1, 1, &rows, error));
    MUST(sb_tensor_transpose(rows, back, &tensor, error));
    sb_tensor_release(rows);
    sb_tensor_release(whole);
    return tensor;
}

sb_tensor *any_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims) {
    return make_tensor(h, dtype, rank, dims, (layout)random_between(&h->random, 0, LAYOUTS - 1));
}

sb_tensor *number_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, bool awkward) {
    unsigned before = h->values;
    sb_tensor *tensor = any_tensor(h, dtype, rank, dims);
    size_t count = tensor->storage->bytes / sb_dtype_size(dtype);
    if (!awkward && sb_dtype_is_float(dtype))
        h->values = before | 1u << NUMBERS;
    for (size_t i = 0; i < count && !awkward && sb_dtype_is_float(dtype); i++) {
        double value = (double)(int32_t)random_bits(&h->random) * 0x1p-29;
        if (dtype == SB_F64)
            ((double *)tensor->storage->data)[i] = value;
        else
            sb_real_store_f32(dtype, (char *)tensor->storage->data, (int64_t)i, (float)value);
    }
    return tensor;
}

sb_tensor *any_indices(harness *h, sb_dtype dtype, int rank, const int64_t *dims, int64_t extent, bool astray) {
    unsigned before = h->values;
    sb_tensor *tensor = any_tensor(h, dtype, rank, dims);
    size_t count = tensor->storage->bytes / sb_dtype_size(dtype);
    h->values = before;
    for (size_t i = 0; i < count; i++) {
        int64_t index = extent == 0 ? 0 : random_between(&h->random, -extent, extent - 1);
        index = astray ? extent : index;
        if (dtype == SB_S32)
            ((int32_t *)tensor->storage->data)[i] = (int32_t)index;
        else
            ((int64_t *)tensor->storage->data)[i] = index;
    }
    return tensor;
}

sb_tensor *packed_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    fill_random(&h->random, kind, tensor);
    h->values |= 1u << kind;
    return tensor;
}

sb_tensor *gapped_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims) {
    int64_t memory[SB_MAX_RANK], unit = 16 / (int64_t)sb_dtype_size(dtype);
    sb_tensor *whole, *tensor = NULL, *elements = packed_tensor(h, kind, dtype, rank, dims);
    memcpy(memory, dims, (size_t)rank * sizeof *memory);
    memory[rank - 1] = (dims[rank - 1] + unit - 1) / unit * unit;
    MUST(sb_tensor_create(dtype, rank, memory, &whole, error));
    memset(whole->data, 0xff, (size_t)sb_tensor_elements(whole) * sb_dtype_size(dtype));
    MUST(sb_tensor_slice(whole, rank - 1, 0, dims[rank - 1], 1, &tensor, error));
    sb_tensor_copy_elements(tensor, elements);
    sb_tensor_release(elements);
    sb_tensor_release(whole);
    return tensor;
}

sb_tensor *channels_last_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor = packed_tensor(h, kind, dtype, rank, dims);
    int64_t stride = dims[1];
    tensor->strides[1] = 1;
    for (int d = rank - 1; d > 1; stride *= dims[d--])
        tensor->strides[d] = stride;
    tensor->strides[0] = stride;
    return tensor;
}

sb_tensor *random_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims) {
    random_source *source = &h->random;
    int64_t strides[SB_MAX_RANK], stride = 1, first = 0;
    int order[SB_MAX_RANK]; /* dimensions, the innermost first */
    bool plain = random_between(source, 0, 2) == 0;
    for (int i = 0; i < rank; i++) {
        int j = plain ? i : (int)random_between(source, 0, i);
        order[i] = order[j];
        order[j] = rank - 1 - i;
    }
    for (int i = 0; i < rank; i++) {
        int64_t extent = dims[order[i]], step = plain || random_between(source, 0, 3) != 0 ? 1 : 2;
        bool backward = !plain && extent > 0 && random_between(source, 0, 5) == 0;
        bool broadcast = !plain && random_between(source, 0, 15) == 0;
        strides[order[i]] = broadcast ? 0 : backward ? -stride * step : stride * step;
        first += backward && !broadcast ? (extent - 1) * stride * step : 0;
        stride *= broadcast || extent == 0 ? 1 : extent * step;
    }
    sb_tensor *base = NULL, *tensor = NULL;
    MUST(sb_tensor_create(dtype, 1, &stride, &base, error));
    fill_random(source, kind, base);
    h->values |= 1u << kind;
    MUST(sb_tensor_over(base->storage, base->data + first * (int64_t)sb_dtype_size(dtype), dtype, rank, dims, strides,
                        &tensor, error));
    sb_tensor_release(base);
    return tensor;
}
