#include <samebit/version.h>

const char *sb_version(void) {
    return SAMEBIT_VERSION;
}

int sb_numerics_version(void) {
    return 2;
}
