#include "tensor/dlpack.h"

#include <string.h>

#include "base/allocation.h"

static const struct {
    sb_dtype dtype;
    uint8_t code, bits;
} types[] = {
    {SB_BOOL, kDLBool, 8},
    {SB_U8, kDLUInt, 8},
    {SB_U16, kDLUInt, 16},
    {SB_U32, kDLUInt, 32},
    {SB_U64, kDLUInt, 64},
    {SB_S8, kDLInt, 8},
    {SB_S16, kDLInt, 16},
    {SB_S32, kDLInt, 32},
    {SB_S64, kDLInt, 64},
    {SB_F16, kDLFloat, 16},
    {SB_BF16, kDLBfloat, 16},
    {SB_F32, kDLFloat, 32},
    {SB_F64, kDLFloat, 64},
    /* By number: DLPack names the small floats since 1.1, and the header that is included may be older. */
    {SB_F8E4M3FN, 10, 8},
    {SB_F8E4M3FNUZ, 11, 8},
    {SB_F8E5M2, 12, 8},
    {SB_F8E5M2FNUZ, 13, 8},
    {SB_F8E8M0, 14, 8},
    {SB_F6E2M3, 15, 6},
    {SB_F6E3M2, 16, 6},
    {SB_F4E2M1, 17, 4},
    {SB_S4, kDLInt, 4},
    {SB_U4, kDLUInt, 4},
    {SB_S2, kDLInt, 2},
    {SB_U2, kDLUInt, 2},
};
/* That elements of less than 8 bits take a byte each: DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED since DLPack 1.1. */
#define FLAG_PADDED (UINT64_C(1) << 2)
enum { TYPES = sizeof types / sizeof *types };

/* ---- export ---- */

typedef struct exported {
    DLManagedTensorVersioned managed;
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
} exported;

static void delete_exported(DLManagedTensorVersioned *self) {
    sb_tensor_release(self->manager_ctx);
    sb_free(self); /* the first member of what was allocated */
}

static DLDevice device_of(const sb_storage *storage) {
    return storage->device != NULL ? (DLDevice){kDLCUDA, storage->device_index} : (DLDevice){kDLCPU, 0};
}

sb_status sb_tensor_to_dlpack(sb_tensor *tensor, DLManagedTensorVersioned **managed, sb_error *error) {
    int type = 0;
    while (type < TYPES && types[type].dtype != tensor->dtype)
        type++;
    if (type == TYPES)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "DLPack has no type for %s elements", sb_dtype_name(tensor->dtype));
    bool is_newer = sb_dtype_is_small(tensor->dtype);
    exported *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    memcpy(fresh->dims, tensor->dims, sizeof fresh->dims);
    memcpy(fresh->strides, tensor->strides, sizeof fresh->strides);
    fresh->managed = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, is_newer && DLPACK_MINOR_VERSION < 1 ? 1 : DLPACK_MINOR_VERSION},
        .manager_ctx = sb_tensor_retain(tensor),
        .deleter = delete_exported,
        .flags = DLPACK_FLAG_BITMASK_READ_ONLY | (types[type].bits < 8 ? FLAG_PADDED : 0),
        .dl_tensor = {.data = tensor->data,
                      .device = device_of(tensor->storage),
                      .ndim = tensor->rank,
                      .dtype = {types[type].code, types[type].bits, 1},
                      .shape = fresh->dims,
                      .strides = fresh->strides},
    };
    *managed = &fresh->managed;
    return SB_OK;
}

/* ---- import ---- */

static sb_status find_type(DLDataType type, uint64_t flags, sb_dtype *dtype, sb_error *error) {
    for (int i = 0; i < TYPES && type.lanes == 1; i++) {
        if (types[i].code != type.code || types[i].bits != type.bits)
            continue;
        *dtype = types[i].dtype;
        if (type.bits >= 8 || (flags & FLAG_PADDED) != 0)
            return SB_OK;
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "the DLPack tensor has packed elements of %s, which is not read: give each element a byte and set "
            "the flag DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED",
            sb_dtype_name(*dtype));
    }
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "DLPack type code %d with %d bits and %d lanes has no counterpart: convert the array first",
                   type.code, type.bits, type.lanes);
}

sb_status sb_dlpack_wrap(const DLTensor *from, uint64_t flags, void (*release)(void *context), void *context,
                         sb_tensor **tensor, sb_error *error) {
    sb_dtype dtype;
    SB_TRY(find_type(from->dtype, flags, &dtype, error));
    uintptr_t address = (uintptr_t)from->data;
    if (from->byte_offset > UINTPTR_MAX - address)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the DLPack tensor's byte offset %llu reaches beyond any memory",
                       (unsigned long long)from->byte_offset);
    if (from->data == NULL && from->byte_offset != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the DLPack tensor has a byte offset but no memory");
    char *data = from->data == NULL ? NULL : (char *)from->data + from->byte_offset;
    return sb_tensor_wrap(dtype, from->ndim, from->shape, from->strides, data, release, context, tensor, error);
}

static sb_status check_on_cpu(const DLTensor *from, sb_error *error) {
    if (from->device.device_type == kDLCPU)
        return SB_OK;
    if (from->device.device_type == kDLCUDA)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the DLPack tensor is on device type 2, CUDA device %d: import it with sb_tensor_from_dlpack_on",
                       (int)from->device.device_id);
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "the DLPack tensor is on device type %d: copy it to the CPU (type 1) first",
                   (int)from->device.device_type);
}

void sb_dlpack_release(void *context) {
    DLManagedTensorVersioned *managed = context;
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

void sb_dlpack_release_legacy(void *context) {
    DLManagedTensor *managed = context;
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

sb_status sb_dlpack_check(const DLManagedTensorVersioned *managed, sb_error *error) {
    if (managed == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no DLPack tensor given");
    /* Of another major version, nothing but the deleter may be touched. */
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the DLPack tensor is of version %u.%u, not of %d: ask its maker for "
                       "max_version=(1, 0)",
                       managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
    return SB_OK;
}

sb_status sb_tensor_from_dlpack(DLManagedTensorVersioned *managed, sb_tensor **tensor, sb_error *error) {
    SB_TRY(sb_dlpack_check(managed, error));
    SB_TRY(check_on_cpu(&managed->dl_tensor, error));
    return sb_dlpack_wrap(&managed->dl_tensor, managed->flags, sb_dlpack_release, managed, tensor, error);
}

sb_status sb_tensor_from_dlpack_legacy(DLManagedTensor *managed, sb_tensor **tensor, sb_error *error) {
    if (managed == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no DLPack tensor given");
    SB_TRY(check_on_cpu(&managed->dl_tensor, error));
    return sb_dlpack_wrap(&managed->dl_tensor, 0, sb_dlpack_release_legacy, managed, tensor, error);
}
