/* Nodes by the CPU's kernels. */
#include "base/allocation.h"
#include "harness/harness.h"
#include "support/derived.h"

#define MOST_BLOCKS 64

/* What calls have asked for: made by the first one and given to later ones again, so that they take no time for it. */
typedef struct cpu_frame {
    sb_frame frame;
    sb_storage *outputs[HARNESS_OUTPUTS];
    int count, next; /* blocks; and the one that the present call asks for next */
    void *blocks[MOST_BLOCKS];
} cpu_frame;

/* Outputs start out as garbage, so that an element that nobody writes shows. */
static sb_status allocate_output(sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                                 char **data) {
    cpu_frame *own = (cpu_frame *)frame;
    if (own->outputs[index] == NULL || own->outputs[index]->bytes != bytes) {
        sb_storage_release(own->outputs[index]);
        own->outputs[index] = NULL;
        SB_TRY(sb_storage_create(bytes, &own->outputs[index], call->error));
        if (bytes != 0)
            memset(own->outputs[index]->data, 0xa5, bytes);
    }
    *storage = sb_storage_retain(own->outputs[index]);
    *data = (*storage)->data;
    return SB_OK;
}

/* Calls of one node ask for the same blocks in the same order. */
static sb_status allocate_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    cpu_frame *own = (cpu_frame *)frame;
    assert_true(own->next < MOST_BLOCKS);
    if (own->next == own->count) {
        void *block = sb_allocate(bytes);
        if (block == NULL)
            return sb_fail_memory(call->error, bytes);
        memset(block, 0xa5, bytes);
        own->blocks[own->count++] = block;
    }
    *memory = own->blocks[own->next++];
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

/* A node and its kernel, with all that does not belong to a call. */
typedef struct ready {
    const harness_node *node;
    const sb_kernel *kernel;
    sb_isa isa;
    harness_facts facts;
    sb_value in[HARNESS_INPUTS];
    void *state, *derived;
    sb_tensor *bare; /* the input that was derived from, without its elements */
    cpu_frame frame;
} ready;

/* Where a kernel can restore what it has derived from: it must do so bit for bit, and not look at the input itself, whose
 * address leads nowhere from here on. */
static void take_elements_away(ready *own, const sb_kernel_query *query) {
    sb_derived_form form;
    sb_tensor *restored, *given;
    if (own->derived == NULL || own->kernel->restore == NULL)
        return;
    MUST(sb_kernel_derives(own->kernel, query, &form, error));
    MUST(sb_tensor_contiguous(query->inputs[form.input]->constant, &given, error));
    MUST(sb_tensor_create_uninitialised(given->dtype, given->rank, given->dims, &restored, error));
    own->kernel->restore(query->node, query->isa, own->derived, restored);
    size_t bytes = (size_t)sb_tensor_elements(given) * sb_dtype_size(given->dtype);
    if (bytes != 0 && memcmp(restored->data, given->data, bytes) != 0)
        fail_msg("%s does not restore what it has packed", own->kernel->name);
    sb_tensor_release(given);
    own->bare = restored;
    memcpy(restored->strides, query->inputs[form.input]->constant->strides, sizeof restored->strides);
    restored->data = NULL;
    own->in[form.input] = sb_value_of_tensor(restored);
}

/* NULL: there is no kernel, and `why` says why. */
static ready *make_ready(const harness_node *node, sb_isa isa, char *why) {
    ready *own = calloc(1, sizeof *own);
    assert_non_null(own);
    *own = (ready){
        .node = node, .isa = isa, .frame = {.frame = {.allocate = allocate_output, .workspace = allocate_workspace}}};
    MUST(harness_facts_make(node, node->constants, &own->facts, error));
    sb_kernel_query query = {
        .node = node->node, .inputs = own->facts.pointers, .outputs = own->facts.outputs, .isa = isa};
    snprintf(why, SB_WHY_BYTES, "no kernel has that name");
    MUST(sb_find_host_kernel(&query, &own->kernel, why, error));
    if (own->kernel == NULL) {
        harness_facts_clear(&own->facts);
        free(own);
        return NULL;
    }
    if (own->kernel->prepare != NULL)
        MUST(own->kernel->prepare(&query, &own->state, error));
    MUST(derive_on_host(own->kernel, &query, &own->derived, error));
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            own->in[i] = sb_value_of_tensor(node->inputs[i]);
    }
    take_elements_away(own, &query);
    return own;
}

static void release_ready(void *of) {
    ready *own = of;
    if (own->kernel->release != NULL)
        own->kernel->release(own->state);
    sb_free(own->derived);
    sb_tensor_release(own->bare);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        sb_storage_release(own->frame.outputs[i]);
    for (int i = 0; i < own->frame.count; i++)
        sb_free(own->frame.blocks[i]);
    harness_facts_clear(&own->facts);
    free(own);
}

static sb_status launch(ready *own, sb_workers *workers, sb_value *out, sb_error *error) {
    const sb_node *node = own->node->node;
    own->frame.next = 0;
    sb_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = own->in,
                    .output_count = node->output_count,
                    .facts = own->facts.outputs,
                    .outputs = out,
                    .workers = workers,
                    .frame = &own->frame.frame,
                    .state = own->state,
                    .derived = own->derived,
                    .isa = own->isa,
                    .error = error};
    return sb_call_run(&call, own->kernel->launch);
}

harness_outcome harness_run_cpu(const harness_node *node, sb_isa isa, int threads, sb_tensor **outputs, char *why) {
    sb_value out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    ready *own = make_ready(node, isa, why);
    if (own == NULL)
        return HARNESS_ABSENT;
    sb_status status = launch(own, workers_of(threads), out, &failure);
    snprintf(why, SB_WHY_BYTES, "%.200s", failure.message);
    for (int i = 0; i < node->node->output_count; i++)
        outputs[i] = out[i].tensor;
    release_ready(own);
    return status == SB_OK ? HARNESS_RAN : HARNESS_REFUSED;
}

/* ---- timing: the best instruction set, one thread ---- */

static void *prepare_timing(harness *h, const harness_node *node) {
    char why[SB_WHY_BYTES];
    sb_isa isa = SB_ISA_BEST;
    MUST(sb_isa_resolve(SB_ISA_BEST, &isa, error));
    return make_ready(node, isa, why);
}

static double call_timing(void *of) {
    ready *own = of;
    sb_value out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    sb_workers *workers = workers_of(1);
    double start = harness_now();
    launch(own, workers, out, &failure);
    double taken = harness_now() - start;
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        sb_value_release(&out[i]);
    return taken;
}

const harness_contestant harness_cpu_kernel = {prepare_timing, call_timing, release_ready, harness_empty_caches};
