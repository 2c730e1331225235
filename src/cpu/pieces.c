#include "cpu/pieces.h"

#include <stdatomic.h>

#include "base/allocation.h"

typedef struct pieces {
    _Atomic int64_t next;
    int64_t count;
    sb_piece_task *task;
    void *context;
    char *workspace;
    size_t workspace_bytes;
} pieces;

/* Each index is a thread's worth of work: it takes pieces until none is left. */
static void run_thread(void *context, int64_t begin, int64_t end) {
    pieces *running = context;
    for (int64_t thread = begin; thread < end; thread++) {
        char *workspace = running->workspace + (size_t)thread * running->workspace_bytes;
        for (;;) {
            int64_t index = atomic_fetch_add_explicit(&running->next, 1, memory_order_relaxed);
            if (index >= running->count)
                break;
            running->task(running->context, index, workspace);
        }
    }
}

sb_status sb_pieces_run(sb_call *call, int64_t count, size_t workspace_bytes, sb_piece_task *task, void *context) {
    if (count <= 0)
        return SB_OK;
    int64_t threads = sb_workers_threads(call->workers);
    pieces running = {.count = count, .task = task, .context = context};
    running.workspace_bytes = (workspace_bytes + SB_ALIGNMENT - 1) / SB_ALIGNMENT * SB_ALIGNMENT;
    int64_t used = threads < count ? threads : count;
    size_t bytes;
    void *memory;
    if (running.workspace_bytes < workspace_bytes ||
        __builtin_mul_overflow(running.workspace_bytes, (size_t)used, &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    running.workspace = memory;
    sb_workers_run(call->workers, used, 1, run_thread, &running);
    return SB_OK;
}
