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
static const char *forced_by(const char *list, const iv_node *node, size_t *length) {
    for (const char *part = list; part != NULL && *part != '\0';) {
        *length = strcspn(part, ",");
        if (*length > 0 && (contains(node->name, part, *length) || contains(node->op->name, part, *length)))
            return part;
        part += *length + (part[*length] == ',');
    }
    return NULL;
}

static bool facts_are_concrete(const iv_node *node, const iv_fact *const *inputs, const iv_fact *outputs) {
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->kind == IV_KIND_TENSOR && !iv_fact_is_concrete(inputs[i], NULL))
            return false;
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != IV_NO_VALUE && outputs[i].kind == IV_KIND_TENSOR &&
            !iv_fact_is_concrete(&outputs[i], NULL))
            return false;
    }
    return true;
}

iv_status iv_place(const iv_placement *placement, const iv_program *program, size_t step,
                   const iv_fact *const *inputs, const iv_fact *outputs, const iv_kernel **kernel,
                   char *why, iv_error *error) {
    const iv_node *node = program->steps[step].node;
    iv_kernel_query query = {.node = node, .inputs = inputs, .outputs = outputs, .isa = program->isa};
    size_t length;
    *kernel = NULL;
    const char *part = forced_by(placement->force_cpu, node, &length);
    if (part != NULL) {
        snprintf(why, IV_WHY_BYTES, "forced to the CPU by \"%.*s\"", (int)(length < 100 ? length : 100), part);
        return IV_OK;
    }
    if (!facts_are_concrete(node, inputs, outputs)) {
        snprintf(why, IV_WHY_BYTES, "the data decide the shape of what it reads or makes");
        return IV_OK;
    }
    return iv_cuda_find_op(&query, kernel, why, error);
}
