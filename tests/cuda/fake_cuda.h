/* A CUDA driver for tests, without a GPU: a shared library that is opened in place of libcuda.so.1.
 *
 * Device memory is host memory at addresses that host code can use, so a test can look at it, and
 * AddressSanitizer sees what a kernel's stand-in does wrong. Tasks in streams wait until somebody
 * synchronises, so a missing synchronisation gives wrong values; graphs run their nodes in the
 * reverse of the order in which they were made as far as edges allow, so a missing edge does too.
 * Misuse that a real driver may let pass (freeing twice, using what was destroyed, copying outside
 * an allocation) is remembered as a complaint.
 *
 * Tests get at it through fake_cuda_get_control(), and programs through variables of the environment:
 *
 *   FAKE_CUDA_VERSION=11080                     the release of the interface
 *   FAKE_CUDA_DEVICES="NAME:9.0:BYTES;…"        the devices; empty for none. Behind BYTES may stand :MULTIPROCESSORS, else 4
 *   FAKE_CUDA_FAIL=cuMemGetInfo:0:2             the first call of a function fails with this number
 *   FAKE_CUDA_GUARD=1                           the host may not touch device memory
 *   FAKE_CUDA_LOG=FILE                          every call, one per line */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MOST_DEVICES 8

typedef struct fake_device {
    char name[64];
    int compute; /* 90 for 9.0 */
    int multiprocessors;
    size_t bytes;
} fake_device;

/* What a kernel does, on the host: called once per launch with the struct of parameters. `shared_bytes` are those of
 * dynamic shared memory. */
typedef void fake_kernel(const void *parameters, const unsigned grid[3], const unsigned block[3],
                         unsigned shared_bytes);

/* What lives in the driver. */
typedef struct fake_live {
    int contexts; /* retained primary contexts */
    int memory, host_memory, streams, events, modules, graphs, executables;
} fake_live;

typedef struct fake_cuda_control {
    /** Forgets everything, also what lives; devices, version and failures are as at the start. */
    void (*reset)(void);
    void (*set_version)(int version);
    void (*set_devices)(int count, const fake_device *devices);
    /** cuGetProcAddress says that there is no such function; NULL ends this. */
    void (*hide)(const char *symbol);
    /** Call number `skip` from now (0: the next) of a function (NULL: of any but cuGetError…) gives
     * `result` and does nothing; calls that give something back do it nevertheless. A sticky result
     * is repeated by every later call. A negative `skip` ends this. */
    void (*plan_failure)(const char *symbol, int skip, int result);
    /** Whether the failure asked for has happened. */
    bool (*failure_happened)(void);
    /** How often a function (NULL: any but cuGetError…) was called since the last reset. */
    int (*calls)(const char *symbol);
    /** All calls since the last reset, one per line. */
    const char *(*log)(void);
    void (*define_kernel)(const char *name, size_t parameter_bytes, fake_kernel *run);
    fake_live (*live)(void);
    /** The first misuse, or "". */
    const char *(*complaint)(void);
    /** The next kernel that runs fails with a sticky result. */
    void (*break_kernel)(int result);
} fake_cuda_control;

/** The one function that tests look up by its name. */
typedef const fake_cuda_control *fake_cuda_get(void);
fake_cuda_get fake_cuda_get_control;

#endif
