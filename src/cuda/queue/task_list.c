#include <string.h>

#include "base/allocation.h"
#include "cuda/queue/task.h"

/* Where the task's parameters and ranges lie among the list's bytes, which move as they grow. */
typedef struct entry {
    sb_cuda_task task;
    size_t parameters, ranges;
} entry;

struct sb_cuda_task_list {
    entry *entries;
    size_t count, capacity;
    char *bytes;
    size_t bytes_used, bytes_capacity;
};

sb_status sb_cuda_task_list_create(sb_cuda_task_list **list, sb_error *error) {
    *list = sb_allocate_array(1, sizeof **list);
    return *list != NULL ? SB_OK : sb_fail_memory(error, sizeof **list);
}

void sb_cuda_task_list_destroy(sb_cuda_task_list *list) {
    if (list == NULL)
        return;
    sb_free(list->entries);
    sb_free(list->bytes);
    sb_free(list);
}

void sb_cuda_task_list_clear(sb_cuda_task_list *list) {
    list->count = 0;
    list->bytes_used = 0;
}

int sb_cuda_task_list_count(const sb_cuda_task_list *list) {
    return (int)list->count;
}

sb_cuda_task sb_cuda_task_list_at(const sb_cuda_task_list *list, int index) {
    const entry *entry = &list->entries[index];
    sb_cuda_task task = entry->task;
    if (task.kind == SB_CUDA_KERNEL) {
        task.kernel.parameters = list->bytes + entry->parameters;
        task.kernel.ranges = (const sb_cuda_range *)(const void *)(list->bytes + entry->ranges);
    }
    return task;
}

/* Copies `size` bytes behind the others, aligned as any parameter may want it, into room that is there. */
static size_t append_bytes(sb_cuda_task_list *list, const void *bytes, size_t size) {
    size_t place = list->bytes_used;
    if (size > 0)
        memcpy(list->bytes + place, bytes, size);
    list->bytes_used = place + (size + 15) / 16 * 16;
    return place;
}

sb_status sb_cuda_task_list_append(sb_cuda_task_list *list, const sb_cuda_task *task, sb_error *error) {
    bool kernel = task->kind == SB_CUDA_KERNEL;
    size_t parameter_bytes = kernel ? task->kernel.kernel->parameter_bytes : 0;
    size_t range_bytes = kernel ? (size_t)task->kernel.range_count * sizeof(sb_cuda_range) : 0;
    size_t wanted = list->bytes_used + parameter_bytes + range_bytes + 2 * 16;
    if (!sb_grow((void **)&list->entries, &list->capacity, list->count + 1, sizeof *list->entries) ||
        !sb_grow((void **)&list->bytes, &list->bytes_capacity, wanted, 1))
        return sb_fail_memory(error, wanted);
    entry *entry = &list->entries[list->count++];
    entry->task = *task;
    entry->parameters = list->bytes_used;
    if (kernel) {
        append_bytes(list, task->kernel.parameters, parameter_bytes);
        entry->ranges = append_bytes(list, task->kernel.ranges, range_bytes);
    }
    return SB_OK;
}

void sb_cuda_task_list_drop_last(sb_cuda_task_list *list) {
    list->bytes_used = list->entries[--list->count].parameters;
}
