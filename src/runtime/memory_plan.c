#include "runtime/memory_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/replay.h"
#include "runtime/state_binding.h"

/* A block of memory: the copy of a value that owns it (sb_copy_index), and the steps between which
 * somebody can see it through any view. */
typedef struct block {
    size_t copy;
    size_t bytes;
    size_t offset;
    int64_t first, last;
    bool escapes; /* may be seen after the run: lies outside the arena */
    bool merged;  /* lies in another copy's block, and is part of its lifetime */
} block;

/* Everything is by copy. */
typedef struct lifetimes {
    const sb_plan *plan;
    const sb_program *program;
    const sb_graph *graph;
    size_t copies;
    block *blocks; /* bytes 0: nothing to place */
    size_t *roots; /* the copy whose memory a copy shares */
    size_t *homes; /* of a copy that owns memory: the one whose place it takes over, or itself */
} lifetimes;

static bool keeps_inputs(const sb_op *op) {
    return (op->flags & (SB_OP_KEEPS | SB_OP_CONTROL)) != 0;
}

/* The copy of input `input` that step `step` reads. */
static size_t read_copy(const lifetimes *all, size_t step, int input) {
    const sb_planned_step *planned = &all->plan->steps[step];
    return sb_copy_index(all->program, sb_input_side(planned->kernel, planned->side, input),
                         all->graph->nodes[step]->inputs[input]);
}

/* A view lies on the side of its input. Where a dynamic step runs is open,
 * so its output may be a view on either side. */
static void find_roots(lifetimes *all) {
    for (size_t c = 0; c < all->copies; c++)
        all->roots[c] = c;
    for (size_t s = 0; s < all->graph->node_count; s++) {
        const sb_node *node = all->graph->nodes[s];
        const sb_planned_step *planned = &all->plan->steps[s];
        if ((node->op->flags & SB_OP_VIEW) == 0 || node->input_count == 0 || node->inputs[0] == SB_NO_VALUE)
            continue;
        for (sb_side side = SB_HOST; side < SB_SIDES; side++) {
            if (planned->mode != SB_STEP_DYNAMIC && planned->side != side)
                continue;
            for (int i = 0; i < node->output_count; i++) {
                if (node->outputs[i] != SB_NO_VALUE)
                    all->roots[sb_copy_index(all->program, side, node->outputs[i])] =
                        all->roots[sb_copy_index(all->program, side, node->inputs[0])];
            }
        }
    }
}

static size_t fact_bytes(const sb_fact *fact) {
    int64_t dims[SB_MAX_RANK], elements;
    if (fact->constant != NULL || !sb_fact_is_concrete(fact, dims) || fact->dtype == SB_STRING ||
        sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK)
        return 0;
    return (size_t)elements * sb_dtype_size(fact->dtype);
}

/* Notes that step `step` sees a copy: the memory that its root owns,
 * and that of the copies that views have become on the way. */
static void see(lifetimes *all, size_t copy, int64_t step, bool escapes) {
    for (;;) {
        block *seen = &all->blocks[copy];
        seen->last = step > seen->last ? step : seen->last;
        seen->escapes = seen->escapes || escapes;
        if (all->roots[copy] == copy)
            return;
        const sb_value_info *info = &all->graph->values[copy % all->graph->value_count];
        sb_side side = (sb_side)(copy / all->graph->value_count);
        copy = sb_copy_index(all->program, side, all->graph->nodes[info->producer]->inputs[0]);
    }
}

static void make(lifetimes *all, size_t copy, int64_t step) {
    all->blocks[copy] = (block){.copy = copy,
                                .bytes = fact_bytes(&all->plan->facts[copy % all->graph->value_count]),
                                .first = step,
                                .last = step};
}

/* When a copy that step `step` is the first to need is brought from the other side: right before it, or, for steps that
 * a device is given at once, before the first of them. */
static int64_t brought_at(const lifetimes *all, size_t copy, int64_t step) {
    const sb_plan *plan = all->plan;
    bool to_device = copy >= all->graph->value_count;
    const sb_segment *segment =
        plan->segment_of != NULL && to_device && (size_t)step < all->graph->node_count ? plan->segment_of[step] : NULL;
    return segment != NULL ? (int64_t)segment->first : step;
}

/* Notes that step `step` reads a copy. */
static void use(lifetimes *all, size_t copy, int64_t step, bool escapes) {
    sb_value_id value = (sb_value_id)(copy % all->graph->value_count);
    size_t home = sb_copy_index(all->program, all->plan->sides[value], value);
    if (copy != home && all->blocks[copy].bytes == 0) {
        make(all, copy, brought_at(all, copy, step));
        see(all, home, brought_at(all, copy, step), false);
    }
    see(all, copy, step, escapes);
}

/* Notes that a dynamic step reads a value on whichever side; a copy that it makes for itself has no planned place. */
static void read_anywhere(lifetimes *all, sb_value_id value, int64_t step, bool escapes) {
    for (sb_side side = SB_HOST; side < SB_SIDES; side++)
        see(all, sb_copy_index(all->program, side, value), step, escapes);
}

static void find_lifetimes(lifetimes *all) {
    const sb_graph *graph = all->graph;
    const sb_plan *plan = all->plan;
    for (size_t s = 0; s < graph->node_count; s++) {
        const sb_node *node = graph->nodes[s];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == SB_NO_VALUE)
                continue;
            const int64_t last = (int64_t)s + (int64_t)(plan->steps[s].lingering >> i & 1);
            if (plan->steps[s].mode == SB_STEP_STATIC)
                use(all, read_copy(all, s, i), last, keeps_inputs(node->op));
            else
                read_anywhere(all, node->inputs[i], (int64_t)s, keeps_inputs(node->op));
        }
        bool owns = plan->steps[s].mode == SB_STEP_STATIC && !keeps_inputs(node->op);
        bool views = (node->op->flags & SB_OP_VIEW) != 0;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE && owns && (!views || plan->copied[node->outputs[i]]))
                make(all, sb_copy_index(all->program, plan->steps[s].side, node->outputs[i]), (int64_t)s);
        }
    }
    for (size_t o = 0; o < all->program->leave_count; o++) {
        sb_value_id value = all->program->leave[o];
        sb_side side = sb_is_wanted_on_host(plan, o) ? SB_HOST : plan->sides[value];
        use(all, sb_copy_index(all->program, side, value), (int64_t)graph->node_count, true);
    }
}

/* Whether only input `input` of the step sees the memory behind it. */
static bool seen_once(const lifetimes *all, size_t step, int input) {
    const sb_node *node = all->graph->nodes[step];
    size_t root = all->roots[read_copy(all, step, input)];
    for (int i = 0; i < node->input_count; i++) {
        if (i != input && node->inputs[i] != SB_NO_VALUE && all->roots[read_copy(all, step, i)] == root)
            return false;
    }
    return true;
}

/* The input whose memory the step's kernel lets the output take over, if that sees it alone; or -1. */
static int input_taken_over(const lifetimes *all, size_t step, int output) {
    const sb_node *node = all->graph->nodes[step];
    const sb_planned_step *planned = &all->plan->steps[step];
    int input = planned->mode == SB_STEP_STATIC ? planned->in_place : -1;
    if (input < 0 || output > planned->kernel->in_place_more || input + output >= node->input_count ||
        node->inputs[input + output] == SB_NO_VALUE || !seen_once(all, step, input + output))
        return -1;
    return input + output;
}

static void merge_output(lifetimes *all, size_t step, int output) {
    const sb_node *node = all->graph->nodes[step];
    int input = input_taken_over(all, step, output);
    if (input < 0 || node->outputs[output] == SB_NO_VALUE)
        return;
    const block *dying = &all->blocks[all->roots[read_copy(all, step, input)]];
    block *made = &all->blocks[sb_copy_index(all->program, all->plan->steps[step].side, node->outputs[output])];
    if (made->bytes == 0 || made->bytes != dying->bytes || dying->last != (int64_t)step || dying->escapes ||
        made->escapes)
        return;
    size_t home = all->homes[dying->copy];
    all->homes[made->copy] = home;
    all->blocks[home].last = made->last;
    made->merged = true;
}

/* Lets outputs take over the place of an input that dies with their step, where the kernel offers it. In step order, so
 * that a chain of them keeps one place. */
static void merge_in_place(lifetimes *all) {
    for (size_t c = 0; c < all->copies; c++)
        all->homes[c] = c;
    for (size_t s = 0; s < all->graph->node_count; s++) {
        for (int o = 0; o < all->graph->nodes[s]->output_count; o++)
            merge_output(all, s, o);
    }
}

/* ---- updates where the variable lies ---- */

/* The copy through which a version of the variable enters; all->copies where the graph does not read it. */
static size_t entering_copy(const lifetimes *all, int64_t variable) {
    const sb_state_binding *binding = all->plan->binding;
    for (size_t i = 0; i < all->program->enter_count; i++) {
        sb_value_id value = all->program->enter[i];
        if (binding->read[i] == variable)
            return sb_copy_index(all->program, all->plan->sides[value], value);
    }
    return all->copies;
}

/* Whether nobody needs version i any more when step `step` writes version i + 1 over it: all readers are done, or the
 * step is the last one and its kernel offers to compute onto the version. */
static bool is_over(const lifetimes *all, size_t version, size_t step, sb_value_id next) {
    if (version == all->copies)
        return true;
    const block *old = &all->blocks[version];
    const sb_node *node = all->graph->nodes[step];
    bool over = old->last < (int64_t)step;
    for (int o = 0; o < node->output_count && old->last == (int64_t)step && !over; o++) {
        int input = node->outputs[o] == next ? input_taken_over(all, step, o) : -1;
        over = input >= 0 && read_copy(all, step, input) == version;
    }
    return over;
}

/* Whether something that leaves lies in a variable, or may: it gets memory of its own when all steps have run. */
static bool shows_versions(const lifetimes *all) {
    for (size_t i = 0; i < all->program->enter_count; i++) {
        sb_value_id value = all->program->enter[i];
        if (all->plan->binding->read[i] >= 0 &&
            all->blocks[sb_copy_index(all->program, all->plan->sides[value], value)].escapes)
            return true;
    }
    return false;
}

/* Whether the value, or a view of it, leaves elsewhere too. */
static bool leaves_twice(const lifetimes *all, size_t index, size_t copy) {
    for (size_t i = 0; i < all->program->leave_count; i++) {
        sb_value_id value = all->program->leave[i];
        if (i != index && all->roots[sb_copy_index(all->program, all->plan->sides[value], value)] == copy)
            return true;
    }
    return false;
}

/* Whether all memory is known that the step takes: not for nested graphs and extents from data, nor, beside a device,
 * for a view on the host, which may have to be made dense on its way there. */
static bool is_foreseen(const lifetimes *all, size_t step) {
    const sb_planned_step *planned = &all->plan->steps[step];
    unsigned flags = all->graph->nodes[step]->op->flags;
    bool beside_device = all->plan->segment_of != NULL;
    if (planned->mode != SB_STEP_STATIC)
        return planned->mode == SB_STEP_SKIP;
    return !keeps_inputs(all->graph->nodes[step]->op) &&
           !(beside_device && planned->side == SB_HOST && (flags & SB_OP_VIEW) != 0);
}

/* From which step on all memory is known. */
static size_t foreseen_from(const lifetimes *all) {
    size_t first = all->graph->node_count;
    while (first > 0 && is_foreseen(all, first - 1))
        first--;
    return first;
}

/* Where the value that leaves at `index` can be written to at once, or NULL. */
static sb_tensor *find_place(const lifetimes *all, size_t index, size_t foreseen) {
    const sb_plan *plan = all->plan;
    sb_value_id value = all->program->leave[index];
    int64_t variable = plan->binding->update[index], producer = all->graph->values[value].producer;
    if (variable < 0 || producer < 0 || (size_t)producer < foreseen)
        return NULL;
    const sb_planned_step *planned = &plan->steps[producer];
    sb_tensor *home = plan->binding->state->variables[variable].tensor;
    size_t bytes = (size_t)sb_tensor_elements(home) * sb_dtype_size(home->dtype);
    size_t copy = sb_copy_index(all->program, planned->side, value);
    const block *made = &all->blocks[copy];
    bool owns = planned->mode == SB_STEP_STATIC && (all->graph->nodes[producer]->op->flags & SB_OP_VIEW) == 0;
    bool at_home = (planned->side == SB_DEVICE) == sb_tensor_on_device(home);
    return owns && at_home && bytes != 0 && made->bytes == bytes && !leaves_twice(all, index, copy) &&
                   is_over(all, entering_copy(all, variable), (size_t)producer, value)
               ? home
               : NULL;
}

/* ---- appending ---- */

/* The axis along which the node, a Concat, sets its inputs one behind the other; -1 for other nodes. */
static int concat_axis(const sb_node *node, int rank) {
    int64_t axis;
    if (strcmp(node->op->name, "Concat") != 0 || node->op->domain[0] != '\0' ||
        sb_node_int(node, "axis", 1, &axis, NULL) != SB_OK)
        return -1;
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

/* Whether the fact's extents lie in the variable's room, of which they are all but along `axis`. */
static bool has_room(const sb_held_variable *held, const sb_fact *fact, int axis) {
    int64_t dims[SB_MAX_RANK];
    bool fits = sb_fact_is_concrete(fact, dims) && fact->dtype == held->tensor->dtype &&
                fact->rank == held->tensor->rank && held->extents[axis] >= 0;
    for (int d = 0; d < held->tensor->rank && fits; d++)
        fits = d == axis ? dims[d] <= held->room[d] : held->extents[d] < 0 && dims[d] == held->room[d];
    return fits;
}

/* A Concat onto a variable, along an axis of it that has a capacity, appends: the variable's rows stay where they are and
 * the others are written behind them. Who reads the version before finds it as it was, also after a run that fails. */
static void find_append(const lifetimes *all, sb_plan *plan, size_t index) {
    sb_value_id value = all->program->leave[index];
    int64_t variable = plan->binding->update[index], producer = all->graph->values[value].producer;
    if (variable < 0 || producer < 0 || plan->steps[producer].mode != SB_STEP_STATIC)
        return;
    const sb_held_variable *held = &plan->binding->state->variables[variable];
    const sb_node *node = all->graph->nodes[producer];
    int axis = concat_axis(node, held->tensor->rank);
    size_t version = entering_copy(all, variable);
    bool on_device = plan->steps[producer].side == SB_DEVICE;
    if (axis < 0 || version == all->copies || read_copy(all, (size_t)producer, 0) != version ||
        !seen_once(all, (size_t)producer, 0) || on_device != sb_tensor_on_device(held->tensor) ||
        !has_room(held, &plan->facts[value], axis) ||
        leaves_twice(all, index, sb_copy_index(all->program, plan->steps[producer].side, value)))
        return;
    plan->places[value] = held->tensor;
    plan->appends[producer] = true;
}

/* Not before a run has shown how much scratch memory there must be:
 * whatever may run out comes before the first update. */
static void find_places(const lifetimes *all, sb_plan *plan) {
    plan->first_update = all->graph->node_count;
    if (plan->binding == NULL)
        return;
    bool may = plan->warm && !shows_versions(all);
    for (size_t v = 0; v < all->graph->value_count; v++)
        plan->places[v] = NULL;
    for (size_t s = 0; s < all->graph->node_count; s++)
        plan->appends[s] = false;
    for (size_t i = 0; i < all->program->leave_count; i++)
        find_append(all, plan, i);
    size_t foreseen = foreseen_from(all);
    for (size_t i = 0; i < all->program->leave_count && may; i++) {
        sb_value_id value = all->program->leave[i];
        sb_tensor *place = plan->places[value] == NULL ? find_place(all, i, foreseen) : NULL;
        if (place == NULL)
            continue;
        size_t producer = (size_t)all->graph->values[value].producer;
        plan->places[value] = place;
        plan->first_update = producer < plan->first_update ? producer : plan->first_update;
    }
}

static size_t align(size_t bytes) {
    return (bytes + SB_ALIGNMENT - 1) / SB_ALIGNMENT * SB_ALIGNMENT;
}

sb_status sb_memory_plan_blame(const sb_plan *plan, const sb_program *program, sb_status status, sb_error *error) {
    const sb_graph *graph = program->graph;
    const sb_node *largest = NULL;
    size_t most = 0;
    int output = 0;
    for (size_t s = 0; s < graph->node_count; s++) {
        const sb_node *node = graph->nodes[s];
        bool owns = plan->steps[s].mode == SB_STEP_STATIC && (node->op->flags & SB_OP_VIEW) == 0;
        for (int i = 0; i < node->output_count && owns; i++) {
            size_t bytes = node->outputs[i] != SB_NO_VALUE ? fact_bytes(&plan->facts[node->outputs[i]]) : 0;
            if (bytes > most) {
                most = bytes;
                largest = node;
                output = i;
            }
        }
    }
    char text[SB_FACT_TEXT_BYTES];
    if (largest == NULL)
        return status;
    return sb_fail_within(
        error, status, "node %s (%s): output %d, %s, has %zu of the bytes that a run needs: ", largest->name,
        largest->op->name, output, sb_fact_text(&plan->facts[largest->outputs[output]], text, sizeof text), most);
}

/* No sum of sizes below overflows. */
static sb_status check_total(const lifetimes *all, const sb_plan *plan, const sb_program *program, sb_error *error) {
    int64_t total = 0;
    for (size_t c = 0; c < all->copies; c++) {
        if (!__builtin_add_overflow(total, align(all->blocks[c].bytes), &total))
            continue;
        return sb_memory_plan_blame(
            plan, program,
            sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: no machine addresses what all values take"), error);
    }
    return SB_OK;
}

static int larger_first(const void *left, const void *right) {
    const block *first = left, *second = right;
    if (first->bytes != second->bytes)
        return first->bytes < second->bytes ? 1 : -1;
    return (first->copy > second->copy) - (first->copy < second->copy);
}

static bool live_together(const block *left, const block *right) {
    return left->first <= right->last && right->first <= left->last;
}

/* Places blocks from the largest to the smallest, each at the lowest offset where no block that lives at the
 * same time lies. Largest first keeps the arena within a few per cent of its lower bound for networks.
 * `placed` is in offset order. */
static size_t place(block *blocks, size_t count, block **placed) {
    size_t placed_count = 0, arena = 0;
    for (size_t i = 0; i < count; i++) {
        size_t offset = 0;
        for (size_t p = 0; p < placed_count; p++) {
            if (!live_together(placed[p], &blocks[i]))
                continue;
            if (placed[p]->offset >= offset + align(blocks[i].bytes))
                break;
            size_t end = placed[p]->offset + align(placed[p]->bytes);
            offset = end > offset ? end : offset;
        }
        blocks[i].offset = offset;
        size_t at = placed_count++;
        for (; at > 0 && placed[at - 1]->offset > offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = &blocks[i];
        if (offset + align(blocks[i].bytes) > arena)
            arena = offset + align(blocks[i].bytes);
    }
    return arena;
}

/* ---- small inputs ---- */

/* The most bytes of an input that is brought with others: copying fewer by themselves costs a launch, not bytes. */
#define MOST_TOGETHER 1024

static bool goes_together(const lifetimes *all, sb_value_id value) {
    const block *there = &all->blocks[sb_copy_index(all->program, SB_DEVICE, value)];
    return all->plan->sides[value] == SB_HOST && there->bytes != 0 && there->bytes <= MOST_TOGETHER &&
           !there->escapes && !there->merged;
}

static bool is_listed(const sb_plan *plan, sb_value_id value) {
    for (size_t i = 0; i < plan->together_count; i++) {
        if (plan->together[i] == value)
            return true;
    }
    return false;
}

/* Makes one block of the device's copies of small inputs, that of the first, which lives from the run's beginning on until
 * nobody needs any of them. */
static sb_status put_together(const lifetimes *all, sb_plan *plan, sb_error *error) {
    const sb_program *program = all->program;
    int64_t bytes = 0, last = 0;
    plan->together_count = 0;
    sb_tensor_release(plan->packed);
    plan->packed = NULL;
    if (plan->together == NULL)
        plan->together = sb_allocate_array(program->enter_count, sizeof *plan->together);
    if (plan->together == NULL)
        return sb_fail_memory(error, program->enter_count * sizeof *plan->together);
    for (size_t i = 0; i < program->enter_count && plan->constants != NULL && plan->open == NULL; i++) {
        if (!goes_together(all, program->enter[i]) || is_listed(plan, program->enter[i]))
            continue;
        const block *there = &all->blocks[sb_copy_index(program, SB_DEVICE, program->enter[i])];
        plan->together[plan->together_count++] = program->enter[i];
        bytes += (int64_t)align(there->bytes);
        last = there->last > last ? there->last : last;
    }
    if (plan->together_count < 2) {
        plan->together_count = 0;
        return SB_OK;
    }
    for (size_t i = 0; i < plan->together_count; i++) {
        block *there = &all->blocks[sb_copy_index(program, SB_DEVICE, plan->together[i])];
        there->merged = i > 0; /* and placed by place_together */
        there->first = 0;
        there->last = last;
        there->bytes = i == 0 ? (size_t)bytes : there->bytes;
    }
    return sb_tensor_create(SB_U8, 1, &bytes, &plan->packed, error);
}

static void place_together(const lifetimes *all, sb_plan *plan) {
    int64_t offset = 0;
    for (size_t i = 0; i < plan->together_count; i++) {
        size_t copy = sb_copy_index(all->program, SB_DEVICE, plan->together[i]);
        offset = i == 0 ? plan->offsets[copy] : offset;
        plan->offsets[copy] = offset;
        offset += (int64_t)align(fact_bytes(&all->plan->facts[plan->together[i]]));
    }
}

/* Places the blocks of one side: `blocks` has room for them, `placed` too. */
static size_t place_side(const lifetimes *all, sb_plan *plan, sb_side side, block *blocks, block **placed) {
    size_t values = all->graph->value_count, count = 0;
    for (size_t c = (size_t)side * values; c < ((size_t)side + 1) * values; c++) {
        const block *block = &all->blocks[c];
        if (block->bytes != 0 && !block->escapes && !block->merged)
            blocks[count++] = *block;
    }
    qsort(blocks, count, sizeof *blocks, larger_first);
    size_t arena = place(blocks, count, placed);
    for (size_t i = 0; i < count; i++)
        plan->offsets[blocks[i].copy] = (int64_t)blocks[i].offset;
    return arena;
}

static void place_all(const lifetimes *all, sb_plan *plan, block *blocks, block **placed) {
    for (size_t c = 0; c < all->copies; c++)
        plan->offsets[c] = -1;
    for (sb_side side = SB_HOST; side < SB_SIDES; side++)
        plan->arena_bytes[side] = place_side(all, plan, side, blocks, placed);
    place_together(all, plan);
    for (size_t c = 0; c < all->copies; c++) {
        if (all->blocks[c].merged && all->homes[c] != c)
            plan->offsets[c] = plan->offsets[all->homes[c]];
    }
}

sb_status sb_memory_plan(sb_plan *plan, const sb_program *program, sb_error *error) {
    size_t copies = SB_SIDES * program->graph->value_count;
    if (plan->open != NULL)
        sb_open_extents_plan(plan->open);
    lifetimes all = {.plan = plan,
                     .program = program,
                     .graph = program->graph,
                     .copies = copies,
                     .blocks = sb_allocate_array(copies, sizeof *all.blocks),
                     .roots = sb_allocate_array(copies, sizeof *all.roots),
                     .homes = sb_allocate_array(copies, sizeof *all.homes)};
    block *blocks = sb_allocate_array(program->graph->value_count, sizeof *blocks);
    block **placed = sb_allocate_array(program->graph->value_count, sizeof *placed);
    sb_status status = SB_OK;
    if (all.blocks == NULL || all.roots == NULL || all.homes == NULL || blocks == NULL || placed == NULL) {
        status = sb_fail_memory(error, copies * sizeof *all.blocks);
    } else {
        find_roots(&all);
        find_lifetimes(&all);
        status = check_total(&all, plan, program, error);
    }
    if (status == SB_OK) {
        merge_in_place(&all);
        find_places(&all, plan);
        status = put_together(&all, plan, error);
    }
    if (status == SB_OK)
        place_all(&all, plan, blocks, placed);
    sb_free(all.blocks);
    sb_free(all.roots);
    sb_free(all.homes);
    sb_free(blocks);
    sb_free(placed);
    return status;
}
