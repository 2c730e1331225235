/* The kernel of NonMaxSuppression. */
#ifndef SB_CPU_REGIONS_SUPPRESSION_H
#define SB_CPU_REGIONS_SUPPRESSION_H

#include "kernel/kernel.h"

bool sb_suppression_supports(const sb_kernel_query *query, char *why);
sb_status sb_suppression_launch(sb_call *call);

#endif
