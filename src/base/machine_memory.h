/* How much memory there is to use. */
#ifndef SB_BASE_MACHINE_MEMORY_H
#define SB_BASE_MACHINE_MEMORY_H

#include <stdint.h>

/** Bytes of the machine's memory, or of what the process's control groups allow where that is less.
 * INT64_MAX when neither can be found out. Reads files: not for hot paths. */
int64_t sb_machine_memory(void);

#endif
