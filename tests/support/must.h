/* MUST(call): a call whose last argument is `error`, and which must succeed. ASSERT_SAYS(error, text): what a failure says has the
 * text in it. Include after cmocka.h. */
#ifndef SUPPORT_MUST_H
#define SUPPORT_MUST_H

#include <string.h>

#include <samebit/error.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""}, *error = &error_;                                                               \
        if ((call) != SB_OK)                                                                                           \
            fail_msg("%s", error_.message);                                                                            \
    } while (0)

#define ASSERT_SAYS(error, text)                                                                                       \
    do {                                                                                                               \
        if (strstr((error).message, text) == NULL)                                                                     \
            fail_msg("line %d: '%s' does not say '%s'", __LINE__, (error).message, text);                              \
    } while (0)

#endif
