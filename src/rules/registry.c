#include "rules/registry.h"

#include <stdlib.h>
#include <string.h>

static const sb_rule_key *key_of(const void *entry) {
    return entry;
}

static const char *domain_of(const void *entry) {
    return key_of(entry)->domain != NULL ? key_of(entry)->domain : "";
}

static int compare_slots(const void *left, const void *right) {
    uintptr_t first = (uintptr_t)((const struct sb_registry_slot *)left)->op;
    uintptr_t second = (uintptr_t)((const struct sb_registry_slot *)right)->op;
    return (first > second) - (first < second);
}

static const void *next_entry(const sb_registry *registry, const void *entry) {
    return (const char *)entry + registry->entry_bytes;
}

void sb_registry_index(sb_registry *registry) {
    registry->count = 0;
    for (size_t t = 0; registry->tables[t] != NULL; t++) {
        for (const void *entry = registry->tables[t]; key_of(entry)->name != NULL;
             entry = next_entry(registry, entry)) {
            const sb_op *op = sb_op_find(domain_of(entry), key_of(entry)->name);
            if (op != NULL && registry->count < SB_REGISTRY_OPS)
                registry->slots[registry->count++] = (struct sb_registry_slot){op, entry};
        }
    }
    qsort(registry->slots, registry->count, sizeof registry->slots[0], compare_slots);
}

const void *sb_registry_find(const sb_registry *registry, const sb_op *op) {
    const struct sb_registry_slot wanted = {.op = op};
    const struct sb_registry_slot *found =
        bsearch(&wanted, registry->slots, registry->count, sizeof wanted, compare_slots);
    return found != NULL ? found->entry : NULL;
}

/* ---- gaps ---- */

typedef struct gap {
    const sb_registry *registry;
    const sb_op *op; /* the first one without an entry */
    size_t count;    /* of operators */
} gap;

static void note_gap(void *context, const sb_op *op) {
    gap *gap = context;
    gap->count++;
    if (gap->op == NULL && sb_registry_find(gap->registry, op) == NULL)
        gap->op = op;
}

static sb_status check_entries(const sb_registry *registry, size_t *count, sb_error *error) {
    *count = 0;
    for (size_t t = 0; registry->tables[t] != NULL; t++) {
        for (const void *entry = registry->tables[t]; key_of(entry)->name != NULL;
             entry = next_entry(registry, entry)) {
            const sb_op *op = sb_op_find(domain_of(entry), key_of(entry)->name);
            const char *name = key_of(entry)->name;
            if (op == NULL)
                return sb_fail(error, SB_ERROR_INTERNAL, "the registry %s has an entry for %s, which is no operator",
                               registry->name, name);
            ++*count;
            if (*count <= SB_REGISTRY_OPS && sb_registry_find(registry, op) != entry)
                return sb_fail(error, SB_ERROR_INTERNAL, "the registry %s has two entries for %s", registry->name,
                               name);
        }
    }
    return SB_OK;
}

sb_status sb_registry_check(const sb_registry *registry, sb_error *error) {
    gap gap = {.registry = registry};
    size_t entries;
    SB_TRY(check_entries(registry, &entries, error));
    sb_op_visit(note_gap, &gap);
    if (gap.count > SB_REGISTRY_OPS || entries > SB_REGISTRY_OPS)
        return sb_fail(error, SB_ERROR_INTERNAL, "the registry %s has room for %d operators, and there are more",
                       registry->name, SB_REGISTRY_OPS);
    if (gap.op != NULL)
        return sb_fail(error, SB_ERROR_INTERNAL, "the registry %s has no entry for %s", registry->name, gap.op->name);
    return SB_OK;
}
