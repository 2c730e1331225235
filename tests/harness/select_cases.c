/* Single element-wise operators: types, choices, quantization, dropout. */
#include "harness/harness.h"
#include "numerics/convert.h"

typedef struct list {
    int rank;
    int64_t dims[4];
} list;

static const list shapes[] = {{0, {0}},       {1, {1}},       {1, {1031}},       {2, {0, 5}},
                              {3, {3, 5, 8}}, {3, {4, 7, 9}}, {4, {2, 3, 1, 12}}};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

/* A node on those tensors, which it takes; NULL where omitted. */
static void run_op(harness *h, const char *op, int version, int outputs, int count, sb_tensor **inputs,
                   sb_attributes *attributes, uint64_t constants) {
    harness_case test = harness_op(op, version);
    test.outputs = outputs;
    test.constants = constants;
    for (int i = 0; i < count; i++)
        add_input(&test, inputs[i]);
    if (attributes != NULL)
        test.attributes = *attributes;
    harness_run(h, &test);
}

static sb_tensor *listed_tensor(harness *h, sb_dtype dtype, const list *shape) {
    return make_tensor(h, dtype, shape->rank, shape->dims, (enum layout)random_between(&h->random, 0, LAYOUTS - 1));
}

/* With some extents of 1. */
static sb_tensor *broadcast_tensor(harness *h, sb_dtype dtype, const list *shape) {
    list smaller = *shape;
    uint64_t ones = random_bits(&h->random);
    for (int d = 0; d < shape->rank; d++)
        smaller.dims[d] = (ones >> d & 1) != 0 ? 1 : shape->dims[d];
    return listed_tensor(h, dtype, &smaller);
}

/* ---- Cast ---- */

static int onnx_type(sb_dtype dtype) {
    static const int codes[SB_DTYPE_COUNT] = {
        [SB_F32] = 1,     [SB_U8] = 2,          [SB_S8] = 3,    [SB_U16] = 4,       [SB_S16] = 5,
        [SB_S32] = 6,     [SB_S64] = 7,         [SB_BOOL] = 9,  [SB_F16] = 10,      [SB_F64] = 11,
        [SB_U32] = 12,    [SB_U64] = 13,        [SB_BF16] = 16, [SB_F8E4M3FN] = 17, [SB_F8E4M3FNUZ] = 18,
        [SB_F8E5M2] = 19, [SB_F8E5M2FNUZ] = 20, [SB_U4] = 21,   [SB_S4] = 22,       [SB_F4E2M1] = 23,
        [SB_F8E8M0] = 24, [SB_U2] = 25,         [SB_S2] = 26,   [SB_F6E2M3] = 27,   [SB_F6E3M2] = 28};
    return codes[dtype];
}

HARNESS_GROUP(select, casts, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int from = 1; from < SB_STRING; from++) {
        for (int to = 1; to < SB_STRING; to++) {
            for (int s = 0; s < SHAPES; s++) {
                sb_attributes attributes = {0};
                int64_t code = onnx_type((sb_dtype)to);
                MUST(sb_attributes_add_ints(&attributes, "to", true, 1, &code, error));
                sb_tensor *inputs[1] = {listed_tensor(h, (sb_dtype)from, &shapes[s])};
                run_op(h, "Cast", 19, 1, 1, inputs, &attributes, 0);
            }
        }
    }
    sb_tensor *inputs[2] = {listed_tensor(h, SB_F32, &shapes[4]), listed_tensor(h, SB_F16, &shapes[2])};
    run_op(h, "CastLike", 19, 1, 2, inputs, NULL, 0);
}

/* From and to the small types, by each rule in turn, on views of every distribution. */
HARNESS_GROUP(select, small_casts, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const rounds[] = {"up", "down", "nearest"};
    static const int64_t odd[] = {3, 5, 37};
    int round = 0;
    for (int from = 1; from < SB_DTYPE_COUNT; from++) {
        for (int to = 1; to < SB_DTYPE_COUNT; to++) {
            bool has_small = sb_dtype_is_small((sb_dtype)from) || sb_dtype_is_small((sb_dtype)to);
            if (!has_small || from == SB_STRING || to == SB_STRING)
                continue;
            harness_case test = harness_op("Cast", 25);
            distribution kind = (distribution)random_between(&h->random, 0, DISTRIBUTIONS - 1);
            add_input(&test, random_tensor(h, kind, (sb_dtype)from, 3, odd));
            set_int(&test, "to", onnx_type((sb_dtype)to));
            set_int(&test, "saturate", round % 2);
            set_text(&test, "round_mode", rounds[round++ % 3]);
            harness_run(h, &test);
        }
    }
}

/* All f16 and all bf16. */
HARNESS_GROUP(select, all_halves, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const rounds[] = {"up", "down", "nearest"};
    static const int64_t count = 65536;
    for (int to = SB_F8E4M3FN; to < SB_DTYPE_COUNT; to++) {
        for (int rule = 0; rule < (to == SB_F8E8M0 ? 6 : 2); rule++) {
            sb_tensor *halves = NULL;
            MUST(sb_tensor_create(rule % 2 == 0 ? SB_F16 : SB_BF16, 1, &count, &halves, error));
            for (int64_t i = 0; i < count; i++)
                ((uint16_t *)(void *)halves->data)[i] = (uint16_t)i;
            harness_case test = harness_op("Cast", 25);
            add_input(&test, halves);
            set_int(&test, "to", onnx_type((sb_dtype)to));
            set_int(&test, "saturate", rule % 2);
            set_text(&test, "round_mode", rounds[rule / 2]);
            harness_run(h, &test);
        }
    }
}

/* ---- Where, Clip ---- */

HARNESS_GROUP(select, choices, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++) {
        for (int s = 0; s < SHAPES && dtype != SB_STRING; s++) {
            sb_tensor *inputs[3] = {broadcast_tensor(h, SB_BOOL, &shapes[s]),
                                    listed_tensor(h, (sb_dtype)dtype, &shapes[s]),
                                    broadcast_tensor(h, (sb_dtype)dtype, &shapes[s])};
            run_op(h, "Where", 16, 1, 3, inputs, NULL, 0);
        }
    }
}

HARNESS_GROUP(select, clips, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int s = 0; s < SHAPES * 4 && dtype != SB_BOOL; s++) {
            sb_tensor *inputs[3] = {listed_tensor(h, (sb_dtype)dtype, &shapes[s / 4]),
                                    listed_tensor(h, (sb_dtype)dtype, &shapes[0]),
                                    listed_tensor(h, (sb_dtype)dtype, &shapes[s % 2])};
            for (int i = 0; i < 2; i++) {
                if ((s >> i & 1) == 0) {
                    sb_tensor_release(inputs[1 + i]);
                    inputs[1 + i] = NULL;
                }
            }
            run_op(h, "Clip", 13, 1, 3, inputs, NULL, 0);
        }
    }
    for (int i = 0; i < 3; i++) {
        static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_F64};
        sb_attributes attributes = {0};
        float least = -0.75f;
        MUST(sb_attributes_add_floats(&attributes, "min", true, 1, &least, error));
        sb_tensor *inputs[1] = {listed_tensor(h, dtypes[i], &shapes[5])};
        run_op(h, "Clip", 6, 1, 1, inputs, &attributes, 0);
    }
}

/* Between the floats that kernels take eight at a time. */
HARNESS_GROUP(select, packed_casts, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
    static const int64_t counts[] = {1, 7, 8, 9, 4099};
    for (int pair = 0; pair < 9; pair++) {
        for (int i = 0; i < 5 * DISTRIBUTIONS; i++) {
            harness_case test = harness_op("Cast", 13);
            add_input(&test, packed_tensor(h, (distribution)(i / 5), dtypes[pair / 3], 1, &counts[i % 5]));
            set_int(&test, "to", onnx_type(dtypes[pair % 3]));
            harness_run(h, &test);
        }
    }
}

/* Cast, Where and Clip on views of every distribution, whose rows are no multiple of any vector. */
HARNESS_GROUP(select, views, HARNESS_CPU | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_F64, SB_S8, SB_U32};
    static const int64_t odd[] = {3, 5, 37};
    for (int from = 1; from < SB_STRING; from++) {
        for (int to = 1; to < SB_STRING; to++) {
            harness_case test = harness_op("Cast", 13);
            distribution kind = (distribution)random_between(&h->random, 0, DISTRIBUTIONS - 1);
            add_input(&test, random_tensor(h, kind, (sb_dtype)from, 3, odd));
            set_int(&test, "to", onnx_type((sb_dtype)to));
            harness_run(h, &test);
        }
    }
    for (int round = 0; round < 40; round++) {
        sb_dtype dtype = dtypes[round / 2 % 5];
        distribution kind = (distribution)(round / 2 % DISTRIBUTIONS);
        harness_case test = harness_op(round % 2 == 0 ? "Clip" : "Where", 16);
        if (round % 2 == 1)
            add_input(&test, random_tensor(h, kind, SB_BOOL, 1, &odd[2]));
        add_input(&test, random_tensor(h, kind, dtype, 3, odd));
        add_input(&test, random_tensor(h, kind, dtype, 0, NULL));
        if (round % 2 == 0)
            add_input(&test, random_tensor(h, kind, dtype, 0, NULL));
        harness_run(h, &test);
    }
}

/* ---- Pow ---- */

HARNESS_GROUP(select, powers, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const sb_dtype bases[] = {SB_F16, SB_BF16, SB_F32, SB_F64, SB_S32, SB_S64};
    for (int base = 0; base < 6; base++) {
        for (int exponent = 1; exponent < SB_STRING; exponent++) {
            for (int s = 0; s < SHAPES && exponent != SB_BOOL; s++) {
                sb_tensor *inputs[2] = {listed_tensor(h, bases[base], &shapes[s]),
                                        broadcast_tensor(h, (sb_dtype)exponent, &shapes[s])};
                run_op(h, "Pow", 15, 1, 2, inputs, NULL, 0);
            }
        }
    }
}

/* ---- any number of inputs ---- */

HARNESS_GROUP(select, joins, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const char *const ops[] = {"Max", "Min", "Sum", "Mean"};
    for (int op = 0; op < 4; op++) {
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            bool real = sb_dtype_is_float((sb_dtype)dtype);
            for (int s = 0; s < SHAPES && dtype != SB_BOOL && (real || op < 2); s++) {
                sb_tensor *inputs[6];
                int count = 1 + (s + op) % 6;
                for (int i = 0; i < count; i++)
                    inputs[i] = i == 1 ? listed_tensor(h, (sb_dtype)dtype, &shapes[s])
                                       : broadcast_tensor(h, (sb_dtype)dtype, &shapes[s]);
                run_op(h, ops[op], 13, 1, count, inputs, NULL, 0);
            }
        }
    }
}

/* ---- batch normalisation ---- */

HARNESS_GROUP(select, normalizations, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const list normalized[] = {{4, {2, 5, 3, 8}}, {2, {7, 3}}, {3, {2, 4, 0}}, {1, {9}}};
    for (int s = 0; s < 16; s++) {
        const list *shape = &normalized[s / 4];
        list channels = {1, {shape->rank > 1 ? shape->dims[1] : 1}};
        sb_tensor *inputs[5] = {listed_tensor(h, dtypes[s % 4], shape)};
        for (int i = 1; i < 5; i++)
            inputs[i] = listed_tensor(h, i < 3 ? dtypes[s % 4] : s < 8 ? SB_F32 : SB_F64, &channels);
        run_op(h, "BatchNormalization", 15, 1, 5, inputs, NULL, 0);
    }
}

/* In training: the moments of the batch, in every operator set's way of asking for them. */
HARNESS_GROUP(select, training, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const list trained[] = {{4, {3, 4, 5, 7}}, {3, {2, 3, 4500}}, {2, {300, 5}}, {1, {9}}, {3, {2, 4, 0}}};
    for (int round = 0; round < 40; round++) {
        const list *shape = &trained[round % 5];
        list channels = {1, {shape->rank > 1 ? shape->dims[1] : 1}};
        sb_dtype dtype = dtypes[round / 5 % 4];
        sb_tensor *inputs[5] = {listed_tensor(h, dtype, shape)};
        for (int i = 1; i < 5; i++)
            inputs[i] = listed_tensor(h, round < 20 ? dtype : SB_F32, &channels);
        /* Ordinary numbers, so that every addition rounds. */
        for (int64_t i = 0; i < (int64_t)(inputs[0]->storage->bytes / sb_dtype_size(dtype)); i++) {
            double value = (double)(int32_t)random_bits(&h->random) * 0x1p-29;
            float narrow = (float)value;
            void *data = inputs[0]->storage->data;
            if (dtype == SB_F64)
                ((double *)data)[i] = value;
            else if (dtype == SB_F32)
                ((float *)data)[i] = narrow;
            else
                ((uint16_t *)data)[i] = dtype == SB_F16 ? sb_f16_from_f32(narrow) : sb_bf16_from_f32(narrow);
        }
        sb_attributes attributes = {0};
        int64_t training = 1;
        bool old = round % 3 == 0;
        if (!old)
            MUST(sb_attributes_add_ints(&attributes, "training_mode", true, 1, &training, error));
        run_op(h, "BatchNormalization", old ? 9 : 15, old ? 5 : 3, 5, inputs, &attributes, 0);
    }
}

/* ---- quantization ---- */

HARNESS_GROUP(select, quantization, HARNESS_CUDA) {
    static const sb_dtype quantized[] = {SB_U8, SB_S8, SB_U16, SB_S16, SB_S32};
    static const sb_dtype reals[] = {SB_F32, SB_F16, SB_BF16};
    static const list tensors[] = {{2, {9, 12}}, {3, {2, 6, 7}}, {1, {100}}, {2, {0, 4}}};
    for (int round = 0; round < 240; round++) {
        const list *shape = &tensors[round % 4];
        sb_dtype integer = quantized[round % 5], real = reals[round % 3];
        bool back = round % 2 == 1, blocked = round % 8 > 5 && shape->rank > 1, by_axis = round % 8 > 3;
        if (integer == SB_S32 && !back)
            integer = SB_S8;
        list factors = {0, {0}};
        int64_t axis = shape->rank > 1 ? 1 : 0, block = 4;
        if (blocked) {
            factors = *shape;
            factors.dims[axis] = (factors.dims[axis] + block - 1) / block;
        } else if (by_axis) {
            factors = (list){1, {shape->dims[axis]}};
        }
        sb_attributes attributes = {0};
        MUST(sb_attributes_add_ints(&attributes, "axis", true, 1, &axis, error));
        if (blocked)
            MUST(sb_attributes_add_ints(&attributes, "block_size", true, 1, &block, error));
        sb_tensor *inputs[3] = {listed_tensor(h, back ? integer : real, shape), listed_tensor(h, real, &factors),
                                round % 7 < 4 ? listed_tensor(h, integer, &factors) : NULL};
        run_op(h, back ? "DequantizeLinear" : "QuantizeLinear", 21, 1, 3, inputs, &attributes, 0);
    }
    for (int round = 0; round < 264; round++) {
        static const sb_dtype small[] = {SB_F8E4M3FN, SB_F8E4M3FNUZ, SB_F8E5M2, SB_F8E5M2FNUZ, SB_F4E2M1, SB_S4,
                                         SB_U4,       SB_S2,         SB_U2,     SB_F6E2M3,     SB_F6E3M2};
        const list *shape = &tensors[round % 2];
        sb_dtype dtype = small[round % 11], real = reals[round / 2 % 3];
        bool back = round / 11 % 2 == 1, by_powers = round / 22 % 3 == 2;
        list factors = {1, {shape->dims[1]}};
        sb_tensor *inputs[3] = {listed_tensor(h, back ? dtype : real, shape),
                                listed_tensor(h, by_powers ? SB_F8E8M0 : real, &factors),
                                round % 3 < 2 ? listed_tensor(h, dtype, &factors) : NULL};
        sb_attributes attributes = {0};
        int64_t output = onnx_type(back ? real : dtype), saturate = round % 5 < 3;
        int64_t precision = round % 4 == 3 ? onnx_type(reals[round / 4 % 3]) : 0;
        MUST(sb_attributes_add_ints(&attributes, "output_dtype", true, 1, &output, error));
        if (!back) {
            MUST(sb_attributes_add_ints(&attributes, "saturate", true, 1, &saturate, error));
            MUST(sb_attributes_add_ints(&attributes, "precision", true, 1, &precision, error));
        }
        run_op(h, back ? "DequantizeLinear" : "QuantizeLinear", 25, 1, 3, inputs, &attributes, 0);
    }
    for (int s = 0; s < SHAPES; s++) {
        sb_tensor *inputs[1] = {listed_tensor(h, SB_F32, &shapes[s])};
        run_op(h, "DynamicQuantizeLinear", 11, 3, 1, inputs, NULL, 0);
        sb_tensor *plain[1] = {listed_tensor(h, SB_F32, &shapes[s])};
        float *data = plain[0]->storage->data;
        for (size_t i = 0; i < plain[0]->storage->bytes / sizeof *data; i++)
            data[i] = (float)random_between(&h->random, -1000, 3000) / 256;
        run_op(h, "DynamicQuantizeLinear", 11, 3, 1, plain, NULL, 0);
    }
}

/* Rows with one scale and one zero point: ties, both ends of each range and beyond, and scales that no network has. */
HARNESS_GROUP(select, quantized_rows, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_U8, SB_S8, SB_U16, SB_S16};
    static const float scales[] = {0.5f, 0.1f, 1.0f, -2.0f, 0.0f, 1e-40f, INFINITY, NAN, 3e38f};
    static const float specials[] = {0.0f, -0.0f, 1e-45f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN, 8388607.5f};
    static const list none = {0, {0}};
    for (int round = 0; round < 72; round++) {
        const sb_dtype dtype = dtypes[round % 4];
        const bool back = round % 8 > 5;
        const list row = {1, {random_between(&h->random, 0, 700)}};
        sb_tensor *x = make_tensor(h, back ? dtype : SB_F32, 1, row.dims, round % 5 == 4 ? APART : PACKED);
        sb_tensor *scale = make_tensor(h, SB_F32, 0, none.dims, PACKED);
        *(float *)scale->storage->data = scales[round % 9];
        float *data = (float *)x->storage->data;
        const int64_t count = back ? 0 : (int64_t)(x->storage->bytes / sizeof *data);
        for (int64_t i = 0; i < count; i++)
            data[i] = i % 5 == 4 ? specials[i / 5 % 9]
                                 : (float)random_between(&h->random, -140000, 140000) * (i % 2 == 0 ? 0.25f : 0.001f);
        sb_tensor *inputs[3] = {x, scale, round % 3 > 0 ? listed_tensor(h, dtype, &none) : NULL};
        if (inputs[2] == NULL && !back && dtype != SB_U8)
            inputs[2] = listed_tensor(h, dtype, &none);
        run_op(h, back ? "DequantizeLinear" : "QuantizeLinear", 21, 1, 3, inputs, NULL, 0);
    }
}

/* ---- dropout ---- */

static sb_tensor *scalar(sb_dtype dtype, float value) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 0, NULL, &tensor, error));
    if (dtype == SB_BOOL)
        *tensor->data = value != 0;
    else
        *(float *)(void *)tensor->data = value;
    return tensor;
}

HARNESS_GROUP(select, dropout, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    for (int round = 0; round < 8 * SHAPES; round++) {
        sb_attributes attributes = {0};
        int64_t seed = 12345678901234;
        MUST(sb_attributes_add_ints(&attributes, "seed", true, 1, &seed, error));
        sb_tensor *inputs[3] = {listed_tensor(h, dtypes[round % 4], &shapes[round / 8]), scalar(SB_F32, 0.4f),
                                scalar(SB_BOOL, (float)(round / 4 % 2))};
        run_op(h, "Dropout", 13, 1 + round % 2, 3, inputs, &attributes, 0);
        sb_tensor *old[1] = {listed_tensor(h, dtypes[round % 4], &shapes[round / 8])};
        run_op(h, "Dropout", 7, 2, 1, old, NULL, 0);
    }
}
