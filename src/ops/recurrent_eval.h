/* The reference evaluation of RNN, GRU and LSTM. */
#ifndef SB_OPS_RECURRENT_EVAL_H
#define SB_OPS_RECURRENT_EVAL_H

#include "graph/op.h"

/** Evaluates a node whose params are sb_recurrent_params. */
sb_status sb_recurrent_eval(sb_call *call);

#endif
