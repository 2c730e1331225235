/* What the kernels of PagedAppend share with its definition: its parts, each as a call of the operator that it is. */
#ifndef SB_OPS_PAGED_APPEND_H
#define SB_OPS_PAGED_APPEND_H

#include "graph/op.h"

enum {
    SB_APPEND_KEY_CACHE,
    SB_APPEND_VALUE_CACHE,
    SB_APPEND_QUERIES,
    SB_APPEND_KEYS,
    SB_APPEND_VALUES,
    SB_APPEND_STARTS,
    SB_APPEND_BEGINS,
    SB_APPEND_TABLE,
    SB_APPEND_COSINES,
    SB_APPEND_SINES,
    SB_APPEND_POSITIONS,
    SB_APPEND_INPUTS
};

/* Outputs: the caches as the inputs of the same numbers, and the queries. */
enum { SB_APPEND_TURNED = 2, SB_APPEND_OUTPUTS };

#define SB_APPEND_PART_INPUTS 5

/* A call of RotaryEmbedding (of queries or keys) or of PagedScatter (onto a cache), for what describes such calls: it reports
 * failures as the whole's, and makes no outputs. It refers to itself, so it stays where it is. */
typedef struct sb_append_part {
    sb_node node;
    sb_value_id ids[SB_APPEND_PART_INPUTS];
    sb_value inputs[SB_APPEND_PART_INPUTS], output;
    sb_call call;
} sb_append_part;

/** The rotation of input `rows`, SB_APPEND_QUERIES or SB_APPEND_KEYS, into `to`, which is borrowed. */
void sb_append_rotation(const sb_call *whole, int rows, sb_tensor *to, sb_append_part *part);
/** The writing of `rows`, borrowed, onto a cache: SB_APPEND_KEY_CACHE or SB_APPEND_VALUE_CACHE. */
void sb_append_scatter(const sb_call *whole, int cache, sb_tensor *rows, sb_append_part *part);

/** Checks that queries, keys and values have the same rows, wherever they lie. Errors: SHAPE. */
sb_status sb_append_check_rows(const sb_call *whole);

/** Checks everything that may be wrong with a call on the host, before anything is written. */
sb_status sb_append_check(const sb_call *whole);

#endif
