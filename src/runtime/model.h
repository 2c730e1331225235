/* The inside of a model. See <samebit/model.h> for the contract. */
#ifndef SB_RUNTIME_MODEL_H
#define SB_RUNTIME_MODEL_H

#include <samebit/model.h>

#include "graph/variable.h"
#include "runtime/program.h"

/* One of the model's entry graphs, ready to run. */
typedef struct sb_model_entry {
    const char *name; /* of sb_model::graphs, as is the graph */
    sb_graph *graph;
    sb_program *program;
    int input_count, output_count;
    sb_value_description *descriptions; /* inputs, then outputs */
} sb_model_entry;

/* A constant of the model as it was before the passes. */
typedef struct sb_model_constant {
    sb_tensor *tensor; /* NULL: it has been digested */
    unsigned char digest[32];
} sb_model_constant;

/* Entry 0 is what the public functions describe and sessions run. */
struct sb_model {
    atomic_int references;
    sb_graphs graphs;            /* with the variables, and what each graph reads and updates of them */
    sb_model_entry *entries;     /* graphs.count */
    pthread_mutex_t digest_lock; /* of what follows: runtime/model_digest.h */
    bool digested;
    unsigned char digest[32]; /* of the model; until that is worked out, of its graphs without their constants … */
    size_t constant_count, constant_capacity;
    sb_model_constant *constants; /* … which are these */
};

/* Where the graphs of a model come from: fills `*graphs`, which is empty, with at least one entry, all facts inferred.
 * What it leaves there is freed, also when it fails. */
typedef sb_status sb_model_source(void *context, sb_graphs *graphs, sb_error *error);

/** Makes a model of what `source` gives: settles the variables that no graph updates, runs the passes and prepares
 * programs, all within the memory limit of `options` (NULL: the defaults). The caller owns the model. Errors: those of
 * the source, of sb_graphs_settle and of the passes; INVALID_ARGUMENT for the options; OUT_OF_MEMORY. */
sb_status sb_model_make(sb_model_source *source, void *context, const sb_model_options *options, sb_model **model,
                        sb_error *error);

sb_model *sb_model_retain(sb_model *model);

#endif
