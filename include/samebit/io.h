/* Tensors in files: numpy's .npy (one array) and .npz (named arrays). */
#ifndef SAMEBIT_IO_H
#define SAMEBIT_IO_H

#include <samebit/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Loads one array. What the file is, its first bytes tell, not its name.
 *
 * A .npy file holds one array without a name: `name` must be NULL. Of a .npz file, `name` picks the array, and NULL
 * means the only one. The caller releases the tensor. All dtypes of Samebit are read; bf16 as the ml_dtypes package
 * writes it ('<V2'), text from 'U' arrays. The small types, for which numpy has no name, are structures with one field
 * of bytes that has the dtype's name, [('f8e4m3fn', '|u1')], an element a byte: `a.view([('f8e4m3fn', 'u1')])` makes
 * such an array of the bytes, `a['f8e4m3fn']` gives them back. Of ml_dtypes' own arrays only float8_e5m2 ('<f1') can
 * be told from the others. Arrays in Fortran order become transposed views. Errors: IO; INVALID_FILE,
 * with the byte offset in the array's own file; INVALID_ARGUMENT when there is no array of that name; UNSUPPORTED for
 * other dtypes and compressions; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tensor_load(const char *path, const char *name, sb_tensor **tensor, sb_error *error);

/** Loads all arrays of a .npz file, in its order (or the one of a .npy file, whose name is ""). The
 * caller frees what it gets by sb_tensors_free. Errors as sb_tensor_load. */
SB_API SB_MUST_CHECK sb_status sb_tensors_load(const char *path, int *count, char ***names, sb_tensor ***tensors,
                                               sb_error *error);
/** Releases `count` tensors and frees both arrays and the names. NULL arrays are allowed. */
SB_API void sb_tensors_free(int count, char **names, sb_tensor **tensors);

/** Saves a tensor as a .npy file, whole or not at all: a reader of `path` never sees a part.
 * Errors: IO; INVALID_ARGUMENT for tensors on a device, text that is not UTF-8 or ends in NUL characters, which the
 * format cannot hold; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tensor_save(const char *path, sb_tensor *tensor, sb_error *error);

/** Saves `count` tensors as a .npz file, whole or not at all; equal tensors and names give equal
 * files. Errors as sb_tensor_save, and INVALID_ARGUMENT for names that are empty or occur twice. */
SB_API SB_MUST_CHECK sb_status sb_tensors_save(const char *path, int count, const char *const *names,
                                               sb_tensor *const *tensors, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
