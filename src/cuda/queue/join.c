#include "cuda/queue/join.h"

#include <string.h>

#include "base/allocation.h"

bool sb_cuda_writes_into(const sb_cuda_kernel_task *writer, const sb_cuda_kernel_task *other) {
    for (int i = 0; i < writer->range_count; i++) {
        const sb_cuda_range *written = &writer->ranges[i];
        for (int j = 0; j < other->range_count && written->written; j++) {
            const sb_cuda_range *range = &other->ranges[j];
            if (range != written && written->bytes > 0 && range->bytes > 0 &&
                written->address < range->address + range->bytes && range->address < written->address + written->bytes)
                return true;
        }
    }
    return false;
}

bool sb_cuda_writes_over_itself(const sb_cuda_kernel_task *task) {
    for (int i = 0; i < task->range_count; i++) {
        const sb_cuda_kernel_task touched = {.range_count = 1, .ranges = &task->ranges[i]};
        if (!task->ranges[i].written && sb_cuda_writes_into(task, &touched))
            return true;
    }
    return false;
}

void sb_cuda_join_ranges(const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own, sb_cuda_joined *joined) {
    memcpy(joined->ranges, ahead->ranges, (size_t)ahead->range_count * sizeof *ahead->ranges);
    memcpy(joined->ranges + ahead->range_count, own->ranges, (size_t)own->range_count * sizeof *own->ranges);
    joined->task.ranges = joined->ranges;
    joined->task.range_count = ahead->range_count + own->range_count;
}

/* Tries to make one task of `own` and the last of the list, which is right ahead of it. */
static sb_status join_last(sb_cuda_device *device, sb_cuda_task_list *made, const sb_cuda_task *own,
                           sb_cuda_joined *joined, sb_error *error) {
    const int count = sb_cuda_task_list_count(made);
    joined->is_joined = false;
    if (count == 0 || own->kind != SB_CUDA_KERNEL || own->kernel.join == NULL)
        return SB_OK;
    const sb_cuda_task ahead = sb_cuda_task_list_at(made, count - 1);
    if (ahead.kind != SB_CUDA_KERNEL || ahead.kernel.range_count + own->kernel.range_count > SB_CUDA_JOINED_RANGES)
        return SB_OK;
    return own->kernel.join(device, &ahead.kernel, &own->kernel, joined, error);
}

static sb_status append_or_join(sb_cuda_device *device, sb_cuda_task_list *made, const sb_cuda_task *own,
                                sb_cuda_joined *joined, sb_error *error) {
    SB_TRY(join_last(device, made, own, joined, error));
    if (!joined->is_joined)
        return sb_cuda_task_list_append(made, own, error);
    const sb_cuda_task task = {.kind = SB_CUDA_KERNEL, .step = own->step, .kernel = joined->task};
    sb_cuda_task_list_drop_last(made);
    return sb_cuda_task_list_append(made, &task, error);
}

sb_status sb_cuda_tasks_join(sb_cuda_device *device, const sb_cuda_task_list *list, sb_cuda_task_list **made,
                             sb_error *error) {
    sb_cuda_joined *joined = sb_allocate_array(1, sizeof *joined);
    if (joined == NULL)
        return sb_fail_memory(error, sizeof *joined);
    sb_status status = sb_cuda_task_list_create(made, error);
    for (int i = 0; status == SB_OK && i < sb_cuda_task_list_count(list); i++) {
        const sb_cuda_task task = sb_cuda_task_list_at(list, i);
        status = append_or_join(device, *made, &task, joined, error);
    }
    sb_free(joined);
    if (status != SB_OK) {
        sb_cuda_task_list_destroy(*made);
        *made = NULL;
    }
    return status;
}
