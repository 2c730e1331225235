/* Nodes by the CPU's kernels. */
#include "base/allocation.h"
#include "harness/harness.h"
#include "support/derived.h"

#define MOST_BLOCKS 64

typedef struct cpu_frame {
    sb_frame frame;
    int count;
    void *blocks[MOST_BLOCKS];
} cpu_frame;

/* Outputs start out as garbage, so that an element that nobody writes shows. */
static sb_status allocate_output(sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                                 char **data) {
    SB_TRY(sb_storage_create(bytes, storage, call->error));
    *data = (*storage)->data;
    if (bytes != 0)
        memset(*data, 0xa5, bytes);
    return SB_OK;
}

static sb_status allocate_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    cpu_frame *own = (cpu_frame *)frame;
    assert_true(own->count < MOST_BLOCKS);
    *memory = sb_allocate(bytes);
    if (*memory == NULL)
        return sb_fail_memory(call->error, bytes);
    memset(*memory, 0xa5, bytes);
    own->blocks[own->count++] = *memory;
    return SB_OK;
}

/* Workers live as long as the program: fresh threads spin for a while before they sleep,
 * which took most of the time of these tests. */
static sb_workers *workers_of(int threads) {
    static sb_workers *shared[16];
    assert_true(threads > 0 && threads < 16);
    if (shared[threads] == NULL)
        MUST(sb_workers_create(threads, &shared[threads], error));
    return shared[threads];
}

static sb_status launch(const harness_node *node, const sb_kernel *kernel, void *state, const void *derived, sb_isa isa,
                        int threads, const harness_facts *facts, sb_value *out, sb_error *error) {
    sb_value in[SB_WALK_OPERANDS] = {{0}};
    cpu_frame frame = {.frame = {.allocate = allocate_output, .workspace = allocate_workspace}};
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            in[i] = sb_value_of_tensor(node->inputs[i]);
    }
    sb_call call = {.node = node->node,
                    .input_count = node->node->input_count,
                    .inputs = in,
                    .output_count = node->node->output_count,
                    .facts = facts->outputs,
                    .outputs = out,
                    .workers = workers_of(threads),
                    .frame = &frame.frame,
                    .state = state,
                    .derived = derived,
                    .isa = isa,
                    .error = error};
    sb_status status = sb_call_run(&call, kernel->launch);
    for (int i = 0; i < frame.count; i++)
        sb_free(frame.blocks[i]);
    return status;
}

harness_outcome harness_run_cpu(const harness_node *node, sb_isa isa, int threads, sb_tensor **outputs, char *why) {
    sb_value out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    harness_facts facts;
    const sb_kernel *kernel = NULL;
    void *state = NULL, *derived = NULL;
    harness_outcome outcome = HARNESS_ABSENT;
    MUST(harness_facts_make(node, node->constants, &facts, error));
    sb_kernel_query query = {.node = node->node, .inputs = facts.pointers, .outputs = facts.outputs, .isa = isa};
    snprintf(why, SB_WHY_BYTES, "no kernel has that name");
    MUST(sb_find_host_kernel(&query, &kernel, why, error));
    if (kernel != NULL) {
        if (kernel->prepare != NULL)
            MUST(kernel->prepare(&query, &state, error));
        MUST(derive_on_host(kernel, &query, &derived, error));
        outcome = launch(node, kernel, state, derived, isa, threads, &facts, out, &failure) == SB_OK ? HARNESS_RAN
                                                                                                     : HARNESS_REFUSED;
        snprintf(why, SB_WHY_BYTES, "%.200s", failure.message);
        if (kernel->release != NULL)
            kernel->release(state);
        sb_free(derived);
    }
    for (int i = 0; i < node->node->output_count; i++)
        outputs[i] = out[i].tensor;
    harness_facts_clear(&facts);
    return outcome;
}
