/* Whether a plan's run is for the device at all. */
#ifndef SB_RUNTIME_JUDGEMENT_H
#define SB_RUNTIME_JUDGEMENT_H

#include "runtime/plan.h"

/** Estimates what the planned run takes on both sides by the registry `cost`, and notes it in the plan; where the CPU is
 * quicker, the reason becomes sb_plan::stays. The facts are there, the steps are not yet placed. Does nothing to plans
 * with an input on the device or with open extents. Errors: OUT_OF_MEMORY. */
sb_status sb_plan_judge(sb_plan *plan, const sb_program *program, const sb_placement *placement, const sb_value *inputs,
                        sb_error *error);

#endif
