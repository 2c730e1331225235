/* Faults: what a kernel on a device finds wrong with its data, as the word that it leaves behind.
 * Kernels include this too. */
#ifndef SB_KERNEL_FAULT_H
#define SB_KERNEL_FAULT_H

#include <samebit/error.h>

enum {
    SB_FAULT_NONE,
    SB_FAULT_DIVISION, /* an integer divided by zero */
    SB_FAULT_INDEX,    /* an index outside its dimension */
    SB_FAULT_CHOICE    /* more elements are to be chosen than there are */
};

/** What a fault means, for users. Never NULL; static storage. */
const char *sb_fault_text(unsigned fault);
/** The status with which operators report it on the host. */
sb_status sb_fault_status(unsigned fault);

#endif
