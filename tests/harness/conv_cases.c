/* Convolutions: without arguments over the fake driver; with the file name of a driver's library (libcuda.so.1),
 * on its first device. */
#include "cuda/contraction/tiles.h"
#include "harness/graphs.h"
#include "ops/real.h"

#define AXES 4

typedef struct convolution {
    int axes;
    int64_t batch, channels, outputs, group;
    int64_t in[AXES], kernel[AXES], stride[AXES], dilation[AXES], begin[AXES], end[AXES];
    const char *auto_pad;
    bool without_bias;
} convolution;

static sb_value_id add_conv(harness *h, builder *b, sb_dtype dtype, const convolution *conv, layout layout,
                            sb_tensor **tensors) {
    int64_t x[2 + AXES] = {conv->batch, conv->channels};
    int64_t w[2 + AXES] = {conv->outputs, conv->channels / conv->group};
    int64_t pads[2 * AXES], strides[AXES], dilations[AXES];
    for (int i = 0; i < conv->axes; i++) {
        x[2 + i] = conv->in[i];
        w[2 + i] = conv->kernel[i];
        strides[i] = conv->stride[i] > 0 ? conv->stride[i] : 1;
        dilations[i] = conv->dilation[i] > 0 ? conv->dilation[i] : 1;
        pads[i] = conv->begin[i];
        pads[conv->axes + i] = conv->end[i];
    }
    sb_value_id inputs[3];
    sb_attributes attributes = {0};
    inputs[0] = graph_input(h, b, dtype, 2 + conv->axes, x, layout, tensors);
    inputs[1] = graph_input(h, b, dtype, 2 + conv->axes, w, (enum layout)((layout * 3 + 1) % LAYOUTS), tensors);
    if (!conv->without_bias)
        inputs[2] = graph_input(h, b, dtype, 1, &conv->outputs, layout, tensors);
    set_graph_int(&attributes, "group", conv->group);
    MUST(sb_attributes_add_ints(&attributes, "strides", false, conv->axes, strides, error));
    MUST(sb_attributes_add_ints(&attributes, "dilations", false, conv->axes, dilations, error));
    if (conv->auto_pad != NULL) {
        sb_string text = {conv->auto_pad, strlen(conv->auto_pad)};
        MUST(sb_attributes_add_strings(&attributes, "auto_pad", true, 1, &text, error));
    } else
        MUST(sb_attributes_add_ints(&attributes, "pads", false, 2 * conv->axes, pads, error));
    return builder_node(b, "Conv", conv->without_bias ? 2 : 3, inputs, &attributes);
}

static void check_conv(harness *h, sb_dtype dtype, const convolution *conv, layout layout, int first, int last) {
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    sb_value_id result = add_conv(h, &b, dtype, conv, layout, tensors);
    h->first_tile = first;
    h->last_tile = last;
    harness_run_fused(h, &b, result, tensors);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

static const convolution shapes[] = {
    /* whole tiles of one tap, and not */
    {2, 2, 64, 20, 1, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 1, 16, 40, 1, {9, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 3, 3, 35, 1, {15, 15}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, NULL, true},
    {2, 2, 5, 6, 1, {9, 6}, {3, 2}, {2, 1}, {2, 3}, {2, 0}, {1, 4}, NULL, false},
    {2, 2, 8, 12, 2, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 1, 24, 48, 3, {5, 5}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, NULL, true},
    /* tiles of several kernel positions, each a run of channels; few channels of which a tile has many positions */
    {2, 1, 48, 10, 1, {9, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 2, 32, 9, 1, {16, 24}, {8, 8}, {8, 8}, {1, 1}, {0, 0}, {0, 0}, NULL, false},
    {2, 1, 2, 37, 1, {9, 11}, {5, 4}, {1, 2}, {2, 1}, {3, 2}, {4, 1}, NULL, false},
    {1, 2, 1, 6, 1, {200}, {70}, {3}, {1}, {4}, {5}, NULL, true},
    /* 1x1: products, flattened samples, strides */
    {2, 1, 32, 50, 1, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, false},
    {2, 3, 33, 36, 1, {6, 6}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, false},
    {2, 2, 16, 9, 1, {7, 7}, {1, 1}, {2, 2}, {1, 1}, {0}, {0}, NULL, false},
    {2, 2, 20, 12, 4, {5, 4}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, false},
    {2, 1, 4, 6, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {1, 2, 5, 70, 1, {1600}, {1}, {1}, {1}, {0}, {0}, NULL, false},
    /* axes of one position: before, behind and between others, strided, of depthwise, and nothing else */
    {2, 2, 1, 40, 1, {1, 300}, {1, 37}, {1, 20}, {1, 1}, {0, 5}, {0, 9}, NULL, false},
    {2, 1, 3, 20, 1, {70, 1}, {3, 1}, {1, 1}, {1, 1}, {1, 0}, {1, 0}, NULL, false},
    {3, 2, 8, 16, 2, {1, 30, 1}, {1, 3, 1}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}, NULL, false},
    {2, 1, 24, 24, 24, {1, 40}, {1, 5}, {2, 1}, {1, 1}, {0, 2}, {0, 2}, NULL, true},
    {2, 2, 20, 12, 1, {1, 1}, {1, 1}, {3, 1}, {1, 1}, {0, 0}, {0, 0}, NULL, false},
    {2, 1, 5, 6, 1, {1, 33}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    /* depthwise, with a multiplier, narrow groups */
    {2, 2, 9, 9, 9, {10, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 1, 6, 6, 6, {9, 9}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, NULL, true},
    {2, 2, 4, 12, 4, {6, 5}, {3, 3}, {1, 2}, {2, 1}, {2, 1}, {2, 1}, NULL, false},
    {2, 2, 12, 8, 4, {6, 5}, {2, 3}, {1, 1}, {1, 1}, {1, 0}, {0, 1}, NULL, false},
    /* depthwise by tiles: of large kernels, of more than a tile in both directions, with gaps and steps down, of many channels at
     * once, along one axis; a kernel that does not fit */
    {2, 2, 5, 5, 5, {32, 32}, {9, 9}, {1, 1}, {1, 1}, {4, 4}, {4, 4}, NULL, false},
    {2, 1, 3, 6, 3, {50, 141}, {5, 6}, {1, 1}, {1, 1}, {2, 2}, {2, 3}, NULL, false},
    {2, 1, 4, 4, 4, {31, 18}, {4, 7}, {2, 1}, {3, 1}, {1, 3}, {2, 2}, NULL, true},
    {2, 3, 70, 70, 70, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}, NULL, false},
    {1, 2, 6, 6, 6, {150}, {31}, {1}, {1}, {15}, {15}, NULL, false},
    {2, 1, 2, 2, 2, {90, 90}, {84, 83}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, NULL, false},
    {2, 1, 2, 2, 2, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {6, 6}, {6, 6}, NULL, false},
    /* one, three and four axes */
    {1, 3, 6, 7, 1, {31}, {5}, {2}, {3}, {4}, {5}, NULL, false},
    {3, 2, 4, 10, 2, {5, 4, 6}, {2, 3, 2}, {1, 2, 1}, {2, 1, 1}, {1, 0, 1}, {0, 1, 0}, NULL, false},
    {4, 1, 3, 4, 1, {3, 4, 3, 2}, {2, 2, 1, 2}, {1, 2, 1, 1}, {1, 1, 1, 1}, {1, 0, 0, 1}, {0, 1, 0, 0}, NULL, false},
    {1, 2, 4, 4, 4, {11}, {4}, {1}, {1}, {3}, {0}, NULL, true},
    /* paddings by name, and one that only sees padding */
    {2, 2, 4, 5, 1, {7, 8}, {3, 4}, {2, 3}, {1, 1}, {0}, {0}, "SAME_UPPER", false},
    {2, 2, 4, 5, 1, {7, 8}, {2, 4}, {2, 1}, {1, 2}, {0}, {0}, "SAME_LOWER", false},
    {2, 1, 4, 5, 1, {7, 8}, {3, 3}, {1, 1}, {1, 1}, {0}, {0}, "VALID", false},
    {2, 1, 3, 5, 1, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {4, 4}, {4, 4}, NULL, false},
    /* nothing to add, and nothing at all */
    {2, 2, 0, 3, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 0, 4, 3, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

HARNESS_GROUP(conv, shapes, HARNESS_CUDA) {
    for (int i = 0; i < SHAPES; i++) {
        check_conv(h, SB_F32, &shapes[i], PACKED, -1, sb_cuda_tile_count() - 1);
        for (int layout = 1; layout < LAYOUTS; layout++)
            check_conv(h, SB_F32, &shapes[i], (enum layout)layout, -1, -1);
    }
}

/* More than one tile along both axes, for every shape of tiles. */
HARNESS_GROUP(conv, tiles, HARNESS_CUDA) {
    for (int tile = 0; tile < sb_cuda_tile_count(); tile++) {
        const sb_cuda_tile *shape = sb_cuda_tile_at(tile);
        convolution conv = {2,      1,      16,     shape->m + 5, 1,    {8, shape->n / 8 + 3}, {2, 2}, {1, 1},
                            {1, 1}, {1, 0}, {0, 1}, NULL,         false};
        check_conv(h, SB_F32, &conv, PACKED, tile, tile);
        conv.batch = 3;
        conv.channels = 9;
        check_conv(h, SB_F32, &conv, PACKED, tile, tile);
    }
}

HARNESS_GROUP(conv, dtypes, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F16, SB_BF16, SB_F64};
    for (int i = 0; i < 3 * SHAPES; i++)
        check_conv(h, dtypes[i % 3], &shapes[i / 3], (enum layout)(i / 3 % LAYOUTS), -1, -1);
}

static sb_value_id add_statistics(harness *h, builder *b, int64_t channels, sb_value_id value, sb_tensor **tensors) {
    sb_value_id inputs[5] = {value};
    for (int i = 1; i < 5; i++) {
        inputs[i] = graph_input(h, b, SB_F32, 1, &channels, PACKED, tensors);
        void *data = tensors[b->graph->input_count - 1]->data;
        for (int64_t j = 0; j < channels; j++)
            sb_real_store_f32(SB_F32, data, j, (float)random_between(&h->random, i == 4 ? 1 : -500, 500) / 64);
    }
    return builder_node(b, "BatchNormalization", 5, inputs, NULL);
}

/* Residuals, factors of batch normalisation and bounds behind convolutions of all kinds. */
HARNESS_GROUP(conv, epilogues, HARNESS_CUDA) {
    static const char *const joins[] = {"Add", "Sub", "Mul", "Add", "Sub"};
    for (int round = 0; round < 2 * SHAPES; round++) {
        const convolution *conv = &shapes[round % SHAPES];
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_value_id value = add_conv(h, &b, SB_F32, conv, PACKED, tensors);
        if (round % 2 == 0)
            value = add_statistics(h, &b, conv->outputs, value, tensors);
        builder_finish(&b);
        const sb_fact *fact = &b.graph->values[value].fact;
        int64_t dims[SB_MAX_RANK];
        assert_true(sb_fact_is_concrete(fact, dims));
        value = builder_binary(&b, joins[round % 5], value,
                               graph_input(h, &b, SB_F32, fact->rank, dims, (enum layout)(round % LAYOUTS), tensors));
        value =
            round % 3 != 0
                ? builder_unary(&b, "Relu", value)
                : builder_node(&b, "Clip", 3,
                               (sb_value_id[]){value, graph_scalar(&b, SB_F32, 0), graph_scalar(&b, SB_F32, 6)}, NULL);
        h->first_tile = -1;
        h->last_tile = round % 8 == 0 ? sb_cuda_tile_count() - 1 : -1;
        harness_run_fused(h, &b, value, tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}
