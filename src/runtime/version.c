#include <invar/version.h>

const char *iv_version(void) {
    return INVAR_VERSION;
}

int iv_numerics_version(void) {
    return 1;
}
