/* Recording every value of a run. */
#ifndef CLI_RECORDING_H
#define CLI_RECORDING_H

#include "reference.h"
#include "support.h"

/** Runs the model once and adds its inputs, every value that a node makes and its outputs to
 * `recorded`, in that order, with the nodes that made them. With `on_cpu` the run is on the CPU,
 * whatever the arguments say of devices. Inputs that are not given are made up. Exit codes; the
 * caller frees `recorded` in any case. */
int record_values(const arguments *arguments, const sb_model_options *model_options,
                  const sb_session_options *session_options, bool on_cpu, reference *recorded);

/** `compare --record FILE`: the same, into a file. Exit codes. */
int record_to_file(const arguments *arguments, const sb_model_options *model_options,
                   const sb_session_options *session_options);

#endif
