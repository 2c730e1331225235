/* Options of functions that look for devices. */
#ifndef SB_API_DEVICE_OPTIONS_H
#define SB_API_DEVICE_OPTIONS_H

#include <samebit/device.h>

#include "base/configuration.h"

/** Reads a caller's options over the defaults in `options`, NULL leaves these, and the environment where they leave
 * something open. Errors: INVALID_ARGUMENT. */
sb_status sb_device_read_options(const sb_device_options *given, sb_device_options *options, sb_error *error);

#endif
