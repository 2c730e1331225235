/* What can be set from outside a program. Functions take what they need of it as arguments; the
 * environment is read here and nowhere else. */
#ifndef IV_BASE_CONFIGURATION_H
#define IV_BASE_CONFIGURATION_H

typedef struct iv_configuration {
    const char *cuda_driver; /* file name of the CUDA driver's library, as for dlopen; never NULL */
} iv_configuration;

/** The configuration that the environment asks for: INVAR_CUDA_DRIVER names the driver's library
 * ("libcuda.so.1" without it, or when it is empty). Programs that run with more rights than their
 * caller ignore the environment. The strings are the environment's: valid until it is changed. */
iv_configuration iv_configuration_from_environment(void);

#endif
