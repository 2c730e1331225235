/* What choosing tokens takes a device by itself, for several sequences at a time: a chain of ChooseTokens, in which each waits for the one
 * ahead, less a chain of one, for each of its further nodes.
 *
 *     choose_rows_bench [CHOICES[,CHOICES…] [VOCABULARY [DRIVER]]]
 *
 * Prints a digest over all that the last node gives. Logits and instructions stay in the device's caches, which in a model they do not. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "measure.h"
#include "numerics/choose.h"

#define NODES 33
#define RUNS 25

typedef struct choosing {
    const char *name;
    int64_t columns; /* of reals */
    float temperature;
    int64_t top_k;
    float top_p, min_p;
} choosing;

static const choosing choosings[] = {
    {"greedy", 1, 0, 0, 1, 0},
    {"temperature", 1, 0.8f, 0, 1, 0},
    {"top-k 50", 3, 0.8f, 50, 1, 0},
    {"top-p 0.9", 3, 0.8f, 0, 0.9f, 0},
    {"min-p 0.05", 3, 0.8f, 0, 1, 0.05f},
    {"top-k 50, top-p 0.9", 3, 0.8f, 50, 0.9f, 0},
    {"top-k 5000", 3, 1.5f, 5000, 1, 0},
    {"three columns, greedy", 3, 0, 0, 1, 0},
};

typedef struct rows {
    sb_device *device;
    int64_t choices, vocabulary;
    sb_tensor *logits;
} rows;

/* Spread as those of a model that knows something: few that are far ahead, most far behind. */
static void make_logits(rows *r) {
    const int64_t dims[] = {r->choices, r->vocabulary};
    uint64_t state = 88172645463325252u;
    MUST(sb_tensor_create(SB_F32, 2, dims, &r->logits, error));
    float *numbers = sb_tensor_mutable_data(r->logits);
    for (int64_t i = 0; i < r->choices * r->vocabulary; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            sum += (double)(state >> 40) / (double)(1 << 24) - 0.5;
        }
        numbers[i] = (float)(5 * sum);
    }
}

static void add_input(sb_builder *b, const char *name, sb_dtype dtype, int rank, const int64_t *dims,
                      sb_builder_value *value) {
    const sb_value_description input = {
        .name = name, .kind = SB_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
    MUST(sb_builder_input(b, &input, value, error));
}

/* Slots go from node to node. */
static sb_model *chain(const rows *r, int64_t columns, int nodes) {
    const int64_t slots[] = {r->choices}, integers[] = {r->choices, SB_CHOOSE_INTEGER_COLUMNS};
    const int64_t reals[] = {r->choices, columns};
    sb_builder_value inputs[4], outputs[2];
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    add_input(b, "slots", SB_S64, 1, slots, &inputs[0]);
    MUST(sb_builder_constant(b, "logits", r->logits, &inputs[1], error));
    add_input(b, "integers", SB_S64, 2, integers, &inputs[2]);
    add_input(b, "reals", SB_F32, 2, reals, &inputs[3]);
    for (int i = 0; i < nodes; i++) {
        sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
        node.domain = "samebit";
        node.op = "ChooseTokens";
        node.version = 1;
        node.input_count = 4;
        node.inputs = inputs;
        node.output_count = 2;
        MUST(sb_builder_add_node(b, &node, outputs, error));
        inputs[0] = outputs[0];
    }
    MUST(sb_builder_output(b, outputs[0], error));
    MUST(sb_builder_output(b, outputs[1], error));
    MUST(sb_builder_build(b, NULL, &model, error));
    sb_builder_destroy(b);
    return model;
}

static void make_inputs(const rows *r, const choosing *how, sb_tensor **inputs) {
    const int64_t slots[] = {r->choices}, integers[] = {r->choices, SB_CHOOSE_INTEGER_COLUMNS};
    const int64_t reals[] = {r->choices, how->columns};
    MUST(sb_tensor_create(SB_S64, 1, slots, &inputs[0], error));
    MUST(sb_tensor_create(SB_S64, 2, integers, &inputs[1], error));
    MUST(sb_tensor_create(SB_F32, 2, reals, &inputs[2], error));
    memset(sb_tensor_mutable_data(inputs[0]), 0, (size_t)r->choices * sizeof(int64_t));
    for (int64_t c = 0; c < r->choices; c++) {
        const sb_choose_settings by = {.temperature = how->temperature,
                                       .top_p = how->top_p,
                                       .min_p = how->min_p,
                                       .top_k = how->top_k,
                                       .seed = 7,
                                       .request = (uint32_t)c,
                                       .position = 100};
        sb_choose_write(&by, c, c, (int64_t *)sb_tensor_mutable_data(inputs[1]) + c * SB_CHOOSE_INTEGER_COLUMNS,
                        (float *)sb_tensor_mutable_data(inputs[2]) + c * how->columns, how->columns);
    }
}

/* The best of many runs of such a chain, in microseconds. */
static double time_chain(const rows *r, const choosing *how, int nodes, sb_tensor **inputs, sb_tensor **outputs) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_model *model = chain(r, how->columns, nodes);
    sb_session *session;
    double best = INFINITY;
    options.device = r->device;
    options.require_device = true;
    MUST(sb_session_create(model, &options, &session, error));
    outputs[0] = outputs[1] = NULL;
    for (int run = 0; run < RUNS; run++) {
        sb_tensor_release(outputs[0]);
        sb_tensor_release(outputs[1]);
        double begin = now_us();
        MUST(sb_session_run_tensors(session, inputs, outputs, error));
        double taken = now_us() - begin;
        best = taken < best ? taken : best;
    }
    sb_session_destroy(session);
    sb_model_release(model);
    return best;
}

static void time_choosing(const rows *r, const choosing *how) {
    sb_tensor *inputs[3], *one[2], *all[2];
    char digest[SB_DIGEST_TEXT_BYTES];
    make_inputs(r, how, inputs);
    double of_one = time_chain(r, how, 1, inputs, one), of_all = time_chain(r, how, NODES, inputs, all);
    const sb_value values[] = {sb_value_of_tensor(all[0]), sb_value_of_tensor(all[1])};
    MUST(sb_digest_values(2, values, digest, error));
    printf("%3lld of %lld, %-24s %8.2f us, digest %.16s\n", (long long)r->choices, (long long)r->vocabulary, how->name,
           (of_all - of_one) / (NODES - 1), digest);
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        sb_tensor_release(inputs[i]);
    for (int i = 0; i < 2; i++) {
        sb_tensor_release(one[i]);
        sb_tensor_release(all[i]);
    }
}

int main(int count, char **arguments) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    rows r = {.vocabulary = count > 2 ? atoll(arguments[2]) : 128256};
    const char *sizes = count > 1 ? arguments[1] : "1,8,64";
    where.cuda_driver = count > 3 ? arguments[3] : NULL;
    MUST(sb_device_open(&where, 0, &r.device, error));
    for (const char *at = sizes; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        r.choices = atoll(at);
        if (r.choices < 1 || r.vocabulary < 1) {
            fprintf(stderr, "usage: choose_rows_bench [CHOICES[,CHOICES...] [VOCABULARY [DRIVER]]]\n");
            return 2;
        }
        make_logits(&r);
        for (size_t i = 0; i < sizeof choosings / sizeof *choosings; i++)
            time_choosing(&r, &choosings[i]);
        sb_tensor_release(r.logits);
    }
    sb_device_release(r.device);
    return 0;
}
