/* A contraction (MatMul, Gemm, Conv) as a kernel meets it: alone, or as the first node in the body of a Fused node,
 * with element-wise nodes behind it that run on its rows while they are in the cache. */
#ifndef SB_KERNEL_CONTRACTION_CONTRACTION_NODE_H
#define SB_KERNEL_CONTRACTION_CONTRACTION_NODE_H

#include "kernel/kernel.h"

typedef struct sb_contraction_node {
    const sb_node *node;  /* the contraction */
    const sb_graph *body; /* NULL when it stands alone */
} sb_contraction_node;

/** The contraction that `node` is or begins with; both belong to the node. */
sb_contraction_node sb_contraction_node_of(const sb_node *node);

/** Whether it is a MatMul or a Gemm, alone or before other nodes, or a MatMulF32. */
bool sb_contraction_node_is_matmul(const sb_contraction_node *contraction);

/** Which input of the node the contraction's input `input` is; -1 when it is omitted, or a constant of the body. */
int sb_contraction_node_input(const sb_contraction_node *contraction, int input);

/** What is known of the contraction's input `input`; NULL when it is omitted. */
const sb_fact *sb_contraction_node_fact(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                        int input);

/** The tensor of the contraction's input `input`, borrowed; NULL when it is omitted. */
sb_tensor *sb_contraction_node_tensor(const sb_contraction_node *contraction, const sb_call *call, int input);

/** The Fused node's input that the nodes behind an f32 contraction add to it whole, and read nowhere
 * else, so that the result may take over its memory; -1 if there is none. */
int sb_contraction_node_addend(const sb_contraction_node *contraction, const sb_kernel_query *query);

#endif
