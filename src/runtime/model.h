/* The inside of a model. See <invar/model.h> for the contract. */
#ifndef IV_RUNTIME_MODEL_H
#define IV_RUNTIME_MODEL_H

#include <invar/model.h>

#include "runtime/program.h"

struct iv_model {
    atomic_int references;
    iv_scope *scope; /* of the graph's facts */
    iv_graph *graph;
    iv_program *program;
    int input_count, output_count;
    iv_value_description *descriptions; /* inputs, then outputs */
};

iv_model *iv_model_retain(iv_model *model);

#endif
