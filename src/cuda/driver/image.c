#include "cuda/driver/image.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cuda/driver/driver.h"

static bool runs_on(const sb_cuda_image *image, int compute) {
    switch (image->kind) {
    case SB_CUDA_CUBIN_EXACT:
        return image->compute == compute;
    case SB_CUDA_CUBIN:
        return image->compute / 10 == compute / 10 && image->compute <= compute;
    case SB_CUDA_PTX:
        return image->compute <= compute;
    }
    return false;
}

/* Machine code loads into any driver of the same major release or a later one; PTX has to be of a
 * release that the driver's compiler knows. */
static bool loads_into(const sb_cuda_image *image, int toolkit, int version) {
    return image->kind == SB_CUDA_PTX ? toolkit <= version : toolkit / 1000 <= version / 1000;
}

static bool is_better(const sb_cuda_image *image, const sb_cuda_image *than) {
    static const int order[] = {[SB_CUDA_CUBIN_EXACT] = 2, [SB_CUDA_CUBIN] = 1, [SB_CUDA_PTX] = 0};
    if (than == NULL || order[image->kind] != order[than->kind])
        return than == NULL || order[image->kind] > order[than->kind];
    return image->compute > than->compute;
}

/* Why nothing was chosen; `unloadable` is an image that only the driver's age stands against. */
static void explain(const sb_cuda_images *images, const char *module, const sb_cuda_image *unloadable, int compute,
                    int version, char *why) {
    char built[SB_CUDA_VERSION_BYTES], have[SB_CUDA_VERSION_BYTES];
    int least = 0;
    for (int i = 0; i < images->count; i++)
        least = least == 0 || images->images[i].compute < least ? images->images[i].compute : least;
    if (images->count == 0)
        snprintf(
            why, SB_CUDA_WHY_BYTES,
            "this build of Samebit has no GPU kernels: build it with SAMEBIT_CUDA_ARCHITECTURES=all, or where nvcc "
            "and the GPU are");
    else if (unloadable != NULL)
        snprintf(why, SB_CUDA_WHY_BYTES,
                 "the kernels were compiled by CUDA %s, and the driver is for CUDA %s: update the "
                 "driver",
                 sb_cuda_version_text(images->toolkit, built), sb_cuda_version_text(version, have));
    else if (compute < least)
        snprintf(why, SB_CUDA_WHY_BYTES,
                 "the kernels need compute capability %d.%d or newer, and this device has %d.%d", least / 10,
                 least % 10, compute / 10, compute % 10);
    else
        snprintf(why, SB_CUDA_WHY_BYTES, "this build of Samebit has no kernels%s%s for compute capability %d.%d",
                 module != NULL ? " of module " : "", module != NULL ? module : "", compute / 10, compute % 10);
}

const sb_cuda_image *sb_cuda_choose_image(const sb_cuda_images *images, const char *module, int compute, int version,
                                          char *why) {
    const sb_cuda_image *best = NULL, *unloadable = NULL;
    for (int i = 0; i < images->count; i++) {
        const sb_cuda_image *image = &images->images[i];
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
