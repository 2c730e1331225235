/* Single element-wise operators on a device against their definitions: types, choices, quantization,
 * dropout. Without arguments over the fake driver; with the file name of a driver's library (libcuda.so.1), on its
 * first device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device_calls.h"

typedef struct list {
    int rank;
    int64_t dims[4];
} list;

static const list shapes[] = {{0, {0}},       {1, {1}},       {1, {1031}},       {2, {0, 5}},
                              {3, {3, 5, 8}}, {3, {4, 7, 9}}, {4, {2, 3, 1, 12}}};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

/* Runs a node on the device and by its definition. Outputs must agree, and both must find the data
 * at fault or not. */
static void check_node(const setting *setting, const builder *b, const char *what, sb_tensor *const *inputs,
                       uint64_t constants) {
    const sb_node *node = b->graph->nodes[b->graph->node_count - 1];
    sb_tensor *expected[5] = {NULL}, *found[5] = {NULL};
    sb_error error;
    uint32_t fault;
    sb_status status = evaluate_node(b, node, inputs, expected, &error);
    run_node(setting, b, node, inputs, constants, found, &fault);
    if ((status == SB_OK) != (fault == 0))
        fail_msg("%s %s: status %d, fault %u", node->op->name, what, status, fault);
    for (int i = 0; i < node->output_count; i++) {
        if (status == SB_OK && expected[i] != NULL && !sb_tensor_equal(expected[i], found[i]))
            fail_msg("%s %s: output %d has other bits", node->op->name, what, i);
        sb_tensor_release(expected[i]);
        sb_tensor_release(found[i]);
    }
}

/* A graph of one node on those tensors; NULL where omitted. */
static void check_op(setting *setting, const char *op, int version, int outputs, int count, sb_tensor **inputs,
                     sb_attributes *attributes, uint64_t constants, const char *what) {
    builder b = builder_create();
    sb_value_id ids[SB_WALK_OPERANDS], results[5];
    sb_attributes none = {0};
    sb_error error = {SB_OK, ""};
    for (int i = 0; i < count; i++)
        ids[i] =
            inputs[i] != NULL ? builder_input(&b, inputs[i]->dtype, inputs[i]->rank, inputs[i]->dims) : SB_NO_VALUE;
    for (int i = 0; i < outputs; i++)
        results[i] = builder_value(&b);
    if (sb_graph_add_node(b.graph, sb_op_find("", op), version, "node", count, ids, 0, outputs, results,
                          attributes != NULL ? attributes : &none, NULL, &error) != SB_OK)
        fail_msg("%s", error.message);
    check_node(setting, &b, what, inputs, constants);
    for (int i = 0; i < count; i++)
        sb_tensor_release(inputs[i]);
    builder_destroy(&b);
}

static sb_tensor *any_tensor(setting *setting, sb_dtype dtype, const list *shape) {
    return make_tensor(&setting->random, dtype, shape->rank, shape->dims,
                       (enum layout)random_between(&setting->random, 0, LAYOUTS - 1));
}

/* With some extents of 1. */
static sb_tensor *broadcast_tensor(setting *setting, sb_dtype dtype, const list *shape) {
    list smaller = *shape;
    uint64_t ones = random_bits(&setting->random);
    for (int d = 0; d < shape->rank; d++)
        smaller.dims[d] = (ones >> d & 1) != 0 ? 1 : shape->dims[d];
    return any_tensor(setting, dtype, &smaller);
}

/* ---- Cast ---- */

static int onnx_type(sb_dtype dtype) {
    static const int codes[SB_DTYPE_COUNT] = {
        [SB_F32] = 1,  [SB_U8] = 2,   [SB_S8] = 3,   [SB_U16] = 4,  [SB_S16] = 5,  [SB_S32] = 6,  [SB_S64] = 7,
        [SB_BOOL] = 9, [SB_F16] = 10, [SB_F64] = 11, [SB_U32] = 12, [SB_U64] = 13, [SB_BF16] = 16};
    return codes[dtype];
}

static void test_casts(void **unused) {
    setting setting = set_up();
    for (int from = 1; from < SB_STRING; from++) {
        for (int to = 1; to < SB_STRING; to++) {
            for (int s = 0; s < SHAPES; s++) {
                sb_attributes attributes = {0};
                int64_t code = onnx_type((sb_dtype)to);
                char what[64];
                snprintf(what, sizeof what, "from %s to %s", sb_dtype_name((sb_dtype)from),
                         sb_dtype_name((sb_dtype)to));
                MUST(sb_attributes_add_ints(&attributes, "to", true, 1, &code, error));
                sb_tensor *inputs[1] = {any_tensor(&setting, (sb_dtype)from, &shapes[s])};
                check_op(&setting, "Cast", 19, 1, 1, inputs, &attributes, 0, what);
            }
        }
    }
    sb_tensor *inputs[2] = {any_tensor(&setting, SB_F32, &shapes[4]), any_tensor(&setting, SB_F16, &shapes[2])};
    check_op(&setting, "CastLike", 19, 1, 2, inputs, NULL, 0, "f32 like f16");
    tear_down(&setting);
}

/* ---- Where, Clip ---- */

static void test_choices(void **unused) {
    setting setting = set_up();
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int s = 0; s < SHAPES; s++) {
            sb_tensor *inputs[3] = {broadcast_tensor(&setting, SB_BOOL, &shapes[s]),
                                    any_tensor(&setting, (sb_dtype)dtype, &shapes[s]),
                                    broadcast_tensor(&setting, (sb_dtype)dtype, &shapes[s])};
            check_op(&setting, "Where", 16, 1, 3, inputs, NULL, 0, sb_dtype_name((sb_dtype)dtype));
        }
    }
    tear_down(&setting);
}

static void test_clips(void **unused) {
    setting setting = set_up();
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int s = 0; s < SHAPES * 4 && dtype != SB_BOOL; s++) {
            sb_tensor *inputs[3] = {any_tensor(&setting, (sb_dtype)dtype, &shapes[s / 4]),
                                    any_tensor(&setting, (sb_dtype)dtype, &shapes[0]),
                                    any_tensor(&setting, (sb_dtype)dtype, &shapes[s % 2])};
            for (int i = 0; i < 2; i++) {
                if ((s >> i & 1) == 0) {
                    sb_tensor_release(inputs[1 + i]);
                    inputs[1 + i] = NULL;
                }
            }
            check_op(&setting, "Clip", 13, 1, 3, inputs, NULL, 0, sb_dtype_name((sb_dtype)dtype));
        }
    }
    for (int i = 0; i < 3; i++) {
        static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_F64};
        sb_attributes attributes = {0};
        float least = -0.75f;
        MUST(sb_attributes_add_floats(&attributes, "min", true, 1, &least, error));
        sb_tensor *inputs[1] = {any_tensor(&setting, dtypes[i], &shapes[5])};
        check_op(&setting, "Clip", 6, 1, 1, inputs, &attributes, 0, "by attributes");
    }
    tear_down(&setting);
}

/* ---- Pow ---- */

static void test_powers(void **unused) {
    static const sb_dtype bases[] = {SB_F16, SB_BF16, SB_F32, SB_F64, SB_S32, SB_S64};
    setting setting = set_up();
    for (int base = 0; base < 6; base++) {
        for (int exponent = 1; exponent < SB_STRING; exponent++) {
            for (int s = 0; s < SHAPES && exponent != SB_BOOL; s++) {
                sb_tensor *inputs[2] = {any_tensor(&setting, bases[base], &shapes[s]),
                                        broadcast_tensor(&setting, (sb_dtype)exponent, &shapes[s])};
                char what[64];
                snprintf(what, sizeof what, "%s to %s", sb_dtype_name(bases[base]), sb_dtype_name((sb_dtype)exponent));
                check_op(&setting, "Pow", 15, 1, 2, inputs, NULL, 0, what);
            }
        }
    }
    tear_down(&setting);
}

/* ---- any number of inputs ---- */

static void test_joins(void **unused) {
    static const char *const ops[] = {"Max", "Min", "Sum", "Mean"};
    setting setting = set_up();
    for (int op = 0; op < 4; op++) {
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            bool real = sb_dtype_is_float((sb_dtype)dtype);
            for (int s = 0; s < SHAPES && dtype != SB_BOOL && (real || op < 2); s++) {
                sb_tensor *inputs[6];
                int count = 1 + (s + op) % 6;
                for (int i = 0; i < count; i++)
                    inputs[i] = i == 1 ? any_tensor(&setting, (sb_dtype)dtype, &shapes[s])
                                       : broadcast_tensor(&setting, (sb_dtype)dtype, &shapes[s]);
                check_op(&setting, ops[op], 13, 1, count, inputs, NULL, 0, sb_dtype_name((sb_dtype)dtype));
            }
        }
    }
    tear_down(&setting);
}

/* ---- batch normalisation ---- */

static void test_normalizations(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const list normalized[] = {{4, {2, 5, 3, 8}}, {2, {7, 3}}, {3, {2, 4, 0}}, {1, {9}}};
    setting setting = set_up();
    for (int s = 0; s < 16; s++) {
        const list *shape = &normalized[s / 4];
        list channels = {1, {shape->rank > 1 ? shape->dims[1] : 1}};
        sb_tensor *inputs[5] = {any_tensor(&setting, dtypes[s % 4], shape)};
        for (int i = 1; i < 5; i++)
            inputs[i] = any_tensor(&setting, i < 3 ? dtypes[s % 4] : s < 8 ? SB_F32 : SB_F64, &channels);
        check_op(&setting, "BatchNormalization", 15, 1, 5, inputs, NULL, 0, sb_dtype_name(dtypes[s % 4]));
    }
    tear_down(&setting);
}

/* In training: the moments of the batch, in every operator set's way of asking for them. */
static void test_training(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const list trained[] = {{4, {3, 4, 5, 7}}, {3, {2, 3, 4500}}, {2, {300, 5}}, {1, {9}}, {3, {2, 4, 0}}};
    setting setting = set_up();
    for (int round = 0; round < 40; round++) {
        const list *shape = &trained[round % 5];
        list channels = {1, {shape->rank > 1 ? shape->dims[1] : 1}};
        sb_dtype dtype = dtypes[round / 5 % 4];
        sb_tensor *inputs[5] = {any_tensor(&setting, dtype, shape)};
        for (int i = 1; i < 5; i++)
            inputs[i] = any_tensor(&setting, round < 20 ? dtype : SB_F32, &channels);
        /* Ordinary numbers, so that every addition rounds. */
        for (int64_t i = 0; i < (int64_t)(inputs[0]->storage->bytes / sb_dtype_size(dtype)); i++) {
            double value = (double)(int32_t)random_bits(&setting.random) * 0x1p-29;
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
        check_op(&setting, "BatchNormalization", old ? 9 : 15, old ? 5 : 3, 5, inputs, &attributes, 0,
                 sb_dtype_name(dtype));
    }
    tear_down(&setting);
}

/* ---- quantization ---- */

static void test_quantization(void **unused) {
    static const sb_dtype quantized[] = {SB_U8, SB_S8, SB_U16, SB_S16, SB_S32};
    static const sb_dtype reals[] = {SB_F32, SB_F16, SB_BF16};
    static const list tensors[] = {{2, {9, 12}}, {3, {2, 6, 7}}, {1, {100}}, {2, {0, 4}}};
    setting setting = set_up();
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
        sb_tensor *inputs[3] = {any_tensor(&setting, back ? integer : real, shape),
                                any_tensor(&setting, real, &factors),
                                round % 7 < 4 ? any_tensor(&setting, integer, &factors) : NULL};
        check_op(&setting, back ? "DequantizeLinear" : "QuantizeLinear", 21, 1, 3, inputs, &attributes, 0,
                 sb_dtype_name(integer));
    }
    for (int s = 0; s < SHAPES; s++) {
        sb_tensor *inputs[1] = {any_tensor(&setting, SB_F32, &shapes[s])};
        check_op(&setting, "DynamicQuantizeLinear", 11, 3, 1, inputs, NULL, 0, "awkward");
        sb_tensor *plain[1] = {any_tensor(&setting, SB_F32, &shapes[s])};
        float *data = plain[0]->storage->data;
        for (size_t i = 0; i < plain[0]->storage->bytes / sizeof *data; i++)
            data[i] = (float)random_between(&setting.random, -1000, 3000) / 256;
        check_op(&setting, "DynamicQuantizeLinear", 11, 3, 1, plain, NULL, 0, "plain");
    }
    tear_down(&setting);
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

static void test_dropout(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    setting setting = set_up();
    for (int round = 0; round < 8 * SHAPES; round++) {
        sb_attributes attributes = {0};
        int64_t seed = 12345678901234;
        MUST(sb_attributes_add_ints(&attributes, "seed", true, 1, &seed, error));
        sb_tensor *inputs[3] = {any_tensor(&setting, dtypes[round % 4], &shapes[round / 8]), scalar(SB_F32, 0.4f),
                                scalar(SB_BOOL, (float)(round / 4 % 2))};
        check_op(&setting, "Dropout", 13, 1 + round % 2, 3, inputs, &attributes, 0, "training or not");
        sb_tensor *old[1] = {any_tensor(&setting, dtypes[round % 4], &shapes[round / 8])};
        check_op(&setting, "Dropout", 7, 2, 1, old, NULL, 0, "before operator set 10");
    }
    tear_down(&setting);
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_casts),    cmocka_unit_test(test_choices),      cmocka_unit_test(test_clips),
        cmocka_unit_test(test_powers),   cmocka_unit_test(test_joins),        cmocka_unit_test(test_normalizations),
        cmocka_unit_test(test_training), cmocka_unit_test(test_quantization), cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
