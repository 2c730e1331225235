/* What the rules of the registry `cost` share: formulas of counts. */
#ifndef SB_RULES_COST_COUNTING_H
#define SB_RULES_COST_COUNTING_H

#include "rules/cost.h"

/** The tables of all families; NULL ends them. Defined where families are listed: ops/list.c. */
extern const void *const sb_cost_tables[];

/** Formal input `index`; NULL where it is omitted, no tensor, or of unknown rank. */
const sb_fact *sb_cost_input(const sb_cost_question *question, int index);
/** The first output that somebody wants, if it is a tensor of known rank; else NULL. */
const sb_fact *sb_cost_output(const sb_cost_question *question);

/* Formulas; NULL for NULL. */

/** The product of the extents from `first` on. */
sb_dim sb_cost_extents(const sb_cost_question *question, const sb_fact *fact, int first);
sb_dim sb_cost_times(const sb_cost_question *question, int64_t factor, sb_dim dim);
/** The bytes of a whole tensor; NULL for text. */
sb_dim sb_cost_bytes(const sb_cost_question *question, const sb_fact *fact);

/* Operations. */
extern const sb_flops_rule sb_flops_none;       /* 0 */
extern const sb_flops_rule sb_flops_uncounted;  /* not known */
extern const sb_flops_rule sb_flops_per_output; /* `number` per element of the output */
extern const sb_flops_rule sb_flops_per_input;  /* `number` per element of the first input */

/* Bytes. */
extern const sb_bytes_rule sb_bytes_whole;   /* all inputs and all outputs */
extern const sb_bytes_rule sb_bytes_view;    /* none: the output is another view */
extern const sb_bytes_rule sb_bytes_written; /* outputs only: of inputs the shape counts, or they are lists */
extern const sb_bytes_rule sb_bytes_first;   /* the first input and all outputs */
/* Of the first input as many elements as the output has, other inputs whole. */
extern const sb_bytes_rule sb_bytes_chosen;
extern const sb_bytes_rule sb_bytes_uncounted; /* not known */

#endif
