/* Attention as a computation on strided arrays: what the operators Attention and FlexAttention have in common, and what
 * kernels of them are to equal. The definition is docs/numerics.md, section 10. */
#ifndef SB_OPS_ATTENTION_H
#define SB_OPS_ATTENTION_H

#include "graph/op.h"
#include "ops/attention_values.h"
#include "ops/pages.h"

/* Elements [batch, head, row, column] at `data`, strides in elements. Without `data`: none. */
typedef struct sb_attention_array {
    char *data;
    sb_dtype dtype;
    int64_t batch, head, row, column;
} sb_attention_array;

/* What a score is when it is given out. */
typedef enum sb_attention_stage {
    SB_ATTENTION_SCORE,      /* chain · scale */
    SB_ATTENTION_CAPPED,     /* … and capped */
    SB_ATTENTION_BIASED,     /* … with the bias; −∞ where masked */
    SB_ATTENTION_PROBABILITY /* the weight over the sum of weights */
} sb_attention_stage;

typedef struct sb_attention_work {
    sb_dtype
        dtype; /* f16, bf16, f32 or f64: of queries, keys, values, outputs, and of weights where they meet values */
    bool wide; /* from the scores on, weights and sums are computed in f64; always with f64 */
    int64_t batch, heads, key_heads, queries, keys; /* keys: the past's and the new ones */
    int64_t past;                                   /* keys that come from past_k and past_v */
    int64_t width, value_width;
    sb_attention_array q, k, past_k, v, past_v; /* [batch, heads or key_heads, positions, widths] */
    double scale, cap;                          /* numbers of the type of the chains; cap 0: none */
    sb_attention_array
        mask;          /* of bool or `dtype`, [batch, heads, queries, mask_keys]: strides of 0 where it is repeated */
    int64_t mask_keys; /* keys behind are masked */
    /* Where keys lie of several sequences, whose queries are those of one sample, one sequence behind the other. `k` and `v`
     * are then [pages, key_heads, rows of a page, widths], and `keys` is how many a sequence has room for. */
    sb_pages pages;
    const char *lengths; /* s64 [batch], or of each sequence: how many keys a sample has; NULL: all */
    int64_t lengths_stride;
    bool causal;         /* a query at position p sees keys up to p */
    int64_t left, right; /* … and from p - left, up to p + right; -1: no bound */
    /* Scores in place of those of q and k, [batch, heads, queries, keys]: nothing is scaled, capped or masked. */
    sb_attention_array given;
    /* Outputs; each may have no data. */
    sb_attention_array y;      /* [batch, heads, queries, value_width], of `dtype` */
    sb_attention_array scores; /* [batch, heads, queries, keys], any float */
    sb_attention_stage stage;  /* of `scores` */
} sb_attention_work;

/* ---- what the definition and kernels of the host find alike ---- */

/* A query of a head, and the keys that positions, lengths and the mask's extent allow. */
typedef struct sb_attention_row {
    int64_t batch, head, key_head, query;
    int64_t sequence; /* with pages */
    sb_attention_reach reach;
} sb_attention_row;

/** The row of that query. On the host. */
sb_attention_row sb_attention_find_row(const sb_attention_work *work, int64_t batch, int64_t head, int64_t query);

/** The address of an element, which is there. */
static inline char *sb_attention_element(const sb_attention_array *array, int64_t batch, int64_t head, int64_t row,
                                         int64_t column) {
    int64_t index = batch * array->batch + head * array->head + row * array->row + column * array->column;
    return array->data + index * (int64_t)sb_dtype_size(array->dtype);
}

/* Rows of keys or values that follow each other evenly, from one on: steps in elements. */
typedef struct sb_attention_stretch {
    char *data;
    int64_t row, column, count;
} sb_attention_stretch;

/** The stretch of keys (past_k and k) or values (past_v and v) that begins at key `key` of the row's head: on a page, in
 * the past or behind it. On the host. */
sb_attention_stretch sb_attention_find_stretch(const sb_attention_work *work, const sb_attention_row *row,
                                               const sb_attention_array *past, const sb_attention_array *fresh,
                                               int64_t key, int64_t column);

/** Whether scores go to the softmax as the chain leaves them: the scale is then a factor of the exponents' scale, or the
 * scores are given. */
bool sb_attention_is_direct(const sb_attention_work *work);

/* ---- operators ---- */

/** Describes a call of Attention: checks what inference may have had to leave open, and fills in extents and inputs; outputs stay
 * without data. Follows no address, so that inputs may lie on a device. Errors: SHAPE. */
sb_status sb_attention_describe(const sb_call *call, sb_attention_work *work);

/** Whether a node of Attention computes what comes behind the scores in f64, for inputs of `dtype`. */
bool sb_attention_is_wide(const sb_node *node, sb_dtype dtype);

/** Describes a call of an operator. */
typedef sb_status sb_attention_describer(const sb_call *call, sb_attention_work *work);
/** Computes what a described call wants but for the caches. */
typedef sb_status sb_attention_runner(sb_call *call, const sb_attention_work *work);
/** Evaluates a call of Attention or PagedAttention on the host: the caches that are wanted (inputs and outputs are
 * Attention's then), and the rest by `run`. Errors: those of the two, OUT_OF_MEMORY. */
sb_status sb_attention_evaluate(sb_call *call, sb_attention_describer *describe, sb_attention_runner *run);
/** The runner of the definitions. */
sb_status sb_attention_run_defined(sb_call *call, const sb_attention_work *work);

/** The same for FlexAttention. `*between` becomes the type of what its graphs see. */
sb_status sb_flex_attention_describe(const sb_call *call, sb_attention_work *work, sb_dtype *between);
/** The type of what its graphs see, for inputs of `dtype`. */
sb_dtype sb_flex_attention_between(const sb_node *node, sb_dtype dtype);
/** Its graphs, score_mod and prob_mod; each NULL where there is none. */
void sb_flex_attention_graphs(const sb_node *node, const sb_graph **score, const sb_graph **probability);
/** Checks what one of them, of that name, gave: a tensor like the scores, of type `dtype`. Errors: SHAPE. */
sb_status sb_flex_attention_check(const sb_call *call, const sb_attention_work *work, sb_dtype dtype, const char *name,
                                  const sb_value *result);

/** Computes what `work` wants. Extents and arrays have been checked to fit; outputs overlap nothing. Errors:
 * OUT_OF_MEMORY. */
sb_status sb_attention_run(const sb_attention_work *work, sb_workers *workers, sb_error *error);

/** y from probabilities [batch, heads, queries, keys] of any float type in place of weights: chains of fma over keys, in
 * f64 if `wide`, else in f32. */
void sb_attention_mix(const sb_attention_work *work, const sb_attention_array *probabilities, sb_workers *workers);

/** 1/√width as the chains' type has it: a square root and a quotient, each rounded; 1 for a width of 0. */
double sb_attention_default_scale(sb_dtype dtype, int64_t width);

/** The array of a tensor of rank 4 (its axes in that order), or of rank 3 with heads in its last axis. */
sb_attention_array sb_attention_array_of(const sb_tensor *tensor, int64_t heads);

#endif
