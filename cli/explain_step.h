/* What a new token's step is made of: samebit bench --llm --explain-step. */
#ifndef CLI_EXPLAIN_STEP_H
#define CLI_EXPLAIN_STEP_H

#include <jansson.h>

#include "support.h"

/** Kernels of one name that compute nodes of one kind, in all layers. */
typedef struct explained_kernel {
    char *kernel, *node; /* owned; of the node's name, each number is "*" */
    const char *op;      /* the model's; NULL for what is for no node */
    double times;        /* in a step */
    double ns, bytes;    /* of a step, all together; bytes that cannot be spared, 0: not known */
} explained_kernel;

typedef struct explained_step {
    int64_t length; /* positions before the step */
    int steps;      /* that were watched */
    int count, capacity;
    explained_kernel *kernels; /* in the order of the step */
    bool failed;               /* memory has run out */
} explained_step;

/** Watches steps of one token each behind `length` others. `node_bytes` says what a node of a name reads and writes. Exit codes as in
 * options.h, after printing what is wrong. To be freed in any case. */
int explain_step(sb_llm *llm, const sb_session_options *options, int64_t length, const int64_t *tokens,
                 double (*node_bytes)(const void *context, const char *name), const void *context,
                 explained_step *explained);
void free_explained_step(explained_step *explained);

/** A table; `bandwidth` in bytes a second, 0: not known. */
void print_explained_step(const explained_step *explained, double bandwidth);
/** Owned by the caller; NULL: memory has run out. */
json_t *explained_step_json(const explained_step *explained, double bandwidth);

#endif
