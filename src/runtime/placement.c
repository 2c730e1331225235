#include "runtime/placement.h"

#include <stdio.h>
#include <string.h>

/* Whether `text` contains the `length` bytes at `part`. */
static bool contains(const char *text, const char *part, size_t length) {
    for (; strlen(text) >= length; text++) {
        if (strncmp(text, part, length) == 0)
            return true;
        if (*text == '\0')
            break;
    }
    return false;
}

/* The part of `list` that is in the node's name or its operator's; NULL if none is. */
static const char *forced_by(const char *list, const sb_node *node, size_t *length) {
    for (const char *part = list; part != NULL && *part != '\0';) {
        *length = strcspn(part, ",");
        if (*length > 0 && (contains(node->name, part, *length) || contains(node->op->name, part, *length)))
            return part;
        part += *length + (part[*length] == ',');
    }
    return NULL;
}

static bool inputs_are_concrete(const sb_node *node, const sb_fact *const *inputs) {
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->kind == SB_KIND_TENSOR && !sb_fact_is_concrete(inputs[i], NULL))
            return false;
    }
    return true;
}

static bool outputs_are_concrete(const sb_node *node, const sb_fact *outputs) {
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE && outputs[i].kind == SB_KIND_TENSOR &&
            !sb_fact_is_concrete(&outputs[i], NULL))
            return false;
    }
    return true;
}

sb_status sb_place(const sb_placement *placement, const sb_program *program, size_t step, const sb_fact *const *inputs,
                   const sb_fact *outputs, const sb_kernel **kernel, char *why, sb_error *error) {
    const sb_node *node = program->steps[step].node;
    sb_queue *queue = placement->queue;
    sb_kernel_query query = {.node = node,
                             .inputs = inputs,
                             .outputs = outputs,
                             .isa = program->isa,
                             .device = queue->device,
                             .queue = queue};
    size_t length;
    *kernel = NULL;
    const char *part = forced_by(placement->force_cpu, node, &length);
    if (part != NULL) {
        snprintf(why, SB_WHY_BYTES, "forced to the CPU by \"%.*s\"", (int)(length < 100 ? length : 100), part);
        return SB_OK;
    }
    bool known = inputs_are_concrete(node, inputs);
    if (known)
        SB_TRY(queue->interface->find_kernel(&query, kernel, why, error));
    if (*kernel == NULL && !(known && outputs_are_concrete(node, outputs)))
        snprintf(why, SB_WHY_BYTES, "the data decide the shape of what it reads or makes");
    return SB_OK;
}
