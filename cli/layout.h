/* Drawing a directed graph in layers: where its vertices stand and how its edges run. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct layout_vertex {
    double width, height; /* given */
    double x, y;          /* found: the middle of the top edge */
} layout_vertex;

/* A value on its way from the vertex that makes it to those that read it; they share one line as
 * far as they can. */
typedef struct layout_net {
    int source;
    int target_count;
    const int *targets; /* each once, and after the source in the order of vertices */
} layout_net;

/* A piece of a net between two layers: an S-curve from (x0, y0) down to (x1, y1), then straight
 * down to `end`. */
typedef struct layout_curve {
    int net;
    double x0, y0, x1, y1, end;
    bool arrives; /* ends at a vertex */
} layout_curve;

typedef struct layout {
    size_t curve_count;
    layout_curve *curves; /* to be freed; by nets, ascending */
    double width, height;
} layout;

/** Places `vertices`, which are in a topological order. False when memory runs out. */
bool layout_graph(int vertex_count, layout_vertex *vertices, int net_count, const layout_net *nets, layout *layout);

#endif
