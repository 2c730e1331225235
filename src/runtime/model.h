/* The inside of a model. See <samebit/model.h> for the contract. */
#ifndef SB_RUNTIME_MODEL_H
#define SB_RUNTIME_MODEL_H

#include <samebit/model.h>

#include "runtime/program.h"

struct sb_model {
    atomic_int references;
    sb_scope *scope; /* of the graph's facts */
    sb_graph *graph;
    sb_program *program;
    int input_count, output_count;
    sb_value_description *descriptions; /* inputs, then outputs */
};

sb_model *sb_model_retain(sb_model *model);

#endif
