#include "cuda/kernel.h"

#include <string.h>

#include "base/allocation.h"

/* A module in the device's context and the kernels that were asked for. */
typedef struct iv_cuda_module {
    const iv_cuda_image *image;
    CUmodule handle;
    iv_cuda_kernel *kernels;
    struct iv_cuda_module *next;
} iv_cuda_module;

static void free_kernel(iv_cuda_kernel *kernel) {
    iv_free(kernel->name);
    iv_free(kernel);
}

static iv_status load_module(iv_cuda_device *device, const char *name, iv_cuda_module **module,
                             iv_error *error) {
    char why[IV_CUDA_WHY_BYTES];
    const iv_cuda_image *image =
        iv_cuda_choose_image(device->images, name, device->compute, device->driver->version, why);
    if (image == NULL)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "device %d (%s): %s", device->index,
                       device->name, why);
    iv_cuda_module *loaded = iv_allocate_array(1, sizeof *loaded);
    if (loaded == NULL)
        return iv_fail_memory(error, sizeof *loaded);
    loaded->image = image;
    iv_status status =
        IV_CUDA_DO(device, error, cuModuleLoadDataEx, &loaded->handle, image->bytes, 0, NULL, NULL);
    if (status != IV_OK) {
        iv_free(loaded);
        return iv_fail_within(error, status, "loading kernels %s for %s: ", image->module,
                              image->architecture);
    }
    *module = loaded;
    return IV_OK;
}

static iv_status load_kernel(iv_cuda_device *device, const iv_cuda_module *module, const char *name,
                             size_t parameter_bytes, iv_cuda_kernel **kernel, iv_error *error) {
    iv_cuda_kernel *found = iv_allocate_array(1, sizeof *found);
    if (found == NULL)
        return iv_fail_memory(error, sizeof *found);
    found->module = module->image->module;
    found->parameter_bytes = parameter_bytes;
    found->name = iv_duplicate_string(name);
    iv_status status = found->name != NULL ? IV_OK : iv_fail_memory(error, strlen(name) + 1);
    if (status == IV_OK) {
        CUresult result =
            device->driver->cuModuleGetFunction(&found->function, module->handle, name);
        status = iv_cuda_check(device, result, "cuModuleGetFunction", error);
        if (result == CUDA_ERROR_NOT_FOUND)
            status = iv_fail(error, IV_ERROR_INTERNAL, "module %s for %s has no kernel %s",
                             module->image->module, module->image->architecture, name);
    }
    if (status == IV_OK)
        status = IV_CUDA_DO(device, error, cuFuncGetAttribute, &found->most_threads,
                            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, found->function);
    if (status == IV_OK)
        status = IV_CUDA_DO(device, error, cuFuncGetAttribute, &found->static_shared_bytes,
                            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found->function);
    /* Without this a launch gets 48 KiB at most. It is a bound: what a launch does not ask for, it
     * does not take. */
    if (status == IV_OK)
        status = IV_CUDA_DO(device, error, cuFuncSetAttribute, found->function,
                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            device->shared_bytes - found->static_shared_bytes);
    if (status != IV_OK) {
        free_kernel(found);
        return status;
    }
    *kernel = found;
    return IV_OK;
}

/* With the device's context current and under its kernel lock. */
static iv_status find_loaded(iv_cuda_device *device, const char *module_name, const char *name,
                             size_t parameter_bytes, const iv_cuda_kernel **kernel,
                             iv_error *error) {
    iv_cuda_module *module = device->modules;
    while (module != NULL && strcmp(module->image->module, module_name) != 0)
        module = module->next;
    if (module == NULL) {
        IV_TRY(load_module(device, module_name, &module, error));
        module->next = device->modules;
        device->modules = module;
    }
    iv_cuda_kernel *found = module->kernels;
    while (found != NULL && strcmp(found->name, name) != 0)
        found = found->next;
    if (found == NULL) {
        IV_TRY(load_kernel(device, module, name, parameter_bytes, &found, error));
        found->next = module->kernels;
        module->kernels = found;
    }
    if (found->parameter_bytes != parameter_bytes)
        return iv_fail(error, IV_ERROR_INTERNAL,
                       "kernel %s was asked for with %zu and with %zu bytes of parameters", name,
                       found->parameter_bytes, parameter_bytes);
    *kernel = found;
    return IV_OK;
}

/* The bucket of a name: FNV-1a. Every launch of an eager run looks its kernel up, for which walking along the lists of modules
 * and entering the device would take as long as the launch. */
static iv_cuda_kernel **bucket_of(iv_cuda_device *device, const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &device->kernels[hash % IV_CUDA_KERNEL_BUCKETS];
}

static const iv_cuda_kernel *known_kernel(iv_cuda_device *device, const char *module, const char *name,
                                          size_t parameter_bytes) {
    pthread_mutex_lock(&device->kernel_lock);
    const iv_cuda_kernel *known = *bucket_of(device, name);
    while (known != NULL && (strcmp(known->name, name) != 0 || strcmp(known->module, module) != 0))
        known = known->next_hash;
    pthread_mutex_unlock(&device->kernel_lock);
    return known != NULL && known->parameter_bytes == parameter_bytes ? known : NULL;
}

/* In the device's context. */
static iv_status load_and_note(iv_cuda_device *device, const char *module, const char *name,
                               size_t parameter_bytes, const iv_cuda_kernel **kernel, iv_error *error) {
    pthread_mutex_lock(&device->kernel_lock);
    iv_status status = find_loaded(device, module, name, parameter_bytes, kernel, error);
    iv_cuda_kernel **bucket = bucket_of(device, name), *known = *bucket;
    while (status == IV_OK && known != NULL && known != *kernel)
        known = known->next_hash;
    if (status == IV_OK && known == NULL) {
        iv_cuda_kernel *loaded = (iv_cuda_kernel *)*kernel;
        loaded->next_hash = *bucket;
        *bucket = loaded;
    }
    pthread_mutex_unlock(&device->kernel_lock);
    return status;
}

iv_status iv_cuda_kernel_find(iv_cuda_device *device, const char *module, const char *name,
                              size_t parameter_bytes, const iv_cuda_kernel **kernel,
                              iv_error *error) {
    if (parameter_bytes > IV_CUDA_PARAMETER_BYTES)
        return iv_fail(error, IV_ERROR_INTERNAL, "kernel %s: %zu bytes of parameters are too many",
                       name, parameter_bytes);
    *kernel = known_kernel(device, module, name, parameter_bytes);
    if (*kernel != NULL)
        return IV_OK;
    IV_TRY(iv_cuda_enter(device, error));
    return iv_cuda_leave(device, load_and_note(device, module, name, parameter_bytes, kernel, error), error);
}

void iv_cuda_unload_modules(iv_cuda_device *device) {
    if (device->modules == NULL)
        return;
    bool entered = iv_cuda_enter_to_release(device);
    while (device->modules != NULL) {
        iv_cuda_module *module = device->modules;
        device->modules = module->next;
        while (module->kernels != NULL) {
            iv_cuda_kernel *kernel = module->kernels;
            module->kernels = kernel->next;
            free_kernel(kernel);
        }
        device->driver->cuModuleUnload(module->handle);
        iv_free(module);
    }
    memset(device->kernels, 0, sizeof device->kernels);
    iv_cuda_leave_released(device, entered);
}
