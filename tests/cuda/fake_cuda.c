/* The fake driver: control, contexts, memory and modules. */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <elf.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the log and planned failures ---- */

static struct {
    char *text;
    size_t used, room;
} calls_log;
static struct {
    char name[48];
    int count;
} call_counts[128];
static struct {
    char symbol[48];
    bool any, active, happened;
    int skip, result;
} failure;
static char complaint_text[512];
static char hidden[48];
static bool is_set_up;

void complain(const char *format, ...) {
    if (complaint_text[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint_text, sizeof complaint_text, format, arguments);
    va_end(arguments);
}

static void append_log(const char *text) {
    size_t length = strlen(text);
    if (calls_log.used + length + 1 > calls_log.room) {
        calls_log.room = 2 * calls_log.room + length + 4096;
        calls_log.text = realloc(calls_log.text, calls_log.room);
        if (calls_log.text == NULL)
            abort();
    }
    memcpy(calls_log.text + calls_log.used, text, length + 1);
    calls_log.used += length;
    const char *file_name = getenv("FAKE_CUDA_LOG");
    FILE *file = file_name != NULL ? fopen(file_name, "a") : NULL;
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

/* A driver that is of no use is closed again. */
__attribute__((destructor)) static void forget_log(void) {
    free(calls_log.text);
}

static int *count_of(const char *name) {
    for (size_t i = 0; i < sizeof call_counts / sizeof call_counts[0]; i++) {
        if (call_counts[i].name[0] == '\0')
            snprintf(call_counts[i].name, sizeof call_counts[i].name, "%s", name);
        if (strcmp(call_counts[i].name, name) == 0)
            return &call_counts[i].count;
    }
    abort();
}

static bool starts_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_about_errors(const char *name) {
    return starts_with(name, "cuGetError");
}

static CUresult planned_failure(const char *name) {
    if (!failure.active || is_about_errors(name) || (!failure.any && strcmp(failure.symbol, name) != 0) ||
        failure.skip-- > 0)
        return CUDA_SUCCESS;
    failure.active = false;
    failure.happened = true;
    return failure.result;
}

/* Results after which a real device is lost, as its documentation lists them. */
static bool is_sticky(CUresult result) {
    return result == CUDA_ERROR_ECC_UNCORRECTABLE ||
           (result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED &&
            result != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

void set_sticky(int device, CUresult result) {
    if (fake.sticky[device] == CUDA_SUCCESS)
        fake.sticky[device] = result;
}

static void set_up(void);

CUresult start(const char *name, const char *format, ...) {
    pthread_mutex_lock(&fake.lock);
    set_up();
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    ++*count_of(name);
    CUresult result = planned_failure(name);
    struct CUctx_st *context = current_context();
    bool of_context = !is_about_errors(name) && !starts_with(name, "cuDevice") && !starts_with(name, "cuCtx") &&
                      strcmp(name, "cuInit") != 0;
    if (context != NULL) {
        if (is_sticky(result))
            set_sticky(context->device, result);
        if (of_context && result == CUDA_SUCCESS)
            result = fake.sticky[context->device];
    }
    if (!fake.initialised && result == CUDA_SUCCESS && strcmp(name, "cuInit") != 0 && !is_about_errors(name))
        result = CUDA_ERROR_NOT_INITIALIZED;
    char line[400];
    if (result == CUDA_SUCCESS)
        snprintf(line, sizeof line, "%s(%s)\n", name, what);
    else
        snprintf(line, sizeof line, "%s(%s) -> %d\n", name, what, result);
    append_log(line);
    return result;
}

CUresult finish(CUresult result) {
    pthread_mutex_unlock(&fake.lock);
    return result;
}

/* ---- objects ---- */

void *add(object_kind kind, size_t size) {
    object *object = calloc(1, size);
    if (object == NULL)
        abort();
    object->kind = kind;
    object->context = current_context();
    object->next = fake.objects;
    fake.objects = object;
    return object;
}

bool is_live(object_kind kind, const void *handle) {
    for (const object *object = fake.objects; object != NULL; object = object->next) {
        if (object == handle)
            return object->kind == kind;
    }
    return false;
}

void drop(void *handle) {
    for (object **link = &fake.objects; *link != NULL; link = &(*link)->next) {
        if (*link == handle) {
            *link = (*link)->next;
            free(handle);
            return;
        }
    }
}

static memory *find_block(object_kind kind, uintptr_t address, size_t bytes) {
    for (object *object = fake.objects; object != NULL; object = object->next) {
        if (object->kind != kind)
            continue;
        memory *block = (memory *)object;
        uintptr_t begin = (uintptr_t)block->bytes;
        if (address >= begin && address - begin <= block->size && bytes <= block->size - (address - begin))
            return block;
    }
    return NULL;
}

bool inside(object_kind kind, uintptr_t address, size_t bytes) {
    return find_block(kind, address, bytes) != NULL;
}

static void destroy(object *object) {
    switch (object->kind) {
    case MEMORY:
    case HOST_MEMORY:
        free_bytes((memory *)object);
        break;
    case STREAM:
        free_stream((struct CUstream_st *)object);
        break;
    case MODULE:
        free_module((struct CUmod_st *)object);
        break;
    case GRAPH:
        free_graph((struct CUgraph_st *)object);
        break;
    case EXECUTABLE:
        free_executable((struct CUgraphExec_st *)object);
        break;
    case EVENT:
    case KINDS:
        break;
    }
    drop(object);
}

static int count_objects(object_kind kind, const struct CUctx_st *context) {
    int count = 0;
    for (const object *object = fake.objects; object != NULL; object = object->next)
        count += object->kind == kind && (context == NULL || object->context == context);
    return count;
}

/* ---- control ---- */

/* Kernels' stand-ins. */
static struct {
    char name[64];
    size_t parameter_bytes;
    fake_kernel *run;
} kernels[8192];
static int kernel_count;

static void read_devices(const char *text) {
    fake.device_count = 0;
    while (*text != '\0' && fake.device_count < FAKE_MOST_DEVICES) {
        fake_device *device = &fake.devices[fake.device_count];
        int major, minor, used = 0;
        if (sscanf(text, "%63[^:]:%d.%d:%zu%n", device->name, &major, &minor, &device->bytes, &used) < 4)
            break;
        device->compute = 10 * major + minor;
        device->multiprocessors = 4;
        fake.device_count++;
        text += used;
        if (sscanf(text, ":%d%n", &device->multiprocessors, &used) == 1)
            text += used;
        text += *text == ';';
    }
}

/* Queues come and go by the thousand, each with megabytes of pinned memory. The process keeps what it has been
 * given: new pages take most of the time of a test that makes every call fail. */
static void keep_pages(void) {
#ifdef M_TRIM_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

static void set_up(void) {
    if (is_set_up)
        return;
    is_set_up = true;
    keep_pages();
    const char *guard = getenv("FAKE_CUDA_GUARD");
    fake.guarded = guard != NULL && guard[0] != '\0';
    const char *version = getenv("FAKE_CUDA_VERSION"), *devices = getenv("FAKE_CUDA_DEVICES"),
               *fails = getenv("FAKE_CUDA_FAIL");
    fake.version = version != NULL ? atoi(version) : 13000;
    read_devices(devices != NULL ? devices : "Fake H200:9.0:1073741824");
    failure.active =
        fails != NULL && sscanf(fails, "%47[^:]:%d:%d", failure.symbol, &failure.skip, &failure.result) == 3;
}

static void reset(void) {
    pthread_mutex_lock(&fake.lock);
    forget_captures();
    while (fake.objects != NULL)
        destroy(fake.objects);
    for (int i = 0; i < FAKE_MOST_DEVICES; i++) {
        if (fake.contexts[i].legacy != NULL) {
            free_stream(fake.contexts[i].legacy);
            free(fake.contexts[i].legacy);
        }
        fake.contexts[i] = (struct CUctx_st){.device = i};
        fake.sticky[i] = CUDA_SUCCESS;
    }
    memset(call_counts, 0, sizeof call_counts);
    memset(&failure, 0, sizeof failure);
    free(calls_log.text);
    memset(&calls_log, 0, sizeof calls_log);
    complaint_text[0] = hidden[0] = '\0';
    kernel_count = 0;
    fake.broken_kernel = 0;
    fake.clock = 0;
    is_set_up = false;
    set_up();
    pthread_mutex_unlock(&fake.lock);
}

static void set_version(int version) {
    set_up();
    fake.version = version;
}

static void set_devices(int count, const fake_device *devices) {
    set_up();
    fake.device_count = count;
    if (count > 0)
        memcpy(fake.devices, devices, (size_t)count * sizeof *devices);
}

static void hide(const char *symbol) {
    snprintf(hidden, sizeof hidden, "%s", symbol != NULL ? symbol : "");
}

static void fail(const char *symbol, int skip, int result) {
    snprintf(failure.symbol, sizeof failure.symbol, "%s", symbol != NULL ? symbol : "");
    failure.any = symbol == NULL;
    failure.skip = skip;
    failure.result = result;
    failure.active = skip >= 0;
    failure.happened = false;
}

bool failure_happened(void) {
    return failure.happened;
}

static int calls(const char *symbol) {
    int count = 0;
    for (size_t i = 0; i < sizeof call_counts / sizeof call_counts[0]; i++) {
        if (symbol == NULL ? !is_about_errors(call_counts[i].name) : strcmp(call_counts[i].name, symbol) == 0)
            count += call_counts[i].count;
    }
    return count;
}

static const char *call_log(void) {
    return calls_log.text != NULL ? calls_log.text : "";
}

static void define_kernel(const char *name, size_t parameter_bytes, fake_kernel *run) {
    if (kernel_count == (int)(sizeof kernels / sizeof kernels[0]))
        abort();
    snprintf(kernels[kernel_count].name, sizeof kernels[0].name, "%s", name);
    kernels[kernel_count].parameter_bytes = parameter_bytes;
    kernels[kernel_count++].run = run;
}

static fake_live live(void) {
    fake_live live = {0};
    for (int i = 0; i < FAKE_MOST_DEVICES; i++)
        live.contexts += fake.contexts[i].retained;
    live.memory = count_objects(MEMORY, NULL);
    live.host_memory = count_objects(HOST_MEMORY, NULL);
    live.streams = count_objects(STREAM, NULL);
    live.events = count_objects(EVENT, NULL);
    live.modules = count_objects(MODULE, NULL);
    live.graphs = count_objects(GRAPH, NULL);
    live.executables = count_objects(EXECUTABLE, NULL);
    return live;
}

static const char *complaint(void) {
    return complaint_text;
}

static void break_kernel(int result) {
    fake.broken_kernel = result;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const fake_cuda_control *fake_cuda_get_control(void) {
    static const fake_cuda_control control = {
        reset, set_version, set_devices,   hide, fail,      failure_happened,
        calls, call_log,    define_kernel, live, complaint, break_kernel,
    };
    return &control;
}

/* ---- the two functions that are found by name, and the way to the others ---- */

EXPORTED CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version) {
    pthread_mutex_lock(&fake.lock);
    set_up();
    ++*count_of("cuDriverGetVersion");
    CUresult result = planned_failure("cuDriverGetVersion");
    *version = fake.version;
    return finish(result);
}

EXPORTED CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult *found);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
    static const struct {
        const char *name;
        int version;
        void (*code)(void);
    } functions[] = {
#define SB_CUDA_CALL(name, version, arguments) {#name, version, (void (*)(void))name},
#include "cuda/driver/driver_calls.h"
#undef SB_CUDA_CALL
    };
    pthread_mutex_lock(&fake.lock);
    set_up();
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = NULL;
    CUresult result = planned_failure("cuGetProcAddress");
    if (flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM)
        complain("cuGetProcAddress(%s) with flags %llu", symbol, flags);
    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, symbol) != 0 || strcmp(symbol, hidden) == 0)
            continue;
        bool sufficient = version >= functions[i].version && version <= fake.version;
        *found = sufficient ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (sufficient)
            memcpy(function, &functions[i].code, sizeof *function);
    }
    return finish(result != CUDA_SUCCESS                           ? result
                  : *found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND ? CUDA_ERROR_NOT_FOUND
                                                                   : CUDA_SUCCESS);
}

CUresult cuGetErrorName(CUresult number, const char **name) {
    START("%d", number);
    *name = NULL;
#define SB_CUDA_CONSTANT(constant, value)                                                                              \
    if (*name == NULL && strncmp(#constant, "CUDA_", 5) == 0 && number == (value))                                     \
        *name = #constant;
#include "cuda/driver/driver_constants.h"
#undef SB_CUDA_CONSTANT
    return finish(*name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGetErrorString(CUresult number, const char **text) {
    START("%d", number);
    static _Thread_local char room[48];
    snprintf(room, sizeof room, "fake error %d", number);
    *text = room;
    return finish(CUDA_SUCCESS);
}

CUresult cuInit(unsigned int flags) {
    START("%u", flags);
    if (fake.device_count == 0)
        return finish(CUDA_ERROR_NO_DEVICE);
    fake.initialised = true;
    for (int i = 0; i < FAKE_MOST_DEVICES; i++)
        fake.contexts[i].device = i;
    return finish(CUDA_SUCCESS);
}

/* ---- devices ---- */

CUresult cuDeviceGetCount(int *count) {
    START(" ");
    *count = fake.device_count;
    return finish(CUDA_SUCCESS);
}

static bool is_device(CUdevice device) {
    return device >= 0 && device < fake.device_count;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    START("%d", ordinal);
    *device = ordinal;
    return finish(is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
    START("%d", device);
    if (!is_device(device))
        return finish(CUDA_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)bytes, "%s", fake.devices[device].name);
    return finish(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    START("%d", device);
    if (!is_device(device))
        return finish(CUDA_ERROR_INVALID_DEVICE);
    *bytes = fake.devices[device].bytes;
    return finish(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    START("%d, %d", attribute, device);
    if (!is_device(device))
        return finish(CUDA_ERROR_INVALID_DEVICE);
    const fake_device *described = &fake.devices[device];
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = described->compute / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = described->compute % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = described->multiprocessors;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 227 * 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = 1980000;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *value = 3201000;
        break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = 6144;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return finish(result);
}

/* ---- contexts ---- */

#define STACK 16
static _Thread_local struct CUctx_st *stack[STACK];
static _Thread_local int depth;

struct CUctx_st *current_context(void) {
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    START("%d", device);
    if (!is_device(device))
        return finish(CUDA_ERROR_INVALID_DEVICE);
    fake.contexts[device].retained++;
    *context = &fake.contexts[device];
    return finish(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    START_GIVING_BACK("%d", device);
    struct CUctx_st *context = &fake.contexts[is_device(device) ? device : 0];
    if (!is_device(device) || context->retained == 0) {
        complain("the primary context of device %d is released more often than retained", device);
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (--context->retained == 0) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (kind != GRAPH && kind != EXECUTABLE && count_objects((object_kind)kind, context) > 0)
                complain("the context of device %d ends with objects of kind %d in it", device, kind);
        }
    }
    return finish(result);
}

CUresult cuCtxPushCurrent(CUcontext context) {
    START("%d", context != NULL ? context->device : -1);
    if (context == NULL || context->retained == 0)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    if (depth == STACK)
        abort();
    stack[depth++] = context;
    return finish(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    START_GIVING_BACK(" ");
    if (depth == 0) {
        complain("a context is popped that nobody pushed");
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    }
    *context = stack[--depth];
    return finish(result);
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    START(" ");
    *context = current_context();
    return finish(CUDA_SUCCESS);
}

/* ---- memory ---- */

static size_t used_bytes(const struct CUctx_st *context) {
    size_t used = 0;
    for (const object *object = fake.objects; object != NULL; object = object->next) {
        if (object->kind == MEMORY && object->context->device == context->device)
            used += ((const memory *)object)->size;
    }
    return used;
}

CUresult cuMemGetInfo(size_t *unused, size_t *total) {
    START(" ");
    struct CUctx_st *context = current_context();
    if (context == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    *total = fake.devices[context->device].bytes;
    *unused = *total - used_bytes(context);
    return finish(CUDA_SUCCESS);
}

static memory *make_block(object_kind kind, size_t bytes) {
    memory *block = add(kind, sizeof *block);
    block->size = bytes;
    make_bytes(block);
    return block;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    START("%zu", bytes);
    struct CUctx_st *context = current_context();
    if (context == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    if (bytes == 0)
        return finish(CUDA_ERROR_INVALID_VALUE);
    result = forbid_while_capturing();
    if (result != CUDA_SUCCESS)
        return finish(result);
    if (bytes > fake.devices[context->device].bytes - used_bytes(context))
        return finish(CUDA_ERROR_OUT_OF_MEMORY);
    *address = (CUdeviceptr)(uintptr_t)make_block(MEMORY, bytes)->bytes;
    return finish(CUDA_SUCCESS);
}

static CUresult free_block(object_kind kind, uintptr_t address) {
    memory *block = find_block(kind, address, 0);
    if (block == NULL || (uintptr_t)block->bytes != address) {
        complain("%#lx is freed and is no block", (unsigned long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = forbid_while_capturing();
    if (result != CUDA_SUCCESS)
        return result;
    drain_all();
    destroy(&block->object);
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
    START_GIVING_BACK("%#llx", address);
    CUresult freed = free_block(MEMORY, (uintptr_t)address);
    return finish(result != CUDA_SUCCESS ? result : freed);
}

CUresult cuMemHostAlloc(void **block, size_t bytes, unsigned int flags) {
    START("%zu, %u", bytes, flags);
    if (current_context() == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    result = forbid_while_capturing();
    if (result != CUDA_SUCCESS)
        return finish(result);
    *block = make_block(HOST_MEMORY, bytes)->bytes;
    return finish(CUDA_SUCCESS);
}

CUresult cuMemFreeHost(void *block) {
    START_GIVING_BACK("%p", block);
    CUresult freed = free_block(HOST_MEMORY, (uintptr_t)block);
    return finish(result != CUDA_SUCCESS ? result : freed);
}

/* Memory that the driver does not know, the process's own, has a type of 0 and no device. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr address) {
    START("%u, %#llx", count, address);
    const memory *block = find_block(MEMORY, (uintptr_t)address, 1);
    if (block == NULL)
        block = find_block(HOST_MEMORY, (uintptr_t)address, 1);
    for (unsigned int i = 0; i < count; i++) {
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned *)values[i] = block == NULL                  ? 0
                                     : block->object.kind == MEMORY ? CU_MEMORYTYPE_DEVICE
                                                                    : CU_MEMORYTYPE_HOST;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = block != NULL ? block->object.context->device : -2;
        else
            return finish(CUDA_ERROR_INVALID_VALUE);
    }
    return finish(CUDA_SUCCESS);
}

/* ---- modules ---- */

/* Whether a cubin, which is an ELF file, defines the function. */
static bool cubin_has(const char *image, const char *name) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
    for (int s = 0; s < head->e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(image + sections[s].sh_offset);
        const char *names = image + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && strcmp(names + symbols[i].st_name, name) == 0)
                return true;
        }
    }
    return false;
}

/* Whether text has `name` as a word: PTX declares ".entry NAME(", and tests write "FAKE sm_90a NAME
 * NAME", or "ANY" for all kernels that have a stand-in. */
static bool text_has(const char *image, const char *name) {
    for (int i = 0; i < kernel_count && strcmp(image, "ANY") == 0; i++) {
        if (strcmp(kernels[i].name, name) == 0)
            return true;
    }
    size_t length = strlen(name);
    for (const char *at = image; (at = strstr(at, name)) != NULL; at += length) {
        if (at > image && at[-1] == ' ' && strchr(" (\n", at[length]) != NULL)
            return true;
    }
    return false;
}

/* How many bytes a cubin has up to the end of what cubin_has reads. */
static size_t cubin_bytes(const char *image) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
    size_t end = head->e_shoff + (size_t)head->e_shnum * sizeof *sections;
    for (int s = 0; s < head->e_shnum; s++) {
        size_t last = sections[s].sh_offset + (sections[s].sh_type != SHT_NOBITS ? sections[s].sh_size : 0);
        end = last > end ? last : end;
    }
    return end;
}

/* As a driver has one: the caller may free the image that it gave. */
static char *copy_of_image(const char *image) {
    size_t bytes = memcmp(image, ELFMAG, SELFMAG) == 0 ? cubin_bytes(image) : strlen(image) + 1;
    char *copy = malloc(bytes);
    if (copy == NULL)
        abort();
    return memcpy(copy, image, bytes);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                            void **values) {
    START("%.24s", memcmp(image, ELFMAG, SELFMAG) == 0 ? "cubin" : (const char *)image);
    if (current_context() == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    result = forbid_while_capturing();
    if (result != CUDA_SUCCESS)
        return finish(result);
    if (memcmp(image, "BAD", 3) == 0)
        return finish(CUDA_ERROR_INVALID_IMAGE);
    struct CUmod_st *made = add(MODULE, sizeof *made);
    made->image = copy_of_image(image);
    *module = made;
    return finish(CUDA_SUCCESS);
}

void free_module(struct CUmod_st *module) {
    while (module->functions != NULL) {
        struct CUfunc_st *function = module->functions;
        module->functions = function->next;
        free(function->name);
        free(function);
    }
    free(module->image);
}

CUresult cuModuleUnload(CUmodule module) {
    START_GIVING_BACK("%p", (void *)module);
    if (!is_live(MODULE, module)) {
        complain("a module is unloaded that is not loaded");
        return finish(CUDA_ERROR_INVALID_HANDLE);
    }
    drain_all();
    destroy(&module->object);
    return finish(result);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    START("%s", name);
    if (!is_live(MODULE, module))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    bool has =
        memcmp(module->image, ELFMAG, SELFMAG) == 0 ? cubin_has(module->image, name) : text_has(module->image, name);
    if (!has)
        return finish(CUDA_ERROR_NOT_FOUND);
    struct CUfunc_st *made = calloc(1, sizeof *made);
    if (made == NULL || (made->name = strdup(name)) == NULL)
        abort();
    for (int i = 0; i < kernel_count; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            made->run = kernels[i].run;
            made->parameter_bytes = kernels[i].parameter_bytes;
        }
    }
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return finish(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    START("%d, %s", attribute, function->name);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return finish(CUDA_SUCCESS);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    START("%s, %d, %d", function->name, attribute, value);
    return finish(CUDA_SUCCESS);
}
