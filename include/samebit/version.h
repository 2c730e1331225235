#ifndef SAMEBIT_VERSION_H
#define SAMEBIT_VERSION_H

#include <samebit/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The library's version, such as "0.1.0". Static storage. */
SB_API const char *sb_version(void);
/** The version of the numerics contract (docs/numerics.md). Outputs of equal versions have equal bits. */
SB_API int sb_numerics_version(void);

#ifdef __cplusplus
}
#endif
#endif
