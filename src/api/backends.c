/* The back ends that the library has: the only place that names them to the others. */
#include "cpu/list.h"

sb_kernel_finder *const sb_find_host_kernel = sb_cpu_find_kernel;
