/* Small models for tests of sessions on a device. Include after session_support.h. */
#ifndef SESSION_MODELS_H
#define SESSION_MODELS_H

#include "session_support.h"

/* Two inputs of [n, 8]; branches, a reduction, a softmax, views, moved elements, a constant;
 * outputs of [n, 8], [n, 1] and [8, n]. */
#define NETWORK_INPUTS 2
#define NETWORK_OUTPUTS 3
static inline sb_model *network(bool passes) {
    static const int64_t dims[] = {-1, 8};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, dims), y = builder_input(&b, SB_F32, 2, dims);
    sb_value_id weight = builder_constant(&b, random_tensor(SB_F32, 1, (int64_t[]){8}, 77));
    sb_value_id left = builder_unary(&b, "Tanh", builder_binary(&b, "Mul", x, weight));
    sb_value_id right = builder_unary(&b, "Relu", builder_binary(&b, "Sub", y, weight));
    sb_value_id both = concat(&b, left, right, 1); /* n 16 */
    sb_value_id shares = attribute_node(&b, "Softmax", 1, &both, "axis", true, 1, (int64_t[]){1});
    sb_value_id sums = builder_node(&b, "ReduceSum", 2, (sb_value_id[]){shares, integers(&b, 1, (int64_t[]){1})}, NULL);
    sb_value_id scaled = builder_binary(&b, "Add", builder_binary(&b, "Mul", left, sums), right);
    sb_value_id transposed = transpose(&b, builder_binary(&b, "Max", scaled, left), 2, (int64_t[]){1, 0});
    mark_output(&b, scaled);
    mark_output(&b, sums);
    mark_output(&b, transposed);
    return model_of(&b, passes);
}

static inline void network_inputs(sb_tensor **inputs, int64_t rows, uint64_t seed) {
    for (uint64_t i = 0; i < NETWORK_INPUTS; i++)
        inputs[i] = random_tensor(SB_F32, 2, (int64_t[]){rows, 8}, 1000 * seed + i);
}

/* Nodes of the network to keep on the CPU: none, one in the middle, two. */
static const char *const forced[] = {NULL, "Softmax", "Concat,ReduceSum"};
enum { FORCED = sizeof forced / sizeof forced[0] };

/* Attention over past keys and values [1, 2, n, 4], which grow by what the token [1, 2, 1, 4] adds. Outputs: the result
 * [1, 2, 1, 4], and the keys and values with the new ones behind. */
#define DECODER_INPUTS 3
#define DECODER_OUTPUTS 3
static inline sb_model *decoder(bool passes) {
    static const int64_t one[] = {1, 2, 1, 4}, past[] = {1, 2, -1, 4};
    builder b = builder_create();
    sb_value_id token = builder_input(&b, SB_F32, 4, one), past_keys = builder_input(&b, SB_F32, 4, past),
                past_values = builder_input(&b, SB_F32, 4, past);
    sb_value_id weight = builder_constant(&b, random_tensor(SB_F32, 1, (int64_t[]){4}, 78));
    sb_value_id keys = concat(&b, past_keys, builder_binary(&b, "Mul", token, weight), 2);
    sb_value_id values = concat(&b, past_values, builder_binary(&b, "Add", token, weight), 2);
    sb_value_id products = builder_binary(&b, "Mul", token, keys);
    sb_value_id scores =
        builder_node(&b, "ReduceSum", 2, (sb_value_id[]){products, integers(&b, 1, (int64_t[]){3})}, NULL);
    sb_value_id shares = attribute_node(&b, "Softmax", 1, &scores, "axis", true, 1, (int64_t[]){2});
    sb_value_id weighted = builder_binary(&b, "Mul", values, shares);
    sb_value_id mixed =
        builder_node(&b, "ReduceSum", 2, (sb_value_id[]){weighted, integers(&b, 1, (int64_t[]){2})}, NULL);
    mark_output(&b, builder_binary(&b, "Add", mixed, token));
    mark_output(&b, keys);
    mark_output(&b, values);
    return model_of(&b, passes);
}

/* A state and an input of [4, 8] make the next state, and an output of [4, 8]. */
#define RECURRENCE_INPUTS 2
#define RECURRENCE_OUTPUTS 2
static inline sb_model *recurrence(bool passes) {
    static const int64_t dims[] = {4, 8};
    builder b = builder_create();
    sb_value_id state = builder_input(&b, SB_F32, 2, dims), x = builder_input(&b, SB_F32, 2, dims);
    sb_value_id weight = builder_constant(&b, random_tensor(SB_F32, 1, (int64_t[]){8}, 79));
    sb_value_id mixed = builder_binary(&b, "Add", builder_binary(&b, "Mul", state, weight), x);
    sb_value_id next = builder_unary(&b, "Tanh", mixed);
    mark_output(&b, next);
    mark_output(&b, attribute_node(&b, "Softmax", 1, &next, "axis", true, 1, (int64_t[]){1}));
    return model_of(&b, passes);
}

/* Quotients of [6] by [6], and what lies at them in a table of 50. */
static inline sb_model *lookup(bool passes) {
    static const int64_t six[] = {6}, table[] = {50};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_S64, 1, six), y = builder_input(&b, SB_S64, 1, six);
    sb_value_id places = builder_binary(&b, "Div", builder_unary(&b, "Neg", x), y);
    sb_value_id data = builder_constant(&b, random_tensor(SB_F32, 1, table, 3));
    sb_value_id found = builder_binary(&b, "Gather", data, places);
    mark_output(&b, builder_unary(&b, "Tanh", found));
    return model_of(&b, passes);
}

static inline sb_tensor *six_of(int64_t value, int64_t last) {
    int64_t values[6] = {value, value, value, value, value, last};
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){6}, values, &tensor, error));
    return tensor;
}

#endif
