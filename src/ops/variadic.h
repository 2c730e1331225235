/* What the loops of Max, Min, Sum and Mean share with their definition (variadic.c). */
#ifndef SB_OPS_VARIADIC_H
#define SB_OPS_VARIADIC_H

#include "ops/loops.h"

typedef struct sb_variadic_params {
    int inputs;
} sb_variadic_params;

/* Loops of any number of inputs, at least one; the context is an sb_variadic_params. */
enum { SB_VARIADIC_MAX, SB_VARIADIC_MIN, SB_VARIADIC_SUM, SB_VARIADIC_MEAN, SB_VARIADIC_COUNT };
SB_DECLARE_LOOPS(sb_variadic_loops, SB_VARIADIC_COUNT)

#endif
