/* Sessions on a device of the driver that a test chose: the fake one, or the one that its argument names, for which the
 * library needs kernels of its own (tools/gpu-run). Include after cmocka.h. */
#ifndef SESSION_DRIVER_H
#define SESSION_DRIVER_H

#include "driver_choice.h"
#include "session_support.h"

static inline sb_device *open_on_driver(void) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device;
    options.cuda_driver = library;
    MUST(sb_device_open(&options, 0, &device, error));
    return device;
}

/* Around a group's tests: a real driver takes its time to start a device that nobody uses. */
static inline int keep_device(void **kept) {
    *kept = is_fake() ? NULL : open_on_driver();
    return 0;
}

static inline int let_go_of_device(void **kept) {
    sb_device_release(*kept);
    return 0;
}

static inline setting start_on_driver(void) {
    setting s = {.fake = is_fake() ? fake_with_kernels() : NULL};
    s.blocks = sb_allocation_count().live_blocks;
    s.device = open_on_driver();
    return s;
}

#endif
