#include "rules/cost.h"

#include <pthread.h>

#include "rules/counting.h"

static sb_registry registry = {.name = "cost", .tables = sb_cost_tables, .entry_bytes = sizeof(sb_cost_entry)};
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static void make_index(void) {
    sb_registry_index(&registry);
}

const sb_registry *sb_cost_registry(void) {
    pthread_once(&indexed, make_index);
    return &registry;
}

const sb_cost_entry *sb_cost_find(const sb_op *op) {
    return sb_registry_find(sb_cost_registry(), op);
}

static sb_status require_entry(const sb_node *node, const sb_cost_entry **entry, sb_error *error) {
    *entry = sb_cost_find(node->op);
    if (*entry == NULL)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: the registry cost has no entry for %s", node->name,
                       node->op->name);
    return SB_OK;
}

/* A count beyond 2^63, or a formula beyond the scope's bounds, is an unknown count and not an error of the model. */
static sb_status check_scope(sb_scope *scope, sb_error *error) {
    sb_status status = sb_scope_check(scope, error);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : SB_OK;
}

sb_status sb_node_flops(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *flops, sb_error *error) {
    const sb_cost_question question = {node, scope, inputs, outputs};
    const sb_cost_entry *entry;
    SB_TRY(require_entry(node, &entry, error));
    *flops = entry->flops->count != NULL ? entry->flops->count(&question, entry->number) : NULL;
    return check_scope(scope, error);
}

sb_status sb_node_bytes(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *read, sb_dim *written, sb_error *error) {
    const sb_cost_question question = {node, scope, inputs, outputs};
    const sb_cost_entry *entry;
    *read = *written = NULL;
    SB_TRY(require_entry(node, &entry, error));
    if (entry->bytes->count != NULL)
        entry->bytes->count(&question, read, written);
    return check_scope(scope, error);
}

sb_status sb_node_turns(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *turns, sb_error *error) {
    const sb_cost_question question = {node, scope, inputs, outputs};
    const sb_cost_entry *entry;
    SB_TRY(require_entry(node, &entry, error));
    *turns = entry->turns != NULL ? entry->turns(&question) : sb_dim_constant(scope, 1);
    return check_scope(scope, error);
}
