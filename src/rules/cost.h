/* The registry `cost`: the arithmetic of a node and the memory that it cannot do without, counted from its facts. */
#ifndef SB_RULES_COST_H
#define SB_RULES_COST_H

#include "rules/registry.h"

typedef struct sb_cost_question {
    const sb_node *node;
    sb_scope *scope;
    const sb_fact *const *inputs;
    const sb_fact *outputs;
} sb_cost_question;

/* How operations are counted. `number` is the entry's. */
typedef struct sb_flops_rule {
    sb_dim (*count)(const sb_cost_question *question, int64_t number); /* NULL: not counted */
    const char *words;                                                 /* '#' stands for the number */
} sb_flops_rule;

/* How bytes are counted. */
typedef struct sb_bytes_rule {
    void (*count)(const sb_cost_question *question, sb_dim *read, sb_dim *written); /* NULL: not counted */
    const char *words;
} sb_bytes_rule;

/* How many turns of a node's work come one after the other, each of what the one before it leaves; NULL: not known. */
typedef sb_dim sb_turns_rule(const sb_cost_question *question);

/** An entry of the registry. */
typedef struct sb_cost_entry {
    sb_rule_key op;
    const sb_flops_rule *flops;
    int64_t number;
    const sb_bytes_rule *bytes;
    sb_turns_rule *turns; /* NULL: one */
} sb_cost_entry;

/** The operator's entry; NULL if it has none. */
const sb_cost_entry *sb_cost_find(const sb_op *op);

/** The registry, indexed. */
const sb_registry *sb_cost_registry(void);

/** The operations of one run of the node as a formula in `scope`, counted as <samebit/inspect.h> says.
 *
 * *flops is NULL when the op's count is not known, or the facts leave it open. Nodes with graphs of
 * their own are not counted here. `inputs` has an entry per node input (NULL where omitted),
 * `outputs` one per output. Errors: OUT_OF_MEMORY; INTERNAL for an operator without an entry. */
sb_status sb_node_flops(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *flops, sb_error *error);

/** The bytes that one run of the node has to read and to write: each element that the result depends on once, however
 * often a kernel reads it, and none for views. NULL where that is not known, as for text. Arguments and errors are
 * those of sb_node_flops. */
sb_status sb_node_bytes(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *read, sb_dim *written, sb_error *error);

/** In how many turns a node does its work, one after the other: the steps of a recurrence or of a Scan. NULL where that is
 * not known. Arguments and errors are those of sb_node_flops. */
sb_status sb_node_turns(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *turns, sb_error *error);

#endif
