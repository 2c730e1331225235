/* All elementary functions. */
#ifndef IV_NUMERICS_ELEMENTARY_H
#define IV_NUMERICS_ELEMENTARY_H

#include "error_function.h"
#include "exp_log.h"
#include "hyperbolic.h"
#include "logistic.h"
#include "power.h"
#include "trigonometric.h"
#include "wide_exp_log.h"

#endif
