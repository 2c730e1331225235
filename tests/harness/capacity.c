/* Cases again at a capacity: their inputs get more rows than are used, with garbage behind, and the device's kernel reads
 * from memory how many are used. What the rule of an axis says (rules/axes.h) is held to that: used rows of the outputs
 * are those of the definition on the used rows alone. */
#include <inttypes.h>

#include "harness/harness.h"
#include "rules/axes.h"

/* What the rules say of all axes of a node's inputs. */
typedef struct answers {
    sb_axis_rule rules[HARNESS_INPUTS][SB_MAX_RANK];
    int output_axes[HARNESS_INPUTS][SB_MAX_RANK][HARNESS_OUTPUTS];
} answers;

static void ask(const harness_node *node, answers *answers) {
    harness_facts facts;
    MUST(harness_facts_make(node, node->constants, &facts, error));
    for (int i = 0; i < node->node->input_count; i++) {
        for (int d = 0; node->inputs[i] != NULL && d < node->inputs[i]->rank; d++) {
            answers->rules[i][d].output_axes = answers->output_axes[i][d];
            MUST(sb_axes_of(node->node, facts.pointers, facts.outputs, i, d, &answers->rules[i][d], error));
        }
    }
    harness_facts_clear(&facts);
}

/* ---- axes that grow together ---- */

/* Axes of inputs, a bit each, that are one: they have the same extent, of which the same number is used. */
typedef struct together {
    uint32_t axes[HARNESS_INPUTS];
    int64_t extent;
    int output_axes[HARNESS_OUTPUTS];
} together;

/* Whether two axes become the same axis of an output, or, where both are summed away, may be summed together. */
static bool are_tied(const harness_node *node, const answers *answers, int input, int axis, int other, int other_axis) {
    const sb_axis_rule *one = &answers->rules[input][axis], *two = &answers->rules[other][other_axis];
    if (two->kind == SB_AXIS_EXACT || node->inputs[input]->dims[axis] != node->inputs[other]->dims[other_axis])
        return false;
    bool summed = one->kind == SB_AXIS_BOUNDED && two->kind == SB_AXIS_BOUNDED && input != other;
    for (int o = 0; o < node->node->output_count; o++) {
        if (one->output_axes[o] != SB_AXIS_NONE && one->output_axes[o] == two->output_axes[o])
            return true;
        summed = summed && one->output_axes[o] == SB_AXIS_NONE && two->output_axes[o] == SB_AXIS_NONE;
    }
    return summed;
}

static together tie(const harness_node *node, const answers *answers, int input, int axis, bool alone) {
    together set = {.extent = node->inputs[input]->dims[axis]};
    memcpy(set.output_axes, answers->output_axes[input][axis], sizeof set.output_axes);
    for (int i = 0; i < node->node->input_count; i++) {
        for (int d = 0; node->inputs[i] != NULL && d < node->inputs[i]->rank; d++) {
            bool self = i == input && d == axis;
            if (!self && (alone || !are_tied(node, answers, input, axis, i, d)))
                continue;
            set.axes[i] |= UINT32_C(1) << d;
            for (int o = 0; o < node->node->output_count; o++) {
                if (set.output_axes[o] == SB_AXIS_NONE)
                    set.output_axes[o] = answers->output_axes[i][d][o];
            }
        }
    }
    return set;
}

/* Values that are known beforehand have no room for more. In a fused node, numbers do not tell an extent of 1 that is tied to
 * another from one that is repeated, as a plan's formulas do: with more rows it would be a node that no pass makes. */
static bool may_grow(const harness_node *node, const together *set) {
    if ((node->node->op->flags & SB_OP_FUSED) != 0 && set->extent == 1)
        return false;
    for (int i = 0; i < node->node->input_count; i++) {
        if (set->axes[i] != 0 && (node->constants >> i & 1) != 0)
            return false;
    }
    return true;
}

/* ---- inputs ---- */

typedef sb_tensor *tensors[HARNESS_INPUTS];

static void release_inputs(sb_tensor **inputs) {
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        sb_tensor_release(inputs[i]);
        inputs[i] = NULL;
    }
}

/* The first `count` rows of each axis of the set. */
static sb_tensor *first_rows(sb_tensor *tensor, uint32_t axes, int64_t count) {
    sb_tensor *view = sb_tensor_retain(tensor), *part;
    for (int d = 0; d < tensor->rank; d++) {
        if ((axes >> d & 1) == 0)
            continue;
        MUST(sb_tensor_slice(view, d, 0, count, 1, &part, error));
        sb_tensor_release(view);
        view = part;
    }
    return view;
}

static void take_used(const harness_node *node, const together *set, int64_t count, tensors to) {
    for (int i = 0; i < node->node->input_count; i++)
        to[i] = node->inputs[i] != NULL ? first_rows(node->inputs[i], set->axes[i], count) : NULL;
}

/* What lies behind the used rows. */
typedef enum garbage {
    GARBAGE_LEAST,    /* NaN, or the least number */
    GARBAGE_GREATEST, /* infinity, or the greatest number */
    GARBAGE_ZERO      /* what indices may be */
} garbage;

static uint64_t garbage_of(sb_dtype dtype, garbage kind) {
    static const uint64_t least[SB_DTYPE_COUNT] = {
        [SB_S8] = 0x80,    [SB_S16] = 0x8000,  [SB_S32] = 0x80000000, [SB_S64] = UINT64_C(0x8000000000000000),
        [SB_F16] = 0x7e00, [SB_BF16] = 0x7fc0, [SB_F32] = 0x7fc00000, [SB_F64] = UINT64_C(0x7ff8000000000000),
        [SB_BOOL] = 1};
    static const uint64_t most[SB_DTYPE_COUNT] = {[SB_S8] = 0x7f,
                                                  [SB_S16] = 0x7fff,
                                                  [SB_S32] = 0x7fffffff,
                                                  [SB_U8] = 0xff,
                                                  [SB_U16] = 0xffff,
                                                  [SB_U32] = 0xffffffff,
                                                  [SB_U64] = ~0ull,
                                                  [SB_F16] = 0x7c00,
                                                  [SB_BF16] = 0x7f80,
                                                  [SB_F32] = 0x7f800000,
                                                  [SB_F64] = UINT64_C(0x7ff0000000000000),
                                                  [SB_S64] = UINT64_C(0x7fffffffffffffff)};
    return kind == GARBAGE_GREATEST ? most[dtype] : kind == GARBAGE_LEAST ? least[dtype] : 0;
}

/* A tensor of garbage whose dimensions lie in memory in the order of another one's. */
static sb_tensor *garbage_like(const sb_tensor *model, const int64_t *dims, garbage kind) {
    int64_t strides[SB_MAX_RANK], stride = 1, count;
    uint32_t left = (UINT32_C(1) << model->rank) - 1;
    sb_storage *storage;
    sb_tensor *tensor;
    size_t size = sb_dtype_size(model->dtype);
    uint64_t bits = garbage_of(model->dtype, kind);
    while (left != 0) {
        int least = -1;
        for (int d = model->rank - 1; d >= 0; d--) {
            if ((left >> d & 1) != 0 && (least < 0 || llabs(model->strides[d]) < llabs(model->strides[least])))
                least = d;
        }
        strides[least] = stride;
        stride *= dims[least] > 0 ? dims[least] : 1;
        left &= ~(UINT32_C(1) << least);
    }
    MUST(sb_count_elements(model->dtype, model->rank, dims, &count, error));
    MUST(sb_storage_create((size_t)count * size, &storage, error));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)storage->data + (size_t)i * size, &bits, size);
    MUST(sb_tensor_over(storage, storage->data, model->dtype, model->rank, dims, strides, &tensor, error));
    sb_storage_release(storage);
    return tensor;
}

static void copy_into(sb_tensor *to, uint32_t axes, int64_t count, const sb_tensor *from) {
    sb_tensor *part = first_rows(to, axes, count);
    sb_tensor_copy_elements(part, from);
    sb_tensor_release(part);
}

/* The used rows with garbage behind; inputs that do not grow stay as they are. */
static void make_room(const harness_node *node, const together *set, sb_tensor *const *used, int64_t count,
                      int64_t capacity, garbage kind, tensors to) {
    for (int i = 0; i < node->node->input_count; i++) {
        int64_t dims[SB_MAX_RANK];
        if (set->axes[i] == 0) {
            to[i] = node->inputs[i] != NULL ? sb_tensor_retain(node->inputs[i]) : NULL;
            continue;
        }
        for (int d = 0; d < used[i]->rank; d++)
            dims[d] = (set->axes[i] >> d & 1) != 0 ? capacity : used[i]->dims[d];
        to[i] = garbage_like(node->inputs[i], dims, kind);
        copy_into(to[i], set->axes[i], count, used[i]);
    }
}

/* Input 0 becomes the first part of a tensor that has room for output 0, which is joined along `axis`, and which is
 * returned. */
static sb_tensor *lay_in_output(const harness_node *node, int axis, garbage kind, tensors inputs) {
    sb_tensor *input = inputs[0], *whole;
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, input->dims, sizeof dims);
    for (int i = 1; i < node->node->input_count; i++)
        dims[axis] += inputs[i]->dims[axis];
    whole = garbage_like(input, dims, kind);
    MUST(sb_tensor_slice(whole, axis, 0, input->dims[axis], 1, &inputs[0], error));
    sb_tensor_copy_elements(inputs[0], input);
    sb_tensor_release(input);
    return whole;
}

/* ---- comparing ---- */

/* Of a run at a capacity: the part of the output that the definition gives for the used rows. */
static void compare_used(harness *h, const together *set, const char *what, int output, sb_tensor *expected,
                         sb_tensor *found, sb_tensor *const *inputs, int count) {
    sb_tensor *part = sb_tensor_retain(found), *cut;
    int axis = set->output_axes[output];
    if (axis != SB_AXIS_NONE && axis < found->rank && found->rank == expected->rank &&
        expected->dims[axis] <= found->dims[axis]) {
        MUST(sb_tensor_slice(found, axis, 0, expected->dims[axis], 1, &cut, error));
        sb_tensor_release(part);
        MUST(sb_tensor_contiguous(cut, &part, error));
        sb_tensor_release(cut);
    }
    harness_compare(h, what, expected, part, inputs, count);
    sb_tensor_release(part);
}

/* ---- runs ---- */

/* Whether the node takes inputs of these extents: axes that only look tied need not go together. */
static bool fits(const harness_node *node, sb_tensor *const *inputs) {
    harness_node other = *node;
    harness_facts facts;
    sb_tensor *outputs[HARNESS_OUTPUTS] = {NULL};
    char why[SB_WHY_BYTES];
    other.inputs = inputs;
    bool taken = harness_facts_make(&other, node->constants, &facts, NULL) == SB_OK;
    harness_facts_clear(&facts);
    taken = taken && harness_define(&other, outputs, why) == HARNESS_RAN;
    for (int o = 0; o < HARNESS_OUTPUTS; o++)
        sb_tensor_release(outputs[o]);
    return taken;
}

/* The same of the extents at a capacity, with legal elements behind the used rows. */
static bool fits_with_room(const harness_node *node, const together *set, sb_tensor *const *used, int64_t count,
                           int64_t capacity) {
    tensors legal;
    make_room(node, set, used, count, capacity, GARBAGE_ZERO, legal);
    bool taken = fits(node, legal);
    for (int i = 0; i < node->node->input_count; i++)
        sb_tensor_release(legal[i]);
    return taken;
}

static void run_pair(harness *h, const harness_node *node, const answers *answers, const together *set,
                     const int64_t numbers[2], int64_t capacity, bool append) {
    tensors used[2] = {{NULL}}, room[2] = {{NULL}};
    sb_tensor *expected[2][HARNESS_OUTPUTS] = {{NULL}}, *found[2][HARNESS_OUTPUTS] = {{NULL}};
    harness_capacity at = {.node = node, .inputs = {room[0], room[1]}, .used = {numbers[0], numbers[1]}};
    sb_tensor *over[2] = {NULL};
    char why[SB_WHY_BYTES], what[160];
    bool runs = true;
    for (int i = 0; i < node->node->input_count; i++) {
        at.axes[i] = set->axes[i];
        for (int d = 0; node->inputs[i] != NULL && d < node->inputs[i]->rank; d++) {
            const sb_axis_rule *rule = &answers->rules[i][d];
            if ((set->axes[i] >> d & 1) != 0 && (rule->kind == SB_AXIS_BOUNDED || rule->checked))
                at.bounded[i] |= UINT32_C(1) << d;
        }
    }
    for (int turn = 0; turn < 2 && runs; turn++) {
        garbage kind = (h->number + turn) % 2 != 0 ? GARBAGE_GREATEST : GARBAGE_LEAST;
        take_used(node, set, numbers[turn], used[turn]);
        make_room(node, set, used[turn], numbers[turn], capacity, kind, room[turn]);
        if (append)
            at.over = over[turn] = lay_in_output(node, set->output_axes[0], kind, room[turn]);
        harness_node exact = *node;
        exact.inputs = used[turn];
        runs = fits_with_room(node, set, used[turn], numbers[turn], capacity) &&
               harness_define(&exact, expected[turn], why) == HARNESS_RAN;
    }
    harness_outcome outcome = runs ? harness_run_at_capacity(h, &at, found, why) : HARNESS_ABSENT;
    for (int turn = 0; turn < 2 && outcome != HARNESS_ABSENT; turn++) {
        snprintf(what, sizeof what, "%s by the device's kernel, %" PRId64 " rows used of %" PRId64 "%s%s",
                 node->node->op->name, numbers[turn], capacity, append ? ", appended" : "",
                 turn != 0 ? ", replayed" : "");
        if (outcome == HARNESS_REFUSED && !h->plant_used)
            harness_fail("%s: %s for what lies behind the used rows", what, why);
        for (int o = 0; o < node->node->output_count; o++) {
            if (expected[turn][o] != NULL && found[turn][o] != NULL)
                compare_used(h, set, what, o, expected[turn][o], found[turn][o], room[turn], node->node->input_count);
        }
        h->at_capacity++;
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int o = 0; o < HARNESS_OUTPUTS; o++) {
            sb_tensor_release(expected[turn][o]);
            sb_tensor_release(found[turn][o]);
        }
        sb_tensor_release(over[turn]);
        release_inputs(used[turn]);
        release_inputs(room[turn]);
    }
}

/* One capacity and two used extents, others from case to case and from axis to axis. */
static void run_set(harness *h, const harness_node *node, const answers *answers, const together *set, int turn,
                    bool append) {
    const int64_t extent = set->extent, one = extent > 0 ? 1 : 0, less = extent - one;
    const int64_t capacities[] = {extent + 1, extent + 7, 2 * extent + 3};
    const int64_t numbers[][2] = {{extent, one}, {0, extent},    {extent, 0},
                                  {one, extent}, {extent, less}, {less, extent}};
    run_pair(h, node, answers, set, numbers[turn % 6], capacities[turn % 3], append);
}

void harness_check_capacity(harness *h, const harness_node *node) {
    static answers answers;
    bool concat = strcmp(node->node->op->name, "Concat") == 0;
    ask(node, &answers);
    int turn = h->number;
    for (int i = 0; i < node->node->input_count; i++) {
        for (int d = 0; node->inputs[i] != NULL && d < node->inputs[i]->rank; d++) {
            if (answers.rules[i][d].kind == SB_AXIS_EXACT)
                continue;
            together alone = tie(node, &answers, i, d, true), tied = tie(node, &answers, i, d, false);
            if (may_grow(node, &alone))
                run_set(h, node, &answers, &alone, turn++, false);
            if (concat && i == 0 && answers.rules[i][d].kind == SB_AXIS_BOUNDED && may_grow(node, &alone))
                run_set(h, node, &answers, &alone, turn++, true);
            if (memcmp(&alone, &tied, sizeof alone) != 0 && may_grow(node, &tied))
                run_set(h, node, &answers, &tied, turn++, false);
        }
    }
}
