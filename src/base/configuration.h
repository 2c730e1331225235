/* What can be set from outside a program. Functions take what they need of it as arguments; the
 * environment is read here and nowhere else. */
#ifndef SB_BASE_CONFIGURATION_H
#define SB_BASE_CONFIGURATION_H

typedef struct sb_configuration {
    const char *cuda_driver;    /* file name of the CUDA driver's library, as for dlopen; never NULL */
    const char *cuda_attention; /* how rows of attention are computed on devices; NULL: as is quickest */
} sb_configuration;

/** The configuration that the environment asks for: SAMEBIT_CUDA_DRIVER names the driver's library
 * ("libcuda.so.1" without it, or when it is empty); SAMEBIT_CUDA_ATTENTION is for measurements of one way beside
 * another, and is read where a device is opened (sb_cuda_attention_choose_by_name). Programs that run with more rights than their caller
 * ignore the environment. The strings are the environment's: valid until it is changed. */
sb_configuration sb_configuration_from_environment(void);

#endif
