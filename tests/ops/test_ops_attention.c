/* What the bits of attention do not depend on: the batch, how keys reach it (padded, masked, from a past), how a sequence is
 * cut, layout, threads, and which operator asks. The values themselves: tests/cases/attention.txt, tests/docs/check_numerics. */
#include "ops/definition_cases.h"

#include "base/workers.h"
#include "ops/attention.h"
#include "ops/attention_values.h"
#include "ops/number.h"
#include "support/failing.h"
#include "support/must.h"

static const sb_dtype dtypes[] = {SB_BF16, SB_F16, SB_F32, SB_F64};

/* ---- tensors ---- */

static sb_tensor *random_floats(random_source *source, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_number_store(dtype, tensor->data, i, (double)random_between(source, -3000, 3000) / 1000.0);
    return tensor;
}

static sb_tensor *part(sb_tensor *tensor, int axis, int64_t start, int64_t count) {
    sb_tensor *view;
    MUST(sb_tensor_slice(tensor, axis, start, count, 1, &view, error));
    return view;
}

/* The tensor with `more` NaN behind its last position. */
static sb_tensor *padded(const sb_tensor *tensor, int64_t more) {
    int64_t dims[] = {tensor->dims[0], tensor->dims[1], tensor->dims[2] + more, tensor->dims[3]};
    sb_tensor *result;
    MUST(sb_tensor_create(tensor->dtype, 4, dims, &result, error));
    for (int64_t i = 0; i < sb_tensor_elements(result); i++)
        sb_number_store(tensor->dtype, result->data, i, (double)NAN);
    sb_tensor *used = part(result, 2, 0, tensor->dims[2]);
    sb_tensor_copy_elements(used, tensor);
    sb_tensor_release(used);
    return result;
}

static void assert_equal(const char *what, const sb_tensor *left, const sb_tensor *right) {
    if (!sb_tensor_equal(left, right))
        fail_msg("%s: %s", what, sb_dtype_name(left->dtype));
}

/* Whether `count` positions of axis `axis` of `whole`, from `start`, are those of `piece`. */
static void assert_part(const char *what, sb_tensor *whole, int axis, int64_t start, const sb_tensor *piece) {
    sb_tensor *view = part(whole, axis, start, piece->dims[axis]);
    assert_equal(what, view, piece);
    sb_tensor_release(view);
}

/* ---- nodes ---- */

typedef struct asked {
    sb_tensor *q, *k, *v, *mask, *past_k, *past_v, *lengths; /* borrowed */
    bool causal, scores;
    const char *op, *domain;
    int64_t heads, key_heads; /* for rank 3 */
} asked;

/* Runs the node; the outputs are the caller's. */
static void attend(const asked *of, sb_value *outputs) {
    sb_tensor *const inputs[] = {of->q, of->k, of->v, of->mask, of->past_k, of->past_v, of->lengths};
    node_runner runner = {.op = of->op != NULL ? of->op : "Attention",
                          .domain = of->domain,
                          .version = of->domain != NULL ? 1 : 25,
                          .output_count = of->scores           ? 4
                                          : of->past_k != NULL ? 3
                                                               : 1};
    for (int i = 0; i < 7; i++) {
        runner.inputs[i] = sb_tensor_retain(inputs[i]);
        runner.input_count = inputs[i] != NULL ? i + 1 : runner.input_count;
    }
    if (of->causal)
        add_int(&runner, "is_causal", 1);
    if (of->scores)
        add_int(&runner, "qk_matmul_output_mode", 3);
    if (of->heads != 0) {
        add_int(&runner, "q_num_heads", of->heads);
        add_int(&runner, "kv_num_heads", of->key_heads);
    }
    node_must_run(&runner, SB_ISA_BEST, outputs);
    node_clear(&runner);
}

typedef struct sample {
    sb_tensor *q, *k, *v;
} sample;

static sample make_sample(random_source *source, sb_dtype dtype, int64_t batch, int64_t queries, int64_t keys) {
    enum { HEADS = 4, KEY_HEADS = 2, WIDTH = 20, VALUE_WIDTH = 5 };
    return (sample){random_floats(source, dtype, 4, (int64_t[]){batch, HEADS, queries, WIDTH}),
                    random_floats(source, dtype, 4, (int64_t[]){batch, KEY_HEADS, keys, WIDTH}),
                    random_floats(source, dtype, 4, (int64_t[]){batch, KEY_HEADS, keys, VALUE_WIDTH})};
}

static void clear_sample(const sample *of) {
    sb_tensor_release(of->q);
    sb_tensor_release(of->k);
    sb_tensor_release(of->v);
}

static asked plain(const sample *of) {
    return (asked){.q = of->q, .k = of->k, .v = of->v};
}

/* ---- tests ---- */

static void rows_do_not_see_each_other(void **unused) {
    random_source source = {1};
    for (size_t d = 0; d < 4; d++) {
        sample all = make_sample(&source, dtypes[d], 3, 4, 141);
        sb_value whole[NODE_OUTPUTS] = {{0}}, alone[NODE_OUTPUTS] = {{0}};
        asked of = plain(&all);
        of.scores = true;
        attend(&of, whole);
        for (int64_t b = 0; b < 3; b++) {
            for (int64_t i = 0; i < 4; i++) {
                sb_tensor *mine = part(all.q, 0, b, 1);
                asked one = {
                    .q = part(mine, 2, i, 1), .k = part(all.k, 0, b, 1), .v = part(all.v, 0, b, 1), .scores = true};
                attend(&one, alone);
                for (int o = 0; o < 4; o += 3) {
                    sb_tensor *rows = part(whole[o].tensor, 0, b, 1);
                    assert_part("a row alone", rows, 2, i, alone[o].tensor);
                    sb_tensor_release(rows);
                }
                release_outputs(alone);
                sb_tensor_release(mine);
                sb_tensor_release(one.q);
                sb_tensor_release(one.k);
                sb_tensor_release(one.v);
            }
        }
        release_outputs(whole);
        clear_sample(&all);
    }
}

/* NaN behind the keys, which a length, a mask, or a short mask hides. */
static void hidden_keys_change_nothing(void **unused) {
    random_source source = {2};
    static const int64_t counts[] = {1, 127, 128, 129, 513};
    for (size_t c = 0; c < 5 * 4; c++) {
        int64_t keys = counts[c / 4], more = 130;
        sample all = make_sample(&source, dtypes[c % 4], 1, 2, keys);
        sample longer = {all.q, padded(all.k, more), padded(all.v, more)};
        sb_value tight[NODE_OUTPUTS] = {{0}}, loose[NODE_OUTPUTS] = {{0}};
        asked of = plain(&all);
        attend(&of, tight);
        sb_tensor *length = LIST(SB_S64, (int64_t, keys)), *mask, *brief;
        int64_t extent = keys + more;
        MUST(sb_tensor_create(SB_BOOL, 1, &extent, &mask, error));
        memset(mask->data, 1, (size_t)keys);
        brief = part(mask, 0, 0, keys);
        const asked ways[] = {{.lengths = length}, {.mask = mask}, {.mask = brief}};
        for (int way = 0; way < 3; way++) {
            asked hidden = plain(&longer);
            hidden.lengths = ways[way].lengths;
            hidden.mask = ways[way].mask;
            attend(&hidden, loose);
            assert_equal("keys that are hidden", tight[0].tensor, loose[0].tensor);
            release_outputs(loose);
        }
        release_outputs(tight);
        sb_tensor_release(mask);
        sb_tensor_release(brief);
        sb_tensor_release(length);
        sb_tensor_release(longer.k);
        sb_tensor_release(longer.v);
        clear_sample(&all);
    }
}

/* A causal prompt at once, and its positions from `cut` on behind the others as a past, or in a cache with room. */
static void chunks_are_the_whole(void **unused) {
    random_source source = {3};
    enum { POSITIONS = 516 };
    static const int64_t cuts[] = {1, 127, 300, 512, POSITIONS - 1};
    for (size_t d = 0; d < 4; d++) {
        sample all = make_sample(&source, dtypes[d], 1, POSITIONS, POSITIONS);
        sb_value whole[NODE_OUTPUTS] = {{0}}, last[NODE_OUTPUTS] = {{0}};
        asked of = plain(&all);
        of.causal = true;
        attend(&of, whole);
        for (size_t c = 0; c < 5; c++) {
            int64_t cut = cuts[c], count = POSITIONS - cut < 3 ? POSITIONS - cut : 3;
            asked chunk = {.q = part(all.q, 2, cut, count),
                           .k = part(all.k, 2, cut, count),
                           .v = part(all.v, 2, cut, count),
                           .past_k = part(all.k, 2, 0, cut),
                           .past_v = part(all.v, 2, 0, cut),
                           .causal = true};
            attend(&chunk, last);
            assert_part("a chunk", whole[0].tensor, 2, cut, last[0].tensor);
            assert_part("its keys", all.k, 2, 0, last[1].tensor);
            assert_part("its values", all.v, 2, 0, last[2].tensor);
            release_outputs(last);
            asked cached = {
                .q = chunk.q, .k = all.k, .v = all.v, .causal = true, .lengths = LIST(SB_S64, (int64_t, cut + count))};
            attend(&cached, last);
            assert_part("a chunk over a cache", whole[0].tensor, 2, cut, last[0].tensor);
            release_outputs(last);
            sb_tensor *const parts[] = {chunk.q, chunk.k, chunk.v, chunk.past_k, chunk.past_v, cached.lengths};
            for (int i = 0; i < 6; i++)
                sb_tensor_release(parts[i]);
        }
        release_outputs(whole);
        clear_sample(&all);
    }
}

/* [batch, heads, positions, width] as [batch, positions, heads · width]. */
static sb_tensor *packed(sb_tensor *tensor) {
    sb_tensor *turned, *dense, *result;
    MUST(sb_tensor_transpose(tensor, (int[]){0, 2, 1, 3}, &turned, error));
    MUST(sb_tensor_contiguous(turned, &dense, error));
    MUST(sb_tensor_reshape(dense, 3, (int64_t[]){dense->dims[0], dense->dims[1], dense->dims[2] * dense->dims[3]},
                           &result, error));
    sb_tensor_release(turned);
    sb_tensor_release(dense);
    return result;
}

static void layouts_and_operators_agree(void **unused) {
    random_source source = {4};
    for (size_t d = 0; d < 4; d++) {
        sample all = make_sample(&source, dtypes[d], 2, 3, 131);
        sb_value first[NODE_OUTPUTS] = {{0}}, other[NODE_OUTPUTS] = {{0}};
        asked of = plain(&all);
        attend(&of, first);
        sample flat = {packed(all.q), packed(all.k), packed(all.v)};
        of = plain(&flat);
        of.heads = 4;
        of.key_heads = 2;
        attend(&of, other);
        sb_tensor *wanted = packed(first[0].tensor);
        assert_equal("three dimensions", wanted, other[0].tensor);
        sb_tensor_release(wanted);
        release_outputs(other);
        of = plain(&all);
        of.op = "FlexAttention";
        of.domain = "ai.onnx.preview";
        attend(&of, other);
        assert_equal("FlexAttention", first[0].tensor, other[0].tensor);
        release_outputs(other);
        release_outputs(first);
        clear_sample(&flat);
        clear_sample(&all);
    }
    for (int round = 0; round < 20; round++) {
        sb_dtype dtype = dtypes[round % 4];
        sample odd = {random_tensor(&source, ORDINARY, dtype, 4, (int64_t[]){2, 2, 3, 17}),
                      random_tensor(&source, ORDINARY, dtype, 4, (int64_t[]){2, 1, 130, 17}),
                      random_tensor(&source, ORDINARY, dtype, 4, (int64_t[]){2, 1, 130, 6})};
        sample dense;
        MUST(sb_tensor_contiguous(odd.q, &dense.q, error));
        MUST(sb_tensor_contiguous(odd.k, &dense.k, error));
        MUST(sb_tensor_contiguous(odd.v, &dense.v, error));
        sb_value first[NODE_OUTPUTS] = {{0}}, other[NODE_OUTPUTS] = {{0}};
        asked of = plain(&odd);
        attend(&of, first);
        of = plain(&dense);
        attend(&of, other);
        assert_equal("strides", first[0].tensor, other[0].tensor);
        release_outputs(first);
        release_outputs(other);
        clear_sample(&odd);
        clear_sample(&dense);
    }
}

static void threads_change_nothing(void **unused) {
    random_source source = {5};
    for (size_t d = 0; d < 4; d++) {
        sb_dtype dtype = dtypes[d];
        sample all = make_sample(&source, dtype, 2, 67, 140);
        sb_tensor *y[3] = {0};
        for (int i = 0; i < 3; i++) {
            sb_workers *workers;
            MUST(sb_workers_create(1 + 2 * i, &workers, error));
            MUST(sb_tensor_create(dtype, 4, (int64_t[]){2, 4, 67, 5}, &y[i], error));
            const sb_attention_work work = {.dtype = dtype,
                                            .wide = dtype == SB_F64,
                                            .batch = 2,
                                            .heads = 4,
                                            .key_heads = 2,
                                            .queries = 67,
                                            .keys = 140,
                                            .width = 20,
                                            .value_width = 5,
                                            .left = -1,
                                            .right = -1,
                                            .scale = sb_attention_default_scale(dtype, 20),
                                            .q = sb_attention_array_of(all.q, 0),
                                            .k = sb_attention_array_of(all.k, 0),
                                            .v = sb_attention_array_of(all.v, 0),
                                            .y = sb_attention_array_of(y[i], 0)};
            MUST(sb_attention_run(&work, workers, error));
            assert_equal("threads", y[0], y[i]);
            sb_workers_destroy(workers);
        }
        for (int i = 0; i < 3; i++)
            sb_tensor_release(y[i]);
        clear_sample(&all);
    }
}

/* The errors that docs/numerics.md tells of the polynomials; every float was tried once. */
static void polynomials_are_near(void **unused) {
    enum { STRIDE = 97 };
    static const double bounds[] = {2.2e-7, 6.8e-8};
    double worst[2] = {0};
    long double wide = 0;
    for (uint32_t bits = 0x30800000u; bits <= 0x3f000000u; bits += STRIDE) {
        for (int sign = 0; sign < 2; sign++) {
            float f = sb_bits_to_f32(bits | (uint32_t)sign << 31);
            worst[0] = fmax(worst[0], fabs((double)sb_attention_power_half(f) / exp2((double)f) - 1));
            worst[1] = fmax(worst[1], fabs((double)sb_exp2_fraction_f32(f) / exp2((double)f) - 1));
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!(worst[i] <= bounds[i]) || worst[i] < bounds[i] * 0.9)
            fail_msg("polynomial %d: %g, and the page says %g", i, worst[i], bounds[i]);
    }
    random_source source = {7};
    for (int i = 0; i < 200000; i++) {
        double f = (double)random_between(&source, -(INT64_C(1) << 50), INT64_C(1) << 50) * 0x1p-51;
        wide = fmaxl(wide, fabsl((long double)sb_attention_power_f64(f) / exp2l((long double)f) - 1));
    }
    if (!(wide <= 1.3e-16L))
        fail_msg("f64: %Lg", wide);
}

/* Every exponent that a weight of 16 bits can have: the weight is the power of two, rounded once, and +0 below 2^-126. `exp2` in f64
 * is near enough to tell. One weight
 * of f16 is the lower of two where the power is above their middle, by 2^-25: ex2.approx gives that. */
static void weights_are_rounded_powers(void **unused) {
    static const sb_split_scale_f32 plain = {1, 0x1p21f};
    int exceptions = 0;
    for (int i = -130 * 4096; i <= 2048; i++) {
        const double exponent = i / 4096.0, exact = exponent < -126 ? 0 : exp2(exponent);
        for (int32_t maximum = -100000; maximum <= 100000; maximum += 100000) {
            /* A score with no more digits than a float has: a multiple of 2^-7 with a large maximum. */
            if (maximum != 0 && i % 32 != 0)
                continue;
            const float weight = sb_attention_weight_half((float)(exponent + maximum), plain, maximum);
            uint16_t brain = sb_bf16_from_f32(weight), half = sb_f16_from_f32(weight);
            assert_int_equal(brain, sb_bf16_from_f32((float)exact));
            if (half == sb_f16_from_f64(exact))
                continue;
            assert_int_equal(i, 742 - 15 * 4096);
            exceptions++;
        }
    }
    assert_int_equal(exceptions, 1);
}

/* ---- LinearAttention ---- */

/* Positions from `start` of batch rows from `row`; `outputs` are the caller's. */
static void recur(sb_tensor *const inputs[6], int64_t row, int64_t rows, int64_t start, int64_t count, sb_tensor *state,
                  sb_value *outputs) {
    node_runner runner = {.op = "LinearAttention", .version = 27, .input_count = 6, .output_count = 2};
    for (int i = 0; i < 6; i++) {
        sb_tensor *of_rows = part(i == 3 ? state : inputs[i], 0, i == 3 ? 0 : row, rows);
        runner.inputs[i] = i == 3 ? sb_tensor_retain(of_rows) : part(of_rows, 1, start, count);
        sb_tensor_release(of_rows);
    }
    add_int(&runner, "q_num_heads", 4);
    add_int(&runner, "kv_num_heads", 2);
    node_must_run(&runner, SB_ISA_BEST, outputs);
    node_clear(&runner);
}

static void states_of_f32_continue(void **unused) {
    random_source source = {6};
    enum { BATCH = 3, POSITIONS = 9 };
    for (size_t d = 0; d < 3; d++) {
        static const int64_t widths[] = {4 * 3, 2 * 3, 2 * 70, 0, 2 * 3, 2};
        sb_tensor *inputs[6];
        for (int i = 0; i < 6; i++)
            inputs[i] = i == 3 ? random_floats(&source, SB_F32, 4, (int64_t[]){BATCH, 2, 3, 70})
                               : random_floats(&source, dtypes[d], 3, (int64_t[]){BATCH, POSITIONS, widths[i]});
        sb_value whole[NODE_OUTPUTS] = {{0}}, first[NODE_OUTPUTS] = {{0}}, second[NODE_OUTPUTS] = {{0}};
        recur(inputs, 0, BATCH, 0, POSITIONS, inputs[3], whole);
        for (int64_t cut = 1; cut < POSITIONS; cut += 3) {
            recur(inputs, 0, BATCH, 0, cut, inputs[3], first);
            recur(inputs, 0, BATCH, cut, POSITIONS - cut, first[1].tensor, second);
            assert_part("the first piece", whole[0].tensor, 1, 0, first[0].tensor);
            assert_part("the second piece", whole[0].tensor, 1, cut, second[0].tensor);
            assert_equal("the state", whole[1].tensor, second[1].tensor);
            release_outputs(first);
            release_outputs(second);
        }
        for (int64_t row = 0; row < BATCH; row++) {
            sb_tensor *state = part(inputs[3], 0, row, 1);
            recur(inputs, row, 1, 0, POSITIONS, state, first);
            assert_part("a sample alone", whole[0].tensor, 0, row, first[0].tensor);
            assert_part("its state", whole[1].tensor, 0, row, first[1].tensor);
            release_outputs(first);
            sb_tensor_release(state);
        }
        release_outputs(whole);
        for (int i = 0; i < 6; i++)
            sb_tensor_release(inputs[i]);
    }
}

/* ---- allocations that fail ---- */

static sb_status attempt(void *context) {
    const char *op = context;
    bool linear = strcmp(op, "LinearAttention") == 0, flex = strcmp(op, "FlexAttention") == 0;
    node_runner runner = {.op = op,
                          .domain = flex ? "ai.onnx.preview" : "",
                          .version = flex ? 1 : 27,
                          .input_count = 3,
                          .output_count = linear ? 2
                                          : flex ? 1
                                                 : 4};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error;
    const int64_t dims[] = {1, 2, 3, 4}, one = 1;
    sb_status status = SB_OK;
    for (int i = 0; i < 3 && status == SB_OK; i++)
        status = sb_tensor_create(linear ? SB_F16 : SB_F32, linear ? 3 : 4, dims, &runner.inputs[i], &error);
    if (status == SB_OK && linear) {
        static const char *const names[] = {"q_num_heads", "kv_num_heads"};
        const sb_string rule = {"linear", strlen("linear")};
        status = sb_attributes_add_strings(&runner.attributes, "update_rule", true, 1, &rule, &error);
        for (int i = 0; i < 2 && status == SB_OK; i++)
            status = sb_attributes_add_ints(&runner.attributes, names[i], true, 1, &one, &error);
    }
    if (status == SB_OK)
        status = node_run(&runner, SB_ISA_BEST, outputs, &error);
    release_outputs(outputs);
    node_clear(&runner);
    return status;
}

static void failing_allocations_leave_nothing(void **unused) {
    static char names[][16] = {"Attention", "LinearAttention", "FlexAttention"};
    for (int i = 0; i < 3; i++)
        check_failing_allocations(attempt, names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_do_not_see_each_other),
        cmocka_unit_test(hidden_keys_change_nothing),
        cmocka_unit_test(chunks_are_the_whole),
        cmocka_unit_test(layouts_and_operators_agree),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(polynomials_are_near),
        cmocka_unit_test(weights_are_rounded_powers),
        cmocka_unit_test(states_of_f32_continue),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
