/* The kernels of ConvInteger and QLinearConv. */
#ifndef SB_CPU_CONTRACTION_INTEGER_CONV_H
#define SB_CPU_CONTRACTION_INTEGER_CONV_H

#include "kernel/kernel.h"

bool sb_integer_conv_supports(const sb_kernel_query *query, char *why);
sb_status sb_integer_conv_derives(const sb_kernel_query *query, sb_derived_form *form, sb_error *error);
sb_status sb_integer_conv_derive(sb_call *call, const sb_tensor *from, void *derived);
sb_status sb_integer_conv_launch(sb_call *call);

#endif
