#define _GNU_SOURCE
#include "base/configuration.h"

#include <stdlib.h>

sb_configuration sb_configuration_from_environment(void) {
    const char *driver = secure_getenv("SAMEBIT_CUDA_DRIVER"), *attention = secure_getenv("SAMEBIT_CUDA_ATTENTION");
    return (sb_configuration){
        .cuda_driver = driver != NULL && driver[0] != '\0' ? driver : "libcuda.so.1",
        .cuda_attention = attention != NULL && attention[0] != '\0' ? attention : NULL,
    };
}
