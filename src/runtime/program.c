#include "runtime/program.h"

#include "base/allocation.h"
#include "runtime/program_constants.h"

static size_t count_graphs(const sb_node *node) {
    size_t count = 0;
    for (size_t i = 0; i < node->attributes.count; i++)
        count += node->attributes.items[i].kind == SB_ATTRIBUTE_GRAPH;
    return count;
}

static sb_status create_nested(sb_program *program, sb_step *step, sb_error *error) {
    step->graphs = sb_allocate_array(count_graphs(step->node), sizeof *step->graphs);
    if (step->graphs == NULL)
        return sb_fail_memory(error, sizeof *step->graphs);
    const sb_attributes *attributes = &step->node->attributes;
    for (size_t i = 0; i < attributes->count; i++) {
        if (attributes->items[i].kind != SB_ATTRIBUTE_GRAPH)
            continue;
        SB_TRY(sb_program_create(attributes->items[i].graph, program->isa, program->reference_only,
                                 &step->graphs[step->graph_count], error));
        step->graph_count++;
    }
    return SB_OK;
}

static sb_status list_ends(sb_program *program, sb_error *error) {
    const sb_graph *graph = program->graph;
    program->enter = sb_allocate_array(graph->input_count + graph->read_count, sizeof *program->enter);
    program->leave = sb_allocate_array(graph->output_count + graph->update_count, sizeof *program->leave);
    if (program->enter == NULL || program->leave == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *program->enter);
    for (size_t i = 0; i < graph->input_count; i++)
        program->enter[program->enter_count++] = graph->inputs[i];
    for (size_t i = 0; i < graph->read_count; i++)
        program->enter[program->enter_count++] = graph->reads[i].value;
    for (size_t i = 0; i < graph->output_count; i++)
        program->leave[program->leave_count++] = graph->outputs[i];
    for (size_t i = 0; i < graph->update_count; i++)
        program->leave[program->leave_count++] = graph->updates[i].value;
    return SB_OK;
}

/* Finds for each value the last step that reads (or else makes) it.
 * What a run hands over is never released by a step. */
static sb_status find_last_uses(sb_program *program, sb_error *error) {
    const sb_graph *graph = program->graph;
    int64_t *last = sb_allocate_array(graph->value_count, sizeof *last);
    size_t *counts = sb_allocate_array(graph->node_count, sizeof *counts);
    sb_status status = SB_OK;
    if (last == NULL || counts == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *last);
    for (size_t v = 0; status == SB_OK && v < graph->value_count; v++)
        last[v] = graph->values[v].producer;
    for (size_t s = 0; status == SB_OK && s < graph->node_count; s++) {
        const sb_node *node = graph->nodes[s];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != SB_NO_VALUE)
                last[node->inputs[i]] = (int64_t)s;
        }
    }
    for (size_t o = 0; status == SB_OK && o < program->leave_count; o++)
        last[program->leave[o]] = -1;
    for (size_t v = 0; status == SB_OK && v < graph->value_count; v++) {
        if (last[v] >= 0)
            counts[last[v]]++;
    }
    for (size_t s = 0; status == SB_OK && s < graph->node_count; s++) {
        program->steps[s].releases = sb_allocate_array(counts[s], sizeof(sb_value_id));
        if (program->steps[s].releases == NULL)
            status = sb_fail_memory(error, counts[s] * sizeof(sb_value_id));
    }
    for (size_t v = 0; status == SB_OK && v < graph->value_count; v++) {
        if (last[v] >= 0) {
            sb_step *step = &program->steps[last[v]];
            step->releases[step->release_count++] = (sb_value_id)v;
        }
    }
    sb_free(last);
    sb_free(counts);
    return status;
}

sb_status sb_program_create(const sb_graph *graph, sb_isa isa, bool reference_only, sb_program **program,
                            sb_error *error) {
    sb_program *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->graph = graph;
    fresh->isa = isa;
    fresh->reference_only = reference_only;
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->steps = sb_allocate_array(graph->node_count, sizeof *fresh->steps);
    sb_status status = SB_OK;
    if (fresh->steps == NULL)
        status = sb_fail_memory(error, graph->node_count * sizeof *fresh->steps);
    if (status == SB_OK)
        status = list_ends(fresh, error);
    for (size_t i = 0; i < graph->node_count && status == SB_OK; i++) {
        fresh->step_count++;
        fresh->steps[i].node = graph->nodes[i];
        status = create_nested(fresh, &fresh->steps[i], error);
    }
    if (status == SB_OK)
        status = find_last_uses(fresh, error);
    if (status != SB_OK) {
        sb_program_destroy(fresh);
        return status;
    }
    *program = fresh;
    return SB_OK;
}

static void destroy_step(sb_step *step) {
    sb_step_destroy_states(step);
    for (size_t i = 0; i < step->graph_count; i++)
        sb_program_destroy(step->graphs[i]);
    sb_free(step->graphs);
    sb_free(step->releases);
}

void sb_program_destroy(sb_program *program) {
    if (program == NULL)
        return;
    sb_constants_destroy(program);
    for (size_t i = 0; i < program->step_count; i++)
        destroy_step(&program->steps[i]);
    sb_free(program->steps);
    sb_free(program->enter);
    sb_free(program->leave);
    pthread_mutex_destroy(&program->lock);
    sb_free(program);
}

const sb_program *sb_step_program(const sb_step *step, const sb_graph *graph) {
    for (size_t i = 0; i < step->graph_count; i++) {
        if (step->graphs[i]->graph == graph)
            return step->graphs[i];
    }
    return NULL;
}
