/* Recorded values to compare with, by the names of a graph's values. */
#ifndef CLI_REFERENCE_H
#define CLI_REFERENCE_H

#include <samebit/samebit.h>

typedef struct reference {
    int count, capacity;
    struct reference_item {
        char *name;
        char *node, *op; /* what made it; NULL where that is not known */
        sb_value value;
        bool used; /* a value of the graph has the name */
    } * items;     /* in the order of names, once that is wanted */
} reference;

/** Adds a value, whose reference it takes also when it fails; `node` and `op` may be NULL.
 * False when memory runs out. */
bool add_recorded(reference *reference, const char *name, const char *node, const char *op, sb_value value);
/** Puts the items in the order of names, for find_recorded. */
void sort_recorded(reference *reference);

/** Reads a .npz file with arrays named like values, or a folder: with NAME.npy files (a '/' in a
 * name is a subfolder, or '_'), or with input_0.pb, … and output_0.pb, … in the order of the model,
 * as in the ONNX standard's test data. Returns EXIT_RIGHT, or prints what is wrong and returns
 * another exit code; `free_reference` in both cases. */
int read_reference(const char *path, const sb_model *model, const sb_inspection *graph, reference *reference);
void free_reference(reference *reference);

/** The value of that name (borrowed), which is marked as used; or NULL. */
const sb_value *find_recorded(reference *reference, const char *name);

#endif
