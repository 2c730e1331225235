/* Which attributes the standard gives an operator. */
#ifndef SB_ONNX_ATTRIBUTE_NAMES_H
#define SB_ONNX_ATTRIBUTE_NAMES_H

#include <stddef.h>

typedef struct sb_attribute_names {
    const char *op;         /* with the domain and a dot before it where that is not the standard's own */
    int since;              /* the first version of the operator set that this is of */
    const char *attributes; /* names with a space between */
} sb_attribute_names;

extern const sb_attribute_names sb_attribute_table[];
extern const size_t sb_attribute_table_rows;

typedef enum sb_attribute_standing {
    SB_ATTRIBUTE_UNKNOWN,          /* of no version of the operator */
    SB_ATTRIBUTE_OF_OTHER_VERSION, /* only of older or newer ones */
    SB_ATTRIBUTE_KNOWN             /* of this version, or nothing is known of the operator */
} sb_attribute_standing;

/** How an operator, in a version of its domain's operator set, stands to an attribute of that name. */
sb_attribute_standing sb_onnx_attribute_standing(const char *domain, const char *op, int version, const char *name);

#endif
