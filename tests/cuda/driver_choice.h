/* Which driver a test runs over: the fake one, or the one that its argument names. Include after cmocka.h. */
#ifndef DRIVER_CHOICE_H
#define DRIVER_CHOICE_H

#include "with_fake.h"

static const char *library = FAKE_CUDA;

static inline bool is_fake(void) {
    return strcmp(library, FAKE_CUDA) == 0;
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        iv_error error_ = {IV_OK, ""}, *error = &error_;                                           \
        if ((call) != IV_OK)                                                                       \
            fail_msg("%s", error_.message);                                                        \
    } while (0)

#endif
