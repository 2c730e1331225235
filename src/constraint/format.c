/* RFC 3339 and its neighbours, as far as patterns say them: a date is one of the calendar, a second is below 60. */
#include "constraint/format.h"

#include <string.h>

/* Years from 0001 to 9999, and those of them with a 29 February. */
#define YEAR "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
#define FOURTH "(0[48]|[2468][048]|[13579][26])"
#define LEAP_YEAR "([0-9]{2}" FOURTH "|" FOURTH "00)"
#define DATE                                                                                                           \
    "(" YEAR                                                                                                           \
    "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"         \
    "|" LEAP_YEAR "-02-29)"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
#define OFFSET "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" CLOCK OFFSET "$"},
    {"date-time", "^" DATE "T" CLOCK OFFSET "$"},
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
    {"email", "^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@(" LABEL "\\.)+[A-Za-z]{2,24}$"},
    {"ipv4", "^(" OCTET "\\.){3}" OCTET "$"},
};

const char sb_format_names[] = "date, time, date-time, uuid, email, ipv4";

const char *sb_format_pattern(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].pattern;
    }
    return NULL;
}
