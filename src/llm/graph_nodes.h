/* What the pieces of a language model's graph are made with. */
#ifndef SB_LLM_GRAPH_NODES_H
#define SB_LLM_GRAPH_NODES_H

#include "llm/graph.h"

typedef sb_builder_value value;

/* A graph in the making. */
typedef struct building {
    const sb_llm_plan *plan;
    const sb_llm_config *config;
    sb_builder *builder;
    value inputs[SB_LLM_INPUTS];
    value cosines[2], sines[2]; /* of layers without a window, and with one */
    sb_builder_variable next;   /* tokens that wait for a step … */
    value waiting;              /* … as the step finds them */
    int64_t layer;              /* -1: of none */
} building;

/** Adds a node called `what` of the layer, with one output: of the ONNX standard, but for MatMulF32 and those of pages, which are
 * Samebit's. */
sb_status sb_llm_node(building *b, const char *op, const char *what, int inputs, const value *from, int attributes,
                      const sb_builder_attribute *list, value *to, sb_error *error);
/** The same with `outputs` outputs. */
sb_status sb_llm_node_of_several(building *b, const char *op, const char *what, int inputs, const value *from,
                                 int attributes, const sb_builder_attribute *list, int outputs, value *to,
                                 sb_error *error);
/** Adds a constant called `what` of the layer, and drops the caller's reference, also on failure. */
sb_status sb_llm_constant(building *b, const char *what, sb_tensor *tensor, value *to, sb_error *error);
/** A constant list of whole numbers. */
sb_status sb_llm_integers(building *b, const char *what, int64_t count, const int64_t *numbers, value *to,
                          sb_error *error);

/** x times the weight's transpose, plus its bias where there is one. */
sb_status sb_llm_project(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error);
/** The same in f32, whatever x is: sums that are not rounded to its type. Of a weight without a bias. */
sb_status sb_llm_project_f32(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error);
/** The norm of that role over the last axis. */
sb_status sb_llm_normalize(building *b, sb_llm_role role, const char *what, value x, value *y, sb_error *error);

/** Queries and keys are turned by their positions, where the family does that; keys and values of the new rows go into the cache,
 * and queries see what it has then: the one place that knows how the cache lies. All are [1, rows, heads · width]. */
sb_status sb_llm_attend(building *b, value queries, value keys, value values, value *y, sb_error *error);

#endif
