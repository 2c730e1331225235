/* The embedded images are compressed, each by itself: kernels that a program never asks for are never unpacked. */
#ifndef SB_CUDA_UNPACK_H
#define SB_CUDA_UNPACK_H

#include <samebit/error.h>

#include "cuda/driver/image.h"

/** The bytes of an image that is compressed, as the driver takes them: a NUL follows, which PTX needs. The caller frees
 * them with sb_free. Any thread may call this. Errors: INTERNAL when the image is damaged, OUT_OF_MEMORY. */
sb_status sb_cuda_unpack(const sb_cuda_image *image, char **bytes, sb_error *error);

#endif
