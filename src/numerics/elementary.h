/* All elementary functions. */
#ifndef SB_NUMERICS_ELEMENTARY_H
#define SB_NUMERICS_ELEMENTARY_H

#include "error_function.h"
#include "error_function_f64.h"
#include "exp_log.h"
#include "exp_log_f64.h"
#include "hyperbolic.h"
#include "hyperbolic_f64.h"
#include "logistic.h"
#include "logistic_f64.h"
#include "power.h"
#include "power_f64.h"
#include "trigonometric.h"
#include "trigonometric_f64.h"
#include "wide_exp_log.h"

#endif
