/* MUST(call): a call whose last argument is `error`, and which must succeed. Include after cmocka.h. */
#ifndef SUPPORT_MUST_H
#define SUPPORT_MUST_H

#include <samebit/error.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""}, *error = &error_;                                                               \
        if ((call) != SB_OK)                                                                                           \
            fail_msg("%s", error_.message);                                                                            \
    } while (0)

#endif
