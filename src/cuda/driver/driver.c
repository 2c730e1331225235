#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SB_CUDA_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define SB_CUDA_LAYOUT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member);
#include "cuda/driver/driver_layouts.h"

/* The two functions that are looked up by their names in the library: the way to all others. */
typedef CUresult get_proc_address(const char *symbol, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *found);
typedef CUresult driver_get_version(int *version);

/* The drivers of this process. A driver is never closed: it has threads of its own, and other
 * libraries of the process use it too. More than one is for tests and for odd installations. */
#define MOST_DRIVERS 8
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sb_cuda_driver drivers[MOST_DRIVERS];
static int driver_count;

/* ---- errors ---- */

typedef struct remedy {
    CUresult result;
    const char *text;
} remedy;

static const remedy remedies[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, "the device has too little free memory: end other programs that use it, or run "
                               "a smaller batch or model"},
    {CUDA_ERROR_STUB_LIBRARY, "this is the toolkit's stub of the library, not a driver: take its folder "
                              "('stubs') out of LD_LIBRARY_PATH"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "another process has the device to itself"},
    {CUDA_ERROR_NO_DEVICE, "see that a device is there (nvidia-smi) and that CUDA_VISIBLE_DEVICES does not hide it"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "the kernels in this build do not fit the device"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the kernels were built by a newer CUDA than the driver knows: update the "
                                         "driver"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the driver's own compiler (libnvidia-ptxjitcompiler) is not installed"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "the machine's NVSwitch service (nvidia-fabricmanager) is not running"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the driver's library and its kernel module differ in version: restart the "
                                        "machine after an update"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "the compatibility package is not for this device: remove it, or "
                                                "update the driver"},
    {CUDA_ERROR_UNKNOWN, "see the kernel's log (dmesg) for the driver's own report"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the call is not allowed while this thread captures a stream"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "a call waited for the legacy stream while a stream was captured"},
};

/* Everything after one of these is lost: the driver's documentation says of each that the process
 * must be restarted. */
static const CUresult sticky[] = {
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_CONTAINED,
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_EXTERNAL_DEVICE,
};

bool sb_cuda_is_sticky(CUresult result) {
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++) {
        if (sticky[i] == result)
            return true;
    }
    return false;
}

static const char *find_remedy(CUresult result) {
    if (sb_cuda_is_sticky(result))
        return "an earlier kernel or the device itself failed; the device cannot be used again "
               "before "
               "this process has ended";
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        if (remedies[i].result == result)
            return remedies[i].text;
    }
    return NULL;
}

sb_status sb_cuda_fail(const sb_cuda_driver *driver, CUresult result, const char *call, sb_error *error) {
    const char *name = NULL, *text = NULL, *remedy = find_remedy(result);
    /* A driver that does not know its own error gives neither. */
    if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL)
        name = "an error without a name";
    if (driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || text == NULL)
        text = "no description";
    sb_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? SB_ERROR_OUT_OF_MEMORY : SB_ERROR_DEVICE;
    return sb_fail(error, status, "CUDA: %s failed with %s (%d: %s)%s%s", call, name, result, text,
                   remedy != NULL ? "; " : "", remedy != NULL ? remedy : "");
}

char *sb_cuda_version_text(int version, char text[SB_CUDA_VERSION_BYTES]) {
    snprintf(text, SB_CUDA_VERSION_BYTES, "%d.%d", version / 1000, version % 1000 / 10);
    return text;
}

/* ---- opening ---- */

/* What an attempt has found out. */
typedef struct attempt {
    void *library;
    sb_driver_state state;
    int version;
} attempt;

static sb_status too_old(attempt *attempt, const char *library, sb_error *error) {
    char have[SB_CUDA_VERSION_BYTES] = "an unknown version", least[SB_CUDA_VERSION_BYTES];
    if (attempt->version > 0)
        sb_cuda_version_text(attempt->version, have);
    attempt->state = SB_DRIVER_TOO_OLD;
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "the CUDA driver %s is too old: it is for CUDA %s, and Samebit needs %s: install "
                   "NVIDIA's driver " SB_CUDA_LEAST_DRIVER " or newer",
                   library, have, sb_cuda_version_text(SB_CUDA_LEAST_VERSION, least));
}

/* Addresses of functions come as pointers to data, between which C knows no conversion but POSIX
 * promises equal representations. */
static void set_function(void *place, void *function) {
    memcpy(place, &function, sizeof function);
}

/* Fills the table. Only what works before cuInit is called here. */
static sb_status resolve(attempt *attempt, sb_cuda_driver *driver, sb_error *error) {
    const char *library = driver->library;
    get_proc_address *find;
    driver_get_version *get_version;
    set_function(&find, dlsym(attempt->library, "cuGetProcAddress_v2"));
    set_function(&get_version, dlsym(attempt->library, "cuDriverGetVersion"));
    attempt->state = SB_DRIVER_FAILED;
    if (get_version == NULL)
        return sb_fail(error, SB_ERROR_DEVICE, "%s is not a CUDA driver: it has no cuDriverGetVersion", library);
    CUresult result = get_version(&attempt->version);
    if (result != CUDA_SUCCESS) {
        attempt->version = 0;
        return sb_fail(error, SB_ERROR_DEVICE, "CUDA: cuDriverGetVersion of %s failed with %d%s%s", library, result,
                       result == CUDA_ERROR_STUB_LIBRARY ? "; " : "",
                       result == CUDA_ERROR_STUB_LIBRARY ? find_remedy(result) : "");
    }
    if (find == NULL || attempt->version < SB_CUDA_LEAST_VERSION)
        return too_old(attempt, library, error);
    const char *missing = NULL;
#define SB_CUDA_CALL(name, release, arguments)                                                                         \
    if (missing == NULL) {                                                                                             \
        void *function = NULL;                                                                                         \
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;                                   \
        if (find(#name, &function, release, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) != CUDA_SUCCESS ||              \
            found != CU_GET_PROC_ADDRESS_SUCCESS)                                                                      \
            function = NULL;                                                                                           \
        set_function(&driver->name, function);                                                                         \
        missing = function == NULL ? #name : NULL;                                                                     \
    }
#include "cuda/driver/driver_calls.h"
#undef SB_CUDA_CALL
    if (missing != NULL)
        return sb_fail(error, SB_ERROR_DEVICE, "the CUDA driver %s has no function %s: install NVIDIA's driver anew",
                       library, missing);
    return SB_OK;
}

static sb_status initialise(attempt *attempt, sb_cuda_driver *driver, sb_error *error) {
    CUresult result = driver->cuInit(0);
    const char *call = "cuInit";
    if (result == CUDA_SUCCESS) {
        result = driver->cuDeviceGetCount(&driver->device_count);
        call = "cuDeviceGetCount";
    }
    if (result == CUDA_SUCCESS && driver->device_count < 1)
        result = CUDA_ERROR_NO_DEVICE;
    if (result == CUDA_SUCCESS) {
        attempt->state = SB_DRIVER_READY;
        return SB_OK;
    }
    attempt->state = result == CUDA_ERROR_NO_DEVICE ? SB_DRIVER_NO_DEVICE : SB_DRIVER_FAILED;
    sb_cuda_fail(driver, result, call, error);
    if (result == CUDA_ERROR_NO_DEVICE)
        return sb_fail_within(error, SB_ERROR_DEVICE, "no CUDA device: ");
    return sb_fail_within(error, SB_ERROR_DEVICE, "the CUDA driver %s does not work: ", driver->library);
}

static sb_status open_new(attempt *attempt, sb_cuda_driver *driver, sb_error *error) {
    attempt->state = SB_DRIVER_MISSING;
    attempt->library = dlopen(driver->library, RTLD_NOW | RTLD_LOCAL);
    if (attempt->library == NULL) {
        const char *reason = dlerror();
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "no CUDA driver: %s; install NVIDIA's driver, or name its library in "
                       "SAMEBIT_CUDA_DRIVER",
                       reason != NULL ? reason : driver->library);
    }
    SB_TRY(resolve(attempt, driver, error));
    return initialise(attempt, driver, error);
}

static sb_status open_locked(const char *library, attempt *attempt, const sb_cuda_driver **driver, sb_error *error) {
    for (int i = 0; i < driver_count; i++) {
        if (strcmp(drivers[i].library, library) == 0) {
            attempt->state = SB_DRIVER_READY;
            attempt->version = drivers[i].version;
            *driver = &drivers[i];
            return SB_OK;
        }
    }
    if (driver_count == MOST_DRIVERS)
        return sb_fail(error, SB_ERROR_DEVICE, "this process has opened %d CUDA drivers; one more (%s) is too many",
                       MOST_DRIVERS, library);
    sb_cuda_driver *place = &drivers[driver_count];
    memset(place, 0, sizeof *place);
    snprintf(place->library, sizeof place->library, "%s", library);
    sb_status status = open_new(attempt, place, error);
    if (status != SB_OK) {
        if (attempt->library != NULL)
            dlclose(attempt->library);
        return status;
    }
    place->version = attempt->version;
    driver_count++;
    *driver = place;
    return SB_OK;
}

sb_status sb_cuda_driver_open(const char *library, const sb_cuda_driver **driver, sb_driver_state *state, int *version,
                              sb_error *error) {
    attempt attempt = {.state = SB_DRIVER_FAILED};
    sb_status status;
    if (strlen(library) >= SB_CUDA_LIBRARY_BYTES) {
        attempt.state = SB_DRIVER_MISSING;
        status = sb_fail(error, SB_ERROR_UNSUPPORTED, "no CUDA driver: the name of its library has more than %d bytes",
                         SB_CUDA_LIBRARY_BYTES - 1);
    } else {
        pthread_mutex_lock(&lock);
        status = open_locked(library, &attempt, driver, error);
        pthread_mutex_unlock(&lock);
    }
    if (state != NULL)
        *state = attempt.state;
    if (version != NULL)
        *version = attempt.version;
    return status;
}
