/* RNN, GRU, LSTM and LinearAttention. */
#include "cuda/recurrent/sequence.h"
#include "harness/harness.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct extents {
    int64_t steps, batch, inputs, hidden;
} extents;

static const extents sizes[] = {
    {4, 3, 5, 7}, {1, 1, 1, 1}, {3, 2, 33, 40}, {0, 2, 3, 4}, {3, 0, 2, 2}, {2, 2, 0, 3},
};

static const char *const activations[] = {"Affine",     "Elu",     "HardSigmoid", "LeakyRelu", "Relu",           "Tanh",
                                          "ScaledTanh", "Sigmoid", "Softplus",    "Softsign",  "ThresholdedRelu"};

static void set_activations(harness *h, harness_case *test, int count) {
    sb_string names[6];
    for (int i = 0; i < count; i++) {
        const char *name = activations[random_between(&h->random, 0, 10)];
        names[i] = (sb_string){name, strlen(name)};
    }
    MUST(sb_attributes_add_strings(&test->attributes, "activations", false, count, names, error));
}

/* A number for each batch row; with `astray` more than there are steps. */
static sb_tensor *make_lengths(harness *h, const extents *e, bool astray) {
    sb_tensor *lengths = any_tensor(h, SB_S32, 1, &e->batch);
    for (size_t i = 0; i < lengths->storage->bytes / sizeof(int32_t); i++)
        ((int32_t *)lengths->storage->data)[i] =
            (int32_t)(astray ? e->steps + 1 : random_between(&h->random, 0, e->steps));
    return lengths;
}

/* Every option by a bit of `options`. */
static void check_layer(harness *h, const char *op, sb_dtype dtype, const extents *e, unsigned options, bool astray) {
    static const char *const names[] = {"forward", "reverse", "bidirectional"};
    bool is_lstm = strcmp(op, "LSTM") == 0;
    int gates = is_lstm ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1, functions = gates == 1 ? 1 : gates - 1;
    int direction = (int)(options % 3), directions = direction == 2 ? 2 : 1;
    bool first = (options >> 2 & 1) != 0, awkward = (options >> 9 & 3) == 3;
    int64_t rows = gates * e->hidden;
    int64_t x[] = {first ? e->batch : e->steps, first ? e->steps : e->batch, e->inputs};
    int64_t w[] = {directions, rows, e->inputs}, r[] = {directions, rows, e->hidden};
    int64_t b[] = {directions, 2 * rows}, p[] = {directions, 3 * e->hidden};
    int64_t state[] = {first ? e->batch : directions, first ? directions : e->batch, e->hidden};
    harness_case test = harness_op(op, 14);
    add_input(&test, number_tensor(h, dtype, 3, x, awkward));
    add_input(&test, number_tensor(h, dtype, 3, w, false));
    add_input(&test, number_tensor(h, dtype, 3, r, false));
    add_input(&test, (options >> 3 & 1) != 0 ? number_tensor(h, dtype, 2, b, false) : NULL);
    add_input(&test, (options >> 4 & 1) != 0 || astray ? make_lengths(h, e, astray) : NULL);
    add_input(&test, (options >> 5 & 1) != 0 ? number_tensor(h, dtype, 3, state, false) : NULL);
    if (is_lstm) {
        bool given = (options >> 6 & 1) != 0;
        add_input(&test, given ? number_tensor(h, dtype, 3, state, false) : NULL);
        add_input(&test, !given ? number_tensor(h, dtype, 2, p, false) : NULL);
        set_int(&test, "input_forget", options >> 7 & 1);
    } else if (gates == 3) {
        set_int(&test, "linear_before_reset", options >> 7 & 1);
    }
    set_text(&test, "direction", names[direction]);
    set_int(&test, "layout", first);
    set_int(&test, "hidden_size", e->hidden);
    if ((options >> 8 & 1) != 0)
        set_float(&test, "clip", 0.75f);
    if ((options >> 5 & 3) == 3)
        set_activations(h, &test, functions * directions);
    test.outputs = is_lstm ? 3 : 2;
    harness_run(h, &test);
}

HARNESS_GROUP(recurrent, layers, HARNESS_CUDA) {
    static const char *const ops[] = {"RNN", "GRU", "LSTM"};
    for (int o = 0; o < 3; o++) {
        for (int t = 0; t < 4; t++) {
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                int count = s == 0 ? 40 : s == 2 ? 4 : 2;
                for (int i = 0; i < count; i++)
                    check_layer(h, ops[o], float_types[t], &sizes[s], (unsigned)random_bits(&h->random) & 0x7ff, false);
            }
        }
    }
}

/* Inputs 3 and up, each of which may be omitted. */
static void add_optional_inputs(harness *h, harness_case *test, distribution kind, const extents *e, int count,
                                int64_t directions, int64_t rows, bool first) {
    const int64_t state[] = {first ? e->batch : directions, first ? directions : e->batch, e->hidden};
    const int64_t b[] = {directions, 2 * rows}, p[] = {directions, 3 * e->hidden};
    for (int i = 3; i < count; i++) {
        if (random_bits(&h->random) % 2 == 0)
            add_input(test, NULL);
        else if (i == 4)
            add_input(test, make_lengths(h, e, false));
        else
            add_input(test, random_tensor(h, kind, SB_F32, i == 3 || i == 7 ? 2 : 3, i == 3 ? b : i == 7 ? p : state));
    }
}

/* Any extents, options and inputs, with weights that may be known beforehand, of every distribution. */
HARNESS_GROUP(recurrent, random, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const ops[] = {"RNN", "GRU", "LSTM"};
    static const char *const names[] = {"forward", "reverse", "bidirectional"};
    random_source *random = &h->random;
    for (int round = 0; round < 150; round++) {
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int op = round % 3, gates = (int[]){1, 3, 4}[op], direction = (int)random_between(random, 0, 2);
        int64_t directions = direction == 2 ? 2 : 1;
        const extents e = {random_between(random, 0, 5), random_between(random, 1, 4), random_between(random, 1, 20),
                           random_between(random, 1, round % 10 == 0 ? 150 : 20)};
        const int64_t rows = gates * e.hidden;
        bool first = (random_bits(random) & 1) != 0;
        harness_case test = harness_op(ops[op], 14);
        add_input(&test, random_tensor(h, kind, SB_F32, 3,
                                       (int64_t[]){first ? e.batch : e.steps, first ? e.steps : e.batch, e.inputs}));
        add_input(&test, random_tensor(h, kind, SB_F32, 3, (int64_t[]){directions, rows, e.inputs}));
        add_input(&test, random_tensor(h, kind, SB_F32, 3, (int64_t[]){directions, rows, e.hidden}));
        add_optional_inputs(h, &test, kind, &e, op == 2 ? 8 : 6, directions, rows, first);
        set_text(&test, "direction", names[direction]);
        set_int(&test, "hidden_size", e.hidden);
        set_int(&test, "layout", first);
        if (op > 0)
            set_int(&test, op == 1 ? "linear_before_reset" : "input_forget", random_between(random, 0, 1));
        if (random_between(random, 0, 2) == 0)
            set_float(&test, "clip", 0.5f);
        if ((random_bits(random) & 1) != 0)
            set_activations(h, &test, (op + 1) * (int)directions);
        test.outputs = op == 2 ? 3 : 2;
        test.constants = (random_bits(random) & 1) != 0 ? 6 : 0;
        harness_run(h, &test);
    }
}

/* Every way to cut a node into blocks, for every kind of it: clusters of which some blocks have no state elements, batch rows that fill no
 * product, hidden units that fill no group of 16 and no piece of 16 bytes, all directions and options. */
HARNESS_GROUP(recurrent, cuts, HARNESS_CUDA) {
    static const char *const ops[] = {"RNN", "GRU", "LSTM"};
    static const sb_cuda_sequence_forced cuts[] = {
        {1, 1, false, false}, {1, 16, false, false}, {2, 4, false, false}, {4, 8, false, false}, {8, 2, false, false},
        {0, 1, false, false}, {0, 16, false, false}, {1, 4, true, false},  {0, 2, true, false},  {0, 4, false, true},
    };
    static const extents shapes[] = {{3, 11, 6, 21}, {4, 1, 16, 64}, {2, 9, 8, 136}};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        sb_cuda_sequence_force(&cuts[c]);
        for (int i = 0; i < 4 * 3 * 6; i++)
            check_layer(h, ops[i / 4 % 3], float_types[i % 4], &shapes[i / 12 % 3],
                        (unsigned)random_bits(&h->random) & 0x7ff, false);
    }
    sb_cuda_sequence_force(NULL);
}

/* Hidden units whose R has room in several blocks alone, in registers for a part, or nowhere. */
HARNESS_GROUP(recurrent, large, HARNESS_CUDA) {
    static const extents shapes[] = {{2, 3, 4, 200}, {2, 1, 8, 392}, {2, 17, 4, 256}, {2, 2, 4, 520}};
    static const char *const ops[] = {"LSTM", "GRU", "RNN"};
    for (int i = 0; i < 4 * 4 * 2; i++)
        check_layer(h, ops[i / 16 + i % 2], float_types[i % 4], &shapes[i / 4 % 4],
                    (unsigned)random_bits(&h->random) & 0x7ff, false);
}

/* Sums that are +0, -0 and subnormal, and numbers that are none, in every way. */
HARNESS_GROUP(recurrent, values, HARNESS_CUDA) {
    static const sb_cuda_sequence_forced cuts[] = {
        {1, 4, false, false}, {4, 2, false, false}, {0, 8, false, false}, {1, 1, true, false}};
    const extents e = {3, 5, 7, 22};
    for (int i = 0; i < 4 * 4 * 3 * 2; i++) {
        const sb_dtype dtype = float_types[i % 4];
        const int gates = (int[]){1, 3, 4}[i / 4 % 3];
        const distribution kind = (distribution)(i / 2 % DISTRIBUTIONS);
        harness_case test = harness_op((const char *[]){"RNN", "GRU", "LSTM"}[i / 4 % 3], 14);
        sb_cuda_sequence_force(&cuts[i / 12 % 4]);
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(e.steps, e.batch, e.inputs)));
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(1, gates * e.hidden, e.inputs)));
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(1, gates * e.hidden, e.hidden)));
        add_input(&test, i % 3 == 0 ? NULL : random_tensor(h, kind, dtype, 2, DIMS(1, 2 * gates * e.hidden)));
        add_input(&test, NULL);
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(1, e.batch, e.hidden)));
        set_int(&test, "hidden_size", e.hidden);
        if (gates == 3)
            set_int(&test, "linear_before_reset", i / 4 % 2);
        test.outputs = 2;
        harness_run(h, &test);
    }
    sb_cuda_sequence_force(NULL);
}

/* Lengths that no row can have are found on the device. */
HARNESS_GROUP(recurrent, lengths, HARNESS_CUDA) {
    check_layer(h, "GRU", SB_F32, &sizes[0], 0, true);
    check_layer(h, "LSTM", SB_F16, &sizes[0], 0x92, true);
}

/* States of every width about which vectors change, whose columns make several pieces; each rule, a decay for each row of a state and one
 * for all of it, queries that share a state, and a state that is of another dtype. */
HARNESS_GROUP(recurrent, linear_attention, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    static const int64_t widths[] = {1, 7, 16, 33, 48, 64, 70, 130};
    for (int round = 0; round < 4 * 3 * 8 * 2; round++) {
        const int rule = round % 4;
        const sb_dtype dtype = float_types[round / 4 % 3];
        const distribution kind = (distribution)(round / 5 % DISTRIBUTIONS);
        const int64_t heads = 1 + round % 3, group = 1 + round / 2 % 3, width = widths[round % 7],
                      value_width = widths[round / 12 % 8], positions = round % 23 == 22 ? 0 : 1 + round % 5;
        const int64_t state[] = {2, heads, width, value_width};
        harness_case test = harness_op("LinearAttention", 27);
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(2, positions, heads * group * width)));
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(2, positions, heads * width)));
        add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(2, positions, heads * value_width)));
        add_input(&test, round % 3 == 0 ? NULL : any_tensor(h, float_types[(round / 3 + round / 24) % 3], 4, state));
        add_input(&test, rule % 2 == 0
                             ? NULL
                             : number_tensor(h, dtype, 3, DIMS(2, positions, round % 5 < 2 ? heads : heads * width),
                                             round % 7 == 6));
        if (rule > 1)
            add_input(&test, random_tensor(h, kind, dtype, 3, DIMS(2, positions, round % 4 == 0 ? 1 : heads)));
        set_text(&test, "update_rule", rules[rule]);
        set_int(&test, "q_num_heads", heads * group);
        set_int(&test, "kv_num_heads", heads);
        if (round % 2 == 0)
            set_float(&test, "scale", 0.3f);
        test.outputs = 2;
        harness_run(h, &test);
    }
}
