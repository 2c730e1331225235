#include "layout.h"

#include <stdlib.h>
#include <string.h>

/* The picture's measures, in pixels. */
#define MARGIN 24.0
#define LAYER_GAP 34.0
#define VERTEX_GAP 22.0
#define RAIL_GAP 12.0

/* Lines that pass layers are led around their vertices by a point in each. A model from anywhere
 * may ask for any number of points: beyond this many, the longest lines run straight. */
#define RAIL_LIMIT 100000

#define ORDER_ROUNDS 24
#define PLACE_ROUNDS 40

/* What stands in a layer: a vertex, or a point where a net passes. */
typedef struct point {
    int layer;
    int vertex; /* -1: a net passes */
    int net;
    int place; /* in its layer, from the left */
    double width, x;
} point;

typedef struct link {
    int net, upper, lower; /* points */
} link;

typedef struct drawing {
    int vertex_count, net_count, layer_count, point_count, link_count;
    layout_vertex *vertices;
    const layout_net *nets;
    int *layers;   /* per vertex */
    int *reach;    /* per net: the layer of its last passing point; that of its source when it has none */
    point *points; /* the vertices first */
    link *links;   /* by nets, ascending */
    int *first_up, *up, *first_down, *down; /* per point: links to its neighbours */
    int *first_in_layer, *in_layer, *best;  /* points by layers, in order */
    double *tops, *bottoms;                 /* per layer */
} drawing;

static void *zeroed(int count, size_t size) {
    return calloc((size_t)count + 1, size);
}

/* ---- layers ---- */

static void assign_layers(drawing *drawing) {
    /* Longest paths. Where nets come in the order of their sources, the second round only finds
     * that nothing is left to do. */
    bool changed = true;
    while (changed) {
        changed = false;
        for (int n = 0; n < drawing->net_count; n++) {
            const layout_net *net = &drawing->nets[n];
            for (int t = 0; t < net->target_count; t++) {
                int least = drawing->layers[net->source] + 1;
                if (drawing->layers[net->targets[t]] < least) {
                    drawing->layers[net->targets[t]] = least;
                    changed = true;
                }
            }
        }
    }
}

/* Moves vertices without predecessors down to the layer above their first reader: shorter lines. */
static bool pull_sources_down(drawing *drawing) {
    char *has_input = zeroed(drawing->vertex_count, 1);
    int *first_reader = zeroed(drawing->vertex_count, sizeof *first_reader);
    bool complete = has_input != NULL && first_reader != NULL;
    for (int v = 0; complete && v < drawing->vertex_count; v++)
        first_reader[v] = -1;
    for (int n = 0; complete && n < drawing->net_count; n++) {
        const layout_net *net = &drawing->nets[n];
        for (int t = 0; t < net->target_count; t++) {
            int layer = drawing->layers[net->targets[t]];
            has_input[net->targets[t]] = 1;
            if (first_reader[net->source] < 0 || layer < first_reader[net->source])
                first_reader[net->source] = layer;
        }
    }
    for (int v = 0; complete && v < drawing->vertex_count; v++) {
        if (!has_input[v] && first_reader[v] > 0)
            drawing->layers[v] = first_reader[v] - 1;
    }
    free(has_input);
    free(first_reader);
    return complete;
}

/* ---- points and links ---- */

static int last_layer(const drawing *drawing, const layout_net *net) {
    int last = drawing->layers[net->source];
    for (int t = 0; t < net->target_count; t++) {
        if (drawing->layers[net->targets[t]] > last)
            last = drawing->layers[net->targets[t]];
    }
    return last;
}

/* Decides how far each net is led by points, within RAIL_LIMIT points in all; returns how many there are. */
static int lead_nets(drawing *drawing) {
    for (int longest = drawing->layer_count;; longest /= 2) {
        long long points = 0;
        for (int n = 0; n < drawing->net_count; n++) {
            int from = drawing->layers[drawing->nets[n].source];
            int passed = last_layer(drawing, &drawing->nets[n]) - from - 1;
            drawing->reach[n] = passed > 0 && passed <= longest ? from + passed : from;
            points += drawing->reach[n] - from;
        }
        if (points <= RAIL_LIMIT)
            return (int)points;
    }
}

static void make_links(drawing *drawing) {
    int point_count = drawing->vertex_count;
    for (int v = 0; v < drawing->vertex_count; v++)
        drawing->points[v] =
            (point){.layer = drawing->layers[v], .vertex = v, .net = -1, .width = drawing->vertices[v].width};
    for (int n = 0; n < drawing->net_count; n++) {
        const layout_net *net = &drawing->nets[n];
        int from = drawing->layers[net->source], first = point_count;
        for (int layer = from + 1; layer <= drawing->reach[n]; layer++, point_count++) {
            drawing->points[point_count] = (point){.layer = layer, .vertex = -1, .net = n};
            int upper = layer == from + 1 ? net->source : point_count - 1;
            drawing->links[drawing->link_count++] = (link){n, upper, point_count};
        }
        for (int t = 0; t < net->target_count; t++) {
            int above = drawing->layers[net->targets[t]] - 1;
            int upper = above == from || above > drawing->reach[n] ? net->source : first + (above - from - 1);
            drawing->links[drawing->link_count++] = (link){n, upper, net->targets[t]};
        }
    }
    drawing->point_count = point_count;
}

/* Lists the links of each point by counting sort. */
static void list_neighbours(drawing *drawing) {
    for (int l = 0; l < drawing->link_count; l++) {
        drawing->first_down[drawing->links[l].upper + 1]++;
        drawing->first_up[drawing->links[l].lower + 1]++;
    }
    for (int p = 0; p < drawing->point_count; p++) {
        drawing->first_down[p + 1] += drawing->first_down[p];
        drawing->first_up[p + 1] += drawing->first_up[p];
    }
    for (int l = 0; l < drawing->link_count; l++) {
        drawing->down[drawing->first_down[drawing->links[l].upper]++] = l;
        drawing->up[drawing->first_up[drawing->links[l].lower]++] = l;
    }
    for (int p = drawing->point_count; p > 0; p--) {
        drawing->first_down[p] = drawing->first_down[p - 1];
        drawing->first_up[p] = drawing->first_up[p - 1];
    }
    drawing->first_down[0] = drawing->first_up[0] = 0;
    for (int p = 0; p < drawing->point_count; p++)
        drawing->first_in_layer[drawing->points[p].layer + 1]++;
    for (int layer = 0; layer < drawing->layer_count; layer++)
        drawing->first_in_layer[layer + 1] += drawing->first_in_layer[layer];
    for (int p = 0; p < drawing->point_count; p++) {
        int layer = drawing->points[p].layer;
        drawing->in_layer[drawing->first_in_layer[layer]++] = p;
    }
    for (int layer = drawing->layer_count; layer > 0; layer--)
        drawing->first_in_layer[layer] = drawing->first_in_layer[layer - 1];
    drawing->first_in_layer[0] = 0;
}

static bool make_points(drawing *drawing) {
    int targets = 0;
    for (int n = 0; n < drawing->net_count; n++)
        targets += drawing->nets[n].target_count;
    int rails = lead_nets(drawing), points = drawing->vertex_count + rails;
    int links = rails + targets;
    drawing->points = zeroed(points, sizeof *drawing->points);
    drawing->links = zeroed(links, sizeof *drawing->links);
    drawing->first_up = zeroed(points + 1, sizeof(int));
    drawing->first_down = zeroed(points + 1, sizeof(int));
    drawing->up = zeroed(links, sizeof(int));
    drawing->down = zeroed(links, sizeof(int));
    drawing->first_in_layer = zeroed(drawing->layer_count + 1, sizeof(int));
    drawing->in_layer = zeroed(points, sizeof(int));
    drawing->best = zeroed(points, sizeof(int));
    drawing->tops = zeroed(drawing->layer_count, sizeof(double));
    drawing->bottoms = zeroed(drawing->layer_count, sizeof(double));
    if (drawing->points == NULL || drawing->links == NULL || drawing->first_up == NULL || drawing->first_down == NULL ||
        drawing->up == NULL || drawing->down == NULL || drawing->first_in_layer == NULL || drawing->in_layer == NULL ||
        drawing->best == NULL || drawing->tops == NULL || drawing->bottoms == NULL)
        return false;
    make_links(drawing);
    list_neighbours(drawing);
    return true;
}

/* ---- the order inside layers ---- */

static void note_places(drawing *drawing) {
    for (int layer = 0; layer < drawing->layer_count; layer++) {
        for (int i = drawing->first_in_layer[layer]; i < drawing->first_in_layer[layer + 1]; i++)
            drawing->points[drawing->in_layer[i]].place = i - drawing->first_in_layer[layer];
    }
}

/* Sorting needs the points at hand; qsort has no context. */
typedef struct sortable {
    double key;
    int place, point;
} sortable;

static int compare_keys(const void *left, const void *right) {
    const sortable *first = left, *second = right;
    if (first->key != second->key)
        return first->key < second->key ? -1 : 1;
    return first->place - second->place;
}

/* The mean place of the neighbours above (or below); its own where there are none. */
static double barycentre(const drawing *drawing, int p, bool above) {
    const int *first = above ? drawing->first_up : drawing->first_down;
    const int *list = above ? drawing->up : drawing->down;
    double sum = 0;
    for (int i = first[p]; i < first[p + 1]; i++) {
        const link *link = &drawing->links[list[i]];
        sum += drawing->points[above ? link->upper : link->lower].place;
    }
    int count = first[p + 1] - first[p];
    return count > 0 ? sum / count : drawing->points[p].place;
}

static void sort_layer(drawing *drawing, int layer, bool above, sortable *room) {
    int first = drawing->first_in_layer[layer];
    int count = drawing->first_in_layer[layer + 1] - first;
    for (int i = 0; i < count; i++) {
        int p = drawing->in_layer[first + i];
        room[i] = (sortable){barycentre(drawing, p, above), i, p};
    }
    qsort(room, (size_t)count, sizeof *room, compare_keys);
    for (int i = 0; i < count; i++) {
        drawing->in_layer[first + i] = room[i].point;
        drawing->points[room[i].point].place = i;
    }
}

static int compare_ints(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

/* Crossings of the links between a layer and the next: inversions, counted with a Fenwick tree.
 * `tree` and `ends` have room for every point and link. */
static long long count_crossings_below(const drawing *drawing, int layer, int *tree, int *ends) {
    int below = drawing->first_in_layer[layer + 2] - drawing->first_in_layer[layer + 1];
    long long crossings = 0, seen = 0;
    memset(tree, 0, ((size_t)below + 1) * sizeof *tree);
    for (int i = drawing->first_in_layer[layer]; i < drawing->first_in_layer[layer + 1]; i++) {
        int p = drawing->in_layer[i], count = 0;
        for (int d = drawing->first_down[p]; d < drawing->first_down[p + 1]; d++) {
            const point *lower = &drawing->points[drawing->links[drawing->down[d]].lower];
            if (lower->layer == layer + 1)
                ends[count++] = lower->place;
        }
        qsort(ends, (size_t)count, sizeof *ends, compare_ints);
        for (int e = 0; e < count; e++) {
            long long not_right = 0;
            for (int at = ends[e] + 1; at > 0; at -= at & -at)
                not_right += tree[at];
            crossings += seen - not_right;
        }
        for (int e = 0; e < count; e++, seen++) {
            for (int at = ends[e] + 1; at <= below; at += at & -at)
                tree[at]++;
        }
    }
    return crossings;
}

static long long count_crossings(const drawing *drawing, int *tree, int *ends) {
    long long crossings = 0;
    for (int layer = 0; layer + 1 < drawing->layer_count; layer++)
        crossings += count_crossings_below(drawing, layer, tree, ends);
    return crossings;
}

/* Sweeps down and up, each layer sorted by the mean place of its neighbours, and keeps the order
 * with the fewest crossings. */
static bool order_layers(drawing *drawing) {
    sortable *room = zeroed(drawing->point_count, sizeof *room);
    int *tree = zeroed(drawing->point_count + 1, sizeof *tree);
    int *ends = zeroed(drawing->link_count, sizeof *ends);
    bool complete = room != NULL && tree != NULL && ends != NULL;
    size_t bytes = (size_t)drawing->point_count * sizeof(int);
    long long fewest = -1;
    for (int round = 0, idle = 0; complete && round < ORDER_ROUNDS && idle < 6; round++) {
        note_places(drawing);
        for (int i = 1; i < drawing->layer_count; i++)
            sort_layer(drawing, round % 2 == 0 ? i : drawing->layer_count - 1 - i, round % 2 == 0, room);
        long long crossings = count_crossings(drawing, tree, ends);
        idle++;
        if (fewest < 0 || crossings < fewest) {
            fewest = crossings;
            idle = 0;
            memcpy(drawing->best, drawing->in_layer, bytes);
        }
        if (fewest == 0)
            break;
    }
    if (complete && fewest >= 0)
        memcpy(drawing->in_layer, drawing->best, bytes);
    note_places(drawing);
    free(room);
    free(tree);
    free(ends);
    return complete;
}

/* ---- positions ---- */

/* A run of neighbouring points that touch, in isotonic regression. */
typedef struct block {
    double sum, weight; /* weighted sum of wanted positions */
    int count;
} block;

static double gap_between(const point *left, const point *right) {
    bool rail = left->vertex < 0 || right->vertex < 0;
    return (left->width + right->width) / 2 + (rail ? RAIL_GAP : VERTEX_GAP);
}

/* Longer lines pull harder, so that they become straight first; then chains, in which each vertex
 * has one neighbour. */
static double link_weight(const drawing *drawing, const link *link) {
    bool upper = drawing->points[link->upper].vertex < 0;
    bool lower = drawing->points[link->lower].vertex < 0;
    bool chain = drawing->first_down[link->upper + 1] - drawing->first_down[link->upper] == 1 &&
                 drawing->first_up[link->lower + 1] - drawing->first_up[link->lower] == 1;
    return upper && lower ? 8 : upper || lower ? 2 : chain ? 4 : 1;
}

/* Where a point would like to be: the mean of its neighbours. *weight 0: it does not care. */
static double wanted_x(const drawing *drawing, int p, bool above, bool below, double *weight) {
    double sum = 0;
    *weight = 0;
    for (int i = drawing->first_up[p]; above && i < drawing->first_up[p + 1]; i++) {
        const link *link = &drawing->links[drawing->up[i]];
        double pull = link_weight(drawing, link);
        sum += pull * drawing->points[link->upper].x;
        *weight += pull;
    }
    for (int i = drawing->first_down[p]; below && i < drawing->first_down[p + 1]; i++) {
        const link *link = &drawing->links[drawing->down[i]];
        double pull = link_weight(drawing, link);
        sum += pull * drawing->points[link->lower].x;
        *weight += pull;
    }
    return *weight > 0 ? sum / *weight : drawing->points[p].x;
}

/* Puts the layer's points as near as possible (least squares) to where they want to be without
 * touching: with the least distances taken off, that is isotonic regression, solved by pooling
 * neighbours that are in each other's way. */
static void place_layer(drawing *drawing, int layer, bool above, bool below, block *blocks) {
    int first = drawing->first_in_layer[layer], end = drawing->first_in_layer[layer + 1];
    int count = 0;
    double offset = 0;
    for (int i = first; i < end; i++) {
        const point *point = &drawing->points[drawing->in_layer[i]];
        double weight, wanted = wanted_x(drawing, drawing->in_layer[i], above, below, &weight);
        if (i > first)
            offset += gap_between(&drawing->points[drawing->in_layer[i - 1]], point);
        weight = weight > 0 ? weight : 0.1;
        blocks[count++] = (block){(wanted - offset) * weight, weight, 1};
        while (count > 1 &&
               blocks[count - 2].sum / blocks[count - 2].weight > blocks[count - 1].sum / blocks[count - 1].weight) {
            blocks[count - 2].sum += blocks[count - 1].sum;
            blocks[count - 2].weight += blocks[count - 1].weight;
            blocks[count - 2].count += blocks[count - 1].count;
            count--;
        }
    }
    offset = 0;
    for (int b = 0, i = first; b < count; b++) {
        for (int k = 0; k < blocks[b].count; k++, i++) {
            point *point = &drawing->points[drawing->in_layer[i]];
            if (i > first)
                offset += gap_between(&drawing->points[drawing->in_layer[i - 1]], point);
            point->x = blocks[b].sum / blocks[b].weight + offset;
        }
    }
}

/* Side by side around 0, to begin with. */
static void spread_layer(drawing *drawing, int layer) {
    int first = drawing->first_in_layer[layer], end = drawing->first_in_layer[layer + 1];
    double x = 0;
    for (int i = first; i < end; i++) {
        point *point = &drawing->points[drawing->in_layer[i]];
        x += i > first ? gap_between(&drawing->points[drawing->in_layer[i - 1]], point) : 0;
        point->x = x;
    }
    for (int i = first; i < end; i++)
        drawing->points[drawing->in_layer[i]].x -= x / 2;
}

static bool place_points(drawing *drawing) {
    block *blocks = zeroed(drawing->point_count, sizeof *blocks);
    if (blocks == NULL)
        return false;
    for (int layer = 0; layer < drawing->layer_count; layer++)
        spread_layer(drawing, layer);
    for (int round = 0; round < PLACE_ROUNDS; round++) {
        bool downwards = round % 2 == 0, rough = round < 4;
        for (int i = 0; i < drawing->layer_count; i++)
            place_layer(drawing, downwards ? i : drawing->layer_count - 1 - i, downwards || !rough,
                        !downwards || !rough, blocks);
    }
    free(blocks);
    return true;
}

/* Layers from top to bottom; vertices in the middle of their layer. */
static void place_layers(drawing *drawing, layout *layout) {
    double left = 0, right = 0, y = MARGIN;
    for (int p = 0; p < drawing->point_count; p++) {
        const point *point = &drawing->points[p];
        left = p == 0 || point->x - point->width / 2 < left ? point->x - point->width / 2 : left;
        right = p == 0 || point->x + point->width / 2 > right ? point->x + point->width / 2 : right;
    }
    for (int layer = 0; layer < drawing->layer_count; layer++) {
        double height = 0;
        for (int i = drawing->first_in_layer[layer]; i < drawing->first_in_layer[layer + 1]; i++) {
            int vertex = drawing->points[drawing->in_layer[i]].vertex;
            if (vertex >= 0 && drawing->vertices[vertex].height > height)
                height = drawing->vertices[vertex].height;
        }
        drawing->tops[layer] = y;
        drawing->bottoms[layer] = y + height;
        y += height + LAYER_GAP;
    }
    for (int p = 0; p < drawing->point_count; p++) {
        point *point = &drawing->points[p];
        point->x += MARGIN - left;
        if (point->vertex < 0)
            continue;
        layout_vertex *vertex = &drawing->vertices[point->vertex];
        double middle = (drawing->tops[point->layer] + drawing->bottoms[point->layer]) / 2;
        vertex->x = point->x;
        vertex->y = middle - vertex->height / 2;
    }
    layout->width = right - left + 2 * MARGIN;
    layout->height = y - LAYER_GAP + MARGIN;
}

/* ---- curves ---- */

/* Where the `index`-th of `count` lines meets a vertex: spread over the middle of its edge. */
static double port(const point *point, int index, int count) {
    double room = point->width * 0.5, step = count > 1 ? room / (count - 1) : 0;
    step = step > 14 ? 14 : step;
    return point->x + (index - (count - 1) / 2.0) * step;
}

/* How many of the lines that arrive at the link's lower end come from further left. */
static int arrival_rank(const drawing *drawing, int l) {
    int lower = drawing->links[l].lower, rank = 0;
    double x = drawing->points[drawing->links[l].upper].x;
    for (int i = drawing->first_up[lower]; i < drawing->first_up[lower + 1]; i++) {
        double other = drawing->points[drawing->links[drawing->up[i]].upper].x;
        rank += other < x || (other == x && drawing->up[i] < l);
    }
    return rank;
}

static bool make_curves(const drawing *drawing, layout *layout) {
    layout->curves = zeroed(drawing->link_count, sizeof *layout->curves);
    if (layout->curves == NULL)
        return false;
    layout->curve_count = (size_t)drawing->link_count;
    for (int l = 0; l < drawing->link_count; l++) {
        const link *link = &drawing->links[l];
        const point *upper = &drawing->points[link->upper], *lower = &drawing->points[link->lower];
        layout_curve *curve = &layout->curves[l];
        curve->net = link->net;
        curve->x0 = upper->x;
        curve->y0 = upper->vertex >= 0 ? drawing->vertices[upper->vertex].y + drawing->vertices[upper->vertex].height
                                       : drawing->bottoms[upper->layer];
        curve->arrives = lower->vertex >= 0;
        if (curve->arrives) {
            int count = drawing->first_up[link->lower + 1] - drawing->first_up[link->lower];
            /* A vertex that thousands of lines reach shows them as one. */
            curve->x1 = count > 64 ? lower->x : port(lower, arrival_rank(drawing, l), count);
            curve->y1 = curve->end = drawing->vertices[lower->vertex].y;
        } else {
            curve->x1 = lower->x;
            curve->y1 = drawing->tops[lower->layer];
            curve->end = drawing->bottoms[lower->layer];
        }
    }
    return true;
}

static void free_drawing(drawing *drawing) {
    free(drawing->layers);
    free(drawing->reach);
    free(drawing->points);
    free(drawing->links);
    free(drawing->first_up);
    free(drawing->up);
    free(drawing->first_down);
    free(drawing->down);
    free(drawing->first_in_layer);
    free(drawing->in_layer);
    free(drawing->best);
    free(drawing->tops);
    free(drawing->bottoms);
}

bool layout_graph(int vertex_count, layout_vertex *vertices, int net_count, const layout_net *nets, layout *layout) {
    drawing drawing = {.vertex_count = vertex_count,
                       .net_count = net_count,
                       .vertices = vertices,
                       .nets = nets,
                       .layers = zeroed(vertex_count, sizeof(int)),
                       .reach = zeroed(net_count, sizeof(int))};
    *layout = (struct layout){0};
    bool complete = drawing.layers != NULL && drawing.reach != NULL;
    if (complete) {
        assign_layers(&drawing);
        complete = pull_sources_down(&drawing);
    }
    for (int v = 0; complete && v < vertex_count; v++) {
        if (drawing.layers[v] >= drawing.layer_count)
            drawing.layer_count = drawing.layers[v] + 1;
    }
    complete = complete && make_points(&drawing) && order_layers(&drawing) && place_points(&drawing);
    if (complete) {
        place_layers(&drawing, layout);
        complete = make_curves(&drawing, layout);
    }
    free_drawing(&drawing);
    return complete;
}
