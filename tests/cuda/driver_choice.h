/* Which driver a test runs over: the fake one, or the one that its argument names. Include after cmocka.h. */
#ifndef DRIVER_CHOICE_H
#define DRIVER_CHOICE_H

#include "support/must.h"
#include "with_fake.h"

static const char *library = FAKE_CUDA;

static inline bool is_fake(void) {
    return strcmp(library, FAKE_CUDA) == 0;
}

#endif
