#include "runtime/memory_plan.h"

#include <stdlib.h>

#include "base/allocation.h"

/* A block of memory: the value that owns it, and the steps between which somebody can see it through any view. */
typedef struct block {
    iv_value_id value;
    size_t bytes;
    size_t offset;
    int64_t first, last;
    bool escapes; /* may be seen after the run: lies outside the arena */
    bool merged;  /* lies in another value's block, and is part of its lifetime */
} block;

typedef struct lifetimes {
    block *blocks; /* one per value; bytes 0: nothing to place */
    iv_value_id *roots; /* the value whose memory a value shares */
    iv_value_id *homes; /* of a value that owns memory: the one whose place it takes over, or itself */
} lifetimes;

static bool keeps_inputs(const iv_op *op) {
    return (op->flags & (IV_OP_KEEPS | IV_OP_CONTROL)) != 0;
}

static void find_roots(lifetimes *all, const iv_graph *graph) {
    for (size_t v = 0; v < graph->value_count; v++)
        all->roots[v] = (iv_value_id)v;
    for (size_t s = 0; s < graph->node_count; s++) {
        const iv_node *node = graph->nodes[s];
        if ((node->op->flags & IV_OP_VIEW) == 0 || node->input_count == 0 ||
            node->inputs[0] == IV_NO_VALUE)
            continue;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != IV_NO_VALUE)
                all->roots[node->outputs[i]] = all->roots[node->inputs[0]];
        }
    }
}

static size_t fact_bytes(const iv_fact *fact) {
    int64_t dims[IV_MAX_RANK], elements;
    if (fact->constant != NULL || !iv_fact_is_concrete(fact, dims) || fact->dtype == IV_STRING ||
        iv_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != IV_OK)
        return 0;
    return (size_t)elements * iv_dtype_size(fact->dtype);
}

/* Notes that step `step` sees a value: the memory that its root owns, and that of the copies that views have become on the way. */
static void see(lifetimes *all, const iv_graph *graph, iv_value_id value, int64_t step, bool escapes) {
    for (;;) {
        block *seen = &all->blocks[value];
        seen->last = step > seen->last ? step : seen->last;
        seen->escapes = seen->escapes || escapes;
        if (all->roots[value] == value)
            return;
        value = graph->nodes[graph->values[value].producer]->inputs[0];
    }
}

static void find_lifetimes(lifetimes *all, const iv_plan *plan, const iv_program *program) {
    const iv_graph *graph = program->graph;
    for (size_t s = 0; s < graph->node_count; s++) {
        const iv_node *node = graph->nodes[s];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != IV_NO_VALUE)
                see(all, graph, node->inputs[i], (int64_t)s, keeps_inputs(node->op));
        }
        bool owns = plan->steps[s].mode == IV_STEP_STATIC && !keeps_inputs(node->op);
        bool views = (node->op->flags & IV_OP_VIEW) != 0;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == IV_NO_VALUE || !owns || (views && !plan->copied[node->outputs[i]]))
                continue;
            block *made = &all->blocks[node->outputs[i]];
            *made = (block){.value = node->outputs[i],
                            .bytes = fact_bytes(&plan->facts[node->outputs[i]]),
                            .first = (int64_t)s,
                            .last = (int64_t)s};
        }
    }
    for (size_t o = 0; o < graph->output_count; o++)
        see(all, graph, graph->outputs[o], 0, true);
}

/* Whether only input `input` of the step sees the memory behind it. */
static bool seen_once(const lifetimes *all, const iv_node *node, int input) {
    for (int i = 0; i < node->input_count; i++) {
        if (i != input && node->inputs[i] != IV_NO_VALUE &&
            all->roots[node->inputs[i]] == all->roots[node->inputs[input]])
            return false;
    }
    return true;
}

/* Lets outputs take over the place of an input that dies with their step, where the kernel offers it. In step order, so
 * that a chain of them keeps one place. */
static void merge_in_place(lifetimes *all, const iv_plan *plan, const iv_graph *graph) {
    for (size_t v = 0; v < graph->value_count; v++)
        all->homes[v] = (iv_value_id)v;
    for (size_t s = 0; s < graph->node_count; s++) {
        const iv_node *node = graph->nodes[s];
        int input = plan->steps[s].mode == IV_STEP_STATIC ? plan->steps[s].in_place : -1;
        if (input < 0 || node->inputs[input] == IV_NO_VALUE || !seen_once(all, node, input))
            continue;
        const block *dying = &all->blocks[all->roots[node->inputs[input]]];
        block *made = &all->blocks[node->outputs[0]];
        if (made->bytes == 0 || made->bytes != dying->bytes || dying->last != (int64_t)s ||
            dying->escapes || made->escapes)
            continue;
        iv_value_id home = all->homes[dying->value];
        all->homes[made->value] = home;
        all->blocks[home].last = made->last;
        made->merged = true;
    }
}

static size_t align(size_t bytes) {
    return (bytes + IV_ALIGNMENT - 1) / IV_ALIGNMENT * IV_ALIGNMENT;
}

iv_status iv_memory_plan_blame(const iv_plan *plan, const iv_program *program, iv_status status,
                               iv_error *error) {
    const iv_graph *graph = program->graph;
    const iv_node *largest = NULL;
    size_t most = 0;
    int output = 0;
    for (size_t s = 0; s < graph->node_count; s++) {
        const iv_node *node = graph->nodes[s];
        bool owns = plan->steps[s].mode == IV_STEP_STATIC && (node->op->flags & IV_OP_VIEW) == 0;
        for (int i = 0; i < node->output_count && owns; i++) {
            size_t bytes = node->outputs[i] != IV_NO_VALUE ? fact_bytes(&plan->facts[node->outputs[i]]) : 0;
            if (bytes > most) {
                most = bytes;
                largest = node;
                output = i;
            }
        }
    }
    char text[IV_FACT_TEXT_BYTES];
    if (largest == NULL)
        return status;
    return iv_fail_within(error, status, "node %s (%s): output %d, %s, has %zu of the bytes that a run needs: ",
                          largest->name, largest->op->name, output,
                          iv_fact_text(&plan->facts[largest->outputs[output]], text, sizeof text), most);
}

/* No sum of sizes below overflows. */
static iv_status check_total(const lifetimes *all, const iv_plan *plan, const iv_program *program,
                             iv_error *error) {
    int64_t total = 0;
    for (size_t v = 0; v < program->graph->value_count; v++) {
        if (!__builtin_add_overflow(total, align(all->blocks[v].bytes), &total))
            continue;
        return iv_memory_plan_blame(plan, program,
                                    iv_fail(error, IV_ERROR_OUT_OF_MEMORY,
                                            "out of memory: no machine addresses what all values take"),
                                    error);
    }
    return IV_OK;
}

static int larger_first(const void *left, const void *right) {
    const block *first = left, *second = right;
    if (first->bytes != second->bytes)
        return first->bytes < second->bytes ? 1 : -1;
    return (first->value > second->value) - (first->value < second->value);
}

static bool live_together(const block *left, const block *right) {
    return left->first <= right->last && right->first <= left->last;
}

/* Places blocks from the largest to the smallest, each at the lowest offset where no block that lives at the same time
 * lies. Largest first keeps the arena within a few per cent of its lower bound for networks. `placed` is in offset order. */
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

/* Blocks in the arena; `all->blocks` is in another order afterwards. */
static void place_all(lifetimes *all, iv_plan *plan, size_t values, block **placed) {
    size_t count = 0;
    for (size_t v = 0; v < values; v++) {
        plan->offsets[v] = -1;
        const block *block = &all->blocks[v];
        if (block->bytes != 0 && !block->escapes && !block->merged)
            all->blocks[count++] = *block;
        else if (!block->merged)
            all->homes[v] = IV_NO_VALUE;
    }
    qsort(all->blocks, count, sizeof *all->blocks, larger_first);
    plan->arena_bytes = place(all->blocks, count, placed);
    for (size_t i = 0; i < count; i++)
        plan->offsets[all->blocks[i].value] = (int64_t)all->blocks[i].offset;
    for (size_t v = 0; v < values; v++) {
        if (all->homes[v] != IV_NO_VALUE)
            plan->offsets[v] = plan->offsets[all->homes[v]];
    }
}

iv_status iv_memory_plan(iv_plan *plan, const iv_program *program, iv_error *error) {
    size_t values = program->graph->value_count;
    lifetimes all = {iv_allocate_array(values, sizeof *all.blocks),
                     iv_allocate_array(values, sizeof *all.roots),
                     iv_allocate_array(values, sizeof *all.homes)};
    block **placed = iv_allocate_array(values, sizeof *placed);
    iv_status status = IV_OK;
    if (all.blocks == NULL || all.roots == NULL || all.homes == NULL || placed == NULL) {
        status = iv_fail_memory(error, values * sizeof *all.blocks);
    } else {
        find_roots(&all, program->graph);
        find_lifetimes(&all, plan, program);
        status = check_total(&all, plan, program, error);
    }
    if (status == IV_OK) {
        merge_in_place(&all, plan, program->graph);
        place_all(&all, plan, values, placed);
    }
    iv_free(all.blocks);
    iv_free(all.roots);
    iv_free(all.homes);
    iv_free(placed);
    return status;
}
