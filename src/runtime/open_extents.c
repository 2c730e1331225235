#include "runtime/open_extents.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/plan.h"
#include "runtime/state_binding.h"
#include "runtime/staying.h"

sb_status sb_open_extents_refuse(sb_plan *plan, const char *why, sb_error *error) {
    if (plan->exact == NULL)
        plan->exact = sb_duplicate_string(why);
    return plan->exact != NULL ? SB_OK : sb_fail_memory(error, strlen(why) + 1);
}

/* ---- formulas ---- */

/* The symbols of a run that have no capacity. */
static sb_status exact_symbols(const sb_capacities *capacities, const char ***names, int64_t **values, int *count,
                               sb_error *error) {
    const sb_binding *run = &capacities->run;
    *names = sb_allocate_array((size_t)run->count, sizeof **names);
    *values = sb_allocate_array((size_t)run->count, sizeof **values);
    *count = 0;
    if (*names == NULL || *values == NULL)
        return sb_fail_memory(error, (size_t)run->count * sizeof **values);
    for (int s = 0; s < run->count; s++) {
        bool open = false;
        for (int i = 0; i < capacities->count; i++)
            open = open || strcmp(capacities->items[i].symbol, run->names[s]) == 0;
        if (!open) {
            (*names)[*count] = run->names[s];
            (*values)[(*count)++] = run->values[s];
        }
    }
    return SB_OK;
}

/* What enters, with formulas where the model has a formula of a symbol with a capacity. */
static sb_status enter_facts(sb_open_extents *open, const sb_program *program, sb_scope *scope, const sb_value *inputs,
                             const sb_binding *exact, sb_error *error) {
    for (size_t i = 0; i < program->enter_count; i++) {
        sb_value_id value = program->enter[i];
        const sb_fact *declared = &program->graph->values[value].fact;
        sb_fact *fact = &open->formulas[value];
        SB_TRY(sb_fact_of_value(fact, scope, inputs[i], false, error));
        for (int d = 0; fact->kind == SB_KIND_TENSOR && d < declared->rank; d++) {
            if (sb_capacities_find(open->capacities, declared->dims[d]) >= 0)
                fact->dims[d] = sb_dim_substitute(scope, declared->dims[d], exact);
        }
    }
    return sb_scope_check(scope, error);
}

static sb_status infer_formulas(sb_open_extents *open, const sb_program *program, sb_scope *scope,
                                const sb_value *inputs, sb_error *error) {
    const char **names = NULL;
    int64_t *values = NULL;
    int count = 0;
    sb_status status = exact_symbols(open->capacities, &names, &values, &count, error);
    if (status == SB_OK)
        status = enter_facts(open, program, scope, inputs, &(sb_binding){count, names, values}, error);
    if (status == SB_OK)
        status = sb_graph_infer(program->graph, scope, open->formulas, error);
    sb_free(names);
    sb_free(values);
    return status;
}

/* ---- planned values ---- */

static sb_binding planned_binding(const sb_open_extents *open, const char **names) {
    for (int i = 0; i < open->capacities->count; i++)
        names[i] = open->capacities->items[i].symbol;
    return (sb_binding){open->capacities->count, names, open->planned};
}

/* By how much the largest extent of a variable that the run leaves exceeds its room in the plan, for symbol `item`. */
static int64_t excess(const sb_open_extents *open, const sb_program *program, const sb_state_binding *binding, int item,
                      const sb_binding *planned) {
    int64_t most = 0, extent;
    for (size_t l = 0; l < program->leave_count; l++) {
        int64_t variable = binding->update[l];
        const sb_fact *fact = &open->formulas[program->leave[l]];
        const sb_held_variable *held = variable >= 0 ? &binding->state->variables[variable] : NULL;
        for (int d = 0; held != NULL && d < held->tensor->rank && d < fact->rank; d++) {
            int e = held->extents[d];
            if (e < 0 || strcmp(binding->state->extents[e].symbol, open->capacities->items[item].symbol) != 0)
                continue;
            if (sb_dim_evaluate(fact->dims[d], planned, &extent) && extent - open->buckets[item] > most)
                most = extent - open->buckets[item];
        }
    }
    return most;
}

/* Which symbols make a variable longer along an axis that is another symbol's. */
static void find_additions(sb_open_extents *open, const sb_program *program, const sb_state_binding *binding) {
    for (size_t l = 0; l < program->leave_count; l++) {
        const sb_fact *fact = &open->formulas[program->leave[l]];
        const sb_held_variable *held = binding->update[l] >= 0 ? &binding->state->variables[binding->update[l]] : NULL;
        for (int d = 0; held != NULL && d < held->tensor->rank && d < fact->rank; d++) {
            for (int i = 0; held->extents[d] >= 0 && i < open->capacities->count; i++) {
                const char *symbol = open->capacities->items[i].symbol;
                bool own = strcmp(binding->state->extents[held->extents[d]].symbol, symbol) == 0;
                open->add[i] = open->add[i] || (!own && sb_dim_mentions(fact->dims[d], symbol));
            }
        }
    }
}

/* Each symbol is planned at its bucket, or, where variables grow along it, so that they end there. */
static void find_planned(sb_open_extents *open, const sb_program *program, const sb_state_binding *binding,
                         const char **names) {
    sb_binding planned = planned_binding(open, names);
    for (int i = 0; i < open->capacities->count; i++)
        open->planned[i] = open->buckets[i] = open->capacities->buckets[i];
    if (binding != NULL)
        find_additions(open, program, binding);
    for (int i = 0; i < open->capacities->count && binding != NULL; i++) {
        int64_t more = excess(open, program, binding, i, &planned);
        open->planned[i] = more < open->planned[i] ? open->planned[i] - more : 0;
    }
}

/* ---- scalars ---- */

static sb_status add_scalar(sb_open_extents *open, sb_dim formula, const sb_binding *planned, bool *known, int *index,
                            sb_error *error) {
    int64_t value;
    *known = sb_dim_evaluate(formula, planned, &value);
    if (!*known)
        return SB_OK;
    if (open->scalar_count == INT32_MAX ||
        !sb_grow((void **)&open->scalars, &open->scalar_capacity, open->scalar_count + 1, sizeof *open->scalars))
        return sb_fail_memory(error, sizeof *open->scalars);
    int same = -1;
    for (size_t s = 0; s < open->scalar_count && same < 0; s++)
        same = open->scalars[s].formula == formula ? (int)s : -1;
    *index = (int)open->scalar_count;
    open->scalars[open->scalar_count++] = (sb_run_scalar){formula, NULL, value, same};
    return SB_OK;
}

/* One scalar for all extents of a formula: in one scope equal formulas are one. */
static sb_status extent_scalar(sb_open_extents *open, sb_scope *scope, sb_dim formula, const sb_binding *planned,
                               bool *known, int *index, sb_error *error) {
    *known = true;
    for (size_t s = 0; s < open->scalar_count; s++) {
        if (open->scalars[s].formula == formula && open->scalars[s].cell != NULL) {
            *index = (int)s;
            return SB_OK;
        }
    }
    SB_TRY(add_scalar(open, formula, planned, known, index, error));
    if (!*known)
        return SB_OK;
    *known = open->scalars[*index].planned >= 0;
    open->scalars[*index].cell = sb_dim_cell(scope, open->scalars[*index].planned);
    return sb_scope_check(scope, error);
}

static sb_status value_scalars(sb_open_extents *open, sb_scope *scope, size_t value, const sb_binding *planned,
                               bool *known, sb_error *error) {
    const sb_fact *fact = &open->formulas[value];
    bool tensor = fact->kind == SB_KIND_TENSOR, mentions = false;
    *known = fact->kind == SB_KIND_NONE || (tensor && fact->rank != SB_RANK_UNKNOWN && !fact->optional);
    for (int d = 0; tensor && d < fact->rank && *known; d++) {
        if (!sb_dim_is_constant(fact->dims[d], NULL))
            SB_TRY(extent_scalar(open, scope, fact->dims[d], planned, known,
                                 &open->extents[value * SB_MAX_RANK + (size_t)d], error));
    }
    for (int64_t e = 0; fact->elements != NULL && fact->constant == NULL && e < fact->element_count; e++)
        mentions = mentions || !sb_dim_is_constant(fact->elements[e], NULL);
    for (int64_t e = 0; mentions && e < fact->element_count && *known; e++) {
        int index = -1;
        SB_TRY(add_scalar(open, fact->elements[e], planned, known, &index, error));
        if (e == 0)
            open->elements[value] = index;
    }
    return SB_OK;
}

/* Scalars for all that is open; refused where something is not a formula of the symbols. */
static sb_status find_scalars(sb_open_extents *open, sb_plan *plan, const sb_program *program,
                              const sb_binding *planned, bool *known, sb_error *error) {
    const sb_graph *graph = program->graph;
    *known = true;
    for (size_t v = 0; v < graph->value_count && *known; v++) {
        SB_TRY(value_scalars(open, plan->scope, v, planned, known, error));
        if (*known)
            continue;
        char why[SB_WHY_BYTES], text[SB_FACT_TEXT_BYTES];
        const sb_value_info *info = &graph->values[v];
        const sb_node *node = info->producer >= 0 ? graph->nodes[info->producer] : NULL;
        snprintf(why, sizeof why, "%.60s (%.30s): %.40s is %.60s, which no formula of the symbols tells",
                 node != NULL ? node->name : "the graph", node != NULL ? node->op->name : "input", info->name,
                 sb_fact_text(&open->formulas[v], text, sizeof text));
        SB_TRY(sb_open_extents_refuse(plan, why, error));
    }
    return SB_OK;
}

/* Lists the formulas of the scalars, each once. */
static sb_status find_distinct(sb_open_extents *open, sb_error *error) {
    open->distinct = sb_allocate_array(open->scalar_count, sizeof *open->distinct);
    open->same = sb_allocate_array(open->scalar_count, sizeof *open->same);
    if (open->distinct == NULL || open->same == NULL)
        return sb_fail_memory(error, open->scalar_count * sizeof *open->distinct);
    for (size_t s = 0; s < open->scalar_count; s++) {
        const sb_run_scalar *scalar = &open->scalars[s];
        open->same[s] = scalar->same >= 0 ? open->same[scalar->same] : (int)open->distinct_count;
        if (scalar->same < 0)
            open->distinct[open->distinct_count++] = (sb_run_formula){scalar->formula, INT64_MAX, 0};
        if (scalar->cell != NULL)
            open->distinct[open->same[s]].most = scalar->planned;
    }
    return SB_OK;
}

static bool is_open(const sb_open_extents *open, sb_value_id value) {
    return value != SB_NO_VALUE && (open->elements[value] >= 0 || sb_open_extents_has(open, value));
}

static void find_touched(sb_open_extents *open, const sb_program *program) {
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_node *node = program->steps[s].node;
        for (int i = 0; i < node->input_count; i++)
            open->touched[s] = open->touched[s] || is_open(open, node->inputs[i]);
        for (int i = 0; i < node->output_count; i++)
            open->touched[s] = open->touched[s] || is_open(open, node->outputs[i]);
    }
}

/* ---- facts ---- */

/* Elements as they are at the planned extents: for kernels on a device that read a shape on the host. */
static sb_status planned_elements(const sb_open_extents *open, size_t value, sb_fact *fact, sb_error *error) {
    int64_t dims[SB_MAX_RANK];
    if (!sb_fact_is_concrete(fact, dims))
        return SB_OK;
    SB_TRY(sb_tensor_create(SB_S64, fact->rank, dims, &fact->constant, error));
    for (int64_t e = 0; e < fact->element_count; e++)
        ((int64_t *)(void *)fact->constant->data)[e] = open->scalars[open->elements[value] + e].planned;
    return SB_OK;
}

static sb_status fill_facts(const sb_open_extents *open, sb_fact *facts, size_t value_count, sb_scope *scope,
                            bool on_device, sb_error *error) {
    for (size_t v = 0; v < value_count; v++) {
        SB_TRY(sb_fact_copy(&facts[v], &open->formulas[v], error));
        for (int d = 0; facts[v].kind == SB_KIND_TENSOR && d < facts[v].rank; d++) {
            int scalar = open->extents[v * SB_MAX_RANK + (size_t)d];
            if (scalar >= 0)
                facts[v].dims[d] =
                    on_device ? sb_dim_constant(scope, open->scalars[scalar].planned) : open->scalars[scalar].cell;
        }
        if (open->elements[v] < 0)
            continue;
        if (on_device)
            SB_TRY(planned_elements(open, v, &facts[v], error));
        sb_free(facts[v].elements);
        facts[v].elements = NULL;
        facts[v].element_count = 0;
    }
    return sb_scope_check(scope, error);
}

/* ---- creating ---- */

static bool allocate(sb_open_extents *open, const sb_program *program, const sb_state_binding *binding) {
    size_t values = program->graph->value_count, items = (size_t)open->capacities->count, inputs = 0, outputs = 0;
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_node *node = program->steps[s].node;
        inputs = (size_t)node->input_count > inputs ? (size_t)node->input_count : inputs;
        outputs = (size_t)node->output_count > outputs ? (size_t)node->output_count : outputs;
    }
    open->buckets = sb_allocate_array(items, sizeof *open->buckets);
    open->planned = sb_allocate_array(items, sizeof *open->planned);
    open->add = sb_allocate_array(items, sizeof *open->add);
    open->formulas = sb_allocate_array(values, sizeof *open->formulas);
    open->touched = sb_allocate_array(program->step_count, sizeof *open->touched);
    open->extents = sb_allocate_array(values, SB_MAX_RANK * sizeof *open->extents);
    open->elements = sb_allocate_array(values, sizeof *open->elements);
    open->entered = sb_allocate_array(program->enter_count, sizeof *open->entered);
    open->staying.made = sb_allocate_array(program->leave_count, sizeof *open->staying.made);
    open->staying.next =
        sb_allocate_array(binding != NULL ? binding->state->extent_count : 0, sizeof *open->staying.next);
    open->inputs = sb_allocate_array(inputs, sizeof *open->inputs);
    open->outputs = sb_allocate_array(outputs, sizeof *open->outputs);
    return open->buckets != NULL && open->planned != NULL && open->add != NULL && open->formulas != NULL &&
           open->touched != NULL && open->extents != NULL && open->elements != NULL && open->entered != NULL &&
           open->staying.made != NULL && open->staying.next != NULL && open->inputs != NULL && open->outputs != NULL;
}

static sb_status fill(sb_open_extents *open, sb_plan *plan, const sb_program *program, const sb_placement *placement,
                      const sb_value *inputs, const char **names, bool *known, sb_error *error) {
    size_t values = program->graph->value_count;
    if (names == NULL || !allocate(open, program, plan->binding))
        return sb_fail_memory(error, values * sizeof *open->formulas);
    memset(open->extents, -1, values * SB_MAX_RANK * sizeof *open->extents);
    memset(open->elements, -1, values * sizeof *open->elements);
    SB_TRY(infer_formulas(open, program, plan->scope, inputs, error));
    find_planned(open, program, plan->binding, names);
    sb_binding planned = planned_binding(open, names);
    SB_TRY(find_scalars(open, plan, program, &planned, known, error));
    if (!*known)
        return SB_OK;
    find_touched(open, program);
    SB_TRY(find_distinct(open, error));
    SB_TRY(fill_facts(open, plan->facts, values, plan->scope, placement->queue != NULL, error));
    return sb_run_table_create(&open->table, open, program, plan, placement->queue, error);
}

sb_status sb_open_extents_create(sb_plan *plan, const sb_program *program, const sb_placement *placement,
                                 const sb_value *inputs, sb_error *error) {
    sb_open_extents *open = sb_allocate_array(1, sizeof *open);
    if (open == NULL)
        return sb_fail_memory(error, sizeof *open);
    open->capacities = placement->capacities;
    open->queue = placement->queue;
    const char **names = sb_allocate_array((size_t)open->capacities->count, sizeof *names);
    bool known = false;
    sb_status status = fill(open, plan, program, placement, inputs, names, &known, error);
    sb_free(names);
    if (status != SB_OK || !known) {
        sb_open_extents_destroy(open, program);
        return status;
    }
    plan->open = open;
    return SB_OK;
}

void sb_open_extents_destroy(sb_open_extents *open, const sb_program *program) {
    if (open == NULL)
        return;
    for (size_t v = 0; v < program->graph->value_count; v++) {
        if (open->formulas != NULL)
            sb_fact_clear(&open->formulas[v]);
    }
    for (size_t i = 0; open->entered != NULL && i < program->enter_count; i++)
        sb_tensor_release(open->entered[i]);
    sb_staying_forget(open, program);
    sb_run_table_clear(&open->table, open->queue);
    sb_free(open->entered);
    sb_free(open->staying.made);
    sb_free(open->staying.next);
    sb_free(open->buckets);
    sb_free(open->planned);
    sb_free(open->add);
    sb_free(open->formulas);
    sb_free(open->touched);
    sb_free(open->scalars);
    sb_free(open->distinct);
    sb_free(open->same);
    sb_free(open->extents);
    sb_free(open->elements);
    sb_free(open->inputs);
    sb_free(open->outputs);
    sb_free(open);
}

/* ---- runs ---- */

void sb_open_extents_plan(sb_open_extents *open) {
    for (size_t s = 0; s < open->scalar_count; s++) {
        if (open->scalars[s].cell != NULL)
            sb_dim_set_cell(open->scalars[s].cell, open->scalars[s].planned);
    }
}

void sb_open_extents_fill(sb_open_extents *open, sb_queue *queue, const sb_value *inputs, bool *fits) {
    int64_t *numbers = open->table.scalars;
    *fits = true;
    for (size_t i = 0; i < open->distinct_count && *fits; i++) {
        sb_run_formula *distinct = &open->distinct[i];
        *fits = sb_dim_evaluate(distinct->formula, &open->capacities->run, &distinct->number) &&
                (distinct->most == INT64_MAX || (distinct->number >= 0 && distinct->number <= distinct->most));
    }
    for (size_t s = 0; s < open->scalar_count && *fits; s++)
        numbers[s] = open->distinct[open->same[s]].number;
    for (size_t s = 0; s < open->scalar_count && *fits && queue == NULL; s++) {
        if (open->scalars[s].cell != NULL)
            sb_dim_set_cell(open->scalars[s].cell, numbers[s]);
    }
    if (*fits && queue != NULL)
        sb_run_table_fill(&open->table, inputs);
}

bool sb_open_extents_has(const sb_open_extents *open, sb_value_id value) {
    const int *extents = &open->extents[(size_t)value * SB_MAX_RANK];
    for (int d = 0; d < SB_MAX_RANK; d++) {
        if (extents[d] >= 0)
            return true;
    }
    return false;
}

void sb_open_extents_used(const sb_open_extents *open, sb_value_id value, const sb_tensor *tensor, int64_t *dims) {
    for (int d = 0; d < tensor->rank; d++) {
        int scalar = open->extents[(size_t)value * SB_MAX_RANK + (size_t)d];
        dims[d] = scalar >= 0 ? open->table.scalars[scalar] : tensor->dims[d];
    }
}

bool sb_open_extents_match(const sb_open_extents *open, sb_value_id value, const sb_tensor *tensor) {
    const sb_fact *fact = &open->formulas[value];
    int64_t extent;
    bool match = fact->kind == SB_KIND_TENSOR && fact->dtype == tensor->dtype && fact->rank == tensor->rank;
    for (int d = 0; d < tensor->rank && match; d++)
        match = sb_dim_evaluate(fact->dims[d], &open->capacities->run, &extent) && extent == tensor->dims[d];
    return match;
}
