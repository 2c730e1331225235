#include "kernel/device.h"

sb_status sb_queue_to_device(sb_queue *queue, sb_tensor *source, sb_tensor **tensor, sb_error *error) {
    size_t bytes = (size_t)sb_tensor_elements(source) * sb_dtype_size(source->dtype);
    sb_storage *storage;
    SB_TRY(sb_queue_storage(queue, bytes, &storage, error));
    sb_status status =
        sb_tensor_over(storage, storage->data, source->dtype, source->rank, source->dims, NULL, tensor, error);
    sb_storage_release(storage);
    if (status != SB_OK)
        return status;
    status = sb_queue_upload(queue, *tensor, source, error);
    if (status != SB_OK) {
        sb_tensor_release(*tensor);
        *tensor = NULL;
    }
    return status;
}
