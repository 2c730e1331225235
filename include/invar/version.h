#ifndef INVAR_VERSION_H
#define INVAR_VERSION_H

#include <invar/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The library's version, such as "0.1.0". Static storage. */
IV_API const char *iv_version(void);
/** The version of the numerics contract (docs/numerics.md). Outputs of equal versions have equal bits. */
IV_API int iv_numerics_version(void);

#ifdef __cplusplus
}
#endif
#endif
