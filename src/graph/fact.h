/* Facts: what is known of a value before it is computed. */
#ifndef SB_GRAPH_FACT_H
#define SB_GRAPH_FACT_H

#include "graph/dim.h"
#include "graph/value.h"

/** The rank of a tensor of which not even the rank is known. */
#define SB_RANK_UNKNOWN (-1)

/** Integer tensors of up to this many elements carry their elements as formulas (shape arithmetic). */
#define SB_FACT_ELEMENTS 256

typedef struct sb_fact {
    sb_kind kind;   /* SB_KIND_NONE: no value at all, or nothing known */
    bool optional;  /* the value may be nothing at run time */
    sb_dtype dtype; /* of the tensor, or of the tensors in the sequence */
    int rank;       /* of the tensor; SB_RANK_UNKNOWN possible. Sequences: of each tensor in it */
    sb_dim dims[SB_MAX_RANK];
    sb_tensor *constant;   /* the value itself where it is known, else NULL; retained */
    int64_t element_count; /* with `elements` */
    sb_dim *elements;      /* the elements of a small s64 tensor in row-major order as formulas, else NULL; owned */
} sb_fact;

/** Releases what the fact owns and resets it to "nothing known". */
void sb_fact_clear(sb_fact *fact);
/** Makes `*target` (cleared first) an equal fact; formulas stay those of the same scope. */
sb_status sb_fact_copy(sb_fact *target, const sb_fact *source, sb_error *error);
/** Describes a tensor. `dims` may be NULL when `rank` is SB_RANK_UNKNOWN or 0. */
void sb_fact_set_tensor(sb_fact *fact, sb_dtype dtype, int rank, const sb_dim *dims);
/** Describes a concrete tensor: dtype and extents as constants, and the tensor itself as
 * the constant when `with_value`. */
sb_status sb_fact_of_tensor(sb_fact *fact, sb_scope *scope, sb_tensor *tensor, bool with_value, sb_error *error);
/** Describes any concrete value: as sb_fact_of_tensor for tensors. */
sb_status sb_fact_of_value(sb_fact *fact, sb_scope *scope, sb_value value, bool with_value, sb_error *error);
/** Whether the fact is a tensor of known rank whose extents are all numbers; they go to `dims` (may be NULL). */
bool sb_fact_is_concrete(const sb_fact *fact, int64_t *dims);
/** Whether both describe the same kind, dtype, rank and formulas (constants are not compared). */
bool sb_fact_same_shape(const sb_fact *left, const sb_fact *right);
/** The fact as text: "f32[batch,3,224,224]", "sequence(f32)", cut to `bytes`; returns `text`. */
char *sb_fact_text(const sb_fact *fact, char *text, size_t bytes);
#define SB_FACT_TEXT_BYTES 512

#endif
