/* Programs of element-wise nodes: fused bodies on a device, and epilogues of contractions, against their nodes
 * one by one. Without arguments over the fake driver; with the file name of a driver's library
 * (libcuda.so.1), fused bodies on its first device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device_calls.h"

/* The device's functions for contractions, on the host. */
#include "cuda/host_words.h"

#include "cuda/common/words.cuh"
#include "cuda/contraction/epilogue.cuh"
#include "cuda/contraction/epilogue.h"

/* ---- building ---- */

static sb_value_id add_constant(builder *b, sb_dtype dtype, float value) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 0, NULL, &tensor, error));
    if (dtype == SB_F32)
        *(float *)(void *)tensor->data = value;
    else
        *(uint16_t *)(void *)tensor->data = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
    return builder_constant(b, tensor);
}

static sb_value_id add_cast(builder *b, sb_value_id value, sb_dtype to) {
    static const int codes[SB_DTYPE_COUNT] = {[SB_F32] = 1, [SB_F16] = 10, [SB_BF16] = 16, [SB_BOOL] = 9};
    sb_attributes attributes = {0};
    int64_t code = codes[to];
    MUST(sb_attributes_add_ints(&attributes, "to", false, 1, &code, error));
    return builder_node(b, "Cast", 1, &value, &attributes);
}

static sb_value_id add_leaky(builder *b, sb_value_id value) {
    sb_attributes attributes = {0};
    float alpha = 0.3f;
    MUST(sb_attributes_add_floats(&attributes, "alpha", false, 1, &alpha, error));
    return builder_node(b, "LeakyRelu", 1, &value, &attributes);
}

/* A shape, and those of inputs that broadcast to it. */
typedef struct fused_shape {
    int rank;
    int64_t dims[4];
} fused_shape;

static const fused_shape shapes[] = {
    {1, {1}},          {1, {4099}},       {2, {3, 64}}, {2, {17, 33}}, {3, {2, 5, 28}},
    {4, {2, 3, 7, 9}}, {4, {2, 6, 4, 8}}, {2, {0, 4}},  {0, {0}},      {3, {1, 1, 1030}},
};

static sb_value_id add_input(builder *b, random_source *random, sb_dtype dtype, int rank, const int64_t *dims,
                             layout layout, sb_tensor **tensors) {
    sb_value_id value = builder_input(b, dtype, rank, dims);
    tensors[b->graph->input_count - 1] = make_tensor(random, dtype, rank, dims, layout);
    return value;
}

/* The shape with some extents set to 1 and some leading ones left out. */
static sb_value_id add_broadcast_input(builder *b, random_source *random, sb_dtype dtype, const fused_shape *shape,
                                       sb_tensor **tensors) {
    int64_t dims[SB_MAX_RANK];
    int skipped = (int)random_between(random, 0, shape->rank);
    uint64_t ones = random_bits(random);
    for (int d = skipped; d < shape->rank; d++)
        dims[d - skipped] = (ones >> d & 1) != 0 ? 1 : shape->dims[d];
    return add_input(b, random, dtype, shape->rank - skipped, dims, (enum layout)random_between(random, 0, LAYOUTS - 1),
                     tensors);
}

/* A random step of a chain on `value` of dtype `*dtype`. */
static sb_value_id add_step(builder *b, random_source *random, sb_value_id value, sb_dtype *dtype,
                            const sb_value_id *operands, bool heavy) {
    static const char *const light[] = {"Relu", "Neg",        "Abs",      "Sign",      "Floor",       "Ceil",
                                        "Sqrt", "Reciprocal", "Softsign", "HardSwish", "HardSigmoid", "Round"};
    static const char *const long_ones[] = {"Exp",     "Log",      "Sin",  "Tanh", "Erf",  "Elu",
                                            "Sigmoid", "Softplus", "Mish", "Atan", "Selu", "Cosh"};
#define NAME(op, unused) #op,
    static const char *const pairs[] = {SB_BINARY_LIGHT_FLOATS(NAME, )};
#undef NAME
    const int last_pair = (int)(sizeof pairs / sizeof pairs[0]) - 1;
    sb_value_id other = operands[random_between(random, 0, 2)];
    switch (random_between(random, 0, heavy ? 13 : 9)) {
    case 0:
    case 1:
        return builder_unary(b, light[random_between(random, 0, 11)], value);
    case 2:
    case 3:
        return builder_binary(b, pairs[random_between(random, 0, last_pair)], value, other);
    case 4:
        return builder_binary(b, pairs[random_between(random, 0, 3)], add_constant(b, *dtype, 0.3f), value);
    case 5:
        return add_leaky(b, value);
    case 6: {
        sb_value_id bounds[3] = {value, add_constant(b, *dtype, -1.25f), add_constant(b, *dtype, 6)};
        return builder_node(b, "Clip", (int)random_between(random, 1, 3), bounds, NULL);
    }
    case 7:
        return builder_binary(b, pairs[random_between(random, 0, last_pair)], value, add_constant(b, *dtype, 2.5f));
    case 8:
        return builder_binary(b, "Mul", value, value);
    case 9: {
        sb_value_id three[3] = {operands[0], value, operands[2]};
        static const char *const joins[] = {"Max", "Min", "Sum", "Mean"};
        return builder_node(b, joins[random_between(random, 0, 3)], 3, three, NULL);
    }
    case 10:
        return builder_binary(b, "Pow", value, add_constant(b, *dtype, (float)random_between(random, -1, 3)));
    case 11:
        return builder_unary(b, long_ones[random_between(random, 0, 11)], value);
    case 12: {
        static const char *const questions[] = {"Less", "Equal", "Greater", "LessOrEqual", "GreaterOrEqual"};
        sb_value_id asked = builder_binary(b, questions[random_between(random, 0, 4)], value, other);
        if ((random_bits(random) & 1) != 0)
            asked = builder_binary(b, "Xor", builder_unary(b, "IsNaN", value), asked);
        sb_value_id choice[3] = {builder_unary(b, "Not", asked), value, other};
        return builder_node(b, "Where", 3, choice, NULL);
    }
    default: {
        /* Through another dtype and back. */
        static const sb_dtype through[] = {SB_F32, SB_F16, SB_BF16, SB_BOOL};
        sb_dtype to = through[random_between(random, 0, 3)];
        return add_cast(b, builder_unary(b, "Abs", add_cast(b, value, to == SB_BOOL ? SB_F16 : to)), *dtype);
    }
    }
}

/* ---- fused bodies ---- */

static void release_all(sb_tensor **tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        sb_tensor_release(tensors[i]);
}

/* Fuses the graph to one node, runs that on the device, and compares with the nodes one by one. */
static void check_body(const setting *setting, builder *b, sb_value_id result, sb_tensor **inputs, const char *what) {
    sb_tensor *in[SB_WALK_OPERANDS] = {NULL}, *out[1] = {NULL};
    sb_graph *graph = b->graph;
    MUST(sb_graph_add_output(graph, result, error));
    builder_finish(b);
    size_t value_count = graph->value_count;
    sb_tensor **values = calloc(value_count, sizeof *values);
    assert_non_null(values);
    evaluate_graph(b, inputs, values);
    MUST(sb_pass_fuse(graph, b->scope, error));
    assert_int_equal(graph->node_count, 1);
    assert_string_equal(graph->nodes[0]->op->name, "Fused");
    uint64_t constants = 0;
    for (int i = 0; i < graph->nodes[0]->input_count; i++) {
        in[i] = values[graph->nodes[0]->inputs[i]];
        if (graph->values[graph->nodes[0]->inputs[i]].fact.constant != NULL)
            constants |= UINT64_C(1) << i;
    }
    uint32_t fault;
    run_node(setting, b, graph->nodes[0], in, constants, out, &fault);
    if (!sb_tensor_equal(out[0], values[result]))
        fail_msg("%s: %s gives other bits", what, graph->nodes[0]->name);
    assert_int_equal(fault, 0);
    sb_tensor_release(out[0]);
    release_all(values, value_count);
    free(values);
}

static void test_random_bodies(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_F16, SB_BF16};
    setting setting = set_up();
    for (int round = 0; round < 300; round++) {
        builder b = builder_create();
        sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
        const fused_shape *shape = &shapes[round % (int)(sizeof shapes / sizeof shapes[0])];
        sb_dtype dtype = dtypes[random_between(&setting.random, 0, 3)];
        layout layout = round % 3 == 0 ? PACKED : (enum layout)random_between(&setting.random, 0, LAYOUTS - 1);
        sb_value_id x = add_input(&b, &setting.random, dtype, shape->rank, shape->dims, layout, tensors);
        sb_value_id operands[3] = {x, add_broadcast_input(&b, &setting.random, dtype, shape, tensors),
                                   add_broadcast_input(&b, &setting.random, dtype, shape, tensors)};
        sb_value_id value = builder_unary(&b, "Relu", x);
        int steps = (int)random_between(&setting.random, 1, 6);
        for (int i = 0; i < steps; i++) {
            sb_value_id next = add_step(&b, &setting.random, value, &dtype, operands, round % 2 == 0);
            if (i % 2 == 1)
                operands[0] = value;
            value = next;
        }
        char what[32];
        snprintf(what, sizeof what, "body %d", round);
        check_body(&setting, &b, value, tensors, what);
        release_all(tensors, SB_WALK_OPERANDS);
        builder_destroy(&b);
    }
    tear_down(&setting);
}

static sb_value_id add_statistic(builder *b, random_source *random, sb_dtype dtype, int64_t channels, bool positive,
                                 sb_tensor **tensors) {
    sb_value_id value = add_input(b, random, dtype, 1, &channels, PACKED, tensors);
    for (int64_t i = 0; i < channels; i++) {
        float number = (float)random_between(random, positive ? 0 : -500, 500) / 64;
        char *data = tensors[b->graph->input_count - 1]->data;
        if (dtype == SB_F32)
            ((float *)(void *)data)[i] = number;
        else
            ((uint16_t *)(void *)data)[i] = sb_f16_from_f32(number);
    }
    return value;
}

static void test_normalizations(void **unused) {
    static const fused_shape normalized[] = {{4, {2, 5, 3, 8}}, {4, {1, 3, 5, 5}}, {2, {7, 12}}, {2, {5, 3}}, {1, {6}}};
    setting setting = set_up();
    for (int i = 0; i < 10; i++) {
        const fused_shape *shape = &normalized[i / 2];
        sb_dtype dtype = i % 2 == 0 ? SB_F32 : SB_F16;
        sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
        builder b = builder_create();
        int64_t channels = shape->rank > 1 ? shape->dims[1] : 1;
        sb_value_id in[5] = {add_input(&b, &setting.random, dtype, shape->rank, shape->dims, PACKED, tensors)};
        for (int s = 1; s < 5; s++)
            in[s] = add_statistic(&b, &setting.random, dtype, channels, s == 4, tensors);
        sb_value_id value = builder_unary(&b, "Relu", builder_node(&b, "BatchNormalization", 5, in, NULL));
        check_body(&setting, &b, builder_binary(&b, "Add", value, in[0]), tensors, "normalization");
        release_all(tensors, SB_WALK_OPERANDS);
        builder_destroy(&b);
    }
    tear_down(&setting);
}

/* Integers and f64 that a body reads only to cast them. */
static void test_casts(void **unused) {
    setting setting = set_up();
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            builder b = builder_create();
            sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
            sb_value_id x = add_input(&b, &setting.random, (sb_dtype)dtype, shapes[s].rank, shapes[s].dims,
                                      (enum layout)(s % LAYOUTS), tensors);
            sb_value_id y = add_broadcast_input(&b, &setting.random, (sb_dtype)dtype, &shapes[s], tensors);
            sb_value_id sum = builder_binary(&b, "Add", add_cast(&b, x, SB_F32), add_constant(&b, SB_F32, 0.5f));
            sb_value_id powers = builder_binary(&b, "Pow", sum, dtype == SB_BOOL ? sum : y);
            check_body(&setting, &b, powers, tensors, sb_dtype_name((sb_dtype)dtype));
            release_all(tensors, SB_WALK_OPERANDS);
            builder_destroy(&b);
        }
    }
    tear_down(&setting);
}

/* The program of many steps, values and inputs, and what is refused. */
static void test_limits(void **unused) {
    setting setting = set_up();
    for (int values = 2; values <= 12; values++) {
        builder b = builder_create();
        sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
        int64_t dims[1] = {37};
        sb_value_id kept[16], sum = add_input(&b, &setting.random, SB_F32, 1, dims, PACKED, tensors);
        sum = builder_unary(&b, "Abs", sum);
        for (int i = 0; i < values; i++)
            kept[i] = sum = builder_binary(&b, "Add", sum, add_constant(&b, SB_F32, (float)i));
        for (int i = 0; i < values; i++)
            sum = builder_binary(&b, "Mul", sum, kept[i]);
        if (values <= 8) {
            check_body(&setting, &b, sum, tensors, "many values");
        } else {
            MUST(sb_graph_add_output(b.graph, sum, error));
            builder_finish(&b);
            sb_cuda_epilogue_plan *plan = NULL;
            sb_error error;
            const sb_fact *facts[1] = {&b.graph->values[b.graph->inputs[0]].fact};
            assert_int_equal(sb_cuda_epilogue_plan_create(b.graph, 0, facts, &plan, &error), SB_ERROR_UNSUPPORTED);
        }
        release_all(tensors, SB_WALK_OPERANDS);
        builder_destroy(&b);
    }
    tear_down(&setting);
}

/* ---- epilogues ---- */

typedef struct host_frame {
    sb_frame frame;
    void *workspace[SB_CUDA_EPILOGUE_INPUTS];
    int count;
} host_frame;

static sb_status host_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    host_frame *own = (host_frame *)frame;
    *memory = own->workspace[own->count++] = malloc(bytes + 1);
    return SB_OK;
}

static void store_value(const sb_tensor *y, int64_t at, float value) {
    if (y->dtype == SB_F32)
        ((float *)(void *)y->data)[at] = value;
    else
        ((uint16_t *)(void *)y->data)[at] = y->dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
}

/* The product's elements as the kernel of a contraction would have them, four columns at once where
 * there are four. `product` and `y` are contiguous. */
static void run_epilogue(const sb_cuda_epilogue *epilogue, const sb_tensor *product, sb_tensor *y,
                         const sb_cuda_epilogue_role *roles) {
    int64_t extents[3] = {1, 1, 1};
    for (int d = 0; d < y->rank; d++)
        extents[roles[d]] *= y->dims[d];
    for (int64_t batch = 0; batch < extents[0]; batch++) {
        for (int64_t row = 0; row < extents[1]; row++) {
            for (int64_t column = 0; column < extents[2];) {
                int64_t at = (batch * extents[1] + row) * extents[2] + column;
                int count = extents[2] - column >= 4 ? 4 : 1;
                float values[4];
                sb_cuda_epilogue_place place;
                sb_cuda_epilogue_begin(epilogue, batch, &place);
                place.row = row;
                place.column = column;
                place.column_distance = 1;
                for (int j = 0; j < count; j++)
                    values[j] = product->dtype == SB_F32 ? ((float *)(void *)product->data)[at + j]
                                : product->dtype == SB_F16
                                    ? sb_f16_to_f32(((uint16_t *)(void *)product->data)[at + j])
                                    : sb_bf16_to_f32(((uint16_t *)(void *)product->data)[at + j]);
                if (count == 4)
                    sb_cuda_epilogue_f32x4(epilogue, &place, values);
                else
                    values[0] = sb_cuda_epilogue_f32(epilogue, &place, values[0]);
                for (int j = 0; j < count; j++)
                    store_value(y, at + j, values[j]);
                column += count;
            }
        }
    }
}

static void test_epilogues(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
    static const fused_shape products[] = {{2, {5, 9}}, {4, {2, 3, 4, 6}}, {4, {3, 2, 5, 1}}, {3, {4, 1, 7}}};
    random_source random = {7};
    for (int round = 0; round < 120; round++) {
        const fused_shape *shape = &products[round % 4];
        sb_dtype dtype = dtypes[round % 3];
        builder b = builder_create();
        sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
        int64_t left[4], right[4];
        memcpy(left, shape->dims, sizeof left);
        memcpy(right, shape->dims, sizeof right);
        left[shape->rank - 1] = right[shape->rank - 2] = 3;
        sb_value_id factors[2] = {add_input(&b, &random, dtype, shape->rank, left, PACKED, tensors),
                                  add_input(&b, &random, dtype, shape->rank, right, PACKED, tensors)};
        sb_value_id operands[3] = {
            add_input(&b, &random, dtype, shape->rank, shape->dims, (enum layout)(round % LAYOUTS), tensors),
            add_broadcast_input(&b, &random, dtype, shape, tensors),
            add_broadcast_input(&b, &random, dtype, shape, tensors)};
        sb_value_id product = builder_binary(&b, "MatMul", factors[0], factors[1]), value = product;
        for (int i = 0; i < round % 5; i++)
            value = add_step(&b, &random, value, &dtype, i == 2 ? (sb_value_id[]){product, product, product} : operands,
                             false);
        MUST(sb_graph_add_output(b.graph, value, error));
        builder_finish(&b);
        sb_tensor **values = calloc(b.graph->value_count, sizeof *values);
        evaluate_graph(&b, tensors, values);
        const sb_fact *facts[SB_WALK_OPERANDS];
        sb_value in[SB_WALK_OPERANDS];
        for (size_t i = 0; i < b.graph->input_count; i++) {
            facts[i] = &b.graph->values[b.graph->inputs[i]].fact;
            in[i] = sb_value_of_tensor(tensors[i]);
        }
        /* Constants of the graph are inputs of a body. */
        for (size_t v = 0; v < b.graph->value_count; v++) {
            if (b.graph->values[v].fact.constant == NULL)
                continue;
            facts[b.graph->input_count] = &b.graph->values[v].fact;
            in[b.graph->input_count] = sb_value_of_tensor(b.graph->values[v].fact.constant);
            MUST(sb_graph_add_input(b.graph, (sb_value_id)v, error));
        }
        char why[SB_WHY_BYTES] = "";
        sb_cuda_epilogue_plan *plan = NULL;
        MUST(sb_cuda_epilogue_plan_create(b.graph, 1, facts, &plan, error));
        if (!sb_cuda_epilogue_plan_is_light(plan, why))
            fail_msg("%s", why);
        host_frame frame = {.frame = {.workspace = host_workspace}};
        sb_call call = {
            .node = b.graph->nodes[0], .input_count = (int)b.graph->input_count, .inputs = in, .frame = &frame.frame};
        sb_error error;
        sb_cuda_epilogue_role roles[4];
        for (int d = 0; d < shape->rank; d++)
            roles[d] = d == shape->rank - 1   ? SB_CUDA_EPILOGUE_COLUMN
                       : d == shape->rank - 2 ? SB_CUDA_EPILOGUE_ROW
                                              : SB_CUDA_EPILOGUE_BATCH;
        sb_cuda_epilogue epilogue;
        sb_cuda_work work = {0};
        sb_tensor *y = NULL;
        MUST(sb_tensor_create(dtype, shape->rank, shape->dims, &y, error));
        call.error = &error;
        assert_int_equal(sb_cuda_epilogue_start(&call, plan, y, roles, &epilogue, &work), SB_OK);
        run_epilogue(&epilogue, values[product], y, roles);
        if (!sb_tensor_equal(y, values[value]))
            fail_msg("epilogue %d gives other bits", round);
        sb_tensor_release(y);
        sb_cuda_epilogue_plan_destroy(plan);
        for (int i = 0; i < frame.count; i++)
            free(frame.workspace[i]);
        release_all(values, b.graph->value_count);
        free(values);
        release_all(tensors, SB_WALK_OPERANDS);
        builder_destroy(&b);
    }
}

/* ---- places ---- */

/* Quotients by products, at both sides of every multiple. */
static void test_divisions(void **unused) {
    random_source random = {3};
    for (int round = 0; round < 200000; round++) {
        int shift = (int)random_between(&random, 0, 30), wide_shift = (int)random_between(&random, 0, 50);
        uint32_t narrow = (uint32_t)(random_bits(&random) % (UINT64_C(1) << (shift + 1))) >> 1;
        int64_t wide = (int64_t)(random_bits(&random) % (UINT64_C(1) << (wide_shift + 1)));
        narrow = narrow == 0 ? 1 : narrow;
        wide = wide == 0 ? 1 : wide;
        sb_cuda_divisor divisor = sb_cuda_divisor_of(narrow);
        for (int side = -1; side <= 1; side++) {
            uint32_t value = (uint32_t)((random_bits(&random) >> 33) / narrow * narrow + (uint32_t)side) & INT32_MAX;
            assert_int_equal(sb_cuda_divide(value, &divisor), value / narrow);
            int64_t large = (int64_t)(random_bits(&random) >> 12) / wide * wide + side;
            large = large < 0 ? 0 : large;
            assert_int_equal(sb_cuda_divide_large(large, wide, 1.0 / (double)wide), large / wide);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bodies), cmocka_unit_test(test_normalizations), cmocka_unit_test(test_casts),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_epilogues),      cmocka_unit_test(test_divisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
