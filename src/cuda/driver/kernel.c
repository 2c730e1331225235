#include "cuda/driver/kernel.h"

#include <string.h>

#include "base/allocation.h"
#include "cuda/driver/unpack.h"

/* A module in the device's context and the kernels that were asked for. */
typedef struct sb_cuda_module {
    const sb_cuda_image *image;
    CUmodule handle;
    sb_cuda_kernel *kernels;
    struct sb_cuda_module *next;
} sb_cuda_module;

static void free_kernel(sb_cuda_kernel *kernel) {
    sb_free(kernel->name);
    sb_free(kernel);
}

static sb_status load_image(sb_cuda_device *device, const sb_cuda_image *image, const char *bytes,
                            sb_cuda_module *module, sb_error *error) {
    module->image = image;
    sb_status status = SB_CUDA_DO(device, error, cuModuleLoadDataEx, &module->handle, bytes, 0, NULL, NULL);
    return status == SB_OK
               ? SB_OK
               : sb_fail_within(error, status, "loading kernels %s for %s: ", image->module, image->architecture);
}

static sb_status load_module(sb_cuda_device *device, const char *name, sb_cuda_module **module, sb_error *error) {
    char why[SB_CUDA_WHY_BYTES];
    const sb_cuda_image *image =
        sb_cuda_choose_image(device->images, name, device->compute, device->driver->version, why);
    if (image == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "device %d (%s): %s", device->index, device->name, why);
    char *unpacked = NULL; /* until the driver has its copy */
    if (image->is_compressed)
        SB_TRY(sb_cuda_unpack(image, &unpacked, error));
    sb_cuda_module *loaded = sb_allocate_array(1, sizeof *loaded);
    sb_status status = SB_OK;
    if (loaded == NULL)
        status = sb_fail_memory(error, sizeof *loaded);
    else
        status = load_image(device, image, unpacked != NULL ? unpacked : image->bytes, loaded, error);
    sb_free(unpacked);
    if (status != SB_OK) {
        sb_free(loaded);
        return status;
    }
    *module = loaded;
    return SB_OK;
}

static sb_status load_kernel(sb_cuda_device *device, const sb_cuda_module *module, const char *name,
                             size_t parameter_bytes, sb_cuda_kernel **kernel, sb_error *error) {
    sb_cuda_kernel *found = sb_allocate_array(1, sizeof *found);
    if (found == NULL)
        return sb_fail_memory(error, sizeof *found);
    found->module = module->image->module;
    found->parameter_bytes = parameter_bytes;
    found->name = sb_duplicate_string(name);
    sb_status status = found->name != NULL ? SB_OK : sb_fail_memory(error, strlen(name) + 1);
    if (status == SB_OK) {
        CUresult result = device->driver->cuModuleGetFunction(&found->function, module->handle, name);
        status = sb_cuda_check(device, result, "cuModuleGetFunction", error);
        if (result == CUDA_ERROR_NOT_FOUND)
            status = sb_fail(error, SB_ERROR_INTERNAL, "module %s for %s has no kernel %s", module->image->module,
                             module->image->architecture, name);
    }
    if (status == SB_OK)
        status = SB_CUDA_DO(device, error, cuFuncGetAttribute, &found->most_threads,
                            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, found->function);
    if (status == SB_OK)
        status = SB_CUDA_DO(device, error, cuFuncGetAttribute, &found->static_shared_bytes,
                            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found->function);
    /* Without this a launch gets 48 KiB at most. It is a bound: what a launch does not ask for, it
     * does not take. */
    if (status == SB_OK)
        status = SB_CUDA_DO(device, error, cuFuncSetAttribute, found->function,
                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            device->shared_bytes - found->static_shared_bytes);
    if (status != SB_OK) {
        free_kernel(found);
        return status;
    }
    *kernel = found;
    return SB_OK;
}

/* With the device's context current and under its kernel lock. */
static sb_status find_loaded(sb_cuda_device *device, const char *module_name, const char *name, size_t parameter_bytes,
                             const sb_cuda_kernel **kernel, sb_error *error) {
    sb_cuda_module *module = device->modules;
    while (module != NULL && strcmp(module->image->module, module_name) != 0)
        module = module->next;
    if (module == NULL) {
        SB_TRY(load_module(device, module_name, &module, error));
        module->next = device->modules;
        device->modules = module;
    }
    sb_cuda_kernel *found = module->kernels;
    while (found != NULL && strcmp(found->name, name) != 0)
        found = found->next;
    if (found == NULL) {
        SB_TRY(load_kernel(device, module, name, parameter_bytes, &found, error));
        found->next = module->kernels;
        module->kernels = found;
    }
    if (found->parameter_bytes != parameter_bytes)
        return sb_fail(error, SB_ERROR_INTERNAL, "kernel %s was asked for with %zu and with %zu bytes of parameters",
                       name, found->parameter_bytes, parameter_bytes);
    *kernel = found;
    return SB_OK;
}

/* The bucket of a name: FNV-1a. Every launch of an eager run looks its kernel up, for which walking along the lists of
 * modules and entering the device would take as long as the launch. */
static sb_cuda_kernel **bucket_of(sb_cuda_device *device, const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &device->kernels[hash % SB_CUDA_KERNEL_BUCKETS];
}

static const sb_cuda_kernel *known_kernel(sb_cuda_device *device, const char *module, const char *name,
                                          size_t parameter_bytes) {
    pthread_mutex_lock(&device->kernel_lock);
    const sb_cuda_kernel *known = *bucket_of(device, name);
    while (known != NULL && (strcmp(known->name, name) != 0 || strcmp(known->module, module) != 0))
        known = known->next_hash;
    pthread_mutex_unlock(&device->kernel_lock);
    return known != NULL && known->parameter_bytes == parameter_bytes ? known : NULL;
}

/* In the device's context. */
static sb_status load_and_note(sb_cuda_device *device, const char *module, const char *name, size_t parameter_bytes,
                               const sb_cuda_kernel **kernel, sb_error *error) {
    pthread_mutex_lock(&device->kernel_lock);
    sb_status status = find_loaded(device, module, name, parameter_bytes, kernel, error);
    sb_cuda_kernel **bucket = bucket_of(device, name), *known = *bucket;
    while (status == SB_OK && known != NULL && known != *kernel)
        known = known->next_hash;
    if (status == SB_OK && known == NULL) {
        sb_cuda_kernel *loaded = (sb_cuda_kernel *)*kernel;
        loaded->next_hash = *bucket;
        *bucket = loaded;
    }
    pthread_mutex_unlock(&device->kernel_lock);
    return status;
}

sb_status sb_cuda_kernel_find(sb_cuda_device *device, const char *module, const char *name, size_t parameter_bytes,
                              const sb_cuda_kernel **kernel, sb_error *error) {
    if (parameter_bytes > SB_CUDA_PARAMETER_BYTES)
        return sb_fail(error, SB_ERROR_INTERNAL, "kernel %s: %zu bytes of parameters are too many", name,
                       parameter_bytes);
    *kernel = known_kernel(device, module, name, parameter_bytes);
    if (*kernel != NULL)
        return SB_OK;
    SB_TRY(sb_cuda_enter(device, error));
    return sb_cuda_leave(device, load_and_note(device, module, name, parameter_bytes, kernel, error), error);
}

void sb_cuda_unload_modules(sb_cuda_device *device) {
    if (device->modules == NULL)
        return;
    bool entered = sb_cuda_enter_to_release(device);
    while (device->modules != NULL) {
        sb_cuda_module *module = device->modules;
        device->modules = module->next;
        while (module->kernels != NULL) {
            sb_cuda_kernel *kernel = module->kernels;
            module->kernels = kernel->next;
            free_kernel(kernel);
        }
        device->driver->cuModuleUnload(module->handle);
        sb_free(module);
    }
    memset(device->kernels, 0, sizeof device->kernels);
    sb_cuda_leave_released(device, entered);
}
