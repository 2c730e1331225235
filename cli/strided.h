/* The same tensor behind other strides: for showing that layout never changes a bit. */
#ifndef CLI_STRIDED_H
#define CLI_STRIDED_H

#include <samebit/samebit.h>

/** Replaces a numeric tensor (in a sequence: each) by an equal one whose elements lie apart, with the dimensions in
 * reverse order and the last one running backwards. Text and nothing stay as they are. */
sb_status make_strided(sb_value *value, sb_error *error);

#endif
