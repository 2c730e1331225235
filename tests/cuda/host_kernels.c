/* The kernels that the host has. */
#include "host_kernels.h"

#include <stdlib.h>

#include "host_words.h"

static struct {
    const char *name;
    size_t parameter_bytes;
    fake_kernel *run;
} defined[8192];
static int defined_count;

void host_define_kernel(const char *name, size_t parameter_bytes, fake_kernel *run) {
    if (defined_count == (int)(sizeof defined / sizeof defined[0]))
        abort();
    defined[defined_count].name = name;
    defined[defined_count].parameter_bytes = parameter_bytes;
    defined[defined_count++].run = run;
}

void define_host_kernels(const fake_cuda_control *fake) {
    for (int i = 0; i < defined_count; i++)
        fake->define_kernel(defined[i].name, defined[i].parameter_bytes, defined[i].run);
}
