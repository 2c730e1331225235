/* Cases again with elements that only the run knows: a kernel that asks where they are in the device's memory is given
 * others on the host, as those of a plan are, with room for what the run makes. */
#include <inttypes.h>

#include "harness/harness.h"

typedef sb_tensor *inputs[HARNESS_INPUTS];

static sb_tensor *list_like(const sb_tensor *like, const int64_t *values) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, like->rank, like->dims, values, &tensor, error));
    return tensor;
}

/* An element of a list of s64. */
static int64_t element(const sb_tensor *list, int64_t index) {
    return ((const int64_t *)(const void *)list->data)[list->rank == 0 ? 0 : index * list->strides[0]];
}

/* ---- what a plan might have in place of the run's elements ---- */

/* A range that begins and ends elsewhere, and has more elements. */
static void plan_range(harness *h, const harness_node *node, inputs planned) {
    int64_t moved = random_between(&h->random, -99, 99), delta = element(node->inputs[2], 0);
    int64_t more = delta * random_between(&h->random, 0, 9);
    planned[0] = list_like(node->inputs[0], (int64_t[]){element(node->inputs[0], 0) + moved});
    planned[1] = list_like(node->inputs[1], (int64_t[]){element(node->inputs[1], 0) + moved + more});
}

static void plan_trilu(harness *h, const harness_node *node, inputs planned) {
    planned[1] = list_like(node->inputs[1], (int64_t[]){random_between(&h->random, -9, 9)});
}

/* Slices that begin where their axes do. */
static void plan_slice(harness *h, const harness_node *node, inputs planned) {
    int64_t starts[HARNESS_KNOWN], count = sb_tensor_elements(node->inputs[1]);
    assert_true(count <= HARNESS_KNOWN);
    for (int64_t i = 0; i < count; i++) {
        bool back = node->node->input_count > 4 && node->inputs[4] != NULL && element(node->inputs[4], i) < 0;
        starts[i] = back ? INT64_MAX : 0;
    }
    planned[1] = list_like(node->inputs[1], starts);
}

typedef struct planner {
    const char *op;
    int input; /* that has to be s64 */
    void (*plan)(harness *h, const harness_node *node, inputs planned);
} planner;

static const planner planners[] = {{"Range", 0, plan_range}, {"Trilu", 1, plan_trilu}, {"Slice", 1, plan_slice}};

static const planner *find_planner(const harness_node *node) {
    for (size_t i = 0; i < sizeof planners / sizeof planners[0]; i++) {
        int input = planners[i].input;
        if (strcmp(node->node->op->name, planners[i].op) == 0 && input < node->node->input_count &&
            node->inputs[input] != NULL && node->inputs[input]->dtype == SB_S64)
            return &planners[i];
    }
    return NULL;
}

/* ---- runs ---- */

/* What the run makes: the first elements along each axis of what there is room for. */
static sb_tensor *first_elements(const sb_tensor *found, const sb_tensor *expected) {
    sb_tensor *part = sb_tensor_retain((sb_tensor *)found), *cut;
    for (int d = 0; d < found->rank; d++) {
        MUST(sb_tensor_slice(part, d, 0, expected->dims[d], 1, &cut, error));
        sb_tensor_release(part);
        part = cut;
    }
    MUST(sb_tensor_contiguous(part, &cut, error));
    sb_tensor_release(part);
    return cut;
}

static bool has_room(const sb_tensor *planned, const sb_tensor *expected) {
    bool room = planned->rank == expected->rank;
    for (int d = 0; d < planned->rank && room; d++)
        room = planned->dims[d] >= expected->dims[d];
    return room;
}

/* Two runs of one recording: with the case's elements, and with the planned ones. */
static void run_known(harness *h, const harness_capacity *at, sb_tensor *expected[2][HARNESS_OUTPUTS]) {
    sb_tensor *found[2][HARNESS_OUTPUTS] = {{NULL}};
    const harness_node *node = at->node;
    char why[SB_WHY_BYTES], what[160];
    harness_outcome outcome = harness_run_at_capacity(h, at, found, why);
    if (outcome == HARNESS_ABSENT)
        harness_fail("%s: its kernel does not ask for a run's elements", node->node->op->name);
    for (int turn = 0; turn < 2 && outcome != HARNESS_ABSENT; turn++) {
        snprintf(what, sizeof what, "%s by the device's kernel, with elements of the run%s", node->node->op->name,
                 turn != 0 ? ", replayed" : "");
        if (outcome == HARNESS_REFUSED)
            harness_fail("%s: %s", what, why);
        sb_tensor *part = first_elements(found[turn][0], expected[turn][0]);
        harness_compare(h, what, expected[turn][0], part, node->inputs, node->node->input_count);
        sb_tensor_release(part);
        sb_tensor_release(found[turn][0]);
        h->at_capacity++;
    }
}

void harness_check_known(harness *h, const harness_node *node) {
    const planner *planner = find_planner(node);
    inputs planned = {NULL}, known = {NULL}, all = {NULL};
    sb_tensor *expected[2][HARNESS_OUTPUTS] = {{NULL}};
    char why[SB_WHY_BYTES];
    if (planner == NULL)
        return;
    planner->plan(h, node, planned);
    for (int i = 0; i < node->node->input_count; i++) {
        all[i] = planned[i] != NULL ? planned[i] : node->inputs[i];
        known[i] = planned[i] != NULL ? node->inputs[i] : NULL;
    }
    harness_node other = *node;
    other.inputs = all;
    if (harness_define(node, expected[0], why) == HARNESS_RAN &&
        harness_define(&other, expected[1], why) == HARNESS_RAN && has_room(expected[1][0], expected[0][0]))
        run_known(h, &(harness_capacity){.node = node, .inputs = {all, all}, .known = {known, planned}}, expected);
    for (int i = 0; i < HARNESS_INPUTS; i++)
        sb_tensor_release(planned[i]);
    for (int turn = 0; turn < 2; turn++)
        sb_tensor_release(expected[turn][0]);
}
