/* cp.async on the host: a copy's place is full of NaNs as soon as it has begun, and its bytes come when its thread waits
 * for its batch, not before. So it shows when a place is filled again too early, and when nobody has waited. */
#include <stdlib.h>
#include <string.h>

#include "host_blocks.h"

typedef struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    unsigned bytes;
    uint64_t batch;
} copy;

/* What each thread has begun, oldest first. */
static struct {
    copy *copies;
    size_t count, room;
    uint64_t batches; /* that have ended */
} begun[HOST_MOST_THREADS];

void host_begin_copy(void *to, const void *from, unsigned bytes) {
    unsigned thread = host_current_number();
    if ((uintptr_t)to % bytes != 0 || (uintptr_t)from % bytes != 0)
        host_refuse("a copy of %u bytes is not aligned to as many", bytes);
    if (begun[thread].count == begun[thread].room) {
        begun[thread].room = 2 * begun[thread].room + 16;
        begun[thread].copies = realloc(begun[thread].copies, begun[thread].room * sizeof(copy));
        if (begun[thread].copies == NULL)
            abort();
    }
    memset(to, HOST_POISON, bytes);
    begun[thread].copies[begun[thread].count++] = (copy){to, from, bytes, begun[thread].batches};
}

void host_end_copies(void) {
    begun[host_current_number()].batches++;
}

void host_wait_copies(unsigned left) {
    unsigned thread = host_current_number();
    size_t done = 0;
    if (host_planted == HOST_PLANT_NO_COPIES_WAIT && begun[thread].batches % 2 == 0)
        return;
    for (; done < begun[thread].count && begun[thread].copies[done].batch + left < begun[thread].batches; done++) {
        const copy *copy = &begun[thread].copies[done];
        if (copy->from != NULL)
            memcpy(copy->to, copy->from, copy->bytes);
        else
            memset(copy->to, 0, copy->bytes);
    }
    begun[thread].count -= done;
    if (begun[thread].count > 0 && done > 0)
        memmove(begun[thread].copies, begun[thread].copies + done, begun[thread].count * sizeof(copy));
}

void host_asynchronous_end_thread(void) {
    unsigned thread = host_current_number();
    if (begun[thread].count > 0)
        host_refuse("it ends with %zu copies that it has not waited for", begun[thread].count);
    begun[thread].batches = 0;
}
