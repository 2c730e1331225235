/* Registries: what else is known of an operator, beside its definition.
 *
 * A registry has one entry per operator, in tables of a family each. There is no default: an operator without an entry
 * is a gap that `sb_registry_check` finds, and that a test refuses. */
#ifndef SB_RULES_REGISTRY_H
#define SB_RULES_REGISTRY_H

#include "graph/op.h"

/** The operator that an entry is about. Every entry of every registry begins with one. */
typedef struct sb_rule_key {
    const char *name;   /* as in sb_op; NULL ends a table */
    const char *domain; /* as in sb_op; NULL is "", the standard's own */
} sb_rule_key;

/* More than there are operators: sb_registry_check fails when the room runs out. */
#define SB_REGISTRY_OPS 512

typedef struct sb_registry {
    const char *name;
    const void *const *tables; /* each an array of entries that one without a name ends; NULL ends the tables */
    size_t entry_bytes;
    /* Made by sb_registry_index: the entries in the order of their operators' addresses. */
    size_t count;
    struct sb_registry_slot {
        const sb_op *op;
        const void *entry;
    } slots[SB_REGISTRY_OPS];
} sb_registry;

/** Prepares the registry for sb_registry_find: to be called once, before any thread looks something up. Entries of no
 * known operator, and those beyond the room, are left out; of two for one operator, either stays. */
void sb_registry_index(sb_registry *registry);

/** The entry of an operator, or NULL if it has none. Any thread may call it on an indexed registry. */
const void *sb_registry_find(const sb_registry *registry, const sb_op *op);

/** Whether there is exactly one entry for each operator and none for anything else. INTERNAL, naming the operator and
 * the registry, when not. The registry is indexed. */
sb_status sb_registry_check(const sb_registry *registry, sb_error *error);

#endif
