/* Attention as exporters write it in single nodes: MatMul, Mul or Div by a number, Add of a mask, Softmax, MatMul. Every node
 * keeps its own rounding, so this is another computation than the operator Attention (docs/numerics.md, section 10). Which
 * nodes these are is said here once, for the pass that gathers them and for kernels that compute them together. */
#ifndef SB_OPS_ATTENTION_NODES_H
#define SB_OPS_ATTENTION_NODES_H

/* Up to so many keys, nodes are gathered whatever the number of queries. */
#define SB_ATTENTION_NODE_KEYS 256
/* From so many queries on, nodes are gathered whatever the number of keys, if both are known. */
#define SB_ATTENTION_NODE_ROWS 64
/* What is done to scores ahead of Softmax, in the order of the nodes. */
#define SB_ATTENTION_NODE_STEPS 4
typedef enum sb_attention_operation {
    SB_ATTENTION_MULTIPLY,
    SB_ATTENTION_DIVIDE,
    SB_ATTENTION_ADD
} sb_attention_operation;

#if !defined(__cplusplus)
#include "graph/op.h"

typedef struct sb_attention_nodes {
    sb_value_id queries, keys,
        values; /* the products' left and right factors: … × rows × width, … × width × keys, … × keys × … */
    int step_count;
    struct {
        sb_attention_operation operation;
        sb_value_id operand; /* scores · number, scores / number, scores + addend, or addend + scores */
    } steps[SB_ATTENTION_NODE_STEPS];
} sb_attention_nodes;

/** Whether these nodes of `graph` are attention of f16 or bf16, each the only reader that counts of the one before: `scores` a
 * MatMul, or a Fused node of one with steps behind it; `softmax` over the last axis; `result` a MatMul of that and of values.
 * Numbers have one element. The values are those of `graph`. */
bool sb_attention_nodes_match(const sb_graph *graph, const sb_node *scores, const sb_node *softmax,
                              const sb_node *result, sb_attention_nodes *nodes);
#endif

#endif
