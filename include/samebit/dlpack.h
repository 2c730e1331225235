/* DLPack: handing tensors to and taking them from other libraries (numpy, PyTorch, JAX, …) without a copy.
 *
 * The structures below are those of the DLPack 1.x binary interface, under their standard names and behind
 * DLPack's own include guard: when the official dlpack.h (1.0 or later) is used too, include it first, and it is
 * the one that counts. */
#ifndef SAMEBIT_DLPACK_H
#define SAMEBIT_DLPACK_H

#include <stdint.h>

#include <samebit/device.h>
#include <samebit/tensor.h>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLCUDAManaged = 13
} DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef enum {
    kDLInt = 0U,
    kDLUInt = 1U,
    kDLFloat = 2U,
    kDLOpaqueHandle = 3U,
    kDLBfloat = 4U,
    kDLComplex = 5U,
    kDLBool = 6U
} DLDataTypeCode;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL for row-major */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#elif !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1
#error "samebit/dlpack.h needs the structures of DLPack 1.x: update the dlpack.h that is included before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Exports a tensor without a copy, as memory of the CPU or of the CUDA device on which it lies (kDLCUDA; what has been
 * given out by a run or a copy is finished there, so that its reader need wait for no stream). The result keeps the
 * elements alive until its deleter is called (from any thread, once), which also frees it. It is marked read-only,
 * because tensors are immutable. The small types have the codes of DLPack 1.1; elements of less than 8 bits take a byte
 * each, which its flag DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (bit 2) tells. Errors: UNSUPPORTED for SB_STRING;
 * OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tensor_to_dlpack(sb_tensor *tensor, DLManagedTensorVersioned **managed,
                                                   sb_error *error);

/** Imports a tensor without a copy, and takes it over: its deleter is called when the last reference to its
 * elements is released. When the call fails, it stays the caller's. Nobody may write to the elements any more;
 * those of kDLBool must be 0 or 1.
 *
 * Errors: UNSUPPORTED for another major version of DLPack, memory that is not the CPU's (see sb_tensor_from_dlpack_on),
 * and types that Samebit does not have, elements of less than 8 bits without the flag above too; INVALID_ARGUMENT for
 * structures that contradict themselves and elements that are not aligned; SHAPE; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_dlpack(DLManagedTensorVersioned *managed, sb_tensor **tensor,
                                                     sb_error *error);

/** The same for the structure that DLPack had before version 1. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_dlpack_legacy(DLManagedTensor *managed, sb_tensor **tensor,
                                                            sb_error *error);

/** The same for memory of a CUDA device (kDLCUDA), which must be `device`, or of the CPU. Such a tensor may be
 * an input of sessions on the device. What its maker does to the memory must have been done: no stream is
 * waited for. Its deleter may be called from any thread, with any context current. Errors: as above;
 * INVALID_ARGUMENT for another device's memory. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_dlpack_on(sb_device *device, DLManagedTensorVersioned *managed,
                                                        sb_tensor **tensor, sb_error *error);

/** The same for the structure that DLPack had before version 1. */
SB_API SB_MUST_CHECK sb_status sb_tensor_from_dlpack_legacy_on(sb_device *device, DLManagedTensor *managed,
                                                               sb_tensor **tensor, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
