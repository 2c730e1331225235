/* Recorded values to compare with, by the names of a graph's values. */
#ifndef CLI_REFERENCE_H
#define CLI_REFERENCE_H

#include <invar/invar.h>

typedef struct reference {
    int count, capacity;
    struct reference_item {
        char *name;
        iv_value value;
        bool used; /* a value of the graph has the name */
    } * items;     /* in the order of names */
} reference;

/** Reads a .npz file with arrays named like values, or a folder: with NAME.npy files (a '/' in a
 * name is a subfolder, or '_'), or with input_0.pb, … and output_0.pb, … in the order of the model,
 * as in the ONNX standard's test data. Returns EXIT_RIGHT, or prints what is wrong and returns
 * another exit code; `free_reference` in both cases. */
int read_reference(const char *path, const iv_model *model, const iv_inspection *graph,
                   reference *reference);
void free_reference(reference *reference);

/** The value of that name (borrowed), which is marked as used; or NULL. */
const iv_value *find_recorded(reference *reference, const char *name);

#endif
