/* The reference evaluation of RNN, GRU and LSTM. */
#ifndef IV_OPS_RECURRENT_EVAL_H
#define IV_OPS_RECURRENT_EVAL_H

#include "graph/op.h"

/** Evaluates a node whose params are iv_recurrent_params. */
iv_status iv_recurrent_eval(iv_call *call);

#endif
