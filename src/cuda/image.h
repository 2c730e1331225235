/* Kernels compiled ahead of time, and the choice among them for a device. */
#ifndef IV_CUDA_IMAGE_H
#define IV_CUDA_IMAGE_H

#include <stddef.h>

typedef enum iv_cuda_image_kind {
    IV_CUDA_CUBIN, /* machine code: runs on its compute capability and on later minor ones of the
                      same major */
    IV_CUDA_CUBIN_EXACT, /* the same with instructions that only this very capability has ("sm_90a")
                          */
    IV_CUDA_PTX          /* what the driver compiles, for its capability and every later one */
} iv_cuda_image_kind;

/* One module for one architecture. */
typedef struct iv_cuda_image {
    const char *module;       /* the source it was compiled from: "copy" of kernels/copy.cu */
    const char *architecture; /* "sm_90a", "compute_90" */
    iv_cuda_image_kind kind;
    int compute;             /* 90 for 9.0 */
    const char *bytes, *end; /* PTX: a NUL follows at `end` */
} iv_cuda_image;

/* The images of a build: one entry for each module and architecture. */
typedef struct iv_cuda_images {
    int toolkit; /* the CUDA release that compiled them: 13000 for 13.0 */
    int count;
    const iv_cuda_image *images;
} iv_cuda_images;

/** The images inside this library; none (`count` 0) in a build without nvcc. Made by the build. */
extern const iv_cuda_images iv_cuda_embedded_images;

/** Bytes for a reason in words. */
#define IV_CUDA_WHY_BYTES 320

/** The image of `module` (NULL: of any module) for a device of capability `compute` (90 for 9.0)
 * under a driver of interface release `version`: machine code made for exactly this device first,
 * then machine code that it also runs, then the newest PTX. NULL when there is none; `why`
 * (IV_CUDA_WHY_BYTES) then says why in words for users. */
const iv_cuda_image *iv_cuda_choose_image(const iv_cuda_images *images, const char *module,
                                          int compute, int version, char *why);

#endif
