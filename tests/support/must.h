/* MUST(call): a call whose last argument is `error`, and which must succeed. Include after cmocka.h. */
#ifndef SUPPORT_MUST_H
#define SUPPORT_MUST_H

#include <invar/error.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        iv_error error_ = {IV_OK, ""}, *error = &error_;                                           \
        if ((call) != IV_OK)                                                                       \
            fail_msg("%s", error_.message);                                                        \
    } while (0)

#endif
