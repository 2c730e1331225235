/* Bodies of element-wise nodes that are fused into one, against their nodes one by one. */
#include "harness/fused_steps.h"
#include "harness/harness.h"
#include "ops/real.h"

static const fused_shape shapes[] = {
    {1, {1}},          {1, {4099}},       {2, {3, 64}}, {2, {17, 33}}, {3, {2, 5, 28}},
    {4, {2, 3, 7, 9}}, {4, {2, 6, 4, 8}}, {2, {0, 4}},  {0, {0}},      {3, {1, 1, 1030}},
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

static sb_value_id add_random_steps(harness *h, builder *b, sb_value_id value, sb_dtype dtype, sb_value_id *operands,
                                    bool heavy) {
    int steps = (int)random_between(&h->random, 1, 6);
    for (int i = 0; i < steps; i++) {
        sb_value_id next = add_fused_step(h, b, value, dtype, operands, heavy);
        if (i % 2 == 1)
            operands[0] = value;
        value = next;
    }
    return value;
}

HARNESS_GROUP(fused, bodies, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_F16, SB_BF16};
    for (int round = 0; round < 300; round++) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        const fused_shape *shape = &shapes[round % SHAPES];
        sb_dtype dtype = dtypes[random_between(&h->random, 0, 3)];
        layout layout = round % 3 == 0 ? PACKED : (enum layout)random_between(&h->random, 0, LAYOUTS - 1);
        sb_value_id x = graph_input(h, &b, dtype, shape->rank, shape->dims, layout, tensors);
        sb_value_id operands[3] = {x, add_broadcast_input(h, &b, dtype, shape, tensors),
                                   add_broadcast_input(h, &b, dtype, shape, tensors)};
        sb_value_id value = builder_unary(&b, "Relu", x);
        value = add_random_steps(h, &b, value, dtype, operands, round % 2 == 0);
        harness_run_fused(h, &b, value, tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}

/* Bodies over short rows (half of the channels of an image, channels last), and over operands that lie across each other's
 * memory, which go by rectangles. */
HARNESS_GROUP(fused, rectangles, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const fused_shape images[] = {{4, {1, 16, 17, 23}}, {4, {2, 3, 31, 9}}, {3, {5, 150, 40}},
                                         {4, {1, 70, 6, 130}}, {2, {700, 5}},      {4, {3, 2, 20, 33}}};
    static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_F16, SB_BF16};
    for (int round = 0; round < 120; round++) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        const fused_shape *shape = &images[round % 6];
        sb_dtype dtype = dtypes[round / 6 % 4];
        sb_value_id x = graph_input(h, &b, dtype, shape->rank, shape->dims, PACKED, tensors);
        sb_value_id y = graph_input(h, &b, dtype, shape->rank, shape->dims, PACKED, tensors);
        for (int i = 0; i < 2; i++) {
            sb_tensor_release(tensors[i]);
            tensors[i] = random_tensor(h, (distribution)((round + i) % DISTRIBUTIONS), dtype, shape->rank, shape->dims);
        }
        sb_value_id z = add_broadcast_input(h, &b, dtype, shape, tensors);
        sb_value_id value = builder_binary(&b, "Add", builder_unary(&b, "Relu", x), y);
        harness_run_fused(h, &b, builder_binary(&b, "Mul", z, value), tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}

static sb_value_id add_statistic(harness *h, builder *b, sb_dtype dtype, int64_t channels, bool positive,
                                 sb_tensor **tensors) {
    sb_value_id value = graph_input(h, b, dtype, 1, &channels, PACKED, tensors);
    sb_tensor *tensor = tensors[b->graph->input_count - 1];
    for (int64_t i = 0; i < channels; i++)
        sb_real_store_f32(dtype, tensor->data, i, (float)random_between(&h->random, positive ? 0 : -500, 500) / 64);
    return value;
}

HARNESS_GROUP(fused, normalizations, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const fused_shape normalized[] = {{4, {2, 5, 3, 8}}, {4, {1, 3, 5, 5}}, {2, {7, 12}}, {2, {5, 3}}, {1, {6}}};
    for (int i = 0; i < 10; i++) {
        const fused_shape *shape = &normalized[i / 2];
        sb_dtype dtype = i % 2 == 0 ? SB_F32 : SB_F16;
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        builder b = builder_create();
        int64_t channels = shape->rank > 1 ? shape->dims[1] : 1;
        sb_value_id in[5] = {graph_input(h, &b, dtype, shape->rank, shape->dims, PACKED, tensors)};
        for (int s = 1; s < 5; s++)
            in[s] = add_statistic(h, &b, dtype, channels, s == 4, tensors);
        sb_value_id value = builder_unary(&b, "Relu", builder_node(&b, "BatchNormalization", 5, in, NULL));
        harness_run_fused(h, &b, builder_binary(&b, "Add", value, in[0]), tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}

/* Integers and f64 that a body reads only to cast them. */
HARNESS_GROUP(fused, casts, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int s = 0; s < SHAPES; s++) {
            builder b = builder_create();
            sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
            sb_value_id x = graph_input(h, &b, (sb_dtype)dtype, shapes[s].rank, shapes[s].dims,
                                        (enum layout)(s % LAYOUTS), tensors);
            sb_value_id y = add_broadcast_input(h, &b, (sb_dtype)dtype, &shapes[s], tensors);
            sb_value_id sum = builder_binary(&b, "Add", add_cast(&b, x, SB_F32), graph_scalar(&b, SB_F32, 0.5f));
            sb_value_id powers = builder_binary(&b, "Pow", sum, dtype == SB_BOOL ? sum : y);
            harness_run_fused(h, &b, powers, tensors);
            release_all(tensors, HARNESS_INPUTS);
            builder_destroy(&b);
        }
    }
}

/* As many values as the program of a body can keep. What is beyond is refused: tests/cuda/test_compute.c. */
HARNESS_GROUP(fused, values, HARNESS_CPU | HARNESS_CUDA) {
    for (int values = 2; values <= 8; values++) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_value_id sum = graph_input(h, &b, SB_F32, 1, (int64_t[]){37}, PACKED, tensors);
        harness_run_fused(h, &b, add_kept_values(&b, sum, values), tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}
