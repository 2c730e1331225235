/* A picture of a model's graph. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <samebit/samebit.h>

#include <stdio.h>

/** Writes the graph as an SVG picture: layers from top to bottom, a colour for each family of
 * operators, and what is known of a node as its tooltip. False when memory runs out; whether the
 * file could be written is the stream's to tell. */
bool draw_graph(const sb_inspection *graph, FILE *file);

/** Whether a pass made the node of others, which are its only body. */
bool is_fused(const sb_inspected_node *node);

/** The family of an operator, as an index into the colours of `op_family_name`. */
int op_family(const char *op);
/** How many families there are. */
int op_family_count(void);
/** "contraction", "activation", …; and its colour, as "#rrggbb", on which white text can be read. */
const char *op_family_name(int family);
const char *op_family_color(int family);

#endif
