/* Facts: what is known of a value before it is computed. */
#ifndef IV_GRAPH_FACT_H
#define IV_GRAPH_FACT_H

#include "graph/dim.h"
#include "graph/value.h"

/** The rank of a tensor of which not even the rank is known. */
#define IV_RANK_UNKNOWN (-1)

/** Integer tensors of up to this many elements carry their elements as formulas (shape arithmetic). */
#define IV_FACT_ELEMENTS 256

typedef struct iv_fact {
    iv_kind kind;          /* IV_KIND_NONE: no value at all, or nothing known */
    bool optional;         /* the value may be nothing at run time */
    iv_dtype dtype;        /* of the tensor, or of the tensors in the sequence */
    int rank;              /* of the tensor; IV_RANK_UNKNOWN possible. Sequences: of each tensor in it */
    iv_dim dims[IV_MAX_RANK];
    iv_tensor *constant;   /* the value itself where it is known, else NULL; retained */
    int64_t element_count; /* with `elements` */
    iv_dim *elements;      /* the elements of a small s64 tensor in row-major order as formulas, else NULL; owned */
} iv_fact;

/** Releases what the fact owns and resets it to "nothing known". */
void iv_fact_clear(iv_fact *fact);
/** Makes `*target` (cleared first) an equal fact; formulas stay those of the same scope. */
iv_status iv_fact_copy(iv_fact *target, const iv_fact *source, iv_error *error);
/** Describes a tensor. `dims` may be NULL when `rank` is IV_RANK_UNKNOWN or 0. */
void iv_fact_set_tensor(iv_fact *fact, iv_dtype dtype, int rank, const iv_dim *dims);
/** Describes a concrete tensor: dtype and extents as constants, and the tensor itself as the constant when `with_value`. */
iv_status iv_fact_of_tensor(iv_fact *fact, iv_scope *scope, iv_tensor *tensor, bool with_value,
                            iv_error *error);
/** Describes any concrete value: as iv_fact_of_tensor for tensors. */
iv_status iv_fact_of_value(iv_fact *fact, iv_scope *scope, iv_value value, bool with_value,
                           iv_error *error);
/** Whether the fact is a tensor of known rank whose extents are all numbers; they go to `dims` (may be NULL). */
bool iv_fact_is_concrete(const iv_fact *fact, int64_t *dims);
/** Whether both describe the same kind, dtype, rank and formulas (constants are not compared). */
bool iv_fact_same_shape(const iv_fact *left, const iv_fact *right);
/** The fact as text: "f32[batch,3,224,224]", "sequence(f32)", cut to `bytes`; returns `text`. */
char *iv_fact_text(const iv_fact *fact, char *text, size_t bytes);
#define IV_FACT_TEXT_BYTES 512

#endif
