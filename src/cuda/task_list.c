#include <string.h>

#include "base/allocation.h"
#include "cuda/task.h"

/* Where the task's parameters and ranges lie among the list's bytes, which move as they grow. */
typedef struct entry {
    iv_cuda_task task;
    size_t parameters, ranges;
} entry;

struct iv_cuda_task_list {
    entry *entries;
    size_t count, capacity;
    char *bytes;
    size_t bytes_used, bytes_capacity;
};

iv_status iv_cuda_task_list_create(iv_cuda_task_list **list, iv_error *error) {
    *list = iv_allocate_array(1, sizeof **list);
    return *list != NULL ? IV_OK : iv_fail_memory(error, sizeof **list);
}

void iv_cuda_task_list_destroy(iv_cuda_task_list *list) {
    if (list == NULL)
        return;
    iv_free(list->entries);
    iv_free(list->bytes);
    iv_free(list);
}

void iv_cuda_task_list_clear(iv_cuda_task_list *list) {
    list->count = 0;
    list->bytes_used = 0;
}

int iv_cuda_task_list_count(const iv_cuda_task_list *list) {
    return (int)list->count;
}

iv_cuda_task iv_cuda_task_list_at(const iv_cuda_task_list *list, int index) {
    const entry *entry = &list->entries[index];
    iv_cuda_task task = entry->task;
    if (task.kind == IV_CUDA_KERNEL) {
        task.kernel.parameters = list->bytes + entry->parameters;
        task.kernel.ranges = (const iv_cuda_range *)(const void *)(list->bytes + entry->ranges);
    }
    return task;
}

/* Copies `size` bytes behind the others, aligned as any parameter may want it, into room that is
 * there. */
static size_t append_bytes(iv_cuda_task_list *list, const void *bytes, size_t size) {
    size_t place = list->bytes_used;
    if (size > 0)
        memcpy(list->bytes + place, bytes, size);
    list->bytes_used = place + (size + 15) / 16 * 16;
    return place;
}

iv_status iv_cuda_task_list_append(iv_cuda_task_list *list, const iv_cuda_task *task,
                                   iv_error *error) {
    bool kernel = task->kind == IV_CUDA_KERNEL;
    size_t parameter_bytes = kernel ? task->kernel.kernel->parameter_bytes : 0;
    size_t range_bytes = kernel ? (size_t)task->kernel.range_count * sizeof(iv_cuda_range) : 0;
    size_t wanted = list->bytes_used + parameter_bytes + range_bytes + 2 * 16;
    if (!iv_grow((void **)&list->entries, &list->capacity, list->count + 1,
                 sizeof *list->entries) ||
        !iv_grow((void **)&list->bytes, &list->bytes_capacity, wanted, 1))
        return iv_fail_memory(error, wanted);
    entry *entry = &list->entries[list->count++];
    entry->task = *task;
    entry->parameters = list->bytes_used;
    if (kernel) {
        append_bytes(list, task->kernel.parameters, parameter_bytes);
        entry->ranges = append_bytes(list, task->kernel.ranges, range_bytes);
    }
    return IV_OK;
}

void iv_cuda_task_list_drop_last(iv_cuda_task_list *list) {
    list->bytes_used = list->entries[--list->count].parameters;
}
