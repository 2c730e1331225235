#define _GNU_SOURCE
#include "base/configuration.h"

#include <stdlib.h>

iv_configuration iv_configuration_from_environment(void) {
    const char *driver = secure_getenv("INVAR_CUDA_DRIVER");
    return (iv_configuration){
        .cuda_driver = driver != NULL && driver[0] != '\0' ? driver : "libcuda.so.1",
    };
}
