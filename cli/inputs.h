/* Inputs of a model from the command line: --input and --set. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "support.h"

#define INPUT_OPTIONS                                                                                                  \
    {"input", "[NAME=]FILE", true,                                                                                     \
     "Read an input from a .npy, .npz or .pb file; a model's only input needs no NAME, FILE.npz alone holds "          \
     "inputs by their names, and - is a .npy or .npz file from standard input"},                                       \
    {                                                                                                                  \
        "set", "SYMBOL=N", true, "Require (or, where inputs are made up, use) this value of a symbolic extent"         \
    }

/** Checks every --set: SYMBOL=N with a symbol of the model's inputs. Exit codes as below. */
int check_settings(const arguments *arguments, const sb_model *model);

/** Reads the inputs that --input gives into `values` (one per model input, nothing at first; the
 * caller releases them even on failure). Returns EXIT_RIGHT, or prints what is wrong and returns
 * another exit code. */
int read_given_inputs(const arguments *arguments, const sb_model *model, sb_value *values);

/** Checks extents against --set, and sees to inputs that are still nothing: with `make_up` they are
 * filled with fixed pseudo-random numbers (symbols without a value become 1), else they are an
 * error. Exit codes as above. */
int complete_inputs(const arguments *arguments, const sb_model *model, bool make_up, sb_value *values);

/** Both, one after the other. */
int read_inputs(const arguments *arguments, const sb_model *model, bool make_up, sb_value *values);

#endif
