/* Epilogues of a device's contractions, element-wise nodes behind a product, as their kernels run them: the functions of
 * epilogue.cuh on the host, four columns at once where there are four, against the nodes one by one. Products with
 * epilogues through their kernels are cases of gemm and conv. */
#include "harness/fused_steps.h"
#include "harness/harness.h"
#include "ops/real.h"

#include "cuda/host_words.h"

#include "cuda/common/words.cuh"
#include "cuda/contraction/epilogue.cuh"
#include "cuda/contraction/epilogue.h"

/* ---- the kernel's part ---- */

typedef struct host_frame {
    sb_frame frame;
    void *workspace[SB_CUDA_EPILOGUE_INPUTS];
    int count;
} host_frame;

static sb_status host_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    host_frame *own = (host_frame *)frame;
    *memory = own->workspace[own->count++] = malloc(bytes + 1);
    assert_non_null(*memory);
    return SB_OK;
}

/* The columns of one row of the product, which are contiguous like y's. */
static void run_row(const sb_cuda_epilogue *epilogue, const sb_tensor *product, sb_tensor *y,
                    sb_cuda_epilogue_place place, int64_t at, int64_t columns) {
    for (int64_t column = 0; column < columns;) {
        int count = columns - column >= 4 ? 4 : 1;
        float values[4];
        place.column = column;
        for (int j = 0; j < count; j++)
            values[j] = sb_real_load_f32(product->dtype, product->data, at + column + j);
        if (count == 4)
            sb_cuda_epilogue_f32x4(epilogue, &place, values);
        else
            values[0] = sb_cuda_epilogue_f32(epilogue, &place, values[0]);
        for (int j = 0; j < count; j++)
            sb_real_store_f32(y->dtype, y->data, at + column + j, values[j]);
        column += count;
    }
}

static void run_epilogue(const sb_cuda_epilogue *epilogue, const sb_tensor *product, sb_tensor *y,
                         const sb_cuda_epilogue_role *roles) {
    int64_t extents[3] = {1, 1, 1};
    for (int d = 0; d < y->rank; d++)
        extents[roles[d]] *= y->dims[d];
    for (int64_t batch = 0; batch < extents[0]; batch++) {
        sb_cuda_epilogue_place place;
        sb_cuda_epilogue_begin(epilogue, batch, &place);
        place.column_distance = 1;
        for (int64_t row = 0; row < extents[1]; row++) {
            place.row = row;
            run_row(epilogue, product, y, place, (batch * extents[1] + row) * extents[2], extents[2]);
        }
    }
}

/* What becomes of the product by a plan for the nodes behind it; the graph's inputs are the plan's. */
static sb_tensor *apply(builder *b, const fused_shape *shape, const sb_tensor *product, const sb_fact **facts,
                        const sb_value *in) {
    char why[SB_WHY_BYTES] = "";
    sb_cuda_epilogue_plan *plan = NULL;
    sb_cuda_epilogue_role roles[4];
    sb_cuda_epilogue epilogue;
    sb_cuda_work work = {0};
    sb_tensor *y = NULL;
    sb_error failure = {SB_OK, ""};
    host_frame frame = {.frame = {.workspace = host_workspace}};
    sb_call call = {.node = b->graph->nodes[0],
                    .input_count = (int)b->graph->input_count,
                    .inputs = in,
                    .frame = &frame.frame,
                    .error = &failure};
    MUST(sb_cuda_epilogue_plan_create(b->graph, 1, facts, &plan, error));
    if (!sb_cuda_epilogue_plan_is_light(plan, why))
        harness_fail("%s", why);
    for (int d = 0; d < shape->rank; d++)
        roles[d] = d == shape->rank - 1   ? SB_CUDA_EPILOGUE_COLUMN
                   : d == shape->rank - 2 ? SB_CUDA_EPILOGUE_ROW
                                          : SB_CUDA_EPILOGUE_BATCH;
    MUST(sb_tensor_create(product->dtype, shape->rank, shape->dims, &y, error));
    if (sb_cuda_epilogue_start(&call, plan, y, roles, &epilogue, &work) != SB_OK)
        harness_fail("%s", failure.message);
    run_epilogue(&epilogue, product, y, roles);
    sb_cuda_epilogue_plan_destroy(plan);
    for (int i = 0; i < frame.count; i++)
        free(frame.workspace[i]);
    return y;
}

/* ---- cases ---- */

static void check(harness *h, builder *b, const fused_shape *shape, sb_value_id product, sb_value_id result,
                  sb_tensor **tensors) {
    const sb_fact *facts[HARNESS_INPUTS];
    sb_value in[HARNESS_INPUTS];
    sb_graph *graph = b->graph;
    MUST(sb_graph_add_output(graph, result, error));
    builder_finish(b);
    int count = (int)graph->input_count;
    sb_tensor **values = harness_evaluate(b, tensors);
    for (int i = 0; i < count; i++) {
        facts[i] = &graph->values[graph->inputs[i]].fact;
        in[i] = sb_value_of_tensor(tensors[i]);
    }
    /* Constants of the graph are inputs of a body. */
    for (size_t v = 0; v < graph->value_count; v++) {
        if (graph->values[v].fact.constant == NULL)
            continue;
        facts[graph->input_count] = &graph->values[v].fact;
        in[graph->input_count] = sb_value_of_tensor(graph->values[v].fact.constant);
        MUST(sb_graph_add_input(graph, (sb_value_id)v, error));
    }
    sb_tensor *y = apply(b, shape, values[product], facts, in);
    harness_compare(h, "the epilogue's functions on the host", values[result], y, tensors, count);
    sb_tensor_release(y);
    release_all(values, graph->value_count);
    free(values);
}

static const fused_shape products[] = {{2, {5, 9}}, {4, {2, 3, 4, 6}}, {4, {3, 2, 5, 1}}, {3, {4, 1, 7}}};

/* A product of that shape. */
static sb_value_id add_product(harness *h, builder *b, sb_dtype dtype, const fused_shape *shape, sb_tensor **tensors) {
    int64_t left[4], right[4];
    memcpy(left, shape->dims, sizeof left);
    memcpy(right, shape->dims, sizeof right);
    left[shape->rank - 1] = right[shape->rank - 2] = 3;
    sb_value_id factors[2] = {graph_input(h, b, dtype, shape->rank, left, PACKED, tensors),
                              graph_input(h, b, dtype, shape->rank, right, PACKED, tensors)};
    return builder_binary(b, "MatMul", factors[0], factors[1]);
}

static void run(harness *h, builder *b, const fused_shape *shape, sb_value_id product, sb_value_id result,
                sb_tensor **tensors) {
    if (harness_wants_graph(h, b, tensors) && (h->sides & HARNESS_CUDA) != 0)
        check(h, b, shape, product, result, tensors);
    harness_next(h);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(b);
}

HARNESS_GROUP(epilogue, steps, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
    for (int round = 0; round < 120; round++) {
        const fused_shape *shape = &products[round % 4];
        sb_dtype dtype = dtypes[round % 3];
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_value_id product = add_product(h, &b, dtype, shape, tensors), value = product;
        sb_value_id operands[3] = {
            graph_input(h, &b, dtype, shape->rank, shape->dims, (enum layout)(round % LAYOUTS), tensors),
            add_broadcast_input(h, &b, dtype, shape, tensors), add_broadcast_input(h, &b, dtype, shape, tensors)};
        for (int i = 0; i < round % 5; i++)
            value = add_fused_step(h, &b, value, dtype, i == 2 ? (sb_value_id[]){product, product, product} : operands,
                                   false);
        run(h, &b, shape, product, value, tensors);
    }
}

/* Sums and bounds of f32 alone, up to four of them: programs that kernels run without an interpreter. */
HARNESS_GROUP(epilogue, quick, HARNESS_CUDA) {
    for (int round = 0; round < 40; round++) {
        const fused_shape *shape = &products[round % 4];
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_value_id product = add_product(h, &b, SB_F32, shape, tensors), value = product;
        for (int i = 0; i <= round / 4 % 4; i++) {
            float least = (float)random_between(&h->random, -8, 0) / 4;
            sb_value_id bounds[3] = {value, graph_scalar(&b, SB_F32, least), graph_scalar(&b, SB_F32, least + 3)};
            int kind = (int)random_between(&h->random, 0, 3);
            value = kind == 0   ? builder_unary(&b, "Relu", value)
                    : kind == 1 ? builder_node(&b, "Clip", 3, bounds, NULL)
                                : builder_binary(&b, "Add", value, add_broadcast_input(h, &b, SB_F32, shape, tensors));
        }
        run(h, &b, shape, product, value, tensors);
    }
}
