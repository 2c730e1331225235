/* Kernels compiled ahead of time, and the choice among them for a device. */
#ifndef SB_CUDA_DRIVER_IMAGE_H
#define SB_CUDA_DRIVER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sb_cuda_image_kind {
    SB_CUDA_CUBIN,       /* machine code: runs on its compute capability and on later minor ones of the same major */
    SB_CUDA_CUBIN_EXACT, /* the same with instructions that only this very capability has ("sm_90a") */
    SB_CUDA_PTX          /* what the driver compiles, for its capability and every later one */
} sb_cuda_image_kind;

/* One module for one architecture. */
typedef struct sb_cuda_image {
    const char *module;       /* the source it was compiled from: "copy" of kernels/copy.cu */
    const char *architecture; /* "sm_90a", "compute_90" */
    sb_cuda_image_kind kind;
    int compute;             /* 90 for 9.0 */
    const char *bytes, *end; /* PTX that is not compressed: a NUL follows at `end` */
    bool is_compressed;      /* an xz file: cuda/driver/unpack.h */
} sb_cuda_image;

/* The images of a build: one entry for each module and architecture. */
typedef struct sb_cuda_images {
    int toolkit; /* the CUDA release that compiled them: 13000 for 13.0 */
    int count;
    const sb_cuda_image *images;
} sb_cuda_images;

/** The images inside this library; none (`count` 0) in a build without GPU kernels. Made by the build. */
extern const sb_cuda_images sb_cuda_embedded_images;

/** Bytes for a reason in words. */
#define SB_CUDA_WHY_BYTES 320

/** The image of `module` (NULL: of any module) for a device of capability `compute` (90 for 9.0)
 * under a driver of interface release `version`: machine code made for exactly this device first,
 * then machine code that it also runs, then the newest PTX. NULL when there is none; `why`
 * (SB_CUDA_WHY_BYTES) then says why in words for users. */
const sb_cuda_image *sb_cuda_choose_image(const sb_cuda_images *images, const char *module, int compute, int version,
                                          char *why);

#endif
