/* The structs that the kernels of selection.cu take. */
#ifndef SB_CUDA_MOVING_SELECTION_PARAMETERS_H
#define SB_CUDA_MOVING_SELECTION_PARAMETERS_H

#include "cuda/common/parameters.h"

/* Items that a thread looks at. */
#define SB_CUDA_SELECTION_CHUNK 64
/* Threads that sum up counts, or go through boxes. */
#define SB_CUDA_SELECTION_THREADS 256

/* Items of which some are taken: those of which a bit of the mask is set. */
typedef struct sb_cuda_selection {
    int64_t items, chunks;
    const char *data; /* packed */
    uint64_t mask;
    int32_t size;    /* of an item, in bytes */
    int64_t *counts; /* [chunks + 1]: of each chunk; then of those ahead of it, and last of all */
    int64_t *total;  /* of all, where the host reads it */
    int64_t *list;   /* the items that are taken, in their order */
} sb_cuda_selection;

/* NonZero's places of those items: [rank, taken]. */
typedef struct sb_cuda_places {
    const int64_t *list;
    int64_t taken;
    int64_t dims[SB_CUDA_RANK];
    int32_t rank;
    int64_t *out;
} sb_cuda_places;

/* Compress: [outer, taken, inner] of [outer, extent, inner], all packed. */
typedef struct sb_cuda_kept {
    const int64_t *list;
    int64_t elements, taken, extent, inner;
    const char *in;
    char *out;
} sb_cuda_kept;

/* NonMaxSuppression: a block of threads for each batch element and class. */
typedef struct sb_cuda_suppression {
    int64_t planes, classes, boxes, most; /* planes: [batch, classes]; most: that are chosen of one */
    const float *corners, *scores;        /* [batch, boxes, 4], [batch, classes, boxes] */
    float overlap, least;
    int32_t has_least, centred;
    uint8_t *alive;  /* [planes, boxes]: neither chosen nor suppressed */
    int64_t *chosen; /* [planes, most] */
    int64_t *counts; /* [planes + 1], as in sb_cuda_selection */
    int64_t *out;    /* [chosen, 3] */
} sb_cuda_suppression;

#endif
