#include "cuda/image.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cuda/driver.h"

static bool runs_on(const iv_cuda_image *image, int compute) {
    switch (image->kind) {
    case IV_CUDA_CUBIN_EXACT:
        return image->compute == compute;
    case IV_CUDA_CUBIN:
        return image->compute / 10 == compute / 10 && image->compute <= compute;
    case IV_CUDA_PTX:
        return image->compute <= compute;
    }
    return false;
}

/* Machine code loads into any driver of the same major release or a later one; PTX has to be of a
 * release that the driver's compiler knows. */
static bool loads_into(const iv_cuda_image *image, int toolkit, int version) {
    return image->kind == IV_CUDA_PTX ? toolkit <= version : toolkit / 1000 <= version / 1000;
}

static bool is_better(const iv_cuda_image *image, const iv_cuda_image *than) {
    static const int order[] = {[IV_CUDA_CUBIN_EXACT] = 2, [IV_CUDA_CUBIN] = 1, [IV_CUDA_PTX] = 0};
    if (than == NULL || order[image->kind] != order[than->kind])
        return than == NULL || order[image->kind] > order[than->kind];
    return image->compute > than->compute;
}

/* Why nothing was chosen; `unloadable` is an image that only the driver's age stands against. */
static void explain(const iv_cuda_images *images, const char *module,
                    const iv_cuda_image *unloadable, int compute, int version, char *why) {
    char built[IV_CUDA_VERSION_BYTES], have[IV_CUDA_VERSION_BYTES];
    int least = 0;
    for (int i = 0; i < images->count; i++)
        least = least == 0 || images->images[i].compute < least ? images->images[i].compute : least;
    if (images->count == 0)
        snprintf(why, IV_CUDA_WHY_BYTES,
                 "this build of Invar has no GPU kernels: it was made without nvcc");
    else if (unloadable != NULL)
        snprintf(why, IV_CUDA_WHY_BYTES,
                 "the kernels were compiled by CUDA %s, and the driver is for CUDA %s: update the "
                 "driver",
                 iv_cuda_version_text(images->toolkit, built), iv_cuda_version_text(version, have));
    else if (compute < least)
        snprintf(why, IV_CUDA_WHY_BYTES,
                 "the kernels need compute capability %d.%d or newer, and this device has %d.%d",
                 least / 10, least % 10, compute / 10, compute % 10);
    else
        snprintf(why, IV_CUDA_WHY_BYTES,
                 "this build of Invar has no kernels%s%s for compute capability %d.%d",
                 module != NULL ? " of module " : "", module != NULL ? module : "", compute / 10,
                 compute % 10);
}

const iv_cuda_image *iv_cuda_choose_image(const iv_cuda_images *images, const char *module,
                                          int compute, int version, char *why) {
    const iv_cuda_image *best = NULL, *unloadable = NULL;
    for (int i = 0; i < images->count; i++) {
        const iv_cuda_image *image = &images->images[i];
        if ((module != NULL && strcmp(image->module, module) != 0) || !runs_on(image, compute))
            continue;
        if (!loads_into(image, images->toolkit, version))
            unloadable = image;
        else if (is_better(image, best))
            best = image;
    }
    if (best == NULL)
        explain(images, module, unloadable, compute, version, why);
    return best;
}
