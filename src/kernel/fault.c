#include "kernel/fault.h"

const char *sb_fault_text(unsigned fault) {
    switch (fault) {
    case SB_FAULT_DIVISION:
        return "integer division by zero";
    case SB_FAULT_INDEX:
        return "an index lies outside its dimension";
    case SB_FAULT_CHOICE:
        return "more elements are to be chosen than there are";
    default:
        return "the kernel reports a fault that has no name";
    }
}

sb_status sb_fault_status(unsigned fault) {
    return fault == SB_FAULT_INDEX ? SB_ERROR_SHAPE : SB_ERROR_INVALID_ARGUMENT;
}
